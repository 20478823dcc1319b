use super::*;

#[test]
fn moments_of_a_square_wave() {
    // 1 and 3 a millisecond by turns, 100 ms each, for 12 s: mean 2, standard deviation 1 up to 100 ms, none
    // at 1 s.
    let counts: Vec<u32> = (0..12_000).map(|ms| if ms / 100 % 2 == 0 { 1 } else { 3 }).collect();
    let found = moments(&counts);
    for cv in &found[..4] {
        assert!((cv - libm::log(0.5)).abs() < 1e-12, "{cv}");
    }
    // 120 bins: (-1)^lag (120 - lag) / 120.
    for (value, (lag, sign)) in
        found[6..12].iter().zip([(1, -1.0), (2, 1.0), (5, -1.0), (10, 1.0), (20, 1.0), (50, 1.0)])
    {
        assert!((value - sign * (120.0 - f64::from(lag)) / 120.0).abs() < 1e-12, "{lag}: {value}");
    }
    assert_eq!(found[12..17], [0.0; 5]);
    assert_eq!(found[17..], [1.0; 3]);
}

#[test]
fn gaps_are_counted_by_length() {
    let mut counts = vec![1; 1_000];
    counts[100..149].fill(0); // 50 ms from opportunity to opportunity
    counts[300..449].fill(0); // 150 ms
    let found = moments(&counts);
    assert!((found[12] - libm::log(3.0)).abs() < 1e-12);
    assert!((found[13] - libm::log(2.0)).abs() < 1e-12);
    assert_eq!((found[14], found[16]), (0.0, 0.15));
    assert_eq!(longest_gap(&counts), 150);
}

#[test]
fn distance_counts_in_scales() {
    let target = [0.0; MOMENTS];
    let mut found = SCALES;
    assert!((distance(&found, &target) - 1.0).abs() < 1e-12);
    found[0] = 0.0;
    assert!((distance(&found, &target) - 19.0 / 20.0).abs() < 1e-12);
}

#[test]
fn times_have_three_digits() {
    assert_eq!(time(8.9497), Duration::from_millis(8_950));
    assert_eq!(time(0.0319492), Duration::from_micros(31_900));
    assert_eq!(whole_seconds(Duration::from_millis(120_002)), Duration::from_secs(120));
    assert_eq!(whole_seconds(Duration::from_millis(300)), Duration::from_millis(300));
}

/// A recipe is found again from the trace it made, as far as its moments go.
#[test]
fn a_fit_to_a_synthetic_trace_comes_near_it() {
    let truth: Recipe = super::super::embedded::Embedded::find("lte-driving").unwrap().recipe();
    let recording = truth.generate().unwrap();
    let effort = Effort { seeds: 2, evaluations: 40, candidates: 5 };
    let first = fit(&recording, effort);
    assert!(first.distance < 2.0, "{}", first.distance);
    assert!(first.recipe.check().is_ok());
    let mean = first.recipe.cellular.as_ref().unwrap().mean.as_mbps_f64();
    assert!((mean - recording.mean_rate(OPPORTUNITY).as_mbps_f64()).abs() < 0.001, "{mean}");
}
