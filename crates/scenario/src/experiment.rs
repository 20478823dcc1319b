//! Experiments: a paper's figure or claim as a file, with the matrix to run and the checks that its
//! measurements must pass. `reproduce` runs the jobs, fills a [`Table`] and judges.
//!
//! ```toml
//! id = "ABC-F15"
//! title = "The target utilisation trades delay for throughput"
//! source = "abc20 appendix B"
//! schemes = ["abc:eta={eta}"]              # or a table: label = "scheme"
//! traces = ["Verizon-LTE-short.down"]
//! seeds = 10                               # seeds 1 to 10; a metric is their median
//! rtt = "100ms"                            # also: buffer, duration, trace_offset, against
//!
//! [sweep]                                  # every combination of these; {eta} stands for the value
//! eta = [0.85, 0.9, 0.95, 0.98]
//!
//! [[claim]]
//! claim = "A larger eta gives more utilisation and more delay"
//! paper = "monotone"
//! check = "increasing(utilization, eta) and increasing(queueing_delay_ms.mean, eta)"
//! ```
//!
//! `[[case]]` tables, each with a label under `case`, name combinations one by one instead.
//! `scenario = '''...'''` holds the text of a scenario file in place of `compare`'s setup; in it
//! `{controller}`, `{feedback}`, `{queue}` and `{trace}` stand for the row's. `check = "builtin:NAME"` asks
//! the program for a check of its own, `check = "not-checkable"` says that the paper does not state enough,
//! with a `note` why.

use std::borrow::Borrow;

use brakelight_links::trace::Trace;

use self::edge::Seeds;
use crate::buffer::Buffer;
use crate::compare::FORWARD;
use crate::documents::{Claim, Verdict};
use crate::scenario::{Scenario, Service};

mod edge;
mod embedded;
mod expression;
mod margin;
mod read;
mod table;
mod tables;

pub use embedded::{EMBEDDED, EVALUATIONS, TESTED, TESTED_BESIDE_OTHERS};
pub use expression::{Expression, ExpressionError, Fault, Grid, PARETO_MARGIN, TOLERANCE, Target, Value};
pub use margin::Margin;
pub use read::{deserialize_with, read, read_with};
pub use table::{Dimension, Point, Table, metrics};
pub(crate) use tables::ExperimentTable;

/// A figure, table or claim of a paper, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name in the list of experiments.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// What a reader should know of the setup.
    pub note: String,
    /// Which of several rules of a scheme made the source's numbers, as far as that is known; empty where
    /// there is but one.
    pub rule: String,
    /// The directions of its matrix.
    pub dimensions: Vec<Dimension>,
    /// What to run, in order.
    pub jobs: Vec<Job>,
    /// What must hold.
    pub claims: Vec<Assertion>,
    /// What its file says.
    table: tables::ExperimentTable,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its place in the matrix.
    pub point: Point,
    /// What to run; the seed is in it.
    pub scenario: Scenario,
    /// The buffer where the file gives it in bandwidth-delay products: [`Experiment::size_buffers`] makes
    /// packets of them.
    pub buffer: Option<Buffer>,
}

impl Job {
    /// Sizes the buffer of this job alone, as [`Experiment::size_buffers`] does that of all.
    pub fn size_buffer<T: Borrow<Trace>>(&mut self, trace: impl Fn(&str) -> Option<T>) {
        let Some(buffer) = self.buffer else { return };
        let rtt = self.scenario.flows[0].rtt;
        for link in self.scenario.links.iter_mut().filter(|link| link.name == FORWARD) {
            if let Service::Trace(name) = &link.service
                && let Some(trace) = trace(name)
            {
                link.buffer = buffer.limit(trace.borrow(), rtt);
            }
        }
    }
}

/// A claim and how to check it.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// The id it is reported under.
    pub id: String,
    /// What is claimed.
    pub claim: String,
    /// The paper's number or shape.
    pub paper: String,
    /// What a reader should know besides.
    pub note: String,
    /// How to check it.
    pub check: Check,
    /// Whether it is this project's own, of no paper.
    pub ours: bool,
    /// Whether the paper's number is that of recordings which are not ours.
    pub recordings: bool,
    /// Why it cannot hold, apart from any run.
    pub refuted: Option<Argument>,
}

/// An argument, apart from any run, that a claim cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Arithmetic.
    Numbers {
        /// Whether it is right.
        holds: bool,
    },
    /// What a check of this name in the program computes.
    Builtin(String),
}

/// How to check a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// By the measurements.
    Expression {
        /// What must hold.
        check: Expression,
        /// What to show as measured, where it is not what stands left of the comparisons.
        show: Option<Expression>,
    },
    /// By a check of this name in the program.
    Builtin(String),
    /// The paper does not say enough.
    NotCheckable,
}

/// What a check of the program found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the claim holds.
    pub holds: bool,
    /// What was measured.
    pub measured: String,
    /// What a reader should know besides.
    pub note: String,
}

impl Experiment {
    /// Returns the names of all traces it runs on, each once, in order of use.
    pub fn traces(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let links = self.jobs.iter().flat_map(|job| &job.scenario.links);
        for link in links {
            match &link.service {
                Service::Trace(name) if !names.contains(&name.as_str()) => names.push(name),
                _ => {}
            }
        }
        names
    }

    /// Sizes the buffers that the file gives in bandwidth-delay products (`4BDP`): of the mean rate of the
    /// trace that `trace` returns for a name, and the propagation delay of the round trip. Without the trace
    /// the buffer stays that of `compare --setup mahimahi`.
    pub fn size_buffers<'t>(&mut self, trace: impl Fn(&str) -> Option<&'t Trace>) {
        for job in &mut self.jobs {
            job.size_buffer(&trace);
        }
    }

    /// Returns the names of the program's own checks that it asks for.
    pub fn builtins(&self) -> impl Iterator<Item = &str> {
        self.claims.iter().flat_map(|assertion| {
            let check = match &assertion.check {
                Check::Builtin(name) => Some(name.as_str()),
                _ => None,
            };
            let argument = match &assertion.refuted {
                Some(Argument::Builtin(name)) => Some(name.as_str()),
                _ => None,
            };
            check.into_iter().chain(argument)
        })
    }

    /// Judges every claim. `table` holds the measurements of all jobs, or is none when recordings that they
    /// need are not there; `builtin` runs a check of the program, and knows it.
    pub fn judge(
        &self,
        table: Option<&Table>,
        builtin: &mut dyn FnMut(&str) -> Option<Finding>,
    ) -> Vec<Claim> {
        let seeds = table.map(Seeds::of);
        let judged = self.claims.iter().map(|assertion| {
            let mut claim = assertion.judge(table.zip(seeds.as_ref()), builtin);
            claim.note = joined([&claim.note, &self.note]);
            claim
        });
        judged.collect()
    }
}

impl Assertion {
    fn judge(&self, measured: Measured<'_>, builtin: &mut dyn FnMut(&str) -> Option<Finding>) -> Claim {
        let mut claim = self.measured(measured, builtin);
        let mut add = |text: &str| claim.note = joined([&claim.note, text]);
        let refuted = claim.verdict == Verdict::Fails
            && match &self.refuted {
                Some(Argument::Numbers { holds }) => *holds,
                Some(Argument::Builtin(name)) => {
                    let found = builtin(name);
                    match &found {
                        Some(found) if found.holds => add(&found.measured),
                        Some(_) => add(&format!("the argument `{name}` does not hold")),
                        None => add(&format!("there is no check `{name}`")),
                    }
                    found.is_some_and(|found| found.holds)
                }
                None => false,
            };
        claim.verdict = match claim.verdict {
            Verdict::Fails if refuted => Verdict::Refuted,
            Verdict::Holds | Verdict::Fails if self.recordings => {
                add(if claim.verdict == Verdict::Holds {
                    "holds on our recordings"
                } else {
                    "fails on our recordings"
                });
                Verdict::NeedsRecordings
            }
            verdict => verdict,
        };
        claim
    }

    /// What its check says of the measurements.
    fn measured(&self, measured: Measured<'_>, builtin: &mut dyn FnMut(&str) -> Option<Finding>) -> Claim {
        match (&self.check, measured) {
            (Check::NotCheckable, _) => self.row(Verdict::NotCheckable, String::new(), String::new()),
            (Check::Builtin(name), _) => match builtin(name) {
                Some(found) => self.row(verdict(found.holds), found.measured, found.note),
                None => self.row(Verdict::Fails, String::new(), format!("there is no check `{name}`")),
            },
            (Check::Expression { .. }, None) => {
                self.row(Verdict::NeedsRecordings, String::new(), String::new())
            }
            (Check::Expression { check, show }, Some((table, seeds))) => {
                let measured = match show {
                    Some(show) => show.evaluate(table).map(|value| vec![value]),
                    None => check.measured(table),
                };
                let measured = measured.map(|values| {
                    values.iter().map(|value| value.show(table)).collect::<Vec<_>>().join("; ")
                });
                match (check.check(table), measured) {
                    (Ok(points), Ok(measured)) => {
                        let failures = points.failures(table);
                        let points_that_fail = match failures.is_empty() {
                            true => String::new(),
                            false => format!("not at {}", failures.join(", ")),
                        };
                        let note = joined([&points_that_fail, &seeds.note(check, show.as_ref(), &points)]);
                        let measured = if measured.is_empty() { points.tally() } else { measured };
                        self.row(verdict(points.holds()), measured, note)
                    }
                    // A measurement that is not there proves nothing, so the claim does not hold.
                    (Err(error), _) | (_, Err(error)) => {
                        self.row(Verdict::Fails, String::new(), error.to_string())
                    }
                }
            }
        }
    }

    fn row(&self, verdict: Verdict, measured: String, found: String) -> Claim {
        Claim {
            id: self.id.clone(),
            claim: self.claim.clone(),
            paper: self.paper.clone(),
            measured,
            verdict,
            note: joined([&self.note, &found]),
            ours: self.ours,
        }
    }
}

/// What was measured, if it was, and the same for each seed alone.
type Measured<'t> = Option<(&'t Table, &'t Seeds)>;

/// Joins notes; an empty one leaves no trace.
fn joined<const N: usize>(notes: [&str; N]) -> String {
    notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("; ")
}

fn verdict(holds: bool) -> Verdict {
    if holds { Verdict::Holds } else { Verdict::Fails }
}

#[cfg(test)]
mod tests;
