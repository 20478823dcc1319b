//! What ACKs carry, kept by the host while the packets that stand for them travel.
//!
//! A packet names its slot and the generation of its use. Whoever frees the slot (delivery, or the packet's
//! death on the path) ends the generation, so a copy that arrives later finds nothing and says nothing: it
//! could only have repeated the original. A copy that arrives first reads the slot and leaves it. An original
//! that dies after it was copied takes what the copy would have said with it; the next ACK says it again.

use brakelight_core::controller::{ReceiveTime, ReceiverReport};
use brakelight_core::ecn::Mark;
use brakelight_core::feedback::MarkTotals;
use brakelight_core::packet::{Acknowledgement, Block};
use brakelight_core::time::{Duration, Time};

use super::ranges::Range;

/// The contents of one ACK. Its slot has 64 bytes, as many as a cache line, because a fast flow has thousands
/// of ACKs in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct AckBody {
    /// TCP: the first segment that is missing.
    pub(super) cumulative: u32,
    /// The mark that stands for all that the ACK newly covers.
    pub(super) state: Mark,
    /// Whether `extra` belongs to this ACK. The detail of one before it stays for its memory.
    has_extra: bool,
    /// TCP: the echoed timestamp (RFC 7323).
    pub(super) echoed: Time,
    extra: Extra,
}

/// What an ACK says besides. After a loss nearly all ACKs of TCP have SACK blocks, and explicit schemes have
/// a report in most. An ACK that has both has them in its detail, which lies apart. A slot that once had a
/// detail keeps it, and writes blocks and reports there.
#[derive(Clone, Debug, Default)]
enum Extra {
    #[default]
    None,
    Sack(Sack),
    Report(ReceiverReport),
    Detail(Box<Detail>),
}

/// TCP: what an ACK says of segments that did not arrive in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Sack {
    blocks: [Range; SACK_BLOCKS],
    /// Empty where there is none.
    duplicate: Range,
    count: u8,
}

/// rfc2018 3: blocks that fit beside a timestamp.
const SACK_BLOCKS: usize = 3;

impl Sack {
    /// Blocks of segments, the most recently changed first.
    #[inline]
    pub(super) fn blocks(&self) -> &[Range] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Segments that arrived though they were there already (RFC 2883).
    #[inline]
    pub(super) fn duplicate(&self) -> Option<Range> {
        (self.duplicate.start < self.duplicate.end).then_some(self.duplicate)
    }

    /// Sets which segments arrived though they were there already.
    pub(super) fn set_duplicate(&mut self, duplicate: Range) {
        self.duplicate = duplicate;
    }

    /// Adds `block` behind the others, unless it is among them. Returns `false` if there is no room for
    /// another: a report of duplicates takes the room of one.
    pub(super) fn report(&mut self, block: Range) -> bool {
        let room = SACK_BLOCKS - usize::from(self.duplicate().is_some());
        if self.blocks().len() == room {
            return false;
        }
        if !self.blocks().contains(&block) {
            self.blocks[usize::from(self.count)] = block;
            self.count += 1;
        }
        true
    }
}

/// What few ACKs say.
#[derive(Clone, Debug)]
pub(super) struct Detail {
    /// QUIC: ranges of packet numbers, the highest first.
    pub(super) ranges: Vec<Range>,
    /// QUIC: how long the newest packet waited for this ACK.
    pub(super) delay: Duration,
    /// Exact counters of marks.
    pub(super) totals: Option<MarkTotals>,
    /// When packets arrived, where the scheme's receiver reports it.
    pub(super) receive_times: Vec<ReceiveTime>,
    /// What else the scheme's receiver says.
    report: ReceiverReport,
    sack: Option<Sack>,
}

/// What an ACK without detail says.
static NOTHING: Detail = Detail {
    ranges: Vec::new(),
    delay: Duration::ZERO,
    totals: None,
    receive_times: Vec::new(),
    report: ReceiverReport::None,
    sack: None,
};

impl Detail {
    /// Forgets everything, and keeps the memory.
    fn clear(&mut self) {
        self.ranges.clear();
        self.receive_times.clear();
        self.delay = Duration::ZERO;
        self.totals = None;
        self.report = ReceiverReport::None;
        self.sack = None;
    }
}

impl AckBody {
    /// The report of what did not arrive in order, if there is one.
    #[inline]
    pub(super) fn sack(&self) -> Option<&Sack> {
        match &self.extra {
            _ if !self.has_extra => None,
            Extra::Sack(sack) => Some(sack),
            Extra::Detail(detail) => detail.sack.as_ref(),
            Extra::None | Extra::Report(_) => None,
        }
    }

    /// Segments that arrived though they were there already (RFC 2883).
    #[inline]
    pub(super) fn duplicate(&self) -> Option<Range> {
        self.sack().and_then(Sack::duplicate)
    }

    /// The report of what did not arrive in order, for writing, empty at first.
    pub(super) fn sack_mut(&mut self) -> &mut Sack {
        if !self.has_extra && !matches!(self.extra, Extra::Detail(_)) {
            self.has_extra = true;
            self.extra = Extra::Sack(Sack::default());
        } else if !matches!(self.extra, Extra::Sack(_)) {
            self.detail_mut();
        }
        match &mut self.extra {
            Extra::Sack(sack) => sack,
            Extra::Detail(detail) => detail.sack.get_or_insert_default(),
            Extra::None | Extra::Report(_) => unreachable!("an ACK that has an extra has one of the others"),
        }
    }

    /// Returns what routers can read of it, in segments. It is not replaceable if it says what no newer ACK
    /// repeats: duplicates, a scheme's report, a mark other than CE, or blocks that lie too far ahead.
    pub(super) fn acknowledgement(&self) -> Acknowledgement {
        let sack = self.sack();
        let mut blocks = [Block::default(); SACK_BLOCKS];
        let mut fit = true;
        for (block, range) in blocks.iter_mut().zip(sack.map_or(&[][..], Sack::blocks)) {
            match (u16::try_from(range.start.wrapping_sub(self.cumulative)), u16::try_from(range.len())) {
                (Ok(ahead), Ok(length)) => *block = Block { ahead, length },
                _ => fit = false,
            }
        }
        let reports = matches!(self.report(), ReceiverReport::None);
        let detail = self.detail();
        let plain = detail.totals.is_none() && detail.receive_times.is_empty() && reports;
        let echoes = matches!(self.state, Mark::None | Mark::Ce);
        Acknowledgement {
            cumulative: self.cumulative,
            blocks,
            echo: u8::from(self.state == Mark::Ce),
            replaceable: fit && plain && echoes && self.duplicate().is_none(),
        }
    }

    /// Returns `true` if it says no more than what arrived and the receiver's report. Returns `false` of some
    /// that do not, too: those whose slot has a detail.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.state == Mark::None && !(self.has_extra && matches!(self.extra, Extra::Detail(_)))
    }

    /// What else the scheme's receiver says.
    #[inline]
    pub(super) fn report(&self) -> ReceiverReport {
        match &self.extra {
            _ if !self.has_extra => ReceiverReport::None,
            Extra::Report(report) => *report,
            Extra::Detail(detail) => detail.report,
            Extra::None | Extra::Sack(_) => ReceiverReport::None,
        }
    }

    /// Sets what else the scheme's receiver says.
    #[inline]
    pub(super) fn set_report(&mut self, report: ReceiverReport) {
        if self.has_extra || matches!(self.extra, Extra::Detail(_)) {
            self.detail_mut().report = report;
        } else {
            self.has_extra = true;
            self.extra = Extra::Report(report);
        }
    }

    #[inline]
    pub(super) fn detail(&self) -> &Detail {
        match &self.extra {
            Extra::Detail(detail) if self.has_extra => detail,
            _ => &NOTHING,
        }
    }

    /// The detail for writing, empty at first but for what was written already.
    pub(super) fn detail_mut(&mut self) -> &mut Detail {
        let had_extra = std::mem::replace(&mut self.has_extra, true);
        if let Extra::Detail(detail) = &mut self.extra {
            if !had_extra {
                detail.clear();
            }
        } else {
            let mut detail = Box::new(NOTHING.clone());
            match std::mem::take(&mut self.extra) {
                Extra::Report(report) if had_extra => detail.report = report,
                Extra::Sack(sack) if had_extra => detail.sack = Some(sack),
                _ => {}
            }
            self.extra = Extra::Detail(detail);
        }
        match &mut self.extra {
            Extra::Detail(detail) => detail,
            _ => unreachable!("it was just made"),
        }
    }
}

#[derive(Clone, Debug)]
struct Slot {
    /// Which ACK it holds; zero while it is free.
    generation: u32,
    /// While the slot is free: the one that became free before it, plus one.
    next_free: u32,
    body: AckBody,
}

// Ten thousand flows have a quarter of a million slots.
const _: () = assert!(size_of::<Slot>() <= 64);

/// The ACKs in flight of one connection. Slots and the memory inside them are used again, the last that
/// became free first. Those that a large burst of ACKs needed are given back.
#[derive(Clone, Debug, Default)]
pub(super) struct AckArena {
    slots: Vec<Slot>,
    /// The slot that became free last, plus one; zero while none is.
    first_free: u32,
    in_use: u32,
    /// ACKs made so far: the generation of the newest.
    generations: u32,
    /// The same at the last [`trim`](Self::trim).
    trimmed_at: u32,
    /// Slots that a burst may need: as many as there were ACKs between the last two trims, or half of the
    /// number before, if that is more.
    burst: u32,
}

/// Slots that are never given back.
const KEPT: u32 = 4;

impl AckArena {
    /// A slot for a new ACK, without detail.
    #[inline]
    pub(super) fn claim(&mut self) -> (u32, &mut AckBody) {
        self.in_use += 1;
        // Zero is the generation of a free slot.
        self.generations = self.generations.checked_add(1).unwrap_or(1);
        if self.first_free == 0 {
            self.grow();
        }
        let slot = self.first_free - 1;
        let entry = &mut self.slots[slot as usize];
        self.first_free = entry.next_free;
        entry.generation = self.generations;
        entry.body.has_extra = false;
        (slot, &mut entry.body)
    }

    /// Adds a slot, which is free.
    #[cold]
    fn grow(&mut self) {
        if self.slots.len() == self.slots.capacity() {
            // Not twice as many, see `frugal`.
            self.slots.reserve_exact((self.slots.len() / 4).max(8));
        }
        self.slots.push(Slot { generation: 0, next_free: 0, body: AckBody::default() });
        self.first_free = self.slots.len() as u32;
    }

    /// Which ACK a claimed slot holds.
    #[inline]
    pub(super) fn generation(&self, slot: u32) -> u32 {
        self.slots[slot as usize].generation
    }

    /// The contents, unless they are gone.
    #[inline]
    pub(super) fn get(&self, slot: u32, generation: u32) -> Option<&AckBody> {
        let entry = self.slots.get(slot as usize)?;
        (entry.generation == generation).then_some(&entry.body)
    }

    /// The contents, unless they are gone. Frees the slot: they stay until its next use.
    #[inline]
    pub(super) fn release(&mut self, slot: u32, generation: u32) -> Option<&AckBody> {
        let entry = self.slots.get_mut(slot as usize).filter(|entry| entry.generation == generation)?;
        entry.generation = 0;
        entry.next_free = self.first_free;
        self.first_free = slot + 1;
        self.in_use -= 1;
        Some(&entry.body)
    }

    /// Gives back slots, none of which is in use, if the last bursts of ACKs needed fewer.
    pub(super) fn trim(&mut self) {
        debug_assert_eq!(self.in_use, 0, "ACKs in flight keep their slots");
        let burst = self.generations.wrapping_sub(self.trimmed_at);
        self.trimmed_at = self.generations;
        self.burst = burst.max(self.burst / 2);
        let needed = self.burst.max(KEPT);
        if self.slots.len() as u32 > needed.saturating_add(needed / 2) {
            self.slots.truncate(needed as usize);
            self.slots.shrink_to_fit();
            self.first_free = needed;
            (0..).zip(&mut self.slots).for_each(|(before, slot)| slot.next_free = before);
        }
    }

    /// How many ACKs are in flight.
    pub(super) fn in_use(&self) -> usize {
        self.in_use as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says a report, SACK blocks and a detail, in this order of their numbers 0 to 2.
    fn write(body: &mut AckBody, order: &[usize]) {
        for what in order {
            match what {
                0 => body.set_report(ReceiverReport::LoadFactor(7)),
                1 => {
                    body.sack_mut().set_duplicate(RANGE);
                    assert!(body.sack_mut().report(RANGE));
                }
                _ => {
                    let detail = body.detail_mut();
                    detail.delay = Duration::from_millis(1);
                    detail.ranges.push(RANGE);
                    detail.totals = Some(MarkTotals::default());
                }
            }
        }
    }

    /// Checks that `body` says what was written in this order, and nothing else.
    fn check(body: &AckBody, order: &[usize]) {
        let has = |what| order.contains(&what);
        let report = if has(0) { ReceiverReport::LoadFactor(7) } else { ReceiverReport::None };
        assert_eq!(body.report(), report, "{order:?}");
        assert_eq!(body.duplicate(), has(1).then_some(RANGE), "{order:?}");
        assert_eq!(body.sack().map(|sack| sack.blocks().to_vec()), has(1).then(|| vec![RANGE]), "{order:?}");
        let detail = body.detail();
        let says = (!detail.delay.is_zero(), detail.ranges.len(), detail.totals.is_some());
        assert_eq!(says, (has(2), usize::from(has(2)), has(2)), "{order:?}");
    }

    const RANGE: Range = Range { start: 3, end: 5 };

    #[test]
    fn an_ack_says_all_that_was_written_in_any_order_and_nothing_of_the_one_before() {
        let orders: [&[usize]; 11] =
            [&[], &[0], &[1], &[0, 1], &[1, 0], &[1, 2], &[2, 1], &[0, 2], &[1, 0, 2], &[2], &[2, 1, 0]];
        for before in orders {
            for order in orders {
                let mut acks = AckArena::default();
                for order in [before, order] {
                    let (slot, body) = acks.claim();
                    write(body, order);
                    check(body, order);
                    let generation = acks.generation(slot);
                    acks.release(slot, generation);
                }
                assert_eq!(acks.slots.len(), 1);
            }
        }
    }

    #[test]
    fn a_slot_is_freed_once_where_generations_wrap() {
        let mut acks = AckArena { generations: u32::MAX, ..AckArena::default() };
        let slot = acks.claim().0;
        let generation = acks.generation(slot);
        assert!(acks.release(slot, generation).is_some());
        assert!(acks.release(slot, generation).is_none());
        assert_eq!(acks.in_use(), 0);
        acks.trim();
    }

    #[test]
    fn the_room_of_a_large_burst_is_given_back_and_no_ack_stands_for_another() {
        let mut acks = AckArena::default();
        let mut gone = Vec::new();
        for size in [100, 3, 3, 3, 3, 3] {
            let flying: Vec<(u32, u32)> = (0..size)
                .map(|number| {
                    let (slot, body) = acks.claim();
                    body.cumulative = number;
                    (slot, acks.generation(slot))
                })
                .collect();
            assert!(gone.iter().all(|&(slot, generation)| acks.get(slot, generation).is_none()));
            for (number, &(slot, generation)) in (0..).zip(&flying) {
                assert_eq!(acks.get(slot, generation).map(|body| body.cumulative), Some(number));
                acks.release(slot, generation);
            }
            acks.trim();
            gone.extend(flying);
        }
        assert!(acks.slots.len() <= 6, "{} slots", acks.slots.len());
    }
}
