//! Scenarios.

use std::path::{Path, PathBuf};

use brakelight::lab::input as files;
use brakelight::scenario::file;
use brakelight::scenario::scenario;
use brakelight::scenario::trace::names::Names;
use brakelight::sim::Traces;
use pyo3::prelude::*;

use crate::dial::Dial;
use crate::error::{failed, input, of_lab};
use crate::quantity::in_seconds;
use crate::registry::{Algorithms, Failures};
use crate::trace::Trace;

/// What to run, checked, with its traces.
#[pyclass(frozen, module = "brakelight._brakelight")]
#[derive(Clone)]
pub struct Scenario {
    /// The scenario.
    pub scenario: scenario::Scenario,
    /// Its traces, by the names that it has for them.
    pub traces: Traces,
    /// Of its algorithms in Python.
    pub failures: Failures,
}

/// Returns the traces that have names, with those of a program.
pub fn names(given: &[PyRef<'_, Trace>]) -> PyResult<Names> {
    let names = Names::from_environment().map_err(input)?;
    Ok(given.iter().fold(names, |names, trace| names.with_trace(&trace.name, trace.trace.clone())))
}

impl Scenario {
    fn with_traces(
        scenario: scenario::Scenario,
        failures: Failures,
        file: &Path,
        given: &[PyRef<'_, Trace>],
    ) -> PyResult<Self> {
        let traces = files::traces(&scenario, file, &names(given)?).map_err(of_lab)?;
        Ok(Scenario { scenario, traces, failures })
    }
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    fn read(path: PathBuf, traces: Vec<PyRef<'_, Trace>>) -> PyResult<Self> {
        let Algorithms { registry, failures } = Algorithms::current();
        let scenario = files::scenario(&registry, &path).map_err(of_lab)?;
        Self::with_traces(scenario, failures, &path, &traces)
    }

    #[staticmethod]
    fn from_toml(text: &str, name: &str, traces: Vec<PyRef<'_, Trace>>) -> PyResult<Self> {
        let Algorithms { registry, failures } = Algorithms::current();
        let scenario = file::read_with(&registry, name, text).map_err(input)?;
        Self::with_traces(scenario, failures, Path::new(name), &traces)
    }

    /// Of a JSON object with the keys of a scenario file. With a dial there is the queue `dial`.
    #[staticmethod]
    #[pyo3(signature = (text, traces, dial=None))]
    fn from_json(text: &str, traces: Vec<PyRef<'_, Trace>>, dial: Option<&Dial>) -> PyResult<Self> {
        let Algorithms { mut registry, failures } = Algorithms::current();
        if let Some(dial) = dial {
            dial.add_to(&mut registry)?;
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let scenario = file::deserialize_with(&registry, &mut json);
        let scenario = scenario.map_err(|error| {
            // The place in the JSON text is nobody's.
            let text = error.to_string();
            input(text.split(" at line ").next().unwrap_or(&text))
        })?;
        Self::with_traces(scenario, failures, Path::new("scenario"), &traces)
    }

    fn to_toml(&self) -> String {
        file::write(&self.scenario)
    }

    fn to_json(&self) -> PyResult<String> {
        let table: toml::Table = self.to_toml().parse().map_err(failed)?;
        serde_json::to_string(&table).map_err(failed)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.scenario.name
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        in_seconds(self.scenario.duration)
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    /// The traces that its links name.
    fn traces(&self) -> Vec<Trace> {
        let traces = self.traces.iter();
        traces.map(|(name, trace)| Trace { trace: trace.clone(), name: name.clone() }).collect()
    }
}
