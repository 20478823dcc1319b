//! A workload from its beginning to the row of its results.

use std::io;
use std::path::{Path, PathBuf};

use brakelight_core::time::{Duration, Time};
use brakelight_files::invoker::AsInvoker;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;

use super::{Hosts, Programs, Workload, WorkloadError};
use crate::command::Setting;
use crate::device::TunSettings;
use crate::emulation::{self, Bounded, EmulationError, Ended, Setup};
use crate::forward;
use crate::log::LogError;
use crate::measure::{self, MeasureSettings, Meter};
use crate::outcome::Directions;

/// Where a link's log goes, and the command line to write into it; `None` writes none.
pub type LogFile = Option<(PathBuf, String)>;

/// The environment variable with the length of the run, in seconds.
const SECONDS: &str = "BRAKELIGHT_SECONDS";

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
    /// The command failed before the end of the run.
    #[error("{scenario}: the command ended with exit code {code}")]
    Command {
        /// The scenario's name.
        scenario: String,
        /// Its exit code.
        code: i32,
    },
    /// The command ended before measuring began.
    #[error("{scenario}: the command ended before `measure_from` = {measure_from}: let it send for longer")]
    EndedEarly {
        /// The scenario's name.
        scenario: String,
        /// When measuring would have begun.
        measure_from: Duration,
    },
    /// Nothing that the command or its servers sent passed the path.
    #[error("{scenario}: no packet passed from {from} while it was measured: {advice}")]
    Nothing {
        /// The scenario's name.
        scenario: String,
        /// Who should have sent.
        from: &'static str,
        /// What to do about it.
        advice: &'static str,
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
        // The command of a download is on the side of the scenario's receiver.
        let download = matches!(&self.hosts, Hosts::Programs(programs) if programs.download);
        let (up, down) = if download { (&self.down, &self.up) } else { (&self.up, &self.down) };
        let bounded = matches!(self.hosts, Hosts::Programs(_)).then(|| Bounded {
            limit: self.duration,
            folder: folder.to_path_buf(),
            environment: vec![(SECONDS.into(), self.duration.as_secs_f64().to_string().into())],
        });
        let setup = Setup {
            up: up.clone(),
            down: down.clone(),
            setting: Setting { nat: false, mtu: TunSettings::default().mtu, keep_sysctls: false },
            forward: forward::ForwardSettings::default(),
            servers: self.servers(),
            command: self.command(folder),
            ports: self.ports(),
            bounded,
        };
        let bin = scenario.record.series.then_some(scenario.record.bin);
        let mut settings =
            logs.map(|log| MeasureSettings { measure_from: self.measure_from, bin, log, live: None });
        if download {
            settings.reverse();
        }
        let (meters, threads) = measure::meters([&setup.up, &setup.down], &settings)?;
        let start = |_| threads.into_iter().try_for_each(|thread| thread.start());
        let mut ended = emulation::run(setup, meters, start)?;
        if download {
            std::mem::swap(&mut ended.up, &mut ended.down);
        }
        match &self.hosts {
            Hosts::Kernel => {}
            Hosts::Quic(_) if ended.code != 0 => {
                return Err(RunError::Hosts { scenario: scenario.name.clone(), code: ended.code });
            }
            Hosts::Quic(_) => {}
            Hosts::Programs(programs) => self.check(programs, scenario, &ended, &mut note)?,
        }
        ended.notes.iter().for_each(|text| note(text));
        let mut directions = Directions::of(ended, self.measure_from)?;
        directions.data_go_up = matches!(self.hosts, Hosts::Programs(_));
        let _user = AsInvoker::begin();
        let outcome = self.outcome(folder, scenario, &directions).map_err(|error| RunError::Results {
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            error,
        })?;
        Ok((outcome, directions))
    }

    /// Whether there is something to measure of a command and its servers; tells `note` what is unusual.
    fn check(
        &self,
        programs: &Programs,
        scenario: &Scenario,
        ended: &Ended<Meter>,
        note: &mut impl FnMut(&str),
    ) -> Result<(), RunError> {
        let scenario = scenario.name.clone();
        if ended.code != 0 {
            return Err(RunError::Command { scenario, code: ended.code });
        }
        let end = ended.up.facts.ended;
        if end <= Time::ZERO + self.measure_from {
            return Err(RunError::EndedEarly { scenario, measure_from: self.measure_from });
        }
        for (place, code) in &ended.ended_servers {
            note(&format!("server {} ended before the command, with exit code {code}", place + 1));
        }
        if !ended.stopped {
            let (at, of) = (end.as_secs_f64(), self.duration);
            note(&format!("the command ended after {at:.3} s of {of}: the row is about this time"));
        }
        let (from, advice) = if programs.download {
            ("the servers", "if the command sends the data, leave --download out")
        } else {
            ("the command", "if the servers send the data, add --download")
        };
        let [data, back] = [&ended.up, &ended.down].map(|way| way.facts.written_bytes);
        if data == 0 {
            return Err(RunError::Nothing { scenario, from, advice });
        }
        if back > data {
            note(&format!("{data} B passed from {from}, and {back} B the other way: {advice}"));
        }
        Ok(())
    }
}
