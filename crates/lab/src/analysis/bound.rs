//! How long a packet can wait at ABC's router, and how much of its link is used at least, on every link of a
//! class. The proof is in docs/abc-bound.md; its steps have the numbers that stand here.
//!
//! The class: capacity between mu_min and mu_max, at most a factor `a` between any two moments that are one
//! round trip apart or less, and outages of together at most d while a packet waits.
//!
//! ```text
//! Z(t) = q(t) + P(t)                   waiting, and ordered in the last round trip            step 1
//! Z' = tr + n - mu <= 0                while the queue is busy and x is above q* / mu         step 2
//! Z <= eta tau mu_max + q*             at every moment                                        step 3
//! Z <= C2 mu'                          at the last order, mu' being what the link had then    step 4
//! mu(t + k tau) >= mu' a^-k            what serves it                                         step 5
//! W = V - tau + d                      V serves Z and what is added meanwhile                 step 6
//!
//! q* = m (d_t - delta (1 - eta)) + delta n,   m = min(mu_max, n / (1 - eta))
//! C2 = X0 + min(eta tau, max(tau / delta - 1, 0) X0 + max(eta a - 1, 0) tau^2 / delta)
//!      + n tau^2 / (2 delta mu')
//! X0 = d_t + eta delta                 the delay above which nothing is ordered
//! n  = N p / tau                       what additive increase adds at most
//! ```
//!
//! With packets a router measures over T, sees bursts, and holds tokens. Then, with
//! kappa = 1 + ln 2 and tau_T = tau rounded up to whole T:
//!
//! ```text
//! Z <= max(kappa tau_T + T ln 2, eta tau + q* / mu_max) mu_max + S                            step 7
//! Z <= (X0 + kappa tau_T) mu' + S
//! S  = p (2 tokenLimit + N (5 + ln(1 + Z / (2 N p))) + 1 + 2 tau_T / T)
//! ```
//!
//! where mu' is the most that the link had in tau + T, and mu(t + k tau) >= mu' a^-(k + 1). The class is
//! that of links that change by at most `a` in tau + T.
//!
//! | symbol | field | unit | range |
//! |---|---|---|---|
//! | eta | `Law::eta` | 1 | (0, 1) |
//! | delta | `Law::delta_s` | s | > 0 |
//! | d_t | `Law::target_s` | s | >= 0 |
//! | T | `Law::window_s` | s | > 0 |
//! | tokenLimit | `Law::tokens` | tokens | >= 1 |
//! | tau | `Path::tau_s` | s | > 0 |
//! | N | `Path::flows` | 1 | >= 0 |
//! | p | `Path::packet_bits` | bits | > 0 |
//! | mu_min, mu_max | `Class::low_bps`, `Class::high_bps` | bit/s | 0 < mu_min <= mu_max |
//! | a | `Class::change` | 1 | >= 1, infinity for any |
//! | d | `Class::outage_s` | s | >= 0 |

pub mod classes;

/// Pieces of the range of capacities in which the worst is looked for: each by the most that it may have to
/// serve and the least that serves it.
const PIECES: f64 = 1000.0;

/// delta over tau of the rule that tunes itself (docs/abc-adaptive.md).
const ADAPTIVE_DELTA_OVER_TAU: f64 = 0.7;
/// sigma over tau: how long that rule's mean of what is outstanding looks back.
const ADAPTIVE_SIGMA_OVER_TAU: f64 = 0.25;
/// The share of accelerates that it never goes below.
const ADAPTIVE_LEAST_SHARE: f64 = 1.0 / 16.0;
/// The loop delay at which its cushion is one mean error of the forecast, s, and the least share of it; the
/// most, how it falls on longer loops, and the end of that.
const ADAPTIVE_CUSHION_TAU_S: f64 = 0.1;
const ADAPTIVE_LEAST_CUSHION: f64 = 0.7;
const ADAPTIVE_MOST_CUSHION: f64 = 1.1;
const ADAPTIVE_CUSHION_FALL: f64 = 1.5;
const ADAPTIVE_LONG_CUSHION: f64 = -0.2;

/// That rule's cushion, in mean errors of its forecast, below zero on the longest loops.
fn adaptive_cushion(tau_s: f64) -> f64 {
    let loops = tau_s / ADAPTIVE_CUSHION_TAU_S;
    if loops <= ADAPTIVE_MOST_CUSHION {
        loops.max(ADAPTIVE_LEAST_CUSHION)
    } else {
        let fallen = ADAPTIVE_MOST_CUSHION - ADAPTIVE_CUSHION_FALL * (loops - ADAPTIVE_MOST_CUSHION);
        fallen.max(ADAPTIVE_LONG_CUSHION)
    }
}

/// The router's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Share of the capacity to aim at.
    pub eta: f64,
    /// Time in which a queue above the target is drained, s.
    pub delta_s: f64,
    /// Queueing delay below which nothing is drained, s.
    pub target_s: f64,
    /// Window over which rates are measured, s.
    pub window_s: f64,
    /// The most tokens that the bucket holds.
    pub tokens: f64,
}

impl Law {
    /// The constants of `abc` as it comes (abc20 7.2, abc17 5).
    pub const PAPER: Law = Law { eta: 0.98, delta_s: 0.133, target_s: 0.05, window_s: 0.02, tokens: 5.0 };
}

/// The flows that pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Propagation delay of the round trip, s.
    pub tau_s: f64,
    /// Flows that are there all the time.
    pub flows: f64,
    /// Bits of a packet.
    pub packet_bits: f64,
}

/// The links that may come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// The least capacity, outages aside, bit/s.
    pub low_bps: f64,
    /// The greatest, bit/s.
    pub high_bps: f64,
    /// The largest factor between two moments that are one round trip apart or less.
    pub change: f64,
    /// How long the link stands still in all while a packet waits, s.
    pub outage_s: f64,
}

/// What there may be to serve at the last order.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// The most at any moment, bits.
    most_bits: f64,
    /// The most, as time at the capacity that the link then had, s.
    per_capacity_s: f64,
    /// What comes on top of that, bits.
    growth_bits: f64,
    /// What comes on top of either, bits.
    slack_bits: f64,
    /// By which factor the capacity may have fallen since.
    falls: f64,
}

/// ABC's router, flows and a class of links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The router's constants.
    pub law: Law,
    /// The flows.
    pub path: Path,
    /// The links.
    pub class: Class,
}

impl Bound {
    /// Returns the longest wait of the fluid model, s; none where what additive increase adds alone can fill
    /// the slowest link.
    pub fn fluid_s(&self) -> Option<f64> {
        let Law { eta, delta_s, .. } = self.law;
        let Path { tau_s, .. } = self.path;
        let rests_s = self.silent_s();
        let growth_s = (tau_s / delta_s - 1.0).max(0.0) * rests_s
            + (eta * self.class.change - 1.0).max(0.0) * tau_s * tau_s / delta_s;
        let last = Last {
            most_bits: eta * tau_s * self.class.high_bps + self.rest_bits(),
            per_capacity_s: rests_s + growth_s.min(eta * tau_s),
            growth_bits: self.added_bps() * tau_s * tau_s / (2.0 * delta_s),
            slack_bits: 0.0,
            falls: 1.0,
        };
        self.served_s(&last)
    }

    /// Returns the same with packets, their bursts and the windows of measurement: the queueing delay of any
    /// packet, its own transmission included.
    pub fn packets_s(&self) -> Option<f64> {
        let Law { eta, window_s, tokens, .. } = self.law;
        let Path { tau_s, flows, packet_bits } = self.path;
        let windows = (tau_s / window_s).ceil();
        let bursts_s = (1.0 + core::f64::consts::LN_2) * windows * window_s;
        let idle_bits = (bursts_s + window_s * core::f64::consts::LN_2) * self.class.high_bps;
        let change = self.class.change.min(self.span());
        let most_bits = idle_bits.max(eta * tau_s * self.class.high_bps + self.rest_bits() * change);
        // What additive increase adds while a window shrinks to its floor is a harmonic sum.
        let shrinking = libm::log(1.0 + most_bits / (2.0 * flows.max(1.0) * packet_bits));
        let slack = 2.0 * tokens + flows * (5.0 + shrinking) + 1.0 + 2.0 * windows;
        let last = Last {
            most_bits,
            per_capacity_s: self.silent_s() + bursts_s,
            growth_bits: 0.0,
            slack_bits: packet_bits * slack,
            falls: change,
        };
        self.served_s(&last)
    }

    /// Returns the longest wait of the fluid model behind the rule that tunes itself, s, with tau known and
    /// whatever its forecast is; none where additive increase alone can fill what its least share of
    /// accelerates leaves of the slowest link. The router's constants are its own, not those of `law`.
    ///
    /// The proof is in docs/abc-bound.md, "The rule that tunes itself".
    pub fn adaptive_s(&self) -> Option<f64> {
        let Class { low_bps, high_bps, outage_s, .. } = self.class;
        let tau_s = self.path.tau_s;
        let added_bps = self.added_bps();
        if added_bps >= low_bps * (1.0 - 2.0 * ADAPTIVE_LEAST_SHARE) {
            return None;
        }
        Some(self.outstanding_bits(added_bps, high_bps, tau_s) / low_bps + outage_s)
    }

    /// The most that waits and is on its way at any moment, bits.
    fn outstanding_bits(&self, added_bps: f64, high_bps: f64, tau_s: f64) -> f64 {
        let Class { low_bps, outage_s, .. } = self.class;
        let delta_s = ADAPTIVE_DELTA_OVER_TAU * tau_s;
        // The forecast errs by no more than the link changes.
        let least_bps = if outage_s > 0.0 { 0.0 } else { low_bps };
        let cushion = adaptive_cushion(tau_s).max(0.0);
        let aim_bits = tau_s * high_bps + cushion * tau_s * (high_bps - least_bps);
        let turns_bits = aim_bits + delta_s * (high_bps + added_bps);
        let overshoot = 1.0 + ADAPTIVE_SIGMA_OVER_TAU / ADAPTIVE_DELTA_OVER_TAU;
        let crept_bits = added_bps * (2.0 * ADAPTIVE_LEAST_SHARE * tau_s + outage_s);
        overshoot * turns_bits + crept_bits
    }

    /// Returns the least share of the capacity that the fluid model uses, over any time in which it does not
    /// begin with an empty path.
    pub fn least_use(&self) -> f64 {
        let Law { eta, delta_s, target_s, .. } = self.law;
        let (tau_s, change) = (self.path.tau_s, self.class.change.min(self.span()));
        let drained = target_s / tau_s;
        let ordered = eta - (change * tau_s - target_s).max(0.0) / delta_s;
        eta.min(drained.max(ordered)) / change
    }

    /// X0.
    fn silent_s(&self) -> f64 {
        self.law.target_s + self.law.eta * self.law.delta_s
    }

    /// The largest factor between two capacities of the class.
    fn span(&self) -> f64 {
        self.class.high_bps / self.class.low_bps
    }

    /// n, bit/s.
    fn added_bps(&self) -> f64 {
        self.path.flows * self.path.packet_bits / self.path.tau_s
    }

    /// q*, bits: up to where orders and what is added can exceed what leaves.
    fn rest_bits(&self) -> f64 {
        let Law { eta, delta_s, target_s, .. } = self.law;
        let added_bps = self.added_bps();
        let slow_bps = self.class.high_bps.min(added_bps / (1.0 - eta));
        slow_bps * (target_s - delta_s * (1.0 - eta)).max(0.0) + delta_s * added_bps
    }

    /// Steps 4 to 6: how long after the last order all is served, less tau.
    fn served_s(&self, last: &Last) -> Option<f64> {
        let Class { low_bps, high_bps, outage_s, .. } = self.class;
        if self.added_bps() >= low_bps {
            return None;
        }
        // Beyond this capacity there is no more to serve.
        let full_bps = (last.most_bits / last.per_capacity_s).clamp(low_bps, high_bps);
        let step = libm::pow(full_bps / low_bps, 1.0 / PIECES);
        let mut longest_s = self.time_s(full_bps / last.falls, last.most_bits + last.slack_bits);
        let mut had_bps = low_bps;
        while had_bps < full_bps && step > 1.0 {
            let bits = (last.per_capacity_s * had_bps * step + last.growth_bits).min(last.most_bits);
            longest_s = longest_s.max(self.time_s(had_bps / last.falls, bits + last.slack_bits));
            had_bps *= step;
        }
        Some((longest_s - self.path.tau_s).max(0.0) + outage_s)
    }

    /// Step 5: in which time `left_bits` and what is added meanwhile are served at the latest, after a round
    /// trip in which the link had `had_bps`, or its least, s.
    fn time_s(&self, had_bps: f64, mut left_bits: f64) -> f64 {
        let Class { low_bps, change, .. } = self.class;
        let mut had_bps = had_bps.max(low_bps);
        let (tau_s, added_bps) = (self.path.tau_s, self.added_bps());
        let mut passed_s = 0.0;
        while had_bps > low_bps {
            had_bps = (had_bps / change).max(low_bps);
            let served_bits = tau_s * (had_bps - added_bps);
            if served_bits >= left_bits {
                // Within a round trip the capacity may be lower by one more factor.
                let last_bps = (had_bps / change).max(low_bps) - added_bps;
                return passed_s + (left_bits / last_bps).min(tau_s);
            }
            left_bits -= served_bits;
            passed_s += tau_s;
        }
        passed_s + left_bits / (low_bps - added_bps)
    }
}

#[cfg(test)]
mod tests;
