//! TCP Prague (De Schepper, Tilmans, Briscoe and Goel, draft-briscoe-iccrg-prague-congestion-control-04;
//! `tcp_prague.c` of the L4S team, version 0.7): the congestion control of L4S. It reacts to the share of
//! packets that carried CE, in small steps, and expects a queue that marks at a shallow threshold.
//!
//! ```text
//! each virtual RTT:    alpha += g (F - alpha),  F = CE packets / packets acknowledged in it     prague 2.4.1
//! CE, once per RTT:    W = W (1 - alpha / 2), and slow start is over                            prague 2.4.2
//! each ACK, CE or not: W += a (packets acknowledged without CE) / W                             prague 2.4.3
//!                      a = (srtt / max(srtt, R))^2, 1 in the first D rounds                     prague 2.4.4
//! loss:                W = W / 2; no growth until it is repaired
//! timeout:             the same, cwnd = 1
//! slow start:          cwnd += packets acknowledged without CE
//!
//! virtual RTT = max(srtt, R) after D rounds outside slow start, srtt before                     prague 2.4.4
//! cwnd goes by one packet per ACK towards ceil(W), which is at least 2                       tcp_prague.c
//! pacing rate = max(floor W, in flight) / srtt, twice that while cwnd < ssthresh / 2         tcp_prague.c
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | g | `gain` | 1 | 1/16 | prague 2.4.1; rfc8257 3.3 |
//! | alpha at first | `initial_alpha` | 1 | 1 | prague 2.4.1 (D1) |
//! | R | `rtt_virtual` | s | 25 ms | prague 2.4.4 |
//! | D | `transition` | rounds | 500 | prague 2.4.4; 4 in tcp_prague.c 0.7 |
//! | burst | `BURST` | s | 2^-12 | tcp_prague.c 0.7, `prague_burst_shift` |
//! | - | `beta` | 1 | 0.5 | tcp_prague.c 0.7: what a loss leaves |
//! | W | `cwnd_pkts` | packets | initial window | fractional |
//! | cwnd | `whole_pkts` | packets | initial window | - |
//!
//! Every packet carries ECT(1), retransmissions included (rfc9331 4.1; tcp_prague.c: ECN++). Its receiver is
//! `accecn` (rfc9331 4.2).
//!
//! Deviations:
//! D1 tcp_prague.c 0.7 starts with alpha = 0 and halves W at the first CE instead: the first step is the
//!    same, those after it are smaller. `initial_alpha=0` does that.
//! D2 on CE ssthresh = W at once, as the draft says; tcp_prague.c lowers it with cwnd, and an ACK of two
//!    packets of which one carried CE may go on with slow start.
//! D3 the window may grow unless the application held the flow back. tcp_prague.c asks whether cwnd did, but
//!    counts as in flight what waits in its pacing queue (`fq`); here such packets have not left.
//! D4 a burst has up to 250 us of the pacing rate, as in tcp_prague.c (`prague_burst_shift`), but two
//!    packets at the least, where tcp_prague.c has one: a bucket of one packet loses for good what a late
//!    timer costs. TCP's host spaces each packet by itself. rfc9331 4.3 asks L4S senders to limit their
//!    bursts.
//! D5 the rate mode of tcp_prague.c 0.7 below 4 packets (3 % pacing steps, packets down to 150 bytes, 100
//!    kbit/s at least) is not built: a flow holds 2 packets at the least.
//! D6 no fallback is built for a bottleneck that marks ECT(1) as RFC 3168 says (rfc9331 4.3; off by default
//!    in tcp_prague.c): behind a single-queue AQM Prague takes more than its share from Classic flows, as it
//!    would there.
//! D7 after an idle period nothing is reset: Linux 6.12 tcp.h, tcp_slow_start_after_idle_check, leaves out
//!    controllers that set cwnd by themselves.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, SendDirective, SendEvent, SpuriousEvent, Timeout,
    TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

parameters! {
    /// Prague's settings.
    pub struct Config {
        /// Weight of a round's share of marks in their average.
        gain: f64 = 1.0 / 16.0, in 0.001..=1.0, from "prague 2.4.1";
        /// The average before the first mark; at 0 the first mark halves the window.
        initial_alpha: f64 = 1.0, in 0.0..=1.0, from "prague 2.4.1";
        /// Least RTT that the flow behaves as if it had.
        rtt_virtual: Duration = Duration::from_millis(25), in Duration::ZERO..=Duration::from_secs(1), from "prague 2.4.4";
        /// Rounds outside slow start before `rtt_virtual` applies.
        transition: u32 = 500, in .., from "prague 2.4.4";
        /// What is left of the window after a loss.
        beta: f64 = 0.5, in 0.1..=0.95, from "tcp_prague.c 0.7";
    }
}

/// The least window, packets.
const MIN_WINDOW: f64 = 2.0;

/// How long a burst takes at the pacing rate, at most.
const BURST: Duration = Duration::from_nanos(1_000_000_000 >> 12);
/// The packets that may leave together however slow the flow is.
const MIN_BURST: u64 = 2;

/// Prague's state.
#[derive(Clone, Debug)]
pub struct Prague {
    config: Config,
    mss: Bytes,
    /// W.
    cwnd_pkts: f64,
    /// What the host is told.
    whole_pkts: f64,
    ssthresh_pkts: f64,
    alpha: f64,
    /// Whether a queue on the path has marked.
    saw_ce: bool,
    /// Packets acknowledged since the round began, and those of them with CE.
    acked_pkts: f64,
    marked_pkts: f64,
    /// The number of the next packet, and the one whose acknowledgement ends the round.
    next_number: u64,
    round_end: u64,
    /// Rounds outside slow start.
    rounds: u32,
    averaged_at: Time,
    reduced_at: Option<Time>,
    in_loss: bool,
    /// Whether the last episode began with losses or a timeout, and not with CE.
    after_loss: bool,
    srtt: Option<Duration>,
    pacing: Option<Rate>,
    /// W, the whole window and ssthresh before the last loss.
    before: Option<(f64, f64, f64)>,
}

impl Prague {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let window = (connection.initial_window.as_f64() / connection.mss.as_f64()).max(1.0);
        Prague {
            alpha: config.initial_alpha,
            config,
            mss: connection.mss,
            cwnd_pkts: window,
            whole_pkts: libm::floor(window),
            ssthresh_pkts: f64::INFINITY,
            saw_ce: false,
            acked_pkts: 0.0,
            marked_pkts: 0.0,
            next_number: 0,
            round_end: 0,
            rounds: 0,
            averaged_at: connection.now,
            reduced_at: None,
            in_loss: false,
            after_loss: false,
            srtt: None,
            pacing: None,
            before: None,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.whole_pkts < self.ssthresh_pkts
    }

    /// Whether the flow is old enough to behave as one of a longer RTT.
    fn is_rtt_independent(&self) -> bool {
        !self.in_slow_start() && self.rounds >= self.config.transition
    }

    /// Packets gained per round trip.
    fn increase(&self) -> f64 {
        match self.srtt {
            // prague 2.4.4
            Some(srtt) if self.is_rtt_independent() && srtt < self.config.rtt_virtual => {
                let ratio = srtt.as_secs_f64() / self.config.rtt_virtual.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        }
    }

    /// Whether a virtual RTT has passed since `at`, given that a round trip has.
    fn virtual_rtt_since(&self, at: Time, now: Time) -> bool {
        !self.is_rtt_independent() || now.since(at) >= self.config.rtt_virtual
    }

    fn grow(&mut self, mut unmarked: f64) {
        if self.in_slow_start() {
            let growth = unmarked.min(libm::ceil(self.ssthresh_pkts) - self.whole_pkts);
            self.cwnd_pkts = self.cwnd_pkts.max(self.whole_pkts) + growth;
            self.whole_pkts = libm::floor(self.cwnd_pkts).max(1.0);
            unmarked -= growth;
        }
        // prague 2.4.3
        self.cwnd_pkts += self.increase() * unmarked / self.cwnd_pkts;
    }

    /// One packet towards W.
    fn follow(&mut self) {
        let aim = libm::ceil(self.cwnd_pkts).max(MIN_WINDOW);
        if self.whole_pkts > aim {
            self.whole_pkts -= 1.0;
        } else if self.whole_pkts < aim && !self.in_slow_start() {
            self.whole_pkts += 1.0;
        }
    }

    /// The end of a round, if `newest` is.
    fn average(&mut self, now: Time, newest: u64) {
        if newest < self.round_end || !self.virtual_rtt_since(self.averaged_at, now) {
            return;
        }
        if self.saw_ce && self.acked_pkts > 0.0 {
            // prague 2.4.1
            let share = (self.marked_pkts / self.acked_pkts).min(1.0);
            self.alpha += self.config.gain * (share - self.alpha);
            self.averaged_at = now;
        }
        (self.acked_pkts, self.marked_pkts) = (0.0, 0.0);
        self.round_end = self.next_number;
        if !self.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    fn pace(&mut self, inflight: Bytes) {
        let Some(srtt) = self.srtt.filter(|srtt| !srtt.is_zero()) else { return };
        let window = (libm::floor(self.cwnd_pkts).max(1.0) * self.mss.as_f64()).max(inflight.as_f64());
        let factor = if self.whole_pkts < self.ssthresh_pkts / 2.0 { 2.0 } else { 1.0 };
        self.pacing = Some(Rate::from_bps_f64(factor * 8.0 * window / srtt.as_secs_f64()));
    }

    fn lower(&mut self) {
        self.before = Some((self.cwnd_pkts, self.whole_pkts, self.ssthresh_pkts));
        self.cwnd_pkts = (self.config.beta * self.cwnd_pkts).max(MIN_WINDOW);
        self.ssthresh_pkts = self.cwnd_pkts;
        self.in_loss = true;
        self.after_loss = true;
    }
}

impl Controller for Prague {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.next_number = event.number + 1;
        // rfc9331 4.1: retransmissions too
        SendDirective { ecn: Encoding::L4s.sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let mss = self.mss.as_f64();
        let acked = event.newly_acked.as_f64() / mss;
        let marked = event.marks.ce.bytes.as_f64() / mss;
        self.acked_pkts += acked;
        self.marked_pkts += marked;
        self.saw_ce |= marked > 0.0;
        // Before the first sample the filter holds the host's guess, which says nothing of the path.
        if event.rtt.sample.is_some() {
            self.srtt = Some(event.rtt.smoothed);
        }
        // prague 2.4.3: a reaction to CE does not suspend growth; losses do, for what was sent before they
        // were noticed.
        let grown_by = if self.after_loss { event.growth } else { event.newly_acked };
        let unmarked = (grown_by.as_f64() / mss - marked).max(0.0);
        let held_back = event.acked.last().is_some_and(|newest| newest.app_limited) && !event.cwnd_limited;
        if unmarked > 0.0 && !self.in_loss && !event.in_recovery() && !held_back {
            self.grow(unmarked);
        }
        self.follow();
        if let Some(newest) = event.acked.last() {
            self.average(event.now, newest.number);
        }
        self.pace(event.inflight);
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.lower();
    }

    fn on_ce(&mut self, event: &LossEvent) {
        if self.reduced_at.is_some_and(|at| !self.virtual_rtt_since(at, event.now)) {
            return;
        }
        self.reduced_at = Some(event.now);
        self.after_loss = false;
        // tcp_prague.c 0.7: without an average yet, half
        let alpha = if self.saw_ce || self.alpha > 0.0 { self.alpha } else { 1.0 };
        // prague 2.4.2
        self.cwnd_pkts = (self.cwnd_pkts * (1.0 - alpha / 2.0)).max(MIN_WINDOW);
        self.ssthresh_pkts = self.cwnd_pkts;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match event.kind {
            Timeout::Pto => {}
            Timeout::Rto => {
                if !event.repeated {
                    self.lower();
                }
                self.whole_pkts = 1.0;
                self.ssthresh_pkts = self.ssthresh_pkts.min(self.whole_pkts);
            }
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => {
                self.cwnd_pkts = self.cwnd_pkts.min(MIN_WINDOW);
                self.whole_pkts = self.whole_pkts.min(MIN_WINDOW);
            }
        }
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some((cwnd, whole, ssthresh)) = self.before.take() {
            self.cwnd_pkts = self.cwnd_pkts.max(cwnd);
            self.whole_pkts = self.whole_pkts.max(whole);
            self.ssthresh_pkts = ssthresh;
            self.in_loss = false;
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.before = None;
        self.in_loss = false;
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        let most = libm::floor(most.as_f64() / self.mss.as_f64()).max(1.0);
        self.whole_pkts = self.whole_pkts.min(most);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        let ratio = self.mss.as_f64() / mss.as_f64();
        self.mss = mss;
        self.cwnd_pkts = (self.cwnd_pkts * ratio).max(1.0);
        self.whole_pkts = libm::floor(self.whole_pkts * ratio).max(1.0);
        self.ssthresh_pkts *= ratio;
        self.before = None;
    }

    fn cwnd(&self) -> Bytes {
        Bytes((self.whole_pkts * self.mss.as_f64()) as u64)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(Bytes((self.ssthresh_pkts * self.mss.as_f64()) as u64))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }

    fn send_quantum(&self) -> Option<Bytes> {
        self.pacing.map(|rate| rate.bytes_in(BURST).max(Bytes(MIN_BURST * self.mss.0)))
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn encoding(&self) -> Encoding {
        Encoding::L4s
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("alpha", self.alpha);
        visit("window_packets", self.cwnd_pkts);
        visit("increase_packets", self.increase());
    }
}

#[cfg(test)]
mod tests;
