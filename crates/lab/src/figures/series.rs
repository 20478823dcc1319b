//! What a link could carry, what it carried, and how long packets waited, over time.

use super::Figure;
use super::axis::Axis;
use super::canvas::{Canvas, Colour, Point, Shape, Stroke};
use super::chart::{Cell, Chart, LINE, Legend, Sign, TWO_COLUMNS};
use super::look::Look;
use crate::table::Table;
use brakelight_scenario::outcome::{LinkSeries, Series};

/// More flows than these make lines that nobody can tell apart.
const MOST_FLOWS: usize = 8;

/// Behind the lines: what the link could have carried.
pub(super) const CAPACITY: Colour = Colour(215, 215, 215);

/// The series of every row that has any, a figure for each of the links that a report would draw.
pub(super) fn series(table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for ((run, first), drawn) in table.runs.iter().zip(&table.first).zip(&table.drawn) {
        let Some(series) = &first.series else { continue };
        let links = &series.links[..drawn.links.min(series.links.len())];
        for (place, link) in links.iter().enumerate() {
            let flows: Vec<usize> = (0..series.flows.len())
                .filter(|flow| drawn.paths.get(*flow).map_or(place == 0, |path| path.contains(&place)))
                .collect();
            let canvas = draw(&run.scheme, series, link, &flows);
            let named = if links.len() > 1 { format!(", link {}", link.name) } else { String::new() };
            let caption = format!(
                "{} on {}{named}: capacity, throughput and 95th percentile of the queueing delay in bins of {} s; the run with seed {}.",
                run.scheme, run.trace, series.bin_s, first.run.seed
            );
            let mut name = vec!["series", run.scheme.as_str(), run.trace.as_str()];
            if links.len() > 1 {
                name.push(&link.name);
            }
            figures.push(Figure::new(&name, caption, canvas));
        }
    }
    figures
}

fn draw(scheme: &str, series: &Series, link: &LinkSeries, flows: &[usize]) -> Canvas {
    let lines = rates(scheme, series, link, flows);
    let mut entries = vec![(Sign::Box(CAPACITY), "capacity".to_string())];
    entries.extend(lines.iter().map(|(name, look, _)| (Sign::Line(look.stroke(LINE)), name.clone())));
    let legend = Legend::new(entries, TWO_COLUMNS);
    let (upper, lower) = (120.0, 95.0);
    let mut canvas = Canvas::new(TWO_COLUMNS, upper + lower + legend.height());
    let (begin, end) =
        (link.time_s.first().copied().unwrap_or(0.0), link.time_s.last().copied().unwrap_or(0.0));
    let time = || Axis::linear(begin, (end + series.bin_s).max(begin + series.bin_s.max(1e-3)));
    let all = lines.iter().flat_map(|(_, _, values)| values.iter().copied());
    let rates = Axis::from_zero(link.capacity_mbps.iter().copied().chain(all));
    let delays = Axis::from_zero(link.queueing_delay_p95_ms.iter().flatten().copied());
    let [rate, delay] = Cell::stacked([upper, lower], time, [rates, delays]);
    rate.ground(&mut canvas);
    rate.inside(&mut canvas, |canvas| {
        capacity(canvas, &rate, link, series.bin_s);
        for (_, look, values) in &lines {
            rate.line(
                canvas,
                &middles(&link.time_s, series.bin_s, values.iter().copied().map(Some)),
                look.stroke(LINE),
            );
        }
    });
    rate.frame(&mut canvas, "", "", "Mbit/s");
    delay.ground(&mut canvas);
    delay.inside(&mut canvas, |canvas| {
        let points = middles(&link.time_s, series.bin_s, link.queueing_delay_p95_ms.iter().copied());
        delay.line(canvas, &points, Stroke::solid(Colour::BLACK, LINE * 0.8));
    });
    delay.frame(&mut canvas, "", "time (s)", "p95 delay (ms)");
    legend.draw(&mut canvas, upper + lower);
    canvas
}

/// The lines of the upper chart: the flows' where there are several and not too many, the link's otherwise.
fn rates(scheme: &str, series: &Series, link: &LinkSeries, flows: &[usize]) -> Vec<(String, Look, Vec<f64>)> {
    if (2..=MOST_FLOWS).contains(&flows.len()) {
        let line = |(place, flow): (usize, &usize)| {
            let flow = &series.flows[*flow];
            (format!("throughput of {} ({scheme})", flow.name), Look::of(place), flow.throughput_mbps.clone())
        };
        return flows.iter().enumerate().map(line).collect();
    }
    vec![(format!("throughput of {scheme}"), Look::of(0), link.throughput_mbps.clone())]
}

/// Values at the middles of their bins.
pub(super) fn middles(
    times: &[f64],
    bin: f64,
    values: impl Iterator<Item = Option<f64>>,
) -> Vec<(f64, Option<f64>)> {
    times.iter().zip(values).map(|(time, value)| (time + bin / 2.0, value)).collect()
}

/// The area below the steps of the capacity.
pub(super) fn capacity(canvas: &mut Canvas, chart: &Chart, link: &LinkSeries, bin: f64) {
    let steps = link.time_s.iter().zip(&link.capacity_mbps);
    let mut points: Vec<Point> = steps
        .flat_map(|(time, rate)| [(*time, *rate), (time + bin, *rate)])
        .map(|point| chart.at(point))
        .collect();
    let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) else { return };
    points.extend([(last.0, chart.bottom), (first.0, chart.bottom)]);
    canvas.shapes.push(Shape::Area { points, fill: Some(CAPACITY), stroke: None });
}
