//! Keeps the measured part of a validation page true: what stands between `<!-- measured -->` and `<!-- end -->` must be what the code
//! does. With `BRAKELIGHT_BLESS=1` in the environment it is rewritten instead.

use std::fs;
use std::path::PathBuf;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_sim::{Traces, run};

use super::{Dumbbell, Growth};

/// Compares a part of a page with what it should say.
pub fn check(page: &str, part: &str, content: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/validation/{page}.md"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (open, close) = (format!("<!-- {part} -->\n"), "<!-- end -->");
    let start = text.find(&open).unwrap_or_else(|| panic!("{page}: no part `{part}`")) + open.len();
    let end = start + text[start..].find(close).unwrap_or_else(|| panic!("{page}: `{part}` has no end"));
    if &text[start..end] == content {
        return;
    }
    assert!(
        std::env::var_os("BRAKELIGHT_BLESS").is_some(),
        "{page}: the part `{part}` is stale. It should read:\n{content}"
    );
    fs::write(&path, format!("{}{content}{}", &text[..start], &text[end..])).expect("a writable page");
}

/// What a scheme does over links whose rate and delay are known, and over synthetic cellular links.
pub fn measured(scheme: &str) -> String {
    let mut table = String::from(
        "| path | throughput Mbit/s | utilisation % | Jain | queueing delay mean / p95 ms | lost % |\n|---|---|---|---|---|---|\n",
    );
    for (mbps, rtt_ms) in [(1, 80), (10, 80), (45, 80), (10, 20), (10, 400)] {
        let dumbbell = Dumbbell::new(scheme, Rate::from_mbps(mbps), Duration::from_millis(rtt_ms));
        let run = dumbbell.run();
        let shares: Vec<_> = run.flows.iter().map(|flow| format!("{:.2}", flow.throughput_mbps)).collect();
        let delay = run.queueing_delay_ms.unwrap_or_default();
        table += &format!(
            "| {mbps} Mbit/s, {rtt_ms} ms, second flow from 5 s, 30 to 60 s | {} | {:.1} | {:.3} | {:.1} / {:.1} | {:.2} |\n",
            shares.join(" and "),
            100.0 * run.utilization,
            run.jain.unwrap_or(1.0),
            delay.mean,
            delay.p95,
            run.loss_percent,
        );
    }
    for trace in ["lte-walking", "lte-driving", "fixed"] {
        let compare = Compare::new(Scheme::parse(scheme).expect("a scheme"), trace);
        let made = Embedded::find(trace).expect("an embedded trace").trace();
        let traces = Traces::from([(trace.to_string(), made)]);
        let run = run(&compare.scenario().expect("a scenario"), &traces).expect("a run").run;
        let delay = run.queueing_delay_ms.unwrap_or_default();
        table += &format!(
            "| `compare`, {trace}, 100 ms, 60 s, seed 1 | {:.2} | {:.1} | - | {:.1} / {:.1} | {:.2} |\n",
            run.throughput_mbps,
            100.0 * run.utilization,
            delay.mean,
            delay.p95,
            run.loss_percent,
        );
    }
    table
}

/// The window of one new flow on the idle link of the BMCC paper's figure 5.
pub fn growth(scheme: &str) -> String {
    let growth = Growth::of(scheme);
    let windows: Vec<_> =
        [1.0, 2.0, 3.0, 4.0, 6.5].map(|seconds| format!("{:.0}", growth.at(seconds))).into();
    format!(
        "| | 1 s | 2 s | 3 s | 4 s | 6.5 s | largest | lost |\n|---|---|---|---|---|---|---|---|\n| window, packets | {} | {:.0} | {} |\n",
        windows.join(" | "),
        growth.most(),
        growth.lost
    )
}
