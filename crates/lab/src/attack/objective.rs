//! How much worse a scheme did on a link than was possible.
//!
//! | objective | who runs | damage |
//! |---|---|---|
//! | `delay` | the scheme alone, the references alone | its p95 delay less the best reference's, ms |
//! | `longest` | the same | its longest delay, ms |
//! | `waste` | the same | the best reference's share of the capacity less its own, points |
//! | `loss` | the same | its share of packets dropped less the best reference's, points |
//! | `unfair` | two flows, one path | the larger throughput over the smaller |
//! | `starve` | two flows; delays and loss on one path | half of the capacity over the throughput there |
//!
//! The best reference is, among those that carry nine tenths of what the scheme carries (all, where none
//! does), the one with the least delay, the most throughput or the least loss. Unless others are named it is
//! PK-ABC: ABC that knows its link's rate one round trip ahead (abc20 7.3), with d_t = 5 ms and delta = 4/3
//! of the round trip, above the 2/3 that the paper's theorem asks for.

use std::str::FromStr;

use brakelight_scenario::documents::AttackedFlow;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::Traces;

use super::Attack;
use super::space::{Link, Setting};
use crate::error::Error;
use crate::runner::Runner;

/// What is to be as bad as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Objective {
    /// Queueing delay.
    #[default]
    Delay,
    /// The longest queueing delay of a packet.
    Longest,
    /// Capacity that is not used.
    Waste,
    /// Throughput of two flows on one path.
    Unfair,
    /// Packets dropped.
    Loss,
    /// Throughput of a flow beside one with a steadier path.
    Starve,
}

/// Ratios above this are this: who gets nothing is infinitely starved.
const MOST_RATIO: f64 = 1000.0;

/// What a reference must carry, as a share of what the scheme carries.
const ENOUGH: f64 = 0.9;

impl Objective {
    /// Every objective with its name.
    pub const ALL: [(&str, Objective); 6] = [
        ("delay", Objective::Delay),
        ("longest", Objective::Longest),
        ("waste", Objective::Waste),
        ("unfair", Objective::Unfair),
        ("loss", Objective::Loss),
        ("starve", Objective::Starve),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Objective::ALL.iter().find(|(_, objective)| *objective == self).map_or("", |(name, _)| name)
    }

    /// Returns the unit of the damage.
    pub fn unit(self) -> &'static str {
        match self {
            Objective::Delay | Objective::Longest => "ms",
            Objective::Waste | Objective::Loss => "points",
            Objective::Unfair | Objective::Starve => "times",
        }
    }

    /// Returns whether two flows share the link.
    pub fn has_two_flows(self) -> bool {
        matches!(self, Objective::Unfair | Objective::Starve)
    }

    /// Returns what is left of `damage` where so large a share of it stays: of a ratio, that share of its
    /// logarithm.
    pub(super) fn share_of(self, damage: f64, share: f64) -> f64 {
        if self.has_two_flows() { libm::pow(damage.max(1.0), share) } else { damage * share }
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        super::by_name(&Objective::ALL, "objective", text)
    }
}

/// What a link did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    /// How bad it was.
    pub damage: f64,
    /// The flow that is attacked.
    pub own: AttackedFlow,
    /// The best reference, or the flow beside it.
    pub beside: AttackedFlow,
    /// What the best reference ran, where it ran by itself.
    pub reference: Option<Scenario>,
}

/// The scenario in which the scheme is attacked by `link`.
pub(super) fn scenario(attack: &Attack, link: &Link, seed: u64) -> Result<Scenario, InputError> {
    let name =
        format!("{} of {} at its worst, {}", attack.objective.name(), attack.scheme, attack.space.name());
    let setting = Setting { name, seed, duration: attack.bounds.duration };
    let other = attack.objective.has_two_flows().then(|| attack.against.first().unwrap_or(&attack.scheme));
    link.scenario(&attack.scheme, other, attack.objective == Objective::Unfair, &setting)
}

/// The references on `link`, each with its name.
fn references(attack: &Attack, link: &Link, seed: u64) -> Result<Vec<(String, Scenario)>, Error> {
    let known_future;
    let schemes = match attack.against.as_slice() {
        [] => {
            let rtt = link.rtt_ms;
            let words = format!("abc:lookahead={rtt}ms,target=5ms,delta={}ms", (rtt * 4).div_ceil(3));
            known_future = [Scheme::parse(&words)?];
            &known_future[..]
        }
        given => given,
    };
    let one = |scheme: &Scheme| {
        let setting = Setting { name: format!("{scheme}"), seed, duration: attack.bounds.duration };
        Ok((scheme.to_string(), link.scenario(scheme, None, false, &setting)?))
    };
    schemes.iter().map(one).collect()
}

/// Runs the scheme and its references on `link`.
pub(super) fn judge(attack: &Attack, link: &Link, seed: u64, runner: &dyn Runner) -> Result<Judged, Error> {
    let traces = Traces::new();
    let run = |scenario: &Scenario| {
        let outcome = runner.run(scenario, &traces);
        Ok::<_, Error>(outcome.map_err(|cause| Error::run(format_args!("{}", scenario.name), cause))?.run)
    };
    let both = run(&scenario(attack, link, seed)?)?;
    let own = flow(&both, 0, attack.scheme.to_string());
    if attack.objective.has_two_flows() {
        let other = attack.against.first().unwrap_or(&attack.scheme);
        let beside = flow(&both, 1, other.to_string());
        let damage = match attack.objective {
            Objective::Unfair => {
                let (one, two) = (own.throughput_mbps, beside.throughput_mbps);
                ratio(one.max(two), one.min(two))
            }
            _ => ratio(both.capacity_mbps / 2.0, own.throughput_mbps),
        };
        return Ok(Judged { damage, own, beside, reference: None });
    }
    let mut best: Option<(AttackedFlow, Scenario)> = None;
    for (name, scenario) in references(attack, link, seed)? {
        let other = flow(&run(&scenario)?, 0, name);
        if best.as_ref().is_none_or(|(best, _)| is_better(attack.objective, &other, best, &own)) {
            best = Some((other, scenario));
        }
    }
    let (beside, reference) = best.ok_or_else(|| Error::NoRun("no reference".to_string()))?;
    let damage = match attack.objective {
        // Of a flow that nothing came through there is no delay.
        Objective::Delay => own.p95_ms.zip(beside.p95_ms).map_or(0.0, |(own, other)| own - other),
        Objective::Longest => own.longest_ms.unwrap_or(0.0),
        Objective::Loss => own.loss_percent - beside.loss_percent,
        _ => beside.share_percent - own.share_percent,
    };
    Ok(Judged { damage, own, beside, reference: Some(reference) })
}

fn ratio(large: f64, small: f64) -> f64 {
    if small * MOST_RATIO <= large { MOST_RATIO } else { large / small }
}

/// Whether `one` is the better reference of the two for a flow that had `own`.
fn is_better(objective: Objective, one: &AttackedFlow, two: &AttackedFlow, own: &AttackedFlow) -> bool {
    let carries = |flow: &AttackedFlow| flow.throughput_mbps >= ENOUGH * own.throughput_mbps;
    let p95 = |flow: &AttackedFlow| flow.p95_ms.unwrap_or(f64::INFINITY);
    match (objective, carries(one), carries(two)) {
        (Objective::Waste, _, _) => one.throughput_mbps > two.throughput_mbps,
        (_, true, false) => true,
        (_, false, true) => false,
        (Objective::Loss, _, _) => one.loss_percent < two.loss_percent,
        _ => p95(one) < p95(two),
    }
}

/// What the flow number `place` had.
fn flow(run: &Run, place: usize, scheme: String) -> AttackedFlow {
    let Some(flow) = run.flows.get(place) else { return AttackedFlow { scheme, ..AttackedFlow::default() } };
    AttackedFlow {
        scheme,
        throughput_mbps: flow.throughput_mbps,
        share_percent: 100.0 * flow.throughput_mbps / run.capacity_mbps.max(f64::MIN_POSITIVE),
        p95_ms: flow.queueing_delay_ms.map(|delay| delay.p95),
        longest_ms: flow.queueing_delay_ms.map(|delay| delay.max),
        loss_percent: flow.loss_percent,
    }
}
