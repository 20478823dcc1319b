//! Rows and series that look like a comparison's, made up but always the same.

use brakelight_scenario::documents::Origin;
use brakelight_scenario::outcome::{
    FlowOutcome, FlowSeries, LinkOutcome, LinkSeries, Outcome, Run, Series, Summary,
};

/// Schemes with the utilisation and the p95 queueing delay they get here.
const SCHEMES: &[(&str, f64, f64)] = &[
    ("abc", 0.86, 110.0),
    ("cubic", 0.96, 1130.0),
    ("cubic+codel", 0.66, 165.0),
    ("cubic+pie", 0.63, 75.0),
    ("newreno", 0.95, 980.0),
    ("bbr", 0.92, 620.0),
];

/// Traces with their mean capacity.
const TRACES: &[(&str, f64)] = &[
    ("lte-driving", 4.4),
    ("lte-walking", 9.8),
    ("3g-slow", 1.1),
    ("5g-bursty", 180.0),
    ("step-12-24", 18.0),
];

/// Returns where it came from.
pub fn origin() -> Origin {
    Origin {
        version: "0.1.0".into(),
        git: Some("0123456789ab".into()),
        command: "brakelight compare --out <report>".into(),
        seed: 1,
        host: "a machine & its cores".into(),
    }
}

/// Returns a row of a link of 10 Mbit/s, with 50 ms of propagation one way.
pub fn run(scheme: &str, trace: &str, throughput_mbps: f64, p95_ms: f64) -> Run {
    let delay = |p95| Some(Summary { p95, ..Summary::default() });
    Run {
        scheme: scheme.into(),
        trace: trace.into(),
        throughput_mbps,
        utilization: throughput_mbps / 10.0,
        queueing_delay_ms: delay(p95_ms),
        one_way_delay_ms: delay(p95_ms + 50.0),
        ..Run::default()
    }
}

/// Returns every scheme on every trace, with series of `bins` bins of 0.1 s.
pub fn outcomes(bins: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for (t, &(trace, capacity)) in TRACES.iter().enumerate() {
        for (s, &(scheme, utilization, p95)) in SCHEMES.iter().enumerate() {
            let sway = 1.0 + 0.08 * wave(t * 7 + s * 3);
            outcomes.push(outcome(scheme, trace, capacity, (utilization * sway).min(0.99), p95 / sway, bins));
        }
    }
    outcomes
}

fn outcome(scheme: &str, trace: &str, capacity: f64, utilization: f64, p95: f64, bins: usize) -> Outcome {
    let throughput = capacity * utilization;
    let delay = |base: f64, factor: f64| {
        Some(Summary {
            mean: base + p95 * 0.35 * factor,
            p50: base + p95 * 0.25 * factor,
            p95: base + p95 * factor,
            p99: base + p95 * 1.7 * factor,
            max: base + p95 * 2.4 * factor,
        })
    };
    let run = Run {
        scheme: scheme.into(),
        trace: trace.into(),
        seed: 1,
        duration_s: 60.0,
        capacity_mbps: capacity,
        throughput_mbps: throughput,
        goodput_mbps: throughput * 0.965,
        utilization,
        queueing_delay_ms: delay(0.0, 1.0),
        one_way_delay_ms: delay(50.0, 1.0),
        rtt_ms: delay(100.0, 1.1),
        loss_percent: if scheme == "abc" { 0.0 } else { 0.7 },
        delivered_packets: (throughput * 5000.0) as u64,
        retransmitted_packets: if scheme == "abc" { 0 } else { 210 },
        links: vec![LinkOutcome {
            name: "forward".into(),
            queue: "droptail".into(),
            ..LinkOutcome::default()
        }],
        flows: vec![FlowOutcome { name: "main".into(), controller: scheme.into(), ..FlowOutcome::default() }],
        ..Run::default()
    };
    let time_s: Vec<f64> = (0..bins).map(|bin| bin as f64 * 0.1).collect();
    let shape = |bin: usize| (1.0 + 0.55 * (bin as f64 / 37.0).sin() + 0.35 * wave(bin / 3)).max(0.02);
    let line = |value: &dyn Fn(usize) -> f64| (0..bins).map(value).collect::<Vec<f64>>();
    let some = |value: &dyn Fn(usize) -> f64| {
        // Nothing leaves during an outage.
        (0..bins).map(|bin| (bin % 150 > 4).then(|| value(bin))).collect::<Vec<Option<f64>>>()
    };
    let carried = |bin: usize| capacity * shape(bin) * utilization * (1.0 - 0.1 * wave(bin * 5).abs());
    let link = LinkSeries {
        name: "forward".into(),
        time_s: time_s.clone(),
        capacity_mbps: line(&|bin| capacity * shape(bin)),
        throughput_mbps: line(&carried),
        queueing_delay_mean_ms: some(&|bin| p95 * (0.3 + 0.2 * wave(bin / 2))),
        queueing_delay_p95_ms: some(&|bin| p95 * (0.6 + 0.35 * wave(bin / 2))),
        accelerate_fraction: some(&|bin| 0.5 + 0.2 * wave(bin)),
    };
    let flow = FlowSeries {
        name: "main".into(),
        time_s,
        throughput_mbps: line(&carried),
        cwnd_pkts: line(&|bin| 40.0 + 20.0 * wave(bin / 4)),
        rtt_ms: some(&|bin| 100.0 + p95 * (0.3 + 0.2 * wave(bin / 2))),
        ..FlowSeries::default()
    };
    Outcome {
        run,
        series: Some(Series { bin_s: 0.1, links: vec![link], flows: vec![flow] }),
        link_logs: Vec::new(),
        delays: (1..=100)
            .map(|share| [p95 * (f64::from(share) / 95.0).powi(3), f64::from(share) / 100.0])
            .collect(),
    }
}

/// Between -1 and 1, without pattern to the eye.
fn wave(step: usize) -> f64 {
    (step as f64 * 2.399_963).sin() * (step as f64 * 0.377).cos()
}
