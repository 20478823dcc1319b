//! Algorithms from outside: what a program adds to a [`Registry`](super::Registry) at run time.
//!
//! An algorithm from outside is written as a built-in one is: a configuration by
//! [`parameters!`](crate::parameters!), a type, and the trait of its kind. What a line of the
//! [`table`](crate::table) says of a built-in one, two short traits say of it: [`Algorithm`] its name and its
//! settings, and the trait of this module for its kind how it is built and what others must know of it.
//!
//! ```
//! use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, TimeoutEvent};
//! use brakelight_core::parameters;
//! use brakelight_core::registry::{Algorithm, CustomController, Registry};
//! use brakelight_core::units::Bytes;
//!
//! parameters! {
//!     /// Settings of [`Still`].
//!     pub struct Config {
//!         /// The window, in packets.
//!         packets: u32 = 20, in 1..=1000, from "chosen here";
//!     }
//! }
//!
//! /// A window that never changes.
//! #[derive(Clone, Debug)]
//! pub struct Still {
//!     window: Bytes,
//! }
//!
//! impl Controller for Still {
//!     fn on_ack(&mut self, _event: &AckEvent<'_>) {}
//!     fn on_loss(&mut self, _event: &LossEvent) {}
//!     fn on_timeout(&mut self, _event: &TimeoutEvent) {}
//!     fn cwnd(&self) -> Bytes {
//!         self.window
//!     }
//! }
//!
//! impl Algorithm for Still {
//!     type Config = Config;
//!     const NAME: &'static str = "still";
//!     const SUMMARY: &'static str = "A window that never changes";
//! }
//!
//! impl CustomController for Still {
//!     fn build(config: &Config, connection: &Connection) -> Self {
//!         Still { window: Bytes(u64::from(config.packets) * connection.mss.0) }
//!     }
//! }
//!
//! let mut registry = Registry::standard();
//! registry.add_controller::<Still>().unwrap();
//! assert_eq!(registry.controller("still", &[("packets", "50")]).unwrap().name(), "still");
//! let refused = registry.controller("still", &[("packets", "0")]).unwrap_err();
//! assert_eq!(refused.to_string(), "still: packets = `0` is out of range: valid is 1 to 1000");
//! ```
//!
//! Built-in algorithms are dispatched by `match`; one from outside is called through a pointer, behind the
//! variant `Custom` of its kind's enum.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt::Debug;

use super::{BuildError, Entry, Options};
use crate::parameters::{self, ParameterError, Parameters};

mod controller;
mod element;
mod feedback;
mod host;
mod queue;
mod radio;
#[cfg(test)]
mod tests;

pub use controller::{ControllerFactory, CustomController, CustomControllerConfig, DynController};
pub use element::{BoxedElement, CustomElement, CustomElementConfig, DynElement};
pub use feedback::{CustomFeedback, CustomFeedbackConfig, DynFeedback};
pub use host::HostedConfig;
pub use queue::{BoxedQueue, CustomQueue, CustomQueueConfig, DynQueue, QueueFactory};
pub use radio::{CustomRadio, CustomRadioConfig, DynRadio};

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
}

/// The entry of an algorithm from outside.
pub(super) fn entry<A: Algorithm>() -> Entry {
    Entry {
        name: A::NAME,
        aliases: A::ALIASES,
        summary: A::SUMMARY,
        parameters: <A::Config as Parameters>::describe,
    }
}

/// The settings of an algorithm from outside, with `options` applied in order.
fn configure<A: Algorithm>(options: Options<'_>) -> Result<A::Config, BuildError> {
    A::Config::from_options(options.iter().copied())
        .map_err(|error| BuildError::Option { name: A::NAME, error })
}

/// Settings behind a pointer, which can be cloned and compared.
pub(in crate::registry) trait Settings: Any + Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn equals(&self, other: &dyn Any) -> bool;
    fn settings(&self) -> parameters::OptionValues;
}

/// Settings of the algorithm `A`.
struct Of<A: Algorithm>(A::Config);

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

/// An algorithm that a factory builds, by its name. Two are equal if they have the same factory.
pub(super) struct Named<F: ?Sized> {
    pub(super) name: &'static str,
    pub(super) factory: Arc<F>,
}

impl<F: ?Sized> Named<F> {
    /// Refuses options, of which it has none.
    fn refuse(&self, options: Options<'_>) -> Result<(), BuildError> {
        let Some((name, _)) = options.first() else { return Ok(()) };
        let error = ParameterError::Unknown { name: name.to_string(), known: String::new() };
        Err(BuildError::Option { name: self.name, error })
    }
}

impl<F: ?Sized> Clone for Named<F> {
    fn clone(&self) -> Self {
        Named { name: self.name, factory: self.factory.clone() }
    }
}

impl<F: ?Sized + Debug> Debug for Named<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple(self.name).field(&self.factory).finish()
    }
}

impl<F: ?Sized + Debug + Send + Sync + 'static> Settings for Named<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| Arc::ptr_eq(&self.factory, &other.factory))
    }

    fn settings(&self) -> parameters::OptionValues {
        Vec::new()
    }
}

/// Makes a box of a trait object of this module cloneable by its `clone_boxed`.
macro_rules! clone_by_box {
    ($($Object:ident),*) => {
        $(impl Clone for Box<dyn $Object> {
            fn clone(&self) -> Self {
                (**self).clone_boxed()
            }
        })*
    };
}
use clone_by_box;

/// Gives a struct with the field `settings`, a box of settings, what every algorithm's settings have.
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
            pub fn settings(&self) -> crate::parameters::OptionValues {
                self.settings.settings()
            }
        }
    };
}
use settings_in_a_box;
