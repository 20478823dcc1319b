//! Scenarios for people.

use std::collections::BTreeMap;

use brakelight_scenario::outcome::Run;

use super::table::{self, Column};
use super::{Screen, flow, number, number_or_dash};

/// Returns a table of the links, one of the flows, and what applications saw.
pub fn tables(runs: &[Run], screen: &Screen) -> String {
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
    let mut columns = flow::columns();
    columns.push(Column::number("sent again", "packets"));
    let applications = run.flows.iter().any(|flow| flow.application.is_some());
    if applications {
        columns.push(Column::text("application"));
    }
    let shown = run.flows.iter().take(MOST_ROWS);
    let rows: Vec<Vec<String>> = shown
        .map(|shown| {
            let mut row = flow::row(shown);
            row.push(shown.retransmitted_packets.to_string());
            if applications {
                row.push(shown.application.as_ref().map_or_else(String::new, describe));
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
