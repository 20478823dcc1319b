//! A grid of runs: every combination of the values of some axes, each a scenario, each a row.
//!
//! ```toml
//! # Without `scenario`, the setup of `compare`: its axes are scheme, trace, rtt, buffer, duration,
//! # trace_offset, against, seed, and `option.NAME`, an option of every scheme.
//! # With it, a scenario file, as seen from this one.
//! runs = 10                                # seeds 1 to 10 of every combination
//!
//! [axes]                                   # one value, or a list of values
//! scheme = ["abc", "cubic+codel"]
//! trace = "lte-driving"
//! rtt = ["20ms", "100ms"]
//! # Any key of the scenario: by the name of its link or flow, or `*` for all of them.
//! "link.forward.queue" = ["codel", "pie"]
//! ```
//!
//! Runs are numbered from 0. Those of a file are in the order of the names of its axes; the last axis changes
//! fastest, seeds faster still. A run is known by its `run_id`, a hash of what it is, so that a sweep that
//! was interrupted goes on where it was, and its shards can run on different machines.

use std::path::Path;
use std::str::FromStr;

use brakelight_core::suggest::DidYouMean;
use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_registry::{DEFAULT_CONTROLLER, Registry};
use brakelight_scenario::compare::Compare;
use brakelight_scenario::file;
use brakelight_scenario::identity::RunId;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::problem::{InputError, Problem};
use brakelight_scenario::scenario::{Record, Scenario, TraceOffset};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;
use toml::Table;
pub use toml::Value;

use crate::error::Error;
use crate::frame::{self, Column, Frame, Values};
use crate::progress::Progress;
use crate::runner::{Runner, Simulator};
use crate::{input, jobs, parallel};

pub(crate) mod folder;
mod path;
#[cfg(test)]
mod tests;

pub use folder::{Folder, Written};

/// The most runs of a grid: the numbers of those that are still to do are in memory.
const MOST_RUNS: u64 = 100_000_000;

/// The grid of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Where it was read; shown in messages.
    pub name: String,
    /// What the axes change.
    pub base: Base,
    /// What differs between runs; the last changes fastest.
    pub axes: Vec<Axis>,
    /// Seeds of every combination, unless `seed` is an axis.
    pub runs: u32,
    /// The first of them.
    pub seed: u64,
}

/// What the axes of a grid change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// The setup of a comparison: one flow at one queue, over a trace.
    Compare,
    /// A scenario.
    Scenario {
        /// The name of its file, in whose folder its traces may be.
        file: String,
        /// What the file holds.
        text: String,
    },
}

/// One direction of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// A setting of `compare`, or a key of the scenario with dots.
    pub name: String,
    /// Its values, as a scenario file has them.
    pub values: Vec<Value>,
}

/// One run of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its number.
    pub index: u64,
    /// Its identity.
    pub run_id: RunId,
    /// What came out.
    pub run: Run,
}

/// The part of a grid that one machine runs: every `of`-th run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// The whole grid.
    pub const WHOLE: Shard = Shard { index: 1, of: 1 };

    /// Returns the number `index` of `of` shards, counted from 1; none if there is no such shard.
    pub fn new(index: u64, of: u64) -> Option<Self> {
        (1..=of).contains(&index).then_some(Shard { index, of })
    }

    /// Returns the numbers of its runs in a grid of so many.
    pub fn runs(self, grid: u64) -> Vec<u64> {
        (0..grid).filter(|run| self.has(*run)).collect()
    }

    fn has(self, run: u64) -> bool {
        run % self.of == self.index - 1
    }

    /// The number of its run number `place`.
    fn run(self, place: u64) -> u64 {
        place * self.of + self.index - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let shard = parts.and_then(|(index, of)| Shard::new(index, of));
        shard.ok_or_else(|| format!("`{text}` is not a shard such as `2/8`: the second of eight"))
    }
}

/// Runs a grid in simulation and keeps every row in memory. [`Folder::run`] writes them into a folder
/// instead. Fails if a run does.
pub fn sweep(grid: &Grid, progress: &dyn Progress) -> Result<Vec<Row>, Error> {
    let sweep = Sweep::new(grid, &Names::from_environment()?)?;
    sweep.check(false)?;
    let mut rows = Vec::new();
    let all: Vec<u64> = (0..sweep.runs()).collect();
    let failed = sweep.run(&all, &Simulator, progress, &mut |row| {
        rows.push(row);
        Ok(())
    })?;
    match failed.into_iter().next() {
        Some(reason) => Err(Error::Failed(reason)),
        None => Ok(rows),
    }
}

impl Grid {
    /// Returns the setup of `compare` without axes, one run.
    pub fn new() -> Self {
        Grid { name: "grid".into(), base: Base::Compare, axes: Vec::new(), runs: 1, seed: 1 }
    }

    /// Returns the same with another axis, which changes fastest.
    #[must_use]
    pub fn axis<V: Into<Value>>(mut self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.axes.push(Axis { name: name.into(), values });
        self
    }

    /// Returns the grid in the file at `path`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(path, &input::text(path, "a grid")?)
    }

    /// Returns the grid that `text`, the contents of the file at `path`, holds. A scenario that it names is
    /// read.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let name = path.display().to_string();
        let wrong = |reason: String| Error::Grid { grid: name.clone(), reason };
        let mut table: Table =
            text.parse().map_err(|error: toml::de::Error| wrong(error.to_string().trim_end().to_string()))?;
        let base = match table.remove("scenario") {
            None => Base::Compare,
            Some(Value::String(file)) => {
                let file = path.parent().unwrap_or(Path::new("")).join(file);
                Base::Scenario { file: file.display().to_string(), text: input::text(&file, "a scenario")? }
            }
            Some(other) => return Err(wrong(format!("scenario = {other}: valid is the name of a file"))),
        };
        let mut number = |key: &str, valid: std::ops::RangeInclusive<i64>| match table.remove(key) {
            None => Ok(1),
            Some(Value::Integer(value)) if valid.contains(&value) => Ok(value.cast_unsigned()),
            Some(other) => {
                let (low, high) = (valid.start(), valid.end());
                Err(wrong(format!("{key} = {other}: valid is a whole number from {low} to {high}")))
            }
        };
        let runs = number("runs", 1..=1_000_000)? as u32;
        let seed = number("seed", 0..=i64::MAX)?;
        let axes = match table.remove("axes") {
            None => Table::new(),
            Some(Value::Table(axes)) => axes,
            Some(other) => return Err(wrong(format!("axes = {other}: valid is a table"))),
        };
        if let Some(key) = table.keys().next() {
            const KEYS: &str = "scenario, runs, seed, axes";
            let meant = DidYouMean::of_list(key, KEYS);
            return Err(wrong(format!("unknown key `{key}`{meant}: valid are {KEYS}")));
        }
        let axes = axes.into_iter().map(|(name, values)| {
            let values = match values {
                Value::Array(values) => values,
                one => vec![one],
            };
            Axis { name, values }
        });
        Ok(Grid { axes: axes.collect(), base, runs, seed, name })
    }

    /// Returns how many runs it has: the product of the numbers of values, or the largest number if that is
    /// more.
    pub fn runs(&self) -> u64 {
        self.every_axis().map(|(_, count)| count as u64).fold(1, u64::saturating_mul)
    }

    /// Every axis by its name, with how many values it has; the seeds last.
    fn every_axis(&self) -> impl DoubleEndedIterator<Item = (&str, usize)> {
        let seeds = (!self.axes.iter().any(|axis| axis.name == SEED)).then_some((SEED, self.runs as usize));
        self.axes.iter().map(|axis| (axis.name.as_str(), axis.values.len())).chain(seeds)
    }

    /// The values of run number `index`, by axis.
    fn values(&self, index: u64) -> Vec<(&str, Value)> {
        let mut rest = index;
        let places: Vec<(&str, usize)> = self
            .every_axis()
            .rev()
            .map(|(name, count)| {
                let place = rest % count as u64;
                rest /= count as u64;
                (name, place as usize)
            })
            .collect();
        places.into_iter().rev().map(|(name, place)| (name, self.value(name, place))).collect()
    }

    fn value(&self, name: &str, place: usize) -> Value {
        match self.axes.iter().find(|axis| axis.name == name) {
            Some(axis) => axis.values[place].clone(),
            None => Value::Integer(self.seed.wrapping_add(place as u64).cast_signed()),
        }
    }

    /// Some values of an axis as a column: numbers where all values that the axis has are, words otherwise,
    /// so that every part of a table has the same type.
    fn column(&self, name: &str, values: &[Value]) -> Values {
        let all = self.axes.iter().find(|axis| axis.name == name);
        if all.is_none_or(|axis| axis.values.iter().all(|value| number(value).is_some())) {
            return Values::Number(values.iter().map(number).collect());
        }
        Values::Text(values.iter().map(words).collect())
    }

    /// Some values of an axis of times, rates or sizes as numbers, by which they can be sorted: a column for
    /// each unit that the values of the whole axis have. Where a metric of the rows is `own` to them that
    /// says the same, as `duration_s` does, there is none.
    fn measured(&self, name: &str, values: &[Value], own: &[&str]) -> Vec<Column> {
        let Some(axis) = self.axes.iter().find(|axis| axis.name == name) else { return Vec::new() };
        if NAMED.contains(&name) || own.contains(&format!("{name}_s").as_str()) {
            return Vec::new();
        }
        let has = |unit: &Unit| axis.values.iter().any(|value| (unit.read)(value).is_some());
        let column = |unit: &Unit| Column {
            name: format!("{name}_{}", unit.name),
            values: Values::Number(values.iter().map(unit.read).collect()),
        };
        UNITS.iter().filter(|unit| has(unit)).map(column).collect()
    }

    /// Checks what can be said of an axis without a scenario.
    fn check(&self, axis: &Axis) -> Result<(), Error> {
        if axis.values.is_empty() {
            return Err(self.wrong(format_args!("axes: `{}` has no value", axis.name)));
        }
        for (index, value) in axis.values.iter().enumerate() {
            // Both would be the same run.
            if axis.values[..index].contains(value) {
                return Err(self.wrong(format_args!("axes: `{}` has {value} twice", axis.name)));
            }
        }
        // Of the other axes every value is tried in a scenario; seeds may be many.
        let seed = |value: &Value| match value {
            Value::Integer(seed) => *seed >= 0,
            Value::String(text) => text.parse::<u64>().is_ok(),
            _ => false,
        };
        match axis.values.iter().find(|value| !seed(value)) {
            Some(value) if axis.name == SEED => {
                Err(self.wrong(format_args!("axes: seed = `{value}`: valid is a whole number from 0 on")))
            }
            _ => Ok(()),
        }
    }

    /// An error of a scenario that this grid's axes made: its lines are nobody's.
    fn of_axes(&self, mut error: InputError) -> InputError {
        let settings = AXES.join(", ");
        if let (Base::Compare, "", Problem::UnknownKey { valid, .. }) =
            (&self.base, error.owner.as_str(), &mut *error.problem)
        {
            *valid = format!("{settings}, {valid}");
        }
        error.line = None;
        error.owner = if error.owner.is_empty() { "axes".into() } else { format!("axes: {}", error.owner) };
        error
    }

    fn wrong(&self, reason: impl std::fmt::Display) -> Error {
        Error::Grid { grid: self.name.clone(), reason: reason.to_string() }
    }
}

impl Default for Grid {
    fn default() -> Self {
        Grid::new()
    }
}

/// The settings of `compare` whose values are names, not sizes.
const NAMED: [&str; 3] = ["scheme", "trace", "against"];

/// A unit that values of axes can be in.
struct Unit {
    /// What the name of a column ends in.
    name: &'static str,
    /// Returns a value in it; none if the value is of another kind.
    read: fn(&Value) -> Option<f64>,
}

/// What `value` spells, if it is text that spells such a thing.
fn spelled<T: FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

/// The units of axes.
const UNITS: [Unit; 4] = [
    Unit { name: "ms", read: |value| Some(spelled::<Duration>(value)?.as_nanos() as f64 / 1e6) },
    Unit { name: "mbps", read: |value| Some(spelled::<Rate>(value)?.as_mbps_f64()) },
    Unit {
        name: "packets",
        read: |value| match spelled(value)? {
            Limit::Packets(packets) => Some(f64::from(packets)),
            Limit::Bytes(_) => None,
        },
    },
    Unit {
        name: "bytes",
        read: |value| match spelled(value)? {
            Limit::Packets(_) => None,
            Limit::Bytes(bytes) => Some(bytes.as_f64()),
        },
    },
];

/// The beginning of an axis of an option of the schemes: `option.delta`.
const OPTION: &str = "option.";

/// A value as the command line has it.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The axis of the seeds.
const SEED: &str = "seed";

/// A validated grid with its traces.
#[derive(Clone, Debug)]
pub struct Sweep {
    grid: Grid,
    registry: Registry,
    traces: Traces,
}

impl Sweep {
    /// Plans a sweep whose traces `names` knows. Fails if an axis is empty or its name stands for nothing,
    /// and if a value is wrong.
    pub fn new(grid: &Grid, names: &Names) -> Result<Self, Error> {
        Self::with(&Registry::standard(), grid, names)
    }

    /// Returns the same with the algorithms of `registry` in schemes and scenarios.
    pub fn with(registry: &Registry, grid: &Grid, names: &Names) -> Result<Self, Error> {
        for (index, axis) in grid.axes.iter().enumerate() {
            grid.check(axis)?;
            if grid.axes[..index].iter().any(|other| other.name == axis.name) {
                return Err(grid.wrong(format_args!("axes: `{}` is given twice", axis.name)));
            }
        }
        if grid.runs() > MOST_RUNS {
            return Err(grid.wrong(format_args!("{} runs: valid are up to {MOST_RUNS}", grid.runs())));
        }
        let seeds = [("runs", u64::from(grid.runs)), ("seed", grid.seed)];
        if let Some((key, value)) = seeds.iter().find(|(_, value)| *value != 1)
            && grid.axes.iter().any(|axis| axis.name == SEED)
        {
            let reason = "the axis `seed` says which seeds there are; give one of the two";
            return Err(grid.wrong(format_args!("{key} = {value}: {reason}")));
        }
        let mut sweep = Sweep { grid: grid.clone(), registry: registry.clone(), traces: Traces::new() };
        for index in sweep.samples() {
            let scenario = sweep.scenario(index)?;
            let folder = match &grid.base {
                Base::Scenario { file, .. } => file.clone(),
                Base::Compare => grid.name.clone(),
            };
            sweep.traces.extend(input::traces(&scenario, Path::new(&folder), names)?);
        }
        Ok(sweep)
    }

    /// Returns how many runs there are.
    pub fn runs(&self) -> u64 {
        self.grid.runs()
    }

    /// Returns the traces of its runs, by the names that these have for them.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Returns the names of its axes, the seeds last.
    pub fn axes(&self) -> Vec<&str> {
        self.grid.every_axis().map(|(name, _)| name).collect()
    }

    /// Runs that together have every value of every axis, but not every combination.
    fn samples(&self) -> Vec<u64> {
        let mut samples = vec![0];
        let mut stride = 1;
        for (name, count) in self.grid.every_axis().rev() {
            // A seed is as good as another.
            let most = if name == SEED { 1 } else { count as u64 };
            samples.extend((1..most).map(|place| place * stride));
            stride *= count as u64;
        }
        samples
    }

    /// Refuses a grid some of whose runs would take hours or fill the memory, unless `any_cost` allows it.
    pub fn check(&self, any_cost: bool) -> Result<(), Error> {
        self.samples().into_iter().filter(|_| !any_cost).try_for_each(|index| {
            let scenario = self.scenario(index)?;
            jobs::check_cost_of(&format!("run {index}"), &scenario, &self.traces)
        })
    }

    /// Returns run number `index` as a scenario.
    pub fn scenario(&self, index: u64) -> Result<Scenario, Error> {
        let values = self.grid.values(index);
        let (mut scenario, paths) = match &self.grid.base {
            Base::Scenario { file, text } => (file::read_with(&self.registry, file, text)?, values),
            Base::Compare => {
                let own = |name: &str| AXES.contains(&name) || name.starts_with(OPTION);
                let (own, paths) = values.into_iter().partition(|(name, _)| own(name));
                (self.comparison(own)?, paths)
            }
        };
        if !paths.is_empty() {
            let text = file::write(&scenario);
            let mut table: Table = text.parse().map_err(|error| self.grid.wrong(error))?;
            for (name, value) in paths {
                path::set(&mut table, name, &value)
                    .map_err(|reason| self.grid.wrong(format_args!("axes: `{name}`: {reason}")))?;
            }
            let text = toml::to_string(&table).map_err(|error| self.grid.wrong(error))?;
            let read = file::read_with(&self.registry, &self.grid.name, &text);
            scenario = read.map_err(|error| self.grid.of_axes(error))?;
        }
        let state = scenario.record.state;
        scenario.record =
            Record { state, unfairness: scenario.record.unfairness, ..Record::summary(scenario.duration) };
        Ok(scenario)
    }

    /// The scenario of `compare` with these settings.
    fn comparison(&self, values: Vec<(&str, Value)>) -> Result<Scenario, Error> {
        let scheme = self.scheme(&values)?;
        let mut compare = Compare::mahimahi(Scheme::parse(DEFAULT_CONTROLLER)?, "");
        for (name, value) in values {
            let text = words(&value);
            let wrong =
                |valid: &str| self.grid.wrong(format_args!("axes: {name} = `{text}`: valid is {valid}"));
            match name {
                // Taken together, above.
                "scheme" => {}
                name if name.starts_with(OPTION) => {}
                "trace" => compare.trace.clone_from(&text),
                "rtt" => compare.rtt = text.parse().map_err(|_| wrong("a time such as `100ms`"))?,
                "buffer" => compare.buffer = text.parse().map_err(|_| wrong("a size such as `250pkt`"))?,
                "duration" => compare.duration = text.parse().map_err(|_| wrong("a time such as `60s`"))?,
                "trace_offset" if text == "random" => compare.trace_offset = TraceOffset::Random,
                "trace_offset" => {
                    let at = text.parse().map_err(|_| wrong("a time such as `1.5s`, or `random`"))?;
                    compare.trace_offset = TraceOffset::At(at);
                }
                "against" if text == "none" => compare.against = None,
                "against" => compare.against = Some(Scheme::parse_with(&self.registry, &text)?),
                _ => compare.seed = text.parse().map_err(|_| wrong("a whole number"))?,
            }
        }
        compare.scheme = scheme.ok_or_else(|| self.grid.wrong("axes: there is no `scheme`"))?;
        if compare.trace.is_empty() {
            return Err(self.grid.wrong("axes: there is no `trace`"));
        }
        compare.record = Record::summary(compare.duration);
        Ok(compare.scenario()?)
    }

    /// The scheme of a run of `compare`'s setup, with the options that are axes of their own.
    fn scheme(&self, values: &[(&str, Value)]) -> Result<Option<Scheme>, Error> {
        let Some((_, scheme)) = values.iter().find(|(name, _)| *name == "scheme") else { return Ok(None) };
        let mut text = words(scheme);
        for (name, value) in values {
            if let Some(option) = name.strip_prefix(OPTION) {
                text += &format!("{}{option}={}", if text.contains(':') { ',' } else { ':' }, words(value));
            }
        }
        Ok(Some(Scheme::parse_with(&self.registry, &text)?))
    }

    /// Returns the identity of run number `index` by `runner`: equal for runs that are equal, however their
    /// scenarios were spelled, and another once a trace holds something else.
    pub fn run_id(&self, index: u64, runner: &dyn Runner) -> Result<RunId, Error> {
        Ok(self.identity(&self.scenario(index)?, runner))
    }

    fn identity(&self, scenario: &Scenario, runner: &dyn Runner) -> RunId {
        RunId::of(scenario, &self.traces, runner.host())
    }

    /// Runs those of the grid's runs that are `wanted`, several at a time, and hands over their rows in the
    /// order of `wanted`, each as soon as those before it are done. Returns which runs a stack that others
    /// wrote has ended, and why: these have no row.
    pub fn run(
        &self,
        wanted: &[u64],
        runner: &dyn Runner,
        progress: &dyn Progress,
        row: &mut (dyn FnMut(Row) -> Result<(), Error> + Send),
    ) -> Result<Vec<String>, Error> {
        progress.begin("sweeping", wanted.len());
        let one = |&index: &u64| -> Result<Row, Error> {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let scenario = self.scenario(index)?;
            let label = format!("run {index}, seed {}", scenario.seed);
            let outcome = runner.run(&scenario, &self.traces);
            progress.step(&scenario.name);
            let mut run = outcome.map_err(|cause| Error::run(label, cause))?.run;
            if self.grid.base == Base::Compare {
                let values = self.grid.values(index);
                if let Some(scheme) = self.scheme(&values)? {
                    run.scheme = scheme.to_string();
                }
                if let Some((_, Value::String(trace))) = values.into_iter().find(|(name, _)| *name == "trace")
                {
                    run.trace = trace;
                }
            }
            // A runner that names its runs has made the identity already.
            let run_id = run.run_id.unwrap_or_else(|| self.identity(&scenario, runner));
            Ok(Row { index, run_id, run })
        };
        let mut failed = Vec::new();
        let one = |index: &u64| match one(index) {
            Err(error) if error.is_of_one_run() => Ok(Err(error.to_string())),
            made => made.map(Ok),
        };
        parallel::each(wanted, one, &mut |made| match made {
            Ok(made) => row(made),
            Err(reason) => {
                failed.push(reason);
                Ok(())
            }
        })?;
        Ok(failed)
    }

    /// Returns which runs the journal at `journal` has, and where the line of each begins.
    pub fn kept(&self, journal: &Path, runner: &dyn Runner) -> Result<Vec<(u64, u64)>, Error> {
        folder::Places::of(self, runner, journal, Shard::WHOLE)?.starts(journal)
    }

    /// Returns where run number `index` is on every axis: the axis and its value, as a table has them.
    pub fn place(&self, index: u64) -> Vec<(String, String)> {
        let values = self.grid.values(index).into_iter();
        values.map(|(name, value)| (name.to_string(), words(&value))).collect()
    }

    /// Returns the rows as the columns of `runs.parquet`: `run_id`, every axis, every metric.
    pub fn runs_frame(&self, rows: &[Row]) -> Result<Frame, Error> {
        let frame = frame::runs(rows.iter().map(|row| &row.run));
        // The columns of the rows themselves are in canonical words.
        let own: Vec<&str> = frame.columns().iter().map(|column| column.name.as_str()).collect();
        let mut keys = vec![ids(rows, |_| 1)];
        for (name, _) in self.grid.every_axis() {
            let values: Vec<Value> = rows
                .iter()
                .flat_map(|row| self.grid.values(row.index).into_iter().filter(|(axis, _)| *axis == name))
                .map(|(_, value)| value)
                .collect();
            if !own.contains(&name) {
                keys.push(Column { name: name.to_string(), values: self.grid.column(name, &values) });
            }
            keys.extend(self.grid.measured(name, &values, &own));
        }
        frame.keyed_by(keys)
    }

    /// Returns the flows of rows as the columns of `flows.parquet`, each with the `run_id` of its run.
    pub fn flows_frame(&self, rows: &[Row]) -> Result<Frame, Error> {
        let frame = frame::flows(rows.iter().map(|row| &row.run)).without("run");
        frame.keyed_by(vec![ids(rows, |run| run.flows.len())])
    }

    /// Returns the links of rows as the columns of `links.parquet`, each with the `run_id` of its run.
    pub fn links_frame(&self, rows: &[Row]) -> Result<Frame, Error> {
        let frame = frame::links(rows.iter().map(|row| &row.run)).without("run");
        frame.keyed_by(vec![ids(rows, |run| run.links.len())])
    }
}

/// The settings of `compare` that can be axes.
const AXES: [&str; 8] = ["scheme", "trace", "rtt", "buffer", "duration", "trace_offset", "against", SEED];

/// The identity of every row, as often as `times` says.
fn ids(rows: &[Row], times: impl Fn(&Run) -> usize) -> Column {
    let ids = rows.iter().flat_map(|row| std::iter::repeat_n(row.run_id.to_string(), times(&row.run)));
    Column { name: "run_id".into(), values: Values::Text(ids.collect()) }
}

/// The value of an axis as a number, if it is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}
