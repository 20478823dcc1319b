use brakelight_core::ecn::Encoding;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

fn eabc() -> Bench<EAbc<Sample>> {
    Bench::new(EAbc::new(&Config::default(), &place(250)), Rate::from_mbps(12))
}

fn packet(flow: u32) -> Sample {
    let header = Header::Rate { bps: f32::INFINITY, rtt_s: 0.1 };
    Sample { flow, header, encoding: Encoding::Explicit, ..Sample::new(0, 1500) }
}

fn rate(bench: &mut Bench<EAbc<Sample>>, now: u64) -> f64 {
    match bench.leave(ms(now)).unwrap().packet.header {
        Header::Rate { bps, .. } => f64::from(bps) * 1e-6,
        other => panic!("{other:?}"),
    }
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn one_flow_is_given_the_target_rate_of_abc() {
    let mut bench = eabc();
    bench.arrive_as(ms(0), packet(0));
    near(rate(&mut bench, 0), 0.98 * 12.0);
    for _ in 0..101 {
        bench.arrive_as(ms(1), packet(0));
    }
    // As abc's router: 100 packets behind the one that leaves are 100 ms; 12 Mbit/s * 50 ms / 133 ms are to
    // be drained.
    near(rate(&mut bench, 1), 0.98 * 12.0 - 12.0 * 50.0 / 133.0);
}

#[test]
fn flows_that_sent_lately_share_alike() {
    let mut bench = eabc();
    for flow in [0, 1, 2, 0, 1, 0] {
        bench.arrive_as(ms(0), packet(flow));
    }
    for _ in 0..6 {
        near(rate(&mut bench, 1), 0.98 * 12.0 / 3.0);
    }
    // Flow 0 alone goes on; the others count for half a second more.
    bench.arrive_as(ms(499), packet(0));
    near(rate(&mut bench, 499), 0.98 * 12.0 / 3.0);
    bench.arrive_as(ms(500), packet(0));
    near(rate(&mut bench, 500), 0.98 * 12.0);
}

#[test]
fn packets_without_a_rate_are_not_counted() {
    let mut bench = eabc();
    bench.arrive_as(ms(0), packet(0));
    bench.arrive_as(ms(0), Sample { header: Header::None, ..packet(1) });
    near(rate(&mut bench, 0), 0.98 * 12.0);
    assert_eq!(bench.leave(ms(0)).unwrap().packet.header, Header::None);
}

#[test]
fn a_dead_link_offers_the_floor() {
    let mut bench = eabc();
    bench.link.capacity = Rate::ZERO;
    bench.arrive_as(ms(0), packet(0));
    // Five packets of 1500 bytes in 500 ms.
    near(rate(&mut bench, 0), 0.12);
}

#[test]
fn what_the_link_frames_packets_with_is_not_the_senders() {
    let mut bench = eabc();
    bench.link.overhead = 500;
    bench.arrive_as(ms(0), packet(0));
    near(rate(&mut bench, 0), 0.98 * 12.0 * 0.75);
}
