use brakelight_core::path::{Output, PathElement};
use brakelight_core::queue::Place;
use brakelight_core::random::Random;
use brakelight_core::units::Limit;
use brakelight_routers::QueueConfig;
use brakelight_testkit::packet::Sample;
use proptest::prelude::*;

use super::*;
use crate::elements::{AnyElement, AnyLink};
use crate::link::{fixed, steps, traced};
use crate::trace::Trace;

const PACKET: u32 = 1500;

fn us(micros: u64) -> Time {
    Time::from_nanos(1000 * micros)
}

fn fixed(mbps: u64) -> AnyService {
    let values = fixed::Values { rate: Rate::from_mbps(mbps), ..fixed::Values::default() };
    AnyService::Fixed(fixed::Fixed::new(&fixed::Config::new(values).unwrap()))
}

/// An opportunity of 1500 bytes every 2 ms from 2 ms on, 6 Mbit/s.
fn traced() -> AnyService {
    let values = traced::Values { opportunity: Bytes(1500), overhead: Bytes(0), ..traced::Values::default() };
    let trace = Trace::from_millis((1..=500).map(|index| 2 * index)).unwrap();
    AnyService::Traced(traced::Traced::new(&traced::Config::new(values).unwrap(), trace))
}

fn link(service: AnyService) -> AnyLink<Sample> {
    let place =
        Place { limit: Limit::Packets(250), nominal: service.nominal(), random: Random::stream(1, "queue") };
    Link::new(service, QueueConfig::new("droptail", &[]).unwrap().build(&place))
}

/// When the packets leave, in microseconds.
fn departures(link: &mut impl PathElement<Sample>, until: Time) -> Vec<u64> {
    let mut left = Vec::new();
    while let Some(output) = link.poll(until) {
        assert!(matches!(output, Output::Departed(_)));
        left.push(output.at().as_nanos() / 1000);
    }
    left
}

#[test]
fn a_packet_under_way_goes_on_at_the_new_rate() {
    // 12 Mbit/s: 1 ms each. At 0.5 ms half of the first is left, which takes 1 ms at 6 Mbit/s.
    let mut link = link(fixed(12));
    (0..3).for_each(|id| link.accept(us(0), Sample::new(id, PACKET)));
    link.set_rate(us(500), Rate::from_mbps(6));
    assert_eq!(departures(&mut link, us(4000)), [1500, 3500]);
    // A quarter of the third is left at 5 ms; at 24 Mbit/s that takes 125 us.
    link.set_rate(us(5000), Rate::from_mbps(24));
    assert_eq!(departures(&mut link, us(9000)), [5125]);
    assert_eq!(link.next_wakeup(), None);
}

#[test]
fn at_rate_zero_nothing_moves_until_another_is_set() {
    let mut link = link(fixed(12));
    link.accept(us(0), Sample::new(0, PACKET));
    link.set_rate(us(250), Rate::ZERO);
    link.accept(us(300), Sample::new(1, PACKET));
    assert_eq!((departures(&mut link, us(99_000)), link.next_wakeup()), (vec![], None));
    link.set_rate(us(100_000), Rate::from_mbps(12));
    assert_eq!(departures(&mut link, us(200_000)), [100_750, 101_750]);
    // On an idle link, too.
    link.set_rate(us(200_000), Rate::ZERO);
    link.accept(us(201_000), Sample::new(2, PACKET));
    assert!(departures(&mut link, us(300_000)).is_empty());
    link.set_rate(us(300_000), Rate::from_mbps(12));
    assert_eq!(departures(&mut link, us(400_000)), [301_000]);
}

#[test]
fn a_trace_ends_where_a_rate_is_set() {
    // The first opportunity carries packet 0; half of packet 2's 3000 bytes are carried at 4 ms.
    let mut link = link(traced());
    link.accept(us(0), Sample::new(0, PACKET));
    link.accept(us(0), Sample::new(1, 3000));
    link.accept(us(0), Sample::new(2, PACKET));
    assert_eq!(departures(&mut link, us(5000)), [2000]);
    link.set_rate(us(5000), Rate::from_mbps(12));
    assert_eq!(departures(&mut link, us(20_000)), [6000, 7000]);
    // What passed is what the trace had: two opportunities in 0 <= t < 5 ms; then 12 Mbit/s.
    assert_eq!(link.capacity_between(us(0), us(5000)), Bytes(3000));
    assert_eq!(link.capacity_between(us(3000), us(9000)), Bytes(1500 + 6000));
}

#[test]
fn a_schedule_of_steps_ends_where_a_rate_is_set() {
    let values = steps::Values {
        schedule: steps::Schedule(vec![
            (Duration::from_millis(1), Rate::from_mbps(12)),
            (Duration::from_millis(1), Rate::from_mbps(6)),
        ]),
        ..steps::Values::default()
    };
    let mut link = link(AnyService::Steps(steps::Steps::new(&steps::Config::new(values).unwrap())));
    link.accept(us(500), Sample::new(0, PACKET));
    // Half is carried by 1 ms and a quarter more by 1.5 ms; the last quarter takes 1 ms at 3 Mbit/s.
    link.set_rate(us(1500), Rate::from_mbps(3));
    assert_eq!(departures(&mut link, us(9000)), [2500]);
    assert_eq!(link.capacity_between(us(0), us(2500)), Bytes(1500 + 375 + 375));
}

#[test]
fn a_window_that_reaches_back_covers_both_rates() {
    let mut service = fixed(12);
    service.set_rate(Time::from_millis(100), Rate::from_mbps(24), false);
    let rate = |service: &mut AnyService, now, window| {
        service.capacity(Time::from_millis(now), Duration::from_millis(window)).bps()
    };
    assert_eq!(rate(&mut service, 120, 40), 18_000_000);
    assert_eq!(rate(&mut service, 120, 20), 24_000_000);
    service.set_rate(Time::from_millis(110), Rate::from_mbps(6), false);
    assert_eq!(rate(&mut service, 120, 20), 15_000_000);
    // Before the run the link is taken to have had its nominal rate.
    assert_eq!(rate(&mut service, 120, 240), (12 * 220 + 24 * 10 + 6 * 10) * 1_000_000 / 240);
}

#[test]
fn what_passes_unused_is_counted_across_a_change() {
    let mut link = link(fixed(12));
    link.set_rate(us(1000), Rate::from_mbps(24));
    link.set_rate(us(2000), Rate::from_mbps(6));
    link.service.wake(us(3000));
    assert_eq!(link.service.unused(), Bytes(1500 + 3000 + 750));
}

#[test]
fn a_radio_has_no_rate_to_set() {
    let mut element: AnyElement<Sample> = AnyElement::Link(link(fixed(12)));
    assert!(element.set_rate(us(0), Rate::from_mbps(1)));
    let site = brakelight_core::path::Site {
        random: Random::stream(1, "radio"),
        ids: brakelight_core::packet::PacketId(0),
    };
    let queue = QueueConfig::new("droptail", &[]).unwrap();
    let radio = crate::elements::RadioConfig::new("wifi", &[]).unwrap();
    let mut element: AnyElement<Sample> = AnyElement::Radio(radio.build(&queue, Limit::Packets(9), site));
    assert!(!element.set_rate(us(0), Rate::from_mbps(1)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A rate set at the times of a schedule gives the departures and the capacities of the schedule.
    #[test]
    fn rates_set_by_hand_are_a_schedule(
        rates in prop::collection::vec((1_u64..20_000_000, prop_oneof![1 => Just(0), 4 => 1_u64..50_000_000]), 1..8),
        arrivals in prop::collection::vec((0_u64..2_000_000, 40_u32..9_000), 1..40),
    ) {
        let last = Rate::from_mbps(3);
        let mut schedule: Vec<_> =
            rates.iter().map(|&(nanos, bps)| (Duration::from_nanos(nanos), Rate::from_bps(bps))).collect();
        schedule.push((Duration::from_secs(1), last));
        let values = steps::Values { schedule: steps::Schedule(schedule.clone()), repeat: false, ..steps::Values::default() };
        let mut by_schedule = link(AnyService::Steps(steps::Steps::new(&steps::Config::new(values).unwrap())));
        let mut by_hand = link(fixed(1));
        by_hand.set_rate(Time::ZERO, schedule[0].1);
        let mut changes = Vec::new();
        let mut at = Time::ZERO;
        for pair in schedule.windows(2) {
            at += pair[0].0;
            changes.push((at, pair[1].1));
        }
        let (mut now, mut changes) = (Time::ZERO, changes.into_iter().peekable());
        let (mut left, mut expected) = (Vec::new(), Vec::new());
        let end = Time::from_secs(90);
        for (index, time) in arrivals.iter().map(|&(after, size)| (after, Some(size))).chain([(0, None)]).enumerate() {
            let (after, size) = time;
            now = if size.is_some() { now + Duration::from_nanos(after) } else { end };
            while let Some((at, rate)) = changes.next_if(|(at, _)| *at <= now) {
                by_hand.set_rate(at, rate);
            }
            if let Some(size) = size {
                by_hand.accept(now, Sample::new(index as u64, size));
                by_schedule.accept(now, Sample::new(index as u64, size));
            }
            while let Some(output) = by_hand.poll(now) { left.push((output.packet().id, output.at())); }
            while let Some(output) = by_schedule.poll(now) { expected.push((output.packet().id, output.at())); }
        }
        prop_assert_eq!(left.len(), expected.len());
        for (left, expected) in left.iter().zip(&expected) {
            prop_assert_eq!(left.0, expected.0);
            // A step that ends within a nanosecond of a departure rounds it otherwise.
            let apart = left.1.as_nanos().abs_diff(expected.1.as_nanos());
            prop_assert!(apart <= 1, "{:?} and {:?}", left, expected);
        }
        for (from, to) in [(0, 7_000_000), (1_234_567, 90_000_000), (5, 6)] {
            let (from, to) = (Time::from_nanos(from), Time::from_nanos(to));
            prop_assert_eq!(by_hand.capacity_between(from, to), by_schedule.capacity_between(from, to));
        }
    }
}
