//! Where ABC's router rests and where it oscillates.

use crate::analysis::stability::Rule;

use super::Figure;
use super::canvas::{Anchor, Canvas, Colour, Stroke};
use super::chart::{TEXT, TWO_COLUMNS};
use super::heat::{self, Heat};
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
