//! `parity`: the same scenarios in simulation and on the emulator, side by side, each pair of numbers judged by the one table of
//! tolerances; and where the scenario is one that was measured, the emulator against that measurement by the same table.
//!
//! Every emulated run is a process of its own, so that several can go on at once and none has another's threads.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use brakelight_core::time::Duration;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::documents::{Origin, Runs};
use brakelight_scenario::file;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::reference::{Model, REAL, Real, Tolerance, outside};
use brakelight_scenario::scenario::{Hop, Scenario, Service};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;
use clap::Args;
use serde::Serialize;

use crate::arguments::{DocumentFormat, HostName, count, positive_seconds};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::report::Report;
use crate::simulate::{self, Job};
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number};
use crate::{emulated, origin, run};

/// Seeds of the simulator, whose median is compared.
const SEEDS: u32 = 10;

/// `parity`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A cell is within tolerance where the simulator's median of ten seeds lies no further from the range of the \
    emulated runs than the table says. Try: brakelight parity docs/examples/parity.toml"
)]
pub struct Parity {
    /// Scenario files of one bottleneck and kernel TCP's controllers [default: the recordings that were measured with real
    /// implementations, which BRAKELIGHT_TRACES must hold]
    #[arg(value_name = "SCENARIO.toml")]
    pub scenarios: Vec<PathBuf>,
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

/// One scenario that is run twice.
struct Pair {
    label: String,
    scenario: Scenario,
    tolerance: Tolerance,
    /// Whether the table has a row for it.
    tabled: bool,
    reference: Option<&'static Real>,
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
    /// With what: `emulator` or `reference`.
    against: &'static str,
    /// The median of the simulator, or of the emulator where that is held against a measurement.
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
    let names = Names::from_environment().map_err(Failure::input)?;
    let mut traces = Traces::new();
    let pairs = match arguments.scenarios.as_slice() {
        [] => recordings(arguments.duration, &names, &mut traces)?,
        files => files.iter().map(|file| of_file(file, &names, &mut traces)).collect::<Result<_, _>>()?,
    };
    emulated::check_hosts()?;
    let folder = arguments.out.as_deref().map(Folder::create).transpose()?;
    let origin = origin::origin(pairs.first().map_or(1, |pair| pair.scenario.seed));
    let emulated = emulate(&pairs, arguments, &names)?;
    let jobs: Vec<Job> = pairs
        .iter()
        .zip(&emulated)
        .map(|(pair, runs)| Job { label: pair.label.clone(), scenario: as_emulated(pair, runs), names: None })
        .collect();
    let simulated = simulate::all("simulating", &jobs, SEEDS, &traces)?;
    let simulated: Vec<Run> = simulated.into_iter().map(|result| result.run).collect();
    let rows =
        pairs.iter().zip(simulated.iter().zip(&emulated)).map(|(pair, (sim, emu))| judge(pair, sim, emu));
    let document = Document { origin: &origin, rows: rows.collect::<Result<_, _>>()? };
    if let Some(folder) = folder {
        write(folder, &pairs, &document, &simulated, &emulated)?;
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

/// Every row of the reference that kernel TCP can be run for, and PIE on the recordings on which it was not measured.
fn recordings(duration: Duration, names: &Names, traces: &mut Traces) -> Result<Vec<Pair>, Failure> {
    let mut recordings: Vec<&str> = Vec::new();
    for row in REAL {
        if !recordings.contains(&row.trace) {
            recordings.push(row.trace);
        }
    }
    let mut pairs = Vec::new();
    for real in ["cubic", "bbr", "cubic+codel", "cubic+pie"] {
        let model = Model::of(real).ok_or_else(|| Failure::run(format!("no model of `{real}`")))?;
        for &trace in &recordings {
            let scheme = Scheme::parse(model.scheme).map_err(Failure::run)?;
            let compare = Compare { duration, ..Compare::new(scheme, trace) };
            let mut scenario = compare.scenario()?;
            scenario.name = real.to_string();
            simulate::load_traces(&scenario, names, traces).map_err(|failure| {
                let hint = "the recordings are not part of the project: put them into a folder and name it by BRAKELIGHT_TRACES, or \
                            give scenario files";
                Failure { message: format!("{}; {hint}", failure.message), ..failure }
            })?;
            pairs.push(Pair {
                label: format!("{real} on {trace}"),
                scenario,
                tolerance: model.tolerance,
                tabled: true,
                reference: Real::find(trace, real),
            });
        }
    }
    Ok(pairs)
}

/// The scenario of a file, with the hosts that both sides have: kernel TCP and its model.
fn of_file(path: &Path, names: &Names, traces: &mut Traces) -> Result<Pair, Failure> {
    let mut scenario = run::read(path)?;
    run::set_host(&mut scenario, HostName::Tcp)
        .map_err(|fault| Failure::input(format!("{}: {fault}", path.display())))?;
    traces.extend(run::load_traces(&mut scenario, path, names)?);
    emulated::check(&scenario, traces).map_err(|mut error| {
        error.file = Some(path.display().to_string());
        error
    })?;
    let bottleneck = scenario.flows.first().and_then(|flow| flow.path.first());
    let queue = match bottleneck {
        Some(Hop::Link(name)) => scenario.link(name).map(|index| scenario.links[index].queue.name()),
        _ => None,
    };
    let controller = scenario.flows.first().map(|flow| flow.controller.name());
    let tabled = controller.zip(queue).and_then(|(controller, queue)| Model::tolerance(controller, queue));
    Ok(Pair {
        label: scenario.name.clone(),
        scenario,
        tolerance: tabled.unwrap_or_else(loosest),
        tabled: tabled.is_some(),
        reference: None,
    })
}

/// Of what was never measured nobody knows how far real runs lie apart: what the table allows at most.
fn loosest() -> Tolerance {
    let models = brakelight_scenario::reference::MODELS.iter().map(|model| model.tolerance);
    models.fold(Tolerance { throughput: 0.0, p95: 0.0 }, |most, one| Tolerance {
        throughput: most.throughput.max(one.throughput),
        p95: most.p95.max(one.p95),
    })
}

/// Every emulated run of every pair, in their order.
fn emulate(pairs: &[Pair], arguments: &Parity, names: &Names) -> Result<Vec<Vec<Run>>, Failure> {
    let tasks: Vec<(usize, u32)> =
        (0..arguments.runs).flat_map(|seed| (0..pairs.len()).map(move |pair| (pair, seed))).collect();
    let progress = Progress::new("emulating", tasks.len());
    let next = Mutex::new(tasks.iter());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..arguments.beside {
            scope.spawn(|| {
                while let Some(&(pair, seed)) = lock(&next).next() {
                    let one = in_own_process(&pairs[pair], seed, names);
                    progress.step(&pairs[pair].label);
                    let failed = one.is_err();
                    lock(&done).push((pair, seed, one));
                    if failed {
                        // No use in minutes of more.
                        lock(&next).by_ref().for_each(drop);
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(pair, seed, _)| (*pair, *seed));
    let mut runs: Vec<Vec<Run>> = pairs.iter().map(|_| Vec::new()).collect();
    for (pair, _, run) in done {
        runs[pair].push(run?);
    }
    Ok(runs)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One emulated run: `brakelight run --on emulator`, given the scenario on its standard input.
fn in_own_process(pair: &Pair, seed: u32, names: &Names) -> Result<Run, Failure> {
    let failed = |said: &str| Failure::run(format!("{}, on the emulator: {said}", pair.label));
    let mut scenario = pair.scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(u64::from(seed));
    for link in &mut scenario.links {
        // A file beside the scenario is found from anywhere by its whole path.
        if let Service::Trace(name) = &mut link.service
            && !names.list().contains(name)
        {
            *name = std::path::absolute(&*name).map_err(Failure::run)?.display().to_string();
        }
    }
    let program = std::env::current_exe().map_err(Failure::run)?;
    let mut child = Command::new(program)
        .args(["run", "/dev/stdin", "--on", "emulator", "--format", "json"])
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
fn as_emulated(pair: &Pair, runs: &[Run]) -> Scenario {
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
        // Two round trips from the connection's first packet to its first data: its own handshake, and the word to begin. Half a
        // round trip to either side is the seeds' to draw.
        spec.start = Duration::from_secs_f64(first) + spec.rtt + spec.rtt / 2;
        spec.start_within = spec.start_within.max(spec.rtt);
        spec.stop = Some(spec.start + spec.rtt / 2 + length);
    }
    scenario
}

/// Holds the simulator's median against the emulated runs, and those against what was measured.
fn judge(pair: &Pair, sim: &Run, emulated: &[Run]) -> Result<Row, Failure> {
    let emu =
        Run::median(emulated).ok_or_else(|| Failure::run(format!("{}: there was no run", pair.label)))?;
    let mut cells = Vec::new();
    let mut hold = |against, run: &Run, throughput: [f64; 2], p95: [f64; 2]| {
        cells.push(cell(
            "throughput_mbps",
            against,
            run.throughput_mbps,
            throughput,
            pair.tolerance.throughput,
        ));
        cells.push(cell("p95_ms", against, p95_of(run), p95, pair.tolerance.p95));
    };
    hold("emulator", sim, range(emulated, |run| run.throughput_mbps), range(emulated, p95_of));
    if let Some(real) = pair.reference {
        hold("reference", &emu, real.throughput_mbps, real.p95_ms);
    }
    let inside = cells.iter().all(|cell| cell.verdict == Verdict::Within);
    Ok(Row {
        scenario: pair.scenario.name.clone(),
        trace: sim.trace.clone(),
        simulator: side(sim, SEEDS as usize),
        emulator: side(&emu, emulated.len()),
        source: if pair.tabled { TABLE } else { LOOSEST },
        cells,
        verdict: if inside { Verdict::Within } else { Verdict::Outside },
    })
}

const TABLE: &str = "the table of tolerances, from how far real runs lie apart";
const LOOSEST: &str = "the loosest row of the table: this pair of controller and queue was never measured";

fn cell(name: &'static str, against: &'static str, value: f64, range: [f64; 2], tolerance: f64) -> Cell {
    let off = outside(value, range);
    // What cannot be compared is not within anything.
    let comparable = value.is_finite() && range.iter().all(|end| end.is_finite() && *end > 0.0);
    let within = comparable && off <= tolerance;
    let verdict = if within { Verdict::Within } else { Verdict::Outside };
    Cell {
        name,
        against,
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
    let columns = [
        Column::text("scenario"),
        Column::text("trace"),
        Column::number("simulator", "Mbit/s"),
        Column::number("emulator", "Mbit/s"),
        Column::number("off", "%"),
        Column::number("of", "%"),
        Column::number("simulator", "p95 ms"),
        Column::number("emulator", "p95 ms"),
        Column::number("off", "%"),
        Column::number("of", "%"),
        Column::text("measured"),
        Column::text("verdict"),
    ];
    let table: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let [throughput, p95, reference @ ..] = row.cells.as_slice() else { return Vec::new() };
            let mut cells = vec![row.scenario.clone(), row.trace.clone()];
            for cell in [throughput, p95] {
                cells.push(number(cell.value));
                cells.push(in_range(cell.range));
                cells.push(format!("{:.1}", cell.off_percent));
                cells.push(format!("{:.0}", cell.tolerance_percent));
            }
            let against: Vec<String> =
                reference.iter().map(|cell| format!("{:.1} %", cell.off_percent)).collect();
            cells.push(if against.is_empty() { "–".to_string() } else { against.join(", ") });
            cells.push(verdict(row));
            cells
        })
        .collect();
    let mut text = table::render(&columns, &table, screen);
    text += "measured: how far the emulator lies from real runs through Mahimahi, in throughput and p95, by the same table\n";
    if rows.iter().any(|row| row.source == LOOSEST) {
        text += &format!("a verdict with a star is by {LOOSEST}\n");
    }
    text
}

fn in_range([low, high]: [f64; 2]) -> String {
    if number(low) == number(high) { number(low) } else { format!("{} to {}", number(low), number(high)) }
}

fn verdict(row: &Row) -> String {
    let outside: Vec<&str> =
        row.cells.iter().filter(|cell| cell.verdict == Verdict::Outside).map(|cell| cell.against).collect();
    let mut text = match (outside.contains(&"emulator"), outside.contains(&"reference")) {
        (false, false) => "within".to_string(),
        (true, false) => "OUTSIDE".to_string(),
        (false, true) => "OUTSIDE what was measured".to_string(),
        (true, true) => "OUTSIDE both".to_string(),
    };
    if row.source == LOOSEST {
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
    pairs: &[Pair],
    document: &Document<'_>,
    simulated: &[Run],
    emulated: &[Vec<Run>],
) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    folder.write("parity.json", json + "\n")?;
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for (pair, (sim, emu)) in pairs.iter().zip(simulated.iter().zip(emulated)) {
        for (side, run) in [("simulator", Some(sim.clone())), ("emulator", Run::median(emu))] {
            rows.extend(run.map(|run| Run { scheme: format!("{} in the {side}", run.scheme), ..run }));
        }
        notes.extend(emu.iter().filter(|run| run.unreliable).map(|run| {
            format!("{}, seed {}: unreliable: {}.", pair.label, run.seed, run.unreliable_because.join("; "))
        }));
    }
    for row in document.rows.iter().filter(|row| row.verdict == Verdict::Outside) {
        notes.push(format!("{} on {}: {}.", row.scenario, row.trace, verdict(row)));
    }
    let report = Report {
        title: "Simulator and emulator".to_string(),
        setting: vec![
            ("simulator".to_string(), format!("median of {SEEDS} seeds, host profile tcp")),
            ("emulator".to_string(), "kernel TCP".to_string()),
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
mod tests {
    use super::*;
    use brakelight_scenario::outcome::Summary;

    fn run(throughput_mbps: f64, p95: f64) -> Run {
        let queueing_delay_ms = Some(Summary { p95, ..Summary::default() });
        Run { throughput_mbps, queueing_delay_ms, ..Run::default() }
    }

    fn pair(reference: Option<&'static Real>) -> Pair {
        let model = Model::of("cubic").unwrap();
        let scenario = Compare::new(Scheme::parse(model.scheme).unwrap(), "step").scenario().unwrap();
        Pair { label: "x".into(), scenario, tolerance: model.tolerance, tabled: true, reference }
    }

    #[test]
    fn the_simulators_median_is_held_against_the_range_of_the_emulated_runs() {
        let simulated = run(4.1, 130.0);
        let emulated = [run(4.0, 90.0), run(4.05, 100.0)];
        let row = judge(&pair(None), &simulated, &emulated).unwrap();
        assert_eq!(row.cells.len(), 2);
        assert_eq!((row.cells[0].value, row.cells[0].range), (4.1, [4.0, 4.05]));
        // 4.1 lies 1.2 % above 4.05, of 3; 130 lies 30 % above 100, of 35.
        assert_eq!(row.verdict, Verdict::Within);
        let slower = [run(3.0, 100.0)];
        let row = judge(&pair(None), &simulated, &slower).unwrap();
        assert_eq!((row.cells[0].verdict, row.cells[1].verdict), (Verdict::Outside, Verdict::Within));
        assert_eq!((row.verdict, verdict(&row).as_str()), (Verdict::Outside, "OUTSIDE"));
    }

    #[test]
    fn a_run_that_delivered_nothing_is_within_nothing() {
        let nothing = Run::default();
        let row = judge(&pair(None), &nothing, std::slice::from_ref(&nothing)).unwrap();
        assert_eq!(row.verdict, Verdict::Outside);
    }

    #[test]
    fn the_emulator_is_held_against_what_was_measured_too() {
        let real = Real::find("Verizon-LTE-short.up", "cubic").unwrap();
        let near = run(5.5, 900.0);
        let row = judge(&pair(Some(real)), &near, std::slice::from_ref(&near)).unwrap();
        assert_eq!(row.cells.len(), 4);
        assert_eq!(row.verdict, Verdict::Within);
        let far = run(5.5, 2000.0);
        let row = judge(&pair(Some(real)), &far, std::slice::from_ref(&far)).unwrap();
        assert_eq!(verdict(&row), "OUTSIDE what was measured");
    }

    #[test]
    fn what_was_never_measured_gets_the_most_that_the_table_allows() {
        assert_eq!(loosest(), Tolerance { throughput: 0.08, p95: 0.35 });
    }
}
