//! What L4S promises, over simulated paths: scalable flows with hardly any delay at full use of the link,
//! beside Classic flows that keep about the same share. The tables of docs/validation/dualpi2.md and
//! prague.md are what these runs print.

use std::fmt::Write;

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_links::trace::Trace;
use brakelight_registry::Options;
use brakelight_scenario::outcome::{Run, Summary};
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme_string::SchemeString;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part::check;

/// A controller and its options.
type Sender<'a> = (&'a str, Options<'a>);

const PRAGUE: Sender<'_> = ("prague", &[]);
const CUBIC: Sender<'_> = ("cubic", &[]);
const NEWRENO: Sender<'_> = ("newreno", &[]);

/// Seconds 10 to 60 of one flow per sender over a link with 1000 packets of buffer under DualPI2.
fn share(queue: Options<'_>, mbps: u64, rtt_ms: u64, senders: &[Sender<'_>]) -> Run {
    let queue = SchemeString::new("dualpi2", queue).expect("options of the queue");
    let link = LinkSpec::fixed("link", Rate::from_mbps(mbps), Limit::Packets(1000), queue);
    let rtt = Duration::from_millis(rtt_ms);
    let flows = senders.iter().enumerate().map(|(index, &(name, options))| {
        let controller = SchemeString::new(name, options).expect("options of the controller");
        FlowSpec::new(&format!("flow{index}"), controller, rtt, vec![Hop::Link("link".to_string())])
    });
    let duration = Duration::from_secs(60);
    let scenario = Scenario {
        name: "l4s".to_string(),
        seed: 1,
        duration,
        measure_from: Duration::from_secs(10),
        trace_offset: TraceOffset::At(Duration::ZERO),
        flows: flows.collect(),
        links: vec![link],
        record: Record::summary(duration),
    };
    run(&scenario, &Traces::default()).expect("a run").run
}

fn queueing(run: &Run) -> Summary {
    run.links[0].queueing_delay_ms.expect("packets passed")
}

/// The queueing delay that the median packet of a flow met: what its RTT has beyond the propagation delay.
fn waited_ms(run: &Run, flow: usize, rtt_ms: u64) -> f64 {
    run.flows[flow].rtt_ms.expect("an RTT").p50 - rtt_ms as f64
}

fn line(table: &mut String, cells: std::fmt::Arguments<'_>) {
    writeln!(table, "| {cells} |").expect("a string takes everything");
}

#[test]
fn prague_alone_fills_the_link_with_a_queue_at_the_threshold() {
    let mut table = String::from(
        "| link | rules | RTT ms | used % | queueing delay mean / p95 / p99 ms | marked % | dropped |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for rules in ["rfc", "linux"] {
        for (mbps, rtt_ms) in [(40, 10), (40, 20), (40, 50), (120, 10), (120, 20), (120, 50)] {
            let run = share(&[("rules", rules)], mbps, rtt_ms, &[PRAGUE]);
            let (delay, dropped) = (queueing(&run), run.links[0].dropped_packets);
            let used = 100.0 * run.utilization;
            let marked = 100.0 * run.links[0].marks.ce as f64 / run.delivered_packets as f64;
            let Summary { mean, p95, p99, .. } = delay;
            line(
                &mut table,
                format_args!(
                    "{mbps} Mbit/s | `{rules}` | {rtt_ms} | {used:.1} | {mean:.2} / {p95:.2} / {p99:.2} | {marked:.1} | {dropped}"
                ),
            );
            // The ramp ends at 1.2 ms and the step is at 1 ms; a packet's own transmission takes 0.3 ms at 40
            // Mbit/s.
            assert!(mean < 1.2 && p95 < 1.5, "{rules}, {mbps} Mbit/s, {rtt_ms} ms: {delay:?}");
            assert!(
                used > 95.0 && dropped == 0,
                "{rules}, {mbps} Mbit/s, {rtt_ms} ms: {used} %, {dropped} dropped"
            );
        }
    }
    check("prague", "alone", &table);
}

/// Throughput of each kind per flow, and the delay that the median packet of its first flow met.
struct Shares {
    rates: [f64; 2],
    waited: [f64; 2],
    used_percent: f64,
}

/// So many flows of Prague, and as many of `classic`.
fn shares(queue: Options<'_>, mbps: u64, rtt_ms: u64, count: usize, classic: Sender<'_>) -> Shares {
    let mut senders = vec![PRAGUE; count];
    senders.resize(2 * count, classic);
    let run = share(queue, mbps, rtt_ms, &senders);
    let rate = |from: usize| {
        let flows = &run.flows[from..from + count];
        flows.iter().map(|flow| flow.throughput_mbps).sum::<f64>() / count as f64
    };
    Shares {
        rates: [rate(0), rate(count)],
        waited: [waited_ms(&run, 0, rtt_ms), waited_ms(&run, count, rtt_ms)],
        used_percent: 100.0 * run.utilization,
    }
}

#[test]
fn prague_and_classic_flows_share_the_link_and_not_the_delay() {
    let mut table = String::from(
        "| link | RTT ms | flows | Mbit/s per flow | ratio | delay met ms | used % |\n|---|---|---|---|---|---|---|\n",
    );
    for classic in [CUBIC, NEWRENO] {
        for (mbps, count) in [(12, 1), (40, 1), (120, 1), (120, 5)] {
            for rtt_ms in [5, 20, 50, 100] {
                let Shares { rates, waited, used_percent } = shares(&[], mbps, rtt_ms, count, classic);
                let ratio = rates[0] / rates[1];
                line(
                    &mut table,
                    format_args!(
                        "{mbps} Mbit/s | {rtt_ms} | {count} `prague`, {count} `{}` | {:.1} and {:.1} | {ratio:.2} | {:.1} and {:.1} | {used_percent:.1}",
                        classic.0, rates[0], rates[1], waited[0], waited[1]
                    ),
                );
                let row = format!(
                    "{count} each at {mbps} Mbit/s, {rtt_ms} ms, {}: {ratio:.2}, {waited:?}",
                    classic.0
                );
                assert!(waited[0] < 2.0, "{row}");
                // One Classic flow leaves its queue empty at times, and what it leaves Prague takes: see the
                // page.
                assert!(count == 1 || (0.5..2.0).contains(&ratio), "{row}");
            }
        }
    }
    check("prague", "shares", &table);
}

#[test]
fn classic_flows_settle_at_the_target() {
    let mut table = String::from(
        "| flows | rules | used % | queueing delay mean / p50 / p95 ms | dropped | marked |\n|---|---|---|---|---|---|\n",
    );
    for rules in ["rfc", "linux"] {
        for (count, ecn) in [(1, "false"), (2, "false"), (5, "false"), (10, "false"), (10, "true")] {
            let options = [("ecn", ecn)];
            let run = share(&[("rules", rules)], 40, 50, &vec![("cubic", &options[..]); count]);
            let delay = queueing(&run);
            let Summary { mean, p50, p95, .. } = delay;
            let (dropped, marked) = (run.links[0].dropped_packets, run.links[0].marks.ce);
            let used = 100.0 * run.utilization;
            let name = if ecn == "true" { "cubic:ecn=true" } else { "cubic" };
            line(
                &mut table,
                format_args!(
                    "{count} `{name}` | `{rules}` | {used:.1} | {mean:.1} / {p50:.1} / {p95:.1} | {dropped} | {marked}"
                ),
            );
            if count >= 5 {
                assert!((mean - 15.0).abs() < 1.0, "{count} of {name}, {rules}: {delay:?}");
            }
            assert!(if ecn == "true" { dropped == 0 } else { marked == 0 }, "{name}: {dropped}, {marked}");
        }
    }
    check("dualpi2", "classic", &table);
}

/// The sources' claim for ECN at a shallow threshold: the same throughput with less queue.
#[test]
fn marks_keep_the_queue_of_bbr_short() {
    for controller in ["bbr2", "bbr3"] {
        let mut table = String::from(
            "| `ecn` | used % | queueing delay mean / p50 / p95 ms | marked % |\n|---|---|---|---|\n",
        );
        let p95s = ["off", "ect1"].map(|ecn| {
            let run = share(&[], 120, 4, &[(controller, &[("ecn", ecn)])]);
            let Summary { mean, p50, p95, .. } = queueing(&run);
            let used = 100.0 * run.utilization;
            let marked = 100.0 * run.links[0].marks.ce as f64 / run.delivered_packets as f64;
            line(
                &mut table,
                format_args!("`{ecn}` | {used:.1} | {mean:.2} / {p50:.2} / {p95:.2} | {marked:.1}"),
            );
            assert!(used > 95.0, "{controller}, {ecn}: {used} %");
            p95
        });
        assert!(p95s[1] < p95s[0] / 2.0, "{controller}: {p95s:?}");
        check(controller, "ecn", &table);
    }
}

/// A constant rate as a file of whole milliseconds makes bursts that L4S takes for a queue; spread over their
/// milliseconds, the opportunities are as good as the rate itself.
#[test]
fn prague_uses_a_spread_trace_like_the_rate_it_was_made_of() {
    let mut table = String::from(
        "| link | the rate itself: used %, p95 ms | as a trace | the trace spread |\n|---|---|---|---|\n",
    );
    let rtt = Duration::from_millis(40);
    let duration = Duration::from_secs(30);
    for mbps in [48_u64, 240] {
        // One opportunity of 1500 bytes a millisecond is 12 Mbit/s.
        let millis = (1..=mbps / 12 * 10_000).map(|k| (k * 12).div_ceil(mbps));
        let traces = Traces::from([("constant".to_string(), Trace::from_millis(millis).expect("a trace"))]);
        let queue = || SchemeString::new("dualpi2", &[]).expect("a queue");
        let buffer = Limit::Packets(1000);
        let fixed = LinkSpec::fixed("link", Rate::from_mbps(mbps), buffer, queue());
        let batched = LinkSpec::trace("link", "constant", buffer, queue());
        let spread = LinkSpec { spread: true, ..batched.clone() };
        let runs = [fixed, batched, spread].map(|link| {
            let controller = SchemeString::new("prague", &[]).expect("a controller");
            let path = vec![Hop::Link("link".to_string())];
            let scenario = Scenario {
                name: "spread".to_string(),
                seed: 1,
                duration,
                measure_from: Duration::ZERO,
                trace_offset: TraceOffset::At(Duration::ZERO),
                flows: vec![FlowSpec::new("flow", controller, rtt, path)],
                links: vec![link],
                record: Record::summary(duration),
            };
            run(&scenario, &traces).expect("a run").run
        });
        let used = runs.each_ref().map(|run| 100.0 * run.utilization);
        let cells =
            runs.each_ref().map(|run| format!("{:.1}, {:.2}", 100.0 * run.utilization, queueing(run).p95));
        line(&mut table, format_args!("{mbps} Mbit/s | {}", cells.join(" | ")));
        assert!((used[0] - used[2]).abs() < 3.0, "{used:?}");
        assert!(used[1] < used[0] / 2.0, "a grid of milliseconds hurts: {used:?}");
    }
    check("prague", "spread", &table);
}
