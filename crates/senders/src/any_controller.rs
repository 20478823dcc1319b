//! A controller of any kind: factories, and dispatch on the packet path.
//!
//! Dispatch is a `match`, so an algorithm of the table costs no call through a pointer. One from outside
//! stands behind the variant `Custom`.

use alloc::boxed::Box;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, ControllerFailure, Decision, IdleEvent, LossEvent, Recovery,
    SendDirective, SendEvent, SpuriousEvent, Stage, TimeoutEvent,
};
use brakelight_core::dispatch::apart;
use brakelight_core::ecn::Encoding;
use brakelight_core::facts::{
    BuildError, Entry, Host, Kernel, Listed, Needs, Options, Protocol, Routers, unknown,
};
use brakelight_core::packet::HeaderKind;
use brakelight_core::parameters::{OptionValues, Parameters};
use brakelight_core::sender::Checked;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use crate::any_feedback::FeedbackConfig;
use crate::controller;
use crate::custom::{CustomControllerConfig, DynController, HostedConfig};

macro_rules! make_controllers {
    ($(
        $Var:ident($mod:ident :: $Ty:ident) = $name:literal $(| $alias:literal)*, $summary:literal,
        $(second_window $heard:literal,)?
        needs { $($need:ident: $value:expr),* $(,)? }
        $(, feedback_options $options:expr)?
        $(, survives_without_marks $survives:expr)?
        $(, delay_threshold $threshold:expr)?;
    )*) => {
        /// Every controller, by name.
        pub const CONTROLLERS: &[Entry] = &[$( Entry {
            name: $name, aliases: &[$($alias),*], summary: $summary,
            parameters: Listed::By(<controller::$mod::Config as Parameters>::describe),
        }, )*];

        /// A controller of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyController {
            $( #[doc = $summary] $Var(controller::$mod::$Ty), )*
            /// Any of them, whose host is held to the contract.
            Checked(Box<Checked<AnyController>>),
            /// One from outside.
            Custom(Box<dyn DynController>),
        }

        impl Controller for AnyController {
            pass_to_controller!(AnyController { $($Var)* Checked Custom } inline { Cubic });
        }

        // Events by value. One that is passed on by reference is written to memory whole; these are written
        // only where a controller is called in a function of its own, and the others read what they need.
        impl AnyController {
            /// [`Controller::on_send`] with the event by value. Returns what the packet is to carry.
            #[inline(always)]
            pub fn on_send_by_value(&mut self, event: SendEvent) -> SendDirective {
                match self {
                    AnyController::Cubic(cubic) => cubic.on_send(&event),
                    any => {
                        // What the others return is taken apart here, so that the common directive needs no
                        // memory either.
                        let (ecn, header, tag, cwr) = apart(move || {
                            let directive = any.inner().on_send(&event);
                            (directive.ecn, directive.header, directive.tag, directive.cwr)
                        });
                        SendDirective { ecn, header, tag, cwr }
                    }
                }
            }

            /// [`Controller::on_ack`] with the event by value.
            #[inline(always)]
            pub fn on_ack_by_value(&mut self, event: AckEvent<'_>) {
                match self {
                    AnyController::Cubic(cubic) => cubic.on_ack(&event),
                    any => apart(move || any.inner().on_ack(&event)),
                }
            }

            /// The controller itself.
            #[inline(always)]
            fn inner(&mut self) -> &mut dyn Controller {
                match self {
                    $( AnyController::$Var(inner) => inner, )*
                    AnyController::Checked(inner) => &mut **inner,
                    AnyController::Custom(inner) => &mut **inner,
                }
            }
        }

        /// A controller's settings, checked, ready to build any number of instances.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ControllerConfig {
            $( #[doc = $summary] $Var(controller::$mod::Config), )*
            /// A controller from outside.
            Custom(CustomControllerConfig),
        }

        impl ControllerConfig {
            /// Finds a controller that Brakelight brings, and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $name $(|| name == $alias)* {
                    return controller::$mod::Config::from_options(options.iter().copied())
                        .map(ControllerConfig::$Var)
                        .map_err(|error| BuildError::Option { name: $name, error });
                } )*
                Err(unknown("controller", name, CONTROLLERS))
            }

            /// Returns the registered name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( ControllerConfig::$Var(_) => $name, )*
                    ControllerConfig::Custom(config) => config.name(),
                }
            }

            /// Returns every option with its value in canonical form: equal settings read the same.
            pub fn settings(&self) -> OptionValues {
                match self {
                    $( ControllerConfig::$Var(config) => config.settings(), )*
                    ControllerConfig::Custom(config) => config.settings(),
                }
            }

            /// Returns what it needs of its receiver, its routers and its host.
            #[allow(clippy::needless_update)]
            pub fn needs(&self) -> Needs {
                match self {
                    $( ControllerConfig::$Var(_) => Needs { $($need: $value,)* ..Needs::PLAIN }, )*
                    ControllerConfig::Custom(config) => config.needs(),
                }
            }

            /// Returns options of the feedback it brings that its own settings ask for.
            pub fn feedback_options(&self) -> Options<'static> {
                match self {
                    $( ControllerConfig::$Var(config) => {
                        let options: fn(&controller::$mod::Config) -> Options<'static> =
                            or!($($options,)? else |_| &[]);
                        options(config)
                    } )*
                    ControllerConfig::Custom(config) => config.feedback_options(),
                }
            }

            /// Returns `true` if it still answers congestion where the path clears the ECN field.
            pub fn survives_without_marks(&self) -> bool {
                match self {
                    $( ControllerConfig::$Var(config) => {
                        let survives: fn(&controller::$mod::Config) -> bool = or!($($survives,)? else |_| true);
                        survives(config)
                    } )*
                    ControllerConfig::Custom(config) => config.survives_without_marks(),
                }
            }

            /// Returns the one-way queueing delay at which it reacts, where its settings say one.
            pub fn delay_threshold(&self) -> Option<Duration> {
                match self {
                    $( ControllerConfig::$Var(config) => {
                        let threshold: fn(&controller::$mod::Config) -> Option<Duration> =
                            or!($($threshold,)? else |_| None);
                        threshold(config)
                    } )*
                    ControllerConfig::Custom(config) => config.delay_threshold(),
                }
            }

            /// An instance for a new connection.
            pub fn build(&self, connection: &Connection) -> AnyController {
                match self {
                    $( ControllerConfig::$Var(config) => {
                        AnyController::$Var(controller::$mod::$Ty::new(config.clone(), connection))
                    } )*
                    ControllerConfig::Custom(config) => config.build(connection),
                }
            }
        }
    };
}

impl AnyController {
    /// Returns the same controller, whose host is held to the contract of
    /// [`controller`](brakelight_core::controller#the-contract): a violation panics. It decides as it did.
    /// `needs` are its own, and say whether it must not let a window grow that is not used.
    pub fn checked(self, needs: &Needs) -> Self {
        AnyController::Checked(Box::new(Checked::strict(self).growing_by_use(!needs.grows_unused)))
    }
}

impl ControllerConfig {
    /// Returns the host from outside that it lives in, if it does. No other host runs it.
    pub fn hosted(&self) -> Option<&HostedConfig> {
        match self {
            ControllerConfig::Custom(config) => config.hosted(),
            _ => None,
        }
    }

    /// Returns the feedback it brings, with the options that its own settings ask for.
    pub fn feedback(&self) -> FeedbackConfig {
        match self {
            ControllerConfig::Custom(config) => config.feedback(),
            _ => FeedbackConfig::new(self.needs().feedback, self.feedback_options())
                .expect("the table names registered feedbacks and their options"),
        }
    }
}

controllers!(make_controllers);
