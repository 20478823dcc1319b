//! One environment: the episode that is on, and how the next is drawn.

use std::sync::Arc;

use brakelight::core::controller::external::{FASTEST, SLOWEST};
use brakelight::core::random::Random;
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::Rate;
use brakelight::scenario::file;
use brakelight::scenario::scenario::Scenario;
use brakelight::sim::{FlowView, Simulation};
use brakelight_learn::interval::FIRST_RTT;
use brakelight_learn::monitor::{Limits, Specification};
use brakelight_learn::preset::Preset;
use brakelight_learn::remote::Remote;
use serde::Deserialize;

use super::links::{Domain, uniform};
use super::source::{Course, Source, capacity};
use crate::registry::Algorithms;

/// What is the same for every episode.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Observations, actions and rewards.
    pub preset: Preset,
    /// Flows that share the link, each an agent's.
    pub agents: usize,
    /// The length of a monitor interval in mean RTTs of the last; absent where `interval_ms` decides.
    pub interval_rtts: Option<f64>,
    /// The length of a monitor interval in ms; with `interval_rtts` the least that it is.
    pub interval_ms: f64,
    /// Intervals in an observation, the newest last.
    pub history: usize,
    /// Steps of an episode, after which it is truncated; absent where the scenario alone ends it.
    pub steps: Option<u32>,
    /// The first rate of an agent that decides a rate, as a share of the link's, uniform.
    pub start: (f64, f64),
    /// Seconds between the starts of the agents' flows.
    pub stagger_s: f64,
    /// What links are drawn from; absent where there is a scenario.
    pub links: Option<Domain>,
}

/// What a step is told of besides observations: a row for each agent.
pub const INFO: [&str; 18] = [
    "throughput_mbps",
    "rtt_ms",
    "loss",
    "capacity_mbps",
    "cwnd_bytes",
    "pacing_mbps",
    "delivered_packets",
    "interval_ms",
    "time_s",
    "reward_throughput",
    "reward_delay",
    "reward_loss",
    "sent_packets",
    "lost_packets",
    "min_rtt_ms",
    "srtt_ms",
    "rtt_gradient",
    "inflight_bytes",
];

/// Where the results of a step go, of all agents of one environment.
pub struct Place<'a> {
    /// `agents` rows of `history * features`.
    pub observations: &'a mut [f32],
    /// One for each agent.
    pub rewards: &'a mut [f64],
    /// `agents` rows of as many as [`INFO`] has.
    pub info: &'a mut [f64],
    /// Whether the episode's time is over.
    pub truncated: &'a mut bool,
}

/// An episode in progress.
#[derive(Debug)]
struct Episode {
    scenario: Scenario,
    simulation: Simulation,
    agents: Vec<Remote>,
    specification: Arc<Specification>,
    /// The number of the first agent's flow.
    flow: usize,
    /// The links whose smallest capacity is the agents'.
    links: Vec<usize>,
    /// Zero if it is not known.
    base_rtt_s: f64,
    /// When it is over at the latest.
    end: Time,
    /// The mean RTT of the last interval, over all agents.
    last_rtt_s: f64,
    steps: u32,
    /// The actions of all agents, step after step.
    actions: Vec<f64>,
}

/// An environment.
pub struct Environment {
    setup: Arc<Setup>,
    /// Those that scenarios may name, the agents aside.
    algorithms: Arc<Algorithms>,
    /// The names of the agents.
    agents: Arc<[&'static str]>,
    source: Arc<Source>,
    seed: u64,
    /// Episodes that were begun with this seed.
    begun: u64,
    episode: Option<Episode>,
}

impl Environment {
    /// Returns an environment before its first episode.
    pub fn new(
        setup: Arc<Setup>,
        algorithms: Arc<Algorithms>,
        agents: Arc<[&'static str]>,
        source: Arc<Source>,
        seed: u64,
    ) -> Self {
        Environment { setup, algorithms, agents, source, seed, begun: 0, episode: None }
    }

    /// Returns its seed, the episodes that were begun with it, and the actions of the present one.
    pub fn state(&self) -> (u64, u64, Option<Vec<f64>>) {
        (self.seed, self.begun, self.episode.as_ref().map(|episode| episode.actions.clone()))
    }

    /// Does again what another one did: the same actions give the same episode. What is in `place` stays.
    pub fn restore(
        &mut self,
        (seed, begun, actions): &(u64, u64, Option<Vec<f64>>),
        place: &mut Place<'_>,
    ) -> Result<(), String> {
        (self.seed, self.begun, self.episode) = (*seed, *begun, None);
        let Some(actions) = actions else { return Ok(()) };
        self.begun = begun.checked_sub(1).ok_or("state: an episode that was not begun")?;
        let before = Kept::of(place);
        self.reset(None, place)?;
        for step in actions.chunks(self.setup.agents) {
            self.step(step, place)?;
        }
        before.put_back(place);
        Ok(())
    }

    /// Begins an episode: the first of `seed`, or the next of the seed that there was.
    pub fn reset(&mut self, seed: Option<u64>, place: &mut Place<'_>) -> Result<(), String> {
        if let Some(seed) = seed {
            (self.seed, self.begun) = (seed, 0);
        }
        let setup = &*self.setup;
        let mut random = Random::stream(self.seed, &format!("episode {}", self.begun));
        let (rate, drafted) = self.source.draw(&mut random);
        let starts: Vec<f64> = (0..setup.agents).map(|agent| agent as f64 * setup.stagger_s).collect();
        let specification = Arc::new(setup.specification(&self.source, rate));
        let mut registry = self.algorithms.registry.clone();
        let mut agents = Vec::new();
        for name in &*self.agents {
            let share = uniform(&mut random, setup.start);
            let agent = Remote::new(Arc::clone(&specification), rate.mul_f64(share));
            registry
                .add_controller_factory(name, "An agent", Arc::new(agent.clone()))
                .map_err(|error| error.to_string())?;
            agents.push(agent);
        }
        let Course { scenario, flow, links, rtt, start, end } =
            drafted.course(&registry, &self.agents, &starts)?;
        let mut simulation =
            Simulation::new(&scenario, self.source.traces()).map_err(|error| error.to_string())?;
        // An agent decides nothing before its flow starts.
        if start > Time::ZERO {
            simulation.advance(start.saturating_sub(Duration::from_nanos(1)));
        }
        self.begun += 1;
        let width = specification.width();
        for row in place.observations.chunks_mut(width) {
            row.copy_from_slice(&specification.nothing());
        }
        place.rewards.fill(0.0);
        place.info.fill(0.0);
        *place.truncated = false;
        let (base_rtt_s, last_rtt_s) = (rtt.as_secs_f64(), FIRST_RTT.as_secs_f64());
        let (steps, actions) = (0, Vec::new());
        self.episode = Some(Episode {
            scenario,
            simulation,
            agents,
            specification,
            flow,
            links,
            base_rtt_s,
            end,
            last_rtt_s,
            steps,
            actions,
        });
        Ok(())
    }

    /// Returns the scenario of the episode as a file, in which agent `i` is the controller `agent-i`; `None`
    /// before the first.
    pub fn scenario(&self) -> Option<String> {
        self.episode.as_ref().map(|episode| file::write(&episode.scenario))
    }

    /// Returns the first agent's flow as it stands; `None` before the first episode.
    pub fn flow(&self) -> Option<FlowView> {
        self.episode.as_ref().and_then(|episode| episode.simulation.flow(episode.flow))
    }

    /// Lets every agent act, and advances by an interval. Before the first episode, nothing happens.
    pub fn step(&mut self, actions: &[f64], place: &mut Place<'_>) -> Result<(), String> {
        let setup = &*self.setup;
        let Some(episode) = &mut self.episode else { return Err("the environment was not reset".into()) };
        let Episode { simulation, agents, specification, .. } = episode;
        let begin = simulation.now();
        if begin >= episode.end {
            return Err("the episode is over: reset the environment".into());
        }
        episode.actions.extend_from_slice(actions);
        let until = (begin + specification.interval(episode.last_rtt_s)).min(episode.end);
        for (agent, action) in agents.iter().zip(actions) {
            let mut exchange = agent.exchange();
            (exchange.action, exchange.until, exchange.interval) = (*action, until, None);
        }
        simulation.advance(until);
        let capacity_mbps = capacity(simulation, &episode.links, begin, until).as_mbps_f64();
        let (mut rtts, mut running) = (0.0, 0);
        for (number, agent) in agents.iter().enumerate() {
            let exchange = agent.exchange();
            let width = exchange.observation.len();
            place.observations[number * width..][..width].copy_from_slice(&exchange.observation);
            // A flow that has not started has measured nothing.
            let interval = exchange.interval.unwrap_or_default();
            if exchange.interval.is_some() {
                (rtts, running) = (rtts + interval.rtt_s, running + 1);
            }
            // Where delays are replayed as they were recorded, the smallest RTT stands for that of the path.
            let base_rtt_s = if episode.base_rtt_s > 0.0 { episode.base_rtt_s } else { interval.min_rtt_s };
            let reward = setup.preset.reward(&interval, &exchange.memory, capacity_mbps, base_rtt_s);
            place.rewards[number] = reward.total();
            let sender = simulation.sender(episode.flow + number).unwrap_or_default();
            let info = [
                interval.throughput_mbps(),
                interval.rtt_s * 1e3,
                interval.loss(),
                capacity_mbps,
                interval.cwnd,
                sender.pacing_rate.map_or(0.0, Rate::as_mbps_f64),
                interval.delivered,
                interval.length_s * 1e3,
                until.since(Time::ZERO).as_secs_f64(),
                reward.throughput,
                reward.delay,
                reward.loss,
                interval.sent,
                interval.lost,
                interval.min_rtt_s * 1e3,
                interval.srtt_s * 1e3,
                interval.rtt_gradient,
                interval.inflight,
            ];
            place.info[number * INFO.len()..][..INFO.len()].copy_from_slice(&info);
        }
        if running > 0 {
            episode.last_rtt_s = rtts / f64::from(running);
        }
        episode.steps += 1;
        *place.truncated = setup.steps.is_some_and(|steps| episode.steps >= steps) || until >= episode.end;
        Ok(())
    }
}

/// A copy of what is in a place.
struct Kept {
    observations: Vec<f32>,
    rewards: Vec<f64>,
    info: Vec<f64>,
    truncated: bool,
}

impl Kept {
    fn of(place: &Place<'_>) -> Self {
        Kept {
            observations: place.observations.to_vec(),
            rewards: place.rewards.to_vec(),
            info: place.info.to_vec(),
            truncated: *place.truncated,
        }
    }

    fn put_back(&self, place: &mut Place<'_>) {
        place.observations.copy_from_slice(&self.observations);
        place.rewards.copy_from_slice(&self.rewards);
        place.info.copy_from_slice(&self.info);
        *place.truncated = self.truncated;
    }
}

impl Setup {
    /// What an agent on links of `source` is made for, of which the present one has a mean of `rate`: it may
    /// set as much as any of them takes, so that one that ran away costs no time.
    pub fn specification(&self, source: &Source, rate: Rate) -> Specification {
        let ((least_mbps, most_mbps), rtt_ms) = source.ranges();
        let most_bps = (most_mbps * 1e6).max(rate.bps() as f64);
        let limits = Limits {
            // Of Aurora's links that is 40 to 1000 packets a second, as in the authors' simulator.
            least_bps: (0.4 * least_mbps * 1e6).max(SLOWEST.bps() as f64),
            most_bps: (2.0 * most_bps).min(FASTEST.bps() as f64),
            most_cwnd: (8.0 * most_bps / 8.0 * rtt_ms * 1e-3).clamp(144_800.0, 1e9),
        };
        Specification {
            preset: self.preset,
            interval_rtts: self.interval_rtts,
            interval_ms: self.interval_ms,
            history: self.history,
            limits,
        }
    }
}
