//! What was sent and what became of it: one entry per transmission, one per segment.
//!
//! Transmissions are numbered in the order they leave, so the ring of transmissions is sorted by time: RACK
//! and RFC 9002 both find losses by walking it from the oldest that is still out. TCP's ACKs speak of
//! segments, QUIC's of transmissions; a segment knows its newest transmission, a transmission its segment.

use brakelight_core::controller::PacketInfo;
use brakelight_core::sender::Snapshot;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_scenario::limits::{LONGEST_RUN, MOST_DELIVERED};

use super::super::ring::Ring;

/// What became of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// In flight, as far as the sender knows.
    Outstanding = 0,
    /// Acknowledged.
    Acked = 1,
    /// Declared lost.
    Lost = 2,
    /// TCP only: replaced by a newer transmission of its segment without having been declared lost.
    Superseded = 3,
}

/// One packet that was sent.
///
/// With ten thousand flows these are most of the memory, so that what a snapshot says is kept as its distance
/// from something known: times as nanoseconds before the packet left, in 48 bits, and totals by their last 40
/// or 36 bits. What is in flight takes 31: no more than a receiver grants, and probes. Longer runs, and flows
/// that could deliver more, are refused before they begin ([`limits`](brakelight_scenario::limits)).
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) sent_at: Time,
    /// The last 32 bits of the bytes lost by then; the 4 before them are in `flags`.
    lost: u32,
    /// The last 32 bits of the bytes delivered by then, and the 8 before them.
    delivered: u32,
    delivered_high: u8,
    flags: u8,
    pub(super) size: u16,
    /// Bytes in flight, itself included.
    inflight: u32,
    pub(super) segment: u32,
    /// How long before it left the newest delivery was heard of: the last 32 bits, and the 16 before them.
    delivered_ago: u32,
    delivered_ago_high: u16,
    /// How long before it left the first packet of that delivery's flight had left, likewise.
    first_sent_ago_high: u16,
    first_sent_ago: u32,
}

// A cache line holds one and a half.
const _: () = assert!(size_of::<Transmission>() <= 40);

/// In `flags`: the two lowest bits are the [`State`], and the four highest belong to `lost`.
const STATE: u8 = 3;
const APP_LIMITED: u8 = 4;
const RETRANSMISSION: u8 = 8;
const LOST_HIGH: u32 = 4;

/// The longest time that a transmission remembers, in nanoseconds; a longer one counts as that. No run is as
/// long.
const LONGEST_AGO: u64 = (1 << 48) - 1;
const _: () = assert!(LONGEST_RUN.as_nanos() <= LONGEST_AGO);
/// The last bits of the bytes delivered. No flow delivers more in all.
const DELIVERED: u64 = (1 << 40) - 1;
const _: () = assert!(MOST_DELIVERED.0 <= DELIVERED + 1);

impl Transmission {
    /// A packet of `size` bytes that leaves at `now`.
    #[inline]
    pub(super) fn new(now: Time, segment: u32, size: u16, books: &Snapshot, retransmission: bool) -> Self {
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let ago = |at: Time| now.since(at).as_nanos().min(LONGEST_AGO);
        let (delivered_ago, first_sent_ago) = (ago(books.delivered_at), ago(books.first_sent_at));
        Transmission {
            sent_at: now,
            lost: books.lost as u32,
            delivered: books.delivered as u32,
            delivered_high: (books.delivered >> 32) as u8,
            flags: flag(books.app_limited, APP_LIMITED)
                | flag(retransmission, RETRANSMISSION)
                | ((books.lost >> 32) as u8) << LOST_HIGH,
            size,
            inflight: books.inflight as u32,
            segment,
            delivered_ago: delivered_ago as u32,
            delivered_ago_high: (delivered_ago >> 32) as u16,
            first_sent_ago_high: (first_sent_ago >> 32) as u16,
            first_sent_ago: first_sent_ago as u32,
        }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        match self.flags & STATE {
            0 => State::Outstanding,
            1 => State::Acked,
            2 => State::Lost,
            _ => State::Superseded,
        }
    }

    #[inline]
    pub(super) fn set_state(&mut self, state: State) {
        self.flags = self.flags & !STATE | state as u8;
    }

    #[inline]
    pub(super) fn app_limited(&self) -> bool {
        self.flags & APP_LIMITED != 0
    }

    #[inline]
    pub(super) fn is_retransmission(&self) -> bool {
        self.flags & RETRANSMISSION != 0
    }

    /// Bytes delivered when it left; less than 2^40 fewer than `present`, which a flow cannot deliver.
    #[inline]
    pub(super) fn delivered(&self, present: u64) -> u64 {
        let then = u64::from(self.delivered_high) << 32 | u64::from(self.delivered);
        present - (present.wrapping_sub(then) & DELIVERED)
    }

    /// Bytes lost when it left; within 32 GiB of `present`, which may be less, since losses are taken back.
    #[inline]
    fn lost(&self, present: u64) -> u64 {
        // The difference of the last 36 bits, with its sign.
        const ABOVE: u32 = 64 - 36;
        let then = u64::from(self.flags >> LOST_HIGH) << 32 | u64::from(self.lost);
        let difference = (then.wrapping_sub(present) << ABOVE) as i64 >> ABOVE;
        present.wrapping_add_signed(difference)
    }

    /// What the controller hears of it, as number `number` with `tag`, where so many bytes are `delivered`
    /// and `lost` at present.
    #[inline]
    pub(super) fn info(&self, number: u32, tag: u64, delivered: u64, lost: u64) -> PacketInfo {
        let before =
            |high: u16, low: u32| self.sent_at - Duration::from_nanos(u64::from(high) << 32 | u64::from(low));
        PacketInfo {
            number: u64::from(number),
            size: Bytes(u64::from(self.size)),
            sent_at: self.sent_at,
            delivered: Bytes(self.delivered(delivered)),
            delivered_at: before(self.delivered_ago_high, self.delivered_ago),
            first_sent_at: before(self.first_sent_ago_high, self.first_sent_ago),
            inflight: Bytes(u64::from(self.inflight)),
            lost: Bytes(self.lost(lost)),
            app_limited: self.app_limited(),
            retransmission: self.is_retransmission(),
            tag,
        }
    }
}

/// What controllers wrote on their packets, by the packets' numbers. Most write nothing, and then nothing is
/// kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags(Option<Box<Ring<u64>>>);

impl Tags {
    /// The packet that leaves next, after those of `packets`, has `tag`.
    #[inline]
    pub(super) fn push<T>(&mut self, packets: &Ring<T>, tag: u64) {
        if tag != 0 || self.0.is_some() {
            self.keep(packets, tag);
        }
    }

    fn keep<T>(&mut self, packets: &Ring<T>, tag: u64) {
        let tags = self.0.get_or_insert_with(|| {
            let mut tags = Ring::default();
            tags.restart(packets.base());
            (packets.base()..packets.end()).for_each(|_| tags.push(0));
            Box::new(tags)
        });
        while tags.base() < packets.base() {
            tags.pop_front();
        }
        tags.push(tag);
    }

    /// The tag of packet `number`.
    #[inline]
    pub(super) fn of(&self, number: u32) -> u64 {
        match &self.0 {
            Some(tags) => tags.get(number).copied().unwrap_or(0),
            None => 0,
        }
    }
}

/// One piece of the stream, cut once and never again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Its newest transmission.
    pub(super) latest: u32,
    pub(super) size: u16,
    /// Whether the receiver has it, as far as the sender knows.
    pub(super) delivered: bool,
    /// Whether it was sent more than once.
    pub(super) retransmitted: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Totals go on after the packet has left, and losses may be taken back.
        #[test]
        fn the_controller_hears_what_was_known_when_the_packet_left(
            delivered in 0_u64..1 << 50,
            since in 0_u64..1 << 40,
            lost in 1_u64 << 37..1 << 50,
            change in -(1_i64 << 35)..1 << 35,
            inflight in 0_u64..1 << 32,
            (now, ago, first_ago) in (1_u64 << 48..1 << 60, 0..=LONGEST_AGO, 0..=LONGEST_AGO),
            (app_limited, retransmission) in any::<(bool, bool)>(),
            tag: u64,
        ) {
            let now = Time::from_nanos(now);
            let before = |nanos| now - Duration::from_nanos(nanos);
            let books = Snapshot {
                delivered,
                delivered_at: before(ago),
                first_sent_at: before(first_ago),
                lost,
                inflight,
                app_limited,
            };
            let mut sent = Transmission::new(now, 7, 1448, &books, retransmission);
            prop_assert_eq!(sent.state(), State::Outstanding);
            sent.set_state(State::Lost);
            prop_assert_eq!(sent.state(), State::Lost);
            sent.set_state(State::Acked);
            prop_assert_eq!(sent.state(), State::Acked);
            let info = sent.info(3, tag, delivered + since, lost.wrapping_add_signed(change));
            prop_assert_eq!(info, PacketInfo {
                number: 3,
                size: Bytes(1448),
                sent_at: now,
                delivered: Bytes(delivered),
                delivered_at: before(ago),
                first_sent_at: before(first_ago),
                inflight: Bytes(inflight),
                lost: Bytes(lost),
                app_limited,
                retransmission,
                tag,
            });
        }

        /// Against the obvious model: a tag for every number.
        #[test]
        fn a_packet_has_the_tag_that_it_left_with(steps in prop::collection::vec((0_u64..3, any::<bool>()), 0..60)) {
            let mut packets = Ring::default();
            let mut tags = Tags::default();
            let mut model = Vec::new();
            for (tag, retires) in steps {
                tags.push(&packets, tag);
                packets.push(());
                model.push(tag);
                if retires {
                    packets.pop_front();
                }
                for number in packets.base()..packets.end() {
                    prop_assert_eq!(tags.of(number), model[number as usize]);
                }
            }
        }
    }

    /// The numbers within one of each multiple of a power of two that a field may end at.
    fn edges(most: u64) -> Vec<u64> {
        let near = |edge: u64| [edge.wrapping_sub(1), edge, edge + 1];
        let mut edges: Vec<u64> = (0..50).flat_map(|bit| near(1 << bit)).chain([most]).collect();
        edges.retain(|edge| *edge <= most);
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// The limits of a run are those that an entry holds: `scenario::limits`.
    #[test]
    fn an_entry_holds_all_that_the_longest_run_can_bring() {
        let now = Time::ZERO + LONGEST_RUN;
        for ago in edges(LONGEST_RUN.as_nanos()) {
            for since in edges(MOST_DELIVERED.0 - 1) {
                for delivered in [0, 1, 1 << 32, MOST_DELIVERED.0 - 1 - since] {
                    let lost = 1 << 34;
                    let at = Time::from_nanos(now.as_nanos() - ago);
                    let books = Snapshot {
                        delivered,
                        delivered_at: at,
                        first_sent_at: at,
                        lost,
                        inflight: 1 << 30,
                        app_limited: false,
                    };
                    let sent = Transmission::new(now, 7, 1448, &books, false);
                    let info = sent.info(3, 0, delivered + since, lost);
                    assert_eq!((info.delivered.0, info.lost.0), (delivered, lost), "{since}");
                    assert_eq!((info.delivered_at, info.first_sent_at), (at, at), "{ago}");
                }
            }
        }
        let bounds =
            "times and bytes within one of a power of two, up to the longest run and the most delivered";
        eprintln!(
            "sim/src/host/sender/scoreboard.rs | Transmission::info | what was known when the packet left | {bounds} | proved"
        );
    }
}
