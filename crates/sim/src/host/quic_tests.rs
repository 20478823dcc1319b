//! QUIC's loss recovery, by worked traces over a path of 100 ms.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::feedback;
use brakelight_core::packet::{Direction, FlowId, Header, PacketId};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{ControllerConfig, FeedbackConfig, Host};
use brakelight_scenario::clock::Clock;
use brakelight_scenario::scenario::Reordering;
use brakelight_scenario::traffic::{OnOff, Traffic};

use super::acks::AckBody;
use super::harness::{Sent, Verdict, World, config, segments};
use super::receiver::{AckRequest, Receiver};
use super::tests::losing;
use crate::engine::Routed;
use crate::packet::{Contents, Kind, SimPacket};

const RTT: Duration = Duration::from_millis(100);

fn quic(count: u64) -> super::FlowConfig {
    config(Host::Quic, segments(Host::Quic, count))
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

#[test]
fn a_packet_is_lost_when_three_newer_ones_are_acknowledged() {
    // Packets 0 to 9 leave at 0; 5 is lost; 6, 7 and 8 are acknowledged at 100 ms.
    let mut world = World::new(quic(10), RTT, losing(&[5]));
    world.run(Time::from_secs(3));
    assert_eq!(world.times_of(5), [0.0, 100.0]);
    let counters = world.host.counters();
    assert_eq!((counters.lost_packets, counters.tail_probes), (1, 0));
}

#[test]
fn a_packet_with_one_newer_one_acknowledged_is_lost_after_nine_eighths_of_the_rtt() {
    let mut world = World::new(quic(10), RTT, losing(&[8]));
    world.run(Time::from_secs(3));
    // Sent at 0; srtt is 100 ms.
    assert_eq!(world.times_of(8), [0.0, 112.5]);
    assert_eq!(world.host.counters().tail_probes, 0);
}

#[test]
fn a_lost_tail_is_probed_after_the_pto_with_two_packets() {
    let mut world = World::new(quic(10), RTT, losing(&[8, 9]));
    world.run(Time::from_secs(3));
    let counters = world.host.counters();
    assert_eq!(counters.tail_probes, 1);
    // Five ACKs of 100 ms: rttvar falls from 50 ms by a quarter each after the first: 50, 37.5, 28.1, 21.1
    // (four ACKs cover 0 to 7). PTO = 100 + 4 * 21.09 + 25 = 209.4 ms after the last packet left.
    let again = world.times_of(8);
    assert!((again[1] - 209.4).abs() < 0.1, "{again:?}");
    assert_eq!(world.times_of(8).len() + world.times_of(9).len(), 4);
    assert!(world.host.is_complete());
}

#[test]
fn retransmissions_have_numbers_of_their_own() {
    let mut world = World::new(quic(40), RTT, losing(&[3, 3, 3]));
    world.run(Time::from_secs(5));
    let numbers: Vec<u32> = world
        .data()
        .map(|sent| match sent.packet.kind() {
            Kind::Data { number, .. } => number,
            _ => unreachable!("data"),
        })
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<_>>());
    assert_eq!(world.times_of(3).len(), 4);
    assert!(world.host.is_complete());
}

#[test]
fn a_long_silence_is_persistent_congestion() {
    // From 1 s to 6 s nothing passes.
    let mut world = World::new(config(Host::Quic, Traffic::Backlogged), RTT, |now: Time, _: &SimPacket| {
        if now >= ms(1_000) && now < ms(6_000) { Verdict::Drop } else { Verdict::Deliver }
    })
    .bottleneck(Rate::from_mbps(10), 100_000);
    world.run(Time::from_secs(20));
    let counters = world.host.counters();
    assert_eq!(counters.timeouts, 1, "{counters:?}");
    assert!(counters.tail_probes >= 3, "{counters:?}");
    // It recovers: half of the 14 s that were left carried data.
    assert!(counters.goodput_bytes > 10_000_000, "{counters:?}");
}

#[test]
fn a_short_silence_is_not_persistent_congestion() {
    let mut world = World::new(config(Host::Quic, Traffic::Backlogged), RTT, |now: Time, _: &SimPacket| {
        if now >= ms(1_000) && now < ms(1_150) { Verdict::Drop } else { Verdict::Deliver }
    })
    .bottleneck(Rate::from_mbps(10), 100_000);
    world.run(Time::from_secs(5));
    assert_eq!(world.host.counters().timeouts, 0);
}

#[test]
fn an_episode_whose_packets_all_arrive_late_is_undone() {
    // Packet 5 comes 30 ms late, behind more than three others.
    let mut world = World::new(quic(60), RTT, |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { number: 5, .. } => Verdict::Late(Duration::from_millis(30)),
        _ => Verdict::Deliver,
    });
    world.run(Time::from_secs(5));
    let counters = world.host.counters();
    assert_eq!((counters.lost_packets, counters.undone_episodes), (1, 1));
    assert!(world.host.is_complete());
}

/// Which packets of 300 are sent again if every tenth comes behind six others, and what was undone.
fn reordered(reordering: Reordering, undo: bool) -> (u64, u64) {
    let flow = super::FlowConfig { reordering, undo, ..quic(300) };
    let mut world = World::new(flow, RTT, |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { number, .. } if number % 10 == 5 => Verdict::Late(Duration::from_millis(7)),
        _ => Verdict::Deliver,
    })
    .bottleneck(Rate::from_mbps(12), 100_000);
    world.run(Time::from_secs(5));
    assert!(world.host.is_complete());
    let counters = world.host.counters();
    (counters.lost_packets, counters.undone_episodes)
}

// rfc9002 6.1.1
#[test]
fn a_threshold_that_adapts_takes_a_reordered_packet_for_lost_once() {
    let (lost, undone) = reordered(Reordering::Fixed, true);
    assert!(lost > 20 && undone >= 3, "{lost} and {undone}");
    let (lost, undone) = reordered(Reordering::Adaptive, true);
    assert!((1..=3).contains(&lost) && undone >= 1, "{lost} and {undone}");
}

#[test]
fn a_flow_may_keep_what_a_spurious_loss_made_of_its_window() {
    assert_eq!(reordered(Reordering::Fixed, false).1, 0);
    let late = |undo| {
        let flow = super::FlowConfig { undo, ..quic(60) };
        let mut world = World::new(flow, RTT, |_, packet: &SimPacket| match packet.kind() {
            Kind::Data { number: 5, .. } => Verdict::Late(Duration::from_millis(30)),
            _ => Verdict::Deliver,
        });
        world.run(ms(250));
        world.cwnd()
    };
    assert!(late(false) <= 0.7 * late(true), "{} and {}", late(false), late(true));
}

/// How long after their arrival ACKs left for `count` packets that came together, an ACK for ten of them.
fn acks_for_a_train(count: u32, read_batch: u32) -> Vec<f64> {
    let flow = super::FlowConfig {
        controller: ControllerConfig::new("newreno", &[("pacing", "false")]).unwrap(),
        initial_window: count,
        pacing_burst: count,
        ack_every: 10,
        ack_delay: Duration::from_millis(12),
        jitter: Duration::from_micros(200),
        read_batch,
        ..quic(u64::from(count))
    };
    let mut world = World::new(flow, RTT, |_, _: &SimPacket| Verdict::Deliver);
    world.run(ms(300));
    assert!(world.host.is_complete());
    let sent: Vec<f64> = world.data().map(Sent::millis).collect();
    assert_eq!(sent, vec![0.0; count as usize]);
    world.acks().map(|ack| ack.millis() - 50.0).collect()
}

// mvfst QuicStateFunctions.cpp, updateAckSendStateOnSentPacketWithAcks
#[test]
fn a_receiver_that_reads_in_batches_acknowledges_a_train_with_its_tail() {
    // Read one by one: two ACKs for ten, and the tail waits for the timer.
    let acks = acks_for_a_train(24, 1);
    assert!(matches!(acks[..], [0.0..=0.2, 0.0..=0.2, 12.0..=12.2]), "{acks:?}");
    // Read at once: one ACK for all.
    let acks = acks_for_a_train(24, 32);
    assert!(matches!(acks[..], [0.0..=0.2]), "{acks:?}");
}

#[test]
fn a_receiver_reads_no_more_at_once_than_its_batch() {
    // 32 and 14, each more than ten.
    let acks = acks_for_a_train(46, 32);
    assert!(matches!(acks[..], [0.0..=0.2, 0.0..=0.2]), "{acks:?}");
    // 32 and 4: the rest waits.
    let acks = acks_for_a_train(36, 32);
    assert!(matches!(acks[..], [0.0..=0.2, 12.0..=12.4]), "{acks:?}");
}

/// A flow whose first 20 packets leave at once.
fn twenty_at_once() -> super::FlowConfig {
    let controller = ControllerConfig::new("newreno", &[("ecn", "true")]).unwrap();
    let flow = config(Host::Quic, Traffic::Backlogged);
    super::FlowConfig { controller, initial_window: 20, pacing_burst: 100, ..flow }
}

// rfc9002 B.5
#[test]
fn packets_sent_before_a_mark_was_noticed_do_not_let_the_window_grow() {
    let mut world = World::new(twenty_at_once(), RTT, |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { number: 0, .. } => Verdict::Mark,
        _ => Verdict::Deliver,
    });
    // The first ACK says CE, and 18 more packets are acknowledged after it: nearly two windows.
    world.run(ms(150));
    assert_eq!(world.cwnd(), 10.0);
}

// rfc9002 B.5
#[test]
fn packets_sent_before_a_loss_was_noticed_do_not_let_the_window_grow_when_recovery_ends() {
    // Packet 0 is lost, which packet 9 shows. Packets 10 to 19 come late, just ahead of the first one that
    // was sent in recovery.
    let mut flow = twenty_at_once();
    flow.ack_every = 20;
    let mut world = World::new(flow, RTT, |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { number: 0, .. } => Verdict::Drop,
        Kind::Data { number: 10..20, .. } => Verdict::Late(Duration::from_millis(119)),
        _ => Verdict::Deliver,
    });
    world.run(ms(160));
    let reduced = world.cwnd();
    assert!((10.0..=11.0).contains(&reduced), "{reduced}");
    assert_eq!(world.host.counters().lost_packets, 1);
    world.run(ms(260));
    assert_eq!(world.cwnd(), reduced);
}

// rfc9002 7.3.2, B.6
#[test]
fn a_packet_sent_before_recovery_and_found_lost_after_it_reduces_nothing() {
    // Packets 0 to 19 leave at 0. Packet 0 is found lost at 100 ms; packet 18 at 200 ms, by the ACKs of
    // packets 20 and 21, which were sent in recovery and end it.
    let mut world = World::new(twenty_at_once(), RTT, |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { number: 0 | 18, .. } => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.run(ms(160));
    let reduced = world.cwnd();
    assert!((10.0..=11.0).contains(&reduced), "{reduced}");
    world.run(ms(260));
    assert_eq!(world.host.counters().lost_packets, 2);
    assert!(world.cwnd() >= reduced, "{}", world.cwnd());
}

#[test]
fn a_lone_packet_is_acknowledged_after_25_ms_and_every_second_at_once() {
    let mut world = World::new(quic(9), RTT, |_, _: &SimPacket| Verdict::Deliver);
    world.run(Time::from_secs(2));
    let times: Vec<f64> = world.acks().map(|sent| sent.millis()).collect();
    assert_eq!(times, [50.0, 50.0, 50.0, 50.0, 75.0]);
}

#[test]
fn the_delay_of_a_held_ack_is_no_part_of_the_smoothed_rtt() {
    // One packet every 200 ms: each is acknowledged after 25 ms.
    let periods = OnOff {
        on: Duration::from_secs(60),
        off: Duration::from_secs(60),
        rate: Some(Rate::from_bps(1435 * 8 * 5)),
        random: false,
    };
    let mut early = true;
    let mut world =
        World::new(config(Host::Quic, Traffic::OnOff(periods)), RTT, move |_, packet: &SimPacket| {
            // The first ACK is lost with its delay, so that the second covers two packets at once: a clean
            // minimum.
            let first = packet.direction() == Direction::Reverse && std::mem::take(&mut early);
            if first { Verdict::Drop } else { Verdict::Deliver }
        });
    world.run(Time::from_secs(30));
    let mut srtt = 0.0;
    world.host.inspect(&mut |name, value| {
        if name == "srtt_ms" {
            srtt = value;
        }
    });
    // rfc9002 5.3 never subtracts below the minimum: without an undelayed sample it stays at 125 ms.
    assert!((srtt - 125.0).abs() < 0.1 || (srtt - 100.0).abs() < 0.1, "{srtt}");
}

#[test]
fn acks_shrink_again_once_the_sender_has_seen_the_ranges() {
    let mut world = World::new(config(Host::Quic, Traffic::Backlogged), RTT, losing(&[20, 24, 28]))
        .bottleneck(Rate::from_mbps(10), 200_000);
    world.run(Time::from_secs(3));
    let plain = world.acks().next().unwrap().packet.size;
    assert!(world.acks().any(|sent| sent.packet.size == plain + 12), "three gaps were reported");
    assert_eq!(world.acks().last().unwrap().packet.size, plain);
}

#[test]
fn an_ack_waits_for_the_delay_of_its_flow() {
    let role = feedback::Receiver { encoding: Encoding::None, ack_every: 10, mss: Bytes(1000) };
    for wait in [6, 25].map(Duration::from_millis) {
        let feedback = FeedbackConfig::new("rfc3168", &[]).unwrap().build(&role);
        let mut receiver = Receiver::new(Host::Quic, Box::new(feedback), wait, Clock::default());
        let flush = |_: &mut Receiver| unreachable!("this feedback never flushes");
        let request = receiver.on_data(ms(100), &data(0, ms(50)), 0, 0, 1000, flush);
        assert_eq!((request, receiver.deadline()), (AckRequest::Wait, ms(100) + wait));
    }
}

/// Whatever order packets arrive in, and however often, each arrival is reported once, by the receiver's
/// clock.
#[test]
fn receive_times_are_reported_for_every_packet_in_the_order_of_arrival() {
    let clock = Clock { offset: Duration::from_secs(5), ..Clock::default() };
    let feedback = FeedbackConfig::new("receive_times", &[]).unwrap();
    let role = feedback::Receiver { encoding: Encoding::None, ack_every: 2, mss: Bytes(1000) };
    let wait = Duration::from_millis(25);
    let mut receiver = Receiver::new(Host::Quic, Box::new(feedback.build(&role)), wait, clock);
    let mut reported: Vec<(u64, u64, u64)> = Vec::new();
    // Packets 2 and 7 come late, 5 never, 6 twice; 40 gaps in a row are more than an ACK has ranges for.
    let order = [0, 1, 3, 4, 2, 6, 6, 8, 9, 7, 10, 11].into_iter().chain((12..92).step_by(2));
    let order: Vec<u32> = order.collect();
    for (index, &number) in order.iter().enumerate() {
        let packet = data(number, ms(u64::from(number)));
        let now = ms(100 + index as u64);
        let flush = |_: &mut Receiver| unreachable!("this feedback never flushes");
        if receiver.on_data(now, &packet, number, number, 1000, flush) == AckRequest::Ack {
            let mut body = AckBody::default();
            receiver.write_ack(now, false, &mut body);
            let times = body.detail().receive_times.iter();
            reported.extend(times.map(|time| {
                let millis = |at: Time| at.as_nanos() / 1_000_000;
                (time.number, millis(time.sent_at), millis(time.received_at))
            }));
        }
    }
    let expected: Vec<(u64, u64, u64)> = order
        .iter()
        .enumerate()
        .map(|(index, &number)| (u64::from(number), u64::from(number), 5_100 + index as u64))
        .collect();
    assert_eq!(reported, expected);
}

/// receive-ts 4.1, 6: in frames times are whole units since a basis of the receiver's own, and no more than
/// were asked for; of these the latest arrived.
#[test]
fn receive_times_in_frames_keep_their_differences_to_the_unit_and_the_latest_packets() {
    let clock = Clock { offset: Duration::from_secs(5), ..Clock::default() };
    let feedback = FeedbackConfig::new(
        "receive_times",
        &[("frame", "true"), ("frame_times", "3"), ("frame_exponent", "4")],
    )
    .unwrap();
    let role = feedback::Receiver { encoding: Encoding::None, ack_every: 5, mss: Bytes(1000) };
    let wait = Duration::from_millis(25);
    let mut receiver = Receiver::new(Host::Quic, Box::new(feedback.build(&role)), wait, clock);
    let micros = |micros: u64| Time::ZERO + Duration::from_micros(micros);
    // Ten packets in order, at times that are not whole units of 16 us.
    let at: Vec<u64> = (0..10).map(|number| 100_000 + 1_237 * number).collect();
    let mut reported: Vec<(u64, u64, u64)> = Vec::new();
    for (number, &now) in (0..).zip(&at) {
        let packet = data(number, ms(u64::from(number)));
        let flush = |_: &mut Receiver| unreachable!("this feedback never flushes");
        if receiver.on_data(micros(now), &packet, number, number, 1000, flush) == AckRequest::Ack {
            let mut body = AckBody::default();
            // The type has three bytes more than an ACK's. Then come a count, a range, and three times.
            let added = receiver.write_ack(micros(now), false, &mut body);
            assert!((3 + 1 + 2 + 3..=3 + 1 + 2 + 3 * 4).contains(&added), "{added}");
            let times = body.detail().receive_times.iter();
            reported.extend(times.map(|time| {
                (time.number, time.sent_at.as_nanos() / 1_000_000, time.received_at.as_nanos() / 1000)
            }));
        }
    }
    let numbers: Vec<(u64, u64)> = reported.iter().map(|time| (time.0, time.1)).collect();
    assert_eq!(numbers, [2, 3, 4, 7, 8, 9].map(|number| (number, number)));
    // The basis is a unit before packet 0, so that its own clock's 5 s are nowhere.
    for (number, _, told) in reported {
        let exact = at[number as usize] - at[0] + 16;
        assert_eq!(told, exact / 16 * 16, "packet {number}");
    }
}

fn data(number: u32, sent_at: Time) -> SimPacket {
    SimPacket::new(&Contents {
        id: PacketId(u64::from(number)),
        sent_at,
        kind: Kind::Data { number, segment: number, header: Header::None },
        flow: FlowId(0),
        connection: 0,
        size: 1065,
        ecn: Ecn::NotEct,
        encoding: Encoding::None,
        direction: Direction::Forward,
        cwr: false,
    })
}

#[test]
fn pacing_spreads_a_flight_over_four_fifths_of_a_round_trip() {
    let mut config = config(Host::Quic, Traffic::Backlogged);
    config.initial_window = 40;
    let mut world = World::new(config, RTT, |_, _: &SimPacket| Verdict::Deliver);
    world.run(ms(90));
    // rfc9002 7.7: ten at once; before the first sample at 1.25 * 40 / 333 ms = one per 6.66 ms.
    let times: Vec<f64> = world.data().map(|sent| sent.millis()).collect();
    assert_eq!(times[..10], [0.0; 10]);
    for (n, at) in times[10..].iter().enumerate() {
        assert!((at - 6.66 * (n + 1) as f64).abs() < 0.1, "{times:?}");
    }
}
