//! What an ACK does: common to both profiles, with the events it makes for the controller.

use brakelight_core::controller::{
    AckEvent, Controller, Exact, MarkCount, Marks, PacketInfo, ReceiverReport, Recovery, RecoveryState,
};
use brakelight_core::ecn::Mark;
use brakelight_core::sender::Phase;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::Host;
use smallvec::SmallVec;

use super::super::acks::{AckBody, Detail};
use super::Sender;
use super::scoreboard::State;

/// What the host itself asks of the newest packet that an ACK acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) number: u32,
    pub(super) sent_at: Time,
    /// Bytes delivered when it was sent.
    pub(super) delivered: u64,
}

/// What one ACK newly says, added up while the scoreboard takes it in.
#[derive(Clone, Debug)]
pub(super) struct Acked {
    /// What was acknowledged. Few ACKs cover more than eight packets, and those may allocate.
    pub(super) list: SmallVec<[PacketInfo; 8]>,
    /// The newest packet that is not in the list; those in it are newer.
    pub(super) unlisted: Option<Newest>,
    /// Packets newly acknowledged.
    pub(super) packets: u64,
    /// Their payload.
    pub(super) bytes: u64,
    /// When the oldest and the newest packet that left only once were sent, if there was one: else the first
    /// is later than the second.
    pub(super) fresh: (Time, Time),
    /// TCP: whether `snd_una` advanced.
    pub(super) advanced: bool,
    /// TCP: whether a segment was newly SACKed.
    pub(super) sacked: bool,
    /// Whether a segment that left only once arrived after one that left later (RFC 8985 6.2, step 3).
    pub(super) reordered: bool,
    /// TCP: whether a segment arrived that left once, before the episode (RFC 5682).
    pub(super) original: bool,
    /// QUIC: packets that arrived though they had been declared lost.
    pub(super) late: u32,
    /// QUIC: when the largest newly acknowledged packet was sent, if the ACK's largest is new.
    pub(super) largest_sent_at: Option<Time>,
    /// Whether the list may be out of order: it holds retransmissions, or what SACK blocks cover.
    pub(super) mixed: bool,
}

impl Acked {
    /// An ACK that says nothing.
    #[inline]
    fn nothing() -> Self {
        Acked {
            list: SmallVec::new(),
            unlisted: None,
            packets: 0,
            bytes: 0,
            fresh: (Time::MAX, Time::ZERO),
            advanced: false,
            sacked: false,
            reordered: false,
            original: false,
            late: 0,
            largest_sent_at: None,
            mixed: false,
        }
    }

    /// The newest transmission acknowledged. QUIC's list is ascending from the start, TCP's once it is
    /// sorted.
    #[inline]
    pub(super) fn newest(&self) -> Option<Newest> {
        match self.list.last() {
            Some(info) => Some(Newest {
                number: info.number as u32,
                sent_at: info.sent_at,
                delivered: info.delivered.0,
            }),
            None => self.unlisted,
        }
    }

    /// Sorts the list by number.
    #[cold]
    fn sort(&mut self) {
        self.list.sort_unstable_by_key(|info| info.number);
    }
}

/// What an ACK says besides what arrived and the receiver's report.
struct Extras<'a> {
    marks: Marks,
    detail: &'a Detail,
}

impl Extras<'_> {
    /// Whether there is anything that the controller must hear.
    fn say(&self) -> bool {
        self.marks != Marks::default() || !self.detail.receive_times.is_empty()
    }
}

impl Sender {
    /// An ACK arrived.
    #[inline(never)]
    pub(in super::super) fn on_ack(&mut self, now: Time, ack: &AckBody) {
        self.halted = false;
        let inflight_before = self.delivery.inflight();
        let una_before = self.segments.base();
        let mut sum = Acked::nothing();
        match self.host {
            Host::Tcp | Host::Ns2 => self.acknowledge_segments(ack, &mut sum),
            Host::Quic => self.acknowledge_numbers(ack, &mut sum),
        }
        if sum.mixed {
            sum.sort();
        }
        debug_assert!(sum.list.is_sorted_by_key(|info| info.number), "a list out of order is `mixed`");
        let newest = sum.newest();
        self.counters.acked_packets += sum.packets;
        let round_start = match &newest {
            Some(newest) => self.delivery.acked(now, newest.sent_at, newest.delivered),
            None => false,
        };
        let (sample, ack_delay) = self.sample_rtt(now, ack, &sum, una_before);
        if sample.is_some() {
            self.rtt_sample = sample;
        }

        if sum.late > 0 {
            // A timer had called them lost, and the controller has not heard of it.
            self.forget_found();
        }
        let lost_before = self.counters.lost_packets;
        match self.host {
            Host::Tcp => self.recover_tcp(now, ack, &sum),
            Host::Quic => self.recover_quic(now, &sum),
            Host::Ns2 => self.recover_sack1(now, ack, &sum),
        }
        let extras = (!ack.is_plain()).then(|| self.extras(now, ack, &sum));

        let report = ack.report();
        let says = newest.is_some()
            || !self.lost.is_empty()
            || report != ReceiverReport::None
            || extras.as_ref().is_some_and(Extras::say);
        if says {
            let newly_lost = if self.lost.is_empty() { Bytes::ZERO } else { self.sort_lost() };
            // Linux 6.12 net/ipv4/tcp_input.c, tcp_cong_control: the window does not grow while PRR brings it
            // down.
            let recovery = self.episode.state(self.held);
            let mut event = AckEvent {
                acked: if self.lists_acked { &sum.list } else { &[] },
                newest: newest.map(|newest| u64::from(newest.number)),
                lost: &self.lost,
                newly_acked: Bytes(sum.bytes),
                growth: self.growth(recovery, &sum),
                newly_lost,
                inflight_before: Bytes(inflight_before),
                rtt: self.rtt.told(sample),
                ack_delay,
                round_start,
                cwnd_limited: self.may_grow(&sum),
                report,
                ..self.no_news(now, recovery)
            };
            if let Some(extras) = extras {
                event.marks = extras.marks;
                event.receive_times = &extras.detail.receive_times;
            }
            self.controller.on_ack_by_value(event);
            self.forget_reported();
            self.note_controller();
        }
        if self.prr.is_some() {
            let safe = sum.advanced && self.counters.lost_packets == lost_before;
            self.reduce_window(sum.bytes, safe);
        }
        if self.stages.is_some() {
            self.note_stage(now);
        }
        self.retire();
        match self.host {
            Host::Tcp => self.rearm_tcp(now, &sum),
            Host::Quic => self.rearm_quic(now),
            Host::Ns2 => {}
        }
    }

    /// Sorts the packets newly lost, and returns their bytes.
    #[cold]
    fn sort_lost(&mut self) -> Bytes {
        // Timers and ACKs add to the list, each from the oldest packet on.
        if !self.lost.is_sorted_by_key(|info| info.number) {
            self.lost.sort_unstable_by_key(|info| info.number);
        }
        self.lost.iter().map(|info| info.size).sum()
    }

    /// Lets PRR set the window, after an ACK of `newly` bytes.
    #[cold]
    fn reduce_window(&mut self, newly: u64, safe: bool) {
        if let Some(prr) = &mut self.prr {
            prr.acked(newly, self.delivery.inflight(), self.cwnd, self.mss, safe);
        }
    }

    /// Tells the controller of losses that no ACK will list, for nothing is in flight any more.
    pub(super) fn report_losses(&mut self, now: Time) {
        let event = AckEvent {
            lost: &self.lost,
            newly_lost: self.lost.iter().map(|info| info.size).sum(),
            ..self.no_news(now, self.episode.state(self.held))
        };
        self.controller.on_ack(&event);
        self.forget_reported();
        self.note_controller();
    }

    /// Forgets the losses that the controller has been told of. Their room is not kept: losses are rare, and
    /// flows are many.
    #[inline]
    fn forget_reported(&mut self) {
        self.lost = Vec::new();
    }

    /// Returns an event that acknowledges and loses nothing: it says what the connection's state is.
    #[inline]
    fn no_news(&self, now: Time, recovery: RecoveryState) -> AckEvent<'static> {
        AckEvent {
            now,
            acked: &[],
            newest: None,
            lost: &[],
            newly_acked: Bytes::ZERO,
            growth: Bytes::ZERO,
            newly_lost: Bytes::ZERO,
            inflight_before: self.inflight(),
            inflight: self.inflight(),
            delivered: self.delivery.delivered(),
            total_lost: Bytes(self.delivery.lost()),
            rtt: self.rtt.told(None),
            ack_delay: Duration::ZERO,
            round: self.delivery.round(),
            round_start: false,
            marks: Marks::default(),
            receive_times: &[],
            report: ReceiverReport::None,
            cwnd_limited: false,
            recovery,
        }
    }

    /// Takes transmission `number` out of flight as acknowledged.
    #[inline(never)]
    pub(super) fn deliver(&mut self, number: u32, sum: &mut Acked) {
        let entry = &mut self.transmissions[number];
        let size = u64::from(entry.size);
        let was_out = entry.state() == State::Outstanding;
        if was_out {
            self.delivery.deliver(size);
        } else if entry.state() == State::Lost {
            self.delivery.deliver_late(size);
            sum.late += 1;
        } else {
            // A superseded packet has been replaced by another that stands for its data.
            return;
        }
        entry.set_state(State::Acked);
        sum.packets += 1;
        sum.bytes += size;
        let sent_at = entry.sent_at;
        let retransmission = entry.is_retransmission();
        if !retransmission {
            let (first, last) = sum.fresh;
            sum.fresh = (first.min(sent_at), last.max(sent_at));
        } else {
            sum.mixed = true;
            if was_out && self.host == Host::Tcp {
                self.tcp.left_flight(true);
            }
        }
        sum.list.push(entry.info(
            number,
            self.tags.of(number),
            self.delivery.delivered().0,
            self.delivery.lost(),
        ));
        if number == self.transmissions.base() {
            self.transmissions.pop_front();
        }
    }

    /// Bytes of what the ACK acknowledges by which the window may grow.
    fn growth(&self, recovery: RecoveryState, sum: &Acked) -> Bytes {
        match (recovery, self.host) {
            (RecoveryState::Recovery, _) => Bytes::ZERO,
            (_, Host::Tcp) => Bytes(sum.bytes),
            (_, Host::Ns2) => self.growth_sack1(sum),
            // rfc9002 B.5
            (_, Host::Quic) => {
                sum.list.iter().filter(|info| self.episode.may_grow(info.number)).map(|info| info.size).sum()
            }
        }
    }

    /// Whether the window was needed, and the ACK is one to grow by (Linux 6.12 tcp_input.c,
    /// tcp_may_raise_cwnd).
    fn may_grow(&self, sum: &Acked) -> bool {
        let in_order = sum.advanced || self.host == Host::Quic || self.controller.recovery() == Recovery::Own;
        in_order && self.is_cwnd_limited()
    }

    /// Feeds the filters and returns the sample for the controller, with the receiver's delay.
    fn sample_rtt(
        &mut self,
        now: Time,
        ack: &AckBody,
        sum: &Acked,
        una: u32,
    ) -> (Option<Duration>, Duration) {
        match self.host {
            Host::Tcp | Host::Ns2 => {
                // Linux 6.12 tcp_input.c, tcp_clean_rtx_queue: the filters see the oldest packet, congestion
                // control the newest.
                let (first, last) = sum.fresh;
                let (filtered, sample) = if first <= last {
                    (now.since(first), now.since(last))
                } else if sum.advanced {
                    // rfc7323 4.1: only retransmissions were acknowledged; the timestamp tells which.
                    (now.since(ack.echoed), now.since(ack.echoed))
                } else {
                    return (None, Duration::ZERO);
                };
                let una = u64::from(una.max(self.segments.base()));
                self.rtt.sample_tcp(filtered, una, u64::from(self.segments.end()));
                self.rtt.note_min(sample);
                self.tcp.backoff_ends();
                (Some(sample), Duration::ZERO)
            }
            Host::Quic => {
                let delay = ack.detail().delay;
                let Some(sent_at) = sum.largest_sent_at else { return (None, delay) };
                let sample = now.since(sent_at);
                self.rtt.sample_quic(sample, delay.min(super::quic::MAX_ACK_DELAY));
                (Some(sample), delay)
            }
        }
    }

    /// Takes in what an ACK says besides; CE may begin an episode.
    #[inline(never)]
    fn extras<'a>(&mut self, now: Time, ack: &'a AckBody, sum: &Acked) -> Extras<'a> {
        let marks = self.new_marks(ack, sum);
        if marks.ce.packets > 0 {
            self.answer_ce(now, sum);
        }
        Extras { marks, detail: ack.detail() }
    }

    /// The marks that this ACK adds to those before it.
    fn new_marks(&mut self, ack: &AckBody, sum: &Acked) -> Marks {
        let mut marks = Marks::default();
        let Some(totals) = ack.detail().totals else {
            let count = MarkCount { packets: sum.packets, bytes: Bytes(sum.bytes) };
            let kind = match ack.state {
                Mark::Accelerate => &mut marks.accelerate,
                Mark::Brake => &mut marks.brake,
                Mark::Ce => &mut marks.ce,
                Mark::None => return marks,
            };
            if sum.bytes > 0 {
                *kind = count;
                marks.exact = Exact::Neither;
                self.count_marks(&marks);
            }
            return marks;
        };
        let mut counts = [MarkCount::default(); 3];
        for (kind, count) in counts.iter_mut().enumerate() {
            // An ACK that was overtaken carries older counters: it adds nothing.
            let packets = totals.packets[kind].saturating_sub(self.marks.packets[kind]);
            let bytes = totals.bytes[kind].saturating_sub(self.marks.bytes[kind]);
            self.marks.packets[kind] += packets;
            self.marks.bytes[kind] += bytes;
            *count = match self.host {
                // Accurate ECN counts bytes, QUIC packets; the other follows from the packet size.
                Host::Tcp | Host::Ns2 => MarkCount { packets: bytes.div_ceil(self.mss), bytes: Bytes(bytes) },
                Host::Quic => {
                    MarkCount { packets: u64::from(packets), bytes: Bytes(u64::from(packets) * self.mss) }
                }
            };
        }
        // A path that duplicates packets has more of them counted than were sent. Congestion is believed
        // first.
        let counted =
            self.counters.accelerate_packets + self.counters.brake_packets + self.counters.ce_packets;
        let mut left = self.counters.sent_packets.saturating_sub(counted);
        for count in counts.iter_mut().rev() {
            if count.packets > left {
                *count = MarkCount { packets: left, bytes: Bytes(left * self.mss) };
            }
            left -= count.packets;
        }
        [marks.accelerate, marks.brake, marks.ce] = counts;
        self.count_marks(&marks);
        if counts.iter().any(|count| count.packets > 0) {
            marks.exact = if self.host == Host::Quic { Exact::Packets } else { Exact::Bytes };
        }
        marks
    }

    /// The position, in an episode, of what has not been sent yet.
    pub(super) fn next_position(&self) -> u64 {
        u64::from(match self.host {
            Host::Tcp | Host::Ns2 => self.segments.end(),
            Host::Quic => self.transmissions.end(),
        })
    }

    fn count_marks(&mut self, marks: &Marks) {
        self.counters.accelerate_packets += marks.accelerate.packets;
        self.counters.brake_packets += marks.brake.packets;
        self.counters.ce_packets += marks.ce.packets;
    }

    /// CE starts an episode unless one is going on.
    fn answer_ce(&mut self, now: Time, sum: &Acked) {
        let begins = if self.host == Host::Ns2 { self.takes_ce() } else { self.episode.is_open() };
        if !begins {
            return;
        }
        // rfc9002 7.3.2, B.7: what was sent before the last episode began starts no new one.
        let old = sum.newest().is_some_and(|newest| !self.episode.may_grow(u64::from(newest.number)));
        if self.host == Host::Quic && old {
            return;
        }
        let newest = sum.newest().map_or(self.delivery.newest_sent_at(), |newest| newest.sent_at);
        self.begin_episode(now, Some(newest), 0);
        if !self.episode.is_repairing() {
            self.episode.begin(Phase::Reduced, self.next_position());
        }
    }
}
