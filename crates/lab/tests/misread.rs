//! What misread marks do: flows of one meaning of the ECN field through routers of another. The tables of
//! docs/quic-deployment.md are what these runs print; `BRAKELIGHT_BLESS=1` writes them anew.

use std::fmt::Write;

use brakelight_core::time::Duration;
use brakelight_lab::Simulator;
use brakelight_lab::compare::{Compare, Plan};
use brakelight_lab::table::Table;
use brakelight_scenario::file::read;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part;

const TRACES: [&str; 3] = ["fixed", "lte-walking", "satellite-chosen"];

/// Each router with what passes it, its own flow first, and the flow beside which the others are held.
const ROUTERS: [(&str, &str, &[&str]); 4] = [
    ("`abc`", "abc", &["abc", "prague+abc:misread=true", "cubic+abc:ecn=true,misread=true"]),
    (
        "`abc:encoding=proxied`",
        "abc:encoding=proxied",
        &[
            "abc:encoding=proxied",
            "prague+abc:encoding=proxied,misread=true",
            "cubic+abc:ecn=true,encoding=proxied,misread=true",
        ],
    ),
    ("`dualpi2`", "prague", &["prague", "abc+dualpi2:misread=true", "cubic+dualpi2:ecn=true"]),
    ("`abc_l4s`", "prague", &["prague+abc_l4s", "abc+abc_l4s:misread=true", "cubic+abc_l4s:ecn=true"]),
];

/// `brakelight compare --trace fixed,lte-walking,satellite-chosen --schemes ... --rtt 40ms --duration 30s
/// --runs 2`, with `--against` or without.
fn compared(schemes: &[&str], against: Option<&str>) -> Table {
    let parse = |text: &str| Scheme::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let request = Compare {
        traces: TRACES.map(str::to_string).to_vec(),
        schemes: schemes.iter().map(|text| parse(text)).collect(),
        against: against.map(parse),
        rtt: Duration::from_millis(40),
        duration: Some(Duration::from_secs(30)),
        runs: Some(2),
        ..Compare::default()
    };
    let plan = Plan::new(&request, &Names::default()).expect("sound scenarios");
    plan.run(&Simulator, &()).expect("runs")
}

fn row<'a>(table: &'a Table, scheme: &str, trace: &str) -> &'a Run {
    let scheme = Scheme::parse(scheme).expect("a scheme").to_string();
    let is = |run: &&Run| run.scheme == scheme && run.trace == trace;
    table.runs.iter().find(is).unwrap_or_else(|| panic!("{scheme} on {trace}"))
}

#[test]
fn the_page_says_what_misread_marks_do() {
    let mut text =
        String::from("| router | flow | fixed | lte-walking | satellite-chosen |\n|---|---|---|---|---|\n");
    for (router, right, schemes) in ROUTERS {
        let (alone, beside) = (compared(schemes, None), compared(schemes, Some(right)));
        for scheme in schemes {
            let flow = scheme.split(['+', ':']).next().unwrap_or_default();
            let ecn = if scheme.starts_with("cubic") { ", ECT(0)" } else { "" };
            let is_misread = scheme.contains("misread");
            let mark = if is_misread { ", misread" } else { "" };
            write!(text, "| {router} | `{flow}`{ecn}{mark} |").expect("a string");
            for trace in TRACES {
                let (alone, beside) = (row(&alone, scheme, trace), row(&beside, scheme, trace));
                let p95 = alone.queueing_delay_ms.expect("packets passed").p95;
                let fairness = beside.fairness.as_ref().expect("a competitor");
                let (used, share) = (100.0 * alone.utilization, 100.0 * fairness.share);
                write!(text, " {used:.0}, {p95:.1}; {share:.0} |").expect("a string");
                for run in [alone, beside] {
                    assert_eq!(run.links[0].misread, is_misread, "{scheme} on {trace}");
                }
            }
            text.push('\n');
            // Every row says it by its name, and so does a line before them all.
            let told = |table: &Table| table.caveats.iter().any(|line| line.contains("marks are misread"));
            assert!(!is_misread || (told(&alone) && told(&beside)), "{scheme}");
        }
    }
    part::check("../quic-deployment", "misread", &text);
}

/// Two routers in a row, the second the narrower one half of the time: marks of the first say something else
/// to the second.
fn in_a_row(controller: &str, first: &str, second: &str) -> Run {
    let text = format!(
        "duration = \"60s\"\n\
         [[link]]\nname = \"first\"\nqueue = \"{first}\"\nbuffer = \"250pkt\"\nsteps = [[\"2s\", \"6Mbps\"], [\"2s\", \"18Mbps\"]]\n\
         [[link]]\nname = \"second\"\nqueue = \"{second}\"\nbuffer = \"250pkt\"\nrate = \"9Mbps\"\n\
         [[flow]]\nname = \"main\"\ncontroller = \"{controller}\"\nrtt = \"40ms\"\npath = [\"first\", \"second\"]\n"
    );
    let scenario = read("row.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, &Traces::new()).expect("a run").run
}

#[test]
fn the_page_says_what_marks_of_another_router_do() {
    let mut text = String::from(
        "| flow | first router | second | Mbit/s of 7.5 | p95 ms | sent again |\n|---|---|---|---|---|---|\n",
    );
    for (controller, first, second) in [
        ("abc", "abc", "abc"),
        ("abc", "abc", "dualpi2:misread=true"),
        ("prague", "dualpi2", "dualpi2"),
        ("prague", "abc:misread=true", "dualpi2"),
        ("prague", "dualpi2", "abc:misread=true"),
        ("cubic:ecn=true", "codel:ecn=true", "codel:ecn=true"),
        ("cubic:ecn=true", "codel:ecn=true", "dualpi2"),
        ("cubic:ecn=true", "codel:ecn=true", "abc:misread=true"),
    ] {
        let run = in_a_row(controller, first, second);
        let p95 = run.queueing_delay_ms.expect("packets passed").p95;
        writeln!(
            text,
            "| `{controller}` | `{first}` | `{second}` | {:.2} | {p95:.1} | {} |",
            run.flows[0].throughput_mbps, run.retransmitted_packets
        )
        .expect("a string");
    }
    part::check("../quic-deployment", "in a row", &text);
}
