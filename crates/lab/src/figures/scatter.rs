//! Throughput against delay: up and to the right is better, as in the report.

use brakelight_scenario::outcome::{Ratio, Run};

use super::axis::Axis;
use super::canvas::{Canvas, Colour, Point, Stroke};
use super::chart::{Cell, Chart, DELAY, Legend, ONE_COLUMN, Sign, TWO_COLUMNS};
use super::look::Look;
use super::{Figure, look_of, of_runs};
use crate::summary;
use crate::table::Table;

/// What is drawn of a scheme.
pub(super) struct Spot {
    pub look: Look,
    pub delay: f64,
    pub throughput: f64,
    /// Between which values each lies, where that is known.
    pub delays: Option<[f64; 2]>,
    pub throughputs: Option<[f64; 2]>,
    /// Single runs, where they say more than an interval.
    pub cloud: Vec<Point>,
}

impl Spot {
    fn delays(&self) -> impl Iterator<Item = f64> {
        [self.delay]
            .into_iter()
            .chain(self.delays.into_iter().flatten())
            .chain(self.cloud.iter().map(|run| run.0))
    }

    fn throughputs(&self) -> impl Iterator<Item = f64> {
        let cloud = self.cloud.iter().map(|run| run.1);
        [self.throughput].into_iter().chain(self.throughputs.into_iter().flatten()).chain(cloud)
    }
}

/// Charts on one page at most: more would not fit its height.
const MOST_CHARTS: usize = 12;

/// A figure with a chart for each trace.
pub(super) fn by_trace(table: &Table) -> Vec<Figure> {
    let schemes = summary::distinct(&table.runs, |run| &run.scheme);
    let traces = summary::distinct(&table.runs, |run| &run.trace);
    let some = traces.chunks(MOST_CHARTS).enumerate();
    let figures = some.map(|(page, traces)| {
        let charts = traces.iter().map(|trace| {
            let own = table.runs.iter().zip(&table.every).filter(|(run, _)| run.trace == **trace);
            let spots = own.filter_map(|(run, every)| spot(run, every, look_of(&schemes, &run.scheme)));
            ((*trace).to_string(), spots.collect())
        });
        let canvas = page_of(&schemes, &charts.collect::<Vec<_>>(), DELAY, "throughput (Mbit/s)");
        let caption = format!(
            "Throughput against 95th percentile of the queueing delay on {}; {}; the line joins the schemes that no other beats on both.",
            traces.join(", "),
            of_runs(&table.every)
        );
        let name = if page == 0 { "scatter".to_string() } else { format!("scatter-{}", page + 1) };
        Figure::new(&[&name], caption, canvas)
    });
    figures.collect()
}

/// One chart over all traces, where there are several and a reference.
pub(super) fn overall(table: &Table) -> Option<Figure> {
    let schemes = summary::distinct(&table.runs, |run| &run.scheme);
    let traces = summary::distinct(&table.runs, |run| &run.trace);
    let reference = table.reference.as_deref()?;
    let rows = summary::overall(&table.runs, &table.every, Some(reference));
    let spot = |row: &summary::Overall| {
        let (throughput, delay): (Ratio, Ratio) = (row.throughput?, row.p95?);
        Some(Spot {
            look: look_of(&schemes, &row.scheme),
            delay: delay.value,
            throughput: throughput.value,
            delays: delay.interval95,
            throughputs: throughput.interval95,
            cloud: Vec::new(),
        })
    };
    let spots: Vec<Spot> = rows.iter().filter_map(spot).collect();
    if traces.len() < 2 || spots.len() < 2 {
        return None;
    }
    let x = format!("p95 queueing delay (times that of {reference})");
    let y = format!("throughput (times that of {reference})");
    let canvas = page_of(&schemes, &[(String::new(), spots)], &x, &y);
    let caption = format!(
        "Throughput against 95th percentile of the queueing delay, both as ratios to {reference}: geometric means over {} traces; bars are 95 % intervals.",
        traces.len()
    );
    Some(Figure::new(&["scatter-all"], caption, canvas))
}

fn spot(run: &Run, every: &[Run], look: Look) -> Option<Spot> {
    let delay = summary::p95(run).filter(|delay| *delay > 0.0)?;
    let interval = run.interval95.as_ref();
    // Where runs fall into two groups there is no interval: they are shown as they are.
    let cloud = every.iter().filter(|_| run.modes.is_some());
    let cloud = cloud
        .filter_map(|run| Some((summary::p95(run).filter(|delay| *delay > 0.0)?, summary::measured(run))));
    Some(Spot {
        look,
        delay,
        throughput: summary::measured(run),
        delays: interval.and_then(|interval| interval.p95_ms),
        throughputs: interval.map(|interval| interval.throughput_mbps),
        cloud: cloud.collect(),
    })
}

/// Charts with titles above one legend.
pub(super) fn page_of(schemes: &[&str], charts: &[(String, Vec<Spot>)], x: &str, y: &str) -> Canvas {
    let columns = charts.len().min(3);
    let width = if columns == 1 { ONE_COLUMN } else { TWO_COLUMNS };
    let height = if columns == 1 { 165.0 } else { 142.0 };
    let entries = schemes.iter().map(|scheme| (Sign::Mark(look_of(schemes, scheme)), (*scheme).to_string()));
    let legend = Legend::new(entries.collect(), width);
    let rows = charts.len().div_ceil(columns.max(1)) as f64;
    let mut canvas = Canvas::new(width, rows * height + legend.height());
    for ((title, spots), cell) in charts.iter().zip(Cell::grid(width, columns.max(1), height)) {
        draw(&mut canvas, cell, title, spots, x, y);
    }
    legend.draw(&mut canvas, rows * height);
    canvas
}

fn draw(canvas: &mut Canvas, cell: Cell, title: &str, spots: &[Spot], x: &str, y: &str) {
    let delays = Axis::logarithmic(spots.iter().flat_map(Spot::delays)).reversed();
    let throughputs = Axis::around(spots.iter().flat_map(Spot::throughputs));
    let chart = cell.chart(delays, throughputs);
    chart.ground(canvas);
    frontier(canvas, &chart, spots);
    for spot in spots {
        for run in &spot.cloud {
            let pale = spot.look.colour.towards(Colour::WHITE, 0.55);
            let fill = Some(pale);
            canvas.shapes.push(super::canvas::Shape::Circle {
                centre: chart.at(*run),
                radius: 1.1,
                fill,
                stroke: None,
            });
        }
        if let Some([low, high]) = spot.delays {
            chart.error_bar(canvas, (low, spot.throughput), (high, spot.throughput), spot.look.colour);
        }
        if let Some([low, high]) = spot.throughputs {
            chart.error_bar(canvas, (spot.delay, low), (spot.delay, high), spot.look.colour);
        }
    }
    for spot in spots {
        spot.look.mark(canvas, chart.at((spot.delay, spot.throughput)), 2.4);
    }
    chart.frame(canvas, title, x, y);
}

/// A line through what nothing beats in both.
fn frontier(canvas: &mut Canvas, chart: &Chart, spots: &[Spot]) {
    let points: Vec<Option<Point>> = spots.iter().map(|spot| Some((spot.delay, spot.throughput))).collect();
    let best = summary::pareto(&points);
    let mut best: Vec<Point> =
        points.iter().zip(best).filter_map(|(point, best)| point.filter(|_| best)).collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line: Vec<Point> = best.into_iter().map(|point| chart.at(point)).collect();
    canvas.line(line, Stroke { colour: Colour::GREY, width: 0.6, dashes: &[2.0, 1.5] });
}
