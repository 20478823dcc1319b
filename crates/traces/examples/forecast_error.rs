//! How far forecasts of a link's rate are off, beside the one of `abc-adaptive` (docs/abc-adaptive.md):
//! `cargo run --release -p brakelight-traces --example forecast_error -- FOLDER`, with the folder of the
//! recordings, prints the tables of hypothesis 39. Without a folder the generated links alone.
//!
//! A forecast says at the end of every bin of 2 ms how many bytes the link carries within the next horizon.

use std::error::Error;
use std::path::Path;

use brakelight_core::time::{Duration, Time};
use brakelight_links::trace::Trace;
use brakelight_traces::embedded::Embedded;
use brakelight_traces::names::read;

/// Length of a bin, ms.
const BIN_MS: u64 = 2;
/// Bins of a run of 55 s, and those before the first forecast that is judged.
const BINS: usize = 27_500;
const FIRST: usize = 1_000;
const HORIZONS_MS: [usize; 5] = [10, 20, 40, 100, 200];
/// The development links of `ADAPT-R` and `ADAPT-G`.
const RECORDED: [&str; 13] = [
    "3g-CampusWalk.down",
    "3g-rapidGold.down",
    "5g-gnettrack-static.down",
    "5g-nsa-1.down",
    "5g-nsa-2.down",
    "5g-sa-1.down",
    "5g-sa-2.down",
    "ATT-LTE-driving-2016.down",
    "ATT-LTE-driving-2016.up",
    "TMobile-LTE-short.up",
    "Verizon-LTE-short.down",
    "office-wifi.down",
    "rest-wifi.down",
];
const GENERATED: [&str; 10] = [
    "lte-driving",
    "lte-walking",
    "3g",
    "5g-chosen",
    "satellite-chosen",
    "step",
    "fit-att-driving-down",
    "fit-att-driving-up",
    "fit-verizon-down",
    "fit-verizon-up",
];
/// Links with boundaries every 15 s, and when the first one is.
const BOUNDARIES: [(&str, usize); 2] = [("satellite-chosen", 0), ("starlink", 8_687)];
const EVERY_MS: usize = 15_000;

/// What a link could carry up to the end of each bin, in units of its mean per bin.
struct Link {
    name: &'static str,
    carried: Vec<f64>,
}

impl Link {
    fn new(name: &'static str, trace: &Trace) -> Self {
        let end = |bin: usize| Time::ZERO + Duration::from_millis(bin as u64 * BIN_MS);
        let period = trace.period().as_nanos();
        let count = |bin: usize| {
            let nanos = end(bin).since(Time::ZERO).as_nanos();
            let rest = Time::ZERO + Duration::from_nanos(nanos % period);
            (nanos / period * trace.opportunities() + trace.before(rest)) as f64
        };
        let mean = count(BINS) / BINS as f64;
        Link { name, carried: (0..=BINS).map(|bin| count(bin) / mean).collect() }
    }

    /// What is carried in so many bins up to the end of bin `end`; before the start as in the first second.
    fn within(&self, end: usize, bins: usize) -> f64 {
        self.carried[end] - self.carried[end.saturating_sub(bins)]
    }

    fn served(&self, end: usize, horizon: usize) -> f64 {
        self.carried[end + horizon] - self.carried[end]
    }
}

/// A forecast: how many units within the next horizon, for each bin.
type Series = Vec<f64>;

/// The windows of the rule, each by the inverse fourth power of its error; none reaches further back than
/// `reach` says for a bin.
fn windows(link: &Link, horizon: usize, reach: impl Fn(usize) -> usize) -> Series {
    let windows: Vec<usize> =
        (0..9).map(|index| 2 << index).take_while(|w| *w <= 4 * horizon.max(10)).collect();
    let said = |end: usize, window: usize| {
        let window = window.min(reach(end)).max(1);
        link.within(end, window) * horizon as f64 / window as f64
    };
    let mut errors = vec![0.0; windows.len()];
    let mut series = vec![0.0; BINS];
    for (end, forecast) in series.iter_mut().enumerate().skip(600) {
        for (error, window) in errors.iter_mut().zip(&windows) {
            let off = link.within(end, horizon) - said(end - horizon, *window);
            *error += 0.004 * (off.abs() - *error);
        }
        let least = errors.iter().fold(f64::INFINITY, |least, error| least.min(*error));
        let (mut sum, mut weights) = (0.0, 0.0);
        for (error, window) in errors.iter().zip(&windows) {
            let weight = ((least + 1e-4) / (error + 1e-4)).powi(4);
            sum += weight * said(end, *window);
            weights += weight;
        }
        *forecast = sum / weights;
    }
    series
}

/// One window of one horizon.
fn last(link: &Link, horizon: usize) -> Series {
    (0..BINS).map(|end| link.within(end, horizon)).collect()
}

/// An autoregression of the next horizon on the last eight bins, each a quarter of it, by recursive least
/// squares that forget within about five seconds.
fn autoregression(link: &Link, horizon: usize) -> Series {
    const ORDER: usize = 8;
    const N: usize = ORDER + 1;
    let bin = (horizon / 4).max(1);
    let forget = 1.0 - bin as f64 / 2_500.0;
    let features = |end: usize| {
        let mut x = [1.0; N];
        for (back, x) in x.iter_mut().take(ORDER).enumerate() {
            *x = link.within(end.saturating_sub(back * bin), bin) / bin as f64;
        }
        x
    };
    let mut p = [[0.0; N]; N];
    (0..N).for_each(|index| p[index][index] = 10.0);
    let mut coefficients = [1.0 / ORDER as f64; N];
    coefficients[ORDER] = 0.0;
    let dot = |a: &[f64; N], b: &[f64; N]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut series = vec![0.0; BINS];
    for (end, forecast) in series.iter_mut().enumerate().skip(600) {
        if end % bin == 0 {
            let x = features(end - horizon);
            let px: [f64; N] = std::array::from_fn(|row| dot(&p[row], &x));
            let scale = forget + dot(&px, &x);
            let off = link.within(end, horizon) / horizon as f64 - dot(&coefficients, &x);
            for row in 0..N {
                coefficients[row] += px[row] / scale * off;
            }
            for row in 0..N {
                for column in 0..N {
                    p[row][column] = (p[row][column] - px[row] * px[column] / scale) / forget;
                }
                // Directions that nothing excites must not grow without end.
                p[row][row] = p[row][row].min(1e3);
            }
        }
        let most = 2.0 * link.within(end, 500) / 500.0 + link.within(end, bin) / bin as f64;
        *forecast = dot(&coefficients, &features(end)).clamp(0.0, most) * horizon as f64;
    }
    series
}

/// A Kalman filter of a level, and of its trend where `trend` is above zero: the variance of the trend's
/// steps over that of the level's. The variances are those that the differences of the last seconds show.
fn kalman(link: &Link, horizon: usize, trend: f64) -> Series {
    let bin = (horizon / 4).max(1);
    let gain = (bin as f64 / 1_000.0).min(0.2);
    let (mut square, mut product) = (0.01, 0.0);
    let (mut level, mut slope) = (1.0, 0.0);
    let mut p = [[1.0, 0.0], [0.0, 0.0]];
    let (mut before, mut step) = (1.0, 0.0);
    let mut series = vec![0.0; BINS];
    for (end, forecast) in series.iter_mut().enumerate().skip(600) {
        if end % bin == 0 {
            let rate = link.within(end, bin) / bin as f64;
            square += gain * ((rate - before).powi(2) - square);
            product += gain * ((rate - before) * step - product);
            (step, before) = (rate - before, rate);
            let noise = (-product).max(1e-6);
            let moves = (square - 2.0 * noise).max(1e-3 * noise);
            level += slope;
            let [[a, b], [_, d]] = p;
            let (a, b, d) = (a + 2.0 * b + d + moves, b + d, d + trend * moves);
            let (of_level, of_slope) = (a / (a + noise), b / (a + noise));
            let off = rate - level;
            level += of_level * off;
            slope += of_slope * off;
            p = [[(1.0 - of_level) * a, (1.0 - of_level) * b], [(1.0 - of_level) * b, d - of_slope * b]];
        }
        let steps = horizon as f64 / bin as f64;
        *forecast = ((level + slope * (steps + 1.0) / 2.0) * horizon as f64).max(0.0);
    }
    series
}

/// The best of some forecasts: their mean, each by the inverse fourth power of its error over half a second.
fn weighted(link: &Link, horizon: usize, given: &[Series]) -> Series {
    let mut errors = vec![0.0; given.len()];
    let mut series = vec![0.0; BINS];
    for end in 600 + horizon..BINS {
        let actual = link.within(end, horizon);
        for (error, said) in errors.iter_mut().zip(given) {
            *error += 0.004 * ((actual - said[end - horizon]).abs() - *error);
        }
        let least = errors.iter().fold(f64::INFINITY, |least, error| least.min(*error));
        let weight = |error: &f64| ((least + 1e-4) / (error + 1e-4)).powi(4);
        let weights: f64 = errors.iter().map(weight).sum();
        let sum: f64 = errors.iter().zip(given).map(|(error, said)| weight(error) * said[end]).sum();
        series[end] = sum / weights;
    }
    series
}

/// What the learned forecast goes by: the nine windows, four seconds, and the forecast of the rule.
const LEARNED: usize = 11;

fn learned_by(link: &Link, rule: &Series, horizon: usize, end: usize) -> [f64; LEARNED] {
    let mut x = [0.0; LEARNED];
    for (index, x) in x.iter_mut().take(9).enumerate() {
        let window = 2 << index;
        *x = link.within(end, window) * horizon as f64 / window as f64;
    }
    x[9] = link.within(end, 2_000) * horizon as f64 / end.min(2_000) as f64;
    x[10] = rule[end];
    x
}

/// The coefficients with the least mean absolute error over some links: least squares, weighted anew twelve
/// times.
fn learn(links: &[(&Link, &Series)], horizon: usize) -> [f64; LEARNED] {
    let mut coefficients = [0.0; LEARNED];
    coefficients[LEARNED - 1] = 1.0;
    let mut rows = Vec::new();
    for (link, rule) in links {
        for end in (FIRST..BINS - horizon).step_by(7) {
            rows.push((learned_by(link, rule, horizon, end), link.served(end, horizon)));
        }
    }
    for _ in 0..12 {
        let mut matrix = [[0.0; LEARNED + 1]; LEARNED];
        for (x, served) in &rows {
            let said: f64 = x.iter().zip(coefficients).map(|(x, c)| x * c).sum();
            let weight = 1.0 / ((served - said).abs() + 0.01 * horizon as f64);
            for row in 0..LEARNED {
                for column in 0..LEARNED {
                    matrix[row][column] += weight * x[row] * x[column];
                }
                matrix[row][LEARNED] += weight * x[row] * served;
            }
        }
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] *= 1.0 + 1e-6;
        }
        coefficients = solve(matrix);
    }
    coefficients
}

/// Solves a positive definite system whose last column is its right side.
fn solve(mut matrix: [[f64; LEARNED + 1]; LEARNED]) -> [f64; LEARNED] {
    for pivot in 0..LEARNED {
        for row in pivot + 1..LEARNED {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let above = matrix[pivot];
            for (value, above) in matrix[row].iter_mut().zip(above).skip(pivot) {
                *value -= factor * above;
            }
        }
    }
    let mut found = [0.0; LEARNED];
    for row in (0..LEARNED).rev() {
        let known: f64 = (row + 1..LEARNED).map(|column| matrix[row][column] * found[column]).sum();
        found[row] = (matrix[row][LEARNED] - known) / matrix[row][row];
    }
    found
}

/// The mean absolute error as a share of the mean, and the 95th percentile of by how much the forecast is
/// above what came, over the bins that `judged` takes.
fn errors(link: &Link, horizon: usize, said: &Series, judged: impl Fn(usize) -> bool) -> (f64, f64) {
    let mut above: Vec<f64> = (FIRST..BINS - horizon)
        .filter(|end| judged(*end))
        .map(|end| (said[end] - link.served(end, horizon)) / horizon as f64)
        .collect();
    let mean = above.iter().map(|off| off.abs()).sum::<f64>() / above.len() as f64;
    above.sort_by(f64::total_cmp);
    (mean, above[above.len() * 95 / 100].max(1e-3))
}

fn geometric(values: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

const NAMES: [&str; 10] = [
    "the rule's windows",
    "one window, as long as the horizon",
    "autoregression",
    "Kalman, level",
    "Kalman, level and trend",
    "learned on the other half",
    "autoregression and the rule's, by their errors",
    "level and the rule's, by their errors",
    "learned and the rule's, by their errors",
    "autoregression, learned and the rule's, by their errors",
];

/// All forecasts of one link but the learned one, in the order of the names.
fn forecasts(link: &Link, horizon: usize) -> Vec<Series> {
    let rule = windows(link, horizon, |_| usize::MAX);
    let (ar, level) = (autoregression(link, horizon), kalman(link, horizon, 0.0));
    let trends: Vec<Series> = [0.001, 0.01, 0.1].map(|trend| kalman(link, horizon, trend)).into();
    let trend = weighted(link, horizon, &trends);
    let with_ar = weighted(link, horizon, &[rule.clone(), ar.clone()]);
    let with_level = weighted(link, horizon, &[rule.clone(), level.clone()]);
    vec![rule, last(link, horizon), ar, level, trend, Vec::new(), with_ar, with_level, Vec::new(), Vec::new()]
}

#[allow(clippy::print_stdout)]
fn show(title: &str, cells: &[Vec<String>]) {
    println!("| {title} |{}", HORIZONS_MS.map(|ms| format!(" {ms} ms |")).concat());
    println!("|---|{}", "---|".repeat(HORIZONS_MS.len()));
    for (index, name) in NAMES.iter().enumerate() {
        println!("| {name} |{}", cells.iter().map(|of| format!(" {} |", of[index])).collect::<String>());
    }
    println!();
}

#[allow(clippy::print_stdout)]
fn judge(title: &str, links: &[Link]) {
    let (mut means, mut aboves, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for horizon in HORIZONS_MS.map(|ms| ms / BIN_MS as usize) {
        let mut all: Vec<Vec<Series>> = links.iter().map(|link| forecasts(link, horizon)).collect();
        for half in 0..2 {
            let others: Vec<_> =
                (0..links.len()).filter(|n| n % 2 != half).map(|n| (&links[n], &all[n][0])).collect();
            let coefficients = learn(&others, horizon);
            for n in (half..links.len()).step_by(2) {
                let said = |end| {
                    let x = learned_by(&links[n], &all[n][0], horizon, end);
                    x.iter().zip(coefficients).map(|(x, c)| x * c).sum::<f64>().max(0.0)
                };
                all[n][5] = (0..BINS).map(|end| if end < FIRST { 0.0 } else { said(end) }).collect();
                let [rule, ar, learned] = [0, 2, 5].map(|index| all[n][index].clone());
                all[n][8] = weighted(&links[n], horizon, &[rule.clone(), learned.clone()]);
                all[n][9] = weighted(&links[n], horizon, &[rule, ar, learned]);
            }
        }
        let found: Vec<Vec<(f64, f64)>> = links
            .iter()
            .zip(&all)
            .map(|(link, all)| all.iter().map(|said| errors(link, horizon, said, |_| true)).collect())
            .collect();
        if horizon * BIN_MS as usize == 40 {
            own = links.iter().zip(&found).map(|(link, found)| (link.name, found[0].0, found[5].0)).collect();
        }
        let row = |of: &dyn Fn((f64, f64)) -> f64, index: usize| {
            let rule = geometric(found.iter().map(|link| of(link[0])));
            let ratio = geometric(found.iter().map(|link| of(link[index]))) / rule;
            let less = found.iter().filter(|link| of(link[index]) < of(link[0])).count();
            if index == 0 { format!("{:.1} %", 100.0 * rule) } else { format!("{ratio:.2} ({less})") }
        };
        means.push((0..NAMES.len()).map(|index| row(&|found| found.0, index)).collect());
        aboves.push((0..NAMES.len()).map(|index| row(&|found| found.1, index)).collect());
    }
    show(&format!("{title}: mean absolute error"), &means);
    show(&format!("{title}: 95th percentile above what came"), &aboves);
    println!("| {title}, 40 ms | the rule's windows | learned |\n|---|---|---|");
    for (name, rule, learned) in own {
        println!("| `{name}` | {:.1} % | {:.1} % |", 100.0 * rule, 100.0 * learned);
    }
    println!();
}

/// The windows that begin anew at boundaries, over all time and in the second after one.
#[allow(clippy::print_stdout)]
fn boundaries() -> Result<(), Box<dyn Error>> {
    let head = HORIZONS_MS.map(|ms| format!(" {ms} ms |")).concat();
    println!("| windows that begin anew every 15 s: all time, the second after |{head}");
    println!("|---|{}", "---|".repeat(HORIZONS_MS.len()));
    for (name, first_ms) in BOUNDARIES {
        let link = Link::new(name, &Embedded::find(name).ok_or("an embedded link")?.trace());
        let bin = BIN_MS as usize;
        let since = |end: usize| (end * bin + EVERY_MS - first_ms) % EVERY_MS / bin;
        print!("| `{name}` |");
        for horizon in HORIZONS_MS.map(|ms| ms / bin) {
            let rule = windows(&link, horizon, |_| usize::MAX);
            let anew = windows(&link, horizon, since);
            let ratio = |judged: &dyn Fn(usize) -> bool| {
                errors(&link, horizon, &anew, judged).0 / errors(&link, horizon, &rule, judged).0
            };
            print!(" {:.3}, {:.2} |", ratio(&|_| true), ratio(&|end| since(end) < 500));
        }
        println!();
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut links = Vec::new();
    for name in GENERATED {
        links.push(Link::new(name, &Embedded::find(name).ok_or("an embedded link")?.trace()));
    }
    judge("generated", &links);
    if let Some(folder) = std::env::args().nth(1) {
        let recorded: Result<Vec<Link>, _> = RECORDED
            .iter()
            .map(|name| Ok::<_, Box<dyn Error>>(Link::new(name, &read(&Path::new(&folder).join(name))?)))
            .collect();
        judge("recorded", &recorded?);
    }
    boundaries()
}
