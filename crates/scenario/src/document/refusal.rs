//! Why a value of a document was refused.

use std::fmt::{self, Display};

use brakelight_registry::BuildError;
use serde::de::{self, Expected, Unexpected};

use crate::problem::{Invalid, Location, Problem};

/// What is wrong, and the path to the value that it is about. The path may end in a key that is not there.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// From the value outwards.
    steps: Vec<Step>,
    /// What the value belongs to, where the path does not say it.
    pub(super) owner: Option<String>,
    pub(super) reason: Box<Reason>,
}

/// One step of a path.
#[derive(Debug)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// What is wrong with a value.
#[derive(Debug)]
pub(crate) enum Reason {
    /// It is not this.
    Malformed(String),
    /// Its key is none of these.
    UnknownKey(String),
    /// It is not there: give this.
    Missing(String),
    /// It cannot stand beside another one.
    Contradiction(String),
    /// It names an algorithm that could not be built.
    Algorithm(BuildError),
    /// Something that needs neither key nor value of the document.
    Other(Problem),
}

impl Refusal {
    /// For the value itself; [`Refusal::under`] and [`Refusal::at`] build the path to it.
    pub(crate) fn new(reason: Reason) -> Self {
        Refusal { steps: Vec::new(), owner: None, reason: Box::new(reason) }
    }

    pub(crate) fn malformed(expected: impl Into<String>) -> Self {
        Self::new(Reason::Malformed(expected.into()))
    }

    pub(crate) fn contradiction(key: &str, reason: impl Into<String>) -> Self {
        Self::new(Reason::Contradiction(reason.into())).under(key)
    }

    pub(crate) fn missing(key: &str, expected: &str) -> Self {
        Self::new(Reason::Missing(expected.to_string())).under(key)
    }

    /// The same about the entry of `key`.
    pub(crate) fn under(mut self, key: &str) -> Self {
        self.steps.push(Step::Key(key.to_string()));
        self
    }

    /// The same about the element at `index`.
    pub(crate) fn at(mut self, index: usize) -> Self {
        self.steps.push(Step::Index(index));
        self
    }

    /// The same, with other words for what the value belongs to.
    pub(crate) fn owned_by(mut self, owner: String) -> Self {
        self.owner = Some(owner);
        self
    }

    /// From the document inwards.
    pub(super) fn path(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().rev()
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        let refusal =
            Refusal::new(Reason::Other(*invalid.problem)).under(invalid.key).owned_by(invalid.owner);
        match invalid.location {
            Location::Scenario => refusal,
            Location::Record => refusal.under("record"),
            Location::Link(index) => refusal.at(index).under("link"),
            Location::Flow(index) => refusal.at(index).under("flow"),
        }
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.reason)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: Display>(message: T) -> Self {
        Refusal::new(Reason::Contradiction(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Refusal::malformed(expected.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Refusal::malformed(expected.to_string())
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Refusal::malformed(expected.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Refusal::missing(field, "a value")
    }
}
