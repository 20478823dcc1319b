//! Sizes and rates, and the human spelling of every unit: `12Mbps`, `100ms`, `1.5MB`, `250pkt`.
//!
//! Rates use decimal prefixes (1 Mbps = 10^6 bit/s), sizes too (1 MB = 10^6 bytes; `KiB`, `MiB`, `GiB` are
//! binary).

use alloc::string::{String, ToString};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::str::FromStr;

use crate::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// The limit of a buffer: packets or bytes, as its owner counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(Bytes),
}

/// Why the text of a quantity was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text as it was given.
    pub text: String,
    /// What would have been valid.
    pub expected: &'static str,
}

impl Limit {
    /// Returns the limit in packets of this size.
    pub fn in_packets(self, size: Bytes) -> f64 {
        match self {
            Limit::Packets(packets) => f64::from(packets),
            Limit::Bytes(bytes) => bytes.as_f64() / size.as_f64(),
        }
    }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);

    /// Returns the difference, or zero.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// Returns the number of bytes, for formulas.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns the number of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Rate {
    /// No traffic.
    pub const ZERO: Rate = Rate(0);
    /// The highest rate: as a pacing rate, that of a sender that is not paced.
    pub const MAX: Rate = Rate(u64::MAX);

    /// Returns the rate as a pacing rate: `None` for [`Rate::MAX`], that of a sender that is not paced.
    pub fn paced(self) -> Option<Rate> {
        (self != Rate::MAX).then_some(self)
    }

    /// Returns a rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Rate(bps)
    }

    /// Returns a rate of `mbps` megabits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Rate(mbps * 1_000_000)
    }

    /// Returns the nearest rate to `bps` bits per second; negative and NaN give zero.
    pub fn from_bps_f64(bps: f64) -> Self {
        // The cast saturates, and sends NaN and what is below zero to zero.
        Rate((bps + 0.5) as u64)
    }

    /// Returns the rate that carries `bytes` in `time`; zero when `time` is zero.
    pub fn over(bytes: Bytes, time: Duration) -> Self {
        if time.is_zero() {
            return Rate::ZERO;
        }
        Rate::from_bps_f64(bytes.as_f64() * 8.0 / time.as_secs_f64())
    }

    /// Returns the bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Returns the bits per second, for formulas.
    pub const fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns the megabits per second, for people.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Returns the time to send `bytes` at this rate, rounded to the nearest nanosecond; [`Duration::MAX`] at
    /// rate zero, and where it would be longer.
    pub fn time_for(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let scaled = bytes.0 as u128 * 8_000_000_000 + (self.0 / 2) as u128;
        // Division of a 128-bit number is a library call; nearly every product fits 64 bits.
        match u64::try_from(scaled) {
            Ok(small) => Duration::from_nanos(small / self.0),
            Err(_) => Duration::from_nanos(u64::try_from(scaled / self.0 as u128).unwrap_or(u64::MAX)),
        }
    }

    /// Returns the bytes carried in `time` at this rate, rounded down; at most `u64::MAX`.
    pub fn bytes_in(self, time: Duration) -> Bytes {
        let exact = self.0 as u128 * time.as_nanos() as u128 / 8_000_000_000;
        Bytes(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// Returns this rate times a non-negative factor.
    pub fn mul_f64(self, factor: f64) -> Rate {
        Rate::from_bps_f64(self.0 as f64 * factor)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        Bytes(iter.map(|b| b.0).sum())
    }
}

fn show(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)], base: &str) -> fmt::Result {
    for &(scale, unit) in units {
        if value >= scale && value.is_multiple_of(scale / 1000) {
            return write!(f, "{}{unit}", value as f64 / scale as f64);
        }
    }
    write!(f, "{value}{base}")
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")], "B")
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &[(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps")], "bps")
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(n) => write!(f, "{n}pkt"),
            Limit::Bytes(b) => fmt::Display::fmt(b, f),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.text, self.expected)
    }
}

impl core::error::Error for ParseError {}

/// Returns the number that `text` is, or a hundredth of it where it ends in `%`; `None` if it is none, or not
/// finite.
///
/// ```
/// use brakelight_core::units::parse_number;
///
/// assert_eq!(parse_number("0.01"), Some(0.01));
/// assert_eq!(parse_number("1%"), Some(0.01));
/// assert_eq!(parse_number("much"), None);
/// ```
pub fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    digits.parse::<f64>().ok().map(|number| number / scale).filter(|number| number.is_finite())
}

/// Splits `12.5Mbps` into 12.5 and `Mbps`, scales by the unit's factor, and rounds to the base unit.
fn quantity(text: &str, units: &[(&str, f64)], expected: &'static str) -> Result<u64, ParseError> {
    let refuse = || ParseError { text: text.to_string(), expected };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(refuse)?;
    let (number, unit) = trimmed.split_at(split);
    let number: f64 = number.parse().map_err(|_| refuse())?;
    let unit = unit.trim_start();
    let &(_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?;
    let scaled = libm::round(number * scale);
    // 2^63: everything below is far inside u64, and sums of a few stay there.
    if scaled < 9.2e18 { Ok(scaled as u64) } else { Err(refuse()) }
}

impl FromStr for Duration {
    type Err = ParseError;
    /// `133ms`, `1.5s`, `200us`, `10ns`, `2min` or `2m`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, f64)] = &[
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("m", 60e9),
            ("min", 60e9),
            ("h", 3600e9),
        ];
        quantity(text, UNITS, "a time such as `100ms`, `1.5s` or `200us`").map(Duration::from_nanos)
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    /// `12Mbps`, `500kbps`, `1.2Gbps`, `9600bps`; `Mbit/s` and the like also.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, f64)] = &[
            ("bps", 1.0),
            ("bit/s", 1.0),
            ("kbps", 1e3),
            ("kbit/s", 1e3),
            ("Mbps", 1e6),
            ("Mbit/s", 1e6),
            ("Gbps", 1e9),
            ("Gbit/s", 1e9),
        ];
        quantity(text, UNITS, "a rate such as `12Mbps`, `500kbps` or `1.2Gbps`").map(Rate::from_bps)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;
    /// `1500B`, `30kB`, `1.5MB`, `64KiB`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, f64)] = &[
            ("B", 1.0),
            ("kB", 1e3),
            ("KB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1048576.0),
            ("GiB", 1073741824.0),
        ];
        quantity(text, UNITS, "a size such as `1500B`, `30kB` or `1.5MB`").map(Bytes)
    }
}

impl FromStr for Limit {
    type Err = ParseError;
    /// `250pkt` or a size in bytes.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a buffer such as `250pkt`, `30kB` or `1.5MB`";
        let refuse = || ParseError { text: text.to_string(), expected: EXPECTED };
        match text.trim().strip_suffix("pkt") {
            Some(count) => count.trim().parse().map(Limit::Packets).map_err(|_| refuse()),
            None => text.parse().map(Limit::Bytes).map_err(|_| refuse()),
        }
    }
}
