//! The command `brakelight`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Does what the command line says, and returns the exit code. `words` start the command again.
#[pyfunction]
pub fn command(py: Python<'_>, words: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| brakelight_cli::main_within(&brakelight_cli::registry(), words, arguments))
}
