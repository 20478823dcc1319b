//! What is found by making traces of the recipe, and holding them against the recording.
//!
//! ```text
//! noisy     : the one of 1, 0.9, ... 0.1 whose steps from bin to bin, away from outages, have the recorded
//!             median over their root mean square
//! fades,    : those of 1, 2, 4, ... 64, of 0, 0.5, ... 3 and of 0, 0.5, ... 5 whose rates in the bins before
//! fall,       outages, in those after them and within four bins of those, each over all rates, are nearest
//! rebound     to the recorded
//! seed      : of the first 200 the one whose own variation and autocorrelation are nearest
//! ```

use brakelight_core::time::Duration;

use super::super::super::measured::{Measured, MeasuredOutages};
use super::{Bins, SILENT, sorted};

/// Seeds among which one is chosen.
const SEEDS: u64 = 200;

/// In what share of the bins anything is new, so that the typical step from one bin to the next is the
/// recorded one. Those that are none in `away` are left out.
pub(super) fn noisy(measured: &Measured, bins: &Bins, away: &[Option<f64>], duration: Duration) -> f64 {
    let wanted = typical_step(&bins.rates, &away.iter().map(Option::is_none).collect::<Vec<_>>());
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
pub(super) fn outages(measured: &Measured, bins: &Bins, duration: Duration) -> Option<MeasuredOutages> {
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
pub(super) fn nearest_seed(measured: &Measured, rates: &[f64], duration: Duration) -> u64 {
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

/// Whether there is a bin at this place, and it is silent.
fn is_silent(silent: &[bool], bin: usize) -> bool {
    silent.get(bin).copied().unwrap_or(false)
}

/// Which bins are silent or beside a silent one.
pub(super) fn beside(silent: &[bool]) -> Vec<bool> {
    let is = |i: usize| is_silent(silent, i);
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
    let is = |i: usize| is_silent(silent, i);
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
