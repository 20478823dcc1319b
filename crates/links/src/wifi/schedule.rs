//! How the modulation changes: `7` stays, `1/7` takes turns, `3..7` wanders by one up or down, held within
//! (abc20 7.3 and appendix D).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::parameters::{ParameterError, Value};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

/// Steps of a walk before it starts over: at the paper's two seconds, more than two hours.
const WALK: usize = 4096;

/// A schedule of MCS indices over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Always the same.
    Fixed(u8),
    /// These in turn.
    Turns(Vec<u8>),
    /// A random walk between two, starting in the middle.
    Walk(u8, u8),
}

const EXPECTED: &str = "an index from 0 to 7, turns such as `1/7`, or a range such as `3..7`";

impl Value for Schedule {
    fn unit() -> String {
        "index | i/j/... | i..j".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let index = |text: &str| match text.trim().parse() {
            Ok(index @ 0..=7) => Ok(index),
            _ => Err(EXPECTED.to_string()),
        };
        if let Some((low, high)) = text.split_once("..") {
            return Ok(Schedule::Walk(index(low)?, index(high)?));
        }
        if text.contains('/') {
            return text.split('/').map(index).collect::<Result<_, _>>().map(Schedule::Turns);
        }
        index(text).map(Schedule::Fixed)
    }

    fn show(&self) -> String {
        match self {
            Schedule::Fixed(index) => index.to_string(),
            Schedule::Turns(turns) => turns.iter().map(u8::to_string).collect::<Vec<_>>().join("/"),
            Schedule::Walk(low, high) => format!("{low}..{high}"),
        }
    }
}

impl Schedule {
    /// Refuses a walk from a higher index to a lower one.
    pub(super) fn check(&self) -> Result<(), ParameterError> {
        match self {
            Schedule::Walk(low, high) if low >= high => Err(ParameterError::OutOfRange {
                name: "mcs",
                value: self.show(),
                range: "a range from a lower to a higher index".to_string(),
            }),
            _ => Ok(()),
        }
    }
}

/// A schedule as a table: one MCS index per period, repeated.
#[derive(Clone, Debug)]
pub struct Indices {
    period: Duration,
    indices: Arc<[u8]>,
}

impl Indices {
    /// Returns the laid-out `schedule`.
    pub fn new(schedule: &Schedule, period: Duration, random: &mut Random) -> Self {
        let indices = match schedule {
            Schedule::Fixed(index) => vec![*index],
            Schedule::Turns(turns) => turns.clone(),
            &Schedule::Walk(low, high) => {
                let mut index = low.midpoint(high);
                let mut walk = Vec::with_capacity(WALK);
                for _ in 0..WALK {
                    walk.push(index);
                    index = if random.chance(0.5) {
                        index.saturating_sub(1).max(low)
                    } else {
                        (index + 1).min(high)
                    };
                }
                walk
            }
        };
        Indices { period, indices: indices.into() }
    }

    /// Returns the index at `t`.
    pub fn at(&self, t: Time) -> u8 {
        let period = t.since(Time::ZERO).as_nanos() / self.period.as_nanos();
        self.indices[(period % self.indices.len() as u64) as usize]
    }

    /// Returns the bytes that a link of rate `of(index)` carries in `from <= t < to`. Adjacent intervals add
    /// up exactly.
    pub fn integrate(&self, from: Time, to: Time, of: impl Fn(u8) -> Rate) -> Bytes {
        let table: [u64; 8] = core::array::from_fn(|index| of(index as u8).bps());
        // bit/s times nanoseconds since the start.
        let work = |t: Time| -> u128 {
            let nanos = t.since(Time::ZERO).as_nanos();
            let each = self.period.as_nanos();
            let (whole, rest) = (nanos / each, nanos % each);
            let rate = |period: u64| {
                u128::from(table[usize::from(self.indices[(period % self.indices.len() as u64) as usize])])
            };
            let round: u128 = self.indices.iter().map(|&index| u128::from(table[usize::from(index)])).sum();
            let rounds = u128::from(whole / self.indices.len() as u64);
            let begun: u128 = (0..whole % self.indices.len() as u64).map(rate).sum();
            (rounds * round + begun) * u128::from(each) + rate(whole) * u128::from(rest)
        };
        let bytes = |t: Time| (work(t) / 8_000_000_000) as u64;
        Bytes(bytes(to).saturating_sub(bytes(from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_they_are_shown() {
        for text in ["7", "1/7", "3..7", "0/3/5"] {
            assert_eq!(Schedule::parse(text).unwrap().show(), text);
        }
        for text in ["8", "-1", "1/8", "3..", "x", "", "1//7"] {
            assert_eq!(Schedule::parse(text).unwrap_err(), EXPECTED, "{text}");
        }
        assert!(Schedule::parse("7..3").unwrap().check().is_err());
    }

    #[test]
    fn turns_last_a_period_each() {
        let period = Duration::from_secs(2);
        let indices = Indices::new(&Schedule::Turns(vec![1, 7]), period, &mut Random::stream(1, "turns"));
        let at: Vec<u8> = [0, 1999, 2000, 3999, 4000].map(|ms| indices.at(Time::from_millis(ms))).to_vec();
        assert_eq!(at, [1, 1, 7, 7, 1]);
        // 1 s at 8 bit/s and 0.5 s at 56 bit/s.
        let of = |index| Rate::from_bps(8 * u64::from(index));
        let carried = indices.integrate(Time::from_millis(1000), Time::from_millis(2500), of);
        assert_eq!(carried, Bytes(1 + 3));
    }

    #[test]
    fn a_walk_stays_within_and_moves_by_one() {
        let indices =
            Indices::new(&Schedule::Walk(3, 7), Duration::from_secs(2), &mut Random::stream(1, "walk"));
        assert!(indices.indices.iter().all(|index| (3..=7).contains(index)));
        assert!(indices.indices.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1));
        assert!((3..=7).all(|index| indices.indices.contains(&index)));
    }

    #[test]
    fn adjacent_intervals_add_up() {
        let indices =
            Indices::new(&Schedule::Walk(0, 7), Duration::from_millis(70), &mut Random::stream(2, "walk"));
        let of = |index| Rate::from_bps(1_234_567 * u64::from(index + 1));
        let cuts = [0, 13, 69, 70, 71, 500, 9999].map(Time::from_millis);
        let parts: u64 = cuts.windows(2).map(|pair| indices.integrate(pair[0], pair[1], of).0).sum();
        assert_eq!(parts, indices.integrate(cuts[0], cuts[6], of).0);
    }
}
