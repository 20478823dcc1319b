//! Why the namespaces could not be created.

use std::io;

use crate::device::DeviceError;

/// Why the namespaces could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The system refused a step.
    #[error("{step}: {source}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Step {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a step in the child process.
    #[error("{0}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Inside(String),
    /// The TUN device could not be created.
    #[error("{0}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Device(#[from] DeviceError),
    /// Something killed the first process of the namespaces.
    #[error("the emulation was ended from outside: the first process of its namespaces is gone")]
    Gone,
}

/// Turns a system error into a [`NamespaceError`] that names the failed step.
pub(crate) trait Doing<T> {
    /// `step` says what was tried: "making a socket pair".
    fn doing(self, step: &'static str) -> Result<T, NamespaceError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, step: &'static str) -> Result<T, NamespaceError> {
        self.map_err(|source| NamespaceError::Step { step, source: source.into() })
    }
}

/// The message without the advice, which the emulator adds.
pub(crate) fn short(error: &NamespaceError) -> String {
    match error {
        NamespaceError::Step { step, source } => format!("{step}: {source}"),
        NamespaceError::Device(error) => error.to_string(),
        other => other.to_string(),
    }
}
