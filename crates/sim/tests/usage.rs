//! A window that is not used does not grow (RFC 9002 section 7.8): with every kind of traffic, on each
//! modelled host, with and without pacing.

use brakelight_core::time::{Duration, Time};
use brakelight_registry::{CONTROLLERS, ControllerConfig};
use brakelight_scenario::file::read;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::host::{FlowConfig, FlowHost};
use brakelight_sim::simulation::run_with;
use brakelight_sim::{Simulation, Traces};

const HOSTS: [&str; 2] = ["tcp", "quic"];

/// Packets that a QUIC host lets leave together: almost one by one, as usual, and as if it did not pace.
const BURSTS: [u32; 3] = [2, 10, 10_000];

const TRAFFIC: [&str; 10] = [
    "\"backlogged\"",
    "{ kind = \"size\", size = \"300kB\" }",
    "{ kind = \"on-off\", on = \"400ms\", off = \"300ms\" }",
    "{ kind = \"on-off\", on = \"400ms\", off = \"300ms\", rate = \"2Mbps\" }",
    "{ kind = \"short-flows\", per_second = 4, size = \"60kB\" }",
    "{ kind = \"rate-limited\", rate = \"3Mbps\" }",
    "{ kind = \"request-response\", request = \"100B\", response = \"20kB\", think = \"1ms\" }",
    "{ kind = \"request-response\", request = \"100B\", response = \"200kB\", think = \"100ms\" }",
    "\"video\"",
    "\"call\"",
];

fn scenario(controller: &str, host: &str, burst: u32, traffic: &str, seconds: u32) -> Scenario {
    let queue = ControllerConfig::new(controller, &[]).unwrap().needs().queue.unwrap_or("droptail");
    let text = format!(
        "duration = \"{seconds}s\"\n[[link]]\nname = \"link\"\nrate = \"10Mbps\"\nbuffer = \"250pkt\"\n\
         queue = \"{queue}\"\n[[flow]]\ncontroller = \"{controller}\"\nhost = \"{host}\"\npath = [\"link\"]\n\
         rtt = \"40ms\"\npacing_burst = {burst}\ntraffic = {traffic}\n"
    );
    read("usage.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs it with its host held to the contract: a breach panics.
fn hold(scenario: &Scenario) {
    let host = |config| Ok(FlowHost::new(FlowConfig { check_contract: true, ..config }));
    run_with(scenario, &Traces::new(), host).unwrap();
}

/// 14 packets are in flight at most. A window that may be twice what was used in slow start ends below 30.
#[test]
fn an_application_that_asks_and_answers_does_not_let_a_window_grow_for_ever() {
    for entry in CONTROLLERS {
        let config = ControllerConfig::new(entry.name, &[]).unwrap();
        if config.needs().grows_unused {
            continue;
        }
        for (host, burst) in HOSTS.iter().flat_map(|host| BURSTS.map(|burst| (*host, burst))) {
            let scenario = scenario(entry.name, host, burst, TRAFFIC[6], 12);
            let mss = scenario.flows[0].mss;
            let mut run = Simulation::new(&scenario, &Traces::new()).unwrap();
            run.advance(Time::ZERO + Duration::from_secs(12));
            let packets = run.sender(0).unwrap().cwnd.as_f64() / mss.as_f64();
            assert!(packets < 30.0, "{} on {host}, bursts of {burst}: {packets:.1} packets", entry.name);
        }
    }
}

#[test]
fn every_kind_of_traffic_keeps_the_contract_with_and_without_pacing() {
    for entry in CONTROLLERS {
        for traffic in TRAFFIC {
            for (host, burst) in HOSTS.iter().flat_map(|host| BURSTS.map(|burst| (*host, burst))) {
                if *host == *"tcp" && burst != BURSTS[0] {
                    // It has no bursts.
                    continue;
                }
                eprintln!("{} {host} {burst} {traffic}", entry.name);
                hold(&scenario(entry.name, host, burst, traffic, 6));
            }
        }
    }
}
