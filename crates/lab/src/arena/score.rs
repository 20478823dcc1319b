//! What a round is worth, and what all rounds say together.

use brakelight_scenario::outcome::Run;
use serde::{Deserialize, Serialize};

use super::rounds::{Kind, Round};

/// A share below this counts as this: otherwise a single silent round would decide a score.
const LEAST_SHARE: f64 = 0.01;

/// The parts of a utility, or of a score. A part that a round does not have is 0.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Parts {
    /// Throughput.
    pub throughput: f64,
    /// Queueing delay.
    pub delay: f64,
    /// Packets lost.
    pub loss: f64,
    /// How the candidate's own flows share.
    pub fairness: f64,
    /// What it leaves to a flow of another kind.
    pub harm: f64,
}

impl Parts {
    /// The names and values of the parts.
    pub fn named(self) -> [(&'static str, f64); 5] {
        [
            ("throughput", self.throughput),
            ("delay", self.delay),
            ("loss", self.loss),
            ("fairness", self.fairness),
            ("harm", self.harm),
        ]
    }

    /// Returns their sum.
    pub fn sum(self) -> f64 {
        self.named().iter().map(|(_, value)| value).sum()
    }

    fn zip(self, other: Parts, of: impl Fn(f64, f64) -> f64) -> Parts {
        Parts {
            throughput: of(self.throughput, other.throughput),
            delay: of(self.delay, other.delay),
            loss: of(self.loss, other.loss),
            fairness: of(self.fairness, other.fairness),
            harm: of(self.harm, other.harm),
        }
    }

    /// What a round of that kind is worth in which nothing arrives.
    pub(super) fn least(kind: Kind) -> Parts {
        let least = libm::log(LEAST_SHARE);
        let of = |has: bool| if has { least } else { 0.0 };
        Parts {
            throughput: least,
            delay: of(!kind.is_beside()),
            loss: least,
            fairness: of(matches!(kind, Kind::Several(_))),
            harm: of(kind.is_beside()),
        }
    }
}

/// The logarithm of a share, within [`LEAST_SHARE`] and 1.
fn logarithm(share: f64) -> f64 {
    // A share that is no number is of nothing that arrived.
    if share.is_nan() { libm::log(LEAST_SHARE) } else { libm::log(share.clamp(LEAST_SHARE, 1.0)) }
}

impl Round {
    /// Returns the goodput of the candidate's flows, and what they could have had, in Mbit/s.
    pub(super) fn goodput(&self, run: &Run) -> (f64, f64) {
        let possible = run.capacity_mbps * self.payload_share();
        match (self.kind, run.flows.first()) {
            (Kind::Beside(_), Some(own)) => (own.goodput_mbps, possible / 2.0),
            _ => (run.goodput_mbps, possible),
        }
    }

    /// Returns the utility of `run`; `own_kind` is the run of the competitor beside its own kind, where there
    /// is a competitor.
    pub(super) fn utility(&self, run: &Run, own_kind: Option<&Run>) -> Parts {
        let (goodput, possible) = self.goodput(run);
        let other = |run: &Run| run.flows.get(1).map_or(0.0, |flow| flow.goodput_mbps);
        let delay = run.queueing_delay_ms.map_or(0.0, |delay| self.rtt_ms() / (self.rtt_ms() + delay.p95));
        let loss = match self.kind {
            // The other's losses are its own affair.
            Kind::Beside(_) => run.flows.first().map_or(100.0, |flow| flow.loss_percent),
            _ => run.loss_percent,
        };
        Parts {
            throughput: logarithm(goodput / possible),
            delay: if self.kind.is_beside() { 0.0 } else { logarithm(delay) },
            loss: logarithm(1.0 - loss / 100.0),
            fairness: match self.kind {
                Kind::Several(_) => logarithm(run.jain.unwrap_or(0.0)),
                _ => 0.0,
            },
            harm: own_kind.map_or(0.0, |own_kind| logarithm(other(run) / other(own_kind))),
        }
    }
}

/// Returns the score of rounds, each the utility of a candidate and that of the baseline, and what each part
/// contributes to it.
pub(super) fn of(rounds: &[[Parts; 2]]) -> (f64, Parts) {
    let mut gained = Parts::default();
    let mut possible = 0.0;
    for [own, baseline] in rounds {
        gained = gained.zip(own.zip(*baseline, |own, base| own - base), |sum, more| sum + more);
        possible -= baseline.sum();
    }
    // A baseline that cannot be improved on leaves nothing to gain.
    let possible = if possible > 0.0 { possible } else { 1.0 };
    let parts = gained.zip(gained, |part, _| part / possible);
    (parts.sum(), parts)
}
