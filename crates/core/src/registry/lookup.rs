//! Finding algorithms by their names.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{
    BuildError, CONTROLLERS, ControllerConfig, Entry, FEEDBACKS, FeedbackConfig, Options, QUEUES, QueueConfig,
};
use crate::path::elements::{ELEMENTS, ElementConfig, RADIOS, RadioConfig};

/// The algorithms that names in scenarios and scheme strings can mean.
///
/// A registry is a value: whoever reads a scenario or a scheme says which one it is read with. [`Registry::standard`] holds what
/// Brakelight brings.
///
/// ```
/// use brakelight_core::registry::Registry;
///
/// let registry = Registry::standard();
/// let config = registry.queue("codel", &[("target", "20ms")]).unwrap();
/// assert_eq!(config.name(), "codel");
/// assert!(registry.controllers().any(|entry| entry.name == "cubic"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {}

impl Registry {
    /// What Brakelight brings.
    pub const fn standard() -> Self {
        Registry {}
    }

    /// Every controller.
    pub fn controllers(&self) -> impl Iterator<Item = &Entry> + Clone {
        CONTROLLERS.iter()
    }

    /// Every feedback.
    pub fn feedbacks(&self) -> impl Iterator<Item = &Entry> + Clone {
        FEEDBACKS.iter()
    }

    /// Every queue.
    pub fn queues(&self) -> impl Iterator<Item = &Entry> + Clone {
        QUEUES.iter()
    }

    /// Every path element but links and radios.
    pub fn elements(&self) -> impl Iterator<Item = &Entry> + Clone {
        ELEMENTS.iter()
    }

    /// Every radio.
    pub fn radios(&self) -> impl Iterator<Item = &Entry> + Clone {
        RADIOS.iter()
    }

    /// The settings of the controller called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No controller has the name, or it refuses an option.
    pub fn controller(&self, name: &str, options: Options<'_>) -> Result<ControllerConfig, BuildError> {
        ControllerConfig::new(name, options)
    }

    /// The settings of the feedback called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No feedback has the name, or it refuses an option.
    pub fn feedback(&self, name: &str, options: Options<'_>) -> Result<FeedbackConfig, BuildError> {
        FeedbackConfig::new(name, options)
    }

    /// The settings of the queue called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No queue has the name, or it refuses an option.
    pub fn queue(&self, name: &str, options: Options<'_>) -> Result<QueueConfig, BuildError> {
        QueueConfig::new(name, options)
    }

    /// The settings of the path element called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No path element has the name, or it refuses an option.
    pub fn element(&self, name: &str, options: Options<'_>) -> Result<ElementConfig, BuildError> {
        ElementConfig::new(name, options)
    }

    /// The settings of the radio called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No radio has the name, or it refuses an option.
    pub fn radio(&self, name: &str, options: Options<'_>) -> Result<RadioConfig, BuildError> {
        RadioConfig::new(name, options)
    }
}

/// The entry called `name`, by its own name or an alias.
pub fn find<'a>(entries: impl IntoIterator<Item = &'a Entry>, name: &str) -> Option<&'a Entry> {
    entries.into_iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
}

/// That no algorithm of this `kind` is called `name`, with the names that there are.
pub(crate) fn unknown<'a>(
    kind: &'static str,
    name: &str,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> BuildError {
    BuildError::Unknown { kind, name: name.to_string(), known: names(entries) }
}

/// The names of `entries`, as a list for people.
pub fn names<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
