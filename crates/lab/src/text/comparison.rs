//! A comparison for people.

use brakelight_core::time::Duration;
use brakelight_scenario::outcome::{Run, Summary};

use super::scatter::{self, Point};
use super::table::{self, Column};
use super::{Screen, count, number, number_or_dash};
use crate::summary;

/// Returns the drawing, a table per trace, the table over all traces, the notes.
pub fn tables(runs: &[Run], notes: &[String], screen: &Screen) -> String {
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
            let delay =
                |value: fn(&Summary) -> f64| number_or_dash(run.queueing_delay_ms.as_ref().map(value));
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
    let facts = format!("means over {}", count(traces, "trace", "traces"));
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
}
