//! An algorithm's settings together with the words they were given in, so that a scenario can be written out again as
//! it was read, and defaults that change later do not creep into the file.

use std::ops::Deref;

use brakelight_core::registry::{BuildError, ControllerConfig, FeedbackConfig, QueueConfig};

/// Options as given: name and text, in order.
pub type Options = Vec<(String, String)>;

/// A name and options: what a file or a command line says of one algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Words {
    /// The algorithm.
    pub name: String,
    /// Its options, in order.
    pub options: Options,
}

impl Words {
    /// `name` with `options`.
    pub fn new(name: &str, options: &[(&str, &str)]) -> Self {
        let own = |&(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        Words { name: name.to_string(), options: options.iter().map(own).collect() }
    }
}

/// Checked settings that still know how they were spelled.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelled<C> {
    words: Words,
    config: C,
}

/// Settings that are found by an algorithm's name.
pub trait ByName: Sized {
    /// Finds the algorithm and applies its options.
    fn by_name(name: &str, options: &[(&str, &str)]) -> Result<Self, BuildError>;
    /// The registered name, whatever alias was given.
    fn registered_name(&self) -> &'static str;
}

impl<C: ByName> Spelled<C> {
    /// The settings of the algorithm called `name`, with `options` applied in order.
    pub fn new(name: &str, options: &[(&str, &str)]) -> Result<Self, BuildError> {
        Self::from_words(Words::new(name, options))
    }

    /// The settings that `words` ask for. An alias becomes the registered name.
    pub fn from_words(mut words: Words) -> Result<Self, BuildError> {
        let options: Vec<(&str, &str)> =
            words.options.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let config = C::by_name(&words.name, &options)?;
        words.name = config.registered_name().to_string();
        Ok(Spelled { words, config })
    }

    /// The words.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The settings.
    pub fn config(&self) -> &C {
        &self.config
    }
}

impl<C> Deref for Spelled<C> {
    type Target = C;
    fn deref(&self) -> &C {
        &self.config
    }
}

macro_rules! by_name {
    ($($Config:ty),*) => {
        $(impl ByName for $Config {
            fn by_name(name: &str, options: &[(&str, &str)]) -> Result<Self, BuildError> {
                <$Config>::new(name, options)
            }
            fn registered_name(&self) -> &'static str {
                self.name()
            }
        })*
    };
}

by_name!(ControllerConfig, FeedbackConfig, QueueConfig);
