//! From a tree and a table of measurements to numbers or truth, point by point.

use std::collections::BTreeMap;

use super::{
    At, Expression, ExpressionError, Fault, Function, Link, Node, Operator, PARETO_MARGIN, Selector,
    TOLERANCE,
};
use crate::experiment::table::{Dimension, LISTS, Point, Table};
use crate::median::median;

/// The dimension that the runs of one point make, where a function reduces over it.
const SEEDS: &str = "seeds";
/// The dimension of schemes.
const SCHEME: &str = "scheme";
/// What a Pareto comparison looks at.
const THROUGHPUT: &str = "throughput_mbps";
const DELAY: &str = "queueing_delay_ms.p95";

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Numbers.
    Number(Grid<f64>),
    /// Truth values.
    Truth(Grid<bool>),
}

/// A value for every point of some of the dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid<T> {
    /// Indices of the dimensions, ascending.
    dimensions: Vec<usize>,
    cells: BTreeMap<Point, T>,
}

/// What stands to the left and to the right of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    /// Both, at every point.
    pub(crate) grid: Grid<[f64; 2]>,
    /// Whether the right side is the most that is allowed, and not the least.
    pub(crate) at_most: bool,
}

impl Expression {
    /// Evaluates the expression.
    pub fn evaluate(&self, table: &Table) -> Result<Value, ExpressionError> {
        Evaluator { table, by_seed: false }.value(&self.root)
    }

    /// Evaluates a check: the points at which it holds.
    pub fn check(&self, table: &Table) -> Result<Grid<bool>, ExpressionError> {
        Evaluator { table, by_seed: false }.truth(&self.root)
    }

    /// Evaluates both sides of a check that is a single comparison with `<`, `<=`, `>` or `>=`; none if it is
    /// anything else.
    pub(crate) fn sides(&self, table: &Table) -> Result<Option<Sides>, ExpressionError> {
        let Node::Comparison(_, left, links) = &self.root else { return Ok(None) };
        let (right, at_most) = match links.as_slice() {
            [Link::Less(right) | Link::AtMost(right)] => (right, true),
            [Link::More(right) | Link::AtLeast(right)] => (right, false),
            _ => return Ok(None),
        };
        let evaluator = Evaluator { table, by_seed: false };
        let (left, right) = (evaluator.number(left)?, evaluator.number(right)?);
        Ok(Some(Sides { grid: left.zip(&right, |left, right| [*left, *right]), at_most }))
    }

    /// Evaluates what the check is about; see [`Expression::subjects`].
    pub(crate) fn measured(&self, table: &Table) -> Result<Vec<Value>, ExpressionError> {
        self.subjects().into_iter().map(|node| Evaluator { table, by_seed: false }.value(node)).collect()
    }
}

impl Value {
    /// Returns the value in words: one number, or one for every point with its labels.
    pub fn show(&self, table: &Table) -> String {
        match self {
            Value::Number(grid) => grid.show(table, |number| short(*number)),
            Value::Truth(grid) => grid.show(table, |truth| truth.to_string()),
        }
    }

    /// Returns its numbers, if they are numbers.
    pub(crate) fn numbers(&self) -> Option<&Grid<f64>> {
        match self {
            Value::Number(grid) => Some(grid),
            Value::Truth(_) => None,
        }
    }
}

impl Grid<f64> {
    /// Returns the `depth`-th lowest and highest of `grids` at each point; `depth` counts from 1. Points that
    /// a grid lacks are left out.
    pub(crate) fn between(grids: &[&Self], depth: usize) -> Grid<[f64; 2]> {
        let at = |point: &Point| {
            let values: Option<Vec<f64>> = grids.iter().map(|grid| grid.cells.get(point).copied()).collect();
            let mut values = values?;
            values.sort_by(f64::total_cmp);
            Some([*values.get(depth - 1)?, *values.get(values.len() - depth)?])
        };
        let Some(first) = grids.first() else {
            return Grid { dimensions: Vec::new(), cells: BTreeMap::new() };
        };
        let cells = first.cells.keys().filter_map(|point| Some((point.clone(), at(point)?))).collect();
        Grid { dimensions: first.dimensions.clone(), cells }
    }
}

impl Grid<[f64; 2]> {
    /// Returns the intervals in words.
    pub(crate) fn show_intervals(&self, table: &Table) -> String {
        self.show(table, |[low, high]| format!("{} to {}", short(*low), short(*high)))
    }
}

impl Grid<bool> {
    /// Returns whether it is true at every point.
    pub fn holds(&self) -> bool {
        !self.cells.is_empty() && self.cells.values().all(|truth| *truth)
    }

    /// Every point and whether it is true there.
    pub(crate) fn points(&self) -> impl Iterator<Item = (&Point, bool)> {
        self.cells.iter().map(|(point, truth)| (point, *truth))
    }

    /// Whether it is true at a point of the same dimensions.
    pub(crate) fn is_true_at(&self, point: &Point) -> bool {
        self.cells.get(point) == Some(&true)
    }

    /// At how many points it is true, in words.
    pub(crate) fn tally(&self) -> String {
        let points = self.cells.len();
        format!("at {} of {points} points", self.cells.values().filter(|truth| **truth).count())
    }

    /// Returns the points at which it is false, in words; empty for a single value.
    pub fn failures(&self, table: &Table) -> Vec<String> {
        let failing = self.cells.iter().filter(|(point, truth)| !**truth && !point.is_empty());
        failing.map(|(point, _)| self.label(table, point)).collect()
    }
}

/// `number` with four significant digits.
pub(crate) fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = libm::floor(libm::log10(number.abs())) as i32;
    let decimals = (3 - magnitude).clamp(0, 12) as usize;
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

impl<T> Grid<T> {
    /// How many points it has.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Every point and its value, in order.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&Point, &T)> {
        self.cells.iter()
    }

    /// The value where `other` has `point`; a grid that lacks a dimension of the other has the same all along
    /// it.
    pub(crate) fn beside<U>(&self, other: &Grid<U>, point: &Point) -> Option<&T> {
        let own =
            |dimension: &usize| Some(point[other.dimensions.iter().position(|theirs| theirs == dimension)?]);
        self.cells.get(&self.dimensions.iter().map(own).collect::<Option<Point>>()?)
    }

    fn single(value: T) -> Self {
        Grid { dimensions: Vec::new(), cells: BTreeMap::from([(Point::new(), value)]) }
    }

    /// A point in words.
    pub(crate) fn label(&self, table: &Table, point: &Point) -> String {
        let label = |(&dimension, &index): (&usize, &usize)| {
            let Dimension { name, labels } = table.dimension(dimension);
            let label = labels.get(index).map_or("?", String::as_str);
            if name == SCHEME || name == "trace" || LISTS.contains(&name.as_str()) {
                label.to_string()
            } else {
                format!("{name} {label}")
            }
        };
        self.dimensions.iter().zip(point).map(label).collect::<Vec<_>>().join(" ")
    }

    fn show(&self, table: &Table, show: impl Fn(&T) -> String) -> String {
        let cell = |(point, value): (&Point, &T)| match point.is_empty() {
            true => show(value),
            false => format!("{}: {}", self.label(table, point), show(value)),
        };
        self.cells.iter().map(cell).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn map<U>(&self, f: impl Fn(&T) -> U) -> Grid<U> {
        let cells = self.cells.iter().map(|(point, value)| (point.clone(), f(value))).collect();
        Grid { dimensions: self.dimensions.clone(), cells }
    }

    /// Combines two grids point by point; one that lacks a dimension of the other counts the same all along
    /// it.
    fn zip<U, V>(&self, other: &Grid<U>, f: impl Fn(&T, &U) -> V) -> Grid<V> {
        let mut dimensions: Vec<usize> = self.dimensions.iter().chain(&other.dimensions).copied().collect();
        dimensions.sort_unstable();
        dimensions.dedup();
        let mut cells = BTreeMap::new();
        for (left, mine) in &self.cells {
            for (right, theirs) in &other.cells {
                let side = |dimension: &usize, own: &[usize], point: &Point| {
                    own.iter().position(|mine| mine == dimension).map(|index| point[index])
                };
                let joined: Option<Point> = dimensions
                    .iter()
                    .map(|dimension| {
                        let left = side(dimension, &self.dimensions, left);
                        let right = side(dimension, &other.dimensions, right);
                        match (left, right) {
                            (Some(left), Some(right)) => (left == right).then_some(left),
                            (one, two) => one.or(two),
                        }
                    })
                    .collect();
                if let Some(point) = joined {
                    cells.insert(point, f(mine, theirs));
                }
            }
        }
        Grid { dimensions, cells }
    }

    /// The grid without `dimensions`: the values along them, in order, for each remaining point.
    fn along(&self, dimensions: &[usize]) -> Grid<Vec<&T>> {
        let stays = |place: &usize| !dimensions.contains(&self.dimensions[*place]);
        let places: Vec<usize> = (0..self.dimensions.len()).filter(stays).collect();
        let mut cells: BTreeMap<Point, Vec<&T>> = BTreeMap::new();
        for (point, value) in &self.cells {
            let rest = places.iter().map(|&place| point[place]).collect();
            cells.entry(rest).or_default().push(value);
        }
        Grid { dimensions: places.iter().map(|&place| self.dimensions[place]).collect(), cells }
    }
}

struct Evaluator<'t> {
    table: &'t Table,
    /// Whether a metric is every run's number, along [`SEEDS`], instead of their median.
    by_seed: bool,
}

impl Evaluator<'_> {
    fn value(&self, node: &Node) -> Result<Value, ExpressionError> {
        match node {
            Node::Comparison(..) | Node::Not(_) | Node::And(_) | Node::Or(_) => {
                self.truth(node).map(Value::Truth)
            }
            Node::Call(_, Function::Increasing | Function::Decreasing | Function::Pareto, _) => {
                self.truth(node).map(Value::Truth)
            }
            _ => self.number(node).map(Value::Number),
        }
    }

    fn number(&self, node: &Node) -> Result<Grid<f64>, ExpressionError> {
        let kind = |at: usize, found| {
            Err(ExpressionError { at, fault: Fault::Kind { expected: "a number", found } })
        };
        match node {
            Node::Number(number) => Ok(Grid::single(*number)),
            Node::Text(at, _) => kind(at.0, "a label"),
            Node::Metric(at, name, selectors) => self.metric(*at, name, selectors),
            Node::Negative(inner) => Ok(self.number(inner)?.map(|number| -number)),
            Node::Arithmetic(left, operator, right) => {
                let (left, right) = (self.number(left)?, self.number(right)?);
                Ok(left.zip(&right, |left, right| match operator {
                    Operator::Plus => left + right,
                    Operator::Minus => left - right,
                    Operator::Times => left * right,
                    Operator::Over => left / right,
                }))
            }
            Node::Call(at, function, arguments) => match function {
                Function::Increasing | Function::Decreasing | Function::Pareto => kind(at.0, "a truth value"),
                Function::Abs => Ok(self.number(&arguments[0])?.map(|number| number.abs())),
                Function::Log10 => Ok(self.number(&arguments[0])?.map(|number| libm::log10(*number))),
                Function::Value => self.labels(*at, &arguments[0]),
                _ => self.reduce(*function, arguments),
            },
            Node::Comparison(at, ..) => kind(at.0, "a truth value"),
            Node::Not(_) | Node::And(_) | Node::Or(_) => kind(1, "a truth value"),
        }
    }

    fn truth(&self, node: &Node) -> Result<Grid<bool>, ExpressionError> {
        match node {
            Node::Comparison(_, first, links) => {
                let mut left = self.number(first)?;
                let mut holds: Option<Grid<bool>> = None;
                for link in links {
                    let (link_holds, next) = self.link(&left, link)?;
                    holds = Some(match holds {
                        Some(holds) => holds.zip(&link_holds, |one, two| *one && *two),
                        None => link_holds,
                    });
                    left = next;
                }
                Ok(holds.expect("a comparison has a link"))
            }
            Node::Not(inner) => Ok(self.truth(inner)?.map(|truth| !truth)),
            Node::And(parts) => self.junction(parts, |one, two| one && two),
            Node::Or(parts) => self.junction(parts, |one, two| one || two),
            Node::Call(at, function @ (Function::Increasing | Function::Decreasing), arguments) => {
                let (grid, dimension) = (self.number(&arguments[0])?, self.dimension(&arguments[1])?);
                if !grid.dimensions.contains(&dimension) {
                    let fault =
                        Fault::Kind { expected: "a dimension along which it varies", found: "one it lacks" };
                    return Err(ExpressionError { at: at.0, fault });
                }
                let ordered = |pair: &[&f64]| match function {
                    Function::Increasing => pair[0] < pair[1],
                    _ => pair[0] > pair[1],
                };
                Ok(grid.along(&[dimension]).map(|values| values.windows(2).all(ordered)))
            }
            Node::Call(_, Function::Pareto, arguments) => self.pareto(&arguments[0]),
            Node::Metric(at, ..) | Node::Call(at, ..) | Node::Text(at, _) => {
                let fault = Fault::Kind { expected: "a comparison", found: "a value" };
                Err(ExpressionError { at: at.0, fault })
            }
            Node::Number(_) | Node::Negative(_) | Node::Arithmetic(..) => Err(ExpressionError {
                at: 1,
                fault: Fault::Kind { expected: "a comparison", found: "a number" },
            }),
        }
    }

    fn junction(
        &self,
        parts: &[Node],
        join: impl Fn(bool, bool) -> bool,
    ) -> Result<Grid<bool>, ExpressionError> {
        let mut holds = self.truth(&parts[0])?;
        for part in &parts[1..] {
            holds = holds.zip(&self.truth(part)?, |one, two| join(*one, *two));
        }
        Ok(holds)
    }

    /// Whether one link of a chain holds, and what stands to the left of the next.
    fn link(&self, left: &Grid<f64>, link: &Link) -> Result<(Grid<bool>, Grid<f64>), ExpressionError> {
        let pair = |right: &Node, test: fn(f64, f64) -> bool| {
            let right = self.number(right)?;
            Ok((left.zip(&right, |left, right| test(*left, *right)), right))
        };
        match link {
            Link::Less(right) => pair(right, |left, right| left < right),
            Link::AtMost(right) => pair(right, |left, right| left <= right),
            Link::More(right) => pair(right, |left, right| left > right),
            Link::AtLeast(right) => pair(right, |left, right| left >= right),
            Link::About(right) => pair(right, |left, right| (left - right).abs() <= TOLERANCE * right.abs()),
            Link::Between(low, high) => {
                let (low, high) = (self.number(low)?, self.number(high)?);
                let above = left.zip(&low, |left, low| left >= low);
                let below = left.zip(&high, |left, high| left <= high);
                Ok((above.zip(&below, |one, two| *one && *two), high))
            }
            Link::Around(centre, tolerance, relative) => {
                let (centre, tolerance) = (self.number(centre)?, self.number(tolerance)?);
                let width = centre.zip(&tolerance, |centre, tolerance| match relative {
                    true => centre.abs() * tolerance / 100.0,
                    false => *tolerance,
                });
                let off = left.zip(&centre, |left, centre| (left - centre).abs());
                Ok((off.zip(&width, |off, width| off <= width), centre))
            }
        }
    }

    fn reduce(&self, function: Function, arguments: &[Node]) -> Result<Grid<f64>, ExpressionError> {
        let is_seeds = |node: &Node| matches!(node, Node::Metric(_, name, _) if name == SEEDS);
        let by_seed = self.by_seed || arguments[1..].iter().any(is_seeds);
        let grid = Evaluator { table: self.table, by_seed }.number(&arguments[0])?;
        let dimension = |node: &Node| if is_seeds(node) { Ok(self.seeds()) } else { self.dimension(node) };
        let dimensions = arguments[1..].iter().map(dimension).collect::<Result<Vec<_>, _>>()?;
        let values = match dimensions.is_empty() {
            true => Grid::single(grid.cells.values().collect()),
            false => grid.along(&dimensions),
        };
        Ok(values.map(|values| {
            let values = values.iter().map(|value| **value);
            match function {
                Function::Count => values.count() as f64,
                Function::GeometricMean => {
                    let count = values.len() as f64;
                    libm::exp(values.map(libm::log).sum::<f64>() / count)
                }
                Function::Sum => values.sum(),
                Function::Min => values.fold(f64::INFINITY, f64::min),
                Function::Max => values.fold(f64::NEG_INFINITY, f64::max),
                Function::Median => median(&mut values.collect::<Vec<_>>()).unwrap_or(f64::NAN),
                Function::Deviation => {
                    let count = values.len() as f64;
                    let mean = values.clone().sum::<f64>() / count;
                    libm::sqrt(values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / count)
                }
                // jain84
                Function::Jain => {
                    let squares: f64 = values.clone().map(|value| value * value).sum();
                    let (count, sum) = (values.len() as f64, values.sum::<f64>());
                    sum * sum / (count * squares)
                }
                _ => {
                    let count = values.len() as f64;
                    values.sum::<f64>() / count
                }
            }
        }))
    }

    /// The dimension of the seeds: behind all others.
    fn seeds(&self) -> usize {
        self.table.all_dimensions().count()
    }

    /// The dimension that an argument names.
    fn dimension(&self, node: &Node) -> Result<usize, ExpressionError> {
        match node {
            Node::Metric(at, name, selectors) if selectors.is_empty() => self.find_dimension(*at, name),
            Node::Metric(at, ..) | Node::Text(at, _) | Node::Call(at, ..) | Node::Comparison(at, ..) => {
                let fault = Fault::Kind { expected: "the name of a dimension", found: "an expression" };
                Err(ExpressionError { at: at.0, fault })
            }
            _ => Err(ExpressionError {
                at: 1,
                fault: Fault::Kind { expected: "the name of a dimension", found: "an expression" },
            }),
        }
    }

    fn find_dimension(&self, at: At, name: &str) -> Result<usize, ExpressionError> {
        self.table.all_dimensions().position(|dimension| dimension.name == name).ok_or_else(|| {
            let valid = list(self.table.dimensions().iter().map(|dimension| dimension.name.as_str()));
            ExpressionError {
                at: at.0,
                fault: Fault::Unknown { what: "dimension", name: name.to_string(), valid },
            }
        })
    }

    fn find_label(&self, at: At, dimension: usize, label: &str) -> Result<usize, ExpressionError> {
        let Dimension { labels, .. } = self.table.dimension(dimension);
        labels.iter().position(|other| other == label).ok_or_else(|| {
            let valid = list(labels.iter().map(String::as_str));
            ExpressionError {
                at: at.0,
                fault: Fault::Unknown { what: "label", name: label.to_string(), valid },
            }
        })
    }

    /// The numbers that the labels of a dimension are.
    fn labels(&self, at: At, node: &Node) -> Result<Grid<f64>, ExpressionError> {
        let dimension = self.dimension(node)?;
        let Dimension { labels, .. } = self.table.dimension(dimension);
        let number = |(index, label): (usize, &String)| match label.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok((vec![index], number)),
            _ => {
                let fault = Fault::Kind { expected: "a dimension of numbers", found: "one of words" };
                Err(ExpressionError { at: at.0, fault })
            }
        };
        let cells = labels.iter().enumerate().map(number).collect::<Result<BTreeMap<_, _>, _>>()?;
        Ok(match labels.len() {
            1 => Grid::single(cells[&vec![0]]),
            _ => Grid { dimensions: vec![dimension], cells },
        })
    }

    /// The metric at every point that the selectors leave, without the dimensions that have but one point.
    fn metric(&self, at: At, name: &str, selectors: &[Selector]) -> Result<Grid<f64>, ExpressionError> {
        let dimensions = self.table.dimensions();
        let mut fixed = vec![None; dimensions.len()];
        let mut left_out = vec![Vec::new(); dimensions.len()];
        for selector in selectors {
            let dimension = self.find_dimension(selector.at, &selector.dimension)?;
            let label = self.find_label(selector.at, dimension, &selector.label)?;
            if dimension >= dimensions.len() {
                let fault = Fault::Kind { expected: "a dimension of the matrix", found: "a list of the row" };
                return Err(ExpressionError { at: selector.at.0, fault });
            }
            match selector.except {
                true => left_out[dimension].push(label),
                false => fixed[dimension] = Some(label),
            }
        }
        let spread = Spread::of(self.table, name);
        let mut free: Vec<usize> = (0..dimensions.len())
            .filter(|&dimension| fixed[dimension].is_none() && dimensions[dimension].labels.len() > 1)
            .collect();
        let mut cells = BTreeMap::new();
        for point in self.table.points() {
            let elsewhere =
                |(index, fixed): (&usize, &Option<usize>)| fixed.is_some_and(|fixed| fixed != *index);
            let is_left_out = |(index, labels): (&usize, &Vec<usize>)| labels.contains(index);
            if point.iter().zip(&fixed).any(elsewhere) || point.iter().zip(&left_out).any(is_left_out) {
                continue;
            }
            let base: Point = free.iter().map(|&dimension| point[dimension]).collect();
            match &spread {
                None => self.fill(&mut cells, base, at, point, name)?,
                Some(spread) => {
                    for (member, label) in spread.members() {
                        if self.table.has(point, &format!("{}.{label}.", spread.list)) {
                            let mut cell = base.clone();
                            cell.push(member);
                            self.fill(&mut cells, cell, at, point, &spread.name_of(label))?;
                        }
                    }
                }
            }
        }
        if cells.is_empty() {
            let fault = Fault::NoValue { metric: name.to_string(), point: "any point".to_string() };
            return Err(ExpressionError { at: at.0, fault });
        }
        free.extend(spread.map(|spread| spread.dimension));
        free.extend(self.by_seed.then(|| self.seeds()));
        Ok(Grid { dimensions: free, cells })
    }

    /// Puts the metric at a point into a cell, or each run's number into one of its own.
    fn fill(
        &self,
        cells: &mut BTreeMap<Point, f64>,
        cell: Point,
        at: At,
        point: &Point,
        name: &str,
    ) -> Result<(), ExpressionError> {
        let median = self.at_point(at, point, name)?;
        if !self.by_seed {
            cells.insert(cell, median);
            return Ok(());
        }
        for (run, value) in self.table.values(point, name).enumerate() {
            let own = cell.iter().copied().chain([run]).collect();
            cells.insert(own, value);
        }
        Ok(())
    }

    /// The metric at a point.
    fn at_point(&self, at: At, point: &Point, name: &str) -> Result<f64, ExpressionError> {
        self.table.median(point, name).ok_or_else(|| {
            let known = self.table.metrics();
            let fault = if known.contains(&name) {
                let all = Grid {
                    dimensions: (0..self.table.dimensions().len()).collect(),
                    cells: BTreeMap::<Point, ()>::new(),
                };
                Fault::NoValue { metric: name.to_string(), point: all.label(self.table, point) }
            } else {
                Fault::Unknown { what: "metric", name: name.to_string(), valid: list(known.into_iter()) }
            };
            ExpressionError { at: at.0, fault }
        })
    }

    /// For every point of the other dimensions: no other scheme is better in both throughput and delay.
    fn pareto(&self, scheme: &Node) -> Result<Grid<bool>, ExpressionError> {
        let Node::Text(at, label) = scheme else {
            let fault = Fault::Arguments { function: "pareto", expected: "the label of a scheme, in quotes" };
            return Err(ExpressionError { at: 1, fault });
        };
        let dimension = self.find_dimension(*at, SCHEME)?;
        let index = self.find_label(*at, dimension, label)?;
        let throughput = self.metric(*at, THROUGHPUT, &[])?;
        let delay = self.metric(*at, DELAY, &[])?;
        let Some(place) = throughput.dimensions.iter().position(|own| *own == dimension) else {
            let fault = Fault::Kind { expected: "other schemes to compare with", found: "one scheme" };
            return Err(ExpressionError { at: at.0, fault });
        };
        let better = |point: &Point, own: &Point| {
            let (Some(more), Some(than)) = (throughput.cells.get(point), throughput.cells.get(own)) else {
                return false;
            };
            let (less, of) = (delay.beside(&throughput, point), delay.beside(&throughput, own));
            let less = less.zip(of).is_some_and(|(less, of)| *less < of * (1.0 - PARETO_MARGIN));
            less && *more > than * (1.0 + PARETO_MARGIN)
        };
        let mut cells = BTreeMap::new();
        for own in throughput.cells.keys().filter(|point| point[place] == index) {
            let rivals = throughput.cells.keys().filter(|point| {
                let same =
                    |(position, (one, two)): (usize, (&usize, &usize))| position == place || one == two;
                point.iter().zip(own.iter()).enumerate().all(same)
            });
            let mut rest = own.clone();
            rest.remove(place);
            cells.insert(rest, !rivals.into_iter().any(|point| better(point, own)));
        }
        let dimensions = throughput.dimensions.iter().copied().filter(|own| *own != dimension).collect();
        Ok(Grid { dimensions, cells })
    }
}

/// A metric of all elements of a list whose names begin alike.
struct Spread<'t> {
    list: &'static str,
    /// The dimension that the list makes.
    dimension: usize,
    labels: &'t [String],
    /// What the elements' names begin with.
    prefix: &'t str,
    /// The rest of the metric's name, with its point.
    rest: &'t str,
}

impl<'t> Spread<'t> {
    /// What `name` spreads over, if there is a star where a list's names end.
    fn of(table: &'t Table, name: &'t str) -> Option<Self> {
        let (before, rest) = name.split_once('*')?;
        let (list, prefix) = before.split_once('.')?;
        let place = LISTS.iter().position(|known| *known == list)?;
        let dimension = table.dimensions().len() + place;
        Some(Spread {
            list: LISTS[place],
            dimension,
            labels: &table.dimension(dimension).labels,
            prefix,
            rest,
        })
    }

    fn members(&self) -> impl Iterator<Item = (usize, &'t str)> {
        let prefix = self.prefix;
        let named = self.labels.iter().map(String::as_str).enumerate();
        named.filter(move |(_, label)| label.starts_with(prefix))
    }

    fn name_of(&self, label: &str) -> String {
        format!("{}.{label}{}", self.list, self.rest)
    }
}

fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
