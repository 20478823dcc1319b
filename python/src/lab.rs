//! What people do with runs.

use std::path::PathBuf;

use brakelight::core::registry::Registry;
use brakelight::lab::attack::{Attack, attack_with, budget as budget_of};
use brakelight::lab::reproduce::{self as claims, Judge, Quick};
use brakelight::lab::run as one;
use brakelight::lab::sweep::{Axis, Base, Value};
use brakelight::lab::{Compare, Error, compare as comparison, frame, listing as lists};
use brakelight::prelude::{Folder, Grid, Scheme, Shard, lab};
use brakelight::scenario::deployment::Change;
use brakelight::scenario::documents::{Claim, Verdict};
use brakelight::scenario::file::read_traffic;
use brakelight::scenario::scenario::TraceOffset;
use brakelight::scenario::trace::names::Names;
use brakelight::scenario::traffic::Traffic;
use brakelight::sim::Traces;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{InputError, failed, input, of_lab};
use crate::frame::Frame;
use crate::quantity::read;
use crate::registry::{Algorithms, Failures};
use crate::scenario::{Scenario, names};
use crate::table::Table;
use crate::trace::Trace;
use crate::work::{Interruptible, watched};

/// Returns which schemes on which traces did how.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Of keywords in Python.
#[pyo3(signature = (traces, given, schemes, can, against, traffic, rtt, buffer, reverse, spread, setup, duration, runs, seed,
    trace_offset, series, force, progress))]
pub fn compare(
    py: Python<'_>,
    traces: Vec<String>,
    given: Vec<PyRef<'_, Trace>>,
    schemes: Vec<String>,
    can: Option<&str>,
    against: Option<&str>,
    traffic: Option<&str>,
    rtt: &str,
    buffer: Option<&str>,
    reverse: Option<&str>,
    spread: Option<bool>,
    setup: Option<&str>,
    duration: Option<&str>,
    runs: Option<u32>,
    seed: u64,
    trace_offset: Option<&str>,
    series: bool,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    let Algorithms { registry, failures } = Algorithms::current();
    let parse = |text: &str| lab::schemes::parse_list(&registry, text).map_err(input);
    let mut parsed = Vec::new();
    for text in &schemes {
        parsed.extend(parse(text)?);
    }
    if let Some(can) = can {
        parsed = deployable(&registry, parsed, can)?;
    }
    at_least_one("runs", runs.unwrap_or(1))?;
    let preset = match setup {
        None => comparison::Preset::Suited,
        Some("mahimahi") => comparison::Preset::Mahimahi,
        Some(other) => {
            return Err(InputError::new_err(format!("setup = `{other}`: valid is `mahimahi`, or None")));
        }
    };
    let request = Compare {
        traces,
        schemes: parsed,
        against: against.map(|text| Scheme::parse_with(&registry, text).map_err(input)).transpose()?,
        traffic: traffic
            .map_or(Ok(Traffic::Backlogged), |text| read_traffic(&registry, text).map_err(input))?,
        rtt: read("rtt", rtt)?,
        buffer: buffer
            .map(str::parse)
            .transpose()
            .map_err(|error| InputError::new_err(format!("buffer: {error}")))?,
        reverse: reverse.map(comparison::Reverse::parse),
        spread,
        preset,
        duration: duration.map(|text| read("duration", text)).transpose()?,
        runs,
        seed,
        trace_offset: match trace_offset {
            None => None,
            Some("random") => Some(TraceOffset::Random),
            Some(at) => Some(TraceOffset::At(read("trace_offset", at)?)),
        },
        series,
        link_logs: false,
    };
    let names = names(&given)?;
    let table = watched(py, progress, &failures, |watch| {
        let plan = comparison::Plan::new(&request, &names)?;
        if !force {
            plan.check_cost()?;
        }
        plan.run(&Interruptible(watch), watch)
    })?;
    Ok(Table { table, compares: true })
}

/// Those of `schemes`, or of the default ones where there are none, that need no change beyond `can`.
fn deployable(registry: &Registry, schemes: Vec<Scheme>, can: &str) -> PyResult<Vec<Scheme>> {
    let change = match can {
        "senders" => Change::Senders,
        "queue" => Change::Queue,
        "both" => Change::Both,
        other => {
            let valid = "valid are `senders`, `queue` and `both`, or None";
            return Err(InputError::new_err(format!("can = `{other}`: {valid}")));
        }
    };
    let schemes = if schemes.is_empty() { lab::schemes::defaults(registry) } else { schemes };
    let within = lab::schemes::within(schemes, change);
    if within.is_empty() {
        return Err(InputError::new_err(format!(
            "can = `{can}`: none of the schemes can be deployed by changing that alone"
        )));
    }
    Ok(within)
}

fn at_least_one(name: &str, value: u32) -> PyResult<()> {
    if value > 0 {
        Ok(())
    } else {
        Err(InputError::new_err(format!("{name} = `0` is out of range: valid is 1 or more")))
    }
}

/// Returns what came out of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, runs, series, force, progress))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    runs: u32,
    series: bool,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    at_least_one("runs", runs)?;
    let Scenario { scenario, traces, failures } = scenario;
    let mut scenario = scenario.clone();
    scenario.record.series |= series;
    let table = watched(py, progress, failures, |watch| {
        if !force {
            lab::jobs::check_cost_of(&scenario.name, &scenario, traces)?;
        }
        one::run(&scenario, traces, runs, &Interruptible(watch), watch)
    })?;
    Ok(Table { table, compares: false })
}

/// Returns the papers' claims that `ids` name, judged: all where there is no id.
#[pyfunction]
#[pyo3(signature = (ids, quick, force, progress))]
pub fn reproduce(
    py: Python<'_>,
    ids: Vec<String>,
    quick: bool,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Frame> {
    let names = Names::from_environment().map_err(input)?;
    let claims = watched(py, progress, &Failures::default(), |watch| {
        let mut chosen = claims::chosen(&claims::all()?, &ids)?;
        if quick {
            chosen = Quick::of(chosen, &names)?.experiments;
        }
        Judge { runner: &Interruptible(watch), names: &names, progress: watch, any_cost: force }
            .claims(&chosen)
    })?;
    let column = |name: &str, pick: &dyn Fn(&Claim) -> &str| frame::Column {
        name: name.into(),
        values: frame::Values::Text(claims.iter().map(|claim| pick(claim).to_string()).collect()),
    };
    let columns = vec![
        column("id", &|claim| &claim.id),
        column("claim", &|claim| &claim.claim),
        column("paper", &|claim| &claim.paper),
        column("measured", &|claim| &claim.measured),
        column("verdict", &|claim| word(claim.verdict)),
        column("note", &|claim| &claim.note),
    ];
    Frame::of(&frame::Frame::new(columns).map_err(of_lab)?)
}

/// Returns what an attack on a scheme found, as JSON, and the worst link with the scheme on it and with the best
/// reference.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Of keywords in Python.
#[pyo3(signature = (scheme, against, objective, space, bounds, budget, seed, progress))]
pub fn attack(
    py: Python<'_>,
    scheme: &str,
    against: Vec<String>,
    objective: &str,
    space: &str,
    bounds: Option<&str>,
    budget: i64,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Scenario, Option<Scenario>)> {
    let Algorithms { registry, failures } = Algorithms::current();
    let parse = |text: &str| Scheme::parse_list_with(&registry, text).map_err(input);
    let mut beside = Vec::new();
    for text in &against {
        beside.extend(parse(text)?);
    }
    let wrong = |name: &str, error: String| InputError::new_err(format!("{name}: {error}"));
    let request = Attack {
        against: beside,
        objective: objective.parse().map_err(|error| wrong("objective", error))?,
        space: space.parse().map_err(|error| wrong("space", error))?,
        bounds: bounds
            .map(str::parse)
            .transpose()
            .map_err(|error| wrong("bounds", error))?
            .unwrap_or_default(),
        budget: budget_of(&budget.to_string()).map_err(|error| wrong("budget", error))?,
        seed,
        ..Attack::new(Scheme::parse_with(&registry, scheme).map_err(input)?)
    };
    let found =
        watched(py, progress, &failures, |watch| attack_with(&request, &Interruptible(watch), watch))?;
    let of = |scenario| Scenario { scenario, traces: Traces::new(), failures: failures.clone() };
    let json = serde_json::to_string(&found.document).map_err(failed)?;
    Ok((json, of(found.worst), found.reference.map(of)))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Refuted => "refuted",
        Verdict::NeedsRecordings => "needs-recordings",
        Verdict::NotCheckable => "not-checkable",
    }
}

/// Returns what there is of one kind, as a JSON array of objects.
#[pyfunction]
pub fn listing(kind: &str) -> PyResult<String> {
    let registry = Algorithms::current().registry;
    let listing = match kind {
        "schemes" => lists::schemes(&registry),
        "controllers" => lists::controllers(&registry),
        "queues" => lists::queues(&registry),
        "feedbacks" => lists::feedbacks(&registry),
        "elements" => lists::elements(&registry),
        "radios" => lists::radios(&registry),
        "applications" => lists::applications(&registry),
        "traces" => lists::traces().map_err(of_lab)?,
        "claims" => lists::claims().map_err(of_lab)?,
        other => return Err(InputError::new_err(format!("unknown list `{other}`"))),
    };
    serde_json::to_string(&listing.json).map_err(failed)
}

/// A grid of runs, checked.
#[pyclass(frozen, module = "brakelight._brakelight")]
pub struct Sweep {
    sweep: lab::sweep::Sweep,
    grid: Grid,
    failures: Failures,
}

/// A grid as text, for other processes.
#[derive(Serialize, Deserialize)]
struct Spec {
    axes: Vec<(String, Vec<Value>)>,
    runs: u32,
    seed: u64,
    /// The file and the text of the scenario that the axes change.
    scenario: Option<(String, String)>,
}

#[pymethods]
impl Sweep {
    /// The grid in a file.
    #[staticmethod]
    #[pyo3(signature = (path, runs, given))]
    fn read(path: PathBuf, runs: Option<u32>, given: Vec<PyRef<'_, Trace>>) -> PyResult<Self> {
        let mut grid = Grid::read(&path).map_err(of_lab)?;
        grid.runs = runs.unwrap_or(grid.runs);
        Self::of(&grid, &given)
    }

    /// A grid of axes: an array of pairs of a name and its values, as JSON; the last changes fastest.
    #[staticmethod]
    #[pyo3(signature = (axes, runs, seed, scenario, given))]
    fn of_axes(
        axes: &str,
        runs: u32,
        seed: u64,
        scenario: Option<String>,
        given: Vec<PyRef<'_, Trace>>,
    ) -> PyResult<Self> {
        let axes: Vec<(String, Vec<Value>)> = serde_json::from_str(axes).map_err(input)?;
        let axes = axes.into_iter().map(|(name, values)| Axis { name, values }).collect();
        let base = match scenario {
            None => Base::Compare,
            Some(text) => Base::Scenario { file: "scenario".into(), text },
        };
        at_least_one("runs", runs)?;
        Self::of(&Grid { name: "grid".into(), base, axes, runs, seed }, &given)
    }

    /// The grid that [`spec`](Self::spec) returned.
    #[staticmethod]
    fn of_spec(text: &str, given: Vec<PyRef<'_, Trace>>) -> PyResult<Self> {
        let Spec { axes, runs, seed, scenario } = serde_json::from_str(text).map_err(input)?;
        let axes = axes.into_iter().map(|(name, values)| Axis { name, values }).collect();
        let base = scenario.map_or(Base::Compare, |(file, text)| Base::Scenario { file, text });
        Self::of(&Grid { name: "grid".into(), base, axes, runs, seed }, &given)
    }

    /// The grid as text.
    fn spec(&self) -> PyResult<String> {
        let Grid { base, axes, runs, seed, .. } = self.grid.clone();
        let scenario = match base {
            Base::Compare => None,
            Base::Scenario { file, text } => Some((file, text)),
        };
        let axes = axes.into_iter().map(|axis| (axis.name, axis.values)).collect();
        serde_json::to_string(&Spec { axes, runs, seed, scenario }).map_err(failed)
    }

    #[getter]
    fn runs(&self) -> u64 {
        self.sweep.runs()
    }

    /// The traces of its runs, by the names that these have for them.
    fn traces(&self) -> Vec<Trace> {
        let traces = self.sweep.traces().iter();
        traces.map(|(name, trace)| Trace { trace: trace.clone(), name: name.clone() }).collect()
    }

    /// Where the lines of its runs begin that a journal has: the number of each run and a place in the file.
    fn kept(&self, py: Python<'_>, journal: PathBuf) -> PyResult<Vec<(u64, u64)>> {
        watched(py, None, &self.failures, |watch| self.sweep.kept(&journal, &Interruptible(watch)))
    }

    /// Refuses a grid some of whose runs would take hours or fill the memory.
    fn check(&self) -> PyResult<()> {
        self.sweep.check(false).map_err(of_lab)
    }

    /// The rows of the runs numbered so: runs, flows and links.
    #[pyo3(signature = (wanted, progress))]
    fn rows(
        &self,
        py: Python<'_>,
        wanted: Vec<u64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Frame, Frame, Frame)> {
        if let Some(run) = wanted.iter().find(|run| **run >= self.sweep.runs()) {
            return Err(InputError::new_err(format!(
                "there is no run {run}: the grid has {}",
                self.sweep.runs()
            )));
        }
        let rows = watched(py, progress, &self.failures, |watch| {
            let mut rows = Vec::new();
            self.sweep.run(&wanted, &Interruptible(watch), watch, &mut |row| {
                rows.push(row);
                Ok(())
            })?;
            Ok(rows)
        })?;
        let frame = |frame: Result<frame::Frame, Error>| Frame::of(&frame.map_err(of_lab)?);
        let sweep = &self.sweep;
        Ok((
            frame(sweep.runs_frame(&rows))?,
            frame(sweep.flows_frame(&rows))?,
            frame(sweep.links_frame(&rows))?,
        ))
    }

    /// Runs a shard into a folder: how many runs it has, and how many the folder had already.
    #[pyo3(signature = (path, shard, resume, progress))]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        shard: (u64, u64),
        resume: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(u64, u64, Vec<PathBuf>)> {
        let (index, of) = shard;
        let shard = Shard::new(index, of).ok_or_else(|| {
            InputError::new_err(format!("`{index}/{of}` is not a shard such as `2/8`: the second of eight"))
        })?;
        let written = watched(py, progress, &self.failures, |watch| {
            let folder = Folder { path: &path, shard, resume, figures: false };
            folder.run(&self.sweep, &Interruptible(watch), watch)
        })?;
        Ok((written.runs, written.kept, written.files))
    }
}

impl Sweep {
    fn of(grid: &Grid, given: &[PyRef<'_, Trace>]) -> PyResult<Self> {
        let Algorithms { registry, failures } = Algorithms::current();
        let sweep = lab::sweep::Sweep::with(&registry, grid, &names(given)?).map_err(of_lab)?;
        Ok(Sweep { sweep, grid: grid.clone(), failures })
    }
}

/// So that what is handed to threads is known to be safe there.
const _: fn() = || {
    fn is_sync<T: Sync>() {}
    is_sync::<(Traces, lab::sweep::Sweep)>();
};
