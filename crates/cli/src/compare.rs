//! `compare`: every scheme on every trace.

use std::path::Path;

use brakelight_core::path::trace::Trace;
use brakelight_core::registry::Host;
use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::documents::{Origin, Runs};
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scenario::{Record, default_bin};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::embedded::EMBEDDED;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

use crate::arguments::{self, Format};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::output::{self, Outputs};
use crate::report::{Recorded, Report};
use crate::simulate::{self, Job, Result as JobResult};
use crate::text::scatter::{self, Point};
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number, number_or_dash};
use crate::{origin, schemes, summary};

/// Runs the command.
pub fn execute(arguments: &arguments::Compare) -> Result<(), Failure> {
    let comparison = Comparison::plan(arguments)?;
    simulate::check_cost(&comparison.jobs, &comparison.traces, arguments.force)?;
    let folder = arguments.out.as_deref().map(Folder::create).transpose()?;
    let results = simulate::all("comparing", &comparison.jobs, arguments.runs, &comparison.traces)?;
    let runs: Vec<Run> = results.iter().map(|result| result.run.clone()).collect();
    let document = Runs { origin: origin::origin(arguments.seed), runs };
    if let Some(folder) = folder {
        let report = comparison.report(arguments, &document.origin, &document.runs, &results);
        let outputs =
            Outputs { document: &document, report: &report, results: &results, logs: arguments.logs };
        output::write(folder, &outputs)?;
    }
    match arguments.format {
        Format::Json => text::print_json(&document),
        Format::Csv => text::print(&text::csv::runs(&document.runs)),
        Format::Table => {
            let screen = Screen::standard_output();
            text::print(&tables(&document.runs, &comparison.notes, &screen))
        }
    }
}

/// What is to be run.
#[derive(Debug)]
struct Comparison {
    schemes: Vec<Scheme>,
    /// One per trace and scheme, the schemes of a trace together.
    jobs: Vec<Job>,
    traces: Traces,
    notes: Vec<String>,
}

impl Comparison {
    /// Reads and checks everything before anything runs.
    fn plan(arguments: &arguments::Compare) -> Result<Self, Failure> {
        let schemes = match &arguments.schemes {
            Some(list) => {
                Scheme::parse_list(list).map_err(|error| Failure::input(format!("--schemes: {error}")))?
            }
            None => schemes::defaults(),
        };
        let against = arguments.against.as_deref().map(Scheme::parse).transpose();
        let against = against.map_err(|error| Failure::input(format!("--against: {error}")))?;
        let names = Names::from_environment().map_err(Failure::input)?;
        let given = match arguments.traces.as_slice() {
            [] => EMBEDDED.iter().filter(|trace| trace.default).map(|trace| trace.name.to_string()).collect(),
            given => given.to_vec(),
        };
        let labels = labels(&given)?;
        let mut traces = Traces::new();
        let mut jobs = Vec::new();
        let mut shallow = Vec::new();
        for (name, label) in given.iter().zip(&labels) {
            let trace = names.load(name).map_err(|error| Failure::input(format!("--trace: {error}")))?;
            shallow.extend(shallow_buffer(label, &trace, arguments));
            traces.insert(label.clone(), trace);
            for scheme in &schemes {
                let compare = Compare {
                    rtt: arguments.rtt,
                    buffer: arguments.buffer,
                    duration: arguments.duration,
                    seed: arguments.seed,
                    trace_offset: arguments.trace_offset,
                    against: against.clone(),
                    record: Record {
                        series: arguments.out.is_some(),
                        bin: default_bin(arguments.duration).min(arguments.duration),
                        link_logs: arguments.logs.link_logs,
                        ..Record::summary(arguments.duration)
                    },
                    ..Compare::new(scheme.clone(), label)
                };
                jobs.push(Job {
                    label: format!("{scheme} on {label}"),
                    scenario: compare.scenario()?,
                    names: Some((scheme.to_string(), label.clone())),
                });
            }
        }
        let mut notes = notes(&schemes, against.as_ref());
        notes.extend(shallow);
        Ok(Comparison { schemes, jobs, traces, notes })
    }

    fn report<'a>(
        &self,
        arguments: &arguments::Compare,
        origin: &'a Origin,
        runs: &'a [Run],
        results: &'a [JobResult],
    ) -> Report<'a> {
        let series = results.iter().enumerate();
        let mut setting = vec![
            ("RTT".to_string(), arguments.rtt.to_string()),
            ("buffer".to_string(), arguments.buffer.to_string()),
            ("duration".to_string(), arguments.duration.to_string()),
            ("seed".to_string(), seeds(arguments.seed, arguments.runs)),
            ("traces from".to_string(), simulate::describe_offset(arguments.trace_offset)),
        ];
        if let Some(against) = &arguments.against {
            setting.push(("against".to_string(), against.clone()));
        }
        Report {
            title: format!(
                "{} on {}",
                text::count(self.schemes.len(), "scheme", "schemes"),
                text::count(self.traces.len(), "trace", "traces")
            ),
            setting,
            notes: self.notes.clone(),
            origin,
            runs,
            // The way back is not what the comparison is about.
            series: series
                .filter_map(|(run, result)| {
                    Some(Recorded { run, series: result.first.series.as_ref()?, links: 1, paths: Vec::new() })
                })
                .collect(),
            reference: runs.first().map(|run| run.scheme.as_str()).filter(|_| self.schemes.len() > 1),
        }
    }
}

/// `7`, or `7 to 16`.
pub fn seeds(first: u64, runs: u32) -> String {
    match runs {
        1 => first.to_string(),
        _ => format!("{first} to {}, medians", first.wrapping_add(u64::from(runs - 1))),
    }
}

/// What traces are called in results: a file by its name, unless two would be called the same.
fn labels(given: &[String]) -> Result<Vec<String>, Failure> {
    if let Some(twice) = given.iter().enumerate().find(|(i, name)| given[..*i].contains(name)) {
        return Err(Failure::input(format!("--trace: `{}` is there twice; give every trace once", twice.1)));
    }
    let short = |name: &String| {
        let file = Path::new(name).file_name();
        file.map_or_else(|| name.clone(), |file| file.to_string_lossy().into_owned())
    };
    let shorts: Vec<String> = given.iter().map(short).collect();
    let unique = |name: &String| shorts.iter().filter(|other| *other == name).count() == 1;
    Ok(given
        .iter()
        .zip(&shorts)
        .map(|(name, short)| if unique(short) { short.clone() } else { name.clone() })
        .collect())
}

/// What a reader must know of the settings: presets, host profiles, a competitor.
fn notes(schemes: &[Scheme], against: Option<&Scheme>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in schemes.iter().flat_map(|scheme| scheme.notes()) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let quic: Vec<String> = schemes
        .iter()
        .filter(|scheme| scheme.host() == Host::Quic)
        .map(|scheme| format!("`{scheme}`"))
        .collect();
    if !quic.is_empty() {
        notes.push(format!(
            "hosts: {} with the profile `quic` (RFC 9002), all others with `tcp`",
            quic.join(", ")
        ));
    }
    if let Some(against) = against {
        notes.push(format!("every scheme shares its queue with one flow of `{against}`"));
    }
    notes
}

/// Below this share of a path's bandwidth-delay product a buffer decides more than any scheme.
const SHALLOW: f64 = 0.5;

/// A remark on a buffer that is small for its trace.
fn shallow_buffer(label: &str, trace: &Trace, arguments: &arguments::Compare) -> Option<String> {
    let product = trace.mean_rate(OPPORTUNITY).bytes_in(arguments.rtt).as_f64();
    let buffer = match arguments.buffer {
        Limit::Packets(packets) => f64::from(packets) * OPPORTUNITY.as_f64(),
        Limit::Bytes(bytes) => bytes.as_f64(),
    };
    (buffer < SHALLOW * product).then(|| {
        format!(
            "{label}: a buffer of {} is {:.2} of the bandwidth-delay product; every scheme that probes by losses, and ABC's second window, starves: --buffer {}kB would hold one",
            arguments.buffer,
            buffer / product,
            (product / 1e3).ceil()
        )
    })
}

/// The drawing, a table per trace, the table over all traces, the notes.
fn tables(runs: &[Run], notes: &[String], screen: &Screen) -> String {
    let traces = summary::distinct(runs, |run| &run.trace);
    let reference = runs.first().map(|run| run.scheme.as_str());
    let overall = summary::overall(runs, reference);
    let mut text = String::new();
    if screen.terminal {
        let point = |row: &'_ summary::Overall| Point {
            name: row.scheme.clone(),
            delay_ms: row.p95_ms.unwrap_or(0.0),
            utilization: row.utilization,
            pareto: row.pareto,
        };
        let points: Vec<Point> = overall.iter().map(point).collect();
        let drawing = scatter::render(&points, screen);
        if !drawing.is_empty() {
            let over = if traces.len() > 1 { "means over all traces, " } else { "" };
            text += &format!("Utilisation against delay; {over}* on the Pareto frontier\n\n{drawing}\n");
        }
    }
    for trace in &traces {
        text += &one_trace(trace, runs, screen);
        text.push('\n');
    }
    if traces.len() > 1 {
        text += &all_traces(&overall, traces.len(), reference, screen);
        text.push('\n');
    }
    text += &screen.dim("Best power first: throughput over the 95th percentile of the one-way delay.");
    text +=
        "\n* on the Pareto frontier: no other scheme has both more throughput and less p95 queueing delay.\n";
    for note in notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn one_trace(trace: &str, runs: &[Run], screen: &Screen) -> String {
    let rows = summary::on_trace(runs, trace);
    let points: Vec<_> =
        rows.iter().map(|run| summary::p95(run).map(|delay| (delay, run.utilization))).collect();
    let pareto = summary::pareto(&points);
    let spread = rows.iter().any(|run| run.spread.is_some());
    let shared = rows.iter().any(|run| run.jain.is_some());
    let mut columns = vec![
        Column::text("scheme"),
        Column::number("throughput", "Mbit/s"),
        Column::number("used", "%"),
        Column::number("queueing", "mean ms"),
        Column::number("p50", "ms"),
        Column::number("p95", "ms"),
        Column::number("p99", "ms"),
        Column::number("loss", "%"),
    ];
    if spread {
        columns.push(Column::number("throughput", "low-high"));
        columns.push(Column::number("p95", "low-high"));
    }
    if shared {
        columns.push(Column::number("own share", "Mbit/s"));
    }
    let table: Vec<Vec<String>> = rows
        .iter()
        .zip(&pareto)
        .map(|(run, pareto)| {
            let delay = |value: fn(&brakelight_scenario::outcome::Summary) -> f64| {
                number_or_dash(run.queueing_delay_ms.as_ref().map(value))
            };
            let mut row = vec![
                format!("{}{}", run.scheme, if *pareto { " *" } else { "" }),
                number(run.throughput_mbps),
                format!("{:.1}", 100.0 * run.utilization),
                delay(|d| d.mean),
                delay(|d| d.p50),
                delay(|d| d.p95),
                delay(|d| d.p99),
                number(run.loss_percent),
            ];
            if spread {
                let range = |[low, high]: [f64; 2]| format!("{}-{}", number(low), number(high));
                row.push(run.spread.map_or_else(|| "–".into(), |spread| range(spread.throughput_mbps)));
                row.push(run.spread.map_or_else(|| "–".into(), |spread| range(spread.p95_ms)));
            }
            if shared {
                row.push(number_or_dash(run.flows.first().map(|flow| flow.throughput_mbps)));
            }
            row
        })
        .collect();
    let capacity = rows.first().map_or(0.0, |run| run.capacity_mbps);
    let seconds = rows.first().map_or(0.0, |run| run.duration_s);
    let facts = format!("{} Mbit/s on average, {}", number(capacity), Duration::from_secs_f64(seconds));
    format!("{}  {}\n{}", screen.bold(trace), screen.dim(&facts), table::render(&columns, &table, screen))
}

fn all_traces(
    overall: &[summary::Overall],
    traces: usize,
    reference: Option<&str>,
    screen: &Screen,
) -> String {
    let reference = reference.unwrap_or_default();
    let columns = [
        Column::text("scheme"),
        Column::number("power", "best = 1"),
        Column::number("used", "%"),
        Column::number("queueing", "p95 ms"),
        Column::number("one-way", "p95 ms"),
        Column::number("throughput", &format!("/ {reference}")),
        Column::number("p95", &format!("/ {reference}")),
        Column::number("loss", "%"),
    ];
    let rows: Vec<Vec<String>> = overall
        .iter()
        .map(|row| {
            vec![
                format!("{}{}", row.scheme, if row.pareto { " *" } else { "" }),
                number_or_dash(row.power),
                format!("{:.1}", 100.0 * row.utilization),
                number_or_dash(row.p95_ms),
                number_or_dash(row.one_way_p95_ms),
                number_or_dash(row.throughput_ratio),
                number_or_dash(row.p95_ratio),
                number(row.loss_percent),
            ]
        })
        .collect();
    let facts = format!("means over {}", text::count(traces, "trace", "traces"));
    format!(
        "{}  {}\n{}",
        screen.bold("All traces"),
        screen.dim(&facts),
        table::render(&columns, &rows, screen)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_answer_stands_first_in_every_table_and_the_last_table_is_about_all_traces() {
        let runs: Vec<Run> = testing::outcomes(1).into_iter().map(|outcome| outcome.run).collect();
        let screen = Screen { width: 80, terminal: true, colour: false };
        insta::assert_snapshot!(tables(&runs, &["codel: target = 50ms".to_string()], &screen));
    }

    #[test]
    fn files_go_by_their_names_unless_two_would_be_called_the_same() {
        let labels = |given: &[&str]| labels(&given.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(labels(&["a/x.up", "lte"]).unwrap(), ["x.up", "lte"]);
        assert_eq!(labels(&["a/x.up", "b/x.up", "c"]).unwrap(), ["a/x.up", "b/x.up", "c"]);
        assert!(labels(&["lte", "lte"]).unwrap_err().message.contains("`lte` is there twice"));
    }
}
