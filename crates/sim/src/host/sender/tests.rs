//! The sender's books, ACK by ACK, without a path.

use brakelight_core::random::Random;
use brakelight_core::registry::ControllerConfig;

use super::super::acks::AckBody;
use super::*;

const MSS: u64 = 1_448;

fn sender(host: Host, controller: &str) -> Sender {
    let connection = Connection {
        mss: Bytes(MSS),
        overhead: Bytes(52),
        initial_window: Bytes(10 * MSS),
        now: Time::ZERO,
        random: Random::stream(1, "controller"),
    };
    let config = ControllerConfig::new(controller, &[]).unwrap();
    Sender::new(host, Box::new(config.build(&connection)), &connection, 10)
}

/// Writes `count` segments and sends what may leave.
fn send(sender: &mut Sender, now: Time, count: u64) {
    sender.write(Bytes(count * MSS));
    while sender.poll(now).is_some() {}
}

/// An ACK of every TCP segment below `cumulative`, whose newest packet had been sent at `echoed`.
#[allow(clippy::field_reassign_with_default)]
fn acknowledge(sender: &mut Sender, now: Time, cumulative: u32, echoed: Time) {
    let mut body = AckBody::default();
    body.cumulative = cumulative;
    body.echoed = echoed;
    sender.on_ack(now, &body);
    while sender.poll(now).is_some() {}
}

/// draft-ietf-ccwg-bbr 4.1.2.4: the mark is lifted once more than what it covered is delivered.
#[test]
fn a_flight_that_begins_on_an_empty_network_is_application_limited() {
    for host in [Host::Tcp, Host::Quic] {
        let mut sender = sender(host, "bbr");
        send(&mut sender, Time::ZERO, 3);
        let now = Time::from_millis(100);
        match host {
            Host::Tcp => acknowledge(&mut sender, now, 3, Time::ZERO),
            Host::Quic => {
                let mut body = AckBody::default();
                body.detail_mut().ranges.push(Range { start: 0, end: 3 });
                sender.on_ack(now, &body);
                while sender.poll(now).is_some() {}
            }
        }
        assert_eq!(sender.inflight(), Bytes::ZERO);
        // The application asks again half a second later: nothing has been delivered since the mark.
        send(&mut sender, Time::from_millis(600), 3);
        for number in 3..6 {
            assert!(sender.transmissions[number].app_limited, "{host:?}: packet {number}");
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
        while sender.poll(at).is_some() {}
    }
    assert!(!sender.lost.is_empty());
    sender.undo(Time::from_secs(2));
    for info in &sender.lost {
        let packet = &sender.transmissions[info.number as u32];
        assert_eq!(packet.state, State::Lost, "packet {} is reported as lost", info.number);
    }
}
