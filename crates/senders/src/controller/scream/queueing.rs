//! How long packets queue, how much that varies, and how long they may (scream-01 4.2.1.4, 4.5.4).

use alloc::collections::VecDeque;

use brakelight_core::controller::AckEvent;
use brakelight_core::time::{Duration, Time};
use brakelight_estimates::one_way_queueing::{Baseline, OneWayQueueing};

use super::Config;

/// scream-01 4.2.1.4, QDELAY_AVG_G
const AVERAGE: f64 = 1.0 / 4.0;
/// scream-01 4.2.1.4, QDELAY_MIN_MAX_AVG_G
const EXTREMES: f64 = 1.0 / 16.0;
/// scream-01 4.2.1.4, QDELAY_DEV_AVG_G
const DEVIATION: f64 = 1.0 / 32.0;
/// scream-01 4.2.1.4, QDELAY_DEV_THRESHOLD
const DEVIATION_MAX_S: f64 = 0.01;
/// scream-01 4.5.4: samples of the variance, and of the mean.
const HISTORY: usize = 200;
const RECENT: usize = 50;
/// ScreamV2Tx.cpp, kSlowUpdateInterval_ntp: time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// scream-01 4.5.4: share of round trips with a loss above which other flows fill the queue.
const LOSSY: f64 = 0.002;
/// scream-01 4.5.4: variance, in squares of the least target, below which the delay is stable.
const STABLE: f64 = 0.2;

/// The queueing delay of one flow.
#[derive(Clone, Debug)]
pub(super) struct Queueing {
    delay: OneWayQueueing,
    newest_s: f64,
    average_s: f64,
    averaged_at: Option<Time>,
    /// qdelay_min_avg and qdelay_max_avg.
    extremes_s: (f64, f64),
    deviation_s: f64,
    reduces_jitter: bool,
    steadiness: f64,
    competes: bool,
    target_s: f64,
    /// The least and the largest target.
    targets_s: (f64, f64),
    /// Samples over the least target.
    history: VecDeque<f64>,
    sampled_at: Option<Time>,
}

impl Queueing {
    /// Returns an estimate that has seen nothing.
    pub(super) fn new(config: &Config) -> Self {
        let target_s = config.queueing_target.as_secs_f64();
        Queueing {
            delay: OneWayQueueing::new(Baseline::Bounded, None),
            newest_s: 0.0,
            average_s: 0.0,
            averaged_at: None,
            extremes_s: (0.0, target_s),
            deviation_s: 0.0,
            reduces_jitter: config.reduce_jitter,
            steadiness: 1.0,
            competes: config.compete,
            target_s,
            targets_s: (target_s, config.queueing_target_max.as_secs_f64()),
            history: VecDeque::new(),
            sampled_at: None,
        }
    }

    /// Takes in what an ACK says. The average is taken once per `interval`; `lossy` is the share of round
    /// trips with a loss.
    pub(super) fn on_ack(&mut self, event: &AckEvent<'_>, interval: Duration, lossy: f64) {
        let (extremes, target_s) = (&mut self.extremes_s, self.target_s);
        self.delay.on_ack(event, |_, delay| {
            let delay_s = delay.as_secs_f64();
            *extremes = (extremes.0.min(delay_s), extremes.1.max(delay_s).min(target_s));
        });
        self.newest_s = self.delay.queueing().as_secs_f64();
        if self.averaged_at.is_none_or(|at| event.now.since(at) >= interval) {
            self.averaged_at = Some(event.now);
            self.average();
        }
        if self.competes && self.sampled_at.is_none_or(|at| event.now.since(at) >= SAMPLE_INTERVAL) {
            self.sampled_at = Some(event.now);
            self.adjust_target(lossy);
        }
    }

    fn average(&mut self) {
        self.average_s = if self.newest_s < self.average_s {
            self.newest_s
        } else {
            AVERAGE * self.newest_s + (1.0 - AVERAGE) * self.average_s
        };
        if !self.reduces_jitter {
            return;
        }
        let max_s = (1.0 - EXTREMES) * self.extremes_s.1;
        let min_s = (1.0 - EXTREMES) * self.extremes_s.0 + EXTREMES * max_s;
        self.extremes_s = (min_s, max_s);
        self.deviation_s = (1.0 - DEVIATION) * self.deviation_s + DEVIATION * (max_s - min_s);
        self.steadiness = (1.0 - self.deviation_s / DEVIATION_MAX_S).clamp(0.0, 1.0);
    }

    /// scream-01 4.5.4
    fn adjust_target(&mut self, lossy: f64) {
        let (least_s, most_s) = self.targets_s;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(self.newest_s / least_s);
        let count = self.history.len() as f64;
        let mean = self.history.iter().sum::<f64>() / count;
        let variance = self.history.iter().map(|delay| (delay - mean) * (delay - mean)).sum::<f64>() / count;
        let recent = self.history.len().min(RECENT);
        let newest = self.history.iter().rev().take(recent).sum::<f64>() / recent as f64;
        let suggested_s = least_s * (newest + libm::sqrt(variance));
        let target_s = if lossy > LOSSY {
            1.5 * suggested_s
        } else if variance < STABLE {
            suggested_s
        } else if suggested_s < least_s {
            (0.5 * self.target_s).max(suggested_s)
        } else {
            0.9 * self.target_s
        };
        self.target_s = target_s.clamp(least_s, most_s);
    }

    /// The newest packet's queueing delay, s.
    pub(super) fn newest_s(&self) -> f64 {
        self.newest_s
    }

    /// The average, which rises slowly and falls at once, s.
    pub(super) fn average_s(&self) -> f64 {
        self.average_s
    }

    /// The target, s.
    pub(super) fn target_s(&self) -> f64 {
        self.target_s
    }

    /// 1 if the delay does not vary, 0 if it does by 10 ms.
    pub(super) fn steadiness(&self) -> f64 {
        self.steadiness
    }

    /// The share of marks that the average stands for: 0 at half of the target, 1 at the target.
    pub(super) fn virtual_alpha(&self) -> f64 {
        let half = self.target_s / 2.0;
        ((self.average_s - half) / half).clamp(0.0, 1.0)
    }
}
