//! What a terminal shows, and what goes into a pipe.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use brakelight_lab::text::STYLES;
pub use brakelight_lab::text::{Screen, csv, number, number_or_dash, table, thousands};

use crate::failure::Failure;
use crate::visible::is_obeyed;
pub use crate::visible::{line, visible};

/// Returns the standard output as it is.
pub fn standard_output() -> Screen {
    let terminal = io::stdout().is_terminal();
    let pipe = Screen::default();
    let width = if terminal { usize::from(console::Term::stdout().size().1) } else { pipe.width };
    Screen { width: width.max(40), terminal, colour: terminal && console::colors_enabled() }
}

/// [`visible`], with this module's own styles kept.
fn visible_but_styles(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return visible(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, after) = rest.split_at(at);
        shown += &visible(before);
        match STYLES.iter().find(|style| after.starts_with(**style)) {
            Some(style) => {
                shown += style;
                rest = &after[style.len()..];
            }
            None => {
                shown.push(char::REPLACEMENT_CHARACTER);
                rest = &after[1..];
            }
        }
    }
    (shown + &visible(rest)).into()
}

/// A JSON document with every character that a terminal would obey written as an escape, which reads back as
/// the character.
fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_obeyed) {
        return json.into();
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_obeyed(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}"));
        } else {
            text.push(c);
        }
    }
    text.into()
}

/// Prints data. A reader that has seen enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let text = visible_but_styles(text);
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
    print(&format!("{}\n", escaped(&text)))
}

/// Says something to people, beside the data: one line.
pub fn say(text: &str) {
    // Where nobody can be told, nobody is.
    let _ = writeln!(io::stderr(), "{}", line(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_our_own_stay_and_no_others() {
        let screen = Screen { width: 80, terminal: true, colour: true };
        let text = format!("{} {}", screen.bold("a\x1b[31mb"), screen.dim("c"));
        assert_eq!(visible_but_styles(&text), "\x1b[1ma\u{fffd}[31mb\x1b[0m \x1b[2mc\x1b[0m");
    }

    #[test]
    fn json_escapes_what_a_terminal_obeys_and_reads_back_the_same() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}ü" });
        let text = escaped(&value.to_string()).into_owned();
        assert!(!text.contains(is_obeyed), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
