//! The names that schemes and scenarios are read with.

use std::sync::{Arc, Mutex, PoisonError};

use brakelight::core::registry::Registry;
use pyo3::prelude::*;

/// What algorithms in Python raised. The simulator has no way for an exception to pass, so it is kept until
/// the work is over; the algorithm then decides nothing more.
#[derive(Clone, Default)]
pub struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    /// Returns whether there is one.
    pub fn any(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the first, and forgets it.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The algorithms that there are.
pub struct Algorithms {
    /// By name.
    pub registry: Registry,
    /// Of those in Python.
    pub failures: Failures,
}

impl Algorithms {
    /// Returns those that Brakelight brings.
    pub fn current() -> Self {
        Algorithms { registry: Registry::standard(), failures: Failures::default() }
    }
}
