//! The whole `brakelight` command, which has this crate's algorithms too.

use std::process::ExitCode;

fn main() -> ExitCode {
    brakelight_cli::main_with(&out_of_tree::registry())
}
