//! What a terminal shows, and what goes into a pipe.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};

pub use brakelight_lab::text::visible::line;
use brakelight_lab::text::visible::{escaped, visible_but_styles};
pub use brakelight_lab::text::{Screen, number, number_or_dash, table};

use crate::failure::Failure;

/// Returns the standard output as it is.
pub fn standard_output() -> Screen {
    let terminal = io::stdout().is_terminal();
    let pipe = Screen::default();
    let width = if terminal { usize::from(console::Term::stdout().size().1) } else { pipe.width };
    Screen { width: width.max(40), terminal, colour: terminal && console::colors_enabled() }
}

/// Prints data. A reader that has seen enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    print_all(visible_but_styles(text).as_bytes())
}

/// Prints what is no text. Fails if a person would see it.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::input("the file is not text: give `--out FILE`, or send it to a pipe"));
    }
    print_all(bytes)
}

fn print_all(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    print(&json(document)?)
}

/// Returns one JSON document, as it is printed.
pub fn json(document: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    Ok(format!("{}\n", escaped(&text)))
}

/// How much is said beside the data: 0 nothing but what ends the command, 1 the usual, 2 all.
static VERBOSITY: AtomicU8 = AtomicU8::new(1);

/// Has notes and progress left out if `quiet`, and more of them said if `verbose`.
pub fn set_verbosity(quiet: bool, verbose: bool) {
    VERBOSITY.store(1 + u8::from(verbose) - u8::from(quiet), Ordering::Relaxed);
}

/// Returns `true` if nothing is to be said that does not end the command.
pub fn is_quiet() -> bool {
    VERBOSITY.load(Ordering::Relaxed) == 0
}

/// Says something to people, beside the data: one line. Nothing under `--quiet`.
pub fn say(text: &str) {
    if !is_quiet() {
        complain(text);
    }
}

/// Says what only those want to know who gave `--verbose`.
pub fn detail(text: &str) {
    if VERBOSITY.load(Ordering::Relaxed) > 1 {
        complain(text);
    }
}

/// Says why the command ends.
pub fn complain(text: &str) {
    // Where nobody can be told, nobody is.
    let _ = writeln!(io::stderr(), "{}", line(text));
}
