use std::vec;
use std::vec::Vec;

use brakelight_core::random::Random;

use super::*;

const MODEL: Model = Model {
    tick: Duration::from_millis(20),
    max_rate: 1000.0,
    sigma: 200.0,
    escape_rate: 1.0,
    quantile: 0.05,
    ticks: Ticks::Independent,
};

/// The transition matrix by its definition, entry by entry.
fn matrix() -> Vec<Vec<f64>> {
    let width = 1000.0 / 255.0;
    let deviation = 200.0 * 0.02_f64.sqrt();
    let below = |x: f64| 0.5 * libm::erfc(-x / deviation / 2.0_f64.sqrt());
    let mut rows: Vec<Vec<f64>> = (0..RATES)
        .map(|i| {
            (0..RATES)
                .map(|j| {
                    let step = (j as f64 - i as f64) * width;
                    if step.abs() > 5.0 * deviation + width {
                        return 0.0;
                    }
                    let low = if j == 0 { 0.0 } else { below(step - width / 2.0) };
                    let high = if j == RATES - 1 { 1.0 } else { below(step + width / 2.0) };
                    high - low
                })
                .collect()
        })
        .collect();
    let stay = (-0.02_f64).exp();
    let leaving: f64 = rows[0][1..].iter().sum();
    rows[0].iter_mut().for_each(|p| *p *= (1.0 - stay) / leaving);
    rows[0][0] = stay;
    for row in &mut rows {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
    }
    rows
}

fn poisson_row(i: usize, counts: usize) -> Vec<f64> {
    let mean = 1000.0 * i as f64 / 255.0 * 0.02;
    (0..counts)
        .map(|k| {
            let log = k as f64 * mean.max(1e-300).ln() - mean - libm::lgamma(k as f64 + 1.0);
            if mean == 0.0 { f64::from(u8::from(k == 0)) } else { log.exp() }
        })
        .collect()
}

fn step(from: &[f64], matrix: &[Vec<f64>]) -> Vec<f64> {
    let mut to = vec![0.0; RATES];
    for (p, row) in from.iter().zip(matrix) {
        for (to, a) in to.iter_mut().zip(row) {
            *to += p * a;
        }
    }
    to
}

fn quantile(counts: &[f64]) -> u16 {
    let mut sum = 0.0;
    counts
        .iter()
        .position(|p| {
            sum += p;
            sum >= 0.05
        })
        .expect("a distribution") as u16
}

/// Forward in time: the joint distribution of the rate and the packets so far, tick by tick.
fn joint_by_hand(start: &[f64; RATES], matrix: &[Vec<f64>]) -> [u16; HORIZON] {
    let most = 500;
    let mut state = vec![vec![0.0; most]; RATES];
    for (row, p) in state.iter_mut().zip(start) {
        row[0] = *p;
    }
    core::array::from_fn(|tick| {
        if tick > 0 {
            let mut next = vec![vec![0.0; most]; RATES];
            for (row, from) in state.iter().zip(matrix) {
                for (next, a) in next.iter_mut().zip(from).filter(|(_, a)| **a > 0.0) {
                    for (next, p) in next.iter_mut().zip(row) {
                        *next += a * p;
                    }
                }
            }
            state = next;
        }
        for (i, row) in state.iter_mut().enumerate() {
            let arrivals = poisson_row(i, 80);
            let mut later = vec![0.0; most];
            for (c, p) in row.iter().enumerate().filter(|(_, p)| **p > 1e-15) {
                for (k, a) in arrivals.iter().enumerate().filter(|(k, _)| c + k < most) {
                    later[c + k] += p * a;
                }
            }
            *row = later;
        }
        let totals: Vec<f64> = (0..most).map(|c| state.iter().map(|row| row[c]).sum()).collect();
        quantile(&totals)
    })
}

/// As the authors' code does it: each rate evolves by itself, its ticks are convolved, and the results are
/// mixed.
fn independent_by_hand(start: &[f64; RATES], matrix: &[Vec<f64>]) -> [u16; HORIZON] {
    let most = 500;
    let mut mixed = vec![vec![0.0; most]; HORIZON];
    for (i, weight) in start.iter().enumerate().filter(|(_, p)| **p > 1e-12) {
        let mut pmf = vec![0.0; RATES];
        pmf[i] = 1.0;
        let mut total = vec![1.0];
        for mixed in &mut mixed {
            let mut tick = vec![0.0; 80];
            for (j, p) in pmf.iter().enumerate().filter(|(_, p)| **p > 1e-15) {
                for (tick, a) in tick.iter_mut().zip(poisson_row(j, 80)) {
                    *tick += p * a;
                }
            }
            total = convolve(&total, &tick);
            total.truncate(most);
            for (mixed, p) in mixed.iter_mut().zip(&total) {
                *mixed += weight * p;
            }
            pmf = step(&pmf, matrix);
        }
    }
    core::array::from_fn(|tick| quantile(&mixed[tick]))
}

/// States to forecast from: no knowledge, a steady link, a link that slows down, an outage.
fn states(ticks: Ticks) -> Vec<PoissonBrownian> {
    let fresh = PoissonBrownian::new(Arc::new(Tables::new(&Model { ticks, ..MODEL })));
    let observed = |counts: &[usize]| {
        let mut filter = fresh.clone();
        for count in counts {
            filter.evolve();
            filter.observe(*count);
        }
        filter
    };
    vec![
        fresh.clone(),
        observed(&[8; 40]),
        observed(&[14, 15, 13, 12, 9, 5, 3, 2]),
        observed(&[5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ]
}

#[test]
fn an_outage_is_recognised_however_little_the_rate_wanders() {
    for sigma in [1.0, 1.6, 1.8, 200.0] {
        let tables = Arc::new(Tables::new(&Model { sigma, ..MODEL }));
        let mut filter = PoissonBrownian::new(tables);
        for _ in 0..50 {
            filter.evolve();
            filter.observe(0);
        }
        let [outage, ..] = *filter.probabilities();
        assert!(outage > 0.5, "sigma {sigma}: {outage}");
    }
}

#[test]
fn forecasts_are_the_quantiles_of_the_model() {
    let matrix = matrix();
    for mut filter in states(Ticks::Joint) {
        let by_hand = joint_by_hand(filter.probabilities(), &matrix);
        assert_eq!(filter.forecast(), by_hand);
    }
}

#[test]
fn independent_forecasts_are_those_of_the_authors_code() {
    let matrix = matrix();
    for mut filter in states(Ticks::Independent) {
        let by_hand = independent_by_hand(filter.probabilities(), &matrix);
        assert_eq!(filter.forecast(), by_hand);
    }
}

#[test]
fn a_tick_is_a_step_of_the_matrix() {
    let matrix = matrix();
    for mut filter in states(Ticks::Independent) {
        let expected = step(filter.probabilities(), &matrix);
        filter.evolve();
        for (p, e) in filter.probabilities().iter().zip(&expected) {
            assert!((p - e).abs() < 1e-6, "{p} {e}");
        }
    }
}

#[test]
fn the_rate_is_learnt_and_an_outage_is_believed() {
    let [_, steady, _, outage] = &mut states(Ticks::Joint)[..] else { panic!("four states") };
    // 8 packets in 20 ms are 400 a second.
    assert!((steady.mean_rate(&MODEL) - 400.0).abs() < 20.0, "{}", steady.mean_rate(&MODEL));
    assert!(outage.probabilities()[0] > 0.5, "{}", outage.probabilities()[0]);
    assert_eq!(outage.forecast(), [0; HORIZON]);
}

#[test]
fn cautious_forecasts_stay_below_what_the_rate_would_deliver() {
    let [_, steady, ..] = &mut states(Ticks::Joint)[..] else { panic!("four states") };
    for (tick, packets) in steady.forecast().into_iter().enumerate() {
        let mean = 8.0 * (tick + 1) as f64;
        assert!(
            f64::from(packets) < mean && f64::from(packets) > mean - 4.0 * mean.sqrt() - 4.0,
            "{packets} of {mean}"
        );
    }
}

#[test]
fn an_impossible_observation_starts_over() {
    let mut filter = PoissonBrownian::new(Arc::new(Tables::new(&MODEL)));
    for _ in 0..3000 {
        filter.evolve();
        filter.observe(0);
    }
    filter.observe(64);
    let sum: f64 = filter.probabilities().iter().sum();
    assert!((sum - 1.0).abs() < 1e-9 && filter.probabilities().iter().all(|p| p.is_finite()));
}

/// The search begins at the last forecast; where that was must not matter.
#[test]
fn a_forecast_is_the_first_row_that_reaches_the_quantile_whatever_was_forecast_before() {
    let mut random = Random::stream(1, "forecasts");
    let mean = |weights: &[f32; RATES], row: &[f32]| {
        let mut sums = [0.0_f32; 8];
        for (i, (weight, value)) in weights.iter().zip(row).enumerate() {
            sums[i % 8] += weight * value;
        }
        sums.iter().sum::<f32>()
    };
    for mut filter in states(Ticks::Independent) {
        let weights = filter.probability.map(|p| p as f32);
        let tables = filter.tables.clone();
        let first_row: Vec<u16> = (tables.at_most.iter())
            .map(|table| {
                let short = table.chunks(RATES).take_while(|row| mean(&weights, row) < tables.quantile);
                short.count() as u16
            })
            .collect();
        for _ in 0..100 {
            filter.last = core::array::from_fn(|_| (random.bits() % 400) as u16);
            assert_eq!(filter.forecast()[..], first_row);
        }
        assert_eq!(filter.forecast()[..], first_row);
    }
}

/// Positive numbers of very different sizes, and zeros.
fn numbers(count: usize, random: &mut Random) -> Vec<f64> {
    let number = |random: &mut Random| match random.bits() % 5 {
        0 => 0.0,
        power => random.uniform() * libm::pow(10.0, -10.0 * power as f64),
    };
    (0..count).map(|_| number(random)).collect()
}

#[test]
fn sums_side_by_side_are_those_of_one_after_the_other_to_the_bit() {
    let mut random = Random::stream(1, "numbers");
    for sigma in [1.0, 200.0, 3000.0, 10_000.0] {
        let transition = Transition::new(&Model { sigma, ..MODEL });
        let from: [f64; RATES] = numbers(RATES, &mut random).try_into().unwrap();
        let (mut to, mut padded) = (from, vec![0.0; RATES + 2 * transition.reach]);
        // Whatever went before leaves nothing behind.
        transition.apply(&mut [1.0; RATES], &mut padded);
        transition.apply(&mut to, &mut padded);
        for (j, to) in to.into_iter().enumerate() {
            let reach = transition.reach;
            let sources = j.saturating_sub(reach).max(1)..=(j + reach).min(RATES - 1);
            let mut sum = 0.0;
            for i in sources {
                let is_edge = j == 0 || j == RATES - 1;
                let share =
                    if is_edge { transition.edge[i.abs_diff(j)] } else { transition.kernel[i + reach - j] };
                sum += from[i] * share;
            }
            assert_eq!(to.to_bits(), (sum + from[0] * transition.escape[j]).to_bits(), "{sigma}, {j}");
        }
    }
    for (long, short) in [(1, 1), (7, 3), (41, 41), (300, 41), (5, 60)] {
        let (a, b) = (numbers(long, &mut random), numbers(short, &mut random));
        let mut sums = vec![0.0; long + short - 1];
        for (i, a) in a.iter().enumerate() {
            for (sum, b) in sums[i..].iter_mut().zip(&b) {
                *sum += a * b;
            }
        }
        let bits = |sums: Vec<f64>| sums.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(convolve(&a, &b)), bits(sums), "{long} and {short}");
    }
}
