//! Traces.

use std::path::{Path, PathBuf};

use brakelight::core::path::trace;
use brakelight::scenario::trace::convert::{
    ConvertOptions, Format, RateUnit, Selection, convert_file, to_mahimahi,
};
use brakelight::scenario::trace::names::Names;
use brakelight::scenario::trace::statistics::{self, Statistics};
use brakelight::scenario::trace::{OPPORTUNITY, names, synth};
use pyo3::prelude::*;

use crate::error::{InputError, failed, input};
use crate::quantity::in_seconds;

/// The delivery opportunities of a link.
#[pyclass(frozen, eq, module = "brakelight._brakelight")]
#[derive(Clone, PartialEq)]
pub struct Trace {
    /// The trace.
    pub trace: trace::Trace,
    /// What it is called.
    #[pyo3(get)]
    pub name: String,
}

/// More would not fit the memory: a day of milliseconds.
const MOST_MILLIS: usize = 86_400_000;

/// Opportunities in a millisecond at 10 Tbit/s.
const MOST_AT_ONCE: f64 = 1e6;

/// The ends of names of files that are no traces until they are converted.
const CONVERTED: [&str; 8] = ["csv", "json", "log", "pcap", "pcapng", "qlog", "sqlog", "tsv"];

/// Returns whether the name of a file says so; of one that gzip packed, the name that it had before.
fn is_converted(path: &Path) -> bool {
    let unpacked = path.with_extension("");
    let path = if path.extension().is_some_and(|end| end == "gz") { &unpacked } else { path };
    path.extension().is_some_and(|end| CONVERTED.iter().any(|known| end == *known))
}

#[pymethods]
impl Trace {
    /// A trace from a file of any format that the command converts, and what to know of it. Without options a
    /// trace is taken as it is.
    #[staticmethod]
    #[pyo3(signature = (path, format, column, time_column, unit, direction, flow, without_idle))]
    #[allow(clippy::too_many_arguments)] // Of keywords in Python.
    fn read(
        path: PathBuf,
        format: Option<&str>,
        column: Option<String>,
        time_column: Option<String>,
        unit: Option<&str>,
        direction: Option<&str>,
        flow: Option<&str>,
        without_idle: bool,
    ) -> PyResult<(Self, Vec<String>)> {
        let name =
            path.file_name().map_or_else(|| "trace".into(), |name| name.to_string_lossy().into_owned());
        let wrong = |name: &str, error: String| InputError::new_err(format!("{name}: {error}"));
        let format: Option<Format> =
            format.map(str::parse).transpose().map_err(|error| wrong("format", error))?;
        let direction: Option<Selection> =
            direction.map(str::parse).transpose().map_err(|error| wrong("direction", error))?;
        let flow = flow.map(Selection::flow).transpose().map_err(|error| wrong("flow", error))?;
        let unit: Option<RateUnit> =
            unit.map(str::parse).transpose().map_err(|error| wrong("unit", error))?;
        if flow.is_some() && direction.is_some() {
            return Err(InputError::new_err("flow, direction: give one of the two"));
        }
        let selection = flow.or(direction).unwrap_or_default();
        let options = ConvertOptions {
            selection,
            unit,
            column,
            time_column,
            without_idle,
            ..ConvertOptions::default()
        };
        let plain = format.is_none() && options == ConvertOptions::default();
        let convert = || convert_file(&path, format, options);
        let converted = if plain && !is_converted(&path) {
            let read = names::read(&path);
            match read {
                Ok(trace) => return Ok((Trace { trace, name }, Vec::new())),
                // Whatever the name says, it may be what another program wrote.
                Err(error) => convert().map_err(|_| input(error))?,
            }
        } else {
            convert().map_err(input)?
        };
        Ok((Trace { trace: converted.trace, name }, converted.warnings))
    }

    #[staticmethod]
    fn named(name: &str) -> PyResult<Self> {
        let trace = Names::from_environment().and_then(|names| names.load(name)).map_err(input)?;
        Ok(Trace { trace, name: name.to_string() })
    }

    /// Opportunities at these milliseconds.
    #[staticmethod]
    fn from_millis(millis: Vec<u64>, name: String) -> PyResult<Self> {
        let trace = trace::Trace::from_millis(millis).map_err(input)?;
        Ok(Trace { trace, name })
    }

    /// Rates, each for `step_ms` milliseconds.
    #[staticmethod]
    fn from_rates(mbps: Vec<f64>, step_ms: usize, name: String) -> PyResult<Self> {
        if step_ms == 0 || mbps.is_empty() || mbps.len().saturating_mul(step_ms) > MOST_MILLIS {
            return Err(InputError::new_err(format!(
                "{} rates of {step_ms} ms each: valid is 1 ms to a day of them in all",
                mbps.len()
            )));
        }
        let bits = OPPORTUNITY.as_f64() * 8.0;
        let mut owed = 0.0;
        let mut counts = Vec::with_capacity(mbps.len() * step_ms);
        for (place, rate) in mbps.iter().enumerate() {
            let each = rate * 1e3 / bits;
            if !(0.0..=MOST_AT_ONCE).contains(&each) {
                return Err(InputError::new_err(format!(
                    "rate number {place} = `{rate}` Mbit/s is out of range: valid is 0 to {:.0}",
                    MOST_AT_ONCE * bits / 1e3
                )));
            }
            for _ in 0..step_ms {
                owed += each;
                let whole = owed.floor();
                owed -= whole;
                counts.push(whole as u32);
            }
        }
        let trace = synth::from_counts(counts).map_err(input)?;
        Ok(Trace { trace, name })
    }

    /// Milliseconds of the opportunities of one period.
    fn millis(&self) -> Vec<u64> {
        self.trace.millis().collect()
    }

    /// Mean rates in Mbit/s of steps of `step_ms` milliseconds.
    fn rates(&self, step_ms: u64) -> PyResult<Vec<f64>> {
        let width = brakelight::core::time::Duration::from_millis(step_ms);
        if width.is_zero() {
            return Err(InputError::new_err("step_ms = `0` is out of range: valid is 1 or more"));
        }
        Ok(statistics::rates(&self.trace, width, OPPORTUNITY))
    }

    fn renamed(&self, name: String) -> Self {
        Trace { name, ..self.clone() }
    }

    /// The file in Mahimahi's format.
    fn to_mahimahi(&self) -> String {
        to_mahimahi(&self.trace)
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        in_seconds(self.trace.period())
    }

    #[getter]
    fn mean_mbps(&self) -> f64 {
        self.trace.mean_rate(OPPORTUNITY).as_mbps_f64()
    }

    #[getter]
    fn opportunities(&self) -> u64 {
        self.trace.opportunities()
    }

    /// Statistics, as a JSON object.
    fn statistics(&self) -> PyResult<String> {
        serde_json::to_string(&Statistics::of(&self.trace, OPPORTUNITY)).map_err(failed)
    }

    fn __getnewargs__(&self) -> (Vec<u64>, String) {
        (self.millis(), self.name.clone())
    }

    #[new]
    fn new(millis: Vec<u64>, name: String) -> PyResult<Self> {
        Self::from_millis(millis, name)
    }

    fn __repr__(&self) -> String {
        format!("Trace({:?}, {:.2} Mbit/s, {:.1} s)", self.name, self.mean_mbps(), self.duration_s())
    }
}
