//! `bench`: how fast the simulator is, and what a packet costs at each queue.
//!
//! Every row of the simulator is a process of its own, so that its peak memory is its own and no row warms
//! another's caches; it repeats its scenario for at least two seconds and reports the median.

use brakelight_files::scratch::Scratch;
use brakelight_lab::Progress;
use brakelight_lab::bench::ns3::{self, Ns3, Ns3Error};
use brakelight_lab::bench::{measure, measure_queue};
use brakelight_lab::text::{bench::in_words, number, thousands};
use brakelight_scenario::documents::{Bench, SimBench};
use brakelight_sim::bench::queues;
use brakelight_sim::bench::{ROWS, Row};

use crate::arguments::{self, DocumentFormat};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{program, text};

/// Runs the command.
pub fn execute(arguments: &arguments::Bench) -> Result<(), Failure> {
    if let Some(name) = &arguments.row {
        let row = Row::named(name).ok_or_else(|| Failure::input(format!("--row: unknown row `{name}`")))?;
        return text::print_json(&measure(row)?);
    }
    // Nobody else knows the folder's name beforehand, so nobody can put another program in its place.
    let scratch = if arguments.with_ns3 { Some(Scratch::new("ns3")?) } else { None };
    let beside = scratch.as_ref().map(|scratch| Ns3::compile(scratch.path()).map_err(ns3_failure));
    let beside = beside.transpose()?;
    let workloads = queues::workloads();
    let progress = Bar::new("measuring", ROWS.len() + workloads.len());
    let mut sim = Vec::new();
    let mut ratios = Vec::new();
    for row in ROWS {
        progress.step(row.name);
        let own = in_own_process(row)?;
        if let Some(ns3) = beside.as_ref().filter(|_| ns3::ROWS.contains(&row.name)) {
            let there = ns3.measure(row).map_err(ns3_failure)?;
            ratios.push((row.name, own.packets_per_s / there.packets_per_s, there));
        }
        sim.push(own);
    }
    let queues = workloads
        .into_iter()
        .map(|mut workload| {
            progress.step(workload.name());
            measure_queue(&mut workload)
        })
        .collect();
    drop(progress);
    let bench = Bench { sim, queues };
    match arguments.format {
        DocumentFormat::Json => text::print_json(&bench)?,
        DocumentFormat::Table => text::print(&in_words(&bench, &text::standard_output()))?,
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
        let (rate, wall) = (thousands(there.packets_per_s), number(there.wall_s));
        tell(format!(
            "{name}: ns-3 simulates {rate} packets/s ({wall} s); Brakelight is {ratio:.1} times as fast"
        ))?;
    }
    Ok(())
}

fn ns3_failure(error: Ns3Error) -> Failure {
    let text = format!("--with-ns3: {error}");
    if matches!(error, Ns3Error::NotInstalled) { Failure::input(text) } else { Failure::run(text) }
}

fn in_own_process(row: &Row) -> Result<SimBench, Failure> {
    let output = program::command()?.args(["bench", "--row", row.name]).output().map_err(Failure::run)?;
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
