//! What can be said to `tcp`.

use std::path::PathBuf;

use brakelight_core::time::Duration;
use brakelight_senders::controller::quicdc::Threshold;
use clap::{Args, Subcommand, ValueEnum};

use crate::arguments::{DocumentFormat, count, kernel_name, positive_time, threshold};

/// `tcp`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Load ABC (controller, marking and receiver) or delay control into the kernel
    Load(Load),
    /// Remove what `load --pin` left loaded
    Unload,
    /// Show which Brakelight programs are in the kernel
    Status(Status),
    /// Show the controller's connections in this network namespace: windows, and marks per second
    Watch(Watch),
    /// Say what this kernel can do for ABC, and what to do about what it lacks
    Doctor(Status),
}

/// How a sender learns of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Feedback {
    /// Accurate ECN where the kernel has it, the option otherwise
    Auto,
    /// Accurate ECN (RFC 9768)
    Accecn,
    /// An experimental TCP option of our own, which both ends must have loaded
    Option,
}

/// Controllers for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Controller {
    /// ABC: marks of routers, with Cubic as second window
    Abc,
    /// QUIC-DC's delay control: one-way queueing delay, from TCP timestamps, and Westwood+
    Wdc,
}

/// `tcp load`.
#[derive(Clone, Debug, Args)]
pub struct Load {
    /// Whose rules the senders follow
    #[arg(long, default_value = "abc", value_enum)]
    pub controller: Controller,
    /// One-way queueing delay at which delay control reduces the window: a time, or a share of the largest
    /// minus the smallest RTT [default: 50%]
    #[arg(long, value_name = "TIME-or-SHARE", value_parser = threshold, allow_hyphen_values = true)]
    pub threshold: Option<Threshold>,
    /// A device on which outgoing ABC packets are marked accelerate; may be repeated
    #[arg(long = "dev", value_name = "DEV")]
    pub devices: Vec<String>,
    /// How the sender learns of marks
    #[arg(long, default_value = "auto", value_enum)]
    pub feedback: Feedback,
    /// Load only what a receiver needs, not the controller
    #[arg(long)]
    pub receiver: bool,
    /// Register the controller under this name [default: that of --controller; accecn_reno with --receiver]
    #[arg(long, value_name = "NAME", value_parser = kernel_name)]
    pub name: Option<String>,
    /// Let users other than root choose the controller
    #[arg(long)]
    pub unrestricted: bool,
    /// Pace at this percentage of a window per RTT [default: as in the papers: abc unpaced, wdc 100]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(50..=1000))]
    pub pacing: Option<u32>,
    /// The cgroup whose sockets use the option [default: where cgroup2 is mounted]
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// Leave everything loaded and return
    #[arg(long, conflicts_with = "duration")]
    pub pin: bool,
    /// Remove everything after this time [default: when interrupted]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
}

/// `tcp status` and `tcp doctor`.
#[derive(Clone, Debug, Args)]
pub struct Status {
    /// How to print it
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// `tcp watch`.
#[derive(Clone, Debug, Args)]
pub struct Watch {
    /// Time between updates
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_time, allow_hyphen_values = true)]
    pub interval: Duration,
    /// Number of updates [default: until interrupted]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub count: Option<u32>,
    /// How to print it; JSON is one document per line
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}
