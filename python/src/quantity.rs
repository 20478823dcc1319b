//! Times, rates and sizes as text with their unit, as on the command line.

use std::fmt::Display;
use std::str::FromStr;

use brakelight::core::time::{Duration, Time};
use brakelight::core::units::Rate;
use pyo3::prelude::*;

use crate::error::{InputError, input};

/// Returns the value of the argument `name`.
pub fn read<T: FromStr>(name: &str, text: &str) -> PyResult<T>
where
    T::Err: Display,
{
    text.parse().map_err(|error| input(format_args!("{name} = {error}")))
}

/// Returns a `rate` in bit/s or a `time` in seconds, given as text with its unit.
#[pyfunction]
pub fn quantity(kind: &str, text: &str) -> PyResult<f64> {
    match kind {
        "rate" => Ok(read::<Rate>(kind, text)?.bps() as f64),
        _ => Ok(in_seconds(read(kind, text)?)),
    }
}

/// A time of at most a year, in seconds.
const LONGEST_S: f64 = 366.0 * 86_400.0;

/// Returns a length of time of so many seconds.
pub fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    if (0.0..=LONGEST_S).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(InputError::new_err(format!(
        "{name} = `{seconds}` is out of range: valid is 0 to {LONGEST_S} seconds"
    )))
}

/// Returns the time so many seconds after the beginning of a run.
pub fn time(name: &str, at: f64) -> PyResult<Time> {
    Ok(Time::ZERO + seconds(name, at)?)
}

/// Returns the nearest number of seconds.
pub fn in_seconds(time: Duration) -> f64 {
    // A division is exact where it can be: 60 s are 60.0.
    time.as_nanos() as f64 / 1e9
}

/// Returns the seconds since the beginning of a run.
pub fn since_start(time: Time) -> f64 {
    in_seconds(time.since(Time::ZERO))
}
