//! Contests of senders.

use std::path::PathBuf;

use brakelight::lab::arena::{Candidate, Plan, RoundSet};
use brakelight::lab::evaluate::Level;
use brakelight::scenario::trace::names::Names;
use pyo3::prelude::*;

use crate::error::{InputError, failed, input, of_lab};
use crate::registry::{Algorithms, Failures};
use crate::scenario::Scenario;
use crate::work::{Interruptible, watched};

/// A name of the module, which has checked it.
pub fn level(name: &str) -> Level {
    if name == Level::Full.name() { Level::Full } else { Level::Quick }
}

/// Returns the rounds of a name that the module has checked.
pub fn known(set: &str) -> RoundSet {
    if set == RoundSet::Train.name() { RoundSet::Train } else { RoundSet::Validation }
}

/// Reads a sender; the digest of its source is given where it is a class in Python.
pub fn candidate(algorithms: &Algorithms, text: &str, digest: Option<String>) -> PyResult<Candidate> {
    let candidate = Candidate::parse(&algorithms.registry, text).map_err(of_lab)?;
    Ok(Candidate { digest: digest.or(candidate.digest), ..candidate })
}

/// Returns the scores of senders as JSON, without an origin: each a scheme, and the digest of its source.
#[pyfunction]
#[pyo3(signature = (candidates, set, key, folder, level, progress))]
pub fn arena(
    py: Python<'_>,
    candidates: Vec<(String, Option<String>)>,
    set: &str,
    key: Option<Vec<u8>>,
    folder: Option<PathBuf>,
    level: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let algorithms = Algorithms::current();
    let set = match (key, folder) {
        (None, None) => known(set),
        (Some(key), None) => RoundSet::of_key(&key).map_err(of_lab)?,
        (None, Some(folder)) => {
            let names = Names::with_folder(&folder).map_err(input)?;
            RoundSet::of_folder(&names).map_err(of_lab)?
        }
        (Some(_), Some(_)) => {
            return Err(InputError::new_err("key, folder: give one of them"));
        }
    };
    let entered = candidates.into_iter().map(|(text, digest)| candidate(&algorithms, &text, digest));
    let entered = entered.collect::<PyResult<Vec<_>>>()?;
    if entered.is_empty() {
        return Err(InputError::new_err("candidates: none given; valid is one or more senders"));
    }
    let plan = Plan::new(&algorithms.registry, &set, self::level(level), entered).map_err(of_lab)?;
    let arena = watched(py, progress, &algorithms.failures, |watch| plan.run(&Interruptible(watch), watch))?;
    let mut document = serde_json::to_value(&arena).map_err(failed)?;
    if let Some(table) = document.as_object_mut() {
        table.remove("origin");
    }
    serde_json::to_string(&document).map_err(failed)
}

/// Returns how many rounds each set has at a level.
#[pyfunction]
pub fn arena_rounds(level: &str) -> usize {
    RoundSet::size(self::level(level))
}

/// Returns the scenarios of a known set with a sender in them.
#[pyfunction]
pub fn arena_scenarios(given: (String, Option<String>), set: &str, level: &str) -> PyResult<Vec<Scenario>> {
    let algorithms = Algorithms::current();
    let entered = vec![candidate(&algorithms, &given.0, given.1)?];
    let plan = Plan::new(&algorithms.registry, &known(set), self::level(level), entered).map_err(of_lab)?;
    let (scenarios, traces) = plan.scenarios(0);
    let failures: &Failures = &algorithms.failures;
    let of = |scenario: &brakelight::scenario::scenario::Scenario| Scenario {
        scenario: scenario.clone(),
        traces: traces.clone(),
        failures: failures.clone(),
    };
    Ok(scenarios.iter().map(of).collect())
}
