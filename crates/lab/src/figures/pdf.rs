//! A drawing as a PDF of one page, as large as the drawing, with its font embedded. No dates: equal drawings
//! have equal bytes.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::FontFlags;
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::canvas::{Anchor, Canvas, Colour, Point, Shape, Stroke};
use super::font::{self, METRICS};

const FONT: Name<'_> = Name(b"F1");
const FONT_NAME: Name<'_> = Name(b"Arimo-Regular");

/// The file, called `title` by a viewer.
pub(super) fn document(canvas: &Canvas, title: &str) -> Vec<u8> {
    let [catalog, pages, page, content, font, descriptor, file, info] =
        [1, 2, 3, 4, 5, 6, 7, 8].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    pdf.document_info(info).title(TextStr(title)).creator(TextStr("brakelight"));
    let mut written = pdf.page(page);
    written.parent(pages).contents(content);
    written.media_box(Rect::new(0.0, 0.0, canvas.width as f32, canvas.height as f32));
    written.resources().fonts().pair(FONT, font);
    written.finish();
    let drawn = deflated(&drawn(canvas));
    pdf.stream(content, &drawn).filter(Filter::FlateDecode);
    embed(&mut pdf, font, descriptor, file);
    pdf.finish()
}

/// Adds the font with every code that it has.
fn embed(pdf: &mut Pdf, font: Ref, descriptor: Ref, file: Ref) {
    const FIRST: u8 = 0x20;
    let widths = METRICS.widths[usize::from(FIRST)..].iter().map(|width| *width as f32);
    let mut simple = pdf.indirect(font).dict();
    simple.pair(Name(b"Type"), Name(b"Font")).pair(Name(b"Subtype"), Name(b"TrueType"));
    simple.pair(Name(b"BaseFont"), FONT_NAME);
    simple.pair(Name(b"FirstChar"), i32::from(FIRST)).pair(Name(b"LastChar"), 255);
    simple.insert(Name(b"Widths")).array().items(widths);
    simple.pair(Name(b"FontDescriptor"), descriptor).pair(Name(b"Encoding"), Name(b"WinAnsiEncoding"));
    simple.finish();
    let [left, bottom, right, top] = METRICS.bounds.map(|edge| edge as f32);
    pdf.font_descriptor(descriptor)
        .name(FONT_NAME)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(left, bottom, right, top))
        .italic_angle(0.0)
        .ascent(METRICS.ascent as f32)
        .descent(METRICS.descent as f32)
        .cap_height(METRICS.cap_height as f32)
        .stem_v(80.0)
        .font_file2(file);
    let packed = deflated(font::FILE);
    let mut stream = pdf.stream(file, &packed);
    stream.filter(Filter::FlateDecode);
    stream.pair(Name(b"Length1"), font::FILE.len() as i32);
    stream.finish();
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes everything")
}

/// The drawing's commands; the page's origin is below, on the left.
fn drawn(canvas: &Canvas) -> Vec<u8> {
    let mut content = Content::new();
    let page = Page { height: canvas.height };
    for shape in &canvas.shapes {
        page.draw(&mut content, shape);
    }
    content.finish().to_vec()
}

struct Page {
    height: f64,
}

impl Page {
    /// A place as the page counts it, to a hundredth of a point.
    fn at(&self, (x, y): Point) -> (f32, f32) {
        (round(x), round(self.height - y))
    }

    fn draw(&self, content: &mut Content, shape: &Shape) {
        match shape {
            Shape::Line(points, stroke) => {
                begin(content, None, Some(*stroke));
                self.path(content, points);
                content.stroke();
            }
            Shape::Area { points, fill, stroke } => {
                begin(content, *fill, *stroke);
                self.path(content, points);
                content.close_path();
                end(content, fill.is_some(), stroke.is_some());
            }
            Shape::Circle { centre, radius, fill, stroke } => {
                begin(content, *fill, *stroke);
                self.circle(content, *centre, *radius);
                end(content, fill.is_some(), stroke.is_some());
            }
            Shape::Text { at, words, size, anchor, vertical, colour } => {
                let width = font::width(words, *size);
                let before = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => width / 2.0,
                    Anchor::End => width,
                };
                let (x, y) = match vertical {
                    true => self.at((at.0, at.1 + before)),
                    false => self.at((at.0 - before, at.1)),
                };
                let turn = if *vertical { [0.0, 1.0, -1.0, 0.0] } else { [1.0, 0.0, 0.0, 1.0] };
                let codes: Vec<u8> = words.chars().map(font::code).collect();
                begin(content, Some(*colour), None);
                content.begin_text().set_font(FONT, round(*size));
                content.set_text_matrix([turn[0], turn[1], turn[2], turn[3], x, y]);
                content.show(Str(&codes)).end_text();
            }
            Shape::Within(from, to, shapes) => {
                content.save_state();
                let ((left, top), (right, bottom)) = (self.at(*from), self.at(*to));
                content.rect(left, bottom, right - left, top - bottom).clip_nonzero().end_path();
                for shape in shapes {
                    self.draw(content, shape);
                }
                content.restore_state();
            }
        }
    }

    fn path(&self, content: &mut Content, points: &[Point]) {
        for (place, point) in points.iter().enumerate() {
            let (x, y) = self.at(*point);
            if place == 0 {
                content.move_to(x, y);
            } else {
                content.line_to(x, y);
            }
        }
    }

    /// Four curves, each a quarter to within a thousandth of the radius.
    fn circle(&self, content: &mut Content, (x, y): Point, radius: f64) {
        const BEND: f64 = 0.552_285;
        let at = |across: f64, up: f64| self.at((x + across * radius, y - up * radius));
        let begin = at(1.0, 0.0);
        content.move_to(begin.0, begin.1);
        for [a, b, c] in [
            [at(1.0, BEND), at(BEND, 1.0), at(0.0, 1.0)],
            [at(-BEND, 1.0), at(-1.0, BEND), at(-1.0, 0.0)],
            [at(-1.0, -BEND), at(-BEND, -1.0), at(0.0, -1.0)],
            [at(BEND, -1.0), at(1.0, -BEND), at(1.0, 0.0)],
        ] {
            content.cubic_to(a.0, a.1, b.0, b.1, c.0, c.1);
        }
        content.close_path();
    }
}

fn round(value: f64) -> f32 {
    ((value * 100.0).round() / 100.0) as f32
}

fn begin(content: &mut Content, fill: Option<Colour>, stroke: Option<Stroke>) {
    let parts = |Colour(red, green, blue): Colour| [red, green, blue].map(|part| f32::from(part) / 255.0);
    if let Some([red, green, blue]) = fill.map(parts) {
        content.set_fill_rgb(red, green, blue);
    }
    if let Some(stroke) = stroke {
        let [red, green, blue] = parts(stroke.colour);
        content.set_stroke_rgb(red, green, blue).set_line_width(round(stroke.width));
        content.set_line_join(pdf_writer::types::LineJoinStyle::RoundJoin);
        content.set_dash_pattern(stroke.dashes.iter().map(|length| round(*length)), 0.0);
    }
}

fn end(content: &mut Content, filled: bool, stroked: bool) {
    match (filled, stroked) {
        (true, true) => content.fill_nonzero_and_stroke(),
        (true, false) => content.fill_nonzero(),
        (false, true) => content.stroke(),
        (false, false) => content.end_path(),
    };
}
