//! Minimum over a sliding window in constant space: [`WindowedMax`] upside down. The answer is never below
//! the true minimum of the window, never above the newest sample, and exact while samples rise or fall
//! steadily.

use super::windowed_max::WindowedMax;

/// The minimum of the samples of the last `window` ticks of any clock that never runs backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedMin(WindowedMax);

impl WindowedMin {
    /// Returns a filter that has seen one sample.
    pub const fn new(now: u64, value: u64) -> Self {
        WindowedMin(WindowedMax::new(now, u64::MAX - value))
    }

    /// Returns the minimum.
    pub const fn get(&self) -> u64 {
        u64::MAX - self.0.get()
    }

    /// Takes a sample at `now` and returns the minimum of the samples no older than `window`.
    pub fn update(&mut self, window: u64, now: u64, value: u64) -> u64 {
        u64::MAX - self.0.update(window, now, u64::MAX - value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forgets_a_dip_when_the_window_has_passed() {
        let mut filter = WindowedMin::new(0, 10);
        for now in 1..=20 {
            assert_eq!(filter.update(20, now, 50 + now), 10);
        }
        assert!((51..=71).contains(&filter.update(20, 21, 71)));
    }

    proptest! {
        #[test]
        fn stays_between_the_true_minimum_and_the_newest_sample(
            steps in prop::collection::vec((0_u64..4, 0_u64..1000), 1..200),
        ) {
            let mut filter = WindowedMin::new(0, 1000);
            let mut seen = std::vec![(0, 1000)];
            let mut now = 0;
            for (step, value) in steps {
                now += step;
                seen.push((now, value));
                let answer = filter.update(10, now, value);
                let truth = seen.iter().filter(|(at, _)| now - at <= 10).map(|(_, v)| *v).min().unwrap();
                prop_assert!(truth <= answer && answer <= value, "{truth} <= {answer} <= {value}");
            }
        }
    }
}
