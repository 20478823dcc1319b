//! A queue or a setter as the value of one option: `name/option=value/option=value`.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use brakelight_core::facts::{BuildError, Options};
use brakelight_core::parameters::{OptionValues, Value};
use brakelight_routers::{QUEUES, QueueConfig};

/// Splits a choice into its name and its options. A part without `=` belongs to the value before it, since
/// values may have slashes of their own. `None` if it is malformed.
pub(super) fn words(text: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let (name, mut rest) = match text.trim().split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text.trim(), None),
    };
    let mut options = Vec::new();
    while let Some(text) = rest {
        let equals = text.find('=')?;
        // The value ends at the last slash before the next `=`, if there is another option.
        let end = text[equals + 1..]
            .find('=')
            .and_then(|next| text[..equals + 1 + next].rfind('/').filter(|slash| *slash > equals))
            .unwrap_or(text.len());
        let (option, value) = (text[..equals].trim(), text[equals + 1..end].trim());
        if option.is_empty() || value.is_empty() {
            return None;
        }
        options.push((option, value));
        rest = text.get(end + 1..);
    }
    (!name.is_empty()).then_some((name, options))
}

/// Writes a choice with the options that differ from `defaults`.
pub(super) fn show(name: &str, settings: &OptionValues, defaults: &OptionValues) -> String {
    let mut text = name.to_string();
    for ((option, value), (_, default)) in settings.iter().zip(defaults) {
        if value != default {
            text += &format!("/{option}={value}");
        }
    }
    text
}

/// Reads a choice by `find`.
pub(super) fn read<C>(
    text: &str,
    kind: &str,
    find: impl Fn(&str, Options<'_>) -> Result<C, BuildError>,
) -> Result<C, String> {
    let malformed = || format!("a {kind} such as `name` or `name/option=value/option=value`");
    let (name, options) = words(text).ok_or_else(malformed)?;
    find(&name.to_lowercase(), &options).map_err(|error| format!("a valid {kind}: {error}"))
}

/// A queue that Brakelight brings, with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueChoice(pub Box<QueueConfig>);

impl QueueChoice {
    /// Returns the queue called `name`, with its defaults.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(name: &str) -> Self {
        QueueChoice(Box::new(QueueConfig::new(name, &[]).unwrap_or_else(|error| panic!("{error}"))))
    }
}

impl Value for QueueChoice {
    fn unit() -> String {
        QUEUES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(" | ")
    }

    fn parse(text: &str) -> Result<Self, String> {
        read(text, "queue", QueueConfig::new).map(|queue| QueueChoice(Box::new(queue)))
    }

    fn show(&self) -> String {
        let defaults = QueueConfig::new(self.0.name(), &[]).map(|config| config.settings());
        show(self.0.name(), &self.0.settings(), &defaults.unwrap_or_default())
    }
}
