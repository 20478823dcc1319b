use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

#[test]
fn the_window_holds_its_end_and_not_its_start() {
    let mut rate = SlidingRate::new(Duration::from_millis(20));
    rate.add(ms(0), Bytes(1500));
    rate.add(ms(5), Bytes(1000));
    assert_eq!(rate.bytes(ms(19)), Bytes(2500));
    assert_eq!(rate.bytes(ms(20)), Bytes(1000));
    assert_eq!(rate.bytes(ms(25)), Bytes(0));
}

#[test]
fn a_young_run_divides_by_the_whole_window() {
    let mut rate = SlidingRate::new(Duration::from_millis(20));
    rate.add(ms(0), Bytes(1500));
    // 1500 * 8 bits in 20 ms, not in the 1 ms that has passed.
    assert_eq!(rate.rate(ms(1)), Rate::from_bps(600_000));
}

#[test]
fn a_burst_takes_one_entry() {
    let mut rate = SlidingRate::new(Duration::from_millis(20));
    for _ in 0..100 {
        rate.add(ms(7), Bytes(10));
    }
    assert_eq!(rate.passed.len(), 1);
    assert_eq!(rate.bytes(ms(7)), Bytes(1000));
}

proptest! {
    #[test]
    fn it_equals_the_sum_over_the_window_computed_anew(
        steps in prop::collection::vec((0_u64..8_000_000, 0_u64..2000), 1..200),
        window in 1_u64..40_000_000,
    ) {
        let mut rate = SlidingRate::new(Duration::from_nanos(window));
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for (wait, bytes) in steps {
            now += wait;
            rate.add(Time::from_nanos(now), Bytes(bytes));
            all.push((now, bytes));
            let expected = all.iter().filter(|(at, _)| now - at < window).map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(rate.bytes(Time::from_nanos(now)), Bytes(expected));
        }
    }
}
