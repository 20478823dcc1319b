//! The rate that the delay allows: additive or multiplicative increase, and a decrease below what arrives.
//!
//! libwebrtc: aimd_rate_control.cc, link_capacity_estimator.cc.

use brakelight_core::time::{Duration, Time};

use super::trendline::Usage;

/// libwebrtc aimd_rate_control.cc, ChangeBitrate: the rate grows to no more than this beyond what arrives.
const HEADROOM: f64 = 1.5;
const HEADROOM_BPS: f64 = 10_000.0;
/// libwebrtc aimd_rate_control.cc, MultiplicativeRateIncrease
const GROWTH: f64 = 1.08;
const LEAST_GROWTH_BPS: f64 = 1000.0;
/// libwebrtc aimd_rate_control.cc, GetNearMaxIncreaseRateBpsPerSecond
const FRAMES_PER_S: f64 = 30.0;
const PACKET_BITS: f64 = 8.0 * 1200.0;
const DETECTOR_DELAY_S: f64 = 0.1;
const LEAST_SLOPE_BPS: f64 = 4000.0;
/// libwebrtc link_capacity_estimator.cc, OnOveruseDetected
const CAPACITY_WEIGHT: f64 = 0.05;
const DEVIATION_KBPS: core::ops::RangeInclusive<f64> = 0.4..=2.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// What arrived when the path was last over-used: mean, and variance over the mean, in kbit/s.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    kbps: Option<f64>,
    deviation_kbps: f64,
}

impl Capacity {
    /// How far from the mean three standard deviations are, in bit/s.
    fn margin_bps(&self, kbps: f64) -> f64 {
        3000.0 * libm::sqrt(self.deviation_kbps * kbps)
    }

    fn is_exceeded_by(&self, bps: f64) -> bool {
        self.kbps.is_some_and(|kbps| bps > 1000.0 * kbps + self.margin_bps(kbps))
    }

    fn is_far_above(&self, bps: f64) -> bool {
        self.kbps.is_some_and(|kbps| bps < 1000.0 * kbps - self.margin_bps(kbps))
    }

    fn add(&mut self, bps: f64) {
        let sample = bps / 1000.0;
        let kbps = self.kbps.map_or(sample, |kbps| (1.0 - CAPACITY_WEIGHT) * kbps + CAPACITY_WEIGHT * sample);
        let error = kbps - sample;
        let deviation =
            (1.0 - CAPACITY_WEIGHT) * self.deviation_kbps + CAPACITY_WEIGHT * error * error / kbps.max(1.0);
        self.kbps = Some(kbps);
        self.deviation_kbps = deviation.clamp(*DEVIATION_KBPS.start(), *DEVIATION_KBPS.end());
    }
}

/// The rate that the delay allows, in bit/s of payload.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    beta: f64,
    min_bps: f64,
    max_bps: f64,
    bps: f64,
    throughput_bps: f64,
    capacity: Capacity,
    state: State,
    changed_at: Option<Time>,
}

impl Aimd {
    pub(super) fn new(beta: f64, start_bps: f64, bounds_bps: (f64, f64)) -> Self {
        let (min_bps, max_bps) = bounds_bps;
        Aimd {
            beta,
            min_bps,
            max_bps,
            bps: start_bps,
            throughput_bps: start_bps,
            capacity: Capacity { kbps: None, deviation_kbps: *DEVIATION_KBPS.start() },
            state: State::Hold,
            changed_at: None,
        }
    }

    pub(super) fn bps(&self) -> f64 {
        self.bps
    }

    /// Replaces the rate, as a probe or a timeout does.
    pub(super) fn set(&mut self, bps: f64, now: Time) {
        self.bps = bps.clamp(self.min_bps, self.max_bps);
        self.changed_at = Some(now);
    }

    /// Whether an over-use may lower the rate again (libwebrtc aimd_rate_control.cc, TimeToReduceFurther).
    pub(super) fn may_reduce(&self, throughput_bps: f64, rtt: Duration, now: Time) -> bool {
        let interval = rtt.clamp(Duration::from_millis(10), Duration::from_millis(200));
        self.changed_at.is_none_or(|at| now.since(at) >= interval) || throughput_bps < 0.5 * self.bps
    }

    /// Takes what the detector says and what arrives, in bit/s.
    pub(super) fn update(&mut self, usage: Usage, throughput_bps: Option<f64>, rtt: Duration, now: Time) {
        let throughput = throughput_bps.unwrap_or(self.throughput_bps);
        self.throughput_bps = throughput;
        match usage {
            Usage::Normal if self.state == State::Hold => {
                self.changed_at = Some(now);
                self.state = State::Increase;
            }
            Usage::Normal => {}
            Usage::Overuse => self.state = State::Decrease,
            Usage::Underuse => self.state = State::Hold,
        }
        match self.state {
            State::Hold => {}
            State::Increase => self.increase(throughput, rtt, now),
            State::Decrease => self.decrease(throughput, now),
        }
        self.bps = self.bps.clamp(self.min_bps, self.max_bps);
    }

    fn increase(&mut self, throughput: f64, rtt: Duration, now: Time) {
        if self.capacity.is_exceeded_by(throughput) {
            self.capacity.kbps = None;
        }
        let limit = HEADROOM * throughput + HEADROOM_BPS;
        let elapsed_s = self.changed_at.map_or(1.0, |at| now.since(at).as_secs_f64());
        if self.bps < limit {
            let growth = if self.capacity.kbps.is_some() {
                self.slope_bps(rtt) * elapsed_s
            } else {
                (self.bps * (libm::pow(GROWTH, elapsed_s.min(1.0)) - 1.0)).max(LEAST_GROWTH_BPS)
            };
            self.bps = (self.bps + growth).min(limit);
        }
        self.changed_at = Some(now);
    }

    /// Half an average packet per response time, in bit/s per second.
    fn slope_bps(&self, rtt: Duration) -> f64 {
        let frame_bits = self.bps / FRAMES_PER_S;
        let packet_bits = frame_bits / libm::ceil(frame_bits / PACKET_BITS);
        (packet_bits / (2.0 * (rtt.as_secs_f64() + DETECTOR_DELAY_S))).max(LEAST_SLOPE_BPS)
    }

    fn decrease(&mut self, throughput: f64, now: Time) {
        let mut lower = self.beta * throughput;
        if lower > self.bps
            && let Some(kbps) = self.capacity.kbps
        {
            lower = self.beta * 1000.0 * kbps;
        }
        self.bps = self.bps.min(lower);
        if self.capacity.is_far_above(throughput) {
            self.capacity.kbps = None;
        }
        self.capacity.add(throughput);
        // The rate stays until the queue is gone.
        self.state = State::Hold;
        self.changed_at = Some(now);
    }
}
