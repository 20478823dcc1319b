//! The weights of two queues: the allocation of `brakelight-routers`'s `abc/dual.rs`, whose head has the
//! formulas, over the bytes of each flow that the kernel counts.

use std::collections::HashMap;

use brakelight_routers::abc::dual::max_min_share;

/// K, X, tau.
const TOP: usize = 10;
const HEADROOM: f64 = 0.1;
const AVERAGING_S: f64 = 0.5;

/// Rates of the flows of both queues.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    flows: HashMap<u32, Flow>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    bytes: u64,
    rate: f64,
    abc: bool,
}

impl Weights {
    /// Returns ABC's share of `capacity` bytes per second, `passed_s` after the last one, from all flows'
    /// bytes so far: key, bytes, whether it is ABC's. `None` if no flow sends.
    pub fn update(&mut self, passed_s: f64, seen: &[(u32, u64, bool)], capacity: f64) -> Option<f64> {
        let keep = (-passed_s / AVERAGING_S).exp();
        let mut flows = HashMap::with_capacity(seen.len());
        for (key, bytes, abc) in seen {
            let before = self.flows.get(key).copied().unwrap_or_default();
            let now = bytes.saturating_sub(before.bytes) as f64 / passed_s;
            let rate = before.rate * keep + now * (1.0 - keep);
            flows.insert(*key, Flow { bytes: *bytes, rate, abc: *abc });
        }
        self.flows = flows;
        share(self.flows.values().map(|flow| (flow.rate, flow.abc)), capacity)
    }
}

/// ABC's share from the rates of flows.
fn share(rates: impl Iterator<Item = (f64, bool)>, capacity: f64) -> Option<f64> {
    let mut classes: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    rates.for_each(|(rate, abc)| classes[usize::from(!abc)].push(rate));
    let mut short = [0.0; 2];
    for (rates, short) in classes.iter_mut().zip(&mut short) {
        rates.sort_by(|a, b| b.total_cmp(a));
        let heavy = rates.len().min(TOP);
        *short = rates.drain(heavy..).sum();
        rates.iter_mut().for_each(|rate| *rate *= 1.0 + HEADROOM);
    }
    let [abc, other] = &classes;
    max_min_share([abc, other], short, capacity, &mut Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(abc: &[f64], other: &[f64]) -> f64 {
        let rates = abc.iter().map(|rate| (*rate, true)).chain(other.iter().map(|rate| (*rate, false)));
        share(rates, 100.0).unwrap()
    }

    #[test]
    fn queues_of_as_many_long_flows_get_as_much_each() {
        assert!((of(&[25.0, 25.0], &[25.0, 25.0]) - 0.5).abs() < 1e-9);
        // Shares are by flows, not by queues, whatever each has now.
        assert!((of(&[32.0], &[34.0, 34.0]) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_flow_that_wants_little_leaves_the_rest_to_others() {
        // 10 wants 11, the other two share 89.
        assert!((of(&[10.0, 45.0], &[45.0]) - (11.0 + 44.5) / 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_nobody_demands_goes_to_both_in_halves() {
        assert!((of(&[20.0], &[40.0]) - (22.0 + 17.0) / 100.0).abs() < 1e-9);
        // The other queue gets no more of it than it demands.
        assert!((of(&[10.0], &[20.0]) - (11.0 + 45.0) / 100.0).abs() < 1e-9);
        assert!(of(&[10.0], &[1e-6]) > 0.999);
        assert!((of(&[10.0], &[]) - 1.0).abs() < 1e-9);
        assert_eq!(share(std::iter::empty(), 100.0), None);
    }

    #[test]
    fn averages_forget_a_flow_that_fell_silent() {
        let mut weights = Weights::default();
        let mut bytes = 0;
        for _ in 0..100 {
            bytes += 10;
            weights.update(0.1, &[(1, bytes, true), (2, bytes, false)], 100.0);
        }
        let mut share = 0.5;
        for _ in 0..100 {
            bytes += 10;
            share = weights.update(0.1, &[(1, 1000, true), (2, bytes, false)], 100.0).unwrap();
        }
        assert!(share < 0.01, "{share}");
    }
}
