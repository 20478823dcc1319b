//! A run can be looked into and acted upon at any time, and the same actions at the same times give the same
//! outcome.

use brakelight_core::controller::RecoveryState;
use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::elements::Order;
use brakelight_links::trace::Trace;
use brakelight_scenario::file::read;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::host::{FlowConfig, FlowHost};
use brakelight_sim::{ActionError, FlowPhase, Simulation, Traces, run};

use crate::support::random_scenario::random_scenario;

const MSS: u64 = 1448;

/// Ten seconds of 12 Mbit/s, 1 ms per full packet, with room for 1000 packets; `flows` follow.
fn scenario(link: &str, flows: &str) -> Scenario {
    let text =
        format!("duration = \"10s\"\n[[link]]\nname = \"link\"\nbuffer = \"1000pkt\"\n{link}\n{flows}");
    read("actions.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn flow(controller: &str, more: &str) -> String {
    format!(
        "[[flow]]\ncontroller = \"{controller}\"\npath = [\"link\"]\nrtt = \"100ms\"\nstart_within = \"0s\"\njitter = \"0s\"\n{more}\n"
    )
}

fn simulation(link: &str, flows: &str) -> Simulation {
    Simulation::new(&scenario(link, flows), &Traces::new()).unwrap()
}

fn json(outcome: &Outcome) -> String {
    let Outcome { run, series, link_logs, .. } = outcome;
    format!("{} {link_logs:?}", serde_json::to_string(&(run, series)).expect("an outcome is data"))
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

#[test]
fn a_window_that_is_set_is_filled_at_once_and_stays() {
    let mut simulation = simulation("rate = \"12Mbps\"", &flow("external", "ack_every = 1"));
    simulation.advance(ms(0));
    let sender = simulation.flow(0).unwrap().sender;
    assert_eq!((sender.cwnd, sender.inflight, sender.sent_packets), (Bytes(10 * MSS), Bytes(10 * MSS), 10));
    assert_eq!((sender.rtt, sender.delivered_packets), (None, 0));
    simulation.set_window(0, Bytes(20 * MSS)).unwrap();
    assert_eq!(simulation.flow(0).unwrap().sender.inflight, Bytes(20 * MSS));
    simulation.advance(ms(2000));
    let view = simulation.flow(0).unwrap();
    let rtt = view.sender.rtt.unwrap();
    assert_eq!((view.sender.cwnd, view.sender.inflight), (Bytes(20 * MSS), Bytes(20 * MSS)));
    // The smallest is that of the first packet: 1 ms on the link, 100 ms on the way.
    assert_eq!(rtt.min, Duration::from_millis(101));
    assert!(rtt.sample.unwrap() >= rtt.min && rtt.smoothed >= rtt.min);
    // 20 packets in 101 ms.
    let mbps = view.goodput.as_f64() * 8e-6 / 2.0;
    assert!((2.1..2.35).contains(&mbps), "{mbps}");
    assert_eq!(view.sender.delivered_bytes, Bytes(view.sender.delivered_packets * MSS));
    assert!(!view.sender.app_limited);
}

#[test]
fn a_pacing_rate_that_is_set_is_kept() {
    let mut simulation =
        simulation("rate = \"12Mbps\"", &flow("external:cwnd=1MB,pacing_rate=6Mbps", "ack_every = 1"));
    simulation.advance(ms(2000));
    let before = simulation.flow(0).unwrap().goodput;
    // What was sent in the last 51 ms has not arrived.
    assert!((before.as_f64() * 8e-6 / 1.949 - 6.0).abs() < 0.1, "{before}");
    simulation.set_pacing_rate(0, Some(Rate::from_mbps(3))).unwrap();
    assert_eq!(simulation.flow(0).unwrap().sender.pacing_rate, Some(Rate::from_mbps(3)));
    simulation.advance(ms(3000));
    let start = simulation.flow(0).unwrap().goodput;
    simulation.advance(ms(5000));
    let paced = simulation.flow(0).unwrap().goodput - start;
    assert!((paced.as_f64() * 8e-6 / 2.0 - 3.0).abs() < 0.05, "{paced}");
    // Without a rate the window of 1 MB fills the link and its queue.
    simulation.set_pacing_rate(0, None).unwrap();
    simulation.advance(ms(6000));
    assert!(simulation.link(0).unwrap().queue_packets > 500);
}

#[test]
fn a_flow_that_is_not_paced_shows_no_pacing_rate() {
    for scheme in ["newreno:pacing=false", "westwood:pacing=false", "quicdc:pacing=false"] {
        let mut simulation = simulation("rate = \"12Mbps\"", &flow(scheme, "ack_every = 1"));
        simulation.advance(ms(500));
        assert_eq!(simulation.flow(0).unwrap().sender.pacing_rate, None, "{scheme}");
    }
}

#[test]
fn an_external_controller_can_be_set_before_its_flow_starts_and_in_every_connection() {
    let flows = flow("external", "start = \"1s\"")
        + &flow("external", "traffic = { kind = \"short-flows\", per_second = 20, size = \"60kB\" }");
    let mut simulation = simulation("rate = \"100Mbps\"", &flows);
    for flow in [0, 1] {
        simulation.set_window(flow, Bytes(30 * MSS)).unwrap();
    }
    simulation.advance(ms(1000));
    assert_eq!(simulation.flow(0).unwrap().sender.inflight, Bytes(30 * MSS));
    // 60 kB need two windows of 30 packets: two round trips and the last packets' time on the link.
    let completion = |simulation: &Simulation| {
        let application = simulation.flow(1).unwrap().application;
        application.iter().find(|(name, _)| *name == "completion_ms_p99").map(|&(_, value)| value).unwrap()
    };
    simulation.advance(ms(3000));
    assert!((150.0..180.0).contains(&completion(&simulation)), "{}", completion(&simulation));
    // With windows of one packet those that are open take far longer.
    simulation.set_window(1, Bytes(MSS)).unwrap();
    simulation.advance(ms(9900));
    assert!(completion(&simulation) > 1000.0, "{}", completion(&simulation));
}

#[test]
fn windows_and_rates_that_no_flow_can_have_are_refused() {
    let mut simulation = simulation("rate = \"12Mbps\"", &(flow("external", "") + &flow("cubic", "")));
    let text = |result: Result<(), ActionError>| result.unwrap_err().to_string();
    assert_eq!(
        text(simulation.set_window(0, Bytes(1447))),
        "cwnd = `1.447kB` is out of range: valid is 1.448kB, one packet, to 1000GB"
    );
    assert_eq!(
        text(simulation.set_pacing_rate(0, Some(Rate::from_bps(999)))),
        "pacing_rate = `999bps` is out of range: valid is 1kbps to 10000Gbps, or none"
    );
    assert_eq!(
        text(simulation.set_window(1, Bytes(MSS))),
        "flow `flow2`: its controller `cubic` decides for itself: only `external` is driven from outside"
    );
    assert_eq!(
        text(simulation.set_pacing_rate(2, None)),
        "there is no flow number 2: the run has 2, numbered from 0"
    );
    simulation.advance(ms(1000));
    assert_eq!(simulation.flow(0).unwrap().sender.cwnd, Bytes(10 * MSS));
}

#[test]
fn a_rate_that_is_set_is_a_step_of_the_schedule() {
    let flows = flow("cubic", "") + &flow("bbr", "start = \"500ms\"");
    let mut simulation = simulation("rate = \"12Mbps\"", &flows);
    for (at, mbps) in [(1000, 6), (4000, 0), (4400, 24)] {
        simulation.advance(ms(at));
        simulation.set_link_rate(0, Rate::from_mbps(mbps)).unwrap();
    }
    simulation.advance(simulation.end());
    let mut outcome = simulation.finish().unwrap();
    let steps = "steps = [[\"1s\", \"12Mbps\"], [\"3s\", \"6Mbps\"], [\"400ms\", \"0bps\"], [\"10s\", \"24Mbps\"]]\nrepeat = false";
    let expected = run(&scenario(steps, &flows), &Traces::new()).unwrap();
    assert!((outcome.run.capacity_mbps - (12.0 + 3.0 * 6.0 + 5.6 * 24.0) / 10.0).abs() < 1e-9);
    outcome.run.trace.clone_from(&expected.run.trace);
    assert!(
        expected.run.run_id.is_some() && outcome.run.run_id.is_none(),
        "a run that was acted upon is none of a scenario"
    );
    outcome.run.run_id = expected.run.run_id;
    assert_eq!(json(&outcome), json(&expected));
}

#[test]
fn a_trace_or_a_schedule_ends_where_a_rate_is_set_and_a_radio_has_none() {
    let trace = Trace::from_millis((1..=1000).map(|index| 2 * index)).unwrap();
    for link in ["trace = \"even\"", "steps = [[\"25ms\", \"8Mbps\"], [\"25ms\", \"4Mbps\"]]"] {
        let traces = Traces::from([("even".to_string(), trace.clone())]);
        let mut simulation = Simulation::new(&scenario(link, &flow("cubic", "")), &traces).unwrap();
        simulation.advance(ms(3000));
        let before = simulation.link(0).unwrap().capacity;
        assert!((before.as_mbps_f64() - 6.0).abs() < 0.02, "{link}: {before}");
        simulation.set_link_rate(0, Rate::from_mbps(24)).unwrap();
        simulation.advance(ms(3050));
        let half = simulation.link(0).unwrap().capacity;
        assert!((half.as_mbps_f64() - 15.0).abs() < 0.3, "{link}: the window covers both, {half}");
        simulation.advance(ms(8000));
        let view = simulation.link(0).unwrap();
        assert_eq!(view.capacity, Rate::from_mbps(24), "{link}");
        let passed = simulation.capacity_between(0, ms(0), ms(3000)).unwrap();
        assert!((passed.as_f64() * 8e-6 / 3.0 - 6.0).abs() < 0.02, "{link}: {passed}");
        let run = simulation.finish().unwrap().run;
        assert!(run.utilization > 0.8 && run.utilization <= 1.0, "{link}: {}", run.utilization);
    }
    let mut simulation = simulation("radio = \"wifi\"", &flow("cubic", ""));
    let text = |result: Result<(), ActionError>| result.unwrap_err().to_string();
    assert_eq!(
        text(simulation.set_link_rate(0, Rate::from_mbps(1))),
        "link `link`: the rate of a radio follows from its channel: only links with a trace, a rate or steps can be given another"
    );
    assert_eq!(
        text(simulation.set_link_rate(1, Rate::from_mbps(1))),
        "there is no link number 1: the run has 1, numbered from 0"
    );
    assert_eq!(
        text(simulation.set_link_rate(0, Rate::from_mbps(10_000_001))),
        "rate = `10000.001Gbps` is out of range: valid is 0bps to 10000Gbps"
    );
}

/// The newest RTT sample of a flow, in milliseconds.
fn rtt(simulation: &Simulation, flow: usize) -> f64 {
    simulation.flow(flow).unwrap().sender.rtt.unwrap().sample.unwrap().as_millis_f64()
}

#[test]
fn a_delay_that_is_set_is_the_flows_own() {
    // Far below the link's rate: RTTs are propagation and 1 ms on the link, or 2 behind the other flow.
    let flows = flow("external:cwnd=2pkt", "ack_every = 1") + &flow("external:cwnd=2pkt", "ack_every = 1");
    let mut simulation = simulation("rate = \"12Mbps\"", &flows);
    simulation.advance(ms(1000));
    simulation.set_delay(0, Direction::Forward, Duration::from_millis(150), Order::Kept).unwrap();
    simulation.advance(ms(2000));
    assert!((201.0..206.0).contains(&rtt(&simulation, 0)), "{}", rtt(&simulation, 0));
    assert!((101.0..106.0).contains(&rtt(&simulation, 1)), "{}", rtt(&simulation, 1));
    simulation.set_delay(0, Direction::Forward, Duration::from_millis(10), Order::Kept).unwrap();
    simulation.set_delay(0, Direction::Reverse, Duration::ZERO, Order::Kept).unwrap();
    simulation.advance(ms(3000));
    assert!((11.0..16.0).contains(&rtt(&simulation, 0)), "{}", rtt(&simulation, 0));
    assert!((101.0..106.0).contains(&rtt(&simulation, 1)), "{}", rtt(&simulation, 1));
    simulation.advance(simulation.end());
    simulation.finish().expect("packets in both lines are found");
}

#[test]
fn a_shorter_delay_reorders_packets_only_where_that_is_asked_for() {
    for (order, lost) in [(Order::Kept, false), (Order::Free, true)] {
        // At 12 Mbit/s 80 packets are on the way when the delay falls by 80 ms.
        let mut simulation = simulation(
            "rate = \"12Mbps\"",
            &flow("external:cwnd=110pkt", "ack_every = 1\ninitial_window = 20"),
        );
        simulation.advance(ms(2000));
        assert_eq!(simulation.flow(0).unwrap().sender.lost_packets, 0);
        simulation.set_delay(0, Direction::Forward, Duration::from_millis(5), order).unwrap();
        simulation.advance(ms(4000));
        let sender = simulation.flow(0).unwrap().sender;
        assert_eq!(sender.lost_packets > 0, lost, "{order:?}");
        assert_eq!(sender.recovery, RecoveryState::Open, "{order:?}: it is over");
    }
}

#[test]
fn a_delay_needs_one_line() {
    let flows = flow("cubic", "name = \"a\"\npath = [\"link\", \"delay:delay=3ms\", \"delay:delay=4ms\"]")
        .replacen("path = [\"link\"]\n", "", 1)
        + &flow("cubic", "name = \"b\"\npath = [\"link\", \"delay:delay=30ms\"]").replacen(
            "path = [\"link\"]\n",
            "",
            1,
        );
    let mut simulation = simulation("rate = \"12Mbps\"", &flows);
    let mut set = |flow, direction, delay| simulation.set_delay(flow, direction, delay, Order::Kept);
    let second = Duration::from_secs(1);
    assert_eq!(
        set(0, Direction::Forward, second).unwrap_err().to_string(),
        "flow `a`: its forward path has 2 delay lines: it must have one"
    );
    assert_eq!(
        set(1, Direction::Reverse, Duration::from_secs(3601)).unwrap_err().to_string(),
        "delay = `3601s` is out of range: valid is 0s to 3600s"
    );
    assert!(matches!(set(2, Direction::Reverse, second), Err(ActionError::NoFlow { flow: 2, count: 2 })));
    // Its own `delay` element, and the other half of its RTT.
    set(1, Direction::Forward, Duration::from_millis(70)).unwrap();
    set(1, Direction::Reverse, Duration::from_millis(60)).unwrap();
    simulation.advance(ms(200));
    assert!(simulation.flow(1).unwrap().sender.rtt.unwrap().min >= Duration::from_millis(130));
}

#[test]
fn flows_start_and_stop_when_they_are_told() {
    let flows = flow("cubic", "start = \"5s\"") + &flow("cubic", "") + &flow("cubic", "start = \"1s\"");
    let mut simulation = simulation("rate = \"12Mbps\"", &flows);
    let phases = |simulation: &Simulation| simulation.flows().map(|flow| flow.phase).collect::<Vec<_>>();
    simulation.hold_flow(2).unwrap();
    simulation.advance(ms(2000));
    assert_eq!(phases(&simulation), [FlowPhase::Waiting, FlowPhase::Running, FlowPhase::Waiting]);
    simulation.start_flow(0).unwrap();
    assert_eq!(simulation.flow(0).unwrap().sender.sent_packets, 10);
    simulation.stop_flow(1).unwrap();
    simulation.advance(ms(4000));
    let stopped = simulation.flow(1).unwrap();
    assert_eq!(stopped.sender.inflight, Bytes::ZERO);
    simulation.start_flow(2).unwrap();
    simulation.advance(ms(8000));
    assert_eq!(phases(&simulation), [FlowPhase::Running, FlowPhase::Stopped, FlowPhase::Running]);
    assert_eq!(simulation.flow(1).unwrap().goodput, stopped.goodput);
    let run = simulation.finish().unwrap().run;
    // Rates are over the time in which a flow existed: 6 s, 2 s and 4 s.
    let goodputs: f64 = run.flows.iter().zip([6.0, 2.0, 4.0]).map(|(flow, s)| flow.goodput_mbps * s).sum();
    assert!((goodputs / (run.goodput_mbps * 8.0) - 1.0).abs() < 1e-9);
    assert!(run.flows[1].goodput_mbps > 8.0);
}

/// No event has happened yet, so the flow that is due at this very moment has not started.
#[test]
fn a_flow_that_is_due_now_can_be_held_and_started_later_in_a_clone_too() {
    let flows = flow("cubic", "") + &flow("newreno", "");
    let mut original = simulation("rate = \"12Mbps\"", &flows);
    assert_eq!(original.flow(0).unwrap().phase, FlowPhase::Waiting);
    original.hold_flow(0).unwrap();
    original.advance(ms(1500));
    let waiting = original.flow(0).unwrap();
    assert_eq!((waiting.phase, waiting.sender.sent_packets), (FlowPhase::Waiting, 0));
    assert_eq!(original.flow(1).unwrap().phase, FlowPhase::Running);
    // The clone is taken while the flow is held.
    let mut clone = original.clone();
    let outcomes = [&mut original, &mut clone].map(|simulation| {
        simulation.start_flow(0).unwrap();
        simulation.advance(ms(8000));
        assert_eq!(simulation.flow(0).unwrap().phase, FlowPhase::Running);
        json(&simulation.clone().finish().unwrap())
    });
    assert_eq!(outcomes[0], outcomes[1]);
    let run = original.finish().unwrap().run;
    assert!(run.flows.iter().all(|flow| flow.goodput_mbps > 0.0), "{:?}", run.flows);
}

#[test]
fn a_flow_starts_once_and_stops_once() {
    let flows = flow("cubic", "")
        + &flow("cubic", "start = \"1s\"\nstop = \"2s\"")
        + &flow("cubic", "start = \"3s\"");
    let mut simulation = simulation("rate = \"12Mbps\"", &flows);
    simulation.advance(ms(500));
    let text = |result: Result<(), ActionError>| result.unwrap_err().to_string();
    assert_eq!(text(simulation.start_flow(0)), "flow `flow1` has started: a flow starts once");
    assert_eq!(
        text(simulation.hold_flow(0)),
        "flow `flow1` has started: only one that has not started can be held"
    );
    simulation.hold_flow(1).unwrap();
    simulation.stop_flow(2).unwrap();
    simulation.advance(ms(4000));
    assert_eq!(text(simulation.start_flow(1)), "flow `flow2` has stopped: a flow starts once");
    assert_eq!(text(simulation.stop_flow(1)), "flow `flow2` has stopped: a flow stops once");
    assert_eq!(text(simulation.start_flow(2)), "flow `flow3` has stopped: a flow starts once");
    let run = simulation.finish().unwrap().run;
    assert_eq!((run.flows[1].throughput_mbps, run.flows[2].goodput_mbps), (0.0, 0.0));
}

#[test]
fn a_link_shows_its_queue_and_what_passed() {
    let mut simulation =
        simulation("rate = \"12Mbps\"\nqueue = \"codel\"", &flow("external:cwnd=150pkt", "name = \"big\""));
    simulation.advance(ms(1));
    let view = simulation.link(0).unwrap();
    // One is being sent; the others have waited since the start.
    assert_eq!((view.name.as_str(), view.queue), ("link", "codel"));
    assert_eq!((view.queue_packets, view.queue_bytes), (148, Bytes(148 * 1500)));
    assert_eq!((view.sojourn, view.delivered_packets), (Some(Duration::from_millis(1)), 1));
    assert_eq!((view.delivered_bytes, view.dropped_packets), (Bytes(1500), 0));
    assert_eq!(view.capacity, Rate::from_mbps(12));
    assert!(!view.state.is_empty());
    simulation.advance(ms(1000));
    assert!(simulation.link(0).unwrap().dropped_packets > 0, "CoDel has acted");
    simulation.stop_flow(0).unwrap();
    simulation.advance(ms(4000));
    let view = simulation.link(0).unwrap();
    assert_eq!((view.queue_packets, view.queue_bytes, view.sojourn), (0, Bytes::ZERO, None));
    assert_eq!((simulation.link_called("link"), simulation.flow_called("big")), (Some(0), Some(0)));
    assert_eq!((simulation.link_called("big"), simulation.flow(1), simulation.link(1)), (None, None, None));
    assert_eq!(simulation.capacity_between(0, ms(0), ms(2)), Some(Bytes(3000)));
    assert_eq!(simulation.capacity_between(1, ms(0), ms(2)), None, "a delay line is no link");
}

#[test]
fn a_flow_shows_what_its_outcome_will_say() {
    let mut simulation =
        simulation("rate = \"12Mbps\"\nqueue = \"abc\"", &flow("abc", "traffic = \"video\""));
    simulation.advance(ms(8000));
    let view = simulation.flow(0).unwrap();
    assert!(view.sender.marks.accelerate > 0 && view.sender.marks.brake > 0, "{:?}", view.sender.marks);
    assert!(simulation.link(0).unwrap().marks.accelerate >= view.sender.marks.accelerate);
    let outcome = simulation.finish().unwrap().run;
    let application = outcome.flows[0].application.as_ref().unwrap();
    assert_eq!(application.len(), view.application.len());
    for (name, value) in &view.application {
        assert_eq!(application[*name], *value, "{name}");
    }
    assert!(view.state.iter().any(|(name, _)| *name == "cwnd_bytes"));
}

fn held_to_the_contract(scenario: &Scenario, traces: &Traces) -> Simulation {
    let host = |config| Ok(FlowHost::new(FlowConfig { check_contract: true, ..config }));
    Simulation::with_hosts(scenario, traces, host).unwrap()
}

/// Takes an action; it may be refused.
fn act(simulation: &mut Simulation, random: &mut Random) {
    let flow = random.bits() as usize % simulation.flow_count();
    let link = random.bits() as usize % simulation.link_count();
    let amount = random.bits();
    let direction = if amount & 1 == 0 { Direction::Forward } else { Direction::Reverse };
    let order = if amount & 6 == 0 { Order::Free } else { Order::Kept };
    drop(match random.bits() % 8 {
        0 => simulation.start_flow(flow),
        1 => simulation.hold_flow(flow),
        2 => simulation.stop_flow(flow),
        3 => simulation.set_delay(flow, direction, Duration::from_micros(amount % 80_000), order),
        4 => simulation.set_window(flow, Bytes(amount % 400_000)),
        5 => simulation.set_pacing_rate(flow, Some(Rate::from_bps(amount % 20_000_000))),
        _ => simulation.set_link_rate(link, Rate::from_bps(amount % 30_000_000 / (1 + amount % 3 * 50))),
    });
}

#[test]
fn the_same_actions_give_the_same_outcome_in_a_clone_too() {
    for index in 0..80 {
        let (mut scenario, traces) = random_scenario(5000 + index);
        // Half of the flows are driven from outside.
        let external = read(
            "external.toml",
            &format!(
                "duration = \"1s\"\n[[link]]\nname = \"l\"\nrate = \"1Mbps\"\n{}",
                flow("external", "").replace("\"link\"", "\"l\"")
            ),
        )
        .unwrap();
        for flow in scenario.flows.iter_mut().skip(1) {
            flow.controller = external.flows[0].controller.clone();
            flow.feedback = external.flows[0].feedback.clone();
        }
        let script = |simulation: &mut Simulation, random: &mut Random, until: Time| {
            while simulation.now() < until {
                let step = Duration::from_micros(random.bits() % 200_000);
                simulation.advance((simulation.now() + step).min(until));
                act(simulation, random);
            }
        };
        let middle = Time::ZERO + scenario.duration / 2;
        let mut random = Random::stream(index, "actions");
        let mut original = held_to_the_contract(&scenario, &traces);
        script(&mut original, &mut random, middle);
        let (mut clone, mut again) = (original.clone(), random.clone());
        let mut fresh = held_to_the_contract(&scenario, &traces);
        let mut anew = Random::stream(index, "actions");
        script(&mut fresh, &mut anew, middle);
        let outcomes = [(&mut original, &mut random), (&mut clone, &mut again), (&mut fresh, &mut anew)].map(
            |(simulation, random)| {
                script(simulation, random, simulation.end());
                json(&simulation.clone().finish().expect("packets are conserved"))
            },
        );
        assert_eq!(outcomes[0], outcomes[1], "{index}: clone");
        assert_eq!(outcomes[0], outcomes[2], "{index}: again");
    }
}
