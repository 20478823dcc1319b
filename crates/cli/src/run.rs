//! `run`: one scenario file.

use std::collections::BTreeMap;
use std::path::Path;

use brakelight_core::registry::Host;
use brakelight_emulator::invoker::AsInvoker;
use brakelight_emulator::supervisor::Janitor;
use brakelight_scenario::documents::{Origin, Runs};
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scenario::{FlowSpec, Hop, Scenario, Service};
use brakelight_scenario::trace::names::Names;
use brakelight_scenario::{file, input, scenario};
use brakelight_sim::Traces;

use crate::arguments::{self, Arena, Format, HostName, Logs};
use crate::compare::seeds;
use crate::emulated;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::origin;
use crate::output::{self, Outputs};
use crate::quinn;
use crate::report::{Recorded, Report};
use crate::simulate::{self, Job, Result as JobResult, Runner};
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number, number_or_dash};

/// Runs the command.
pub fn execute(arguments: &arguments::Run) -> Result<(), Failure> {
    let user = AsInvoker::begin();
    let mut scenario = read(&arguments.scenario)?;
    let runner = match arguments.host {
        Some(host) => set_host(&mut scenario, host)
            .map_err(|fault| Failure::input(format!("{}: {fault}", arguments.scenario.display())))?,
        None => brakelight_sim::run,
    };
    let logs = output::merge(arguments.logs, scenario.record.series, scenario.record.link_logs);
    scenario.record.series = arguments.out.is_some();
    scenario.record.link_logs = logs.link_logs && arguments.out.is_some();
    let names = Names::from_environment().map_err(Failure::input)?;
    let traces = load_traces(&mut scenario, &arguments.scenario, &names)?;
    drop(user);
    let origin = origin::origin(scenario.seed);
    let jobs = [Job { label: scenario.name.clone(), scenario, names: None }];
    let mut janitor = None;
    let (folder, results) = match arguments.on {
        Arena::Simulator => {
            simulate::check_cost(&jobs, &traces, arguments.force)?;
            let folder = arguments.out.as_deref().map(Folder::create).transpose()?;
            (folder, simulate::all_by(runner, "running", &jobs, arguments.runs, &traces)?)
        }
        Arena::Emulator => {
            let scenario = &jobs[0].scenario;
            // Refused before anything is made.
            let hosts = emulated::hosts(arguments.host.unwrap_or(HostName::Tcp))?;
            emulated::check(scenario, &traces, hosts.clone()).map_err(|mut error| {
                error.file = Some(arguments.scenario.display().to_string());
                error
            })?;
            emulated::check_hosts(&hosts)?;
            let folder = arguments.out.as_deref().map(Folder::create).transpose()?;
            let watch = |(staging, parents): (&Path, _)| Janitor::watch(staging, parents);
            let watched = folder.as_ref().map(|folder| watch(folder.in_the_making()));
            janitor = watched.transpose().map_err(Failure::run)?;
            let (seeds, command) = (arguments.runs, origin.command.as_str());
            let result = emulated::scenario(scenario, &traces, &hosts, seeds, folder.as_ref(), command)?;
            (folder, vec![result])
        }
    };
    let runs: Vec<Run> = results.iter().map(|result| result.run.clone()).collect();
    let document = Runs { origin, runs };
    if let Some(folder) = folder {
        let report = report(arguments, &jobs[0].scenario, &document.origin, &document.runs, &results);
        let logs = if arguments.on == Arena::Emulator { Logs { link_logs: false, ..logs } } else { logs };
        output::write(folder, &Outputs { document: &document, report: &report, results: &results, logs })?;
    }
    drop(janitor);
    match arguments.format {
        Format::Json => text::print_json(&document),
        Format::Csv => text::print(&text::csv::runs(&document.runs)),
        Format::Table => text::print(&tables(&document.runs, &Screen::standard_output())),
    }
}

/// The scenario in a file.
pub(crate) fn read(path: &Path) -> Result<Scenario, Failure> {
    Ok(file::read(&path.display().to_string(), &text_of(path, "a scenario")?)?)
}

/// The text of the file at `path`, which should be `what`.
pub(crate) fn text_of(path: &Path, what: &str) -> Result<String, Failure> {
    let shown = path.display();
    let bytes = input::read(path, input::DOCUMENT)
        .map_err(|error| Failure::input(format!("{shown}: {error}; give {what} file that can be read")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Failure::input(format!("{shown}:{line}: not UTF-8 text; {what} is a TOML file"))
    })
}

/// Gives every flow another host, with its sizes of payload and headers, and says how to run it; or which flow cannot have
/// it, and why.
pub(crate) fn set_host(scenario: &mut Scenario, host: HostName) -> Result<Runner, String> {
    let profile = match host {
        HostName::Tcp => Host::Tcp,
        HostName::Quic | HostName::Quinn => Host::Quic,
    };
    for flow in &mut scenario.flows {
        if flow.host != profile {
            let was_default = (flow.mss, flow.overhead) == scenario::packet_sizes(flow.host);
            flow.host = profile;
            if was_default {
                (flow.mss, flow.overhead) = scenario::packet_sizes(profile);
            }
        }
    }
    if host != HostName::Quinn {
        return Ok(brakelight_sim::run);
    }
    quinn::check(scenario)?;
    Ok(quinn::run)
}

/// Loads the traces that links name: known names, or files, as seen from the scenario's own folder or from here.
pub(crate) fn load_traces(scenario: &mut Scenario, path: &Path, names: &Names) -> Result<Traces, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut traces = Traces::new();
    for link in &scenario.links {
        let Service::Trace(name) = &link.service else { continue };
        if traces.contains_key(name) {
            continue;
        }
        let beside = folder.join(name);
        let known = names.list().iter().any(|known| known == name);
        let loaded = if !known && beside.is_file() {
            brakelight_scenario::trace::names::read(&beside)
        } else {
            names.load(name)
        };
        let trace = loaded.map_err(|error| {
            Failure::input(format!("{}: link `{}`: trace: {error}", path.display(), link.name))
        })?;
        traces.insert(name.clone(), trace);
    }
    Ok(traces)
}

fn report<'a>(
    arguments: &arguments::Run,
    scenario: &Scenario,
    origin: &'a Origin,
    runs: &'a [Run],
    results: &'a [JobResult],
) -> Report<'a> {
    let setting = vec![
        ("links".to_string(), scenario.links.len().to_string()),
        ("flows".to_string(), scenario.flow_count().to_string()),
        ("duration".to_string(), scenario.duration.to_string()),
        ("measured from".to_string(), scenario.measure_from.to_string()),
        ("seed".to_string(), seeds(scenario.seed, arguments.runs)),
    ];
    let recorded = results.iter().enumerate().filter_map(|(run, result)| {
        let series = result.first.series.as_ref()?;
        Some(Recorded { run, series, links: series.links.len(), paths: paths(scenario) })
    });
    Report {
        title: scenario.name.clone(),
        setting,
        notes: runs.iter().flat_map(emulated::notes).collect(),
        origin,
        runs,
        series: recorded.collect(),
        reference: None,
    }
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

/// A table of the links, one of the flows, and what applications saw.
fn tables(runs: &[Run], screen: &Screen) -> String {
    let mut text = String::new();
    for run in runs {
        text += &one_run(run, screen);
    }
    text
}

fn one_run(run: &Run, screen: &Screen) -> String {
    let mut text = format!("{}  {}\n", screen.bold(&run.scheme), screen.dim(&facts(run)));
    let columns = [
        Column::text("link"),
        Column::text("queue"),
        Column::number("capacity", "Mbit/s"),
        Column::number("throughput", "Mbit/s"),
        Column::number("used", "%"),
        Column::number("queueing", "mean ms"),
        Column::number("p50", "ms"),
        Column::number("p95", "ms"),
        Column::number("p99", "ms"),
        Column::number("dropped", "packets"),
    ];
    let rows: Vec<Vec<String>> = run
        .links
        .iter()
        .map(|link| {
            let delay = link.queueing_delay_ms;
            vec![
                link.name.clone(),
                link.queue.clone(),
                number(link.capacity_mbps),
                number(link.throughput_mbps),
                format!("{:.1}", 100.0 * link.utilization),
                number_or_dash(delay.map(|d| d.mean)),
                number_or_dash(delay.map(|d| d.p50)),
                number_or_dash(delay.map(|d| d.p95)),
                number_or_dash(delay.map(|d| d.p99)),
                link.dropped_packets.to_string(),
            ]
        })
        .collect();
    text += &format!("{}\n", table::render(&columns, &rows, screen));
    let mut columns = vec![
        Column::text("flow"),
        Column::text("controller"),
        Column::number("throughput", "Mbit/s"),
        Column::number("goodput", "Mbit/s"),
        Column::number("RTT", "p50 ms"),
        Column::number("RTT", "p95 ms"),
        Column::number("loss", "%"),
        Column::number("sent again", "packets"),
    ];
    let applications = run.flows.iter().any(|flow| flow.application.is_some());
    if applications {
        columns.push(Column::text("application"));
    }
    let shown = run.flows.iter().take(MOST_ROWS);
    let rows: Vec<Vec<String>> = shown
        .map(|flow| {
            let mut row = vec![
                flow.name.clone(),
                flow.controller.clone(),
                number(flow.throughput_mbps),
                number(flow.goodput_mbps),
                number_or_dash(flow.rtt_ms.map(|rtt| rtt.p50)),
                number_or_dash(flow.rtt_ms.map(|rtt| rtt.p95)),
                number(flow.loss_percent),
                flow.retransmitted_packets.to_string(),
            ];
            if applications {
                row.push(flow.application.as_ref().map_or_else(String::new, describe));
            }
            row
        })
        .collect();
    text += &table::render(&columns, &rows, screen);
    if run.flows.len() > MOST_ROWS {
        text += &format!("and {} more flows: --format json shows all\n", run.flows.len() - MOST_ROWS);
    }
    text
}

/// Flows in a table for people.
const MOST_ROWS: usize = 40;

fn facts(run: &Run) -> String {
    let mut facts = vec![
        format!(
            "{} Mbit/s of {} ({:.1} %)",
            number(run.throughput_mbps),
            number(run.capacity_mbps),
            100.0 * run.utilization
        ),
        format!("goodput {} Mbit/s", number(run.goodput_mbps)),
        format!("p95 queueing delay {} ms", number_or_dash(run.queueing_delay_ms.map(|delay| delay.p95))),
        format!("loss {} %", number(run.loss_percent)),
    ];
    facts.extend(run.jain.map(|jain| format!("Jain {jain:.3}")));
    facts.extend(run.spread.map(|spread| format!("medians of {}", spread.n)));
    facts.extend(run.lateness_ms.map(|late| format!("late by {} ms at p99", number(late.p99))));
    facts.extend(run.unreliable.then(|| "UNRELIABLE".to_string()));
    facts.join(", ")
}

/// What an application saw, in words: `completed 12, response_p95_ms 340`.
fn describe(application: &BTreeMap<String, f64>) -> String {
    let parts = application.iter().map(|(name, value)| {
        if value.fract() == 0.0 && value.abs() < 1e15 {
            format!("{name} {value}")
        } else {
            format!("{name} {}", number(*value))
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}
