//! `advise`: what to deploy on one's own link.

use std::path::PathBuf;

use brakelight_core::time::Duration;
use brakelight_lab::advise::{self, Can, Request};
use brakelight_lab::compare::Buffer;
use brakelight_lab::output::Logs;
use brakelight_lab::text::advice;
use brakelight_lab::{Error, Simulator};
use brakelight_scenario::trace::names::Names;
use clap::{Args, ValueEnum};

use crate::arguments::{DocumentFormat, compared_buffer, count, positive_time, seed};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{origin, output, text};

/// What somebody can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CanName {
    /// The hosts that send
    Senders,
    /// A shaper in a home router, which does not own the link
    Shaper,
    /// The queue of the router at the link
    Router,
    /// Senders and the router at the link
    Both,
}

/// `advise`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The trace of your link's download direction: a file that `compare --trace` reads, or a name from `list
    /// traces`
    #[arg(long, value_name = "FILE-or-NAME")]
    pub trace: String,
    /// The trace of its upload direction, which then gets advice too [default: no limit]
    #[arg(long, value_name = "FILE-or-NAME")]
    pub trace_up: Option<String>,
    /// What you can change
    #[arg(long, value_enum)]
    pub can: CanName,
    /// Round-trip propagation delay
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = positive_time, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// The link's buffer, in packets, bytes or bandwidth-delay products of the trace's mean rate [default:
    /// one BDP of the trace's fastest second, at least 250pkt]
    #[arg(long, value_name = "SIZE|2BDP", value_parser = compared_buffer, allow_hyphen_values = true)]
    pub buffer: Option<Buffer>,
    /// Length of a run [default: the recording's own; 6 to 30 s for a generated trace]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Runs of each candidate, each with its own seed [default: 8]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub runs: Option<u32>,
    /// The first seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Write even into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// Write report.html with the advice and its measurements, runs.json and runs.csv into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How to print the advice
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

impl From<CanName> for Can {
    fn from(can: CanName) -> Self {
        match can {
            CanName::Senders => Can::Senders,
            CanName::Shaper => Can::Shaper,
            CanName::Router => Can::Router,
            CanName::Both => Can::Both,
        }
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let names = Names::from_environment().map_err(Failure::input)?;
    let request = Request {
        down: arguments.trace.clone(),
        up: arguments.trace_up.clone(),
        can: arguments.can.into(),
        rtt: arguments.rtt,
        buffer: arguments.buffer,
        duration: arguments.duration,
        runs: arguments.runs,
        seed: arguments.seed,
        series: arguments.out.is_some(),
    };
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let advice = advise::advise(&request, &names, &Simulator, &Bar::default());
    let (advice, table) = advice.map_err(|error| match error {
        Error::Trace(_) => Failure::input(format!("--trace: {error}")),
        Error::SameTrace(_) => Failure::input(format!("--trace-up: {error}")),
        Error::ReturnTrace(error) => Failure::input(format!("--trace-up: {error}")),
        error => error.into(),
    })?;
    if let Some(folder) = folder {
        output::write(folder, &table, &origin::origin(arguments.seed), Logs::default())?;
    }
    match arguments.format {
        DocumentFormat::Json => text::print_json(&advice),
        DocumentFormat::Table => text::print(&advice::advice(&advice, &text::standard_output())),
    }
}
