//! Several runs of one scenario under different seeds, as one row: medians, and how far the runs lie apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::deployment::Deployment;
use crate::identity::RunId;
use crate::outcome::{
    Fairness, FlowOutcome, Interval95, Lateness, LinkOutcome, MarkCounts, Mode, Responsiveness, Run,
    SecondHalf, Setup, ShaperOutcome, SignalDelay, Spread, Summary, Versus,
};

/// Returns the middle of `values`; the mean of the middle two of an even number. None without values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

impl Run {
    /// Returns every number the median over `runs` of the same scenario, everything else as in the first of
    /// them. A value that half of the runs or more do not have is not in the row either, and a NaN or an
    /// infinity is no value. None without runs.
    pub fn median(runs: &[Run]) -> Option<Run> {
        let first = runs.first()?;
        if runs.len() == 1 {
            return Some(first.clone());
        }
        let p95 = runs.iter().filter_map(|run| Some(run.queueing_delay_ms?.p95));
        let mut setup = first.setup.clone();
        if let Some(setup) = setup.as_mut().filter(|_| runs.iter().any(|run| run.setup != first.setup)) {
            setup.trace_offset_s = None;
        }
        Some(Run {
            seed: first.seed,
            setup,
            run_id: RunId::of_set(runs.iter().map(|run| run.run_id)),
            unreliable: runs.iter().any(|run| run.unreliable),
            unreliable_because: runs
                .iter()
                .flat_map(|one| one.unreliable_because.iter().map(|why| format!("seed {}: {why}", one.seed)))
                .collect(),
            spread: Some(Spread {
                n: runs.len() as u64,
                throughput_mbps: extremes(runs.iter().map(|run| run.throughput_mbps)),
                p95_ms: extremes(p95),
            }),
            ..Run::merge(&runs.iter().collect::<Vec<_>>())
        })
    }

    /// The row as JSON.
    pub(crate) fn value(&self) -> Value {
        serde_json::to_value(self).expect("a row is plain data")
    }
}

fn extremes(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { [low, high] } else { [0.0, 0.0] }
}

/// What several runs say in the same place, as one: numbers as their median, containers part by part,
/// everything else as in the first. There is at least one value.
trait Merge: Sized {
    fn merge(values: &[&Self]) -> Self;
}

/// The median of the finite ones among `values`, if they are more than half of all `runs`.
fn common_median(values: impl Iterator<Item = f64>, runs: usize) -> Option<f64> {
    let mut finite: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    if finite.len() * 2 > runs { median(&mut finite) } else { None }
}

impl Merge for f64 {
    fn merge(values: &[&Self]) -> Self {
        common_median(values.iter().map(|value| **value), values.len()).unwrap_or(f64::NAN)
    }
}

/// Counts stay whole.
impl Merge for u64 {
    fn merge(values: &[&Self]) -> Self {
        let counts = values.iter().map(|value| **value as f64);
        libm::round(common_median(counts, values.len()).expect("every count is finite")) as u64
    }
}

macro_rules! merge_to_the_first {
    ($($plain:ty),+) => {$(
        impl Merge for $plain {
            fn merge(values: &[&Self]) -> Self {
                values[0].clone()
            }
        }
    )+};
}

merge_to_the_first!(bool, String, Spread, RunId, Setup, Deployment, Interval95, [Mode; 2], Versus);

impl<T: Merge> Merge for Option<T> {
    fn merge(values: &[&Self]) -> Self {
        let present: Vec<&T> = values.iter().filter_map(|value| value.as_ref()).collect();
        (present.len() * 2 > values.len()).then(|| T::merge(&present))
    }
}

/// As many as in the first.
impl<T: Merge> Merge for Vec<T> {
    fn merge(values: &[&Self]) -> Self {
        let part = |index| T::merge(&values.iter().filter_map(|value| value.get(index)).collect::<Vec<_>>());
        (0..values[0].len()).map(part).collect()
    }
}

/// The names that more than half of the runs have a number for.
impl Merge for BTreeMap<String, f64> {
    fn merge(values: &[&Self]) -> Self {
        let names: BTreeSet<&String> = values.iter().flat_map(|value| value.keys()).collect();
        let part = |name: &String| {
            let found = values.iter().filter_map(|value| value.get(name).copied());
            Some((name.clone(), common_median(found, values.len())?))
        };
        names.into_iter().filter_map(part).collect()
    }
}

/// Merges each field by itself. A field that is not listed does not compile.
macro_rules! merge_fields {
    ($($row:ident { $($field:ident),+ $(,)? })+) => {$(
        impl Merge for $row {
            fn merge(values: &[&Self]) -> Self {
                $row { $($field: Merge::merge(&values.iter().map(|value| &value.$field).collect::<Vec<_>>()),)+ }
            }
        }
    )+};
}

merge_fields! {
    Run {
        scheme, trace, seed, duration_s, capacity_mbps, throughput_mbps, goodput_mbps, utilization, queueing_delay_ms,
        one_way_delay_ms, rtt_ms, responsiveness, second_half, signal_delay_ms, loss_percent, delivered_packets, dropped_packets, sent_packets,
        left_packets, retransmitted_packets, marks, jain, unfairness, links, flows, shapers, run_id, setup,
        deployment, spread, interval95, modes, fairness, versus, lateness_ms, unreliable, unreliable_because,
    }
    LinkOutcome {
        name, queue, capacity_mbps, throughput_mbps, utilization, queueing_delay_ms, dropped_packets, marks, marked_by,
        misread,
    }
    FlowOutcome {
        name, controller, throughput_mbps, goodput_mbps, rtt_ms, queueing_delay_ms, one_way_delay_ms, loss_percent,
        retransmitted_packets, application, state,
    }
    Fairness {
        own_mbps, own_p95_ms, competitor_mbps, competitor_p95_ms, share, harm_throughput, harm_delay,
    }
    ShaperOutcome { setter, rate_mbps, lowest_mbps, highest_mbps, blind, probes }
    Summary { mean, p50, p95, p99, max }
    SignalDelay { p95 }
    Responsiveness { rpm, working_latency_p98_ms }
    SecondHalf { from_s, throughput_mbps, utilization, share, p95_ms }
    MarkCounts { accelerate, brake, ce }
    Lateness { p50, p99, max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{FlowOutcome, Summary};

    fn run(seed: u64, throughput: f64, p95: Option<f64>) -> Run {
        Run {
            scheme: "cubic".to_string(),
            seed,
            throughput_mbps: throughput,
            queueing_delay_ms: p95.map(|p95| Summary { p95, ..Summary::default() }),
            delivered_packets: seed,
            flows: vec![FlowOutcome {
                name: "main".to_string(),
                application: Some(BTreeMap::from([("completion_s".to_string(), throughput)])),
                ..FlowOutcome::default()
            }],
            ..Run::default()
        }
    }

    #[test]
    fn takes_the_median_of_every_number_and_the_extremes_of_two() {
        let runs = [run(7, 3.0, Some(30.0)), run(8, 1.0, Some(10.0)), run(10, 2.5, None)];
        let row = Run::median(&runs).unwrap();
        assert_eq!((row.scheme.as_str(), row.seed, row.throughput_mbps), ("cubic", 7, 2.5));
        assert_eq!(row.queueing_delay_ms.unwrap().p95, 20.0);
        assert_eq!(row.delivered_packets, 8);
        assert_eq!(row.flows[0].application, Some(BTreeMap::from([("completion_s".to_string(), 2.5)])));
        let spread = Spread { n: 3, throughput_mbps: [1.0, 3.0], p95_ms: [10.0, 30.0] };
        assert_eq!(row.spread, Some(spread));
    }

    #[test]
    fn a_value_that_most_runs_lack_is_lacking() {
        let runs = [run(1, 3.0, None), run(2, 1.0, Some(10.0)), run(3, 2.0, None)];
        assert_eq!(Run::median(&runs).unwrap().queueing_delay_ms, None);
    }

    fn with_state(values: &[(&str, f64)]) -> Run {
        let state = values.iter().map(|(name, value)| ((*name).to_string(), *value)).collect();
        Run { flows: vec![FlowOutcome { state: Some(state), ..FlowOutcome::default() }], ..Run::default() }
    }

    fn median_state(runs: &[Run]) -> BTreeMap<String, f64> {
        Run::median(runs).unwrap().flows[0].state.clone().unwrap()
    }

    #[test]
    fn a_value_that_is_no_number_counts_as_lacking() {
        let nan = f64::NAN;
        let runs = [with_state(&[("x", 1.0)]), with_state(&[("x", nan)]), with_state(&[("x", 4.0)])];
        assert_eq!(median_state(&runs), BTreeMap::from([("x".to_string(), 2.5)]));
        let runs = [with_state(&[("x", nan), ("y", 1.0)]), with_state(&[("x", 1.0), ("y", 2.0)])];
        assert_eq!(median_state(&runs), BTreeMap::from([("y".to_string(), 1.5)]));
        // A required number that is none in half of the runs is none in the row.
        let runs = [run(1, nan, None), run(2, 1.0, None)];
        assert!(Run::median(&runs).unwrap().throughput_mbps.is_nan());
    }

    #[test]
    fn a_name_is_in_the_row_if_most_runs_have_it() {
        let (without, with) = (with_state(&[("y", 7.0)]), with_state(&[("x", 2.0), ("y", 7.0)]));
        let rare = [with.clone(), without.clone(), without.clone()];
        assert_eq!(median_state(&rare), BTreeMap::from([("y".to_string(), 7.0)]));
        let common = [without, with.clone(), with];
        let both = BTreeMap::from([("x".to_string(), 2.0), ("y".to_string(), 7.0)]);
        assert_eq!(median_state(&common), both);
    }

    #[test]
    fn one_run_is_its_own_median_without_spread() {
        let only = run(5, 2.0, Some(1.0));
        assert_eq!(Run::median(std::slice::from_ref(&only)), Some(only));
        assert_eq!(Run::median(&[]), None);
    }

    #[test]
    fn a_full_row_has_the_interfaces_shape() {
        let mut runs = [run(7, 3.0, Some(30.0)), run(8, 1.0, Some(10.0))];
        runs[0].rtt_ms = Some(Summary::default());
        let text = serde_json::to_string_pretty(&Run::median(&runs).unwrap()).unwrap();
        insta::assert_snapshot!(text);
    }
}
