//! A controller of ours beside quinn's Cubic, for people.

use brakelight_quic::perf::stock::{Comparison, Pair};

use super::table::{self, Column};
use super::{Screen, number};

/// Returns a table of the pairs, and the medians of their ratios. Ours is called `controller`.
pub fn in_words(controller: &str, comparison: &Comparison, screen: &Screen) -> String {
    let columns = [
        Column::text("pair"),
        Column::number(controller, "Mbit/s"),
        Column::number("quinn's Cubic", "Mbit/s"),
        Column::number(controller, "CPU s/GB"),
        Column::number("quinn's Cubic", "CPU s/GB"),
    ];
    let row = |(at, Pair { ours, stock }): (usize, &Pair)| {
        let sides =
            [ours.goodput_mbps, stock.goodput_mbps, ours.processor_s_per_gb, stock.processor_s_per_gb];
        std::iter::once((at + 1).to_string()).chain(sides.map(number)).collect()
    };
    let rows: Vec<Vec<String>> = comparison.pairs.iter().enumerate().map(row).collect();
    let Comparison { throughput_ratio, processor_per_byte_ratio, .. } = comparison;
    table::render(&columns, &rows, screen)
        + &format!(
            "medians of the ratios: throughput {throughput_ratio:.3}, processor time per byte {processor_per_byte_ratio:.3}\n"
        )
}
