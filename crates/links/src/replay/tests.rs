use alloc::vec;

use brakelight_testkit::packet::Sample;
use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// 50 ms of delay, from 30 ms on 10 ms, from 60 ms on 20 ms; after 100 ms again.
fn falling(reorders: bool) -> Conditions {
    Conditions::new(ms(100), vec![(ms(0), ms(50)), (ms(30), ms(10)), (ms(60), ms(20))], vec![], reorders)
        .unwrap()
}

/// (id, ms) of what left when a packet came every 10 ms from 0 to 120 ms.
fn left(conditions: Conditions, offset: Duration) -> Vec<(u64, u64)> {
    let mut element = Replay::new(conditions, offset, Random::stream(1, "replay"));
    (0..=12).for_each(|index| element.accept(at(10 * index), Sample::new(index, 100)));
    let outputs = core::iter::from_fn(|| element.poll(at(1000)));
    outputs.map(|output| (output.packet().id, output.at().as_nanos() / 1_000_000)).collect()
}

#[test]
fn a_packet_takes_the_delay_recorded_when_it_enters_and_overtakes_none() {
    let leaves = left(falling(false), Duration::ZERO);
    let expected = [50, 60, 70, 70, 70, 70, 80, 90, 100, 110, 150, 160, 170];
    assert_eq!(leaves, (0..).zip(expected).collect::<Vec<_>>());
}

#[test]
fn packets_overtake_where_that_was_recorded() {
    let leaves = left(falling(true), Duration::ZERO);
    assert_eq!(leaves[..6], [(3, 40), (0, 50), (4, 50), (1, 60), (5, 60), (2, 70)]);
}

#[test]
fn a_run_may_begin_in_the_middle() {
    assert_eq!(left(falling(false), ms(60))[..5], [(0, 20), (1, 30), (2, 40), (3, 50), (4, 90)]);
}

#[test]
fn packets_are_lost_as_often_as_was_recorded() {
    let losses = vec![(ms(0), CERTAIN), (ms(10), 0), (ms(20), CERTAIN / 4)];
    let conditions = Conditions::new(ms(1000), vec![(ms(0), ms(5))], losses, false).unwrap();
    let mut element = Replay::new(conditions, Duration::ZERO, Random::stream(1, "replay"));
    let lost = |element: &mut Replay<Sample>, from: u64, count: u64| {
        let mut lost = 0;
        for index in 0..count {
            let now = at(from) + Duration::from_micros(index * 10);
            element.accept(now, Sample::new(index, 100));
            lost += core::iter::from_fn(|| element.poll(now))
                .filter(|output| matches!(output, Output::Dropped(_)))
                .count();
        }
        lost
    };
    assert_eq!(lost(&mut element, 0, 100), 100);
    assert_eq!(lost(&mut element, 10, 100), 0);
    let quarter = lost(&mut element, 20, 10_000);
    // Four standard deviations of a binomial of 10,000 draws: 173.
    assert!((2_327..=2_673).contains(&quarter), "{quarter}");
}

#[test]
fn losses_and_departures_come_in_order_of_time() {
    let losses = vec![(ms(0), 0), (ms(10), CERTAIN)];
    let conditions = Conditions::new(ms(100), vec![(ms(0), ms(5))], losses, false).unwrap();
    let mut element = Replay::new(conditions, Duration::ZERO, Random::stream(1, "replay"));
    element.accept(at(0), Sample::new(0, 100));
    element.accept(at(12), Sample::new(1, 100));
    assert_eq!(element.next_wakeup(), Some(at(5)));
    let outputs: Vec<Time> = core::iter::from_fn(|| element.poll(at(12))).map(|output| output.at()).collect();
    assert_eq!(outputs, [at(5), at(12)]);
}

#[test]
fn quantiles_count_how_long_a_delay_held() {
    let shares = [0.0, 0.4, 0.41, 0.5, 0.8, 1.0];
    let expected = [10, 20, 20, 20, 50, 50].map(ms);
    assert_eq!(falling(false).delay_quantiles(shares), Some(expected));
    let none = Conditions::new(ms(100), vec![], vec![], false).unwrap();
    assert_eq!(none.delay_quantiles([0.5]), None);
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let refused = |period, delays: &[(u64, u64)], losses: &[(u64, u32)]| {
        let delays = delays.iter().map(|&(from, delay)| (ms(from), ms(delay))).collect();
        let losses = losses.iter().map(|&(from, loss)| (ms(from), loss)).collect();
        Conditions::new(ms(period), delays, losses, false).unwrap_err()
    };
    assert_eq!(refused(0, &[], &[]), ConditionsError::ZeroPeriod);
    assert_eq!(refused(9, &[(1, 5)], &[]), ConditionsError::Late(ms(1)));
    assert_eq!(refused(9, &[(0, 5), (0, 6)], &[]), ConditionsError::NotLater(ms(0)));
    assert_eq!(refused(9, &[], &[(0, 5), (9, 6)]), ConditionsError::AfterPeriod(ms(9)));
    assert_eq!(refused(9, &[(0, 60_001)], &[]), ConditionsError::Delay(ms(60_001)));
    assert_eq!(refused(9, &[], &[(0, CERTAIN + 1)]), ConditionsError::Loss(CERTAIN + 1));
}

proptest! {
    #[test]
    fn a_value_holds_from_its_time_until_the_next_and_again_in_every_pass(
        gaps in prop::collection::vec(1_u64..40, 0..12),
        rest in 1_u64..40,
        asked in prop::collection::vec(0_u64..2_000, 1..60),
    ) {
        let mut from = 0;
        let mut values: Vec<(Duration, Duration)> = Vec::new();
        for gap in gaps {
            values.push((ms(from), ms(100 + from)));
            from += gap;
        }
        let period = from + rest;
        let conditions = Conditions::new(ms(period), values.clone(), vec![], false).unwrap();
        let expected = |millis: u64| {
            let begun = values.iter().filter(|(from, _)| *from <= ms(millis % period));
            begun.map(|(_, delay)| *delay).next_back().unwrap_or(Duration::ZERO)
        };
        let mut held = Held::never(Duration::ZERO);
        for millis in asked {
            if !held.holds(ms(millis)) {
                held = conditions.held(&conditions.delays, Duration::ZERO, ms(millis));
                prop_assert!(held.holds(ms(millis)));
            }
            prop_assert_eq!(held.value, expected(millis));
            prop_assert_eq!(conditions.delay(ms(millis)), expected(millis));
        }
    }
}
