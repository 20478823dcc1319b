//! Many runs at once, on all cores, each of them single-threaded; the results are in the order of the jobs, whatever the
//! order in which they finished.

use brakelight_scenario::cost::Cost;
use brakelight_scenario::outcome::{Outcome, Run};
use brakelight_scenario::scenario::{Scenario, Service, TraceOffset};
use brakelight_scenario::trace::names::Names;
use brakelight_sim::{RunError, Traces};
use rayon::prelude::*;

use crate::failure::Failure;
use crate::progress::Progress;

/// One scenario, to be run with several seeds.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is called while it runs.
    pub label: String,
    /// The scenario, with its first seed.
    pub scenario: Scenario,
    /// What `scheme` and `trace` of its row say, instead of the scenario's own words.
    pub names: Option<(String, String)>,
}

/// What became of a job.
#[derive(Clone, Debug)]
pub struct Result {
    /// Its row: the run, or the medians of several.
    pub run: Run,
    /// The first seed's outcome, with its series and logs.
    pub first: Outcome,
}

/// How a scenario is run.
pub type Runner = fn(&Scenario, &Traces) -> std::result::Result<Outcome, RunError>;

/// Runs every job with `seeds` seeds, with the modelled host.
pub fn all(
    what: &str,
    jobs: &[Job],
    seeds: u32,
    traces: &Traces,
) -> std::result::Result<Vec<Result>, Failure> {
    all_by(brakelight_sim::run, what, jobs, seeds, traces)
}

/// Runs every job with `seeds` seeds by `runner`.
pub fn all_by(
    runner: Runner,
    what: &str,
    jobs: &[Job],
    seeds: u32,
    traces: &Traces,
) -> std::result::Result<Vec<Result>, Failure> {
    let progress = Progress::new(what, jobs.len() * seeds as usize);
    let tasks: Vec<(usize, u32)> =
        (0..jobs.len()).flat_map(|job| (0..seeds).map(move |seed| (job, seed))).collect();
    let outcomes: Vec<Outcome> = tasks
        .par_iter()
        .map(|&(index, seed)| {
            let job = &jobs[index];
            let outcome = one(runner, job, seed, traces);
            progress.step(&job.label);
            outcome
        })
        .collect::<std::result::Result<_, _>>()?;
    let mut outcomes = outcomes.into_iter();
    let results = jobs.iter().map(|_| {
        let own: Vec<Outcome> = outcomes.by_ref().take(seeds as usize).collect();
        let runs: Vec<Run> = own.iter().map(|outcome| outcome.run.clone()).collect();
        let run = if seeds == 1 { runs.first().cloned() } else { Run::median(&runs) };
        let first = own.into_iter().next();
        run.zip(first)
            .map(|(run, first)| Result { run, first })
            .ok_or_else(|| Failure::run("a job ran with no seed"))
    });
    results.collect()
}

/// Refuses jobs that would take hours or fill the memory, unless they are asked for by `force`.
pub fn check_cost(jobs: &[Job], traces: &Traces, force: bool) -> std::result::Result<(), Failure> {
    jobs.iter().filter(|_| !force).try_for_each(|job| check_one(&job.label, &job.scenario, traces))
}

/// Refuses one scenario, called `label`, that would take hours or fill the memory.
pub fn check_one(label: &str, scenario: &Scenario, traces: &Traces) -> std::result::Result<(), Failure> {
    let cost = Cost::of(scenario, traces);
    if cost.is_excessive() {
        let advice = "make it smaller, or give --force";
        return Err(Failure::input(format!("{label}: the estimate for one run is {cost}; {advice}")));
    }
    Ok(())
}

fn one(runner: Runner, job: &Job, seed: u32, traces: &Traces) -> std::result::Result<Outcome, Failure> {
    let mut scenario = job.scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(u64::from(seed));
    if seed > 0 {
        // Series and logs are kept of the first seed only; a hundred of them would fill the memory.
        scenario.record.series = false;
        scenario.record.link_logs = false;
    }
    let mut outcome = runner(&scenario, traces)
        .map_err(|error| Failure::run(format!("{}, seed {}: {error}", job.label, scenario.seed)))?;
    if let Some((scheme, trace)) = &job.names {
        outcome.run.scheme.clone_from(scheme);
        outcome.run.trace.clone_from(trace);
    }
    Ok(outcome)
}

/// Loads every trace that `scenario` names.
pub fn load_traces(
    scenario: &Scenario,
    names: &Names,
    traces: &mut Traces,
) -> std::result::Result<(), Failure> {
    for link in &scenario.links {
        if let Service::Trace(name) = &link.service
            && !traces.contains_key(name)
        {
            traces.insert(name.clone(), names.load(name).map_err(Failure::input)?);
        }
    }
    Ok(())
}

/// In words: where traces begin.
pub fn describe_offset(offset: TraceOffset) -> String {
    match offset {
        TraceOffset::At(start) if start.is_zero() => "their beginning".into(),
        TraceOffset::At(start) => start.to_string(),
        TraceOffset::Random => "a random place".into(),
    }
}
