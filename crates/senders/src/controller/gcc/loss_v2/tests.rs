//! The numbers that are not worked out beside the assertion come from a second calculation, written from the
//! library's source in another language.

use super::super::LossBased;
use super::*;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(40);
const QUARTER: Duration = Duration::from_millis(250);

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} within {tolerance}");
}

/// A model whose updates are observations of a quarter of a second each.
struct Fed {
    model: LossV2,
    now: Time,
}

impl Fed {
    fn new() -> Self {
        Fed { model: LossV2::new(5e3, 1e9), now: Time::ZERO }
    }

    /// Tells of `bytes` in the next quarter of a second, of which `lost` are lost.
    fn update(&mut self, bytes: u64, lost: u64, delay_bps: f64, throughput_bps: Option<f64>, limited: bool) {
        self.model.count(self.now, Bytes(bytes - lost), false);
        self.now += QUARTER;
        self.model.count(self.now, Bytes(lost), true);
        self.model.update(delay_bps, throughput_bps, limited);
    }

    /// Sends for a quarter of a second at what the model allows, over a path that loses the share
    /// `loss(rate)`, and returns the rate.
    fn send(&mut self, delay_bps: f64, loss: impl Fn(f64) -> f64) -> f64 {
        let rate_bps = self.model.bps().unwrap_or(delay_bps).min(delay_bps);
        let bytes = (rate_bps / 32.0) as u64;
        let lost = (bytes as f64 * loss(rate_bps)) as u64;
        self.update(bytes, lost, delay_bps, Some(32.0 * (bytes - lost) as f64), false);
        rate_bps
    }
}

/// A model that saw one observation: 100 kB at 1 Mbit/s, of which 10 kB were lost.
fn one_in_ten() -> LossV2 {
    let mut model = LossV2::new(5e3, 1e9);
    let observation = Observation { number: 0, bytes: 100e3, lost_bytes: 10e3, rate_bps: 1e6 };
    (model.observations[0], model.observed, model.average_loss) = (Some(observation), 1, 0.1);
    model
}

#[test]
fn a_newton_step_goes_three_quarters_of_the_way_that_the_curve_tells() {
    let (model, below) = (one_in_ten(), Channel { bps: 2e6, inherent_loss: 0.01 });
    // L' = 10 / 0.01 - 90 / 0.99 = 909.0909, and L" = -(10 / 0.0001 + 90 / 0.9801) = -100091.827.
    let first = model.newton(below);
    assert_near(first.inherent_loss, 0.01 + 0.75 * 909.0909 / 100_091.827, 1e-9);
    let second = model.newton(first);
    assert_near(second.inherent_loss, 0.027_452_422_44, 1e-9);
    // It ends at the share that was lost, which is the bound, too: 0.05 + 100 kbit/s / 2 Mbit/s.
    let last = (0..30).fold(below, |channel, _| model.newton(channel));
    assert_near(last.inherent_loss, 0.1, 1e-6);
    // Where a fifth exceeds the capacity, p = 0.01 + 0.99 * 0.2 = 0.208 is more than was lost.
    let above = model.newton(Channel { bps: 0.8e6, inherent_loss: 0.01 });
    assert_near(above.inherent_loss, LEAST_LOSS, 0.0);
}

#[test]
fn the_objective_is_the_likelihood_and_a_preference_for_high_rates() {
    let (model, channel) = (one_in_ten(), Channel { bps: 2e6, inherent_loss: 0.01 });
    // (0.2 - 0.1) / (0.002 + 0.1) * (0.0002 * 2000 + 0.02 ln 2001)
    let bias = 0.1 / 0.102 * (0.4 + 0.02 * 2001_f64.ln());
    assert_near(model.bias(2e6), bias, 1e-12);
    let likelihood = 10.0 * 0.01_f64.ln() + 90.0 * 0.99_f64.ln();
    assert_near(model.objective(channel), likelihood + 100.0 * bias, 1e-9);
    assert_near(model.objective(channel), 7.164_164_647_78, 1e-9);
    // Above 20 % low rates are preferred.
    let lossy = LossV2 { average_loss: 0.3, ..one_in_ten() };
    assert!(lossy.bias(2e6) < lossy.bias(1e6) && lossy.bias(1e6) < 0.0);
}

#[test]
fn the_share_of_losses_leaves_out_the_least_and_the_most_lossy_unless_much_was_sent_of_a_sudden() {
    // Of three observations all count: (1000 + 0.9 * 0 + 0.81 * 4000) / (2.71 * 10,000).
    let mut fed = Fed::new();
    for lost in [4000, 0, 1000] {
        fed.update(10_000, lost, 1e6, None, false);
    }
    assert_near(fed.model.average_loss, 4240.0 / 27_100.0, 1e-12);
    // Of four the second and third.
    fed.update(10_000, 3000, 1e6, None, false);
    assert_near(fed.model.average_loss, (3000.0 + 0.9 * 1000.0) / 19_000.0, 1e-12);
    // Twice as much as usual, and half of it lost.
    fed.update(20_000, 10_000, 1e6, None, false);
    let (bytes, lost) = (20.0 + 9.0 + 8.1 + 7.29 + 6.561, 10.0 + 2.7 + 0.81 + 0.6561 * 4.0);
    assert_near(fed.model.average_loss, lost / bytes, 1e-12);
}

#[test]
fn without_losses_the_delay_is_the_only_bound() {
    let mut fed = Fed::new();
    for (index, delay_bps) in [1.2e6, 1.3e6, 2.5e6, 0.8e6, 3e6].into_iter().enumerate() {
        assert_eq!(fed.model.bps().is_some(), index >= 3, "three observations first");
        fed.update(31_250, 0, delay_bps, Some(0.5e6), false);
        assert_near(fed.model.result_bps, delay_bps, 0.0);
        assert_eq!(fed.model.state(), State::Delay);
    }
}

#[test]
fn an_observation_takes_250_ms_of_sending() {
    let mut model = LossV2::new(5e3, 1e9);
    for packet in 0..=30 {
        model.count(Time::from_millis(10 * packet), Bytes(1000), false);
        model.update(1e6, None, false);
        assert_eq!(model.observed, u64::from(packet >= 25), "packet {packet}");
    }
    // 26 packets in 250 ms.
    assert_near(model.observations[0].unwrap().rate_bps, 8.0 * 26_000.0 / 0.25, 1e-6);
    // What was sent before the last observation ended makes no new one.
    model.count(Time::from_millis(200), Bytes(1000), true);
    model.update(1e6, None, false);
    assert_eq!(model.observed, 1);
}

#[test]
fn a_tenth_lost_at_random_is_learned_and_does_not_lower_the_rate_further() {
    let mut fed = Fed::new();
    // 1 Mbit/s all the time.
    for _ in 0..20 {
        fed.update(31_250, 3125, 1.2e6, Some(0.9e6), false);
    }
    assert_near(fed.model.inherent_loss(), 0.1, 1e-3);
    for _ in 0..100 {
        fed.update(31_250, 3125, 1.2e6, Some(0.9e6), false);
        assert!(fed.model.result_bps >= 0.9e6, "{}", fed.model.result_bps);
    }
    // The draft's rule falls by a twentieth of 11 % each second.
    let mut draft = LossBased::new(0.02, 0.1, 1e6, 5e3);
    for second in 0..20 {
        draft.count(89, 11);
        draft.update(1.2e6, None, RTT, Time::from_millis(1000 * second));
    }
    assert!(draft.bps() < 0.4e6, "{}", draft.bps());
}

#[test]
fn losses_below_the_bound_are_learned_and_cost_little_at_any_time() {
    for (loss, lowest) in [(0.02, 0.97), (0.05, 0.94), (0.08, 0.84)] {
        let mut fed = Fed::new();
        let least = (0..240).map(|_| fed.send(2.5e6, |_| loss)).fold(f64::INFINITY, f64::min);
        assert!(least > lowest * 2.5e6, "{loss}: {least}");
        assert_near(fed.model.inherent_loss(), loss, 0.01);
    }
}

#[test]
fn overload_lowers_the_rate_to_the_capacity() {
    for capacity_bps in [0.5e6, 1e6, 2e6] {
        let mut fed = Fed::new();
        let overload = |rate_bps: f64| (1.0 - capacity_bps / rate_bps).max(0.0);
        let rates: std::vec::Vec<f64> = (0..240).map(|_| fed.send(3e6, overload)).collect();
        // From the third observation on, and never more than 1.2 times of what arrives.
        for rate_bps in &rates[3..] {
            let share = rate_bps / capacity_bps;
            assert!((0.99..=1.21).contains(&share), "{share} of {capacity_bps}");
        }
        let mean_bps = rates[8..].iter().sum::<f64>() / rates[8..].len() as f64;
        assert!(mean_bps < 1.16 * capacity_bps, "{mean_bps} of {capacity_bps}");
    }
}

#[test]
fn a_changing_path_gives_what_the_second_calculation_gives() {
    let expected = [
        (2, State::Delay, 1.96e6, 0.0, 0.037_52),
        (13, State::Decreasing, 1.92e6, 0.054_153_4, 0.055_74),
        (23, State::Increasing, 1_920_001.0, 0.062_763_3, 0.065_62),
        (42, State::Increasing, 1_920_002.0, 0.002_432_7, 0.000_60),
        (45, State::Delay, 2e6, 0.001, 0.0),
        (57, State::Delay, 1.96e6, 0.0, 0.055_53),
        (68, State::Increasing, 1_920_001.0, 0.030_407_7, 0.025_12),
        (75, State::Decreasing, 1.92e6, 0.009_211_5, 0.01),
    ];
    let mut fed = Fed::new();
    for index in 0..90_u64 {
        let bytes = 40_000 + 1500 * (index * 7 % 13);
        let loss = match index {
            0..30 => (index * 5 % 9) as f64 / 60.0,
            30..55 => 0.0,
            55..58 => 0.2,
            _ => 0.01,
        };
        let delay_bps = 2e6 - 20e3 * (index % 5) as f64;
        let throughput = (index >= 4).then_some(500e3 + 20e3 * (index % 4) as f64);
        fed.update(bytes, (bytes as f64 * loss) as u64, delay_bps, throughput, (20..30).contains(&index));
        for (_, state, bps, inherent, average) in expected.iter().filter(|row| row.0 == index) {
            assert_eq!(fed.model.state(), *state, "{index}");
            assert_near(fed.model.result_bps, *bps, 0.1);
            assert_near(fed.model.inherent_loss(), *inherent, 1e-7);
            assert_near(fed.model.average_loss, *average, 1e-5);
        }
    }
}

#[test]
fn a_hold_lasts_300_ms_and_the_next_one_600() {
    let mut fed = Fed::new();
    for _ in 0..4 {
        fed.update(62_500, 0, 2e6, Some(1e6), false);
    }
    // A quarter is lost: the rate falls below that of the delay.
    while fed.model.state() == State::Delay {
        fed.update(62_500, 15_625, 2e6, Some(1e6), false);
    }
    assert_eq!(fed.model.hold.until, Some(fed.now + Duration::from_millis(300)));
    assert_eq!(fed.model.hold.next, Duration::from_millis(600));
    let held_bps = fed.model.result_bps;
    fed.update(62_500, 0, 2e6, Some(1e6), false);
    assert!(fed.model.result_bps <= held_bps, "{} > {held_bps}", fed.model.result_bps);
    // Once nothing is lost for long the delay is the limit again, and the next hold is short.
    for _ in 0..60 {
        fed.update(62_500, 0, 2e6, Some(1.9e6), false);
    }
    assert_eq!(fed.model.state(), State::Delay);
    assert_eq!(fed.model.hold.next, FIRST_HOLD);
}

/// A quarter or so: bytes, share lost, rate by the delay, what arrives, whether the application is the limit,
/// and its length in ms.
type Quarter = (u64, f64, f64, Option<f64>, bool, u64);

fn quarter() -> impl Strategy<Value = Quarter> {
    let rates = (5e3..1e8_f64, prop::option::of(0.0..1e8_f64));
    (0..200_000_u64, 0.0..=1.0_f64, rates, any::<bool>(), 1..600_u64)
        .prop_map(|(bytes, loss, (delay, arrives), limited, ms)| (bytes, loss, delay, arrives, limited, ms))
}

proptest! {
    #[test]
    fn the_target_is_a_number_between_the_least_rate_and_that_of_the_delay(
        quarters in prop::collection::vec(quarter(), 1..120)
    ) {
        let (mut model, mut now) = (LossV2::new(5e3, 1e8), Time::ZERO);
        let mut target = LossBased::new(0.02, 0.1, 300e3, 5e3);
        for (bytes, loss, delay_bps, throughput_bps, limited, time_ms) in quarters {
            let lost = (bytes as f64 * loss) as u64;
            model.count(now, Bytes(bytes - lost), false);
            now += Duration::from_millis(time_ms);
            model.count(now, Bytes(lost), true);
            target.count(20, (20.0 * loss) as usize);
            model.update(delay_bps, throughput_bps, limited);
            target.update(delay_bps, model.bps(), RTT, now);
            prop_assert!(target.bps() >= 5e3 && target.bps() <= delay_bps, "{}", target.bps());
            prop_assert!(model.bps().is_none_or(|bps| bps.is_finite() && bps >= 5e3));
            prop_assert!((0.0..=1.0).contains(&model.inherent_loss()), "{}", model.inherent_loss());
            prop_assert!((0.0..=1.0).contains(&model.average_loss), "{}", model.average_loss);
        }
    }
}
