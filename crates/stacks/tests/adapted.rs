//! Controllers in another host than their own: Brakelight's in noq-proto, and s2n-quic's in the modelled QUIC
//! host, each beside the same controller at home.
#![cfg(feature = "stacks")]
#![allow(clippy::print_stdout, reason = "what it measures stands in the guide")]

mod support;

use brakelight_scenario::outcome::Run;
use brakelight_sim::Traces;

/// One flow alone for 30 s, measured from 5 s on.
fn run(controller: &str, rate: &str, buffer: &str) -> Run {
    let mut registry = support::registry();
    let cubic = s2n_quic_core::recovery::cubic::Endpoint::default();
    brakelight_stacks::add_s2n_controller(&mut registry, "s2n-cubic", "Cubic of s2n-quic", cubic).unwrap();
    let host = if controller.contains('/') { "" } else { "host = \"quic\"\n" };
    let text = format!(
        "duration = \"30s\"\nmeasure_from = \"5s\"\n\
         [[link]]\nname = \"link\"\nrate = \"{rate}\"\nbuffer = \"{buffer}\"\n\
         [[flow]]\ncontroller = \"{controller}\"\n{host}rtt = \"40ms\"\npath = [\"link\"]\n"
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

#[test]
fn s2n_s_cubic_is_alike_alone_in_its_stack_and_beside_ours() {
    for (rate, buffer) in [("12Mbps", "120kB"), ("50Mbps", "500kB")] {
        let [alone, hosted, ours] =
            ["s2n-cubic", "s2n-quic/cubic", "cubic"].map(|name| run(name, rate, buffer));
        let p95 = |run: &Run| run.queueing_delay_ms.map_or(f64::NAN, |delay| delay.p95);
        for (name, run) in [("s2n-cubic", &alone), ("s2n-quic/cubic", &hosted), ("cubic", &ours)] {
            let (mbps, p95, loss) = (run.throughput_mbps, p95(run), run.loss_percent);
            println!("{name} at {rate}: {mbps:.3} Mbit/s, p95 {p95:.1} ms, {loss:.3} % lost");
            assert!(!run.unreliable, "{name} at {rate}: {:?}", run.unreliable_because);
        }
        for (name, other) in [("in its stack", &hosted), ("ours", &ours)] {
            let ratio = alone.throughput_mbps / other.throughput_mbps;
            assert!((0.97..=1.03).contains(&ratio), "{name} at {rate}: throughput, {ratio}");
            let ratio = p95(&alone) / p95(other);
            assert!((0.85..=1.15).contains(&ratio), "{name} at {rate}: p95, {ratio}");
        }
    }
}
