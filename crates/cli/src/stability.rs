//! `stability`: where ABC's router settles and where it oscillates, by a fluid model and by packets.

use std::path::PathBuf;

use brakelight_core::parameters::Value;
use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_lab::analysis::stability::{Rule, Setting};
use brakelight_lab::attack::bounds::Span;
use brakelight_lab::figures;
use brakelight_lab::stability::waits::{self, CHANGES, Links};
use brakelight_lab::stability::{FLOWS, LOOP_RATIOS, RATIOS, changes, eta, flows, html, map, ratios};
use brakelight_lab::text::stability::{in_words, waits_in_words};
use clap::{Args, ValueEnum};

use crate::arguments::{DocumentFormat, human, positive_rate, positive_time, propagation, seed};
use crate::failure::Failure;
use crate::origin;
use crate::output;
use crate::progress::Bar;
use crate::text;

/// The rules that have a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Variant {
    /// The paper's equation 1; delta over tau is varied
    Paper,
    /// The self-tuning rule; tau over its loop delay is varied
    Adaptive,
}

/// `stability`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The router's rule for its target rate
    #[arg(long, value_enum, default_value = "paper")]
    pub variant: Variant,
    /// The link's rate
    #[arg(long, value_name = "RATE", default_value = "24Mbps", value_parser = positive_rate, allow_hyphen_values = true)]
    pub rate: Rate,
    /// tau, round-trip propagation delay
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = propagation, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// eta, target utilization; `paper` only [default: 0.98]
    #[arg(long, value_name = "SHARE", value_parser = eta, allow_hyphen_values = true)]
    pub eta: Option<f64>,
    /// d_t, queueing delay below which the router drains nothing; `paper` only [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = human::<Duration>, allow_hyphen_values = true)]
    pub target: Option<Duration>,
    /// Comma-separated ratios of delta to tau, or of tau to the loop delay; one ratio and one number of flows
    /// show the delay over time [default: ten from 0.2 to 2, or eleven from 0.25 to 5]
    #[arg(long, value_name = "LIST", value_parser = ratios, allow_hyphen_values = true)]
    pub ratios: Option<std::vec::Vec<f64>>,
    /// Bound the longest wait of a packet on links that stay between these rates, LOW..HIGH, in place of the
    /// map; `paper` only
    #[arg(long, value_name = "LOW..HIGH", value_parser = rates, allow_hyphen_values = true, conflicts_with_all = ["rate", "ratios"])]
    pub rates: Option<Span<Rate>>,
    /// With --rates: comma-separated factors by which the rate may change in a round trip
    #[arg(long, value_name = "LIST", default_value = CHANGES, value_parser = changes, requires = "rates", allow_hyphen_values = true)]
    pub changes: std::vec::Vec<f64>,
    /// Comma-separated numbers of flows
    #[arg(long, value_name = "LIST", default_value = FLOWS, value_parser = flows, allow_hyphen_values = true)]
    pub flows: std::vec::Vec<u32>,
    /// Length of a run; only its second half is evaluated
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Duration,
    /// The seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Write stability.html, stability.svg and stability.json into this folder; with --rates the latter two
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write even into a folder that holds other files
    #[arg(long, requires = "out")]
    pub force: bool,
    /// How to print the map
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// Reads a range of rates.
fn rates(text: &str) -> Result<Span<Rate>, String> {
    let valid = || {
        format!(
            "`{text}` is no range of rates: valid is LOW..HIGH from 100kbps to 1Gbps, such as 6Mbps..24Mbps"
        )
    };
    let span = <Span<Rate> as Value>::parse(text).map_err(|_| valid())?;
    let (least, most) = (Rate::from_bps(100_000), Rate::from_mbps(1000));
    if least <= span.low && span.low <= span.high && span.high <= most { Ok(span) } else { Err(valid()) }
}

/// Runs the command with `--rates`.
fn bound(arguments: &Arguments, span: Span<Rate>) -> Result<(), Failure> {
    if arguments.variant == Variant::Adaptive {
        return Err(Failure::input(
            "--rates bounds the rule of `--variant paper`; the self-tuning rule has no such bound yet",
        ));
    }
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let links = Links {
        rates: [span.low, span.high],
        rtt: arguments.rtt,
        eta: arguments.eta.unwrap_or(0.98),
        target: arguments.target.unwrap_or(Duration::from_millis(50)),
        duration: arguments.duration,
        seed: arguments.seed,
    };
    let origin = origin::origin(links.seed);
    let found = waits::waits(&links, &arguments.changes, &arguments.flows, origin, &Bar::default())?;
    match arguments.format {
        DocumentFormat::Json => text::print_json(&found)?,
        DocumentFormat::Table => text::print(&waits_in_words(&found, &text::standard_output()))?,
    }
    if let Some(folder) = folder {
        let json = serde_json::to_string_pretty(&found).map_err(Failure::run)?;
        folder.write("stability.json", json + "\n")?;
        folder.write("stability.svg", figures::waits(&found).svg())?;
        let place = folder.keep()?;
        text::say(&format!("chart: {}", place.join("stability.svg").display()));
    }
    Ok(())
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(span) = arguments.rates {
        return bound(arguments, span);
    }
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let (rule, usual) = match arguments.variant {
        Variant::Paper => {
            let target = arguments.target.unwrap_or(Duration::from_millis(50));
            (Rule::Paper { eta: arguments.eta.unwrap_or(0.98), target }, RATIOS)
        }
        Variant::Adaptive => {
            for (name, given) in [("eta", arguments.eta.is_some()), ("target", arguments.target.is_some())] {
                if given {
                    return Err(Failure::input(format!(
                        "--{name} is a constant of `--variant paper`; the self-tuning rule has none"
                    )));
                }
            }
            (Rule::Adaptive, LOOP_RATIOS)
        }
    };
    let ratios = match &arguments.ratios {
        Some(ratios) => ratios.clone(),
        None => ratios(usual).map_err(Failure::input)?,
    };
    let setting = Setting {
        rule,
        rate: arguments.rate,
        rtt: arguments.rtt,
        duration: arguments.duration,
        seed: arguments.seed,
    };
    let origin = origin::origin(setting.seed);
    let map = map(&setting, &ratios, &arguments.flows, origin, &Bar::default())?;
    match arguments.format {
        DocumentFormat::Json => text::print_json(&map)?,
        DocumentFormat::Table => text::print(&in_words(&map, &text::standard_output()))?,
    }
    if let Some(folder) = folder {
        let json = serde_json::to_string_pretty(&map).map_err(Failure::run)?;
        folder.write("stability.json", json + "\n")?;
        folder.write("stability.html", html(&map, &setting))?;
        folder.write("stability.svg", figures::stability(&map).svg())?;
        let place = folder.keep()?;
        text::say(&format!("map: {}", place.join("stability.html").display()));
    }
    Ok(())
}
