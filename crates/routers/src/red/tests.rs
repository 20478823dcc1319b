use alloc::string::ToString;
use alloc::vec::Vec;

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::parameters::Parameters;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

fn red(options: &[(&str, &str)]) -> Bench<Red<Sample>> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(Red::new(&config, &place(1000)), Rate::from_mbps(12))
}

fn law(options: &[(&str, &str)]) -> Law {
    red(options).queue.chooser.law
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value}, not {expected}");
}

/// Offers packets at an average held at `average`: which of them, by number, do not pass as they came.
fn chosen(bench: &mut Bench<Red<Sample>>, average: f64, ecn: Ecn, packets: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut marked, mut dropped) = (Vec::new(), Vec::new());
    for number in 0..packets {
        bench.queue.average = average;
        // The queue holds what the average says, so that it stays.
        while bench.queue.backlog().packets > average as u32 {
            bench.leave(ms(0));
        }
        bench.arrive(ms(0), Encoding::Classic, ecn);
        bench.dropped().iter().for_each(|_| dropped.push(number));
        bench.queue.packets.for_each(&mut |packet| {
            if packet.ecn == Ecn::Ce && !marked.contains(&packet.id) {
                marked.push(packet.id);
            }
        });
    }
    (marked, dropped)
}

#[test]
fn automatic_settings_follow_the_link() {
    // 12 Mbit/s are 1000 packets per second: 5 ms are 5 packets, half of that is below the least, 5.
    let slow = law(&[]);
    assert_eq!((slow.min_th, slow.max_th), (5.0, 15.0));
    close(red(&[]).queue.wq, 1.0 - libm::exp(-0.001));
    // 50 ms are 50 packets.
    let aim = law(&[("target", "50ms")]);
    assert_eq!((aim.min_th, aim.max_th), (25.0, 75.0));
    let given = law(&[("max_th", "60")]);
    assert_eq!((given.min_th, given.max_th), (20.0, 60.0));
}

#[test]
fn the_average_follows_the_queue_and_ages_without_one() {
    let mut bench = red(&[("wq", "0.002"), ("min_th", "50")]);
    for _ in 0..11 {
        bench.arrive(ms(0), Encoding::None, Ecn::NotEct);
    }
    // Arrivals found 0, 1, .. 10 packets: the sum of 0.002 n 0.998^(10 - n).
    let expected = (0..=10).fold(0.0, |average: f64, n| average + 0.002 * (f64::from(n) - average));
    close(bench.shown("average_pkts"), expected);
    for _ in 0..11 {
        bench.leave(ms(20));
    }
    // 300 ms without a packet are 300 packet times at 12 Mbit/s.
    bench.arrive(ms(320), Encoding::None, Ecn::NotEct);
    close(bench.shown("average_pkts"), expected * libm::pow(0.998, 300.0));
}

#[test]
fn the_probability_is_linear_between_the_thresholds_and_gentle_above() {
    let gentle = law(&[("min_th", "10"), ("max_th", "30")]);
    let steep = law(&[("min_th", "10"), ("max_th", "30"), ("gentle", "false")]);
    // 0.1 (20 - 10) / 20
    close(gentle.probability(20.0, 0.1).unwrap(), 0.05);
    // 0.1 + 0.9 (45 - 30) / 30
    close(gentle.probability(45.0, 0.1).unwrap(), 0.55);
    assert_eq!(gentle.probability(60.0, 0.1), None);
    close(steep.probability(20.0, 0.1).unwrap(), 0.05);
    assert_eq!(steep.probability(30.0, 0.1), None);
}

#[test]
fn drops_are_uniformly_far_apart() {
    let options = [("min_th", "10"), ("max_th", "30")];
    // p_b = 0.05. The packet that follows a drop has count 1 already (floyd93 Figure 2), so drops are 1 to 19
    // packets apart, not 20; with `wait` 20 to 39.
    for (wait, nearest, farthest) in [("false", 1, 19), ("true", 20, 39)] {
        let mut bench = red(&[&options[..], &[("wait", wait)]].concat());
        let (_, dropped) = chosen(&mut bench, 20.0, Ecn::NotEct, 40_000);
        let gaps: Vec<u64> = dropped.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (least, most) = (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap());
        assert!(least >= nearest && most <= farthest, "wait={wait}: {least} to {most}");
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        let middle = (nearest + farthest) as f64 / 2.0;
        assert!((mean / middle - 1.0).abs() < 0.05, "wait={wait}: {mean} apart, not {middle}");
        // Every distance is as likely as any other.
        let below = gaps.iter().filter(|gap| (**gap as f64) < middle).count() as f64 / gaps.len() as f64;
        assert!((0.45..0.55).contains(&below), "wait={wait}: {below} below {middle}");
    }
}

#[test]
fn capable_packets_are_marked_between_the_thresholds_and_dropped_above_them() {
    let run = |average, ecn| {
        let mut bench = red(&[("min_th", "10"), ("max_th", "30"), ("ecn", "true")]);
        let (marked, dropped) = chosen(&mut bench, average, ecn, 200);
        (marked.len() > 5, dropped.len() > 5)
    };
    assert_eq!(run(9.0, Ecn::Ect0), (false, false));
    assert_eq!(run(20.0, Ecn::Ect0), (true, false));
    assert_eq!(run(20.0, Ecn::NotEct), (false, true));
    assert_eq!(run(100.0, Ecn::Ect0), (false, true));
    // What it marked it says it marked.
    let mut bench =
        red(&[("min_th", "0"), ("max_th", "1"), ("gentle", "true"), ("ecn", "true"), ("wq", "1")]);
    for _ in 0..2 {
        bench.arrive(ms(0), Encoding::Classic, Ecn::Ect0);
    }
    bench.queue.chooser.max_p = 1.0;
    bench.leave(ms(0));
    bench.arrive(ms(0), Encoding::Classic, Ecn::Ect0);
    let marks: Vec<_> = core::iter::from_fn(|| bench.leave(ms(1))).map(|left| left.mark).collect();
    assert_eq!(marks.last(), Some(&Mark::Ce));
}

#[test]
fn adaptive_red_moves_max_p_by_its_rule_at_its_own_times() {
    let mut bench = red(&[("min_th", "10"), ("max_th", "30")]);
    let mut adapt = |average: f64, max_p: f64| {
        bench.queue.average = average;
        bench.queue.adapt(max_p)
    };
    // The middle fifth is 18 to 22.
    close(adapt(23.0, 0.1), 0.11);
    close(adapt(23.0, 0.02), 0.025);
    close(adapt(17.0, 0.1), 0.09);
    assert_eq!(adapt(20.0, 0.1), 0.1);
    assert_eq!(adapt(23.0, 0.51), 0.51);
    assert_eq!(adapt(17.0, 0.009), 0.009);
    let mut bench = red(&[("min_th", "10"), ("max_th", "30"), ("adaptive", "true")]);
    bench.queue.average = 23.0;
    bench.arrive(ms(499), Encoding::None, Ecn::NotEct);
    assert_eq!(bench.shown("max_p"), 0.1);
    // Those at 500, 1000 and 1500 ms.
    bench.queue.average = 23.0;
    bench.arrive(ms(1700), Encoding::None, Ecn::NotEct);
    close(bench.shown("max_p"), 0.13);
    assert_eq!(bench.queue.next_update, ms(2000));
    // After an hour it has fallen as far as it goes: 0.13 0.9^25 = 0.0093 is the first below 0.01.
    bench.queue.average = 0.0;
    bench.arrive(Time::from_secs(3600), Encoding::None, Ecn::NotEct);
    close(bench.shown("max_p"), 0.13 * libm::pow(0.9, 25.0));
    assert_eq!(bench.queue.next_update, ms(3_600_500));
}

#[test]
fn thresholds_that_contradict_each_other_are_refused() {
    let refused = Config::from_options([("min_th", "30"), ("max_th", "20")]).unwrap_err();
    assert_eq!(refused.to_string(), "min_th must lie below max_th: 30 and 20");
    assert!(Config::from_options([("min_th", "0")]).is_err());
}
