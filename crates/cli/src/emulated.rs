//! Scenarios on the emulator: the same file as in simulation, by kernel TCP or real QUIC, in real time.

use brakelight_emulator::command::{self, CommandError};
use brakelight_emulator::emulation::EmulationError;
use brakelight_emulator::outcome::Directions;
use brakelight_emulator::spec::DirectionSpec;
use brakelight_emulator::workload::{Hosts, RunError, Workload};
use brakelight_files::folder::Folder;
use brakelight_files::scratch::Scratch;
use brakelight_lab::jobs::JobOutcome;
use brakelight_lab::series::file_name;
use brakelight_scenario::measure::describe_service;
use brakelight_scenario::outcome::{Outcome, Run};
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::Traces;

use crate::arguments::HostName;
use crate::failure::Failure;
use crate::{program, quinn_hosts, text};

/// Returns who the hosts are, by what was asked for: kernel TCP, or QUIC by this very program
/// ([`quinn_hosts`]).
pub fn hosts(host: HostName) -> Result<Hosts, Failure> {
    match host {
        HostName::Tcp | HostName::Quic => Ok(Hosts::Kernel),
        HostName::Quinn => {
            let mut words = program::words()?;
            words.push(quinn_hosts::COMMAND.into());
            Ok(Hosts::Quic(words))
        }
    }
}

/// Whether real hosts can run the scenario.
pub fn check(scenario: &Scenario, traces: &Traces, hosts: Hosts) -> Result<(), InputError> {
    Workload::of(scenario, traces, hosts).map(|_| ())
}

/// Whether the programs are there that are the hosts.
pub fn check_hosts(hosts: &Hosts) -> Result<(), Failure> {
    if *hosts != Hosts::Kernel || command::exists("iperf3".as_ref()) {
        return Ok(());
    }
    Err(Failure::run("iperf3, the host on the emulator, is not installed: `apt install iperf3`"))
}

/// Runs a scenario with `seeds` seeds, one after the other, by `hosts`. The links' logs of the first seed go
/// into the folder, where the scenario asks for them. Must be called before there are other threads.
pub fn scenario(
    scenario: &Scenario,
    traces: &Traces,
    hosts: &Hosts,
    seeds: u32,
    folder: Option<&Folder>,
    command: &str,
) -> Result<JobOutcome, Failure> {
    let mut outcomes = Vec::new();
    for seed in 0..seeds {
        let mut scenario = scenario.clone();
        scenario.seed = scenario.seed.wrapping_add(u64::from(seed));
        let folder = folder.filter(|_| scenario.record.link_logs && seed == 0);
        scenario.record.series &= seed == 0;
        outcomes.push(one(&scenario, traces, hosts, folder, command)?);
    }
    JobOutcome::of(outcomes).ok_or_else(|| Failure::run("a scenario ran with no seed"))
}

fn one(
    scenario: &Scenario,
    traces: &Traces,
    hosts: &Hosts,
    folder: Option<&Folder>,
    command: &str,
) -> Result<Outcome, Failure> {
    let workload = Workload::of(scenario, traces, hosts.clone())?;
    let bottleneck = workload.up.link.as_ref().map(|link| describe_service(&link.spec().service));
    let stem = file_name(&format!("{}.{}", scenario.name, bottleneck.unwrap_or_default()));
    let log = |direction: &DirectionSpec| match (folder, &direction.link) {
        (Some(folder), Some(link)) => {
            let name = format!("links/{stem}.{}.log", file_name(&link.spec().name));
            Ok::<_, Failure>(Some((folder.path(&name)?, command.to_string())))
        }
        _ => Ok(None),
    };
    let logs = [log(&workload.up)?, log(&workload.down)?];
    let (scratch, janitor) = Scratch::watched("hosts")?;
    let note = |note: &str| text::say(&format!("note: {note}"));
    let (outcome, directions) =
        workload.run(scenario, scratch.path(), logs, note).map_err(|error| match error {
            RunError::Emulation(error) => failure(error),
            error => Failure::run(error),
        })?;
    say(&directions, &outcome.run);
    drop((scratch, janitor));
    Ok(outcome)
}

/// Why a command could not be run, with the exit code that says so.
pub(crate) fn failure(error: EmulationError) -> Failure {
    match error {
        // Whoever interrupts knows it.
        EmulationError::Command(CommandError::Interrupted { signal }) => {
            Failure { code: 128u8.saturating_add(signal as u8), message: String::new() }
        }
        EmulationError::Command(error @ CommandError::NotRun { .. }) => Failure::input(error),
        error => Failure::run(error),
    }
}

/// What the run was like, on standard error.
pub(crate) fn say(directions: &Directions, run: &Run) {
    text::say(&directions.in_words());
    for reason in &run.unreliable_because {
        text::say(&format!("unreliable: {reason}"));
    }
}
