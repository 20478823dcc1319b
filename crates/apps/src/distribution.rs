//! A streamed distribution of delays: mean and maximum exact, quantiles within 0.8 %.

use brakelight_core::time::Duration;
use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, middle};

/// A summary of a distribution in five numbers.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile: `sorted[floor(0.95 N)]`.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Delays seen so far, in a histogram of microseconds whose size does not grow with their number. Its memory
/// is that of the buckets between the least and the largest: a kilobyte for delays within a factor of four.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Parts", into = "Parts")]
pub struct Distribution {
    micros: Histogram,
    count: u64,
    sum_nanos: u128,
    max: Duration,
}

impl Distribution {
    /// Counts one delay.
    #[inline]
    pub fn record(&mut self, delay: Duration) {
        self.count += 1;
        self.sum_nanos += u128::from(delay.as_nanos());
        if delay > self.max {
            self.max = delay;
        }
        let micros = (delay.as_nanos() + 500) / 1_000;
        self.micros.record(micros);
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.micros.clear();
        self.count = 0;
        self.sum_nanos = 0;
        self.max = Duration::ZERO;
    }

    /// Returns the same delays, each less `least`, which none is below: mean and maximum exact, quantiles as
    /// far off as theirs.
    pub fn above(&self, least: Duration) -> Distribution {
        let mut above = Distribution::default();
        let least_micros = least.as_nanos().saturating_add(500) / 1_000;
        for (micros, count) in self.micros.iter() {
            above.add(middle(&micros).saturating_sub(least_micros), count);
        }
        above.sum_nanos =
            self.sum_nanos.saturating_sub(u128::from(least.as_nanos()) * u128::from(self.count));
        above.max = self.max.saturating_sub(least);
        above
    }

    fn add(&mut self, micros: u64, count: u32) {
        self.count += u64::from(count);
        self.micros.record_many(micros.min(MOST_MICROS), count);
    }

    /// Returns what was counted after `earlier`, which is this distribution as it was at some time: the mean
    /// exact, quantiles as far off as its own. The largest is taken to be the largest of all.
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let mut later = self.clone();
        later.micros.subtract(&earlier.micros);
        later.count = self.count.saturating_sub(earlier.count);
        later.sum_nanos = self.sum_nanos.saturating_sub(earlier.sum_nanos);
        later
    }

    /// Returns the mean of the share `q` of the delays that are smallest, within 0.8 %; zero when nothing was
    /// counted.
    pub fn trimmed_mean_ms(&self, q: f64) -> f64 {
        let most = ((q.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let (mut sum, mut seen) = (0.0, 0);
        for (micros, count) in self.micros.iter() {
            let taken = u64::from(count).min(most - seen);
            sum += middle(&micros) as f64 * taken as f64;
            seen += taken;
        }
        if seen == 0 { 0.0 } else { (sum / seen as f64 * 1e-3).min(self.max_ms()) }
    }

    /// Returns how many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact sum, in nanoseconds.
    pub fn sum_nanos(&self) -> u128 {
        self.sum_nanos
    }

    /// Takes in everything that `other` counted.
    pub fn merge(&mut self, other: &Distribution) {
        self.micros.merge(&other.micros);
        self.count += other.count;
        self.sum_nanos += other.sum_nanos;
        self.max = self.max.max(other.max);
    }

    /// Returns the exact mean; zero when nothing was counted.
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_nanos as f64 / self.count as f64 * 1e-6 }
    }

    /// Returns the smallest value that a share `q` of the delays does not exceed, within 0.8 %; zero when
    /// nothing was counted.
    pub fn quantile_ms(&self, q: f64) -> f64 {
        let rank = ((q.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.micros.iter().find(|&(_, count)| {
            seen += u64::from(count);
            seen >= rank
        });
        // The middle of a bucket may lie beyond the largest value.
        bucket.map_or(0.0, |(micros, _)| (middle(&micros) as f64 * 1e-3).min(self.max_ms()))
    }

    /// Returns the exact maximum.
    pub fn max_ms(&self) -> f64 {
        self.max.as_millis_f64()
    }

    /// Returns the distribution as steps: a delay in milliseconds, within 0.8 %, and the share of the delays
    /// that are not larger. Shares are at least `apart` from each other, but for the last one, which is 1.
    pub fn steps(&self, apart: f64) -> Vec<[f64; 2]> {
        let (mut steps, mut seen, mut last) = (Vec::new(), 0, 0.0);
        for (micros, count) in self.micros.iter() {
            seen += u64::from(count);
            let share = seen as f64 / self.count as f64;
            if share - last >= apart || seen == self.count {
                steps.push([(middle(&micros) as f64 * 1e-3).min(self.max_ms()), share]);
                last = share;
            }
        }
        steps
    }

    /// Returns five numbers that describe the distribution, or `None` if nothing was counted.
    pub fn summary(&self) -> Option<Summary> {
        (self.count > 0).then(|| Summary {
            mean: self.mean_ms(),
            p50: self.quantile_ms(0.50),
            p95: self.quantile_ms(0.95),
            p99: self.quantile_ms(0.99),
            max: self.max_ms(),
        })
    }
}

/// Eleven years.
const MOST_MICROS: u64 = 1 << 48;

/// A distribution as data: its size is that of the buckets in use, some hundreds.
#[derive(Debug, Serialize, Deserialize)]
struct Parts {
    sum_nanos: u64,
    max_nanos: u64,
    /// Microseconds, and how many delays have as many.
    micros: Vec<(u64, u32)>,
}

impl From<Distribution> for Parts {
    fn from(from: Distribution) -> Self {
        Parts {
            sum_nanos: u64::try_from(from.sum_nanos).unwrap_or(u64::MAX),
            max_nanos: from.max.as_nanos(),
            micros: from.micros.iter().map(|(micros, count)| (micros.end - 1, count)).collect(),
        }
    }
}

impl From<Parts> for Distribution {
    fn from(from: Parts) -> Self {
        let mut distribution = Distribution::default();
        from.micros.iter().for_each(|&(micros, count)| distribution.add(micros, count));
        distribution.sum_nanos = u128::from(from.sum_nanos);
        distribution.max = Duration::from_nanos(from.max_nanos);
        distribution
    }
}

/// Calls `visit` with mean, median, p95 and p99 under the given names, unless nothing was counted.
pub(crate) fn visit_distribution(
    times: &Distribution,
    names: [&'static str; 4],
    visit: &mut dyn FnMut(&'static str, f64),
) {
    if times.count() == 0 {
        return;
    }
    visit(names[0], times.mean_ms());
    for (name, q) in names[1..].iter().zip([0.5, 0.95, 0.99]) {
        visit(name, times.quantile_ms(q));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_distribution_is_all_zero() {
        let empty = Distribution::default();
        assert_eq!((empty.mean_ms(), empty.quantile_ms(0.95), empty.max_ms()), (0.0, 0.0, 0.0));
    }

    fn of(nanos: &[u64]) -> Distribution {
        let mut distribution = Distribution::default();
        nanos.iter().for_each(|&value| distribution.record(Duration::from_nanos(value)));
        distribution
    }

    #[test]
    fn a_trimmed_mean_leaves_out_the_longest() {
        let micros: Vec<u64> = (1..=100).map(|value| value * 1000).collect();
        // 1 to 95 us: the mean is 48.
        assert!((of(&micros).trimmed_mean_ms(0.95) - 0.048).abs() < 1e-9);
        let long = [&micros[..95], &[1_000_000_000; 5]].concat();
        assert!((of(&long).trimmed_mean_ms(0.95) - 0.048).abs() < 1e-9, "however long those are");
        assert_eq!(Distribution::default().trimmed_mean_ms(0.95), 0.0);
    }

    proptest! {
        #[test]
        fn what_came_later_is_what_is_left(
            before in prop::collection::vec(0_u64..20_000_000_000, 0..100),
            after in prop::collection::vec(0_u64..20_000_000_000, 1..100), q in 0.0_f64..1.0,
        ) {
            let (earlier, later) = (of(&before), of(&after));
            let mut all = earlier.clone();
            all.merge(&later);
            let since = all.since(&earlier);
            prop_assert_eq!((since.count(), since.sum_nanos()), (later.count(), later.sum_nanos()));
            prop_assert_eq!(since.quantile_ms(q).min(later.max_ms()), later.quantile_ms(q));
        }

        #[test]
        fn a_distribution_survives_as_data(nanos in prop::collection::vec(0_u64..20_000_000_000, 0..200), q in 0.0_f64..1.0) {
            let before = of(&nanos);
            let text = serde_json::to_string(&before).unwrap();
            let after: Distribution = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(after.summary(), before.summary());
            prop_assert_eq!(after.quantile_ms(q), before.quantile_ms(q));
        }

        #[test]
        fn what_lies_above_the_smallest_has_its_mean_and_its_maximum(
            nanos in prop::collection::vec(1_000_000_u64..2_000_000_000, 1..200), q in 0.01_f64..0.999
        ) {
            let least = *nanos.iter().min().unwrap();
            let (whole, above) = (of(&nanos), of(&nanos).above(Duration::from_nanos(least)));
            let exact = of(&nanos.iter().map(|value| value - least).collect::<Vec<_>>());
            prop_assert_eq!((above.count(), above.sum_nanos(), above.max_ms()), (exact.count(), exact.sum_nanos(), exact.max_ms()));
            prop_assert!((above.quantile_ms(q) - exact.quantile_ms(q)).abs() <= 0.016 * whole.quantile_ms(q) + 0.002);
        }

        #[test]
        fn quantiles_lie_within_one_percent_of_the_sorted_list(
            mut nanos in prop::collection::vec(100_000_u64..20_000_000_000, 1..500), q in 0.01_f64..0.999
        ) {
            let mut distribution = Distribution::default();
            for &value in &nanos {
                distribution.record(Duration::from_nanos(value));
            }
            nanos.sort_unstable();
            let rank = ((q * nanos.len() as f64).ceil() as usize).clamp(1, nanos.len());
            let exact = nanos[rank - 1] as f64 * 1e-6;
            let estimate = distribution.quantile_ms(q);
            prop_assert!((estimate - exact).abs() <= 0.01 * exact + 0.001, "{} against {}", estimate, exact);
            let mean = nanos.iter().sum::<u64>() as f64 / nanos.len() as f64 * 1e-6;
            prop_assert!((distribution.mean_ms() - mean).abs() <= 1e-9 * mean);
        }
    }
}
