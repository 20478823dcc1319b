//! A run may be advanced in any steps, cloned and looked into at any time, and its outcome is the same, byte
//! for byte.

use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::{Hop, Scenario};
use brakelight_sim::{Simulation, Traces, run};

use crate::support::random_scenario::random_scenario;

fn json(outcome: &Outcome) -> String {
    let Outcome { run, series, link_logs, .. } = outcome;
    let data = serde_json::to_string(&(run, series)).expect("an outcome is data");
    format!("{data} {link_logs:?}")
}

fn finished(mut simulation: Simulation) -> String {
    simulation.advance(simulation.end());
    json(&simulation.finish().expect("packets are conserved"))
}

/// A time in the run.
fn sometime(random: &mut Random, scenario: &Scenario) -> Time {
    Time::ZERO + scenario.duration.mul_f64(random.uniform())
}

#[test]
fn a_run_and_its_clone_end_as_a_run_without_interruption() {
    let mut random = Random::stream(1, "times");
    for index in 0..200 {
        let (scenario, traces) = random_scenario(index);
        let uninterrupted = json(&run(&scenario, &traces).unwrap());
        let mut simulation = Simulation::new(&scenario, &traces).unwrap();
        simulation.advance(sometime(&mut random, &scenario));
        // Between two events of the same time, too.
        for _ in 0..random.bits() % 4 {
            simulation.step();
        }
        for link in simulation.links() {
            assert_eq!(link.sojourn.is_some(), link.queue_packets > 0, "{index}: {}", link.queue);
        }
        let clone = simulation.clone();
        assert_eq!(finished(simulation), uninterrupted, "{index}: interrupted");
        assert_eq!(finished(clone), uninterrupted, "{index}: cloned");
    }
}

#[test]
fn the_random_scenarios_have_everything_in_them() {
    let mut seen = std::collections::BTreeSet::new();
    for index in 0..200 {
        let (scenario, _) = random_scenario(index);
        for link in &scenario.links {
            seen.insert(format!("queue {}", link.queue.name()));
            let service = format!("{:?}", link.service);
            seen.insert(format!("service {}", service.split('(').next().unwrap()));
        }
        for flow in &scenario.flows {
            seen.insert(format!("controller {}", flow.controller.name()));
            seen.insert(format!("host {:?}", flow.host));
            let traffic = format!("{:?}", flow.traffic);
            seen.insert(format!("traffic {}", traffic.split(['(', ' ']).next().unwrap()));
            for hop in flow.path.iter().chain(&flow.reverse) {
                if let Hop::Element(element) = hop {
                    seen.insert(format!("element {}", element.name()));
                }
            }
        }
    }
    let count = |kind: &str| seen.iter().filter(|name| name.starts_with(kind)).count();
    let registered = [
        brakelight_registry::CONTROLLERS.len(),
        brakelight_registry::QUEUES.len(),
        brakelight_links::elements::ELEMENTS.len(),
    ];
    assert_eq!([count("controller"), count("queue"), count("element")], registered, "{seen:#?}");
    assert_eq!((count("service"), count("host"), count("traffic")), (4, 2, 10), "{seen:#?}");
}

#[test]
fn a_run_event_by_event_is_the_run() {
    for index in 0..40 {
        let (scenario, traces) = random_scenario(1000 + index);
        let mut simulation = Simulation::new(&scenario, &traces).unwrap();
        let mut last = Time::ZERO;
        while let Some(at) = simulation.step() {
            assert!(last <= at && at == simulation.now(), "{index}");
            last = at;
        }
        assert_eq!(simulation.now(), simulation.end());
        assert_eq!(json(&simulation.finish().unwrap()), json(&run(&scenario, &traces).unwrap()), "{index}");
    }
}

#[test]
fn steps_of_any_length_make_no_difference() {
    let mut random = Random::stream(2, "times");
    for index in 0..40 {
        let (scenario, traces) = random_scenario(2000 + index);
        let mut simulation = Simulation::new(&scenario, &traces).unwrap();
        let flow = random.bits() as usize % simulation.flow_count();
        while simulation.now() < simulation.end() {
            match random.bits() % 3 {
                0 => drop(simulation.step()),
                1 => drop(simulation.advance_to_flow(flow)),
                _ => {
                    let length = Duration::from_micros(random.bits() % 100_000);
                    simulation.advance((simulation.now() + length).min(simulation.end()));
                }
            }
        }
        assert_eq!(finished(simulation), json(&run(&scenario, &traces).unwrap()), "{index}");
    }
}

#[test]
fn a_run_may_end_at_any_time() {
    let mut random = Random::stream(3, "times");
    for index in 0..40 {
        let (scenario, traces) = random_scenario(3000 + index);
        let mut simulation = Simulation::new(&scenario, &traces).unwrap();
        let end = sometime(&mut random, &scenario);
        simulation.advance(end);
        let outcome = simulation.finish().unwrap();
        let shorter = Scenario { duration: end.since(Time::ZERO), ..scenario.clone() };
        assert_eq!(json(&outcome), json(&run(&shorter, &traces).unwrap()), "{index}");
        let measured = end.since(Time::ZERO + scenario.measure_from);
        assert_eq!(outcome.run.duration_s, measured.as_nanos() as f64 / 1e9);
    }
}

#[test]
fn what_was_sent_was_delivered_dropped_or_is_left() {
    let doubles = |hop: &Hop| matches!(hop, Hop::Element(element) if element.name() == "duplicate");
    let (mut checked, mut left) = (0, 0);
    for index in 0..200 {
        let (scenario, traces) = random_scenario(index);
        if scenario.flows.iter().any(|flow| flow.path.iter().any(doubles)) {
            continue;
        }
        let run = run(&scenario, &traces).unwrap().run;
        let [sent, remaining] = [run.sent_packets, run.left_packets].map(|count| count.expect("it is known"));
        assert_eq!(sent, run.delivered_packets + run.dropped_packets + remaining, "{index}");
        checked += 1;
        left += remaining;
    }
    assert!(checked > 50 && left > 0, "{checked} runs, {left} packets left");
}

#[test]
fn nothing_is_measured_before_measuring_begins() {
    let (mut scenario, traces) = random_scenario(7);
    scenario.measure_from = Duration::from_millis(900);
    let mut simulation = Simulation::new(&scenario, &traces).unwrap();
    simulation.advance(Time::from_millis(899));
    let run = simulation.finish().unwrap().run;
    assert_eq!(
        (run.duration_s, run.capacity_mbps, run.throughput_mbps, run.goodput_mbps),
        (0.0, 0.0, 0.0, 0.0)
    );
    assert_eq!((run.delivered_packets, run.retransmitted_packets), (0, 0));
    assert_eq!((run.queueing_delay_ms, run.rtt_ms), (None, None));
    assert!(run.flows.iter().all(|flow| flow.throughput_mbps == 0.0 && flow.goodput_mbps == 0.0));
}

#[test]
fn a_run_may_go_on_after_the_scenarios_end() {
    let (scenario, traces) = random_scenario(8);
    let mut simulation = Simulation::new(&scenario, &traces).unwrap();
    let end = simulation.end() + Duration::from_millis(500);
    simulation.advance(end);
    assert_eq!(simulation.step(), None);
    simulation.advance(Time::from_millis(3));
    assert_eq!(simulation.now(), end, "a time of the past changes nothing");
    let measured = end.since(Time::ZERO + scenario.measure_from);
    assert_eq!(simulation.finish().unwrap().run.duration_s, measured.as_nanos() as f64 / 1e9);
}

#[test]
fn a_run_can_be_sent_to_another_thread() {
    let (scenario, traces) = random_scenario(9);
    let here = finished(Simulation::new(&scenario, &traces).unwrap());
    let simulation = Simulation::new(&scenario, &traces).unwrap();
    let there = std::thread::spawn(move || finished(simulation)).join().unwrap();
    assert_eq!(here, there);
}

#[test]
fn advancing_to_a_flow_stops_at_what_its_sender_learns() {
    let text = "duration = \"1s\"\n[[link]]\nname = \"l\"\nrate = \"12Mbps\"\n\
                [[flow]]\nname = \"a\"\ncontroller = \"cubic\"\npath = [\"l\"]\nrtt = \"40ms\"\nstart_within = \"0s\"\njitter = \"0s\"\n\
                ack_every = 1\n\
                [[flow]]\nname = \"b\"\ncontroller = \"cubic\"\npath = [\"l\"]\nrtt = \"40ms\"\nstart = \"300ms\"\n\
                start_within = \"0s\"\n";
    let scenario = brakelight_scenario::file::read("two.toml", text).unwrap();
    let mut simulation = Simulation::new(&scenario, &Traces::new()).unwrap();
    // It starts; the first of ten packets leaves the link after 1 ms, and its ACK is there 40 ms later.
    assert_eq!(simulation.advance_to_flow(0), Some(Time::ZERO));
    assert_eq!(simulation.advance_to_flow(0), Some(Time::from_millis(41)));
    assert_eq!(simulation.advance_to_flow(1), Some(Time::from_millis(300)));
    assert_eq!(simulation.advance_to_flow(2), None, "there is no such flow");
    assert_eq!(simulation.now(), Time::from_millis(300));
    while simulation.advance_to_flow(1).is_some() {}
    assert_eq!(simulation.now(), simulation.end());
}

#[test]
fn every_packet_on_its_way_is_seen_with_its_place_and_its_mark() {
    let text = "duration = \"3s\"\n[[link]]\nname = \"l\"\nrate = \"12Mbps\"\nqueue = \"abc\"\n\
                [[flow]]\nname = \"a\"\ncontroller = \"abc\"\npath = [\"l\"]\nrtt = \"40ms\"\n";
    let scenario = brakelight_scenario::file::read("one.toml", text).unwrap();
    let mut simulation = Simulation::new(&scenario, &Traces::new()).unwrap();
    // By whether it is data, then by mark: none, accelerate, brake, CE.
    let mut seen = [[0; 4]; 2];
    while simulation.now() < simulation.end() {
        simulation.advance(simulation.now() + Duration::from_millis(100));
        let (mut waiting, mut numbers) = (0, Vec::new());
        simulation.for_each_packet(&mut |packet| {
            assert_eq!(packet.flow, 0);
            assert_eq!(packet.is_data, packet.direction == Direction::Forward);
            assert!(packet.sent_at <= simulation.now());
            waiting += u32::from(packet.element == 0);
            numbers.extend(packet.number);
            seen[usize::from(packet.is_data)][packet.mark as usize] += 1;
        });
        let link = simulation.link(0).unwrap();
        let being_sent = waiting - link.queue_packets;
        assert!(being_sent <= 1, "{waiting} packets at the link, {} in its queue", link.queue_packets);
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "no transmission is in two places");
    }
    let [acks, data] = seen;
    assert!(acks[1] > 0 && acks[2] > 0, "ACKs echo accelerates and brakes: {acks:?}");
    assert!(data[1] > 0 && data[2] > 0 && data[3] == 0, "data carry accelerates and brakes: {data:?}");
    let mut left = 0;
    simulation.for_each_packet(&mut |packet| left += u64::from(packet.is_data));
    assert_eq!(simulation.finish().unwrap().run.left_packets, Some(left));
}
