//! Maximum over a sliding window in constant space: Kathleen Nichols' filter, as in Linux 6.12 win_minmax.c.
//!
//! It keeps the best, second best and third best sample of three successive parts of the window. When the
//! best one leaves the window, the second best takes its place. The answer is exact while samples fall or
//! rise steadily, and otherwise forgets no sample earlier than the window says.

/// The maximum of the samples of the last `window` ticks of any clock that never runs backwards: rounds,
/// nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WindowedMax {
    /// Best, second and third best: (when, value).
    samples: [(u64, u64); 3],
}

impl WindowedMax {
    /// Returns a filter that has seen one sample.
    pub const fn new(now: u64, value: u64) -> Self {
        WindowedMax { samples: [(now, value); 3] }
    }

    /// Returns the maximum.
    pub const fn get(&self) -> u64 {
        self.samples[0].1
    }

    /// Takes a sample at `now` and returns the maximum of the samples no older than `window`.
    pub fn update(&mut self, window: u64, now: u64, value: u64) -> u64 {
        let sample = (now, value);
        let [best, second, third] = &mut self.samples;
        if value >= best.1 || now - third.0 > window {
            *self = WindowedMax::new(now, value);
            return value;
        }
        if value >= second.1 {
            *second = sample;
            *third = sample;
        } else if value >= third.1 {
            *third = sample;
        }
        let age = now - best.0;
        if age > window {
            *best = *second;
            *second = *third;
            *third = sample;
            if now - best.0 > window {
                *best = *second;
                *second = *third;
            }
        } else if second.0 == best.0 && age > window / 4 {
            // A quarter of the window passed without a second best.
            *second = sample;
            *third = sample;
        } else if third.0 == second.0 && age > window / 2 {
            *third = sample;
        }
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forgets_a_peak_when_the_window_has_passed() {
        let mut filter = WindowedMax::new(0, 0);
        assert_eq!(filter.update(10, 0, 100), 100);
        for round in 1..=10 {
            assert_eq!(filter.update(10, round, 50), 100);
        }
        assert_eq!(filter.update(10, 11, 50), 50);
    }

    proptest! {
        /// Never above the true maximum of what was seen, never below the newest sample, and no sample
        /// outlives the window.
        #[test]
        fn stays_between_the_newest_sample_and_the_true_maximum(
            steps in prop::collection::vec((0_u64..4, 0_u64..1000), 1..200),
        ) {
            let mut filter = WindowedMax::new(0, 0);
            let mut seen = std::vec![(0, 0)];
            let mut now = 0;
            for (step, value) in steps {
                now += step;
                seen.push((now, value));
                let answer = filter.update(10, now, value);
                let truth = seen.iter().filter(|(at, _)| now - at <= 10).map(|(_, v)| *v).max().unwrap();
                prop_assert!(value <= answer && answer <= truth, "{value} <= {answer} <= {truth}");
            }
        }
    }
}
