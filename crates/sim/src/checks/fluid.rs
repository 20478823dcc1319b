//! ABC's fluid model (abc20 appendix C, equation 13), and the one statement about VCP.
//!
//! ```text
//! x'(t) = A - max(x(t - tau) - d_t, 0) / delta,  x >= 0,   A = (eta - 1) + N / (mu l)
//! A < 0:  x* = 0,              eq* = (1 + A) mu
//! A > 0:  x* = A delta + d_t,  eq* = mu
//! ```

use brakelight_scenario::experiment::Finding;

use super::finding;

/// Steps of Euler's method per propagation delay.
const STEPS: usize = 500;
/// How long the model runs, in propagation delays, and over how many of the last ones its swing is measured.
const LENGTH: usize = 1_000;
const TAIL: usize = 50;

struct Fluid {
    a: f64,
    delta_s: f64,
    tau_s: f64,
    target_s: f64,
}

impl Fluid {
    /// Lowest and highest queueing delay, and the mean arrival rate over mu, at the end of a run from `start_s`.
    fn settle(&self, start_s: f64) -> (f64, f64, f64) {
        let dt_s = self.tau_s / STEPS as f64;
        let mut past = vec![start_s; STEPS];
        let mut x_s = start_s;
        let (mut low_s, mut high_s, mut arrivals) = (f64::INFINITY, 0.0_f64, 0.0);
        let tail = (LENGTH - TAIL) * STEPS;
        for step in 0..LENGTH * STEPS {
            let delayed_s = std::mem::replace(&mut past[step % STEPS], x_s);
            // abc20 eq.13
            let slope = self.a - (delayed_s - self.target_s).max(0.0) / self.delta_s;
            x_s = (x_s + slope * dt_s).max(0.0);
            if step >= tail {
                low_s = low_s.min(x_s);
                high_s = high_s.max(x_s);
                arrivals += 1.0 + slope;
            }
        }
        (low_s, high_s, arrivals / (TAIL * STEPS) as f64)
    }

    /// The fixed point of theorem 1: delay, and arrival rate over mu.
    fn fixed_point(&self) -> (f64, f64) {
        if self.a < 0.0 { (0.0, 1.0 + self.a) } else { (self.a * self.delta_s + self.target_s, 1.0) }
    }

    /// Whether a run from `start_s` ends at the fixed point, within a tenth of a millisecond.
    fn converges(&self, start_s: f64) -> bool {
        let (x_s, rate) = self.fixed_point();
        let (low_s, high_s, arrivals) = self.settle(start_s);
        (low_s - x_s).abs() < 1e-4 && (high_s - x_s).abs() < 1e-4 && (arrivals - rate).abs() < 1e-3
    }
}

/// ABC-U8: with delta above 2/3 tau the model converges to the fixed points of theorem 1, and with half of tau it
/// oscillates; in between the theorem promises nothing.
pub(super) fn stability() -> Finding {
    let (mut runs, mut converged) = (0, 0);
    for tau_s in [0.02, 0.1, 0.2] {
        for ratio in [0.68, 0.8, 1.0, 1.33, 3.0] {
            for (a, target_s) in [(-0.01, 0.0), (0.005, 0.05), (0.05, 0.0), (0.14, 0.05)] {
                let fluid = Fluid { a, delta_s: ratio * tau_s, tau_s, target_s };
                for start_s in [0.0, 0.3] {
                    runs += 1;
                    converged += u32::from(fluid.converges(start_s));
                }
            }
        }
    }
    let unstable = Fluid { a: 0.05, delta_s: 0.05, tau_s: 0.1, target_s: 0.0 };
    let (low_s, high_s, _) = unstable.settle(0.3);
    let swing_ms = 1e3 * (high_s - low_s);
    let measured = format!(
        "{converged} of {runs} runs with delta from 0.68 to 3 tau end at the fixed point; at 0.5 tau x swings by {swing_ms:.1} ms"
    );
    finding(converged == runs && swing_ms > 1.0, measured)
}

/// ABC-U12: VCP multiplies its window by 1 + 0.0625 per RTT at most.
pub(super) fn vcp_doubling() -> Finding {
    let rtts = (1..).find(|&rtts| libm::pow(1.0625, f64::from(rtts)) >= 2.0).expect("it grows");
    finding(rtts == 12, format!("{rtts} RTTs, at 1.0625 per RTT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the derivation: A = 0.05, tau = 100 ms, d_t = 0, x(0) = 300 ms.
    #[test]
    fn settles_above_the_linear_limit_and_swings_below_it() {
        let fluid = |ratio| Fluid { a: 0.05, delta_s: ratio * 0.1, tau_s: 0.1, target_s: 0.0 };
        for (ratio, expected_ms) in [(0.66, 3.3), (0.68, 3.4), (0.8, 4.0), (1.33, 6.65)] {
            let (low_s, high_s, rate) = fluid(ratio).settle(0.3);
            for x_s in [low_s, high_s] {
                assert!((x_s * 1e3 - expected_ms).abs() < 0.05, "{ratio} tau: {x_s} s");
            }
            assert!((rate - 1.0).abs() < 1e-3);
        }
        for ratio in [0.6, 0.5] {
            let (low_s, high_s, _) = fluid(ratio).settle(0.3);
            assert!(high_s - low_s > 1e-3, "{ratio} tau must oscillate, not settle at {low_s}");
        }
    }
}
