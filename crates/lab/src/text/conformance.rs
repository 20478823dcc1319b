//! How far schemes are from a reference, for people and for a pull request.

use std::fmt::Write;

use super::table::{self, Column};
use super::{Screen, number};
use crate::conformance::geometry::{Point, contains};
use crate::conformance::{Cell, Conformance, Conforming};

const HEIGHT: usize = 12;
const MARGIN: usize = 8;

/// A number with its sign: `+1.20`.
fn signed(value: f64) -> String {
    let text = number(value.abs());
    match text.as_str() {
        zero if zero == number(0.0) => text,
        _ if value < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

fn or_dash(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_string(), show)
}

/// Two digits behind the point.
fn share(value: f64) -> String {
    format!("{value:.2}")
}

/// Returns the conformance, its direction, and the worst link, in sentences without a period.
pub fn verdict(scheme: &Conforming, reference: &str) -> Vec<String> {
    let (Some(all), Some(moved)) = (scheme.conformance, scheme.conformance_t) else {
        return vec![format!("{}: no link gave a conformance to {reference}", scheme.scheme)];
    };
    let mut lines = vec![format!(
        "{}: conformance to {reference} {}, Conformance-T {}",
        scheme.scheme,
        share(all),
        share(moved)
    )];
    if let (Some(throughput), Some(delay)) = (scheme.throughput_offset_percent, scheme.delay_offset_percent) {
        let side =
            |value: f64| format!("{} % {}", number(value.abs()), if value < 0.0 { "less" } else { "more" });
        lines.push(format!(
            "On average it takes {} of the link than the reference, with {} of the full buffer's delay",
            side(throughput),
            side(delay)
        ));
    }
    if let Some(worst) = scheme.worst() {
        lines.push(format!("It is worst at {}: {}", worst.place(), or_dash(worst.conformance, share)));
    }
    lines
}

fn columns() -> Vec<Column> {
    vec![
        Column::number("rate", "Mbit/s"),
        Column::number("RTT", "ms"),
        Column::number("buffer", "BDP"),
        Column::number("conformance", ""),
        Column::number("conformance-T", ""),
        Column::number("throughput", "by Mbit/s"),
        Column::number("RTT", "by ms"),
        Column::number("overlap", "").spare(1),
    ]
}

fn row(cell: &Cell) -> Vec<String> {
    vec![
        cell.rate_mbps.to_string(),
        cell.rtt_ms.to_string(),
        cell.buffer_bdp.to_string(),
        or_dash(cell.conformance, share),
        or_dash(cell.conformance_t, share),
        or_dash(cell.throughput_offset_mbps, signed),
        or_dash(cell.delay_offset_ms, signed),
        or_dash(cell.overlap, share),
    ]
}

/// The notes of cells, each with its link.
fn notes(scheme: &Conforming) -> impl Iterator<Item = String> + '_ {
    let noted = scheme.cells.iter().filter(|cell| !cell.note.is_empty());
    noted.map(|cell| format!("{}: {}", cell.place(), cell.note))
}

/// Returns for each scheme its conformance, a table of its links, and a picture of the worst.
pub fn in_words(conformance: &Conformance, screen: &Screen) -> String {
    let mut text = String::new();
    for scheme in &conformance.schemes {
        let mut lines = verdict(scheme, &conformance.reference).into_iter();
        text += &format!("{}\n", screen.bold(&lines.next().unwrap_or_default()));
        text.extend(lines.map(|line| line + "\n"));
        text += "\n";
        let rows: Vec<Vec<String>> = scheme.cells.iter().map(row).collect();
        text += &table::render(&columns(), &rows, screen);
        text.extend(notes(scheme).map(|note| note + "\n"));
        if let Some(worst) = scheme.worst() {
            text += "\n";
            text += &picture(worst, &scheme.scheme, &conformance.reference, screen);
        }
        text += "\n";
    }
    text
}

/// Returns both clouds of a link, drawn with letters: throughput upwards, round-trip time to the right.
fn picture(cell: &Cell, scheme: &str, reference: &str, screen: &Screen) -> String {
    let points = || cell.own.points.iter().chain(&cell.reference.points);
    let corners = || points().chain(cell.own.envelope.iter().chain(&cell.reference.envelope).flatten());
    let bound = |axis: usize| {
        let values = || corners().map(|point| point[axis]);
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        (low, (high - low).max(1e-9))
    };
    let ((bottom, tall), (left, wide)) = (bound(0), bound(1));
    let width = screen.width.saturating_sub(MARGIN + 2).clamp(24, 64);
    let mut counts = vec![vec![[0_u32; 2]; width]; HEIGHT];
    for (of, cloud) in [&cell.own, &cell.reference].into_iter().enumerate() {
        for [mbps, rtt_ms] in &cloud.points {
            let up = ((mbps - bottom) / tall * (HEIGHT - 1) as f64).round() as usize;
            let across = ((rtt_ms - left) / wide * (width - 1) as f64).round() as usize;
            counts[HEIGHT - 1 - up.min(HEIGHT - 1)][across.min(width - 1)][of] += 1;
        }
    }
    let inside = |hulls: &[Vec<Point>], point| hulls.iter().any(|hull| contains(hull, point));
    let sign = |line: usize, column: usize| match counts[line][column] {
        [0, 0] => {
            let along = |place: usize, of: usize| place as f64 / (of - 1) as f64;
            let at = [bottom + tall * along(HEIGHT - 1 - line, HEIGHT), left + wide * along(column, width)];
            if inside(&cell.reference.envelope, at) { '·' } else { ' ' }
        }
        [_, 0] => 'o',
        [0, _] => 'r',
        _ => '*',
    };
    let mut text = format!("{}\n", screen.dim(&format!("The worst link: {}", cell.place())));
    for line in 0..HEIGHT {
        let label = match line {
            0 => number(bottom + tall),
            _ if line == HEIGHT - 1 => number(bottom),
            _ => String::new(),
        };
        let drawn: String = (0..width).map(|column| sign(line, column)).collect();
        let tick = if label.is_empty() { '│' } else { '┤' };
        writeln!(text, "{label:>MARGIN$} {tick}{}", drawn.trim_end())
            .expect("strings take what they are given");
    }
    let (from, to) = (format!("{} ms", number(left)), format!("{} ms", number(left + wide)));
    let room = width.saturating_sub(from.len() + to.len());
    text += &format!("{:>MARGIN$} └{}\n", "Mbit/s", "─".repeat(width));
    text += &format!("{:MARGIN$}  {from}{:^room$}{to}\n", "", "round-trip time");
    text + &format!("{:MARGIN$}  o {scheme}   r {reference}   * both   · the envelope of {reference}\n", "")
}

/// Returns what a pull request shows: a table for each scheme.
pub fn markdown(conformance: &Conformance) -> String {
    let mut text = String::new();
    for scheme in &conformance.schemes {
        text += &format!("### `{}` like `{}`\n\n", scheme.scheme, conformance.reference);
        text.extend(verdict(scheme, &conformance.reference).into_iter().map(|line| format!("{line}.\n")));
        text += "\n| rate (Mbit/s) | RTT (ms) | buffer (BDP) | conformance | Conformance-T | throughput (by Mbit/s) | RTT (by ms) | overlap |\n";
        text += "|---|---|---|---|---|---|---|---|\n";
        text.extend(scheme.cells.iter().map(|cell| format!("| {} |\n", row(cell).join(" | "))));
        text.extend(notes(scheme).map(|note| format!("\n{}\n", note.replace('|', "\\|"))));
        text += "\n";
    }
    text
}
