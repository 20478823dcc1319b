//! Schemes on the models of today's links and on the recordings they were fitted to. Needs the samples: the
//! folder `links` of the one that BRAKELIGHT_SHARED names, `../shared` beside the workspace by default;
//! without it, says what it did not run. The models of slower links are judged always, the others too where
//! BRAKELIGHT_LINK_MODELS=all asks for it.

use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_links::trace::Trace;
use brakelight_scenario::compare::{Compare, Reverse};
use brakelight_scenario::scenario::TraceOffset;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_scenario::trace::fit::measured::{LINKS, read_link};
use brakelight_scenario::trace::statistics::Statistics;
use brakelight_sim::{Traces, run};
use brakelight_testkit::{part, skip};

const SCHEMES: [(&str, &str); 6] = [
    ("abc", "abc"),
    ("xcp", "xcp"),
    ("bbr3", "bbr3"),
    ("copa", "copa"),
    ("cubic", "cubic"),
    ("cubic+codel", "cubic+codel:target=50ms,interval=100ms"),
];

/// Runs of each scheme, from evenly spaced places of the trace; what counts is their median.
const RUNS: u64 = 3;

/// As far as a model's utilization may be from the recording's, points.
const POINTS: f64 = 5.0;
/// As far as its p95 of the queueing delay may be, a share.
const SHARE: f64 = 0.3;

/// Models that are judged always.
const ALWAYS: [&str; 2] = ["starlink", "wifi"];

/// Where a model is further off; the page says why.
const LISTED: &[(&str, &str)] = &[
    ("5g-sa", "cubic+codel"),
    ("mmwave", "abc"),
    ("mmwave", "xcp"),
    ("mmwave", "copa"),
    ("mmwave", "cubic+codel"),
];

/// Utilization in percent and p95 of the queueing delay in ms: medians.
fn judged(scheme: &str, trace: &Trace, buffer: Limit) -> (f64, f64) {
    let traces = Traces::from([("trace".to_string(), trace.clone())]);
    let (mut used, mut p95) = (Vec::new(), Vec::new());
    for index in 0..RUNS {
        let place = trace.period().as_nanos() / RUNS * index / 1_000_000;
        let compare = Compare {
            buffer,
            reverse: Reverse::Unlimited,
            duration: trace.period().max(Duration::from_secs(60)),
            seed: 1 + index,
            trace_offset: TraceOffset::At(Duration::from_millis(place)),
            ..Compare::mahimahi(Scheme::parse(scheme).unwrap(), "trace")
        };
        let run = run(&compare.scenario().unwrap(), &traces).unwrap().run;
        used.push(100.0 * run.utilization);
        p95.push(run.queueing_delay_ms.unwrap().p95);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(&mut used), median(&mut p95))
}

/// Holds each scheme on these models to what it does on their recordings.
fn schemes_fare_alike(is_asked: impl Fn(&str) -> bool) {
    let mut off = Vec::new();
    for (name, sample, delay, _) in LINKS.iter().filter(|(name, ..)| is_asked(name)) {
        let Some(path) = skip::recording(&format!("links/{sample}")) else { continue };
        let folder = path.ancestors().nth(2).unwrap();
        let recorded = read_link(folder, sample, *delay).unwrap().trace(None).unwrap();
        let model = Embedded::find(name).unwrap().trace();
        // One product of 100 ms and the recording's fastest second, at least 250 packets; of Starlink's 22 ms
        // it is less than that.
        let fastest = Statistics::of(&recorded, OPPORTUNITY).rate_1s.max_mbps;
        let packets = if delay.is_some() { 250 } else { ((fastest * 1e5 / 12e3).ceil() as u32).max(250) };
        let mut table = String::from(
            "| scheme | used %, recorded | model | p95 ms, recorded | model | off |\n|---|---|---|---|---|---|\n",
        );
        for (label, scheme) in SCHEMES {
            let (used, p95) = judged(scheme, &recorded, Limit::Packets(packets));
            let (model_used, model_p95) = judged(scheme, &model, Limit::Packets(packets));
            let (points, share) = (model_used - used, model_p95 / p95 - 1.0);
            let near = points.abs() <= POINTS && share.abs() <= SHARE;
            if !near {
                off.push((*name, label));
            }
            table += &format!(
                "| `{label}` | {used:.1} | {model_used:.1} | {p95:.0} | {model_p95:.0} | {points:+.1}, {:+.0} %{} |\n",
                100.0 * share,
                if near { "" } else { " (listed)" }
            );
        }
        part::check("link-models", name, &table);
    }
    let known = |off: &&(&str, &str)| !LISTED.contains(off);
    let unknown: Vec<_> = off.iter().filter(known).collect();
    assert!(unknown.is_empty(), "further off than the page says: {unknown:?}");
}

#[test]
fn schemes_fare_alike_on_starlink_and_on_its_recording() {
    schemes_fare_alike(|name| name == ALWAYS[0]);
}

#[test]
fn schemes_fare_alike_on_wifi_and_on_its_recording() {
    schemes_fare_alike(|name| name == ALWAYS[1]);
}

#[test]
fn schemes_fare_alike_on_the_other_models_and_on_their_recordings() {
    let all = std::env::var("BRAKELIGHT_LINK_MODELS").is_ok_and(|value| value == "all");
    for name in ALWAYS {
        assert!(LINKS.iter().any(|(other, ..)| *other == name), "there is no model `{name}`");
    }
    if all {
        schemes_fare_alike(|name| !ALWAYS.contains(&name));
    }
}
