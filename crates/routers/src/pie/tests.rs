use alloc::string::ToString;

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::parameters::Parameters;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

fn pie(options: &[(&str, &str)]) -> Bench<Pie<Sample>> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(Pie::new(&config, &place(1000)), Rate::from_mbps(12))
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value}, not {expected}");
}

/// RFC 8033's controller by itself, with these delays.
fn controller(options: &[(&str, &str)], prob: f64, delay_s: f64, delay_old_s: f64) -> Rfc {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Rfc { prob, delay_s, delay_old_s, burst: Duration::ZERO, ..Rfc::new(&config, Limit::Packets(1000)) }
}

fn held(packets: u32) -> Backlog {
    Backlog { packets, bytes: Bytes(1500 * u64::from(packets)) }
}

/// Keeps `waiting` packets in the queue and takes one out each millisecond in `from..to`.
fn stand(bench: &mut Bench<Pie<Sample>>, waiting: u32, from: u64, to: u64) -> (usize, usize) {
    let (mut dropped, mut marked) = (0, 0);
    for now in from..to {
        let mut tries = 0;
        while bench.queue.backlog().packets < waiting && tries < 10_000 {
            bench.arrive(ms(now), Encoding::Classic, Ecn::Ect0);
            tries += 1;
        }
        dropped += bench.dropped().len();
        marked += usize::from(bench.leave(ms(now)).unwrap().mark == Mark::Ce);
    }
    (dropped, marked)
}

#[test]
fn the_probability_moves_by_both_gains_over_the_divisor_of_its_range() {
    // 0.125 (0.040 - 0.015) + 1.25 (0.040 - 0.030) = 0.003125 + 0.0125 = 0.015625
    for (prob, divisor) in [
        (0.0, 2048.0),
        (5e-6, 512.0),
        (5e-5, 128.0),
        (5e-4, 32.0),
        (5e-3, 8.0),
        (5e-2, 2.0),
        (0.1, 1.0),
        (0.5, 1.0),
    ] {
        let mut rfc = controller(&[], prob, 0.040, 0.030);
        rfc.update(held(40));
        close(rfc.prob, prob + 0.015625 / divisor);
        close(rfc.delay_old_s, 0.040);
    }
    // Falling below the target: 0.125 (0.005 - 0.015) + 1.25 (0.005 - 0.009) = -0.00125 - 0.005
    let mut rfc = controller(&[], 0.2, 0.005, 0.009);
    rfc.update(held(5));
    close(rfc.prob, 0.2 - 0.00625);
}

#[test]
fn from_ten_percent_on_it_rises_by_no_more_than_two_percent_at_once() {
    // 0.125 (0.115 - 0.015) + 1.25 (0.115 - 0.015) = 0.1375
    for (options, prob, expected) in
        [(&[][..], 0.1, 0.12), (&[("cap", "false")][..], 0.1, 0.2375), (&[][..], 0.09, 0.09 + 0.1375 / 2.0)]
    {
        let mut rfc = controller(options, prob, 0.115, 0.015);
        rfc.update(held(100));
        close(rfc.prob, expected);
    }
}

#[test]
fn it_decays_while_idle_until_it_is_zero() {
    let mut rfc = controller(&[], 0.3, 0.0, 0.0);
    // (0.3 + 0.125 (0 - 0.015)) 0.98 = 0.2921625
    rfc.update(held(0));
    close(rfc.prob, 0.2921625);
    rfc.advance(Time::from_secs(60), held(0));
    assert_eq!(rfc.prob, 0.0);
    // Updates go on at multiples of 15 ms, however many were skipped.
    let next = rfc.next_update.as_nanos();
    assert!(next > 60_000_000_000 && next <= 60_015_000_000 && next.is_multiple_of(15_000_000), "{next}");
}

#[test]
fn updates_are_made_at_their_own_times_however_late_the_call() {
    let delayed = |calls: &[u64]| {
        let mut rfc = controller(&[], 0.05, 0.080, 0.060);
        for &call in calls {
            rfc.advance(ms(call), held(80));
        }
        (rfc.prob, rfc.delay_old_s, rfc.next_update)
    };
    let exact: alloc::vec::Vec<u64> = (0..=150).collect();
    assert_eq!(delayed(&exact), delayed(&[7, 44, 150]));
    assert_eq!(delayed(&exact), delayed(&[150]));
}

#[test]
fn a_burst_passes_untouched_for_max_burst() {
    let mut bench = pie(&[]);
    // 100 packets at once, then one in and one out each millisecond: a delay of 100 ms. The allowance of 150
    // ms is full until the first update that sees more than 7.5 ms, at 15 ms; the tenth update from there
    // spends the last of it.
    assert_eq!(stand(&mut bench, 100, 0, 150), (0, 0));
    assert_eq!(bench.shown("burst_allowance_ms"), 15.0);
    assert_eq!(stand(&mut bench, 100, 150, 151), (0, 0));
    assert_eq!(bench.shown("burst_allowance_ms"), 0.0);
    assert!(stand(&mut bench, 100, 151, 1500).0 > 100);
}

#[test]
fn little_backlog_or_little_delay_protects_from_drops() {
    let mut random = Random::stream(1, "test");
    let mut chosen = |rfc: &mut Rfc, backlog| (0..100).any(|_| rfc.chooses(backlog, &mut random));
    // Two packets, however probable.
    assert!(!chosen(&mut controller(&[], 1.0, 0.1, 0.1), held(2)));
    assert!(chosen(&mut controller(&[], 1.0, 0.1, 0.1), held(3)));
    // Half of the target, while the probability is below 20 %.
    assert!(!chosen(&mut controller(&[], 0.199, 0.1, 0.0074), held(9)));
    assert!(chosen(&mut controller(&[], 0.199, 0.1, 0.0076), held(9)));
    assert!(chosen(&mut controller(&[], 0.201, 0.1, 0.0074), held(9)));
}

#[test]
fn capable_packets_are_marked_up_to_the_threshold_and_dropped_from_there() {
    let run = |prob: f64, ecn| {
        let mut bench = pie(&[("ecn", "true"), ("tupdate", "10s")]);
        for now in 0..20 {
            bench.arrive(ms(now), Encoding::Classic, Ecn::Ect0);
        }
        let Control::Rfc(rfc) = &mut bench.queue.control else { unreachable!() };
        (rfc.prob, rfc.delay_s, rfc.delay_old_s, rfc.burst) = (prob, 0.05, 0.05, Duration::ZERO);
        for _ in 0..1000 {
            bench.arrive(ms(20), Encoding::Classic, ecn);
            if bench.queue.backlog().packets > 500 {
                bench.leave(ms(20));
            }
        }
        let mut marked = 0;
        while let Some(left) = bench.leave(ms(20)) {
            assert_eq!(left.mark == Mark::Ce, left.packet.ecn == Ecn::Ce);
            marked += u32::from(left.mark == Mark::Ce);
        }
        (marked > 0, !bench.dropped().is_empty())
    };
    assert_eq!(run(0.099, Ecn::Ect0), (true, false));
    assert_eq!(run(0.1, Ecn::Ect0), (false, true));
    assert_eq!(run(0.099, Ecn::NotEct), (false, true));
}

#[test]
fn derandomised_drops_come_neither_too_close_nor_too_far_apart() {
    let gaps = |options: &[(&str, &str)]| {
        let mut rfc = controller(options, 0.05, 0.1, 0.1);
        let mut random = Random::stream(3, "test");
        let (mut gaps, mut gap) = (alloc::vec::Vec::new(), 0);
        for _ in 0..100_000 {
            gap += 1;
            if rfc.chooses(held(50), &mut random) {
                gaps.push(gap);
                gap = 0;
            }
        }
        (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap(), gaps.len())
    };
    // The sum of 0.05 reaches 0.85 with the 17th packet and 8.5 with the 170th.
    let (nearest, farthest, _) = gaps(&[("derandomize", "true")]);
    assert!(nearest >= 17 && farthest <= 171, "{nearest} to {farthest}");
    let (nearest, _, drops) = gaps(&[]);
    assert_eq!(nearest, 1);
    assert!((4700..5300).contains(&drops), "{drops}");
}

#[test]
fn a_rate_is_measured_over_its_threshold() {
    let mut meter = Meter::new(Bytes(16384));
    // 1500 bytes each millisecond: the first departure starts the count, eleven more pass 16384 with 16500
    // bytes in 11 ms, so 16384 take 10.923 ms.
    for now in 0..12 {
        meter.departure(ms(now), 1500, Bytes(30_000));
    }
    close(meter.average_s, 0.011 * 16384.0 / 16500.0);
    // 30 kB then are 20 ms.
    close(meter.delay_s(Bytes(30_000)), 0.020);
    // At half the rate: a quarter of the new, three of the old.
    for now in 1..12 {
        meter.departure(ms(11 + 2 * now), 1500, Bytes(30_000));
    }
    close(meter.delay_s(Bytes(30_000)), 0.020 * 0.75 + 0.040 * 0.25);
    // Nothing is measured without a threshold of bytes waiting.
    let before = meter.average_s;
    meter.counting = None;
    for now in 40..80 {
        meter.departure(ms(now), 1500, Bytes(16383));
    }
    assert_eq!(meter.average_s, before);
}

#[test]
fn with_a_share_of_the_buffer_to_fill_first_it_is_off_below() {
    let mut bench = pie(&[("active_above", "0.1"), ("max_burst", "0s")]);
    // 99 of 1000 packets: never on. One more, and it is.
    assert_eq!(stand(&mut bench, 99, 0, 3000), (0, 0));
    assert!(stand(&mut bench, 101, 3000, 6000).0 > 0);
}

#[test]
fn what_mahimahi_does_not_have_is_refused() {
    for (name, value) in
        [("ecn", "true"), ("derandomize", "true"), ("active_above", "0.3"), ("delay", "timestamp")]
    {
        let refused = Config::from_options([("variant", "mahimahi"), (name, value)]).unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
}
