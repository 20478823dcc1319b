//! What algorithms from outside have in common, whatever their kind: a name, settings, and a pointer.
//!
//! Each kind has its trait and its settings beside its enum, in the crate that has the built-in ones. A
//! program adds its own by the registry of `brakelight-registry`.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt::Debug;

use crate::facts::{BuildError, Entry, Listed, Options};
use crate::parameters::{self, ParameterError, Parameters};

/// What an algorithm from outside is called, and what can be set.
pub trait Algorithm {
    /// Its settings, declared by [`parameters!`](crate::parameters!).
    type Config: Parameters + PartialEq + Debug + Send + Sync + 'static;

    /// The name used in files and on the command line: lower-case letters, digits, `-` and `_`, beginning
    /// with a letter. No other algorithm of its kind may have it.
    const NAME: &'static str;

    /// Other names for it.
    const ALIASES: &'static [&'static str] = &[];

    /// One line: what it is, and where it comes from.
    const SUMMARY: &'static str;

    /// How the names of files end that stand for it in a scheme, and the option that takes the file:
    /// `mine.wasm` for `wasm:module=mine.wasm`.
    const FILES: Option<(&'static str, &'static str)> = None;
}

/// The entry of an algorithm from outside.
pub fn entry<A: Algorithm>() -> Entry {
    Entry {
        name: A::NAME,
        aliases: A::ALIASES,
        summary: A::SUMMARY,
        parameters: Listed::By(<A::Config as Parameters>::describe),
    }
}

/// The settings of an algorithm from outside, with `options` applied in order.
pub fn configure<A: Algorithm>(options: Options<'_>) -> Result<A::Config, BuildError> {
    A::Config::from_options(options.iter().copied())
        .map_err(|error| BuildError::Option { name: A::NAME, error })
}

/// Settings behind a pointer, which can be cloned and compared.
pub trait Settings: Any + Debug + Send + Sync {
    /// Returns the registered name.
    fn name(&self) -> &'static str;
    /// Returns `true` if `other` has the same settings of the same algorithm.
    fn equals(&self, other: &dyn Any) -> bool;
    /// Returns every option with its value in canonical form.
    fn settings(&self) -> parameters::OptionValues;
}

/// Settings of the algorithm `A`.
pub struct Of<A: Algorithm>(pub A::Config);

impl<A: Algorithm> Clone for Of<A> {
    fn clone(&self) -> Self {
        Of(self.0.clone())
    }
}

/// As the settings themselves.
impl<A: Algorithm> Debug for Of<A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple(A::NAME).field(&self.0).finish()
    }
}

impl<A: Algorithm + 'static> Settings for Of<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn settings(&self) -> parameters::OptionValues {
        self.0.settings()
    }
}

/// An algorithm that a factory builds, by its name. Two are equal if they have the same factory and settings.
pub struct Named<F: ?Sized> {
    /// Its name.
    pub name: &'static str,
    /// What builds it.
    pub factory: Arc<F>,
    /// As the factory returned them: none for one that is not yet set.
    pub settings: parameters::OptionValues,
}

impl<F: ?Sized> Named<F> {
    /// Returns one that is not yet set.
    pub fn new(name: &'static str, factory: Arc<F>) -> Self {
        Named { name, factory, settings: Vec::new() }
    }

    /// Returns the same with these settings, unless the factory refused them.
    ///
    /// # Errors
    /// The factory refused them.
    pub fn set(
        &self,
        settings: Result<parameters::OptionValues, ParameterError>,
    ) -> Result<Self, BuildError> {
        let settings = settings.map_err(|error| BuildError::Option { name: self.name, error })?;
        Ok(Named { settings, ..self.clone() })
    }
}

/// The settings of a factory without parameters, which refuses every option.
///
/// # Errors
/// There are options.
pub fn without_parameters(options: Options<'_>) -> Result<parameters::OptionValues, ParameterError> {
    match options.first() {
        None => Ok(Vec::new()),
        Some((name, _)) => Err(ParameterError::Unknown { name: name.to_string(), known: String::new() }),
    }
}

impl<F: ?Sized> Clone for Named<F> {
    fn clone(&self) -> Self {
        Named { name: self.name, factory: self.factory.clone(), settings: self.settings.clone() }
    }
}

impl<F: ?Sized + Debug> Debug for Named<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple(self.name).field(&self.factory).field(&self.settings).finish()
    }
}

impl<F: ?Sized + Debug + Send + Sync + 'static> Settings for Named<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn equals(&self, other: &dyn Any) -> bool {
        let same =
            |other: &Self| Arc::ptr_eq(&self.factory, &other.factory) && self.settings == other.settings;
        other.downcast_ref::<Self>().is_some_and(same)
    }

    fn settings(&self) -> parameters::OptionValues {
        self.settings.clone()
    }
}

/// Makes a box of a trait object cloneable by its `clone_boxed`.
#[doc(hidden)]
#[macro_export]
macro_rules! clone_by_box {
    ($($Object:ident),*) => {
        $(impl Clone for ::alloc::boxed::Box<dyn $Object> {
            fn clone(&self) -> Self {
                (**self).clone_boxed()
            }
        })*
    };
}
/// Gives a struct with the field `settings`, a box of settings, what every algorithm's settings have.
#[doc(hidden)]
#[macro_export]
macro_rules! settings_in_a_box {
    ($Config:ident) => {
        impl core::fmt::Debug for $Config {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&self.settings, f)
            }
        }

        impl PartialEq for $Config {
            fn eq(&self, other: &Self) -> bool {
                let other: &dyn core::any::Any = &*other.settings;
                self.settings.equals(other)
            }
        }

        impl $Config {
            /// Returns the registered name.
            pub fn name(&self) -> &'static str {
                self.settings.name()
            }

            /// Returns every option with its value in canonical form: equal settings read the same.
            pub fn settings(&self) -> $crate::parameters::OptionValues {
                self.settings.settings()
            }
        }
    };
}
