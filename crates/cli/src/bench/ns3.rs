//! The same dumbbells in ns-3, compiled and run where Debian's ns-3 is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use brakelight_core::registry::DEFAULT_QUEUE;
use brakelight_files::scratch::Scratch;
use brakelight_sim::bench::Row;

use crate::failure::Failure;

/// The rows that ns-3 runs too.
pub const ROWS: &[&str] = &["S1", "S2"];

const SOURCE: &str = include_str!("dumbbell.cc");

/// A header of the package, and what to do without it.
const HEADER: &str = "/usr/include/ns3/core-module.h";

/// The dumbbell, compiled.
#[derive(Debug)]
pub struct Ns3 {
    folder: Scratch,
}

/// What ns-3 took for a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Data packets delivered per second of wall time.
    pub packets_per_s: f64,
    /// Wall time.
    pub wall_s: f64,
}

impl Ns3 {
    /// Compiles the dumbbell into a folder of its own.
    pub fn find() -> Result<Self, Failure> {
        if !Path::new(HEADER).is_file() {
            return Err(Failure::input(format!(
                "--with-ns3: {HEADER} is not there; install Debian's ns-3 (apt-get install libns3-dev g++), or leave the option out"
            )));
        }
        // A program is compiled there and run: whoever knew the name beforehand could put another in its
        // place.
        let ns3 = Ns3 { folder: Scratch::new("ns3")? };
        let source = ns3.folder.path().join("dumbbell.cc");
        fs::write(&source, SOURCE).map_err(|error| Failure::run(format!("{}: {error}", source.display())))?;
        let modules = ["core", "network", "internet", "point-to-point", "applications", "traffic-control"];
        let output = Command::new("g++")
            .args(["-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-o"])
            .arg(ns3.program())
            .arg(&source)
            .args(modules.map(|module| format!("-lns3-{module}")))
            .output()
            .map_err(|error| Failure::run(format!("--with-ns3: g++: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error")).unwrap_or("no reason given");
            return Err(Failure::run(format!("--with-ns3: g++: {first}")));
        }
        Ok(ns3)
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("dumbbell")
    }

    /// Runs `row` once.
    pub fn measure(&self, row: &Row) -> Result<Measured, Failure> {
        let (queue, _) = row.queue;
        let queue = if queue == DEFAULT_QUEUE { "fifo" } else { queue };
        let output = Command::new(self.program())
            .arg(format!("{}", row.rate.as_mbps_f64()))
            .arg(row.flows.to_string())
            .arg(queue)
            .arg(row.buffer.to_string())
            .arg(format!("{}", row.duration.as_secs_f64()))
            .output()
            .map_err(|error| Failure::run(format!("ns-3: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [packets, wall_s, _] if wall_s > 0.0 => Ok(Measured { packets_per_s: packets / wall_s, wall_s }),
            _ => Err(Failure::run(format!("ns-3: {} said `{}`", row.name, text.trim()))),
        }
    }
}
