//! A drawing of lines, areas, circles and words, in points of 1/72 inch from its upper left corner. It
//! becomes an [SVG](super::svg) or a [PDF](super::pdf): what is in it looks the same in both.

use super::font;

/// A place, or a distance from one.
pub(super) type Point = (f64, f64);

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    pub const BLACK: Colour = Colour(0, 0, 0);
    pub const WHITE: Colour = Colour(255, 255, 255);
    /// Of grids and what stands in the background.
    pub const PALE: Colour = Colour(222, 222, 222);
    /// Of what is said beside the data.
    pub const GREY: Colour = Colour(110, 110, 110);

    /// The colour that lies at `share` of the way from this one to `other`.
    pub fn towards(self, other: Colour, share: f64) -> Colour {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
        Colour(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }
}

/// A line's look: its width and, in turn, lengths of dashes and gaps; none for a solid line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stroke {
    pub colour: Colour,
    pub width: f64,
    pub dashes: &'static [f64],
}

impl Stroke {
    pub const fn solid(colour: Colour, width: f64) -> Self {
        Stroke { colour, width, dashes: &[] }
    }
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A line through points.
    Line(Vec<Point>, Stroke),
    /// What a closed line surrounds.
    Area { points: Vec<Point>, fill: Option<Colour>, stroke: Option<Stroke> },
    /// A disc, a ring or both.
    Circle { centre: Point, radius: f64, fill: Option<Colour>, stroke: Option<Stroke> },
    /// A line of words on a base line; upwards where it is vertical.
    Text { at: Point, words: String, size: f64, anchor: Anchor, vertical: bool, colour: Colour },
    /// What lies within a rectangle, by two of its corners.
    Within(Point, Point, Vec<Shape>),
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Canvas {
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

impl Canvas {
    pub fn new(width: f64, height: f64) -> Self {
        Canvas { width, height, shapes: Vec::new() }
    }

    pub fn line(&mut self, points: impl Into<Vec<Point>>, stroke: Stroke) {
        self.shapes.push(Shape::Line(points.into(), stroke));
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&mut self, (left, top): Point, (right, bottom): Point, fill: Colour) {
        let points = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
        self.shapes.push(Shape::Area { points, fill: Some(fill), stroke: None });
    }

    pub fn text(&mut self, at: Point, words: &str, size: f64, anchor: Anchor) {
        self.coloured_text(at, words, size, anchor, Colour::BLACK);
    }

    pub fn coloured_text(&mut self, at: Point, words: &str, size: f64, anchor: Anchor, colour: Colour) {
        if !words.is_empty() {
            let words = words.to_string();
            self.shapes.push(Shape::Text { at, words, size, anchor, vertical: false, colour });
        }
    }

    /// Words that run upwards, the middle of them at `at`.
    pub fn vertical_text(&mut self, at: Point, words: &str, size: f64) {
        if words.is_empty() {
            return;
        }
        self.shapes.push(Shape::Text {
            at,
            words: words.to_string(),
            size,
            anchor: Anchor::Middle,
            vertical: true,
            colour: Colour::BLACK,
        });
    }

    /// Draws what `draw` draws as far as it lies within a rectangle.
    pub fn within(&mut self, from: Point, to: Point, draw: impl FnOnce(&mut Canvas)) {
        let mut inside = Canvas::new(self.width, self.height);
        draw(&mut inside);
        self.shapes.push(Shape::Within(from, to, inside.shapes));
    }
}

/// `words` as they are, or their beginning with an ellipsis where they are wider than `most`.
pub(super) fn shortened(words: &str, size: f64, most: f64) -> String {
    if font::width(words, size) <= most {
        return words.to_string();
    }
    let mut kept: Vec<char> = words.chars().collect();
    while kept.pop().is_some() {
        let text: String = kept.iter().chain(&['…']).collect();
        if font::width(&text, size) <= most {
            return text;
        }
    }
    String::new()
}
