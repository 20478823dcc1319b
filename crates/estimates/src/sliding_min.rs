//! Minimum over a sliding window of time, exact. Adding and asking cost O(1) amortised; the window may change
//! from call to call, but a wider one does not bring back what a narrower one forgot.

use alloc::collections::VecDeque;

use brakelight_core::time::{Duration, Time};

/// The samples that may still be the minimum, oldest first: times and values both rise.
#[derive(Clone, Debug, Default)]
pub struct SlidingMin {
    candidates: VecDeque<(Time, u64)>,
}

impl SlidingMin {
    /// Takes a sample at `now`, which is no earlier than the last one's, and returns the least of those in
    /// (now - window, now]; the newest always counts.
    pub fn update(&mut self, window: Duration, now: Time, value: u64) -> u64 {
        while self.candidates.back().is_some_and(|(_, other)| *other >= value) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((now, value));
        while self.candidates.len() > 1 && now.since(self.candidates[0].0) >= window {
            self.candidates.pop_front();
        }
        self.candidates[0].1
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_the_minimum_of_the_window(steps in prop::collection::vec((0_u64..4, 0_u64..50), 1..200)) {
            let window = Duration::from_nanos(10);
            let (mut filter, mut seen, mut now) = (SlidingMin::default(), Vec::new(), 0);
            for (step, value) in steps {
                now += step;
                seen.push((now, value));
                let truth = seen.iter().filter(|(at, _)| now - at < 10).map(|(_, value)| *value).min();
                prop_assert_eq!(Some(filter.update(window, Time::from_nanos(now), value)), truth);
            }
        }
    }
}
