//! From a recording to a recipe with its distribution and memory.
//!
//! ```text
//! path gaps : gaps of at least 40 ms, where the link's kind has paths
//! outages   : runs of bins below 2 % of the median rate
//! Q         : knots at SHARES, least squares over the sorted rates of the other bins: it keeps their mean
//! memory    : rho, path and echo: see [`memory`]
//! noisy, outages, seed : see [`trials`]
//! ```
//!
//! Noise of a bin is a part of z, so it is in Q once.

mod memory;
mod trials;

use std::path::Path;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_links::trace::Trace;
use memory::remembered;
use trials::{beside, nearest_seed, noisy, outages};

use super::super::OPPORTUNITY;
use super::super::convert::delays::delay_file;
use super::super::convert::{ConvertOptions, convert_file};
use super::super::measured::{Measured, MeasuredDelay, MeasuredOutages, Paths, SHARES};
use super::super::recipe::Recipe;
use super::super::recording::{Recording, RecordingError};
use super::whole_seconds;

/// What is known about a link before it is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// How long a rate holds: the recording's bin, or a time that covers several grants.
    pub bin: Duration,
    /// How often the path changes, if it does.
    pub paths: Option<Duration>,
    /// Whether the recording has the time of each burst.
    pub bursts: bool,
    /// Share of the packets under way that are lost where the path changes, 0 to 1.
    pub lost: f64,
}

/// The models of today's links: a recipe's name, the sample that it was fitted to, the delay beside it, if
/// there is one, and what is known about the link.
pub const LINKS: &[(&str, &str, Option<&str>, Kind)] = &[
    ("5g-sa", "iperf3-text/5g-sa-1.down.txt", None, Kind::bins(100)),
    ("5g-nsa", "iperf3-text/5g-nsa-1.down.txt", None, Kind::bins(100)),
    ("mmwave", "columns/5g_103_driving.txt", None, Kind::bins(1_000)),
    ("starlink", "leoreplayer/starlink.bw", Some("leoreplayer/starlink.delay"), Kind::STARLINK),
    ("wifi", "columns/office-wifi_0.txt", None, Kind::bins(200)),
];

impl Kind {
    /// Fifteen seconds a path (starlink24), the time of each burst, and up to half of the packets lost where
    /// the path changes (kassem22, its abstract).
    pub const STARLINK: Kind = Kind {
        bin: Duration::from_millis(50),
        paths: Some(Duration::from_secs(15)),
        bursts: true,
        lost: 0.5,
    };

    /// A recording in bins of so many milliseconds.
    const fn bins(ms: u64) -> Kind {
        Kind { bin: Duration::from_millis(ms), paths: None, bursts: false, lost: 0.0 }
    }
}

/// Reads a sample and the delay beside it.
pub fn read_link(
    folder: &Path,
    sample: &str,
    delay: Option<&str>,
) -> Result<Recording, Box<dyn std::error::Error>> {
    let mut converted = convert_file(&folder.join(sample), None, ConvertOptions::default())?;
    if let Some(delay) = delay {
        converted.add_delays(&delay_file(&folder.join(delay))?)?;
    }
    Ok(converted.recording)
}

/// Below this share of the median rate a bin is silent.
const SILENT: f64 = 0.02;
/// No shorter gap is one of a changing path.
const PATH_GAP_MS: u64 = 40;
/// Most steps of a list.
const STEPS: usize = 9;

/// Fits a recipe to the capacity `down` of a recording, or of its only direction, and to the delay beside it.
/// Deterministic, and the same on every machine.
pub fn fit_measured(recording: &Recording, kind: Kind) -> Result<Recipe, RecordingError> {
    let trace = recording.trace(None)?;
    let duration = whole_seconds(trace.period());
    let bins = Bins::of(&trace, kind);
    let paths = bins.paths(kind);
    let quantiles = knots(&bins.valid.iter().flatten().copied().collect::<Vec<_>>());
    let away = bins.away();
    let (share, memory, echo) = remembered(&away, kind.bin, paths.as_ref(), &quantiles);
    let mut measured = Measured {
        bin: kind.bin,
        rates: quantiles.iter().map(|bps| rate(*bps)).collect(),
        memory,
        echo,
        noisy: 1.0,
        outages: bins.outages(kind.bin, duration).filter(|_| paths.is_none()),
        paths: paths.map(|paths| Paths { share, ..paths }),
        grants: if kind.bursts { grants(&bins.counts) } else { Vec::new() },
        delay: None,
    };
    if !recording.down.delays.is_empty() {
        measured.delay = Some(delay(recording, &bins.path_gaps, measured.paths.as_ref()));
    }
    measured.noisy = noisy(&measured, &bins, &away, duration);
    if measured.outages.is_some() {
        measured.outages = outages(&measured, &bins, duration);
    }
    let seed = nearest_seed(&measured, &bins.rates, duration);
    let (about, steps) = (String::new(), Vec::new());
    Ok(Recipe { about, duration, seed, cellular: None, measured: Some(measured), steps })
}

/// What a recording carried in each bin.
struct Bins {
    /// Opportunities in each millisecond.
    counts: Vec<u32>,
    /// Bit/s in each bin.
    rates: Vec<f64>,
    /// Which bins are below [`SILENT`].
    silent: Vec<bool>,
    /// Beginning and length of every gap of a changing path, milliseconds.
    path_gaps: Vec<(u64, u64)>,
    /// The rates of bins that are neither silent nor beside a changing path.
    valid: Vec<Option<f64>>,
}

impl Bins {
    fn of(trace: &Trace, kind: Kind) -> Self {
        let length_ms = trace.period().as_nanos() / 1_000_000;
        let mut counts = vec![0_u32; length_ms as usize + 1];
        trace.micros().for_each(|(us, n)| counts[(us.saturating_sub(1) / 1_000) as usize] += n);
        counts.truncate(length_ms as usize);
        let path_gaps = kind.paths.map_or_else(Vec::new, |_| gaps(&counts));
        let bin_ms = (kind.bin.as_nanos() / 1_000_000) as usize;
        let rates: Vec<f64> = counts
            .chunks_exact(bin_ms)
            .map(|bin| f64::from(bin.iter().sum::<u32>()) * OPPORTUNITY.bits() as f64 / bin_ms as f64 * 1e3)
            .collect();
        let median = sorted(&rates)[rates.len() / 2];
        let silent: Vec<bool> = rates.iter().map(|rate| *rate <= SILENT * median).collect();
        let valid = (0..)
            .zip(rates.iter().zip(&silent))
            .map(|(index, (rate, silent))| {
                (!silent && !changing(&path_gaps, index, bin_ms as u64, 0)).then_some(*rate)
            })
            .collect();
        Bins { counts, rates, silent, path_gaps, valid }
    }

    /// The rates of valid bins that are not beside an outage; where paths change there are none.
    fn away(&self) -> Vec<Option<f64>> {
        if !self.path_gaps.is_empty() {
            return self.valid.clone();
        }
        let out = beside(&self.silent);
        self.valid.iter().zip(out).map(|(rate, out)| rate.filter(|_| !out)).collect()
    }

    /// When paths change, their share of the variance left open; none where the link's kind has no paths or
    /// no gap was found.
    fn paths(&self, kind: Kind) -> Option<Paths> {
        let (every, (start, _)) = (kind.paths?, *self.path_gaps.first()?);
        Some(Paths {
            every,
            first: Duration::from_millis(start % (every.as_nanos() / 1_000_000)),
            gaps: steps(self.path_gaps.iter().map(|(_, lasts)| *lasts as f64 * 1e-3)),
            share: 0.0,
            lost: kind.lost,
        })
    }

    /// How often the link is silent and for how long, as if it did not know the rate; none where it never is.
    fn outages(&self, bin: Duration, duration: Duration) -> Option<MeasuredOutages> {
        let runs: Vec<f64> =
            runs(&self.silent).into_iter().map(|run| run as f64 * bin.as_secs_f64()).collect();
        (!runs.is_empty()).then(|| MeasuredOutages {
            every: near(duration.as_secs_f64() / runs.len() as f64),
            lasts: steps(runs.iter().copied()),
            fades: 1,
            fall: 0.0,
            rebound: 0.0,
        })
    }
}

/// Whether the path changes in a bin, or did up to `after_ms` before it.
fn changing(path_gaps: &[(u64, u64)], bin: usize, bin_ms: u64, after_ms: u64) -> bool {
    let (from, until) = (bin as u64 * bin_ms, (bin as u64 + 1) * bin_ms);
    path_gaps.iter().any(|&(start, lasts)| start < until && start + lasts + after_ms > from)
}

/// Beginning and length of every gap that is long enough to be a path's, milliseconds.
fn gaps(counts: &[u32]) -> Vec<(u64, u64)> {
    let mut gaps = Vec::new();
    let mut last = 0;
    for (ms, _) in (1_u64..).zip(counts).filter(|(_, count)| **count > 0) {
        if ms - last > PATH_GAP_MS {
            gaps.push((last, ms - last - 1));
        }
        last = ms;
    }
    gaps
}

/// Intervals between milliseconds with opportunities, but for gaps of paths.
fn grants(counts: &[u32]) -> Vec<Duration> {
    let busy: Vec<u64> = (0_u64..).zip(counts).filter(|(_, n)| **n > 0).map(|(ms, _)| ms).collect();
    let intervals = busy.windows(2).map(|pair| pair[1] - pair[0]).filter(|ms| *ms <= PATH_GAP_MS);
    let seconds = sorted(&intervals.map(|ms| ms as f64 * 1e-3).collect::<Vec<_>>());
    // Up to the 99th of a hundred: one long wait of thousands is no twentieth of them.
    let step = |k: usize| seconds[(seconds.len() - 1) * k * 99 / 2_000];
    (0..=20).map(|k| near(step(k))).collect()
}

/// The delay beside the link, apart from the times in which the path changes.
fn delay(recording: &Recording, path_gaps: &[(u64, u64)], paths: Option<&Paths>) -> MeasuredDelay {
    let delays = &recording.down.delays;
    let bin = delays.windows(2).map(|pair| pair[1].0 - pair[0].0).min().unwrap_or(recording.length);
    let bin_ms = (bin.as_nanos() / 1_000_000).max(1);
    let values: Vec<f64> = (0..recording.length.as_nanos() / (bin_ms * 1_000_000))
        .map(|index| {
            let at = Duration::from_millis(index * bin_ms);
            let place = delays.partition_point(|(from, _)| *from <= at);
            delays[place.saturating_sub(1)].1.as_secs_f64()
        })
        .collect();
    // Until three bins after a gap the delay falls to the new path's.
    let valid: Vec<Option<f64>> = (0..)
        .zip(&values)
        .map(|(index, value)| (!changing(path_gaps, index, bin_ms, 3 * bin_ms)).then_some(*value))
        .collect();
    let bin = Duration::from_millis(bin_ms);
    let known: Vec<f64> = valid.iter().flatten().copied().collect();
    let knots = knots(&known);
    let (share, memory, echo) = remembered(&valid, bin, paths, &knots);
    // Its packets arrive after the gap: the median of what stands out until three bins later.
    let usual = knots[SHARES.len() - 1];
    let within = path_gaps.iter().filter_map(|(start, lasts)| {
        let until = ((start + lasts) / bin_ms + 4) as usize;
        let bins = (start / bin_ms) as usize..until.min(values.len());
        let out: Vec<f64> = values[bins].iter().copied().filter(|value| *value > usual).collect();
        sorted(&out).get(out.len() / 2).copied()
    });
    let changing = steps(within);
    let values = knots.iter().map(|seconds| near(seconds.max(0.0))).collect();
    MeasuredDelay { bin, values, memory, echo, share, changing }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Lengths of the runs of silent bins.
fn runs(silent: &[bool]) -> Vec<usize> {
    silent.split(|silent| !silent).map(<[bool]>::len).filter(|length| *length > 0).collect()
}

/// Quantiles at even steps, the least and the most among them; in seconds.
fn steps(values: impl Iterator<Item = f64>) -> Vec<Duration> {
    let values = sorted(&values.collect::<Vec<_>>());
    let (last, number) = (values.len().saturating_sub(1), values.len().min(STEPS));
    let at = |k: usize| {
        let place = (last * k) as f64 / number.saturating_sub(1).max(1) as f64;
        let (low, high) = (values[place as usize], values[(place as usize + 1).min(last)]);
        near(low + (high - low) * (place - libm::floor(place)))
    };
    (0..number).map(at).collect()
}

/// The values at [`SHARES`] between which a line is nearest to the sorted values, in least squares.
fn knots(values: &[f64]) -> [f64; SHARES.len()] {
    const N: usize = SHARES.len();
    let values = sorted(values);
    let (mut diagonal, mut beside, mut right) = ([1e-9; N], [0.0; N], [0.0; N]);
    for (rank, value) in values.iter().enumerate() {
        let share = (rank as f64 + 0.5) / values.len() as f64;
        let upper = SHARES.partition_point(|&known| known < share).clamp(1, N - 1);
        let b = (share - SHARES[upper - 1]) / (SHARES[upper] - SHARES[upper - 1]);
        let a = 1.0 - b;
        diagonal[upper - 1] += a * a;
        diagonal[upper] += b * b;
        beside[upper - 1] += a * b;
        right[upper - 1] += a * value;
        right[upper] += b * value;
    }
    // The normal equations are tridiagonal.
    for k in 1..N {
        let factor = beside[k - 1] / diagonal[k - 1];
        diagonal[k] -= factor * beside[k - 1];
        right[k] -= factor * right[k - 1];
    }
    let mut knots = [0.0; N];
    for k in (0..N).rev() {
        let above = if k + 1 < N { beside[k] * knots[k + 1] } else { 0.0 };
        knots[k] = (right[k] - above) / diagonal[k];
    }
    let mut least = values.first().copied().unwrap_or_default();
    for knot in &mut knots {
        *knot = knot.max(least);
        least = *knot;
    }
    knots
}

/// A time of so many seconds, to three digits but no finer than a millisecond.
fn near(seconds: f64) -> Duration {
    let millis = seconds * 1e3;
    let unit = if millis < 100.0 { 1.0 } else { libm::pow(10.0, libm::floor(libm::log10(millis)) - 2.0) };
    Duration::from_millis((libm::round(millis / unit) * unit) as u64)
}

/// A rate to three digits.
fn rate(bps: f64) -> Rate {
    if bps < 1.0 {
        return Rate::ZERO;
    }
    let unit = libm::pow(10.0, libm::floor(libm::log10(bps)) - 2.0);
    Rate::from_bps((libm::round(bps / unit) * unit) as u64)
}

#[cfg(test)]
mod tests;
