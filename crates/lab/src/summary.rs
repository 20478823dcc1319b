//! What the rows of a comparison say together: which scheme is best, and by how much.

use brakelight_scenario::outcome::{Ratio, Run};
use serde::Serialize;

use crate::{fairness, interval};

/// One scheme over all traces it ran on. Means over traces are geometric and of ratios: a second of a 3G link
/// and a millisecond of a 5G link have no mean that says anything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overall {
    /// The scheme.
    pub scheme: String,
    /// Geometric mean of the utilisations; 0 where one is.
    pub utilization: f64,
    /// Throughput over the reference's: the mean over traces of the mean over runs.
    pub throughput: Option<Ratio>,
    /// 95th percentile of the queueing delay over the reference's, in the same way.
    pub p95: Option<Ratio>,
    /// 95th percentile of the one-way delay over the reference's.
    pub one_way_p95: Option<Ratio>,
    /// The highest of the losses.
    pub loss_percent: f64,
    /// [`power`] relative to the best scheme's: the mean over traces of the mean over runs, as in the ratios.
    pub power: Option<f64>,
    /// Whether no other scheme has both a higher throughput and a lower p95 queueing delay, by the means.
    pub pareto: bool,
}

/// Returns the throughput over the 95th percentile of the one-way delay, in Mbit/s per ms; none where nothing
/// was delivered. Beside a competing flow both are the measured flow's, and the harm that it does counts
/// against it ([`fairness::kindness`]).
pub fn power(run: &Run) -> Option<f64> {
    let delay = run.one_way_delay_ms?.p95;
    let kindness = run.fairness.as_ref().map_or(1.0, fairness::kindness);
    let throughput = measured(run);
    (delay > 0.0 && throughput > 0.0).then(|| throughput / delay * kindness)
}

/// Returns the throughput of the measured flow, where there is a competing one, and of the link otherwise.
pub fn measured(run: &Run) -> f64 {
    run.fairness.map_or(run.throughput_mbps, |fairness| fairness.own_mbps)
}

/// Returns the share of the link that the row is about: the measured flow's, where there is a competing one.
pub fn used(run: &Run) -> f64 {
    match &run.fairness {
        Some(fairness) if run.capacity_mbps > 0.0 => fairness.own_mbps / run.capacity_mbps,
        _ => run.utilization,
    }
}

/// Returns the throughput that the row is about: the first flow's where there are several, the link's
/// otherwise.
pub fn throughput(run: &Run) -> f64 {
    match run.flows.as_slice() {
        [first, _, ..] => first.throughput_mbps,
        _ => run.throughput_mbps,
    }
}

/// Returns every name of a column once, in order of appearance.
pub fn distinct<'a>(runs: &'a [Run], column: impl Fn(&'a Run) -> &'a str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for name in runs.iter().map(column) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the runs that the row at `place` is made of.
pub fn runs_of<'a>(runs: &'a [Run], every: &'a [Vec<Run>], place: usize) -> &'a [Run] {
    every.get(place).map_or(std::slice::from_ref(&runs[place]), Vec::as_slice)
}

/// Returns what `scheme` has of `value` over what `other` has, run by run, over the traces; none where
/// `other` has no row on one of them.
pub fn over(
    runs: &[Run],
    every: &[Vec<Run>],
    scheme: &str,
    other: &str,
    value: fn(&Run) -> Option<f64>,
) -> Option<Ratio> {
    let own = (0..runs.len()).filter(|place| runs[*place].scheme == scheme);
    let logs = own.map(|place| {
        let beside = |run: &Run| run.scheme == other && run.trace == runs[place].trace;
        let other = runs.iter().position(beside)?;
        Some(interval::log_ratios(runs_of(runs, every, place), runs_of(runs, every, other), value))
    });
    interval::of_ratios(&logs.collect::<Option<Vec<_>>>()?)
}

/// Returns the [`power`] of a scheme: the mean over traces of the mean over runs, both geometric, so that the
/// quotient of two schemes is what [`over`] has. None where a run delivered nothing, or the scheme has no row
/// on a trace: a scheme that failed must not gain by that.
fn power_over(runs: &[Run], every: &[Vec<Run>], scheme: &str) -> Option<f64> {
    let own: Vec<usize> = (0..runs.len()).filter(|place| runs[*place].scheme == scheme).collect();
    if own.len() < distinct(runs, |run| &run.trace).len() {
        return None;
    }
    geometric_mean(own.into_iter().map(|place| geometric_mean(runs_of(runs, every, place).iter().map(power))))
}

/// Returns one row per scheme, best power first: of the rows in `runs`, each of which is made of the runs in
/// the same place of `every`. Ratios are to `reference`, run by run, where it is among the schemes.
pub fn overall(runs: &[Run], every: &[Vec<Run>], reference: Option<&str>) -> Vec<Overall> {
    let mut rows: Vec<Overall> = distinct(runs, |run| &run.scheme)
        .into_iter()
        .map(|scheme| {
            let own: Vec<usize> = (0..runs.len()).filter(|place| runs[*place].scheme == scheme).collect();
            let ratio = |value: fn(&Run) -> Option<f64>| over(runs, every, scheme, reference?, value);
            let rows = || own.iter().map(|place| &runs[*place]);
            Overall {
                scheme: scheme.to_string(),
                utilization: geometric_mean(rows().map(|run| Some(used(run)))).unwrap_or(0.0),
                throughput: ratio(|run| Some(throughput(run))),
                p95: ratio(p95),
                one_way_p95: ratio(|run| Some(run.one_way_delay_ms?.p95)),
                loss_percent: rows().map(|run| run.loss_percent).fold(0.0, f64::max),
                power: power_over(runs, every, scheme),
                pareto: false,
            }
        })
        .collect();
    let best = rows.iter().filter_map(|row| row.power).fold(0.0, f64::max);
    for row in &mut rows {
        row.power = row.power.map(|power| power / best);
    }
    let points: Vec<_> = rows.iter().map(|row| Some((row.p95?.value, row.throughput?.value))).collect();
    for (row, pareto) in rows.iter_mut().zip(pareto(&points)) {
        row.pareto = pareto;
    }
    rows.sort_by(|a, b| descending(a.power, b.power));
    rows
}

/// Returns which points of (delay, throughput) no other point beats in both, or in one at a tie of the other.
/// A point that is missing is not on the frontier.
pub fn pareto(points: &[Option<(f64, f64)>]) -> Vec<bool> {
    let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 >= b.1 && a != b;
    points
        .iter()
        .map(|point| point.is_some_and(|own| !points.iter().flatten().any(|other| beats(*other, own))))
        .collect()
}

/// Returns the rows of one trace, best power first.
pub fn on_trace<'a>(runs: &'a [Run], trace: &str) -> Vec<&'a Run> {
    let mut rows: Vec<&Run> = runs.iter().filter(|run| run.trace == trace).collect();
    rows.sort_by(|a, b| descending(power(a), power(b)));
    rows
}

/// Returns the 95th percentile of the queueing delay.
pub fn p95(run: &Run) -> Option<f64> {
    run.queueing_delay_ms.map(|delay| delay.p95)
}

fn descending(a: Option<f64>, b: Option<f64>) -> std::cmp::Ordering {
    b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0))
}

/// The geometric mean, of values that are all there and above zero.
fn geometric_mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    mean(values.map(|value| value.filter(|value| *value > 0.0 && value.is_finite()).map(libm::log)))
        .map(libm::exp)
}

/// The mean; none where any value is missing or there is none, so that no scheme looks good by failing to
/// deliver.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value?;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    #[test]
    fn best_power_comes_first_and_ratios_are_to_the_reference_on_the_same_trace() {
        let runs = [
            run("cubic", "a", 9.0, 850.0),
            run("cubic", "b", 8.0, 750.0),
            run("abc", "a", 8.1, 85.0),
            run("abc", "b", 6.0, 75.0),
        ];
        let rows = overall(&runs, &[], Some("cubic"));
        assert_eq!(rows.iter().map(|row| row.scheme.as_str()).collect::<Vec<_>>(), ["abc", "cubic"]);
        let abc = &rows[0];
        assert_eq!(abc.power, Some(1.0));
        // sqrt(8.1 / 9 * 6 / 8) and sqrt(85 / 850 * 75 / 750)
        assert!((abc.throughput.unwrap().value - 0.675f64.sqrt()).abs() < 1e-12);
        assert!((abc.p95.unwrap().value - 0.1).abs() < 1e-12);
        // sqrt(0.81 * 0.6): the mean of utilisations is geometric too.
        assert!((abc.utilization - 0.486f64.sqrt()).abs() < 1e-12);
        // Geometric means: sqrt(9/900 * 8/800) over sqrt(8.1/135 * 6/125).
        let expected = 0.01 / (8.1f64 / 135.0 * 6.0 / 125.0).sqrt();
        assert!((rows[1].power.unwrap() - expected).abs() < 1e-12);
        assert!(rows.iter().all(|row| row.pareto));
    }

    #[test]
    fn a_scheme_that_delivered_nothing_on_one_trace_has_no_power_and_comes_last() {
        let mut starved = run("starved", "a", 0.0, 1.0);
        starved.queueing_delay_ms = None;
        starved.one_way_delay_ms = None;
        let runs = [
            starved,
            run("starved", "b", 9.0, 1.0),
            run("abc", "a", 1.0, 900.0),
            run("abc", "b", 1.0, 900.0),
        ];
        let rows = overall(&runs, &[], Some("abc"));
        assert_eq!(rows[1].scheme, "starved");
        assert_eq!((rows[1].power, rows[1].p95, rows[1].pareto), (None, None, false));
    }

    #[test]
    fn a_ratio_over_all_traces_is_of_pairs_of_runs_and_says_how_sure_it_is() {
        let of = |scheme: &str, trace: &str, values: [f64; 4]| {
            values.map(|throughput| run(scheme, trace, throughput, 10.0)).to_vec()
        };
        // The places of a trace differ tenfold, the schemes by a tenth in each.
        let every = [
            of("abc", "a", [1.0, 2.0, 5.0, 10.0]),
            of("bbr", "a", [1.1, 2.2, 5.4, 11.1]),
            of("abc", "b", [100.0, 300.0, 200.0, 400.0]),
            of("bbr", "b", [112.0, 330.0, 221.0, 437.0]),
        ];
        let rows: Vec<Run> = every.iter().map(|runs| runs[1].clone()).collect();
        let rows = overall(&rows, &every, Some("abc"));
        let bbr = rows.iter().find(|row| row.scheme == "bbr").unwrap().throughput.unwrap();
        let [low, high] = bbr.interval95.unwrap();
        assert!(bbr.is_significant() && low > 1.05 && high < 1.15, "{bbr:?}");
        assert!(!rows.iter().find(|row| row.scheme == "abc").unwrap().throughput.unwrap().is_significant());
    }

    #[test]
    fn the_table_s_power_is_the_quotient_of_the_runs() {
        let of = |scheme: &str, values: [f64; 3]| values.map(|delay| run(scheme, "a", 9.0, delay)).to_vec();
        // By its median run copa is better; by the mean over pairs of runs it is not.
        let every = [of("copa", [50.0, 60.0, 900.0]), of("vegas", [70.0, 80.0, 90.0])];
        let rows: Vec<Run> = every.iter().map(|runs| runs[1].clone()).collect();
        let table = overall(&rows, &every, None);
        assert_eq!(table[0].scheme, "vegas");
        let ratio = over(&rows, &every, "copa", "vegas", power).unwrap().value;
        assert!((table[1].power.unwrap() - ratio).abs() < 1e-12, "{table:?} {ratio}");
    }

    #[test]
    fn the_frontier_keeps_what_nothing_beats_in_both() {
        let points = [Some((10.0, 0.5)), Some((20.0, 0.9)), Some((20.0, 0.8)), Some((30.0, 0.9)), None];
        assert_eq!(pareto(&points), [true, true, false, false, false]);
    }
}
