//! `bench`: how fast the simulator is, and what a packet costs at each queue.
//!
//! Every row of the simulator is a process of its own, so that its peak memory is its own and no row warms another's
//! caches; it repeats its scenario for at least two seconds and reports the median.

mod ns3;

use std::process::Command;
use std::time::{Duration, Instant};

use brakelight_core::time::Time;
use brakelight_scenario::documents::{Bench, QueueBench, SimBench};
use brakelight_sim::bench::queues::{self, Workload};
use brakelight_sim::bench::{ROWS, Row};
use brakelight_sim::{Simulation, Traces};

use crate::arguments::{self, DocumentFormat};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number};

/// A measurement is repeated for at least this long.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

/// Packets in one sample of a queue's cost.
const SAMPLE: u64 = 50_000;

/// Runs the command.
pub fn execute(arguments: &arguments::Bench) -> Result<(), Failure> {
    if let Some(name) = &arguments.row {
        let row = Row::named(name).ok_or_else(|| Failure::input(format!("--row: unknown row `{name}`")))?;
        return text::print_json(&measure(row)?);
    }
    let beside = if arguments.with_ns3 { Some(ns3::Ns3::find()?) } else { None };
    let workloads = queues::workloads();
    let progress = Progress::new("measuring", ROWS.len() + workloads.len());
    let mut sim = Vec::new();
    let mut ratios = Vec::new();
    for row in ROWS {
        progress.step(row.name);
        let own = in_own_process(row)?;
        if let Some(ns3) = beside.as_ref().filter(|_| ns3::ROWS.contains(&row.name)) {
            let there = ns3.measure(row)?;
            ratios.push((row.name, own.packets_per_s / there.packets_per_s, there));
        }
        sim.push(own);
    }
    let queues = workloads
        .into_iter()
        .map(|mut workload| {
            progress.step(workload.name());
            QueueBench { name: workload.name().to_string(), ns_per_packet: cost(&mut workload) }
        })
        .collect();
    drop(progress);
    let bench = Bench { sim, queues };
    match arguments.format {
        DocumentFormat::Json => text::print_json(&bench)?,
        DocumentFormat::Table => text::print(&in_words(&bench, &Screen::standard_output()))?,
    }
    // Beside the document, whose shape is fixed.
    let tell = |line: String| match arguments.format {
        DocumentFormat::Json => {
            text::say(&line);
            Ok(())
        }
        DocumentFormat::Table => text::print(&format!("{line}\n")),
    };
    for (name, ratio, there) in ratios {
        let (rate, wall) = (text::thousands(there.packets_per_s), number(there.wall_s));
        tell(format!(
            "{name}: ns-3 simulates {rate} packets/s ({wall} s); Brakelight is {ratio:.1} times as fast"
        ))?;
    }
    Ok(())
}

fn in_own_process(row: &Row) -> Result<SimBench, Failure> {
    let program = std::env::current_exe().map_err(Failure::run)?;
    let output = Command::new(program).args(["bench", "--row", row.name]).output().map_err(Failure::run)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::run(format!(
            "{}: its process ended with {}: {}",
            row.name,
            output.status,
            said.trim()
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::run(format!("{}: {error}", row.name)))
}

/// Measures one row in this process.
fn measure(row: &Row) -> Result<SimBench, Failure> {
    let scenario = row.scenario().map_err(Failure::run)?;
    let begin = Instant::now();
    let mut walls = Vec::new();
    let mut packets = 0;
    while walls.is_empty() || begin.elapsed() < LONG_ENOUGH {
        let mut simulation = Simulation::new(&scenario, &Traces::new()).map_err(Failure::run)?;
        simulation.advance(Time::ZERO + scenario.measure_from);
        let before = simulation.delivered_packets();
        let start = Instant::now();
        simulation.advance(Time::ZERO + scenario.duration);
        walls.push(start.elapsed().as_secs_f64());
        packets = simulation.delivered_packets() - before;
        simulation.finish().map_err(Failure::run)?;
    }
    let wall_s = median(&mut walls);
    Ok(SimBench {
        name: row.name.to_string(),
        flows: u64::from(row.flows),
        packets,
        wall_s,
        packets_per_s: packets as f64 / wall_s,
        peak_rss_mb: peak_rss_mb(),
    })
}

/// Nanoseconds per packet: the median of samples over at least a quarter of [`LONG_ENOUGH`].
fn cost(workload: &mut Workload) -> f64 {
    let begin = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < 5 || begin.elapsed() < LONG_ENOUGH / 4 {
        let start = Instant::now();
        std::hint::black_box(workload.run(SAMPLE));
        samples.push(start.elapsed().as_secs_f64() * 1e9 / SAMPLE as f64);
    }
    median(&mut samples)
}

fn median(values: &mut [f64]) -> f64 {
    brakelight_scenario::median::median(values).unwrap_or(f64::NAN)
}

/// The most memory this process ever held; zero where the system does not tell.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes =
        line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|number| number.trim().parse().ok());
    kilobytes.map_or(0.0, |kilobytes: f64| kilobytes * 1024.0 * 1e-6)
}

fn in_words(bench: &Bench, screen: &Screen) -> String {
    let columns = [
        Column::text("row"),
        Column::number("flows", ""),
        Column::number("packets", ""),
        Column::number("wall", "s"),
        Column::number("speed", "packets/s"),
        Column::number("memory", "peak MB"),
    ];
    let rows: Vec<Vec<String>> = bench
        .sim
        .iter()
        .map(|row| {
            vec![
                row.name.clone(),
                row.flows.to_string(),
                text::thousands(row.packets as f64),
                format!("{:.4}", row.wall_s),
                text::thousands(row.packets_per_s),
                number(row.peak_rss_mb),
            ]
        })
        .collect();
    let queues: Vec<Vec<String>> =
        bench.queues.iter().map(|row| vec![row.name.clone(), number(row.ns_per_packet)]).collect();
    let costs = [Column::text("queue"), Column::number("cost", "ns/packet")];
    format!("{}\n{}", table::render(&columns, &rows, screen), table::render(&costs, &queues, screen))
}
