//! What all versions of BBR share of the path's model and of the control derived from it: the bandwidth-delay
//! product, the send quantum, ACK aggregation, the pacing rate, and samples that an emptied pipe spoils.

use brakelight_core::controller::AckEvent;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

/// Pacing stays this far below the estimate so that queues drain (ccwg-bbr 4.6.2: PacingMarginPercent).
const PACING_MARGIN: f64 = 0.99;
/// The RTT assumed for the first window's pacing (ccwg-bbr 4.6.2; Linux 6.12 tcp_bbr.c,
/// `bbr_init_pacing_rate_from_rtt`).
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Aggregation counts for at most this long at the estimated rate (Linux 6.12 tcp_bbr.c,
/// `bbr_extra_acked_max_us`).
const AGGREGATION_LIMIT: Duration = Duration::from_millis(100);
/// An aggregation epoch ends after this many packets (Linux 6.12 tcp_bbr.c,
/// `bbr_ack_epoch_acked_reset_thresh`).
const AGGREGATION_EPOCH_PACKETS: u64 = 1 << 20;
/// Below this rate a send quantum is one packet (Linux 6.12 tcp_bbr.c, `bbr_min_tso_rate`).
const SMALL_QUANTUM_RATE: Rate = Rate::from_bps(1_200_000);

/// `gain` times the bandwidth-delay product, rounded up to whole packets, or the initial window while the RTT
/// is unknown (ccwg-bbr 4.6.4.2).
pub(super) fn bdp(bandwidth: Rate, min_rtt: Duration, gain: f64, mss: Bytes, initial_window: Bytes) -> Bytes {
    if min_rtt == Duration::MAX {
        return initial_window;
    }
    let bytes = bandwidth.as_bps_f64() / 8.0 * min_rtt.as_secs_f64() * gain;
    Bytes(libm::ceil(bytes / mss.as_f64()) as u64 * mss.0)
}

/// What a host hands to its network card at once: a millisecond's worth, at least two packets, at most 127
/// (ccwg-bbr 4.6.3; Linux 6.12 tcp_bbr.c, `bbr_tso_segs_goal`).
pub(super) fn send_quantum(pacing_rate: Rate, mss: Bytes) -> Bytes {
    let least = if pacing_rate < SMALL_QUANTUM_RATE { 1 } else { 2 };
    let packets = pacing_rate.bytes_in(Duration::from_micros(977)).0 / mss.0;
    Bytes(packets.clamp(least, 127) * mss.0)
}

/// The pacing rate, which grows freely until the pipe is full and follows the model from then on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    pub(super) rate: Rate,
    seen_rtt: bool,
}

impl Pacing {
    /// The rate before any feedback.
    pub(super) fn new(initial_window: Bytes, gain: f64) -> Self {
        Pacing { rate: scaled(Rate::over(initial_window, NOMINAL_RTT), gain), seen_rtt: false }
    }

    /// Follows `gain` times `bandwidth`: upwards only while the pipe is not `full`.
    pub(super) fn follow(&mut self, bandwidth: Rate, gain: f64, full: bool) {
        let rate = scaled(bandwidth, gain);
        if full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// The first RTT sample replaces the guess.
    pub(super) fn on_rtt(&mut self, cwnd: Bytes, smoothed: Duration, gain: f64) {
        if !self.seen_rtt && !smoothed.is_zero() {
            self.seen_rtt = true;
            self.rate = scaled(Rate::over(cwnd, smoothed), gain);
        }
    }
}

fn scaled(bandwidth: Rate, gain: f64) -> Rate {
    bandwidth.mul_f64(gain * PACING_MARGIN).max(Rate::from_bps(1))
}

/// How much more than expected ACKs bring at once: aggregation in the path or in the receiver
/// (ccwg-bbr 4.5.9; Linux 6.12 tcp_bbr.c, `bbr_update_ack_aggregation`). The window is widened by it, so that
/// the silence between ACKs can be filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Time,
    epoch_acked: Bytes,
    /// Maxima of the current and of the previous stretch of rounds.
    maxima: [Bytes; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Self {
        Aggregation { epoch_start: now, ..Self::default() }
    }

    /// Starts measuring anew, after idling.
    pub(super) fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = Bytes::ZERO;
    }

    /// Takes an ACK; a maximum is kept for `window` to twice as many rounds.
    pub(super) fn on_ack(
        &mut self,
        event: &AckEvent<'_>,
        round_start: bool,
        window: u32,
        bandwidth: Rate,
        cwnd: Bytes,
        mss: Bytes,
    ) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= window {
                self.rounds = 0;
                self.maxima = [Bytes::ZERO, self.maxima[0]];
            }
        }
        let mut expected = bandwidth.bytes_in(event.now.since(self.epoch_start));
        let overlong = self.epoch_acked.0 + event.newly_acked.0 >= AGGREGATION_EPOCH_PACKETS * mss.0;
        if self.epoch_acked <= expected || overlong {
            self.restart(event.now);
            expected = Bytes::ZERO;
        }
        self.epoch_acked += event.newly_acked;
        let extra = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.maxima[0] = self.maxima[0].max(extra);
    }

    /// The most that came at once.
    pub(super) fn largest(&self) -> Bytes {
        self.maxima[0].max(self.maxima[1])
    }

    /// By how much to widen the window.
    pub(super) fn extra(&self, bandwidth: Rate) -> Bytes {
        self.largest().min(bandwidth.bytes_in(AGGREGATION_LIMIT))
    }
}

/// While ProbeRTT holds the pipe nearly empty, delivery rates say nothing about the path: packets sent then
/// count as limited by the application (ccwg-bbr 4.3.4.4: MarkConnectionAppLimited).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spoiled {
    since: Time,
    until: Bytes,
}

impl Spoiled {
    /// Marks what is sent from `now` until all of `inflight` has been delivered.
    pub(super) fn mark(&mut self, now: Time, delivered: Bytes, inflight: Bytes) {
        if delivered > self.until {
            self.since = now;
        }
        self.until = delivered + inflight;
    }

    /// Whether the newest acknowledged packet was sent in such a phase.
    pub(super) fn covers(&self, event: &AckEvent<'_>) -> bool {
        event
            .acked
            .iter()
            .max_by_key(|packet| packet.number)
            .is_some_and(|packet| packet.sent_at >= self.since && packet.delivered <= self.until)
    }
}
