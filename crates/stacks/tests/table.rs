//! The table of the guide "Test your stack": every stack and controller on four traces and two fixed links.
#![cfg(feature = "stacks")]
#![allow(clippy::print_stdout, reason = "what it measures stands in the guide")]

mod support;

use std::path::Path;

use brakelight_scenario::outcome::Run;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

/// Ours first, in the modelled QUIC host.
const OURS: [&str; 3] = ["newreno", "cubic", "bbr3"];
/// What the link is, and the buffer: of the fixed ones, one bandwidth-delay product.
const LINKS: [(&str, &str); 6] = [
    ("trace = \"lte-driving\"", "250pkt"),
    ("trace = \"lte-walking\"", "250pkt"),
    ("trace = \"wifi\"", "250pkt"),
    ("trace = \"starlink\"", "250pkt"),
    ("rate = \"12Mbps\"", "75kB"),
    ("rate = \"50Mbps\"", "312kB"),
];
const PAGE: &str = "../../docs/guides/stacks.md";
const BEGIN: &str = "<!-- table.rs writes this table -->\n";

/// One flow alone, with an RTT of 50 ms.
fn run(controller: &str, link: &str, buffer: &str, duration: &str) -> Run {
    let registry = support::registry();
    let host = if controller.contains('/') { "" } else { "host = \"quic\"\n" };
    let text = format!(
        "duration = \"{duration}\"\n[[link]]\nname = \"link\"\n{link}\nbuffer = \"{buffer}\"\n\
         [[flow]]\ncontroller = \"{controller}\"\n{host}rtt = \"50ms\"\npath = [\"link\"]\n"
    );
    let scenario = brakelight_scenario::file::read_with(&registry, "test.toml", &text).unwrap();
    let mut traces = Traces::new();
    if let Some(name) = link.strip_prefix("trace = ") {
        let name = name.trim_matches('"');
        traces.insert(name.to_string(), Names::from_environment().unwrap().load(name).unwrap());
    }
    brakelight_sim::run(&scenario, &traces).unwrap_or_else(|error| panic!("{controller}: {error}")).run
}

/// Its line: throughput in Mbit/s, the 95th percentile of the queueing delay in ms, losses in percent.
fn row(controller: &str) -> String {
    let cells = LINKS.map(|(link, buffer)| {
        let run = run(controller, link, buffer, "10s");
        let p95 = run.queueing_delay_ms.map_or(f64::NAN, |delay| delay.p95);
        let mark = if run.unreliable { " (ended)" } else { "" };
        format!("{:.1} / {p95:.0} / {:.2}{mark}", run.throughput_mbps, run.loss_percent)
    });
    format!("| `{controller}` | {} |\n", cells.join(" | "))
}

/// `BRAKELIGHT_BLESS=1` writes the table anew; that takes the feature `stacks-c`.
#[test]
fn the_guide_s_table_is_what_runs_give() {
    let mut table =
        "| controller | `lte-driving` | `lte-walking` | `wifi` | `starlink` | 12 Mbit/s | 50 Mbit/s |\n\
                     |---|---|---|---|---|---|---|\n"
            .to_string();
    let rows: Vec<String> = OURS.into_iter().chain(support::controllers()).map(row).collect();
    table.extend(rows.iter().map(String::as_str));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the table");
    let (_, after) = rest.split_once("\n\n").expect("an empty line ends the table");
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() && cfg!(feature = "stacks-c") {
        std::fs::write(&file, format!("{before}{BEGIN}{table}\n{after}")).unwrap();
        return;
    }
    let other: String = rows.iter().filter(|row| !rest.contains(*row)).map(String::as_str).collect();
    assert!(other.is_empty(), "the page has other rows than\n{other}");
}
