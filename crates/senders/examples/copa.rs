//! Copa by itself, over a path of 100 ms that holds fifty packets: each packet more waits for 2 ms.
#![allow(clippy::print_stdout)]

use brakelight_core::controller::{AckEvent, Connection, Controller, Rtt, SendEvent};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_senders::controller::copa::{Config, Copa};

fn main() {
    let (size, random) = (Bytes(1200), Random::stream(1, "copa"));
    let (initial_window, overhead) = (Bytes(12_000), Bytes(28));
    let connection = Connection { mss: size, overhead, initial_window, now: Time::ZERO, random };
    let mut copa = Copa::new(Config::default(), &connection);
    let min = Duration::from_millis(100);
    for number in 1..=1000 {
        let now = Time::from_millis(2 * number);
        let packets = copa.cwnd().0 / size.0;
        let smoothed = min + Duration::from_millis(2 * packets.saturating_sub(50));
        let rtt = Rtt { sample: Some(smoothed), smoothed, min, ..Rtt::default() };
        copa.on_send(&SendEvent { now, size, number: number + packets, ..SendEvent::default() });
        let ack = AckEvent { now, newest: Some(number), newly_acked: size, rtt, ..AckEvent::default() };
        copa.on_ack(&AckEvent { cwnd_limited: true, ..ack });
        if number % 100 == 0 {
            println!("{:.1} s: cwnd {packets} packets, RTT {smoothed:?}", now.as_secs_f64());
        }
    }
}
