//! Configuration structs: every field with its unit, valid range, default and source. The command line, the
//! scenario files and the docs table all read [`Parameter`]; nobody keeps a second list.
//!
//! [`parameters!`](crate::parameters!) declares two structs: `Values`, whose fields anybody may set, and the
//! configuration, whose fields anybody may read and nobody may set. A configuration is made of values, or of
//! options by name, only if each is in its range and no two contradict each other; so an algorithm that is
//! built of one needs no checks of its own.
//!
//! ```
//! use brakelight_core::parameters;
//! use brakelight_core::parameters::Parameters;
//! use brakelight_core::time::Duration;
//!
//! parameters! {
//!     /// A queue's settings.
//!     pub struct Config {
//!         /// Sojourn time the queue settles at.
//!         target: Duration = Duration::from_millis(5),
//!             in Duration::from_nanos(1)..=Duration::from_secs(10), from "rfc8289 4.3";
//!         /// Target share of the capacity.
//!         eta: f64 = 0.98, in 0.1..=1.0, from "abc20 7.2";
//!     }
//! }
//!
//! let config = Config::from_options([("target", "20ms")]).unwrap();
//! assert_eq!((config.target, config.eta), (Duration::from_millis(20), 0.98));
//! let config = Config::new(Values { eta: 0.9, ..Values::default() }).unwrap();
//! assert_eq!(config.eta, 0.9);
//!
//! let refused = "eta = `2` is out of range: valid is 0.1 to 1";
//! assert_eq!(Config::from_options([("eta", "2")]).unwrap_err().to_string(), refused);
//! assert_eq!(Config::new(Values { eta: 2.0, ..Values::default() }).unwrap_err().to_string(), refused);
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::{RangeFrom, RangeFull, RangeInclusive};

use crate::suggest::DidYouMean;
use crate::time::Duration;
use crate::units::{Bytes, Limit, Rate};

mod shared;

pub use shared::Shared;

/// One field of a configuration struct, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name used in files and on the command line.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// The unit or the kind of value: `time`, `rate`, `a | b | c`.
    pub unit: String,
    /// The default, spelled as it would be given.
    pub default: String,
    /// The valid range, in words.
    pub range: String,
    /// Where the default comes from.
    pub source: &'static str,
}

/// Why an option was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterError {
    /// No such parameter.
    Unknown {
        /// The name as given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The text is not a value of the parameter's type.
    Malformed {
        /// The parameter.
        name: &'static str,
        /// The text as given.
        value: String,
        /// What would have been valid.
        expected: String,
    },
    /// The value is outside the valid range.
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The value as given.
        value: String,
        /// The valid range.
        range: String,
    },
    /// Two values that are each valid contradict each other.
    Conflict {
        /// What is wrong, in the user's words.
        reason: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::Unknown { name, known } if known.is_empty() => {
                write!(f, "unknown option `{name}`: there are none")
            }
            ParameterError::Unknown { name, known } => {
                write!(f, "unknown option `{name}`{}: valid are {known}", DidYouMean::of_list(name, known))
            }
            ParameterError::Malformed { name, value, expected } => {
                write!(f, "{name} = `{value}` is not {expected}")
            }
            ParameterError::OutOfRange { name, value, range } => {
                write!(f, "{name} = `{value}` is out of range: valid is {range}")
            }
            ParameterError::Conflict { reason } => f.write_str(reason),
        }
    }
}

impl core::error::Error for ParameterError {}

/// A type that a parameter can have.
pub trait Value: Sized + PartialEq {
    /// Returns the unit, or the choices.
    fn unit() -> String;
    /// Reads the human spelling; the error says what would have been valid.
    fn parse(text: &str) -> Result<Self, String>;
    /// Returns the human spelling.
    fn show(&self) -> String;
}

/// A set of valid values.
pub trait Domain<T> {
    /// Returns whether `value` is valid.
    fn admits(&self, value: &T) -> bool;
    /// Returns the set in words.
    fn describe(&self) -> String;
}

impl<T: Value + PartialOrd> Domain<T> for RangeInclusive<T> {
    fn admits(&self, value: &T) -> bool {
        self.contains(value)
    }
    fn describe(&self) -> String {
        format!("{} to {}", self.start().show(), self.end().show())
    }
}

impl<T: Value + PartialOrd> Domain<T> for RangeFrom<T> {
    fn admits(&self, value: &T) -> bool {
        self.contains(value)
    }
    fn describe(&self) -> String {
        format!("{} or more", self.start.show())
    }
}

impl<T: Value> Domain<T> for RangeFull {
    fn admits(&self, _value: &T) -> bool {
        true
    }
    fn describe(&self) -> String {
        "any".to_string()
    }
}

/// A valid range that applies only when the optional value is there.
pub struct OrNone<D>(pub D);

impl<T, D: Domain<T>> Domain<Option<T>> for OrNone<D> {
    fn admits(&self, value: &Option<T>) -> bool {
        value.as_ref().is_none_or(|value| self.0.admits(value))
    }
    fn describe(&self) -> String {
        format!("{}, or none", self.0.describe())
    }
}

/// A configuration struct built by [`parameters!`](crate::parameters!).
pub trait Parameters: Default + Clone {
    /// Returns the configuration with `options` applied in order, if all are valid and the result is.
    fn with_options<'a>(
        self,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParameterError>;

    /// Returns every field, for people.
    fn describe() -> alloc::vec::Vec<Parameter>;

    /// Returns every field by name with its value in canonical form: equal settings read the same.
    fn settings(&self) -> OptionValues;

    /// Returns the defaults with `options` applied in order.
    fn from_options<'a>(
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParameterError> {
        Self::default().with_options(options)
    }
}

/// Declares a configuration struct and its `Values`. See the module's example. `check path;` as the first
/// line of the body names a function `fn(&Config) -> Result<(), ParameterError>` that compares fields with
/// each other. `shared name: Type;` after it adds a [`Shared`] of this name: what
/// is made of the values once for the configuration and all its clones.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {
            $(check $check:path;)?
            $(shared $shared:ident: $Made:ty;)?
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $ty:ty = $default:expr, in $range:expr, from $source:literal;
            )*
        }
    ) => {
        $(#[$meta])*
        ///
        /// Its fields are those of `Values`, checked.
        #[derive(Clone, PartialEq, Default)]
        $vis struct $Name {
            values: Values,
            $( $shared: $crate::parameters::Shared<$Made>, )?
        }

        /// Values of which a configuration can be made; nobody has checked them.
        #[derive(Clone, Debug, PartialEq)]
        $vis struct Values {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
        }

        impl Default for Values {
            fn default() -> Self {
                Values { $( $field: $default, )* }
            }
        }

        impl Values {
            #[allow(unused_variables)]
            fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::parameters::ParameterError> {
                $(
                    if name == stringify!($field) {
                        self.$field = <$ty as $crate::parameters::Value>::parse(text).map_err(|expected| {
                            $crate::parameters::ParameterError::Malformed {
                                name: stringify!($field),
                                value: text.into(),
                                expected,
                            }
                        })?;
                        return $crate::parameters::check_range::<$ty>(stringify!($field), &self.$field, &($range));
                    }
                )*
                let known: &[&str] = &[$( stringify!($field) ),*];
                Err($crate::parameters::ParameterError::Unknown { name: name.into(), known: known.join(", ") })
            }
        }

        impl $Name {
            /// Returns the configuration with these values.
            ///
            /// # Errors
            /// The first value that is outside its range, or two that contradict each other.
            pub fn new(values: Values) -> Result<Self, $crate::parameters::ParameterError> {
                $( $crate::parameters::check_range::<$ty>(stringify!($field), &values.$field, &($range))?; )*
                let config = $Name {
                    values,
                    $( $shared: $crate::parameters::Shared::<$Made>::default(), )?
                };
                $( $check(&config)?; )?
                Ok(config)
            }
        }

        impl core::ops::Deref for $Name {
            type Target = Values;
            fn deref(&self) -> &Values {
                &self.values
            }
        }

        /// As if the fields were the configuration's own.
        impl core::fmt::Debug for $Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($Name))
                    $( .field(stringify!($field), &self.values.$field) )*
                    .finish()
            }
        }

        impl $crate::parameters::Parameters for $Name {
            fn with_options<'a>(
                self,
                options: impl IntoIterator<Item = (&'a str, &'a str)>,
            ) -> Result<Self, $crate::parameters::ParameterError> {
                let mut values = self.values;
                for (name, text) in options {
                    values.set(name, text)?;
                }
                $Name::new(values)
            }

            fn settings(&self) -> $crate::parameters::OptionValues {
                $crate::parameters::OptionValues::from([$(
                    (stringify!($field), $crate::parameters::Value::show(&self.values.$field)),
                )*])
            }

            fn describe() -> $crate::parameters::List {
                #[allow(unused_mut)]
                let mut list = $crate::parameters::List::new();
                $(
                    list.push($crate::parameters::Parameter {
                        name: stringify!($field),
                        meaning: concat!($($doc),+).trim(),
                        unit: <$ty as $crate::parameters::Value>::unit(),
                        default: { let default: $ty = $default; $crate::parameters::Value::show(&default) },
                        range: $crate::parameters::Domain::<$ty>::describe(&($range)),
                        source: $source,
                    });
                )*
                list
            }
        }
    };
}

/// What [`Parameters::settings`] returns.
pub type OptionValues = alloc::vec::Vec<(&'static str, String)>;

/// What [`Parameters::describe`] returns.
pub type List = alloc::vec::Vec<Parameter>;

/// Refuses `value` when `domain` does not admit it.
pub fn check_range<T: Value>(
    name: &'static str,
    value: &T,
    domain: &impl Domain<T>,
) -> Result<(), ParameterError> {
    if domain.admits(value) {
        return Ok(());
    }
    Err(ParameterError::OutOfRange { name, value: value.show(), range: domain.describe() })
}

macro_rules! number_value {
    ($($ty:ty, $unit:literal, $expected:literal;)*) => {
        $(impl Value for $ty {
            fn unit() -> String {
                $unit.to_string()
            }
            fn parse(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|_| $expected.to_string())
            }
            fn show(&self) -> String {
                self.to_string()
            }
        })*
    };
}

number_value! {
    u32, "count", "a whole number";
    u64, "count", "a whole number";
    i32, "whole number", "a whole number";
    bool, "true | false", "`true` or `false`";
}

impl Value for f64 {
    fn unit() -> String {
        "number".to_string()
    }
    fn parse(text: &str) -> Result<Self, String> {
        crate::units::parse_number(text).ok_or_else(|| "a number".to_string())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! quantity_value {
    ($($ty:ty, $unit:literal;)*) => {
        $(impl Value for $ty {
            fn unit() -> String {
                $unit.to_string()
            }
            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: crate::units::ParseError| error.expected.to_string())
            }
            fn show(&self) -> String {
                self.to_string()
            }
        })*
    };
}

quantity_value! {
    Duration, "time";
    Rate, "rate";
    Bytes, "size";
    Limit, "packets or size";
}

impl<T: Value> Value for Option<T> {
    fn unit() -> String {
        format!("{} | none", T::unit())
    }
    fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(None);
        }
        T::parse(text).map(Some).map_err(|expected| format!("{expected}, or `none`"))
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_string(), Value::show)
    }
}

/// Declares an enum whose variants are spelled as choices of a parameter.
///
/// ```
/// brakelight_core::choices! {
///     /// What happens to the packet.
///     pub enum Action {
///         /// It is dropped.
///         Drop = "drop",
///         /// It is marked CE.
///         Mark = "mark",
///     }
/// }
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident {
            $( $(#[doc = $doc:literal])+ $Variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Name {
            $( $(#[doc = $doc])+ $Variant, )+
        }

        impl $crate::parameters::Value for $Name {
            fn unit() -> $crate::parameters::Text {
                [$($text),+].join(" | ")
            }
            fn parse(text: &str) -> Result<Self, $crate::parameters::Text> {
                match text.trim() {
                    $( $text => Ok($Name::$Variant), )+
                    _ => Err($crate::parameters::Text::from("one of ") + &[$($text),+].join(", ")),
                }
            }
            fn show(&self) -> $crate::parameters::Text {
                match self {
                    $( $Name::$Variant => $text.into(), )+
                }
            }
        }
    };
}

/// An owned string, so that the macros work in crates without `alloc`.
pub type Text = String;
