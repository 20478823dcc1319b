//! Speeds for people.

use brakelight_scenario::documents::Bench;

use super::table::{self, Column};
use super::{Screen, number, thousands};

/// Returns a table of the simulator's speed, and one of what queues cost.
pub fn in_words(bench: &Bench, screen: &Screen) -> String {
    let columns = [
        Column::text("row"),
        Column::number("flows", ""),
        Column::number("packets", ""),
        Column::number("wall", "s"),
        Column::number("speed", "packets/s"),
        Column::number("memory", "peak MB"),
    ];
    let rows: Vec<Vec<String>> = bench
        .sim
        .iter()
        .map(|row| {
            vec![
                row.name.clone(),
                row.flows.to_string(),
                thousands(row.packets as f64),
                format!("{:.4}", row.wall_s),
                thousands(row.packets_per_s),
                number(row.peak_rss_mb),
            ]
        })
        .collect();
    let queues: Vec<Vec<String>> =
        bench.queues.iter().map(|row| vec![row.name.clone(), number(row.ns_per_packet)]).collect();
    let costs = [Column::text("queue"), Column::number("cost", "ns/packet")];
    format!("{}\n{}", table::render(&columns, &rows, screen), table::render(&costs, &queues, screen))
}
