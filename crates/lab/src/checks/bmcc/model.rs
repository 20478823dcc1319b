//! BMCC's analysis (bmcc IV). Times are in slots of t_p, data in packets.
//!
//! ```text
//! P(f)     = 1 - (1 - c (f - 1) / (u - 1))^d                    share of flows that hear of overload f
//!                                                                                                 bmcc eq.10
//! f        = 1 + phi U[0, N]                                    load in a slot of back-off   bmcc eq.8
//! E(f)     = beta_max - M (f - 1),  M = (beta_max - beta_min) / (2 (u - 1))     mean cut of those that hear
//!                                                                                                 bmcc eq.17
//! d        = log(1/N sum m^y_n) / log m,  m = 1 - c N phi / (u - 1)      packets per slot and flow where
//!            rates differ; at most their mean C / N                                           bmcc eq.11
//! mu       = mean over f of P(f) E(f) + 1 - P(f)                                              bmcc eq.18
//! Y(i + 1) = A(i) Y(i),  A = diag(beta) + e (e' - beta') / N                                  bmcc eq.12, 13
//!
//! w(t)     = 3^(t/T)                                            t <= t_1 = T log_3(eta_0 C T)  bmcc eq.21
//!          = C T (1 - (1 - eta_0) exp(-kappa_2 (t - t_1) / T))  later                         bmcc eq.22
//! ```
//!
//! Two things are misprinted (open-questions#X-34, X-35). Theorem 1 is
//! `E[Y(i)] - (C/N + 1/2) e = mu^i (E[Y(0)] - (C/N + 1/2) e)`: the text has the exponent i - 1 and lacks the
//! 1/2 on the left. The data delivered is `(3^(t/T) - 1) / log 3` in the first phase, and after it
//! `d(t_1) + C ((t - t_1) - (1 - eta_0) (T / kappa_2) (1 - exp(-kappa_2 (t - t_1) / T)))`.

use brakelight_core::random::Random;

/// The model of flows that share a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    /// C_l: packets per slot.
    pub(super) capacity: f64,
    /// N.
    pub(super) flows: usize,
    /// d: packets per slot and flow.
    pub(super) packets: f64,
    pub(super) phi: f64,
    pub(super) u: f64,
}

const BETA_MAX: f64 = 0.875;
const BETA_MIN: f64 = 0.65;
/// c: the share of hash values above 1.
const ABOVE_ONE: f64 = 0.5;

impl Sharing {
    /// Flows with a fair share each.
    pub(super) fn new(capacity: f64, flows: usize, queue_weight: f64, u: f64) -> Self {
        Sharing { capacity, flows, packets: capacity / flows as f64, phi: (1.0 + queue_weight) / capacity, u }
    }

    /// Flows of these rates, packets per slot: d is that of eq. 11, conservative for all of them.
    pub(super) fn unequal(rates: &[f64], queue_weight: f64, u: f64) -> Self {
        let mut model = Sharing::new(rates.iter().sum(), rates.len(), queue_weight, u);
        // bmcc eq.11, at the largest f
        let misses = 1.0 - ABOVE_ONE * model.excess() / (u - 1.0);
        model.packets = libm::log(mean_power(misses, rates)) / libm::log(misses);
        model
    }

    fn slope(&self) -> f64 {
        (BETA_MAX - BETA_MIN) / (2.0 * (self.u - 1.0))
    }

    /// The most that a load exceeds 1 by.
    pub(super) fn excess(&self) -> f64 {
        self.phi * self.flows as f64
    }

    // bmcc eq.10
    pub(super) fn detects(&self, f: f64) -> f64 {
        1.0 - libm::pow(1.0 - ABOVE_ONE * (f - 1.0) / (self.u - 1.0), self.packets)
    }

    // bmcc eq.17
    pub(super) fn mean_cut(&self, f: f64) -> f64 {
        BETA_MAX - self.slope() * (f - 1.0)
    }

    /// The closed form of eq. 18.
    pub(super) fn mu(&self) -> f64 {
        let zeta = ABOVE_ONE / (self.u - 1.0);
        let excess = self.excess();
        let z = |x: f64| (1.0 - libm::pow(1.0 - zeta * excess, x)) / (zeta * x * excess);
        let (first, second) = (z(self.packets + 1.0), z(self.packets + 2.0));
        let m = self.slope();
        BETA_MAX * (1.0 - first)
            + (1.0 + m * excess) * first
            + m * ((second - 1.0) / (zeta * (self.packets + 1.0)) - excess / 2.0)
    }

    /// The integral of eq. 18, by the midpoint rule.
    pub(super) fn mu_by_integral(&self) -> f64 {
        let steps = 200_000;
        let at = |step: i32| {
            let f = 1.0 + self.excess() * (f64::from(step) + 0.5) / f64::from(steps);
            let heard = self.detects(f);
            heard * self.mean_cut(f) + 1.0 - heard
        };
        (0..steps).map(at).sum::<f64>() / f64::from(steps)
    }

    /// Slots from one back-off to the next: what a back-off takes, over what a slot adds.
    pub(super) fn epoch_slots(&self) -> f64 {
        (1.0 - self.mu()) * self.capacity / self.flows as f64
    }

    /// How far the first of the flows lies from the mean after `backoffs` back-offs by eq. 12, averaged over
    /// `runs`, relative to the start.
    pub(super) fn imbalance(&self, backoffs: usize, runs: usize, random: &mut Random) -> f64 {
        let mut sum = 0.0;
        for _ in 0..runs {
            // The first flow has all.
            let mut y = vec![0.0; self.flows];
            y[0] = 1.0;
            for _ in 0..backoffs {
                let f = 1.0 + self.excess() * random.uniform();
                let heard = self.detects(f);
                let mut freed = 0.0;
                for rate in &mut y {
                    if random.chance(heard) {
                        // bmcc eq.17: what they hear is uniform up to f.
                        let over = (f - 1.0) * random.uniform();
                        let cut = 1.0 - (BETA_MAX - 2.0 * self.slope() * over);
                        freed += *rate * cut;
                        *rate -= *rate * cut;
                    }
                }
                let share = freed / self.flows as f64;
                y.iter_mut().for_each(|rate| *rate += share);
            }
            let fair = 1.0 / self.flows as f64;
            sum += (y[0] - fair) / (1.0 - fair);
        }
        sum / runs as f64
    }
}

/// The mean of `base` to the power of each of `exponents`.
pub(super) fn mean_power(base: f64, exponents: &[f64]) -> f64 {
    exponents.iter().map(|y| libm::pow(base, *y)).sum::<f64>() / exponents.len() as f64
}

/// The model of one new flow on an idle link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// C: packets per second.
    pub(super) capacity: f64,
    /// T, seconds.
    pub(super) rtt_s: f64,
}

impl Growth {
    const ETA_0: f64 = 0.15;
    const KAPPA: f64 = 0.35;

    /// C T.
    pub(super) fn product(&self) -> f64 {
        self.capacity * self.rtt_s
    }

    /// t_1: when the load leaves eta_0.
    pub(super) fn t_1(&self) -> f64 {
        self.rtt_s * libm::log(Self::ETA_0 * self.product()) / libm::log(3.0)
    }

    // bmcc eq.21, 22
    pub(super) fn window(&self, t_s: f64) -> f64 {
        if t_s <= self.t_1() {
            return libm::pow(3.0, t_s / self.rtt_s);
        }
        let decayed = libm::exp(-Self::KAPPA * (t_s - self.t_1()) / self.rtt_s);
        self.product() * (1.0 - (1.0 - Self::ETA_0) * decayed)
    }

    /// Data delivered by `t_s`, as corrected.
    pub(super) fn delivered(&self, t_s: f64) -> f64 {
        let first = |t: f64| (libm::pow(3.0, t / self.rtt_s) - 1.0) / libm::log(3.0);
        let since = t_s - self.t_1();
        if since <= 0.0 {
            return first(t_s);
        }
        let decayed = libm::exp(-Self::KAPPA * since / self.rtt_s);
        let missed = (1.0 - Self::ETA_0) * (self.rtt_s / Self::KAPPA) * (1.0 - decayed);
        first(self.t_1()) + self.capacity * (since - missed)
    }

    /// Data delivered by `t_s`, as printed.
    pub(super) fn delivered_as_printed(&self, t_s: f64) -> f64 {
        let first = |t: f64| libm::pow(3.0, t / self.rtt_s) / libm::log(3.0);
        let since = t_s - self.t_1();
        if since <= 0.0 {
            return first(t_s);
        }
        let decayed = libm::exp(-Self::KAPPA * since / self.rtt_s);
        first(self.t_1()) + self.capacity * t_s - (1.0 - Self::ETA_0) * decayed / Self::KAPPA
    }

    /// Data delivered by `t_s`: the integral of w / T.
    pub(super) fn delivered_by_integral(&self, t_s: f64) -> f64 {
        let steps = 200_000;
        let width_s = t_s / f64::from(steps);
        (0..steps).map(|step| self.window((f64::from(step) + 0.5) * width_s) * width_s / self.rtt_s).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    /// The numbers of the derivation: figure 5's setting.
    #[test]
    fn a_new_flow_fills_2_gbps_as_the_equations_say() {
        let model = Growth { capacity: 250_000.0, rtt_s: 0.2 };
        near(model.t_1(), 1.624, 5e-4);
        for (t_s, packets) in [(1.0, 243.0), (2.0, 27_976.0), (3.0, 46_173.0)] {
            near(model.window(t_s), packets, 1.0);
        }
        for (share, t_s) in [(0.5, 1.93), (0.9, 2.85), (0.99, 4.16), (0.999, 5.48)] {
            near(model.window(t_s) / model.product(), share, 0.01);
        }
        near(model.delivered(1.0) / model.delivered_by_integral(1.0), 1.0, 1e-6);
    }

    /// Figures 3 and 4: by the closed form.
    #[test]
    fn mu_is_what_was_derived() {
        near(Sharing::new(500.0, 2, 0.0, 1.2).mu(), 0.9199, 5e-5);
        near(Sharing::new(500.0, 2, 0.5, 1.2).mu(), 0.9060, 5e-5);
        near(Sharing::new(500.0, 2, 0.0, 1.2).epoch_slots(), 20.0, 0.05);
        near(Sharing::new(500.0, 2, 0.5, 1.2).epoch_slots(), 23.5, 0.05);
        for (u, mu, heard) in [
            (1.15, 0.870, 0.997),
            (1.2, 0.886, 0.985),
            (1.3, 0.907, 0.932),
            (1.4, 0.922, 0.862),
            (1.5, 0.933, 0.791),
        ] {
            let model = Sharing::new(10_000.0, 550, 0.5, u);
            near(model.mu(), mu, 6e-4);
            near(model.detects(1.0 + model.excess()), heard, 6e-4);
        }
    }
}
