//! The papers' claims, run and judged. The experiments are files; this runs their jobs, all seeds of all
//! experiments at once, and judges what they measured.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use brakelight_registry::Registry;
use brakelight_scenario::cost::Cost;
use brakelight_scenario::documents::Claim;
use brakelight_scenario::experiment::{self, EMBEDDED, Experiment, Finding, Job, Table};
use brakelight_scenario::identity;
use brakelight_scenario::trace::names::{NameError, Names};
use brakelight_sim::Traces;

use crate::error::Error;
use crate::input;
use crate::jobs;
use crate::parallel;
use crate::progress::Progress;
use crate::runner::{Runner, Simulator};

pub(crate) mod numbers;
mod quick;
mod rows;

pub use numbers::{Errors, tallies, tally};
pub use quick::Quick;
pub use rows::{Judged, Measurement};

/// Judges the claims that `ids` name, all where there is no id: an id in full such as `ABC-F1`, or a
/// beginning of one. Fails before the first run if an id names nothing, or the runs would take hours. Claims
/// whose recordings are not in the folder that `BRAKELIGHT_TRACES` names get the verdict `needs-recordings`.
pub fn reproduce(ids: &[String]) -> Result<Vec<Claim>, Error> {
    let judge =
        Judge { runner: &Simulator, names: &Names::from_environment()?, progress: &(), any_cost: false };
    judge.claims(&chosen(&all()?, ids)?)
}

/// Returns every experiment that the program ships.
///
/// Fails only if one of them cannot be read, which would be a fault of this crate.
pub fn all() -> Result<Vec<Experiment>, Error> {
    EMBEDDED.iter().map(|(file, text)| experiment::read(file, text).map_err(Error::from)).collect()
}

/// Returns the experiments that `names` name: those of [`all`] by the ids of [`chosen`], and files whose
/// names end in `.toml`, with algorithms of `registry`. Without a name that is all of them.
///
/// # Errors
/// If an id names nothing, or a file cannot be read.
pub fn named(registry: &Registry, names: &[String]) -> Result<Vec<Experiment>, Error> {
    let (files, ids): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|id| id.ends_with(".toml"));
    let mut experiments = match (files.is_empty(), ids.is_empty()) {
        (false, true) => Vec::new(),
        _ => chosen(&all()?, &ids)?,
    };
    for file in &files {
        let text = input::text(Path::new(file), "an experiment")?;
        experiments.push(experiment::read_with(registry, file, &text)?);
    }
    Ok(experiments)
}

/// Returns those of `all` with a claim that one of `ids` names, with these claims only, and those that it
/// names where no claim is called so; all where there is no id. Fails with [`Error::UnknownClaim`] if an id
/// names nothing.
pub fn chosen(all: &[Experiment], ids: &[String]) -> Result<Vec<Experiment>, Error> {
    let is_claim =
        |id: &str| all.iter().flat_map(|experiment| &experiment.claims).any(|claim| names(id, &claim.id));
    let (ids, titles): (Vec<&String>, Vec<&String>) = ids.iter().partition(|id| is_claim(id));
    for id in &titles {
        if !all.iter().any(|experiment| names(id, &experiment.id)) {
            let mut known: Vec<String> = Vec::new();
            for claim in all.iter().flat_map(|experiment| &experiment.claims) {
                if !known.contains(&claim.id) {
                    known.push(claim.id.clone());
                }
            }
            return Err(Error::UnknownClaim { id: id.to_string(), known });
        }
    }
    let mut chosen = all.to_vec();
    for experiment in &mut chosen {
        let whole = ids.is_empty() && titles.is_empty() || titles.iter().any(|id| names(id, &experiment.id));
        experiment.claims.retain(|claim| whole || ids.iter().any(|id| names(id, &claim.id)));
    }
    chosen.retain(|experiment| !experiment.claims.is_empty());
    Ok(chosen)
}

/// Whether `id` names `claim`: in full, up to a hyphen, or up to the letter of a part: `B-F6` names `B-F6a`
/// and `B-F6cap`.
fn names(id: &str, claim: &str) -> bool {
    let (id, claim) = (id.to_ascii_lowercase(), claim.to_ascii_lowercase());
    let part = |rest: &str| {
        id.ends_with(|c: char| c.is_ascii_digit()) && rest.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    claim.strip_prefix(&id).is_some_and(|rest| rest.is_empty() || rest.starts_with('-') || part(rest))
}

/// The traces of an experiment; none where a recording is not there.
pub(crate) fn traces(experiment: &Experiment, names: &Names) -> Result<Option<Traces>, Error> {
    let mut traces = Traces::new();
    for name in experiment.traces() {
        match names.load(name) {
            Ok(trace) => traces.insert(name.to_string(), trace),
            Err(NameError::Unknown { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
    }
    Ok(Some(traces))
}

/// How claims are judged.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// What runs the experiments' scenarios.
    pub runner: &'a dyn Runner,
    /// The traces there are.
    pub names: &'a Names,
    /// Receives the progress of every run.
    pub progress: &'a dyn Progress,
    /// Whether to run it even if it may take hours or fill the memory.
    pub any_cost: bool,
}

impl Judge<'_> {
    /// Runs `experiments` and judges their claims, in their order. A scenario that several of them share runs
    /// once.
    pub fn claims(&self, experiments: &[Experiment]) -> Result<Vec<Claim>, Error> {
        Ok(self.judged(experiments)?.claims)
    }

    /// Returns the same with every run that the claims were judged by.
    pub fn judged(&self, experiments: &[Experiment]) -> Result<Judged, Error> {
        let traces: Vec<Option<Traces>> =
            experiments.iter().map(|experiment| traces(experiment, self.names)).collect::<Result<_, _>>()?;
        let mut experiments = experiments.to_vec();
        for (experiment, traces) in experiments.iter_mut().zip(&traces) {
            experiment.size_buffers(|name| traces.as_ref()?.get(name));
        }
        let experiments = &experiments[..];
        let plan = Plan::new(experiments, |index| traces[index].is_some());
        let planned = |&(index, job): &(usize, usize)| {
            let traces = traces[index].as_ref().expect("only experiments with their traces have jobs here");
            (&experiments[index].id, &experiments[index].jobs[job].scenario, traces)
        };
        for (id, scenario, traces) in plan.distinct.iter().map(planned).filter(|_| !self.any_cost) {
            jobs::check_cost_of(id, scenario, traces)?;
        }
        let steps = |run: &(usize, usize)| {
            let (_, scenario, traces) = planned(run);
            Cost::of(scenario, traces).steps
        };
        self.progress.begin("reproducing", plan.distinct.len());
        let outcomes = parallel::map_longest_first(&plan.distinct, steps, |run| {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (id, scenario, traces) = planned(run);
            let outcome = self.runner.run(scenario, traces);
            self.progress.step(id);
            outcome.map_err(|cause| Error::run(id, cause))
        })?;
        let mut tables: Vec<Option<Table>> = experiments
            .iter()
            .zip(&traces)
            .map(|(experiment, traces)| traces.as_ref().map(|_| Table::new(&experiment.dimensions)))
            .collect();
        let mut measurements = Vec::with_capacity(plan.jobs.len());
        for &(index, job, distinct) in &plan.jobs {
            let experiment = &experiments[index];
            let point = experiment.dimensions.iter().zip(&experiment.jobs[job].point);
            measurements.push(Measurement {
                experiment: experiment.id.clone(),
                axes: point.map(|(axis, at)| (axis.name.clone(), axis.labels[*at].clone())).collect(),
                run: outcomes[distinct].run.clone(),
            });
            if let Some(table) = &mut tables[index] {
                table.add(&experiments[index].jobs[job].point, &outcomes[distinct].run);
            }
        }
        let names: BTreeSet<&str> = experiments.iter().flat_map(Experiment::builtins).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let findings = parallel::map(&names, |name| {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            Ok(crate::checks::run(name))
        })?;
        let findings: BTreeMap<&str, Option<Finding>> = names.into_iter().zip(findings).collect();
        let judged = experiments.iter().zip(&tables);
        let claims = judged.flat_map(|(experiment, table)| {
            experiment.judge(table.as_ref(), &mut |name| findings.get(name).cloned().flatten())
        });
        Ok(Judged { claims: claims.collect(), measurements })
    }
}

/// What to run. Several figures of a paper show the same runs; each is run once.
pub(crate) struct Plan {
    /// An experiment and one of its jobs, for every scenario that differs from all others.
    pub(crate) distinct: Vec<(usize, usize)>,
    /// Every experiment and job, and the place in `distinct` of its scenario.
    pub(crate) jobs: Vec<(usize, usize, usize)>,
}

impl Plan {
    /// The jobs of those of `experiments` that `can_run`.
    pub(crate) fn new(experiments: &[Experiment], can_run: impl Fn(usize) -> bool) -> Self {
        let mut plan = Plan { distinct: Vec::new(), jobs: Vec::new() };
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for (index, experiment) in experiments.iter().enumerate().filter(|(index, _)| can_run(*index)) {
            for (job, Job { scenario, .. }) in experiment.jobs.iter().enumerate() {
                let place = *known.entry(identity::canonical(scenario)).or_insert_with(|| {
                    plan.distinct.push((index, job));
                    plan.distinct.len() - 1
                });
                plan.jobs.push((index, job, place));
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_claim_in_full_or_up_to_a_hyphen() {
        assert!(names("ABC-F1", "ABC-F1"));
        assert!(names("abc", "ABC-F1"));
        assert!(names("ABC-F8", "ABC-F8-UTIL"));
        assert!(!names("ABC-F1", "ABC-F12"));
        assert!(names("B-F6", "B-F6a") && names("B-F6", "B-F6cap") && !names("B-F", "B-F6a"));
        assert!(!names("ABC-F12", "ABC-F1"));
    }

    #[test]
    fn a_scenario_that_two_experiments_share_runs_once() {
        let text = |id: &str, schemes: &str| {
            format!(
                "id = \"{id}\"\ntitle = \"t\"\nsource = \"s\"\nschemes = {schemes}\ntraces = [\"one\"]\nseeds = 3\n\
                 [[claim]]\nclaim = \"c\"\ncheck = \"utilization > 0\""
            )
        };
        let read = |id, schemes| experiment::read("x.toml", &text(id, schemes)).unwrap();
        let experiments =
            [read("EX-1", "[\"cubic\", \"vegas\"]"), read("EX-2", "{ a = \"newreno\", b = \"vegas\" }")];
        let plan = Plan::new(&experiments, |_| true);
        assert_eq!(plan.distinct, [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(plan.jobs.len(), 12);
        assert_eq!(plan.jobs[9..], [(1, 3, 3), (1, 4, 4), (1, 5, 5)]);
        assert_eq!(Plan::new(&experiments, |index| index == 1).distinct.len(), 6);
    }

    #[test]
    fn an_unknown_id_is_refused_with_the_nearest_ones() {
        let error = chosen(&all().unwrap(), &["ABC-F99".to_string()]).unwrap_err();
        assert!(error.is_input());
        let message = error.to_string();
        assert!(
            message.starts_with("unknown claim `ABC-F99` (did you mean `ABC-F19`?): the nearest of "),
            "{message}"
        );
        assert!(message.ends_with("; `list claims` shows all") && message.len() < 150, "{message}");
    }

    #[test]
    fn an_experiment_s_own_id_stands_for_all_of_its_claims_where_no_claim_has_it() {
        let all = all().unwrap();
        let one = |id: &str| chosen(&all, &[id.to_string()]).unwrap();
        assert!(all.iter().flat_map(|experiment| &experiment.claims).all(|claim| claim.id != "B-U"));
        let [statements] = one("B-U").try_into().unwrap();
        assert_eq!(statements.id, "B-U");
        assert!(statements.claims.len() > 10);
        assert_eq!(one("FIRST").len(), 3);
        for experiment in &all {
            assert!(!one(&experiment.id).is_empty(), "{}", experiment.id);
        }
    }
}
