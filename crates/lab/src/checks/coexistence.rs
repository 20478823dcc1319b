//! ABC beside routers that are not its own, bin by bin (abc20, figure 4), and beside flows that are not its
//! own.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::time::{Duration, Time};
use brakelight_estimates::space_saving::SpaceSaving;
use brakelight_scenario::experiment::{EMBEDDED, Finding, read};
use brakelight_scenario::outcome::Series;
use brakelight_scenario::scenario::{Record, Service};
use brakelight_sim::{Traces, run};

use super::finding;
use super::router::{Marked, Router};

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
    scenario.record = Record { series: true, bin: BIN, ..Record::summary(scenario.duration) };
    let mut rates = Vec::new();
    let mut wired_mbps = 0.0;
    for link in &scenario.links {
        match &link.service {
            Service::Fixed(rate) => wired_mbps = rate.as_mbps_f64(),
            Service::Steps(steps) => rates.clone_from(&steps.steps),
            _ => {}
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

/// One flow that passes the router: Mbit/s, number, encoding.
type Passing = (f64, u32, Encoding);

/// ABC's share of 96 Mbit/s after `seconds` of these flows, packets of one flow evenly spaced.
fn share_after(seconds: u64, flows: &[Passing]) -> f64 {
    const LINK_MBPS: u64 = 96;
    let mut router = Router::dual(LINK_MBPS);
    let mut id = 0;
    let mut due: Vec<f64> = (0..flows.len()).map(|index| index as f64 / flows.len() as f64).collect();
    for step in 0..seconds * 10_000 {
        let now = Time::ZERO + Duration::from_micros(100 * step);
        for (&(mbps, flow, encoding), due) in flows.iter().zip(&mut due) {
            // Packets of 12,000 bits.
            *due += mbps * 100.0 / 12_000.0;
            while *due >= 1.0 {
                *due -= 1.0;
                id += 1;
                let ecn = if encoding == Encoding::Abc { Ecn::Ect1 } else { Ecn::NotEct };
                router.arrive(now, Marked { id, flow, ecn, encoding });
                router.leave(now);
            }
        }
    }
    router.shown("abc_share")
}

/// ABC-U9: beside two ABC flows and two others that would take more, one of the other queue that would not.
pub(super) fn weight_unfairness() -> Finding {
    const HEADROOM: f64 = 0.1;
    let mut worst = 0.0_f64;
    for limited_mbps in [1.0, 5.0, 10.0, 15.0] {
        let each = (96.0 - limited_mbps) / 4.0;
        let flows = [
            (each, 1, Encoding::Abc),
            (each, 2, Encoding::Abc),
            (each, 3, Encoding::None),
            (each, 4, Encoding::None),
            (limited_mbps, 5, Encoding::None),
        ];
        // Exactly fair is 2 each for ABC.
        let missing_mbps = 2.0 * each - 96.0 * share_after(5, &flows);
        worst = worst.max(missing_mbps / limited_mbps);
    }
    let measured = format!("{:.1} % of the limited flow's rate at most, X being 10 %", 100.0 * worst);
    finding(worst <= HEADROOM + 0.005, measured)
}

/// ABC-U11: Space-Saving finds the heaviest ten of many thousand flows with 64 counters.
pub(super) fn heavy_flows() -> Finding {
    const COUNTERS: usize = 64;
    let mut holds = true;
    let mut most = 0;
    for flows in [1_000_u32, 10_000, 100_000] {
        let mut summary = SpaceSaving::new(COUNTERS);
        for round in 0..flows {
            summary.add(1000 + round, 1500.0);
            // Ten flows have 2 % of the bytes each: more than the 1 / 64 from which a flow is sure to be
            // found.
            if round % 10 == 0 {
                (0..10).for_each(|heavy| summary.add(heavy, 375.0));
            }
        }
        most = most.max(summary.counters().len());
        let mut found: Vec<_> = summary.counters().to_vec();
        found.sort_by(|one, other| other.certain().total_cmp(&one.certain()));
        holds &= found[..10].iter().all(|counter| counter.key < 10);
    }
    let measured = format!("{most} counters for 1,000, 10,000 and 100,000 flows, the ten heaviest found");
    finding(holds && most <= COUNTERS, measured)
}
