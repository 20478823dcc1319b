//! The `brakelight` command. Exit codes: 0 done, 1 a check or a run failed, 2 the input was wrong.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match brakelight_cli::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                brakelight_cli::text::say(&format!("error: {failure}"));
            }
            ExitCode::from(failure.code)
        }
    }
}
