//! What runs a scenario: the simulator with its modelled hosts, or whatever else can.

use brakelight_scenario::identity::MODELLED;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::Traces;

use crate::error::Cause;

/// Runs one scenario from beginning to end. Several threads may ask at once.
pub trait Runner: Sync {
    /// Runs `scenario`, whose traces are `traces`.
    fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause>;

    /// Returns what runs the flows, as the [identity](brakelight_scenario::identity) of its runs names it:
    /// the modelled host, unless the runner says otherwise.
    fn host(&self) -> &'static str {
        MODELLED
    }
}

/// The simulator with its modelled hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Simulator;

impl Runner for Simulator {
    fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause> {
        Ok(brakelight_sim::run(scenario, traces)?)
    }
}
