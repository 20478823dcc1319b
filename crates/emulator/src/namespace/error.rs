//! Why the namespaces could not be created.

use std::io;

use crate::device::DeviceError;

/// Why the namespaces could not be created.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// A step on the way that the system refused.
    #[error("{step}: {source}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Step {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The same, in the child process that tried it.
    #[error("{0}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Inside(String),
    /// There is no device.
    #[error("{0}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Device(#[from] DeviceError),
    /// Something killed the first process of the namespaces.
    #[error("the emulation was ended from outside: the first process of its namespaces is gone")]
    Gone,
}

/// Names the step that went wrong.
pub(crate) trait Doing<T> {
    /// `step` is what was tried, in the words of a sentence.
    fn doing(self, step: &'static str) -> Result<T, NamespaceError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, step: &'static str) -> Result<T, NamespaceError> {
        self.map_err(|source| NamespaceError::Step { step, source: source.into() })
    }
}

/// The sentence without the advice, which the emulator adds.
pub(crate) fn short(error: &NamespaceError) -> String {
    match error {
        NamespaceError::Step { step, source } => format!("{step}: {source}"),
        NamespaceError::Device(error) => error.to_string(),
        other => other.to_string(),
    }
}
