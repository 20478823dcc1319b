//! The same dumbbells in ns-3, compiled and run where Debian's ns-3 is installed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use brakelight_registry::DEFAULT_QUEUE;
use brakelight_scenario::documents::{Ns3Bench, SimBench};

use super::rows::Row;

/// The rows that ns-3 runs too.
pub const ROWS: &[&str] = &["S1", "S2", "S3"];

const SOURCE: &str = include_str!("dumbbell.cc");

/// A header of the package.
const HEADER: &str = "/usr/include/ns3/core-module.h";

/// Why ns-3 could not run a row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ns3Error {
    /// It is not installed.
    #[error("{HEADER} is not there; install Debian's ns-3 (apt-get install libns3-dev g++), or do without")]
    NotInstalled,
    /// The program could not be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The compiler or the program could not be started.
    #[error("{program}: {error}")]
    Start {
        /// Which.
        program: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The program does not compile.
    #[error("g++: {0}")]
    Compile(String),
    /// The program printed something else than its numbers.
    #[error("ns-3: {row} printed `{printed}`")]
    Printed {
        /// The row.
        row: &'static str,
        /// What it printed.
        printed: String,
    },
}

/// The dumbbell, compiled.
#[derive(Debug)]
pub struct Ns3 {
    program: PathBuf,
}

impl Ns3 {
    /// Compiles the dumbbell into `folder`. What is compiled there is run: nobody else should be able to
    /// write to it.
    pub fn compile(folder: &Path) -> Result<Self, Ns3Error> {
        if !Path::new(HEADER).is_file() {
            return Err(Ns3Error::NotInstalled);
        }
        let source = folder.join("dumbbell.cc");
        fs::write(&source, SOURCE).map_err(|error| Ns3Error::Write { path: source.clone(), error })?;
        let program = folder.join("dumbbell");
        let modules = ["core", "network", "internet", "point-to-point", "applications", "traffic-control"];
        let output = Command::new("g++")
            .args(["-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-o"])
            .arg(&program)
            .arg(&source)
            .args(modules.map(|module| format!("-lns3-{module}")))
            .output()
            .map_err(|error| Ns3Error::Start { program: "g++", error })?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr);
            let first = printed.lines().find(|line| line.contains("error")).unwrap_or("no reason given");
            return Err(Ns3Error::Compile(first.to_string()));
        }
        Ok(Ns3 { program })
    }

    /// Runs `row` once, for which Brakelight took what `own` says.
    pub fn measure(&self, row: &Row, own: &SimBench) -> Result<Ns3Bench, Ns3Error> {
        let (queue, _) = row.queue;
        let queue = if queue == DEFAULT_QUEUE { "fifo" } else { queue };
        let output = Command::new(&self.program)
            .arg(format!("{}", row.rate.as_mbps_f64()))
            .arg(row.flows.to_string())
            .arg(queue)
            .arg(row.buffer.to_string())
            .arg(format!("{}", row.duration.as_secs_f64()))
            .output()
            .map_err(|error| Ns3Error::Start { program: "ns-3", error })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [packets, wall_s, _] if packets > 0.0 && wall_s > 0.0 => Ok(Ns3Bench {
                name: row.name.to_string(),
                wall_s,
                packets_per_s: packets / wall_s,
                times_as_fast: own.packets_per_s * wall_s / packets,
            }),
            _ => Err(Ns3Error::Printed { row: row.name, printed: text.trim().to_string() }),
        }
    }
}
