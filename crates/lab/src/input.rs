//! Scenarios, experiments and the traces that they name, from files.

use std::path::Path;

use brakelight_registry::Registry;
use brakelight_scenario::scenario::{Scenario, Service};
use brakelight_scenario::trace::names::{self, Names};
use brakelight_scenario::{file, input};
use brakelight_sim::Traces;

use crate::error::Error;

/// Returns the scenario in the file at `path`, of algorithms of `registry`.
pub fn scenario(registry: &Registry, path: &Path) -> Result<Scenario, Error> {
    Ok(file::read_with(registry, &path.display().to_string(), &text(path, "a scenario")?)?)
}

/// Returns the text of the file at `path`, which should be `what`: `a scenario`.
pub fn text(path: &Path, what: &'static str) -> Result<String, Error> {
    let file = || path.display().to_string();
    let bytes = input::read(path, input::DOCUMENT).map_err(|error| Error::Unreadable {
        file: file(),
        what,
        error,
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Error::NotText { file: file(), line, what }
    })
}

/// Loads the traces that the links of a scenario name: known names, or files, as seen from the folder of the
/// scenario's own file `path` or from here.
pub fn traces(scenario: &Scenario, path: &Path, names: &Names) -> Result<Traces, Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut traces = Traces::new();
    for link in &scenario.links {
        let Service::Trace(name) = &link.service else { continue };
        if traces.contains_key(name) {
            continue;
        }
        let beside = folder.join(name);
        let known = names.list().iter().any(|known| known == name);
        let loaded = if !known && names::is_file(&beside) { names::read(&beside) } else { names.load(name) };
        let trace = loaded.map_err(|error| Error::LinkTrace {
            owner: path.display().to_string(),
            link: link.name.clone(),
            error,
        })?;
        traces.insert(name.clone(), trace);
    }
    Ok(traces)
}
