//! Observations, actions and rewards. `docs/learning.md` has them with their sources.

use serde::{Deserialize, Serialize};

use super::interval::Interval;

/// Whose observations, actions and rewards an environment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Aurora: N. Jay and others, "A Deep Reinforcement Learning Perspective on Internet Congestion Control",
    /// ICML 2019, as the authors' simulator has it: PCC-RL src/gym/network_sim.py.
    Aurora,
    /// Orca: S. Abbasloo and others, "Classic Meets Modern", SIGCOMM 2020, as the authors' program has it:
    /// Orca rl-module/envwrapper.py and src/orca-server-mahimahi.cc. `docs/learning.md` lists the deviations.
    Orca,
    /// This project's own.
    Default,
}

/// What a preset keeps of a connection between its intervals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// The highest throughput of an interval so far, in Mbit/s.
    pub most_mbps: f64,
}

/// What an agent decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The pacing rate is this factor of what it was.
    Rate(f64),
    /// The window is this factor of what it was.
    Window(f64),
}

/// A reward with its parts, which sum up to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reward {
    /// For throughput.
    pub throughput: f64,
    /// For delay; none is above zero.
    pub delay: f64,
    /// For loss; none is above zero.
    pub loss: f64,
}

impl Reward {
    /// Returns the reward.
    pub fn total(&self) -> f64 {
        self.throughput + self.delay + self.loss
    }
}

/// Aurora's alpha: how much an action of 1 changes the rate (PCC-RL: `DELTA_SCALE`).
const AURORA_ALPHA: f64 = 0.025;

/// Orca's zeta: how much lost throughput weighs in the reward (envwrapper.py, `get_state`).
const ORCA_ZETA: f64 = 5.0;

/// Orca's beta: an RTT up to this factor of the smallest costs nothing (params_base_eval.json:
/// `delay_margin_coef`).
const ORCA_BETA: f64 = 1.25;

/// The pacing rate of the authors' kernel over the window per smoothed RTT, after slow start (Linux 4.13
/// tcp_input.c, `tcp_update_pacing_rate`, with `sysctl_tcp_pacing_ca_ratio`).
const ORCA_PACING: f64 = 1.2;

/// The factor that the delay is in Orca's reward (envwrapper.py, `get_state`: `delay_metric`).
fn orca_delay_metric(interval: &Interval) -> f64 {
    let smoothed = interval.srtt_s.max(1e-6);
    (ORCA_BETA * interval.min_rtt_s / smoothed).min(1.0)
}

impl Preset {
    /// Returns how many numbers an interval gives.
    pub fn features(self) -> usize {
        match self {
            Preset::Aurora => 3,
            Preset::Orca => 7,
            Preset::Default => 8,
        }
    }

    /// Returns the least and the most of every number; observations are cut to them.
    pub fn bounds(self) -> &'static [(f64, f64)] {
        match self {
            Preset::Aurora => &[(-1.0, 10.0), (1.0, 10_000.0), (0.0, 1_000.0)],
            Preset::Orca => {
                &[(0.0, 1.0), (0.0, 10.0), (0.0, 100.0), (0.0, 100.0), (0.0, 10.0), (0.0, 1.0), (0.0, 1.0)]
            }
            Preset::Default => &[
                (0.0, 10.0),
                (-10.0, 10.0),
                (-1.0, 10.0),
                (0.0, 1.0),
                (0.0, 1.0),
                (0.0, 10.0),
                (0.0, 2.0),
                (0.0, 10.0),
            ],
        }
    }

    /// Returns the numbers of an interval before there was one.
    pub fn nothing(self) -> &'static [f64] {
        match self {
            Preset::Aurora => &[0.0, 1.0, 1.0],
            Preset::Orca => &[0.0; 7],
            Preset::Default => &[0.0; 8],
        }
    }

    /// Returns the least and the most of an action.
    pub fn action_bounds(self) -> (f64, f64) {
        match self {
            Preset::Aurora => (-1e12, 1e12),
            Preset::Orca | Preset::Default => (-1.0, 1.0),
        }
    }

    /// Returns the smallest window that an action leaves, in packets.
    pub fn least_packets(self) -> f64 {
        match self {
            // orca-server-mahimahi.cc: `MIN_CWND`.
            Preset::Orca => 4.0,
            Preset::Aurora | Preset::Default => 1.0,
        }
    }

    /// Returns what an action decides. What is out of bounds is brought within, and NaN decides nothing.
    pub fn decide(self, action: f64) -> Decision {
        let (least, most) = self.action_bounds();
        let action = if action.is_nan() { 0.0 } else { action.clamp(least, most) };
        match self {
            // network_sim.py, `apply_rate_delta`: x (1 + alpha a), or x / (1 - alpha a) where a < 0.
            Preset::Aurora => {
                let change = AURORA_ALPHA * action;
                Decision::Rate(if change >= 0.0 { 1.0 + change } else { 1.0 / (1.0 - change) })
            }
            // envwrapper.py, `map_action`: 4^a, in whole percents.
            Preset::Orca => Decision::Window((100.0 * (2.0 * action).exp2()).floor() / 100.0),
            Preset::Default => Decision::Window(action.exp2()),
        }
    }

    /// Writes the numbers of `interval` into `into`.
    pub fn observe(self, interval: &Interval, memory: &mut Memory, into: &mut [f32]) {
        let throughput = interval.throughput_mbps();
        memory.most_mbps = memory.most_mbps.max(throughput);
        let most = memory.most_mbps.max(1e-6);
        // The window that fills the path as far as it is known.
        let product = (most * 1e6 / 8.0 * interval.min_rtt_s).max(interval.mss);
        let min_rtt = interval.min_rtt_s.max(1e-6);
        let write = |into: &mut [f32], values: &[f64]| {
            for ((place, value), (low, high)) in into.iter_mut().zip(values).zip(self.bounds()) {
                *place = value.clamp(*low, *high) as f32;
            }
        };
        match self {
            Preset::Aurora => {
                let ratio = interval.rtt_s / min_rtt;
                write(into, &[interval.rtt_gradient, ratio, interval.send_ratio()]);
            }
            // envwrapper.py, `get_state`.
            Preset::Orca => {
                let pacing_mbps = ORCA_PACING * interval.cwnd * 8e-6 / interval.srtt_s.max(1e-6);
                let packets = (interval.cwnd / interval.mss).max(1.0);
                write(
                    into,
                    &[
                        throughput / most,
                        pacing_mbps / most,
                        ORCA_ZETA * interval.lost_mbps() / most,
                        interval.delivered / packets,
                        interval.length_s,
                        min_rtt / interval.srtt_s.max(min_rtt),
                        orca_delay_metric(interval),
                    ],
                );
            }
            Preset::Default => write(
                into,
                &[
                    interval.rtt_s / min_rtt - 1.0,
                    interval.rtt_gradient,
                    interval.send_ratio() - 1.0,
                    throughput / most,
                    interval.loss(),
                    interval.cwnd / product,
                    interval.inflight / interval.cwnd.max(1.0),
                    interval.length_s / min_rtt,
                ],
            ),
        }
    }

    /// Returns the reward of `interval`, in which the link could have carried `capacity_mbps`, on a path of
    /// the propagation delay `base_rtt_s`.
    pub fn reward(self, interval: &Interval, memory: &Memory, capacity_mbps: f64, base_rtt_s: f64) -> Reward {
        let throughput = interval.throughput_mbps();
        match self {
            // network_sim.py, `run_for_dur`: 10 throughput - 1000 latency - 2000 loss, with packets per
            // second and seconds, times `REWARD_SCALE`, 0.001.
            Preset::Aurora => Reward {
                throughput: 1e-2 * throughput * 1e6 / 8.0 / interval.mss,
                delay: -interval.rtt_s,
                loss: -2.0 * interval.loss(),
            },
            // envwrapper.py, `get_state`: (throughput - zeta losses) / highest throughput * delay_metric.
            Preset::Orca => {
                let most = memory.most_mbps.max(1e-6);
                let delay = orca_delay_metric(interval);
                let (gain, lost) = (throughput / most, ORCA_ZETA * interval.lost_mbps() / most);
                Reward { throughput: gain, delay: gain * (delay - 1.0), loss: -lost * delay }
            }
            Preset::Default => {
                let queueing = (interval.rtt_s - base_rtt_s).max(0.0);
                Reward {
                    throughput: (throughput / capacity_mbps.max(1e-6)).min(1.5),
                    delay: -queueing / (queueing + base_rtt_s),
                    loss: -2.0 * interval.loss(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
