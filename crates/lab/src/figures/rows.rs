//! Figures of many runs that differ in the values of some axes.

use brakelight_scenario::outcome::Run;

use super::axis::Axis;
use super::canvas::{Anchor, Canvas};
use super::chart::{Cell, DELAY, LINE, Legend, SMALL, Sign, TWO_COLUMNS};
use super::heat::{self, Heat};
use super::scatter::{Spot, page_of};
use super::{Figure, font, look_of};
use crate::summary;

/// The axis whose values get a look each.
const SCHEME: &str = "scheme";

/// The axis over which values are always taken together.
const SEED: &str = "seed";

/// What figures show of runs: where each is on the axes, and two numbers. A run takes some bytes only, so
/// that a hundred thousand fit into memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    axes: Vec<Direction>,
    /// Of every run its place on each axis, in their order; then its use and its delay.
    runs: Vec<(Box<[u32]>, f32, f32)>,
}

/// An axis and its values, in the order in which they came.
#[derive(Clone, Debug, PartialEq)]
struct Direction {
    name: String,
    values: Vec<String>,
}

impl Rows {
    /// Adds a run whose place on the axes is `axes`, by name. Every run has the axes of the first one.
    pub fn add(&mut self, axes: &[(String, String)], run: &Run) {
        if self.axes.is_empty() {
            let own = axes.iter().filter(|(name, _)| name != SEED);
            self.axes = own.map(|(name, _)| Direction { name: name.clone(), values: Vec::new() }).collect();
            if self.axes.iter().all(|axis| axis.name != SCHEME) {
                self.axes.push(Direction { name: SCHEME.into(), values: Vec::new() });
            }
        }
        let place = self.axes.iter_mut().map(|axis| {
            let value =
                axes.iter().find(|(name, _)| *name == axis.name).map_or(&run.scheme, |(_, value)| value);
            axis.place(value)
        });
        let place = place.collect();
        let delay = summary::p95(run).unwrap_or(f64::NAN);
        self.runs.push((place, (100.0 * summary::used(run)) as f32, delay as f32));
    }

    fn schemes(&self) -> Option<(usize, &Direction)> {
        self.axes.iter().enumerate().find(|(_, axis)| axis.name == SCHEME)
    }

    /// The axes, other than the schemes, that have several values.
    fn others(&self) -> Vec<usize> {
        let several = |place: &usize| self.axes[*place].values.len() > 1 && self.axes[*place].name != SCHEME;
        (0..self.axes.len()).filter(several).collect()
    }

    /// The runs whose places are `wanted`: pairs of an axis and a place on it.
    fn of(&self, wanted: &[(usize, usize)]) -> Cluster {
        let own = self
            .runs
            .iter()
            .filter(|(place, ..)| wanted.iter().all(|(axis, at)| place[*axis] as usize == *at));
        let (mut used, mut delays): (Vec<f64>, Vec<f64>) =
            own.map(|(_, used, delay)| (f64::from(*used), f64::from(*delay))).unzip();
        delays.retain(|delay| delay.is_finite());
        Cluster { used: quarters(&mut used), delay: quarters(&mut delays) }
    }
}

impl Direction {
    fn place(&mut self, value: &str) -> u32 {
        let known = self.values.iter().position(|other| other == value);
        let place = known.unwrap_or_else(|| {
            self.values.push(value.to_string());
            self.values.len() - 1
        });
        place as u32
    }
}

/// The quartiles of the use and of the delay of some runs.
struct Cluster {
    used: Option<[f64; 3]>,
    delay: Option<[f64; 3]>,
}

/// The three quartiles: the second is the median. Between two values they lie on a line.
fn quarters(values: &mut [f64]) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some([1, 2, 3].map(|quarter| {
        let (place, rest) = (last * quarter / 4, last * quarter % 4);
        let (low, high) = (values[place], values[(place + 1).min(last)]);
        low + (high - low) * rest as f64 / 4.0
    }))
}

/// What bars mean in these figures.
const BARS: &str = "points are medians, bars hold the middle half of the runs";

/// All figures of rows; their names begin with `prefix`.
pub(super) fn figures(rows: &Rows, prefix: Option<&str>) -> Vec<Figure> {
    let Some((schemes, names)) = rows.schemes() else { return Vec::new() };
    let of = match prefix {
        Some(prefix) => format!("{prefix}: "),
        None => String::new(),
    };
    let figure = |parts: &[&str], caption: String, canvas| {
        let parts: Vec<&str> = prefix.into_iter().chain(parts.iter().copied()).collect();
        Figure::new(&parts, of.clone() + &caption, canvas)
    };
    let mut figures = Vec::new();
    figures.extend(scatter(rows, schemes, &names.values).map(|canvas| {
        let caption = format!("Utilization against {DELAY} over all {} runs: {BARS}.", rows.runs.len());
        figure(&["scatter"], caption, canvas)
    }));
    let others = rows.others();
    for axis in &others {
        let name = &rows.axes[*axis].name;
        let caption = format!("Utilization and {DELAY} by {name}, over all other axes and seeds: {BARS}.");
        figures.push(figure(&["lines", name], caption, lines(rows, schemes, *axis)));
    }
    for (place, first) in others.iter().enumerate() {
        for second in &others[place + 1..] {
            let (down, across) = (&rows.axes[*first].name, &rows.axes[*second].name);
            let quantities: [Quantity; 2] = [
                ("grid-utilization", "utilization (%)", false, |cluster| cluster.used),
                ("grid-delay", DELAY, true, |cluster| cluster.delay),
            ];
            for quantity in quantities {
                let caption =
                    format!("Medians of the {} by {down} (down) and {across} (across).", quantity.1);
                let canvas = heats(rows, (schemes, *first, *second), quantity);
                figures.push(figure(&[quantity.0, down, across], caption, canvas));
            }
        }
    }
    figures
}

/// The quartiles of one of the two numbers.
type Quartiles = fn(&Cluster) -> Option<[f64; 3]>;

/// Name of the figure, what it shows, whether by factors, and how to get it.
type Quantity = (&'static str, &'static str, bool, Quartiles);

fn scatter(rows: &Rows, axis: usize, schemes: &[String]) -> Option<Canvas> {
    let names: Vec<&str> = schemes.iter().map(String::as_str).collect();
    let spot = |(place, name): (usize, &&str)| {
        let cluster = rows.of(&[(axis, place)]);
        let (used, delay) = (cluster.used?, cluster.delay.filter(|delay| delay[0] > 0.0)?);
        Some(Spot {
            look: look_of(&names, name),
            delay: delay[1],
            throughput: used[1],
            delays: Some([delay[0], delay[2]]),
            throughputs: Some([used[0], used[2]]),
            cloud: Vec::new(),
        })
    };
    let spots: Vec<Spot> = names.iter().enumerate().filter_map(spot).collect();
    (spots.len() > 1).then(|| page_of(&names, &[(String::new(), spots)], DELAY, "utilization (%)"))
}

/// Two charts: use and delay over the values of one axis, a line for each scheme.
fn lines(rows: &Rows, schemes: usize, axis: usize) -> Canvas {
    let names: Vec<&str> = rows.axes[schemes].values.iter().map(String::as_str).collect();
    let values = &rows.axes[axis].values;
    let clusters: Vec<Vec<Cluster>> = (0..names.len())
        .map(|scheme| (0..values.len()).map(|value| rows.of(&[(schemes, scheme), (axis, value)])).collect())
        .collect();
    let entries = names.iter().map(|name| (Sign::Marked(look_of(&names, name)), (*name).to_string()));
    let legend = Legend::new(entries.collect(), TWO_COLUMNS);
    let height = 150.0;
    let mut canvas = Canvas::new(TWO_COLUMNS, height + legend.height());
    let quantities: [(&str, Quartiles); 2] =
        [("utilization (%)", |cluster| cluster.used), (DELAY, |cluster| cluster.delay)];
    for ((place, (name, of)), cell) in quantities.iter().enumerate().zip(Cell::grid(TWO_COLUMNS, 2, height)) {
        let all = || clusters.iter().flatten().filter_map(of).flatten();
        let y = if place == 0 { Axis::from_zero(all()) } else { Axis::logarithmic(all()) };
        let mut x = Axis::linear(-0.4, values.len() as f64 - 0.6);
        x.ticks.clear();
        let chart = cell.chart(x, y);
        chart.ground(&mut canvas);
        chart.inside(&mut canvas, |canvas| {
            for (scheme, clusters) in clusters.iter().enumerate() {
                let look = look_of(&names, names[scheme]);
                // A little apart, so that bars do not hide each other.
                let aside = (scheme as f64 / names.len() as f64 - 0.5) * 0.3;
                let at = |value: usize| value as f64 + aside;
                let points: Vec<(f64, Option<f64>)> = clusters
                    .iter()
                    .enumerate()
                    .map(|(value, cluster)| (at(value), of(cluster).map(|quarters| quarters[1])))
                    .collect();
                chart.line(canvas, &points, look.stroke(LINE));
                for (value, cluster) in clusters.iter().enumerate() {
                    let Some([low, median, high]) = of(cluster) else { continue };
                    chart.error_bar(canvas, (at(value), low), (at(value), high), look.colour);
                    look.mark(canvas, chart.at((at(value), median)), 1.9);
                }
            }
        });
        chart.frame(&mut canvas, "", &rows.axes[axis].name, name);
        let mut taken = f64::NEG_INFINITY;
        for (value, words) in values.iter().enumerate() {
            let (x, half) = (chart.across(value as f64), font::width(words, SMALL) / 2.0);
            if x - half > taken + 2.0 {
                canvas.text((x, chart.bottom + SMALL + 2.5), words, SMALL, Anchor::Middle);
                taken = x + half;
            }
        }
    }
    legend.draw(&mut canvas, height);
    canvas
}

/// A table of shades for each scheme.
fn heats(rows: &Rows, (schemes, down, across): (usize, usize, usize), quantity: Quantity) -> Canvas {
    let (_, _, logarithmic, of) = quantity;
    let heats: Vec<Heat> = rows.axes[schemes]
        .values
        .iter()
        .enumerate()
        .map(|(scheme, name)| {
            let value = |row: usize, column: usize| {
                of(&rows.of(&[(schemes, scheme), (down, row), (across, column)])).map(|quarters| quarters[1])
            };
            let columns = rows.axes[across].values.len();
            Heat {
                title: name.clone(),
                rows: rows.axes[down].values.clone(),
                columns: rows.axes[across].values.clone(),
                values: (0..rows.axes[down].values.len())
                    .map(|row| (0..columns).map(|column| value(row, column)).collect())
                    .collect(),
                logarithmic,
            }
        })
        .collect();
    // Equal values have equal shades in all of them.
    let shades = heat::range(&heats);
    let columns = heats.len().clamp(1, 3);
    let own = TWO_COLUMNS / columns as f64;
    let height = heats.first().map_or(0.0, Heat::height) + 4.0;
    let mut canvas = Canvas::new(TWO_COLUMNS, height * heats.len().div_ceil(columns) as f64);
    for (heat, cell) in heats.iter().zip(Cell::grid(TWO_COLUMNS, columns, height)) {
        heat.draw(&mut canvas, (cell.left, cell.top + 2.0), own - 6.0, shades);
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_of_runs_is_the_mean_of_two() {
        assert_eq!(quarters(&mut [4.0, 1.0, 3.0, 2.0]), Some([1.75, 2.5, 3.25]));
        assert_eq!(quarters(&mut [5.0, 1.0, 2.0, 4.0, 3.0]), Some([2.0, 3.0, 4.0]));
        assert_eq!(quarters(&mut [7.0]), Some([7.0; 3]));
        assert_eq!(quarters(&mut []), None);
    }
}
