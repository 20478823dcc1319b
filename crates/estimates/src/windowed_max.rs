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
    use std::collections::HashSet;

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

    type Samples = [(u64, u64); 3];

    /// What the filter does depends on the order of values and on the ages of samples. So all ages up to one
    /// beyond the window, and all orders of four values, are all states.
    #[test]
    fn a_windowed_maximum_keeps_its_order_and_its_window() {
        let most = if std::env::var_os("BRAKELIGHT_PROOFS").is_some() { 40 } else { 12 };
        for window in 1..=most {
            let mut seen = HashSet::new();
            let mut open = std::vec![[(0_u64, 0_u64); 3]];
            // From every state that can be reached: ages of the three samples, and their values.
            while let Some(state) = open.pop() {
                for passed in 0..=window + 1 {
                    for value in 0..4 {
                        step_filter(window, state, passed, value, &mut seen, &mut open);
                    }
                }
            }
        }
        let verdict = if std::env::var_os("BRAKELIGHT_PROOFS").is_some() {
            "proved"
        } else {
            "holds in part of the domain"
        };
        let bounds = std::format!("windows to {most} ticks, any sequence of samples of four values");
        for property in [
            "no less than the newest sample",
            "no sample outlives the window",
            "a sample that was seen, or the newest",
            "the three samples stay in the order of their times and values",
        ] {
            std::eprintln!(
                "estimates/src/windowed_max.rs | WindowedMax::update | {property} | {bounds} | {verdict}"
            );
        }
    }

    /// One sample later, `passed` ticks after those of `state`, which are given by their ages.
    fn step_filter(
        window: u64,
        state: Samples,
        passed: u64,
        value: u64,
        seen: &mut HashSet<Samples>,
        open: &mut std::vec::Vec<Samples>,
    ) {
        let now = 1000;
        let at = |(age, value): (u64, u64)| (now - age, value);
        let mut filter = WindowedMax { samples: state.map(at) };
        let answer = filter.update(window, now + passed, value);
        let after = filter.samples.map(|(at, value)| (now + passed - at, value));
        assert_eq!(answer, after[0].1);
        assert!(answer >= value, "window {window}, {state:?}, {passed}, {value}");
        assert!(after[0].0 <= window, "window {window}, {state:?}, {passed}, {value}: {after:?}");
        let known = |(age, of): &(u64, u64)| {
            (*age, *of) == (0, value)
                || state.iter().any(|(before, old)| (before + passed, *old) == (*age, *of))
        };
        assert!(after.iter().all(known), "window {window}, {state:?}, {passed}, {value}: {after:?}");
        assert!(after.is_sorted_by(|one, other| one.0 >= other.0 && one.1 >= other.1), "{after:?}");
        if seen.insert(after) {
            open.push(after);
        }
    }
}
