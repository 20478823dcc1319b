//! The picture of `docs/validation/link-models.md`: recordings and models side by side. `BRAKELIGHT_BLESS=1`
//! draws it again. Needs the samples: the folder `links` of the one that BRAKELIGHT_SHARED names,
//! `../shared` beside the workspace by default; without one of them, says what it did not run.

use std::fmt::Write;
use std::path::Path;

use brakelight_core::time::Duration;
use brakelight_links::trace::Trace;
use brakelight_testkit::skip;
use brakelight_traces::embedded::Embedded;
use brakelight_traces::fit::measured::{LINKS, read_link};
use brakelight_traces::{OPPORTUNITY, statistics};

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/link-models.svg");

/// A panel, and what is left free beside and above it.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 110.0;
const LEFT: f64 = 52.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 34.0;

/// Okabe and Ito's blue and vermilion, which colour-blind readers can tell apart.
const RECORDED: &str = "#0072b2";
const MODEL: &str = "#d55e00";

/// Autocorrelations are drawn up to so many bins later.
const LAGS: usize = 100;

/// A link: its name, bin, and the rates in Mbit/s in each bin, recorded and of the model.
struct Pair {
    name: &'static str,
    bin: Duration,
    rates: [Vec<f64>; 2],
}

/// What a panel shows: points from left to right, within a range.
struct Panel {
    title: String,
    curves: [Vec<(f64, f64)>; 2],
    right: f64,
    low: f64,
    high: f64,
}

fn rates(trace: &Trace, bin: Duration) -> Vec<f64> {
    statistics::rates(trace, bin, OPPORTUNITY)
}

/// The least rate that so much of the time does not exceed, at 50 shares.
fn quantiles(rates: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = (sorted.len() - 1) as f64;
    (0..=50)
        .map(|step| f64::from(step) / 50.0)
        .map(|share| (share, sorted[(last * share) as usize]))
        .collect()
}

fn autocorrelation(rates: &[f64], bin: Duration) -> Vec<(f64, f64)> {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let product =
        |lag: usize| rates.iter().zip(&rates[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let lags = LAGS.min(rates.len() / 4);
    (0..=lags).map(|lag| (lag as f64 * bin.as_secs_f64(), product(lag) / product(0))).collect()
}

impl Pair {
    fn panels(&self) -> [Panel; 2] {
        let curves = [&self.rates[0], &self.rates[1]].map(|rates| quantiles(rates));
        let high = curves.iter().flatten().map(|(_, mbps)| *mbps).fold(0.0, f64::max);
        let title = format!("{}: Mbit/s in {}, by share of the time", self.name, self.bin);
        let distribution = Panel { title, curves, right: 1.0, low: 0.0, high };
        let curves = [&self.rates[0], &self.rates[1]].map(|rates| autocorrelation(rates, self.bin));
        let right = curves[0].last().map_or(1.0, |(lag, _)| *lag);
        let title = format!("{}: autocorrelation, by lag in s", self.name);
        [distribution, Panel { title, curves, right, low: -0.4, high: 1.0 }]
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, (x, y): (f64, f64)) {
        let place = |&(along, value): &(f64, f64)| {
            let height = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
            (x + along / self.right * WIDTH, y + HEIGHT * (1.0 - height))
        };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>\n\
             <text x=\"{x}\" y=\"{}\">{}</text>",
            y - 6.0,
            self.title
        );
        for value in [self.low, self.high] {
            let (_, y) = place(&(0.0, value));
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{value:.1}</text>",
                x - 5.0,
                y + 4.0
            );
        }
        for share in [0.0, 0.5, 1.0] {
            let (along, below) = (x + share * WIDTH, y + HEIGHT + 14.0);
            let value = share * self.right;
            let _ = writeln!(svg, "<text x=\"{along}\" y=\"{below}\" text-anchor=\"middle\">{value}</text>");
        }
        if self.low < 0.0 {
            let (_, zero) = place(&(0.0, 0.0));
            let _ = writeln!(svg, "<path d=\"M{x} {zero}h{WIDTH}\" stroke=\"#ddd\"/>");
        }
        let lines = [(RECORDED, ""), (MODEL, " stroke-dasharray=\"5 3\"")];
        for (curve, (color, dashes)) in self.curves.iter().zip(lines) {
            let points: Vec<String> =
                curve.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.6\"{dashes}/>",
                points.join(" ")
            );
        }
    }
}

fn draw(pairs: &[Pair]) -> String {
    let (width, row) = (2.0 * (WIDTH + LEFT) + 24.0, ABOVE + HEIGHT + BELOW);
    let height = pairs.len() as f64 * row + 24.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>Recordings of five links and the models fitted to them: distribution and \
         autocorrelation of the rate</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <path d=\"M{LEFT} 14h24\" stroke=\"{RECORDED}\" stroke-width=\"2\"/><text x=\"{}\" y=\"18\">recorded</text>\n\
         <path d=\"M{} 14h24\" stroke=\"{MODEL}\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>\
         <text x=\"{}\" y=\"18\">model</text>\n",
        LEFT + 30.0,
        LEFT + 110.0,
        LEFT + 140.0
    );
    for (index, pair) in pairs.iter().enumerate() {
        let y = 24.0 + index as f64 * row + ABOVE;
        for (column, panel) in pair.panels().into_iter().enumerate() {
            panel.draw(&mut svg, (LEFT + column as f64 * (WIDTH + LEFT), y));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_picture_of_recordings_and_models_is_what_the_code_draws() {
    let mut pairs = Vec::new();
    for (name, sample, delay, kind) in LINKS {
        let Some(path) = skip::recording(&format!("links/{sample}")) else { return };
        let folder = path.ancestors().nth(2).unwrap_or(Path::new("."));
        let recorded = read_link(folder, sample, *delay).unwrap().trace(None).unwrap();
        let model = Embedded::find(name).unwrap().trace();
        // Bins of 50 ms of Starlink show its bursts and nothing else.
        let bin = kind.bin.max(Duration::from_millis(100));
        pairs.push(Pair { name, bin, rates: [rates(&recorded, bin), rates(&model, bin)] });
    }
    let drawn = draw(&pairs);
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        std::fs::write(PICTURE, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(PICTURE).unwrap_or_default();
    assert!(kept == drawn, "{PICTURE} is not what the code draws: BRAKELIGHT_BLESS=1 draws it again");
}
