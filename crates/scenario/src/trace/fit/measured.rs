//! From a recording to a recipe with its distribution and memory.
//!
//! ```text
//! path gaps : gaps of at least 40 ms, where the link's kind has paths
//! outages   : runs of bins below 2 % of the median rate
//! Q         : knots at SHARES, least squares over the sorted rates of the other bins: it keeps their mean
//! rho(lag)  : the correlation of z that Q maps to the recorded one of rates, away from outages: cario97
//! path      : the same of the variance of the rates' means from path to path
//! memory    : least squares over rho at lags up to a quarter of the length, or half of a path; every three
//!             correlation times of a grid, shares not negative and at most 1 in sum
//! echo      : the one of 0, -0.1, ... -0.6 that leaves the least squares at the shortest lags
//! noisy     : the one of 1, 0.9, ... 0.1 whose steps from bin to bin, away from outages, have the recorded
//!             median over their root mean square
//! fades,    : those of 1, 2, 4, ... 64, of 0, 0.5, ... 3 and of 0, 0.5, ... 5 whose rates in the bins before
//! fall,       outages, in those after them and within four bins of those, each over all rates, are nearest
//! rebound     to the recorded
//! seed      : of the first 200 the one whose own variation and autocorrelation are nearest
//! ```
//!
//! Noise of a bin is a part of z, so it is in Q once. Correlation is matched in rates and not in their normal
//! scores: on a plateau scores are all noise, and what counts is how long a dip lasts.

use std::path::Path;

use brakelight_core::path::trace::Trace;
use brakelight_core::time::Duration;
use brakelight_core::units::Rate;

use super::super::OPPORTUNITY;
use super::super::convert::delays::delay_file;
use super::super::convert::{ConvertOptions, convert_file};
use super::super::measured::{Measured, MeasuredDelay, MeasuredOutages, Memory, Paths, SHARES, at_share};
use super::super::recipe::Recipe;
use super::super::recording::{Recording, RecordingError};
use super::{rounded, whole_seconds};

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
/// Correlation times that are tried, in bins.
const TIMES: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// Seeds among which one is chosen.
const SEEDS: u64 = 200;
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
    measured.noisy = noisy(&measured, &bins, duration);
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

/// In what share of the bins anything is new, so that the typical step from one bin to the next is the
/// recorded one.
fn noisy(measured: &Measured, bins: &Bins, duration: Duration) -> f64 {
    let wanted = typical_step(&bins.rates, &bins.away().iter().map(Option::is_none).collect::<Vec<_>>());
    let off = |tenths: u32| {
        let tried = Measured { noisy: f64::from(tenths) / 10.0, ..measured.clone() };
        libm::fabs(
            on_average(&tried, duration, |rates, silent| [typical_step(rates, &beside(silent))])[0] - wanted,
        )
    };
    let best = (1..=10).rev().min_by(|a, b| off(*a).total_cmp(&off(*b)));
    best.map_or(1.0, |tenths| f64::from(tenths) / 10.0)
}

/// The outages with the number of places among which each takes the worst and with what comes after them, so
/// that rates beside outages are the recorded ones.
fn outages(measured: &Measured, bins: &Bins, duration: Duration) -> Option<MeasuredOutages> {
    let outages = measured.outages.as_ref()?;
    let wanted = around(&bins.rates, &bins.silent);
    let off = |tried: &MeasuredOutages| -> f64 {
        let tried = Measured { outages: Some(tried.clone()), ..measured.clone() };
        let found = on_average(&tried, duration, around);
        found.iter().zip(&wanted).map(|(found, wanted)| libm::fabs(libm::log(found / wanted))).sum()
    };
    let halves = |most: u32| (0..=2 * most).map(|half| f64::from(half) / 2.0);
    let tries = [1, 2, 4, 8, 16, 32, 64].into_iter().flat_map(|fades| {
        halves(3).flat_map(move |fall| halves(5).map(move |rebound| (fades, fall, rebound)))
    });
    let tries =
        tries.map(|(fades, fall, rebound)| MeasuredOutages { fades, fall, rebound, ..outages.clone() });
    tries.map(|tried| (off(&tried), tried)).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, tried)| tried)
}

/// What `measure` says of the rates and the silent bins of traces of the recipe, the mean of twenty.
fn on_average<const N: usize>(
    measured: &Measured,
    duration: Duration,
    measure: impl Fn(&[f64], &[bool]) -> [f64; N],
) -> [f64; N] {
    const TRACES: u64 = 20;
    let mut mean = [0.0; N];
    for seed in 1..=TRACES {
        let rates = generated(measured, seed, duration);
        let silent: Vec<bool> = rates.iter().map(|rate| *rate <= 0.0).collect();
        mean.iter_mut().zip(measure(&rates, &silent)).for_each(|(sum, value)| *sum += value / TRACES as f64);
    }
    mean
}

/// Of the first [`SEEDS`] the one whose own variation and autocorrelation are nearest to those of `rates`.
fn nearest_seed(measured: &Measured, rates: &[f64], duration: Duration) -> u64 {
    let target = moments(rates);
    let distance = |seed: u64| -> f64 {
        let found = moments(&generated(measured, seed, duration));
        found.iter().zip(&target).map(|(a, b)| (a - b) * (a - b)).sum()
    };
    let nearest = (1..=SEEDS).map(|seed| (distance(seed), seed)).min_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map_or(1, |(_, seed)| seed)
}

/// The rate in each bin of a trace of the recipe, bit/s.
fn generated(measured: &Measured, seed: u64, duration: Duration) -> Vec<f64> {
    measured.rates(seed, duration).iter().map(|rate| rate.as_bps_f64()).collect()
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

/// Which bins are silent or beside a silent one.
fn beside(silent: &[bool]) -> Vec<bool> {
    let is = |i: usize| silent.get(i).copied().unwrap_or(false);
    (0..silent.len()).map(|i| is(i) || is(i + 1) || i > 0 && is(i - 1)).collect()
}

/// Mean rates before silent bins, after them, and two to five bins from them, over that of all bins that are
/// not silent; none below [`SILENT`].
fn around(rates: &[f64], silent: &[bool]) -> [f64; 3] {
    let out = beside(silent);
    let mean = |chosen: &dyn Fn(usize) -> bool| {
        let chosen: Vec<f64> =
            (0..rates.len()).filter(|&i| !silent[i] && chosen(i)).map(|i| rates[i]).collect();
        chosen.iter().sum::<f64>() / chosen.len().max(1) as f64
    };
    let is = |i: usize| silent.get(i).copied().unwrap_or(false);
    let near = |i: usize| !out[i] && (i.saturating_sub(5)..=i + 5).any(is);
    let all = mean(&|_| true).max(f64::MIN_POSITIVE);
    [mean(&|i| is(i + 1)), mean(&|i| i > 0 && is(i - 1)), mean(&near)].map(|rate| (rate / all).max(SILENT))
}

/// The median step from one bin to the next over the root mean square, of pairs of which neither is left out.
fn typical_step(rates: &[f64], out: &[bool]) -> f64 {
    let pairs = rates.windows(2).zip(out.windows(2)).filter(|(_, out)| !out[0] && !out[1]);
    let steps = sorted(&pairs.map(|(pair, _)| libm::fabs(pair[1] - pair[0])).collect::<Vec<_>>());
    let square = steps.iter().map(|step| step * step).sum::<f64>() / steps.len().max(1) as f64;
    steps.get(steps.len() / 2).map_or(0.0, |median| median / libm::sqrt(square).max(f64::MIN_POSITIVE))
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

/// The share of the path, the memory of what is left, and the echo of what is new in each bin.
fn remembered(
    values: &[Option<f64>],
    bin: Duration,
    paths: Option<&Paths>,
    knots: &[f64],
) -> (f64, Vec<Memory>, f64) {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let variance =
        known.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / known.len() as f64;
    let powers = Powers::of(knots);
    let number = |index: usize| paths.map_or(0, |paths| paths.number(bin * index as u64) as usize);
    let mut sums = vec![(0.0, 0.0); number(values.len()) + 1];
    for (index, value) in values.iter().enumerate() {
        if let Some(value) = value {
            sums[number(index)].0 += value - mean;
            sums[number(index)].1 += 1.0;
        }
    }
    let between: f64 = sums.iter().map(|(sum, n)| sum * sum / f64::max(*n, 1.0)).sum();
    let share = match paths {
        Some(_) => rounded(powers.behind(between / known.len() as f64 / variance), 100.0),
        None => 0.0,
    };
    // Of pairs on the same path, which is all there are where it does not change.
    let correlation = |lag: usize| {
        let (mut sum, mut n) = (0.0, 0.0);
        for (index, (a, b)) in values.iter().zip(&values[lag..]).enumerate() {
            if let (Some(a), Some(b)) = (a, b)
                && number(index) == number(index + lag)
            {
                sum += (a - mean) * (b - mean);
                n += 1.0;
            }
        }
        powers.behind(sum / f64::max(n, 1.0) / variance) - share
    };
    let most = match paths {
        Some(paths) => (paths.every.as_nanos() / bin.as_nanos() / 2) as usize,
        None => values.len() / 4,
    };
    let mut lags: Vec<usize> = Vec::new();
    let mut lag = 1.0;
    while (lag as usize) < most {
        lags.push(lag as usize);
        lag = f64::max(lag + 1.0, lag * 1.3);
    }
    let acf: Vec<f64> = lags.iter().map(|lag| correlation(*lag)).collect();
    let times: Vec<f64> = TIMES.into_iter().filter(|time| *time <= most as f64).collect();
    let mut echo = 0.0;
    let (mut shares, mut found) = ([0.0; 3], [1.0; 3]);
    // Which noise is left depends on the memory, and the memory on the noise; they settle at once.
    for _ in 0..3 {
        let left = 1.0 - share - shares.iter().sum::<f64>();
        let without: Vec<f64> =
            lags.iter().zip(&acf).map(|(lag, rho)| rho - left * echoed(echo, *lag)).collect();
        (found, shares) = nearest(&times, &lags, &without, 1.0 - share);
        let left = 1.0 - share - shares.iter().sum::<f64>();
        let off = |echo: f64| -> f64 {
            let squares = lags.iter().zip(&acf).take(4).map(|(lag, rho)| {
                let slow = |(time, part): (&f64, &f64)| part * libm::exp(-(*lag as f64) / time);
                rho - found.iter().zip(&shares).map(slow).sum::<f64>() - left * echoed(echo, *lag)
            });
            squares.map(|off| off * off).sum()
        };
        let tenths = (0..=6).map(|tenth| 0.0 - f64::from(tenth) / 10.0);
        echo = tenths.min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(0.0);
    }
    let part = |(time, part): (&f64, &f64)| Memory {
        share: libm::floor(part * 100.0) / 100.0,
        lasts: near(time * bin.as_secs_f64()),
    };
    let memory = found.iter().zip(&shares).map(part).filter(|part| part.share > 0.0).collect();
    (share, memory, echo)
}

/// The correlation of noise with itself `lag` bins later.
fn echoed(echo: f64, lag: usize) -> f64 {
    if lag < 12 { libm::pow(echo, lag as f64) } else { 0.0 }
}

/// The three correlation times that come nearest, and their shares.
fn nearest(times: &[f64], lags: &[usize], acf: &[f64], most: f64) -> ([f64; 3], [f64; 3]) {
    let mut best = (f64::INFINITY, [1.0; 3], [0.0; 3]);
    for (i, a) in times.iter().enumerate() {
        for (j, b) in times.iter().enumerate().skip(i + 1) {
            for c in &times[j + 1..] {
                let times = [*a, *b, *c];
                let (off, shares) = least_squares(lags, acf, times, most);
                if off < best.0 {
                    best = (off, times, shares);
                }
            }
        }
    }
    (best.1, best.2)
}

/// How the correlation of two normal values becomes that of what they are mapped to:
/// sum_k c_k^2 rho^k / sum_k c_k^2, with c_k the coefficient of Q(Phi(z)) on the k-th Hermite polynomial.
// cario97 section 3
struct Powers([f64; 16]);

impl Powers {
    fn of(knots: &[f64]) -> Self {
        let mut coefficients = [0.0; 16];
        for step in -500..=500 {
            let z = f64::from(step) * 0.01;
            let share = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
            let weight = libm::exp(-z * z / 2.0) * at_share(share, knots);
            let (mut last, mut this) = (1.0, z);
            for (k, coefficient) in (1..).zip(&mut coefficients) {
                *coefficient += weight * this;
                let k = f64::from(k);
                (last, this) = (this, (z * this - libm::sqrt(k) * last) / libm::sqrt(k + 1.0));
            }
        }
        let sum: f64 = coefficients.iter().map(|c| c * c).sum();
        Powers(coefficients.map(|c| c * c / sum.max(f64::MIN_POSITIVE)))
    }

    /// The correlation of the normal values behind one of what they are mapped to; negative ones stay as they
    /// are.
    fn behind(&self, correlation: f64) -> f64 {
        if correlation <= 0.0 {
            return correlation;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            let mapped = self.0.iter().rev().fold(0.0, |sum, c| (sum + c) * middle);
            if mapped < correlation { low = middle } else { high = middle }
        }
        low
    }
}

/// Shares of three correlation times, at most `most` in sum, by coordinates in turn, and the sum of squares
/// they leave.
fn least_squares(lags: &[usize], acf: &[f64], times: [f64; 3], most: f64) -> (f64, [f64; 3]) {
    let curve = |time: f64| lags.iter().map(move |lag| libm::exp(-(*lag as f64) / time));
    let curves = times.map(|time| curve(time).collect::<Vec<f64>>());
    let mut shares = [0.0_f64; 3];
    let rest = |shares: &[f64; 3], k: usize| acf[k] - (0..3).map(|i| shares[i] * curves[i][k]).sum::<f64>();
    for _ in 0..200 {
        for i in 0..3 {
            let (mut up, mut down) = (0.0, 1e-12);
            for (k, value) in curves[i].iter().enumerate() {
                up += value * (rest(&shares, k) + shares[i] * value);
                down += value * value;
            }
            let others: f64 = shares.iter().sum::<f64>() - shares[i];
            shares[i] = (up / down).clamp(0.0, (most - others).max(0.0));
        }
    }
    ((0..lags.len()).map(|k| rest(&shares, k) * rest(&shares, k)).sum(), shares)
}

/// Coefficients of variation of 1, 4, 16, 64 bins and autocorrelations at seven lags.
fn moments(rates: &[f64]) -> Vec<f64> {
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let variance = |width: usize| {
        let sums = rates.chunks_exact(width).map(|bin| bin.iter().sum::<f64>() / width as f64);
        sums.map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (rates.len() / width).max(1) as f64
    };
    let whole = variance(1);
    let product = |lag: usize| {
        let pairs = rates.iter().zip(rates.iter().skip(lag));
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / rates.len() as f64 / whole
    };
    let variations = [1, 4, 16, 64].map(|width| libm::sqrt(variance(width)) / mean);
    variations.into_iter().chain([1, 2, 4, 8, 16, 32, 64].map(product)).collect()
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
