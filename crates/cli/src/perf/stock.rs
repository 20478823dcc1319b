//! `perf --compare-stock`: our controller and the stack's own Cubic in turns, and what ours costs.

use brakelight_lab::text::stock::in_words;
use brakelight_quic::perf::client::Plan;
use brakelight_quic::perf::stock::{self, Comparison};
use brakelight_scenario::documents::Origin;
use serde::Serialize;

use crate::arguments::DocumentFormat;
use crate::failure::Failure;
use crate::origin;
use crate::text;

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
