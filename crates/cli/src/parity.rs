//! `parity`: the same scenarios in simulation and on the emulator, side by side.
//!
//! Every emulated run is a process of its own, so that several can go on at once and none has another's
//! threads.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use brakelight_core::time::Duration;
use brakelight_emulator::window_limited::WORDS;
use brakelight_files::folder::Folder;
use brakelight_files::system::AsInvoker;
use brakelight_lab::parity::{self, Document, Hosts, Judged, Pair, pairs, side_by_side};
use brakelight_lab::quinn::QuicStack;
use brakelight_lab::text::{count as counted, parity::in_words};
use brakelight_lab::{Runner, Simulator, input};
use brakelight_registry::Registry;
use brakelight_scenario::documents::Runs;
use brakelight_scenario::file;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;
use clap::{Args, ValueEnum};

use crate::arguments::{DocumentFormat, HostName, count, positive_seconds};
use crate::failure::Failure;
use crate::output;
use crate::progress::Bar;
use crate::text;
use crate::{emulated, host, origin, program};

/// `parity`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A cell is within tolerance if the simulator's median of ten seeds is no further from the range of the emulated runs than the table says. Try: brakelight parity SCENARIO.toml"
)]
pub struct Parity {
    /// Scenario files with one bottleneck and controllers that the hosts have [default: recordings from
    /// BRAKELIGHT_TRACES: for kernel TCP those measured with real implementations, for QUIC three of them and
    /// a fixed link, for stacks two of them and a fixed link]
    #[arg(value_name = "SCENARIO.toml")]
    pub scenarios: Vec<PathBuf>,
    /// The hosts on the emulator
    #[arg(long, default_value = "tcp", value_enum)]
    pub host: RealHost,
    /// Emulated runs of each scenario, starting with its own seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_hyphen_values = true)]
    pub runs: u32,
    /// Number of emulated runs at the same time; they share the machine
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_hyphen_values = true)]
    pub beside: u32,
    /// Length of a run on the recordings
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_seconds, allow_hyphen_values = true)]
    pub duration: Duration,
    /// Write report.html and parity.json into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write even into a folder that holds other files
    #[arg(long, requires = "out")]
    pub force: bool,
    /// How to print the verdicts
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// The hosts on the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RealHost {
    /// Kernel TCP, compared with its model
    Tcp,
    /// QUIC, compared with its own code in simulation and with the modeled host
    Quinn,
    /// Stacks of others, compared with their own code in simulation
    Stacks,
}

impl RealHost {
    fn sides(self) -> Hosts {
        match self {
            RealHost::Tcp => Hosts::Tcp,
            RealHost::Quinn => Hosts::Quic,
            RealHost::Stacks => Hosts::Outside,
        }
    }

    /// The profile of the flows' hosts; of stacks none, for they bring their hosts.
    fn profile(self) -> Option<HostName> {
        match self {
            RealHost::Tcp => Some(HostName::Tcp),
            RealHost::Quinn => Some(HostName::Quinn),
            RealHost::Stacks => None,
        }
    }

    /// What runs the flows in simulation.
    fn runner(self) -> &'static dyn Runner {
        match self {
            RealHost::Tcp | RealHost::Stacks => &Simulator,
            RealHost::Quinn => &QuicStack,
        }
    }
}

/// Runs the command. A cell outside its tolerance makes the command fail, after everything has been printed.
pub fn execute(registry: &Registry, arguments: &Parity) -> Result<(), Failure> {
    let user = AsInvoker::begin();
    let names = Names::from_environment().map_err(Failure::input)?;
    let mut traces = Traces::new();
    let pairs = match arguments.scenarios.as_slice() {
        [] => match arguments.host {
            RealHost::Tcp => pairs::recordings(arguments.duration, &names, &mut traces)?,
            RealHost::Quinn => pairs::of_quic(arguments.duration, &names, &mut traces)?,
            RealHost::Stacks => pairs::of_outside(registry, arguments.duration, &names, &mut traces)?,
        },
        files => {
            let pair = |file: &PathBuf| of_file(registry, file, arguments.host, &names, &mut traces);
            files.iter().map(pair).collect::<Result<_, _>>()?
        }
    };
    drop(user);
    let Some(first) = pairs.first() else {
        let reason = "--host stacks: there is no stack in this build: build it with `--features stacks`";
        return Err(Failure::input(reason));
    };
    emulated::check_hosts(&emulated::hosts_of(&first.scenario, arguments.host.profile())?)?;
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let origin = origin::origin(first.scenario.seed);
    let progress = Bar::default();
    let one = |pair: &Pair, seed| in_own_process(pair, arguments.host, seed);
    let emulated = side_by_side::emulate(&pairs, arguments.runs, arguments.beside, &progress, one)?;
    drop(progress);
    let (sides, runner) = (arguments.host.sides(), arguments.host.runner());
    let judged = parity::compare(&pairs, &emulated, &traces, sides, runner, &Bar::default())?;
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
    let in_file = |fault: String| Failure::input(format!("{}: {fault}", path.display()));
    match hosts.profile() {
        Some(profile) => {
            host::set(&mut scenario, profile).map_err(in_file)?;
        }
        None => check_stacks(&scenario).map_err(in_file)?,
    }
    pairs::load_traces(&mut scenario, path, names, traces)?;
    let real = emulated::hosts_of(&scenario, hosts.profile())?;
    emulated::check(&scenario, traces, real).map_err(|mut error| {
        error.file = Some(path.display().to_string());
        error
    })?;
    Ok(pairs::of_scenario(scenario, hosts.sides()))
}

/// Says which flow is of no stack, and why its stack cannot run one.
fn check_stacks(scenario: &Scenario) -> Result<(), String> {
    if let Some(flow) = scenario.flows.iter().find(|flow| flow.controller.hosted().is_none()) {
        let (flow, controller) = (&flow.name, flow.controller.name());
        return Err(format!(
            "flow `{flow}`: `{controller}` lives in no stack of others: valid are those of `list hosts`"
        ));
    }
    emulated::check_hosted(scenario)
}

/// One emulated run: `brakelight run --on emulator`, given the scenario on its standard input.
fn in_own_process(pair: &Pair, host: RealHost, seed: u32) -> Result<Run, Failure> {
    let failed = |said: &str| Failure::run(format!("{}, on the emulator: {said}", pair.label));
    let mut scenario = pair.scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(u64::from(seed));
    let host: &[&str] = match host {
        RealHost::Tcp => &["--host", "tcp"],
        RealHost::Quinn => &["--host", "quinn"],
        RealHost::Stacks => &[],
    };
    let mut child = program::command()?
        .args(["run", "/dev/stdin", "--on", "emulator", "--format", "json"])
        .args(host)
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
        return Err(failed(said.lines().last().unwrap_or("its process printed nothing").trim()));
    }
    for note in said.lines().filter(|line| line.contains(WORDS)) {
        text::say(&format!("{}, seed {}: {note}", pair.label, scenario.seed));
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
