use std::vec::Vec;

use brakelight_core::controller::{MarkCount, Marks, PacketInfo};
use brakelight_core::ecn::Ecn;
use brakelight_core::parameters::Parameters;
use brakelight_testkit::events::{MSS, ack, connection, loss, packet, packets, send, spurious, timeout};

use super::*;

fn prague(initial_pkts: u64, options: &[(&str, &str)]) -> Prague {
    let config = Config::from_options(options.iter().copied()).expect("valid options");
    Prague::new(config, &connection(initial_pkts))
}

/// Beyond slow start, with `window` packets.
fn avoiding(window: u64, options: &[(&str, &str)]) -> Prague {
    let mut prague = prague(window, options);
    prague.ssthresh_pkts = 1.0;
    prague
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// One packet more, acknowledged after `rtt` with `marked` of them CE.
fn acknowledge(prague: &mut Prague, now: Time, numbers: core::ops::Range<u64>, marked: u64, rtt: Duration) {
    let acked: Vec<PacketInfo> = numbers.map(|number| packet(number, now.saturating_sub(rtt))).collect();
    let ce = MarkCount { packets: marked, bytes: Bytes(marked * MSS.0) };
    prague.on_ack(&AckEvent { marks: Marks { ce, ..Marks::default() }, ..ack(now, &acked, rtt) });
}

const RTT: Duration = Duration::from_millis(50);

#[test]
fn every_packet_carries_ect1_retransmissions_too() {
    let mut prague = prague(10, &[]);
    for retransmission in [false, true] {
        let event = SendEvent { retransmission, ..send(ms(0), 0, Bytes::ZERO) };
        assert_eq!(prague.on_send(&event).ecn, Ecn::Ect1);
    }
}

#[test]
fn slow_start_grows_by_what_came_back_without_ce() {
    let mut prague = prague(10, &[]);
    acknowledge(&mut prague, ms(50), 0..6, 0, RTT);
    assert_eq!(prague.cwnd(), packets(16));
    acknowledge(&mut prague, ms(51), 6..10, 3, RTT);
    assert_eq!(prague.cwnd(), packets(17));
}

/// prague 2.4.3, rfc9002 B.5: on QUIC what was sent before an episode grows the window after a mark, and not
/// after a loss.
#[test]
fn a_mark_does_not_suspend_growth_and_a_loss_does_for_what_was_sent_before() {
    let grown = |react: fn(&mut Prague)| {
        let mut prague = avoiding(20, &[]);
        react(&mut prague);
        prague.on_recovery_exit(ms(60));
        let before = prague.cwnd_pkts;
        let acked = [packet(0, ms(0)), packet(1, ms(0))];
        prague.on_ack(&AckEvent { growth: Bytes::ZERO, ..ack(ms(60), &acked, RTT) });
        prague.cwnd_pkts - before
    };
    assert!(grown(|prague| prague.on_ce(&loss(ms(50)))) > 0.0);
    assert_eq!(grown(|prague| prague.on_loss(&loss(ms(50)))), 0.0);
    assert!(
        grown(|prague| {
            prague.on_loss(&loss(ms(40)));
            prague.on_ce(&loss(ms(50)));
        }) > 0.0
    );
}

#[test]
fn the_first_mark_halves_the_window_and_ends_slow_start() {
    for initial in ["1", "0"] {
        let mut prague = prague(40, &[("initial_alpha", initial)]);
        prague.on_ce(&loss(ms(50)));
        assert_eq!((prague.cwnd_pkts, prague.in_slow_start()), (20.0, false));
    }
}

#[test]
fn alpha_is_the_average_share_of_marks_per_round() {
    let mut prague = avoiding(8, &[("initial_alpha", "0.5")]);
    // A round of eight packets, two of them marked: 0.5 + (2/8 - 0.5) / 16 = 0.484375.
    prague.next_number = 8;
    prague.round_end = 7;
    acknowledge(&mut prague, ms(50), 0..4, 2, RTT);
    assert_eq!(prague.alpha, 0.5, "the round goes on");
    acknowledge(&mut prague, ms(50), 4..8, 0, RTT);
    assert!((prague.alpha - 0.484_375).abs() < 1e-12, "{}", prague.alpha);
    // The next one begins with packets sent from here on, and is without marks: 0.484375 * 15/16.
    assert_eq!(prague.round_end, 8);
    acknowledge(&mut prague, ms(100), 8..9, 0, RTT);
    assert!((prague.alpha - 0.454_101_562_5).abs() < 1e-12, "{}", prague.alpha);
}

#[test]
fn alpha_waits_for_the_first_mark() {
    let mut prague = avoiding(8, &[]);
    for round in 1..50 {
        acknowledge(&mut prague, ms(50 * round), round..round + 1, 0, RTT);
    }
    assert_eq!(prague.alpha, 1.0);
}

#[test]
fn a_mark_takes_half_of_alpha_from_the_window() {
    let mut prague = avoiding(100, &[("initial_alpha", "0.1")]);
    prague.on_ce(&loss(ms(50)));
    assert!((prague.cwnd_pkts - 95.0).abs() < 1e-12);
    // cwnd follows by a packet per ACK while W regains 1/W for each unmarked packet.
    acknowledge(&mut prague, ms(51), 0..2, 1, RTT);
    assert!((prague.cwnd_pkts - (95.0 + 1.0 / 95.0)).abs() < 1e-12);
    assert_eq!(prague.cwnd(), packets(99));
}

#[test]
fn a_window_of_acknowledged_packets_earns_one() {
    let mut prague = avoiding(100, &[]);
    for number in 0..100 {
        acknowledge(&mut prague, ms(50), number..number + 1, 0, RTT);
    }
    // The sum of 1/W while W goes from 100 to 101 is a little less than one.
    assert!((prague.cwnd_pkts - 101.0).abs() < 0.01, "{}", prague.cwnd_pkts);
    assert_eq!(prague.cwnd(), packets(101));
}

#[test]
fn a_flow_held_back_by_its_application_does_not_grow() {
    let mut prague = avoiding(100, &[]);
    let acked = [PacketInfo { app_limited: true, ..packet(0, ms(0)) }];
    prague.on_ack(&AckEvent { cwnd_limited: false, ..ack(ms(50), &acked, RTT) });
    assert_eq!(prague.cwnd_pkts, 100.0);
}

#[test]
fn an_old_flow_of_short_rtt_grows_as_one_of_25_ms() {
    let short = Duration::from_millis(5);
    let mut prague = avoiding(100, &[("transition", "3")]);
    prague.rounds = 2;
    acknowledge(&mut prague, ms(5), 0..1, 0, short);
    assert!((prague.cwnd_pkts - 100.01).abs() < 1e-9, "not old enough: {}", prague.cwnd_pkts);
    assert_eq!(prague.rounds, 3);
    // prague 2.4.4: (5 / 25)^2 = 0.04 packets per round trip; a longer RTT is not scaled.
    assert!((prague.increase() - 0.04).abs() < 1e-12);
    prague.srtt = Some(Duration::from_millis(40));
    assert_eq!(prague.increase(), 1.0);
}

#[test]
fn an_old_flow_of_short_rtt_reduces_once_per_25_ms() {
    let mut prague = avoiding(100, &[("transition", "0"), ("initial_alpha", "0.1")]);
    prague.srtt = Some(Duration::from_millis(5));
    prague.on_ce(&loss(ms(50)));
    prague.on_ce(&loss(ms(74)));
    assert!((prague.cwnd_pkts - 95.0).abs() < 1e-9);
    prague.on_ce(&loss(ms(75)));
    assert!((prague.cwnd_pkts - 90.25).abs() < 1e-9);
}

#[test]
fn a_loss_halves_the_window_and_can_be_undone() {
    let mut prague = avoiding(40, &[]);
    prague.on_loss(&loss(ms(50)));
    assert_eq!(prague.cwnd_pkts, 20.0);
    acknowledge(&mut prague, ms(60), 0..2, 0, RTT);
    assert_eq!((prague.cwnd_pkts, prague.cwnd()), (20.0, packets(39)), "no growth, a packet down per ACK");
    prague.on_spurious_loss(&spurious(ms(61), false));
    assert_eq!((prague.cwnd_pkts, prague.cwnd()), (40.0, packets(40)));
}

#[test]
fn after_a_timeout_the_window_climbs_from_one_packet_to_half_of_what_it_was() {
    let mut prague = avoiding(40, &[]);
    prague.on_timeout(&timeout(ms(300), Timeout::Rto));
    assert_eq!(prague.cwnd(), packets(1));
    for number in 0..30 {
        acknowledge(&mut prague, ms(350), number..number + 1, 0, RTT);
    }
    assert_eq!(prague.cwnd(), packets(20));
}

/// tcp_prague.c, prague_burst_shift: 2^-12 s of the pacing rate; two packets at the least.
#[test]
fn a_burst_takes_a_quarter_of_a_millisecond_or_two_packets() {
    let mut prague = avoiding(10, &[]);
    assert_eq!(prague.send_quantum(), None, "there is no rate yet");
    prague.pacing = Some(Rate::from_mbps(20));
    assert_eq!(prague.send_quantum(), Some(packets(2)), "610 bytes");
    prague.pacing = Some(Rate::from_mbps(1_000));
    assert_eq!(prague.send_quantum(), Some(Bytes(30_517)));
}

#[test]
fn pacing_is_the_window_per_rtt_and_twice_that_in_slow_start() {
    let mut prague = prague(10, &[]);
    let acked = [packet(0, ms(0))];
    prague.on_ack(&AckEvent { inflight: Bytes(0), ..ack(ms(50), &acked, RTT) });
    // 11 packets of 1000 bytes in 50 ms: 1.76 Mbit/s, twice.
    assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(3_520_000)));
    prague.on_ce(&loss(ms(51)));
    prague.on_ack(&AckEvent { inflight: packets(8), ..ack(ms(52), &[], RTT) });
    // W is 5.5, and 8 packets are in flight.
    assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(1_280_000)));
}
