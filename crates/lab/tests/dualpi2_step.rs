//! Why `dualpi2:rules=linux` leaves more of a link unused than the RFC's rules do. The table of
//! docs/validation/dualpi2.md is what these runs print.

use std::fmt::Write;

use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_registry::Options;
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme_string::SchemeString;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part;

/// Why the step of Linux leaves so much more unused than the RFC's ramp does, where a link serves in batches:
/// it marks packets that waited for the link alone. One Prague flow of 40 ms for 30 s.
#[test]
fn the_step_of_linux_marks_packets_that_waited_for_the_link_alone() {
    const LINKS: [&str; 3] = ["lte-walking", "starlink", "fixed"];
    const ROWS: [Options<'_>; 5] = [
        &[("rules", "linux")],
        &[("rules", "linux"), ("threshold_packets", "1")],
        &[("rules", "linux"), ("delay", "standing")],
        &[("rules", "rfc")],
        &[("rules", "rfc"), ("threshold_packets", "0")],
    ];
    let (rtt, duration) = (Duration::from_millis(40), Duration::from_secs(30));
    let embedded = LINKS.map(|name| Embedded::find(name).expect("an embedded trace"));
    let traces: Traces = embedded.iter().map(|it| (it.name.to_string(), it.trace())).collect();
    let mut table = format!("| `dualpi2:` | {} |\n|---|---|---|---|\n", LINKS.join(" | "));
    let mut used_percent = Vec::new();
    for options in ROWS {
        let runs = LINKS.map(|name| {
            let queue = SchemeString::new("dualpi2", options).expect("options of the queue");
            let controller = SchemeString::new("prague", &[]).expect("a controller");
            let path = vec![Hop::Link("link".to_string())];
            let scenario = Scenario {
                name: "step".to_string(),
                seed: 1,
                duration,
                measure_from: Duration::ZERO,
                trace_offset: TraceOffset::At(Duration::ZERO),
                flows: vec![FlowSpec::new("flow", controller, rtt, path)],
                links: vec![LinkSpec::trace("link", name, Limit::Packets(1000), queue)],
                record: Record::summary(duration),
            };
            run(&scenario, &traces).expect("a run").run
        });
        let cells = runs.each_ref().map(|run| {
            let parts = &run.links[0].marked_by;
            let all: f64 = parts.values().sum();
            let percent = |part: &str| 100.0 * parts[part] / all.max(1.0);
            format!("{:.1}; {:.0}, {:.0}", 100.0 * run.utilization, percent("link"), percent("threshold"))
        });
        let words: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        writeln!(table, "| `{}` | {} |", words.join(","), cells.join(" | ")).expect("a string");
        used_percent.push(runs.each_ref().map(|run| 100.0 * run.utilization));
    }
    // On the link of LTE that one question is the whole difference.
    let [linux, rfc, asked] = [0, 3, 4].map(|row| used_percent[row]);
    assert!(linux[0] < rfc[0] / 3.0 && (linux[0] - asked[0]).abs() < 2.0, "{used_percent:?}");
    part::check("dualpi2", "step", &table);
}
