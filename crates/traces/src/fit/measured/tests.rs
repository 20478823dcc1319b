use super::super::super::measured::Memory;
use super::super::super::recording::RecordedCapacity;
use super::memory::Powers;
use super::*;

/// A recording of `rates` in bins of 100 ms.
fn recording(rates: &[f64]) -> Recording {
    let mut recording = Recording::new(Duration::from_millis(100 * rates.len() as u64));
    let steps = (0..)
        .zip(rates)
        .map(|(k, mbps)| (Duration::from_millis(100 * k), Rate::from_bps((mbps * 1e6) as u64)));
    recording.down.capacity = Some(RecordedCapacity::Rates(steps.collect()));
    recording
}

fn fitted(recording: &Recording) -> Measured {
    fit_measured(recording, Kind::bins(100)).unwrap().measured.unwrap()
}

/// Noise of a bin counts once: a fit to what a fit made has the same quantiles and the same memory.
#[test]
fn a_fit_to_what_a_recipe_made_finds_the_recipe() {
    let first = Measured {
        bin: Duration::from_millis(100),
        rates: SHARES.iter().map(|share| Rate::from_bps((2e6 + 5e7 * share * share) as u64)).collect(),
        memory: vec![Memory { share: 0.6, lasts: Duration::from_secs(2) }],
        echo: 0.0,
        noisy: 0.3,
        outages: Some(MeasuredOutages {
            every: Duration::from_secs(10),
            lasts: vec![Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(3)],
            fades: 1,
            fall: 1.0,
            rebound: 2.0,
        }),
        paths: None,
        grants: Vec::new(),
        delay: None,
    };
    let length = Duration::from_secs(600);
    let rates: Vec<f64> = first.rates(1, length).iter().map(|rate| rate.as_mbps_f64()).collect();
    let found = fitted(&recording(&rates));
    for ((share, wanted), found) in SHARES.iter().zip(&first.rates).zip(&found.rates) {
        let off = (found.as_mbps_f64() - wanted.as_mbps_f64()).abs();
        assert!(off < 0.3 + 0.03 * wanted.as_mbps_f64(), "{share}: {found} for {wanted}");
    }
    let at_a_second = |measured: &Measured| -> f64 {
        let part = |part: &Memory| part.share * libm::exp(-1.0 / part.lasts.as_secs_f64());
        measured.memory.iter().map(part).sum()
    };
    let off = (at_a_second(&found) - at_a_second(&first)).abs();
    assert!(off < 0.1, "{:?}", found.memory);
    assert!((found.noisy - first.noisy).abs() < 0.15, "{}", found.noisy);
    let outages = found.outages.unwrap();
    let off = (outages.fall - 1.0).abs().max((outages.rebound - 2.0).abs());
    assert!(off <= 0.5, "{} and {}", outages.fall, outages.rebound);
    assert_eq!((outages.every, *outages.lasts.last().unwrap()), (length / 60, Duration::from_secs(3)));
}

#[test]
fn knots_keep_the_mean() {
    let values: Vec<f64> = (0..997).map(|k| 5.0 + f64::from(k * k % 997)).collect();
    let knots = knots(&values);
    let line: f64 =
        SHARES.windows(2).zip(knots.windows(2)).map(|(s, k)| (s[1] - s[0]) * (k[0] + k[1]) / 2.0).sum();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((line / mean - 1.0).abs() < 1e-3, "{line} for {mean}");
}

#[test]
fn the_correlation_behind_ranks_is_the_sine_of_a_sixth_of_pi() {
    // Pearson: rho = 2 sin(pi / 6 r) where r is the correlation of ranks, to which even knots map.
    let powers = Powers::of(&SHARES);
    for r in [0.1, 0.5, 0.9] {
        let wanted = 2.0 * libm::sin(std::f64::consts::PI / 6.0 * r);
        assert!((powers.behind(r) - wanted).abs() < 1e-3, "{r}: {} for {wanted}", powers.behind(r));
    }
    assert_eq!(powers.behind(-0.2), -0.2);
}

#[test]
fn changes_of_paths_are_found_and_not_taken_for_slow_bins() {
    let mut counts = vec![2_u32; 60_000];
    for from in [7_000, 22_000, 37_000, 52_000] {
        counts[from..from + 80].fill(0);
    }
    assert_eq!(gaps(&counts), [(7_000, 80), (22_000, 80), (37_000, 80), (52_000, 80)]);
    let trace = super::super::super::synth::from_counts(counts).unwrap();
    let mut recording = Recording::new(trace.period());
    recording.down.capacity = Some(RecordedCapacity::Opportunities(trace));
    let found = fit_measured(&recording, Kind::STARLINK).unwrap().measured.unwrap();
    let paths = found.paths.unwrap();
    assert_eq!((paths.first, paths.gaps[0]), (Duration::from_secs(7), Duration::from_millis(80)));
    assert_eq!(found.rates[0], Rate::from_mbps(24));
    assert!(found.grants.iter().all(|grant| *grant == Duration::from_millis(1)));
}
