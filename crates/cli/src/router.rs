//! `router`: this machine as an ABC router.

mod qdisc;

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_tcp::settings;
use clap::{Args, Subcommand, ValueEnum};

use crate::arguments::{DocumentFormat, count, eta, human, positive_buffer, positive_rate, positive_time};
use crate::failure::Failure;

/// `router`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Shape what arrives on a device, and mark it as it leaves by the others
    Attach(Box<Attach>),
    /// The router as a queue discipline on an outgoing device, with the kernel module sch_abc
    #[command(subcommand)]
    Qdisc(qdisc::Command),
}

/// The rule by which packets are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Variant {
    /// The paper's equation 1
    Paper,
    /// The self-tuning rule, which measures its link and its loop
    Adaptive,
    /// CE for senders of L4S, by the link's rate
    L4s,
}

impl From<Variant> for settings::Variant {
    fn from(variant: Variant) -> Self {
        match variant {
            Variant::Paper => settings::Variant::Paper,
            Variant::Adaptive => settings::Variant::Adaptive,
            Variant::L4s => settings::Variant::L4s,
        }
    }
}

impl Variant {
    /// Refuses options of the paper's rule beside another, and those of both rules for ABC's marks beside the
    /// one for L4S: each with its name, and whether it was given.
    fn refuse(self, of_paper: &[(&str, bool)], of_abc: &[(&str, bool)]) -> Result<(), Failure> {
        let given = |options: &[(&str, bool)]| {
            options.iter().find(|(_, given)| *given).map(|(name, _)| (*name).to_string())
        };
        match self {
            Variant::Paper => Ok(()),
            Variant::Adaptive => given(of_paper).map_or(Ok(()), |name| {
                Err(Failure::input(format!(
                    "--{name} is a constant of `--variant paper`; the self-tuning rule measures its link and its loop instead"
                )))
            }),
            Variant::L4s => given(of_paper).or_else(|| given(of_abc)).map_or(Ok(()), |name| {
                Err(Failure::input(format!(
                    "--{name} belongs to ABC's marks, `--variant paper` or `adaptive`; the rule for L4S has nothing to set"
                )))
            }),
        }
    }
}

/// delta where it is not given; abc20 7.2.
const DELTA: Duration = Duration::from_millis(133);
/// d_t where it is not given; abc17 5.
const TARGET: Duration = Duration::from_millis(50);

/// `router attach`.
#[derive(Clone, Debug, Args)]
pub struct Attach {
    /// The device on which packets arrive
    #[arg(value_name = "DEV")]
    pub device: String,
    /// Create a shaper of this rate for them
    #[arg(long, value_name = "RATE", value_parser = positive_rate, allow_hyphen_values = true, required_unless_present = "from_qdisc")]
    pub rate: Option<Rate>,
    /// Use the shaper that is already on this device, tbf or htb; whatever sends packets there continues to
    /// do so
    #[arg(long, value_name = "DEV", conflicts_with_all = ["rate", "dual", "buffer"])]
    pub from_qdisc: Option<String>,
    /// A device by which they leave; may be repeated [default: every other device]
    #[arg(long, value_name = "DEV")]
    pub out: Vec<String>,
    /// Give flows that do not speak ABC, or L4S with `l4s`, a separate queue
    #[arg(long)]
    pub dual: bool,
    /// The buffer of each queue; a packet counts as 1514 bytes
    #[arg(long, value_name = "SIZE", default_value = "250pkt", value_parser = positive_buffer, allow_hyphen_values = true)]
    pub buffer: Limit,
    /// The rule by which packets are marked
    #[arg(long, default_value = "paper", value_enum)]
    pub variant: Variant,
    /// eta, target utilization; not with `l4s` [default: 0.98; 1 for `adaptive`]
    #[arg(long, value_name = "SHARE", value_parser = eta, allow_hyphen_values = true)]
    pub eta: Option<f64>,
    /// delta, time in which a queue above the target drains; `paper` only [default: 133ms]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub delta: Option<Duration>,
    /// d_t, queueing delay below which nothing is drained; `paper` only [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = human::<Duration>, allow_hyphen_values = true)]
    pub target: Option<Duration>,
    /// T, window over which the departure rate is measured
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = positive_time, allow_hyphen_values = true)]
    pub window: Duration,
    /// Time between lines of statistics
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_time, allow_hyphen_values = true)]
    pub interval: Duration,
    /// Remove everything after this many lines of statistics [default: when interrupted]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub count: Option<u32>,
    /// How to print the statistics; JSON is one document per line
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// Runs the command.
pub fn execute(command: &Command) -> Result<(), Failure> {
    let arguments = match command {
        Command::Attach(arguments) => arguments,
        Command::Qdisc(command) => return qdisc::execute(command),
    };
    let of_paper = [("target", arguments.target.is_some()), ("delta", arguments.delta.is_some())];
    arguments.variant.refuse(&of_paper, &[("eta", arguments.eta.is_some())])?;
    #[cfg(feature = "bpf")]
    return kernel::attach(arguments);
    #[cfg(not(feature = "bpf"))]
    {
        let _ = arguments;
        Err(Failure::run(brakelight_tcp::NOT_BUILT))
    }
}

#[cfg(feature = "bpf")]
mod kernel {
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread;
    use std::time::{Duration, Instant};

    use brakelight_core::units::Limit;
    use brakelight_tcp::bpf::Router;
    use brakelight_tcp::settings::{Capacity, Route, Sample, Variant};
    use serde_json::json;

    use super::{Attach, DELTA, TARGET};
    use crate::arguments::DocumentFormat;
    use crate::failure::Failure;
    use crate::interrupt;
    use crate::text::{self, number};

    /// Between two computations of the weights (open-questions#X-19).
    const PERIOD: Duration = Duration::from_millis(100);

    fn std_time(time: brakelight_core::time::Duration) -> Duration {
        Duration::from_nanos(time.as_nanos())
    }

    pub(super) fn attach(arguments: &Attach) -> Result<(), Failure> {
        let capacity = match (&arguments.from_qdisc, arguments.rate) {
            (Some(device), _) => Capacity::Of(device.clone()),
            (None, Some(rate)) => Capacity::Rate(rate.bps()),
            (None, None) => return Err(Failure::input("--rate or --from-qdisc must be given")),
        };
        let variant = Variant::from(arguments.variant);
        let route = Route {
            device: arguments.device.clone(),
            out: arguments.out.clone(),
            capacity,
            limit_bytes: match arguments.buffer {
                Limit::Packets(packets) => u64::from(packets) * 1514,
                Limit::Bytes(bytes) => bytes.0,
            },
            dual: arguments.dual,
            variant,
            eta: arguments.eta.unwrap_or(variant.eta()),
            delta: std_time(arguments.delta.unwrap_or(DELTA)),
            target: std_time(arguments.target.unwrap_or(TARGET)),
            window: std_time(arguments.window),
            // abc17 5, MAXSPARE
            token_limit: 5.0,
        };
        let router = Router::attach(&route)?;
        router.notes.iter().for_each(|note| text::say(&format!("note: {note}")));
        text::say(&format!(
            "routing what arrives on {} at {} Mbit/s, marking what leaves by {}",
            route.device,
            number(router.rate_bps as f64 / 1e6),
            router.out.join(", ")
        ));
        // Its end takes everything out of the kernel; an interrupt must get there too.
        let shared = Arc::new(Mutex::new(Some(router)));
        let at_interrupt = Arc::clone(&shared);
        interrupt::at_interrupt(move || {
            drop(at_interrupt.lock().unwrap_or_else(PoisonError::into_inner).take())
        });
        let result = report(arguments, &shared);
        drop(shared.lock().unwrap_or_else(PoisonError::into_inner).take());
        result
    }

    /// Prints lines of statistics and keeps the weights, until enough have been printed.
    fn report(arguments: &Attach, shared: &Mutex<Option<Router>>) -> Result<(), Failure> {
        let interval = std_time(arguments.interval);
        let mut lines = 0;
        let mut next = Instant::now() + interval;
        if arguments.format == DocumentFormat::Table {
            let tau = if arguments.variant == super::Variant::Adaptive { "  loop ms" } else { "" };
            text::print(&format!("{HEADING}{tau}\n"))?;
        }
        loop {
            thread::sleep(PERIOD.min(next.saturating_duration_since(Instant::now())));
            let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(router) = guard.as_mut() else {
                drop(guard);
                interrupt::wait_for_exit()
            };
            router.weigh()?;
            if Instant::now() < next {
                continue;
            }
            next += interval;
            let sample = router.sample(interval)?;
            drop(guard);
            match arguments.format {
                DocumentFormat::Json => text::print(&format!("{}\n", json!(sample)))?,
                DocumentFormat::Table => text::print(&line(&sample))?,
            }
            lines += 1;
            if arguments.count.is_some_and(|count| lines >= count) {
                return Ok(());
            }
        }
    }

    const HEADING: &str =
        "Mbit/s     of  ABC's share   cr Mbit/s     f  tokens  p50 ms  p95 ms  accel  brake     CE";

    fn line(s: &Sample) -> String {
        let tau = s.loop_delay_ms.map_or_else(String::new, |tau_ms| format!("  {:>7}", number(tau_ms)));
        format!(
            "{:>6} {:>6} {:>11.0} % {:>11} {:>5.2} {:>7.2} {:>7} {:>7} {:>4.0} % {:>4.0} % {:>4.1} %{tau}\n",
            number(s.mbps),
            number(s.capacity_mbps),
            100.0 * s.abc_share,
            number(s.measured_mbps),
            s.f,
            s.tokens,
            number(s.delay_p50_ms),
            number(s.delay_p95_ms),
            s.accelerate_percent,
            s.brake_percent,
            s.ce_percent,
        )
    }
}
