//! XCP's way of weighting (Katabi et al. 2002, section 6): TCP's equation says what window the other queue's
//! loss rate stands for, and the weights move until ABC's window is the same.
//!
//! ```text
//! p      = 1 / weighted mean of the last 8 intervals between loss events, in packets  rfc5348 5.4
//! w_tcp  = sqrt(3 / (2 p))                                                           rfc5348 3.1, first term
//! w_abc  = 1 / (1 - 2 f)                                                             abc20 3.1.3
//! weight = weight + kappa (w_tcp - w_abc) / (w_tcp + w_abc) for ABC's queue          katabi02 6
//! ```
//!
//! Deviations: XCP reads its own windows from its packets' headers; ABC's have none, but in steady state all
//! its windows at a router are 1 / (1 - 2 f). Losses within one period are one event, where TFRC says one
//! RTT. Until the first loss nothing moves, as there. kappa is 0.1 per period; katabi02 says between 0 and 1.

use brakelight_core::time::{Duration, Time};

const KAPPA: f64 = 0.1;
// rfc5348 5.4
const INTERVALS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Packets between loss events, the open interval first.
#[derive(Clone, Debug, Default)]
pub(super) struct LossIntervals {
    open: f64,
    closed: [f64; 8],
    known: usize,
    event_at: Option<Time>,
}

impl LossIntervals {
    pub(super) fn on_packet(&mut self) {
        self.open += 1.0;
    }

    pub(super) fn on_drop(&mut self, now: Time, period: Duration) {
        if self.event_at.is_some_and(|at| now.since(at) < period) {
            return;
        }
        self.event_at = Some(now);
        self.closed.rotate_right(1);
        self.closed[0] = self.open;
        self.open = 0.0;
        self.known = (self.known + 1).min(self.closed.len());
    }

    /// The mean interval; none before the first loss.
    pub(super) fn mean(&self) -> Option<f64> {
        if self.known == 0 {
            return None;
        }
        let closed = &self.closed[..self.known];
        let weigh = |intervals: &mut dyn Iterator<Item = f64>| {
            intervals.zip(INTERVALS).fold((0.0, 0.0), |(sum, weights), (interval, weight)| {
                (sum + weight * interval, weights + weight)
            })
        };
        let (sum, weights) = weigh(&mut closed.iter().copied());
        // The open interval counts as soon as it makes the mean longer.
        let with_open = core::iter::once(self.open).chain(closed.iter().copied()).take(self.known);
        let (open_sum, _) = weigh(&mut with_open.into_iter());
        Some(sum.max(open_sum) / weights)
    }

    /// ABC's next weight, given its present one and the mean of f.
    pub(super) fn abc_weight(&self, weight: f64, f: Option<f64>) -> Option<f64> {
        let w_tcp = libm::sqrt(1.5 * self.mean()?);
        // Beyond f = 1/2 windows grow without end; 1/10000 from it they are past any that a queue will meet.
        let w_abc = 1.0 / (1.0 - 2.0 * f?).max(1e-4);
        Some((weight + KAPPA * (w_tcp - w_abc) / (w_tcp + w_abc)).clamp(0.0, 1.0))
    }
}
