//! `parity`: the same scenarios in simulation and on the emulator, side by side.
//!
//! Every emulated run is a process of its own, so that several can go on at once and none has another's
//! threads.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use brakelight_core::registry::Registry;
use brakelight_core::time::Duration;
use brakelight_emulator::invoker::AsInvoker;
use brakelight_lab::parity::{self, Document, Hosts, Judged, Pair, pairs};
use brakelight_lab::quinn::QuicStack;
use brakelight_lab::text::{count as counted, parity::in_words};
use brakelight_lab::{Progress, Runner, input};
use brakelight_scenario::documents::Runs;
use brakelight_scenario::file;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;
use clap::{Args, ValueEnum};

use crate::arguments::{DocumentFormat, HostName, count, positive_seconds};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::Bar;
use crate::text;
use crate::{emulated, host, origin};

/// `parity`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A cell is within tolerance where the simulator's median of ten seeds lies no further from the range of the \
    emulated runs than the table says. Try: brakelight parity docs/examples/parity.toml"
)]
pub struct Parity {
    /// Scenario files of one bottleneck and controllers that the hosts have [default: recordings, which
    /// BRAKELIGHT_TRACES must hold: of kernel TCP those that were measured with real implementations, of QUIC
    /// three of them and a fixed link]
    #[arg(value_name = "SCENARIO.toml")]
    pub scenarios: Vec<PathBuf>,
    /// Who the hosts on the emulator are
    #[arg(long, default_value = "tcp", value_enum)]
    pub host: RealHost,
    /// Emulated runs of each scenario, with seeds from its own upwards
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_hyphen_values = true)]
    pub runs: u32,
    /// Emulated runs at the same time; they share the machine
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_hyphen_values = true)]
    pub beside: u32,
    /// Length of a run of the recordings
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_seconds, allow_hyphen_values = true)]
    pub duration: Duration,
    /// Write report.html and parity.json into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How to print the judgements
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// The hosts on the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RealHost {
    /// Kernel TCP, beside its model
    Tcp,
    /// QUIC, beside its own code in simulation and the modelled host
    Quinn,
}

impl RealHost {
    fn sides(self) -> Hosts {
        match self {
            RealHost::Tcp => Hosts::Tcp,
            RealHost::Quinn => Hosts::Quic,
        }
    }

    fn profile(self) -> HostName {
        match self {
            RealHost::Tcp => HostName::Tcp,
            RealHost::Quinn => HostName::Quinn,
        }
    }
}

/// Runs the command. A cell outside its tolerance makes the command fail, after everything has been printed.
pub fn execute(registry: &Registry, arguments: &Parity) -> Result<(), Failure> {
    let user = AsInvoker::begin();
    let names = Names::from_environment().map_err(Failure::input)?;
    let mut traces = Traces::new();
    let pairs = match arguments.scenarios.as_slice() {
        [] if arguments.host == RealHost::Quinn => pairs::of_quic(arguments.duration, &names, &mut traces)?,
        [] => pairs::recordings(arguments.duration, &names, &mut traces)?,
        files => {
            let pair = |file: &PathBuf| of_file(registry, file, arguments.host, &names, &mut traces);
            files.iter().map(pair).collect::<Result<_, _>>()?
        }
    };
    drop(user);
    emulated::check_hosts(&emulated::hosts(arguments.host.profile())?)?;
    let folder = arguments.out.as_deref().map(Folder::create).transpose()?;
    let origin = origin::origin(pairs.first().map_or(1, |pair| pair.scenario.seed));
    let emulated = emulate(&pairs, arguments)?;
    let stack: Option<&dyn Runner> = match arguments.host {
        RealHost::Tcp => None,
        RealHost::Quinn => Some(&QuicStack),
    };
    let judged = parity::compare(&pairs, &emulated, &traces, stack, &Bar::default())?;
    let outside = judged.outside();
    let Judged { rows, table } = judged;
    let document = Document { origin: &origin, rows };
    if let Some(folder) = folder {
        write(folder, &document, &table.report(&origin).html())?;
    }
    match arguments.format {
        DocumentFormat::Json => text::print_json(&document)?,
        DocumentFormat::Table => text::print(&in_words(&document.rows, &text::standard_output()))?,
    }
    match outside {
        0 => Ok(()),
        _ => {
            let (of, all) = (counted(outside, "row lies", "rows lie"), document.rows.len());
            Err(Failure::run(format!("{of} outside the tolerances, of {all}")))
        }
    }
}

/// The scenario of a file, with the hosts that both sides have.
fn of_file(
    registry: &Registry,
    path: &Path,
    hosts: RealHost,
    names: &Names,
    traces: &mut Traces,
) -> Result<Pair, Failure> {
    let mut scenario = input::scenario(registry, path)?;
    host::set(&mut scenario, hosts.profile())
        .map_err(|fault| Failure::input(format!("{}: {fault}", path.display())))?;
    pairs::load_traces(&mut scenario, path, names, traces)?;
    emulated::check(&scenario, traces, emulated::hosts(hosts.profile())?).map_err(|mut error| {
        error.file = Some(path.display().to_string());
        error
    })?;
    Ok(pairs::of_scenario(scenario, hosts.sides()))
}

/// Every emulated run of every pair, in their order.
fn emulate(pairs: &[Pair], arguments: &Parity) -> Result<Vec<Vec<Run>>, Failure> {
    let tasks: Vec<(usize, u32)> =
        (0..arguments.runs).flat_map(|seed| (0..pairs.len()).map(move |pair| (pair, seed))).collect();
    let progress = Bar::new("emulating", tasks.len());
    let done = side_by_side(&tasks, arguments.beside, |&(pair, seed)| {
        let one = in_own_process(&pairs[pair], arguments.host, seed);
        progress.step(&pairs[pair].label);
        one
    });
    let mut runs: Vec<Vec<Run>> = pairs.iter().map(|_| Vec::new()).collect();
    for (task, run) in done {
        runs[tasks[task].0].push(run?);
    }
    Ok(runs)
}

/// What `act` makes of each task, by the task's place, `beside` of them at a time. After a failure none is
/// begun.
fn side_by_side<T: Sync, R: Send>(
    tasks: &[T],
    beside: u32,
    act: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Vec<(usize, Result<R, Failure>)> {
    let next = Mutex::new(tasks.iter().enumerate());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..beside {
            scope.spawn(|| {
                loop {
                    // A statement of its own: the lock is not to be held while the task goes on.
                    let task = lock(&next).next();
                    let Some((place, task)) = task else { break };
                    let one = act(task);
                    if one.is_err() {
                        // No use in minutes of more.
                        lock(&next).by_ref().for_each(drop);
                    }
                    lock(&done).push((place, one));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One emulated run: `brakelight run --on emulator`, given the scenario on its standard input.
fn in_own_process(pair: &Pair, host: RealHost, seed: u32) -> Result<Run, Failure> {
    let failed = |said: &str| Failure::run(format!("{}, on the emulator: {said}", pair.label));
    let mut scenario = pair.scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(u64::from(seed));
    let program = std::env::current_exe().map_err(Failure::run)?;
    let host = match host {
        RealHost::Tcp => "tcp",
        RealHost::Quinn => "quinn",
    };
    let mut child = Command::new(program)
        .args(["run", "/dev/stdin", "--on", "emulator", "--host", host, "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::run)?;
    if let Some(mut input) = child.stdin.take() {
        // If it is gone already, its own words say why.
        let _ = input.write_all(file::write(&scenario).as_bytes());
    }
    let output = child.wait_with_output().map_err(Failure::run)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failed(said.lines().last().unwrap_or("its process said nothing").trim()));
    }
    let document: Runs =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(&error.to_string()))?;
    document.runs.into_iter().next().ok_or_else(|| failed("no row"))
}

/// Writes the judgements as JSON, and every row of both sides as a report.
fn write(folder: Folder, document: &Document<'_>, report: &str) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    folder.write("parity.json", json + "\n")?;
    folder.write("report.html", report)?;
    let place = folder.keep()?;
    text::say(&format!("report: {}", place.join("report.html").display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_on_side_by_side_and_end_with_the_first_that_fails() {
        let (going, met) = (Mutex::new(0), std::sync::Condvar::new());
        let met_another = |_: &u32| {
            *lock(&going) += 1;
            met.notify_all();
            let patience = std::time::Duration::from_secs(60);
            let waited = met.wait_timeout_while(lock(&going), patience, |going| *going < 2).unwrap();
            Ok(!waited.1.timed_out())
        };
        let seen: Vec<bool> =
            side_by_side(&[1, 2], 2, met_another).into_iter().map(|(_, seen)| seen.unwrap()).collect();
        assert_eq!(seen, [true, true]);
        let fails = |task: &u32| if *task == 1 { Err(Failure::run("no")) } else { Ok(()) };
        let tried = side_by_side(&[0, 1, 2, 3], 1, fails);
        assert_eq!(
            tried.iter().map(|(place, one)| (*place, one.is_ok())).collect::<Vec<_>>(),
            [(0, true), (1, false)]
        );
    }
}
