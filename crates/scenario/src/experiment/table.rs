//! Measurements by their place in an experiment's matrix.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::median::median;
use crate::outcome::Run;

/// One direction of the matrix: `scheme`, `trace`, or something swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Its points, in the order of the file.
    pub labels: Vec<String>,
}

/// A point of the matrix: an index into each dimension's labels.
pub type Point = Vec<usize>;

/// The lists of a row whose elements make a dimension of their own in an expression.
pub(crate) const LISTS: [&str; 2] = ["links", "flows"];

/// The numbers of every run, by point. Runs of one point differ in their seed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    dimensions: Vec<Dimension>,
    /// A dimension for each of [`LISTS`], with the names that any run has, in order of appearance.
    lists: Vec<Dimension>,
    /// For each point, the runs' numbers by name, in the order of adding.
    cells: BTreeMap<Point, Vec<Arc<BTreeMap<String, f64>>>>,
}

impl Table {
    /// Returns an empty table.
    pub fn new(dimensions: &[Dimension]) -> Self {
        let list = |name: &str| Dimension { name: name.to_string(), labels: Vec::new() };
        let lists = LISTS.map(list).to_vec();
        Table { dimensions: dimensions.to_vec(), lists, cells: BTreeMap::new() }
    }

    /// Adds a run at `point`. Runs of a point come in the order of their seeds.
    pub fn add(&mut self, point: &[usize], run: &Run) {
        debug_assert_eq!(point.len(), self.dimensions.len());
        note(&mut self.lists[0], run.links.iter().map(|link| link.name.as_str()));
        note(&mut self.lists[1], run.flows.iter().map(|flow| flow.name.as_str()));
        self.cells.entry(point.to_vec()).or_default().push(Arc::new(metrics(run)));
    }

    /// Returns a table for each seed, with its run at every point. Returns none where a point has one run
    /// alone, or not all have as many.
    pub(crate) fn by_seed(&self) -> Vec<Table> {
        let seeds = self.cells.values().map(Vec::len).min().unwrap_or(0);
        if seeds < 2 || self.cells.values().any(|runs| runs.len() != seeds) {
            return Vec::new();
        }
        let one = |seed: usize| {
            let cells = self.cells.iter().map(|(point, runs)| (point.clone(), vec![runs[seed].clone()]));
            Table { dimensions: self.dimensions.clone(), lists: self.lists.clone(), cells: cells.collect() }
        };
        (0..seeds).map(one).collect()
    }

    /// Returns the directions of the matrix.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The directions of the matrix, and those that the elements of a row's lists make.
    pub(crate) fn all_dimensions(&self) -> impl Iterator<Item = &Dimension> {
        self.dimensions.iter().chain(&self.lists)
    }

    /// One of [`Table::all_dimensions`].
    pub(crate) fn dimension(&self, index: usize) -> &Dimension {
        match self.dimensions.get(index) {
            Some(dimension) => dimension,
            None => &self.lists[index - self.dimensions.len()],
        }
    }

    /// The points that have runs.
    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.cells.keys()
    }

    /// The median of `metric` over the runs at `point`; none when half of them or more do not have it.
    pub(crate) fn median(&self, point: &Point, metric: &str) -> Option<f64> {
        let runs = self.cells.get(point)?;
        let mut values: Vec<f64> = self.values(point, metric).collect();
        if values.len() * 2 <= runs.len() { None } else { median(&mut values) }
    }

    /// `metric` of every run at `point` that has it.
    pub(crate) fn values(&self, point: &Point, metric: &str) -> impl Iterator<Item = f64> {
        self.cells.get(point).into_iter().flatten().filter_map(move |run| run.get(metric).copied())
    }

    /// Whether any run at `point` has a number whose name begins with `prefix`.
    pub(crate) fn has(&self, point: &Point, prefix: &str) -> bool {
        let begins = |run: &Arc<BTreeMap<String, f64>>| {
            run.range(prefix.to_string()..).next().is_some_and(|(name, _)| name.starts_with(prefix))
        };
        self.cells.get(point).is_some_and(|runs| runs.iter().any(begins))
    }

    /// The names of all numbers that any run has.
    pub(crate) fn metrics(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.cells.values().flatten().flat_map(|run| run.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Adds the names that `dimension` does not have yet.
fn note<'r>(dimension: &mut Dimension, names: impl Iterator<Item = &'r str>) {
    for (index, name) in names.map(word).enumerate() {
        // Runs mostly have the same names in the same places.
        if dimension.labels.get(index) != Some(&name) && !dimension.labels.contains(&name) {
            dimension.labels.push(name);
        }
    }
}

/// Returns every number of a row, by the path of its JSON, dots between the parts. Elements of `links` and
/// `flows` go by their names, with an underscore for every character that is not a letter or a digit.
pub fn metrics(run: &Run) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    flatten(String::new(), &run.value(), &mut metrics);
    metrics.remove("seed");
    metrics
}

fn flatten(path: String, value: &Value, metrics: &mut BTreeMap<String, f64>) {
    let below = |part: &str| if path.is_empty() { part.to_string() } else { format!("{path}.{part}") };
    match value {
        Value::Number(number) => {
            metrics.extend(number.as_f64().map(|number| (path, number)));
        }
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| *key != "spread") {
                flatten(below(key), value, metrics);
            }
        }
        Value::Array(list) => {
            for value in list {
                if let Some(name) = value.get("name").and_then(Value::as_str) {
                    flatten(below(&word(name)), value, metrics);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// `name` as a part of a metric's path.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
