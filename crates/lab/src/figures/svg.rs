//! A drawing as SVG: text stays text, in the reader's Helvetica or what is like it.

use std::fmt::Write;

use super::canvas::{Anchor, Canvas, Colour, Point, Shape, Stroke};

/// The drawing as a file, called `title` by a screen reader.
pub(super) fn document(canvas: &Canvas, title: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}pt\" height=\"{1}pt\" viewBox=\"0 0 {0} {1}\" role=\"img\" \
         font-family=\"Helvetica, Arial, Arimo, 'Liberation Sans', sans-serif\">\n<title>{2}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        number(canvas.width),
        number(canvas.height),
        escape(title)
    );
    for shape in &canvas.shapes {
        write(&mut svg, shape);
    }
    svg + "</svg>\n"
}

fn write(svg: &mut String, shape: &Shape) {
    let written = match shape {
        Shape::Line(points, stroke) => {
            writeln!(svg, "<polyline points=\"{}\" fill=\"none\"{}/>", places(points), look(*stroke))
        }
        Shape::Area { points, fill, stroke } => {
            let look = stroke.map(look).unwrap_or_default();
            writeln!(svg, "<polygon points=\"{}\"{}{look}/>", places(points), filled(*fill))
        }
        Shape::Circle { centre: (x, y), radius, fill, stroke } => {
            let (x, y, radius) = (number(*x), number(*y), number(*radius));
            let look = stroke.map(look).unwrap_or_default();
            writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{}{look}/>", filled(*fill))
        }
        Shape::Text { at, words, size, anchor, vertical, colour } => {
            let (x, y) = (number(at.0), number(at.1));
            let turned =
                if *vertical { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let (size, colour, words) = (number(*size), hexadecimal(*colour), escape(words));
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{colour}\"{anchor}{turned}>{words}</text>"
            )
        }
        Shape::Within((left, top), (right, bottom), shapes) => {
            // A drawing within the drawing, with the same places: it ends at its edges.
            let [x, y, width, height] = [*left, *top, right - left, bottom - top].map(number);
            let begun = writeln!(
                svg,
                "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" viewBox=\"{x} {y} {width} {height}\">"
            );
            for shape in shapes {
                write(svg, shape);
            }
            begun.and_then(|()| writeln!(svg, "</svg>"))
        }
    };
    written.expect("a string takes everything");
}

fn places(points: &[Point]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}

fn look(stroke: Stroke) -> String {
    let mut text =
        format!(" stroke=\"{}\" stroke-width=\"{}\"", hexadecimal(stroke.colour), number(stroke.width));
    if !stroke.dashes.is_empty() {
        let dashes = stroke.dashes.iter().map(|length| number(*length)).collect::<Vec<_>>().join(" ");
        text += &format!(" stroke-dasharray=\"{dashes}\"");
    }
    text + " stroke-linejoin=\"round\""
}

fn filled(colour: Option<Colour>) -> String {
    format!(" fill=\"{}\"", colour.map_or_else(|| "none".to_string(), hexadecimal))
}

fn hexadecimal(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Hundredths of a point are finer than any printer.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// `text` as XML has it. What XML has no place for becomes a replacement character.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
