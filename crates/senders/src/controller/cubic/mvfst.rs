//! CUBIC as mvfst has it (facebook/mvfst, `quic/congestion_control/QuicCubic.cpp`, of 2025), where it
//! differs from RFC 9438:
//!
//! ```text
//! cwnd    = max(cwnd, W(t)), t from the loss; W(t) at the end of recovery         calculateCubicCwnd
//! W_est  += alpha acked / W_est; alpha = 3 (1 - beta) / (1 + beta) for good       onPacketAckedInSteady
//! HyStart:  the least srtt of 8 ACKs of a round                                   onPacketAckedInHystart
//!           >= that of the round before + clamp(it / 16, 4 ms, 16 ms)
//! pacing  = gain cwnd / srtt; gain = 2 in slow start, 1.25 in recovery, else 1    pacingGain
//! ```
//!
//! A loss below the last maximum leaves a maximum of 0.85 cwnd (`kDefaultLastMaxReductionFactor`), which is
//! (1 + beta) / 2 of RFC 9438 with a beta of 0.7. Nothing takes back a reduction. The shift of the curve by
//! the time that an application is idle is the host's idle restart here.

use brakelight_core::controller::AckEvent;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::super::rounds::Rounds;

/// ACKs of a round whose smoothed RTTs are looked at.
// mvfst QuicConstants.h, kAckSampling
const SAMPLES: u32 = 8;
/// Least and most rise of the smoothed RTT that ends slow start.
// mvfst QuicConstants.h, kDelayIncreaseLowerBound and kDelayIncreaseUpperBound
const RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// The smoothed RTT of the round before over this is the rise between the two.
// mvfst QuicCubic.cpp, onPacketAckedInHystart
const RISE_DIVISOR: u64 = 16;
/// Least window that slow start leaves by the rise, packets.
// mvfst QuicConstants.h, kLowSsthreshInMss
const LOW_WINDOW_PKTS: f64 = 16.0;
/// Least window, packets.
// mvfst QuicConstants.h, kMinCwndInMss
const LEAST_PKTS: f64 = 2.0;
/// What a loss below the last maximum leaves of the window as the new one.
// mvfst QuicConstants.h, kDefaultLastMaxReductionFactor
const LAST_MAX_FACTOR: f64 = 0.85;

/// HyStart by the smoothed RTT.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    rounds: Rounds,
    samples: u32,
    least: Option<Duration>,
    /// The least of the round before.
    last: Option<Duration>,
    found: bool,
}

impl Watch {
    /// Whether slow start is to end at a window of `cwnd_pkts`, after the ACK of `newest`.
    fn found(&mut self, newest: u64, srtt: Duration, cwnd_pkts: f64) -> bool {
        if self.rounds.acked(newest) {
            (self.last, self.least, self.samples) = (self.least, None, 0);
        }
        if self.samples < SAMPLES {
            self.least = Some(self.least.map_or(srtt, |least| least.min(srtt)));
            self.samples += 1;
        }
        if let (SAMPLES, Some(least), Some(last)) = (self.samples, self.least, self.last) {
            let rise = (last / RISE_DIVISOR).max(RISE.0).min(RISE.1);
            self.found |= least >= last + rise;
        }
        self.found && cwnd_pkts >= LOW_WINDOW_PKTS
    }

    /// Ready for another slow start.
    fn rearm(&mut self) {
        self.rounds.restart();
        (self.samples, self.least, self.last, self.found) = (0, None, None, false);
    }
}

/// Where the window stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SlowStart,
    /// Until a packet that was sent after the loss is acknowledged.
    Recovery,
    Steady,
}

/// The window and what it follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mvfst {
    c: f64,
    beta: f64,
    state: State,
    cwnd_pkts: f64,
    ssthresh_pkts: f64,
    w_max_pkts: Option<f64>,
    k_s: f64,
    w_est_pkts: f64,
    /// When the curve began: at the loss, or at the first ACK after a slow start that ended without one.
    since: Option<Time>,
    srtt: Option<Duration>,
    watch: Watch,
}

impl Mvfst {
    pub(super) fn new(c: f64, beta: f64, initial_pkts: f64) -> Self {
        Mvfst {
            c,
            beta,
            state: State::SlowStart,
            cwnd_pkts: initial_pkts,
            ssthresh_pkts: f64::INFINITY,
            w_max_pkts: None,
            k_s: 0.0,
            w_est_pkts: initial_pkts,
            since: None,
            srtt: None,
            watch: Watch::default(),
        }
    }

    pub(super) fn sent(&mut self, number: u64) {
        self.watch.rounds.sent(number);
    }

    /// An ACK of `growth_pkts` that were sent after the last loss, while the window was the limit.
    pub(super) fn acked(&mut self, event: &AckEvent<'_>, growth_pkts: f64) {
        self.srtt = Some(event.rtt.smoothed);
        if event.in_recovery() || !event.cwnd_limited || growth_pkts <= 0.0 {
            return;
        }
        match self.state {
            State::SlowStart => self.slow_start(event, growth_pkts),
            State::Recovery => {
                self.state = State::Steady;
                // mvfst QuicCubic.cpp, onPacketAckedInRecovery
                self.cwnd_pkts = self.curve_pkts(event.now).max(LEAST_PKTS);
            }
            State::Steady => self.steady(event.now, growth_pkts),
        }
    }

    // mvfst QuicCubic.cpp, onPacketAckedInHystart
    fn slow_start(&mut self, event: &AckEvent<'_>, growth_pkts: f64) {
        self.cwnd_pkts += growth_pkts;
        let Some(newest) = event.newest else { return };
        let over = self.cwnd_pkts >= self.ssthresh_pkts;
        if over || self.watch.found(newest, event.rtt.smoothed, self.cwnd_pkts) {
            self.ssthresh_pkts = self.cwnd_pkts;
            (self.w_max_pkts, self.since, self.state) = (None, None, State::Steady);
        }
    }

    // mvfst QuicCubic.cpp, onPacketAckedInSteady
    fn steady(&mut self, now: Time, growth_pkts: f64) {
        if self.w_max_pkts.is_none() {
            (self.w_max_pkts, self.k_s, self.w_est_pkts) = (Some(self.cwnd_pkts), 0.0, self.cwnd_pkts);
        }
        self.since.get_or_insert(now);
        let alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
        self.w_est_pkts = (self.w_est_pkts + alpha * growth_pkts / self.w_est_pkts).max(LEAST_PKTS);
        self.cwnd_pkts = self.cwnd_pkts.max(self.curve_pkts(now)).max(self.w_est_pkts);
    }

    /// W(t) at `now`.
    // mvfst QuicCubic.cpp, calculateCubicCwndDelta
    fn curve_pkts(&self, now: Time) -> f64 {
        let t_s = self.since.map_or(0.0, |since| now.since(since).as_secs_f64());
        let offset_s = t_s - self.k_s;
        self.c * offset_s * offset_s * offset_s + self.w_max_pkts.unwrap_or(self.cwnd_pkts)
    }

    // mvfst QuicCubic.cpp, cubicReduction and updateTimeToOrigin
    pub(super) fn lost(&mut self, now: Time) {
        let cwnd_pkts = self.cwnd_pkts;
        let below_last = self.w_max_pkts.is_some_and(|w_max_pkts| cwnd_pkts < w_max_pkts);
        let w_max_pkts = if below_last { LAST_MAX_FACTOR * cwnd_pkts } else { cwnd_pkts };
        self.cwnd_pkts = (self.beta * cwnd_pkts).max(LEAST_PKTS);
        self.k_s = libm::cbrt((w_max_pkts - self.cwnd_pkts).max(0.0) / self.c);
        (self.w_max_pkts, self.since, self.state) = (Some(w_max_pkts), Some(now), State::Recovery);
        (self.ssthresh_pkts, self.w_est_pkts) = (self.cwnd_pkts, self.cwnd_pkts);
    }

    /// Starts over from a window of `cwnd_pkts`.
    // mvfst QuicCubic.cpp, onPersistentCongestion
    pub(super) fn collapsed(&mut self, cwnd_pkts: f64) {
        self.ssthresh_pkts = (self.cwnd_pkts / 2.0).max(LEAST_PKTS);
        self.cwnd_pkts = cwnd_pkts;
        (self.w_max_pkts, self.since, self.state) = (None, None, State::SlowStart);
        self.watch.rearm();
    }

    /// Takes another window, such as a smaller one after a rest.
    pub(super) fn set_cwnd_pkts(&mut self, cwnd_pkts: f64) {
        self.cwnd_pkts = cwnd_pkts.max(1.0);
        self.w_est_pkts = self.w_est_pkts.min(self.cwnd_pkts);
    }

    /// Packets of another size: the same bytes.
    pub(super) fn scale(&mut self, factor: f64) {
        self.cwnd_pkts = (self.cwnd_pkts * factor).max(1.0);
        self.ssthresh_pkts *= factor;
        self.w_est_pkts = (self.w_est_pkts * factor).max(1.0);
        self.w_max_pkts = self.w_max_pkts.map(|w_max_pkts| w_max_pkts * factor);
        self.k_s = self
            .w_max_pkts
            .map_or(0.0, |w_max_pkts| libm::cbrt((w_max_pkts - self.cwnd_pkts).max(0.0) / self.c));
    }

    pub(super) fn cwnd_pkts(&self) -> f64 {
        self.cwnd_pkts
    }

    pub(super) fn ssthresh_pkts(&self) -> f64 {
        self.ssthresh_pkts
    }

    // mvfst QuicCubic.cpp, pacingGain
    pub(super) fn pacing_rate(&self, mss: Bytes) -> Option<Rate> {
        let gain = match self.state {
            State::SlowStart => 2.0,
            State::Recovery => 1.25,
            State::Steady => 1.0,
        };
        // A smoothed RTT of nothing paces nothing.
        let srtt = self.srtt.filter(|srtt| !srtt.is_zero())?;
        let bits = 8.0 * gain * self.cwnd_pkts * mss.as_f64();
        Some(Rate::from_bps_f64(bits / srtt.as_secs_f64()).max(Rate::from_bps(1)))
    }

    pub(super) fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_max_pkts", self.w_max_pkts.unwrap_or(0.0));
        visit("w_est_pkts", self.w_est_pkts);
        visit("k_s", self.k_s);
    }
}

#[cfg(test)]
mod tests {
    use brakelight_testkit::events::{MSS, ack, packet};

    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn mvfst(initial_pkts: f64) -> Mvfst {
        Mvfst::new(0.4, 0.7, initial_pkts)
    }

    /// One ACK of `growth_pkts` at `now`, with a smoothed RTT of `srtt`.
    fn acked(mvfst: &mut Mvfst, now: Time, growth_pkts: f64, srtt: Duration) {
        let packets = [packet(0, now.saturating_sub(RTT))];
        let mut event = ack(now, &packets, srtt);
        event.rtt.smoothed = srtt;
        mvfst.acked(&event, growth_pkts);
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-3 * right.abs().max(1.0)
    }

    fn mbps(mvfst: &Mvfst) -> f64 {
        mvfst.pacing_rate(MSS).expect("a rate").as_mbps_f64()
    }

    #[test]
    fn it_paces_two_windows_in_slow_start_one_and_a_quarter_in_recovery_and_one_after() {
        let mut mvfst = mvfst(50.0);
        assert_eq!(mvfst.pacing_rate(MSS), None);
        let window_mbps = |mvfst: &Mvfst| mvfst.cwnd_pkts * MSS.as_f64() * 8.0 / 0.05 / 1e6;
        acked(&mut mvfst, Time::from_millis(50), 10.0, RTT);
        assert!(close(mbps(&mvfst), 2.0 * window_mbps(&mvfst)) && close(mvfst.cwnd_pkts, 60.0));
        mvfst.lost(Time::from_millis(100));
        assert!(close(mbps(&mvfst), 1.25 * window_mbps(&mvfst)) && close(mvfst.cwnd_pkts, 42.0));
        acked(&mut mvfst, Time::from_millis(150), 1.0, RTT);
        assert!(close(mbps(&mvfst), window_mbps(&mvfst)));
    }

    #[test]
    fn the_window_is_on_the_curve_at_once_and_time_begins_at_the_loss() {
        let mut mvfst = mvfst(100.0);
        mvfst.lost(Time::ZERO);
        // K = cbrt(30 / 0.4) = 4.2172 s; W(1) = 100 - 0.4 * 3.2172^3 = 86.681.
        acked(&mut mvfst, Time::from_secs(1), 1.0, RTT);
        assert!(close(mvfst.cwnd_pkts, 86.681), "{}", mvfst.cwnd_pkts);
        // W(10) = 100 + 0.4 * 5.7828^3 = 177.35: more than half a window more, at one ACK.
        acked(&mut mvfst, Time::from_secs(10), 1.0, RTT);
        assert!(close(mvfst.cwnd_pkts, 177.35), "{}", mvfst.cwnd_pkts);
    }

    #[test]
    fn beside_reno_it_gains_half_a_packet_per_window_beyond_the_last_maximum_too() {
        let mut mvfst = mvfst(20.0);
        mvfst.lost(Time::ZERO);
        let at = Time::from_millis(50);
        acked(&mut mvfst, at, 1.0, RTT);
        mvfst.w_est_pkts = 30.0;
        // 0.9 / 1.7 = 0.5294 packets for a window of 30, which is above the last maximum of 20.
        acked(&mut mvfst, at, 30.0, RTT);
        assert!(close(mvfst.cwnd_pkts, 30.5294), "{}", mvfst.cwnd_pkts);
    }

    #[test]
    fn a_loss_below_the_last_maximum_lowers_it_to_seventeen_twentieths() {
        let mut mvfst = mvfst(100.0);
        mvfst.lost(Time::ZERO);
        assert_eq!(mvfst.w_max_pkts, Some(100.0));
        mvfst.lost(Time::from_secs(1));
        assert!(mvfst.w_max_pkts.is_some_and(|w_max_pkts| close(w_max_pkts, 0.85 * 70.0)));
    }

    /// Slow start from 16 packets on, an ACK for each packet, with smoothed RTTs of `srtt_ms` by round.
    fn rounds(srtt_ms: &[u64], acks: u64) -> Mvfst {
        let mut mvfst = mvfst(16.0);
        let mut now = Time::ZERO;
        let mut sent = 0;
        for &ms in srtt_ms {
            let first = sent;
            sent += 100;
            mvfst.sent(sent - 1);
            for number in first..first + acks {
                now += Duration::from_millis(1);
                let packets = [packet(number, now.saturating_sub(RTT))];
                let mut event = ack(now, &packets, RTT);
                event.rtt.smoothed = Duration::from_millis(ms);
                mvfst.acked(&event, 1.0);
            }
        }
        mvfst
    }

    #[test]
    fn slow_start_ends_once_the_smoothed_rtt_of_eight_acks_has_risen_by_four_milliseconds() {
        assert_eq!(rounds(&[50, 53], 8).state, State::SlowStart);
        assert_eq!(rounds(&[50, 54], 8).state, State::Steady);
        assert_eq!(rounds(&[50, 54], 7).state, State::SlowStart);
        // A sixteenth of 160 ms is 10 ms.
        assert_eq!(rounds(&[160, 169], 8).state, State::SlowStart);
        assert_eq!(rounds(&[160, 170], 8).state, State::Steady);
    }

    #[test]
    fn persistent_congestion_starts_over_at_half_of_the_window() {
        let mut mvfst = mvfst(100.0);
        mvfst.collapsed(2.0);
        assert_eq!((mvfst.cwnd_pkts(), mvfst.ssthresh_pkts(), mvfst.state), (2.0, 50.0, State::SlowStart));
        acked(&mut mvfst, Time::from_secs(1), 50.0, RTT);
        assert_eq!(mvfst.state, State::Steady);
    }
}
