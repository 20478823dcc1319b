//! `parity`: the same scenarios in simulation and on the emulator, side by side, each pair of numbers judged by the one table of
//! tolerances; and where the scenario is one that was measured, the emulator against that measurement by the same table. With QUIC
//! the simulation is twofold: the stack's own code under the simulator's clock, and the modelled host.
//!
//! Every emulated run is a process of its own, so that several can go on at once and none has another's threads.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use brakelight_core::time::Duration;
use brakelight_emulator::invoker::AsInvoker;
use brakelight_scenario::documents::{Origin, Runs};
use brakelight_scenario::file;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::reference::outside;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;
use clap::{Args, ValueEnum};
use serde::Serialize;

use self::pairs::Pair;
use crate::arguments::{DocumentFormat, HostName, count, positive_seconds};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::report::Report;
use crate::simulate::{self, Job};
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number};
use crate::{emulated, origin, quinn};

mod pairs;

/// Seeds of the simulator, whose median is compared.
const SEEDS: u32 = 10;

/// `parity`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A cell is within tolerance where the simulator's median of ten seeds lies no further from the range of the \
    emulated runs than the table says. Try: brakelight parity docs/examples/parity.toml"
)]
pub struct Parity {
    /// Scenario files of one bottleneck and controllers that the hosts have [default: recordings, which BRAKELIGHT_TRACES must
    /// hold: of kernel TCP those that were measured with real implementations, of QUIC three of them and a fixed link]
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
    fn profile(self) -> HostName {
        match self {
            RealHost::Tcp => HostName::Tcp,
            RealHost::Quinn => HostName::Quinn,
        }
    }
}

/// The hosts in simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Simulated {
    KernelTcp,
    QuicStack,
    QuicModel,
}

/// What `parity` prints.
#[derive(Debug, Serialize)]
struct Document<'a> {
    origin: &'a Origin,
    rows: Vec<Row>,
}

/// One scenario, judged.
#[derive(Debug, Serialize)]
struct Row {
    scenario: String,
    trace: String,
    simulator: Side,
    /// With QUIC, the modelled host in the place of the stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    modelled: Option<Side>,
    emulator: Side,
    /// Where the tolerances are from.
    source: &'static str,
    cells: Vec<Cell>,
    verdict: Verdict,
}

/// What one of the two said.
#[derive(Debug, Serialize)]
struct Side {
    runs: usize,
    capacity_mbps: f64,
    throughput_mbps: f64,
    utilization: f64,
    p50_ms: f64,
    p95_ms: f64,
    dropped_packets: u64,
    lateness_p99_ms: Option<f64>,
    unreliable: bool,
}

/// One number against a range of others.
#[derive(Debug, Serialize)]
struct Cell {
    /// What is compared: `throughput_mbps` or `p95_ms`.
    name: &'static str,
    /// Of what: `simulator`, `modelled` or `emulator`.
    of: &'static str,
    /// With what: `emulator` or `reference`.
    against: &'static str,
    /// Its median.
    value: f64,
    range: [f64; 2],
    off_percent: f64,
    tolerance_percent: f64,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Within,
    Outside,
}

/// Runs the command. A cell outside its tolerance makes the command fail, after everything has been printed.
pub fn execute(arguments: &Parity) -> Result<(), Failure> {
    let user = AsInvoker::begin();
    let names = Names::from_environment().map_err(Failure::input)?;
    let mut traces = Traces::new();
    let pairs = match arguments.scenarios.as_slice() {
        [] if arguments.host == RealHost::Quinn => pairs::of_quic(arguments.duration, &names, &mut traces)?,
        [] => pairs::recordings(arguments.duration, &names, &mut traces)?,
        files => {
            let pair = |file: &PathBuf| pairs::of_file(file, arguments.host, &names, &mut traces);
            files.iter().map(pair).collect::<Result<_, _>>()?
        }
    };
    drop(user);
    emulated::check_hosts(&emulated::hosts(arguments.host.profile())?)?;
    let folder = arguments.out.as_deref().map(Folder::create).transpose()?;
    let origin = origin::origin(pairs.first().map_or(1, |pair| pair.scenario.seed));
    let emulated = emulate(&pairs, arguments)?;
    let (simulated, modelled) = match arguments.host {
        RealHost::Tcp => (simulate(Simulated::KernelTcp, &pairs, &emulated, &traces)?, None),
        RealHost::Quinn => (
            simulate(Simulated::QuicStack, &pairs, &emulated, &traces)?,
            Some(simulate(Simulated::QuicModel, &pairs, &emulated, &traces)?),
        ),
    };
    let model = |index: usize| modelled.as_ref().map(|runs| &runs[index]);
    let rows = pairs
        .iter()
        .enumerate()
        .map(|(index, pair)| judge(pair, &simulated[index], model(index), &emulated[index]));
    let document = Document { origin: &origin, rows: rows.collect::<Result<_, _>>()? };
    if let Some(folder) = folder {
        let mut sides = vec![("simulator", &simulated)];
        sides.extend(modelled.as_ref().map(|runs| ("model", runs)));
        write(folder, arguments.host, &pairs, &document, &sides, &emulated)?;
    }
    match arguments.format {
        DocumentFormat::Json => text::print_json(&document)?,
        DocumentFormat::Table => text::print(&in_words(&document.rows, &Screen::standard_output()))?,
    }
    let outside = document.rows.iter().filter(|row| row.verdict == Verdict::Outside).count();
    match outside {
        0 => Ok(()),
        _ => {
            let (of, all) = (text::count(outside, "row lies", "rows lie"), document.rows.len());
            Err(Failure::run(format!("{of} outside the tolerances, of {all}")))
        }
    }
}

/// The median run of every pair in simulation.
fn simulate(
    host: Simulated,
    pairs: &[Pair],
    emulated: &[Vec<Run>],
    traces: &Traces,
) -> Result<Vec<Run>, Failure> {
    let job = |(pair, runs): (&Pair, &Vec<Run>)| Job {
        label: pair.label.clone(),
        scenario: as_emulated(pair, runs, host),
        names: None,
    };
    let jobs: Vec<Job> = pairs.iter().zip(emulated).map(job).collect();
    let (runner, what): (simulate::Runner, _) = match host {
        Simulated::KernelTcp => (brakelight_sim::run, "simulating"),
        Simulated::QuicStack => (quinn::run, "simulating, with the stack"),
        Simulated::QuicModel => (brakelight_sim::run, "simulating, with the model"),
    };
    let results = simulate::all_by(runner, what, &jobs, SEEDS, traces)?;
    Ok(results.into_iter().map(|result| result.run).collect())
}

/// Every emulated run of every pair, in their order.
fn emulate(pairs: &[Pair], arguments: &Parity) -> Result<Vec<Vec<Run>>, Failure> {
    let tasks: Vec<(usize, u32)> =
        (0..arguments.runs).flat_map(|seed| (0..pairs.len()).map(move |pair| (pair, seed))).collect();
    let progress = Progress::new("emulating", tasks.len());
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

/// What `act` makes of each task, by the task's place, `beside` of them at a time. After a failure none is begun.
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

/// The scenario over the time that the emulated runs took. Real hosts talk before their data, for half a second or so, and after
/// them, until the last has arrived; the link's capacity of that time counts, as it does in the reference measurements. So the
/// simulated flows start and stop when the emulated ones did, and the run ends when theirs ended.
fn as_emulated(pair: &Pair, runs: &[Run], host: Simulated) -> Scenario {
    let mut scenario = pair.scenario.clone();
    let Some(run) = Run::median(runs) else { return scenario };
    let planned = scenario.duration;
    scenario.duration = scenario.measure_from + Duration::from_secs_f64(run.duration_s);
    for spec in &mut scenario.flows {
        let names: Vec<String> = (0..spec.count).map(|index| spec.name_of(index)).collect();
        let started =
            run.flows.iter().filter(|flow| names.contains(&flow.name)).filter_map(|flow| {
                flow.application.as_ref().and_then(|times| times.get("started_s")).copied()
            });
        let Some(first) = started.min_by(f64::total_cmp) else { continue };
        let length = spec.stop.unwrap_or(planned).min(planned).saturating_sub(spec.start);
        // From the connection's first packet to its first data: with TCP its own handshake, and the word to begin; with QUIC the
        // handshake, which the stack makes in simulation too and the model does not. Half a round trip to either side is the
        // seeds' to draw.
        let (before_begin, before_data) = match host {
            Simulated::KernelTcp => (spec.rtt * 2, spec.rtt * 2),
            Simulated::QuicStack => (Duration::ZERO, spec.rtt),
            Simulated::QuicModel => (spec.rtt, spec.rtt),
        };
        let first = Duration::from_secs_f64(first);
        spec.start = (first + before_begin).saturating_sub(spec.rtt / 2);
        spec.start_within = spec.start_within.max(spec.rtt);
        spec.stop = Some(first + before_data + length);
    }
    scenario
}

/// Holds the simulator's median against the emulated runs, and those against what was measured.
fn judge(pair: &Pair, sim: &Run, modelled: Option<&Run>, emulated: &[Run]) -> Result<Row, Failure> {
    let emu =
        Run::median(emulated).ok_or_else(|| Failure::run(format!("{}: there was no run", pair.label)))?;
    let mut cells = Vec::new();
    let mut hold = |of, against, run: &Run, throughput: [f64; 2], p95: [f64; 2]| {
        let tolerance = pair.tolerance;
        let sides = Sides { of, against };
        cells.push(cell("throughput_mbps", sides, run.throughput_mbps, throughput, tolerance.throughput));
        cells.push(cell("p95_ms", sides, p95_of(run), p95, tolerance.p95));
    };
    let (throughput, p95) = (range(emulated, |run| run.throughput_mbps), range(emulated, p95_of));
    hold("simulator", "emulator", sim, throughput, p95);
    if let Some(modelled) = modelled {
        hold("modelled", "emulator", modelled, throughput, p95);
    }
    if let Some(real) = pair.reference {
        hold("emulator", "reference", &emu, real.throughput_mbps, real.p95_ms);
    }
    let inside = cells.iter().all(|cell| cell.verdict == Verdict::Within);
    Ok(Row {
        scenario: pair.scenario.name.clone(),
        trace: sim.trace.clone(),
        simulator: side(sim, SEEDS as usize),
        modelled: modelled.map(|run| side(run, SEEDS as usize)),
        emulator: side(&emu, emulated.len()),
        source: pair.source,
        cells,
        verdict: if inside { Verdict::Within } else { Verdict::Outside },
    })
}

#[derive(Clone, Copy)]
struct Sides {
    of: &'static str,
    against: &'static str,
}

fn cell(name: &'static str, sides: Sides, value: f64, range: [f64; 2], tolerance: f64) -> Cell {
    let off = outside(value, range);
    // What cannot be compared is not within anything.
    let comparable = value.is_finite() && range.iter().all(|end| end.is_finite() && *end > 0.0);
    let within = comparable && off <= tolerance;
    let verdict = if within { Verdict::Within } else { Verdict::Outside };
    Cell {
        name,
        of: sides.of,
        against: sides.against,
        value,
        range,
        off_percent: 100.0 * off,
        tolerance_percent: 100.0 * tolerance,
        verdict,
    }
}

fn p95_of(run: &Run) -> f64 {
    run.queueing_delay_ms.map_or(f64::NAN, |delay| delay.p95)
}

fn range(runs: &[Run], value: impl Fn(&Run) -> f64) -> [f64; 2] {
    let values = runs.iter().map(value);
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)])
}

fn side(run: &Run, runs: usize) -> Side {
    Side {
        runs,
        capacity_mbps: run.capacity_mbps,
        throughput_mbps: run.throughput_mbps,
        utilization: run.utilization,
        p50_ms: run.queueing_delay_ms.map_or(f64::NAN, |delay| delay.p50),
        p95_ms: p95_of(run),
        dropped_packets: run.dropped_packets,
        lateness_p99_ms: run.lateness_ms.map(|late| late.p99),
        unreliable: run.unreliable,
    }
}

fn in_words(rows: &[Row], screen: &Screen) -> String {
    let modelled = rows.iter().any(|row| row.modelled.is_some());
    let mut columns = vec![Column::text("scenario"), Column::text("trace")];
    for unit in ["Mbit/s", "p95 ms"] {
        columns.push(Column::number(if modelled { "stack" } else { "simulator" }, unit));
        columns.extend(modelled.then(|| Column::number("model", unit)));
        columns.push(Column::number("emulator", unit));
        columns.push(Column::number("off", "%"));
        columns.extend(modelled.then(|| Column::number("model off", "%")));
        columns.push(Column::number("of", "%"));
    }
    columns.extend((!modelled).then(|| Column::text("measured")));
    columns.push(Column::text("verdict"));
    let table: Vec<Vec<String>> = rows.iter().map(|row| words_of(row, modelled)).collect();
    let mut text = table::render(&columns, &table, screen);
    if modelled {
        text += "stack and model: QUIC's own code and the modelled host in simulation, each held against the emulated runs\n";
    } else {
        text += "measured: how far the emulator lies from real runs through Mahimahi, in throughput and p95, by the same table\n";
    }
    if rows.iter().any(|row| row.source == pairs::LOOSEST) {
        text += &format!("a verdict with a star is by {}\n", pairs::LOOSEST);
    }
    text
}

fn words_of(row: &Row, modelled: bool) -> Vec<String> {
    let cell = |of: &str, name: &str| row.cells.iter().find(|cell| (cell.of, cell.name) == (of, name));
    let mut words = vec![row.scenario.clone(), row.trace.clone()];
    for name in ["throughput_mbps", "p95_ms"] {
        let Some(own) = cell("simulator", name) else { return words };
        let model = cell("modelled", name);
        words.push(number(own.value));
        words.extend(model.map(|model| number(model.value)));
        words.push(in_range(own.range));
        words.push(format!("{:.1}", own.off_percent));
        words.extend(model.map(|model| format!("{:.1}", model.off_percent)));
        words.push(format!("{:.0}", own.tolerance_percent));
    }
    if !modelled {
        let against: Vec<String> = (row.cells.iter().filter(|cell| cell.against == "reference"))
            .map(|cell| format!("{:.1} %", cell.off_percent))
            .collect();
        words.push(if against.is_empty() { "–".to_string() } else { against.join(", ") });
    }
    words.push(verdict(row));
    words
}

fn in_range([low, high]: [f64; 2]) -> String {
    if number(low) == number(high) { number(low) } else { format!("{} to {}", number(low), number(high)) }
}

fn verdict(row: &Row) -> String {
    let outside = |of: &str| row.cells.iter().any(|cell| cell.of == of && cell.verdict == Verdict::Outside);
    let model = row.modelled.is_some();
    let mut text = match (outside("simulator"), outside("modelled"), outside("emulator")) {
        (false, false, false) => "within",
        (true, false, false) if model => "OUTSIDE: the stack",
        (true, false, false) => "OUTSIDE",
        (false, true, _) => "OUTSIDE: the model",
        (false, false, true) => "OUTSIDE what was measured",
        (true, ..) => "OUTSIDE both",
    }
    .to_string();
    if row.source == pairs::LOOSEST {
        text += "*";
    }
    if row.emulator.unreliable {
        text += ", unreliable";
    }
    text
}

/// Writes the judgements as JSON, and every row of both sides as a report.
fn write(
    folder: Folder,
    host: RealHost,
    pairs: &[Pair],
    document: &Document<'_>,
    sides: &[(&str, &Vec<Run>)],
    emulated: &[Vec<Run>],
) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    folder.write("parity.json", json + "\n")?;
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for (index, (pair, emu)) in pairs.iter().zip(emulated).enumerate() {
        let simulated = sides.iter().map(|(side, runs)| (*side, Some(runs[index].clone())));
        for (side, run) in simulated.chain([("emulator", Run::median(emu))]) {
            rows.extend(run.map(|run| Run { scheme: format!("{} in the {side}", run.scheme), ..run }));
        }
        notes.extend(emu.iter().filter(|run| run.unreliable).map(|run| {
            format!("{}, seed {}: unreliable: {}.", pair.label, run.seed, run.unreliable_because.join("; "))
        }));
    }
    for row in document.rows.iter().filter(|row| row.verdict == Verdict::Outside) {
        notes.push(format!("{} on {}: {}.", row.scenario, row.trace, verdict(row)));
    }
    let (simulator, real) = match host {
        RealHost::Tcp => ("host profile tcp", "kernel TCP"),
        RealHost::Quinn => ("the QUIC stack, and its model: host profile quic", "QUIC, by perf"),
    };
    let report = Report {
        title: "Simulator and emulator".to_string(),
        setting: vec![
            ("simulator".to_string(), format!("median of {SEEDS} seeds, {simulator}")),
            ("emulator".to_string(), real.to_string()),
        ],
        notes,
        origin: document.origin,
        runs: &rows,
        series: Vec::new(),
        reference: None,
    };
    folder.write("report.html", report.html())?;
    let place = folder.keep()?;
    text::say(&format!("report: {}", place.join("report.html").display()));
    Ok(())
}

#[cfg(test)]
mod tests;
