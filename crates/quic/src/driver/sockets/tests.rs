//! Over the loopback interface, which loses nothing, delays nothing and leaves the ECN field alone.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use brakelight_apps::traffic::{Arrivals, Game, ShortFlows, SizeLaw, Traffic};
use brakelight_core::random::Random;
use brakelight_core::units::Bytes;
use brakelight_registry::ControllerConfig;
use brakelight_scenario::clock::Clock;
use brakelight_scenario::file;

use super::*;
use crate::driver::FlowSettings;
use crate::driver::measured::{self, FlowPlan};

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

/// What a flow's application, its bytes that arrived and its RTT samples are so far.
type Done = (BTreeMap<&'static str, f64>, u64, u64);

/// Runs a flow until `enough`, whatever keeps the machine busy, or for a minute. Returns what was done.
fn run(settings: FlowSettings, enough: impl Fn(&Done) -> bool) -> Done {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (sender, receiver) = (socket(), socket());
    let address = receiver.local_addr().unwrap();
    let host = Box::new(Host::new(settings).unwrap());
    let mut host = SocketHost::new(host, sender, receiver, address, Instant::now()).unwrap();
    let mut samples = 0;
    let mut end = Time::ZERO;
    loop {
        end += Duration::from_millis(100);
        host.advance(end, |_| samples += 1).unwrap();
        let mut outcome = BTreeMap::new();
        host.host().application(end, &mut |name, value| {
            outcome.insert(name, value);
        });
        let done = (outcome, host.host().totals().received_bytes, samples);
        if enough(&done) || end > Time::ZERO + Duration::from_secs(60) {
            return done;
        }
    }
}

#[test]
fn a_transfer_arrives_whole_and_its_accelerates_are_counted() {
    let size = Bytes(400_000);
    let (outcome, received, samples) = run(settings("abc", Traffic::Size(size)), |(outcome, ..)| {
        outcome.get("completion_ms").is_some_and(|ms| *ms > 0.0)
    });
    assert_eq!(received, size.0);
    assert!(outcome["completion_ms"] > 0.0 && samples > 10, "{outcome:?}, {samples}");
    // Had the codepoints not arrived, or their counts not come back, ECN would have failed.
    assert!(!outcome.contains_key("ecn_failed") && !outcome.contains_key("closed"), "{outcome:?}");
}

#[test]
fn short_connections_share_the_sockets_and_find_their_own() {
    let law = ShortFlows { arrivals: Arrivals::PerSecond(20.0), size: SizeLaw::Fixed(Bytes(20_000)) };
    let (outcome, received, _) = run(settings("cubic", Traffic::ShortFlows(law)), |(outcome, ..)| {
        outcome.get("flows_completed").is_some_and(|completed| *completed >= 20.0)
    });
    let (started, completed) = (outcome["flows_started"], outcome["flows_completed"]);
    assert!(started >= completed && completed >= 20.0, "{outcome:?}");
    assert!(received as f64 >= completed * 20_000.0, "{received} of {outcome:?}");
}

#[test]
fn messages_travel_both_ways() {
    let game = Game { interval: Duration::from_millis(10), ..Game::default() };
    let (outcome, ..) = run(settings("cubic", Traffic::Game(game)), |(outcome, ..)| {
        outcome.get("updates").is_some_and(|updates| *updates > 50.0)
    });
    // Ten in each step of 100 ms at most.
    assert!(outcome["updates"] > 50.0 && outcome["updates"] <= 60.0, "{outcome:?}");
    assert!(outcome["rtt_ms_p50"] < 50.0, "{outcome:?}");
}

/// A flow that sends nothing, and once stands still for 60 ms.
#[derive(Debug)]
struct Sleeper(Option<Time>);

impl FlowEnds for Sleeper {
    fn receive(&mut self, _: Time, _: Direction, _: Ecn, _: &[u8]) {}

    fn transmit(&mut self, now: Time, _: &mut Vec<u8>) -> Option<(Direction, Ecn)> {
        if self.0.take_if(|at| *at <= now).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        None
    }

    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        None
    }

    fn totals(&self) -> Totals {
        Totals::default()
    }

    fn cwnd(&self) -> Bytes {
        Bytes(0)
    }

    fn inspect(&self, _: &mut dyn FnMut(&'static str, f64)) {}

    fn application(&self, _: Time, _: &mut dyn FnMut(&'static str, f64)) {}
}

#[test]
fn a_flow_that_stands_still_is_late() {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (sender, receiver) = (socket(), socket());
    let address = receiver.local_addr().unwrap();
    let sleeper = Box::new(Sleeper(Some(Time::ZERO)));
    let mut host = SocketHost::new(sleeper, sender, receiver, address, Instant::now()).unwrap();
    host.advance(Time::ZERO + Duration::from_millis(200), |_| ()).unwrap();
    let late = host.take_late();
    assert!(late >= Duration::from_millis(60) - MAX_WAIT, "{late}");
    assert_eq!(host.take_late(), Duration::ZERO);
}

#[test]
fn a_run_is_unreliable_where_a_flow_stands_still_as_measuring_begins() {
    let scenario = "duration = \"200ms\"\nmeasure_from = \"100ms\"\n\
        [[link]]\nname = \"link\"\nrate = \"1Mbps\"\n[[flow]]\ncontroller = \"cubic\"\npath = [\"link\"]\n";
    let scenario = file::read("a test", scenario).unwrap();
    let plan = FlowPlan {
        name: "sleeper".to_string(),
        controller: "none",
        start: Time::ZERO,
        stop: None,
        open: Box::new(|| Ok(Box::new(Sleeper(Some(Time::ZERO + Duration::from_millis(70)))))),
        mss: Bytes(1_200),
        receiver: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
    };
    let limit = Duration::from_millis(20);
    let (run, _) = measured::run(&scenario, vec![plan], Ipv4Addr::LOCALHOST.into(), limit).unwrap();
    let [reason] = &run.unreliable_because[..] else { panic!("{run:?}") };
    assert!(
        run.unreliable && reason.starts_with("flow `sleeper` ran ") && reason.contains(" late"),
        "{reason}"
    );
}
