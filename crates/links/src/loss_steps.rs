//! Loss over time: a schedule of probabilities, each of which holds for a while. Every packet is lost
//! independently, with the probability of the moment at which it enters.
//!
//! ```text
//! a packet that enters at t is lost with p_i,   where t_0 + ... + t_(i-1) <= t mod T < t_0 + ... + t_i
//! T = t_0 + ... + t_(n-1);   without `repeat` t stands for t mod T, and p_(n-1) holds from T on
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_i, p_i | `steps` | time:probability/... | 9 s without loss, 1 s at 0.1 | a choice |
//! | - | `repeat` | - | true | as the `steps` of a link |

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::packet::Packet;
use brakelight_core::parameters::{Domain, Value};
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};

use super::outbox::{Outbox, immediate};

/// The longest step. A schedule of all steps that fit into a file stays within 64 bits of nanoseconds by far.
const LONGEST: Duration = Duration::from_secs(86_400);
/// The most steps.
const MOST: usize = 100_000;

parameters! {
    /// The settings of a schedule of loss.
    pub struct Config {
        /// How long each probability holds.
        steps: Steps = Steps::default(), in Probabilities, from "a choice";
        /// Whether the schedule starts again after its last step; otherwise the last probability stays.
        repeat: bool = true, in .., from "as a link's steps";
    }
}

/// Probabilities of loss, and how long each of them holds: `9s:0/1s:0.1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps(pub Vec<(Duration, f64)>);

impl Default for Steps {
    fn default() -> Self {
        Steps(vec![(Duration::from_secs(9), 0.0), (Duration::from_secs(1), 0.1)])
    }
}

impl Value for Steps {
    fn unit() -> String {
        "time:probability/...".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let step = |word: &str| {
            let refused = || format!("steps such as `9s:0/1s:0.1`: `{word}` is no time with a probability");
            let (time, probability) = word.split_once(':').ok_or_else(refused)?;
            let time = time.trim().parse().map_err(|_| refused())?;
            let probability = probability.trim().parse().map_err(|_| refused())?;
            Ok((time, probability))
        };
        text.split('/').map(step).collect::<Result<_, _>>().map(Steps)
    }

    fn show(&self) -> String {
        self.0.iter().map(|(time, probability)| format!("{time}:{probability}")).collect::<Vec<_>>().join("/")
    }
}

/// Steps of some length whose probabilities are probabilities.
struct Probabilities;

impl Domain<Steps> for Probabilities {
    fn admits(&self, Steps(steps): &Steps) -> bool {
        let is_step = |(time, probability): &(Duration, f64)| {
            !time.is_zero() && *time <= LONGEST && (0.0..=1.0).contains(probability)
        };
        (1..=MOST).contains(&steps.len()) && steps.iter().all(is_step)
    }

    fn describe(&self) -> String {
        format!("a time above 0s and up to {LONGEST} with 0 to 1 each")
    }
}

/// A path element that loses packets by a schedule.
#[derive(Clone, Debug)]
pub struct LossSteps<P> {
    /// When each step ends, in nanoseconds from the schedule's beginning, and its probability.
    ends: Arc<[(u64, f64)]>,
    repeat: bool,
    random: Random,
    outbox: Outbox<P>,
}

impl<P: Packet> LossSteps<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        let mut end = 0;
        let step = |&(time, probability): &(Duration, f64)| {
            end += time.as_nanos();
            (end, probability)
        };
        let ends = config.steps.0.iter().map(step).collect();
        LossSteps { ends, repeat: config.repeat, random: site.random, outbox: Outbox::new() }
    }

    /// The probability of loss at `now`.
    fn probability(&self, now: Time) -> f64 {
        let (period, last) = self.ends[self.ends.len() - 1];
        let at = if self.repeat { now.as_nanos() % period } else { now.as_nanos() };
        let step = self.ends.partition_point(|(end, _)| *end <= at);
        self.ends.get(step).map_or(last, |(_, probability)| *probability)
    }
}

impl<P: Packet> PathElement<P> for LossSteps<P> {
    fn accept(&mut self, now: Time, packet: P) {
        if self.random.chance(self.probability(now)) {
            self.outbox.lose(now, packet, Reason::Lost);
        } else {
            self.outbox.pass(now, packet);
        }
    }

    immediate!();
}
