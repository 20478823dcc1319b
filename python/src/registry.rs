//! The names that schemes and scenarios are read with: the algorithms that Brakelight brings, and classes in
//! Python that were registered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brakelight::core::registry::Registry;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::controller::{self, Methods};
use crate::error::input;
use crate::queue;

/// What algorithms in Python raised. The simulator has no way for an exception to pass, so it is kept until
/// the work is over; the algorithm then decides nothing more.
#[derive(Clone, Debug, Default)]
pub struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    fn slot(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is one.
    pub fn any(&self) -> bool {
        self.slot().is_some()
    }

    /// Keeps `failure`, unless there is one already.
    pub fn note(&self, failure: PyErr) {
        self.slot().get_or_insert(failure);
    }

    /// Returns a deep copy of `object`; none without one, or where it cannot be copied, which is kept.
    pub fn copy(&self, object: Option<&Py<PyAny>>) -> Option<Py<PyAny>> {
        Python::attach(|py| {
            let object = object?;
            let copied = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (object,)));
            copied.map_err(|failure| self.note(failure)).ok().map(Bound::unbind)
        })
    }

    /// Returns the first, and forgets it.
    pub fn take(&self) -> Option<PyErr> {
        self.slot().take()
    }
}

/// A class that was registered.
struct Class {
    name: &'static str,
    summary: &'static str,
    class: Py<PyType>,
    kind: Kind,
}

enum Kind {
    Controller(Methods),
    Queue,
}

/// The classes that were registered, by kind and name. The last of a name counts, so that a cell of a
/// notebook can be run again.
static CLASSES: Mutex<BTreeMap<(bool, &'static str), Class>> = Mutex::new(BTreeMap::new());

/// Names that schemes hold for as long as the process lives. There are as many as were ever given.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Returns `text` for as long as the process lives.
pub fn interned(text: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.iter().find(|name| **name == text) {
        return name;
    }
    let name: &'static str = String::leak(text.to_string());
    names.push(name);
    name
}

/// The algorithms that there are.
pub struct Algorithms {
    /// By name.
    pub registry: Registry,
    /// Of those in Python.
    pub failures: Failures,
}

impl Algorithms {
    /// Returns those that Brakelight brings, and those that were registered.
    pub fn current() -> Self {
        Python::attach(|py| {
            let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
            let mut algorithms =
                Algorithms { registry: brakelight_cli::registry(), failures: Failures::default() };
            for class in classes.values() {
                // It was added once, so its name is free and its class can be built.
                let added = algorithms.add(py, class);
                debug_assert!(added.is_ok());
            }
            algorithms
        })
    }

    fn add(&mut self, py: Python<'_>, class: &Class) -> PyResult<()> {
        let Class { name, summary, class, kind } = class;
        let (class, failures) = (class.clone_ref(py), self.failures.clone());
        let added = match kind {
            Kind::Controller(methods) => {
                let factory = controller::Factory { name, class, methods: *methods, failures };
                self.registry.add_controller_factory(name, summary, Arc::new(factory))
            }
            Kind::Queue => {
                let factory = queue::Factory { name, class, failures };
                self.registry.add_queue_factory(name, summary, Arc::new(factory))
            }
        };
        added.map_err(input)?;
        // One was built to ask for its ECN encoding.
        self.failures.take().map_or(Ok(()), Err)
    }
}

/// Registers a class of controllers. `overridden` are the methods that it has of its own.
#[pyfunction]
pub fn register_controller(
    py: Python<'_>,
    name: &str,
    summary: &str,
    class: Py<PyType>,
    overridden: Vec<String>,
    checked: bool,
) -> PyResult<()> {
    let methods = Methods::of(py, &class, &overridden, checked)?;
    register(
        py,
        Class { name: interned(name), summary: interned(summary), class, kind: Kind::Controller(methods) },
    )
}

/// Registers a class of queues.
#[pyfunction]
pub fn register_queue(py: Python<'_>, name: &str, summary: &str, class: Py<PyType>) -> PyResult<()> {
    register(py, Class { name: interned(name), summary: interned(summary), class, kind: Kind::Queue })
}

fn register(py: Python<'_>, class: Class) -> PyResult<()> {
    let mut alone = Algorithms { registry: brakelight_cli::registry(), failures: Failures::default() };
    alone.add(py, &class)?;
    let key = (matches!(class.kind, Kind::Queue), class.name);
    CLASSES.lock().unwrap_or_else(PoisonError::into_inner).insert(key, class);
    Ok(())
}
