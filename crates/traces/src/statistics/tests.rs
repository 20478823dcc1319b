use super::*;

/// A trace of one cycle that holds `rate(ms)` opportunities at the instant `ms`, `0 <= ms < period`.
fn trace(period: u64, rate: impl Fn(u64) -> usize) -> Trace {
    // Those of the instant 0 are given as those of the period, which is the same instant.
    let stamps = (1..=period).flat_map(|ms| std::iter::repeat_n(ms, rate(ms % period)));
    Trace::from_millis(stamps).unwrap()
}

fn packets(trace: &Trace) -> Statistics {
    Statistics::of(trace, Bytes(1500))
}

#[test]
fn a_constant_rate_has_no_variation() {
    let found = packets(&trace(10_000, |_| 2));
    assert_eq!((found.duration_s, found.opportunities, found.mean_mbps), (10.0, 20_000, 24.0));
    assert_eq!(found.variation, Variation { cv_20ms: 0.0, cv_100ms: 0.0, cv_1s: 0.0 });
    assert_eq!((found.rate_1s.min_mbps, found.rate_1s.p50_mbps, found.rate_1s.max_mbps), (24.0, 24.0, 24.0));
    assert_eq!((found.outages.count, found.outages.longest_ms, found.outages.share), (0, 1, 0.0));
    assert!(found.autocorrelation.iter().all(|lag| lag.value == 0.0));
    assert_eq!((found.doubles, found.halves), (0.0, 0.0));
}

#[test]
fn variation_is_the_deviation_over_the_mean() {
    // 1 and 3 a millisecond by turns, a second each: mean 2, standard deviation 1.
    let found = packets(&trace(20_000, |ms| if ms / 1_000 % 2 == 0 { 1 } else { 3 }));
    for cv in [found.variation.cv_20ms, found.variation.cv_100ms, found.variation.cv_1s] {
        assert!((cv - 0.5).abs() < 1e-12, "{cv}");
    }
    assert_eq!((found.rate_1s.p50_mbps, found.rate_1s.p75_mbps), (12.0, 36.0));
    // Every 60 ms one opportunity: of five bins of 20 ms, 1 2/3 hold one; p = 1/3, variance p (1 - p).
    let found = packets(&trace(6_000, |ms| usize::from(ms % 60 == 0)));
    assert!((found.variation.cv_20ms - 2_f64.sqrt()).abs() < 1e-12);
}

#[test]
fn autocorrelation_of_bins_that_alternate() {
    // 40 bins of 100 ms, deviations -1 and +1 by turns: lag l gives (-1)^l (40 - l) / 40.
    let found = packets(&trace(4_000, |ms| if ms / 100 % 2 == 0 { 1 } else { 3 }));
    let expected = [(100, -39.0), (200, 38.0), (500, -35.0), (1_000, 30.0), (2_000, 20.0)];
    assert_eq!(found.autocorrelation.len(), expected.len());
    for (lag, value) in expected {
        assert!((found.autocorrelation_at(lag).unwrap() - value / 40.0).abs() < 1e-12, "{lag}");
    }
    assert_eq!(found.autocorrelation_at(5_000), None);
}

#[test]
fn outages_are_gaps_of_100_ms_and_more() {
    // Gaps of 50 (from the end of the cycle before), 100, 10, 500 and 340 ms.
    let stamps = Trace::from_millis([50, 150, 160, 660, 1_000]).unwrap();
    let outages = packets(&stamps).outages;
    assert_eq!((outages.count, outages.longest_ms, outages.share), (3, 500, 0.94));
    let counts: Vec<u64> = outages.at_least.iter().map(|class| class.count).collect();
    assert_eq!(counts, [3, 2, 1, 0, 0, 0]);
}

#[test]
fn a_gap_over_the_repetition_is_one() {
    // Nothing from 0 to 400 ms; the opportunity at the period is the one at 0.
    assert_eq!(packets(&Trace::from_millis([400, 450, 500]).unwrap()).outages.longest_ms, 400);
}

#[test]
fn seconds_in_which_the_rate_doubles_or_halves() {
    // Half a second each of 1 and 2 a millisecond, for 2 s: of the seconds that begin at 0, 0.1, ... 1.0 s,
    // those at 0 and 1 s double and the one at 0.5 s halves.
    let found = packets(&trace(2_000, |ms| if ms / 500 % 2 == 0 { 1 } else { 2 }));
    assert_eq!((found.doubles, found.halves), (2.0 / 11.0, 1.0 / 11.0));
    // A rate of nothing that stays nothing does neither.
    let found = packets(&Trace::from_millis([0, 5_000]).unwrap());
    assert_eq!((found.doubles, found.halves), (0.0, 1.0 / 41.0));
}

#[test]
fn quantiles_are_the_least_values_that_enough_bins_do_not_exceed() {
    // Twenty seconds with 1, 2, ... 20 opportunities: 12 kbit/s each.
    let found = packets(&trace(20_000, |ms| usize::from(ms % 1_000 <= ms / 1_000))).rate_1s;
    let kbps =
        [found.min_mbps, found.p5_mbps, found.p25_mbps, found.p50_mbps, found.p75_mbps, found.p95_mbps];
    let expected = [1.0, 1.0, 5.0, 10.0, 15.0, 19.0];
    for (found, expected) in kbps.into_iter().zip(expected) {
        assert!((found - expected * 0.012).abs() < 1e-12, "{found}");
    }
    assert!((found.max_mbps - 0.24).abs() < 1e-12);
}

#[test]
fn bins_are_whole_and_the_period_belongs_to_the_first() {
    let stamps = Trace::from_millis([0, 10, 99, 100, 199, 200, 250]).unwrap();
    assert_eq!(bins(&stamps, 100), [4, 2]);
    assert_eq!(rates(&stamps, Duration::from_millis(100), Bytes(1500)), [0.48, 0.24]);
    assert_eq!(bins(&stamps, 300), Vec::<u64>::new());
}

#[test]
fn the_shortest_and_the_longest_trace_have_statistics() {
    let shortest = packets(&Trace::from_millis([1]).unwrap());
    assert_eq!(
        (shortest.variation.cv_20ms, shortest.rate_1s, shortest.outages.longest_ms),
        (0.0, Quantiles::default(), 1)
    );
    let weeks = 30 * 24 * 3_600_000;
    let sparse = packets(&Trace::from_millis([0, weeks]).unwrap());
    assert_eq!((sparse.outages.count, sparse.outages.longest_ms), (1, weeks));
}

#[test]
fn rows_name_every_statistic_once() {
    let found = packets(&trace(20_000, |ms| if ms / 1_000 % 2 == 0 { 1 } else { 3 }));
    let rows = found.rows();
    let names: std::collections::BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), rows.len());
    assert_eq!(rows.len(), 3 + 3 + 7 + 14 + 6 + 4);
    let value = |name: &str| rows.iter().find(|row| row.name == name).map(|row| (row.value, row.unit));
    assert_eq!(value("mean rate"), Some((24.0, "Mbit/s")));
    assert_eq!(value("rate in 1 s bins, 75 %"), Some((36.0, "Mbit/s")));
    assert_eq!(value("autocorrelation at 10 s"), Some((found.autocorrelation_at(10_000).unwrap(), "")));
}
