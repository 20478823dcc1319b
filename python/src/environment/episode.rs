//! One environment: the episode that is on, and how the next is drawn.

use std::sync::Arc;

use brakelight::core::controller::external::{FASTEST, SLOWEST};
use brakelight::core::random::Random;
use brakelight::core::registry::Registry;
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::{Bytes, Rate};
use brakelight::sim::{Simulation, Traces};
use serde::Deserialize;

use super::interval::{Counters, Interval};
use super::links::{Domain, uniform};
use super::preset::{Decision, Memory, Preset};

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

/// One agent of an episode.
#[derive(Clone, Copy, Debug, Default)]
struct Agent {
    before: Counters,
    memory: Memory,
    /// The pacing rate that it set, bit/s; not used where it decides the window.
    rate_bps: f64,
    /// The window that it set.
    cwnd: f64,
}

/// An episode in progress.
#[derive(Debug)]
struct Episode {
    simulation: Simulation,
    agents: Vec<Agent>,
    base_rtt_s: f64,
    limits: Limits,
    /// The mean RTT of the last interval, over all agents.
    last_rtt_s: f64,
    steps: u32,
}

/// An environment.
#[derive(Debug)]
pub struct Environment {
    setup: Arc<Setup>,
    traces: Arc<Traces>,
    seed: u64,
    /// Episodes that were begun with this seed.
    begun: u64,
    episode: Option<Episode>,
}

/// The smallest change of a window is a packet.
const MSS: f64 = 1448.0;

impl Environment {
    /// Returns an environment before its first episode.
    pub fn new(setup: Arc<Setup>, traces: Arc<Traces>, seed: u64) -> Self {
        Environment { setup, traces, seed, begun: 0, episode: None }
    }

    /// Begins an episode: the first of `seed`, or the next of the seed that there was.
    pub fn reset(&mut self, seed: Option<u64>, place: &mut Place<'_>) -> Result<(), String> {
        if let Some(seed) = seed {
            (self.seed, self.begun) = (seed, 0);
        }
        let setup = &*self.setup;
        let mut random = Random::stream(self.seed, &format!("episode {}", self.begun));
        let drawn = setup.links.draw(&mut random, &self.traces);
        let controllers = vec!["external"; setup.agents];
        let starts: Vec<f64> = (0..setup.agents).map(|agent| agent as f64 * setup.stagger_s).collect();
        let scenario = setup.links.scenario(&Registry::standard(), &drawn, &controllers, &starts)?;
        let mut simulation = Simulation::new(&scenario, &self.traces).map_err(|error| error.to_string())?;
        let base_rtt_s = drawn.rtt.as_secs_f64();
        let limits = Limits::of(&setup.links, drawn.rate);
        let mut agents = Vec::with_capacity(setup.agents);
        for number in 0..setup.agents {
            let share = uniform(&mut random, setup.start);
            let mut agent =
                Agent { rate_bps: drawn.rate.bps() as f64 * share, cwnd: 10.0 * MSS, ..Agent::default() };
            agent
                .decide(&mut simulation, number, setup.preset, &limits, None)
                .map_err(|error| error.to_string())?;
            agents.push(agent);
        }
        self.begun += 1;
        let nothing = setup.preset.nothing().iter().map(|value| *value as f32);
        place.observations.iter_mut().zip(nothing.cycle()).for_each(|(place, value)| *place = value);
        place.rewards.fill(0.0);
        place.info.fill(0.0);
        *place.truncated = false;
        self.episode =
            Some(Episode { simulation, agents, base_rtt_s, limits, last_rtt_s: base_rtt_s, steps: 0 });
        Ok(())
    }

    /// Lets every agent act, and advances by an interval. Before the first episode, nothing happens.
    pub fn step(&mut self, actions: &[f64], place: &mut Place<'_>) -> Result<(), String> {
        let setup = &*self.setup;
        let Some(episode) = &mut self.episode else { return Err("the environment was not reset".into()) };
        let Episode { simulation, agents, base_rtt_s, limits, .. } = episode;
        for (number, (agent, action)) in agents.iter_mut().zip(actions).enumerate() {
            agent
                .decide(simulation, number, setup.preset, limits, Some(*action))
                .map_err(|error| error.to_string())?;
            agent.before = Counters::of(simulation, number);
        }
        let length = setup.interval(episode.last_rtt_s);
        let begin = simulation.now();
        simulation.advance(begin + length / 2);
        let middle: Vec<Counters> =
            (0..agents.len()).map(|number| Counters::of(simulation, number)).collect();
        simulation.advance(begin + length);
        let capacity_mbps = capacity_mbps(simulation, begin);
        let (features, history) = (setup.preset.features(), setup.history);
        let mut rtts = 0.0;
        for (number, agent) in agents.iter_mut().enumerate() {
            let sender = simulation.sender(number).unwrap_or_default();
            let end = Counters::of(simulation, number);
            let interval =
                Interval::between(&agent.before, &middle[number], &end, &sender, *base_rtt_s, capacity_mbps);
            rtts += interval.rtt_s;
            let rows = &mut place.observations[number * history * features..][..history * features];
            rows.copy_within(features.., 0);
            setup.preset.observe(&interval, &mut agent.memory, &mut rows[(history - 1) * features..]);
            let reward = setup.preset.reward(&interval, &agent.memory, *base_rtt_s);
            place.rewards[number] = reward.total();
            let info = [
                interval.throughput_mbps(),
                interval.rtt_s * 1e3,
                interval.loss(),
                capacity_mbps,
                interval.cwnd,
                sender.pacing_rate.map_or(0.0, Rate::as_mbps_f64),
                interval.delivered,
                interval.length_s * 1e3,
                simulation.now().since(Time::ZERO).as_secs_f64(),
                reward.throughput,
                reward.delay,
                reward.loss,
            ];
            place.info[number * INFO.len()..][..INFO.len()].copy_from_slice(&info);
        }
        episode.last_rtt_s = rtts / agents.len() as f64;
        episode.steps += 1;
        *place.truncated = episode.steps >= setup.steps;
        Ok(())
    }
}

/// What the link could have carried since `begin`.
fn capacity_mbps(simulation: &Simulation, begin: Time) -> f64 {
    let (now, length) = (simulation.now(), simulation.now().since(begin));
    let bytes = simulation.capacity_between(0, begin, now).unwrap_or_default();
    Rate::over(bytes, length).as_mbps_f64()
}

impl Setup {
    /// The length of an interval after one whose mean RTT was `rtt_s`.
    fn interval(&self, rtt_s: f64) -> Duration {
        let least_s = self.interval_ms * 1e-3;
        let length = self.interval_rtts.map_or(least_s, |rtts| (rtts * rtt_s).max(least_s));
        // An agent that fills a deep buffer must not wait for minutes.
        Duration::from_secs_f64(length.min(10.0))
    }
}

/// What an agent may set: as much as any of the links takes, so that one that ran away costs no time.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bit/s.
    least_bps: f64,
    most_bps: f64,
    /// Bytes.
    most_cwnd: f64,
}

impl Limits {
    /// Those of links of `domain`, of which the present one has a mean of `rate`.
    fn of(domain: &Domain, rate: Rate) -> Self {
        let most_bps = (domain.rate_mbps.1 * 1e6).max(rate.bps() as f64);
        Limits {
            // Of Aurora's links that is 40 to 1000 packets a second, as in the authors' simulator.
            least_bps: (0.4 * domain.rate_mbps.0 * 1e6).max(SLOWEST.bps() as f64),
            most_bps: (2.0 * most_bps).min(FASTEST.bps() as f64),
            most_cwnd: (8.0 * most_bps / 8.0 * domain.rtt_ms.1 * 1e-3).clamp(100.0 * MSS, 1e9),
        }
    }
}

impl Agent {
    /// Does what `action` decides; without one, sets what it begins with.
    fn decide(
        &mut self,
        simulation: &mut Simulation,
        flow: usize,
        preset: Preset,
        limits: &Limits,
        action: Option<f64>,
    ) -> Result<(), brakelight::sim::ActionError> {
        match preset.decide(action.unwrap_or(0.0)) {
            Decision::Rate(factor) => {
                self.rate_bps = (self.rate_bps * factor).clamp(limits.least_bps, limits.most_bps);
                simulation.set_pacing_rate(flow, Some(Rate::from_bps_f64(self.rate_bps)))?;
                if action.is_none() {
                    // The rate alone decides, so it comes first.
                    simulation.set_window(flow, Bytes(limits.most_cwnd as u64))?;
                }
                Ok(())
            }
            Decision::Window(factor) => {
                self.cwnd = (self.cwnd * factor).clamp(MSS, limits.most_cwnd);
                simulation.set_window(flow, Bytes(self.cwnd as u64))
            }
        }
    }
}
