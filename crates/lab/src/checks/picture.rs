//! Pictures of the book, drawn by tests: `BRAKELIGHT_BLESS=1` draws them again, and without it they must be
//! what the code draws.

use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::element::ComposedElement;
use plotters::prelude::*;

/// Okabe and Ito's colours, which colour-blind readers can tell apart; lines differ in their marks, too.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// One line of a picture.
pub(super) struct Line {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
    /// Which of the [`COLOURS`] and [`MARKS`] it has; its place among the lines unless it is given.
    pub look: Option<usize>,
}

impl Line {
    /// The line with a given look, so that it has the same one in two pictures.
    pub(super) fn with_look(self, look: usize) -> Self {
        Line { look: Some(look), ..self }
    }
}

/// What stands at the axes.
pub(super) struct Axes<'a, X, Y> {
    pub title: &'a str,
    pub x: X,
    pub x_label: &'a str,
    pub y: Y,
    pub y_label: &'a str,
    pub legend: SeriesLabelPosition,
}

pub(super) fn draw<X, Y>(axes: Axes<'_, X, Y>, lines: &[Line]) -> String
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
        let look = line.look.unwrap_or(place);
        let stroke = COLOURS[look].stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), stroke))
            .expect("a line")
            .label(line.name)
            .legend(move |(x, y)| mark((x + 12, y), look, &[(-14, 0), (14, 0)]));
        let marked = line.points.iter().step_by(line.points.len().div_ceil(12).max(1));
        chart.draw_series(marked.map(|&point| mark(point, look, &[]))).expect("marks");
    }
    chart
        .configure_series_labels()
        .position(axes.legend)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .legend_area_size(34)
        .draw()
        .expect("a legend");
    area.present().expect("a string takes everything");
    drop(chart);
    drop(area);
    picture
}

/// The corners of the marks, in pixels around a point, and whether they are filled: a diamond, a square, a
/// triangle, and a triangle on its tip.
const MARKS: [(&[(i32, i32)], bool); 4] = [
    (&[(0, -6), (6, 0), (0, 6), (-6, 0)], true),
    (&[(-4, -4), (4, -4), (4, 4), (-4, 4)], false),
    (&[(0, -6), (6, 4), (-6, 4)], true),
    (&[(0, 6), (6, -4), (-6, -4)], false),
];

/// A piece of the line, the mark's ground, and its edge.
type Mark<C, DB> = ComposedElement<
    C,
    DB,
    PathElement<(i32, i32)>,
    ComposedElement<(i32, i32), DB, Polygon<(i32, i32)>, PathElement<(i32, i32)>>,
>;

/// The mark of a look at a point, over a piece of the line.
fn mark<C, DB: DrawingBackend>(at: C, look: usize, piece: &[(i32, i32)]) -> Mark<C, DB> {
    let (corners, filled) = MARKS[look];
    let stroke = COLOURS[look].stroke_width(2);
    let ground = if filled { COLOURS[look].filled() } else { WHITE.filled() };
    let edge = corners.iter().chain(&corners[..2]).copied().collect::<Vec<_>>();
    EmptyElement::at(at)
        + PathElement::new(piece.to_vec(), stroke)
        + Polygon::new(corners.to_vec(), ground)
        + PathElement::new(edge, stroke)
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

pub(super) fn line(name: &'static str, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
    Line { name, points: points.into_iter().collect(), look: None }
}
