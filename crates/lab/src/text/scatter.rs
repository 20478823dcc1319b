//! Throughput against delay, drawn with letters: up and to the right is better, as in the report.

use std::fmt::Write;

use super::{Screen, number};

/// One scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// Delay, in the drawing's unit.
    pub delay: f64,
    /// Share of the capacity, 0 to 1.
    pub utilization: f64,
    /// Whether it is on the Pareto frontier.
    pub pareto: bool,
}

const HEIGHT: usize = 12;
const MARGIN: usize = 7;

/// Returns the drawing, with its legend; nothing where there is nothing to compare. `unit` is that of the
/// delays.
pub fn render(points: &[Point], unit: &str, screen: &Screen) -> String {
    let points: Vec<&Point> = points.iter().filter(|point| point.delay > 0.0).collect();
    if points.len() < 2 {
        return String::new();
    }
    let width = (screen.width.saturating_sub(MARGIN + 2)).clamp(24, 72);
    let (low, high) = bounds(points.iter().map(|point| point.delay.ln()), 0.15);
    let (bottom, top) = bounds(points.iter().map(|point| point.utilization), 0.02);
    let mut cells = vec![vec![' '; width]; HEIGHT];
    let mut legend = Vec::new();
    for (point, letter) in points.iter().zip('A'..='Z') {
        let across = 1.0 - (point.delay.ln() - low) / (high - low);
        let up = (point.utilization - bottom) / (top - bottom);
        let column = ((across * (width - 1) as f64).round() as usize).min(width - 1);
        let row = HEIGHT - 1 - ((up * (HEIGHT - 1) as f64).round() as usize).min(HEIGHT - 1);
        // Whoever comes second at a place moves to the next free one.
        let free = (0..width).map(|step| (column + step) % width).find(|&column| cells[row][column] == ' ');
        cells[row][free.unwrap_or(column)] = letter;
        legend.push(format!("{letter}{} {}", if point.pareto { "*" } else { "" }, point.name));
    }
    let mut text = String::new();
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    for (index, row) in cells.iter().enumerate() {
        let label = match index {
            0 => percent(top),
            _ if index == HEIGHT / 2 => percent((top + bottom) / 2.0),
            _ if index == HEIGHT - 1 => percent(bottom),
            _ => String::new(),
        };
        let tick = if label.is_empty() { '│' } else { '┤' };
        let line: String = row.iter().collect();
        writeln!(text, "{label:>MARGIN$} {tick}{}", line.trim_end())
            .expect("strings take what they are given");
    }
    writeln!(text, "{:MARGIN$} └{}", "", "─".repeat(width)).expect("strings take what they are given");
    let (left, right) = (format!("{} {unit}", number(high.exp())), format!("{} {unit}", number(low.exp())));
    let room = width.saturating_sub(left.len() + right.len());
    let titles = ["p95 queueing delay, less is to the right", "p95 queueing delay", ""];
    let title = titles.into_iter().find(|title| title.len() + 2 <= room).unwrap_or_default();
    let before = room.saturating_sub(title.len()) / 2;
    let after = room.saturating_sub(title.len() + before);
    let axis = format!("{left}{}{title}{}{right}", " ".repeat(before), " ".repeat(after));
    writeln!(text, "{:MARGIN$}  {axis}", "").expect("strings take what they are given");
    for line in wrap(&legend, width) {
        writeln!(text, "{:MARGIN$}  {line}", "").expect("strings take what they are given");
    }
    text
}

/// The least and the greatest value, with a little room around them.
fn bounds(values: impl Iterator<Item = f64> + Clone, room: f64) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    (low - room, high + room)
}

/// Items side by side, three blanks between them, in as many lines as they need.
fn wrap(items: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + item.chars().count() <= width => {
                line.push_str("   ");
                line.push_str(item);
            }
            _ => lines.push(item.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen { width: 60, terminal: false, colour: false };

    #[test]
    fn better_is_up_and_to_the_right() {
        let point =
            |name: &str, delay, utilization, pareto| Point { name: name.into(), delay, utilization, pareto };
        let points = [
            point("abc", 110.0, 0.86, true),
            point("cubic", 1130.0, 0.96, true),
            point("cubic+codel", 165.0, 0.66, false),
            point("cubic+pie", 75.0, 0.63, true),
            point("newreno", 1130.0, 0.96, false),
        ];
        insta::assert_snapshot!(render(&points, "ms", &SCREEN));
        assert_eq!(render(&points[..1], "ms", &SCREEN), "", "one point compares with nothing");
    }
}
