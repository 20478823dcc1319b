//! The names that schemes and scenarios are read with: the algorithms that Brakelight brings, and classes in
//! Python that were registered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brakelight::core::registry::Registry;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::controller::{self, Methods};
use crate::error::input;
use crate::options::{Options, Setting};
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
        let spare = {
            let mut slot = self.slot();
            if slot.is_some() { Some(failure) } else { slot.replace(failure) }
        };
        // Python runs where an exception goes, so not while the lock is held.
        drop(spare);
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
    options: Options,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Controller(Methods),
    Queue,
}

impl Class {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        Class { class: self.class.clone_ref(py), options: self.options.clone(), ..*self }
    }
}

/// The classes that were registered, by kind and name. The last of a name counts, so that a cell of a
/// notebook can be run again. Nothing that may run Python is done while it is locked: another thread could
/// run then, and wait for the lock with the GIL.
static CLASSES: Mutex<BTreeMap<(bool, &'static str), Class>> = Mutex::new(BTreeMap::new());

/// Names that schemes hold for as long as the process lives. There are as many as were ever given. Locked
/// with the GIL alone, so that no thread has it locked when the process is forked.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Returns `text` for as long as the process lives.
pub fn interned(_: Python<'_>, text: &str) -> &'static str {
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
            let classes: Vec<Class> = {
                let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
                classes.values().map(|class| class.clone_ref(py)).collect()
            };
            let mut algorithms =
                Algorithms { registry: brakelight_cli::registry(), failures: Failures::default() };
            for class in classes {
                // It was added once, so its name is free and its class can be built. It need not be built
                // again: its constructor may be what asks.
                let added = algorithms.add(class, false);
                debug_assert!(added.is_ok());
            }
            algorithms
        })
    }

    /// Adds a class. If it is `tried`, one is built, and what that raises is returned.
    fn add(&mut self, class: Class, tried: bool) -> PyResult<()> {
        let Class { name, summary, class, options, kind } = class;
        let failures = self.failures.clone();
        match kind {
            Kind::Controller(methods) => {
                let empty = AtomicBool::new(!tried);
                let factory =
                    Arc::new(controller::Factory { name, class, methods, options, failures, empty });
                let added = self.registry.add_controller_factory(name, summary, factory.clone());
                added.map_err(input)?;
                factory.empty.store(false, Ordering::Relaxed);
            }
            Kind::Queue => {
                let factory = queue::Factory { name, class, options, failures };
                self.registry.add_queue_factory(name, summary, Arc::new(factory)).map_err(input)?;
            }
        }
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
    options: Vec<(String, Setting)>,
    checked: bool,
) -> PyResult<()> {
    let kind = Kind::Controller(Methods::of(py, &class, &overridden, checked)?);
    register(py, name, summary, class, options, kind)
}

/// Registers a class of queues.
#[pyfunction]
pub fn register_queue(
    py: Python<'_>,
    name: &str,
    summary: &str,
    class: Py<PyType>,
    options: Vec<(String, Setting)>,
) -> PyResult<()> {
    register(py, name, summary, class, options, Kind::Queue)
}

fn register(
    py: Python<'_>,
    name: &str,
    summary: &str,
    class: Py<PyType>,
    options: Vec<(String, Setting)>,
    kind: Kind,
) -> PyResult<()> {
    let (name, summary) = (interned(py, name), interned(py, summary));
    let class = Class { name, summary, class, options: Options::of(py, options), kind };
    let mut alone = Algorithms { registry: brakelight_cli::registry(), failures: Failures::default() };
    alone.add(class.clone_ref(py), true)?;
    let key = (matches!(kind, Kind::Queue), name);
    // The lock is free again when the class goes whose place it takes.
    let replaced = CLASSES.lock().unwrap_or_else(PoisonError::into_inner).insert(key, class);
    drop(replaced);
    Ok(())
}
