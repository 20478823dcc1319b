//! `emulate`: a command behind an emulated link.

use std::ffi::OsString;

use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_emulator::clock::Lateness;
use brakelight_emulator::command::{self, Setting};
use brakelight_emulator::device::TunSettings;
use brakelight_emulator::emulation::{self, EmulationError, Ended, Setup};
use brakelight_emulator::forward::{Finished, Settings};
use brakelight_emulator::namespace::HouseError;
use brakelight_emulator::spec::{Bottleneck, Direction};
use brakelight_scenario::trace::names::Names;
use clap::Args;

use crate::arguments::{any_time, positive_buffer, probability, seed};
use crate::failure::Failure;
use crate::text;

/// `emulate`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A SPEC is a rate (`12Mbps`), steps (`500ms:12Mbps,500ms:24Mbps`), a Mahimahi trace file, or the name of a \
    trace that `list traces` shows.\n\
    The command finds the outer side at $BRAKELIGHT_HOST and $BRAKELIGHT_HOST6; its exit code is passed on.\n\
    Try: brakelight emulate --up 12Mbps --delay 20ms -- sh -c 'ping -c3 $BRAKELIGHT_HOST'"
)]
pub struct Arguments {
    /// The link from the command to the outer side [default: none, nothing limits this direction]
    #[arg(long, value_name = "SPEC")]
    pub up: Option<String>,
    /// The link from the outer side to the command [default: none]
    #[arg(long, value_name = "SPEC")]
    pub down: Option<String>,
    /// Propagation delay of each direction
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = any_time, allow_hyphen_values = true)]
    pub delay: Duration,
    /// Probability that a packet is lost, in each direction
    #[arg(long, value_name = "P", default_value = "0", value_parser = probability, allow_hyphen_values = true)]
    pub loss: f64,
    /// The queue of both links: `codel`, `pie:target=20ms` [default: droptail]
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<String>,
    /// The queue of the link up [default: that of --queue]
    #[arg(long, value_name = "QUEUE", requires = "up")]
    pub up_queue: Option<String>,
    /// The queue of the link down [default: that of --queue]
    #[arg(long, value_name = "QUEUE", requires = "down")]
    pub down_queue: Option<String>,
    /// The buffer of each link, in packets or bytes
    #[arg(long, value_name = "SIZE", default_value = "250pkt", value_parser = positive_buffer, allow_hyphen_values = true)]
    pub buffer: Limit,
    /// Decides which packets are lost, and everything else that is drawn
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// A command for the shell that runs on the outer side: it is waited for until it listens, and ended after
    #[arg(long, value_name = "CMD")]
    pub server: Option<OsString>,
    /// Let the outer side be the real network; needs root, and the command runs as the user who called sudo
    #[arg(long)]
    pub nat: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}

/// Runs the command. Must be called before there are other threads.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let setup = setup(arguments)?;
    let ended = emulation::run(setup, [(), ()], |_| {}).map_err(failure)?;
    report(&ended);
    match u8::try_from(ended.code) {
        Ok(0) => Ok(()),
        // It is for the command to say what went wrong.
        Ok(code) => Err(Failure { code, message: String::new() }),
        Err(_) => Err(Failure::run(format!("the command ended with code {}", ended.code))),
    }
}

fn setup(arguments: &Arguments) -> Result<Setup, Failure> {
    if arguments.queue.is_some() && arguments.up.is_none() && arguments.down.is_none() {
        return Err(Failure::input(
            "--queue: there is no link for it to stand at; give --up, --down or both",
        ));
    }
    let names = Names::from_environment().map_err(Failure::input)?;
    let setup = Setup {
        up: direction(arguments, "up", arguments.up.as_deref(), arguments.up_queue.as_deref(), &names)?,
        down: direction(
            arguments,
            "down",
            arguments.down.as_deref(),
            arguments.down_queue.as_deref(),
            &names,
        )?,
        setting: Setting { nat: arguments.nat, mtu: TunSettings::default().mtu },
        forward: Settings::default(),
        server: arguments.server.clone(),
        command: arguments.command.clone(),
    };
    let program = &arguments.command[0];
    if !command::exists(program) {
        return Err(Failure::input(format!(
            "`{}`: there is no such program; give a path to one, or a name that PATH knows",
            program.to_string_lossy()
        )));
    }
    Ok(setup)
}

fn direction(
    arguments: &Arguments,
    name: &str,
    service: Option<&str>,
    queue: Option<&str>,
    names: &Names,
) -> Result<Direction, Failure> {
    let mut direction = Direction::open(name, arguments.seed);
    let queue = queue.or(arguments.queue.as_deref()).unwrap_or("droptail");
    direction.link = service
        .map(|service| Bottleneck::parse(name, service, queue, arguments.buffer, names))
        .transpose()
        .map_err(|error| Failure::input(format!("--{name}: {error}")))?;
    direction.loss = arguments.loss;
    direction.delay = arguments.delay;
    Ok(direction)
}

fn failure(error: EmulationError) -> Failure {
    match error {
        // Whoever interrupts knows it.
        EmulationError::House(HouseError::Interrupted { signal }) => {
            Failure { code: 128u8.saturating_add(signal as u8), message: String::new() }
        }
        EmulationError::House(error @ HouseError::NotRun { .. }) => Failure::input(error),
        error => Failure::run(error),
    }
}

/// What the run was like, on standard error.
fn report<W>(ended: &Ended<W>) {
    for note in &ended.notes {
        text::say(&format!("note: {note}"));
    }
    let mut lateness = Lateness::new();
    lateness.add(&ended.up.lateness);
    lateness.add(&ended.down.lateness);
    let passed = |direction: &Finished<W>| {
        format!(
            "{} {} delivered, {} dropped",
            direction.name, direction.facts.written, direction.facts.dropped
        )
    };
    text::say(&format!(
        "emulated: {}; {}; late by {} (median), {} (p99), {} (most), {}",
        passed(&ended.up),
        passed(&ended.down),
        lateness.quantile(0.5),
        lateness.quantile(0.99),
        lateness.max(),
        ended.up.facts.scheduling,
    ));
}
