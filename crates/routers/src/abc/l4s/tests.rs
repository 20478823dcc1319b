use alloc::vec::Vec;

use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::Parameters;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

/// Behind a link of 12 Mbit/s: 1500 bytes a millisecond.
fn router(options: &[(&str, &str)]) -> Bench<AbcL4s<Sample>> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(AbcL4s::new(&config, &place(10_000)), Rate::from_mbps(12))
}

fn scalable(bench: &mut Bench<AbcL4s<Sample>>, now: Time) -> u64 {
    bench.arrive(now, Encoding::L4s, Ecn::Ect1)
}

/// Whether the next packet leaves with a mark.
fn leaves_marked(bench: &mut Bench<AbcL4s<Sample>>, now: Time) -> bool {
    let left = bench.leave(now).expect("a packet waits");
    assert_eq!(left.mark == Mark::Ce, left.packet.ecn == Ecn::Ce);
    left.mark == Mark::Ce
}

/// Lets a packet through in each of so many milliseconds from `from` on.
fn pass(bench: &mut Bench<AbcL4s<Sample>>, from: u64, millis: u64) {
    for at in from..from + millis {
        scalable(bench, ms(at));
        bench.leave(ms(at));
    }
}

#[test]
fn a_steady_link_may_hold_its_target_and_two_packets() {
    let mut bench = router(&[("target", "4ms")]);
    pass(&mut bench, 0, 100);
    // 4 ms of 12 Mbit/s are four packets, and two more are the floor.
    for _ in 0..10 {
        scalable(&mut bench, ms(100));
    }
    // Nine stay behind the first, which came after the last service; it is spared.
    let marks: Vec<bool> = (101..111).map(|at| leaves_marked(&mut bench, ms(at))).collect();
    assert_eq!(marks, [false, true, true, false, false, false, false, false, false, false]);
    assert!((bench.shown("may_wait_bytes") - 9000.0).abs() < 1e-6);
    assert_eq!(bench.shown("forecast_error_bytes"), 0.0);
}

#[test]
fn packets_that_came_since_the_last_service_stood_in_no_queue() {
    let mut bench = router(&[("target", "0s")]);
    pass(&mut bench, 0, 100);
    // An aggregate of twenty takes all that came since the last one.
    for at in 100..120 {
        scalable(&mut bench, ms(at));
    }
    assert!((0..20).all(|_| !leaves_marked(&mut bench, ms(120))));
    // What an aggregate leaves over did stand.
    for at in 121..141 {
        scalable(&mut bench, ms(at));
    }
    assert!((0..10).all(|_| !leaves_marked(&mut bench, ms(141))));
    assert!(leaves_marked(&mut bench, ms(142)));
}

#[test]
fn the_error_of_the_forecast_follows_the_worked_example() {
    // The rate doubles at 100 ms. Within the next horizon of 40 ms more is carried than in the one before:
    // 1500 bytes more for each millisecond that has passed, up to 60,000, and then less again.
    let mut bench = router(&[("averaging", "10ms")]);
    pass(&mut bench, 0, 100);
    bench.link.capacity = Rate::from_mbps(24);
    pass(&mut bench, 100, 4);
    // Three bins were closed at the new rate, and one before them that began at the old one's last packet:
    // bins 99 to 102 hold what was carried between packets.
    let mut error = 0.0;
    for bins in 1..=4 {
        error += (1500.0 * f64::from(bins) - error) / 10.0;
    }
    assert!((bench.shown("forecast_error_bytes") - error).abs() < 1e-6, "{error}");
}

#[test]
fn a_link_that_moves_may_hold_more_than_one_that_does_not() {
    let [steady, moving] = [false, true].map(|moves| {
        let mut bench = router(&[]);
        for start in (0..1000).step_by(50) {
            if moves {
                bench.link.capacity = Rate::from_mbps(if start % 100 == 0 { 6 } else { 18 });
            }
            pass(&mut bench, start, 50);
        }
        scalable(&mut bench, ms(1000));
        bench.leave(ms(1000));
        bench.shown("may_wait_bytes")
    });
    assert_eq!(steady, 4500.0);
    // Steps of 12 Mbit/s every 50 ms: up to 60,000 bytes in 40 ms, half of that on average, times three.
    assert!((60_000.0..120_000.0).contains(&moving), "{moving}");
}

#[test]
fn a_long_pause_is_no_error_and_no_overflow() {
    let mut bench = router(&[]);
    pass(&mut bench, 0, 100);
    // Eleven days.
    pass(&mut bench, 1_000_000_000, 2);
    assert!(bench.shown("forecast_error_bytes") < 1.0);
    assert!((bench.shown("capacity_bps") - 12e6).abs() < 1.0);
}

#[test]
fn ect1_and_ce_wait_apart_from_the_others_and_only_ect1_is_marked_by_the_law() {
    let mut bench = router(&[("target", "0s"), ("cushion", "0")]);
    for (encoding, ecn) in [
        (Encoding::None, Ecn::NotEct),
        (Encoding::Classic, Ecn::Ect0),
        (Encoding::Classic, Ecn::Ce),
        (Encoding::L4s, Ecn::Ect1),
    ] {
        bench.arrive(ms(0), encoding, ecn);
    }
    assert_eq!((bench.shown("low_backlog_bytes"), bench.shown("classic_backlog_bytes")), (3000.0, 3000.0));
    // Many Classic packets for 50 ms, less than CoDel's interval: none is marked or dropped.
    for _ in 0..100 {
        bench.arrive(ms(0), Encoding::Classic, Ecn::Ect0);
    }
    let classic = (1..50).filter_map(|at| bench.leave(ms(at))).filter(|left| left.packet.ecn == Ecn::Ect0);
    assert!(classic.count() > 40);
    assert!(bench.dropped().is_empty());
}

#[test]
fn classic_traffic_that_stands_is_held_by_codel() {
    let mut bench = router(&[]);
    for at in 0..1000 {
        bench.arrive(ms(at), Encoding::None, Ecn::NotEct);
        bench.arrive(ms(at), Encoding::None, Ecn::NotEct);
        bench.leave(ms(at));
    }
    assert!(!bench.dropped().is_empty());
}

#[test]
fn flows_of_both_kinds_get_the_same_share() {
    let mut bench = router(&[]);
    let mut left = [0; 2];
    for at in 0..2000 {
        for (encoding, ecn) in [(Encoding::L4s, Ecn::Ect1), (Encoding::Classic, Ecn::Ect0)] {
            let flow = u32::from(ecn == Ecn::Ect0);
            bench.arrive_as(ms(at), Sample { ecn, encoding, flow, ..Sample::new(0, 1500) });
        }
        if let Some(out) = bench.leave(ms(at)) {
            left[out.packet.flow as usize] += 1;
        }
    }
    assert!(left[0] > 900 && left[1] > 900, "{left:?}");
    assert!((bench.shown("low_share") - 0.5).abs() < 0.05);
}

#[test]
fn the_buffer_is_shared_by_both_queues() {
    let mut bench = router(&[("limit", "3pkt")]);
    scalable(&mut bench, ms(0));
    bench.arrive(ms(0), Encoding::None, Ecn::NotEct);
    scalable(&mut bench, ms(0));
    assert!(bench.dropped().is_empty());
    let over = [scalable(&mut bench, ms(0)), bench.arrive(ms(0), Encoding::None, Ecn::NotEct)];
    assert_eq!(bench.dropped(), over);
}
