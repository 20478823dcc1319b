//! The files of a table's results: names and bytes, for whoever writes them.

use brakelight_scenario::documents::Origin;
use brakelight_scenario::outcome::Outcome;

use crate::error::Error;
use crate::series::{self, SeriesFormat};
use crate::table::Table;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name within the folder of results; it may hold folders of its own, with slashes between.
    pub name: String,
    /// What it holds.
    pub contents: Vec<u8>,
}

impl File {
    /// Returns a file of that name.
    pub fn new(name: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        File { name: name.into(), contents: contents.into() }
    }
}

/// The logs that are wanted beside the rows and the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Time series of every row's first seed, in this format.
    pub series: Option<SeriesFormat>,
    /// Every link's log of opportunities, arrivals, departures and drops, as Mahimahi would write it.
    pub link_logs: bool,
}

/// Returns every file of `table`: `runs.json`, `runs.csv`, the logs, `report.html`. Each is made when it is
/// asked for, so that not all are in memory at once. Fails with [`Error::Encode`] where a result does not go
/// into a format.
pub fn files<'a>(
    table: &'a Table,
    origin: &'a Origin,
    logs: Logs,
) -> impl Iterator<Item = Result<File, Error>> + 'a {
    let rows = [json as fn(&Table, &Origin) -> _, csv].into_iter().map(move |file| file(table, origin));
    let logs = table.first.iter().zip(&table.runs).flat_map(move |(first, run)| {
        let stem = series::file_name(&format!("{}.{}", run.scheme, run.trace));
        log_files(&stem, first, &origin.command, logs)
    });
    rows.chain(logs).chain(std::iter::once_with(|| html(table, origin)))
}

/// The logs of one row.
fn log_files(stem: &str, first: &Outcome, command: &str, logs: Logs) -> Vec<Result<File, Error>> {
    let mut files = Vec::new();
    if let (Some(format), Some(recorded)) = (logs.series, &first.series) {
        files.extend(series::files(stem, recorded, format));
    }
    if logs.link_logs {
        files.extend(series::link_logs(stem, first, command));
    }
    files
}

fn json(table: &Table, origin: &Origin) -> Result<File, Error> {
    let document = table.document(origin.clone());
    let json = serde_json::to_string_pretty(&document).map_err(|error| Error::json(&error))?;
    Ok(File::new("runs.json", json + "\n"))
}

fn csv(table: &Table, _: &Origin) -> Result<File, Error> {
    Ok(File::new("runs.csv", table.csv()))
}

fn html(table: &Table, origin: &Origin) -> Result<File, Error> {
    Ok(File::new("report.html", table.report(origin).html()))
}
