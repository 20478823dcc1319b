//! One environment: the episode that is on, and how the next is drawn.

use std::sync::Arc;

use brakelight::core::controller::external::{FASTEST, SLOWEST};
use brakelight::core::random::Random;
use brakelight::core::time::Time;
use brakelight::core::units::Rate;
use brakelight::scenario::file;
use brakelight::scenario::scenario::Scenario;
use brakelight::sim::{Simulation, Traces};
use brakelight_learn::interval::FIRST_RTT;
use brakelight_learn::monitor::{Limits, Specification};
use brakelight_learn::preset::Preset;
use brakelight_learn::remote::Remote;
use serde::Deserialize;

use super::links::{Domain, uniform};
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
    /// Steps of an episode, after which it is truncated.
    pub steps: u32,
    /// The first rate of an agent that decides a rate, as a share of the link's, uniform.
    pub start: (f64, f64),
    /// Seconds between the starts of the agents' flows.
    pub stagger_s: f64,
    /// What links are drawn from.
    pub links: Domain,
}

/// What a step is told of besides observations: a row for each agent.
pub const INFO: [&str; 12] = [
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
    base_rtt_s: f64,
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
    traces: Arc<Traces>,
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
        traces: Arc<Traces>,
        seed: u64,
    ) -> Self {
        Environment { setup, algorithms, agents, traces, seed, begun: 0, episode: None }
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
        let drawn = setup.links.draw(&mut random, &self.traces);
        let starts: Vec<f64> = (0..setup.agents).map(|agent| agent as f64 * setup.stagger_s).collect();
        let specification = Arc::new(setup.specification(drawn.rate));
        let mut registry = self.algorithms.registry.clone();
        let mut agents = Vec::new();
        for name in &*self.agents {
            let share = uniform(&mut random, setup.start);
            let agent = Remote::new(Arc::clone(&specification), drawn.rate.mul_f64(share));
            registry
                .add_controller_factory(name, "An agent", Arc::new(agent.clone()))
                .map_err(|error| error.to_string())?;
            agents.push(agent);
        }
        let scenario = setup.links.scenario(&registry, &drawn, &self.agents, &starts)?;
        let simulation = Simulation::new(&scenario, &self.traces).map_err(|error| error.to_string())?;
        self.begun += 1;
        let width = specification.width();
        for row in place.observations.chunks_mut(width) {
            row.copy_from_slice(&specification.nothing());
        }
        place.rewards.fill(0.0);
        place.info.fill(0.0);
        *place.truncated = false;
        let (base_rtt_s, last_rtt_s) = (drawn.rtt.as_secs_f64(), FIRST_RTT.as_secs_f64());
        let (steps, actions) = (0, Vec::new());
        self.episode = Some(Episode {
            scenario,
            simulation,
            agents,
            specification,
            base_rtt_s,
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

    /// Lets every agent act, and advances by an interval. Before the first episode, nothing happens.
    pub fn step(&mut self, actions: &[f64], place: &mut Place<'_>) -> Result<(), String> {
        let setup = &*self.setup;
        let Some(episode) = &mut self.episode else { return Err("the environment was not reset".into()) };
        let Episode { simulation, agents, specification, base_rtt_s, .. } = episode;
        episode.actions.extend_from_slice(actions);
        let begin = simulation.now();
        let until = begin + specification.interval(episode.last_rtt_s);
        for (agent, action) in agents.iter().zip(actions) {
            let mut exchange = agent.exchange();
            (exchange.action, exchange.until, exchange.interval) = (*action, until, None);
        }
        simulation.advance(until);
        let capacity_mbps = capacity_mbps(simulation, begin);
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
            let reward = setup.preset.reward(&interval, &exchange.memory, capacity_mbps, *base_rtt_s);
            place.rewards[number] = reward.total();
            let sender = simulation.sender(number).unwrap_or_default();
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
            ];
            place.info[number * INFO.len()..][..INFO.len()].copy_from_slice(&info);
        }
        if running > 0 {
            episode.last_rtt_s = rtts / f64::from(running);
        }
        episode.steps += 1;
        *place.truncated = episode.steps >= setup.steps;
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

/// What the link could have carried since `begin`.
fn capacity_mbps(simulation: &Simulation, begin: Time) -> f64 {
    let (now, length) = (simulation.now(), simulation.now().since(begin));
    let bytes = simulation.capacity_between(0, begin, now).unwrap_or_default();
    Rate::over(bytes, length).as_mbps_f64()
}

impl Setup {
    /// What an agent on one of its links is made for, of which the present one has a mean of `rate`: it may
    /// set as much as any of them takes, so that one that ran away costs no time.
    pub fn specification(&self, rate: Rate) -> Specification {
        let domain = &self.links;
        let most_bps = (domain.rate_mbps.1 * 1e6).max(rate.bps() as f64);
        let limits = Limits {
            // Of Aurora's links that is 40 to 1000 packets a second, as in the authors' simulator.
            least_bps: (0.4 * domain.rate_mbps.0 * 1e6).max(SLOWEST.bps() as f64),
            most_bps: (2.0 * most_bps).min(FASTEST.bps() as f64),
            most_cwnd: (8.0 * most_bps / 8.0 * domain.rtt_ms.1 * 1e-3).clamp(144_800.0, 1e9),
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
