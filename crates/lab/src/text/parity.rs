//! Simulator beside emulator, for people.

use super::table::{self, Column};
use super::{Screen, number};
use crate::parity::{Row, Verdict, pairs};

/// Returns a table of the pairs, and what its columns are.
pub fn in_words(rows: &[Row], screen: &Screen) -> String {
    let modelled = rows.iter().any(|row| row.modelled.is_some());
    let mut columns = vec![Column::text("scenario"), Column::text("trace")];
    for unit in ["Mbit/s", "p95 ms"] {
        columns.push(Column::number(if modelled { "stack" } else { "simulator" }, unit));
        columns.extend(modelled.then(|| Column::number("model", unit)));
        columns.push(Column::number("emulator", unit));
        columns.push(Column::number("off", "%"));
        columns.extend(modelled.then(|| Column::number("model off", "%")));
        columns.push(Column::number("of", "%"));
    }
    columns.extend((!modelled).then(|| Column::text("measured")));
    columns.push(Column::text("verdict"));
    let table: Vec<Vec<String>> = rows.iter().map(|row| words_of(row, modelled)).collect();
    let mut text = table::render(&columns, &table, screen);
    if modelled {
        text += "stack and model: QUIC's own code and the modeled host in simulation, each compared with the emulated runs\n";
    } else {
        text += "measured: how far the emulator is from real runs through Mahimahi, in throughput and p95, by the same table\n";
    }
    if rows.iter().any(|row| row.source == pairs::LOOSEST) {
        text += &format!("a verdict with a star uses {}\n", pairs::LOOSEST);
    }
    text
}

fn words_of(row: &Row, modelled: bool) -> Vec<String> {
    let cell = |of: &str, name: &str| row.cells.iter().find(|cell| (cell.of, cell.name) == (of, name));
    let mut words = vec![row.scenario.clone(), row.trace.clone()];
    for name in ["throughput_mbps", "p95_ms"] {
        let Some(own) = cell("simulator", name) else { return words };
        let model = cell("modelled", name);
        words.push(number(own.value));
        words.extend(model.map(|model| number(model.value)));
        words.push(in_range(own.range));
        words.push(format!("{:.1}", own.off_percent));
        words.extend(model.map(|model| format!("{:.1}", model.off_percent)));
        words.push(format!("{:.0}", own.tolerance_percent));
    }
    if !modelled {
        let against: Vec<String> = (row.cells.iter().filter(|cell| cell.against == "reference"))
            .map(|cell| format!("{:.1} %", cell.off_percent))
            .collect();
        words.push(if against.is_empty() { "–".to_string() } else { against.join(", ") });
    }
    words.push(verdict(row));
    words
}

fn in_range([low, high]: [f64; 2]) -> String {
    if number(low) == number(high) { number(low) } else { format!("{} to {}", number(low), number(high)) }
}

/// Returns whether a row lies within its tolerances, and what does not.
pub fn verdict(row: &Row) -> String {
    let outside = |of: &str| row.cells.iter().any(|cell| cell.of == of && cell.verdict == Verdict::Outside);
    let model = row.modelled.is_some();
    let mut text = match (outside("simulator"), outside("modelled"), outside("emulator")) {
        (false, false, false) => "within",
        (true, false, false) if model => "OUTSIDE: the stack",
        (true, false, false) => "OUTSIDE",
        (false, true, _) => "OUTSIDE: the model",
        (false, false, true) => "OUTSIDE what was measured",
        (true, ..) => "OUTSIDE both",
    }
    .to_string();
    if row.source == pairs::LOOSEST {
        text += "*";
    }
    if row.emulator.unreliable {
        text += ", unreliable";
    }
    text
}
