//! Compares recordings with the recipes fitted to them:
//! `cargo run --release -p brakelight-traces --example show_fit -- FOLDER FIGURE.svg` prints the tables of
//! `docs/traces.md` and draws its figure.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use brakelight_links::trace::Trace;
use brakelight_traces::OPPORTUNITY;
use brakelight_traces::embedded::{Embedded, FITTED};
use brakelight_traces::names::read;
use brakelight_traces::statistics::{Statistics, bins};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(figure)) = (arguments.next(), arguments.next()) else {
        return Err("give the folder of the recordings and the figure to write".into());
    };
    let mut pairs = Vec::new();
    for (name, recording) in FITTED {
        let recorded = read(&Path::new(&folder).join(recording))?;
        let embedded = Embedded::find(name).ok_or("a fitted recipe is embedded")?;
        pairs.push((*recording, recorded, embedded.trace()));
    }
    println!("{}", table(&pairs));
    std::fs::write(figure, draw(&pairs))?;
    Ok(())
}

type Pair = (&'static str, Trace, Trace);

/// A row a statistic, a column a recording: recorded, synthetic, ratio.
fn table(pairs: &[Pair]) -> String {
    let rows = |trace: &Trace| Statistics::of(trace, OPPORTUNITY).rows();
    let found: Vec<_> =
        pairs.iter().map(|(_, recorded, synthetic)| (rows(recorded), rows(synthetic))).collect();
    let mut text = String::from("| statistic |");
    for (name, ..) in pairs {
        let _ = write!(text, " {name} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(pairs.len()));
    let shown =
        |name: &str| name != "duration" && !name.ends_with("least") && !name.starts_with("rate in 100 ms");
    for (index, first) in found[0].0.iter().enumerate().filter(|(_, row)| shown(&row.name)) {
        let unit = if first.unit.is_empty() { String::new() } else { format!(", {}", first.unit) };
        let _ = write!(text, "| {}{unit} |", first.name);
        for (recorded, synthetic) in &found {
            let (a, b) = (recorded[index].value, synthetic[index].value);
            let ratio = if a.abs() < 0.1 { String::new() } else { format!(" ({:.2})", b / a) };
            let _ = write!(text, " {} / {}{ratio} |", number(a), number(b));
        }
        text.push('\n');
    }
    text
}

fn number(value: f64) -> String {
    if value == value.trunc() { format!("{value}") } else { format!("{value:.2}") }
}

const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 150.0;
const MARGIN: f64 = 46.0;

/// A column a recording: autocorrelation above, quantiles of the rate in 100 ms below; recorded blue,
/// synthetic orange.
fn draw(pairs: &[Pair]) -> String {
    let (columns, rows) = (3, pairs.len().div_ceil(3) * 2);
    let (width, height) = (columns as f64 * (WIDTH + MARGIN) + 20.0, rows as f64 * (HEIGHT + MARGIN) + 40.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"18\" fill=\"#1f77b4\">recorded</text>\
         <text x=\"{}\" y=\"18\" fill=\"#ff7f0e\">synthetic</text>\n",
        MARGIN + 70.0
    );
    for (index, (name, recorded, synthetic)) in pairs.iter().enumerate() {
        let x = (index % columns) as f64 * (WIDTH + MARGIN) + MARGIN;
        let y = (index / columns) as f64 * 2.0 * (HEIGHT + MARGIN) + 40.0;
        let acf = [recorded, synthetic].map(autocorrelation);
        panel(&mut svg, (x, y), &format!("{name}: autocorrelation by lag, s"), &acf, (10.0, -0.2, 1.0));
        let quantiles = [recorded, synthetic].map(quantiles);
        let top = quantiles.iter().flatten().map(|point| point.1).fold(0.0, f64::max);
        let title = format!("{name}: Mbit/s by share of time");
        panel(&mut svg, (x, y + HEIGHT + MARGIN), &title, &quantiles, (1.0, 0.0, top));
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(
    svg: &mut String,
    at: (f64, f64),
    title: &str,
    curves: &[Vec<(f64, f64)>; 2],
    range: (f64, f64, f64),
) {
    let ((x, y), (right, low, high)) = (at, range);
    let place = |point: &(f64, f64)| {
        (x + point.0 / right * WIDTH, y + HEIGHT * (1.0 - (point.1.clamp(low, high) - low) / (high - low)))
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>"
    );
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{}\">{title}</text>", y - 5.0);
    for value in [low, high] {
        let (_, y) = place(&(0.0, value));
        let _ =
            writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{value:.1}</text>", x - 4.0, y + 4.0);
    }
    for value in [0.0, right / 2.0, right] {
        let (x, _) = place(&(value, low));
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
            y + HEIGHT + 13.0
        );
    }
    for (curve, color) in curves.iter().zip(["#1f77b4", "#ff7f0e"]) {
        let points: Vec<String> = curve.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
    }
}

fn autocorrelation(trace: &Trace) -> Vec<(f64, f64)> {
    let counts: Vec<f64> = bins(trace, 100).into_iter().map(|count| count as f64).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let product =
        |lag: usize| counts.iter().zip(&counts[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    (0..=100).map(|lag| (lag as f64 * 0.1, product(lag) / product(0))).collect()
}

fn quantiles(trace: &Trace) -> Vec<(f64, f64)> {
    let mut counts = bins(trace, 100);
    counts.sort_unstable();
    let last = (counts.len() - 1) as f64;
    let rate = |count: u64| (count * OPPORTUNITY.bits()) as f64 / 1e5;
    (0..=200)
        .map(|step| (f64::from(step) / 200.0, rate(counts[(last * f64::from(step) / 200.0) as usize])))
        .collect()
}
