//! A measurement of a real path, for people.

use brakelight_scenario::outcome::Run;

use super::table::{self, Column};
use super::{Screen, flow, number, number_or_dash};

/// What the path carried, and a table of the flows with what their messages took there and back.
pub fn in_words(run: &Run, screen: &Screen) -> String {
    let mut facts = vec![
        format!("{} Mbit/s for {} s", number(run.throughput_mbps), number(run.duration_s)),
        format!("goodput {} Mbit/s", number(run.goodput_mbps)),
    ];
    if let Some(delay) = run.queueing_delay_ms {
        facts.push(format!("p95 {} ms above the smallest RTT", number(delay.p95)));
    }
    let marks = run.marks;
    if marks.accelerate + marks.brake + marks.ce > 0 {
        facts.push(format!("{} accelerate, {} brake, {} CE", marks.accelerate, marks.brake, marks.ce));
    }
    facts.extend(run.jain.map(|jain| format!("Jain {jain:.3}")));
    let mut text = format!("{}  {}\n", screen.bold(&run.scheme), screen.dim(&facts.join(", ")));
    let mut columns = flow::columns();
    columns.extend([
        Column::number("messages", "number"),
        Column::number("there and back", "p50 ms"),
        Column::number("there and back", "p95 ms"),
    ]);
    let rows: Vec<Vec<String>> = run
        .flows
        .iter()
        .map(|shown| {
            let seen = |name: &str| shown.application.as_ref().and_then(|seen| seen.get(name).copied());
            let mut row = flow::row(shown);
            row.extend([
                seen("responses").map_or_else(|| "–".to_string(), |count| format!("{count}")),
                number_or_dash(seen("response_ms_p50")),
                number_or_dash(seen("response_ms_p95")),
            ]);
            row
        })
        .collect();
    text += &table::render(&columns, &rows, screen);
    text
}
