//! The load factor of a link (xia05 3.1; bmcc eq.1): what arrives, and a share of what waits, over what the
//! link could have carried. Its quantisation to sixteen levels is here too, because routers write it and
//! senders read it.
//!
//! ```text
//! f(k) = (lambda + kappa_1 q_av) / (gamma C t_p)            for each interval k of length t_p      bmcc eq.1
//! q_av(t + t_q) = a q_av(t) + (1 - a) q(t + t_q)                                                   bmcc II-A
//! ```
//!
//! lambda counts what arrives, dropped or not: by what leaves, overload would be invisible
//! (open-questions#X-40). C t_p is what the link could have carried in the same interval, because links vary.
//! With `busy-time` nothing is asked of the link: C t_p is what left plus what the link reported as unused,
//! that is, what left over the fraction of time that the link was busy (bmcc VII).
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_p | `interval` | s | 200 ms | xia05 3.1, bmcc table I |
//! | t_q | `sample` | s | 10 ms | bmcc II-A |
//! | a | `weight` | 1 | 0.875 | bmcc II-A |
//! | kappa_1 | `queue_weight` | 1 | 0.5 | bmcc table I |
//! | gamma | `gamma` | 1 | 0.98 | not stated; the ABC authors' router (open-questions#X-33) |
//!
//! # Deviations
//!
//! - D1. The authors' simulator averages the samples of an interval and filters once per interval, with
//!   weight 1/4 for the new one. Twenty samples at a = 0.875 keep 7 % of the value before; one step at 3/4
//!   keeps 75 %. The papers' text is followed.
//! - D2. A link that could carry nothing in an interval has a load of [`LoadFactor::MOST`] if anything waited
//!   or came, and of 0 otherwise.
//! - D3. Intervals and samples lie on a grid from the start of the run, the same for every router. Those that
//!   nothing happened in are caught up with at the next packet, each at the time it was due.

use brakelight_core::queue::{LinkKind, LinkView, Misfit};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

choices! {
    /// What the capacity of an interval is.
    pub enum CapacityOf {
        /// What the link says that it could have carried.
        Link = "capacity",
        /// What left it, over the fraction of time that it was busy.
        BusyTime = "busy-time",
    }
}

impl CapacityOf {
    /// Returns `true` if the link must say what it could have carried.
    pub fn asks_the_link(self) -> bool {
        self == CapacityOf::Link
    }

    /// Returns an error if a router that measures the capacity like this cannot do it on such a link.
    pub fn fits(self, link: &LinkKind) -> Result<(), Misfit> {
        match self {
            CapacityOf::BusyTime if !link.tells_unused => {
                Err(Misfit::AsksForUnused { option: "load=busy-time" })
            }
            _ => Ok(()),
        }
    }
}

/// Settings of the measurement of load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadFactorSettings {
    /// t_p.
    pub interval: Duration,
    /// t_q.
    pub sample: Duration,
    /// a: the weight of the old average.
    pub weight: f64,
    /// kappa_1.
    pub queue_weight: f64,
    /// The share of the capacity to aim at.
    pub gamma: f64,
    /// Where the capacity comes from.
    pub capacity: CapacityOf,
}

/// The load factor of one link, from what its queue is told. Bytes are those that the link charges.
#[derive(Clone, Debug)]
pub struct LoadFactor {
    settings: LoadFactorSettings,
    /// When the present interval ends, when the queue is sampled next, and the earlier of the two.
    interval_end: Time,
    next_sample: Time,
    due: Time,
    /// lambda so far.
    arrived: Bytes,
    /// q now.
    waiting: Bytes,
    /// What left, and what the link could have carried while nothing waited, in the present interval.
    left: Bytes,
    unused: Bytes,
    queue_bytes: f64,
    load: f64,
}

impl LoadFactor {
    /// The load of a link that could carry nothing.
    pub const MOST: f64 = 100.0;

    /// Returns a link without load at the start of the run.
    ///
    /// # Panics
    /// If an interval is zero.
    pub fn new(settings: LoadFactorSettings) -> Self {
        assert!(!settings.interval.is_zero() && !settings.sample.is_zero(), "load is measured over time");
        let (interval_end, next_sample) = (Time::ZERO + settings.interval, Time::ZERO + settings.sample);
        LoadFactor {
            settings,
            interval_end,
            next_sample,
            due: interval_end.min(next_sample),
            arrived: Bytes::ZERO,
            waiting: Bytes::ZERO,
            left: Bytes::ZERO,
            unused: Bytes::ZERO,
            queue_bytes: 0.0,
            load: 0.0,
        }
    }

    /// Does what is due by `now`. To be called before anything else that happens at `now`.
    #[inline]
    pub fn advance(&mut self, now: Time, link: &mut impl LinkView) {
        if now >= self.due {
            self.catch_up(now, link);
        }
    }

    /// A packet that costs `cost` arrives, and is let in or not.
    #[inline]
    pub fn arrive(&mut self, cost: Bytes, admitted: bool) {
        self.arrived += cost;
        if admitted {
            self.waiting += cost;
        }
    }

    /// A packet that costs `cost` leaves.
    #[inline]
    pub fn leave(&mut self, cost: Bytes, link: &mut impl LinkView) {
        self.waiting -= cost;
        if self.settings.capacity == CapacityOf::BusyTime {
            self.left += cost;
            self.unused += link.unused();
        }
    }

    /// Returns f of the last whole interval; 0 before the first.
    #[inline]
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Returns q_av, the average queue in bytes.
    #[inline]
    pub fn queue_bytes(&self) -> f64 {
        self.queue_bytes
    }

    #[cold]
    fn catch_up(&mut self, now: Time, link: &mut impl LinkView) {
        if now >= self.interval_end {
            let mut end = self.interval_end;
            self.sample_until(end);
            // Whole intervals in which nothing happened.
            let missed = now.since(end).periods(self.settings.interval);
            if missed > 0 {
                (self.arrived, self.left, self.unused) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
                end += self.settings.interval * missed;
                self.sample_until(end);
            }
            self.load = self.measure(now, end, link);
            (self.arrived, self.left, self.unused) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
            self.interval_end = end + self.settings.interval;
        }
        self.sample_until(now);
        self.due = self.interval_end.min(self.next_sample);
    }

    /// Every sample due by `until`, of a queue that has not changed since the last.
    fn sample_until(&mut self, until: Time) {
        if until < self.next_sample {
            return;
        }
        let count = until.since(self.next_sample).periods(self.settings.sample) + 1;
        // bmcc II-A, `count` times.
        let kept = match count {
            1 => self.settings.weight,
            _ => libm::pow(self.settings.weight, count as f64),
        };
        let waiting_bytes = self.waiting.as_f64();
        self.queue_bytes = waiting_bytes + kept * (self.queue_bytes - waiting_bytes);
        self.next_sample += self.settings.sample * count;
    }

    /// Eq. 1 for the interval that ended at `end`.
    fn measure(&self, now: Time, end: Time, link: &mut impl LinkView) -> f64 {
        let capacity_bytes = match self.settings.capacity {
            CapacityOf::BusyTime => (self.left + self.unused).as_f64(),
            CapacityOf::Link => {
                let mut since = |start: Duration| {
                    if start.is_zero() {
                        0.0
                    } else {
                        link.capacity(start).as_bps_f64() * start.as_secs_f64()
                    }
                };
                let after = now.since(end);
                (since(after + self.settings.interval) - since(after)) / 8.0
            }
        };
        // bmcc eq.1
        let demand_bytes = self.arrived.as_f64() + self.settings.queue_weight * self.queue_bytes;
        let target_bytes = self.settings.gamma * capacity_bytes;
        if demand_bytes < 1.0 {
            0.0
        } else if demand_bytes < Self::MOST * target_bytes {
            demand_bytes / target_bytes
        } else {
            Self::MOST
        }
    }
}

/// A load factor in sixteen levels: ten below eta, two up to 1, four above.
///
/// ```text
/// code 0            f < eta_0                              stands for eta_0
/// codes 1 to 9      equal steps from eta_0 to eta          stand for their upper ends
/// codes 10, 11      equal steps from eta to 1              stand for their middles
/// codes 12 to 14    equal steps from 1 to u                stand for their lower ends
/// code 15           f >= u                                 stands for u
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Below this, load is not told apart.
    pub eta_0: f64,
    /// Where low load ends.
    pub eta: f64,
    /// From here on, load is not told apart.
    pub u: f64,
}

impl Levels {
    /// The first code of medium load.
    pub const MEDIUM: u8 = 10;
    /// The first code of overload.
    pub const OVERLOAD: u8 = 12;
    /// The highest code.
    pub const TOP: u8 = 15;

    /// Returns the code of a load factor.
    pub fn encode(&self, f: f64) -> u8 {
        let step = |from: f64, to: f64, steps: u8| ((f - from) / (to - from) * f64::from(steps)) as u8;
        if f < self.eta_0 {
            0
        } else if f < self.eta {
            1 + step(self.eta_0, self.eta, 9).min(8)
        } else if f < 1.0 {
            Self::MEDIUM + step(self.eta, 1.0, 2).min(1)
        } else if f < self.u {
            Self::OVERLOAD + step(1.0, self.u, 3).min(2)
        } else {
            Self::TOP
        }
    }

    /// Returns what a code stands for.
    pub fn decode(&self, code: u8) -> f64 {
        match code {
            0..=9 => self.eta_0 + (self.eta - self.eta_0) * f64::from(code) / 9.0,
            10 | 11 => self.eta + (1.0 - self.eta) * (f64::from(code - 10) + 0.5) / 2.0,
            12..=14 => 1.0 + (self.u - 1.0) * f64::from(code - 12) / 3.0,
            _ => self.u,
        }
    }
}

/// VCP's codes, as its authors' simulator numbers them.
pub mod vcp_code {
    /// Low load.
    pub const LOW: u8 = 1;
    /// High load.
    pub const HIGH: u8 = 2;
    /// Overload.
    pub const OVERLOAD: u8 = 3;
}

#[cfg(test)]
mod tests;
