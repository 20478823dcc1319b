//! What to deploy on one's own link, by the one thing that one can change.
//!
//! ```text
//! today:       Cubic's senders, and a drop-tail buffer at the link
//! candidates:  what the change allows, and today
//! out:         whatever has less than 2/3 of today's throughput, and what no router or host can have today
//! advice:      of the rest the one with most power, the median over the runs; nothing if that is today
//! power:       throughput of the flow / 95th percentile of its one-way delay
//! ```
//!
//! A link has two directions. Each is judged by a flow of its own, whose ACKs travel over the other.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_registry::Registry;
use brakelight_scenario::compare::Reverse;
use brakelight_scenario::deployment::Change;
use brakelight_scenario::median::median;
use brakelight_scenario::outcome::{Ratio, Run};
use brakelight_scenario::scenario::Hop;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::scheme_string::Words;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::names::Names;
use serde::Serialize;

use crate::compare::{Buffer, Compare, Plan};
use crate::error::Error;
use crate::progress::Progress;
use crate::runner::Runner;
use crate::schemes;
use crate::summary;
use crate::table::Table;

mod settings;

/// Throughput that a candidate must keep, as a share of today's.
pub const LEAST_THROUGHPUT: f64 = 2.0 / 3.0;

/// What somebody can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Can {
    /// The hosts that send.
    Senders,
    /// A shaper in a router that does not own the link: at home, behind somebody else's modem.
    Shaper,
    /// The queue of the router at the link.
    Router,
    /// The hosts and the router at the link.
    Both,
}

/// Whose data a direction of the link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// To the user.
    Download,
    /// From the user.
    Upload,
}

/// A question for advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The trace of the way to the user: a file, or a name.
    pub down: String,
    /// The trace of the way from the user; none for one without a limit.
    pub up: Option<String>,
    /// What can be changed.
    pub can: Can,
    /// Propagation delay of the round trip.
    pub rtt: Duration,
    /// The link's buffer; none for one that suits each trace.
    pub buffer: Option<Buffer>,
    /// Length of a run; none for what suits each trace.
    pub duration: Option<Duration>,
    /// Runs of every candidate; none for as many as `compare` has.
    pub runs: Option<u32>,
    /// The first seed.
    pub seed: u64,
    /// Whether time series are kept, for a report.
    pub series: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What can be changed.
    pub can: Can,
    /// The advice for each direction.
    pub directions: Vec<Advised>,
}

/// The advice for one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advised {
    /// Whose data it carries.
    pub direction: Way,
    /// The trace.
    pub trace: String,
    /// Its mean rate, Mbit/s.
    pub mean_mbps: f64,
    /// Runs of every candidate.
    pub runs: usize,
    /// How long each is, seconds.
    pub duration_s: f64,
    /// Propagation delay of the round trip, ms.
    pub rtt_ms: f64,
    /// What runs today.
    pub today: Candidate,
    /// What to deploy; none where nothing is better than today.
    pub deploy: Option<Deploy>,
    /// All candidates, those with most power first.
    pub candidates: Vec<Candidate>,
}

/// What to deploy, and what it brings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deploy {
    /// Its name among the candidates.
    pub name: String,
    /// What to type to have it, or where to find it, a line each.
    pub settings: Vec<String>,
    /// Its throughput over today's, run by run.
    pub throughput: Option<Ratio>,
    /// Its queueing delay's 95th percentile over today's.
    pub queueing_p95: Option<Ratio>,
    /// Its power over today's.
    pub power: Option<Ratio>,
    /// The next candidate, today's included.
    pub next: Option<String>,
    /// Its power over that of the next.
    pub ahead: Option<Ratio>,
    /// Where senders change: its share of what it and one of today's senders have in the same queue, from 0
    /// to 1, median over the runs.
    pub beside_today: Option<f64>,
}

/// What was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Its name: a scheme, or what stands before the link.
    pub name: String,
    /// What the flow delivered, Mbit/s, median over the runs.
    pub throughput_mbps: f64,
    /// 95th percentile of the one-way delay beyond propagation, ms, median over the runs.
    pub queueing_p95_ms: f64,
    /// Throughput over today's; the median over the runs.
    pub throughput_of_today: f64,
    /// Whether it keeps [`LEAST_THROUGHPUT`] of it.
    pub eligible: bool,
    /// Whether its router must know the link's rate.
    pub link_rate: bool,
}

/// A shaper in a home router, with CAKE as its queue.
struct Shaper {
    /// What the advice calls it.
    name: &'static str,
    rate: ShaperRate,
}

/// Who sets a shaper's rate.
#[derive(Clone, Copy)]
enum ShaperRate {
    /// Its owner, as a share of the link's mean.
    Share(f64),
    /// cake-autorate, within what its owner would type: these shares of the mean, the least, base and most.
    Autorate([f64; 3]),
}

/// The shapers that are tried.
const SHAPERS: [Shaper; 4] = [
    Shaper { name: "cake at 50 % of the mean", rate: ShaperRate::Share(0.5) },
    Shaper { name: "cake at 80 % of the mean", rate: ShaperRate::Share(0.8) },
    Shaper { name: "cake at 95 % of the mean", rate: ShaperRate::Share(0.95) },
    Shaper { name: "cake-autorate", rate: ShaperRate::Autorate([0.25, 1.0, 2.0]) },
];

/// Returns advice for the link that `request` describes, whose traces `names` knows, and the rows that it
/// comes from.
///
/// # Errors
/// If a trace is unknown, the two are the same, or the runs would take hours. Nothing runs then.
pub fn advise(
    request: &Request,
    names: &Names,
    runner: &dyn Runner,
    progress: &dyn Progress,
) -> Result<(Advice, Table), Error> {
    let ways = [
        (Way::Download, Some(&request.down), request.up.as_ref()),
        (Way::Upload, request.up.as_ref(), Some(&request.down)),
    ];
    if request.up.as_ref() == Some(&request.down) {
        return Err(Error::SameTrace(request.down.clone()));
    }
    let mut plans = Vec::new();
    for (direction, data, acks) in ways {
        let Some(data) = data else { continue };
        plans.push(planned(request, names, direction, data, acks)?);
    }
    for (_, plan) in &plans {
        plan.check_cost()?;
    }
    let (mut directions, mut tables) = (Vec::new(), Vec::new());
    for ((link, compare), plan) in &plans {
        let table = plan.run(runner, progress)?;
        let mut advised = advised(link, request.can, &table.runs, &table.every);
        if let Some(deploy) = advised.deploy.as_mut().filter(|_| changes_senders(request.can)) {
            deploy.beside_today =
                beside(compare, &deploy.name, &advised.today.name, names, runner, progress)?;
        }
        directions.push(advised);
        tables.push(table);
    }
    let advice = Advice { can: request.can, directions };
    let traces: Vec<&str> = advice.directions.iter().map(|it| it.trace.as_str()).collect();
    let title = format!("Advice for {}", traces.join(" and "));
    let table = Table { title, advice: Some(advice.clone()), ..Table::joined(tables) };
    Ok((advice, table))
}

/// A direction of the link, its trace and its mean rate.
type Link = (Way, String, Rate);

fn changes_senders(can: Can) -> bool {
    matches!(can, Can::Senders | Can::Both)
}

/// The share that a flow of `scheme` has beside one of today's; none where the two cannot meet in one queue.
fn beside(
    compare: &Compare,
    scheme: &str,
    today: &str,
    names: &Names,
    runner: &dyn Runner,
    progress: &dyn Progress,
) -> Result<Option<f64>, Error> {
    let (Ok(scheme), Ok(today)) = (Scheme::parse(scheme), Scheme::parse(today)) else { return Ok(None) };
    let compare = Compare { schemes: vec![scheme], against: Some(today), series: false, ..compare.clone() };
    let Ok(plan) = Plan::new(&compare, names) else { return Ok(None) };
    let table = plan.run(runner, progress)?;
    let shares = table.every.iter().flatten().filter_map(|run| Some(run.fairness?.share));
    Ok(median(&mut shares.collect::<Vec<f64>>()))
}

fn planned(
    request: &Request,
    names: &Names,
    direction: Way,
    data: &str,
    acks: Option<&String>,
) -> Result<((Link, Compare), Plan), Error> {
    let change = match request.can {
        Can::Senders => Change::Senders,
        Can::Shaper => Change::Nothing,
        Can::Router => Change::Queue,
        Can::Both => Change::Both,
    };
    let registry = Registry::standard();
    let mut compared = schemes::within(schemes::defaults(&registry), change);
    compared.retain(settings::exists);
    match request.can {
        Can::Shaper => compared.retain(|scheme| scheme.deployment().change == Change::Nothing),
        Can::Router | Can::Both => {
            let own = compared.iter().filter_map(|scheme| as_it_comes(&registry, scheme));
            compared.extend(own.collect::<Vec<_>>());
        }
        Can::Senders => {}
    }
    let compare = Compare {
        traces: vec![data.to_string()],
        schemes: compared,
        rtt: request.rtt,
        buffer: request.buffer,
        reverse: acks.map(|trace| Reverse::Trace(trace.clone())),
        duration: request.duration,
        runs: request.runs,
        seed: request.seed,
        series: request.series,
        ..Compare::default()
    };
    let mut plan = Plan::new(&compare, names)?;
    let (label, trace) = plan.first_trace();
    let (label, mean) = (label.to_string(), trace.mean_rate(OPPORTUNITY));
    if request.can == Can::Shaper {
        for shaper in &SHAPERS {
            let hop = shaper.hop(direction, mean);
            plan.add_element(shaper.name, hop, direction == Way::Upload)?;
        }
    }
    Ok((((direction, label, mean), compare), plan))
}

/// The scheme with its queue as routers have it by default, where `compare` presets options that a paper had.
fn as_it_comes(registry: &Registry, scheme: &Scheme) -> Option<Scheme> {
    let queue = scheme.queue();
    let (name, preset) = (scheme.to_string(), queue.traits().preset?);
    let parameters = registry.queues().find(|entry| entry.name == queue.name())?.parameters();
    let own = preset.options.iter().filter_map(|(option, set)| {
        let its = parameters.iter().find(|parameter| parameter.name == *option)?;
        (its.default != *set).then(|| format!("{option}={}", its.default))
    });
    let options: Vec<String> = own.collect();
    if name.contains(':') || options.is_empty() {
        return None;
    }
    Scheme::parse(&format!("{name}:{}", options.join(","))).ok()
}

impl Shaper {
    /// The shaper before, or behind, a link of this mean rate.
    fn hop(&self, direction: Way, mean: Rate) -> Hop {
        let side = if direction == Way::Download { "down" } else { "up" };
        let setter = match self.rate {
            ShaperRate::Share(share) => format!("fixed/share={share}"),
            ShaperRate::Autorate(shares) => {
                let [min, base, max] = shares.map(|share| mean.mul_f64(share));
                format!("autorate/min={min}/base={base}/max={max}")
            }
        };
        let words = Words::parse(&format!("shaper:queue=cake,side={side},setter={setter}"));
        Hop::from_words(words.expect("words of our own")).expect("a shaper of our own")
    }
}

/// Throughput of the flow, Mbit/s.
fn throughput(run: &Run) -> Option<f64> {
    run.flows.first().map(|flow| flow.throughput_mbps)
}

/// 95th percentile of what the path adds to its propagation, ms. A shaper's queue is part of it.
fn queueing_p95(run: &Run) -> Option<f64> {
    let propagation = run.setup.as_ref()?.rtt_ms / 2.0;
    Some((run.one_way_delay_ms?.p95 - propagation).max(0.0))
}

fn power(run: &Run) -> Option<f64> {
    let (throughput, delay) = (throughput(run)?, run.one_way_delay_ms?.p95);
    (delay > 0.0 && throughput > 0.0).then(|| throughput / delay)
}

fn middle(runs: &[Run], value: fn(&Run) -> Option<f64>) -> f64 {
    median(&mut runs.iter().filter_map(value).collect::<Vec<f64>>()).unwrap_or(0.0)
}

/// The advice that the rows in `runs` give, each made of the runs in the same place of `every`.
fn advised(link: &Link, can: Can, runs: &[Run], every: &[Vec<Run>]) -> Advised {
    let &(direction, ref trace, mean) = link;
    // Rows with a shaper are copies of today's, and stand behind it.
    let is_today = |run: &Run| run.deployment.is_some_and(|it| it.change == Change::Nothing);
    let today = runs.iter().position(is_today).expect("today's scheme is among the candidates");
    let todays = middle(summary::runs_of(runs, every, today), throughput);
    let over = |scheme: &str, other: &str, value| summary::over(runs, every, scheme, other, value);
    let mut candidates: Vec<(f64, Candidate)> = (0..runs.len())
        .map(|place| {
            let every = summary::runs_of(runs, every, place);
            let throughput_mbps = middle(every, throughput);
            let ratio = throughput_mbps / todays;
            let candidate = Candidate {
                name: runs[place].scheme.clone(),
                throughput_mbps,
                queueing_p95_ms: middle(every, queueing_p95),
                throughput_of_today: ratio,
                eligible: ratio >= LEAST_THROUGHPUT,
                link_rate: runs[place].deployment.is_some_and(|it| it.link_rate),
            };
            (middle(every, power), candidate)
        })
        .collect();
    candidates.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let candidates: Vec<Candidate> = candidates.into_iter().map(|(_, candidate)| candidate).collect();
    let today = candidates.iter().find(|candidate| candidate.name == runs[today].scheme).cloned();
    let today = today.expect("today's scheme is among the candidates");
    let mut eligible = candidates.iter().filter(|candidate| candidate.eligible);
    let best = eligible.next().filter(|best| best.name != today.name);
    let next = eligible.next().map(|candidate| candidate.name.clone());
    let deploy = best.map(|best| Deploy {
        settings: settings::of(&best.name, can, direction, mean),
        throughput: over(&best.name, &today.name, throughput),
        queueing_p95: over(&best.name, &today.name, queueing_p95),
        power: over(&best.name, &today.name, power),
        ahead: next.as_deref().and_then(|next| over(&best.name, next, power)),
        next,
        name: best.name.clone(),
        beside_today: None,
    });
    Advised {
        direction,
        trace: trace.clone(),
        mean_mbps: mean.as_mbps_f64(),
        runs: every.first().map_or(1, Vec::len),
        duration_s: runs.first().map_or(0.0, |run| run.duration_s),
        rtt_ms: runs.first().and_then(|run| run.setup.as_ref()).map_or(0.0, |setup| setup.rtt_ms),
        today,
        deploy,
        candidates,
    }
}
