//! An algorithm's settings together with the words they were given in, so that a scenario can be written out
//! again as it was read, and defaults that change later do not creep into the file.

use std::fmt;
use std::ops::Deref;

use brakelight_core::parameters::{OptionValues, ParameterError};
use brakelight_links::elements::{ElementConfig, RadioConfig};
use brakelight_registry::{BuildError, ControllerConfig, FeedbackConfig, QueueConfig, Registry};

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
    /// Returns `name` with `options`.
    pub fn new(name: &str, options: &[(&str, &str)]) -> Self {
        let own = |&(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        Words { name: name.to_string(), options: options.iter().map(own).collect() }
    }

    /// `name` with `settings`, sorted.
    pub(crate) fn canonical(name: &str, settings: OptionValues) -> Self {
        let own = |(name, text): (&str, String)| (name.to_string(), text);
        let mut options: Options = settings.into_iter().map(own).collect();
        options.sort();
        Words { name: name.to_string(), options }
    }

    /// Reads `name` or `name:option=value,option=value`. White space around each part does not count, nor do
    /// capitals in the name.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, options) = match text.split_once(':') {
            Some((name, options)) => (name, Some(options)),
            None => (text, None),
        };
        let option = |item: &str| {
            let (name, value) = item.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            (!name.is_empty() && !value.is_empty()).then(|| (name.to_string(), value.to_string()))
        };
        let options = options.map_or(Some(Vec::new()), |list| list.split(',').map(option).collect())?;
        let name = name.trim();
        let plain = |name: &str| !name.is_empty() && !name.contains(['=', ',', ':']);
        plain(name).then(|| Words { name: name.to_lowercase(), options })
    }
}

/// As [`Words::parse`] reads it.
impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (name, value)) in self.options.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// An algorithm's validated settings, with the words of the scheme string or file that asked for them.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemeString<C> {
    words: Words,
    config: C,
}

/// Settings that are found by an algorithm's name.
pub trait ByName: Sized {
    /// Finds the algorithm in `registry` and applies its options.
    fn by_name(registry: &Registry, name: &str, options: &[(&str, &str)]) -> Result<Self, BuildError>;
    /// Returns the registered name, whatever alias was given.
    fn registered_name(&self) -> &'static str;
    /// Returns every option with its value in canonical form.
    fn settings(&self) -> OptionValues;
}

impl<C: ByName> SchemeString<C> {
    /// Returns the settings of the algorithm called `name` among those that Brakelight brings, with `options`
    /// applied in order.
    pub fn new(name: &str, options: &[(&str, &str)]) -> Result<Self, BuildError> {
        Self::from_words(Words::new(name, options))
    }

    /// Returns the settings that `words` ask for, of an algorithm that Brakelight brings. An alias becomes
    /// the registered name.
    pub fn from_words(words: Words) -> Result<Self, BuildError> {
        Self::from_words_with(&Registry::standard(), words)
    }

    /// Returns the settings that `words` ask for, of an algorithm of `registry`. An alias becomes the
    /// registered name.
    pub fn from_words_with(registry: &Registry, mut words: Words) -> Result<Self, BuildError> {
        let options: Vec<(&str, &str)> =
            words.options.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let config = C::by_name(registry, &words.name, &options)?;
        let twice =
            (1..options.len()).find(|&at| options[..at].iter().any(|(name, _)| *name == options[at].0));
        if let Some(at) = twice {
            let reason = format!("option `{}` is given twice: valid is once", options[at].0);
            return Err(BuildError::Option {
                name: config.registered_name(),
                error: ParameterError::Conflict { reason },
            });
        }
        words.name = config.registered_name().to_string();
        Ok(SchemeString { words, config })
    }

    /// Returns the words as they were given, with the registered name for an alias.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the canonical words: every option of the algorithm, sorted by name, each with its value in
    /// canonical form. Equal settings have equal canonical words.
    ///
    /// ```
    /// use brakelight_registry::QueueConfig;
    /// use brakelight_scenario::scheme_string::SchemeString;
    ///
    /// let queue = SchemeString::<QueueConfig>::new("droptail", &[("limit", "1500B")]).unwrap();
    /// assert_eq!(queue.canonical().to_string(), "droptail:limit=1.5kB");
    /// ```
    pub fn canonical(&self) -> Words {
        Words::canonical(&self.words.name, self.config.settings())
    }

    /// Returns the settings.
    pub fn config(&self) -> &C {
        &self.config
    }
}

impl SchemeString<FeedbackConfig> {
    /// Returns the feedback that a controller brings.
    pub fn brought_by(controller: &ControllerConfig) -> Self {
        let config = controller.feedback();
        SchemeString { words: Words::new(config.name(), controller.feedback_options()), config }
    }
}

impl SchemeString<QueueConfig> {
    /// Returns the queue that takes its place, with the same options, where flows pass that do not speak its
    /// encoding.
    pub fn beside_others(&self) -> Option<Self> {
        let name = self.traits().beside_others?;
        let words = Words { name: name.to_string(), options: self.words.options.clone() };
        match &self.config {
            QueueConfig::Custom(custom) => {
                custom.beside_others().map(|config| SchemeString { words, config: config.clone() })
            }
            _ => Some(
                SchemeString::from_words(words)
                    .expect("the queue that takes another's place takes all its options"),
            ),
        }
    }
}

impl<C> Deref for SchemeString<C> {
    type Target = C;
    fn deref(&self) -> &C {
        &self.config
    }
}

macro_rules! by_name {
    ($($Config:ty: $find:ident),* $(,)?) => {
        $(impl ByName for $Config {
            fn by_name(registry: &Registry, name: &str, options: &[(&str, &str)]) -> Result<Self, BuildError> {
                registry.$find(name, options)
            }
            fn registered_name(&self) -> &'static str {
                self.name()
            }
            fn settings(&self) -> OptionValues {
                <$Config>::settings(self)
            }
        })*
    };
}

by_name! {
    ControllerConfig: controller,
    FeedbackConfig: feedback,
    QueueConfig: queue,
    ElementConfig: element,
    RadioConfig: radio,
}
