//! How a command ends when it does not end well: one line and an exit code.

use std::fmt;
use std::io::{self, ErrorKind};

use brakelight_lab::Error;
use brakelight_lab::text::visible::line;
use brakelight_scenario::problem::InputError;

use crate::text;

/// include/uapi/asm-generic/errno-base.h
const EIO: i32 = 5;

/// What went wrong, and the exit code that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// 1: a check or a run failed. 2: the input was wrong.
    pub code: u8,
    /// One line for people; nothing where all has been said.
    pub message: String,
}

impl Failure {
    /// Returns the failure of a command whose input is wrong.
    pub fn input(message: impl fmt::Display) -> Self {
        Failure { code: 2, message: line(&message.to_string()) }
    }

    /// Returns the failure of a command that could not write an output. A full disk, a quota or a fault of
    /// the device is nothing that the user gave: it is a run that failed.
    pub fn output(error: &io::Error, message: impl fmt::Display) -> Self {
        let run_failed = matches!(
            error.kind(),
            ErrorKind::StorageFull
                | ErrorKind::QuotaExceeded
                | ErrorKind::FileTooLarge
                | ErrorKind::BrokenPipe
        ) || error.raw_os_error() == Some(EIO);
        if run_failed { Failure::run(message) } else { Failure::input(message) }
    }

    /// Says which runs `failed` while others went on. Fails if there are any: the results are of the others.
    pub fn of_runs(failed: &[String]) -> Result<(), Self> {
        failed.iter().for_each(|reason| text::say(&format!("failed: {}", line(reason))));
        match failed.len() {
            0 => Ok(()),
            1 => Err(Failure::run("one run failed; the results are those of the others")),
            several => {
                Err(Failure::run(format!("{several} runs failed; the results are those of the others")))
            }
        }
    }

    /// Returns the failure of a check or a run.
    pub fn run(message: impl fmt::Display) -> Self {
        Failure { code: 1, message: line(&message.to_string()) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Failure::input(error)
    }
}

impl From<brakelight_files::Error> for Failure {
    /// In the words of the command line.
    fn from(error: brakelight_files::Error) -> Self {
        match &error {
            brakelight_files::Error::Folder { error: cause, .. }
            | brakelight_files::Error::File { error: cause, .. } => {
                Failure::output(cause, format!("--out {error}"))
            }
            _ => Failure::run(error),
        }
    }
}

#[cfg(target_os = "linux")]
impl From<brakelight_tcp::error::Error> for Failure {
    fn from(error: brakelight_tcp::error::Error) -> Self {
        match error {
            brakelight_tcp::error::Error::Input(_) => Failure::input(error),
            error => Failure::run(error),
        }
    }
}

impl From<Error> for Failure {
    /// In the words of the command line.
    fn from(error: Error) -> Self {
        match error {
            Error::TooCostly { label, cost } => Failure::input(format!(
                "{label}: the estimate for one run is {cost}; make it smaller, or give --force"
            )),
            Error::SweepExists(folder) => Failure::input(format!(
                "--out `{}`: there is a sweep already; continue it with --resume, or give another folder",
                folder.display()
            )),
            Error::Unwritable { path, error } => {
                Failure::output(&error, format!("`{}` cannot be written: {error}", path.display()))
            }
            Error::Output(error) => error.into(),
            error if error.is_input() => Failure::input(error),
            error => Failure::run(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_that_a_terminal_can_print() {
        assert_eq!(Failure::input("a\n\n  b\x1b[2Jc").message, "a b\u{fffd}[2Jc");
    }
}
