//! What the episodes of environments are: links that are drawn, or a scenario in which an agent steers a flow.

use std::sync::Arc;

use brakelight::apps::Traffic;
use brakelight::core::random::Random;
use brakelight::core::registry::{ControllerConfig, Registry};
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::Rate;
use brakelight::prelude::{Hop, Record, Scenario};
use brakelight::scenario::scheme_string::SchemeString;
use brakelight::sim::{Simulation, Traces};

use super::links::{Domain, Range, read};

/// The longest round trip that a limit on the window is made for, where the scenario says less: on a path that
/// replays recorded delays its `rtt` is 0.
const LONG_RTT_MS: f64 = 200.0;

/// Where episodes come from.
pub enum Source {
    /// Links that are drawn.
    Links(Domain, Arc<Traces>),
    /// A scenario, each time with another seed.
    Scenario(Box<Steered>),
}

/// A scenario in which an agent steers a flow.
pub struct Steered {
    scenario: Scenario,
    traces: Arc<Traces>,
    /// The place of the flow among the scenario's.
    place: usize,
    /// The number of the flow in its run.
    flow: usize,
    /// The links that it passes.
    links: Vec<usize>,
    /// The mean rate of the slowest of them.
    rate: Rate,
}

/// One episode, before it begins.
pub struct Course {
    /// What happens in it; its agents are not in its registry.
    pub scenario: Scenario,
    /// The number of the first agent's flow; the others follow.
    pub flow: usize,
    /// The links whose smallest capacity is the agents'.
    pub links: Vec<usize>,
    /// Propagation delay of the round trip, zero if unknown.
    pub rtt: Duration,
    /// When the first agent's flow starts.
    pub start: Time,
    /// When it is over at the latest.
    pub end: Time,
}

impl Steered {
    /// Returns `scenario` with an agent in the place of the controller of the flow called `name`. A run of it
    /// is set up, so what is wrong with it is wrong now.
    pub fn new(scenario: &Scenario, traces: &Traces, name: &str) -> Result<Self, String> {
        let names = || {
            let names: Vec<String> = scenario.flows.iter().map(|flow| format!("`{}`", flow.name)).collect();
            names.join(", ")
        };
        let place = scenario.flows.iter().position(|flow| flow.name == name);
        let place = place.ok_or_else(|| {
            format!("flow = `{name}`: the scenario has no flow of that name: valid are {}", names())
        })?;
        let spec = &scenario.flows[place];
        if spec.count != 1 {
            return Err(format!(
                "flow = `{name}`: there are {} of it: valid is a flow whose `count` is 1",
                spec.count
            ));
        }
        if let Traffic::ShortFlows(_) = spec.traffic {
            return Err(format!(
                "flow = `{name}`: it is of many short connections: valid is a flow of one connection"
            ));
        }
        let links: Vec<usize> = spec
            .path
            .iter()
            .filter_map(|hop| match hop {
                Hop::Link(link) => scenario.link(link),
                Hop::Element(_) => None,
            })
            .collect();
        if links.is_empty() {
            return Err(format!("flow = `{name}`: its path has no link, so there is no capacity to use"));
        }
        let flow = scenario.flows[..place].iter().map(|flow| flow.count as usize).sum();
        let run = Simulation::new(scenario, traces).map_err(|error| error.to_string())?;
        let rate = capacity(&run, &links, Time::ZERO, run.end());
        let (mut scenario, traces) = (scenario.clone(), Arc::new(traces.clone()));
        // Nobody reads series or logs of an episode.
        scenario.record = Record::summary(scenario.duration);
        Ok(Steered { scenario, traces, place, flow, links, rate })
    }
}

impl Source {
    /// Returns the traces that its scenarios name.
    pub fn traces(&self) -> &Arc<Traces> {
        match self {
            Source::Links(_, traces) => traces,
            Source::Scenario(steered) => &steered.traces,
        }
    }

    /// Returns the rates that its links have in Mbit/s, and the longest round trip in ms.
    pub fn ranges(&self) -> (Range, f64) {
        match self {
            Source::Links(domain, _) => (domain.rate_mbps, domain.rtt_ms.1),
            // A link that varies is for seconds faster than its mean, and slower.
            Source::Scenario(steered) => {
                let mbps = steered.rate.as_mbps_f64().max(0.1);
                let rtt_ms = steered.scenario.flows[steered.place].rtt.as_millis_f64();
                ((0.1 * mbps, 2.0 * mbps), rtt_ms.max(LONG_RTT_MS))
            }
        }
    }

    /// Draws the mean rate of an episode, and what makes the episode of the names of its agents.
    pub fn draw<'a>(&'a self, random: &mut Random) -> (Rate, Drafted<'a>) {
        match self {
            Source::Links(domain, traces) => {
                let drawn = domain.draw(random, traces);
                (drawn.rate, Drafted::Link(domain, Box::new(drawn)))
            }
            Source::Scenario(steered) => (steered.rate, Drafted::Seed(steered, random.bits() >> 1)),
        }
    }
}

/// An episode that was drawn, whose agents are not made yet.
pub enum Drafted<'a> {
    /// On a link that was drawn.
    Link(&'a Domain, Box<super::links::Drawn>),
    /// Of a scenario with this seed.
    Seed(&'a Steered, u64),
}

impl Drafted<'_> {
    /// Returns the episode with these `agents`, controllers of `registry`, of which number `i` starts
    /// `starts_s[i]` seconds after the beginning, unless the scenario says when.
    pub fn course(self, registry: &Registry, agents: &[&str], starts_s: &[f64]) -> Result<Course, String> {
        match self {
            Drafted::Link(domain, drawn) => Ok(Course {
                scenario: domain.scenario(registry, &drawn, agents, starts_s)?,
                flow: 0,
                links: vec![0],
                rtt: drawn.rtt,
                start: Time::ZERO,
                end: Time::MAX,
            }),
            Drafted::Seed(steered, seed) => {
                let mut scenario = steered.scenario.clone();
                scenario.seed = seed;
                let spec = &mut scenario.flows[steered.place];
                let agent: SchemeString<ControllerConfig> =
                    read(registry, "flow", agents.first().copied().unwrap_or_default())?;
                spec.controller = agent;
                let (rtt, start) = (spec.rtt, Time::ZERO + spec.drawn_start(seed, 0));
                let end = spec.stop.unwrap_or(scenario.duration).min(scenario.duration);
                scenario.validate().map_err(|refusal| refusal.problem.to_string())?;
                let (flow, links) = (steered.flow, steered.links.clone());
                Ok(Course { scenario, flow, links, rtt, start, end: Time::ZERO + end })
            }
        }
    }
}

/// Returns what the slowest of `links` could have carried in `from <= t < to`, used or not.
pub fn capacity(run: &Simulation, links: &[usize], from: Time, to: Time) -> Rate {
    let each = links.iter().filter_map(|link| run.capacity_between(*link, from, to));
    each.map(|bytes| Rate::over(bytes, to.since(from))).min().unwrap_or(Rate::ZERO)
}
