//! The distribution of the queueing delay.

use brakelight_scenario::outcome::Outcome;

use super::axis::Axis;
use super::canvas::{Canvas, Point};
use super::chart::{Cell, LINE, Legend, ONE_COLUMN, Sign, TWO_COLUMNS};
use super::{Figure, look_of};
use crate::summary;
use crate::table::Table;

/// Shares of the packets at which a line has its mark.
const MARKED: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// Delays below this are drawn as if they were so long: the axis is logarithmic.
const LEAST_MS: f64 = 0.1;

/// The distribution of every scheme on a trace; none where no run kept it.
pub(super) fn cdf(table: &Table, trace: &str) -> Option<Figure> {
    let schemes = summary::distinct(&table.runs, |run| &run.scheme);
    let rows = table
        .runs
        .iter()
        .zip(&table.first)
        .filter(|(run, first)| run.trace == trace && !first.delays.is_empty());
    let lines: Vec<(&str, Vec<Point>)> =
        rows.map(|(run, first)| (run.scheme.as_str(), points(first))).collect();
    if lines.is_empty() {
        return None;
    }
    let width = if lines.len() > 8 { TWO_COLUMNS } else { ONE_COLUMN };
    let look = |scheme: &str| look_of(&schemes, scheme);
    let entries = lines.iter().map(|(scheme, _)| (Sign::Marked(look(scheme)), (*scheme).to_string()));
    let legend = Legend::new(entries.collect(), width);
    let height = if lines.len() > 8 { 210.0 } else { 160.0 };
    let mut canvas = Canvas::new(width, height + legend.height());
    let x = Axis::logarithmic(lines.iter().flat_map(|(_, points)| points.iter().map(|point| point.0)));
    let chart = Cell { left: 0.0, top: 0.0, width, height }.chart(x, Axis::linear(0.0, 1.0));
    chart.ground(&mut canvas);
    chart.inside(&mut canvas, |canvas| {
        for (scheme, points) in &lines {
            let line: Vec<(f64, Option<f64>)> =
                points.iter().map(|(delay, share)| (*delay, Some(*share))).collect();
            chart.line(canvas, &line, look(scheme).stroke(LINE));
        }
        for (scheme, points) in &lines {
            for share in MARKED {
                if let Some(point) = points.iter().find(|point| point.1 >= share) {
                    look(scheme).mark(canvas, chart.at(*point), 1.9);
                }
            }
        }
    });
    chart.frame(&mut canvas, "", "queueing delay (ms)", "share of packets");
    legend.draw(&mut canvas, height);
    let seed = table.first.first().map_or(1, |first| first.run.seed);
    let caption = format!(
        "Distribution of the queueing delay, summed over the path, of every data packet on {trace}; the run with seed {seed}."
    );
    Some(Figure::new(&["cdf", trace], caption, canvas))
}

/// The steps of a distribution, from a share of nothing on.
fn points(outcome: &Outcome) -> Vec<Point> {
    let mut before = 0.0;
    let mut points = Vec::with_capacity(2 * outcome.delays.len());
    for [delay, share] in &outcome.delays {
        let delay = delay.max(LEAST_MS);
        points.extend([(delay, before), (delay, *share)]);
        before = *share;
    }
    points
}
