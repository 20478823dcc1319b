//! A feedback of any kind: factories, and dispatch on the packet path.

use alloc::boxed::Box;

use brakelight_core::facts::{BuildError, Carries, Entry, Listed, Options, Protocol, unknown};
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, ReceiveTimestamps, Receiver};
use brakelight_core::parameters::{OptionValues, Parameters};
use brakelight_core::time::Time;

use crate::custom::{CustomFeedbackConfig, DynFeedback};
use crate::feedback;

macro_rules! make_feedbacks {
    ($(
        $Var:ident($mod:ident :: $Ty:ident) = $name:literal, $summary:literal
        $(, carries $carries:expr)?
        $(, protocol $protocol:expr)?;
    )*) => {
        /// Every feedback, by name.
        pub const FEEDBACKS: &[Entry] = &[$( Entry {
            name: $name, aliases: &[], summary: $summary,
            parameters: Listed::By(<feedback::$mod::Config as Parameters>::describe),
        }, )*];

        /// A feedback of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        pub enum AnyFeedback {
            $( #[doc = $summary] $Var(feedback::$mod::$Ty), )*
            /// One from outside.
            Custom(Box<dyn DynFeedback>),
        }

        impl Feedback for AnyFeedback {
            pass_to_feedback!(AnyFeedback { $($Var)* Custom } inline { Rfc3168 Delayed } getters);
        }

        /// A feedback's settings, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum FeedbackConfig {
            $( #[doc = $summary] $Var(feedback::$mod::Config), )*
            /// A feedback from outside.
            Custom(CustomFeedbackConfig),
        }

        impl FeedbackConfig {
            /// Finds a feedback that Brakelight brings, and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $name {
                    return feedback::$mod::Config::from_options(options.iter().copied())
                        .map(FeedbackConfig::$Var)
                        .map_err(|error| BuildError::Option { name: $name, error });
                } )*
                Err(unknown("feedback", name, FEEDBACKS))
            }

            /// Returns the registered name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( FeedbackConfig::$Var(_) => $name, )*
                    FeedbackConfig::Custom(config) => config.name(),
                }
            }

            /// Returns every option with its value in canonical form: equal settings read the same.
            pub fn settings(&self) -> OptionValues {
                match self {
                    $( FeedbackConfig::$Var(config) => config.settings(), )*
                    FeedbackConfig::Custom(config) => config.settings(),
                }
            }

            /// Returns what its ACKs carry besides acknowledgements and counts of marks.
            pub fn carries(&self) -> Carries {
                match self {
                    $( FeedbackConfig::$Var(config) => {
                        let carries: fn(&feedback::$mod::Config) -> Carries =
                            or!($($carries,)? else |_| Carries::Nothing);
                        carries(config)
                    } )*
                    FeedbackConfig::Custom(config) => config.carries(),
                }
            }

            /// Returns the protocol with whose other parts it shares constants.
            pub fn protocol(&self) -> Option<Protocol> {
                match self {
                    $( FeedbackConfig::$Var(_) => or!($(Some($protocol),)? else None), )*
                    FeedbackConfig::Custom(config) => config.protocol(),
                }
            }

            /// An instance for a new connection.
            pub fn build(&self, receiver: &Receiver) -> AnyFeedback {
                match self {
                    $( FeedbackConfig::$Var(config) => {
                        AnyFeedback::$Var(feedback::$mod::$Ty::new(config.clone(), receiver))
                    } )*
                    FeedbackConfig::Custom(config) => config.build(receiver),
                }
            }
        }
    };
}

feedbacks!(make_feedbacks);
