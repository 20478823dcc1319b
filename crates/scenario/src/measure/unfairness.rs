//! The unfairness rate of a run's flows over one time scale (bmcc III-c).
//!
//! ```text
//! v(tau, s) = 1 / tau  integral over t of  max_i X_i(t, s) / min_j X_j(t, s)
//!                                                                    X_i: the rate of flow i over t to t + s
//! ```
//!
//! The integral is a mean over times t that are a tenth of s apart, so that memory does not depend on tau.

use std::collections::VecDeque;

use brakelight_core::time::{Duration, Time};

/// Times t per s.
const STEPS: usize = 10;

/// The mean so far.
#[derive(Clone, Debug)]
pub struct Unfairness {
    step: Duration,
    next: Time,
    /// The bytes that had arrived of every flow, at the last ends of steps.
    arrived: VecDeque<Vec<u64>>,
    sum: f64,
    count: u64,
    /// Whether a flow got nothing over some s.
    starved: bool,
}

impl Unfairness {
    /// Returns a measurement without samples, over times of `over`, from `from` on.
    pub fn new(over: Duration, from: Time) -> Self {
        let step = over / STEPS as u64;
        let arrived = VecDeque::with_capacity(STEPS + 1);
        Unfairness { step, next: from, arrived, sum: 0.0, count: 0, starved: false }
    }

    /// Returns when [`Unfairness::note`] is to be called next.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Takes the bytes that have arrived of every flow by now.
    pub fn note(&mut self, arrived: impl Iterator<Item = u64>) {
        self.next += self.step;
        let mut newest = match self.arrived.len() > STEPS {
            true => self.arrived.pop_front().expect("it holds some"),
            false => Vec::new(),
        };
        newest.clear();
        newest.extend(arrived);
        self.arrived.push_back(newest);
        if self.arrived.len() <= STEPS {
            return;
        }
        let (oldest, newest) = (&self.arrived[0], &self.arrived[STEPS]);
        let (mut least, mut most) = (u64::MAX, 0);
        for bytes in newest.iter().zip(oldest).map(|(newest, oldest)| newest - oldest) {
            (least, most) = (least.min(bytes), most.max(bytes));
        }
        match least {
            0 => self.starved = true,
            _ => {
                self.sum += most as f64 / least as f64;
                self.count += 1;
            }
        }
    }

    /// Returns v; none where a flow got nothing over some s, or nothing was measured.
    pub fn rate(&self) -> Option<f64> {
        (self.count > 0 && !self.starved).then(|| self.sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(arrived: impl Iterator<Item = [u64; 2]>) -> Option<f64> {
        let mut unfairness = Unfairness::new(Duration::from_secs(1), Time::from_secs(5));
        for (index, both) in arrived.enumerate() {
            assert_eq!(unfairness.next(), Time::from_secs(5) + Duration::from_millis(100) * index as u64);
            unfairness.note(both.into_iter());
        }
        unfairness.rate()
    }

    #[test]
    fn is_one_for_equal_rates_and_the_ratio_for_constant_ones() {
        assert_eq!(rate((0..50).map(|step| [7 * step; 2])), Some(1.0));
        assert_eq!(rate((0..50).map(|step| [30 * step, 10 * step])), Some(3.0));
    }

    /// Whoever gets twice the other's rate in turns of 5 s is fair over 10 s, and twice as fast as the other
    /// over 1 s, but for the turns themselves: 9 of 50 steps have part of either, with ratios (20 - k) /
    /// (10 + k), or its inverse.
    #[test]
    fn turns_count_within_the_time_they_last() {
        let mut sums = [0_u64; 2];
        let turns = (0..2_000).map(|step| {
            let now = sums;
            let first = usize::from(step / 50 % 2 == 0);
            sums[first] += 2;
            sums[1 - first] += 1;
            now
        });
        let whole = 41.0 * 2.0;
        let parts: f64 = (1..10).map(|k| f64::from(20 - k) / f64::from(10 + k)).map(|r| r.max(1.0 / r)).sum();
        let expected = (whole + parts) / 50.0;
        let measured = rate(turns).unwrap();
        assert!((measured / expected - 1.0).abs() < 0.01, "{measured} {expected}");
    }

    #[test]
    fn there_is_no_rate_where_a_flow_gets_nothing() {
        assert_eq!(rate((0..50).map(|step| [step, 3])), None);
        assert_eq!(rate((0..5).map(|step| [step, step])), None);
    }
}
