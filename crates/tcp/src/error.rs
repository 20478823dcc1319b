//! Errors of this crate.

/// Why an operation of this crate failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused an operation.
    #[error("{what}: {why}")]
    Kernel {
        /// The operation.
        what: String,
        /// The kernel's answer, with the messages of the verifier or libbpf if there are any.
        why: String,
    },
    /// The request names something that does not exist, or that is in another state.
    #[error("{0}")]
    Input(String),
}

impl Error {
    /// Returns the kernel refused `what`.
    pub fn kernel(what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Error::Kernel { what: what.into(), why: why.to_string() }
    }
}
