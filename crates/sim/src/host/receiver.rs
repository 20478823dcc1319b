//! The receiving end of a connection: reassembly, what an ACK says, and when it leaves.
//!
//! TCP acknowledges at once what arrives out of order, twice, or fills a gap (RFC 5681 4.2), and the first 16
//! segments and 16 after a pause (Linux 6.12 tcp_input.c, tcp_event_data_recv); otherwise every m-th packet,
//! or after 40 ms (Linux 6.12 tcp.h, TCP_DELACK_MIN). QUIC acknowledges at once what is out of order (RFC
//! 9000 13.2.1); otherwise every m-th packet, or after 25 ms. The two delays are the flow's `ack_delay`.
//!
//! Deviations:
//! - D1 The delayed-ACK timer is fixed; Linux 6.12 tcp_output.c, tcp_send_delayed_ack, adapts it between 40
//!   ms and 200 ms to the time between packets.
//! - D2 No SACK compression: Linux 6.12 tcp_input.c, __tcp_ack_snd_check, may hold back a fourth and later
//!   duplicate ACK by 5 % of the RTT, 1 ms at most.
//! - D3 The receiver's window is without limit, and the application reads at once.

use brakelight_core::controller::{ReceiveTime, ReceiverReport};
use brakelight_core::ecn::Ecn;
use brakelight_core::feedback::{AckAction, Arrival, Feedback, ReceiveTimestamps};
use brakelight_core::packet::Packet;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{AnyFeedback, Host};
use brakelight_scenario::clock::Clock;
use brakelight_senders::feedback::receive_timestamps::{Arrived, Frame};

use super::acks::{AckBody, Sack};
use super::ranges::{Range, RangeSet};
use super::ring::Ring;
use super::sender::PING;
use crate::packet::SimPacket;

/// Linux 6.12 tcp.h, TCP_MAX_QUICKACKS
const QUICK_ACKS: u32 = 16;
/// Silence after which quick ACKs start over: Linux 6.12 tcp_input.c, tcp_event_data_recv, takes the RTO, of
/// which a receiver knows the floor.
const QUICK_AGAIN: Duration = Duration::from_millis(200);
/// Blocks remembered for the order of reporting.
const RECENT: usize = 4;
/// ACK ranges that QUIC reports and remembers.
const QUIC_RANGES: usize = 32;
/// Receive times kept for a report.
const RECEIVE_TIMES: usize = 256;
/// rfc9000 18.2: the default of ack_delay_exponent.
const ACK_DELAY_EXPONENT: u32 = 3;
/// Bytes of a frame with receive times: it fits into a packet that every path carries (rfc9000 14).
const FRAME_ROOM: usize = 1100;

/// What the receiver requests of its host after a packet arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckRequest {
    /// No ACK for now.
    Wait,
    /// One ACK that covers everything.
    Ack,
}

/// The receiving end of one connection.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    host: Host,
    feedback: Box<AnyFeedback>,
    /// The first segment that has not arrived.
    next: u32,
    /// Segments above it that have.
    beyond: RangeSet,
    /// Their sizes, from `next` on; empty while nothing lies beyond.
    sizes: Ring<u16>,
    /// QUIC: packet numbers that have arrived.
    numbers: RangeSet,
    /// TCP: a segment in each block that changed last, the newest first.
    recent: [u32; RECENT],
    duplicate: Option<Range>,
    /// TCP: the timestamp to echo, and `Last.ACK.sent` (RFC 7323).
    echoed: Time,
    last_ack_sent: u32,
    /// Quick ACKs left.
    quick: u32,
    last_arrival: Time,
    /// QUIC: when the largest number arrived.
    largest_at: Time,
    /// How long an ACK may wait.
    ack_delay: Duration,
    /// When the delayed ACK is due.
    ack_at: Time,
    report_at: Time,
    /// What arrival times are written by.
    clock: Clock,
    receive_times: Vec<ReceiveTime>,
    /// What times in frames count from, once one was written.
    times_basis: Option<Time>,
    /// Whether the scheme's receiver reports them: unknown, so yes, before the first ACK.
    keeps_times: bool,
    /// Payload that arrived for the first time, and payload handed to the application in order.
    received: u64,
    in_order: u64,
    /// The numbers of the pieces that arrived, if the application sends pieces.
    pieces: Option<Vec<u32>>,
}

impl Receiver {
    pub(super) fn new(host: Host, feedback: Box<AnyFeedback>, ack_delay: Duration, clock: Clock) -> Self {
        let report_at = feedback.next_report().unwrap_or(Time::MAX);
        Receiver {
            host,
            feedback,
            next: 0,
            beyond: RangeSet::default(),
            sizes: Ring::default(),
            numbers: RangeSet::default(),
            recent: [u32::MAX; RECENT],
            duplicate: None,
            echoed: Time::ZERO,
            last_ack_sent: 0,
            quick: QUICK_ACKS,
            last_arrival: Time::ZERO,
            largest_at: Time::ZERO,
            ack_delay,
            ack_at: Time::MAX,
            report_at,
            clock,
            receive_times: Vec::new(),
            times_basis: None,
            keeps_times: true,
            received: 0,
            in_order: 0,
            pieces: None,
        }
    }

    /// The same receiver, of pieces if `pieces`.
    pub(super) fn with_pieces(mut self, pieces: bool) -> Self {
        self.pieces = pieces.then(Vec::new);
        self
    }

    /// The numbers of the pieces that arrived since they were last asked for. Give their memory back with
    /// [`Receiver::reuse`].
    pub(super) fn take_pieces(&mut self) -> Option<Vec<u32>> {
        let arrived = self.pieces.as_mut().filter(|arrived| !arrived.is_empty())?;
        Some(std::mem::take(arrived))
    }

    pub(super) fn reuse(&mut self, mut memory: Vec<u32>) {
        memory.clear();
        self.pieces = Some(memory);
    }

    /// Payload that arrived, each byte counted once.
    pub(super) fn received(&self) -> Bytes {
        Bytes(self.received)
    }

    /// Payload that arrived with nothing missing before it.
    pub(super) fn in_order(&self) -> Bytes {
        Bytes(self.in_order)
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.ack_at.min(self.report_at)
    }

    /// QUIC: the sender knows which packets below `limit` arrived; no ACK needs to repeat it.
    pub(super) fn forget_below(&mut self, limit: u32) {
        self.numbers.remove_below(limit);
    }

    /// Whether an ACK is due by the clock.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.deadline() <= now
    }

    /// A segment arrived. `flush` is called, before the segment is taken in, if an ACK for what came before
    /// must leave.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &SimPacket,
        number: u32,
        segment: u32,
        payload: u16,
        flush: impl FnOnce(&mut Self),
    ) -> AckRequest {
        let urgent = match self.host {
            Host::Tcp | Host::Ns2 => self.is_urgent_tcp(now, segment),
            Host::Quic => self.is_urgent_quic(number, packet.ecn()),
        };
        let action = self.feedback.on_packet(&Arrival {
            now,
            number: u64::from(number),
            size: Bytes(u64::from(payload)),
            ecn: packet.ecn(),
            cwr: packet.cwr(),
            header: packet.header(),
            hash16: packet.hash16(),
            sent_at: packet.sent_at,
            urgent,
        });
        if matches!(action, AckAction::FlushThenDelay | AckAction::FlushThenNow) {
            flush(self);
        }
        self.last_arrival = now;
        if self.keeps_times && self.receive_times.len() < RECEIVE_TIMES {
            self.receive_times.push(ReceiveTime {
                number: u64::from(number),
                sent_at: packet.sent_at,
                received_at: self.clock.read(now),
            });
        }
        self.conceal_gap(number, segment);
        if self.host == Host::Quic {
            let is_new = self.take_number(now, number);
            if let Some(arrived) = &mut self.pieces {
                if is_new && segment != PING.number {
                    arrived.push(segment);
                    self.received += u64::from(payload);
                    self.in_order += u64::from(payload);
                }
                return self.answer(now, action);
            }
        } else if segment <= self.last_ack_sent {
            // rfc7323 4.3
            self.echoed = packet.sent_at;
        }
        self.take_segment(segment, payload);
        self.answer(now, action)
    }

    /// What the host does about a packet that was taken in.
    #[inline]
    fn answer(&mut self, now: Time, action: AckAction) -> AckRequest {
        self.report_at = self.feedback.next_report().unwrap_or(Time::MAX);
        match action {
            AckAction::Now | AckAction::FlushThenNow => AckRequest::Ack,
            AckAction::Delay | AckAction::FlushThenDelay => {
                if self.ack_at == Time::MAX {
                    self.ack_at = now + self.ack_delay;
                }
                AckRequest::Wait
            }
        }
    }

    fn is_urgent_tcp(&mut self, now: Time, segment: u32) -> bool {
        if self.quick == 0 && now.since(self.last_arrival) > QUICK_AGAIN {
            self.quick = QUICK_ACKS;
        }
        let quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        quick || segment != self.next || !self.beyond.is_empty()
    }

    fn is_urgent_quic(&self, number: u32, ecn: Ecn) -> bool {
        let expected = self.numbers.iter().next_back().map_or(0, |last| last.end);
        // rfc9000 13.2.1: out of order, behind a gap, or marked.
        number != expected || ecn == Ecn::Ce
    }

    /// Acknowledges what is missing below the packet that arrives, if the receiver lies about it. What it
    /// claims has no size: it is not counted as received.
    #[inline]
    fn conceal_gap(&mut self, number: u32, segment: u32) {
        let expected = match self.host {
            Host::Tcp | Host::Ns2 => self.next,
            Host::Quic => self.numbers.iter().next_back().map_or(0, |last| last.end),
        };
        let arrives = if self.host == Host::Quic { number } else { segment };
        if arrives > expected && self.feedback.claims(u64::from(expected)) {
            self.conceal(Range { start: expected, end: arrives }, segment);
        }
    }

    #[cold]
    fn conceal(&mut self, missing: Range, segment: u32) {
        if self.host == Host::Quic {
            self.numbers.insert(missing, |_| {});
        }
        if self.pieces.is_some() {
            return;
        }
        self.beyond.remove_below(segment);
        while self.next < segment {
            self.in_order += u64::from(self.sizes.pop_front().unwrap_or(0));
            self.next += 1;
        }
    }

    /// Notes that packet `number` arrived. Returns whether it is new.
    fn take_number(&mut self, now: Time, number: u32) -> bool {
        if self.numbers.iter().next_back().is_none_or(|last| number >= last.end) {
            self.largest_at = now;
        }
        let mut is_new = false;
        self.numbers.insert(Range { start: number, end: number + 1 }, |_| is_new = true);
        while self.numbers.len() > QUIC_RANGES {
            self.numbers.pop_front();
        }
        is_new
    }

    #[inline]
    fn take_segment(&mut self, segment: u32, payload: u16) {
        if segment == self.next && self.beyond.is_empty() {
            self.next += 1;
            self.received += u64::from(payload);
            self.in_order += u64::from(payload);
        } else {
            self.take_out_of_order(segment, payload);
        }
    }

    #[inline(never)]
    fn take_out_of_order(&mut self, segment: u32, payload: u16) {
        let range = Range { start: segment, end: segment + 1 };
        let mut fresh = false;
        if segment >= self.next {
            self.beyond.insert(range, |_| fresh = true);
        }
        if !fresh {
            self.duplicate = Some(range);
            return;
        }
        self.received += u64::from(payload);
        if self.sizes.is_empty() {
            self.sizes.restart(self.next);
        }
        while self.sizes.end() <= segment {
            self.sizes.push(0);
        }
        self.sizes[segment] = payload;
        if self.host != Host::Quic {
            self.touch(segment);
        }
        if segment == self.next {
            let edge = self.beyond.iter().next().map_or(self.next, |first| first.end);
            self.beyond.remove_below(edge);
            while self.next < edge {
                self.in_order += u64::from(self.sizes.pop_front().unwrap_or(0));
                self.next += 1;
            }
        }
    }

    /// rfc2018 4: the block that changed last is reported first.
    fn touch(&mut self, segment: u32) {
        let block = self.beyond.find(segment);
        let mut place = 1;
        let mut recent = [u32::MAX; RECENT];
        recent[0] = segment;
        for &other in &self.recent {
            let same = block.is_some_and(|block| block.start <= other && other < block.end);
            if other != u32::MAX && !same && place < RECENT {
                recent[place] = other;
                place += 1;
            }
        }
        self.recent = recent;
    }

    /// Writes an ACK that leaves now into `body`, and returns how many bytes its lists add to it.
    pub(super) fn write_ack(&mut self, now: Time, flush: bool, body: &mut AckBody) -> u32 {
        self.ack_at = Time::MAX;
        let echo = self.feedback.on_ack_sent(now, flush);
        self.report_at = self.feedback.next_report().unwrap_or(Time::MAX);
        body.state = echo.state;
        self.keeps_times = echo.receive_times;
        if echo.report != ReceiverReport::None {
            body.set_report(echo.report);
        }
        if echo.totals.is_some() || self.keeps_times {
            let detail = body.detail_mut();
            detail.totals = echo.totals;
            if self.keeps_times {
                std::mem::swap(&mut detail.receive_times, &mut self.receive_times);
            }
        }
        self.receive_times.clear();
        match self.host {
            Host::Tcp | Host::Ns2 => {
                body.cumulative = self.next;
                body.echoed = self.echoed;
                self.last_ack_sent = self.next;
                let duplicate = self.duplicate.take();
                if duplicate.is_none() && self.beyond.is_empty() {
                    return 0;
                }
                let sack = body.sack_mut();
                if let Some(duplicate) = duplicate {
                    sack.set_duplicate(duplicate);
                }
                self.write_blocks(sack);
                // rfc2018 3: two bytes, eight per block, padded to four.
                4 + 8 * (sack.blocks().len() as u32 + u32::from(duplicate.is_some()))
            }
            Host::Quic => {
                let detail = body.detail_mut();
                detail.ranges.extend(self.numbers.iter().rev());
                detail.delay = now.since(self.largest_at);
                let asked = self.feedback.receive_timestamps().filter(|_| self.keeps_times);
                let timestamps = asked.map_or(0, |asked| self.write_frame(asked, body));
                // rfc9000 19.3.1: a gap and a length, a byte or two each.
                4 * (body.detail().ranges.len() as u32).saturating_sub(1) + timestamps
            }
        }
    }

    /// Has the receive times of an ACK travel in a frame ACK_RECEIVE_TIMESTAMPS: what its reader learns of
    /// them takes their place. Returns how many bytes larger the frame is than an ACK frame.
    fn write_frame(&mut self, asked: ReceiveTimestamps, body: &mut AckBody) -> u32 {
        let unit = Duration::from_micros(1 << asked.exponent);
        let detail = body.detail_mut();
        let Some(first) = detail.receive_times.first() else { return 0 };
        // receive-ts 6.1: less than every time that is reported, and never changed.
        let basis = *self.times_basis.get_or_insert_with(|| first.received_at.saturating_sub(unit));
        let arrived = |time: &ReceiveTime| {
            // A clock that was set back beyond the basis has no time that could be told.
            let at = (time.received_at >= basis).then(|| time.received_at.since(basis))?;
            Some(Arrived { number: time.number, at_us: at.as_micros() })
        };
        // By mark and not by codepoint, which is about as long.
        let counts = detail.totals.map(|totals| totals.packets.map(u64::from));
        let plain = Frame {
            delay: detail.delay.as_micros() >> ACK_DELAY_EXPONENT,
            ranges: detail
                .ranges
                .iter()
                .map(|range| u64::from(range.start)..=u64::from(range.end) - 1)
                .collect(),
            ecn: counts,
            times: Vec::new(),
        };
        let times = detail.receive_times.iter().filter_map(arrived).collect();
        let frame = Frame { times, ..plain.clone() };
        let Some(bytes) = frame.encode(asked, FRAME_ROOM) else {
            detail.receive_times.clear();
            return 0;
        };
        let (read, _) = Frame::decode(&bytes, asked).expect("a frame that was just written");
        let mut sent = std::mem::take(&mut detail.receive_times);
        sent.sort_unstable_by_key(|time| time.number);
        // The reader knows when it sent each packet. It does not know the basis: its clock and the receiver's
        // differ by more than they did.
        let told = read.times.iter().rev().filter_map(|time| {
            let own = sent.binary_search_by_key(&time.number, |sent| sent.number).ok()?;
            let received_at = Time::ZERO + Duration::from_micros(time.at_us);
            Some(ReceiveTime { received_at, ..sent[own] })
        });
        detail.receive_times.extend(told);
        let without = plain.encode(asked, usize::MAX).map_or(0, |bytes| bytes.len());
        // The type takes four bytes in place of one, and there is a count of ranges.
        (bytes.len() - without) as u32 + 4
    }

    fn write_blocks(&self, sack: &mut Sack) {
        for &segment in &self.recent {
            if segment == u32::MAX || segment < self.next {
                continue;
            }
            if let Some(block) = self.beyond.find(segment)
                && !sack.report(block)
            {
                return;
            }
        }
    }
}
