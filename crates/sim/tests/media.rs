//! The controllers of calls, GCC, NADA and SCReAM, on the modelled host: rate and delay where the capacity
//! varies, what two flows get (RFC 8867 5.1, 5.4), and what SCReAM's authors published.

use brakelight_scenario::file::read;
use brakelight_scenario::outcome::{FlowSeries, Outcome};
use brakelight_sim::{Traces, run};
use brakelight_testkit::part::check;

/// RFC 8867 5.1: 50 ms each way, a buffer of 300 ms, media of 150 kbit/s to 1.5 Mbit/s.
const VARIABLE: &str =
    r#"steps = [["40s", "1Mbps"], ["20s", "2.5Mbps"], ["20s", "600kbps"], ["20s", "1Mbps"]]"#;
/// When the capacity changes, and the capacity from then on, in s and Mbit/s.
const PHASES: [(usize, usize, f64); 4] = [(0, 40, 1.0), (40, 60, 2.5), (60, 80, 0.6), (80, 100, 1.0)];
const PAGES: [&str; 3] = ["gcc", "nada", "scream"];
const CONTROLLERS: [&str; 3] = ["gcc:max_rate=1.5Mbps", "nada", "scream:max_rate=1.5Mbps"];

const CALL: &str =
    r#"{ kind = "call", min_rate = "150kbps", max_rate = "1.5Mbps", fps = 30, deadline = "400ms" }"#;
const BULK: &str = r#""backlogged""#;

/// What a controller is tried with, by name. SCReAM is for media alone: it paces half as fast again as its
/// target, which a backlogged flow takes for its rate.
fn traffics(controller: &str) -> &'static [(&'static str, &'static str)] {
    if controller.starts_with("scream") {
        &[("a call", CALL)]
    } else {
        &[("backlogged", BULK), ("a call", CALL)]
    }
}

/// SCReAM's example: 50 Mbit/s, 25 ms, DualPI2, 50 frames a second.
const EXAMPLE: &str = r#"
duration = "20s"
measure_from = "5s"
record = { series = true, bin = "100ms", flow_delays = true }
[[link]]
name = "link"
rate = "50Mbps"
buffer = "1MB"
queue = "dualpi2"
[[flow]]
controller = "scream:{ecn}max_rate=100Mbps"
host = "quic"
mss = "1300B"
rtt = "25ms"
path = ["link"]
traffic = { kind = "call", min_rate = "1Mbps", max_rate = "100Mbps", fps = 50 }
"#;

const BESIDE: &str = r#"
duration = "120s"
measure_from = "20s"
[[link]]
name = "link"
rate = "2Mbps"
buffer = "{buffer}"
[[flow]]
controller = "{gcc}"
host = "quic"
mss = "1200B"
rtt = "100ms"
path = ["link"]
start = "5s"
[[flow]]
controller = "cubic"
rtt = "100ms"
path = ["link"]
"#;

fn outcome(link: &str, seconds: u32, flows: &[(&str, &str)]) -> Outcome {
    let mut text = format!(
        "duration = \"{seconds}s\"\nrecord = {{ series = true, bin = \"1s\", flow_delays = true }}\n\n\
         [[link]]\nname = \"link\"\n{link}\nbuffer = \"37500B\"\n"
    );
    for (index, (controller, more)) in flows.iter().enumerate() {
        text += &format!(
            "\n[[flow]]\nname = \"f{index}\"\ncontroller = \"{controller}\"\nhost = \"quic\"\nmss = \"1200B\"\n\
             rtt = \"100ms\"\npath = [\"link\"]\n{more}\n"
        );
    }
    let scenario = read("media.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, &Traces::new()).expect("a scenario that runs")
}

fn series(outcome: &Outcome, flow: usize) -> &FlowSeries {
    &outcome.series.as_ref().expect("series").flows[flow]
}

/// Mean throughput from second to second, Mbit/s.
fn throughput(outcome: &Outcome, flow: usize, from: usize, to: usize) -> f64 {
    let bins = &series(outcome, flow).throughput_mbps[from..to];
    bins.iter().sum::<f64>() / bins.len() as f64
}

/// The same for both kinds of traffic of one controller over the path of RFC 8867 5.1, and for two flows.
fn variable(controller: &str) -> String {
    let mut table = String::from(
        "| traffic | rate at 1, 2.5, 0.6 and 1 Mbit/s, last half of each | queueing delay mean / p95 ms | lost % |\n|---|---|---|---|\n",
    );
    for (name, traffic) in traffics(controller) {
        let outcome = outcome(VARIABLE, 100, &[(controller, &format!("traffic = {traffic}"))]);
        let rates =
            PHASES.map(|(from, to, _)| format!("{:.2}", throughput(&outcome, 0, (from + to) / 2, to)));
        table += &row(name, &rates.join(", "), &outcome);
    }
    for mbps in [2, 3] {
        let outcome = two_flows(controller, mbps);
        let rates = [0, 1].map(|flow| format!("{:.2}", throughput(&outcome, flow, 60, 120)));
        table += &row(
            &format!("two, the second from 20 s, {mbps} Mbit/s, 60 to 120 s"),
            &rates.join(" and "),
            &outcome,
        );
    }
    table
}

fn row(name: &str, rates: &str, outcome: &Outcome) -> String {
    let delay = outcome.run.queueing_delay_ms.expect("packets");
    format!("| {name} | {rates} | {:.1} / {:.1} | {:.2} |\n", delay.mean, delay.p95, outcome.run.loss_percent)
}

/// RFC 8867 5.4, for two flows
fn two_flows(controller: &str, mbps: u32) -> Outcome {
    let traffic = format!("traffic = {}", traffics(controller)[0].1);
    let second = format!("{traffic}\nstart = \"20s\"");
    outcome(&format!("rate = \"{mbps}Mbps\""), 120, &[(controller, &traffic), (controller, &second)])
}

#[test]
fn pages_say_what_happens_where_the_capacity_varies() {
    for (page, controller) in PAGES.into_iter().zip(CONTROLLERS) {
        check(page, "variable", &variable(controller));
    }
}

/// RFC 8867 5.6: by which constants of the threshold GCC holds its own beside Cubic. MMSys 2016, table 1, has
/// 0.01 and 0.00018.
#[test]
fn the_page_says_what_gcc_keeps_beside_cubic() {
    let mut table =
        String::from("| buffer | `k_up`, `k_down` | GCC Mbit/s | Cubic Mbit/s |\n|---|---|---|---|\n");
    let mut kept = Vec::new();
    for (buffer, name) in [("37500B", "150 ms"), ("75kB", "300 ms"), ("250kB", "1 s")] {
        for (up, down) in [("0.01", "0.00018"), ("0.0087", "0.039")] {
            let gcc = format!("gcc:max_rate=1.5Mbps,k_up={up},k_down={down}");
            let text = BESIDE.replace("{buffer}", buffer).replace("{gcc}", &gcc);
            let scenario = read("beside.toml", &text).unwrap_or_else(|error| panic!("{error}"));
            let outcome = run(&scenario, &Traces::new()).expect("a scenario that runs");
            let [gcc, cubic] = [0, 1].map(|flow| outcome.run.flows[flow].throughput_mbps);
            table += &format!("| {name} | {up}, {down} | {gcc:.2} | {cubic:.2} |\n");
            kept.push(gcc);
        }
    }
    check("gcc", "beside", &table);
    for pair in kept.chunks(2) {
        assert!(pair[0] > 2.0 * pair[1], "the paper's constants keep more: {kept:?}");
    }
}

/// RFC 8867 5.1: the flow finds the capacity, follows it, and does not fill the buffer.
#[test]
fn the_rate_follows_the_capacity_and_the_buffer_stays_almost_empty() {
    for controller in CONTROLLERS {
        for (_, traffic) in traffics(controller) {
            let outcome = outcome(VARIABLE, 100, &[(controller, &format!("traffic = {traffic}"))]);
            for (from, to, capacity) in PHASES {
                let share = throughput(&outcome, 0, (from + to) / 2, to) / f64::min(capacity, 1.5);
                // Headers come on top of the largest rate.
                assert!((0.75..1.1).contains(&share), "{controller} {traffic}: {share} from {from} s");
            }
            let delay = outcome.run.queueing_delay_ms.expect("packets");
            assert!(delay.p50 < 30.0 && delay.p95 < 300.0, "{controller} {traffic}: {delay:?}");
            // GCC empties the buffer within two seconds of the fall; NADA's gradual update takes longer, and
            // SCReAM answers delay from 30 ms on.
            let is_gcc = controller.starts_with("gcc");
            assert!(!is_gcc || delay.p95 < 50.0, "{controller} {traffic}: {delay:?}");
            assert!(outcome.run.loss_percent < 1.0, "{controller} {traffic}: {}", outcome.run.loss_percent);
        }
    }
    // A sender that goes by losses fills it.
    let cubic = outcome(VARIABLE, 100, &[("cubic", "")]).run.queueing_delay_ms.expect("packets");
    assert!(cubic.p50 > 100.0, "{cubic:?}");
}

/// rfc8698 eq.5: the congestion is 10 ms times the largest rate over the rate.
#[test]
fn nada_stands_where_its_congestion_is_what_its_rate_deserves() {
    for (mbps, options) in [("1Mbps", "nada"), ("1Mbps", "nada:priority=2"), ("600kbps", "nada")] {
        let outcome = outcome(&format!("rate = \"{mbps}\""), 60, &[(options, "")]);
        let state = |name: &str| *series(&outcome, 0).state[name].last().expect("a bin");
        let priority = if options.contains("priority") { 2.0 } else { 1.0 };
        let expected = priority * 10.0 * 1.5 / state("reference_mbps");
        assert!((state("congestion_ms") / expected - 1.0).abs() < 0.02, "{mbps} {options}: {expected}");
        assert_eq!(outcome.run.dropped_packets, 0, "{mbps} {options}");
    }
}

/// RFC 8867 5.4: neither flow starves, and the link is used.
#[test]
fn two_flows_of_a_kind_share_the_link() {
    for (controller, largest) in CONTROLLERS.into_iter().zip([2.0, 1.25, 2.0]) {
        let outcome = two_flows(controller, 2);
        let rates = [0, 1].map(|flow| throughput(&outcome, flow, 60, 120));
        let ratio = rates[0].max(rates[1]) / rates[0].min(rates[1]);
        assert!(ratio < largest, "{controller}: {rates:?}");
        assert!(rates[0] + rates[1] > 0.85 * 2.0, "{controller}: {rates:?}");
        let delay = outcome.run.queueing_delay_ms.expect("packets");
        // SCReAM's reaction is full at 60 ms.
        let most = if controller.starts_with("scream") { 2.0 * 60.0 } else { 50.0 };
        assert!(delay.p95 < most, "{controller}: {delay:?}");
    }
}

/// EricssonResearch/scream, examples/trace-dualpi-50Mbps-25ms-*.txt at 4e99c88 (May 2025): from 5 s to 20 s
/// its columns 7 and 2 have these means, and column 13 passes 30 Mbit/s at this time.
#[test]
fn scream_sends_about_what_its_authors_published() {
    let mut table = String::from(
        "| | throughput Mbit/s | queueing delay mean / p95 ms | 30 Mbit/s after s |\n|---|---|---|---|\n",
    );
    let mut measured = Vec::new();
    for (name, ecn, published) in
        [("with L4S", "ecn=l4s,", (38.4, 0.9, 1.7, 2.2)), ("without", "", (43.0, 5.9, 17.0, 2.2))]
    {
        let scenario = read("example.toml", &EXAMPLE.replace("{ecn}", ecn)).expect("a scenario");
        let outcome = run(&scenario, &Traces::new()).expect("a scenario that runs");
        let delay = outcome.run.queueing_delay_ms.expect("packets");
        let bins = &series(&outcome, 0).throughput_mbps;
        let passed = bins.iter().position(|&mbps| mbps > 30.0).expect("it passes 30 Mbit/s");
        let ours = (outcome.run.flows[0].throughput_mbps, delay.mean, delay.p95, passed as f64 / 10.0);
        for (what, (mbps, mean, p95, seconds)) in [("published", published), ("here", ours)] {
            table += &format!("| {name}, {what} | {mbps:.1} | {mean:.1} / {p95:.1} | {seconds:.1} |\n");
        }
        measured.push((published, ours));
    }
    check("scream", "published", &table);
    for (published, ours) in measured {
        assert!((ours.0 / published.0 - 1.0).abs() < 0.25, "throughput: {ours:?}, {published:?}");
        assert!(ours.1 < 2.0 * published.1 && ours.2 < 2.0 * published.2, "delay: {ours:?}, {published:?}");
        assert!(ours.3 < 2.0 * published.3, "30 Mbit/s: {ours:?}, {published:?}");
    }
}
