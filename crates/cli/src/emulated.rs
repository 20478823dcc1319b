//! Scenarios on the emulator: the same file as in simulation, by kernel TCP, real QUIC or any programs, in
//! real time.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use brakelight_emulator::command::{self, CommandError};
use brakelight_emulator::emulation::EmulationError;
use brakelight_emulator::outcome::Directions;
use brakelight_emulator::spec::DirectionSpec;
use brakelight_emulator::workload::{self, Hosts, RunError, Workload};
use brakelight_files::folder::Folder;
use brakelight_files::scratch::Scratch;
use brakelight_files::system::AsInvoker;
use brakelight_lab::Table;
use brakelight_lab::jobs::JobOutcome;
use brakelight_lab::series::file_name;
use brakelight_lab::{hosted, quinn};
use brakelight_scenario::measure::describe_service;
use brakelight_scenario::outcome::{Outcome, Run};
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::{FlowSpec, Scenario};
use brakelight_sim::Traces;

use crate::arguments::{HostName, Programs};
use crate::failure::Failure;
use crate::{program, quinn_hosts, text};

/// Returns who the hosts are, by what was asked for: kernel TCP, or QUIC by this very program
/// ([`quinn_hosts`]).
pub fn hosts(host: HostName) -> Result<Hosts, Failure> {
    match host {
        HostName::Tcp | HostName::Quic => Ok(Hosts::Kernel),
        HostName::Quinn => quic(),
    }
}

fn quic() -> Result<Hosts, Failure> {
    let mut words = program::words()?;
    words.push(quinn_hosts::COMMAND.into());
    Ok(Hosts::Quic(words))
}

/// Returns who the hosts of `scenario` are, if `host` was asked for. A controller that lives in a host from
/// outside brings that host.
pub fn hosts_of(scenario: &Scenario, host: Option<HostName>) -> Result<Hosts, Failure> {
    if !scenario.flows.iter().any(is_hosted) {
        return hosts(host.unwrap_or(HostName::Tcp));
    }
    quic()
}

/// Says which flow of `scenario` its stack cannot run, and why, if one lives in a host from outside. The
/// others are then of the QUIC stack.
pub fn check_hosted(scenario: &Scenario) -> Result<(), String> {
    if !scenario.flows.iter().any(is_hosted) {
        return Ok(());
    }
    quinn::check(scenario).and_then(|()| hosted::check(scenario))
}

fn is_hosted(flow: &FlowSpec) -> bool {
    flow.controller.hosted().is_some()
}

/// Returns the programs that `--command` and `--server` put in place of the scenario's flow, if any.
pub fn programs(arguments: &Programs) -> Result<Option<Hosts>, Failure> {
    let Some(command) = &arguments.command else { return Ok(None) };
    let blank = |line: &OsStr| line.to_string_lossy().trim().is_empty();
    if blank(command) {
        return Err(Failure::input("--command: it is empty; give a command line for the shell"));
    }
    if arguments.servers.iter().any(|line| blank(line)) {
        return Err(Failure::input("--server: it is empty; give a command line for the shell"));
    }
    let programs = workload::Programs {
        command: command.clone(),
        servers: arguments.servers.clone(),
        download: arguments.download,
    };
    Ok(Some(Hosts::Programs(programs)))
}

/// Says in `table` which programs took the place of the scenario's flow, whose controller and host no longer
/// matter.
pub fn describe(mut table: Table, hosts: &Hosts) -> Table {
    let Hosts::Programs(programs) = hosts else { return table };
    table.caveats.clear();
    let mut say = |name: &str, text: &OsStr| {
        table.setting.push((name.to_string(), text.to_string_lossy().into_owned()));
    };
    say("command", &programs.command);
    programs.servers.iter().for_each(|server| say("server", server));
    say("data", OsStr::new(if programs.download { "to the command" } else { "from the command" }));
    table
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
/// into the folder, where the scenario asks for them, and what programs print. Must be called before there
/// are other threads.
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
        let logs = folder.filter(|_| scenario.record.link_logs && seed == 0);
        scenario.record.series &= seed == 0;
        outcomes.push(one(&scenario, traces, hosts, logs, folder, command)?);
    }
    JobOutcome::of(outcomes).ok_or_else(|| Failure::run("a scenario ran with no seed"))
}

fn one(
    scenario: &Scenario,
    traces: &Traces,
    hosts: &Hosts,
    folder: Option<&Folder>,
    printed: Option<&Folder>,
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
    if let (Hosts::Programs(_), Some(flow)) = (hosts, workload.flows.first()) {
        let (flow, controller) = (&flow.name, flow.controller);
        note(&format!("the command takes the place of flow `{flow}`, and `{controller}` is not used"));
    }
    let ran = workload.run(scenario, scratch.path(), logs, note);
    if let Hosts::Programs(_) = hosts {
        if ran.is_err() {
            workload::said(scratch.path()).iter().for_each(|line| text::say(line));
        }
        if let Some(folder) = printed {
            keep(scratch.path(), folder, scenario.seed)?;
        }
    }
    let (outcome, directions) = ran.map_err(|error| match error {
        RunError::Emulation(error) => failure(error),
        error @ RunError::Command { .. } => Failure::run(format!("{error}; its last lines are above")),
        error => Failure::run(error),
    })?;
    say(&directions, &outcome.run);
    drop((scratch, janitor));
    Ok(outcome)
}

/// Keeps what the programs printed, which is in files in `scratch`, among the results.
fn keep(scratch: &Path, folder: &Folder, seed: u64) -> Result<(), Failure> {
    let _user = AsInvoker::begin();
    for entry in fs::read_dir(scratch).map_err(Failure::run)? {
        let entry = entry.map_err(Failure::run)?;
        let contents = fs::read(entry.path()).map_err(Failure::run)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        folder.write(&format!("programs/seed-{seed}.{name}"), contents)?;
    }
    Ok(())
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
