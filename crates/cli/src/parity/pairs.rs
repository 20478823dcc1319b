//! The scenarios that `parity` runs twice, and how close both sides must lie.

use std::path::Path;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::reference::{MODELS, Model, REAL, Real, Tolerance};
use brakelight_scenario::scenario::{Hop, Scenario, Service};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

use super::RealHost;
use crate::arguments::HostName;
use crate::failure::Failure;
use crate::{emulated, run, simulate};

/// Of QUIC, whatever the controller and the queue: what was asked of ABC before the first run.
pub(super) const QUIC: Tolerance = Tolerance { throughput: 0.10, p95: 0.30 };

pub(super) const TABLE: &str = "the table of tolerances, from how far real runs lie apart";
pub(super) const LOOSEST: &str =
    "the loosest row of the table: this pair of controller and queue was never measured";
pub(super) const BAR: &str = "the bar for QUIC: 10 % of throughput, 30 % of the 95th percentile";

/// One scenario that is run in simulation and on the emulator.
pub(super) struct Pair {
    pub(super) label: String,
    pub(super) scenario: Scenario,
    pub(super) tolerance: Tolerance,
    /// Where the tolerance is from.
    pub(super) source: &'static str,
    pub(super) reference: Option<&'static Real>,
}

/// Every row of the reference that kernel TCP can be run for, and PIE on the recordings on which it was not measured.
pub(super) fn recordings(
    duration: Duration,
    names: &Names,
    traces: &mut Traces,
) -> Result<Vec<Pair>, Failure> {
    let mut recordings: Vec<&str> = Vec::new();
    for row in REAL {
        if !recordings.contains(&row.trace) {
            recordings.push(row.trace);
        }
    }
    let mut pairs = Vec::new();
    for real in ["cubic", "bbr", "cubic+codel", "cubic+pie"] {
        let model = Model::of(real).ok_or_else(|| Failure::run(format!("no model of `{real}`")))?;
        for &trace in &recordings {
            let scheme = Scheme::parse(model.scheme).map_err(Failure::run)?;
            let compare = Compare { duration, ..Compare::new(scheme, trace) };
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

/// The scenario of a file, with the hosts that both sides have.
pub(super) fn of_file(
    path: &Path,
    hosts: RealHost,
    names: &Names,
    traces: &mut Traces,
) -> Result<Pair, Failure> {
    let mut scenario = run::read(path)?;
    run::set_host(&mut scenario, hosts.profile())
        .map_err(|fault| Failure::input(format!("{}: {fault}", path.display())))?;
    for link in &mut scenario.links {
        // A file beside the scenario is found from anywhere by its whole path, and is not another's of the same name.
        if let Service::Trace(name) = &mut link.service
            && let beside = path.parent().unwrap_or(Path::new("")).join(&*name)
            && !names.list().contains(name)
            && beside.is_file()
        {
            *name = std::path::absolute(beside).map_err(Failure::run)?.display().to_string();
        }
    }
    traces.extend(run::load_traces(&mut scenario, path, names)?);
    emulated::check(&scenario, traces, emulated::hosts(hosts.profile())?).map_err(|mut error| {
        error.file = Some(path.display().to_string());
        error
    })?;
    let bottleneck = scenario.flows.first().and_then(|flow| flow.path.first());
    let queue = match bottleneck {
        Some(Hop::Link(name)) => scenario.link(name).map(|index| scenario.links[index].queue.name()),
        _ => None,
    };
    let controller = scenario.flows.first().map(|flow| flow.controller.name());
    let tabled = controller.zip(queue).and_then(|(controller, queue)| Model::tolerance(controller, queue));
    let (tolerance, source) = match (hosts, tabled) {
        (RealHost::Quinn, _) => (QUIC, BAR),
        (RealHost::Tcp, Some(tolerance)) => (tolerance, TABLE),
        (RealHost::Tcp, None) => (loosest(), LOOSEST),
    };
    Ok(Pair { label: scenario.name.clone(), scenario, tolerance, source, reference: None })
}

/// Of what was never measured nobody knows how far real runs lie apart: what the table allows at most.
pub(super) fn loosest() -> Tolerance {
    let models = MODELS.iter().map(|model| model.tolerance);
    models.fold(Tolerance { throughput: 0.0, p95: 0.0 }, |most, one| Tolerance {
        throughput: most.throughput.max(one.throughput),
        p95: most.p95.max(one.p95),
    })
}

/// What QUIC is run for where no scenario is named: schemes of every kind that it has, on recordings and on a fixed link.
pub(super) fn of_quic(duration: Duration, names: &Names, traces: &mut Traces) -> Result<Vec<Pair>, Failure> {
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
            let scheme = Scheme::parse(words).map_err(Failure::run)?;
            let name = words.split(':').next().unwrap_or(words).to_string();
            let compare = Compare { duration, ..Compare::new(scheme, trace.unwrap_or("step")) };
            let mut scenario = compare.scenario()?;
            if trace.is_none() {
                scenario.links[0].service = Service::Fixed(RATE);
            }
            run::set_host(&mut scenario, HostName::Quinn).map_err(Failure::run)?;
            scenario.name.clone_from(&name);
            load(&scenario, names, traces)?;
            let place = trace.map_or_else(|| RATE.to_string(), str::to_string);
            let label = format!("{name} on {place}");
            pairs.push(Pair { label, scenario, tolerance: QUIC, source: BAR, reference: None });
        }
    }
    Ok(pairs)
}

fn load(scenario: &Scenario, names: &Names, traces: &mut Traces) -> Result<(), Failure> {
    simulate::load_traces(scenario, names, traces).map_err(|failure| {
        let hint = "the recordings are not part of the project: put them into a folder and name it by BRAKELIGHT_TRACES, or \
                    give scenario files";
        Failure { message: format!("{}; {hint}", failure.message), ..failure }
    })
}
