//! Brakelight's controllers in noq-proto beside the same controllers in the modelled QUIC host.
#![cfg(feature = "stacks")]
#![allow(clippy::print_stdout, reason = "what it measures stands in the guide")]

use brakelight_registry::Registry;
use brakelight_scenario::outcome::Run;
use brakelight_sim::Traces;

/// One flow alone for 30 s, measured from 5 s on.
fn run(controller: &str, rate: &str, buffer: &str) -> Run {
    let mut registry = Registry::standard();
    brakelight_stacks::add_to(&mut registry).unwrap();
    let text = format!(
        "duration = \"30s\"\nmeasure_from = \"5s\"\n\
         [[link]]\nname = \"link\"\nrate = \"{rate}\"\nbuffer = \"{buffer}\"\n\
         [[flow]]\ncontroller = \"{controller}\"\nhost = \"quic\"\nrtt = \"40ms\"\npath = [\"link\"]\n"
    );
    let scenario = brakelight_scenario::file::read_with(&registry, "test.toml", &text).unwrap();
    brakelight_sim::run(&scenario, &Traces::new()).unwrap_or_else(|error| panic!("{error}")).run
}

#[test]
fn copa_and_bbr3_in_noq_have_the_throughput_of_the_modelled_host() {
    for (rate, buffer) in [("12Mbps", "120kB"), ("50Mbps", "500kB")] {
        for name in ["copa", "bbr3"] {
            let [modelled, adapted] =
                [name.to_string(), format!("brakelight-noq/{name}")].map(|name| run(&name, rate, buffer));
            let ratio = adapted.throughput_mbps / modelled.throughput_mbps;
            let [p95, own] = [&adapted, &modelled].map(|run| run.queueing_delay_ms.map(|delay| delay.p95));
            println!(
                "{name} at {rate}: {:.3} of {:.3} Mbit/s, p95 {p95:?} of {own:?} ms",
                adapted.throughput_mbps, modelled.throughput_mbps
            );
            assert!((0.98..=1.02).contains(&ratio), "{name} at {rate}: {ratio}");
            assert!(!adapted.unreliable, "{name} at {rate}: {:?}", adapted.unreliable_because);
        }
    }
}
