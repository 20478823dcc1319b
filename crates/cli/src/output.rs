//! What `compare` and `run` write into the folder of `--out`.

use brakelight_scenario::documents::Runs;

use crate::arguments::{Logs, SeriesFormat};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::logs;
use crate::report::Report;
use crate::simulate::Result as JobResult;
use crate::text::{self, csv};

/// Everything that can be written.
#[derive(Debug)]
pub struct Outputs<'a> {
    /// The rows.
    pub document: &'a Runs,
    /// The report.
    pub report: &'a Report<'a>,
    /// The runs with their series and logs.
    pub results: &'a [JobResult],
    /// Which logs to write.
    pub logs: Logs,
}

/// Writes everything, moves it into place, and says where it is.
pub fn write(folder: Folder, outputs: &Outputs<'_>) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(outputs.document).map_err(Failure::run)?;
    folder.write("runs.json", json + "\n")?;
    folder.write("runs.csv", csv::runs(&outputs.document.runs))?;
    for result in outputs.results {
        let stem = logs::file_name(&format!("{}.{}", result.run.scheme, result.run.trace));
        if let (Some(format), Some(series)) = (outputs.logs.series, &result.first.series) {
            logs::write_series(&folder, &stem, series, format)?;
        }
        if outputs.logs.link_logs {
            logs::write_link_logs(&folder, &stem, &result.first, &outputs.document.origin.command)?;
        }
    }
    folder.write("report.html", outputs.report.html())?;
    let place = folder.keep()?;
    text::say(&format!("report: {}", place.join("report.html").display()));
    Ok(())
}

/// The logs that were asked for on the command line or by the scenario.
pub fn merge(given: Logs, series: bool, link_logs: bool) -> Logs {
    Logs {
        series: given.series.or(series.then_some(SeriesFormat::Csv)),
        link_logs: given.link_logs || link_logs,
    }
}
