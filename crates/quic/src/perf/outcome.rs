//! A measurement as a row of results.
//!
//! What only a simulator knows is zero or missing: the capacity, the one-way delay, what happened at single
//! links. The row's queueing delay is that of the round trip: how far the sender's RTT samples lie above the
//! smallest.

use std::collections::BTreeMap;

use brakelight_scenario::measure::distribution::Distribution;
use brakelight_scenario::measure::jain;
use brakelight_scenario::outcome::{FlowOutcome, MarkCounts, Run};

use super::STREAM_WINDOW;
use super::client::{Flow, Measurement, Plan, Work};
use super::identity::Trust;
use super::watch::SenderReport;

/// Returns what a user of `controller` must know about what was measured, a sentence each.
pub fn notes(plan: &Plan, controller: &str, measured: &Measurement) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Trust::Anyone, Some(peer)) = (&plan.trust, measured.peer) {
        notes.push(format!("the server's certificate was not verified; --pin {peer} accepts no other"));
    }
    if measured.logs_cut {
        notes.push("--qlog-limit was reached: the qlog files end there".to_string());
    }
    if let (Work::Download, Some(flow)) = (plan.work, measured.flows.first()) {
        let ran = &flow.report.controller;
        if plan.control.name() != ran {
            notes.push(format!(
                "{ran} ran, the controller of the server, which sends what is fetched; --controller {controller} is for \
                 what this end sends, and `perf-server --controller` for the server"
            ));
        }
    }
    if matches!(plan.work, Work::Upload | Work::Download) {
        notes.extend(measured.flows.iter().find_map(window_limited));
    }
    notes.extend(measured.flows.iter().flat_map(|flow| flow.report.notes.iter().cloned()));
    notes
}

/// The share of a stream's window that is under way on average where the window, and not the path, holds the
/// flow back.
const FULL: f64 = 0.9;

/// What to say of a flow that its flow-control window limited. No QUIC stack counts for how long it was
/// limited, as the kernel does for TCP. But what is under way on average is the rate times the time that
/// each byte takes (Little 1961), and a window that is nearly full of it lets no more through.
fn window_limited(Flow { received, report, .. }: &Flow) -> Option<String> {
    let rtt_micros = report.rtt.summary()?.mean * 1e3;
    let under_way = received.payload as f64 * rtt_micros / received.micros.max(1) as f64;
    let share = under_way / f64::from(STREAM_WINDOW);
    (share >= FULL).then(|| {
        format!(
            "the flow-control window of {} MiB was {:.0} % full on average: it limited a connection, not the path; \
             --connections spreads the load over several",
            STREAM_WINDOW >> 20,
            share.min(1.0) * 100.0
        )
    })
}

/// Returns the row of `measured`: what `controller` did towards `server`, both as the user wrote them.
pub fn run(plan: &Plan, controller: &str, server: &str, measured: &Measurement) -> Run {
    let (mut rtt, mut above) = (Distribution::default(), Distribution::default());
    let mut marks = MarkCounts::default();
    let (mut sent, mut lost, mut micros) = (0, 0, 0);
    for Flow { received, report, .. } in &measured.flows {
        rtt.merge(&report.rtt);
        above.merge(&report.above());
        marks = marks + report.marks;
        // What a server claims may be any number.
        sent = u64::saturating_add(sent, report.sent_packets);
        lost = u64::saturating_add(lost, report.lost_packets);
        micros = micros.max(received.micros);
    }
    let flows: Vec<FlowOutcome> =
        measured.flows.iter().enumerate().map(|(at, one)| flow(at + 1, one)).collect();
    // The server's controller sends what is fetched.
    let scheme = match (plan.work, measured.flows.first()) {
        (Work::Download, Some(flow)) => flow.report.controller.clone(),
        _ => controller.to_string(),
    };
    Run {
        scheme,
        trace: server.to_string(),
        duration_s: micros as f64 * 1e-6,
        throughput_mbps: flows.iter().map(|flow| flow.throughput_mbps).sum(),
        goodput_mbps: flows.iter().map(|flow| flow.goodput_mbps).sum(),
        queueing_delay_ms: above.summary(),
        rtt_ms: rtt.summary(),
        loss_percent: share(lost, sent),
        delivered_packets: sent.saturating_sub(lost),
        dropped_packets: lost,
        retransmitted_packets: lost,
        marks,
        jain: jain(flows.iter().map(|flow| flow.throughput_mbps)).filter(|_| flows.len() > 1),
        flows: flows.into_iter().chain(measured.probe.as_ref().map(|seen| probe(plan, seen))).collect(),
        ..Run::default()
    }
}

fn share(lost: u64, sent: u64) -> f64 {
    if sent == 0 { 0.0 } else { 100.0 * lost as f64 / sent as f64 }
}

fn flow(number: usize, Flow { received, report, exchanges }: &Flow) -> FlowOutcome {
    // Bytes per microsecond are megabytes per second.
    let mbps =
        |bytes: u64| if received.micros == 0 { 0.0 } else { 8.0 * bytes as f64 / received.micros as f64 };
    FlowOutcome {
        name: number.to_string(),
        throughput_mbps: mbps(received.wire),
        goodput_mbps: mbps(received.payload),
        application: exchanges.as_ref().map(responses),
        ..sender(report)
    }
}

fn sender(report: &SenderReport) -> FlowOutcome {
    FlowOutcome {
        controller: report.controller.clone(),
        rtt_ms: report.rtt.summary(),
        loss_percent: share(report.lost_packets, report.sent_packets),
        retransmitted_packets: report.lost_packets,
        ..FlowOutcome::default()
    }
}

fn probe(plan: &Plan, seen: &Distribution) -> FlowOutcome {
    FlowOutcome {
        name: "probe".to_string(),
        controller: plan.control.name().to_string(),
        application: Some(responses(seen)),
        ..FlowOutcome::default()
    }
}

fn responses(seen: &Distribution) -> BTreeMap<String, f64> {
    let mut named = BTreeMap::from([("responses".to_string(), seen.count() as f64)]);
    if let Some(summary) = seen.summary() {
        let values = [
            ("mean", summary.mean),
            ("p50", summary.p50),
            ("p95", summary.p95),
            ("p99", summary.p99),
            ("max", summary.max),
        ];
        named.extend(values.map(|(name, value)| (format!("response_ms_{name}"), value)));
    }
    named
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use brakelight_core::time::Duration;

    use super::*;
    use crate::perf::Control;
    use crate::perf::client::Until;
    use crate::perf::wire::Received;

    /// What a server may claim of one connection.
    const LIES: &str = r#"{
        "controller": "cubic", "sent_packets": 18446744073709551615, "lost_packets": 18446744073709551615,
        "marks": {"accelerate": 18446744073709551615, "brake": 18446744073709551615, "ce": 18446744073709551615},
        "rtt": {"sum_nanos": 18446744073709551615, "max_nanos": 18446744073709551615,
                "micros": [[18446744073709551615, 4294967295], [18446744073709551615, 4294967295]]},
        "least_rtt_nanos": 18446744073709551615, "notes": []
    }"#;

    #[test]
    fn a_connection_that_its_window_limits_is_named() {
        let flow = |mbps: u64| {
            let mut report = SenderReport::default();
            report.rtt.record(Duration::from_millis(200));
            // Bytes in ten seconds.
            let payload = mbps * 1_250_000;
            let received = Received { payload, wire: payload, micros: 10_000_000, done: true };
            Flow { received, report, exchanges: None }
        };
        // 16 MiB in 200 ms are 671 Mbit/s.
        let note = window_limited(&flow(640)).unwrap();
        assert!(note.starts_with("the flow-control window of 16 MiB was 95 % full on average"), "{note}");
        assert_eq!(window_limited(&flow(500)), None);
    }

    #[test]
    fn whatever_numbers_a_server_claims_there_is_a_row() {
        let report: SenderReport = serde_json::from_str(LIES).unwrap();
        let received = Received { payload: u64::MAX, wire: u64::MAX, micros: u64::MAX, done: true };
        let flow = Flow { received, report, exchanges: None };
        let plan = Plan {
            server: (Ipv4Addr::LOCALHOST, 1).into(),
            server_name: String::new(),
            trust: Trust::Anyone,
            token: None,
            control: Control::StockCubic,
            work: Work::Download,
            until: Until::Bytes(1),
            connections: 2,
            probe: None,
            qlog: None,
        };
        let measured = Measurement { flows: vec![flow.clone(), flow], ..Measurement::default() };
        let row = run(&plan, "cubic", "stranger", &measured);
        assert_eq!((row.marks.ce, row.dropped_packets), (u64::MAX, u64::MAX));
        assert!((row.loss_percent - 100.0).abs() < 1e-9);
    }
}
