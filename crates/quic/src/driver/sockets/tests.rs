//! Over the loopback interface, which loses nothing, delays nothing and leaves the ECN field alone.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use brakelight_apps::traffic::{Arrivals, Game, ShortFlows, SizeLaw, Traffic};
use brakelight_core::random::Random;
use brakelight_core::registry::ControllerConfig;
use brakelight_core::units::Bytes;
use brakelight_scenario::clock::Clock;

use super::*;
use crate::driver::FlowSettings;

fn settings(controller: &str, traffic: Traffic) -> FlowSettings {
    FlowSettings {
        controller: ControllerConfig::new(controller, &[]).unwrap(),
        packet: 1500,
        ack_every: Some(2),
        initial_window: 10,
        pacing_burst: 10,
        traffic,
        start: Time::ZERO,
        stop: None,
        receiver_clock: Clock::default(),
        reports: true,
        receive_times: false,
        jitter: Duration::ZERO,
        random: Random::stream(3, "host"),
        controller_random: Random::stream(3, "controller"),
    }
}

/// The outcome of a flow's application after `length`, its bytes that arrived, and how many RTT samples there
/// were.
fn run(settings: FlowSettings, length: Duration) -> (BTreeMap<&'static str, f64>, u64, u64) {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (sender, receiver) = (socket(), socket());
    let address = receiver.local_addr().unwrap();
    let host = Host::new(settings).unwrap();
    let mut host = SocketHost::new(host, sender, receiver, address, Instant::now()).unwrap();
    let mut samples = 0;
    let end = Time::ZERO + length;
    host.advance(end, |_| samples += 1).unwrap();
    let mut outcome = BTreeMap::new();
    host.host().application(end, &mut |name, value| {
        outcome.insert(name, value);
    });
    (outcome, host.host().totals().received_bytes, samples)
}

#[test]
fn a_transfer_arrives_whole_and_its_accelerates_are_counted() {
    let size = Bytes(400_000);
    let (outcome, received, samples) = run(settings("abc", Traffic::Size(size)), Duration::from_secs(1));
    assert_eq!(received, size.0);
    assert!(outcome["completion_ms"] > 0.0 && samples > 10, "{outcome:?}, {samples}");
    // Had the codepoints not arrived, or their counts not come back, ECN would have failed.
    assert!(!outcome.contains_key("ecn_failed") && !outcome.contains_key("closed"), "{outcome:?}");
}

#[test]
fn short_connections_share_the_sockets_and_find_their_own() {
    let law = ShortFlows { arrivals: Arrivals::PerSecond(20.0), size: SizeLaw::Fixed(Bytes(20_000)) };
    let (outcome, received, _) =
        run(settings("cubic", Traffic::ShortFlows(law)), Duration::from_millis(1_500));
    let (started, completed) = (outcome["flows_started"], outcome["flows_completed"]);
    // On a machine that others keep busy the last ones are still on the way.
    assert!(started > 10.0 && completed >= started / 3.0, "{outcome:?}");
    assert!(received as f64 >= completed * 20_000.0, "{received} of {outcome:?}");
}

#[test]
fn messages_travel_both_ways() {
    let game = Game { interval: Duration::from_millis(10), ..Game::default() };
    let (outcome, ..) = run(settings("cubic", Traffic::Game(game)), Duration::from_secs(1));
    assert!(outcome["updates"] > 50.0 && outcome["updates"] <= 100.0, "{outcome:?}");
    assert!(outcome["rtt_ms_p50"] < 50.0, "{outcome:?}");
}
