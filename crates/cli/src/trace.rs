//! `trace`: looks at traces, makes them, converts them.

use std::path::Path;

use brakelight_lab::fetch::{self, Http};
use brakelight_lab::text::Screen;
use brakelight_lab::text::trace::{csv, document, fitted as fitted_in_words, in_words, made};
use brakelight_lab::traces::{self, Form, Source, TraceFileError, Written};
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::convert::{ConvertOptions, Converted};
use brakelight_scenario::trace::names::Names;
use brakelight_scenario::trace::statistics::Statistics;

use crate::arguments::{self, Convert, Fetch, FitArguments, Format, Recorded, Show, Synth};
use crate::failure::Failure;
use crate::output;
use crate::text;

/// Runs the command.
pub fn execute(arguments: &arguments::Trace) -> Result<(), Failure> {
    match arguments {
        arguments::Trace::Show(arguments) => show(arguments),
        arguments::Trace::Synth(arguments) => synth(arguments),
        arguments::Trace::Convert(arguments) => convert(arguments),
        arguments::Trace::Fit(arguments) => fit(arguments),
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
    let out = arguments.out.as_deref();
    keep(Path::new(&arguments.recipe), out)?;
    let form = arguments.to.unwrap_or_else(|| Form::of_file(out));
    write(traces::synthetic(&arguments.recipe, arguments.seed, arguments.duration, form), out)
}

fn convert(arguments: &Convert) -> Result<(), Failure> {
    let (about, out) = (&arguments.about, arguments.out.as_deref());
    keep_recorded(&arguments.recorded, out)?;
    let to = arguments.to.unwrap_or_else(|| Form::of_file(out));
    if to != Form::Bltrace && (arguments.recorded.delay.is_some() || !about.is_empty()) {
        return Err(Failure::input("only `--to bltrace` keeps --delay and --about"));
    }
    let mut converted = traces::read(source(&arguments.recorded)).map_err(Failure::input)?;
    let known = &mut converted.recording.about;
    about
        .iter()
        .try_for_each(|said| known.set(said))
        .map_err(|error| Failure::input(format!("--about: {error}")))?;
    say(&converted);
    let written = traces::written(&converted.trace, &converted.recording, to, arguments.bin);
    write(written, out)
}

fn fit(arguments: &FitArguments) -> Result<(), Failure> {
    keep_recorded(&arguments.recorded, arguments.out.as_deref())?;
    let (converted, fitted) =
        traces::fitted(source(&arguments.recorded), arguments.kind, arguments.bin).map_err(Failure::input)?;
    say(&converted);
    fitted.notes.iter().for_each(|note| text::say(&format!("note: {note}")));
    fitted_in_words(&fitted, &Screen::default()).lines().for_each(text::say);
    write(Ok(Written::Text(fitted.recipe.to_string())), arguments.out.as_deref())
}

/// Says what a conversion made.
fn say(converted: &Converted) {
    text::say(&made(converted));
    converted.notes.iter().for_each(|note| text::say(&format!("note: {note}")));
    converted.warnings.iter().for_each(|warning| text::say(&format!("warning: {warning}")));
}

fn source(recorded: &Recorded) -> Source<'_> {
    let selection = recorded.flow.or(recorded.direction).unwrap_or_default();
    let (unit, column) = (recorded.unit, recorded.column.clone());
    let (time_column, without_idle) = (recorded.time_column.clone(), recorded.without_idle);
    let options =
        ConvertOptions { selection, unit, column, time_column, without_idle, ..ConvertOptions::default() };
    Source { file: &recorded.file, from: recorded.from, options, delay: recorded.delay.as_deref() }
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

/// Refuses to write onto a file of a recording, before it is read.
fn keep_recorded(recorded: &Recorded, out: Option<&Path>) -> Result<(), Failure> {
    recorded.delay.iter().try_for_each(|delay| keep(delay, out))?;
    keep(&recorded.file, out)
}

/// Refuses to write onto `input`.
fn keep(input: &Path, out: Option<&Path>) -> Result<(), Failure> {
    let Some(out) = out else { return Ok(()) };
    match (input.canonicalize(), out.canonicalize()) {
        (Ok(read), Ok(written)) if read == written => Err(Failure::input(format!(
            "--out `{}`: it is the file to read, and would be lost; give another",
            out.display()
        ))),
        _ => Ok(()),
    }
}

/// Writes to a file or to standard output.
fn write(written: Result<Written, TraceFileError>, out: Option<&Path>) -> Result<(), Failure> {
    match written.map_err(Failure::input)? {
        Written::Bytes(bytes) => output::bytes(out, &bytes),
        Written::Text(text) => out.map_or_else(|| text::print(&text), |path| output::file(path, &text)),
    }
}
