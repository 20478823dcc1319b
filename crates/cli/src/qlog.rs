//! `--qlog`: what both ends of every flow did, in a folder.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use brakelight_files::system::AsInvoker;
use brakelight_lab::{qlog, quinn};
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::Traces;

use crate::arguments::{HostName, Qlog};
use crate::failure::Failure;
use crate::{output, text};

/// Where `--qlog` puts logs, if anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Log<'a> {
    folder: Option<&'a Path>,
    version: qlog::Version,
}

impl<'a> Log<'a> {
    /// Refuses a folder that holds other things than an earlier result, unless `force` is set: before any
    /// work is done for it.
    pub fn at(arguments: &'a Qlog, force: bool) -> Result<Self, Failure> {
        let folder = arguments.folder.as_deref();
        if let Some(folder) = folder {
            output::check_others("qlog", folder, force)?;
        }
        Ok(Log { folder, version: arguments.version.into() })
    }

    /// Runs the scenario once more, and has its flows logged into `within` the folder.
    pub fn write(
        self,
        within: &str,
        scenario: &Scenario,
        traces: &Traces,
        host: Option<HostName>,
    ) -> Result<(), Failure> {
        let Some(folder) = self.folder.map(|folder| folder.join(within)) else { return Ok(()) };
        let mut scenario = scenario.clone();
        (scenario.record.series, scenario.record.link_logs) = (false, false);
        let failed = |error: &io::Error| {
            Failure::output(error, format!("--qlog `{}` cannot be written: {error}", folder.display()))
        };
        let user = AsInvoker::begin();
        fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
        let mut open = |name: &str| -> io::Result<Box<dyn Write>> {
            Ok(Box::new(BufWriter::new(File::create(folder.join(name))?)))
        };
        let written = match host {
            Some(HostName::Quinn) => quinn::write_qlog(&scenario, traces, self.version, &mut open),
            _ => qlog::write(&scenario, traces, self.version, &mut open),
        };
        drop(user);
        written.map_err(|error| match error.downcast_ref::<io::Error>() {
            Some(error) => failed(error),
            None => Failure::run(error),
        })
    }

    /// Says where the logs are.
    pub fn say(self) {
        if let Some(folder) = self.folder {
            text::say(&format!("qlog: {}", folder.display()));
        }
    }
}
