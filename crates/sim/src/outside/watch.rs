//! A run with hosts from outside, in a thread of its own.
//!
//! What others wrote may panic, or never return. Then this run fails, with the flow, its controller and the
//! time at which that happened; whoever runs others goes on with them. A thread that hangs is left behind
//! until the process ends.
//!
//! A program that is built to abort on a panic ends there; the name of the thread in the panic's message is
//! that of the run. The profile `stacks` of this workspace unwinds.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration as StdDuration;

use brakelight_core::time::Time;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;

use super::AnyHost;
use super::flow::Beacon;
use crate::network::Traces;
use crate::simulation::{RunError, Simulation};

/// How often it is looked whether a run goes on.
const LOOK_EVERY: StdDuration = StdDuration::from_secs(1);
/// After so many looks in a row that find a stack in the same call, it hangs.
const MOST_LOOKS: u32 = 60;

/// Runs `scenario` from beginning to end.
pub(crate) fn run(scenario: &Scenario, traces: &Traces) -> Result<Outcome, RunError> {
    watched(scenario, traces, LOOK_EVERY, MOST_LOOKS)
}

/// The same; a stack that stays in one call for so many looks hangs.
pub(super) fn watched(
    scenario: &Scenario,
    traces: &Traces,
    look_every: StdDuration,
    most_looks: u32,
) -> Result<Outcome, RunError> {
    let beacon = Beacon::default();
    // What a panic says first.
    let called = format!("{}, seed {}", scenario.name.replace('\0', " "), scenario.seed);
    let (report, reports) = mpsc::channel();
    let work = {
        let (scenario, traces, beacon) = (scenario.clone(), traces.clone(), beacon.clone());
        move || {
            let whole = AssertUnwindSafe(|| whole(&scenario, &traces, &beacon));
            // Nobody listens once the run counts as hanging.
            let _ = report.send(catch_unwind(whole));
        }
    };
    let spawned = thread::Builder::new().name(called).spawn(work);
    let thread =
        spawned.map_err(|error| failed(scenario, &beacon, format!("no thread for its run: {error}")))?;
    let (mut before, mut looks) = (0, 0);
    loop {
        match reports.recv_timeout(look_every) {
            Ok(Ok(result)) => {
                // It has nothing left to do but to end.
                let _ = thread.join();
                return result;
            }
            Ok(Err(panic)) => {
                let reason = format!("it panicked: {}", words(&*panic));
                return Err(failed(scenario, &beacon, reason));
            }
            Err(RecvTimeoutError::Timeout) => {
                let (calls, ..) = beacon.read();
                looks = if calls == before { looks + 1 } else { 0 };
                before = calls;
                if looks >= most_looks {
                    let seconds = look_every.as_secs_f64() * f64::from(looks);
                    return Err(failed(scenario, &beacon, format!("it hangs: no answer for {seconds} s")));
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(scenario, &beacon, "its thread ended without a result".to_string()));
            }
        }
    }
}

/// The run itself.
fn whole(scenario: &Scenario, traces: &Traces, beacon: &Beacon) -> Result<Outcome, RunError> {
    let mut simulation: Simulation<AnyHost> =
        Simulation::with_hosts(scenario, traces, |config| super::host_told(config, beacon))?;
    simulation.advance(simulation.end());
    let mut reasons = Vec::new();
    for (flow, host) in simulation.hosts().iter().enumerate() {
        if let Some((at, reason)) = host.closed() {
            let (name, controller) = name(scenario, flow);
            reasons.push(format!(
                "flow `{name}` ({controller}): its connection ended {}: {reason}",
                seconds(at)
            ));
        }
    }
    let mut outcome = simulation.finish()?;
    outcome.run.unreliable |= !reasons.is_empty();
    outcome.run.unreliable_because.extend(reasons);
    Ok(outcome)
}

/// The name and the controller of flow number `flow`.
fn name(scenario: &Scenario, flow: usize) -> (String, &'static str) {
    let all = scenario.flows.iter().flat_map(|spec| (0..spec.count).map(move |index| (spec, index)));
    all.map(|(spec, index)| (spec.name_of(index), spec.controller.name())).nth(flow).unwrap_or_default()
}

fn failed(scenario: &Scenario, beacon: &Beacon, reason: String) -> RunError {
    let (_, at, flow) = beacon.read();
    let (flow, controller) = name(scenario, flow);
    let controller = controller.to_string();
    RunError::Stack { flow, controller, at, reason }
}

fn seconds(at: Time) -> String {
    format!("at {:.6} s", at.as_secs_f64())
}

/// The words of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason was given")
}
