//! What a synthetic trace is made of: the parameters of the generator, as a TOML file.
//!
//! ```toml
//! about = "What it stands for."
//! duration = "120s"
//! seed = 7
//!
//! [cellular]            # or: [measured], or: [[steps]] with `lasts` and `rate`
//! mean = "4.6Mbps"
//! snr = 9.0
//! fading = [{ sigma = 6.0, lasts = "9s" }, { sigma = 3.0, lasts = "60ms" }]
//! burst = 1.3
//! outages = { every = "5s", shortest = "30ms", longest = "2s", exponent = 1.5 }
//! ```
//!
//! [`crate::synth`] says what each of them does, [`crate::measured`] what `[measured]` holds.

use std::fmt;
use std::str::FromStr;

use brakelight_core::time::Duration;
use brakelight_core::units::{ParseError, Rate};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::OPPORTUNITY;
use super::measured::Measured;

/// A synthetic trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// What it stands for, and where its numbers come from.
    pub about: String,
    /// Its period, in whole milliseconds; 1 ms to 1 h.
    #[serde(with = "as_text")]
    pub duration: Duration,
    /// The seed of a random trace.
    #[serde(default)]
    pub seed: u64,
    /// A random link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cellular: Option<Cellular>,
    /// A link with the distribution and the memory of a measured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// A schedule of constant rates, repeated until the duration is full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// A constant rate, held for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// How long, in whole milliseconds.
    #[serde(with = "as_text")]
    pub lasts: Duration,
    /// How fast; zero is an outage.
    #[serde(with = "as_text")]
    pub rate: Rate,
}

/// A link whose rate follows a radio channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cellular {
    /// Mean rate of the trace, outages included, in 1500-byte opportunities; 10 kbit/s to 10 Gbit/s.
    #[serde(with = "as_text")]
    pub mean: Rate,
    /// Median signal-to-noise ratio, dB, -20 to 60.
    pub snr: f64,
    /// Signal-to-noise ratio beyond which the rate grows no more, dB.
    #[serde(default = "Cellular::default_snr_limit")]
    pub snr_limit: f64,
    /// How the SNR wanders: one process per time scale, at most eight.
    pub fading: Vec<Fading>,
    /// Opportunities that come at once, mean of a geometric law; 1 to 1000.
    pub burst: f64,
    /// The link's time slot, in whole milliseconds: opportunities come at its multiples.
    #[serde(default = "Cellular::default_slot", with = "as_text")]
    pub slot: Duration,
    /// Times without any opportunity, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outages: Option<Outages>,
    /// Something in the line of sight now and then, if there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockage: Option<Blockage>,
    /// A new path at fixed intervals, if there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
}

/// An Ornstein-Uhlenbeck process added to the SNR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fading {
    /// Its standard deviation, dB, 0 to 30.
    pub sigma: f64,
    /// Its correlation time, at least 1 ms: after that long, 1/e of a deviation is left.
    #[serde(with = "as_text")]
    pub lasts: Duration,
}

/// Times without any opportunity: they begin as a Poisson process and last as a bounded Pareto law says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outages {
    /// Mean time between the end of one and the beginning of the next.
    #[serde(with = "as_text")]
    pub every: Duration,
    /// None is shorter.
    #[serde(with = "as_text")]
    pub shortest: Duration,
    /// None is longer.
    #[serde(with = "as_text")]
    pub longest: Duration,
    /// P(longer than d) falls as d^-exponent; 0.1 to 10.
    pub exponent: f64,
}

/// A two-state Markov process that takes away a fixed part of the SNR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blockage {
    /// Mean time with a clear view.
    #[serde(with = "as_text")]
    pub every: Duration,
    /// Mean time without.
    #[serde(with = "as_text")]
    pub lasts: Duration,
    /// What it costs, dB, 0 to 60.
    pub loss: f64,
}

/// A change of path at fixed intervals: nothing for a moment, then another SNR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// The interval.
    #[serde(with = "as_text")]
    pub every: Duration,
    /// How long nothing can be sent.
    #[serde(with = "as_text")]
    pub gap: Duration,
    /// Standard deviation of the SNR from path to path, dB, 0 to 30.
    pub sigma: f64,
}

/// Why a recipe was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The text is no TOML, lacks a key, has one too many, or a value cannot be read.
    #[error("{0}")]
    Toml(String),
    /// A value out of range.
    #[error("`{field}` is {value}: {expected} is valid")]
    Range {
        /// The key.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be valid.
        expected: &'static str,
    },
    /// None or several of `cellular`, `measured` and `steps`.
    #[error("a recipe holds one of `[cellular]`, `[measured]` and `[[steps]]`, {0}")]
    Kind(&'static str),
    /// Nothing ever comes through.
    #[error("this recipe gives no delivery opportunity in its whole duration")]
    Silent,
}

impl Cellular {
    /// Where the truncated Shannon curve ends, dB.
    // tr36942 A.1
    pub const DEFAULT_SNR_LIMIT: f64 = 22.0;
    /// One LTE subframe.
    pub const DEFAULT_SLOT: Duration = Duration::from_millis(1);

    const fn default_snr_limit() -> f64 {
        Self::DEFAULT_SNR_LIMIT
    }

    const fn default_slot() -> Duration {
        Self::DEFAULT_SLOT
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    /// Reads and checks a recipe.
    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let recipe: Recipe = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let line = line.map_or_else(String::new, |line| format!("line {line}: "));
            RecipeError::Toml(format!("{line}{}", error.message().replace('\n', ", ")))
        })?;
        recipe.check()?;
        Ok(recipe)
    }
}

impl fmt::Display for Recipe {
    /// The recipe as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&toml::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Recipe {
    /// Whether every value is in its range.
    pub fn check(&self) -> Result<(), RecipeError> {
        millis("duration", self.duration, 1, 3_600_000, "a whole number of milliseconds from 1ms to 1h")?;
        match (&self.cellular, &self.measured, self.steps.as_slice()) {
            (None, None, []) => Err(RecipeError::Kind("here is none")),
            (Some(cellular), None, []) => {
                cellular.check()?;
                self.hold("mean", cellular.mean)
            }
            (None, Some(measured), []) => {
                measured.check()?;
                self.hold("rates", measured.fastest())
            }
            (None, None, steps) => {
                steps.iter().try_for_each(Step::check)?;
                let fastest = steps.iter().map(|step| step.rate).max().unwrap_or_default();
                self.hold("rate", fastest)
            }
            _ => Err(RecipeError::Kind("here are several")),
        }
    }

    /// Whether the duration at `rate` makes a trace that fits into memory.
    fn hold(&self, field: &'static str, rate: Rate) -> Result<(), RecipeError> {
        let opportunities = rate.bytes_in(self.duration).0 / OPPORTUNITY.0;
        let expected = "at most 200 million opportunities in the whole duration";
        require(opportunities <= 200_000_000, field, rate, expected)
    }
}

impl Step {
    fn check(&self) -> Result<(), RecipeError> {
        millis("lasts", self.lasts, 1, 3_600_000, "a whole number of milliseconds from 1ms to 1h")?;
        require(self.rate.bps() <= 10_000_000_000, "rate", self.rate, "0bps to 10Gbps")
    }
}

impl Cellular {
    fn check(&self) -> Result<(), RecipeError> {
        let mean = self.mean.bps();
        require((10_000..=10_000_000_000).contains(&mean), "mean", self.mean, "10kbps to 10Gbps")?;
        range("snr", self.snr, -20.0, 60.0, "-20 to 60 dB")?;
        range("snr_limit", self.snr_limit, 0.0, 60.0, "0 to 60 dB")?;
        require(self.fading.len() <= 8, "fading", self.fading.len(), "at most 8 processes")?;
        for fading in &self.fading {
            range("fading.sigma", fading.sigma, 0.0, 30.0, "0 to 30 dB")?;
            let lasts = fading.lasts;
            require(lasts >= Duration::from_millis(1), "fading.lasts", lasts, "a time of at least 1ms")?;
        }
        range("burst", self.burst, 1.0, 1000.0, "1 to 1000 opportunities")?;
        millis("slot", self.slot, 1, 1_000, "a whole number of milliseconds from 1ms to 1s")?;
        if let Some(outages) = &self.outages {
            positive("outages.every", outages.every)?;
            positive("outages.shortest", outages.shortest)?;
            let longest = outages.longest;
            require(longest >= outages.shortest, "outages.longest", longest, "a time not below `shortest`")?;
            range("outages.exponent", outages.exponent, 0.1, 10.0, "0.1 to 10")?;
        }
        if let Some(blockage) = &self.blockage {
            positive("blockage.every", blockage.every)?;
            positive("blockage.lasts", blockage.lasts)?;
            range("blockage.loss", blockage.loss, 0.0, 60.0, "0 to 60 dB")?;
        }
        if let Some(handover) = &self.handover {
            positive("handover.every", handover.every)?;
            let gap = handover.gap;
            require(gap < handover.every, "handover.gap", gap, "a time below `every`")?;
            range("handover.sigma", handover.sigma, 0.0, 30.0, "0 to 30 dB")?;
        }
        Ok(())
    }
}

pub(super) fn require(
    valid: bool,
    field: &'static str,
    value: impl fmt::Display,
    expected: &'static str,
) -> Result<(), RecipeError> {
    if valid { Ok(()) } else { Err(RecipeError::Range { field, value: value.to_string(), expected }) }
}

pub(super) fn range(
    field: &'static str,
    value: f64,
    low: f64,
    high: f64,
    expected: &'static str,
) -> Result<(), RecipeError> {
    require((low..=high).contains(&value), field, value, expected)
}

fn positive(field: &'static str, value: Duration) -> Result<(), RecipeError> {
    let valid = (Duration::from_millis(1)..=Duration::from_secs(3_600)).contains(&value);
    require(valid, field, value, "a time from 1ms to 1h")
}

pub(super) fn millis(
    field: &'static str,
    value: Duration,
    low: u64,
    high: u64,
    expected: &'static str,
) -> Result<(), RecipeError> {
    let nanos = value.as_nanos();
    let valid = nanos.is_multiple_of(1_000_000) && (low..=high).contains(&(nanos / 1_000_000));
    require(valid, field, value, expected)
}

/// Quantities as people spell them, `12Mbps` and `100ms`.
pub(super) mod as_text {
    use super::{Deserialize, Deserializer, FromStr, ParseError, Serializer, fmt};

    pub fn serialize<T: fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err = ParseError>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Lists of quantities as people spell them.
pub(super) mod as_texts {
    use super::{Deserialize, Deserializer, FromStr, ParseError, Serializer, fmt};

    pub fn serialize<T: fmt::Display, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.iter().map(T::to_string))
    }

    pub fn deserialize<'de, T: FromStr<Err = ParseError>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let list = Vec::<String>::deserialize(deserializer)?;
        list.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests;
