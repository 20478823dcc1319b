//! The sender's books, ACK by ACK, without a path.

use brakelight_core::random::Random;
use brakelight_core::sender::Phase;
use brakelight_registry::ControllerConfig;

use super::super::acks::AckBody;
use super::*;

const MSS: u64 = 1_448;

fn sender(host: Host, controller: &str) -> Sender {
    sender_with(host, controller, MSS, 10 * MSS)
}

/// A sender of segments of `mss` bytes whose first window is `initial_window`.
fn sender_with(host: Host, controller: &str, mss: u64, initial_window: u64) -> Sender {
    let connection = Connection {
        mss: Bytes(mss),
        overhead: Bytes(52),
        initial_window: Bytes(initial_window),
        now: Time::ZERO,
        random: Random::stream(1, "controller"),
    };
    let config = ControllerConfig::new(controller, &[]).unwrap();
    Sender::new(host, Box::new(config.build(&connection)), &connection, 10)
}

/// Sends what may leave.
fn send_all(sender: &mut Sender, now: Time) {
    while let Some(next) = sender.next(now) {
        sender.send(now, next);
    }
}

/// Writes `count` segments and sends what may leave.
fn send(sender: &mut Sender, now: Time, count: u64) {
    sender.write(Bytes(count * MSS));
    send_all(sender, now);
}

/// An ACK of every TCP segment below `cumulative`, whose newest packet had been sent at `echoed`.
#[allow(clippy::field_reassign_with_default)]
fn acknowledge(sender: &mut Sender, now: Time, cumulative: u32, echoed: Time) {
    let mut body = AckBody::default();
    body.cumulative = cumulative;
    body.echoed = echoed;
    sender.on_ack(now, &body);
    send_all(sender, now);
}

/// draft-ietf-ccwg-bbr 4.1.2.4: the mark is lifted once more than what it covered is delivered.
#[test]
fn a_flight_that_begins_on_an_empty_network_is_application_limited() {
    for host in [Host::Tcp, Host::Quic] {
        let mut sender = sender(host, "bbr");
        send(&mut sender, Time::ZERO, 3);
        let now = Time::from_millis(100);
        match host {
            Host::Tcp | Host::Ns2 => acknowledge(&mut sender, now, 3, Time::ZERO),
            Host::Quic => {
                let mut body = AckBody::default();
                body.detail_mut().ranges.push(Range { start: 0, end: 3 });
                sender.on_ack(now, &body);
                send_all(&mut sender, now);
            }
        }
        assert_eq!(sender.inflight(), Bytes::ZERO);
        // The application asks again half a second later: nothing has been delivered since the mark.
        send(&mut sender, Time::from_millis(600), 3);
        for number in 3..6 {
            assert!(sender.transmissions[number].app_limited(), "{host:?}: packet {number}");
        }
    }
}

/// A spurious timeout puts what it called lost back in flight. The next event must not call it lost.
#[test]
fn what_an_undo_puts_back_in_flight_is_not_reported_as_lost() {
    let mut sender = sender(Host::Tcp, "bbr2");
    send(&mut sender, Time::ZERO, 1);
    acknowledge(&mut sender, Time::from_millis(100), 1, Time::ZERO);
    send(&mut sender, Time::from_millis(100), 9);
    // The path pauses: the tail loss probe, then the timeout.
    while sender.counters.timeouts == 0 {
        let at = sender.deadline();
        sender.on_deadline(at);
        send_all(&mut sender, at);
    }
    assert!(!sender.lost.is_empty());
    sender.undo(Time::from_secs(2));
    for info in &sender.lost {
        let packet = &sender.transmissions[info.number as u32];
        assert_eq!(packet.state(), State::Lost, "packet {} is reported as lost", info.number);
    }
}

/// A QUIC ACK of these packet numbers at `now`, the newest first.
fn acknowledge_numbers(sender: &mut Sender, now: Time, ranges: &[(u32, u32)]) {
    let mut body = AckBody::default();
    for &(start, end) in ranges {
        body.detail_mut().ranges.push(Range { start, end });
    }
    sender.on_ack(now, &body);
}

/// rfc9002 7.3.2: recovery begins with the loss and ends when a packet is acknowledged that left during it.
#[test]
fn quic_recovers_until_a_packet_sent_since_is_acknowledged() {
    let mut sender = sender(Host::Quic, "bbr3");
    send(&mut sender, Time::ZERO, 8);
    let now = Time::from_millis(100);
    acknowledge_numbers(&mut sender, now, &[(1, 4)]);
    assert_eq!(sender.episode.phase(), Phase::Recovery, "packet 0 is lost");
    let next = sender.transmissions.end();
    send_all(&mut sender, now);
    assert!(sender.transmissions.end() > next, "the lost data leaves again");
    acknowledge_numbers(&mut sender, Time::from_millis(110), &[(4, 8)]);
    assert_eq!(sender.episode.phase(), Phase::Recovery, "all of these left before");
    acknowledge_numbers(&mut sender, Time::from_millis(200), &[(next, next + 1)]);
    assert_eq!(sender.episode.phase(), Phase::Open);
}

/// rfc9002 7.6.2: two lost packets are persistent congestion only if nothing between them was acknowledged.
/// With one sample of 100 ms it takes 3 (100 + 4 * 50 + 25) = 975 ms.
#[test]
fn a_packet_acknowledged_in_between_rules_persistent_congestion_out() {
    for (acked, timeouts) in [(&[(4, 7)][..], 1), (&[(4, 7), (2, 3)], 0)] {
        let mut sender = sender(Host::Quic, "newreno");
        send(&mut sender, Time::ZERO, 1);
        acknowledge_numbers(&mut sender, Time::from_millis(100), &[(0, 1)]);
        for (millis, count) in [(200, 1), (700, 1), (1_400, 4)] {
            send(&mut sender, Time::from_millis(millis), count);
        }
        assert_eq!(sender.transmissions.end(), 7);
        acknowledge_numbers(&mut sender, Time::from_millis(1_500), acked);
        assert_eq!(sender.counters.timeouts, timeouts, "{acked:?}");
    }
}

/// Counters of marks may not run ahead of what was sent, and those that do not are believed: five packets
/// each.
#[test]
fn marks_are_counted_as_long_as_they_do_not_exceed_what_was_sent() {
    let mut sender = sender(Host::Quic, "abc");
    send(&mut sender, Time::ZERO, 10);
    for (millis, end, each, counted) in [(100, 6, 3, 3), (101, 10, 5, 5), (102, 10, 9, 5)] {
        let mut body = AckBody::default();
        body.detail_mut().ranges.push(Range { start: 0, end });
        let totals = body.detail_mut().totals.get_or_insert_default();
        totals.packets = [each, each, 0];
        sender.on_ack(Time::from_millis(millis), &body);
        let counters = &sender.counters;
        assert_eq!((counters.accelerate_packets, counters.brake_packets), (counted, counted), "{millis} ms");
    }
}

/// rfc7323 2.3: no receiver grants more than 1 GiB. A window that cannot be used does not grow.
#[test]
fn no_more_is_in_flight_than_a_receiver_can_grant() {
    const LARGE: u64 = 60_000;
    for host in [Host::Tcp, Host::Quic, Host::Ns2] {
        let mut sender = sender_with(host, "newreno", LARGE, 1 << 32);
        sender.write(Bytes(u64::MAX));
        let mut now = Time::ZERO;
        send_all(&mut sender, now);
        // QUIC's packets wait for the pacer.
        while sender.pace_at != Time::MAX {
            now = sender.pace_at;
            sender.on_deadline(now);
            send_all(&mut sender, now);
        }
        let inflight = sender.inflight().0;
        assert!(inflight <= 1 << 30, "{host:?}: {inflight}");
        assert!(inflight + LARGE > 1 << 30, "{host:?}: {inflight}");
        let before = sender.cwnd;
        let now = now + Duration::from_millis(1);
        match host {
            Host::Tcp | Host::Ns2 => acknowledge(&mut sender, now, 1_000, Time::ZERO),
            Host::Quic => acknowledge_numbers(&mut sender, now, &[(0, 1_000)]),
        }
        assert_eq!(sender.cwnd, before, "{host:?}");
    }
}
