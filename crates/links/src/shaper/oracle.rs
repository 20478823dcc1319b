//! A bound on what a rate setter can do: it knows the link's true rate and true queue, one round trip late.
//!
//! ```text
//! q   = max(0, q + left - c)                 per interval, both as they were one tau ago
//! P   = what left the shaper in the last tau
//! O   = q + P                                outstanding
//! mu, e                                      the forecast of `abc-adaptive`, of the true rate until tau ago
//! R   = mu - (m - mu tau - c e max(tau / 100 ms, 0.7)) / (0.7 tau)      m: mean of O over tau / 4
//! ```
//!
//! No setter of a home router can know more: what happens at the link is heard of half a round trip later at
//! best, and a rate that is set acts after the way to the link. It is a bound on the information, with the
//! rule of [`follow`](super::follow); another rule could weigh throughput and delay differently.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | tau | `delay` | s | the least RTT of probes | how late it knows |
//! | - | `interval` | s | 10 ms | as `follow` |
//! | c | `cushion` | 1 | 1 | docs/abc-adaptive.md |
//! | - | `max` | bit/s | 10 Gbit/s | |

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;

use super::follow::Law;
use super::forecast::Forecast;
use super::{Delay, RateSetter, Seen, Side, Source};
use crate::elements::AnyService;
use crate::link::Service as _;

parameters! {
    /// The settings of the oracle.
    pub struct Config {
        /// How late it knows; none: the least round trip of its probes.
        delay: Option<Duration> = None, in brakelight_core::parameters::OrNone(Duration::from_millis(1)..=Duration::from_secs(1)), from "one round trip";
        /// How often it sets the rate.
        interval: Duration = Duration::from_millis(10), in Duration::from_millis(1)..=Duration::from_secs(1), from "as follow";
        /// Mean errors of the forecast that may wait where tau is 100 ms.
        cushion: f64 = 1.0, in 0.0..=10.0, from "docs/abc-adaptive.md";
        /// The highest rate.
        max: Rate = Rate::from_mbps(10_000), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "none";
    }
}

/// Intervals that are remembered: no delay is longer.
const HISTORY: usize = 1024;

/// A setter that knows the truth, late.
#[derive(Clone, Debug)]
pub struct Oracle {
    config: Config,
    side: Side,
    law: Law,
    forecast: Forecast,
    tau: Duration,
    /// Bytes that had left by the end of each interval, by its number modulo [`HISTORY`].
    left: alloc::boxed::Box<[u64; HISTORY]>,
    intervals: u64,
    queue: f64,
    rate: Rate,
}

impl Oracle {
    /// Returns the setter at its beginning.
    pub fn new(config: &Config, side: Side) -> Self {
        let rate = Rate::from_mbps(20).min(config.max);
        Oracle {
            law: Law::new(config.interval, config.cushion),
            forecast: Forecast::new(config.interval.as_secs_f64(), rate.as_bps_f64() / 8.0),
            tau: config.delay.unwrap_or(Duration::from_millis(100)),
            left: alloc::boxed::Box::new([0; HISTORY]),
            intervals: 0,
            queue: 0.0,
            rate,
            side,
            config: config.clone(),
        }
    }

    fn left(&self, interval: u64) -> u64 {
        self.left[(interval % HISTORY as u64) as usize]
    }
}

impl RateSetter for Oracle {
    fn rate(&self) -> Rate {
        self.rate
    }

    fn interval(&self) -> Duration {
        self.config.interval
    }

    fn probes_every(&self) -> Option<Duration> {
        self.config.delay.is_none().then_some(Duration::from_millis(50))
    }

    fn on_link(&mut self, service: &AnyService) {
        self.rate = service.nominal().min(self.config.max);
        let mu = self.rate.as_bps_f64() / 8.0;
        self.forecast = Forecast::new(self.config.interval.as_secs_f64(), mu);
    }

    fn on_delay(&mut self, delay: Delay) {
        if let Source::Probe(number) = delay.source {
            let first = number == 0 || self.intervals == 0;
            self.tau = if first { delay.value } else { self.tau.min(delay.value) };
        }
    }

    fn on_tick(&mut self, seen: &Seen<'_>) {
        let Some(truth) = seen.truth else { return };
        let interval = self.config.interval;
        self.intervals += 1;
        let counted = match self.side {
            Side::Up => seen.departed,
            Side::Down => seen.arrived,
        };
        self.left[(self.intervals % HISTORY as u64) as usize] = counted;
        let back = (self.tau.as_nanos().div_ceil(interval.as_nanos()) as usize).clamp(1, HISTORY - 2) as u64;
        let then = seen.now.saturating_sub(self.tau);
        let carried = truth.capacity_between(then.saturating_sub(interval), then).as_f64();
        let tau_s = self.tau.as_secs_f64();
        if then > Time::ZERO + interval {
            self.forecast.close(carried, tau_s);
        }
        let before = self.intervals.saturating_sub(back);
        let (since, by_then) = (self.left(before), self.left(before.saturating_sub(1)));
        let mu = self.forecast.mu();
        let outstanding = match self.side {
            Side::Up => {
                self.queue = (self.queue + since.saturating_sub(by_then) as f64 - carried).max(0.0);
                self.queue + counted.saturating_sub(since) as f64
            }
            // The queue is that of others, before the link; what is known of it is what it delays.
            Side::Down => mu * tau_s,
        };
        let bytes = self.law.target(mu, self.forecast.error(), tau_s, outstanding, 0.0);
        self.rate = Rate::from_bps_f64(8.0 * bytes).max(Rate::from_bps(100_000)).min(self.config.max);
    }
}
