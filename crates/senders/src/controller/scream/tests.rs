use std::string::ToString;
use std::vec::Vec;

use brakelight_core::controller::{MarkCount, PacketInfo, ReceiveTime};
use brakelight_core::parameters::Parameters;
use brakelight_core::random::Random;
use brakelight_testkit::events::{MSS, ack, connection, packet, packets, timeout};

use super::*;

const RTT: Duration = Duration::from_millis(100);
const VIRTUAL: Duration = Duration::from_millis(25);

fn scream(options: &[(&str, &str)]) -> Scream {
    Scream::new(Config::from_options(options.iter().copied()).unwrap(), &connection(10))
}

/// A controller whose window is `window_pkts`, with an inflection point far below.
fn standing(options: &[(&str, &str)], window_pkts: u64) -> Scream {
    let mut scream = scream(options);
    scream.window_bytes = packets(window_pkts).as_f64();
    scream.srtt = Some(VIRTUAL);
    scream.set_rate(VIRTUAL);
    scream
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} within {tolerance}");
}

/// An ACK of one packet, sent an RTT before `now`, that queued for `queueing`.
fn hear(scream: &mut Scream, number: u64, now: Time, rtt: Duration, queueing: Duration, marked: u64) {
    let sent_at = now - (rtt + queueing);
    let acked = [packet(number, sent_at)];
    let received_at = sent_at + rtt / 2 + queueing;
    let times = [ReceiveTime { number, sent_at, received_at }];
    let mut event = ack(now, &acked, rtt + queueing);
    event.rtt.min = rtt;
    event.rtt.smoothed = rtt;
    event.receive_times = &times;
    event.marks.ce = MarkCount { packets: marked, bytes: Bytes(marked * MSS.0) };
    scream.on_ack(&event);
}

#[test]
fn the_target_is_a_little_less_than_the_window_per_round_trip() {
    // scream-01 4.4: 100 packets of 1000 B in 25 ms are 32 Mbit/s; less 1000/1020 and 1/1.2 of it.
    let large = standing(&[], 100);
    assert_near(large.rate_bps, 32e6 * 1000.0 / 1020.0 / 1.2, 1.0);
    // At four packets MSS/W is 0.25: 15 % less. Below, 20 % less at the most.
    assert_near(standing(&[], 4).rate_bps, 1.28e6 * 0.85 * 1000.0 / 1020.0 / 1.2, 1.0);
    assert_near(standing(&[], 3).rate_bps, 0.96e6 * 0.8 * 1000.0 / 1020.0 / 1.2, 1.0);
}

#[test]
fn a_loss_leaves_seven_tenths_and_a_classic_mark_eight() {
    for (congestion, left) in [(Congestion::Loss, 0.7), (Congestion::Ce, 0.8)] {
        let mut scream = standing(&[("ecn", "classic")], 100);
        scream.react(congestion, 1.0, Time::from_secs(1), RTT);
        assert_near(scream.window_bytes, left * 100_000.0, 1e-6);
        assert_near(scream.inflection_bytes, 100_000.0, 1e-6);
    }
}

#[test]
fn marks_of_l4s_leave_what_their_share_says() {
    let mut scream = standing(&[("ecn", "l4s")], 100);
    // F = 1 once: alpha is 1/8, and a sixteenth goes.
    scream.marks = Marks::default();
    let mut event = ack(Time::from_secs(1), &[], VIRTUAL);
    let acked = [packet(1, Time::from_millis(975))];
    event.acked = &acked;
    event.marks.ce = MarkCount { packets: 1, bytes: MSS };
    scream.marks.on_ack(&event, VIRTUAL);
    assert_near(scream.marks.alpha(), 0.125, 1e-12);
    let mut far = scream.clone();
    far.react(Congestion::Ce, 1.0, Time::from_secs(1), VIRTUAL);
    assert_near(far.window_bytes, 100_000.0 * (1.0 - 0.0625), 1e-6);
    // Near the inflection point a quarter of it, and over four virtual RTTs another quarter.
    let mut near = scream.clone();
    near.react(Congestion::Ce, 0.1, Time::from_secs(1), VIRTUAL);
    assert_near(near.window_bytes, 100_000.0 * (1.0 - 0.0625 / 4.0), 1e-6);
    scream.react(Congestion::Ce, 0.1, Time::from_secs(1), RTT);
    assert_near(scream.window_bytes, 100_000.0 * (1.0 - 0.0625 / 16.0), 1e-6);
}

#[test]
fn the_share_of_marks_rises_by_an_eighth_and_falls_by_a_128th() {
    let mut scream = standing(&[("ecn", "l4s")], 100);
    let mut at = Time::from_secs(1);
    let mut alphas = Vec::new();
    for (number, marked) in [1, 1, 0].into_iter().enumerate() {
        hear(&mut scream, number as u64, at, VIRTUAL, Duration::ZERO, marked);
        alphas.push(scream.marks.alpha());
        at += Duration::from_millis(10);
    }
    assert_near(alphas[0], 1.0 / 8.0, 1e-12);
    assert_near(alphas[1], 1.0 / 8.0 + 7.0 / 64.0, 1e-12);
    assert_near(alphas[2], alphas[1] * 127.0 / 128.0, 1e-12);
}

#[test]
fn delay_counts_from_half_of_the_target_on() {
    let mut scream = standing(&[], 100);
    let mut at = Time::from_secs(1);
    // The first packet finds the path empty; then 45 ms, of which the average takes a quarter each 25 ms.
    hear(&mut scream, 0, at, VIRTUAL, Duration::ZERO, 0);
    let mut expected = 0.0;
    for number in 1..=3 {
        at += VIRTUAL;
        hear(&mut scream, number, at, VIRTUAL, Duration::from_millis(45), 0);
        expected += (0.045 - expected) / 4.0;
        assert_near(scream.queueing.average_s(), expected, 1e-9);
        assert_eq!(scream.queueing.virtual_alpha(), 0.0);
    }
    assert_eq!(scream.reacted_at, None);
    at += VIRTUAL;
    let before = scream.window_bytes;
    hear(&mut scream, 4, at, VIRTUAL, Duration::from_millis(45), 0);
    expected += (0.045 - expected) / 4.0;
    // 30.8 ms of 60: 2.5 % of the way from 30 ms to 60 ms, and half of that goes.
    let share = (expected - 0.03) / 0.03;
    assert_near(scream.queueing.virtual_alpha(), share, 1e-9);
    assert_eq!(scream.reacted_at, Some(at));
    let left = before * (1.0 - share / 2.0);
    assert!((left..left + MSS.as_f64()).contains(&scream.window_bytes), "{}", scream.window_bytes);
    // It falls at once.
    at += VIRTUAL;
    hear(&mut scream, 5, at, VIRTUAL, Duration::from_millis(2), 0);
    assert_near(scream.queueing.average_s(), 0.002, 1e-9);
}

#[test]
fn it_grows_by_a_packet_per_round_trip_after_congestion_and_faster_later() {
    let growth = |congested: Option<Time>, distance: f64, srtt: Duration| {
        let mut scream = standing(&[], 50);
        scream.congested_at = congested;
        scream.inflight = (1e9, 0.0);
        scream.grow(50_000.0, distance, Time::from_secs(100), srtt);
        (scream.window_bytes - 50_000.0) / MSS.as_f64()
    };
    let now = Some(Time::from_secs(100));
    assert_near(growth(now, 1.0, RTT), 1.0, 1e-9);
    // Half of V: half of a packet. Near the inflection point a quarter.
    assert_near(growth(now, 1.0, VIRTUAL / 2), 0.5, 1e-9);
    assert_near(growth(now, 0.1, RTT), 0.25, 1e-9);
    // 2 % of 50 packets are one more, in full after 100 round trips (10 s), and half of it after 5 s.
    assert_near(growth(Some(Time::from_secs(90)), 1.0, RTT), 2.0, 1e-9);
    assert_near(growth(Some(Time::from_secs(95)), 1.0, RTT), 1.5, 1e-9);
    assert_near(growth(None, 1.0, RTT), 2.0, 1e-9);
}

#[test]
fn it_does_not_grow_far_beyond_what_is_in_flight_nor_at_the_largest_rate() {
    let mut scream = standing(&[], 50);
    scream.inflight = (32_000.0, 10_000.0);
    scream.grow(50_000.0, 1.0, Time::from_secs(1), RTT);
    // 1000 + 1.5 * 32,000 = 49,000.
    assert_near(scream.window_bytes, 50_000.0, 1e-9);
    scream.inflight.1 = 40_000.0;
    scream.grow(50_000.0, 1.0, Time::from_secs(1), RTT);
    assert!(scream.window_bytes > 50_000.0);
    let mut largest = standing(&[("max_rate", "1Mbps")], 50);
    assert_near(largest.rate_bps, 1e6, 1e-6);
    let before = largest.window_bytes;
    largest.inflight = (1e9, 0.0);
    largest.grow(50_000.0, 1.0, Time::from_secs(1), RTT);
    assert_near(largest.window_bytes, before, 1e-9);
}

#[test]
fn at_the_largest_rate_the_window_is_what_pacing_needs() {
    let mut scream = standing(&[("max_rate", "8Mbps")], 1_000);
    // 1.5 * 1 MB/s * 25 ms.
    assert_near(scream.window_bytes, 37_500.0, 1e-6);
    scream.window_bytes = 1e6;
    scream.inflight = (60_000.0, 0.0);
    scream.set_rate(VIRTUAL);
    assert_near(scream.window_bytes, 60_000.0, 1e-6);
}

#[test]
fn a_loss_counts_once_per_round_trip() {
    let mut scream = standing(&[], 100);
    let lose = |scream: &mut Scream, at_ms: u64, sent_ms: u64| {
        let lost: [PacketInfo; 1] = [packet(sent_ms, Time::from_millis(sent_ms))];
        let mut event = ack(Time::from_millis(at_ms), &[], RTT);
        event.lost = &lost;
        event.inflight_before = Bytes::ZERO;
        scream.on_ack(&event);
        scream.window_bytes
    };
    assert_near(lose(&mut scream, 1_000, 900), 70_000.0, 1e-6);
    assert_near(lose(&mut scream, 1_090, 990), 70_000.0, 1e-6);
    assert_near(lose(&mut scream, 1_200, 1_100), 49_000.0, 1e-6);
}

#[test]
fn few_losses_are_no_congestion_while_the_queue_is_short() {
    let mut scream = standing(&[("loss_threshold", "0.01")], 100);
    let lost = [packet(1, Time::from_millis(900))];
    let mut event = ack(Time::from_secs(1), &[], RTT);
    event.lost = &lost;
    event.inflight_before = Bytes::ZERO;
    scream.on_ack(&event);
    assert_near(scream.window_bytes, 100_000.0, 1e-6);
    // Each loss adds 0.01/4: the fifth is above 1 %.
    let mut windows = Vec::new();
    for at in 0..4 {
        event.now = Time::from_millis(1_001 + at);
        scream.on_ack(&event);
        windows.push(scream.window_bytes);
    }
    assert_near(windows[2], 100_000.0, 1e-6);
    assert_near(windows[3], 70_000.0, 1e-6);
}

#[test]
fn reactions_are_a_quarter_where_the_target_is_below_what_is_acknowledged() {
    let mut scream = standing(&[("ecn", "l4s"), ("limit_undershoot", "true")], 100);
    for number in 0..200 {
        // 1000 B each ms are 8 Mbit/s.
        let mut event = ack(Time::from_millis(1_000 + number), &[], VIRTUAL);
        let acked = [packet(number, Time::from_millis(975 + number))];
        event.acked = &acked;
        event.newly_acked = MSS;
        scream.losses.on_ack(&event, VIRTUAL, 0.01);
    }
    assert_near(scream.losses.acked_bps(), 8e6, 1e5);
    let mut event = ack(Time::from_secs(2), &[], VIRTUAL);
    let acked = [packet(300, Time::from_secs(2))];
    event.acked = &acked;
    event.marks.ce = MarkCount { packets: 1, bytes: MSS };
    scream.marks.on_ack(&event, VIRTUAL);
    for (rate_bps, left) in [(6e6, 1.0 - 0.0625 / 4.0), (7e6, 1.0 - 0.0625)] {
        let mut scream = scream.clone();
        scream.rate_bps = rate_bps;
        scream.react(Congestion::Ce, 1.0, Time::from_secs(2), VIRTUAL);
        assert_near(scream.window_bytes, left * 100_000.0, 1e-6);
    }
}

#[test]
fn a_delay_that_varies_narrows_the_window_if_asked() {
    let vary = |options: &[(&str, &str)]| {
        let mut scream = standing(options, 100);
        let mut at = Time::from_secs(1);
        for number in 0..400 {
            let queueing = Duration::from_millis(if number % 2 == 0 { 0 } else { 20 });
            hear(&mut scream, number, at, VIRTUAL, queueing, 0);
            at += VIRTUAL;
        }
        (scream.queueing.steadiness(), scream.cwnd().as_f64() / scream.window_bytes)
    };
    assert_eq!(vary(&[]).0, 1.0);
    let (steadiness, overhead) = vary(&[("reduce_jitter", "true")]);
    assert_eq!(steadiness, 0.0);
    assert_near(overhead, 1.5, 1e-3);
    assert_near(vary(&[]).1, 3.0, 1e-3);
}

#[test]
fn a_queue_that_others_fill_raises_the_target_if_asked() {
    let target_s = |options: &[(&str, &str)], queueing_ms: u64| {
        let mut scream = standing(options, 100);
        let mut at = Time::from_secs(1);
        hear(&mut scream, 0, at, VIRTUAL, Duration::ZERO, 0);
        for number in 1..400 {
            at += Duration::from_millis(50);
            hear(&mut scream, number, at, VIRTUAL, Duration::from_millis(queueing_ms), 0);
        }
        scream.queueing.target_s()
    };
    // Stable at 150 ms: the mean, and the spread, which is nothing after 200 samples.
    assert_near(target_s(&[("compete", "true")], 150), 0.15, 1e-9);
    assert_near(target_s(&[("compete", "true")], 900), 0.4, 1e-9);
    assert_near(target_s(&[], 150), 0.06, 1e-9);
}

/// The authors' README, figure 1: their code of 2023 kept W at 2/p packets, two marks per round trip. Draft
/// -01 averages the share faster upwards than downwards. Its section 6 says that fewer marks may suffice.
#[test]
fn the_window_is_as_large_as_the_share_of_marks_is_small() {
    let mut ratios = Vec::new();
    for share in [0.02, 0.05, 0.1] {
        let mut scream = standing(&[("ecn", "l4s")], 40);
        let mut random = Random::stream(3, "marks");
        let (mut now, mut number, mut sum, mut count) = (Time::from_secs(1), 0, 0.0, 0_u32);
        while now < Time::from_secs(200) {
            let marked = u64::from(random.uniform() < share);
            hear(&mut scream, number, now, VIRTUAL, Duration::ZERO, marked);
            number += 1;
            now += VIRTUAL.mul_f64(MSS.as_f64() / scream.window_bytes);
            if now > Time::from_secs(50) {
                (sum, count) = (sum + scream.window_bytes / MSS.as_f64(), count + 1);
            }
        }
        let ratio = sum / f64::from(count) / (2.0 / share);
        ratios.push(ratio);
    }
    assert!(ratios.iter().all(|ratio| (0.45..0.5).contains(ratio)), "{ratios:?} of 2/p");
}

#[test]
fn pacing_leaves_room_and_more_of_it_near_the_largest_rate() {
    assert_eq!(scream(&[]).pacing_rate(), Some(Rate::from_mbps(1)));
    let mut scream = standing(&[("max_rate", "10Mbps")], 10);
    for (rate, factor) in [(5e6, 1.5), (8e6, 1.5), (9e6, 3.0), (10e6, 6.0)] {
        scream.rate_bps = rate;
        assert_near(scream.pacing_rate().unwrap().as_bps_f64(), factor * rate, 10.0);
        assert_near(scream.media_rate().unwrap().as_bps_f64(), rate, 1.0);
    }
}

#[test]
fn a_timeout_counts_as_a_loss_once_per_round_trip_and_a_probe_does_not() {
    let mut scream = standing(&[], 100);
    scream.on_timeout(&timeout(Time::from_secs(1), Timeout::Pto));
    assert_near(scream.window_bytes, 100_000.0, 1e-6);
    scream.on_timeout(&timeout(Time::from_secs(1), Timeout::PersistentCongestion));
    scream.on_timeout(&timeout(Time::from_millis(1_010), Timeout::PersistentCongestion));
    assert_near(scream.window_bytes, 70_000.0, 1e-6);
}

#[test]
fn its_encoding_is_what_ecn_says() {
    assert_eq!(scream(&[]).encoding(), Encoding::None);
    assert_eq!(scream(&[("ecn", "classic")]).encoding(), Encoding::Classic);
    assert_eq!(scream(&[("ecn", "l4s")]).encoding(), Encoding::L4s);
}

#[test]
fn refuses_what_contradicts_itself() {
    let refused = |options: [(&str, &str); 1]| Config::from_options(options).unwrap_err().to_string();
    assert_eq!(refused([("max_rate", "50kbps")]), "min_rate = 100kbps is above max_rate = 50kbps");
    assert_eq!(
        refused([("queueing_target", "1s")]),
        "queueing_target = 1s is above queueing_target_max = 400ms"
    );
}
