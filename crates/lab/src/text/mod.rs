//! Results as text, for people and for other programs. Nothing is printed here.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@attack`], [`comparison`], [`scenario`], [`claims`], [`stability`] | one kind of result each |
//! | [`mod@bench`], [`parity`], [`perf`], [`mod@trace`] | one kind of result each |
//! | [`evaluation`], [`conformance`] | a scheme by the criteria of a kit, and beside a reference |
//! | [`arena`] | scores of senders |
//! | [`decision`] | what to deploy, the first lines of a comparison |
//! | [`table`] | tables for people |
//! | [`scatter`] | throughput against delay, drawn with letters |
//! | [`csv`] | rows for other programs |
//! | [`mod@visible`] | text of others, made safe to print |

pub mod advice;
mod application;
pub mod arena;
pub mod attack;
pub mod bench;
pub mod claims;
pub mod comparison;
pub mod conformance;
pub mod csv;
pub mod decision;
pub mod evaluation;
mod flow;
pub mod parity;
pub mod perf;
pub mod scatter;
pub mod scenario;
pub mod stability;
#[cfg(all(feature = "quic", target_os = "linux"))]
pub mod stock;
pub mod table;
pub mod trace;
pub mod visible;

/// Where text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether people look at it while it appears.
    pub terminal: bool,
    /// Whether it shows colour.
    pub colour: bool,
}

impl Default for Screen {
    /// 120 columns without colour: a file or a pipe.
    fn default() -> Self {
        Screen { width: 120, terminal: false, colour: false }
    }
}

/// What [`Screen`] puts around words: bold, dimmed, neither. No other control character is in any text of
/// this crate's own.
pub const STYLES: [&str; 3] = ["\x1b[1m", "\x1b[2m", "\x1b[0m"];

impl Screen {
    /// Returns `text` in bold.
    pub fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Returns `text` dimmed.
    pub fn dim(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Returns `value` with three significant digits: `9.87`, `98.7`, `987`.
pub fn number(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

/// How many digits behind the point make three that matter.
fn digits(value: f64) -> usize {
    match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    }
}

/// Returns the same, or a dash.
pub fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), number)
}

/// Returns a whole number with commas: `1,234,567`.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Returns `one` or `2 others`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_three_digits_that_matter() {
        let shown = [0.0, 0.012, 9.994, 9.996, 99.94, 99.96, 1234.5, -12.34].map(number);
        assert_eq!(shown, ["0.00", "0.01", "9.99", "10.0", "99.9", "100", "1234", "-12.3"]);
        assert_eq!([0.0, 999.4, 1000.0, 1234567.0].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
