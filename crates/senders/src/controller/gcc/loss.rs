//! The rate that losses allow, no more than the delay allows.
//!
//! libwebrtc: send_side_bandwidth_estimation.cc. Its second estimator of losses is `loss_v2.rs`.

use alloc::collections::VecDeque;

use brakelight_core::time::{Duration, Time};

/// libwebrtc send_side_bandwidth_estimation.cc: kBweIncreaseInterval, kBweDecreaseInterval, kStartPhase,
/// kLimitNumPackets, and the growth in UpdateEstimate
const INCREASE_INTERVAL: Duration = Duration::from_secs(1);
const DECREASE_INTERVAL: Duration = Duration::from_millis(300);
const START_PHASE: Duration = Duration::from_secs(2);
const LEAST_PACKETS: u32 = 20;
const GROWTH: f64 = 1.08;
const GROWTH_BPS: f64 = 1000.0;
/// libwebrtc rtcp_sender.cc, kDefaultVideoReportInterval
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The target rate in bit/s of payload.
#[derive(Clone, Debug)]
pub(super) struct LossBased {
    low: f64,
    high: f64,
    min_bps: f64,
    bps: f64,
    /// Rates of the last second, rising: the first is the smallest.
    smallest: VecDeque<(Time, f64)>,
    /// Packets of the present report, which is one of a second.
    lost: u32,
    expected: u32,
    first_report: Option<Time>,
    reported_at: Option<Time>,
    share: f64,
    has_decreased: bool,
    decreased_at: Option<Time>,
}

impl LossBased {
    pub(super) fn new(low: f64, high: f64, start_bps: f64, min_bps: f64) -> Self {
        LossBased {
            low,
            high,
            min_bps,
            bps: start_bps,
            smallest: VecDeque::new(),
            lost: 0,
            expected: 0,
            first_report: None,
            reported_at: None,
            share: 0.0,
            has_decreased: false,
            decreased_at: None,
        }
    }

    pub(super) fn bps(&self) -> f64 {
        self.bps
    }

    /// Returns the share of packets lost, as last reported.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Replaces the rate, as a probe or a timeout does.
    pub(super) fn set(&mut self, bps: f64) {
        self.bps = bps.max(self.min_bps);
        self.smallest.clear();
    }

    /// Counts packets whose fate is known.
    pub(super) fn count(&mut self, arrived: usize, lost: usize) {
        self.lost = self.lost.saturating_add(lost as u32);
        self.expected = self.expected.saturating_add((arrived + lost) as u32);
    }

    /// Takes the rate that the delay allows, and that of a model of losses if there is one that is ready.
    pub(super) fn update(&mut self, delay_bps: f64, model_bps: Option<f64>, rtt: Duration, now: Time) {
        let first = *self.first_report.get_or_insert(now);
        let is_due = self.reported_at.is_none_or(|at| now.since(at) >= REPORT_INTERVAL);
        if is_due && self.expected >= LEAST_PACKETS {
            self.share = f64::from(self.lost) / f64::from(self.expected);
            (self.lost, self.expected) = (0, 0);
            self.reported_at = Some(now);
            self.has_decreased = false;
        }
        let is_start = now.since(first) < START_PHASE && model_bps.is_none();
        if self.share == 0.0 && is_start && delay_bps > self.bps {
            self.smallest.clear();
            self.smallest.push_back((now, self.bps));
            self.bps = delay_bps;
            return;
        }
        while self.smallest.front().is_some_and(|(at, _)| now.since(*at) >= INCREASE_INTERVAL) {
            self.smallest.pop_front();
        }
        while self.smallest.back().is_some_and(|(_, bps)| *bps >= self.bps) {
            self.smallest.pop_back();
        }
        self.smallest.push_back((now, self.bps));
        if self.reported_at.is_some() {
            if let Some(bps) = model_bps {
                self.bps = bps;
            } else if self.share <= self.low {
                self.bps = self.smallest.front().map_or(self.bps, |(_, bps)| bps * GROWTH + GROWTH_BPS);
            } else if self.share > self.high && !self.has_decreased {
                let interval = DECREASE_INTERVAL + rtt;
                if self.decreased_at.is_none_or(|at| now.since(at) >= interval) {
                    self.has_decreased = true;
                    self.decreased_at = Some(now);
                    self.bps *= 1.0 - 0.5 * self.share;
                }
            }
        }
        self.bps = self.bps.min(delay_bps).max(self.min_bps);
    }
}
