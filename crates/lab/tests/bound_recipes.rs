//! The bound of docs/abc-bound.md on every trace that the program brings, beside what packets wait there.

use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_lab::analysis::bound::classes::Measured;
use brakelight_lab::analysis::bound::{Law, Path};
use brakelight_links::trace::Trace;
use brakelight_scenario::compare::{Compare, Reverse};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::embedded::EMBEDDED;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part;

const PATH: Path = Path { tau_s: 0.1, flows: 1.0, packet_bits: 12_000.0 };

/// What a packet of one flow waits at most in a minute of the trace's capacity, in seconds. The buffer never
/// overflows.
fn longest_s(name: &str, trace: &Trace) -> f64 {
    let compare = Compare {
        buffer: Limit::Packets(1_000_000),
        reverse: Reverse::Unlimited,
        rtt: Duration::from_secs_f64(PATH.tau_s),
        ..Compare::mahimahi(Scheme::parse("abc").expect("a scheme"), name)
    };
    let scenario = compare.scenario().expect("a scenario");
    let traces = Traces::from([(name.to_string(), trace.clone())]);
    let outcome = run(&scenario, &traces).expect("a run");
    outcome.run.links[0].queueing_delay_ms.expect("packets passed").max / 1e3
}

#[test]
#[ignore = "eighteen runs: scripts/prove"]
fn no_packet_on_the_traces_that_the_program_brings_waits_longer_than_its_bound() {
    let mut table = String::from(
        "| trace | mu_min, mu_max, Mbit/s | a | d, ms | bound, s | longest wait, s | of the bound |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for embedded in EMBEDDED.iter().filter(|embedded| embedded.same_as.is_none()) {
        // The capacity alone: what else a recipe has of its path would change the round trip.
        let trace = Trace::from_micros(embedded.trace().micros()).expect("a trace");
        let waited_s = longest_s(embedded.name, &trace);
        let row = match Measured::tightest(&trace, Law::PAPER, PATH) {
            Some(Measured { class, wait_s }) => {
                assert!(
                    waited_s <= wait_s,
                    "{}: waited {waited_s} s, the bound is {wait_s} s",
                    embedded.name
                );
                format!(
                    "{:.2}, {:.1} | {:.1} | {:.0} | {wait_s:.2} | {waited_s:.2} | {:.2}",
                    class.low_bps / 1e6,
                    class.high_bps / 1e6,
                    class.change,
                    1e3 * class.outage_s,
                    waited_s / wait_s
                )
            }
            None => format!("- | - | - | none | {waited_s:.2} | -"),
        };
        table += &format!("| `{}` | {row} |\n", embedded.name);
    }
    part::check("../abc-bound", "recipes", &table);
}
