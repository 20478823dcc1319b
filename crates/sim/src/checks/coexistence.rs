//! ABC beside routers that are not its own: figure 4 of abc20, bin by bin.

use brakelight_core::time::Duration;
use brakelight_scenario::experiment::{EMBEDDED, Finding, read};
use brakelight_scenario::outcome::Series;
use brakelight_scenario::scenario::{Record, Service};

use super::finding;
use crate::{Traces, run};

/// The experiment whose setup this is.
const FIGURE: &str = "abc-f4.toml";
const BIN: Duration = Duration::from_millis(100);
/// What a step leaves to the change.
const SETTLING: Duration = Duration::from_secs(2);

/// One step of the wireless link.
struct Step {
    from: Duration,
    until: Duration,
    mbps: f64,
    /// Whether the wired link is slower.
    wired: bool,
}

/// Figure 4 with Cubic in the second window, from beginning to end.
fn figure() -> (Vec<Step>, Series) {
    let (file, text) = EMBEDDED.iter().find(|(file, _)| *file == FIGURE).expect("figure 4 is an experiment");
    let experiment = read(file, text).expect("the experiments of the project can be read");
    let longest = experiment.jobs.iter().rev().max_by_key(|job| (job.scenario.duration, job.point[0] == 0));
    let mut scenario = longest.expect("it runs something").scenario.clone();
    scenario.seed = 1;
    scenario.measure_from = Duration::ZERO;
    scenario.record = Record { series: true, bin: BIN, link_logs: false };
    let mut rates = Vec::new();
    let mut wired_mbps = 0.0;
    for link in &scenario.links {
        match &link.service {
            Service::Fixed(rate) => wired_mbps = rate.as_mbps_f64(),
            Service::Steps(steps) => rates.clone_from(&steps.steps),
            Service::Trace(_) => {}
        }
    }
    let mut from = Duration::ZERO;
    let steps = rates.into_iter().map(|(time, rate)| {
        let mbps = rate.as_mbps_f64();
        let step = Step { from, until: from + time, mbps, wired: wired_mbps < mbps };
        from = step.until;
        step
    });
    let steps = steps.collect();
    let outcome = run(&scenario, &Traces::default()).expect("figure 4 runs");
    (steps, outcome.series.expect("series were asked for"))
}

/// The bins that lie in `from..until`.
fn bins(from: Duration, until: Duration) -> std::ops::Range<usize> {
    (from.as_nanos() / BIN.as_nanos()) as usize..(until.as_nanos() / BIN.as_nanos()) as usize
}

/// ABC-F4: w_nonabc is the lesser window where the wired link is the slower one, w_abc everywhere else.
pub(super) fn governing_window() -> Finding {
    let (steps, series) = figure();
    let state = &series.flows[0].state;
    let (abc, nonabc) = (&state["w_abc_bytes"], &state["w_nonabc_bytes"]);
    // The start belongs to nobody.
    let (mut worst, mut worst_at) = (1.0, Duration::ZERO);
    for step in &steps[1..] {
        let bins = bins(step.from + SETTLING, step.until);
        let total = bins.len() as f64;
        let right = bins.filter(|&bin| (nonabc[bin] < abc[bin]) == step.wired).count() as f64 / total;
        if right < worst {
            (worst, worst_at) = (right, step.from);
        }
    }
    let measured = match worst < 1.0 {
        true => format!(
            "in {:.0} % of the bins of the step at {}, and in more elsewhere",
            100.0 * worst,
            worst_at
        ),
        false => "in every bin".to_string(),
    };
    finding(worst >= 0.9, measured)
}

/// ABC-F4: where the wireless link gets faster and stays the slower of the two, it is full a second later.
pub(super) fn window_rises() -> Finding {
    let (steps, series) = figure();
    let wireless =
        &series.links.iter().find(|link| link.name == "wireless").expect("it is there").throughput_mbps;
    let mut shares = Vec::new();
    for pair in steps.windows(2) {
        if pair.iter().any(|step| step.wired) || pair[1].mbps <= pair[0].mbps {
            continue;
        }
        let second = Duration::from_secs(1);
        let bins = bins(pair[1].from + second, pair[1].from + second + second);
        let mean = wireless[bins.clone()].iter().sum::<f64>() / bins.len() as f64;
        shares.push((pair[1].from, mean / pair[1].mbps));
    }
    let words =
        shares.iter().map(|(at, share)| format!("{:.0} % at {:.0} s", 100.0 * share, at.as_secs_f64()));
    let measured = words.collect::<Vec<_>>().join(", ");
    finding(shares.len() == 4 && shares.iter().all(|(_, share)| *share >= 0.9), measured)
}
