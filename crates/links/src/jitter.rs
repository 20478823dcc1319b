//! Jitter: every packet is held for a random time, with or without keeping their order.
//!
//! ```text
//! uniform       mean - spread to mean + spread
//! normal        mean, standard deviation spread
//! exponential   mean; a shift is another delay line
//! pareto        density falling as x^-(shape + 1) from a scale on that gives the mean
//! ```
//!
//! Every distribution is cut to 0 .. `max`: it is the distribution given that the value lies there, not one
//! with a heap of packets at the ends. With `keep_order` a packet leaves no earlier than the one before it,
//! so a large value holds back those that follow; the mean is then larger than the distribution's. With
//! `hold` one time is drawn for every packet that arrives within a period of that length, counted from the
//! first packet: a route that changes.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | - | `distribution` | choice | uniform | netem's default |
//! | mean | `mean` | time | 5 ms | - |
//! | spread | `spread` | time | 5 ms | - |
//! | shape | `shape` | 1 | 3 | netem's `pareto` table |
//! | max | `max` | time | 100 ms | - |
//! | - | `hold` | time | 0 s | - |

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::format;
use core::cmp::{Ordering, Reverse};

use brakelight_core::packet::Packet;
use brakelight_core::parameters::ParameterError;
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};

choices! {
    /// How the time is distributed.
    pub enum Distribution {
        /// Equally likely around the mean.
        Uniform = "uniform",
        /// A bell around the mean.
        Normal = "normal",
        /// Short times the likeliest.
        Exponential = "exponential",
        /// Short times the likeliest, and a heavy tail.
        Pareto = "pareto",
    }
}

parameters! {
    /// The settings of jitter.
    pub struct Config {
        check check;
        /// How the time is distributed.
        distribution: Distribution = Distribution::Uniform, in .., from "netem";
        /// Its mean, before it is cut.
        mean: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(60), from "5 ms on average";
        /// Half the width of the uniform, standard deviation of the normal distribution.
        spread: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(60), from "0 to 10 ms";
        /// Exponent of the Pareto distribution.
        shape: f64 = 3.0, in 1.01..=100.0, from "netem's pareto table";
        /// The longest time.
        max: Duration = Duration::from_millis(100), in Duration::ZERO..=Duration::from_secs(600), from "beyond any jitter buffer";
        /// For how long one drawn time holds for every packet; 0 s draws for each: a route that changes on a
        /// beat.
        hold: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(3600), from "-";
        /// Whether packets keep their order.
        keep_order: bool = true, in .., from "a queue keeps it";
    }
}

fn check(config: &Config) -> Result<(), ParameterError> {
    if config.mean > config.max {
        let reason =
            format!("mean = `{}` is larger than max = `{}`: at most max is valid", config.mean, config.max);
        return Err(ParameterError::Conflict { reason });
    }
    Ok(())
}

/// A path element that delays packets by random times.
#[derive(Clone, Debug)]
pub struct Jitter<P> {
    draw: Draw,
    hold: Duration,
    /// The time that holds, and until when.
    held_time: (Duration, Time),
    random: Random,
    held: Held<P>,
}

#[derive(Clone, Debug)]
enum Held<P> {
    /// In order of arrival.
    InOrder(VecDeque<(Time, P)>),
    /// The next to leave on top.
    ByTime(BinaryHeap<Reverse<Due<P>>>, u64),
}

/// A packet and when it leaves; among equals the first to arrive is the first to leave.
#[derive(Clone, Debug)]
struct Due<P> {
    at: Time,
    sequence: u64,
    packet: P,
}

impl<P> PartialEq for Due<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Due<P> {}

impl<P> PartialOrd for Due<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Due<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<P: Packet> Jitter<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        let held = match config.keep_order {
            true => Held::InOrder(VecDeque::new()),
            false => Held::ByTime(BinaryHeap::new(), 0),
        };
        let held_time = (Duration::ZERO, Time::ZERO);
        Jitter { draw: Draw::new(config), hold: config.hold, held_time, random: site.random, held }
    }

    fn next_time(&mut self, now: Time) -> Duration {
        if self.hold.is_zero() {
            return self.draw.next(&mut self.random);
        }
        let (time, until) = &mut self.held_time;
        if now >= *until {
            *time = self.draw.next(&mut self.random);
            // Periods without packets draw nothing.
            let into = now.since(*until).as_nanos() % self.hold.as_nanos();
            let start =
                if *until == Time::ZERO { now } else { now.saturating_sub(Duration::from_nanos(into)) };
            *until = start.saturating_add(self.hold);
        }
        *time
    }
}

impl<P: Packet> PathElement<P> for Jitter<P> {
    fn accept(&mut self, now: Time, packet: P) {
        let at = now + self.next_time(now);
        match &mut self.held {
            Held::InOrder(line) => {
                let earliest = line.back().map_or(Time::ZERO, |&(at, _)| at);
                line.push_back((at.max(earliest), packet));
            }
            Held::ByTime(heap, sequence) => {
                heap.push(Reverse(Due { at, sequence: *sequence, packet }));
                *sequence += 1;
            }
        }
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        if self.next_wakeup()? > now {
            return None;
        }
        let (at, packet) = match &mut self.held {
            Held::InOrder(line) => line.pop_front()?,
            Held::ByTime(heap, _) => heap.pop().map(|Reverse(due)| (due.at, due.packet))?,
        };
        Some(Output::Departed(Departed::passed(at, packet)))
    }

    fn next_wakeup(&self) -> Option<Time> {
        match &self.held {
            Held::InOrder(line) => line.front().map(|&(at, _)| at),
            Held::ByTime(heap, _) => heap.peek().map(|Reverse(due)| due.at),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        match &self.held {
            Held::InOrder(line) => line.iter().for_each(|(_, packet)| visit(packet)),
            Held::ByTime(heap, _) => heap.iter().for_each(|Reverse(due)| visit(&due.packet)),
        }
    }
}

/// A distribution, cut to 0 .. max.
#[derive(Clone, Debug)]
struct Draw {
    distribution: Distribution,
    mean: f64,
    spread: f64,
    shape: f64,
    max: f64,
}

impl Draw {
    fn new(config: &Config) -> Self {
        Draw {
            distribution: config.distribution,
            mean: config.mean.as_secs_f64(),
            spread: config.spread.as_secs_f64(),
            shape: config.shape,
            max: config.max.as_secs_f64(),
        }
    }

    fn next(&self, random: &mut Random) -> Duration {
        let seconds = match self.distribution {
            Distribution::Uniform => {
                let low = (self.mean - self.spread).max(0.0);
                let high = (self.mean + self.spread).min(self.max);
                low + (high - low) * random.uniform()
            }
            Distribution::Normal => self.normal(random),
            // The inverse of the distribution function, at a uniform draw below its value at the cut.
            Distribution::Exponential if self.mean == 0.0 => 0.0,
            Distribution::Exponential => {
                let below_max = -libm::expm1(-self.max / self.mean);
                -self.mean * libm::log1p(-random.uniform() * below_max)
            }
            Distribution::Pareto => {
                let scale = self.mean * (self.shape - 1.0) / self.shape;
                if scale == 0.0 {
                    return Duration::ZERO;
                }
                let below_max = 1.0 - libm::pow(scale / self.max, self.shape);
                scale * libm::pow(1.0 - random.uniform() * below_max, -1.0 / self.shape)
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.0, self.max))
    }

    fn normal(&self, random: &mut Random) -> f64 {
        const TRIES: usize = 64;
        for _ in 0..TRIES {
            let value = self.mean + self.spread * random.normal();
            if (0.0..=self.max).contains(&value) {
                return value;
            }
        }
        // Nothing hits a window this narrow: over it the bell is flat.
        self.max * random.uniform()
    }
}
