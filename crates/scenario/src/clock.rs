//! The clock that a receiver writes arrival times by: nobody sets it to the sender's, and it runs at its own
//! speed.

use brakelight_core::time::{Duration, Time};

/// A receiver's clock: what it shows at time t is `offset` + t (1 + `skew_ppm` / 10^6), and from `step_at` on
/// `step_ms` more.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Clock {
    /// What it shows when the run begins.
    pub offset: Duration,
    /// How much faster than the sender's it runs, in millionths.
    pub skew_ppm: f64,
    /// When it is set, if it is.
    pub step_at: Option<Duration>,
    /// By how much it is set forward then, in milliseconds; negative for back.
    pub step_ms: f64,
}

impl Clock {
    /// The fastest and the slowest clock, in millionths of the true speed: ten times what RFC 5905 allows.
    pub const MOST_PPM: f64 = 5_000.0;
    /// The longest step, in milliseconds.
    pub const MOST_STEP_MS: f64 = 3_600_000.0;

    /// Returns what it shows at `now`. A clock does not show less than zero.
    pub fn read(&self, now: Time) -> Time {
        let drift_ns = now.as_nanos() as f64 * self.skew_ppm * 1e-6;
        let step_ns = match self.step_at {
            Some(at) if now >= Time::ZERO + at => self.step_ms * 1e6,
            _ => 0.0,
        };
        // Both are within 10^15 and whole numbers of nanoseconds are exact there.
        let shown = (now + self.offset).as_nanos() as i64 + drift_ns as i64 + step_ns as i64;
        Time::from_nanos(u64::try_from(shown).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_its_offset_its_skew_and_its_step() {
        let clock = Clock {
            offset: Duration::from_secs(7),
            skew_ppm: 50.0,
            step_at: Some(Duration::from_secs(200)),
            step_ms: -30.0,
        };
        assert_eq!(clock.read(Time::ZERO), Time::from_secs(7));
        // 50 ppm of 100 s are 5 ms.
        assert_eq!(clock.read(Time::from_secs(100)), Time::from_millis(107_005));
        assert_eq!(clock.read(Time::from_secs(200)), Time::from_millis(206_980));
    }

    #[test]
    fn a_true_clock_shows_the_time() {
        let now = Time::from_nanos(123_456_789_012_345);
        assert_eq!(Clock::default().read(now), now);
    }
}
