use brakelight_core::ecn::Encoding;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, place};

fn near(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} is not {b}");
}

fn bench(config: Config) -> Bench<XcpW<Sample>> {
    Bench::new(XcpW::new(&config, &place(250)), Rate::from_mbps(12))
}

/// A flow of one packet per `spacing_us`, whose window and RTT of 50 ms say so, from `from_us` until `to_us`:
/// what its packets were granted.
fn pass(bench: &mut Bench<XcpW<Sample>>, from_us: u64, to_us: u64, spacing_us: u64) -> f64 {
    let cwnd_bytes = 1500.0 * 50_000.0 / spacing_us as f32;
    let header = Header::Xcp { cwnd_bytes, rtt_s: 0.05, feedback_bytes: f32::INFINITY };
    let mut granted = 0.0;
    for micros in (from_us..to_us).step_by(spacing_us as usize) {
        let now = Time::from_nanos(micros * 1000);
        let packet = Sample { header, encoding: Encoding::Explicit, ..Sample::new(0, 1500) };
        bench.arrive_as(now, packet);
        match bench.leave(now).unwrap().packet.header {
            Header::Xcp { feedback_bytes, .. } => granted += f64::from(feedback_bytes),
            other => panic!("{other:?}"),
        }
    }
    granted
}

#[test]
fn a_spare_rate_is_granted_once_in_each_rtt() {
    for residues in [true, false] {
        let mut bench = bench(Config::new(Values { residues, ..Values::default() }).unwrap());
        // Half of 12 Mbit/s; 0.55 * 0.05 s * 750 kB/s per RTT once a full RTT has been seen.
        pass(&mut bench, 0, 100_000, 2_000);
        near(pass(&mut bench, 100_000, 150_000, 2_000), 20_625.0, 0.001);
        near(pass(&mut bench, 150_000, 200_000, 2_000), 20_625.0, 0.001);
    }
}

#[test]
fn after_a_silence_the_first_packets_are_not_given_everything_over_and_over() {
    let first_rtt = |residues| {
        let mut bench = bench(Config::new(Values { residues, gamma: 0.0, ..Values::default() }).unwrap());
        pass(&mut bench, 0, 100_000, 2_000);
        pass(&mut bench, 1_000_000, 1_050_000, 2_000)
    };
    // alpha d C is the most there can be to give.
    assert!(first_rtt(true) <= 0.55 * 0.05 * 1.5e6, "{}", first_rtt(true));
    // Without residues the k-th packet is given a k-th of it.
    assert!(first_rtt(false) > 2.0 * 0.55 * 0.05 * 1.5e6, "{}", first_rtt(false));
}

#[test]
fn a_drop_of_the_capacity_shows_in_the_next_packets() {
    let mut bench = bench(Config::default());
    pass(&mut bench, 0, 200_000, 1_000);
    near(bench.shown("loss_bps") - bench.shown("gain_bps"), 0.0, 1e-6);
    bench.link.capacity = Rate::from_mbps(6);
    assert!(pass(&mut bench, 200_000, 202_000, 1_000) < 0.0);
    // Over the next RTT: 0.55 * 0.05 s * 750 kB/s.
    near(pass(&mut bench, 202_000, 252_000, 1_000), -20_625.0, 0.05);
}

#[test]
fn what_is_granted_keeps_to_what_was_asked() {
    let mut bench = bench(Config::default());
    pass(&mut bench, 0, 200_000, 2_000);
    let header = Header::Xcp { cwnd_bytes: 37_500.0, rtt_s: 0.05, feedback_bytes: -7.0 };
    let now = Time::from_millis(200);
    bench.arrive_as(now, Sample { header, ..Sample::new(0, 1500) });
    assert_eq!(bench.leave(now).unwrap().packet.header, header);
}

#[test]
fn a_packet_that_knows_no_rtt_is_granted_nothing() {
    let mut bench = bench(Config::default());
    pass(&mut bench, 0, 200_000, 2_000);
    let header = |feedback_bytes| Header::Xcp { cwnd_bytes: 15_000.0, rtt_s: 0.0, feedback_bytes };
    let now = Time::from_millis(200);
    bench.arrive_as(now, Sample { header: header(f32::INFINITY), ..Sample::new(0, 1500) });
    assert_eq!(bench.leave(now).unwrap().packet.header, header(0.0));
}
