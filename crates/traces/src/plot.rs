//! A picture of a trace in the letters of a terminal.

use std::fmt::Write;

/// Returns the area under `values` in Braille letters, `columns` wide and `rows` high, with an axis in `unit`
/// on the left and one from 0 to `seconds` below. A letter holds two values side by side and four steps of
/// height.
///
/// Values beyond the width are averaged; fewer are repeated. Negative ones count as zero.
pub fn area(values: &[f64], columns: usize, rows: usize, unit: &str, seconds: f64) -> String {
    let (columns, rows) = (columns.max(1), rows.max(1));
    let points = resample(values, 2 * columns);
    let top = ceiling(points.iter().copied().fold(0.0, f64::max));
    let levels: Vec<usize> = points.iter().map(|value| level(*value, top, 4 * rows)).collect();
    let label = |row: usize| format!("{}", top * (rows - row) as f64 / rows as f64);
    let width = (0..rows).map(|row| label(row).len()).max().unwrap_or(0).max(1);
    let mut text = String::new();
    writeln!(text, "{unit}").expect("a string takes any text");
    for row in 0..rows {
        // Labels at the top, in the middle, and nowhere else.
        let shown = if row == 0 || 2 * row == rows { label(row) } else { String::new() };
        let below = 4 * (rows - 1 - row);
        let letters: String = levels
            .chunks_exact(2)
            .map(|pair| braille(pair[0].saturating_sub(below).min(4), pair[1].saturating_sub(below).min(4)))
            .collect();
        writeln!(text, "{shown:>width$} |{letters}").expect("a string takes any text");
    }
    let end = format!("{seconds} s");
    let space = columns.saturating_sub(1 + end.len());
    writeln!(text, "{:>width$} +{}", 0, "-".repeat(columns)).expect("a string takes any text");
    writeln!(text, "{:>width$}  0{}{end}", "", " ".repeat(space)).expect("a string takes any text");
    text
}

/// Returns one line of eighth blocks, one a value.
pub fn sparkline(values: &[f64], columns: usize) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let points = resample(values, columns.max(1));
    let top = points.iter().copied().fold(0.0, f64::max);
    points.iter().map(|value| BLOCKS[level(*value, top, 8)]).collect()
}

/// How many of `steps` a value fills, of `top`; any value above zero fills at least one.
fn level(value: f64, top: f64, steps: usize) -> usize {
    if value <= 0.0 || top <= 0.0 {
        return 0;
    }
    (libm::round(value / top * steps as f64) as usize).clamp(1, steps)
}

/// `count` values: means over equal stretches of `values`, or repetitions where there are fewer.
fn resample(values: &[f64], count: usize) -> Vec<f64> {
    if values.is_empty() {
        return vec![0.0; count];
    }
    let stretch = |index: usize| {
        let from = index * values.len() / count;
        let to = ((index + 1) * values.len() / count).max(from + 1);
        values[from..to].iter().sum::<f64>() / (to - from) as f64
    };
    (0..count).map(stretch).collect()
}

/// The least of 1, 2, 3, 4, 5, 6, 8 and 10 times a power of ten that is not below `value`; 1 for nothing.
fn ceiling(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let exponent = libm::floor(libm::log10(value)) as i32;
    let scaled = |step: f64| {
        if exponent < 0 {
            step / libm::pow(10.0, f64::from(-exponent))
        } else {
            step * libm::pow(10.0, f64::from(exponent))
        }
    };
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .map(scaled)
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// A Braille letter whose left and right columns are filled so high from below, 0 to 4.
fn braille(left: usize, right: usize) -> char {
    // Dots by column from the bottom: 7 3 2 1 on the left, 8 6 5 4 on the right.
    const LEFT: [u32; 5] = [0x00, 0x40, 0x44, 0x46, 0x47];
    const RIGHT: [u32; 5] = [0x00, 0x80, 0xa0, 0xb0, 0xb8];
    char::from_u32(0x2800 + LEFT[left] + RIGHT[right]).expect("all of 2800 to 28ff are letters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_fills_from_below() {
        // Two rows of four steps, top 8: 8 fills all, 4 the lower row, 1 one step, 0 none.
        let text = area(&[8.0, 4.0, 1.0, 0.0], 2, 2, "Mbit/s", 4.0);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["Mbit/s", "8 |⡇⠀", "4 |⣿⡀", "0 +--", "   04 s"]);
    }

    #[test]
    fn sparkline_shows_one_block_a_value() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0], 4), " ▁▄█");
        assert_eq!(sparkline(&[], 3), "   ");
    }

    #[test]
    fn values_are_averaged_or_repeated_to_the_width() {
        assert_eq!(resample(&[1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        assert_eq!(resample(&[1.0, 2.0], 4), [1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn the_axis_ends_at_a_round_number() {
        for (value, top) in
            [(0.0, 1.0), (0.07, 0.08), (1.0, 1.0), (11.3, 20.0), (24.0, 30.0), (870.0, 1000.0)]
        {
            assert!((ceiling(value) - top).abs() < 1e-9, "{value}: {}", ceiling(value));
        }
    }
}
