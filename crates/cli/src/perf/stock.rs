//! `perf --compare-stock`: our controller and the stack's own Cubic in turns, and what ours costs.
//!
//! Both upload to the same server with the same transport settings. Processor time is that of this process,
//! the sender's, so the receiver's does not dilute it. Turns alternate, and which goes first alternates too,
//! so that a machine that warms up or grows busy treats both alike.

use brakelight_quic::perf::Control;
use brakelight_quic::perf::client::{Measurement, Plan};
use brakelight_scenario::documents::Origin;
use serde::Serialize;

use crate::arguments::DocumentFormat;
use crate::failure::Failure;
use crate::origin;
use crate::text::table::{self, Column};
use crate::text::{self, number};

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Document {
    origin: Origin,
    pairs: Vec<Pair>,
    /// Medians over the pairs, ours over stock.
    throughput_ratio: f64,
    processor_per_byte_ratio: f64,
}

/// One of each.
#[derive(Clone, Copy, Debug, Serialize)]
struct Pair {
    ours: Side,
    stock: Side,
}

/// One run.
#[derive(Clone, Copy, Debug, Serialize)]
struct Side {
    goodput_mbps: f64,
    processor_s_per_gb: f64,
}

impl Side {
    fn of(measured: &Measurement) -> Self {
        let bytes: u64 = measured.flows.iter().map(|flow| flow.received.payload).sum();
        let rates = measured.flows.iter().filter(|flow| flow.received.micros > 0);
        Side {
            goodput_mbps: rates
                .map(|flow| 8.0 * flow.received.payload as f64 / flow.received.micros as f64)
                .sum(),
            processor_s_per_gb: measured.processor.as_secs_f64() / (bytes.max(1) as f64 * 1e-9),
        }
    }
}

/// Runs the pairs and prints them.
pub fn execute(arguments: &super::arguments::Client, plan: &Plan) -> Result<(), Failure> {
    let stock = Plan { control: Control::StockCubic, ..plan.clone() };
    let mut pairs = Vec::new();
    for turn in 0..arguments.runs {
        let what = format!("pair {} of {}", turn + 1, arguments.runs);
        let once = |plan: &Plan| super::measured(plan, &what).map(|measured| Side::of(&measured));
        pairs.push(if turn % 2 == 0 {
            let ours = once(plan)?;
            Pair { ours, stock: once(&stock)? }
        } else {
            let stock = once(&stock)?;
            Pair { ours: once(plan)?, stock }
        });
    }
    let throughput_ratio = median(pairs.iter().map(|pair| pair.ours.goodput_mbps / pair.stock.goodput_mbps));
    let processor_per_byte_ratio =
        median(pairs.iter().map(|pair| pair.ours.processor_s_per_gb / pair.stock.processor_s_per_gb));
    match arguments.format {
        DocumentFormat::Json => text::print_json(&Document {
            origin: origin::origin(0),
            pairs,
            throughput_ratio,
            processor_per_byte_ratio,
        }),
        DocumentFormat::Table => {
            let columns = [
                Column::text("pair"),
                Column::number(&arguments.controller, "Mbit/s"),
                Column::number("quinn's Cubic", "Mbit/s"),
                Column::number(&arguments.controller, "CPU s/GB"),
                Column::number("quinn's Cubic", "CPU s/GB"),
            ];
            let rows: Vec<Vec<String>> = pairs
                .iter()
                .enumerate()
                .map(|(at, Pair { ours, stock })| {
                    let sides = [
                        ours.goodput_mbps,
                        stock.goodput_mbps,
                        ours.processor_s_per_gb,
                        stock.processor_s_per_gb,
                    ];
                    std::iter::once((at + 1).to_string()).chain(sides.map(number)).collect()
                })
                .collect();
            let mut text = table::render(&columns, &rows, &text::standard_output());
            text += &format!(
                "medians of the ratios: throughput {throughput_ratio:.3}, processor time per byte {processor_per_byte_ratio:.3}\n"
            );
            text::print(&text)
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median([3.0, 1.0].into_iter()), 2.0);
        assert_eq!(median([3.0, 1.0, 9.0].into_iter()), 3.0);
    }
}
