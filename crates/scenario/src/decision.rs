//! What a comparison says to deploy, by what somebody can change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::Change;
use crate::outcome::Ratio;

/// The answer of a comparison.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Decision {
    /// The scheme that runs today, where it was compared.
    pub today: Option<String>,
    /// The scheme of the flow beside each; none where each had the link to itself.
    pub against: Option<String>,
    /// The best of every group of schemes that have one.
    pub choices: Vec<Choice>,
}

/// The best of the schemes that need the same change.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Choice {
    /// What must change.
    pub change: Change,
    /// The scheme with most power: throughput over the 95th percentile of the one-way delay.
    pub best: Candidate,
    /// The next one, if the group has another.
    pub next: Option<Candidate>,
    /// Power of the best over that of the next, run by run.
    pub ahead: Option<Ratio>,
    /// Whether that lead is significant: its 95 % interval does not hold 1. None where there are too few runs
    /// for an interval.
    pub significant: Option<bool>,
    /// Throughput of the best over that of what runs today; none where that was not compared.
    pub throughput: Option<Ratio>,
    /// The same of the 95th percentile of the queueing delay.
    pub p95: Option<Ratio>,
}

impl Choice {
    /// Returns `true` if the router of one of its schemes must know the link's rate.
    pub fn needs_link_rate(&self) -> bool {
        self.best.link_rate || self.next.as_ref().is_some_and(|next| next.link_rate)
    }
}

/// A scheme of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Candidate {
    /// Its name.
    pub scheme: String,
    /// Whether its router must know the link's rate.
    pub link_rate: bool,
}
