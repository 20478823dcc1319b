//! ABC's marks in the ECN field as deployed: both encodings end to end, routers and middleboxes that rewrite
//! the field, and what lost and delayed ACKs do to the echo. The table of docs/validation/abc-ecn.md is what
//! these runs print.

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_registry::Options;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scenario::{
    FlowSpec, Hop, LinkSpec, Record, Restart, Scenario, Service, Steps, TraceOffset, Waiting,
};
use brakelight_scenario::scheme_string::SchemeString;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part::check;

const SECONDS: u64 = 60;

/// One flow of ABC over its own router, which has 6 and 18 Mbit/s in turn, two seconds each; RTT 100 ms, 250
/// packets.
#[derive(Clone)]
struct Case {
    controller: Options<'static>,
    feedback: &'static str,
    ack_every: u32,
    /// Elements that data pass before and behind the router, and that ACKs pass.
    before: Vec<(&'static str, Options<'static>)>,
    behind: Vec<(&'static str, Options<'static>)>,
    back: Vec<(&'static str, Options<'static>)>,
    /// A queue of RFC 3168 behind ABC's, at 9 Mbit/s.
    legacy: Option<Options<'static>>,
    restarts: Vec<Restart>,
}

fn legacy_compatible() -> Case {
    Case {
        controller: &[],
        feedback: "delayed",
        ack_every: 2,
        before: Vec::new(),
        behind: Vec::new(),
        back: Vec::new(),
        legacy: None,
        restarts: Vec::new(),
    }
}

/// With the receiver that every TCP has.
fn proxied() -> Case {
    Case { controller: &[("encoding", "proxied")], feedback: "rfc3168", ack_every: 1, ..legacy_compatible() }
}

impl Case {
    fn run(&self) -> Run {
        let mut link = LinkSpec::fixed(
            "abc",
            Rate::from_mbps(12),
            Limit::Packets(250),
            SchemeString::new("abc", &[]).expect("a queue"),
        );
        let turn = |mbps| (Duration::from_secs(2), Rate::from_mbps(mbps));
        link.service = Service::Steps(Steps { steps: vec![turn(6), turn(18)], repeat: true });
        link.restarts.clone_from(&self.restarts);
        let mut links = vec![link];
        let element = |(name, options): &(&str, Options<'_>)| {
            Hop::Element(SchemeString::new(name, options).expect("an element and its options"))
        };
        let mut path: Vec<Hop> = self.before.iter().map(element).collect();
        path.push(Hop::Link("abc".to_string()));
        if let Some(options) = self.legacy {
            let queue = SchemeString::new("codel", options).expect("options of CoDel");
            links.push(LinkSpec::fixed("legacy", Rate::from_mbps(9), Limit::Packets(250), queue));
            path.push(Hop::Link("legacy".to_string()));
        }
        path.extend(self.behind.iter().map(element));
        let controller = SchemeString::new("abc", self.controller).expect("options of ABC");
        let flow = FlowSpec {
            feedback: SchemeString::new(self.feedback, &[]).expect("a feedback"),
            ack_every: self.ack_every,
            reverse: self.back.iter().map(element).collect(),
            ..FlowSpec::new("main", controller, Duration::from_millis(100), path)
        };
        let scenario = Scenario {
            name: "ecn".to_string(),
            seed: 1,
            duration: Duration::from_secs(SECONDS),
            measure_from: Duration::from_secs(4),
            trace_offset: TraceOffset::At(Duration::ZERO),
            links,
            flows: vec![flow],
            record: Record::summary(Duration::from_secs(SECONDS)),
        };
        scenario.validate().expect("a sound scenario");
        run(&scenario, &Traces::new()).expect("a run").run
    }
}

fn p95(run: &Run) -> f64 {
    run.queueing_delay_ms.expect("packets left").p95
}

/// The router inside a tunnel.
fn tunnelled(of: &Case, ingress: Options<'static>, egress: Options<'static>) -> Case {
    Case { before: vec![("encapsulate", ingress)], behind: vec![("decapsulate", egress)], ..of.clone() }
}

/// Restarts in the middle of a slow and of a fast turn.
fn restarted(of: &Case, down_s: u64, waiting: Waiting) -> Case {
    let restart =
        |at_s| Restart { at: Duration::from_secs(at_s), down: Duration::from_secs(down_s), waiting };
    Case { restarts: vec![restart(21), restart(39)], ..of.clone() }
}

/// What happens on the way, by the name of its row.
fn mishaps(of: &Case) -> Vec<(&'static str, Case)> {
    let rewrite = |options: Options<'static>| Case { behind: vec![("rewrite", options)], ..of.clone() };
    let lost = |options: Options<'static>| Case { back: vec![("ack-loss", options)], ..of.clone() };
    vec![
        ("nothing", of.clone()),
        ("1 % of ACKs lost", lost(&[("rate", "0.01")])),
        ("10 % of ACKs lost", lost(&[("rate", "0.1")])),
        ("marks bleached", rewrite(&[("action", "bleach")])),
        (
            "marks bleached before the router",
            Case { before: vec![("rewrite", &[("action", "bleach")])], ..of.clone() },
        ),
        ("ECT(1) made ECT(0)", rewrite(&[("action", "ect1-to-ect0")])),
        ("brake made accelerate", rewrite(&[("action", "cheat")])),
        ("1 % of packets made CE", rewrite(&[("action", "mark-ce"), ("rate", "0.01")])),
        ("all packets made CE", rewrite(&[("action", "mark-ce")])),
        (
            "CE erased behind CoDel with ECN",
            Case { legacy: Some(&[("ecn", "true")]), ..rewrite(&[("action", "erase-ce")]) },
        ),
        ("CoDel with ECN behind", Case { legacy: Some(&[("ecn", "true")]), ..of.clone() }),
        ("CoDel that drops behind", Case { legacy: Some(&[]), ..of.clone() }),
        (
            "a tunnel before the router",
            Case { before: vec![("encapsulate", &[]), ("decapsulate", &[])], ..of.clone() },
        ),
        ("the router in a tunnel (RFC 6040)", tunnelled(of, &[], &[])),
        ("the router in a tunnel of IPsec", tunnelled(of, &[("overhead", "60")], &[("mode", "rfc4301")])),
        ("the router in a tunnel, field hidden", tunnelled(of, &[("mode", "compatibility")], &[])),
        ("the router in a tunnel, field discarded", tunnelled(of, &[], &[("mode", "discard")])),
        ("the router restarts, packets kept", restarted(of, 0, Waiting::Kept)),
        ("the router restarts, packets lost", restarted(of, 0, Waiting::Lost)),
        ("the router is away for a second", restarted(of, 1, Waiting::Lost)),
    ]
}

fn table() -> String {
    let mut table = String::from(
        "| encoding | packets per ACK | on the way | throughput Mbit/s | used % | queueing delay mean / p95 ms | lost % |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (name, case) in [("legacy-compatible", legacy_compatible()), ("proxied", proxied())] {
        for ack_every in [1, 2] {
            for (what, case) in mishaps(&Case { ack_every, ..case.clone() }) {
                let run = case.run();
                let mean = run.queueing_delay_ms.expect("packets left").mean;
                let capacity = if case.legacy.is_some() { 7.5 } else { 12.0 };
                table += &format!(
                    "| {name} | {ack_every} | {what} | {:.2} | {:.1} | {mean:.1} / {:.1} | {:.2} |\n",
                    run.throughput_mbps,
                    100.0 * run.throughput_mbps / capacity,
                    p95(&run),
                    run.loss_percent,
                );
            }
        }
    }
    table
}

#[test]
fn the_page_says_what_is_measured() {
    check("abc-ecn", "measured", &table());
}

#[test]
fn lost_and_delayed_acks_cost_little_where_the_receiver_echoes_states() {
    for ack_every in [1, 2] {
        let case = Case { ack_every, ..legacy_compatible() };
        for rate in ["0.01", "0.1"] {
            let options: Options<'static> =
                if rate == "0.1" { &[("rate", "0.1")] } else { &[("rate", "0.01")] };
            let run = Case { back: vec![("ack-loss", options)], ..case.clone() }.run();
            assert!(run.throughput_mbps > 0.94 * 12.0, "{rate}, {ack_every}: {} Mbit/s", run.throughput_mbps);
            assert!(p95(&run) < 60.0, "{rate}, {ack_every}: {} ms", p95(&run));
        }
    }
}

/// abc20 4.2: the second window answers a legacy router's marks and drops alike.
#[test]
fn a_legacy_router_behind_is_filled_and_kept_short() {
    for case in [legacy_compatible(), proxied()] {
        for options in [&[("ecn", "true")] as Options<'static>, &[]] {
            let run = Case { legacy: Some(options), ..case.clone() }.run();
            assert!(run.throughput_mbps > 0.9 * 7.5, "{options:?}: {} Mbit/s", run.throughput_mbps);
            assert!(p95(&run) < 80.0, "{options:?}: {} ms", p95(&run));
        }
    }
}

/// A path that clears the field, or makes every mark a brake, leaves the flow to its second window.
#[test]
fn spoiled_marks_leave_the_flow_to_its_second_window() {
    let rewrite = |case: &Case, action: &'static [(&'static str, &'static str)]| Case {
        behind: vec![("rewrite", action)],
        ..case.clone()
    };
    for ack_every in [1, 2] {
        let legacy = Case { ack_every, ..legacy_compatible() };
        let proxied = Case { ack_every, ..proxied() };
        for case in [
            rewrite(&legacy, &[("action", "bleach")]),
            rewrite(&legacy, &[("action", "ect1-to-ect0")]),
            rewrite(&proxied, &[("action", "mark-ce")]),
        ] {
            let run = case.run();
            assert!(run.throughput_mbps > 0.9 * 12.0, "{:?}: {} Mbit/s", case.behind, run.throughput_mbps);
        }
    }
}

/// Behind the proxy ECT(0) and ECT(1) are one.
#[test]
fn the_proxied_encoding_survives_ect1_made_ect0() {
    let case = proxied();
    let rewritten = Case { behind: vec![("rewrite", &[("action", "ect1-to-ect0")])], ..case.clone() };
    assert_eq!(case.run().throughput_mbps, rewritten.run().throughput_mbps);
}

/// RFC 6040: congestion comes out of a tunnel, ABC's brake does not. Before or behind one, both do.
#[test]
fn marks_survive_a_tunnel_or_the_flow_goes_by_its_second_window() {
    for case in [legacy_compatible(), proxied()] {
        let plain = case.run();
        let around = Case { before: vec![("encapsulate", &[]), ("decapsulate", &[])], ..case.clone() };
        assert_eq!(around.run().throughput_mbps, plain.throughput_mbps, "a tunnel before the router");
        let survives = case.controller == [("encoding", "proxied")];
        for (ingress, egress) in [
            (&[] as Options<'static>, &[] as Options<'static>),
            (&[], &[("mode", "rfc4301")]),
            (&[], &[("mode", "discard")]),
            (&[("mode", "compatibility")], &[]),
        ] {
            let run = tunnelled(&case, ingress, egress).run();
            assert!(
                run.throughput_mbps > 0.9 * 12.0,
                "{ingress:?}, {egress:?}: {} Mbit/s",
                run.throughput_mbps
            );
            let forwarded = survives && ingress.is_empty() && egress != [("mode", "discard")];
            assert_eq!(p95(&run) < 60.0, forwarded, "{ingress:?}, {egress:?}: {} ms", p95(&run));
        }
    }
}

/// What a router knew is learnt again within its window of 20 ms.
#[test]
fn a_restart_costs_what_it_loses_and_no_more() {
    for case in [legacy_compatible(), proxied()] {
        for (down, waiting, least) in
            [(0, Waiting::Kept, 0.93), (0, Waiting::Lost, 0.9), (1, Waiting::Lost, 0.85)]
        {
            let run = restarted(&case, down, waiting).run();
            assert!(
                run.throughput_mbps > least * 12.0,
                "{down} s, {waiting:?}: {} Mbit/s",
                run.throughput_mbps
            );
            assert!(p95(&run) < 60.0, "{down} s, {waiting:?}: {} ms", p95(&run));
        }
    }
}
