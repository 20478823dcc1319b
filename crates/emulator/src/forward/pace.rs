//! Whether packets follow each other so steadily that a delivery may wait for the next ones.

use brakelight_core::time::{Duration, Time};

use super::carrier::Rest;

/// The distance between deliveries, as far as it is steady.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// How late a delivery may be so that several share a wake-up.
    most: Duration,
    last: Time,
    /// Mean distance of the last few.
    distance: Duration,
    /// How many in a row were no further apart than `most`.
    row: u32,
    /// How often in a row a delivery waited.
    waited: u32,
}

/// So many in a row are taken for steady.
const STEADY: u32 = 16;

/// After so many waits one delivery is made at once. Where two share a wake-up, four of seven are then
/// delivered when they are due, and the median delivery is not one that waited.
const WAITS: u32 = 3;

/// A few microseconds for the rounding of the mean.
const SLACK: Duration = Duration::from_micros(2);

impl Pace {
    pub(super) fn new(most: Duration) -> Self {
        Pace { most, last: Time::ZERO, distance: Duration::ZERO, row: 0, waited: 0 }
    }

    /// A delivery was due at `due`.
    #[inline]
    pub(super) fn delivered(&mut self, due: Time) {
        let distance = due.since(self.last);
        self.last = due;
        if distance > self.most {
            self.row = 0;
        } else if self.row == 0 {
            self.row = 1;
            self.distance = distance;
        } else {
            self.row += 1;
            self.distance = (self.distance * 7 + distance) / 8;
        }
    }

    /// When the thread is to wake up for the delivery that is due next, and when after that.
    pub(super) fn wakeups(&self, due: Time) -> Rest {
        let until = due + self.wait();
        if self.row < STEADY {
            return Rest { until: Some(until), then: None };
        }
        let packets = if self.waits() { 1 + self.others() } else { 1 };
        let mut next = self.clone();
        next.served();
        Rest { until: Some(until), then: Some(due + self.distance * packets + next.wait()) }
    }

    /// Whether the next delivery waits for others.
    fn waits(&self) -> bool {
        self.row >= STEADY && self.waited < WAITS
    }

    /// How many deliveries there are within the time that one may wait.
    fn others(&self) -> u64 {
        self.most.as_nanos() / (self.distance.max(Duration::from_micros(1)) + SLACK).as_nanos()
    }

    /// How long the delivery that is due next may wait so that the ones after it are due as well.
    fn wait(&self) -> Duration {
        if !self.waits() {
            return Duration::ZERO;
        }
        (self.distance.max(Duration::from_micros(1)) + SLACK) * self.others()
    }

    /// The thread delivered what was due, after a wait or not.
    pub(super) fn served(&mut self) {
        self.waited = if self.waited == WAITS { 0 } else { self.waited + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(distances_us: impl IntoIterator<Item = u64>) -> Pace {
        let mut pace = Pace::new(Duration::from_micros(125));
        let mut at = Time::from_secs(1);
        for distance in distances_us {
            at += Duration::from_micros(distance);
            pace.delivered(at);
        }
        pace
    }

    #[test]
    fn steady_packets_wait_for_as_many_as_the_limit_allows() {
        assert_eq!(pace([120; 40]).wait(), Duration::from_micros(122));
        assert_eq!(pace([60; 40]).wait(), Duration::from_micros(124));
        assert_eq!(pace([24; 40]).wait(), Duration::from_micros(104));
        assert_eq!(pace([0; 40]).wait(), Duration::from_micros(123));
    }

    #[test]
    fn nothing_waits_for_packets_that_are_far_apart_or_come_in_groups() {
        assert_eq!(pace([130; 40]).wait(), Duration::ZERO);
        assert_eq!(pace([1000; 40]).wait(), Duration::ZERO);
        // Five at once, every millisecond.
        assert_eq!(pace((0..200).map(|n| if n % 5 == 0 { 1000 } else { 0 })).wait(), Duration::ZERO);
        // Not before it is known that they are steady.
        assert_eq!(pace([1000, 60, 60, 60]).wait(), Duration::ZERO);
        assert_eq!(pace([60; 40].into_iter().chain([1000])).wait(), Duration::ZERO);
    }

    #[test]
    fn one_wakeup_in_four_does_not_wait() {
        let mut pace = pace([120; 40]);
        let waits: Vec<bool> = (0..16)
            .map(|_| {
                let waits = !pace.wait().is_zero();
                pace.served();
                waits
            })
            .collect();
        assert_eq!(waits.iter().filter(|waits| !**waits).count(), 4);
    }

    #[test]
    fn the_wakeup_after_the_next_is_the_one_that_is_asked_for_then() {
        // Distances between wake-ups are not equal where one in four does not wait.
        let mut pace = pace([120; 40]);
        let mut due = pace.last + Duration::from_micros(120);
        let mut expected = None;
        for _ in 0..16 {
            let rest = pace.wakeups(due);
            let until = rest.until.unwrap();
            assert!(expected.is_none_or(|expected| until == expected), "{until:?}, not {expected:?}");
            expected = rest.then;
            while due <= until {
                pace.delivered(due);
                due += Duration::from_micros(120);
            }
            pace.served();
        }
        assert!(expected.is_some());
    }
}
