//! The `brakelight` command. Exit codes: 0 done, 1 a check or a run failed, 2 the input was wrong.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    brakelight_cli::main_with(&brakelight_cli::registry())
}
