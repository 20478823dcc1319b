//! The unit of a rate, as the user names it.

use std::str::FromStr;

use super::units;

/// The unit of the rates of a file that does not name it, such as `Mbit/s`, `kbps` or `MB/s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateUnit {
    bps: f64,
}

impl RateUnit {
    /// Megabits per second.
    pub const MBIT: RateUnit = RateUnit { bps: 1e6 };
    /// Kilobits per second.
    pub const KBIT: RateUnit = RateUnit { bps: 1e3 };

    /// Returns the unit that ends the name of a column, if one does.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        units::rate(name).map(|bps| RateUnit { bps })
    }

    /// Returns a value of this unit in bit/s.
    pub fn bps(self, value: f64) -> f64 {
        value * self.bps
    }
}

impl FromStr for RateUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        RateUnit::of_name(text).ok_or_else(|| {
            format!("`{text}` is not a unit of rates: give one such as `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `kB/s`, `MB/s`")
        })
    }
}
