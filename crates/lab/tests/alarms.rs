//! How often `--against` raises an alarm where nothing but the random numbers differ, and whether it finds
//! what is planted in the same runs.

use brakelight_lab::error::Cause;
use brakelight_lab::evaluate::{Level, Plan, against};
use brakelight_lab::{Runner, Simulator};
use brakelight_registry::Registry;
use brakelight_scenario::documents::Evaluation;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

/// Evaluations, each with seeds of its own: 105 pairs of an earlier and a later one.
const EVALUATIONS: u64 = 15;

/// Seeds that an evaluation uses.
const SEEDS: u64 = 10;

/// The simulator with other seeds, and a plant: factors of what the tested scheme reaches.
struct Reseeded {
    /// How many evaluations came before, each with seeds of its own.
    by: u64,
    throughput: f64,
    delay: f64,
}

impl Reseeded {
    fn unchanged(by: u64) -> Self {
        Reseeded { by, throughput: 1.0, delay: 1.0 }
    }
}

impl Runner for Reseeded {
    fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause> {
        let seed = scenario.seed + SEEDS * self.by;
        let mut outcome = Simulator.run(&Scenario { seed, ..scenario.clone() }, traces)?;
        if scenario.flows.iter().all(|flow| flow.controller.name() == "westwood") {
            let run = &mut outcome.run;
            run.utilization *= self.throughput;
            run.goodput_mbps *= self.throughput;
            if let Some(delay) = &mut run.queueing_delay_ms {
                delay.p95 *= self.delay;
            }
        }
        Ok(outcome)
    }
}

/// Evaluates Westwood+ by the criteria of `files`.
fn evaluated(files: &[&str], runner: &Reseeded) -> Evaluation {
    let scheme = Scheme::parse("westwood").unwrap();
    let mut plan = Plan::new(&Registry::standard(), "rfc9743", Level::Quick, &[scheme]).unwrap();
    plan.retain(|_, file| files.contains(&file));
    plan.run(runner, &Names::default(), &()).unwrap()
}

/// The criteria that became worse from `before` to `after`.
fn alarms(before: &Evaluation, after: &Evaluation) -> Vec<String> {
    let mut after = after.clone();
    against(&mut after, before).unwrap();
    let criteria = after.schemes.remove(0).criteria.into_iter();
    criteria.filter(|criterion| criterion.regression.is_some()).map(|criterion| criterion.id).collect()
}

/// These measures differ most from seed to seed: by a factor of a hundred in 5.1.1-backoff.
#[test]
fn other_random_numbers_raise_no_alarm() {
    let files = ["5.1.1-backoff", "5.1.1-overload", "7.4-constrained"];
    let evaluations: Vec<Evaluation> =
        (0..EVALUATIONS).map(|by| evaluated(&files, &Reseeded::unchanged(by))).collect();
    let mut alarmed = Vec::new();
    for (place, before) in evaluations.iter().enumerate() {
        for (other, after) in evaluations.iter().enumerate().skip(place + 1) {
            let alarms = alarms(before, after);
            if !alarms.is_empty() {
                alarmed.push((place, other, alarms));
            }
        }
    }
    assert_eq!(alarmed, [], "of 105 pairs");
}

#[test]
fn three_percent_of_throughput_and_ten_of_delay_are_found_in_simulated_runs() {
    let files = ["6.1-taildrop"];
    let before = evaluated(&files, &Reseeded::unchanged(0));
    assert_eq!(alarms(&before, &before), Vec::<String>::new());
    let after = evaluated(&files, &Reseeded { by: 0, throughput: 0.97, delay: 1.1 });
    assert_eq!(alarms(&before, &after), ["6.1-utilization", "6.1-delay"]);
}
