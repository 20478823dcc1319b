//! A simulation in a browser or in Node, and the same as a program: `scripts/portable` compares the bytes of
//! both.
//!
//! A text goes in and out of the module through one buffer: [`room`] makes it large enough for the scenario,
//! [`simulate`] replaces it by the outcome, and [`text`] says where it is. `run.mjs` shows the other side.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brakelight_scenario::file;
use brakelight_scenario::scenario::Service;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_sim::Traces;

/// Returns the outcome of the scenario that `toml` holds, as JSON. Its links may use the embedded traces.
pub fn outcome(toml: &str) -> Result<String, Box<dyn Error>> {
    let scenario = file::read("scenario.toml", toml)?;
    let mut traces = Traces::new();
    for link in &scenario.links {
        if let Service::Trace(name) = &link.service {
            let embedded = Embedded::find(name).ok_or_else(|| format!("no embedded trace `{name}`"))?;
            traces.insert(name.clone(), embedded.trace());
        }
    }
    let outcome = brakelight_sim::run(&scenario, &traces)?;
    Ok(serde_json::to_string_pretty(&outcome.run)? + "\n")
}

/// The scenario on its way in, the outcome on its way out.
static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn buffer() -> MutexGuard<'static, Vec<u8>> {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a scenario of `length` bytes. Returns the address to write it to.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    let mut buffer = buffer();
    buffer.clear();
    buffer.resize(length, 0);
    buffer.as_mut_ptr()
}

/// Runs the scenario that was written. Returns the length of the outcome, or of a message as a negative
/// number.
#[unsafe(no_mangle)]
pub extern "C" fn simulate() -> isize {
    let mut buffer = buffer();
    let (text, sign) = match outcome(&String::from_utf8_lossy(&buffer)) {
        Ok(json) => (json, 1),
        Err(error) => (error.to_string(), -1),
    };
    *buffer = text.into_bytes();
    sign * isize::try_from(buffer.len()).unwrap_or(isize::MAX)
}

/// Returns the address of what [`simulate`] left; valid until the next call of [`room`] or [`simulate`].
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    buffer().as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_beside_runs_and_a_wrong_one_is_refused() {
        let json = outcome(include_str!("../scenario.toml")).unwrap();
        let run: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(run["flows"].as_array().unwrap().len(), 4);
        assert!(run["delivered_packets"].as_u64().unwrap() > 1_000, "{json}");
        let message = outcome("duration = \"10s\"\nlinks = 1\n").unwrap_err().to_string();
        assert!(message.contains("scenario.toml"), "{message}");
    }
}
