//! The scenarios that `parity` runs twice, and how close both sides must lie.

use std::path::Path;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_registry::{Host, Registry};
use brakelight_scenario::compare::Compare;
use brakelight_scenario::reference::{MODELS, Model, REAL, Real, Tolerance};
use brakelight_scenario::scenario::{Hop, Scenario, Service};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

use super::Hosts;
use crate::error::Error;
use crate::{input, run};

/// Of QUIC, whatever the controller and the queue: what was asked of ABC before the first run.
pub const QUIC: Tolerance = Tolerance { throughput: 0.10, p95: 0.30 };

/// Of a host from outside beside itself: its code is the same in both.
pub const OUTSIDE: Tolerance = Tolerance { throughput: 0.03, p95: 0.15 };

/// Where the tolerances of pairs are from that were measured.
pub const TABLE: &str = "the table of tolerances, from how far real runs lie apart";
/// Of pairs that were not.
pub const LOOSEST: &str =
    "the loosest row of the table: this pair of controller and queue was never measured";
/// Of QUIC.
pub const BAR: &str = "the bar for QUIC: 10 % of throughput, 30 % of the 95th percentile";

/// Of hosts from outside.
pub const SAME: &str = "the bar for a stack beside itself: 3 % of throughput, 15 % of the 95th percentile";

/// One scenario that is run in simulation and on the emulator.
#[derive(Clone, Debug)]
pub struct Pair {
    /// What it is called while it runs.
    pub label: String,
    /// What is run, with the first seed.
    pub scenario: Scenario,
    /// How close both sides must lie.
    pub tolerance: Tolerance,
    /// Where the tolerance is from.
    pub source: &'static str,
    /// What real hosts did, where it was measured.
    pub reference: Option<&'static Real>,
}

/// Returns every row of the reference that kernel TCP can be run for, and PIE on the recordings on which it
/// was not measured.
///
/// Fails with [`Error::Recording`] where a recording is not in the folder that `names` stands for.
pub fn recordings(duration: Duration, names: &Names, traces: &mut Traces) -> Result<Vec<Pair>, Error> {
    let mut recordings: Vec<&str> = Vec::new();
    for row in REAL {
        if !recordings.contains(&row.trace) {
            recordings.push(row.trace);
        }
    }
    let mut pairs = Vec::new();
    for real in ["cubic", "bbr", "cubic+codel", "cubic+pie"] {
        let model = Model::of(real).expect("the table has a row for each of these");
        for &trace in &recordings {
            let scheme = Scheme::parse(model.scheme)?;
            let compare = Compare { duration, ..Compare::mahimahi(scheme, trace) };
            let mut scenario = compare.scenario()?;
            scenario.name = real.to_string();
            load(&scenario, names, traces)?;
            pairs.push(Pair {
                label: format!("{real} on {trace}"),
                scenario,
                tolerance: model.tolerance,
                source: TABLE,
                reference: Real::find(trace, real),
            });
        }
    }
    Ok(pairs)
}

/// Loads the traces of a scenario of the file at `path`, and makes their names lead there from any folder.
pub fn load_traces(
    scenario: &mut Scenario,
    path: &Path,
    names: &Names,
    traces: &mut Traces,
) -> Result<(), Error> {
    for link in &mut scenario.links {
        // A file beside the scenario is found from anywhere by its whole path, and is not another's of the
        // same name.
        if let Service::Trace(name) = &mut link.service
            && let beside = path.parent().unwrap_or(Path::new("")).join(&*name)
            && !names.list().contains(name)
            && beside.is_file()
        {
            let absolute = std::path::absolute(beside);
            *name = absolute.map_err(|error| Error::run(path.display(), error))?.display().to_string();
        }
    }
    traces.extend(input::traces(scenario, path, names)?);
    Ok(())
}

/// Returns the pair of a scenario of one's own, whose flows have the hosts that both sides have.
pub fn of_scenario(scenario: Scenario, hosts: Hosts) -> Pair {
    let bottleneck = scenario.flows.first().and_then(|flow| flow.path.first());
    let queue = match bottleneck {
        Some(Hop::Link(name)) => scenario.link(name).map(|index| scenario.links[index].queue.name()),
        _ => None,
    };
    let controller = scenario.flows.first().map(|flow| flow.controller.name());
    let tabled = controller.zip(queue).and_then(|(controller, queue)| Model::tolerance(controller, queue));
    let (tolerance, source) = match (hosts, tabled) {
        (Hosts::Quic, _) => (QUIC, BAR),
        (Hosts::Outside, _) => (OUTSIDE, SAME),
        (Hosts::Tcp, Some(tolerance)) => (tolerance, TABLE),
        (Hosts::Tcp, None) => (loosest(), LOOSEST),
    };
    Pair { label: scenario.name.clone(), scenario, tolerance, source, reference: None }
}

/// Returns the largest tolerances of the table, for pairs that were never measured: how far their real runs
/// lie apart is unknown.
pub fn loosest() -> Tolerance {
    let models = MODELS.iter().map(|model| model.tolerance);
    models.fold(Tolerance { throughput: 0.0, p95: 0.0 }, |most, one| Tolerance {
        throughput: most.throughput.max(one.throughput),
        p95: most.p95.max(one.p95),
    })
}

/// Returns what QUIC is run for where no scenario is named: schemes of every kind that it has, on recordings
/// and on a fixed link.
///
/// Fails with [`Error::Recording`] where a recording is not in the folder that `names` stands for.
pub fn of_quic(duration: Duration, names: &Names, traces: &mut Traces) -> Result<Vec<Pair>, Error> {
    const RATE: Rate = Rate::from_mbps(12);
    let bottlenecks = [
        Some("Verizon-LTE-short.down"),
        Some("TMobile-LTE-short.down"),
        Some("ATT-LTE-driving-2016.down"),
        None,
    ];
    let mut pairs = Vec::new();
    for words in ["abc", "cubic", "cubic+codel:target=50ms,interval=100ms", "quicdc"] {
        for trace in bottlenecks {
            let scheme = Scheme::parse(words)?;
            let name = words.split(':').next().unwrap_or(words).to_string();
            let compare = Compare { duration, ..Compare::mahimahi(scheme, trace.unwrap_or("step")) };
            let mut scenario = compare.scenario()?;
            if trace.is_none() {
                scenario.links[0].service = Service::Fixed(RATE);
            }
            run::set_host(&mut scenario, Host::Quic);
            scenario.name.clone_from(&name);
            load(&scenario, names, traces)?;
            let place = trace.map_or_else(|| RATE.to_string(), str::to_string);
            let label = format!("{name} on {place}");
            pairs.push(Pair { label, scenario, tolerance: QUIC, source: BAR, reference: None });
        }
    }
    Ok(pairs)
}

/// Returns what hosts from outside are run for where no scenario is named: each of their controllers in
/// `registry`, on two recordings and on a fixed link.
///
/// Fails with [`Error::Recording`] where a recording is not in the folder that `names` stands for.
pub fn of_outside(
    registry: &Registry,
    duration: Duration,
    names: &Names,
    traces: &mut Traces,
) -> Result<Vec<Pair>, Error> {
    const RATE: Rate = Rate::from_mbps(12);
    let bottlenecks = [Some("Verizon-LTE-short.down"), Some("TMobile-LTE-short.down"), None];
    let mut pairs = Vec::new();
    for controller in registry.hosts().flat_map(|(_, factory)| factory.controllers()) {
        let name = controller.name;
        for trace in bottlenecks {
            let scheme = Scheme::parse_with(registry, name)?;
            let compare = Compare { duration, ..Compare::mahimahi(scheme, trace.unwrap_or("step")) };
            let mut scenario = compare.scenario()?;
            if trace.is_none() {
                scenario.links[0].service = Service::Fixed(RATE);
            }
            scenario.name = name.to_string();
            load(&scenario, names, traces)?;
            let place = trace.map_or_else(|| RATE.to_string(), str::to_string);
            let label = format!("{name} on {place}");
            pairs.push(Pair { label, scenario, tolerance: OUTSIDE, source: SAME, reference: None });
        }
    }
    Ok(pairs)
}

/// Loads every trace that `scenario` names.
fn load(scenario: &Scenario, names: &Names, traces: &mut Traces) -> Result<(), Error> {
    for link in &scenario.links {
        if let Service::Trace(name) = &link.service
            && !traces.contains_key(name)
        {
            traces.insert(name.clone(), names.load(name).map_err(Error::Recording)?);
        }
    }
    Ok(())
}
