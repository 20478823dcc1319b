//! How fast the simulator is, and what a packet costs at each queue.

use std::time::{Duration, Instant};

use brakelight_core::time::Time;
use brakelight_scenario::documents::{Bench, QueueBench, SimBench};
use brakelight_sim::{Simulation, Traces};
use ns3::{Ns3, Ns3Error};
use queues::Workload;
use rows::{ROWS, Row};

use crate::Progress;
use crate::error::Error;

pub mod callgrind;
pub mod ns3;
pub mod profile;
pub mod queues;
pub mod rows;

/// A measurement is repeated for at least this long.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

/// Packets in one sample of a queue's cost.
const SAMPLE: u64 = 50_000;

/// Measures every row of the simulator, by `in_own_process`, and every queue; with ns-3 beside it also the
/// rows that ns-3 runs too.
pub fn everything<E: From<Ns3Error>>(
    beside: Option<&Ns3>,
    progress: &impl Progress,
    in_own_process: impl Fn(&Row) -> Result<SimBench, E>,
) -> Result<Bench, E> {
    let workloads = queues::workloads();
    progress.begin("measuring", ROWS.len() + workloads.len());
    let (mut sim, mut beside_it) = (Vec::new(), Vec::new());
    for row in ROWS {
        progress.step(row.name);
        let own = in_own_process(row)?;
        if let Some(ns3) = beside.filter(|_| ns3::ROWS.contains(&row.name)) {
            beside_it.push(ns3.measure(row, &own)?);
        }
        sim.push(own);
    }
    let queues = workloads.into_iter().map(|mut workload| {
        progress.step(workload.name());
        measure_queue(&mut workload)
    });
    Ok(Bench { sim, queues: queues.collect(), ns3: beside_it, ..Bench::default() })
}

/// Measures one row of the simulator, again and again for at least two seconds; its wall time is the median.
/// The peak memory is this process's, so every row needs a process of its own.
pub fn measure(row: &Row) -> Result<SimBench, Error> {
    let scenario = row.scenario().map_err(|error| Error::run(row.name, error))?;
    let begin = Instant::now();
    let mut walls = Vec::new();
    let mut packets = 0;
    while walls.is_empty() || begin.elapsed() < LONG_ENOUGH {
        let mut simulation =
            Simulation::new(&scenario, &Traces::new()).map_err(|error| Error::run(row.name, error))?;
        simulation.advance(Time::ZERO + scenario.measure_from);
        let before = simulation.delivered_packets();
        let start = Instant::now();
        rows::advance(&mut simulation, Time::ZERO + scenario.duration);
        walls.push(start.elapsed().as_secs_f64());
        packets = simulation.delivered_packets() - before;
        simulation.finish().map_err(|error| Error::run(row.name, error))?;
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

/// Measures what a packet costs at a queue: the median of samples over at least half a second.
pub fn measure_queue(workload: &mut Workload) -> QueueBench {
    QueueBench { name: workload.name().to_string(), ns_per_packet: cost(workload) }
}

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
