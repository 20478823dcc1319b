//! The options of classes in Python: the keywords of their constructors.

use std::sync::Arc;

use brakelight::core::parameters::{OptionValues, Parameter, ParameterError};
use brakelight::core::units::parse_number;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::registry::interned;

/// The value of an option. An option keeps the kind of its default.
#[derive(Clone, Debug, PartialEq, FromPyObject, IntoPyObject)]
pub enum Setting {
    /// Before whole numbers, of which Python takes it for one.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// Any number.
    Number(f64),
    /// Words.
    Text(String),
}

impl Setting {
    /// Returns what it says what is valid in place of it.
    fn kind(&self) -> &'static str {
        match self {
            Setting::Flag(_) => "true | false",
            Setting::Whole(_) => "whole number",
            Setting::Number(_) => "number",
            Setting::Text(_) => "text",
        }
    }

    /// Returns the value of the same kind that `text` spells.
    fn read(&self, text: &str) -> Option<Self> {
        match self {
            Setting::Flag(_) => text.parse().ok().map(Setting::Flag),
            Setting::Whole(_) => text.parse().ok().map(Setting::Whole),
            Setting::Number(_) => parse_number(text).map(Setting::Number),
            Setting::Text(_) => Some(Setting::Text(text.to_string())),
        }
    }

    /// Returns the canonical spelling, which [`read`](Self::read) reads back.
    fn text(&self) -> String {
        match self {
            Setting::Flag(value) => value.to_string(),
            Setting::Whole(value) => value.to_string(),
            Setting::Number(value) => value.to_string(),
            Setting::Text(value) => value.clone(),
        }
    }
}

/// The options of a class with their defaults.
#[derive(Clone, Debug)]
pub struct Options {
    list: Arc<[(&'static str, Setting)]>,
    /// The same for lists of what there is.
    pub parameters: &'static [Parameter],
}

impl Options {
    /// Returns those of these names and defaults.
    pub fn of(py: Python<'_>, list: Vec<(String, Setting)>) -> Self {
        let list: Vec<(&'static str, Setting)> =
            list.into_iter().map(|(name, default)| (interned(py, &name), default)).collect();
        let parameters: Vec<Parameter> = list
            .iter()
            .map(|(name, default)| Parameter {
                name,
                meaning: "A keyword of the class's constructor",
                unit: default.kind().to_string(),
                default: default.text(),
                range: "any".to_string(),
                source: "its class",
            })
            .collect();
        Options { list: list.into(), parameters: if parameters.is_empty() { &[] } else { parameters.leak() } }
    }

    /// Returns every option with its value in canonical form, once those that are `given` are applied.
    pub fn settings(&self, given: &[(&str, &str)]) -> Result<OptionValues, ParameterError> {
        let mut settings: OptionValues =
            self.list.iter().map(|(name, default)| (*name, default.text())).collect();
        for (name, value) in given {
            let Some(place) = self.list.iter().position(|(known, _)| known == name) else {
                let known: Vec<&str> = self.list.iter().map(|(name, _)| *name).collect();
                return Err(ParameterError::Unknown { name: (*name).to_string(), known: known.join(", ") });
            };
            let (name, default) = &self.list[place];
            let read = default.read(value).ok_or_else(|| ParameterError::Malformed {
                name,
                value: (*value).to_string(),
                expected: match default {
                    Setting::Flag(_) => "`true` or `false`".to_string(),
                    other => format!("a {}", other.kind()),
                },
            })?;
            settings[place].1 = read.text();
        }
        Ok(settings)
    }

    /// Returns `settings` as keywords.
    pub fn keywords<'py>(&self, py: Python<'py>, settings: &OptionValues) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        for ((name, default), (_, text)) in self.list.iter().zip(settings) {
            keywords.set_item(name, default.read(text).unwrap_or_else(|| default.clone()))?;
        }
        Ok(keywords)
    }
}
