//! What can be wrong with an input: typed, and said in the user's words with file, line, field, value and
//! what would be valid. All of it ends a command with exit code 2.

use std::fmt;

use brakelight_core::suggest::DidYouMean;
use brakelight_registry::BuildError;
use thiserror::Error;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct InputError {
    /// The file, as it was named.
    pub file: Option<String>,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// What the field belongs to: `` flow `main` ``; empty at the top level.
    pub owner: String,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not TOML.
    #[error("{message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// A key that means nothing here.
    #[error("unknown key `{key}`{}: valid are {valid}", DidYouMean::of_list(key, valid))]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys that exist here.
        valid: String,
    },
    /// A key that must be there.
    #[error("`{key}` is missing: give {expected}")]
    MissingKey {
        /// The key.
        key: String,
        /// What it should hold.
        expected: String,
    },
    /// A value of another kind, or one that cannot be read.
    #[error("{key} = `{value}` is not {expected}")]
    Malformed {
        /// The field.
        key: String,
        /// The value as given.
        value: String,
        /// What would have been valid.
        expected: String,
    },
    /// A value of the right kind outside the valid range.
    #[error("{key} = `{value}` is out of range: valid is {valid}")]
    OutOfRange {
        /// The field.
        key: String,
        /// The value as given.
        value: String,
        /// The valid range.
        valid: String,
    },
    /// A name that refers to nothing.
    #[error("{key}: unknown {what} `{name}`{}: valid are {valid}", DidYouMean::of_list(name, valid))]
    UnknownName {
        /// The field.
        key: String,
        /// What it should name.
        what: String,
        /// The name as given.
        name: String,
        /// The names that exist.
        valid: String,
    },
    /// Two things of one name.
    #[error("{key} = `{name}` is taken: give every {what} a name of its own")]
    Duplicate {
        /// The field.
        key: String,
        /// What has the name.
        what: String,
        /// The name.
        name: String,
    },
    /// An algorithm that is not there, or does not take its options.
    #[error("{key}: {error}")]
    Algorithm {
        /// The field.
        key: String,
        /// What was wrong.
        error: BuildError,
    },
    /// Values that are each valid and contradict each other.
    #[error("{key}: {reason}")]
    Contradiction {
        /// The field.
        key: String,
        /// What is wrong, in the user's words.
        reason: String,
    },
}

/// Where in a scenario something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// A field of the scenario itself.
    Scenario,
    /// A field of what to record.
    Record,
    /// A field of the link at this index.
    Link(usize),
    /// A field of the flow at this index.
    Flow(usize),
}

/// Something wrong with a scenario, by field rather than by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Where.
    pub location: Location,
    /// The field there.
    pub key: &'static str,
    /// What the field belongs to, in words.
    pub owner: String,
    /// What is wrong.
    pub problem: Box<Problem>,
}

impl Invalid {
    /// Returns the error of a scenario that a program made and calls `owner`.
    pub fn of(self, owner: impl Into<String>) -> InputError {
        InputError { owner: owner.into(), ..InputError::from(self) }
    }
}

impl From<Invalid> for InputError {
    fn from(invalid: Invalid) -> Self {
        InputError { file: None, line: None, owner: invalid.owner, problem: invalid.problem }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if !self.owner.is_empty() {
            write!(f, "{}: ", self.owner)?;
        }
        self.problem.fmt(f)
    }
}
