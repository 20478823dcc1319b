//! One run from beginning to end, in steps: between two of them the worker can hear that it is no longer
//! wanted. Steps change nothing in the outcome.

use brakelight::core::time::Duration;
use brakelight::scenario::cost::Cost;
use brakelight::scenario::outcome::Outcome;
use brakelight::scenario::scenario::Scenario;
use brakelight::sim::Simulation;
use serde_json::{Value, json};

use crate::setup::check_cost;
use crate::traces::Shelf;

/// A run that was begun.
#[derive(Debug)]
pub struct Job {
    simulation: Simulation,
}

impl Job {
    /// Begins a run of `scenario`. Fails if it is wrong, or too much for a page.
    pub fn begin(scenario: &Scenario, shelf: &Shelf) -> Result<Self, String> {
        let traces = shelf.traces(scenario)?;
        check_cost(scenario, &Cost::of(scenario, &traces))?;
        let simulation = Simulation::new(scenario, &traces).map_err(|error| error.to_string())?;
        Ok(Job { simulation })
    }

    /// Goes on by so much of its time, at most to its end.
    pub fn advance(&mut self, by: Duration) {
        let until = (self.simulation.now() + by).min(self.simulation.end());
        self.simulation.advance(until);
    }

    /// Returns how far it is.
    pub fn state(&self) -> Value {
        let (now, end) = (self.simulation.now(), self.simulation.end());
        json!({ "now_s": now.as_secs_f64(), "end_s": end.as_secs_f64(), "done": now >= end })
    }

    /// Ends it. `outcome` is a text: the row that `brakelight run --format json` prints, byte for byte.
    pub fn finish(self) -> Result<Value, String> {
        let Outcome { run, series, .. } = self.simulation.finish().map_err(|error| error.to_string())?;
        let text = serde_json::to_string_pretty(&run).map_err(|error| error.to_string())?;
        let series = serde_json::to_value(series).map_err(|error| error.to_string())?;
        Ok(json!({ "outcome": text, "series": series }))
    }
}
