//! From a recording to a recipe: the method of simulated moments.
//!
//! ```text
//! m(trace)  = the moments below
//! theta     = snr, three pairs (sigma, lasts), burst, outages.every, outages.exponent
//! Q(theta)  = sum over moments of ((mean over seeds of m(synthetic(theta, seed)) - m(recording)) / scale)^2
//! fit       = the theta of least Q that a Nelder-Mead search finds, the same seeds throughout;
//!             then, of the first seeds, the one whose own trace is nearest to the recording
//! ```
//!
//! The synthetic traces are as long as the recording, so that what a short sample does to a moment it does to
//! both.
//!
//! | moment | scale |
//! |---|---|
//! | ln of the coefficient of variation in bins of 1, 5, 20, 100, 1000 and 5000 ms | 0.05 |
//! | autocorrelation of 100 ms bins at 0.1, 0.2, 0.5, 1, 2 and 5 s | 0.05 |
//! | ln of 1 + the number of gaps of at least 50, 100, 200 and 500 ms | 0.3 |
//! | share of the time in gaps of at least 100 ms | 0.02 |
//! | 10 %, 50 % and 90 % quantiles of 1 s bins, over the mean | 0.1 |
//!
//! The recording gives its mean and its length; nothing else of it enters the recipe.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_links::trace::Trace;
use simplex::minimize;

use super::OPPORTUNITY;
use super::recipe::{Cellular, Fading, Outages, Recipe};

pub mod link;
pub mod measured;
mod simplex;

/// How much work a fit may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Synthetic traces per evaluation of Q.
    pub seeds: u64,
    /// Evaluations of Q.
    pub evaluations: usize,
    /// Seeds among which the last step chooses.
    pub candidates: u64,
}

impl Default for Effort {
    /// About two minutes for a recording of two.
    fn default() -> Self {
        Effort { seeds: 12, evaluations: 1_500, candidates: 200 }
    }
}

/// A fitted recipe and its distance from the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The recipe, its seed chosen.
    pub recipe: Recipe,
    /// Q over the number of moments: 1 means off by one scale in each.
    pub distance: f64,
    /// The same of the one trace that the recipe makes.
    pub distance_of_trace: f64,
}

/// Fits a recipe to `recording`. Deterministic, and the same on every machine.
pub fn fit(recording: &Trace, effort: Effort) -> Fit {
    let counts = counts_of(recording);
    let target = moments(&counts);
    let duration = whole_seconds(recording.period());
    let mean = {
        let bps = recording.mean_rate(OPPORTUNITY).bps();
        Rate::from_bps((bps + 500) / 1_000 * 1_000)
    };
    let longest_ms = longest_gap(&counts);
    let recipe_of = |theta: &[f64], seed: u64| Recipe {
        about: String::new(),
        duration,
        seed,
        cellular: Some(cellular(theta, mean, longest_ms)),
        measured: None,
        steps: Vec::new(),
    };
    let moments_of = |theta: &[f64], seed: u64| {
        let recipe = recipe_of(theta, seed);
        recipe.generate().map(|trace| moments(&counts_of(&trace)))
    };
    let cost = |theta: &[f64]| {
        let mut sum = [0.0; MOMENTS];
        for seed in 1..=effort.seeds {
            let Ok(found) = moments_of(theta, seed) else { return f64::INFINITY };
            sum.iter_mut().zip(found).for_each(|(sum, value)| *sum += value);
        }
        distance(&sum.map(|sum| sum / effort.seeds as f64), &target)
    };
    let start: Vec<f64> = PARAMETERS.iter().map(|parameter| parameter.start).collect();
    let steps: Vec<f64> = PARAMETERS.iter().map(|parameter| parameter.step).collect();
    let (theta, best) = minimize(cost, &start, &steps, effort.evaluations);
    let nearest = (1..=effort.candidates)
        .filter_map(|seed| moments_of(&theta, seed).ok().map(|found| (distance(&found, &target), seed)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let (distance_of_trace, seed) = nearest.unwrap_or((f64::INFINITY, 1));
    Fit { recipe: recipe_of(&theta, seed), distance: best, distance_of_trace }
}

struct Parameter {
    start: f64,
    step: f64,
    low: f64,
    high: f64,
}

/// snr in dB; then natural logarithms: sigma (dB) and lasts (s) of three processes, burst, outages.every (s);
/// the exponent.
const PARAMETERS: [Parameter; 10] = [
    Parameter { start: 6.0, step: 4.0, low: -8.0, high: 30.0 },
    Parameter { start: 1.6, step: 0.4, low: -2.0, high: 3.0 },
    Parameter { start: 2.0, step: 0.6, low: 1.0, high: 5.0 },
    Parameter { start: 1.0, step: 0.4, low: -2.0, high: 2.7 },
    Parameter { start: -0.5, step: 0.6, low: -1.8, high: 1.0 },
    Parameter { start: 1.0, step: 0.4, low: -2.0, high: 2.7 },
    Parameter { start: -3.2, step: 0.6, low: -5.3, high: -1.8 },
    Parameter { start: 0.4, step: 0.3, low: 0.0, high: 4.0 },
    Parameter { start: 1.5, step: 0.8, low: -3.0, high: 6.0 },
    Parameter { start: 1.5, step: 0.3, low: 0.5, high: 4.0 },
];

/// Shortest outage of a fit: below it, a gap is as likely a matter of grants.
const SHORTEST: Duration = Duration::from_millis(30);

fn cellular(theta: &[f64], mean: Rate, longest_ms: u64) -> Cellular {
    let at = |index: usize| theta[index].clamp(PARAMETERS[index].low, PARAMETERS[index].high);
    let fading = |index: usize| Fading {
        sigma: rounded(libm::exp(at(index)), 100.0),
        lasts: time(libm::exp(at(index + 1))),
    };
    Cellular {
        mean,
        snr: rounded(at(0), 100.0),
        snr_limit: Cellular::DEFAULT_SNR_LIMIT,
        fading: vec![fading(1), fading(3), fading(5)],
        burst: rounded(libm::exp(at(7)), 1000.0),
        slot: Cellular::DEFAULT_SLOT,
        outages: Some(Outages {
            every: time(libm::exp(at(8))),
            shortest: SHORTEST,
            longest: Duration::from_millis(longest_ms.max(200)),
            exponent: rounded(at(9), 100.0),
        }),
        blockage: None,
        handover: None,
    }
}

/// The nearest whole number of seconds, from one; shorter ones stay as they are.
fn whole_seconds(time: Duration) -> Duration {
    let seconds = libm::round(time.as_secs_f64()) as u64;
    if seconds == 0 { time } else { Duration::from_secs(seconds) }
}

/// A time of so many seconds, to three digits.
fn time(seconds: f64) -> Duration {
    let unit = libm::pow(10.0, libm::floor(libm::log10(seconds)) - 2.0);
    Duration::from_secs_f64(libm::round(seconds / unit) * unit)
}

fn rounded(value: f64, digits: f64) -> f64 {
    libm::round(value * digits) / digits
}

const MOMENTS: usize = 20;

const SCALES: [f64; MOMENTS] = [
    0.05, 0.05, 0.05, 0.05, 0.05, 0.05, // variation
    0.05, 0.05, 0.05, 0.05, 0.05, 0.05, // autocorrelation
    0.3, 0.3, 0.3, 0.3, 0.02, // gaps
    0.1, 0.1, 0.1, // quantiles
];

/// The mean square of the differences, each in its scale.
fn distance(found: &[f64; MOMENTS], target: &[f64; MOMENTS]) -> f64 {
    let squares = found.iter().zip(target).zip(&SCALES).map(|((a, b), scale)| {
        let off = (a - b) / scale;
        off * off
    });
    squares.sum::<f64>() / MOMENTS as f64
}

/// Opportunities in each millisecond; those at the instant 0 count in the first.
fn counts_of(trace: &Trace) -> Vec<u32> {
    let mut counts = vec![0; (trace.period().as_nanos() / 1_000_000) as usize];
    trace.millis().for_each(|ms| counts[ms.saturating_sub(1) as usize] += 1);
    counts
}

fn moments(counts: &[u32]) -> [f64; MOMENTS] {
    let binned = |width: usize| -> Vec<f64> {
        counts.chunks_exact(width).map(|bin| f64::from(bin.iter().sum::<u32>())).collect()
    };
    let mean = |bins: &[f64]| bins.iter().sum::<f64>() / bins.len().max(1) as f64;
    let variance = |bins: &[f64]| {
        let mean = mean(bins);
        bins.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / bins.len().max(1) as f64
    };
    let cv = |width: usize| {
        let bins = binned(width);
        libm::log((libm::sqrt(variance(&bins)) / mean(&bins).max(1e-9)).max(1e-6))
    };
    let tenths = binned(100);
    let (middle, spread) = (mean(&tenths), variance(&tenths) * tenths.len() as f64);
    let acf = |lag: usize| {
        let pairs = tenths.iter().zip(tenths.iter().skip(lag));
        pairs.map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>() / spread.max(1e-9)
    };
    let mut gaps = [0.0; 4];
    let mut silent = 0;
    for_each_gap(counts, |gap| {
        gaps.iter_mut()
            .zip([50, 100, 200, 500])
            .filter(|(_, least)| gap >= *least)
            .for_each(|(n, _)| *n += 1.0);
        silent += if gap >= 100 { gap } else { 0 };
    });
    let mut seconds = binned(1_000);
    seconds.sort_unstable_by(f64::total_cmp);
    let average = mean(&seconds).max(1e-9);
    let quantile = |share: f64| match seconds.len() {
        0 => 0.0,
        n => seconds[((n as f64 * share) as usize).min(n - 1)] / average,
    };
    let [g50, g100, g200, g500] = gaps.map(|count| libm::log(1.0 + count));
    [
        cv(1),
        cv(5),
        cv(20),
        cv(100),
        cv(1_000),
        cv(5_000),
        acf(1),
        acf(2),
        acf(5),
        acf(10),
        acf(20),
        acf(50),
        g50,
        g100,
        g200,
        g500,
        silent as f64 / counts.len() as f64,
        quantile(0.1),
        quantile(0.5),
        quantile(0.9),
    ]
}

fn for_each_gap(counts: &[u32], mut visit: impl FnMut(u64)) {
    let mut previous = 0;
    for (ms, _) in (1_u64..).zip(counts).filter(|(_, count)| **count > 0) {
        visit(ms - previous);
        previous = ms;
    }
}

fn longest_gap(counts: &[u32]) -> u64 {
    let mut longest = 0;
    for_each_gap(counts, |gap| longest = longest.max(gap));
    longest
}

#[cfg(test)]
mod tests;
