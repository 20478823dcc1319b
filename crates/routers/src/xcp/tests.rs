use brakelight_core::ecn::Encoding;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
}

fn xcp(config: Config) -> Bench<Xcp<Sample>> {
    Bench::new(Xcp::new(&config, &place(250)), Rate::from_mbps(12))
}

fn header(cwnd_bytes: f32, rtt_s: f32, feedback_bytes: f32) -> Header {
    Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes }
}

fn packet(flow: u32, header: Header) -> Sample {
    Sample { flow, header, encoding: Encoding::Explicit, ..Sample::new(0, 1500) }
}

fn feedback(packet: &Sample) -> f64 {
    match packet.header {
        Header::Xcp { feedback_bytes, .. } => f64::from(feedback_bytes),
        other => panic!("{other:?}"),
    }
}

/// `count` packets of one flow pass in the 50 ms from `from` on, none of them waiting; what they were granted
/// in all.
fn pass(bench: &mut Bench<Xcp<Sample>>, from: u64, count: u64, header: Header) -> f64 {
    let mut granted = 0.0;
    for i in 0..count {
        let now = ms(from) + Duration::from_nanos(i * 50_000_000 / count);
        bench.arrive_as(now, packet(0, header));
        granted += feedback(&bench.leave(now).unwrap().packet);
    }
    granted
}

#[test]
fn a_spare_rate_is_granted_once_within_an_interval() {
    let mut bench = xcp(Config::default());
    // 25 packets in the first 50 ms: y = 750 kB/s, C = 1500 kB/s. RTT 50 ms, window 37,500 bytes, as that
    // rate has it.
    let flow = header(37_500.0, 0.05, f32::INFINITY);
    assert_eq!(pass(&mut bench, 0, 25, flow), 0.0);
    // katabi02 eq.1: phi = 0.55 * 0.05 s * 750 kB/s = 20,625 bytes; |phi| > 0.1 * 37,500: nothing is
    // shuffled.
    near(pass(&mut bench, 50, 25, flow), 20_625.0);
    near(bench.shown("mean_rtt_s"), 0.05);
}

#[test]
fn the_residues_end_what_more_packets_than_foreseen_would_take() {
    let flow = header(37_500.0, 0.05, f32::INFINITY);
    let mut bench = xcp(Config::default());
    pass(&mut bench, 0, 25, flow);
    // Twice as many packets: the sum stays.
    near(pass(&mut bench, 50, 50, flow), 20_625.0);
    let mut bench = xcp(Config::new(Values { residues: false, ..Values::default() }).unwrap());
    pass(&mut bench, 0, 25, flow);
    near(pass(&mut bench, 50, 50, flow), 41_250.0);
}

#[test]
fn too_much_traffic_is_told_to_shrink_in_proportion() {
    let mut bench = xcp(Config::default());
    // 75 packets in 50 ms: y = 2250 kB/s, 750 kB/s too much.
    let flow = header(112_500.0, 0.05, f32::INFINITY);
    pass(&mut bench, 0, 75, flow);
    near(pass(&mut bench, 50, 75, flow), -20_625.0);
}

#[test]
fn a_full_link_shuffles_a_tenth_from_the_large_to_the_small() {
    let mut bench = xcp(Config::default());
    // Flow 0 sends 40 of the 50 packets that fill the link, flow 1 ten: windows 60,000 and 15,000 at 50 ms.
    let (large, small) = (header(60_000.0, 0.05, f32::INFINITY), header(15_000.0, 0.05, f32::INFINITY));
    let mut granted = [0.0, 0.0];
    for i in 0..100_u64 {
        let flow = u32::from(i % 5 == 4);
        let now = Time::from_nanos(i * 1_000_000);
        bench.arrive_as(now, packet(flow, if flow == 0 { large } else { small }));
        let left = bench.leave(now).unwrap().packet;
        if i >= 50 {
            granted[flow as usize] += feedback(&left);
        }
    }
    // katabi02 eq.2: h = 7,500 bytes. Both gain 3,750; they lose four fifths and one fifth of 7,500.
    near(granted[0], 3_750.0 - 6_000.0);
    near(granted[1], 3_750.0 - 1_500.0);
}

#[test]
fn a_persistent_queue_is_drained_and_a_passing_one_is_not() {
    let gains = Config::new(Values { gamma: 0.0, ..Values::default() }).unwrap();
    let mut bench = xcp(gains);
    let flow = header(75_000.0, 0.05, f32::INFINITY);
    for _ in 0..20 {
        bench.arrive_as(ms(0), packet(0, flow));
    }
    // One leaves and one comes each millisecond: 20 packets wait throughout.
    let mut last = 0.0;
    for now in 1..250 {
        last = feedback(&bench.leave(ms(now)).unwrap().packet);
        bench.arrive_as(ms(now), packet(0, flow));
    }
    // 19 packets behind the one that leaves; katabi02 eq.1: -0.4 * 28,500 bytes over an interval of 50
    // packets.
    near(bench.shown("persistent_bytes"), 28_500.0);
    near(last, -0.4 * 28_500.0 / 50.0);
}

#[test]
fn a_tighter_grant_stays_and_leaves_its_part_to_others() {
    let mut bench = xcp(Config::default());
    let asks = |feedback_bytes| header(37_500.0, 0.05, feedback_bytes);
    pass(&mut bench, 0, 25, asks(f32::INFINITY));
    bench.arrive_as(ms(50), packet(0, asks(10.0)));
    assert_eq!(feedback(&bench.leave(ms(50)).unwrap().packet), 10.0);
    // D6: 825 - 10 are still to be had after the 25 of the interval.
    let rest = pass(&mut bench, 50, 25, asks(f32::INFINITY));
    near(rest, 20_625.0 - 10.0);
}

#[test]
fn a_packet_that_knows_no_rtt_is_granted_nothing_and_one_without_header_stays() {
    let mut bench = xcp(Config::default());
    pass(&mut bench, 0, 25, header(37_500.0, 0.05, f32::INFINITY));
    for (cwnd_bytes, rtt_s, asked) in
        [(15_000.0, 0.0, 9.0), (0.0, 0.1, 9.0), (f32::NAN, 0.1, 9.0), (15_000.0, 0.1, f32::NAN)]
    {
        bench.arrive_as(ms(60), packet(0, header(cwnd_bytes, rtt_s, asked)));
        assert_eq!(feedback(&bench.leave(ms(60)).unwrap().packet), 0.0);
    }
    bench.arrive_as(ms(60), packet(0, Header::None));
    assert_eq!(bench.leave(ms(60)).unwrap().packet.header, Header::None);
}

/// A link of 12 Mbit/s up to 100 ms and none after, asked at 250 ms.
#[test]
fn the_capacity_is_that_of_the_interval_however_late_it_is_asked_for() {
    struct Ended;
    impl LinkView for Ended {
        fn capacity(&mut self, window: Duration) -> Rate {
            let carried = window.as_secs_f64() - 0.15;
            Rate::from_bps_f64(12e6 * carried.max(0.0) / window.as_secs_f64())
        }
        fn unused(&mut self) -> Bytes {
            Bytes::ZERO
        }
        fn opportunity(&self) -> Bytes {
            Bytes(1500)
        }
        fn lookahead(&mut self, _ahead: Duration, _window: Duration) -> Option<Rate> {
            None
        }
    }
    let millis = Duration::from_millis;
    near(capacity_before(&mut Ended, millis(150), millis(100)), 1_500_000.0);
    near(capacity_before(&mut Ended, millis(100), millis(100)), 750_000.0);
    near(capacity_before(&mut Ended, Duration::ZERO, millis(100)), 0.0);
}

#[test]
fn a_long_silence_is_skipped() {
    let mut bench = xcp(Config::default());
    pass(&mut bench, 0, 25, header(37_500.0, 0.05, f32::INFINITY));
    let later = Time::from_secs(30 * 86_400);
    bench.arrive_as(later, packet(0, header(37_500.0, 0.05, f32::INFINITY)));
    assert_eq!(feedback(&bench.leave(later).unwrap().packet), 0.0);
    assert!(bench.queue.control_due > later && bench.queue.queue_due > later);
}
