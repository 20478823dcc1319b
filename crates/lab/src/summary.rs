//! What the rows of a comparison say together: which scheme is best, and by how much.

use std::collections::BTreeMap;

use brakelight_scenario::outcome::Run;
use serde::Serialize;

/// One scheme over all traces it ran on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overall {
    /// The scheme.
    pub scheme: String,
    /// Mean of the utilisations.
    pub utilization: f64,
    /// Mean of the 95th percentiles of the queueing delay.
    pub p95_ms: Option<f64>,
    /// Mean of the 95th percentiles of the one-way delay.
    pub one_way_p95_ms: Option<f64>,
    /// Geometric mean of the ratios of its throughput to the reference's on the same trace.
    pub throughput_ratio: Option<f64>,
    /// Geometric mean of the ratios of its p95 queueing delay to the reference's on the same trace.
    pub p95_ratio: Option<f64>,
    /// Mean of the losses.
    pub loss_percent: f64,
    /// Geometric mean of [`power`], relative to the best scheme's.
    pub power: Option<f64>,
    /// Whether no other scheme has both a higher utilisation and a lower p95 queueing delay.
    pub pareto: bool,
}

/// Returns the throughput over the 95th percentile of the one-way delay, in Mbit/s per ms; none where nothing
/// was delivered.
pub fn power(run: &Run) -> Option<f64> {
    let delay = run.one_way_delay_ms?.p95;
    (delay > 0.0 && run.throughput_mbps > 0.0).then(|| run.throughput_mbps / delay)
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

/// Returns one row per scheme, best power first. Ratios are to `reference`, where it is among the schemes.
pub fn overall(runs: &[Run], reference: Option<&str>) -> Vec<Overall> {
    let base: BTreeMap<&str, &Run> = runs
        .iter()
        .filter(|run| Some(run.scheme.as_str()) == reference)
        .map(|run| (run.trace.as_str(), run))
        .collect();
    let mut rows: Vec<Overall> = distinct(runs, |run| &run.scheme)
        .into_iter()
        .map(|scheme| {
            let own: Vec<&Run> = runs.iter().filter(|run| run.scheme == scheme).collect();
            let ratio = |value: fn(&Run) -> Option<f64>| {
                geometric_mean(own.iter().map(|run| {
                    let to = base.get(run.trace.as_str()).and_then(|other| value(other))?;
                    Some(value(run)? / to)
                }))
            };
            Overall {
                scheme: scheme.to_string(),
                utilization: mean(own.iter().map(|run| Some(run.utilization))).unwrap_or(0.0),
                p95_ms: mean(own.iter().map(|run| p95(run))),
                one_way_p95_ms: mean(own.iter().map(|run| run.one_way_delay_ms.map(|delay| delay.p95))),
                throughput_ratio: ratio(|run| Some(run.throughput_mbps)),
                p95_ratio: ratio(p95),
                loss_percent: mean(own.iter().map(|run| Some(run.loss_percent))).unwrap_or(0.0),
                power: geometric_mean(own.iter().map(|run| power(run))),
                pareto: false,
            }
        })
        .collect();
    let best = rows.iter().filter_map(|row| row.power).fold(0.0, f64::max);
    for row in &mut rows {
        row.power = row.power.map(|power| power / best);
    }
    let points: Vec<_> = rows.iter().map(|row| row.p95_ms.map(|delay| (delay, row.utilization))).collect();
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
    mean(values.map(|value| value.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln)))
        .map(f64::exp)
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
    use brakelight_scenario::outcome::Summary;

    use super::*;

    fn run(scheme: &str, trace: &str, throughput_mbps: f64, p95_ms: f64) -> Run {
        let delay = |p95| Some(Summary { p95, ..Summary::default() });
        Run {
            scheme: scheme.into(),
            trace: trace.into(),
            throughput_mbps,
            utilization: throughput_mbps / 10.0,
            queueing_delay_ms: delay(p95_ms),
            one_way_delay_ms: delay(p95_ms + 50.0),
            ..Run::default()
        }
    }

    #[test]
    fn best_power_comes_first_and_ratios_are_to_the_reference_on_the_same_trace() {
        let runs = [
            run("cubic", "a", 9.0, 850.0),
            run("cubic", "b", 8.0, 750.0),
            run("abc", "a", 8.1, 85.0),
            run("abc", "b", 6.0, 75.0),
        ];
        let rows = overall(&runs, Some("cubic"));
        assert_eq!(rows.iter().map(|row| row.scheme.as_str()).collect::<Vec<_>>(), ["abc", "cubic"]);
        let abc = &rows[0];
        assert_eq!(abc.power, Some(1.0));
        // sqrt(8.1 / 9 * 6 / 8) and sqrt(85 / 850 * 75 / 750)
        assert!((abc.throughput_ratio.unwrap() - 0.675f64.sqrt()).abs() < 1e-12);
        assert!((abc.p95_ratio.unwrap() - 0.1).abs() < 1e-12);
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
        let rows = overall(&runs, None);
        assert_eq!(rows[1].scheme, "starved");
        assert_eq!((rows[1].power, rows[1].p95_ms, rows[1].pareto), (None, None, false));
    }

    #[test]
    fn the_frontier_keeps_what_nothing_beats_in_both() {
        let points = [Some((10.0, 0.5)), Some((20.0, 0.9)), Some((20.0, 0.8)), Some((30.0, 0.9)), None];
        assert_eq!(pareto(&points), [true, true, false, false, false]);
    }
}
