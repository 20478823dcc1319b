//! The weights of two queues: what `brakelight-core`'s `queue/abc/dual.rs` does, from the bytes of each flow that the
//! kernel counts.
//!
//! ```text
//! r_i    = rate of each of a queue's K heaviest flows, averaged over tau            abc20 4.3
//! demand = (1 + X) r_i of a heavy flow; what short flows have is granted first      abc20 4.3, mechanisms X-19
//! weight of a queue = sum of the max-min fair allocations of its demands
//! ```
//! What nobody demands goes to both in halves (D3 there).

use std::collections::HashMap;

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
    /// ABC's share of `capacity` bytes per second, `passed_s` after the last one, from all flows' bytes so far: key, bytes,
    /// whether it is ABC's. None while there is nothing to share.
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
    let mut granted = [0.0; 2];
    let mut demands = Vec::new();
    for (class, rates) in classes.iter_mut().enumerate() {
        rates.sort_by(|a, b| b.total_cmp(a));
        let heavy = rates.len().min(TOP);
        granted[class] = rates[heavy..].iter().sum();
        demands.extend(
            rates[..heavy].iter().filter(|rate| **rate > 0.0).map(|rate| ((1.0 + HEADROOM) * rate, class)),
        );
    }
    if demands.is_empty() {
        return None;
    }
    let mut left = (capacity - granted.iter().sum::<f64>()).max(0.0);
    demands.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (index, (demand, class)) in demands.iter().enumerate() {
        let fair = left / (demands.len() - index) as f64;
        let given = demand.min(fair);
        granted[*class] += given;
        left -= given;
    }
    if granted[1] == 0.0 {
        // D6: nothing to share with.
        return (granted[0] > 0.0).then_some(1.0);
    }
    let total = granted.iter().sum::<f64>() + left;
    (total > 0.0).then(|| (granted[0] + left / 2.0) / total)
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
        assert!((of(&[10.0], &[20.0]) - (11.0 + 33.5) / 100.0).abs() < 1e-9);
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
