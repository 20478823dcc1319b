//! Time as integer nanoseconds: a point ([`Time`]) and a length ([`Duration`]).
//!
//! Both hold a `u64`, so a run may last 584 years. Only operators with a meaning exist: two points do not
//! add.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point on the run's own clock, in nanoseconds since its origin. Simulated and real time look alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Time {
    /// The origin of the run's clock.
    pub const ZERO: Time = Time(0);
    /// Later than any event of any run.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Returns the point `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis * 1_000_000)
    }

    /// Returns the point `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Time(secs * 1_000_000_000)
    }

    /// Returns the nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the origin, for formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the time elapsed since `earlier`; zero when `earlier` is in fact later.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns the point `length` before this one, or the origin.
    pub const fn saturating_sub(self, length: Duration) -> Time {
        Time(self.0.saturating_sub(length.0))
    }

    /// Returns the point `length` after this one, or [`Time::MAX`].
    pub const fn saturating_add(self, length: Duration) -> Time {
        Time(self.0.saturating_add(length.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// Longer than any run.
    pub const MAX: Duration = Duration(u64::MAX);

    /// Returns a length of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(nanos)
    }

    /// Returns a length of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Duration(micros * 1_000)
    }

    /// Returns a length of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Duration(millis * 1_000_000)
    }

    /// Returns a length of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Duration(secs * 1_000_000_000)
    }

    /// Returns the nearest length to `secs` seconds; negative and NaN give zero, overflow gives
    /// [`Duration::MAX`].
    pub fn from_secs_f64(secs: f64) -> Self {
        Duration(nearest(secs * 1e9))
    }

    /// Returns the length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns how many whole periods of this length it holds: those that a periodic task which nothing woke
    /// is behind by.
    ///
    /// # Panics
    /// If the period is zero.
    pub const fn periods(self, period: Duration) -> u64 {
        self.0 / period.0
    }

    /// Returns the seconds, for formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the milliseconds, for people.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Returns whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the difference, or zero.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// Returns this length times a non-negative factor.
    pub fn mul_f64(self, factor: f64) -> Duration {
        Duration(nearest(self.0 as f64 * factor))
    }
}

/// Rounds to the nearest whole number, halves up. Negative values and NaN give zero.
#[inline]
fn nearest(value: f64) -> u64 {
    // The largest number below one half: one half in its place would make 1 of this number itself. The `as`
    // cast rounds down, saturates, and makes zero of NaN.
    (value + 0.499_999_999_999_999_94) as u64
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, length: Duration) -> Time {
        Time(self.0 + length.0)
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, length: Duration) {
        self.0 += length.0;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, length: Duration) -> Time {
        Time(self.0 - length.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0 * factor)
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The largest unit that shows the value without a fraction beyond three digits: `133ms`, `1.5ms`, `60s`.
/// From ten seconds on it is the second: `120.002s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0 => (1_000_000_000, "s"),
            n if n.is_multiple_of(1_000_000_000) => (1_000_000_000, "s"),
            n if n >= 10_000_000_000 => (1_000_000_000, "s"),
            n if n >= 1_000_000_000 && !n.is_multiple_of(1_000_000) => (1_000_000_000, "s"),
            n if n >= 1_000_000 => (1_000_000, "ms"),
            n if n >= 1_000 => (1_000, "us"),
            _ => (1, "ns"),
        };
        write!(f, "{}{unit}", self.0 as f64 / scale as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_as_the_library_does() {
        let odd = 4_503_599_627_370_497.0; // 2^52 + 1
        let below_half = 0.499_999_999_999_999_94;
        let halves = [0.5, 1.5, 2.5, 1e9 + 0.5, 2_251_799_813_685_248.5];
        let others = [0.0, 0.3, below_half, 0.7, odd, 2.0 * odd, 1e19, 1e300, -0.3, -0.5, -7.0];
        let extremes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for value in halves.into_iter().chain(others).chain(extremes) {
            assert_eq!(nearest(value), libm::round(value) as u64, "{value}");
        }
    }
}
