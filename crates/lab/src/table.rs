//! What a comparison or a run gives: rows, what they were measured with, and what to know of them.

use brakelight_scenario::documents::{Origin, Runs};
use brakelight_scenario::outcome::{Outcome, Run, Versus};

use crate::advise::Advice;
use crate::decision::{self, Decision};
use crate::interval;
use crate::jobs::JobOutcome;
use crate::report::{Recorded, Report};
use crate::summary::{self, Overall};
use crate::text::{self, Screen, csv};

/// A run that loses more says little about anything else.
const MOST_LOST_PERCENT: f64 = 50.0;

/// More than what rounding at the ends of the measured interval makes of a link in full use.
const MOST_USED: f64 = 1.005;

/// Rows of results with their series and logs.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it is about, in a few words.
    pub title: String,
    /// What was the same for every run: name and value.
    pub setting: Vec<(String, String)>,
    /// What a reader must know before reading any number: a setup that decides more than the schemes do.
    pub caveats: Vec<String>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// One row per scheme and trace, or one for a scenario: a run, or the medians of several.
    pub runs: Vec<Run>,
    /// For each row every run that it is made of, in the order of their seeds.
    pub every: Vec<Vec<Run>>,
    /// For each row the outcome of its first seed, with series and logs where they were asked for.
    pub first: Vec<Outcome>,
    /// Which links of each row a report draws, and which flows pass them.
    pub drawn: Vec<Drawn>,
    /// The scheme that ratios are to, where it is among the rows.
    pub reference: Option<String>,
    /// Which runs a stack that others wrote has ended, and why: a sentence each. They are in no row.
    pub failed: Vec<String>,
    /// What to deploy, where that was the question.
    pub advice: Option<Advice>,
}

/// What a report draws of a row's series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// How many of the links, counted from the first.
    pub links: usize,
    /// For every flow, the places of the links that its data pass; of flows beyond these, the first.
    pub paths: Vec<Vec<usize>>,
}

impl Table {
    /// Returns a table of jobs, of each of which a report draws `drawn`. Title, setting, caveats, notes and
    /// reference are empty.
    pub fn of(results: Vec<JobOutcome>, drawn: &Drawn) -> Self {
        let mut table = Table { drawn: vec![drawn.clone(); results.len()], ..Table::default() };
        for result in results {
            table.runs.push(result.run);
            table.first.push(result.first);
            table.every.push(result.every);
        }
        table
    }

    /// Returns the rows of all `tables`, with what is the same for all and what is to be known of any. Its
    /// title is that of the first.
    pub fn joined(tables: Vec<Table>) -> Self {
        let mut tables = tables.into_iter();
        let mut joined = tables.next().unwrap_or_default();
        for table in tables {
            joined.setting.retain(|fact| table.setting.contains(fact));
            for (own, others) in [(&mut joined.caveats, table.caveats), (&mut joined.notes, table.notes)] {
                let new: Vec<String> = others.into_iter().filter(|it| !own.contains(it)).collect();
                own.extend(new);
            }
            joined.runs.extend(table.runs);
            joined.every.extend(table.every);
            joined.first.extend(table.first);
            joined.drawn.extend(table.drawn);
            joined.failed.extend(table.failed);
        }
        joined
    }

    /// Writes into every row how its runs compare with those of the reference scheme on the same trace, run
    /// by run: runs of the same seed have the same place of the trace.
    pub fn hold_against_reference(&mut self) {
        let Some(reference) = self.reference.clone() else { return };
        for place in 0..self.runs.len() {
            let row = &self.runs[place];
            let other = self.runs.iter().position(|run| run.scheme == reference && run.trace == row.trace);
            let Some(other) = other.filter(|other| *other != place) else { continue };
            let ratio = |value: fn(&Run) -> Option<f64>| {
                interval::of_ratios(&[interval::log_ratios(&self.every[place], &self.every[other], value)])
            };
            let versus = Versus {
                scheme: reference.clone(),
                throughput: ratio(|run| Some(summary::throughput(run))),
                p95: ratio(summary::p95),
            };
            self.runs[place].versus = Some(versus);
        }
    }

    /// Returns one row per scheme, best power first, over all traces. Ratios are to the first row's scheme.
    pub fn overall(&self) -> Vec<Overall> {
        summary::overall(&self.runs, &self.every, self.base())
    }

    /// Returns the scheme that the others are held against: the reference where it has a row, else the first.
    pub fn base(&self) -> Option<&str> {
        let has_row = |name: &&str| self.runs.iter().any(|run| run.scheme == *name);
        let first = || self.runs.first().map(|run| run.scheme.as_str());
        self.reference.as_deref().filter(has_row).or_else(first)
    }

    /// Returns what to deploy; none where there is nothing to choose from, or where the advice says it.
    pub fn decision(&self) -> Option<Decision> {
        if self.advice.is_some() {
            return None;
        }
        decision::decision(&self.runs, &self.every, &self.overall())
    }

    /// Returns what a reader of the numbers should be told with them, a sentence each: that a run lost most
    /// of what it sent, that a capacity is an estimate.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for run in &self.runs {
            let (scheme, trace) = (&run.scheme, &run.trace);
            if run.loss_percent > MOST_LOST_PERCENT {
                warnings.push(format!(
                    "{scheme} on {trace} lost {:.0} % of its packets: rates and delays are those of the few that arrived",
                    run.loss_percent
                ));
            }
            for link in run.links.iter().filter(|link| link.utilization > MOST_USED) {
                warnings.push(format!(
                    "{scheme}: {:.1} % of link `{}` was used: its capacity is an estimate of what a user with packets always queued would have had",
                    100.0 * link.utilization,
                    link.name
                ));
            }
        }
        warnings
    }

    /// Returns the rows, and every run that they are made of, as the JSON document of `compare` and `run`.
    pub fn document(&self, origin: Origin) -> Runs {
        let several = self.every.iter().any(|runs| runs.len() > 1);
        let every = self.every.iter().filter(|_| several).flatten();
        Runs {
            origin,
            runs: self.runs.clone(),
            every_run: every.cloned().collect(),
            decision: self.decision(),
        }
    }

    /// Returns every run as a row of CSV, with its setup and with what applications saw.
    pub fn csv(&self) -> String {
        csv::every_run(self.every.iter().flatten())
    }

    /// Returns what an HTML report shows.
    pub fn report<'a>(&'a self, origin: &'a Origin) -> Report<'a> {
        let series = self.first.iter().zip(&self.drawn).enumerate().filter_map(|(run, (first, drawn))| {
            let series = first.series.as_ref()?;
            Some(Recorded { run, series, links: drawn.links, paths: drawn.paths.clone() })
        });
        Report {
            title: self.title.clone(),
            setting: self.setting.clone(),
            caveats: self.caveats.clone(),
            notes: self.notes.clone(),
            origin,
            overall: self.overall(),
            decision: self.decision(),
            advice: self.advice.as_ref().map(text::advice::blocks).unwrap_or_default(),
            runs: &self.runs,
            series: series.collect(),
            reference: self.reference.as_deref(),
        }
    }

    /// Returns a comparison for people: what was assumed, a table per trace, one over all traces, the notes;
    /// and on a terminal a drawing above.
    pub fn comparison(&self, screen: &Screen) -> String {
        crate::text::comparison::tables(self, screen)
    }

    /// Returns scenarios for people: of each row a table of the links and one of the flows.
    pub fn scenarios(&self, screen: &Screen) -> String {
        crate::text::scenario::tables(&self.runs, screen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brakelight_scenario::outcome::LinkOutcome;

    #[test]
    fn a_run_that_lost_most_and_a_capacity_that_is_an_estimate_are_told() {
        let of = |loss_percent, utilization| {
            let link = LinkOutcome { name: "cell".into(), utilization, ..LinkOutcome::default() };
            let run = Run {
                scheme: "s".into(),
                trace: "t".into(),
                loss_percent,
                links: vec![link],
                ..Run::default()
            };
            Table { runs: vec![run], ..Table::default() }.warnings().join(" ")
        };
        assert_eq!(of(50.0, 1.0), "");
        assert!(of(51.0, 1.0).starts_with("s on t lost 51 % of its packets: "));
        assert!(of(0.0, 1.01).starts_with("s: 101.0 % of link `cell` was used: its capacity is an estimate"));
    }
}
