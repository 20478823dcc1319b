//! One scenario, with one or several seeds.

use brakelight_registry::Host;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::routers;
use brakelight_scenario::scenario::{self, FlowSpec, Hop, Scenario};
use brakelight_sim::Traces;

use crate::error::Error;
use crate::jobs::{self, Job, JobOutcome, Outcomes};
use crate::progress::Progress;
use crate::runner::Runner;
use crate::setup::runs_in_words;
use crate::table::{Drawn, Table};

/// Runs `scenario` with `runs` seeds, from its own upwards. The table has one row: the run, or the medians.
pub fn run(
    scenario: &Scenario,
    traces: &Traces,
    runs: u32,
    runner: &dyn Runner,
    progress: &dyn Progress,
) -> Result<Table, Error> {
    let jobs = [Job { label: scenario.name.clone(), scenario: scenario.clone(), compared: None }];
    let Outcomes { jobs, failed } = jobs::run("running", &jobs, runs, traces, runner, progress)?;
    let mut table = Table { failed, ..table(scenario, runs, jobs.into_iter().flatten().collect()) };
    table.caveats.extend(table.runs.iter().flat_map(|run| run.unreliable_because.clone()));
    Ok(table)
}

/// Returns the table of runs of `scenario` with `runs` seeds that were made elsewhere.
pub fn table(scenario: &Scenario, runs: u32, results: Vec<JobOutcome>) -> Table {
    let setting = vec![
        ("links".to_string(), scenario.links.len().to_string()),
        ("flows".to_string(), scenario.flow_count().to_string()),
        ("duration".to_string(), scenario.duration.to_string()),
        ("measured from".to_string(), scenario.measure_from.to_string()),
        ("runs".to_string(), runs_in_words(scenario.seed, runs)),
    ];
    let table = Table::of(results, &Drawn { links: scenario.links.len(), paths: paths(scenario) });
    let notes = table.runs.iter().flat_map(notes).collect();
    let mut caveats = routers::misread_flows(scenario);
    caveats.extend(routers::unmarked_flows(scenario));
    Table { title: scenario.name.clone(), setting, caveats, notes, ..table }
}

/// Gives every flow another host, with its sizes of payload and headers.
pub fn set_host(scenario: &mut Scenario, host: Host) {
    for flow in &mut scenario.flows {
        if flow.host != host {
            let was_default = (flow.mss, flow.overhead) == scenario::packet_sizes(flow.host);
            flow.host = host;
            if was_default {
                (flow.mss, flow.overhead) = scenario::packet_sizes(host);
            }
        }
    }
}

/// Returns what a report should say of a run: whether it is to be trusted, and how late packets were. Nothing
/// of a simulated one.
pub fn notes(run: &Run) -> Vec<String> {
    let mut notes: Vec<String> =
        run.unreliable_because.iter().map(|reason| format!("Unreliable: {reason}.")).collect();
    notes.extend(run.lateness_ms.map(|late| {
        format!(
            "Packets were handed over {:.3} ms (median), {:.3} ms (99th percentile), {:.3} ms (most) later than they were due.",
            late.p50, late.p99, late.max
        )
    }));
    notes
}

/// For every flow, the places of the links that its data pass.
fn paths(scenario: &Scenario) -> Vec<Vec<usize>> {
    let path = |flow: &FlowSpec| {
        let links = flow.path.iter().filter_map(|hop| match hop {
            Hop::Link(name) => scenario.link(name),
            Hop::Element(_) => None,
        });
        links.collect::<Vec<_>>()
    };
    scenario.flows.iter().flat_map(|flow| vec![path(flow); flow.count as usize]).collect()
}
