//! Many runs at once, each of them single-threaded; the results are in the order of the jobs, whatever the
//! order in which they finished.

use brakelight_scenario::cost::Cost;
use brakelight_scenario::deployment::Deployment;
use brakelight_scenario::outcome::{Outcome, Run, Setup};
use brakelight_scenario::scenario::{Scenario, TraceOffset};
use brakelight_sim::Traces;

use crate::error::Error;
use crate::interval;
use crate::parallel;
use crate::progress::Progress;
use crate::runner::Runner;
use crate::setup::Start;

/// One scenario, to be run with several seeds.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is called while it runs.
    pub label: String,
    /// The scenario, with its first seed.
    pub scenario: Scenario,
    /// What a comparison adds to it; none for any other scenario.
    pub compared: Option<Compared>,
}

impl Job {
    /// Returns the scenario of its first run, however many runs there are.
    pub fn first_scenario(&self) -> Scenario {
        let start = self.compared.as_ref().map(|compared| compared.start.of(0, 1));
        Scenario { trace_offset: start.unwrap_or(self.scenario.trace_offset), ..self.scenario.clone() }
    }
}

/// What a comparison adds to the runs of a scenario.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What `scheme` of the row says, instead of the scenario's own words.
    pub scheme: String,
    /// What `trace` of the row says.
    pub trace: String,
    /// What `setup` of the row says; its place of the trace is that of each run.
    pub setup: Setup,
    /// What `deployment` of the row says.
    pub deployment: Deployment,
    /// Where in the trace each run begins.
    pub start: Start,
}

/// The outcome of a job.
#[derive(Clone, Debug)]
pub struct JobOutcome {
    /// Its row: the run, or the medians of several.
    pub run: Run,
    /// The first seed's outcome, with its series and logs.
    pub first: Outcome,
    /// Every run, in the order of the seeds.
    pub every: Vec<Run>,
}

impl JobOutcome {
    /// Returns the row of one or more runs of the same scenario, with the intervals of its medians; where the
    /// runs fall into two groups, a run of the larger one. None if there are none.
    pub fn of(outcomes: Vec<Outcome>) -> Option<Self> {
        let every = outcomes.iter().map(|outcome| outcome.run.clone()).collect();
        JobOutcome::of_runs(every, outcomes.into_iter().next()?)
    }

    /// Returns the same of runs whose first outcome is `first`.
    pub fn of_runs(every: Vec<Run>, first: Outcome) -> Option<Self> {
        let mut run = Run::median(&every)?;
        match interval::modes(&every) {
            Some((modes, middle)) => {
                run = Run {
                    seed: run.seed,
                    setup: run.setup,
                    run_id: run.run_id,
                    spread: run.spread,
                    unreliable: run.unreliable,
                    unreliable_because: run.unreliable_because,
                    modes: Some(modes),
                    ..middle.clone()
                };
            }
            None => run.interval95 = interval::intervals(&every),
        }
        Some(JobOutcome { run, first, every })
    }
}

/// The outcomes of jobs.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// One for each job, in their order; none where every run of it failed.
    pub jobs: Vec<Option<JobOutcome>>,
    /// Which runs a stack that others wrote has ended, and why: a sentence each.
    pub failed: Vec<String>,
}

/// Runs every job with `seeds` seeds by `runner`. `progress` is told of every run; the work as a whole is
/// called `what`. A run that a stack of others ends fails alone. Any other failure, or no run that did not
/// fail, is an error.
pub fn run(
    what: &str,
    jobs: &[Job],
    seeds: u32,
    traces: &Traces,
    runner: &dyn Runner,
    progress: &dyn Progress,
) -> Result<Outcomes, Error> {
    progress.begin(what, jobs.len() * seeds as usize);
    let tasks: Vec<(usize, u32)> =
        (0..jobs.len()).flat_map(|job| (0..seeds).map(move |seed| (job, seed))).collect();
    let costs: Vec<f64> = jobs.iter().map(|job| Cost::of(&job.scenario, traces).steps).collect();
    let steps = |(index, _): &(usize, u32)| costs[*index];
    let outcomes = parallel::map_longest_first(&tasks, steps, |&(index, seed)| {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let job = &jobs[index];
        let outcome = one(runner, job, seed, seeds, traces);
        progress.step(&job.label);
        match outcome {
            Err(error) if error.is_of_one_run() => Ok(Err(error)),
            outcome => outcome.map(Ok),
        }
    })?;
    let mut failed = Vec::new();
    let mut outcomes = outcomes.into_iter();
    let mut results = Vec::new();
    for job in jobs {
        let (own, errors): (Vec<_>, Vec<_>) =
            outcomes.by_ref().take(seeds as usize).partition(std::result::Result::is_ok);
        if own.is_empty() && errors.is_empty() {
            return Err(Error::NoRun(job.label.clone()));
        }
        failed.extend(errors.into_iter().filter_map(Result::err));
        results.push(JobOutcome::of(own.into_iter().filter_map(Result::ok).collect()));
    }
    if results.iter().all(Option::is_none) && !failed.is_empty() {
        return Err(failed.swap_remove(0));
    }
    Ok(Outcomes { jobs: results, failed: failed.iter().map(ToString::to_string).collect() })
}

fn one(runner: &dyn Runner, job: &Job, seed: u32, seeds: u32, traces: &Traces) -> Result<Outcome, Error> {
    let mut scenario = job.scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(u64::from(seed));
    if let Some(compared) = &job.compared {
        scenario.trace_offset = compared.start.of(seed, seeds);
    }
    if seed > 0 {
        // Series and logs are kept of the first seed only; a hundred of them would fill the memory.
        scenario.record.series = false;
        scenario.record.link_logs = false;
    }
    let mut outcome = runner
        .run(&scenario, traces)
        .map_err(|cause| Error::run(format_args!("{}, seed {}", job.label, scenario.seed), cause))?;
    if let Some(compared) = &job.compared {
        outcome.run.scheme.clone_from(&compared.scheme);
        outcome.run.trace.clone_from(&compared.trace);
        let place = begins(&scenario, traces);
        outcome.run.deployment = Some(compared.deployment);
        outcome.run.setup = Some(Setup { trace_offset_s: place, ..compared.setup.clone() });
    }
    Ok(outcome)
}

/// Where in the trace of its first link a run begins, seconds.
fn begins(scenario: &Scenario, traces: &Traces) -> Option<f64> {
    let place = match scenario.trace_offset {
        TraceOffset::At(offset) => offset,
        TraceOffset::Random => {
            let link = scenario.links.first()?;
            link.drawn_offset(scenario.seed, traces.get(link.trace_name()?)?)
        }
    };
    // Divided, which gives the nearest number to what it is; a factor of 1e-9 does not.
    Some(place.as_nanos() as f64 / 1e9)
}

/// Refuses jobs that would take hours or fill the memory.
pub fn check_cost(jobs: &[Job], traces: &Traces) -> Result<(), Error> {
    jobs.iter().try_for_each(|job| check_cost_of(&job.label, &job.scenario, traces))
}

/// Refuses one scenario, called `label`, that would take hours or fill the memory.
pub fn check_cost_of(label: &str, scenario: &Scenario, traces: &Traces) -> Result<(), Error> {
    let cost = Cost::of(scenario, traces);
    if cost.is_excessive() {
        return Err(Error::TooCostly { label: label.to_string(), cost });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use brakelight_core::time::{Duration, Time};
    use brakelight_scenario::compare::Compare;
    use brakelight_scenario::scheme::Scheme;
    use brakelight_sim::RunError;

    use super::*;
    use crate::error::Cause;

    /// Says what seed it was given.
    struct Echo;

    impl Runner for Echo {
        fn run(&self, scenario: &Scenario, _: &Traces) -> Result<Outcome, Cause> {
            let run = Run { seed: scenario.seed, throughput_mbps: scenario.seed as f64, ..Run::default() };
            Ok(Outcome { run, ..Outcome::default() })
        }
    }

    /// Runs nothing.
    struct Fails;

    impl Runner for Fails {
        fn run(&self, _: &Scenario, _: &Traces) -> Result<Outcome, Cause> {
            Err("no".into())
        }
    }

    fn jobs(count: usize) -> Vec<Job> {
        let scheme = Scheme::parse("cubic").unwrap();
        let scenario = Compare::mahimahi(scheme, "step").scenario().unwrap();
        let job = |index| Job { label: format!("job {index}"), scenario: scenario.clone(), compared: None };
        (0..count).map(job).collect()
    }

    /// Notes what it is told, and asks to stop after so many steps.
    struct Notes {
        begun: Mutex<Vec<(String, usize)>>,
        steps: AtomicUsize,
        most: usize,
        cancelled: AtomicBool,
    }

    impl Notes {
        fn until(most: usize) -> Self {
            Notes { begun: Mutex::default(), steps: 0.into(), most, cancelled: false.into() }
        }
    }

    impl Progress for Notes {
        fn begin(&self, what: &str, steps: usize) {
            self.begun.lock().unwrap().push((what.to_string(), steps));
        }

        fn step(&self, label: &str) {
            assert!(label.starts_with("job "));
            if self.steps.fetch_add(1, Ordering::SeqCst) + 1 >= self.most {
                self.cancelled.store(true, Ordering::SeqCst);
            }
        }

        fn is_cancelled(&self) -> bool {
            self.cancelled.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn every_job_has_a_row_of_medians_over_its_seeds_and_every_run_is_a_step() {
        let notes = Notes::until(usize::MAX);
        let outcomes = run("testing", &jobs(2), 3, &Traces::new(), &Echo, &notes).unwrap();
        let rows: Vec<JobOutcome> = outcomes.jobs.into_iter().flatten().collect();
        assert_eq!((rows.len(), outcomes.failed.len()), (2, 0));
        assert!(rows.iter().all(|row| row.run.throughput_mbps == 2.0 && row.run.spread.unwrap().n == 3));
        assert!(rows.iter().all(|row| row.first.run.seed == 1));
        assert_eq!(*notes.begun.lock().unwrap(), [("testing".to_string(), 6)]);
        assert_eq!(notes.steps.load(Ordering::SeqCst), 6);
    }

    #[test]
    fn no_run_begins_once_the_caller_asks_to_stop() {
        let notes = Notes::until(1);
        let error = run("testing", &jobs(1), 1000, &Traces::new(), &Echo, &notes).unwrap_err();
        assert!(matches!(error, Error::Cancelled) && !error.is_input());
        // As many as there are threads were on their way.
        assert!(notes.steps.load(Ordering::SeqCst) < 1000);
    }

    #[test]
    fn a_run_that_fails_says_which_and_why() {
        let error = run("testing", &jobs(1), 1, &Traces::new(), &Fails, &()).unwrap_err();
        assert_eq!(error.to_string(), "job 0, seed 1: no");
        let error = run("testing", &jobs(1), 0, &Traces::new(), &Echo, &()).unwrap_err();
        assert_eq!(error.to_string(), "job 0: there was no run");
    }

    /// A stack that panics with some seeds.
    struct Panics(u64);

    impl Runner for Panics {
        fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause> {
            if scenario.seed < self.0 {
                return Echo.run(scenario, traces);
            }
            let (flow, controller) = ("a".to_string(), "toy/cubic".to_string());
            let reason = "it panicked: no".to_string();
            Err(RunError::Stack { flow, controller, at: Time::from_secs(2), reason }.into())
        }
    }

    #[test]
    fn a_run_that_a_stack_ends_fails_alone() {
        let outcomes = run("testing", &jobs(2), 3, &Traces::new(), &Panics(3), &()).unwrap();
        let rows: Vec<usize> = outcomes.jobs.iter().flatten().map(|row| row.every.len()).collect();
        assert_eq!(rows, [2, 2]);
        let failed = "seed 3: flow `a` (toy/cubic), at 2.000000 s: it panicked: no";
        assert_eq!(outcomes.failed, [0, 1].map(|job| format!("job {job}, {failed}")));
        // Where none is left.
        let error = run("testing", &jobs(2), 3, &Traces::new(), &Panics(1), &()).unwrap_err();
        assert!(error.to_string().starts_with("job 0, seed 1: flow `a` (toy/cubic)"), "{error}");
        assert!(error.is_of_one_run() && !error.is_input());
    }

    /// 30e9 * 1e-9 is 30.000000000000004.
    #[test]
    fn a_place_of_whole_seconds_is_a_whole_number() {
        for seconds in [0, 7, 30, 60, 140] {
            let scenario = Scenario {
                trace_offset: TraceOffset::At(Duration::from_secs(seconds)),
                ..jobs(1)[0].scenario.clone()
            };
            assert_eq!(begins(&scenario, &Traces::new()), Some(seconds as f64));
        }
    }
}
