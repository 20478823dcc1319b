//! GCC beside str0m's, on the same links: what the page of GCC says of the two.
#![cfg(feature = "stacks")]

mod support;

use std::fmt::Write as _;

use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;
use brakelight_testkit::part::check;

/// A mean of so many seconds is compared.
const BIN: usize = 10;

/// A link and a call over it.
struct Case {
    name: &'static str,
    link: &'static str,
    seconds: usize,
    /// The call's highest rate, which str0m's probes look for.
    most: &'static str,
    rtt: &'static str,
    /// So many of the means are within 15 % of each other.
    near: usize,
}

const CASES: [Case; 3] = [
    Case {
        name: "12, 6 and 12 Mbit/s, 20 s each",
        link: "steps = [[\"20s\", \"12Mbps\"], [\"20s\", \"6Mbps\"], [\"20s\", \"12Mbps\"]]\nbuffer = \"250pkt\"",
        seconds: 60,
        most: "20Mbps",
        rtt: "50ms",
        near: 2,
    },
    Case {
        name: "`lte-walking`",
        link: "trace = \"lte-walking\"\nbuffer = \"250pkt\"",
        seconds: 60,
        most: "2.5Mbps",
        rtt: "60ms",
        near: 6,
    },
    Case {
        name: "RFC 8867 5.1",
        link: "steps = [[\"40s\", \"1Mbps\"], [\"20s\", \"2.5Mbps\"], [\"20s\", \"600kbps\"], [\"20s\", \"1Mbps\"]]\nbuffer = \"37500B\"",
        seconds: 100,
        most: "1.5Mbps",
        rtt: "100ms",
        near: 5,
    },
];

fn outcome(case: &Case, controller: &str, traffic: &str) -> Outcome {
    let Case { link, seconds, rtt, .. } = case;
    let host = if controller.contains('/') { "" } else { "host = \"quic\"\n" };
    let text = format!(
        "duration = \"{seconds}s\"\nrecord = {{ series = true, bin = \"1s\", flow_delays = true }}\n\n\
         [[link]]\nname = \"link\"\n{link}\n\n[[flow]]\nname = \"call\"\ncontroller = \"{controller}\"\n{host}\
         mss = \"1200B\"\nrtt = \"{rtt}\"\npath = [\"link\"]\ntraffic = {traffic}\n"
    );
    let registry = support::registry();
    let scenario = brakelight_scenario::file::read_with(&registry, "media.toml", &text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut traces = Traces::new();
    if let Some((_, rest)) = link.split_once("trace = \"") {
        let name = rest.split('"').next().unwrap();
        traces.insert(name.to_string(), Names::from_environment().unwrap().load(name).unwrap());
    }
    brakelight_sim::run(&scenario, &traces).unwrap_or_else(|error| panic!("{controller}: {error}"))
}

/// Means of ten seconds of the throughput, Mbit/s.
fn means(outcome: &Outcome) -> Vec<f64> {
    let series = &outcome.series.as_ref().expect("series").flows[0].throughput_mbps;
    series.chunks(BIN).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
}

/// Every run is reliable, and so many means are near each other as the page says.
#[test]
fn the_page_says_what_str0m_has_beside_gcc() {
    let mut table = String::from(
        "| link | GCC here, Mbit/s, means of 10 s | `str0m/gcc` | within 15 % | frame delay p95 ms |\n|---|---|---|---|---|\n",
    );
    for case in &CASES {
        let call = format!("{{ kind = \"call\", max_rate = \"{}\", statistical = true }}", case.most);
        let ours = format!("gcc:max_rate={0},max_probe_rate={0}", case.most);
        let theirs = format!("str0m/gcc:desired_rate={}", case.most);
        let both = [ours, theirs].map(|controller| outcome(case, &controller, &call));
        let delays = both
            .each_ref()
            .map(|outcome| outcome.run.flows[0].application.as_ref().expect("a call")["frame_delay_ms_p95"]);
        for outcome in &both {
            assert!(!outcome.run.unreliable, "{}: {:?}", case.name, outcome.run.unreliable_because);
        }
        let [ours, theirs] = both.each_ref().map(means);
        let near =
            ours.iter().zip(&theirs).filter(|(ours, theirs)| (*theirs / *ours - 1.0).abs() <= 0.15).count();
        assert!(near >= case.near, "{}: {near} means within 15 %: {ours:?} and {theirs:?}", case.name);
        let words =
            |means: &[f64]| means.iter().map(|mean| format!("{mean:.2}")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            table,
            "| {} | {} | {} | {near} of {} | {:.0} and {:.0} |",
            case.name,
            words(&ours),
            words(&theirs),
            ours.len(),
            delays[0],
            delays[1],
        );
    }
    check("gcc", "str0m", &table);
}
