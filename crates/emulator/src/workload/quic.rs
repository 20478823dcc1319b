//! The host of QUIC: one program with both ends of every flow, which reads a scenario and writes the document
//! of a run.

use std::ffi::OsString;
use std::path::Path;

use brakelight_scenario::documents::Runs;
use brakelight_scenario::file;
use brakelight_scenario::outcome::{FlowSeries, Run, Series};
use brakelight_scenario::scenario::Scenario;

use super::WorkloadError;

pub(super) const NAME: &str = "QUIC";

/// What the program reads, in the folder of the run.
const SCENARIO: &str = "scenario.toml";
/// What it writes there: a document with one run, whose flows are the scenario's.
const RUN: &str = "run.json";
/// The same over time, where the scenario records it: windows and RTTs.
const SERIES: &str = "series.json";

/// Leaves the scenario for the program.
pub(super) fn prepare(folder: &Path, scenario: &Scenario) -> std::io::Result<()> {
    std::fs::write(folder.join(SCENARIO), file::write(scenario))
}

/// The program's command line: what it was given as, and the three files.
pub(super) fn command(program: &[OsString], folder: &Path) -> Vec<OsString> {
    let files = [SCENARIO, RUN, SERIES].map(|name| folder.join(name).into());
    program.iter().cloned().chain(files).collect()
}

/// What the program wrote.
pub(super) fn read(folder: &Path) -> Result<(Run, Vec<FlowSeries>), WorkloadError> {
    let failed = |error| WorkloadError::Hosts { program: NAME, error };
    let text = std::fs::read_to_string(folder.join(RUN)).map_err(failed)?;
    let document: Runs = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    let run = document.runs.into_iter().next();
    let run = run.ok_or_else(|| failed(std::io::Error::other("its document has no run")))?;
    let series = match std::fs::read_to_string(folder.join(SERIES)) {
        Ok(text) => serde_json::from_str::<Series>(&text).map_err(|error| failed(error.into()))?.flows,
        Err(_) => Vec::new(),
    };
    Ok((run, series))
}
