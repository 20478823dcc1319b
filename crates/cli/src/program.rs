//! How this command was called, and how it calls itself: as the program that it is, unless a program that
//! holds it says otherwise.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use crate::failure::Failure;

/// A command line: the words that start the command, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    /// What starts the command again: `python3 -m brakelight`. Empty for this very program.
    words: Vec<OsString>,
    arguments: Vec<OsString>,
}

static CALL: OnceLock<Call> = OnceLock::new();

/// Says that the command is part of another program: `words` start it again, and `arguments` are what it was
/// given. Only the first call counts.
pub(crate) fn set(words: Vec<OsString>, arguments: Vec<OsString>) {
    let _ = CALL.set(Call { words, arguments });
}

/// Returns the arguments, without the program's name.
pub fn arguments() -> Vec<OsString> {
    match CALL.get() {
        Some(call) => call.arguments.clone(),
        None => std::env::args_os().skip(1).collect(),
    }
}

/// Returns the words that start this command again, at least one.
pub fn words() -> Result<Vec<OsString>, Failure> {
    match CALL.get().map(|call| &call.words).filter(|words| !words.is_empty()) {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![std::env::current_exe().map_err(Failure::run)?.into()]),
    }
}

/// Returns this command, to be given arguments and started as a process of its own.
pub fn command() -> Result<Command, Failure> {
    let words = words()?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_its_own_program_starts_itself() {
        let words = words().unwrap();
        assert_eq!(words, [std::env::current_exe().unwrap()]);
        assert_eq!(command().unwrap().get_program(), words[0]);
        assert_eq!(arguments().len(), std::env::args_os().count() - 1);
    }
}
