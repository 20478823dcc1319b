//! ABC's fluid model (abc20 section 3.1.4 and appendix C): N flows of one round-trip delay tau at an ABC
//! router of capacity mu.
//!
//! ```text
//! x'(t) = A - max(x(t - tau) - d_t, 0) / delta,   x >= 0,   A = (eta - 1) + N / (mu l)       abc20 eq.13
//! A < 0:  x* = 0,              eq* = (1 + A) mu                                              abc20 theorem 1
//! A > 0:  x* = A delta + d_t,  eq* = mu
//! stable if delta > 2/3 tau                                                                  abc20 theorem 1
//! ```
//!
//! x is the queueing delay, eq the rate that enters, l the time in which a flow adds one packet.
//!
//! | symbol | field | unit | range |
//! |---|---|---|---|
//! | eta | `eta` | 1 | (0, 1] |
//! | delta | `delta_s` | s | > 0 |
//! | d_t | `target_s` | s | >= 0 |
//! | tau | `tau_s` | s | > 0 |
//! | mu | `mu_pps` | packets/s | > 0 |
//! | N | `flows` | 1 | >= 0 |
//! | l | `increase` | s | > 0 |
//!
//! # Where this differs from the paper
//!
//! - D1. The theorem's 2/3 is sufficient, not sharp: linearized, the equation is
//!   `u'(t) = -u(t - tau) / delta`, which is stable exactly for delta > 2 tau / pi = 0.637 tau
//!   ([`LINEAR_LIMIT`]). Between the two the model converges and the theorem is silent.
//! - D2. The appendix proves A < 0 and A > 0. With A = 0 every x in [0, d_t] rests (open-questions#X-30).
//! - D3. A sender adds one packet per round trip, and a round trip includes the queue: `l = tau + x`. So A
//!   depends on x, and the fixed point solves both at once ([`Increase::PerRoundTrip`]). The paper keeps l
//!   constant.
//! - D4. Like the paper's, the model knows neither `min(f, 1)` nor tokens nor the window over which rates are
//!   measured.

/// Below this ratio of delta to tau the linearized model is unstable; D1.
pub const LINEAR_LIMIT: f64 = core::f64::consts::FRAC_2_PI;

/// Above this ratio of delta to tau theorem 1 promises stability.
pub const THEOREM_LIMIT: f64 = 2.0 / 3.0;

/// Steps of the solver per propagation delay.
const STEPS: usize = 500;

/// How often a flow adds a packet beyond what accelerates give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Increase {
    /// Every so many seconds: l.
    Every(f64),
    /// Every round trip, queue included.
    PerRoundTrip,
}

/// The model's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fluid {
    /// Share of the capacity to aim at.
    pub eta: f64,
    /// Time in which a queue above the target is drained, s.
    pub delta_s: f64,
    /// Queueing delay below which nothing is drained, s.
    pub target_s: f64,
    /// Round-trip propagation delay, s.
    pub tau_s: f64,
    /// Capacity, packets/s.
    pub mu_pps: f64,
    /// Flows.
    pub flows: f64,
    /// Additive increase.
    pub increase: Increase,
}

/// The fixed point of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPoint {
    /// Queueing delay, s.
    pub x_s: f64,
    /// Arrival rate over capacity.
    pub rate: f64,
}

/// The oscillation that remains at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swing {
    /// Lowest queueing delay, s.
    pub low_s: f64,
    /// Highest queueing delay, s.
    pub high_s: f64,
    /// Mean arrival rate over capacity.
    pub rate: f64,
}

impl Swing {
    /// Returns the width of the swing from lowest to highest, in seconds.
    pub fn width_s(&self) -> f64 {
        self.high_s - self.low_s
    }
}

/// A model of a router and its flows as a fluid.
pub trait Model {
    /// Returns the fixed point.
    fn fixed_point(&self) -> FixedPoint;

    /// Calls `visit(t_s, x_s, rate)` after every step of `duration_s`. x is the queueing delay, which has
    /// been `start_s` for all t <= 0, and rate the arrival rate over capacity.
    fn solve(&self, start_s: f64, duration_s: f64, visit: &mut dyn FnMut(f64, f64, f64));

    /// Returns the longest delay in the loop, s.
    fn slowest_s(&self) -> f64;

    /// Returns the oscillation in the last tenth of a run.
    fn settle(&self, start_s: f64, duration_s: f64) -> Swing {
        let mut swing = Swing { low_s: f64::INFINITY, high_s: 0.0, rate: 0.0 };
        let mut samples = 0_u32;
        self.solve(start_s, duration_s, &mut |t_s, x_s, rate| {
            if t_s >= 0.9 * duration_s {
                swing.low_s = swing.low_s.min(x_s);
                swing.high_s = swing.high_s.max(x_s);
                swing.rate += rate;
                samples += 1;
            }
        });
        swing.rate /= f64::from(samples.max(1));
        swing
    }
}

impl Fluid {
    /// Returns a of equation 13 at queueing delay `x_s`: what the queue gains per second when nothing is
    /// drained.
    pub fn drift(&self, x_s: f64) -> f64 {
        let l_s = match self.increase {
            Increase::Every(l_s) => l_s,
            Increase::PerRoundTrip => self.tau_s + x_s,
        };
        (self.eta - 1.0) + self.flows / (self.mu_pps * l_s)
    }
}

impl Model for Fluid {
    fn fixed_point(&self) -> FixedPoint {
        let empty = self.drift(0.0);
        if empty <= 0.0 {
            return FixedPoint { x_s: 0.0, rate: 1.0 + empty };
        }
        let at_target = self.drift(self.target_s);
        let x_s = match self.increase {
            // abc20 theorem 1
            Increase::Every(_) => at_target * self.delta_s + self.target_s,
            // Below the target nothing is drained, so the queue rests where A itself is 0.
            Increase::PerRoundTrip if at_target <= 0.0 => {
                self.flows / (self.mu_pps * (1.0 - self.eta)) - self.tau_s
            }
            // x = delta (eta - 1 + N / (mu (tau + x))) + d_t, solved for tau + x = r:
            // r^2 - (tau + d_t - delta (1 - eta)) r - delta N / mu = 0
            Increase::PerRoundTrip => {
                let half = 0.5 * (self.tau_s + self.target_s - self.delta_s * (1.0 - self.eta));
                let product = self.delta_s * self.flows / self.mu_pps;
                half + libm::sqrt(half * half + product) - self.tau_s
            }
        };
        FixedPoint { x_s, rate: 1.0 }
    }

    /// The right-hand side knows only the past, so that with a step that divides tau it is known at both ends
    /// of each step and the trapezium rule applies.
    fn solve(&self, start_s: f64, duration_s: f64, visit: &mut dyn FnMut(f64, f64, f64)) {
        let dt_s = self.tau_s / STEPS as f64;
        let slope = |delayed_s: f64| {
            // abc20 eq.13; under D3 l follows the round trip that the ACK was part of
            self.drift(delayed_s) - (delayed_s - self.target_s).max(0.0) / self.delta_s
        };
        // x(t - tau) in a ring: the entry about to be overwritten.
        let mut past = [start_s; STEPS];
        let mut x_s = start_s;
        let mut before = slope(start_s);
        let steps = (duration_s / dt_s) as usize;
        for step in 0..steps {
            let place = step % STEPS;
            past[place] = x_s;
            let after = slope(past[(place + 1) % STEPS]);
            x_s = (x_s + 0.5 * (before + after) * dt_s).max(0.0);
            visit((step + 1) as f64 * dt_s, x_s, 1.0 + after);
            before = after;
        }
    }

    fn slowest_s(&self) -> f64 {
        self.tau_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's constants at `mu_pps`, with one packet every 100 ms and flow.
    fn paper(mu_pps: f64, flows: f64) -> Fluid {
        Fluid {
            eta: 0.98,
            delta_s: 0.133,
            target_s: 0.05,
            tau_s: 0.1,
            mu_pps,
            flows,
            increase: Increase::Every(0.1),
        }
    }

    #[test]
    fn fixed_points_are_those_of_the_theorem() {
        // A = -0.02 + 1 / (1000 * 0.1) = -0.01
        let one = paper(1000.0, 1.0);
        assert!((one.drift(0.0) + 0.01).abs() < 1e-12);
        let rest = one.fixed_point();
        assert_eq!(rest.x_s, 0.0);
        assert!((rest.rate - 0.99).abs() < 1e-12);
        // A = -0.02 + 16 / 100 = 0.14: x* = 50 + 0.14 * 133 ms
        let sixteen = paper(1000.0, 16.0).fixed_point();
        assert!((sixteen.x_s - 0.06862).abs() < 1e-9, "{sixteen:?}");
        // A = -0.02 + 5 / 200 = 0.005: x* = 50 + 0.665 ms
        let five = paper(2000.0, 5.0).fixed_point();
        assert!((five.x_s - 0.050665).abs() < 1e-9, "{five:?}");
    }

    #[test]
    fn a_packet_per_round_trip_rests_where_its_own_equation_says() {
        for flows in [1.0, 3.0, 5.0, 16.0, 32.0] {
            let fluid = Fluid { increase: Increase::PerRoundTrip, ..paper(1000.0, flows) };
            let FixedPoint { x_s, rate } = fluid.fixed_point();
            let drained = (x_s - fluid.target_s).max(0.0) / fluid.delta_s;
            assert!((fluid.drift(x_s) - drained + (1.0 - rate)).abs() < 1e-9, "{flows} flows: {x_s} s");
            let end = fluid.settle(0.0, 200.0);
            assert!(
                (end.low_s - x_s).abs() < 1e-4 && (end.high_s - x_s).abs() < 1e-4,
                "{flows} flows: {end:?}"
            );
        }
    }

    /// The numbers of the derivation: A = 0.05, tau = 100 ms, d_t = 0, x(0) = 300 ms.
    #[test]
    fn settles_above_the_linear_limit_and_swings_below_it() {
        let fluid = |ratio| Fluid {
            delta_s: ratio * 0.1,
            target_s: 0.0,
            increase: Increase::Every(1.0 / 70.0),
            ..paper(1000.0, 1.0)
        };
        assert!((fluid(1.0).drift(0.0) - 0.05).abs() < 1e-12);
        for (ratio, expected_ms) in [(0.645, 3.225), (0.66, 3.3), (0.68, 3.4), (0.8, 4.0), (1.33, 6.65)] {
            let end = fluid(ratio).settle(0.3, 200.0);
            for x_s in [end.low_s, end.high_s] {
                assert!((x_s * 1e3 - expected_ms).abs() < 0.05, "{ratio} tau: {x_s} s");
            }
            assert!((end.rate - 1.0).abs() < 1e-3);
        }
        for ratio in [0.63, 0.6, 0.5] {
            let end = fluid(ratio).settle(0.3, 200.0);
            assert!(end.width_s() > 1e-3, "{ratio} tau must oscillate, not settle at {}", end.low_s);
            assert!(end.high_s < 0.0075, "{ratio} tau: the oscillation is bounded, not {}", end.high_s);
        }
    }

    #[test]
    fn the_solver_is_exact_where_the_solution_is_known() {
        // Without a queue above the target x grows by A t: from 0 to 0.05 * 0.5 s.
        let fluid = Fluid { target_s: 1.0, increase: Increase::Every(1.0 / 70.0), ..paper(1000.0, 1.0) };
        let mut last = (0.0, 0.0);
        fluid.solve(0.0, 0.5, &mut |t_s, x_s, _| last = (t_s, x_s));
        assert!((last.0 - 0.5).abs() < 1e-3 && (last.1 - 0.05 * last.0).abs() < 1e-12, "{last:?}");
        // A standing queue of 0.3 s and d_t = 0: x falls by 0.3 / delta - A per second until tau has passed.
        let fluid = Fluid { target_s: 0.0, delta_s: 0.5, ..fluid };
        fluid.solve(0.3, 0.1, &mut |t_s, x_s, _| {
            let expected_s = 0.3 - (0.3 / 0.5 - 0.05) * t_s;
            assert!((x_s - expected_s).abs() < 1e-3 * 0.3, "{t_s}: {x_s} is not {expected_s}");
        });
    }
}
