//! Rate setters: who chooses a shaper's rate. The table below names them, one line each.
//!
//! To add one: a file here with the head (formulas, symbol table, deviations), a `Config`, `impl RateSetter`,
//! its `mod`, and one line in the table.

use alloc::string::String;
use alloc::vec::Vec;

use brakelight_core::facts::{BuildError, Entry, Listed, Options, unknown};
use brakelight_core::parameters::{OptionValues, Parameters, Value};
use brakelight_core::queue::Backlog;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;

use super::{Side, autorate, choice, constant, follow, oracle};
use crate::elements::AnyService;

/// How a delay was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// By the probe of this number, counted from zero: its round trip.
    Probe(u64),
    /// By a flow that passed: a round trip where the link is ahead, the delay on the way here above an
    /// unknown constant where it is behind.
    Flow,
}

/// One measured delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When it was known.
    pub now: Time,
    /// The delay.
    pub value: Duration,
    /// How it was measured.
    pub source: Source,
}

/// What a shaper has seen up to now. Counters are in bytes at the IP layer, since the start.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The time.
    pub now: Time,
    /// Data that arrived at the shaper.
    pub arrived: u64,
    /// Data that left it.
    pub departed: u64,
    /// Of that, what flows that can be read have acknowledged.
    pub delivered: u64,
    /// Of that, what they have not.
    pub under_way: u64,
    /// Data that arrived of flows that can be read.
    pub readable: u64,
    /// What waits in the shaper.
    pub waiting: Backlog,
    /// The link's true service, where it is known. A real router does not have it.
    pub truth: Option<&'a AnyService>,
}

dispatched! {
    /// Chooses the rate of a shaper.
    pub trait RateSetter by pass_to_setter {
        /// Returns the rate.
        fn rate(&self) -> Rate;

        /// Returns how often it acts; zero for never.
        fn interval(&self) -> Duration;

        /// Returns how often it wants a probe sent; `None` for never.
        fn probes_every(&self) -> Option<Duration> {
            None
        }

        /// The link's service became known, before the first packet. Only [`oracle`] may look
        /// at more than its mean.
        fn on_link(&mut self, _service: &AnyService) {}

        /// A delay was measured.
        fn on_delay(&mut self, _delay: Delay) {}

        /// Its [`interval`](Self::interval) has passed.
        fn on_tick(&mut self, _seen: &Seen<'_>) {}

        /// Returns whether nothing it measures shows the link's queue, so that it holds a safe rate.
        fn is_blind(&self) -> bool {
            false
        }
    }
}

macro_rules! setters {
    ($( $Var:ident($mod:ident :: $Ty:ident) = $name:literal, needs_link $needs:expr, $summary:literal; )*) => {
        /// Every rate setter, by name.
        pub const SETTERS: &[Entry] = &[$( Entry {
            name: $name, aliases: &[], summary: $summary,
            parameters: Listed::By(<$mod::Config as Parameters>::describe),
        }, )*];

        /// A setter's settings, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum SetterConfig {
            $( #[doc = $summary] $Var($mod::Config), )*
        }

        impl SetterConfig {
            /// Finds a setter, and applies its options.
            ///
            /// # Errors
            /// No setter has the name, or it refuses an option.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $name {
                    return $mod::Config::from_options(options.iter().copied())
                        .map(SetterConfig::$Var)
                        .map_err(|error| BuildError::Option { name: $name, error });
                } )*
                Err(unknown("rate setter", name, SETTERS))
            }

            /// Returns the registered name.
            pub fn name(&self) -> &'static str {
                match self { $( SetterConfig::$Var(_) => $name, )* }
            }

            /// Returns every option with its value in canonical form.
            pub fn settings(&self) -> OptionValues {
                match self { $( SetterConfig::$Var(config) => config.settings(), )* }
            }

            /// Returns whether it cannot run without knowing something of the link's true service.
            pub fn needs_link(&self) -> bool {
                match self {
                    $( SetterConfig::$Var(config) => {
                        let needs: fn(&$mod::Config) -> bool = $needs;
                        needs(config)
                    } )*
                }
            }

            /// Returns the setter at its beginning.
            pub fn build(&self, side: Side) -> AnySetter {
                match self { $( SetterConfig::$Var(config) => AnySetter::$Var($mod::$Ty::new(config, side)), )* }
            }
        }

        /// A setter of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnySetter {
            $( #[doc = $summary] $Var($mod::$Ty), )*
        }

        impl AnySetter {
            /// Returns its registered name.
            pub fn name(&self) -> &'static str {
                match self { $( AnySetter::$Var(_) => $name, )* }
            }
        }

        impl RateSetter for AnySetter {
            pass_to_setter!(AnySetter { $($Var)* });
        }
    };
}

setters! {
    Fixed(constant::Fixed) = "fixed", needs_link |config| config.rate.is_none(),
        "A rate, or a share of the link's mean, that never changes";
    Autorate(autorate::Autorate) = "autorate", needs_link |_| false,
        "cake-autorate 3.x: steps by the delay of probes and by the load";
    Follow(follow::Follow) = "follow", needs_link |_| false,
        "Follows the link by what flows deliver and what is under way; says when it is blind";
    Oracle(oracle::Oracle) = "oracle", needs_link |_| true,
        "A bound: knows the link's true rate, one round trip late";
}

impl SetterConfig {
    /// Returns the setter called `name`, with its defaults.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(name: &str) -> Self {
        SetterConfig::new(name, &[]).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Value for SetterConfig {
    fn unit() -> String {
        SETTERS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(" | ")
    }

    fn parse(text: &str) -> Result<Self, String> {
        choice::read(text, "rate setter", SetterConfig::new)
    }

    fn show(&self) -> String {
        let defaults = SetterConfig::named(self.name()).settings();
        choice::show(self.name(), &self.settings(), &defaults)
    }
}
