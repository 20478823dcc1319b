//! The arena: one score of a sender, on links that whoever made it need not have seen.
//!
//! ```text
//! u       utility of a round, a sum of parts; each is 0 at best and not below ln 0.01
//! score   S = sum over rounds of (u - u_cubic) / sum over rounds of (0 - u_cubic)
//! part    the same with one part of u above the line: a sender's parts sum up to its score
//! ```
//!
//! | part | alone | several | beside | formula |
//! |---|---|---|---|---|
//! | throughput | x | x | x | ln(goodput / possible); at most 0 |
//! | delay | x | x | | ln(rtt / (rtt + q)), q the 95th percentile of the queueing delay |
//! | loss | x | x | x | ln(1 - share of packets lost) |
//! | fairness | | x | | ln(Jain's index of the flows) |
//! | harm | | | x | ln(goodput of the other / its goodput beside its own kind), at most 0 (ware19) |
//!
//! Possible is the payload that the link could carry, and half of it beside another flow. Cubic has 0. A
//! sender that knows the future has 1: each of its packets arrives at the link in the very opportunity that
//! carries it, nothing waits and nothing is lost, and of a shared link it takes its share. Power, the ratio
//! of throughput and delay (giessler78), is what throughput and delay sum up to.
//!
//! Rounds are drawn from a key ([`RoundSet`]). Those of a public key are for development; organizers keep
//! another key, or recordings, to themselves. The interval is that of the ratio over resampled rounds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brakelight_registry::{DEFAULT_CONTROLLER, DEFAULT_QUEUE, Registry};
use brakelight_scenario::cost::Cost;
use brakelight_scenario::documents::Origin;
use brakelight_scenario::identity::{MODELLED, RunId, sha256};
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::Traces;
use serde::{Deserialize, Serialize};

use self::rounds::{Kind, Round};
use crate::error::Error;
use crate::evaluate::{Level, said};
use crate::interval;
use crate::output::File;
use crate::parallel;
use crate::progress::Progress;
use crate::runner::Runner;

mod rounds;
mod score;
#[cfg(test)]
mod tests;

pub use rounds::RoundSet;
pub use score::Parts;

/// A sender that competes.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The sender, over drop-tail.
    pub scheme: Scheme,
    /// SHA-256 of what it is made of, where that is not this program: of its source, or of its model.
    pub digest: Option<String>,
}

impl Candidate {
    /// Reads a scheme of algorithms of `registry`. Where its options name files, such as a model, the digest
    /// is of their contents.
    ///
    /// # Errors
    /// If there is no such scheme.
    pub fn parse(registry: &Registry, text: &str) -> Result<Self, Error> {
        let scheme = Scheme::parse_with(registry, text)?;
        let values = scheme.controller().words().options.iter();
        let contents: Vec<u8> = values.filter_map(|(_, value)| std::fs::read(value).ok()).flatten().collect();
        let digest = (!contents.is_empty()).then(|| sha256(&contents));
        Ok(Candidate { scheme, digest })
    }
}

/// What the arena says. All but its origin is a function of the program, the rounds and the candidates.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Arena {
    /// Where it came from.
    pub origin: Origin,
    /// The name of the rounds: `train`, `validation` or `hidden`.
    pub set: String,
    /// The identity of the rounds, by what they hold: the same for everybody who runs the same.
    pub set_id: Option<RunId>,
    /// How far it went: `quick` or `full`.
    pub level: String,
    /// The candidates, the highest score first.
    pub candidates: Vec<Scored>,
}

/// The score of one candidate.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Scored {
    /// The candidate.
    pub scheme: String,
    /// SHA-256 of what it is made of, where that is not the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// 0 for Cubic, 1 for a sender that knows the future; below 0 for one that is worse than Cubic.
    pub score: f64,
    /// 95 % confidence interval of the score, over rounds.
    pub interval95: Option<[f64; 2]>,
    /// What each part contributes to the score.
    pub parts: Parts,
    /// The rounds, in their order.
    pub rounds: Vec<RoundScore>,
    /// SHA-256 over the program's version, the rounds' identity, the candidate and its scores. A score that
    /// was changed by hand does not fit it.
    pub seal: String,
}

/// What a candidate did in one round.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundScore {
    /// The round: its number, and what it is, in words. Of a hidden set only the number and the company.
    pub round: String,
    /// Goodput of the candidate's flows together.
    pub goodput_mbps: f64,
    /// What they could have had: the link's payload, or half of it beside another flow.
    pub possible_mbps: f64,
    /// The 95th percentile of the queueing delay; none where nothing arrived.
    pub p95_ms: Option<f64>,
    /// The parts of its utility.
    pub utility: Parts,
    /// Those of Cubic in the same round.
    pub baseline: Parts,
    /// Why it has the least utility: its run failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

/// A validated contest that has not run yet.
#[derive(Clone, Debug)]
pub struct Plan {
    set: &'static str,
    is_hidden: bool,
    set_id: RunId,
    level: Level,
    rounds: Vec<Round>,
    candidates: Vec<Candidate>,
    traces: Traces,
    /// By candidate and round, the baseline first; then the competitors beside their own kind, by round.
    contests: Vec<Scenario>,
}

/// The sender that has a score of 0.
const BASELINE: &str = DEFAULT_CONTROLLER;

impl Plan {
    /// Draws the rounds of `set` and makes the scenarios of each candidate.
    ///
    /// # Errors
    /// If a candidate is named twice, brings a queue of its own, or cannot run in the rounds.
    pub fn new(
        registry: &Registry,
        set: &RoundSet,
        level: Level,
        candidates: Vec<Candidate>,
    ) -> Result<Self, Error> {
        let mut names: Vec<String> = Vec::new();
        for candidate in &candidates {
            let name = candidate.scheme.to_string();
            if names.contains(&name) {
                return Err(Error::Arena(format!("`{name}` is given twice; give every candidate once")));
            }
            let queue = candidate.scheme.queue().name();
            if queue != DEFAULT_QUEUE {
                return Err(Error::Arena(format!(
                    "`{name}` has the queue `{queue}`; in the arena senders compete over `{DEFAULT_QUEUE}`, so give a controller \
                     that needs no router, such as `cubic` or `copa`"
                )));
            }
            names.push(name);
        }
        let (rounds, traces) = rounds::draw(set, level)?;
        let parse = |name: &str| Scheme::parse_with(registry, name);
        let baseline = parse(BASELINE)?;
        let mut contests = Vec::new();
        for scheme in std::iter::once(&baseline).chain(candidates.iter().map(|candidate| &candidate.scheme)) {
            for round in &rounds {
                contests.push(round.scenario(registry, scheme)?);
            }
        }
        for round in &rounds {
            if let Kind::Beside(competitor) = round.kind {
                contests.push(round.scenario(registry, &parse(competitor)?)?);
            }
        }
        let of_baseline = contests[..rounds.len()].iter();
        let ids = of_baseline.map(|scenario| Some(RunId::of(scenario, &traces, MODELLED)));
        let set_id = RunId::of_set(ids).unwrap_or_else(|| unreachable!("every round has an identity"));
        Ok(Plan {
            set: set.name(),
            is_hidden: set.is_hidden(),
            set_id,
            level,
            rounds,
            candidates,
            traces,
            contests,
        })
    }

    /// Returns the scenario of every round with the candidate at `place`, and the traces that they use: what
    /// a program trains on.
    pub fn scenarios(&self, place: usize) -> (&[Scenario], &Traces) {
        let first = (place + 1) * self.rounds.len();
        (&self.contests[first..first + self.rounds.len()], &self.traces)
    }

    /// Runs everything. A candidate whose run fails has the least utility of that round.
    ///
    /// # Errors
    /// If a run of the baseline or of a competitor fails, or the caller cancels.
    pub fn run(&self, runner: &dyn Runner, progress: &dyn Progress) -> Result<Arena, Error> {
        progress.begin("competing", self.contests.len());
        let steps = |scenario: &Scenario| Cost::of(scenario, &self.traces).steps;
        let runs: Vec<Result<Run, String>> =
            parallel::map_longest_first(&self.contests, steps, |scenario| {
                if progress.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                let run = catch_unwind(AssertUnwindSafe(|| runner.run(scenario, &self.traces)));
                progress.step(&scenario.name);
                Ok(match run {
                    Ok(Ok(outcome)) => Ok(outcome.run),
                    Ok(Err(cause)) => Err(cause.to_string()),
                    Err(panic) => Err(format!("it panicked: {}", said(&*panic))),
                })
            })?;
        let rounds = self.rounds.len();
        let (entered, own_kind) = runs.split_at(rounds * (1 + self.candidates.len()));
        let mut own_kind = own_kind.iter();
        let mut alone: Vec<Option<&Run>> = Vec::new();
        for round in &self.rounds {
            alone.push(match round.kind {
                Kind::Beside(competitor) => Some(needed(own_kind.next(), competitor, round)?),
                Kind::Alone | Kind::Several(_) => None,
            });
        }
        let (baseline, entered) = entered.split_at(rounds);
        let mut base = Vec::new();
        for ((round, run), alone) in self.rounds.iter().zip(baseline).zip(&alone) {
            base.push(round.utility(needed(Some(run), BASELINE, round)?, *alone));
        }
        let mut candidates: Vec<Scored> = self
            .candidates
            .iter()
            .zip(entered.chunks(rounds))
            .map(|(candidate, runs)| self.judge(candidate, runs, &alone, &base))
            .collect();
        candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
        let level = self.level.name().to_string();
        Ok(Arena {
            origin: Origin::default(),
            set: self.set.to_string(),
            set_id: Some(self.set_id),
            level,
            candidates,
        })
    }

    fn judge(
        &self,
        candidate: &Candidate,
        runs: &[Result<Run, String>],
        alone: &[Option<&Run>],
        base: &[Parts],
    ) -> Scored {
        let rows = self.rounds.iter().zip(runs).zip(alone).zip(base);
        let rounds: Vec<RoundScore> = rows
            .map(|(((round, run), alone), baseline)| {
                let mut score =
                    RoundScore { round: round.in_words(), baseline: *baseline, ..RoundScore::default() };
                match run {
                    Ok(run) => {
                        (score.goodput_mbps, score.possible_mbps) = round.goodput(run);
                        score.p95_ms = run.queueing_delay_ms.map(|delay| delay.p95);
                        score.utility = round.utility(run, *alone);
                    }
                    Err(why) => {
                        score.utility = Parts::least(round.kind);
                        score.failed.clone_from(why);
                    }
                }
                score
            })
            .collect();
        let pairs: Vec<[Parts; 2]> = rounds.iter().map(|round| [round.utility, round.baseline]).collect();
        let (score, parts) = score::of(&pairs);
        let mut scored = Scored {
            scheme: candidate.scheme.to_string(),
            digest: candidate.digest.clone(),
            score,
            interval95: interval::of_statistic(&pairs, |pairs| score::of(pairs).0),
            parts,
            rounds,
            seal: String::new(),
        };
        scored.seal = self.seal(&scored);
        scored
    }

    /// SHA-256 over what a score belongs to, and the score.
    fn seal(&self, scored: &Scored) -> String {
        let scores =
            serde_json::to_string(&(scored.score, &scored.parts, &scored.rounds)).unwrap_or_default();
        let digest = scored.digest.as_deref().unwrap_or_default();
        let text = [
            env!("CARGO_PKG_VERSION"),
            &self.set_id.to_string(),
            self.level.name(),
            &scored.scheme,
            digest,
            &scores,
        ];
        sha256(text.join("\n").as_bytes())
    }

    /// Returns the scenario of every round as a file, with the first candidate, and the traces that they use.
    /// A hidden set gives none.
    ///
    /// # Errors
    /// If a competitor is no sender of `registry`.
    pub fn files(&self, registry: &Registry) -> Result<Vec<File>, Error> {
        let mut files = Vec::new();
        let Some(candidate) = self.candidates.first().filter(|_| !self.is_hidden) else { return Ok(files) };
        for round in &self.rounds {
            files.extend(round.files(registry, &candidate.scheme)?);
        }
        Ok(files)
    }
}

/// The run that everybody is measured by.
fn needed<'r>(run: Option<&'r Result<Run, String>>, scheme: &str, round: &Round) -> Result<&'r Run, Error> {
    let fail = |why: &str| Error::Failed(format!("{scheme} in round {}: {why}", round.in_words()));
    match run {
        Some(Ok(run)) => Ok(run),
        Some(Err(why)) => Err(fail(why)),
        None => Err(fail("it did not run")),
    }
}
