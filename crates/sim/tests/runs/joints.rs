//! A link of fixed rate that only data passes has no events of its own while it is busy, where a delay line
//! follows it. The outcome is that of a run in which it has them, byte for byte.

use std::fmt::Write;

use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_links::elements::Order;
use brakelight_registry::{CONTROLLERS, QUEUES};
use brakelight_scenario::file::read;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::host::FlowHost;
use brakelight_sim::network::Network;
use brakelight_sim::packet::SimPacket;
use brakelight_sim::{Simulation, Traces};

fn below(random: &mut Random, limit: u64) -> u64 {
    random.bits() % limit
}

/// Up to two links one after the other, and flows over one or both of them; flows of equal RTT share a line.
fn draft(random: &mut Random) -> String {
    let mut text = format!("duration = \"{}ms\"\nseed = {}\n", 300 + below(random, 700), below(random, 1000));
    writeln!(text, "record = {{ series = {}, bin = \"37ms\", flow_delays = true }}", random.chance(0.5))
        .unwrap();
    let links = 1 + below(random, 2);
    for link in 0..links {
        let queue = QUEUES[below(random, QUEUES.len() as u64) as usize].name;
        let (mbps, buffer) = (20 + 13 * below(random, 9), 3 + below(random, 100));
        writeln!(text, "[[link]]\nname = \"l{link}\"\nrate = \"{mbps}Mbps\"\nqueue = \"{queue}\"").unwrap();
        writeln!(text, "buffer = \"{buffer}pkt\"").unwrap();
        if random.chance(0.1) {
            text.push_str("burst = \"10kB\"\n");
        }
    }
    let jitter = if random.chance(0.3) { "jitter = \"0s\"\n" } else { "" };
    let rtts: Vec<u64> = (0..2).map(|_| 60 + below(random, 60)).collect();
    for flow in 0..=below(random, 3) {
        let controller = CONTROLLERS[below(random, CONTROLLERS.len() as u64) as usize].name;
        let path = match (links, below(random, 5)) {
            (1, _) | (_, 0) => "[\"l0\"]",
            (_, 1) => "[\"l1\"]",
            _ => "[\"l0\", \"l1\"]",
        };
        let rtt = rtts[usize::from(random.chance(0.2))];
        let host = if random.chance(0.5) { "tcp" } else { "quic" };
        writeln!(text, "[[flow]]\nname = \"f{flow}\"\ncontroller = \"{controller}\"\nhost = \"{host}\"")
            .unwrap();
        writeln!(text, "rtt = \"{rtt}ms\"\npath = {path}\ncount = {}\n{jitter}", 1 + below(random, 3))
            .unwrap();
        if random.chance(0.2) {
            text.push_str("traffic = { kind = \"short-flows\", per_second = 40, size = \"30kB\" }\n");
        }
    }
    text
}

fn scenario(random: &mut Random) -> Scenario {
    (0..1000).find_map(|_| read("joints.toml", &draft(random)).ok()).expect("one of them is valid")
}

fn data(outcome: &Outcome) -> String {
    serde_json::to_string(&(&outcome.run, &outcome.series)).expect("an outcome is data")
}

/// Advances in steps, with an action between some of them.
fn finished(mut simulation: Simulation, mut random: Random) -> String {
    while simulation.now() < simulation.end() {
        let target = simulation.now() + Duration::from_micros(below(&mut random, 100_000));
        if random.chance(0.5) {
            simulation.advance(target);
        } else {
            while simulation.now() < target && simulation.step().is_some() {}
            // Which of two events of the same time is the first may depend on earlier stops.
            simulation.advance(simulation.now());
        }
        let flow = below(&mut random, simulation.flow_count() as u64) as usize;
        let amount = 1 + below(&mut random, 100);
        // An action may be refused, here and there alike.
        let _ = match below(&mut random, 30) {
            0 => simulation.set_link_rate(0, Rate::from_mbps(amount)),
            1 => simulation.set_delay(flow, Direction::Forward, Duration::from_millis(amount), Order::Kept),
            2 => simulation.stop_flow(flow),
            _ => Ok(()),
        };
        simulation.links().for_each(drop);
    }
    data(&simulation.finish().expect("packets are conserved"))
}

#[test]
fn a_joined_link_changes_no_byte() {
    let traces = Traces::new();
    let mut joined = 0;
    for index in 0..600 {
        let mut random = Random::stream(index, "joints");
        let scenario = scenario(&mut random);
        let network: Network<SimPacket> = Network::build(&scenario, &traces).unwrap();
        joined += u32::from(!network.joints().is_empty());
        let with = Simulation::new(&scenario, &traces).unwrap();
        let without = Simulation::with_hosts(&scenario, &traces, |flow| Ok(FlowHost::new(flow))).unwrap();
        let uninterrupted = |mut simulation: Simulation| {
            simulation.advance(simulation.end());
            data(&simulation.finish().expect("packets are conserved"))
        };
        assert_eq!(uninterrupted(with.clone()), uninterrupted(without.clone()), "{index}");
        let times = Random::stream(index, "times");
        assert_eq!(finished(with, times.clone()), finished(without, times), "{index}, in steps");
    }
    assert!(joined > 300, "{joined} of 600 scenarios have a joined link");
}
