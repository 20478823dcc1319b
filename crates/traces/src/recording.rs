//! A recording of a link: what its file says of capacity, delay and loss in both directions, and of itself.
//!
//! [`mod@file`] reads and writes it as `.bltrace`; [`Recording::trace`] makes the trace that a link replays.

use std::fmt;
use std::str::FromStr;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_links::replay::{Conditions, ConditionsError, Recorded};
use brakelight_links::trace::{MAX_MILLIS, MAX_OPPORTUNITIES, Trace, TraceBuilder, TraceError};
use brakelight_links::trains::Trains;
use serde::{Deserialize, Serialize};

use super::OPPORTUNITY;

pub mod file;

pub use file::FileProblem;

/// The longest recording: 49 days, in microseconds.
pub const MAX_LENGTH_US: u64 = MAX_MILLIS * 1_000;

/// A recording of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// What is known about it.
    pub about: About,
    /// Its length in whole microseconds, after which it repeats; above 0.
    pub length: Duration,
    /// Whether packets overtook each other where the delay fell.
    pub reorders: bool,
    /// Towards the user.
    pub down: RecordedDirection,
    /// From the user.
    pub up: RecordedDirection,
}

/// What is known about a recording. What is not known is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who runs the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// What kind of link it is: `5G SA`, `Starlink`, `Wi-Fi 6`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub technology: Option<String>,
    /// Where it was recorded, as a class: `city, walking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How it was measured: with which program, at which end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The length of its bins in microseconds; none where the time of every packet is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin_us: Option<u64>,
    /// The licence under which it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// What to cite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citation: Option<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// SHA-256 of the file that it was made of, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_sha256: Option<String>,
}

/// One direction of a recording. Values hold from the time beside them until the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedDirection {
    /// What it could carry, if that was recorded.
    pub capacity: Option<RecordedCapacity>,
    /// One-way delay; empty if it was not recorded.
    pub delays: Vec<(Duration, Duration)>,
    /// Probability of loss in parts of a billion; empty if it was not recorded.
    pub losses: Vec<(Duration, u32)>,
    /// Light packet trains beside the capacity, which is then what a busy sender gets. Their base delays are
    /// the delay of the direction, which has no other.
    pub trains: Option<Trains>,
}

impl RecordedDirection {
    /// Returns the one-way delay, or that of light trains: what one began with holds until the next, before
    /// `end`.
    fn delays_until(&self, end: Duration) -> Vec<(Duration, Duration)> {
        let trains = self.trains.iter().flat_map(|trains| trains.trains());
        let mut delays: Vec<_> =
            trains.map(|train| (train.at, train.delay)).filter(|(at, _)| *at < end).collect();
        if let Some(first) = delays.first_mut() {
            first.0 = Duration::ZERO;
        }
        if delays.is_empty() { self.delays.clone() } else { delays }
    }
}

/// What a link could carry.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedCapacity {
    /// Delivery opportunities of 1500 bytes; the last one is at the recording's end.
    Opportunities(Trace),
    /// Rates, each with the time from which it holds, the first from 0.
    Rates(Vec<(Duration, Rate)>),
}

/// One of the two directions of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkDirection {
    /// Towards the user.
    Down,
    /// From the user.
    Up,
}

impl fmt::Display for LinkDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkDirection::Down => "down",
            LinkDirection::Up => "up",
        })
    }
}

impl FromStr for LinkDirection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "down" => Ok(LinkDirection::Down),
            "up" => Ok(LinkDirection::Up),
            _ => Err(format!("`{text}` is not a direction: valid are `down` and `up`")),
        }
    }
}

/// Why a recording was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file is not one, or is damaged.
    #[error(transparent)]
    File(#[from] FileProblem),
    /// The direction that was asked for has no capacity.
    #[error("the recording has no capacity `{direction}`: {}", other(*.direction, *.opposite))]
    NoCapacity {
        /// What was asked for.
        direction: LinkDirection,
        /// Whether the other direction has one.
        opposite: bool,
    },
    /// The length cannot be.
    #[error("the recording lasts {0} us: valid are 1 to {MAX_LENGTH_US}")]
    Length(u64),
    /// The capacity cannot be replayed.
    #[error("capacity: {0}")]
    Capacity(TraceError),
    /// It carries too much, or nothing.
    #[error(
        "the recording carries {0:.0} opportunities of {OPPORTUNITY}: valid are 1 to {MAX_OPPORTUNITIES}"
    )]
    Opportunities(f64),
    /// A direction has light trains and delays: which of the two is its delay?
    #[error("`{0}` has light trains and a list of delays: the base delays of the trains are its delay")]
    TwoDelays(LinkDirection),
    /// Rates, delay or loss cannot be replayed.
    #[error("`{direction}`: {error}")]
    Conditions {
        /// Which direction.
        direction: LinkDirection,
        /// Why.
        error: ConditionsError,
    },
}

fn other(direction: LinkDirection, opposite: bool) -> String {
    match direction.opposite() {
        other if opposite => format!("`#{other}` after the file's name takes the other direction"),
        _ => "`trace convert FILE --delay FILE` puts a capacity and a delay together".to_string(),
    }
}

impl LinkDirection {
    /// Returns the other direction.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            LinkDirection::Down => LinkDirection::Up,
            LinkDirection::Up => LinkDirection::Down,
        }
    }
}

impl About {
    /// The keys of [`About::set`].
    pub const KEYS: [&'static str; 8] =
        ["name", "operator", "technology", "place", "method", "licence", "citation", "source"];

    /// Sets what `text` says, such as `technology=5G SA`; valid keys are [`About::KEYS`].
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let field = match key {
            "name" => &mut self.name,
            "operator" => &mut self.operator,
            "technology" => &mut self.technology,
            "place" => &mut self.place,
            "method" => &mut self.method,
            "licence" => &mut self.licence,
            "citation" => &mut self.citation,
            "source" => &mut self.source,
            _ => return Err(format!("`{text}` is not KEY=VALUE: valid keys are {}", Self::KEYS.join(", "))),
        };
        *field = Some(value.to_string()).filter(|value| !value.is_empty());
        Ok(())
    }

    /// Returns what is known in words, each with its name.
    pub fn words(&self) -> Vec<(&'static str, &str)> {
        let fields = [
            &self.name,
            &self.operator,
            &self.technology,
            &self.place,
            &self.method,
            &self.licence,
            &self.citation,
            &self.source,
        ];
        let known = Self::KEYS.into_iter().zip(fields).chain([("source_sha256", &self.source_sha256)]);
        known.filter_map(|(key, value)| Some((key, value.as_deref()?))).collect()
    }
}

impl Recording {
    /// Returns a recording without values.
    pub fn new(length: Duration) -> Self {
        let (down, up) = (RecordedDirection::default(), RecordedDirection::default());
        Recording { about: About::default(), length, reorders: false, down, up }
    }

    /// Returns one direction.
    pub fn direction(&self, direction: LinkDirection) -> &RecordedDirection {
        match direction {
            LinkDirection::Down => &self.down,
            LinkDirection::Up => &self.up,
        }
    }

    /// Returns one direction, to be changed.
    pub fn direction_mut(&mut self, direction: LinkDirection) -> &mut RecordedDirection {
        match direction {
            LinkDirection::Down => &mut self.down,
            LinkDirection::Up => &mut self.up,
        }
    }

    /// Returns the directions that have a capacity, `down` first.
    pub fn directions(&self) -> Vec<LinkDirection> {
        let has = |direction: &LinkDirection| self.direction(*direction).capacity.is_some();
        [LinkDirection::Down, LinkDirection::Up].into_iter().filter(has).collect()
    }

    /// Returns the trace of the capacity in `direction`, with the delay and loss of both directions: of the
    /// only direction that has one, or `down`, where none is given. Rates become opportunities of
    /// [`OPPORTUNITY`] bytes, each in the microsecond in which its last bit is there.
    pub fn trace(&self, direction: Option<LinkDirection>) -> Result<Trace, RecordingError> {
        let chosen = direction.or_else(|| self.directions().first().copied()).unwrap_or(LinkDirection::Down);
        let capacity =
            self.direction(chosen).capacity.as_ref().ok_or_else(|| RecordingError::NoCapacity {
                direction: chosen,
                opposite: self.direction(chosen.opposite()).capacity.is_some(),
            })?;
        let trace = match capacity {
            RecordedCapacity::Opportunities(trace) => trace.clone(),
            RecordedCapacity::Rates(rates) => opportunities_in_micros(rates, self.length)?,
        };
        let conditions = |direction: LinkDirection| {
            let recorded = self.direction(direction);
            // What the ticks of the trace round up is not lost here.
            let (delays, losses) = (recorded.delays_until(trace.period()), recorded.losses.clone());
            if delays.is_empty() && losses.is_empty() {
                return Ok(None);
            }
            Conditions::new(trace.period(), delays, losses, self.reorders)
                .map(Some)
                .map_err(|error| RecordingError::Conditions { direction, error })
        };
        let (forward, reverse) = (conditions(chosen)?, conditions(chosen.opposite())?);
        let resolution =
            self.about.bin_us.map_or(trace.tick(), |us| Duration::from_micros(us.min(MAX_LENGTH_US)));
        let trains = self.direction(chosen).trains.clone();
        Ok(trace.with_recorded(Recorded { resolution, forward, reverse, trains }))
    }

    /// Checks all that a file cannot say wrongly but a program can.
    pub fn check(&self) -> Result<(), RecordingError> {
        let length = self.length.as_micros();
        if length == 0 || length > MAX_LENGTH_US {
            return Err(RecordingError::Length(length));
        }
        for direction in [LinkDirection::Down, LinkDirection::Up] {
            let recorded = self.direction(direction);
            if recorded.trains.is_some() && !recorded.delays.is_empty() {
                return Err(RecordingError::TwoDelays(direction));
            }
            let refuse = |error| RecordingError::Conditions { direction, error };
            Conditions::new(self.length, recorded.delays.clone(), recorded.losses.clone(), false)
                .map_err(refuse)?;
            if let Some(RecordedCapacity::Rates(rates)) = &recorded.capacity {
                let times = rates.iter().map(|(from, _)| (*from, 0)).collect();
                Conditions::new(self.length, Vec::new(), times, false).map_err(refuse)?;
            }
        }
        Ok(())
    }
}

/// Opportunities at rates that change.
fn opportunities_in_micros(rates: &[(Duration, Rate)], length: Duration) -> Result<Trace, RecordingError> {
    // In millionths of a bit.
    let whole = OPPORTUNITY.bits() * 1_000_000;
    let ends = rates.iter().skip(1).map(|(from, _)| *from).chain([length]);
    let steps =
        rates.iter().zip(ends).map(|(&(from, rate), end)| (from.as_micros(), end.as_micros(), rate.bps()));
    let opportunities: f64 =
        steps.clone().map(|(from, end, bps)| (end - from) as f64 * bps as f64 / whole as f64).sum();
    if !(1.0..MAX_OPPORTUNITIES as f64).contains(&opportunities) {
        return Err(RecordingError::Opportunities(opportunities));
    }
    let mut builder = TraceBuilder::default();
    let (mut carried, mut last) = (0, 0);
    for (from, end, bps) in steps {
        let sum = carried + (end - from) * bps;
        for k in 1..=sum / whole {
            last = from + (k * whole - carried).div_ceil(bps);
            builder.push(last, 1).map_err(RecordingError::Capacity)?;
        }
        carried = sum % whole;
    }
    // The end is the period, as in Mahimahi's format.
    if last < length.as_micros() {
        builder.push(length.as_micros(), 1).map_err(RecordingError::Capacity)?;
    }
    builder.finish().map_err(RecordingError::Capacity)
}

#[cfg(test)]
mod tests;
