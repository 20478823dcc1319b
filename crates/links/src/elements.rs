//! The tables of path elements, of links' services and of radios: one line each. Scenario files and the
//! command line name them by it, and the conformance suite runs over it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use brakelight_core::facts::{BuildError, Entry, Listed, Options, unknown};
use brakelight_core::packet::Duplicate;
use brakelight_core::parameters::{OptionValues, Parameter, Parameters};
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::{Backlog, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::{AnyQueue, QueueConfig};

use super::link::delaying::Delaying;
use super::link::light_heavy::LightHeavy;
use super::link::restart::Restarting;
use super::link::{Link, Service, adjusted, fixed, steps, traced};
use super::{
    ack_loss, ack_thin, cellular, circuit_breaker, decapsulate, delay, delay_steps, duplicate, encapsulate,
    gilbert_elliott, jitter, loss, loss_steps, nr, policer, reorder, replay, rewrite, shaper, varying_delay,
    wifi,
};
use crate::{BoxedElement, CustomElementConfig, CustomRadioConfig, DynElement, DynRadio};

/// A link of any kind: any queue, any service.
pub type AnyLink<P> = Link<P, AnyQueue<P>, AnyService>;

/// The same, with a router that restarts.
pub type AnyRestarting<P> = Restarting<P, AnyQueue<P>, AnyService>;

/// The same, with a delay line that shares the queue's limit.
pub type AnyDelaying<P> = Delaying<P, AnyQueue<P>, AnyService>;

/// The same, with light trains for senders that were idle.
pub type AnyLightHeavy<P> = LightHeavy<P, AnyQueue<P>, AnyService>;

/// Which packets leave an element in the order in which they entered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All.
    Kept,
    /// Those of the same flow.
    PerFlow,
    /// None are sure to.
    Free,
}

/// What an element is to a path as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing more than it does by itself.
    Plain,
    /// It is the path's propagation delay, so that none is added at its end.
    Propagation,
    /// A tunnel begins.
    TunnelBegins,
    /// A tunnel ends.
    TunnelEnds,
    /// It is one for all flows that name it with the same options, and their ACKs pass it on their way back.
    Shaper,
}

macro_rules! elements {
    ($(
        $Var:ident($mod:ident :: $Ty:ident) = $name:literal $(| $alias:literal)*, order $order:expr, role $role:ident,
        $sum:literal;
    )*) => {
        /// Every path element but links, by name.
        pub const ELEMENTS: &[Entry] = &[$( Entry {
            name: $name, aliases: &[$($alias),*], summary: $sum,
            parameters: Listed::By(<$mod::Config as Parameters>::describe),
        }, )*];

        /// An element's settings, checked, ready to build any number of instances.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ElementConfig {
            $( #[doc = $sum] $Var($mod::Config), )*
            /// An element from outside.
            Custom(CustomElementConfig),
        }

        impl ElementConfig {
            /// Finds an element that Brakelight brings, and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $name $(|| name == $alias)* {
                    return $mod::Config::from_options(options.iter().copied())
                        .map(ElementConfig::$Var)
                        .map_err(|error| BuildError::Option { name: $name, error });
                } )*
                Err(unknown("path element", name, ELEMENTS))
            }

            /// Returns the registered name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( ElementConfig::$Var(_) => $name, )*
                    ElementConfig::Custom(config) => config.name(),
                }
            }

            /// Returns every option with its value in canonical form: equal settings read the same.
            pub fn settings(&self) -> OptionValues {
                match self {
                    $( ElementConfig::$Var(config) => config.settings(), )*
                    ElementConfig::Custom(config) => config.settings(),
                }
            }

            /// Returns which packets keep their order.
            pub fn order(&self) -> Order {
                match self {
                    $( ElementConfig::$Var(config) => {
                        let order: fn(&$mod::Config) -> Order = $order;
                        order(config)
                    } )*
                    ElementConfig::Custom(config) => config.order(),
                }
            }

            /// Returns what it is to a path as a whole.
            pub fn role(&self) -> Role {
                match self {
                    $( ElementConfig::$Var(_) => Role::$role, )*
                    ElementConfig::Custom(config) => config.role(),
                }
            }

            /// An element without packets.
            pub fn build<P: Duplicate>(&self, site: Site) -> AnyElement<P> {
                match self {
                    $( ElementConfig::$Var(config) => AnyElement::$Var($mod::$Ty::new(config, site)), )*
                    ElementConfig::Custom(config) => config.build(site),
                }
            }
        }

        /// A path element of any kind, dispatched by `match`. `repr(u32)` keeps the discriminant
        /// apart from what variants hold, so that finding the variant is one comparison.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        #[repr(u32)]
        pub enum AnyElement<P> {
            /// A link with its queue.
            Link(AnyLink<P>),
            /// A link whose router restarts.
            Restarting(Box<AnyRestarting<P>>),
            /// A link with a delay line before its queue.
            Delaying(Box<AnyDelaying<P>>),
            /// A link with light trains before its queue.
            LightHeavy(Box<AnyLightHeavy<P>>),
            /// A radio with its queues.
            Radio(AnyRadio<P>),
            /// A delay line whose delay is set while the run goes on.
            VaryingDelay(Box<varying_delay::VaryingDelay<P>>),
            /// Delay and loss as they were recorded.
            Replay(Box<replay::Replay<P>>),
            $( #[doc = $sum] $Var($mod::$Ty<P>), )*
            /// One from outside.
            Custom(BoxedElement<P, dyn DynElement>),
        }

        impl<P: Duplicate> PathElement<P> for AnyElement<P> {
            pass_to_element!(
                AnyElement { Link Restarting Delaying LightHeavy Radio VaryingDelay Replay $($Var)* Custom }
                inline { Link Delay }
            );
        }
    };
}

elements! {
    Delay(delay::Delay) = "delay", order |_| Order::Kept, role Propagation,
        "Delay line: what enters leaves a fixed time later";
    DelaySteps(delay_steps::DelaySteps) = "delay-steps", order |_| Order::Kept, role Plain,
        "Delay by a schedule, with packets released at fixed times: delay that no queue causes";
    Loss(loss::Loss) = "loss", order |_| Order::Kept, role Plain,
        "Independent loss";
    LossSteps(loss_steps::LossSteps) = "loss-steps", order |_| Order::Kept, role Plain,
        "Independent loss whose probability follows a schedule";
    GilbertElliott(gilbert_elliott::GilbertElliott) = "gilbert-elliott" | "burst-loss", order |_| Order::Kept, role Plain,
        "Loss in bursts: a Markov chain of a good and a bad state (Gilbert 1960, Elliott 1963)";
    Policer(policer::Policer) = "policer", order |_| Order::Kept, role Plain,
        "A token bucket that drops what exceeds a rate, without a queue (Flach 2016)";
    Shaper(shaper::Shaper) = "shaper", order |_| Order::PerFlow, role Shaper,
        "A queue served at a rate that a setter chooses, before or behind a link that it does not own";
    CircuitBreaker(circuit_breaker::CircuitBreaker) = "circuit-breaker", order |_| Order::Kept, role Plain,
        "A circuit breaker that stops all traffic once it exceeds a rate for long (RFC 8084)";
    Jitter(jitter::Jitter) = "jitter", order |config| if config.keep_order { Order::Kept } else { Order::Free }, role Plain,
        "Random delay, with or without keeping the order";
    Reorder(reorder::Reorder) = "reorder", order |_| Order::Free, role Plain,
        "Some packets are held back while others overtake them";
    Duplicate(duplicate::Duplicate) = "duplicate", order |_| Order::Kept, role Plain,
        "Some packets arrive twice";
    Rewrite(rewrite::Rewrite) = "rewrite" | "bleach", order |_| Order::Kept, role Plain,
        "Middleboxes and cheaters that rewrite the ECN field; bleaching by default";
    Encapsulate(encapsulate::Encapsulate) = "encapsulate", order |_| Order::Kept, role TunnelBegins,
        "Where a tunnel begins: an outer header with an ECN field of its own (RFC 6040)";
    Decapsulate(decapsulate::Decapsulate) = "decapsulate", order |_| Order::Kept, role TunnelEnds,
        "Where a tunnel ends: one field out of two (RFC 6040, RFC 3168, RFC 4301)";
    AckLoss(ack_loss::AckLoss) = "ack-loss", order |_| Order::Kept, role Plain,
        "Loss of acknowledgements alone";
    AckThin(ack_thin::AckThin) = "ack-thin", order |_| Order::PerFlow, role Plain,
        "Thinning of acknowledgements: every n-th passes, or the newest of those that wait (RFC 3449 section 5.2)";
}

impl<P: Duplicate> AnyElement<P> {
    /// Returns what it can carry in `from <= t < to`, used or not, if it is a link or a radio.
    pub fn capacity_between(&self, from: Time, to: Time) -> Option<Bytes> {
        match self {
            AnyElement::Link(link) => Some(link.capacity_between(from, to)),
            AnyElement::Restarting(link) => Some(link.capacity_between(from, to)),
            AnyElement::Delaying(link) => Some(link.capacity_between(from, to)),
            AnyElement::LightHeavy(link) => Some(link.capacity_between(from, to)),
            AnyElement::Radio(radio) => Some(radio.capacity_between(from, to)),
            _ => None,
        }
    }

    /// Returns what waits in its queues, if it is a link or a radio; what is being sent is not in them.
    pub fn backlog(&self) -> Option<Backlog> {
        let mut sum = None;
        self.for_each_queue(&mut |queue| {
            sum = Some(sum.unwrap_or_else(Backlog::default).with(queue.backlog()));
        });
        sum
    }

    /// Returns when the packet that has waited longest in its queues arrived there; `None` where nothing
    /// waits or the queue does not tell.
    pub fn waiting_since(&self) -> Option<Time> {
        let mut first: Option<Time> = None;
        self.for_each_queue(&mut |queue| {
            first = first.into_iter().chain(queue.waiting_since()).min();
        });
        first
    }

    /// Calls `visit` with every queue of a link or a radio.
    pub fn for_each_queue(&self, visit: &mut dyn FnMut(&AnyQueue<P>)) {
        match self {
            AnyElement::Link(link) => visit(link.queue()),
            AnyElement::Restarting(link) => visit(link.link().queue()),
            AnyElement::Delaying(link) => visit(link.link().queue()),
            AnyElement::LightHeavy(link) => visit(link.link().queue()),
            AnyElement::Radio(radio) => radio.for_each_queue(visit),
            AnyElement::Shaper(shaper) => visit(shaper.queue()),
            _ => {}
        }
    }

    /// Gives a link this rate from `now` on, whatever served it before: see [`Link::set_rate`]. Returns
    /// `false` if it is no link, or a radio, whose rate follows from its channel.
    ///
    /// # Panics
    /// If the rate is above [`adjusted::FASTEST`].
    pub fn set_rate(&mut self, now: Time, rate: Rate) -> bool {
        match self {
            AnyElement::Link(link) => link.set_rate(now, rate),
            AnyElement::Restarting(link) => link.set_rate(now, rate),
            AnyElement::Delaying(link) => link.set_rate(now, rate),
            AnyElement::LightHeavy(link) => link.set_rate(now, rate),
            _ => return false,
        }
        true
    }
}

macro_rules! radios {
    ($( $Var:ident($mod:ident :: $Ty:ident) = $name:literal, $sum:literal; )*) => {
        /// Every radio, by name.
        pub const RADIOS: &[Entry] = &[$( Entry {
            name: $name, aliases: &[], summary: $sum,
            parameters: Listed::By(<$mod::Config as Parameters>::describe),
        }, )*];

        /// A radio's settings, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum RadioConfig {
            $( #[doc = $sum] $Var($mod::Config), )*
            /// A radio from outside.
            Custom(CustomRadioConfig),
        }

        impl RadioConfig {
            /// Finds a radio that Brakelight brings, and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $name {
                    return $mod::Config::from_options(options.iter().copied())
                        .map(RadioConfig::$Var)
                        .map_err(|error| BuildError::Option { name: $name, error });
                } )*
                Err(unknown("radio", name, RADIOS))
            }

            /// Returns the registered name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( RadioConfig::$Var(_) => $name, )*
                    RadioConfig::Custom(config) => config.name(),
                }
            }

            /// Returns every option with its value in canonical form: equal settings read the same.
            pub fn settings(&self) -> OptionValues {
                match self {
                    $( RadioConfig::$Var(config) => config.settings(), )*
                    RadioConfig::Custom(config) => config.settings(),
                }
            }

            /// Returns a radio without packets, whose queues hold at most `limit` each.
            pub fn build<P: Duplicate>(&self, queue: &QueueConfig, limit: Limit, site: Site) -> AnyRadio<P> {
                match self {
                    $( RadioConfig::$Var(config) => AnyRadio::$Var($mod::$Ty::new(config, queue, limit, site)), )*
                    RadioConfig::Custom(config) => config.build(queue, limit, site),
                }
            }
        }

        /// A radio of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyRadio<P> {
            $( #[doc = $sum] $Var($mod::$Ty<P>), )*
            /// One from outside.
            Custom(BoxedElement<P, dyn DynRadio>),
        }

        impl<P: Duplicate> AnyRadio<P> {
            /// Returns what it can carry in `from <= t < to`, used or not.
            pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
                match self {
                    $( AnyRadio::$Var(inner) => inner.capacity_between(from, to), )*
                    AnyRadio::Custom(inner) => inner.capacity_between(from, to),
                }
            }

            /// Calls `visit` with every queue; of a radio from outside with none.
            pub fn for_each_queue(&self, visit: &mut dyn FnMut(&AnyQueue<P>)) {
                match self {
                    $( AnyRadio::$Var(inner) => inner.for_each_queue(visit), )*
                    AnyRadio::Custom(_) => {}
                }
            }
        }

        impl<P: Duplicate> PathElement<P> for AnyRadio<P> {
            pass_to_element!(AnyRadio { $($Var)* Custom });
        }
    };
}

radios! {
    Cellular(cellular::Cellular) = "cellular", "A cellular base station: users with channels and queues of their own, proportionally fair";
    Nr(nr::Nr) = "nr", "A base station of 5G: slots and a TDD pattern, HARQ, uplink grants, an RLC buffer, handover";
    Wifi(wifi::Wifi) = "wifi", "An 802.11n access point: batches, contention, losses, block ACKs, several stations";
}

/// Every way to serve a queue, by name.
pub const SERVICES: &[Entry] = &[
    service("trace", "A trace of delivery opportunities, as Mahimahi replays it", traced::Config::describe),
    service("fixed", "A fixed rate, or a token bucket", fixed::Config::describe),
    service("steps", "Rates that change in steps", steps::Config::describe),
];

const fn service(name: &'static str, summary: &'static str, parameters: fn() -> Vec<Parameter>) -> Entry {
    Entry { name, aliases: &[], summary, parameters: Listed::By(parameters) }
}

/// A link's service of any kind, dispatched by `match`.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum AnyService {
    /// A trace of delivery opportunities.
    Traced(traced::Traced),
    /// A fixed rate.
    Fixed(fixed::Fixed),
    /// Rates that change in steps.
    Steps(steps::Steps),
    /// A rate that is set while the run goes on.
    Adjusted(Box<adjusted::Adjusted<AnyService>>),
}

impl Service for AnyService {
    pass_to_service!(AnyService { Traced Fixed Steps Adjusted });
}
