//! Runs of the stacks in the simulator: the same bytes from the same seed, whatever runs beside them.
#![cfg(feature = "stacks")]
#![allow(clippy::print_stdout, reason = "what it measures stands in the guide")]

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use brakelight_core::random::Random;
use brakelight_registry::{RegisterError, Registry};
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;
use support::{controllers, registry};

fn scenario(text: &str) -> Scenario {
    brakelight_scenario::file::read_with(&registry(), "test.toml", text).unwrap()
}

/// The outcome of the scenario in this file of the guide.
fn found(name: &str) -> Run {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/stacks").join(name);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.lines().count() <= 25, "{name}");
    let (names, mut traces) = (Names::from_environment().unwrap(), Traces::new());
    traces.insert("lte-driving".to_string(), names.load("lte-driving").unwrap());
    brakelight_sim::run(&scenario(&text), &traces).unwrap_or_else(|error| panic!("{error}")).run
}

/// Two flows of drawn controllers over a drawn link; the second sends bulk data, or is a game's or a call's.
fn drawn(seed: u64) -> Scenario {
    let mut random = Random::stream(seed, "scenario");
    let mut pick = |from: u64, to: u64| from + random.bits() % (to - from + 1);
    let (mbps, rtt, buffer) = (pick(2, 60), pick(5, 120), pick(20, 400));
    let all = controllers();
    let last = all.len() as u64 - 1;
    let [first, second] = [pick(0, last), pick(0, last)].map(|number| all[number as usize]);
    let (loss, start) = (pick(0, 20), pick(0, 1500));
    let traffic = ["backlogged", "game", "call"][pick(0, 2) as usize];
    scenario(&format!(
        "duration = \"4s\"\nseed = {seed}\nrecord = {{ series = true, bin = \"100ms\" }}\n\
         [[link]]\nname = \"up\"\nrate = \"{mbps}Mbps\"\nbuffer = \"{buffer}pkt\"\n\
         [[flow]]\nname = \"a\"\ncontroller = \"{first}\"\nrtt = \"{rtt}ms\"\npath = [\"loss:rate=0.0{loss:02}\", \"up\"]\n\
         [[flow]]\nname = \"b\"\ncontroller = \"{second}\"\nrtt = \"{rtt}ms\"\nstart = \"{start}ms\"\n\
         traffic = \"{traffic}\"\npath = [\"up\"]\n"
    ))
}

/// What is known of runs number 0 to `cases`, by so many threads at once.
fn outcomes(cases: u64, threads: u64) -> Vec<String> {
    let done = Mutex::new(vec![String::new(); cases as usize]);
    thread::scope(|scope| {
        for first in 0..threads {
            let done = &done;
            scope.spawn(move || {
                for seed in (first..cases).step_by(threads as usize) {
                    let outcome = format!("{:?}", brakelight_sim::run(&drawn(seed), &Traces::new()));
                    done.lock().unwrap()[seed as usize] = outcome;
                }
            });
        }
    });
    done.into_inner().unwrap()
}

/// `BRAKELIGHT_STACKS_CASES=50` in the environment runs so many.
#[test]
fn the_same_seed_gives_the_same_bytes_in_one_thread_and_in_eight() {
    let cases = std::env::var("BRAKELIGHT_STACKS_CASES").map_or(4, |text| text.parse().expect("a number"));
    let one = outcomes(cases, 1);
    let eight = outcomes(cases, 8);
    for (seed, (one, eight)) in one.iter().zip(&eight).enumerate() {
        assert!(one.starts_with("Ok("), "scenario {seed}: {one}");
        assert_eq!(one, eight, "scenario {seed}");
    }
    let (mut all, count) = (one.clone(), one.len());
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "scenarios differ from each other");
}

#[test]
fn another_seed_gives_another_run() {
    let of = |seed| {
        let mut scenario = drawn(1);
        scenario.seed = seed;
        brakelight_sim::run(&scenario, &Traces::new()).unwrap().run.flows[0].goodput_mbps
    };
    assert_ne!(of(1), of(2));
}

/// s2n-quic has no pass-through around its controllers: what is seen of them comes from its events.
#[test]
fn what_is_seen_of_s2n_quic_is_what_the_link_says() {
    for (controller, bandwidth) in [("s2n-quic/cubic", false), ("s2n-quic/bbr", true)] {
        let text = format!(
            "duration = \"8s\"\nrecord = {{ series = true, bin = \"100ms\" }}\n\
             [[link]]\nname = \"up\"\nrate = \"20Mbps\"\nbuffer = \"100kB\"\n\
             [[flow]]\ncontroller = \"{controller}\"\nrtt = \"40ms\"\npath = [\"up\"]\n"
        );
        let outcome = brakelight_sim::run(&scenario(&text), &Traces::new()).unwrap();
        let series = outcome.series.unwrap();
        let (flow, link) = (&series.flows[0], &series.links[0]);
        let state = |name: &str, bin: usize| flow.state[name][bin];
        // From 2 s on, so that slow start is over.
        let bins: Vec<usize> = (20..flow.time_s.len()).collect();
        let share = |holds: &dyn Fn(usize) -> bool| {
            bins.iter().filter(|bin| holds(**bin)).count() as f64 / bins.len() as f64
        };
        let full = share(&|bin| state("inflight_bytes", bin) <= state("cwnd_bytes", bin));
        assert!(full > 0.8, "{controller}: in flight within the window in {full} of the bins");
        let near = share(&|bin| {
            let queue = link.queueing_delay_mean_ms[bin].unwrap_or(f64::NAN);
            flow.rtt_ms[bin].is_some_and(|rtt| (rtt - 40.0 - queue).abs() < 6.0)
        });
        assert!(near > 0.8, "{controller}: the RTT is path and queue in {near} of the bins");
        let paced = share(&|bin| state("pacing_rate_bps", bin) > 5e6);
        assert!(paced > 0.9, "{controller}: a pacing rate in {paced} of the bins");
        assert_eq!(flow.state.contains_key("bandwidth_bps"), bandwidth, "{controller}");
        if bandwidth {
            let near = share(&|bin| (state("bandwidth_bps", bin) / 20e6 - 1.0).abs() < 0.1);
            assert!(near > 0.7, "{controller}: the link's rate in {near} of the bins");
        }
    }
}

/// quinn's own Cubic, brought by a program, is `quinn/cubic` packet by packet.
#[test]
fn a_controller_that_a_program_brings_is_run_by_quinn_as_its_own() {
    let mut registry = registry();
    let factory = || Arc::new(quinn_proto::congestion::CubicConfig::default());
    let add = |registry: &mut Registry, name| {
        brakelight_stacks::add_quinn_controller(registry, name, "a test's", factory())
    };
    add(&mut registry, "mine/cubic").unwrap();
    assert!(matches!(add(&mut registry, "mine/cubic"), Err(RegisterError::Taken { .. })));
    assert!(matches!(add(&mut registry, "other"), Err(RegisterError::Malformed { .. })));
    let run = |controller| {
        let text = format!(
            "duration = \"5s\"\nseed = 3\n[[link]]\nname = \"up\"\nrate = \"20Mbps\"\nbuffer = \"60pkt\"\n\
             [[flow]]\ncontroller = \"{controller}\"\nrtt = \"40ms\"\npath = [\"loss:rate=0.001\", \"up\"]\n"
        );
        let scenario = brakelight_scenario::file::read_with(&registry, "test.toml", &text).unwrap();
        let run =
            brakelight_sim::run(&scenario, &Traces::new()).unwrap_or_else(|error| panic!("{error}")).run;
        (run.delivered_packets, run.dropped_packets, run.flows[0].goodput_mbps)
    };
    assert_eq!(run("mine/cubic"), run("quinn/cubic"));
    assert_ne!(run("mine/cubic"), run("quinn/newreno"));
}

#[test]
fn a_controller_of_s2n_quic_needs_a_name_of_its_own() {
    let mut registry = registry();
    let add = |registry: &mut Registry, name| {
        let cubic = s2n_quic_core::recovery::cubic::Endpoint::default();
        brakelight_stacks::add_s2n_controller(registry, name, "a test's", cubic)
    };
    assert!(matches!(add(&mut registry, "cubic"), Err(RegisterError::Taken { .. })));
    assert!(matches!(add(&mut registry, "s2n/cubic"), Err(RegisterError::Malformed { .. })));
    add(&mut registry, "s2n-cubic").unwrap();
    assert!(matches!(add(&mut registry, "s2n-cubic"), Err(RegisterError::Taken { .. })));
}

/// A call over a link whose rate changes three times (rfc8867 5.1): the 95th percentile of its frames' delay,
/// in ms.
fn frame_delay(controller: &str) -> f64 {
    let host = if controller.contains('/') { "" } else { "host = \"quic\"\n" };
    let text = format!(
        "duration = \"100s\"\n\
         [[link]]\nname = \"up\"\nbuffer = \"37500B\"\n\
         steps = [[\"40s\", \"1Mbps\"], [\"20s\", \"2.5Mbps\"], [\"20s\", \"600kbps\"], [\"20s\", \"1Mbps\"]]\n\
         [[flow]]\ncontroller = \"{controller}\"\n{host}mss = \"1200B\"\nrtt = \"100ms\"\npath = [\"up\"]\n\
         traffic = {{ kind = \"call\", max_rate = \"1.5Mbps\" }}\n"
    );
    let run =
        brakelight_sim::run(&scenario(&text), &Traces::new()).unwrap_or_else(|error| panic!("{error}")).run;
    assert!(!run.unreliable, "{controller}: {:?}", run.unreliable_because);
    run.flows[0].application.as_ref().expect("it has an application")["frame_delay_ms_p95"]
}

/// Frames in a stack of others take at most 1.4 times as long as in the modelled host. While the encoder
/// heard of what waits in its stack too late, they took 2.4 times as long in quinn and 3 times in s2n-quic.
/// noq's Cubic keeps the queue full by itself (`noq-cubic-credit.toml`). quiche does not say how much it has
/// sent, and there they take three times as long.
#[test]
fn a_call_hears_how_much_waits_in_its_stack() {
    for (ours, theirs) in [
        ("newreno", "quinn/newreno"),
        ("newreno", "noq/newreno"),
        ("cubic", "quinn/cubic"),
        ("cubic", "s2n-quic/cubic"),
    ] {
        let [own, hosted] = [ours, theirs].map(frame_delay);
        println!("{theirs}: {hosted:.0} ms, {ours}: {own:.0} ms");
        assert!(hosted <= 1.4 * own, "{theirs}: {hosted:.0} ms, and {ours} {own:.0} ms");
    }
}

/// Where one of these fails after an update of a stack, the guide says what is no longer so.
#[test]
fn what_the_guide_found_is_still_there() {
    let unused = found("noq-bbr3-unused.toml");
    assert!((0.88..0.92).contains(&unused.utilization) && unused.loss_percent == 0.0, "{unused:?}");
    let gaps = found("too-many-gaps.toml");
    assert!(gaps.unreliable && gaps.unreliable_because[0].contains("too many gaps"), "{gaps:?}");
    let slow_start = found("no-hystart.toml");
    assert!((0.6..0.7).contains(&slow_start.loss_percent), "{slow_start:?}");
    let slow = found("s2n-quic-acks.toml");
    let [s2n, ours] = [0, 1].map(|flow| slow.flows[flow].goodput_mbps);
    assert!(s2n < 14.0 && ours > 33.0, "{s2n} and {ours} Mbit/s");
    let flood = found("quinn-bbr-flood.toml");
    assert!(flood.loss_percent > 90.0, "{flood:?}");
    // quinn's Cubic, from which it comes, loses 1.5 %.
    let credit = found("noq-cubic-credit.toml");
    assert!(credit.loss_percent > 4.0, "{credit:?}");
}

#[cfg(feature = "stacks-c")]
#[test]
fn what_the_guide_found_in_quiche_is_still_there() {
    // A window of full packets would take 10,700.
    let small = found("quiche-small-packets.toml");
    assert!(small.delivered_packets > 25_000, "{small:?}");
    let greedy = found("quiche-cubic-rollback.toml");
    let [quiche, ours] = [0, 1].map(|flow| greedy.flows[flow].goodput_mbps);
    assert!(quiche > 30.0 && ours < 5.0, "{quiche} and {ours} Mbit/s");
}
