//! `stability`: where ABC's router settles and where it oscillates, by the fluid model and by packets.

use std::path::PathBuf;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_lab::stability::{html, map};
use brakelight_lab::text::stability::in_words;
use brakelight_sim::analysis::stability::Setting;
use clap::Args;

use crate::arguments::{DocumentFormat, human, positive_rate, positive_time, seed};
use crate::failure::Failure;
use crate::origin;
use crate::output;
use crate::progress::Bar;
use crate::text;

/// `stability`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The link's rate
    #[arg(long, value_name = "RATE", default_value = "24Mbps", value_parser = positive_rate, allow_hyphen_values = true)]
    pub rate: Rate,
    /// tau, propagation delay of the round trip
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = rtt, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// Share of the capacity that the router aims at
    #[arg(long, value_name = "SHARE", default_value = "0.98", value_parser = eta, allow_hyphen_values = true)]
    pub eta: f64,
    /// d_t, queueing delay below which the router drains nothing
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = human::<Duration>, allow_hyphen_values = true)]
    pub target: Duration,
    /// delta over tau, with commas between; one ratio and one number of flows show the delay over time
    #[arg(long, value_name = "LIST", default_value = RATIOS, value_parser = ratios, allow_hyphen_values = true)]
    pub ratios: std::vec::Vec<f64>,
    /// Numbers of flows, with commas between
    #[arg(long, value_name = "LIST", default_value = FLOWS, value_parser = flows, allow_hyphen_values = true)]
    pub flows: std::vec::Vec<u32>,
    /// Length of a run, of which the second half is looked at
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Duration,
    /// The seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Write stability.html and stability.json into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How to print the map
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let folder = arguments.out.as_deref().map(output::folder).transpose()?;
    let setting = Setting {
        rate: arguments.rate,
        rtt: arguments.rtt,
        eta: arguments.eta,
        target: arguments.target,
        duration: arguments.duration,
        seed: arguments.seed,
    };
    let origin = origin::origin(setting.seed);
    let map = map(&setting, &arguments.ratios, &arguments.flows, origin, &Bar::default())?;
    match arguments.format {
        DocumentFormat::Json => text::print_json(&map)?,
        DocumentFormat::Table => text::print(&in_words(&map, &text::standard_output()))?,
    }
    if let Some(folder) = folder {
        let json = serde_json::to_string_pretty(&map).map_err(Failure::run)?;
        folder.write("stability.json", json + "\n")?;
        folder.write("stability.html", html(&map, &setting))?;
        let place = folder.keep()?;
        text::say(&format!("map: {}", place.join("stability.html").display()));
    }
    Ok(())
}

/// Delta over tau: from far below the limits to far above.
pub const RATIOS: &str = "0.2,0.3,0.4,0.5,0.6,0.7,0.8,1,1.33,2";

/// Flows.
pub const FLOWS: &str = "1,4,8,16,32,64";

/// The most of either.
const MOST: usize = 100;

/// Reads a list of ratios.
pub fn ratios(text: &str) -> Result<Vec<f64>, String> {
    list(text, "a number from 0.05 to 20 for delta over the round trip", |item| {
        item.parse().ok().filter(|ratio: &f64| (0.05..=20.0).contains(ratio))
    })
}

/// Reads a list of numbers of flows.
pub fn flows(text: &str) -> Result<Vec<u32>, String> {
    list(text, "a whole number of flows from 1 to 1000", |item| {
        item.parse().ok().filter(|flows: &u32| (1..=1000).contains(flows))
    })
}

fn list<T>(text: &str, valid: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let items: Vec<T> = text
        .split(',')
        .map(|item| read(item.trim()).ok_or_else(|| format!("`{}` is not {valid}", item.trim())))
        .collect::<Result<_, _>>()?;
    if items.len() > MOST { Err(format!("{} values: {MOST} are the most", items.len())) } else { Ok(items) }
}

/// Reads eta.
pub fn eta(text: &str) -> Result<f64, String> {
    const VALID: &str = "a number from 0.1 to 1";
    let eta: Option<f64> = text.parse().ok().filter(|eta| (0.1..=1.0).contains(eta));
    eta.ok_or_else(|| format!("`{text}` is not {VALID}"))
}

/// Returns the longest propagation delay that leaves something to see in a run.
pub fn rtt(text: &str) -> Result<Duration, String> {
    let time = positive_time(text)?;
    if (Duration::from_millis(1)..=Duration::from_secs(2)).contains(&time) {
        Ok(time)
    } else {
        Err(format!("`{text}` is out of range: valid is a time from 1ms to 2s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_which_item_is_wrong() {
        assert_eq!(flows("1, 4,8").unwrap(), [1, 4, 8]);
        assert_eq!(flows("1,x").unwrap_err(), "`x` is not a whole number of flows from 1 to 1000");
        assert_eq!(
            ratios("0.5,NaN").unwrap_err(),
            "`NaN` is not a number from 0.05 to 20 for delta over the round trip"
        );
        assert!(ratios("").is_err());
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(ratios(RATIOS).unwrap().len(), 10);
        assert_eq!(flows(FLOWS).unwrap().len(), 6);
    }
}
