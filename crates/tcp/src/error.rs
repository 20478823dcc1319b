//! What can go wrong with the kernel.

/// What went wrong, in words that say what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused something.
    #[error("{what}: {why}")]
    Kernel {
        /// What was asked of it.
        what: String,
        /// Its answer, with the verifier's or libbpf's words where there are any.
        why: String,
    },
    /// There is no such thing, or not in the state asked for.
    #[error("{0}")]
    Input(String),
}

impl Error {
    /// The kernel refused `what`.
    pub fn kernel(what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Error::Kernel { what: what.into(), why: why.to_string() }
    }
}
