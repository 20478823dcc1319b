//! A workload from its beginning to the row of its results.

use std::io;
use std::path::{Path, PathBuf};

use brakelight_files::invoker::AsInvoker;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;

use super::{Hosts, Workload, WorkloadError};
use crate::command::Setting;
use crate::device::TunSettings;
use crate::emulation::{self, EmulationError, Setup};
use crate::forward;
use crate::log::LogError;
use crate::measure::{self, MeasureSettings};
use crate::outcome::Directions;

/// Where a link's log goes, and the command line to write into it; `None` writes none.
pub type LogFile = Option<(PathBuf, String)>;

/// Why a workload could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The hosts' files could not be written.
    #[error(transparent)]
    Prepare(#[from] io::Error),
    /// A link's log could not be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The emulation failed.
    #[error(transparent)]
    Emulation(#[from] EmulationError),
    /// The hosts failed.
    #[error("{scenario}: the hosts ended with exit code {code}; their error is above")]
    Hosts {
        /// The scenario's name.
        scenario: String,
        /// What their process ended with.
        code: i32,
    },
    /// The hosts' results could not be read.
    #[error("{scenario}, seed {seed}: {error}")]
    Results {
        /// The scenario's name.
        scenario: String,
        /// Its seed.
        seed: u64,
        /// What is wrong.
        error: WorkloadError,
    },
}

impl Workload {
    /// Runs it: the workload of `scenario`. The hosts' own files go into `folder`; `logs` are those of the
    /// link up and of the link down; `note` is told what a user should know about the run. Must be called
    /// before there are other threads.
    pub fn run(
        &self,
        scenario: &Scenario,
        folder: &Path,
        logs: [LogFile; 2],
        mut note: impl FnMut(&str),
    ) -> Result<(Outcome, Directions), RunError> {
        let user = AsInvoker::begin();
        self.prepare(folder, scenario)?;
        drop(user);
        let setup = Setup {
            up: self.up.clone(),
            down: self.down.clone(),
            setting: Setting { nat: false, mtu: TunSettings::default().mtu, keep_sysctls: false },
            forward: forward::ForwardSettings::default(),
            servers: self.servers(),
            command: self.command(folder),
            ports: self.ports(),
        };
        let bin = scenario.record.series.then_some(scenario.record.bin);
        let settings =
            logs.map(|log| MeasureSettings { measure_from: self.measure_from, bin, log, live: None });
        let (meters, threads) = measure::meters([&setup.up, &setup.down], &settings)?;
        let start = |_| threads.into_iter().try_for_each(|thread| thread.start());
        let ended = emulation::run(setup, meters, start)?;
        if self.hosts != Hosts::Kernel && ended.code != 0 {
            return Err(RunError::Hosts { scenario: scenario.name.clone(), code: ended.code });
        }
        ended.notes.iter().for_each(|text| note(text));
        let directions = Directions::of(ended.up, ended.down, self.measure_from)?;
        let _user = AsInvoker::begin();
        let outcome = self.outcome(folder, scenario, &directions).map_err(|error| RunError::Results {
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            error,
        })?;
        Ok((outcome, directions))
    }
}
