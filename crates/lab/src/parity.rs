//! Simulator beside emulator: the same scenarios in both, each pair of numbers judged by the one table of
//! tolerances; and where the scenario is one that was measured, the emulator against that measurement by the
//! same table. With QUIC the simulation is twofold: the stack's own code under the simulator's clock, and the
//! modelled host. A host from outside is compared with itself in simulation.
//!
//! The emulated runs are given: whoever has an emulator makes them.

use brakelight_core::time::Duration;
use brakelight_scenario::documents::Origin;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::reference::outside;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::Traces;
use serde::Serialize;

pub use self::pairs::Pair;
use crate::error::Error;
use crate::jobs::{self, Job};
use crate::progress::Progress;
use crate::runner::{Runner, Simulator};
use crate::table::Table;
use crate::text::parity::verdict;

pub mod pairs;
pub mod side_by_side;

/// Seeds of the simulator, whose median is compared.
pub const SEEDS: u32 = 10;

/// The hosts on the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Kernel TCP, beside its model.
    Tcp,
    /// QUIC, beside its own code in simulation and the modelled host.
    Quic,
    /// Hosts from outside, beside their own code in simulation.
    Outside,
}

/// The hosts in simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Simulated {
    KernelTcp,
    QuicStack,
    QuicModel,
}

/// The JSON document of `parity`.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// Where it comes from.
    pub origin: &'a Origin,
    /// One row per scenario.
    pub rows: Vec<Row>,
}

/// The judgement of one scenario.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The name of the scenario.
    pub scenario: String,
    /// The trace of its bottleneck, or the rate.
    pub trace: String,
    /// What the simulation gave.
    pub simulator: Side,
    /// With QUIC, the modelled host in the place of the stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Side>,
    /// What the emulated runs gave.
    pub emulator: Side,
    /// Where the tolerances are from.
    pub source: &'static str,
    /// Its numbers, judged.
    pub cells: Vec<Cell>,
    /// Within, if all cells are.
    pub verdict: Verdict,
}

/// The result of one side: simulation or emulation.
#[derive(Debug, Serialize)]
pub struct Side {
    /// How many runs this is the median of.
    pub runs: usize,
    /// What the bottleneck could have carried.
    pub capacity_mbps: f64,
    /// What it carried.
    pub throughput_mbps: f64,
    /// Their ratio.
    pub utilization: f64,
    /// Median of the queueing delay.
    pub p50_ms: f64,
    /// 95th percentile of the queueing delay.
    pub p95_ms: f64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// How late the machine was, 99th percentile; none in simulation.
    pub lateness_p99_ms: Option<f64>,
    /// Whether the machine could not keep up.
    pub unreliable: bool,
}

/// The comparison of one number with a range of others.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// What is compared: `throughput_mbps` or `p95_ms`.
    pub name: &'static str,
    /// Of what: `simulator`, `modelled` or `emulator`.
    pub of: &'static str,
    /// With what: `emulator` or `reference`.
    pub against: &'static str,
    /// Its median.
    pub value: f64,
    /// The least and the greatest of the others.
    pub range: [f64; 2],
    /// How far the median lies from the range.
    pub off_percent: f64,
    /// How far it may.
    pub tolerance_percent: f64,
    /// Within, if all cells are.
    pub verdict: Verdict,
}

/// Whether numbers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All that is compared lies within its tolerance.
    Within,
    /// Something does not.
    Outside,
}

/// The judgements of all pairs.
#[derive(Debug)]
pub struct Judged {
    /// One row per pair.
    pub rows: Vec<Row>,
    /// The median runs of all sides, for a report.
    pub table: Table,
}

impl Judged {
    /// Returns how many rows lie outside the tolerances.
    pub fn outside(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == Verdict::Outside).count()
    }
}

/// Simulates `pairs` as their `emulated` runs by `hosts` went, and holds both against each other. `runner`
/// runs in simulation the code that those hosts had; of kernel TCP it runs the model.
pub fn compare(
    pairs: &[Pair],
    emulated: &[Vec<Run>],
    traces: &Traces,
    hosts: Hosts,
    runner: &dyn Runner,
    progress: &dyn Progress,
) -> Result<Judged, Error> {
    let simulate =
        |host, runner, what| simulate(host, runner, what, &Sets { pairs, emulated, traces }, progress);
    let (simulated, modelled) = match hosts {
        Hosts::Tcp => (simulate(Simulated::KernelTcp, runner, "simulating")?, None),
        Hosts::Outside => (simulate(Simulated::QuicStack, runner, "simulating, with the stack")?, None),
        Hosts::Quic => (
            simulate(Simulated::QuicStack, runner, "simulating, with the stack")?,
            Some(simulate(Simulated::QuicModel, &Simulator, "simulating, with the model")?),
        ),
    };
    let model = |index: usize| modelled.as_ref().map(|runs| &runs[index]);
    let rows = pairs
        .iter()
        .enumerate()
        .map(|(index, pair)| judge(pair, &simulated[index], model(index), &emulated[index]))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sides = vec![("simulator", &simulated)];
    sides.extend(modelled.as_ref().map(|runs| ("model", runs)));
    let table = table(pairs, &rows, &sides, emulated, hosts);
    Ok(Judged { rows, table })
}

/// What is run twice.
struct Sets<'a> {
    pairs: &'a [Pair],
    emulated: &'a [Vec<Run>],
    traces: &'a Traces,
}

/// The median run of every pair in simulation.
fn simulate(
    host: Simulated,
    runner: &dyn Runner,
    what: &str,
    sets: &Sets<'_>,
    progress: &dyn Progress,
) -> Result<Vec<Run>, Error> {
    let job = |(pair, runs): (&Pair, &Vec<Run>)| Job {
        label: pair.label.clone(),
        scenario: as_emulated(pair, runs, host),
        compared: None,
    };
    let jobs: Vec<Job> = sets.pairs.iter().zip(sets.emulated).map(job).collect();
    let results = jobs::run(what, &jobs, SEEDS, sets.traces, runner, progress)?;
    if let Some(reason) = results.failed.into_iter().next() {
        return Err(Error::Failed(reason));
    }
    Ok(results.jobs.into_iter().flatten().filter_map(|result| Run::median(&result.every)).collect())
}

/// The scenario over the time that the emulated runs took. Real hosts talk before their data, for half a
/// second or so, and after them, until the last has arrived; the link's capacity of that time counts, as it
/// does in the reference measurements. So the simulated flows start and stop when the emulated ones did, and
/// the run ends when theirs ended.
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
        // From the connection's first packet to its first data: with TCP its own handshake, and the word to
        // begin; with QUIC the handshake, which the stack makes in simulation too and the model does not.
        // Half a round trip to either side is the seeds' to draw.
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
fn judge(pair: &Pair, sim: &Run, modelled: Option<&Run>, emulated: &[Run]) -> Result<Row, Error> {
    let emu = Run::median(emulated).ok_or_else(|| Error::NoRun(pair.label.clone()))?;
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

/// Every row of all sides, for a report.
fn table(
    pairs: &[Pair],
    judged: &[Row],
    sides: &[(&str, &Vec<Run>)],
    emulated: &[Vec<Run>],
    hosts: Hosts,
) -> Table {
    let mut runs = Vec::new();
    let mut notes = Vec::new();
    for (index, (pair, emu)) in pairs.iter().zip(emulated).enumerate() {
        let simulated = sides.iter().map(|(side, runs)| (*side, Some(runs[index].clone())));
        for (side, run) in simulated.chain([("emulator", Run::median(emu))]) {
            runs.extend(run.map(|run| Run { scheme: format!("{} in the {side}", run.scheme), ..run }));
        }
        notes.extend(emu.iter().filter(|run| run.unreliable).map(|run| {
            format!("{}, seed {}: unreliable: {}.", pair.label, run.seed, run.unreliable_because.join("; "))
        }));
    }
    for row in judged.iter().filter(|row| row.verdict == Verdict::Outside) {
        notes.push(format!("{} on {}: {}.", row.scenario, row.trace, verdict(row)));
    }
    let (simulator, real) = match hosts {
        Hosts::Tcp => ("host profile tcp", "kernel TCP"),
        Hosts::Quic => ("the QUIC stack, and its model: host profile quic", "QUIC, by perf"),
        Hosts::Outside => ("the stacks' own code", "the stacks, over sockets"),
    };
    let setting = vec![
        ("simulator".to_string(), format!("median of {SEEDS} seeds, {simulator}")),
        ("emulator".to_string(), real.to_string()),
    ];
    Table { title: "Simulator and emulator".to_string(), setting, notes, runs, ..Table::default() }
}

#[cfg(test)]
mod tests;
