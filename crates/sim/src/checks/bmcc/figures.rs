//! The pictures of `docs/validation/bmcc.md`, drawn from the analysis itself: `BRAKELIGHT_BLESS=1` draws them
//! again, and without it they must be what the code draws.

use std::ops::Range;
use std::path::Path;

use brakelight_core::random::Random;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::{Growth, Sharing, errors};

/// Okabe and Ito's colours, which colour-blind readers can tell apart; lines differ in their marks, too.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// One line of a picture.
struct Line {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

/// What stands at the axes.
struct Axes<'a, X, Y> {
    title: &'a str,
    x: X,
    x_label: &'a str,
    y: Y,
    y_label: &'a str,
    legend: SeriesLabelPosition,
}

fn draw<X, Y>(axes: Axes<'_, X, Y>, lines: &[Line]) -> String
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut picture = String::new();
    let area = SVGBackend::with_string(&mut picture, (760, 440)).into_drawing_area();
    area.fill(&WHITE).expect("a string takes everything");
    let mut chart = ChartBuilder::on(&area)
        .caption(axes.title, ("sans-serif", 18))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(axes.x, axes.y)
        .expect("axes");
    chart
        .configure_mesh()
        .x_desc(axes.x_label)
        .y_desc(axes.y_label)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .draw()
        .expect("axes");
    for (place, line) in lines.iter().enumerate() {
        let colour = COLOURS[place];
        let (radius, style) = circle(place, colour);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)))
            .expect("a line")
            .label(line.name)
            .legend(move |(x, y)| Circle::new((x + 10, y), radius, style));
        let marked = line.points.iter().step_by(line.points.len().div_ceil(12).max(1));
        chart.draw_series(marked.map(|&point| Circle::new(point, radius, style))).expect("marks");
    }
    chart
        .configure_series_labels()
        .position(axes.legend)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()
        .expect("a legend");
    area.present().expect("a string takes everything");
    drop(chart);
    drop(area);
    picture
}

/// A circle of the line's own: how large, and whether filled.
fn circle(place: usize, colour: RGBColor) -> (i32, ShapeStyle) {
    ([4, 4, 2, 6][place], if place.is_multiple_of(2) { colour.filled() } else { colour.stroke_width(2) })
}

fn short(value: f64) -> String {
    // Ticks are sums of steps: what is behind the sixth digit is rounding.
    let rounded = (value * 1e6).round() / 1e6;
    if value != 0.0 && !(1e-3..1e5).contains(&value.abs()) {
        format!("{value:.0e}")
    } else {
        format!("{rounded}")
    }
}

/// Holds the picture in the book to what the code draws.
fn check(name: &str, picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name);
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        std::fs::write(&path, picture).expect("docs/images can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == picture,
        "docs/images/{name} is not what the code draws: BRAKELIGHT_BLESS=1 draws it again"
    );
}

fn line(name: &'static str, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
    Line { name, points: points.into_iter().collect() }
}

/// B-U6.
#[test]
fn the_error_of_the_estimate() {
    let all: Vec<_> = (2..=16).map(|power| errors(1 << power, 1)).collect();
    let over = |of: fn(&crate::analysis::adpm::Errors) -> f64| {
        all.iter().map(move |error| (f64::from(error.n), of(error))).collect::<Vec<_>>()
    };
    let lines = [
        line("ADPM", over(|error| error.adaptive)),
        line("1 / n", over(|error| 1.0 / f64::from(error.n))),
        line("random marking", over(|error| error.random)),
        line("three static bits", over(|error| error.fixed)),
    ];
    let axes = Axes {
        title: "What n packets tell of the load factor",
        x: (4.0..65536.0).log_scale(),
        x_label: "packets",
        y: (1e-5..1.0).log_scale(),
        y_label: "root mean square error",
        legend: SeriesLabelPosition::LowerLeft,
    };
    check("bmcc-estimate.svg", &draw(axes, &lines));
}

/// B-TH: figure 3's setting.
#[test]
fn rates_come_together_by_a_power_of_mu() {
    let model = Sharing::new(500.0, 2, 0.5, 1.2);
    let mut random = Random::stream(1, "figure");
    let backoffs = 0..=24;
    let drawn: Vec<_> =
        backoffs.clone().map(|i| (i as f64, model.imbalance(i, 20_000, &mut random))).collect();
    let power = |less: i32| {
        backoffs.clone().map(move |i| (i as f64, model.mu().powi(i as i32 - less))).collect::<Vec<_>>()
    };
    let lines = [
        line("drawn at random, 20,000 times", drawn),
        line("mu^i", power(0)),
        line("mu^(i-1), as printed", power(1)),
    ];
    let axes = Axes {
        title: "Theorem 1: two flows on 20 Mbit/s, what is left of their difference",
        x: 0.0..24.0,
        x_label: "back-offs i",
        y: (0.05..1.2).log_scale(),
        y_label: "share of the first difference",
        legend: SeriesLabelPosition::LowerLeft,
    };
    check("bmcc-convergence.svg", &draw(axes, &lines));
}

/// B-F4: 10,000 packets per slot, 550 flows.
#[test]
fn what_the_overload_mark_costs_and_tells() {
    let us: Range<u32> = 105..200;
    let of = |value: fn(&Sharing) -> f64| {
        us.clone()
            .map(|hundredths| f64::from(hundredths) / 100.0)
            .map(|u| (u, value(&Sharing::new(10_000.0, 550, 0.5, u))))
            .collect::<Vec<_>>()
    };
    let lines = [
        line("E[beta]: mean factor per back-off", of(Sharing::mu)),
        line("P: share of flows that hear of it", of(|model| model.detects(1.0 + model.excess()))),
    ];
    let axes = Axes {
        title: "Figure 4: what u decides, 550 flows",
        x: 1.05..2.0,
        x_label: "u, the load at which CE is set",
        y: 0.4..1.05,
        y_label: "probability or factor",
        legend: SeriesLabelPosition::LowerLeft,
    };
    check("bmcc-overload.svg", &draw(axes, &lines));
}

/// B-IVB, figure 5's setting.
#[test]
fn how_a_new_flow_grows() {
    let model = Growth { capacity: 250_000.0, rtt_s: 0.2 };
    let times = || (1..=70).map(|tenth| f64::from(tenth) * 0.1);
    let of = |value: &dyn Fn(f64) -> f64| times().map(|t| (t, value(t))).collect::<Vec<_>>();
    let lines = [
        line("window", of(&|t| model.window(t))),
        line("delivered: corrected", of(&|t| model.delivered(t))),
        line("delivered: integral", of(&|t| model.delivered_by_integral(t))),
        line("delivered: as printed", of(&|t| model.delivered_as_printed(t))),
    ];
    let axes = Axes {
        title: "One new flow on 2 Gbit/s, 200 ms: the model of section IV-B",
        x: 0.0..7.0,
        x_label: "seconds",
        y: (1.0..3e6).log_scale(),
        y_label: "packets",
        legend: SeriesLabelPosition::LowerRight,
    };
    check("bmcc-growth.svg", &draw(axes, &lines));
}
