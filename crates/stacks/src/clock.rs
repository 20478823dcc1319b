//! The simulation's time as the [`Instant`] that stacks take.

use std::sync::OnceLock;
use std::time::{Duration as StdDuration, Instant};

use brakelight_core::time::{Duration, Time};

/// Stacks subtract from the time; before the start there is room for that.
const BEFORE: StdDuration = StdDuration::from_secs(24 * 60 * 60);

/// The instant at which every simulation of this process starts. Stacks look at differences alone.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(|| Instant::now() + BEFORE)
}

/// Returns the instant of a time of the simulation.
pub(crate) fn instant(time: Time) -> Instant {
    start() + StdDuration::from_nanos(time.as_nanos())
}

/// Returns the time of the simulation of an instant; zero before the start.
pub(crate) fn time(instant: Instant) -> Time {
    Time::ZERO + length(instant.saturating_duration_since(start()))
}

/// Returns the same length of time.
pub(crate) fn length(length: StdDuration) -> Duration {
    Duration::from_nanos(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_the_way_there_and_back() {
        for nanos in [0, 1, 999_999_999, 3_600_000_000_000] {
            assert_eq!(time(instant(Time::from_nanos(nanos))), Time::from_nanos(nanos));
        }
        assert_eq!(time(instant(Time::ZERO) - StdDuration::from_secs(1)), Time::ZERO);
    }
}
