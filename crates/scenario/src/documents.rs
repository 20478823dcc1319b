//! The JSON documents of the command line, and where a result came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::Run;

/// Where a result came from. All else in a document is a function of scenario and seed.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Origin {
    /// Version of the program.
    pub version: String,
    /// The commit it was built from, where known.
    pub git: Option<String>,
    /// The command line.
    pub command: String,
    /// The seed.
    pub seed: u64,
    /// What it ran on.
    pub host: String,
}

/// What `compare`, `run` and `perf` print.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Runs {
    /// Where it came from.
    pub origin: Origin,
    /// One row per scheme and trace: a run, or the medians of several.
    pub runs: Vec<Run>,
    /// One row per run, in the order of the rows and their seeds; empty where each row is a run.
    pub every_run: Vec<Run>,
}

/// What `reproduce` prints.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// Where it came from.
    pub origin: Origin,
    /// One row per claim; an id may have several.
    pub claims: Vec<Claim>,
}

/// A claim of a paper, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The figure, table or claim, as the list of experiments names it.
    pub id: String,
    /// What is claimed, in words.
    pub claim: String,
    /// The paper's number or shape.
    pub paper: String,
    /// What was measured.
    pub measured: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What a reader should know besides.
    pub note: String,
    /// Whether it is a claim of this project, of a variant that no paper has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// It does not, and an argument apart from the runs shows that it cannot.
    Refuted,
    /// It depends on recordings that are not the paper's, or that are not there.
    NeedsRecordings,
    /// The paper does not say enough.
    NotCheckable,
}

/// What `bench` prints.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bench {
    /// The simulator.
    pub sim: Vec<SimBench>,
    /// The queues.
    pub queues: Vec<QueueBench>,
}

/// Speed of the simulator on one scenario.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SimBench {
    /// The scenario.
    pub name: String,
    /// Its flows.
    pub flows: u64,
    /// Data packets delivered end to end.
    pub packets: u64,
    /// Time it took.
    pub wall_s: f64,
    /// Packets over time.
    pub packets_per_s: f64,
    /// Most memory the process held.
    pub peak_rss_mb: f64,
}

/// Cost of one queue.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueBench {
    /// The queue.
    pub name: String,
    /// Enqueue and dequeue of one packet.
    pub ns_per_packet: f64,
}
