//! The command line as a whole: every command with its arguments, and the reading of it.

use std::ffi::OsString;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::origin::VERSION;
use crate::{advise, arena, arguments, attack, distribution, evaluate, program, schema, stability, sweep};

#[cfg(not(target_os = "linux"))]
use crate::linux_only::{
    AnyArguments as Client, AnyArguments as Emulate, AnyArguments as Parity, AnyArguments as Router,
    AnyArguments as Server, AnyArguments as Shaper, AnyArguments as Tcp,
};
#[cfg(target_os = "linux")]
use crate::{
    emulate::Arguments as Emulate,
    parity::Parity,
    perf::arguments::{Client, Server},
    router::Command as Router,
    shaper::Shaper,
    tcp::arguments::Command as Tcp,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Blue.on_default().bold())
    .usage(AnsiColor::Blue.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Congestion control for links whose rate will not hold still.
#[derive(Debug, Parser)]
#[command(name = "brakelight", version = VERSION, styles = STYLES, max_term_width = 110)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 success, 1 a check or run failed, 2 invalid input.\n\
    Start with `brakelight compare --out report` and open report/report.html.")]
pub struct Cli {
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Also print each run as it finishes, and the total time
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run every scheme on every trace and compare them
    Compare(Box<arguments::Compare>),
    /// Say what to deploy on your own link, by what you can change there
    Advise(advise::Arguments),
    /// Run one scenario file
    Run(arguments::Run),
    /// Check the papers' claims: run the experiments, compare with the paper, and say which claims hold
    Reproduce(arguments::Reproduce),
    /// Judge schemes by what RFC 9743 asks of a new congestion control
    Evaluate(evaluate::Arguments),
    /// Score senders on links that they need not have met: 0 is Cubic, 1 a sender that knows the future
    Arena(arena::Arguments),
    /// Run a grid: every combination of traces, schemes, round trips or other scenario keys
    Sweep(sweep::Arguments),
    /// Search for the link on which a scheme does worst
    Attack(Box<attack::Arguments>),
    /// List what is available: schemes, controllers, queues, feedbacks, path elements, radios, rate setters,
    /// applications, hosts, traces, claims
    List(arguments::List),
    /// Print the JSON Schema of scenarios, results, experiments or attacks
    Schema(schema::Arguments),
    /// Serve the explorer, the simulator as a web page, to a browser on this machine
    Explore {
        /// The port; 0 picks a free one
        #[arg(long, value_name = "N", default_value_t = 8600)]
        port: u16,
        /// Also open it in the browser
        #[arg(long)]
        open: bool,
    },
    /// Show, generate, fit, convert and download traces
    #[command(subcommand)]
    Trace(arguments::Trace),
    /// Map where ABC's router settles and where it oscillates, by fluid model and by packets
    Stability(stability::Arguments),
    /// Measure the simulator's speed and the cost of queues
    Bench(arguments::Bench),
    /// Serve `perf` clients: receive from them and send to them over QUIC
    PerfServer(Server),
    /// Measure a path to a `perf-server` over QUIC, with any controller that works there
    Perf(Box<Client>),
    /// Run scenarios in the simulator and on the emulator, and show how well they agree
    Parity(Parity),
    /// Run a command behind an emulated link
    Emulate(Box<Emulate>),
    /// Make this machine's TCP speak ABC, with eBPF programs in its kernel
    #[cfg_attr(target_os = "linux", command(subcommand))]
    Tcp(Tcp),
    /// Make this machine an ABC router, with eBPF programs around a shaper or a kernel module
    #[cfg_attr(target_os = "linux", command(subcommand))]
    Router(Router),
    /// Set the rate of the shaper before a link that moves, by what a router sees of the link
    Shaper(Box<Shaper>),
    /// Be both ends of a scenario's QUIC flows, for `run --on emulator --host quinn` to start
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    QuinnHosts(crate::quinn_hosts::Arguments),
    /// Print the completions of a shell, for packages to install
    #[command(hide = true)]
    Completions(distribution::Completions),
    /// Write the manual pages, for packages to install
    #[command(hide = true)]
    Man(distribution::Man),
}

impl Command {
    /// Returns whether it makes files where `--out` or `--log` says.
    pub fn writes_files(&self) -> bool {
        let out = match self {
            Command::Compare(arguments) => &arguments.out,
            Command::Run(arguments) => &arguments.out,
            Command::Stability(arguments) => &arguments.out,
            Command::Reproduce(arguments) => &arguments.out,
            Command::Evaluate(arguments) => &arguments.out,
            Command::Arena(arguments) => &arguments.out,
            #[cfg(target_os = "linux")]
            Command::Parity(arguments) => &arguments.out,
            #[cfg(target_os = "linux")]
            Command::Emulate(arguments) => &arguments.log,
            Command::Trace(arguments::Trace::Synth(arguments)) => &arguments.out,
            Command::Trace(arguments::Trace::Convert(arguments)) => &arguments.out,
            _ => &None,
        };
        out.is_some()
    }
}

/// Reads the command line. Help and the version are printed here.
pub fn parse() -> Result<Option<Cli>, Failure> {
    let name = OsString::from("brakelight");
    match Cli::try_parse_from(std::iter::once(name).chain(program::arguments())) {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            match error.print() {
                // Whoever reads has seen enough.
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::run(error)),
                _ => Ok(None),
            }
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // The whole help, because whoever says nothing wants to know what can be said.
            let _ = error.print();
            Err(Failure { code: 2, message: String::new() })
        }
        Err(error) => Err(Failure::input(explain(&error))),
    }
}

/// A complaint of clap's in one line.
fn explain(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::ValueValidation
        && let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && let Some(source) = std::error::Error::source(error)
    {
        let name = argument.split_whitespace().next().unwrap_or(argument);
        return format!("{name}: {source}");
    }
    let text = error.to_string();
    let parts: Vec<&str> = text
        .split("\n\n")
        .map(str::trim)
        .filter(|part| !part.is_empty() && !part.starts_with("For more information"))
        .collect();
    parts.join("; ").trim_start_matches("error: ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }
}
