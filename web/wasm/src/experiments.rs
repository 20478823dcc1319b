//! The papers' claims and their scenarios.

use brakelight::core::time::Duration;
use brakelight::scenario::experiment::{self, EMBEDDED, Experiment, Job};
use brakelight::scenario::file;
use brakelight::scenario::scenario::{Scenario, Service};
use serde_json::{Value, json};

use crate::traces::{Shelf, stand_in};

fn read(file: &str) -> Result<Experiment, String> {
    let found = EMBEDDED.iter().find(|(name, _)| *name == file);
    let (name, text) = found.ok_or_else(|| format!("there is no experiment `{file}`"))?;
    experiment::read(name, text).map_err(|error| error.to_string())
}

/// Returns the scenarios of one experiment that have its first seed: a label and the text of a file each. A
/// recording that is not there is replaced by an embedded trace, which `stand_ins` says.
pub fn scenarios(file: &str, shelf: &Shelf) -> Result<Value, String> {
    let experiment = read(file)?;
    let mut stand_ins: Vec<[String; 2]> = Vec::new();
    let mut found = Vec::new();
    for job in opened(&experiment) {
        let scenario = load(job, shelf, &mut stand_ins);
        found.push(json!({ "label": scenario.name, "toml": file::write(&scenario) }));
    }
    Ok(json!({
        "id": experiment.id, "title": experiment.title, "source": experiment.source, "note": experiment.note,
        "scenarios": found, "stand_ins": stand_ins,
    }))
}

/// The jobs of an experiment that have its first seed.
fn opened(experiment: &Experiment) -> impl Iterator<Item = &Job> {
    let first = experiment.jobs.iter().map(|job| job.scenario.seed).min();
    experiment.jobs.iter().filter(move |job| Some(job.scenario.seed) == first)
}

/// Returns the scenario of a job on traces that are there, its buffer sized by them.
fn load(job: &Job, shelf: &Shelf, stand_ins: &mut Vec<[String; 2]>) -> Scenario {
    let mut job = job.clone();
    replace_recordings(&mut job.scenario, shelf, stand_ins);
    job.size_buffer(|name| shelf.find(name).ok());
    job.scenario
}

fn replace_recordings(scenario: &mut Scenario, shelf: &Shelf, stand_ins: &mut Vec<[String; 2]>) {
    for link in &mut scenario.links {
        if let Service::Trace(name) = &mut link.service
            && !shelf.has(name)
        {
            let replaced = [name.clone(), stand_in(name).to_string()];
            name.clone_from(&replaced[1]);
            if !stand_ins.contains(&replaced) {
                stand_ins.push(replaced);
            }
        }
    }
}

/// Returns scenarios to hold the module against the command with: those that the page opens for every
/// experiment, at most `most` of each, evenly spaced, cut to `longest`.
pub fn samples(most: usize, longest: Duration) -> Result<Vec<Scenario>, String> {
    let shelf = Shelf::new();
    let mut samples = Vec::new();
    for (file, text) in EMBEDDED {
        let experiment = experiment::read(file, text).map_err(|error| error.to_string())?;
        let opened: Vec<&Job> = opened(&experiment).collect();
        for job in opened.iter().step_by(opened.len().div_ceil(most.max(1)).max(1)) {
            let mut scenario = load(job, &shelf, &mut Vec::new());
            cut(&mut scenario, longest);
            scenario.name = format!("{}: {}", experiment.id, scenario.name);
            samples.push(scenario);
        }
    }
    Ok(samples)
}

/// Makes a scenario at most so long; what begins later begins at half of that.
fn cut(scenario: &mut Scenario, longest: Duration) {
    let duration = scenario.duration.min(longest);
    scenario.duration = duration;
    scenario.measure_from = scenario.measure_from.min(duration / 2);
    let measured = duration - scenario.measure_from;
    scenario.record.unfairness = scenario.record.unfairness.map(|window| window.min(measured));
    for link in &mut scenario.links {
        link.restarts.retain(|restart| restart.at + restart.down < duration);
    }
    for flow in &mut scenario.flows {
        flow.start = flow.start.min(duration / 2);
        flow.stop = flow.stop.filter(|stop| flow.start < *stop && *stop < duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brakelight::core::units::Limit;
    use brakelight::scenario::compare::FORWARD;
    use brakelight::scenario::trace::OPPORTUNITY;

    #[test]
    fn a_buffer_in_bandwidth_delay_products_depends_on_the_trace_and_the_round_trip() {
        let found = scenarios("adapt-recordings.toml", &Shelf::new()).unwrap();
        let buffers = found["scenarios"].as_array().unwrap().iter().map(|found| {
            let scenario = file::read("a file", found["toml"].as_str().unwrap()).unwrap();
            let link = scenario.links.iter().find(|link| link.name == FORWARD).unwrap();
            let Service::Trace(trace) = &link.service else { panic!("a trace") };
            let rtt = scenario.flows[0].rtt;
            let rate = Shelf::new().find(trace).unwrap().mean_rate(OPPORTUNITY);
            let Limit::Packets(packets) = link.buffer else { panic!("a buffer in packets") };
            (f64::from(packets), 4.0 * rate.bytes_in(rtt).as_f64() / OPPORTUNITY.as_f64())
        });
        for (packets, expected) in buffers {
            assert!((packets - expected).abs() <= 1.0, "{packets} packets, {expected} expected");
        }
    }
}
