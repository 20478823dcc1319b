//! `trace`: looks at traces, makes them, converts them.

use std::path::Path;

use brakelight_lab::text::trace::{csv, in_words, made};
use brakelight_scenario::trace::names::{self, Names};
use brakelight_scenario::trace::statistics::Statistics;
use brakelight_scenario::trace::{OPPORTUNITY, convert};
use serde_json::json;

use crate::arguments::{self, Convert, ConvertTo, Format, Show, Synth};
use crate::failure::Failure;
use crate::output;
use crate::text;

/// Runs the command.
pub fn execute(arguments: &arguments::Trace) -> Result<(), Failure> {
    match arguments {
        arguments::Trace::Show(arguments) => show(arguments),
        arguments::Trace::Synth(arguments) => synth(arguments),
        arguments::Trace::Convert(arguments) => convert(arguments),
    }
}

fn show(arguments: &Show) -> Result<(), Failure> {
    let names = Names::from_environment().map_err(Failure::input)?;
    let trace = names.load(&arguments.trace).map_err(Failure::input)?;
    let statistics = Statistics::of(&trace, OPPORTUNITY);
    match arguments.format {
        Format::Json => text::print_json(&json!({ "trace": arguments.trace, "statistics": statistics })),
        Format::Csv => text::print(&csv(&trace)),
        Format::Table => {
            text::print(&in_words(&arguments.trace, &trace, &statistics, &text::standard_output()))
        }
    }
}

fn synth(arguments: &Synth) -> Result<(), Failure> {
    let mut recipe = names::recipe(&arguments.recipe).map_err(Failure::input)?;
    if let Some(seed) = arguments.seed {
        recipe.seed = seed;
    }
    if let Some(duration) = arguments.duration {
        recipe.duration = duration;
    }
    let trace =
        recipe.generate().map_err(|error| Failure::input(format!("{}: {error}", arguments.recipe)))?;
    write(&convert::to_mahimahi(&trace), arguments.out.as_deref())
}

fn convert(arguments: &Convert) -> Result<(), Failure> {
    let selection = arguments.flow.or(arguments.direction).unwrap_or_default();
    let options = convert::ConvertOptions {
        selection,
        unit: arguments.unit,
        column: arguments.column.clone(),
        ..convert::ConvertOptions::default()
    };
    let converted =
        convert::convert_file(&arguments.file, arguments.from, options).map_err(Failure::input)?;
    text::say(&made(&converted));
    converted.notes.iter().for_each(|note| text::say(&format!("note: {note}")));
    converted.warnings.iter().for_each(|warning| text::say(&format!("warning: {warning}")));
    let text = match arguments.to {
        ConvertTo::Mahimahi => convert::to_mahimahi(&converted.trace),
        ConvertTo::Csv => convert::to_csv(&converted.trace, arguments.bin, OPPORTUNITY),
    };
    write(&text, arguments.out.as_deref())
}

/// Writes to a file or to standard output.
fn write(text: &str, out: Option<&Path>) -> Result<(), Failure> {
    match out {
        None => text::print(text),
        Some(path) => output::file(path, text),
    }
}
