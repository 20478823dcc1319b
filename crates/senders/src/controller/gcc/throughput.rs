//! The rate at which the receiver gets data: a Bayesian estimate over short windows.
//!
//! libwebrtc: bitrate_estimator.cc.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

/// libwebrtc bitrate_estimator.cc: kInitialRateWindowMs, kRateWindowMs, uncertainty_scale_
const FIRST_WINDOW: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_millis(150);
const UNCERTAINTY: f64 = 10.0;
const FIRST_VARIANCE: f64 = 50.0;
const VARIANCE_GROWTH: f64 = 5.0;

/// The estimate of the receiver's rate.
#[derive(Clone, Debug)]
pub(super) struct Throughput {
    /// Payload bytes since the window began, and how much of it has passed.
    bytes: u64,
    passed: Duration,
    newest: Option<Time>,
    kbps: Option<f64>,
    variance: f64,
}

impl Throughput {
    pub(super) fn new() -> Self {
        Throughput { bytes: 0, passed: Duration::ZERO, newest: None, kbps: None, variance: FIRST_VARIANCE }
    }

    /// Returns the estimate in bit/s, once there is one.
    pub(super) fn bps(&self) -> Option<f64> {
        self.kbps.map(|kbps| 1000.0 * kbps)
    }

    /// Takes `size` bytes of payload that arrived at `arrival` by the receiver's clock.
    pub(super) fn add(&mut self, arrival: Time, size: Bytes) {
        let sample = self.sample(arrival, size);
        let Some(sample) = sample else { return };
        let Some(kbps) = self.kbps else {
            self.kbps = Some(sample);
            return;
        };
        // An estimate of nothing, after an empty window, says nothing of how far off the sample is.
        let uncertainty =
            if kbps > 0.0 { UNCERTAINTY * libm::fabs(kbps - sample) / kbps } else { UNCERTAINTY };
        let sample_variance = uncertainty * uncertainty;
        let variance = self.variance + VARIANCE_GROWTH;
        self.kbps = Some((sample_variance * kbps + variance * sample) / (sample_variance + variance));
        self.variance = sample_variance * variance / (sample_variance + variance);
    }

    /// The rate of the window that this packet closes, in kbit/s.
    fn sample(&mut self, arrival: Time, size: Bytes) -> Option<f64> {
        let window = if self.kbps.is_none() { FIRST_WINDOW } else { WINDOW };
        if self.newest.is_some_and(|newest| arrival < newest) {
            *self = Throughput { kbps: self.kbps, variance: self.variance, ..Throughput::new() };
        }
        if let Some(newest) = self.newest.replace(arrival) {
            let gap = arrival.since(newest);
            self.passed += gap;
            if gap > window {
                self.bytes = 0;
                self.passed = Duration::from_nanos(self.passed.as_nanos() % window.as_nanos());
            }
        }
        let mut sample = None;
        if self.passed >= window {
            sample = Some(8.0 * self.bytes as f64 / window.as_millis_f64());
            self.passed = self.passed.saturating_sub(window);
            self.bytes = 0;
        }
        self.bytes += size.0;
        sample
    }
}
