//! What a terminal shows, and what goes into a pipe.
//!
//! | module | holds |
//! |---|---|
//! | [`table`] | tables for people |
//! | [`scatter`] | throughput against delay, drawn with letters |
//! | [`csv`] | rows for other programs |

pub mod csv;
pub mod scatter;
pub mod table;

use std::io::{self, IsTerminal, Write};

use crate::failure::Failure;

/// Width to draw for when standard output is no terminal.
const PIPE_WIDTH: usize = 120;

/// Where a command's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether people look at it while it appears.
    pub terminal: bool,
    /// Whether it shows colour.
    pub colour: bool,
}

impl Screen {
    /// Standard output as it is.
    pub fn standard_output() -> Self {
        let terminal = io::stdout().is_terminal();
        let width = if terminal { usize::from(console::Term::stdout().size().1) } else { PIPE_WIDTH };
        Screen { width: width.max(40), terminal, colour: terminal && console::colors_enabled() }
    }

    /// `text` in bold.
    pub fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }

    /// `text` dimmed.
    pub fn dim(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Prints data. A reader that has seen enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    print(&format!("{text}\n"))
}

/// Says something to people, beside the data.
pub fn say(text: &str) {
    // Where nobody can be told, nobody is.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Three digits that matter: `9.87`, `98.7`, `987`.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// The same, or a dash.
pub fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), number)
}

/// A whole number with commas: `1,234,567`.
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

/// `one` or `2 others`.
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
