//! How sure the numbers of several runs are: confidence intervals by the bootstrap (efron79), and a test
//! for runs that fall into two groups. Everything is deterministic: resampling draws from a named stream.
//!
//! - A median's interval is the middle 95 % of the medians of resampled runs, widened by t / z *
//!   sqrt(n / (n - 1)), without which it is too narrow where runs are few (hesterberg15): of eight normal
//!   values it holds the truth in 95 % of all cases, and in 91 % without. With fewer than [`FEWEST`] runs not
//!   even the lowest and the highest of them hold the median with 95 % confidence, so there is none.
//! - The interval of a mean of logarithms, from which ratios come, is made in the same way.
//! - Runs fall into two groups where the widest gap between neighbours, with at least a fifth of the runs on
//!   either side, is [`GAP`] times as wide as the wider of the groups (as wide, from [`MANY`] runs on), and
//!   the middles of the groups differ by a quarter. Of eight runs drawn from one normal distribution this
//!   takes 2 % for two groups, of an exponential one 8 %, of ten runs 1 % and 5 %; of eight from two
//!   normal distributions with the same width, eight widths apart, it finds 81 %.

use brakelight_core::random::Random;
use brakelight_scenario::median::median;
use brakelight_scenario::outcome::{Interval95, Mode, Ratio, Run};

use crate::summary;

/// The fewest runs of which a median has an interval.
pub const FEWEST: usize = 6;
/// The fewest runs that can fall into two groups.
pub const FEWEST_FOR_MODES: usize = 8;
/// How much wider a gap between two groups must be than the wider of the groups.
pub const GAP: f64 = 1.5;
/// From so many runs on, a gap as wide as the wider group is enough.
pub const MANY: usize = 16;
/// How far the middles of two groups must lie apart, the higher over the lower.
const APART: f64 = 1.25;

/// Resamplings of a few runs, and the most values that are drawn for one interval.
const RESAMPLES: usize = 1000;
const MOST_DRAWS: usize = 1_000_000;

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;
/// The same of Student's t, by degrees of freedom from 1 on.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The middle 95 % of `statistic` over resampled `groups`: each is resampled by itself.
fn bootstrap<T: Clone>(groups: &[Vec<T>], statistic: impl Fn(&mut [Vec<T>]) -> f64) -> [f64; 2] {
    let draws: usize = groups.iter().map(Vec::len).sum();
    let resamples = RESAMPLES.min(MOST_DRAWS / draws.max(1)).max(100);
    let mut random = Random::stream(draws as u64, "bootstrap");
    let mut sample = groups.to_vec();
    let mut found: Vec<f64> = (0..resamples)
        .map(|_| {
            for (group, sample) in groups.iter().zip(&mut sample) {
                for value in sample.iter_mut() {
                    value.clone_from(&group[(random.uniform() * group.len() as f64) as usize]);
                }
            }
            statistic(&mut sample)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let at = |share: f64| found[((resamples - 1) as f64 * share).round() as usize];
    [at(0.025), at(0.975)]
}

/// Returns the interval of the median of `values`; none if there are too few, or one is not finite.
pub fn of_median(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < FEWEST || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let centre = median(&mut values.to_vec())?;
    let ends = bootstrap(&[values.to_vec()], |sample| median(&mut sample[0]).unwrap_or(f64::NAN));
    // Nothing that is measured is below zero.
    Some(ends.map(|end| (centre + widening(values.len()) * (end - centre)).max(0.0)))
}

/// Returns the interval of `statistic` over `items`; none if there are too few, or it is not finite.
pub fn of_statistic<T: Clone>(items: &[T], statistic: impl Fn(&[T]) -> f64) -> Option<[f64; 2]> {
    let centre = statistic(items);
    if items.len() < FEWEST || !centre.is_finite() {
        return None;
    }
    let ends = bootstrap(&[items.to_vec()], |sample| statistic(&sample[0]));
    Some(ends.map(|end| centre + widening(items.len()) * (end - centre)))
}

/// By how much the interval of `n` values is widened.
fn widening(n: usize) -> f64 {
    let freedom = n - 1;
    let t = T.get(freedom - 1).copied().unwrap_or(Z);
    t / Z * libm::sqrt(n as f64 / freedom as f64)
}

/// Returns the geometric mean of ratios, given their natural logarithms: the mean over groups of the mean
/// within each. With an interval if no group has fewer than three values; none if there is no value, or one
/// is not finite.
pub fn of_ratios(groups: &[Vec<f64>]) -> Option<Ratio> {
    let fewest = groups.iter().map(Vec::len).min().filter(|fewest| *fewest > 0)?;
    if groups.iter().flatten().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let overall =
        |groups: &[Vec<f64>]| groups.iter().map(|group| mean(group)).sum::<f64>() / groups.len() as f64;
    let centre = overall(groups);
    let interval95 = (fewest >= 3).then(|| {
        let wider = widening(fewest);
        bootstrap(groups, |sample| overall(sample)).map(|end| libm::exp(centre + wider * (end - centre)))
    });
    Some(Ratio { value: libm::exp(centre), interval95 })
}

/// The logarithm of what a run gave over what another did.
fn log_ratio(own: Option<f64>, other: Option<f64>) -> f64 {
    own.zip(other).map_or(f64::NAN, |(own, other)| libm::log(own / other))
}

/// Returns the logarithms of the ratios of `value` in `own` to that in `reference`, run by run. Where runs
/// are missing, those of the same seed belong together.
pub fn log_ratios(own: &[Run], reference: &[Run], value: fn(&Run) -> Option<f64>) -> Vec<f64> {
    let ratio = |own: &Run, other: &Run| log_ratio(value(own), value(other));
    if own.iter().map(|run| run.seed).eq(reference.iter().map(|run| run.seed)) {
        return own.iter().zip(reference).map(|(own, other)| ratio(own, other)).collect();
    }
    let of_seed = |seed| reference.iter().find(|run| run.seed == seed);
    own.iter().filter_map(|own| Some(ratio(own, of_seed(own.seed)?))).collect()
}

/// Returns the intervals of the medians of `runs`.
pub fn intervals(runs: &[Run]) -> Option<Interval95> {
    let of = |value: &dyn Fn(&Run) -> Option<f64>| {
        of_median(&runs.iter().map(|run| value(run).unwrap_or(f64::NAN)).collect::<Vec<_>>())
    };
    Some(Interval95 {
        throughput_mbps: of(&|run| Some(summary::measured(run)))?,
        utilization: of(&|run| Some(summary::used(run)))?,
        p95_ms: of(&summary::p95),
    })
}

/// Returns how many of the sorted `values` are in the lower of two groups; none if they are one group.
fn split(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < FEWEST_FOR_MODES || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let least = n.div_ceil(5).max(2);
    let gap = |low: usize| values[low] - values[low - 1];
    let low = (least..=n - least).max_by(|a, b| gap(*a).total_cmp(&gap(*b)))?;
    let wider = (values[low - 1] - values[0]).max(values[n - 1] - values[low]);
    let factor = if n < MANY { GAP } else { 1.0 };
    let apart = values[middle(low, n)] > APART * values[middle(0, low)];
    (gap(low) > factor * wider && apart).then_some(low)
}

/// The place in the middle of a range, the lower of two.
fn middle(from: usize, to: usize) -> usize {
    from + (to - from - 1) / 2
}

/// Returns the groups that `runs` fall into, the lower first, and the run in the middle of the larger one;
/// none if they are one group. What is looked at is the share of the link that the measured flow had, then
/// the 95th percentile of its delay.
pub fn modes(runs: &[Run]) -> Option<([Mode; 2], &Run)> {
    let share = |run: &Run| summary::throughput(run) / run.capacity_mbps;
    let delay = |run: &Run| summary::p95(run).unwrap_or(f64::NAN);
    let by = |value: &dyn Fn(&Run) -> f64| {
        let mut sorted: Vec<&Run> = runs.iter().collect();
        sorted.sort_by(|a, b| value(a).total_cmp(&value(b)));
        let low = split(&sorted.iter().map(|run| value(run)).collect::<Vec<_>>())?;
        let [lower, upper] = [(0, low), (low, sorted.len())].map(|(from, to)| {
            let run = sorted[middle(from, to)];
            let mode = Mode {
                n: (to - from) as u64,
                throughput_mbps: summary::throughput(run),
                p95_ms: summary::p95(run),
            };
            (mode, run)
        });
        let larger = if upper.0.n > lower.0.n { upper.1 } else { lower.1 };
        Some(([lower.0, upper.0], larger))
    };
    by(&share).or_else(|| by(&delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(throughput_mbps: f64) -> Run {
        Run { throughput_mbps, capacity_mbps: 12.0, ..Run::default() }
    }

    #[test]
    fn a_median_lies_within_its_interval_and_few_runs_have_none() {
        let values = [4.9, 8.33, 4.0, 4.96, 5.5, 6.1, 4.4, 7.2];
        let [low, high] = of_median(&values).unwrap();
        assert!((3.5..5.23).contains(&low) && (5.23..9.0).contains(&high), "{low} to {high}");
        assert_eq!(of_median(&values), of_median(&values), "the same bytes again");
        assert_eq!(of_median(&values[..FEWEST - 1]), None);
        assert_eq!(of_median(&[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]), None);
    }

    #[test]
    fn runs_of_one_seed_belong_together_whichever_are_missing() {
        let runs = |seeds: [u64; 2]| {
            seeds.map(|seed| Run { seed, ..crate::testing::run("cubic", "lte", seed as f64, 50.0) })
        };
        let ratios = log_ratios(&runs([1, 2]), &runs([1, 3]), |run| Some(run.throughput_mbps));
        assert_eq!(ratios, [0.0]);
    }

    /// How many of 400 samples of a known distribution have intervals that hold its median.
    fn coverage(n: usize, interval: impl Fn(&[f64]) -> [f64; 2]) -> f64 {
        let mut random = Random::stream(7, "coverage");
        let held = (0..400)
            .filter(|_| {
                let sample: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                let [low, high] = interval(&sample);
                low <= 0.0 && 0.0 <= high
            })
            .count();
        held as f64 / 400.0
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        for n in [8, 10, 20] {
            let median = coverage(n, |sample| {
                let above_zero: Vec<f64> = sample.iter().map(|value| 10.0 + value).collect();
                of_median(&above_zero).unwrap().map(|end| end - 10.0)
            });
            assert!((0.93..=0.98).contains(&median), "median of {n}: {median}");
            let ratio =
                coverage(n, |sample| of_ratios(&[sample.to_vec()]).unwrap().interval95.unwrap().map(f64::ln));
            assert!((0.92..=0.98).contains(&ratio), "ratio of {n}: {ratio}");
        }
    }

    #[test]
    fn ratios_are_geometric_and_those_of_single_runs_have_no_interval() {
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        let ratio = of_ratios(&[logs(&[2.0, 8.0]), logs(&[1.0])]).unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-12, "sqrt(sqrt(2 * 8) * 1)");
        assert_eq!(ratio.interval95, None);
        assert!(!ratio.is_significant());
        let ratio = of_ratios(&[logs(&[1.1, 1.2, 1.15, 1.18])]).unwrap();
        assert!(ratio.is_significant(), "{ratio:?}");
        assert_eq!(of_ratios(&[vec![f64::NAN]]), None, "nothing was delivered");
        assert_eq!(of_ratios(&[]), None);
    }

    #[test]
    fn runs_that_fall_into_two_groups_are_told_and_the_row_is_one_of_them() {
        // BBR beside Cubic.
        let runs = [1.5, 6.0, 6.6, 2.0, 6.1, 1.8, 2.1, 6.2].map(run);
        let (modes, middle) = modes(&runs).unwrap();
        assert_eq!(modes.map(|mode| (mode.n, mode.throughput_mbps)), [(4, 1.8), (4, 6.1)]);
        assert_eq!(middle.throughput_mbps, 1.8, "of two groups of the same size the lower");
        assert!(runs.contains(middle), "not a result that no run had");
    }

    #[test]
    fn runs_of_one_kind_are_one_group() {
        for values in [
            [4.9, 4.92, 4.96, 4.91, 4.93, 4.94, 4.95, 4.97],
            [4.0, 8.3, 5.0, 7.1, 6.2, 5.5, 4.6, 6.8],
            // One run apart is no group.
            [4.0, 4.1, 4.2, 4.0, 4.1, 4.2, 4.1, 9.0],
        ] {
            assert!(modes(&values.map(run)).is_none(), "{values:?}");
        }
        assert!(modes(&[1.0, 9.0].map(run)).is_none(), "too few to tell");
    }
}
