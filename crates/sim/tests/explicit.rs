//! XCP, XCPw, RCP and E-ABC: what their papers show of them, over links whose rate is known.

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_scenario::outcome::{FlowSeries, Outcome};
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, Service, Steps, TraceOffset};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::scheme_string::SchemeString;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part::check;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn link(scheme: &Scheme, rate: Rate, buffer_pkts: u32) -> LinkSpec {
    LinkSpec::fixed("link", rate, Limit::Packets(buffer_pkts), scheme.queue().clone())
}

fn flow(scheme: &Scheme, name: &str, rtt: Duration, start: Duration) -> FlowSpec {
    FlowSpec { path: vec![Hop::Link("link".to_string())], start, ..scheme.flow(name, rtt) }
}

fn outcome(link: LinkSpec, flows: Vec<FlowSpec>, seconds: u64, from: u64, bin: Duration) -> Outcome {
    let scenario = Scenario {
        name: "explicit".to_string(),
        seed: 1,
        duration: Duration::from_secs(seconds),
        measure_from: Duration::from_secs(from),
        trace_offset: TraceOffset::At(Duration::ZERO),
        links: vec![link],
        flows,
        record: Record { series: true, bin, ..Record::summary(Duration::from_secs(seconds)) },
    };
    scenario.validate().unwrap();
    run(&scenario, &Traces::new()).unwrap()
}

fn scheme(text: &str) -> Scheme {
    Scheme::parse(text).unwrap()
}

fn p95(outcome: &Outcome) -> f64 {
    outcome.run.queueing_delay_ms.expect("packets left").p95
}

/// The mean throughput of a flow between two times, Mbit/s.
fn share(flow: &FlowSeries, from_s: f64, to_s: f64) -> f64 {
    let bins = flow.time_s.iter().zip(&flow.throughput_mbps);
    let within: Vec<f64> =
        bins.filter(|(at, _)| (from_s..to_s).contains(*at)).map(|(_, mbps)| *mbps).collect();
    within.iter().sum::<f64>() / within.len() as f64
}

fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

/// katabi02 figure 10: five flows of 40 ms on 45 Mbit/s, one more every two seconds.
#[test]
fn xcp_gives_each_newcomer_its_share_within_a_few_rtts_and_keeps_the_link_full() {
    for text in ["xcp", "xcp:alpha=0.4,beta=0.226", "xcpw"] {
        let scheme = scheme(text);
        let flows = (0..5).map(|i| flow(&scheme, &format!("{i}"), MS(40), MS(2000 * i))).collect();
        let outcome = outcome(link(&scheme, Rate::from_mbps(45), 150), flows, 10, 1, MS(200));
        let series = outcome.series.as_ref().unwrap();
        for newest in 1..5 {
            // From one second, 25 RTTs, after its start.
            let (from, to) = (2.0 * newest as f64 + 1.0, 2.0 * newest as f64 + 2.0);
            let shares: Vec<f64> = series.flows[..=newest].iter().map(|f| share(f, from, to)).collect();
            assert!(jain(&shares) > 0.97, "{text}: {shares:?} Mbit/s from {from} s");
        }
        assert!(outcome.run.utilization > 0.97, "{text}: {}", outcome.run.utilization);
        assert_eq!(outcome.run.dropped_packets, 0, "{text}");
        assert!(p95(&outcome) < 10.0, "{text}: {} ms", p95(&outcome));
    }
}

/// katabi02 figure 8: 30 flows on 30 Mbit/s, of 40 ms each and of 40 to 330 ms.
#[test]
fn xcp_is_fair_to_flows_of_equal_and_of_different_rtts() {
    for step in [0, 10] {
        let scheme = scheme("xcp:alpha=0.4,beta=0.226");
        let flows = (0..30).map(|i| flow(&scheme, &format!("{i}"), MS(40 + step * i), MS(0))).collect();
        let outcome = outcome(link(&scheme, Rate::from_mbps(30), 600), flows, 90, 30, MS(1000));
        let shares: Vec<f64> = outcome.run.flows.iter().map(|flow| flow.throughput_mbps).collect();
        assert!(jain(&shares) > 0.95, "step {step}: {shares:?}");
        assert!(outcome.run.utilization > 0.95, "step {step}: {}", outcome.run.utilization);
    }
}

#[test]
fn rcp_gives_a_newcomer_its_share_within_a_few_rtts() {
    let scheme = scheme("rcp");
    let flows = (0..4).map(|i| flow(&scheme, &format!("{i}"), MS(100), MS(5000 * i))).collect();
    // The second flow begins at the rate that the first one has: for two RTTs twice the link's rate comes in.
    let outcome = outcome(link(&scheme, Rate::from_mbps(24), 400), flows, 20, 4, MS(100));
    let series = outcome.series.as_ref().unwrap();
    for newest in 1..4_usize {
        let start = 5.0 * newest as f64;
        // One router, one rate: alike from the newcomer's third RTT on.
        let shares: Vec<f64> =
            series.flows[..=newest].iter().map(|f| share(f, start + 0.3, start + 1.3)).collect();
        assert!(jain(&shares) > 0.98, "{shares:?} Mbit/s after {start} s");
        let settled: f64 = series.flows[..=newest].iter().map(|f| share(f, start + 2.0, start + 5.0)).sum();
        // g = 0.95 of 24 Mbit/s.
        assert!((21.6..23.4).contains(&settled), "{settled} Mbit/s after {start} s");
    }
    assert_eq!(outcome.run.dropped_packets, 0);
}

#[test]
fn e_abc_shares_the_target_rate_among_the_flows_that_send() {
    let scheme = scheme("e-abc");
    let flows = (0..3).map(|i| flow(&scheme, &format!("{i}"), MS(50 + 50 * i), MS(0))).collect();
    let outcome = outcome(link(&scheme, Rate::from_mbps(24), 250), flows, 20, 2, MS(1000));
    let shares: Vec<f64> = outcome.run.flows.iter().map(|flow| flow.throughput_mbps).collect();
    assert!(jain(&shares) > 0.999, "{shares:?}");
    assert!((0.97..0.985).contains(&outcome.run.utilization), "{}", outcome.run.utilization);
    assert!(p95(&outcome) < 5.0, "{} ms", p95(&outcome));
}

/// ABC-F19: 12 and 24 Mbit/s in turn, half a second each.
fn alternating(text: &str) -> Outcome {
    let scheme = scheme(text);
    let steps = vec![(MS(500), Rate::from_mbps(12)), (MS(500), Rate::from_mbps(24))];
    let mut link = link(&scheme, Rate::from_mbps(18), 250);
    link.service = Service::Steps(Steps { steps, repeat: true });
    outcome(link, vec![flow(&scheme, "main", MS(100), MS(0))], 60, 0, MS(100))
}

#[test]
fn abc_and_xcpw_follow_an_alternating_link_and_rcp_leaves_half_of_it() {
    let used = |text| alternating(text).run.utilization;
    let (abc, xcpw, xcp, rcp) = (used("abc"), used("xcpw"), used("xcp"), used("rcp"));
    assert!(abc > 0.9 && xcpw > 0.9, "abc {abc}, xcpw {xcpw}");
    assert!(xcpw > xcp, "xcpw {xcpw}, xcp {xcp}");
    assert!(rcp < 0.75 * abc, "abc {abc}, rcp {rcp}");
}

/// A bottleneck that speaks no XCP behind one that does: losses bound the window, as TCP's.
#[test]
fn xcp_yields_to_losses_where_the_bottleneck_is_not_its_own() {
    let xcp = scheme("xcp");
    let own = link(&xcp, Rate::from_mbps(24), 250);
    let droptail = SchemeString::new("droptail", &[]).unwrap();
    let other = LinkSpec::fixed("other", Rate::from_mbps(12), Limit::Packets(100), droptail);
    let mut main = flow(&xcp, "main", MS(100), MS(0));
    main.path.push(Hop::Link("other".to_string()));
    let scenario = Scenario {
        name: "mixed".to_string(),
        seed: 1,
        duration: Duration::from_secs(60),
        measure_from: Duration::from_secs(5),
        trace_offset: TraceOffset::At(Duration::ZERO),
        links: vec![own, other],
        flows: vec![main],
        record: Record::summary(Duration::from_secs(60)),
    };
    scenario.validate().unwrap();
    let run = run(&scenario, &Traces::new()).unwrap().run;
    assert!(run.flows[0].loss_percent < 20.0, "{} % lost", run.flows[0].loss_percent);
    assert!(run.goodput_mbps > 6.0, "{} Mbit/s", run.goodput_mbps);
}

/// What a scheme does over links whose rate and delay are known: a row each.
fn measured(schemes: &[&str]) -> String {
    let mut table = String::from(
        "| link | scheme | throughput Mbit/s | used % | queueing delay mean / p95 ms | lost % |\n|---|---|---|---|---|---|\n",
    );
    let mut row = |name: &str, service: Service, buffer: u32, starts: &[u64], seconds: u64, from: u64| {
        for text in schemes {
            let scheme = scheme(text);
            let mut link = link(&scheme, Rate::from_mbps(12), buffer);
            link.service = service.clone();
            let flows = starts.iter().enumerate();
            let flows = flows.map(|(i, at)| flow(&scheme, &format!("{i}"), MS(100), MS(1000 * at))).collect();
            let run = outcome(link, flows, seconds, from, MS(1000)).run;
            let shares: Vec<String> =
                run.flows.iter().map(|flow| format!("{:.2}", flow.throughput_mbps)).collect();
            let delay = run.queueing_delay_ms.expect("packets left");
            table += &format!(
                "| {name} | `{text}` | {} | {:.1} | {:.1} / {:.1} | {:.2} |\n",
                shares.join(" and "),
                100.0 * run.utilization,
                delay.mean,
                delay.p95,
                run.loss_percent
            );
        }
    };
    let mbps = Rate::from_mbps;
    let turns = |time: Duration, low: u64, high: u64| {
        Service::Steps(Steps { steps: vec![(time, mbps(low)), (time, mbps(high))], repeat: true })
    };
    row("12 Mbit/s, 250 packets, 0 to 60 s", Service::Fixed(mbps(12)), 250, &[0], 60, 0);
    row("12 Mbit/s, 20 packets, 10 to 60 s", Service::Fixed(mbps(12)), 20, &[0], 60, 10);
    row("1 Mbit/s, 250 packets, 10 to 60 s", Service::Fixed(mbps(1)), 250, &[0], 60, 10);
    row(
        "12 and 24 Mbit/s in turn, 0.5 s each, 250 packets, 0 to 60 s",
        turns(MS(500), 12, 24),
        250,
        &[0],
        60,
        0,
    );
    row(
        "6 and 24 Mbit/s in turn, 10 s each, 250 packets, 0 to 60 s",
        turns(MS(10_000), 6, 24),
        250,
        &[0],
        60,
        0,
    );
    row(
        "24 Mbit/s, 400 packets, second flow from 5 s, 5 to 15 s",
        Service::Fixed(mbps(24)),
        400,
        &[0, 5],
        15,
        5,
    );
    table
}

#[test]
fn the_pages_say_what_is_measured() {
    for (page, schemes) in [("xcp", &["xcp", "xcpw"][..]), ("rcp", &["rcp"]), ("e-abc", &["e-abc", "abc"])] {
        check(page, "measured", &measured(schemes));
    }
}
