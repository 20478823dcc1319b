//! `bench`: how fast the simulator is, and what a packet costs at each queue.
//!
//! Every row of the simulator is a process of its own, so that its peak memory is its own and no row warms
//! another's caches; it repeats its scenario for at least two seconds and reports the median. `--profile`
//! counts instructions instead: valgrind runs each row once, in a process of its own too.

use std::ffi::OsString;

use brakelight_files::scratch::Scratch;
use brakelight_lab::Progress as _;
use brakelight_lab::bench::ns3::{Ns3, Ns3Error};
use brakelight_lab::bench::profile::{ProfileError, profile};
use brakelight_lab::bench::rows::Row;
use brakelight_lab::bench::{everything, measure};
use brakelight_lab::text::bench::{in_words, profiles_in_words};
use brakelight_scenario::documents::{Bench, SimBench};

use crate::arguments::{self, DocumentFormat};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{program, text};

/// Runs the command.
pub fn execute(arguments: &arguments::Bench) -> Result<(), Failure> {
    if let Some(row) = arguments.row {
        return text::print_json(&measure(row)?);
    }
    if let Some(row) = arguments.counted {
        return text::print(&format!("{}\n", row.count().map_err(Failure::run)?));
    }
    if let Some(rows) = &arguments.profile {
        return print_profiles(rows, arguments.format);
    }
    // Nobody else knows the folder's name beforehand, so nobody can put another program in its place.
    let scratch = if arguments.with_ns3 { Some(Scratch::new("ns3")?) } else { None };
    let beside = scratch.as_ref().map(|scratch| Ns3::compile(scratch.path())).transpose()?;
    let bench = everything(beside.as_ref(), &Bar::default(), in_own_process)?;
    match arguments.format {
        DocumentFormat::Json => text::print_json(&bench),
        DocumentFormat::Table => text::print(&in_words(&bench, &text::standard_output())),
    }
}

/// Prints where the instructions of each row go.
fn print_profiles(rows: &[&'static Row], format: DocumentFormat) -> Result<(), Failure> {
    let progress = Bar::new("counting", rows.len());
    let counted = |row: &&'static Row| {
        progress.step(row.name);
        let mut call = program::words()?;
        call.extend(["bench", "--counted", row.name].map(OsString::from));
        Ok(profile(row, &call)?)
    };
    let profile = rows.iter().map(counted).collect::<Result<_, Failure>>()?;
    drop(progress);
    let bench = Bench { profile, ..Bench::default() };
    match format {
        DocumentFormat::Json => text::print_json(&bench),
        DocumentFormat::Table => text::print(&profiles_in_words(&bench.profile, &text::standard_output())),
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        let text = format!("--profile: {error}");
        if matches!(error, ProfileError::NotInstalled) { Failure::input(text) } else { Failure::run(text) }
    }
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
