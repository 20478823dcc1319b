//! `shaper`: the rate setters of the simulation on a real device.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brakelight_core::parameters::Value as _;
use brakelight_core::time::Duration;
use brakelight_tcp::shaper::{Daemon, Plan, SetterConfig, ShapedDirection, Side, Status};
use clap::Args;
use serde_json::json;

use crate::arguments::{DocumentFormat, count, positive_time};
use crate::failure::Failure;
use crate::interrupt;
use crate::text::{self, number};

/// `shaper`.
#[derive(Clone, Debug, Args)]
pub struct Shaper {
    /// The device by which packets leave for the link
    #[arg(long, value_name = "DEV")]
    pub device: String,
    /// Who sets the rate of the cake or tbf on that device: `fixed/rate=20Mbps`, `autorate`, `follow`;
    /// options follow slashes, and `brakelight list setters` has them
    #[arg(long, value_name = "SETTER", value_parser = setter)]
    pub up: Option<SetterConfig>,
    /// Who sets the rate of the download
    #[arg(long, value_name = "SETTER", value_parser = setter, requires = "down_device")]
    pub down: Option<SetterConfig>,
    /// The device whose cake or tbf shapes the download, such as the ifb of sqm-scripts
    #[arg(long, value_name = "DEV", requires = "down")]
    pub down_device: Option<String>,
    /// Who answers the probes, by address; may be repeated. `autorate` probes up to its `pingers` in turn,
    /// `follow` one
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub reflector: Vec<IpAddr>,
    /// Measure and print the rates, but set none
    #[arg(long)]
    pub dry_run: bool,
    /// The least time between two lines of a direction
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_time, allow_hyphen_values = true)]
    pub interval: Duration,
    /// End after this many lines [default: when interrupted]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub count: Option<u32>,
    /// How to print the lines; JSON is one document per line
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

fn setter(text: &str) -> Result<SetterConfig, String> {
    SetterConfig::parse(text).map_err(|valid| format!("`{text}` is not {valid}"))
}

/// Runs the command.
pub fn execute(arguments: &Shaper) -> Result<(), Failure> {
    let up = arguments.up.iter().map(|setter| ShapedDirection {
        side: Side::Up,
        device: arguments.device.clone(),
        setter: setter.clone(),
    });
    let down = arguments.down.iter().zip(&arguments.down_device).map(|(setter, device)| ShapedDirection {
        side: Side::Down,
        device: device.clone(),
        setter: setter.clone(),
    });
    let plan = Plan {
        device: arguments.device.clone(),
        directions: up.chain(down).collect(),
        reflectors: arguments.reflector.clone(),
        dry_run: arguments.dry_run,
    };
    let daemon = Daemon::start(&plan)?;
    let end = if plan.dry_run { "which stays: this is a dry run" } else { "which it has again at the end" };
    daemon.described().iter().for_each(|what| text::say(&format!("{what}, {end}")));
    // Its end gives the rates back; an interrupt must get there too.
    let shared = Arc::new(Mutex::new(Some(daemon)));
    let ends = Arc::new(AtomicBool::new(false));
    let (at_interrupt, ends_at_interrupt) = (Arc::clone(&shared), Arc::clone(&ends));
    interrupt::at_interrupt(move || {
        // Before the lock, for which the loop would not wait.
        ends_at_interrupt.store(true, Ordering::Relaxed);
        drop(at_interrupt.lock().unwrap_or_else(PoisonError::into_inner).take());
    });
    let result = report(arguments, &shared, &ends);
    drop(shared.lock().unwrap_or_else(PoisonError::into_inner).take());
    result
}

/// What was printed last of a direction.
#[derive(Clone, Copy)]
struct Printed {
    at: Instant,
    blind: bool,
}

/// Prints a line for each change, until enough have been printed.
fn report(arguments: &Shaper, shared: &Mutex<Option<Daemon>>, ends: &AtomicBool) -> Result<(), Failure> {
    let interval = std::time::Duration::from_nanos(arguments.interval.as_nanos());
    let mut lines = 0;
    let mut printed: Vec<Option<Printed>> = vec![None; 2];
    if arguments.format == DocumentFormat::Table {
        text::print(&format!("{HEADING}\n"))?;
    }
    loop {
        if ends.load(Ordering::Relaxed) {
            interrupt::wait_for_exit();
        }
        let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(daemon) = guard.as_mut() else {
            drop(guard);
            interrupt::wait_for_exit()
        };
        for (way, status) in daemon.status().into_iter().enumerate() {
            let before = printed[way];
            let sight = before.is_none_or(|before| before.blind != status.blind);
            let change = before.is_none_or(|before| before.at.elapsed() >= interval) && status.changes > 0;
            if !sight && !change {
                continue;
            }
            daemon.reported(way);
            if sight && (before.is_some() || status.blind) {
                text::say(&sight_of(&status));
            }
            printed[way] = Some(Printed { at: Instant::now(), blind: status.blind });
            match arguments.format {
                DocumentFormat::Json => text::print(&format!("{}\n", json!(status)))?,
                DocumentFormat::Table => text::print(&line(&status))?,
            }
            lines += 1;
            if arguments.count.is_some_and(|count| lines >= count) {
                return Ok(());
            }
        }
        daemon.turn()?;
    }
}

fn sight_of(status: &Status) -> String {
    let Status { direction, .. } = status;
    if status.blind {
        let rate = number(status.rate_mbps);
        format!("{direction}: blind: nothing that is measured shows the link's queue; it holds {rate} Mbit/s")
    } else {
        format!("{direction}: sees the link's queue again")
    }
}

const HEADING: &str = "       s   way   Mbit/s    left   RTT ms  waiting  changes";

fn line(s: &Status) -> String {
    let rtt = s.rtt_ms.map_or("-".to_string(), number);
    let note = if s.blind { "  blind" } else { "" };
    format!(
        "{:>8.2}  {:>4} {:>8} {:>7} {:>8} {:>8} {:>8}{note}\n",
        s.t_s,
        s.direction,
        number(s.rate_mbps),
        number(s.left_mbps),
        rtt,
        s.waiting_packets,
        s.changes,
    )
}
