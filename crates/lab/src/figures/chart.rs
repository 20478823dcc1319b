//! Charts: a frame with axes, what is drawn in it, and a legend.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Colour, Point, Stroke, shortened};
use super::font;
use super::look::Look;

/// Points of a millimetre.
const MILLIMETRE: f64 = 72.0 / 25.4;

/// The width of a column of a paper.
pub(super) const ONE_COLUMN: f64 = 84.0 * MILLIMETRE;

/// The width of two columns and what is between them.
pub(super) const TWO_COLUMNS: f64 = 178.0 * MILLIMETRE;

/// Of what axes are called, and of legends.
pub(super) const TEXT: f64 = 8.0;

/// Of what stands at ticks.
pub(super) const SMALL: f64 = 7.0;

/// Of data.
pub(super) const LINE: f64 = 1.0;

const FRAME: Stroke = Stroke::solid(Colour::BLACK, 0.6);
const TICK: f64 = 2.5;

/// What an axis is called, with its unit.
pub(super) const DELAY: &str = "p95 queueing delay (ms)";

/// A rectangle with axes on two of its sides.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub x: Axis,
    pub y: Axis,
}

/// A place on a page for one chart with all that is written around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Cell {
    /// The chart that fills the cell. Below it there is room for ticks and for the name of an axis; beside it
    /// as much as the ticks need; above it a line for a title.
    pub fn chart(self, x: Axis, y: Axis) -> Chart {
        let wide = y.ticks.iter().map(|tick| font::width(&y.label(*tick), SMALL)).fold(0.0, f64::max);
        Chart {
            left: self.left + wide + TICK + TEXT + 8.5,
            top: self.top + TEXT + 5.0,
            right: self.left + self.width - 6.0,
            bottom: self.top + self.height - SMALL - TEXT - 9.0,
            x,
            y,
        }
    }

    /// Two charts over one time, two columns wide, one below the other. Both begin where the wider of the two
    /// can.
    pub fn stacked(
        [upper, lower]: [f64; 2],
        time: impl Fn() -> Axis,
        [above, below]: [Axis; 2],
    ) -> [Chart; 2] {
        let cell = |top, height| Cell { left: 0.0, top, width: TWO_COLUMNS, height };
        let mut charts = [cell(0.0, upper).chart(time(), above), cell(upper, lower).chart(time(), below)];
        let left = charts[0].left.max(charts[1].left);
        charts.iter_mut().for_each(|chart| chart.left = left);
        charts
    }

    /// Cells side by side, in rows of `columns`, that fill `width`.
    pub fn grid(width: f64, columns: usize, height: f64) -> impl Iterator<Item = Cell> {
        let own = width / columns as f64;
        (0..).map(move |place| Cell {
            left: (place % columns) as f64 * own,
            top: (place / columns) as f64 * height,
            width: own,
            height,
        })
    }
}

impl Chart {
    /// Where a pair of values is.
    pub fn at(&self, (x, y): Point) -> Point {
        (self.across(x), self.bottom - self.y.place(y) * (self.bottom - self.top))
    }

    /// How far to the right a value is.
    pub fn across(&self, x: f64) -> f64 {
        self.left + self.x.place(x) * (self.right - self.left)
    }

    /// Draws lines behind the data at the ticks of the vertical axis.
    pub fn ground(&self, canvas: &mut Canvas) {
        for tick in &self.y.ticks {
            let (_, y) = self.at((0.0, *tick));
            canvas.line([(self.left, y), (self.right, y)], Stroke::solid(Colour::PALE, 0.4));
        }
    }

    /// Draws the frame, the ticks and the names of the axes: over the data, which end at it.
    pub fn frame(&self, canvas: &mut Canvas, title: &str, x_name: &str, y_name: &str) {
        let (left, top, right, bottom) = (self.left, self.top, self.right, self.bottom);
        canvas.line([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)], FRAME);
        let middle = f64::midpoint(left, right);
        canvas.text((middle, top - 4.0), &shortened(title, TEXT, right - left + 20.0), TEXT, Anchor::Middle);
        self.ticks_below(canvas);
        for tick in &self.y.ticks {
            let (_, y) = self.at((0.0, *tick));
            canvas.line([(left - TICK, y), (left, y)], FRAME);
            let words = self.y.label(*tick);
            canvas.text((left - TICK - 1.5, y + 0.35 * SMALL), &words, SMALL, Anchor::End);
        }
        canvas.text((middle, bottom + TICK + SMALL + TEXT + 3.0), x_name, TEXT, Anchor::Middle);
        let wide =
            self.y.ticks.iter().map(|tick| font::width(&self.y.label(*tick), SMALL)).fold(0.0, f64::max);
        canvas.vertical_text((left - TICK - wide - 6.5, f64::midpoint(top, bottom)), y_name, TEXT);
    }

    /// Ticks of the horizontal axis; those whose words would touch the words before have none.
    fn ticks_below(&self, canvas: &mut Canvas) {
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for tick in &self.x.ticks {
            let x = self.across(*tick);
            canvas.line([(x, self.bottom), (x, self.bottom + TICK)], FRAME);
            let words = self.x.label(*tick);
            let half = font::width(&words, SMALL) / 2.0 + 1.5;
            if taken.iter().all(|(from, to)| x + half <= *from || x - half >= *to) {
                canvas.text((x, self.bottom + TICK + SMALL), &words, SMALL, Anchor::Middle);
                taken.push((x - half, x + half));
            }
        }
    }

    /// Draws what lies within the frame.
    pub fn inside(&self, canvas: &mut Canvas, draw: impl FnOnce(&mut Canvas)) {
        canvas.within((self.left, self.top), (self.right, self.bottom), draw);
    }

    /// Draws a line through points, with a gap where one has no value.
    pub fn line(&self, canvas: &mut Canvas, points: &[(f64, Option<f64>)], stroke: Stroke) {
        for part in points.split(|(_, y)| y.is_none()) {
            let part: Vec<Point> = part.iter().filter_map(|(x, y)| Some(self.at((*x, (*y)?)))).collect();
            if part.len() > 1 {
                canvas.line(part, stroke);
            }
        }
    }

    /// Draws a bar from one pair of values to another, flat or upright. An end within the frame has a stroke
    /// across; a bar that leaves the frame, such as one to zero on a logarithmic axis, stops there without.
    pub fn error_bar(&self, canvas: &mut Canvas, from: Point, to: Point, colour: Colour) {
        const END: f64 = 1.6;
        let ends = [self.at(from), self.at(to)];
        let within = ends.map(|(x, y)| (x.clamp(self.left, self.right), y.clamp(self.top, self.bottom)));
        let stroke = Stroke::solid(colour, 0.7);
        canvas.line(within, stroke);
        let (across, down) = if from.1 == to.1 { (0.0, END) } else { (END, 0.0) };
        for (x, y) in ends.into_iter().zip(within).filter(|(end, within)| end == within).map(|(end, _)| end) {
            canvas.line([(x - across, y - down), (x + across, y + down)], stroke);
        }
    }
}

/// What stands in a legend before a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sign {
    Mark(Look),
    /// A line with its mark.
    Marked(Look),
    Line(Stroke),
    Box(Colour),
}

/// Names with their signs, in columns.
#[derive(Clone, Debug)]
pub(super) struct Legend {
    entries: Vec<(Sign, String)>,
    columns: usize,
    column: f64,
}

const SIGN: f64 = 16.0;
const ROW: f64 = TEXT + 2.5;

impl Legend {
    /// A legend that is as wide as the figure.
    pub fn new(entries: Vec<(Sign, String)>, width: f64) -> Self {
        let wide = entries.iter().map(|(_, name)| font::width(name, TEXT)).fold(0.0, f64::max);
        let column = (wide + SIGN + 12.0).min(width - 12.0);
        let columns = (((width - 8.0) / column) as usize).clamp(1, entries.len().max(1));
        Legend { entries, columns, column }
    }

    /// How high it is.
    pub fn height(&self) -> f64 {
        self.entries.len().div_ceil(self.columns) as f64 * ROW + 8.0
    }

    /// Draws it below `top`, in the middle of the figure.
    pub fn draw(&self, canvas: &mut Canvas, top: f64) {
        let left = (canvas.width - self.columns as f64 * self.column) / 2.0 + 4.0;
        let rows = self.entries.len().div_ceil(self.columns);
        for (place, (sign, name)) in self.entries.iter().enumerate() {
            // Down the columns, as a list is read.
            let x = left + (place / rows) as f64 * self.column;
            let y = top + 4.0 + (place % rows) as f64 * ROW + ROW / 2.0;
            let ends = [(x, y), (x + SIGN - 3.0, y)];
            let middle = (x + (SIGN - 3.0) / 2.0, y);
            match sign {
                Sign::Mark(look) => look.mark(canvas, middle, 2.3),
                Sign::Marked(look) => {
                    canvas.line(ends, look.stroke(LINE));
                    look.mark(canvas, middle, 1.9);
                }
                Sign::Line(stroke) => canvas.line(ends, *stroke),
                Sign::Box(colour) => canvas.rectangle((x + 2.0, y - 3.0), (x + SIGN - 5.0, y + 3.0), *colour),
            }
            let most = self.column - SIGN - 4.0;
            canvas.text((x + SIGN, y + 0.35 * TEXT), &shortened(name, TEXT, most), TEXT, Anchor::Start);
        }
    }
}
