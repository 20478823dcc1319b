//! Exceptions. Their messages are those of the command: one line, in the user's words.

use std::fmt::Display;

use brakelight::lab;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    brakelight,
    InputError,
    PyValueError,
    "An argument, a scenario, a trace or a grid is wrong: the message names the field, the value and what is valid."
);
create_exception!(brakelight, RunError, PyRuntimeError, "A run failed, or its result could not be written.");

/// Returns the exception of an error of the lab.
pub fn of_lab(error: lab::Error) -> PyErr {
    if error.is_input() { input(error) } else { RunError::new_err(error.to_string()) }
}

/// Returns the exception of wrong input.
pub fn input(error: impl Display) -> PyErr {
    InputError::new_err(error.to_string())
}

/// Returns the exception of a run that failed.
pub fn failed(error: impl Display) -> PyErr {
    RunError::new_err(error.to_string())
}
