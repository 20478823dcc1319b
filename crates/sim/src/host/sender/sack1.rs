//! Loss recovery of ns-2.35's `Agent/TCP/Sack1`, for figures that were simulated with it (tcp/tcp-sack1.cc,
//! tcp/tcp.cc, tcl/lib/ns-default.tcl there).
//!
//! ```text
//! RTO:       srtt + 4 rttvar, 0.2 s at least as a whole, doubled per timeout, 60 s at most; 3 s before the
//!            first sample; one sample at a time, in whole ticks of 10 ms
//!                                                                    tcp.cc rtt_update, rtt_timeout
//! loss:      three duplicate ACKs that SACK something; the first two let a new packet out
//!                                                                    tcp-sack1.cc recv, tcp.cc send_one
//! recovery:  the window is reduced at once; pipe = packets out - 3; an ACK takes one from it, one that
//!            advances `snd_una` takes two, a packet sent adds one; packets leave while pipe < window
//!                                                                    tcp-sack1.cc dupack_action, send_much
//! hole:      each below the highest SACKed is sent again once         scoreboard-rq.cc GetNextRetran
//! timeout:   window 1, everything again from `snd_una`, whatever was SACKed; no undo
//!                                                                    tcp-sack1.cc timeout
//! CE:        one reaction for what had been sent by then             tcp.cc ecn
//! growth:    a packet for each ACK that advances `snd_una`, however many packets it covers
//!                                                                    tcp.cc opencwnd
//! ```
//!
//! A lost packet stays in the pipe until it is acknowledged. So a recovery in which more than half of the
//! window was lost comes to a halt, and a retransmission that is lost again waits for the timer.
//!
//! Deviations:
//! - D1 All clocks tick together; in ns-2 each connection's has a phase of its own (`boot_time_`).
//! - D2 A connection begins with its window, without a SYN.
//! - D3 A window restarts after idle as in RFC 5681 4.1; ns-2 keeps it.
//! - D4 Where the controller sets a pacing rate it is kept; ns-2's senders have none.
//! - D5 What the controller hears of round trips is exact; only the timer counts ticks.
//! - D6 A window that was not used does not grow; ns-2's grows whatever the application sends.

use brakelight_core::controller::{Controller, Timeout, TimeoutEvent};
use brakelight_core::sender::{Phase, Stop};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::super::acks::AckBody;
use super::super::ranges::RangeSet;
use super::ack::Acked;
use super::scoreboard::State;
use super::send::{LARGEST_WINDOW, Next};
use super::{Forced, Sender};

/// ns-default.tcl, `tcpTick_`
const TICK: Duration = Duration::from_millis(10);
/// ns-default.tcl, `minrto_`
const MIN_RTO: Duration = Duration::from_millis(200);
/// ns-default.tcl, `maxrto_`
const MAX_RTO: Duration = Duration::from_secs(60);
/// ns-default.tcl, `rtxcur_init_`
const INITIAL_RTO: Duration = Duration::from_secs(3);
/// ns-default.tcl, `numdupacks_`
const DUPLICATES: u32 = 3;

/// The retransmission timer's filters, in ticks (tcp.cc, `rtt_update`).
#[derive(Clone, Debug)]
struct TickTimer {
    /// Eight times the smoothed RTT; zero before the first sample.
    srtt8: i64,
    /// Four times its mean deviation.
    rttvar4: i64,
    /// The timeout before its floor.
    current: Duration,
    backoff: u64,
}

impl TickTimer {
    fn new() -> Self {
        // ns-default.tcl: rttvar_init_ is 12 s, of which nothing is seen before the first sample.
        TickTimer { srtt8: 0, rttvar4: 0, current: INITIAL_RTO, backoff: 1 }
    }

    /// A packet that left at `sent` is acknowledged at `now`.
    fn sample(&mut self, sent: Time, now: Time) {
        let ticks = |at: Time| (at.as_nanos() / TICK.as_nanos()) as i64;
        let rtt = (ticks(now) - ticks(sent)).max(1);
        if self.srtt8 == 0 {
            self.srtt8 = rtt * 8;
            self.rttvar4 = rtt * 2;
        } else {
            let error = rtt - (self.srtt8 >> 3);
            self.srtt8 = (self.srtt8 + error).max(1);
            self.rttvar4 = (self.rttvar4 + error.abs() - (self.rttvar4 >> 2)).max(1);
        }
        self.current = TICK * (((self.rttvar4 << 3) + self.srtt8) >> 3) as u64;
    }

    /// tcp.cc, `rtt_timeout`: the floor lies under the timeout before it is doubled.
    fn timeout(&self) -> Duration {
        Duration::from_nanos(self.current.max(MIN_RTO).as_nanos().saturating_mul(self.backoff)).min(MAX_RTO)
    }

    /// tcp.cc, `rtt_backoff`: after four timeouts in a row the smoothed RTT is not believed any more.
    fn back_off(&mut self) {
        if self.timeout() < MAX_RTO {
            self.backoff *= 2;
        }
        if self.backoff > 8 {
            self.rttvar4 += self.srtt8 >> 3;
            self.srtt8 = 0;
        }
    }
}

/// What the window was last reduced for (`last_cwnd_action_`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reduced {
    Duplicates,
    Ce,
    Timeout,
}

/// State of the loss recovery.
#[derive(Clone, Debug)]
pub(super) struct Sack1 {
    timer: TickTimer,
    rto_at: Time,
    /// The segment whose acknowledgement will be a sample, and when it left (`rtt_seq_`, `rtt_ts_`).
    timed: Option<(u32, Time)>,
    /// Duplicate ACKs that SACKed something.
    duplicates: u32,
    /// Whether one of the first two of them may let a packet out.
    limited_transmit: bool,
    /// In recovery: the packets out, as `pipe_` counts them.
    pipe: Option<i64>,
    /// What was sent before belongs to the last reduction (`recover_`, one past it); zero for none.
    recover: u32,
    reduced: Option<Reduced>,
    /// Whether nothing was acknowledged since the timer fired (`timeout_`).
    timed_out: bool,
    /// What SACK blocks said since the scoreboard was last cleared.
    board: RangeSet,
    /// Where to look for the next hole (`h_seqno_`).
    hole: u32,
    /// What is missing below is in the books as lost.
    judged: u32,
    /// The next segment to send; below the end of what was sent after a timeout (`t_seqno_`).
    next: u32,
}

impl Default for Sack1 {
    fn default() -> Self {
        Sack1 {
            timer: TickTimer::new(),
            rto_at: Time::MAX,
            timed: None,
            duplicates: 0,
            limited_transmit: false,
            pipe: None,
            recover: 0,
            reduced: None,
            timed_out: false,
            board: RangeSet::default(),
            hole: 0,
            judged: 0,
            next: 0,
        }
    }
}

impl Sack1 {
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.rto_at
    }

    /// The retransmission timeout with its backoff.
    pub(super) fn rto(&self) -> Duration {
        self.timer.timeout()
    }

    fn clear_board(&mut self) {
        self.board = RangeSet::default();
    }

    /// The first hole from `hole` on, below what was SACKed.
    fn next_hole(&self, una: u32) -> Option<u32> {
        let end = self.board.iter().next_back()?.end;
        let mut at = self.hole.max(una);
        while let Some(range) = self.board.find(at) {
            at = range.end;
        }
        (at < end).then_some(at)
    }

    /// Takes in SACK blocks. Returns whether one said something new.
    fn update_board(&mut self, una: u32, ack: &AckBody) -> bool {
        self.board.remove_below(una);
        let before = self.board.count();
        if let Some(sack) = ack.sack() {
            for block in sack.blocks() {
                if let Some(block) = block.intersect(una, u32::MAX) {
                    self.board.insert(block, |_| {});
                }
            }
        }
        self.board.count() != before
    }
}

impl Sender {
    /// What follows from an ACK (tcp-sack1.cc, `recv`). `una` is what was not acknowledged before it.
    pub(super) fn recover_sack1(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        let una = self.segments.base();
        self.sack1.next = self.sack1.next.max(una);
        self.sack1.limited_transmit = false;
        if ack.cumulative < una {
            // Overtaken by a later one.
            return;
        }
        if self.sack1.pipe.is_some() {
            return self.recover_further(now, ack, sum);
        }
        if sum.advanced {
            self.take_new_ack(now, una);
            if !self.episode.is_open() && una > self.sack1.recover {
                self.end_episode(now);
            }
        } else if !self.sack1.timed_out && self.sack1.update_board(una, ack) {
            self.sack1.duplicates += 1;
            if self.sack1.duplicates == DUPLICATES {
                self.answer_duplicates(now);
            } else {
                self.sack1.limited_transmit = self.sack1.duplicates < DUPLICATES;
            }
        }
    }

    /// An ACK within a recovery.
    fn recover_further(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        let una = self.segments.base();
        if una >= self.sack1.recover {
            self.sack1.recover = 0;
            self.sack1.pipe = None;
            self.take_new_ack(now, una);
            self.end_episode(now);
            return;
        }
        let gone = if sum.advanced { 2 } else { 1 };
        self.sack1.pipe = self.sack1.pipe.map(|pipe| pipe - gone);
        self.sack1.update_board(una, ack);
        self.lose_holes(una);
        if sum.advanced {
            self.sack1.timer.backoff = 1;
            self.sack1.rto_at = now + self.sack1.rto();
        }
    }

    /// An ACK that advanced `snd_una` outside of a recovery, or ended one (tcp.cc, `newack`).
    fn take_new_ack(&mut self, now: Time, una: u32) {
        self.sack1.duplicates = 0;
        self.sack1.timed_out = false;
        self.sack1.clear_board();
        if let Some((segment, sent_at)) = self.sack1.timed
            && una > segment
        {
            self.sack1.timed = None;
            self.sack1.timer.backoff = 1;
            self.sack1.timer.sample(sent_at, now);
        }
        self.sack1.rto_at = if self.segments.is_empty() { Time::MAX } else { now + self.sack1.rto() };
    }

    /// The third duplicate ACK (tcp-sack1.cc, `dupack_action`).
    fn answer_duplicates(&mut self, now: Time) {
        let (una, end) = (self.segments.base(), self.segments.end());
        let recovered = self.sack1.recover == 0 || una > self.sack1.recover;
        if !recovered && self.sack1.reduced != Some(Reduced::Ce) {
            // Belongs to a reduction that was made already (`bug_fix_`).
            return;
        }
        if recovered {
            self.sack1.recover = end;
        }
        self.sack1.pipe = Some(i64::from(end - una) - i64::from(DUPLICATES));
        self.sack1.rto_at = now + self.sack1.rto();
        self.sack1.timed = None;
        (self.sack1.hole, self.sack1.judged) = (una, una);
        self.sack1.reduced = Some(Reduced::Duplicates);
        let lost_before = self.delivery.lost();
        self.lose_holes(una);
        if recovered {
            self.begin_episode(now, None, self.delivery.lost() - lost_before);
        }
        self.episode.begin(Phase::Recovery, u64::from(self.sack1.recover));
        self.forced = Forced::Head;
    }

    /// Tells apart what is lost, for the books: all that is missing below what was SACKed.
    fn lose_holes(&mut self, una: u32) {
        let end = self.sack1.board.iter().next_back().map_or(una + 1, |last| last.end);
        let end = end.min(self.segments.end());
        for segment in self.sack1.judged.max(una)..end {
            let latest = self.segments[segment].latest;
            let is_sacked = self.sack1.board.find(segment).is_some();
            if !is_sacked && self.transmissions[latest].state() == State::Outstanding {
                self.mark_lost(latest);
            }
        }
        self.sack1.judged = self.sack1.judged.max(end);
        self.lost_queue.clear();
    }

    /// An ACK echoes CE (tcp.cc, `ecn`). Returns whether it begins a reaction.
    pub(super) fn takes_ce(&mut self) -> bool {
        let begins =
            self.segments.base() > self.sack1.recover || self.sack1.reduced == Some(Reduced::Timeout);
        if begins && self.sack1.pipe.is_none() {
            self.sack1.recover = self.segments.end();
            self.sack1.reduced = Some(Reduced::Ce);
            return true;
        }
        false
    }

    /// Chooses what leaves now (tcp-sack1.cc, `send_much`).
    pub(super) fn choose_sack1(&mut self, now: Time) -> Option<Next> {
        let (una, end) = (self.segments.base(), self.segments.end());
        let window = (self.cwnd.min(LARGEST_WINDOW) / self.mss).max(1);
        let forced = self.forced == Forced::Head;
        let again = (self.sack1.next < end).then_some(self.sack1.next);
        let (segment, room) = match self.sack1.pipe {
            // The first retransmission leaves whatever the pipe holds.
            Some(_) if forced => (Some(una), true),
            Some(pipe) => (self.sack1.next_hole(una).or(again), pipe < window as i64),
            None => {
                // After a duplicate ACK that is not yet three: one packet, beyond the window.
                let extra = if self.sack1.limited_transmit { u64::from(self.sack1.duplicates) } else { 0 };
                let held = self.sack1.duplicates > 0 && !self.sack1.limited_transmit;
                (again, !held && u64::from(self.sack1.next) < u64::from(una) + window + extra)
            }
        };
        let size = self.size_of(segment);
        if size == 0 {
            self.stopped(now, Stop::Application);
            if room {
                self.delivery.limit_by_application();
            }
            return None;
        }
        if !room {
            let granted = self.cwnd <= LARGEST_WINDOW;
            self.stopped(now, if granted { Stop::Window } else { Stop::Application });
            return None;
        }
        if self.waits_for_pacer(now, size, self.rate) {
            return None;
        }
        Some(Next { segment, size, rate: self.rate })
    }

    /// `segment` left, for the first time or again.
    pub(super) fn sent_sack1(&mut self, now: Time, segment: u32, again: bool) {
        let in_recovery = self.sack1.pipe.is_some();
        if in_recovery && again {
            self.sack1.hole = self.sack1.hole.max(segment + 1);
        }
        if self.forced == Forced::Head {
            // The first retransmission is not counted (dupack_action).
            self.forced = Forced::None;
        } else if let Some(pipe) = &mut self.sack1.pipe {
            *pipe += 1;
        }
        if segment >= self.sack1.next {
            self.sack1.next = segment + 1;
        }
        self.sack1.limited_transmit = false;
        if !again && self.sack1.timed.is_none() {
            self.sack1.timed = Some((segment, now));
        }
        if self.sack1.rto_at == Time::MAX {
            self.sack1.rto_at = now + self.sack1.rto();
        }
        // What was SACKed before the timeout counts as missing: it is in flight until `snd_una` passes it.
        self.segments[segment].delivered = false;
    }

    pub(super) fn on_sack1_deadline(&mut self, now: Time) {
        if self.sack1.rto_at > now {
            return;
        }
        let (una, end) = (self.segments.base(), self.segments.end());
        let inflight = self.inflight();
        for number in self.oldest.max(self.transmissions.base())..self.transmissions.end() {
            if self.transmissions[number].state() == State::Outstanding {
                self.mark_lost(number);
            }
        }
        self.lost_queue.clear();
        // A reduction by CE that is not over is not made twice; any other is, each time the timer fires
        // (tcp.cc, `timeout`).
        let repeated = self.sack1.reduced == Some(Reduced::Ce) && una < self.sack1.recover;
        self.controller.on_timeout(&TimeoutEvent { now, kind: Timeout::Rto, inflight, repeated });
        self.note_controller();
        self.counters.timeouts += 1;
        self.sack1.duplicates = 0;
        self.sack1.pipe = None;
        self.sack1.timed_out = true;
        self.sack1.recover = end;
        self.sack1.reduced = Some(Reduced::Timeout);
        self.sack1.clear_board();
        self.sack1.next = una;
        self.sack1.timed = None;
        self.sack1.timer.back_off();
        self.sack1.rto_at = now + self.sack1.rto();
        self.forced = Forced::None;
        self.episode.begin(Phase::Loss, u64::from(end));
    }

    /// By how much an ACK lets the window grow, in bytes.
    pub(super) fn growth_sack1(&self, sum: &Acked) -> Bytes {
        // An ACK that echoes CE opens no window (recv_newack_helper); they end with the reaction.
        let grows = sum.advanced && self.episode.phase() != Phase::Reduced;
        Bytes(if grows { sum.bytes.min(self.mss) } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// tcp.cc, `rtt_update`, by hand.
    #[test]
    fn the_timeout_is_srtt_and_four_deviations_with_a_floor_under_the_whole() {
        let mut timer = TickTimer::new();
        assert_eq!(timer.timeout(), Duration::from_secs(3));
        timer.sample(ms(0), ms(80));
        // 8 ticks; the deviation is half of that: 8 + 4 * 4.
        assert_eq!(timer.timeout(), Duration::from_millis(240));
        for _ in 0..40 {
            timer.sample(ms(0), ms(80));
        }
        // A quarter tick of deviation is left: 8 + 3 ticks are below the floor. Linux would wait 280 ms.
        assert_eq!((timer.current, timer.timeout()), (Duration::from_millis(110), MIN_RTO));
        // 24 ticks: the smoothed RTT is 8 + 16 / 8, four deviations are 3 + 16.
        timer.sample(ms(0), ms(240));
        assert_eq!(timer.timeout(), Duration::from_millis(290));
    }

    #[test]
    fn a_sample_counts_the_ticks_that_passed_and_not_the_time() {
        let rto = |sent, now| {
            let mut timer = TickTimer::new();
            timer.sample(sent, now);
            (timer.srtt8, timer.rttvar4)
        };
        assert_eq!(rto(ms(9), ms(30)), (24, 6), "21 ms, three ticks");
        assert_eq!(rto(ms(10), ms(39)), (16, 4), "29 ms, two ticks");
        assert_eq!(rto(ms(11), ms(12)), (8, 2), "one tick at least");
    }

    /// tcp.cc, `rtt_backoff`.
    #[test]
    fn the_timeout_doubles_and_forgets_the_smoothed_rtt_after_the_fourth_time() {
        let mut timer = TickTimer::new();
        timer.sample(ms(0), ms(80));
        let mut timeouts = Vec::new();
        for _ in 0..4 {
            timer.back_off();
            timeouts.push(timer.timeout());
        }
        assert_eq!(timeouts, [480, 960, 1_920, 3_840].map(Duration::from_millis));
        assert_eq!(timer.srtt8, 0, "the next sample is like the first");
        for _ in 0..20 {
            timer.back_off();
        }
        assert_eq!(timer.timeout(), MAX_RTO);
    }
}
