use brakelight_core::ecn::Encoding;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
}

fn rcp(options: &[(&str, &str)]) -> Bench<Rcp<Sample>> {
    use brakelight_core::parameters::Parameters;
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(Rcp::new(&config, &place(250)), Rate::from_mbps(12))
}

fn packet(rtt_s: f32) -> Sample {
    let header = Header::Rate { bps: f32::INFINITY, rtt_s };
    Sample { header, encoding: Encoding::Explicit, ..Sample::new(0, 1500) }
}

/// One packet of an RTT of 100 ms each `spacing` milliseconds, none of them waiting; the last one's rate,
/// Mbit/s.
fn pass(bench: &mut Bench<Rcp<Sample>>, from: u64, to: u64, spacing: u64) -> f64 {
    let mut rate = 0.0;
    for now in (from..to).step_by(spacing as usize) {
        bench.arrive_as(ms(now), packet(0.1));
        match bench.leave(ms(now)).unwrap().packet.header {
            Header::Rate { bps, .. } => rate = f64::from(bps) * 1e-6,
            other => panic!("{other:?}"),
        }
    }
    rate
}

#[test]
fn a_full_link_offers_g_of_its_rate_to_one_flow() {
    let mut bench = rcp(&[]);
    assert!((pass(&mut bench, 0, 100, 1) - 0.05 * 0.95 * 12.0).abs() < 1e-3);
    // An idle link offers all there is.
    pass(&mut bench, 10_000, 10_001, 1);
    near(bench.shown("rate_bps"), 0.95 * 12e6);
}

#[test]
fn the_rate_moves_by_half_of_what_is_spare_in_an_rtt() {
    let mut bench = rcp(&[("start", "0.1")]);
    pass(&mut bench, 0, 101, 2);
    // d0 is still on its way from 200 ms to 100: (R / C) (RTT / d0) (T / d0) = 0.095 / 2 / 2 of the
    // difference.
    near(bench.shown("mean_rtt_s"), 0.2 - 0.1 * 0.095 * 0.25);
    // y = 6 Mbit/s, g C = 11.4: R (1 + (T / d0) 0.5 * 5.4 / 11.4).
    let expected = 1.14e6 * (1.0 + 0.1 / 0.197_625 * 0.5 * 5.4 / 11.4);
    near(bench.shown("rate_bps"), expected);
}

#[test]
fn a_queue_lowers_the_rate_and_a_dead_link_takes_it_to_the_floor() {
    let mut bench = rcp(&[("start", "1"), ("utilization", "1")]);
    // 100 packets come in the first 100 ms and stay: y = C, q = 150,000 bytes; d0 follows a longer RTT at T /
    // d0.
    for now in 0..100 {
        bench.arrive_as(ms(now), packet(0.4));
    }
    bench.leave(ms(100)).unwrap();
    near(bench.shown("mean_rtt_s"), 0.3);
    let expected = 12e6 * (1.0 - 0.1 / 0.3 * 0.25 * (150_000.0 / 0.3) / 1.5e6);
    near(bench.shown("rate_bps"), expected);
    bench.link.capacity = Rate::ZERO;
    bench.leave(ms(200)).unwrap();
    // One opportunity of 1500 bytes per RTT.
    near(bench.shown("rate_bps"), 1500.0 * 8.0 / 0.3);
}

#[test]
fn the_abc_authors_count_what_empties_the_queue_as_capacity_and_know_the_propagation_delay() {
    let mut bench = rcp(&[("start", "0.1"), ("counted", "dequeues"), ("propagation", "100ms")]);
    // A packet each 2 ms; each waits for 1 ms and leaves nothing behind.
    for now in (0..101).step_by(2) {
        bench.arrive_as(ms(now), packet(0.3));
        bench.leave(ms(now + 1)).unwrap();
    }
    near(bench.shown("mean_rtt_s"), 0.101);
    // 12 Mbit/s, and 50 packets of 1500 bytes in 100 ms: 6 Mbit/s.
    near(bench.shown("capacity_bps"), 18e6);
    // y = 6 Mbit/s, g C = 17.1: R (1 + (T / d0) 0.5 * 11.1 / 17.1).
    near(bench.shown("rate_bps"), 1.14e6 * (1.0 + 0.1 / 0.101 * 0.5 * 11.1 / 17.1));
}

#[test]
fn a_lower_rate_on_the_packet_stays() {
    let mut bench = rcp(&[]);
    pass(&mut bench, 0, 500, 1);
    let low = Header::Rate { bps: 5e4, rtt_s: 0.1 };
    bench.arrive_as(ms(500), Sample { header: low, ..packet(0.1) });
    assert_eq!(bench.leave(ms(500)).unwrap().packet.header, low);
    let odd = Header::Rate { bps: f32::NAN, rtt_s: f32::NAN };
    bench.arrive_as(ms(501), Sample { header: odd, ..packet(0.1) });
    let Header::Rate { bps, .. } = bench.leave(ms(501)).unwrap().packet.header else { panic!() };
    assert!(bps > 0.0 && bps <= 12e6);
}

#[test]
fn the_period_is_no_longer_than_the_mean_rtt() {
    let mut bench = rcp(&[]);
    for now in (0..30_000).step_by(2) {
        bench.arrive_as(ms(now), packet(0.01));
        bench.leave(ms(now)).unwrap();
    }
    assert!((bench.queue.period.as_secs_f64() - bench.shown("mean_rtt_s")).abs() < 1e-6);
    assert!(bench.shown("mean_rtt_s") < 0.02);
}
