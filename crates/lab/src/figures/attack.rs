//! The worst link that an attack found: its capacity, what the scheme and the reference made of it.

use brakelight_scenario::documents::Found;
use brakelight_scenario::outcome::{FlowSeries, LinkSeries, Outcome, Series};

use super::Figure;
use super::axis::Axis;
use super::canvas::Canvas;
use super::chart::{Cell, LINE, Legend, Sign, TWO_COLUMNS};
use super::look::Look;
use super::series::{CAPACITY, capacity, middles};

/// Returns the figure: above capacity and throughput, below the queueing delay, over the whole run.
pub fn attack(found: &Found, own: &Outcome, reference: Option<&Outcome>) -> Figure {
    let caption = format!(
        "The worst link found for {}: {}, {} of {} {}.",
        found.scheme,
        found.space,
        found.objective,
        crate::text::number(found.damage),
        found.unit
    );
    Figure::new(&["worst"], caption, draw(found, own, reference))
}

/// A line: what it is called, its look, its throughput, its link's delay.
struct Line<'a> {
    name: String,
    flow: &'a FlowSeries,
    link: Option<&'a LinkSeries>,
}

fn draw(found: &Found, own: &Outcome, reference: Option<&Outcome>) -> Canvas {
    let (upper, lower) = (120.0, 95.0);
    let empty = Series::default();
    let series = own.series.as_ref().unwrap_or(&empty);
    let nothing = LinkSeries::default();
    let link = series.links.first().unwrap_or(&nothing);
    let lines = lines(found, series, reference);
    let mut entries = vec![(Sign::Box(CAPACITY), "capacity".to_string())];
    let looks = || (0..).map(Look::of);
    entries.extend(
        lines.iter().zip(looks()).map(|(line, look)| (Sign::Line(look.stroke(LINE)), line.name.clone())),
    );
    let legend = Legend::new(entries, TWO_COLUMNS);
    let mut canvas = Canvas::new(TWO_COLUMNS, upper + lower + legend.height());
    let begin = link.time_s.first().copied().unwrap_or(0.0);
    let end = link.time_s.last().copied().unwrap_or(0.0) + series.bin_s.max(1e-3);
    let throughput = lines.iter().flat_map(|line| line.flow.throughput_mbps.iter().copied());
    let rates = Axis::from_zero(link.capacity_mbps.iter().copied().chain(throughput));
    let delay = |line: &Line<'_>| line.link.map_or_else(Vec::new, |link| link.queueing_delay_p95_ms.clone());
    let delays = Axis::from_zero(lines.iter().flat_map(delay).flatten());
    let [rate, delay] = Cell::stacked([upper, lower], || Axis::linear(begin, end), [rates, delays]);
    rate.ground(&mut canvas);
    rate.inside(&mut canvas, |canvas| {
        capacity(canvas, &rate, link, series.bin_s);
        for (line, look) in lines.iter().zip(looks()) {
            let values = line.flow.throughput_mbps.iter().copied().map(Some);
            rate.line(canvas, &middles(&line.flow.time_s, series.bin_s, values), look.stroke(LINE));
        }
    });
    rate.frame(&mut canvas, "", "", "Mbit/s");
    delay.ground(&mut canvas);
    delay.inside(&mut canvas, |canvas| {
        for (line, look) in lines.iter().zip(looks()) {
            let Some(link) = line.link else { continue };
            let values = link.queueing_delay_p95_ms.iter().copied();
            delay.line(canvas, &middles(&link.time_s, series.bin_s, values), look.stroke(LINE));
        }
    });
    delay.frame(&mut canvas, "", "time (s)", "p95 delay (ms)");
    legend.draw(&mut canvas, upper + lower);
    canvas
}

/// The flow that is attacked, and the one beside it or the reference. Flows of one queue have one delay.
fn lines<'a>(found: &Found, series: &'a Series, reference: Option<&'a Outcome>) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    let other = reference.and_then(|outcome| outcome.series.as_ref());
    let names = [&found.own.scheme, &found.beside.scheme];
    let two = other.is_none();
    for (place, flow) in series.flows.iter().take(if two { 2 } else { 1 }).enumerate() {
        let name = if two { format!("{} ({})", names[place], flow.name) } else { names[0].clone() };
        lines.push(Line { name, flow, link: series.links.first().filter(|_| place == 0) });
    }
    if let Some(other) = other {
        let line = |flow| Line { name: names[1].clone(), flow, link: other.links.first() };
        lines.extend(other.flows.first().map(line));
    }
    lines
}
