//! `perf --compare-stock`: our controller and the stack's own Cubic in turns, and what ours costs.

use brakelight_quic::perf::client::Plan;
use brakelight_quic::perf::stock::{self, Comparison, Pair};
use brakelight_scenario::documents::Origin;
use serde::Serialize;

use crate::arguments::DocumentFormat;
use crate::failure::Failure;
use crate::origin;
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number};

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Document {
    origin: Origin,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Runs the pairs and prints them.
pub fn execute(arguments: &super::arguments::Client, plan: &Plan) -> Result<(), Failure> {
    let comparison = stock::compare(plan, arguments.runs, |pair, plan| {
        super::measured(plan, &format!("pair {} of {}", pair + 1, arguments.runs))
    })?;
    match arguments.format {
        DocumentFormat::Json => text::print_json(&Document { origin: origin::origin(0), comparison }),
        DocumentFormat::Table => {
            text::print(&in_words(&arguments.controller, &comparison, &text::standard_output()))
        }
    }
}

fn in_words(controller: &str, comparison: &Comparison, screen: &Screen) -> String {
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
