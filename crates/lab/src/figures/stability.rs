//! Where ABC's router rests and where it oscillates.

use crate::analysis::stability::Rule;

use super::Figure;
use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Colour, Stroke};
use super::chart::{Cell, LINE, Legend, ONE_COLUMN, Sign, TEXT, TWO_COLUMNS};
use super::heat::{self, Heat};
use super::look::Look;
use crate::stability::waits::{Wait, Waits};
use crate::stability::{Map, Row};

const GAP: f64 = 12.0;

/// Returns the map as two tables of shades: the swing of the queueing delay by the fluid model, and by
/// packets. A line stands at the ratio at which the linearized model begins to oscillate.
pub fn stability(map: &Map) -> Figure {
    let (axis, varied, side) = match map.rule {
        Rule::Paper { .. } => ("delta / round trip", "delta over the round trip", "below"),
        Rule::Adaptive => (
            "round trip / loop delay of the router",
            "the round trip over the loop delay that the router assumes",
            "above",
        ),
    };
    let swing = |title: &str, of: &dyn Fn(&Row) -> f64| Heat {
        title: title.into(),
        rows: map.points.chunks(map.ratios.len()).map(|row| format!("{} flows", row[0].flows)).collect(),
        columns: map.ratios.iter().map(ToString::to_string).collect(),
        values: map
            .points
            .chunks(map.ratios.len())
            .map(|row| row.iter().map(|point| Some(of(point))).collect())
            .collect(),
        logarithmic: false,
    };
    let heats = [
        swing("swing of the queueing delay (ms), fluid model", &|row| row.fluid.high_ms - row.fluid.low_ms),
        swing("the same, packets", &|row| row.packets.p95_ms - row.packets.p5_ms),
    ];
    let (range, width) = (heat::range(&heats), (TWO_COLUMNS - GAP) / 2.0);
    let height = heats[0].height();
    let mut canvas = Canvas::new(TWO_COLUMNS, height + 18.0);
    let below = map.ratios.iter().filter(|ratio| **ratio < map.linear_limit).count();
    for (place, heat) in heats.iter().enumerate() {
        let left = place as f64 * (width + GAP);
        heat.draw(&mut canvas, (left, 4.0), width, range);
        if (1..map.ratios.len()).contains(&below) {
            let x = heat.edge(left, width, below);
            canvas.line([(x, 16.0), (x, height)], Stroke::solid(Colour(213, 94, 0), 1.6));
        }
        canvas.text((left + width / 2.0, height + 10.0), axis, TEXT, Anchor::Middle);
    }
    let caption = format!(
        "Swing of the queueing delay in ms by {varied} and by flows: the fluid model and packets, on {} Mbit/s with a round trip of {} ms. The line is at {:.3}, {side} which the linearized model oscillates.",
        map.rate_mbps, map.rtt_ms, map.linear_limit
    );
    Figure::new(&["stability"], caption, canvas)
}

/// Returns the longest waits of the first number of flows over the factor that the link changes by: the two
/// bounds, and packets on stairs.
pub fn waits(waits: &Waits) -> Figure {
    const HEIGHT: f64 = 160.0;
    type Of = fn(&Wait) -> Option<f64>;
    let points = &waits.points[..waits.changes.len().min(waits.points.len())];
    let lines: [(&str, Of); 3] = [
        ("bound, packets", |wait| wait.packets_ms),
        ("bound, fluid model", |wait| wait.fluid_ms),
        ("packets on stairs", |wait| Some(wait.stairs_ms)),
    ];
    let looks = (0..lines.len()).map(Look::of).collect::<Vec<_>>();
    let entries =
        lines.iter().zip(&looks).map(|((name, _), look)| (Sign::Marked(*look), (*name).to_string()));
    let legend = Legend::new(entries.collect(), ONE_COLUMN);
    let mut canvas = Canvas::new(ONE_COLUMN, HEIGHT + legend.height());
    let x = Axis::logarithmic(points.iter().map(|wait| wait.change));
    let y = Axis::from_zero(points.iter().flat_map(|wait| lines.iter().filter_map(|(_, of)| of(wait))));
    let chart = Cell { left: 0.0, top: 0.0, width: ONE_COLUMN, height: HEIGHT }.chart(x, y);
    chart.ground(&mut canvas);
    chart.inside(&mut canvas, |canvas| {
        for ((_, of), look) in lines.iter().zip(&looks) {
            let line: Vec<_> = points.iter().map(|wait| (wait.change, of(wait))).collect();
            chart.line(canvas, &line, look.stroke(LINE));
            for (change, wait) in line {
                if let Some(wait) = wait {
                    look.mark(canvas, chart.at((change, wait)), 1.9);
                }
            }
        }
    });
    chart.frame(&mut canvas, "", "factor of change in a round trip", "longest queueing delay (ms)");
    legend.draw(&mut canvas, HEIGHT);
    let flows = points.first().map_or(0, |wait| wait.flows);
    let caption = format!(
        "The longest that a packet can wait at ABC's router by the factor that the link changes by in a round trip, {flows} flows: the proven bounds, and packets on stairs. Links from {} to {} Mbit/s with a round trip of {} ms.",
        waits.low_mbps, waits.high_mbps, waits.rtt_ms
    );
    Figure::new(&["waits"], caption, canvas)
}
