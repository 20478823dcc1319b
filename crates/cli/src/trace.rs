//! `trace`: looks at traces, makes them, converts them.

use std::path::Path;

use brakelight_lab::fetch::{self, Http};
use brakelight_lab::text::trace::{csv, document, in_words, made};
use brakelight_scenario::trace::convert::delays::delay_file;
use brakelight_scenario::trace::names::{self, Names};
use brakelight_scenario::trace::statistics::Statistics;
use brakelight_scenario::trace::{OPPORTUNITY, convert, recording};

use crate::arguments::{self, Convert, ConvertTo, Fetch, Format, Show, Synth};
use crate::failure::Failure;
use crate::output;
use crate::text;

/// Runs the command.
pub fn execute(arguments: &arguments::Trace) -> Result<(), Failure> {
    match arguments {
        arguments::Trace::Show(arguments) => show(arguments),
        arguments::Trace::Synth(arguments) => synth(arguments),
        arguments::Trace::Convert(arguments) => convert(arguments),
        arguments::Trace::Fetch(arguments) => fetch(arguments),
    }
}

fn show(arguments: &Show) -> Result<(), Failure> {
    let names = Names::from_environment().map_err(Failure::input)?;
    let name = &arguments.trace;
    let (trace, about) = names.load_with_about(name).map_err(Failure::input)?;
    let (statistics, about) = (Statistics::of(&trace, OPPORTUNITY), about.as_ref());
    match arguments.format {
        Format::Json => text::print_json(&document(name, &trace, &statistics, about)),
        Format::Csv => text::print(&csv(&trace)),
        Format::Table => text::print(&in_words(name, &trace, &statistics, about, &text::standard_output())),
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
    if arguments.to != ConvertTo::Bltrace && (arguments.delay.is_some() || !arguments.about.is_empty()) {
        return Err(Failure::input("--delay and --about are kept by `--to bltrace` alone"));
    }
    let selection = arguments.flow.or(arguments.direction).unwrap_or_default();
    let options = convert::ConvertOptions {
        selection,
        unit: arguments.unit,
        column: arguments.column.clone(),
        ..convert::ConvertOptions::default()
    };
    let mut converted =
        convert::convert_file(&arguments.file, arguments.from, options).map_err(Failure::input)?;
    if let Some(delay) = &arguments.delay {
        converted.add_delays(&delay_file(delay).map_err(Failure::input)?);
    }
    let about = &mut converted.recording.about;
    arguments
        .about
        .iter()
        .try_for_each(|said| about.set(said))
        .map_err(|error| Failure::input(format!("--about: {error}")))?;
    text::say(&made(&converted));
    converted.notes.iter().for_each(|note| text::say(&format!("note: {note}")));
    converted.warnings.iter().for_each(|warning| text::say(&format!("warning: {warning}")));
    let text = match arguments.to {
        ConvertTo::Mahimahi => convert::to_mahimahi(&converted.trace),
        ConvertTo::Csv => convert::to_csv(&converted.trace, arguments.bin, OPPORTUNITY),
        ConvertTo::Bltrace => {
            let bytes = recording::file::write(&converted.recording).map_err(Failure::input)?;
            return output::bytes(arguments.out.as_deref(), &bytes);
        }
    };
    write(&text, arguments.out.as_deref())
}

fn fetch(arguments: &Fetch) -> Result<(), Failure> {
    let catalogue = fetch::catalogue(arguments.catalogue.as_deref()).map_err(Failure::input)?;
    let folder = fetch::folder().map_err(Failure::input)?;
    let Some(name) = &arguments.name else {
        return text::print(&fetch::list(&catalogue, &folder, &text::standard_output()));
    };
    let entry = catalogue.find(name).map_err(Failure::input)?;
    let fetched = fetch::fetch(entry, &folder, &Http::default(), arguments.again).map_err(Failure::input)?;
    fetch::in_words(entry, &fetched).iter().for_each(|line| text::say(line));
    Ok(())
}

/// Writes to a file or to standard output.
fn write(text: &str, out: Option<&Path>) -> Result<(), Failure> {
    match out {
        None => text::print(text),
        Some(path) => output::file(path, text),
    }
}
