//! `bench`: how fast the simulator is, and what a packet costs at each queue.
//!
//! Every row of the simulator is a process of its own, so that its peak memory is its own and no row warms
//! another's caches; it repeats its scenario for at least two seconds and reports the median.

use brakelight_files::scratch::Scratch;
use brakelight_lab::bench::ns3::{Ns3, Ns3Error};
use brakelight_lab::bench::{everything, measure};
use brakelight_lab::text::bench::in_words;
use brakelight_scenario::documents::SimBench;
use brakelight_sim::bench::Row;

use crate::arguments::{self, DocumentFormat};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{program, text};

/// Runs the command.
pub fn execute(arguments: &arguments::Bench) -> Result<(), Failure> {
    if let Some(name) = &arguments.row {
        let row = Row::named(name).ok_or_else(|| Failure::input(format!("--row: unknown row `{name}`")))?;
        return text::print_json(&measure(row)?);
    }
    // Nobody else knows the folder's name beforehand, so nobody can put another program in its place.
    let scratch = if arguments.with_ns3 { Some(Scratch::new("ns3")?) } else { None };
    let beside = scratch.as_ref().map(|scratch| Ns3::compile(scratch.path())).transpose()?;
    let (bench, ratios) = everything(beside.as_ref(), &Bar::default(), in_own_process)?;
    match arguments.format {
        DocumentFormat::Json => text::print_json(&bench)?,
        DocumentFormat::Table => text::print(&in_words(&bench, &text::standard_output()))?,
    }
    // Beside the document, whose shape is fixed.
    ratios.into_iter().try_for_each(|line| match arguments.format {
        DocumentFormat::Json => {
            text::say(&line);
            Ok(())
        }
        DocumentFormat::Table => text::print(&format!("{line}\n")),
    })
}

impl From<Ns3Error> for Failure {
    fn from(error: Ns3Error) -> Self {
        let text = format!("--with-ns3: {error}");
        if matches!(error, Ns3Error::NotInstalled) { Failure::input(text) } else { Failure::run(text) }
    }
}

fn in_own_process(row: &Row) -> Result<SimBench, Failure> {
    let output = program::command()?.args(["bench", "--row", row.name]).output().map_err(Failure::run)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::run(format!(
            "{}: its process ended with {}: {}",
            row.name,
            output.status,
            said.trim()
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::run(format!("{}: {error}", row.name)))
}
