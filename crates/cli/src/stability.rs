//! `stability`: where ABC's router settles and where it oscillates, by the fluid model and by packets.

use std::path::PathBuf;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_scenario::documents::Origin;
use brakelight_scenario::trace::plot;
use brakelight_sim::analysis::fluid::{LINEAR_LIMIT, THEOREM_LIMIT};
use brakelight_sim::analysis::stability::{Measured, Point, Predicted, Setting, Verdict};
use clap::Args;
use rayon::prelude::*;
use serde::Serialize;

use crate::arguments::{DocumentFormat, human, positive_rate, positive_time, seed};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::origin;
use crate::progress::Progress;
use crate::report::page;
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number};

/// Height of a picture of the delay over time.
const PLOT_ROWS: usize = 8;

/// Propagation delays that the pictures of the model over time show.
const SHOWN: f64 = 60.0;

const SCRIPT: &str = include_str!("stability/stability.js");
const BODY: &str = include_str!("stability/stability.html");

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

/// What the command prints.
#[derive(Debug, Serialize)]
struct Document {
    origin: Origin,
    rate_mbps: f64,
    rtt_ms: f64,
    eta: f64,
    target_ms: f64,
    duration_s: f64,
    /// delta over the round trip above which the theorem promises stability, and the limit of the linearised model.
    theorem_limit: f64,
    linear_limit: f64,
    points: Vec<Row>,
}

/// One point of the map.
#[derive(Debug, Serialize)]
struct Row {
    delta_over_tau: f64,
    delta_ms: f64,
    flows: u32,
    fluid: Fluid,
    packets: Packets,
}

#[derive(Debug, Serialize)]
struct Fluid {
    rest_ms: f64,
    low_ms: f64,
    high_ms: f64,
    verdict: Verdict,
    /// x over time from an empty queue, one value each fifth of a round trip.
    #[serde(skip)]
    series_ms: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct Packets {
    p5_ms: f64,
    mean_ms: f64,
    p95_ms: f64,
    utilization: f64,
    verdict: Verdict,
    #[serde(skip)]
    series_ms: Vec<f64>,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let folder = arguments.out.as_deref().map(Folder::create).transpose()?;
    let setting = Setting {
        rate: arguments.rate,
        rtt: arguments.rtt,
        eta: arguments.eta,
        target: arguments.target,
        duration: arguments.duration,
        seed: arguments.seed,
    };
    let points: Vec<Point> = arguments
        .flows
        .iter()
        .flat_map(|&flows| arguments.ratios.iter().map(move |&ratio| Point { ratio, flows }))
        .collect();
    // All of them before the first run, so that a wrong value is answered at once.
    let scenarios = points
        .iter()
        .map(|&point| setting.scenario(point).map_err(Failure::input))
        .collect::<Result<Vec<_>, _>>()?;
    let progress = Progress::new("settling", points.len());
    let rows = points
        .par_iter()
        .zip(&scenarios)
        .map(|(&point, scenario)| {
            let predicted = setting.predict(point);
            let measured = setting.measure(scenario).map_err(Failure::run)?;
            progress.step(&scenario.name);
            Ok(row(&setting, point, &predicted, &measured))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    drop(progress);
    let document = Document {
        origin: origin::origin(setting.seed),
        rate_mbps: setting.rate.as_mbps_f64(),
        rtt_ms: setting.rtt.as_millis_f64(),
        eta: setting.eta,
        target_ms: setting.target.as_millis_f64(),
        duration_s: setting.duration.as_millis_f64() / 1e3,
        theorem_limit: THEOREM_LIMIT,
        linear_limit: LINEAR_LIMIT,
        points: rows,
    };
    match arguments.format {
        DocumentFormat::Json => text::print_json(&document)?,
        DocumentFormat::Table => text::print(&in_words(&document, arguments, &Screen::standard_output()))?,
    }
    if let Some(folder) = folder {
        let json = serde_json::to_string_pretty(&document).map_err(Failure::run)?;
        folder.write("stability.json", json + "\n")?;
        folder.write("stability.html", html(&document, &setting))?;
        let place = folder.keep()?;
        text::say(&format!("map: {}", place.join("stability.html").display()));
    }
    Ok(())
}

fn row(setting: &Setting, point: Point, predicted: &Predicted, measured: &Measured) -> Row {
    let ms = |seconds: f64| 1e3 * seconds;
    let fluid = setting.fluid(point);
    let bin_s = setting.bin().as_secs_f64();
    let mut series_ms = Vec::new();
    fluid.solve(0.0, SHOWN * fluid.tau_s, |t_s, x_s, _| {
        if t_s >= series_ms.len() as f64 * bin_s {
            series_ms.push(ms(x_s));
        }
    });
    Row {
        delta_over_tau: point.ratio,
        delta_ms: ms(fluid.delta_s),
        flows: point.flows,
        fluid: Fluid {
            rest_ms: ms(predicted.rest.x_s),
            low_ms: ms(predicted.swing.low_s),
            high_ms: ms(predicted.swing.high_s),
            verdict: setting.verdict(predicted.swing.width_s()),
            series_ms,
        },
        packets: Packets {
            p5_ms: ms(measured.delay_s[0]),
            mean_ms: ms(measured.delay_s[1]),
            p95_ms: ms(measured.delay_s[2]),
            utilization: measured.utilization,
            verdict: setting.verdict(measured.width_s()),
            series_ms: measured.series_s.iter().map(|&x_s| ms(x_s)).collect(),
        },
    }
}

fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Steady => '·',
        Verdict::Ripples => '~',
        Verdict::Oscillates => '#',
    }
}

fn in_words(document: &Document, arguments: &Arguments, screen: &Screen) -> String {
    let facts = format!(
        "{} Mbit/s, round trip {} ms, eta {}, target {} ms; swing of the queueing delay in ms, · up to 5 % of the round trip, ~ up to 15 %, # above",
        number(document.rate_mbps),
        number(document.rtt_ms),
        document.eta,
        number(document.target_ms),
    );
    let mut text =
        format!("{}\n{}\n\n", screen.bold("ABC: steady or not, by delta over tau"), screen.dim(&facts));
    if let [only] = document.points.as_slice() {
        return text + &one(only, document, screen);
    }
    let mut columns = vec![Column::text("flows"), Column::text("")];
    columns.extend(arguments.ratios.iter().map(|ratio| Column::number(&ratio.to_string(), "")));
    let mut rows = Vec::new();
    for of_flows in document.points.chunks(arguments.ratios.len()) {
        let flows = of_flows.first().map_or(0, |row| row.flows);
        let line = |what: &str, first: String, cell: &dyn Fn(&Row) -> (f64, Verdict)| {
            let cells = of_flows
                .iter()
                .map(cell)
                .map(|(width_ms, verdict)| format!("{} {}", number(width_ms), letter(verdict)));
            [first, what.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
        };
        rows.push(line("model", flows.to_string(), &|row| {
            (row.fluid.high_ms - row.fluid.low_ms, row.fluid.verdict)
        }));
        rows.push(line("packets", String::new(), &|row| {
            (row.packets.p95_ms - row.packets.p5_ms, row.packets.verdict)
        }));
    }
    text += &table::render(&columns, &rows, screen);
    text + &format!(
        "\nThe theorem promises rest for delta above {THEOREM_LIMIT:.3} tau, the linearised model from {LINEAR_LIMIT:.3} tau.\n"
    )
}

/// One point: the model and the packets over time.
fn one(row: &Row, document: &Document, screen: &Screen) -> String {
    let columns = screen.width.saturating_sub(12).min(100);
    let bin_s = document.rtt_ms * 0.2e-3;
    let picture = |series_ms: &[f64]| {
        let seconds = (series_ms.len() as f64 * bin_s * 10.0).round() / 10.0;
        plot::area(series_ms, columns, PLOT_ROWS, "queueing delay, ms", seconds)
    };
    let model = &row.fluid;
    let packets = &row.packets;
    format!(
        "{} from an empty queue: rests at {} ms, at the end between {} and {} ms {}\n{}\n\
         {} from the start of {} flows: mean {} ms, from {} (p5) to {} ms (p95) in the second half {}\n{}",
        screen.bold("Model,"),
        number(model.rest_ms),
        number(model.low_ms),
        number(model.high_ms),
        letter(model.verdict),
        picture(&model.series_ms),
        screen.bold("Packets,"),
        row.flows,
        number(packets.mean_ms),
        number(packets.p5_ms),
        number(packets.p95_ms),
        letter(packets.verdict),
        picture(&packets.series_ms),
    )
}

/// The page, with what its script draws.
fn html(document: &Document, setting: &Setting) -> String {
    let series: Vec<_> = document
        .points
        .iter()
        .map(|row| [thin(&row.fluid.series_ms), thin(&row.packets.series_ms)])
        .collect();
    let data = serde_json::json!({
        "document": document,
        "series_ms": series,
        "bin_s": setting.bin().as_secs_f64(),
    });
    page("ABC's stability", BODY, &data, SCRIPT)
}

/// Hundredths of a millisecond are enough for a picture, and make it a quarter as heavy.
fn thin(series_ms: &[f64]) -> Vec<f64> {
    series_ms.iter().map(|ms| (ms * 100.0).round() / 100.0).collect()
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

/// The longest propagation delay that leaves something to see in a run.
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
