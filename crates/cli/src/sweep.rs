//! `sweep`: a grid of runs.

use std::path::PathBuf;

use brakelight_lab::figures::{self, rows::Rows};
use brakelight_lab::sweep::{Folder, Grid, Shard, Sweep};
use brakelight_lab::{Error, Simulator};
use brakelight_registry::Registry;
use brakelight_scenario::trace::names::Names;
use clap::Args;

use crate::arguments::count;
use crate::failure::Failure;
use crate::output;
use crate::progress::Bar;
use crate::text;

/// `sweep`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A grid is a file of axes: `[axes]`, followed by `scheme = [\"abc\", \"cubic\"]`, `trace = \"lte-driving\"`, \
    `rtt = [\"20ms\", \"100ms\"]`. With `scenario = \"FILE.toml\"` above it, axes are keys of that scenario: \
    `\"link.up.buffer\" = [\"50pkt\", \"250pkt\"]`. The book's page on sweeps has more."
)]
pub struct Arguments {
    /// The grid
    #[arg(value_name = "FILE.toml")]
    pub grid: PathBuf,
    /// Write runs, flows and links into this folder, as CSV, and as Parquet if built with that feature
    /// [default: runs as CSV to standard output]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every figure of the rows into this folder, as SVG and PDF, ready for a paper
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// The part of the grid to run: `2/8` is the second of eight
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: Shard,
    /// Keep the runs that are already in the folder
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Seeds per combination [default: the file's]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub runs: Option<u32>,
    /// Run even if it may take hours or exhaust memory; write even into a folder that holds other files
    #[arg(long)]
    pub force: bool,
}

/// Runs the command.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    let mut grid = Grid::read(&arguments.grid)?;
    grid.runs = arguments.runs.unwrap_or(grid.runs);
    let names = Names::from_environment().map_err(Failure::input)?;
    let sweep = Sweep::with(registry, &grid, &names)?;
    sweep.check(arguments.force)?;
    let figures = output::Figures::at(arguments.figures.as_deref(), arguments.force)?;
    let progress = Bar::default();
    let Some(path) = &arguments.out else {
        let mut heading = true;
        let wanted = arguments.shard.runs(sweep.runs());
        let mut rows = Rows::default();
        let failed = sweep.run(&wanted, &Simulator, &progress, &mut |row| {
            if arguments.figures.is_some() {
                rows.add(&sweep.place(row.index), &row.run);
            }
            let frame = sweep.runs_frame(&[row])?;
            let head = if std::mem::take(&mut heading) { frame.csv_heading() } else { String::new() };
            text::print(&(head + &frame.csv_rows())).map_err(|failure| Error::Sink(Box::new(failure)))
        })?;
        drop(progress);
        figures.write(|| figures::grid(&rows))?;
        return Failure::of_runs(&failed);
    };
    output::check_others("out", path, arguments.force)?;
    let resume = arguments.resume;
    let folder = Folder { path, shard: arguments.shard, resume, figures: arguments.figures.is_some() };
    let written = folder.run(&sweep, &Simulator, &progress)?;
    drop(progress);
    written.removed.iter().for_each(|path| output::say_removed(path));
    if written.kept > 0 {
        text::say(&format!("kept {} of {} runs", written.kept, written.runs));
    }
    for file in &written.files {
        text::say(&file.display().to_string());
    }
    figures.write(|| figures::grid(&written.rows))?;
    Failure::of_runs(&written.failed)
}
