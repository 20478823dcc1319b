//! What is made of the [`table`](crate::table)'s lines: factories, dispatch on the packet path, names, docs,
//! command line, conformance suite.
//!
//! Dispatch is a `match`, so an algorithm of the table costs no call through a pointer. Algorithms from
//! outside are added to a [`Registry`] at run time, and stand behind the variant `Custom` of each enum.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::controller::{
    self, AckEvent, Connection, Controller, Decision, IdleEvent, LossEvent, Recovery, SendDirective,
    SendEvent, SpuriousEvent, TimeoutEvent, pass_to_controller,
};
use crate::dispatch::apart;
use crate::ecn::Encoding;
use crate::feedback::{self, AckAction, Arrival, Echo, Feedback, Receiver, pass_to_feedback};
use crate::packet::{Duplicate, HeaderKind};
use crate::parameters::{OptionValues, Parameter, ParameterError, Parameters};
use crate::path::Departed;
use crate::queue::{self, Backlog, Dequeued, Drops, LinkView, Place, Queue, pass_to_queue};
pub use crate::queue::{LinkKind, Misfit};
use crate::sender::Checked;
use crate::suggest::DidYouMean;
pub use crate::table::{
    Bench, COMPARED, Carries, DEFAULT_CONTROLLER, DEFAULT_QUEUE, Host, Kernel, Needs, Preset, Protocol,
    Routers, SHORTHANDS, Shorthand, Traits,
};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Limit, Rate};

mod custom;
mod lookup;

pub use custom::*;
pub(crate) use lookup::unknown;
pub use lookup::{AnyConfig, RegisterError, Registry, find, names};

/// An option as given: name and text.
pub type Options<'a> = &'a [(&'a str, &'a str)];

/// Why something could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// No such algorithm.
    Unknown {
        /// `controller`, `feedback` or `queue`.
        kind: &'static str,
        /// The name as given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The name is that of a host's controller, `host/controller`, and the host was not added.
    NoHost {
        /// The name as given.
        name: String,
        /// The host.
        host: String,
    },
    /// An option was refused.
    Option {
        /// The algorithm.
        name: &'static str,
        /// What was wrong.
        error: ParameterError,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Unknown { kind, name, known } => {
                write!(f, "unknown {kind} `{name}`{}: valid are {known}", DidYouMean::of_list(name, known))
            }
            BuildError::NoHost { name, host } => write!(
                f,
                "unknown controller `{name}`: there is no host `{host}` in this program; `brakelight list hosts` shows \
                 those of the command, and how to build more"
            ),
            BuildError::Option { name, error } => write!(f, "{name}: {error}"),
        }
    }
}

impl core::error::Error for BuildError {}

/// One line of a table, for people and for generic tests.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name used in files and on the command line.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// One line: what it is, and where it comes from.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: fn() -> Vec<Parameter>,
}

/// Reads `given`, or takes what most algorithms have.
macro_rules! or {
    (else $usual:expr) => {
        $usual
    };
    ($given:expr, else $usual:expr) => {
        $given
    };
}

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
            parameters: <controller::$mod::Config as Parameters>::describe,
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
    /// [`controller`](crate::controller#the-contract): a violation panics. It decides as it did.
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

macro_rules! make_feedbacks {
    ($(
        $Var:ident($mod:ident :: $Ty:ident) = $name:literal, $summary:literal
        $(, carries $carries:expr)?
        $(, protocol $protocol:expr)?;
    )*) => {
        /// Every feedback, by name.
        pub const FEEDBACKS: &[Entry] = &[$( Entry {
            name: $name, aliases: &[], summary: $summary,
            parameters: <feedback::$mod::Config as Parameters>::describe,
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

macro_rules! make_queues {
    ($(
        $Var:ident($mod:ident :: $Ty:ident) = $name:literal $(| $alias:literal)*, $summary:literal,
        is { $($trait:ident: $value:expr),* $(,)? }
        $(, encoding $encoding:expr)?
        $(, needs_link_rate $link_rate:expr)?
        $(, tells_flows_apart $apart:expr)?
        $(, fills_up_to $fills:expr)?
        $(, fits $fits:expr)?;
    )*) => {
        /// Every queue, by name.
        pub const QUEUES: &[Entry] = &[$( Entry {
            name: $name, aliases: &[$($alias),*], summary: $summary,
            parameters: <queue::$mod::Config as Parameters>::describe,
        }, )*];

        /// A queue of any kind, dispatched by `match`. `repr(u32)` as for
        /// [`AnyElement`](crate::path::elements::AnyElement).
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        #[repr(u32)]
        pub enum AnyQueue<P> {
            $( #[doc = $summary] $Var(queue::$mod::$Ty<P>), )*
            /// One from outside.
            Custom(BoxedQueue<P>),
        }

        impl<P: Duplicate> Queue<P> for AnyQueue<P> {
            pass_to_queue!(AnyQueue { $($Var)* Custom } inline { DropTail CoDel Bmcc Abc } getters);
        }

        /// A queue's settings, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueConfig {
            $( #[doc = $summary] $Var(queue::$mod::Config), )*
            /// A queue from outside.
            Custom(CustomQueueConfig),
        }

        impl QueueConfig {
            /// Finds a queue that Brakelight brings, and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $name $(|| name == $alias)* {
                    return queue::$mod::Config::from_options(options.iter().copied())
                        .map(QueueConfig::$Var)
                        .map_err(|error| BuildError::Option { name: $name, error });
                } )*
                Err(unknown("queue", name, QUEUES))
            }

            /// Returns the registered name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( QueueConfig::$Var(_) => $name, )*
                    QueueConfig::Custom(config) => config.name(),
                }
            }

            /// Returns every option with its value in canonical form: equal settings read the same.
            pub fn settings(&self) -> OptionValues {
                match self {
                    $( QueueConfig::$Var(config) => config.settings(), )*
                    QueueConfig::Custom(config) => config.settings(),
                }
            }

            /// Returns what it is, whatever its settings.
            pub fn traits(&self) -> Traits {
                match self {
                    $( QueueConfig::$Var(_) => Traits { $($trait: $value,)* ..Traits::PLAIN }, )*
                    QueueConfig::Custom(config) => config.traits(),
                }
            }

            /// Returns the encoding whose marks it gives, if that is neither none nor ordinary ECN's CE.
            pub fn own_encoding(&self) -> Option<Encoding> {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let encoding: fn(&queue::$mod::Config) -> Option<Encoding> =
                            or!($($encoding,)? else |_| None);
                        encoding(config)
                    } )*
                    QueueConfig::Custom(config) => config.own_encoding(),
                }
            }

            /// Returns `true` if it asks the link what it could have carried: in simulation the truth,
            /// which a real router must measure or be told.
            pub fn needs_link_rate(&self) -> bool {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let needs: fn(&queue::$mod::Config) -> bool = or!($($link_rate,)? else |_| false);
                        needs(config)
                    } )*
                    QueueConfig::Custom(config) => config.needs_link_rate(),
                }
            }

            /// Returns `true` if it serves flows of its own encoding and others in different ways, by flow.
            pub fn tells_flows_apart(&self) -> bool {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let apart: fn(&queue::$mod::Config) -> bool = or!($($apart,)? else |_| false);
                        apart(config)
                    } )*
                    QueueConfig::Custom(config) => config.tells_flows_apart(),
                }
            }

            /// Returns up to which limit it fills behind `buffer`, if it drops nothing before it is full.
            pub fn fills_up_to(&self, buffer: Limit) -> Option<Limit> {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let fills: fn(&queue::$mod::Config, Limit) -> Option<Limit> =
                            or!($($fills,)? else |_, _| None);
                        fills(config, buffer)
                    } )*
                    QueueConfig::Custom(config) => config.fills_up_to(buffer),
                }
            }

            /// Returns an error if its settings do not fit a link of this kind.
            pub fn fits(&self, link: &LinkKind) -> Result<(), Misfit> {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let fits: fn(&queue::$mod::Config, &LinkKind) -> Result<(), Misfit> =
                            or!($($fits,)? else |_, _| Ok(()));
                        fits(config, link)
                    } )*
                    QueueConfig::Custom(config) => config.fits(link),
                }
            }

            /// An empty queue.
            pub fn build<P: Duplicate>(&self, place: &Place) -> AnyQueue<P> {
                match self {
                    $( QueueConfig::$Var(config) => AnyQueue::$Var(queue::$mod::$Ty::new(config, place)), )*
                    QueueConfig::Custom(config) => config.build(place),
                }
            }
        }
    };
}

impl QueueConfig {
    /// Returns `true` if flows of this encoding may pass it.
    pub fn speaks(&self, encoding: Encoding) -> bool {
        self.traits().speaks.contains(&encoding)
    }
}

controllers!(make_controllers);
feedbacks!(make_feedbacks);
queues!(make_queues);
