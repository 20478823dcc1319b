//! The JSON documents of the command line, and where a result came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision::Decision;
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
    /// What to deploy, by what somebody can change; none outside comparisons, and where there is no choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// What `reproduce` prints.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// Where it came from.
    pub origin: Origin,
    /// One row per claim; an id may have several.
    pub claims: Vec<Claim>,
    /// How many of the papers' own claims hold, and how far off their numbers are; none of no claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Tally>,
    /// The same by experiment, in the order of the claims.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<ExperimentTally>,
}

/// The papers' own claims, counted by verdict. Claims of variants that no paper has are left out.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Claims that hold.
    pub holds: usize,
    /// Claims that fail.
    pub fails: usize,
    /// Claims that cannot hold as stated.
    pub refuted: usize,
    /// Claims that hang on recordings.
    pub needs_recordings: usize,
    /// Claims that the paper does not say enough of.
    pub not_checkable: usize,
    /// How far off the numbers are that the claims state; none where no claim states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<NumberError>,
}

/// The tally of one experiment.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentTally {
    /// The experiment.
    pub id: String,
    /// Its claims.
    #[serde(flatten)]
    pub tally: Tally,
}

/// How far off numbers are: |ln(measured / stated)|, which is 0 for a bound that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct NumberError {
    /// How many numbers there are.
    pub numbers: usize,
    /// The mean of all, 0 or more, without unit.
    pub mean: f64,
    /// The 90th percentile by nearest rank, 0 or more, without unit.
    pub p90: f64,
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

/// What `evaluate` prints.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evaluation {
    /// Where it came from.
    pub origin: Origin,
    /// The kit: `rfc9743`, `bbr` or `all`.
    pub kit: String,
    /// How far it went: `quick` or `full`.
    pub level: String,
    /// What tells the criteria of one kit and level from those of another version.
    pub criteria: String,
    /// What the evaluation was compared with, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Origin>,
    /// The schemes, in the order in which they were named.
    pub schemes: Vec<Evaluated>,
}

/// A scheme, judged by every criterion of a kit.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Evaluated {
    /// The scheme.
    pub scheme: String,
    /// One for each criterion, in the order of their sections.
    pub criteria: Vec<Criterion>,
}

/// A criterion, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// Its name: the section, and a word.
    pub id: String,
    /// The file that decides it, without its ending.
    pub experiment: String,
    /// The section that asks for it.
    pub section: String,
    /// The scenario in words.
    pub title: String,
    /// The word by which the section asks for it: `MUST`, `SHOULD`, or `should`.
    pub requirement: String,
    /// What must hold.
    pub criterion: String,
    /// Why the bound is what it is, or why the criterion cannot be applied.
    pub why: String,
    /// What is compared with the bound.
    pub measure: String,
    /// Whether the bound is the most, rather than the least, that is allowed.
    pub at_most: bool,
    /// The verdict.
    pub verdict: Judgment,
    /// What else must be known: why it failed without a number, or why it could not be applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The place in `points` of the one that decides.
    pub decides: Option<usize>,
    /// What was measured at every point of its scenarios.
    pub points: Vec<Point>,
    /// By how much it is worse than in the evaluation it was compared with, beyond the noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression: Option<Regression>,
}

impl Criterion {
    /// Returns the point that decides.
    pub fn deciding(&self) -> Option<&Point> {
        self.points.get(self.decides?)
    }
}

/// What was measured at a point of a criterion's scenarios.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Point {
    /// The point in words; empty where there is but one.
    pub place: String,
    /// What is compared with the bound: of medians over the seeds.
    pub measured: f64,
    /// The bound.
    pub bound: f64,
    /// What Cubic or Reno had there, whichever the bound follows from.
    pub baseline: Option<f64>,
    /// How far within the bound, with 95 % confidence; below zero is outside.
    pub within: Option<[f64; 2]>,
    /// What is compared with the bound, of each seed.
    pub by_seed: Vec<f64>,
}

/// A measurement that became worse.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Regression {
    /// The point in words; empty where there is but one.
    pub place: String,
    /// What it was.
    pub before: f64,
    /// What it is.
    pub after: f64,
}

/// What a criterion says of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgment {
    /// It cannot be judged by this criterion.
    NotApplicable,
    /// It is within the bound.
    Pass,
    /// The bound lies within the noise.
    Unsure,
    /// It is outside the bound, or it could not be measured.
    Fail,
}

/// What `bench` prints.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bench {
    /// The simulator.
    pub sim: Vec<SimBench>,
    /// The queues.
    pub queues: Vec<QueueBench>,
    /// What ns-3 took for the rows that it runs too, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ns3: Vec<Ns3Bench>,
    /// Where the instructions of a packet go, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<SimProfile>,
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

/// Speed of ns-3 on one row, run once beside Brakelight's.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ns3Bench {
    /// The row.
    pub name: String,
    /// Time that ns-3 took, in seconds.
    pub wall_s: f64,
    /// Data packets that ns-3 delivered over that time.
    pub packets_per_s: f64,
    /// Brakelight's packets over time, divided by ns-3's.
    pub times_as_fast: f64,
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

/// Where the instructions go that the simulator takes for a packet of one scenario.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SimProfile {
    /// The scenario.
    pub name: String,
    /// Data packets delivered end to end.
    pub packets: u64,
    /// Instructions for all of them.
    pub instructions: u64,
    /// Instructions over packets.
    pub instructions_per_packet: f64,
    /// How an instruction's part is known.
    pub parts_by: PartsBy,
    /// The parts of the simulator, the largest first.
    pub parts: Vec<PartProfile>,
}

/// How the part of the simulator is known that an instruction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartsBy {
    /// By its source file, in inlined code too.
    #[default]
    Files,
    /// By the function that it is in. Inlined code counts for the function that it is inlined into.
    Functions,
}

/// The share of one part of the simulator.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PartProfile {
    /// The part.
    pub name: String,
    /// Its instructions over the scenario's packets.
    pub instructions_per_packet: f64,
    /// Its share of the scenario's instructions.
    pub percent: f64,
}

/// What `attack` prints.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Attacked {
    /// Where it came from.
    pub origin: Origin,
    /// What was found.
    #[serde(flatten)]
    pub found: Found,
}

/// The link on which a scheme does worst, of those that were tried.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Found {
    /// The scheme.
    pub scheme: String,
    /// What it was compared with, or what ran beside it; empty for PK-ABC, or for the same.
    pub against: Vec<String>,
    /// What was to be as bad as can be: `delay`, `longest`, `waste`, `unfair`, `loss`, `starve`.
    pub objective: String,
    /// Which links were tried: `cellular`, `steps`, `delay`, `cross`, `mixed`.
    pub space: String,
    /// Within which bounds.
    pub bounds: String,
    /// How many links could be tried.
    pub budget: u64,
    /// The seed of the search and of every run.
    pub seed: u64,
    /// How many links were tried.
    pub links: u64,
    /// How often the search started anew.
    pub starts: u64,
    /// The unit of the damage: `ms`, `points`, `times`.
    pub unit: String,
    /// How much worse the scheme did than was possible.
    pub damage: f64,
    /// The same before the link was made simpler.
    pub damage_before: f64,
    /// The median of the same over the random links that the search began with.
    pub damage_random_median: f64,
    /// The largest of these.
    pub damage_random_worst: f64,
    /// Lowest, median and highest damage of the link with five seeds.
    pub damage_seeds: [f64; 3],
    /// The flow that was attacked.
    pub own: AttackedFlow,
    /// The best reference, or the flow beside it.
    pub beside: AttackedFlow,
    /// The link in words, a line for each of its parts.
    pub link: Vec<String>,
}

/// What a flow had.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AttackedFlow {
    /// Its scheme.
    pub scheme: String,
    /// IP bytes delivered to its receiver.
    pub throughput_mbps: f64,
    /// The same as a share of what the link could carry.
    pub share_percent: f64,
    /// 95th percentile of its queueing delay; none where nothing was delivered.
    pub p95_ms: Option<f64>,
    /// The longest queueing delay of its packets.
    pub longest_ms: Option<f64>,
    /// Packets dropped over packets sent.
    pub loss_percent: f64,
}
