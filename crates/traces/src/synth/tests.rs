use brakelight_core::units::Rate;
use proptest::prelude::*;

use super::super::recipe::{Blockage, Fading, Handover};
use super::super::statistics::{Statistics, bins};
use super::*;

fn plain(mean: Rate) -> Cellular {
    Cellular {
        mean,
        snr: 10.0,
        snr_limit: 22.0,
        fading: Vec::new(),
        burst: 1.0,
        slot: Duration::from_millis(1),
        outages: None,
        blockage: None,
        handover: None,
    }
}

fn recipe(cellular: Cellular, seconds: u64, seed: u64) -> Recipe {
    Recipe {
        about: String::new(),
        duration: Duration::from_secs(seconds),
        seed,
        cellular: Some(cellular),
        measured: None,
        steps: Vec::new(),
    }
}

fn stepped(steps: &[(u64, u64)], millis: u64) -> Vec<u64> {
    let step = |&(ms, bps): &(u64, u64)| Step { lasts: Duration::from_millis(ms), rate: Rate::from_bps(bps) };
    let recipe = Recipe {
        about: String::new(),
        duration: Duration::from_millis(millis),
        seed: 0,
        cellular: None,
        measured: None,
        steps: steps.iter().map(step).collect(),
    };
    recipe.generate().unwrap().millis().collect()
}

#[test]
fn twelve_megabits_are_one_opportunity_a_millisecond() {
    assert_eq!(stepped(&[(10, 12_000_000)], 5), [1, 2, 3, 4, 5]);
    assert_eq!(stepped(&[(2, 12_000_000), (1, 24_000_000)], 6), [1, 2, 3, 3, 4, 5, 6, 6]);
}

#[test]
fn bits_that_make_no_whole_opportunity_wait_for_the_next_millisecond() {
    // 5 Mbit/s: 5000 of the 12000 bits a millisecond; an opportunity once 12, 24, 36, 48, 60 thousand are
    // there.
    assert_eq!(stepped(&[(100, 5_000_000)], 12), [3, 5, 8, 10, 12]);
}

#[test]
fn the_period_is_the_duration_even_where_nothing_comes_last() {
    assert_eq!(stepped(&[(2, 12_000_000), (8, 0)], 10), [1, 2, 10]);
}

#[test]
fn a_recipe_that_never_sends_is_refused() {
    let silent = Recipe {
        about: String::new(),
        duration: Duration::from_millis(5),
        seed: 0,
        cellular: None,
        measured: None,
        steps: vec![Step { lasts: Duration::from_millis(1), rate: Rate::ZERO }],
    };
    assert_eq!(silent.generate(), Err(RecipeError::Silent));
    let below = recipe(Cellular { snr: -15.0, ..plain(Rate::from_mbps(1)) }, 1, 1);
    assert_eq!(below.generate(), Err(RecipeError::Silent));
}

#[test]
fn without_fading_it_is_a_poisson_process() {
    // 12 Mbit/s: one a millisecond; in bins of w ms, cv = 1 / sqrt(w).
    let found = Statistics::of(&recipe(plain(Rate::from_mbps(12)), 200, 5).generate().unwrap(), OPPORTUNITY);
    assert!((found.mean_mbps / 12.0 - 1.0).abs() < 0.01, "{}", found.mean_mbps);
    assert!((found.variation.cv_20ms * 20_f64.sqrt() - 1.0).abs() < 0.03, "{}", found.variation.cv_20ms);
    assert!((found.variation.cv_100ms * 10.0 - 1.0).abs() < 0.06, "{}", found.variation.cv_100ms);
}

#[test]
fn bursts_make_it_as_variable_as_a_geometric_law_does() {
    // Batches of a geometric law of mean b: variance over mean = 2 b - 1, here 9, so cv = 3 / sqrt(w).
    let bursty = Cellular { burst: 5.0, ..plain(Rate::from_mbps(12)) };
    let found = Statistics::of(&recipe(bursty, 200, 5).generate().unwrap(), OPPORTUNITY);
    assert!(
        (found.variation.cv_20ms * 20_f64.sqrt() / 3.0 - 1.0).abs() < 0.04,
        "{}",
        found.variation.cv_20ms
    );
}

#[test]
fn opportunities_come_at_the_ends_of_slots() {
    let slotted = Cellular { slot: Duration::from_millis(10), ..plain(Rate::from_mbps(3)) };
    assert!(recipe(slotted, 20, 5).generate().unwrap().millis().all(|ms| ms % 10 == 0));
}

#[test]
fn the_snr_wanders_with_the_deviation_and_the_time_it_was_told() {
    let a = libm::exp(-0.005 / 0.1);
    let mut wander = Wander::new(4.0, a, Random::stream(1, "test"));
    let values: Vec<f64> = (0..400_000).map(|_| wander.next()).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let product = |lag: usize| {
        values.iter().zip(&values[lag..]).map(|(x, y)| x * y).sum::<f64>() / (values.len() - lag) as f64
    };
    assert!(mean.abs() < 0.15, "{mean}");
    assert!((product(0) / 16.0 - 1.0).abs() < 0.03, "{}", product(0));
    // After 100 ms, 20 holds, 1/e is left.
    assert!((product(20) / product(0) - libm::exp(-1.0)).abs() < 0.03, "{}", product(20) / product(0));
}

#[test]
fn spectral_efficiency_is_shannons_between_its_ends() {
    assert_eq!(spectral_efficiency(-10.1, 22.0), 0.0);
    assert!((spectral_efficiency(0.0, 22.0) - 1.0).abs() < 1e-12);
    // log2(1 + 1000) = 9.967, and at the limit log2(1 + 158.49) = 7.317.
    assert!((spectral_efficiency(30.0, 60.0) - 9.967).abs() < 1e-3);
    assert!((spectral_efficiency(30.0, 22.0) - 7.317).abs() < 1e-3);
}

#[test]
fn outages_last_as_the_bounded_pareto_law_says() {
    let law = Outages {
        every: Duration::from_secs(1),
        shortest: Duration::from_millis(100),
        longest: Duration::from_secs(10),
        exponent: 1.0,
    };
    // F(d) = (1 - 0.1/d) / 0.99: 0, 1/2 at 0.1/0.505, 1.
    assert!((law.length_s(0.0) - 0.1).abs() < 1e-12);
    assert!((law.length_s(0.5) - 0.1 / 0.505).abs() < 1e-12);
    assert!((law.length_s(1.0) - 10.0).abs() < 1e-9);
}

#[test]
fn outages_come_as_often_as_they_should() {
    let outages = Outages {
        every: Duration::from_secs(2),
        shortest: Duration::from_millis(200),
        longest: Duration::from_millis(200),
        exponent: 1.0,
    };
    let trace = recipe(Cellular { outages: Some(outages), ..plain(Rate::from_mbps(24)) }, 1_100, 3)
        .generate()
        .unwrap();
    let found = Statistics::of(&trace, OPPORTUNITY).outages;
    // One each 2.2 s: 500, a Poisson-like number.
    assert!((440..=560).contains(&found.count), "{}", found.count);
    assert!((200..=215).contains(&found.longest_ms) || found.longest_ms >= 400, "{}", found.longest_ms);
}

#[test]
fn blockage_takes_its_share_of_time_and_rate() {
    // 20 dB down from 10 dB: log2(1 + 0.1) / log2(1 + 10) = 0.0397 of the rate, a quarter of the time.
    let blockage =
        Blockage { every: Duration::from_millis(600), lasts: Duration::from_millis(200), loss: 20.0 };
    let trace = recipe(Cellular { blockage: Some(blockage), ..plain(Rate::from_mbps(240)) }, 400, 3)
        .generate()
        .unwrap();
    let counts = bins(&trace, 20);
    let clear = *counts.iter().max().unwrap() as f64;
    let blocked = counts.iter().filter(|&&count| (count as f64) < clear * 0.25).count() as f64;
    assert!((blocked / counts.len() as f64 - 0.25).abs() < 0.03, "{}", blocked / counts.len() as f64);
}

#[test]
fn a_handover_is_a_gap_and_another_rate() {
    let handover = Handover { every: Duration::from_secs(1), gap: Duration::from_millis(100), sigma: 4.0 };
    let trace = recipe(Cellular { handover: Some(handover), ..plain(Rate::from_mbps(120)) }, 20, 3)
        .generate()
        .unwrap();
    let silent = trace.millis().filter(|ms| *ms > 1_000 && (ms - 1) % 1_000 < 100).count();
    assert_eq!(silent, 0, "nothing during the gaps");
    let seconds: Vec<f64> = bins(&trace, 1_000).into_iter().map(|count| count as f64).collect();
    let steps = seconds.windows(2).filter(|pair| (pair[1] / pair[0] - 1.0).abs() > 0.1).count();
    assert!(steps >= 12, "{seconds:?}");
}

#[test]
fn another_seed_is_another_trace_and_the_same_seed_the_same() {
    let make = |seed| recipe(plain(Rate::from_mbps(5)), 5, seed).generate().unwrap();
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}

prop_compose! {
    fn any_cellular()(
        kbps in 100_u64..50_000,
        snr in 0.0..25.0,
        fading in prop::collection::vec((0.0..6.0, 1_u64..20_000), 0..4),
        burst in 1.0..10.0,
        slot in 1_u64..20,
        outage in prop::option::of((500_u64..20_000, 1_u64..100, 0_u64..900, 0.5..4.0)),
        blockage in prop::option::of((500_u64..5_000, 10_u64..1_000, 0.0..30.0)),
        handover in prop::option::of((500_u64..20_000, 0_u64..200, 0.0..5.0)),
    ) -> Cellular {
        let ms = Duration::from_millis;
        Cellular {
            mean: Rate::from_bps(kbps * 1_000),
            snr,
            snr_limit: 22.0,
            fading: fading.into_iter().map(|(sigma, lasts)| Fading { sigma, lasts: ms(lasts) }).collect(),
            burst,
            slot: ms(slot),
            outages: outage.map(|(every, shortest, more, exponent)| Outages {
                every: ms(every),
                shortest: ms(shortest),
                longest: ms(shortest + more),
                exponent,
            }),
            blockage: blockage.map(|(every, lasts, loss)| Blockage { every: ms(every), lasts: ms(lasts), loss }),
            handover: handover.map(|(every, gap, sigma)| Handover { every: ms(every), gap: ms(gap), sigma }),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_recipe_makes_a_valid_trace_of_its_mean(cellular in any_cellular(), seed: u64, seconds in 1_u64..30) {
        let recipe = recipe(cellular.clone(), seconds, seed);
        match recipe.generate() {
            Ok(trace) => {
                let text: String = trace.millis().map(|ms| format!("{ms}\n")).collect();
                prop_assert_eq!(&Trace::parse(text.as_bytes()).unwrap(), &trace);
                prop_assert_eq!(trace.period(), recipe.duration);
                // A compound Poisson number: variance over mean is 2 burst - 1. Six deviations, and D4's one.
                let wanted = cellular.mean.as_bps_f64() * seconds as f64 / 12_000.0;
                let tolerance = 6.0 * ((2.0 * cellular.burst - 1.0) * wanted).sqrt() + 6.0 * cellular.burst + 1.0;
                let found = trace.opportunities() as f64;
                prop_assert!((found - wanted).abs() <= tolerance, "{} for {}", found, wanted);
            }
            // A short and slow one may draw no grant, or an outage as long as itself.
            Err(error) => prop_assert_eq!(error, RecipeError::Silent),
        }
    }
}
