//! The fluid model of the rule that tunes itself (docs/abc-adaptive.md, "What is proven"): N flows of round
//! trip tau at a router of capacity mu that takes the loop's delay for T.
//!
//! ```text
//! x'(t) = p(t - tau) + N / (mu l) - 1,   x >= 0          what arrives is what was ordered one round trip ago
//! O(t)  = x(t) + integral of p over (t - T, t]           outstanding
//! m'(t) = (O - m) / sigma,   sigma = T / 4
//! p(t)  = min(max(eta - (m - T) / delta, 1/8), 2),   delta = 0.7 T
//! ```
//!
//! All are in units of the capacity: p and rates over mu, and x, O and m in seconds. f = p / 2 lies between
//! 1/16 and 1. The cushion is left out: it follows the errors of a forecast, and a constant mu has none.
//!
//! | symbol | field | unit | range |
//! |---|---|---|---|
//! | tau | `tau_s` | s | > 0 |
//! | T | `loop_delay_s` | s | > 0 |
//! | mu | `mu_pps` | packets/s | > 0 |
//! | N | `flows` | 1 | >= 0 |
//!
//! eta is 1. l is the round trip, queue included, as D3 of [`super::fluid`] has it.

use super::fluid::{FixedPoint, Model};

/// tau over T below which Rouché's theorem promises rest: 1 + delta / T.
pub const THEOREM_LIMIT: f64 = 1.7;

/// tau over T at which the first root of the linearised model reaches the imaginary axis:
/// `1 + delta s (1 + sigma s) = exp(-T s) - exp(-tau s)`. Below it, down to tau = 0, there is none. There
/// N / (mu l) is constant. It falls as the queue grows, which moves the limit to 2.69 with 32 flows on
/// 24 Mbit/s.
pub const LINEAR_LIMIT: f64 = 2.781;

const DELTA_OVER_T: f64 = 0.7;
const SIGMA_OVER_T: f64 = 0.25;

/// p at the least and the greatest share of accelerates.
const ORDERED: [f64; 2] = [1.0 / 8.0, 2.0];

/// Steps of the solver in the shorter of tau and T.
const STEPS: f64 = 100.0;

/// The model's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outstanding {
    /// Round-trip propagation delay of the flows, s.
    pub tau_s: f64,
    /// The loop's delay that the router reckons with, s.
    pub loop_delay_s: f64,
    /// Capacity, packets/s.
    pub mu_pps: f64,
    /// Flows.
    pub flows: f64,
}

impl Outstanding {
    fn delta_s(&self) -> f64 {
        DELTA_OVER_T * self.loop_delay_s
    }

    /// Returns N / (mu l): what flows send beyond their orders, over the capacity.
    fn increase(&self, x_s: f64) -> f64 {
        self.flows / (self.mu_pps * (self.tau_s + x_s))
    }

    /// Returns p where the mean of what is outstanding is `mean_s`.
    fn ordered(&self, mean_s: f64) -> f64 {
        (1.0 - (mean_s - self.loop_delay_s) / self.delta_s()).clamp(ORDERED[0], ORDERED[1])
    }
}

impl Model for Outstanding {
    /// Where `p = 1 - n` and `x + T p = T - delta (p - 1)`, that is `x = (T + delta) n` with
    /// `n = N / (mu (tau + x))`. Where n exceeds 7/8 the least share of accelerates fills the link alone:
    /// then x rests where `n = 7/8`.
    fn fixed_point(&self) -> FixedPoint {
        let half = 0.5 * self.tau_s;
        let product = (self.loop_delay_s + self.delta_s()) * self.flows / self.mu_pps;
        let x_s = libm::sqrt(half * half + product) - half;
        let floor_s = self.flows / (self.mu_pps * (1.0 - ORDERED[0])) - self.tau_s;
        FixedPoint { x_s: x_s.max(floor_s), rate: 1.0 }
    }

    fn solve(&self, start_s: f64, duration_s: f64, visit: &mut dyn FnMut(f64, f64, f64)) {
        let dt_s = self.tau_s.min(self.loop_delay_s) / STEPS;
        // At t <= 0 as much arrives as leaves.
        let ordered = (1.0 - self.increase(start_s)).max(0.0);
        let mut orders = Past::new(ordered, self.tau_s.max(self.loop_delay_s) / dt_s);
        let mut queues = Past::new(start_s, self.tau_s / dt_s);
        let (tau, loop_delay) = (self.tau_s / dt_s, self.loop_delay_s / dt_s);
        let arriving = |orders: &Past, queues: &Past| orders.before(tau) + self.increase(queues.before(tau));
        let mut x_s = start_s;
        let mut on_its_way_s = ordered * self.loop_delay_s;
        let mut mean_s = x_s + on_its_way_s;
        let mut rate = arriving(&orders, &queues);
        let mut drained = (ordered, ordered);
        for step in 0..(duration_s / dt_s) as usize {
            let order = self.ordered(mean_s);
            orders.push(order);
            queues.push(x_s);
            let (rate_before, (order_before, left_before)) = (rate, drained);
            rate = arriving(&orders, &queues);
            drained = (order, orders.before(loop_delay));
            x_s = (x_s + (0.5 * (rate_before + rate) - 1.0) * dt_s).max(0.0);
            on_its_way_s += 0.5 * (order_before + drained.0 - left_before - drained.1) * dt_s;
            mean_s += (x_s + on_its_way_s - mean_s) * dt_s / (SIGMA_OVER_T * self.loop_delay_s);
            visit((step + 1) as f64 * dt_s, x_s, rate);
        }
    }

    fn slowest_s(&self) -> f64 {
        self.tau_s.max(self.loop_delay_s)
    }
}

/// A quantity over time, as far back as a delay reaches.
struct Past {
    ring: Vec<f64>,
    /// The place of the newest value.
    newest: usize,
}

impl Past {
    /// It has always been `value`; `longest` is the longest delay, in steps.
    fn new(value: f64, longest: f64) -> Self {
        Past { ring: vec![value; longest as usize + 3], newest: 0 }
    }

    fn push(&mut self, value: f64) {
        self.newest = (self.newest + 1) % self.ring.len();
        self.ring[self.newest] = value;
    }

    /// Returns the value of `steps` ago, on the line between the two beside it.
    fn before(&self, steps: f64) -> f64 {
        let whole = steps as usize;
        let at = |back: usize| self.ring[(self.newest + self.ring.len() - back) % self.ring.len()];
        at(whole) + (steps - whole as f64) * (at(whole + 1) - at(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 24 Mbit/s, T = 100 ms.
    fn model(tau_over_t: f64, flows: f64) -> Outstanding {
        Outstanding { tau_s: 0.1 * tau_over_t, loop_delay_s: 0.1, mu_pps: 2000.0, flows }
    }

    /// The characteristic equation on the imaginary axis: the sine and cosine of w tau are given by w, so
    /// their squares must add up to 1. That has one root with w > 0; tau follows from its angle. T is 1.
    #[test]
    fn one_frequency_alone_reaches_the_axis_and_first_at_the_limit() {
        let [delta, sigma] = [DELTA_OVER_T, SIGMA_OVER_T];
        let sine = |w: f64| delta * w + libm::sin(w);
        let cosine = |w: f64| libm::cos(w) - 1.0 + delta * sigma * w * w;
        let excess = |w: f64| sine(w).powi(2) + cosine(w).powi(2) - 1.0;
        // Above w = 5 the sine alone exceeds 1.
        let grid = || (1..50_000).map(|step| f64::from(step) * 1e-4);
        let roots: Vec<f64> = grid().filter(|&w| excess(w) * excess(w + 1e-4) < 0.0).collect();
        let [w] = roots[..] else { panic!("{roots:?}") };
        let tau = libm::atan2(sine(w), cosine(w)) / w;
        assert!((tau - LINEAR_LIMIT).abs() < 2e-3, "{tau}");
    }

    #[test]
    fn settles_below_the_linear_limit_and_swings_above_it() {
        for ratio in [0.1, 0.3, 0.7, 1.0, 1.5, 1.7, 2.0, 2.5] {
            for flows in [1.0, 8.0, 32.0] {
                let model = model(ratio, flows);
                let FixedPoint { x_s, .. } = model.fixed_point();
                let end = model.settle(0.3, 100.0);
                for found_s in [end.low_s, end.high_s] {
                    assert!((found_s - x_s).abs() < 1e-4, "tau {ratio} T, {flows} flows: {end:?}, not {x_s}");
                }
                assert!((end.rate - 1.0).abs() < 1e-3, "{end:?}");
            }
        }
        for ratio in [2.9, 3.5, 5.0] {
            let end = model(ratio, 32.0).settle(0.3, 100.0);
            assert!(end.width_s() > 5e-3, "tau {ratio} T: {end:?}");
        }
    }

    /// T + delta = 170 ms, n = 32 / (2000 (0.1 + x)): x (0.1 + x) = 0.17 * 0.016, x = 22.25 ms.
    #[test]
    fn the_fixed_point_is_that_of_the_derivation() {
        let rest = model(1.0, 32.0).fixed_point();
        assert!((rest.x_s * (0.1 + rest.x_s) - 0.17 * 0.016).abs() < 1e-12, "{rest:?}");
        assert!((rest.x_s - 0.02225).abs() < 1e-5, "{rest:?}");
        // 600 flows add 3 mu in 100 ms: with the least share of accelerates they rest at 7/8 mu.
        let crowded = model(1.0, 600.0);
        assert!((crowded.increase(crowded.fixed_point().x_s) - 0.875).abs() < 1e-12);
        let end = crowded.settle(0.0, 100.0);
        assert!((end.low_s - crowded.fixed_point().x_s).abs() < 1e-3, "{end:?}");
    }
}
