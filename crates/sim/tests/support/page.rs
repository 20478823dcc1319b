//! The measured parts of the validation pages of schemes that bring a router.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_sim::{Traces, run};

use super::{Dumbbell, Growth};

/// What a scheme does over links whose rate and delay are known, and over synthetic cellular links.
pub fn measured(scheme: &str) -> String {
    let mut table = String::from(
        "| path | throughput Mbit/s | utilization % | Jain | queueing delay mean / p95 ms | lost % |\n|---|---|---|---|---|---|\n",
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
        let compare = Compare::mahimahi(Scheme::parse(scheme).expect("a scheme"), trace);
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

/// The window of one new flow on the idle link of the BMCC paper's figure 5, started at several times after
/// an interval of the router began.
pub fn growth(scheme: &str, starts_ms: &[u64]) -> String {
    let mut table = String::from(
        "| start after an interval's beginning | 1 s | 2 s | 3 s | 4 s | 6.5 s | largest | lost |\n|---|---|---|---|---|---|---|---|\n",
    );
    for &start_ms in starts_ms {
        let growth = Growth::starting(scheme, Duration::from_millis(start_ms));
        let windows: Vec<_> =
            [1.0, 2.0, 3.0, 4.0, 6.5].map(|seconds| format!("{:.0}", growth.after(seconds))).into();
        table += &format!(
            "| {start_ms} ms | {} | {:.0} | {} |\n",
            windows.join(" | "),
            growth.most(),
            growth.lost
        );
    }
    table
}
