//! Short connections that arrive as a Poisson process. The host opens one for each arrival; this is when they
//! arrive, how much each carries, and how long each took.
//!
//! ```text
//! gap = -ln(u) / lambda                  u, v uniform in [0, 1)
//! size = least (1 - v)^(-1 / shape),     least = mean (shape - 1) / shape
//!                                                                       the inverse of 1 - (least / x)^shape
//! ```
//!
//! Outcome: `flows_started`, `flows_completed`, and `completion_ms_mean` (AFCT), `_p50`, `_p95`, `_p99`, from
//! the arrival until the last byte is at the receiver.

use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::distribution::{Distribution, visit_distribution};
use crate::traffic::{ShortFlows, SizeLaw};

/// Larger than any transfer worth waiting for: a cap on Pareto's tail.
const LARGEST: f64 = 1e12;

/// The arrival process of short connections.
#[derive(Clone, Debug)]
pub struct ArrivalProcess {
    law: ShortFlows,
    next_at: Time,
    started: u32,
    completed: u64,
    times: Distribution,
}

impl ArrivalProcess {
    /// Returns a process that has not started.
    pub fn new(law: ShortFlows) -> Self {
        ArrivalProcess { law, next_at: Time::MAX, started: 0, completed: 0, times: Distribution::default() }
    }

    /// The process starts; the first connection arrives after a gap.
    pub fn start(&mut self, now: Time, random: &mut Random) {
        self.schedule(now, random);
    }

    fn schedule(&mut self, after: Time, random: &mut Random) {
        let gap = random.exponential() / self.law.per_second();
        self.next_at = after.saturating_add(Duration::from_secs_f64(gap));
    }

    /// No more connections arrive.
    pub fn stop(&mut self) {
        self.next_at = Time::MAX;
    }

    /// Returns when the next connection arrives; [`Time::MAX`] for never.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.next_at
    }

    /// Returns the connections that have arrived.
    pub fn started(&self) -> u32 {
        self.started
    }

    /// Lets a connection arrive, and returns how many bytes it carries. To be called once
    /// [`ArrivalProcess::next_at`] has come, which is the arrival after this one from then on.
    pub fn arrive(&mut self, random: &mut Random) -> Bytes {
        let size = match self.law.size {
            SizeLaw::Fixed(size) => size,
            SizeLaw::Pareto { mean, shape } => {
                let least = mean.as_f64() * (shape - 1.0) / shape;
                let size = least * libm::pow(1.0 - random.uniform(), -1.0 / shape);
                Bytes(size.clamp(1.0, LARGEST) as u64)
            }
        };
        self.started += 1;
        self.schedule(self.next_at, random);
        size
    }

    /// All bytes of a connection are at its receiver, this long after it arrived.
    pub fn complete(&mut self, took: Duration) {
        self.completed += 1;
        self.times.record(took);
    }

    /// Calls `visit` with the outcome, by name, in the unit the name ends in.
    pub fn outcome(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("flows_started", f64::from(self.started));
        visit("flows_completed", self.completed as f64);
        visit_distribution(
            &self.times,
            ["completion_ms_mean", "completion_ms_p50", "completion_ms_p95", "completion_ms_p99"],
            visit,
        );
    }
}
