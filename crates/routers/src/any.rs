//! A queue of any kind: factories, and dispatch on the packet path.
//!
//! Dispatch is a `match`, so a discipline of the table costs no call through a pointer. One from outside
//! stands behind the variant `Custom`.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::facts::{
    Bench, BuildError, Entry, Listed, Options, Preset, Protocol, Qdisc, Traits, unknown,
};
use brakelight_core::packet::{Duplicate, HeaderKind};
use brakelight_core::parameters::{OptionValues, Parameters};
use brakelight_core::path::Departed;
use brakelight_core::queue::{
    Backlog, Dequeued, Drops, LinkKind, LinkView, Misfit, Place, Queue, SPEAKS_ABC, SPEAKS_BMCC, SPEAKS_L4S,
};
use brakelight_core::time::Time;
use brakelight_core::units::Limit;

use crate::custom::{BoxedQueue, CustomQueueConfig};
use crate::{abc_dual, bmcc, cake, red};

macro_rules! make_queues {
    ($(
        $Var:ident($mod:ident :: $Ty:ident) = $name:literal $(| $alias:literal)*, $summary:literal,
        is { $($trait:ident: $value:expr),* $(,)? }
        $(, encoding $encoding:expr)?
        $(, misreads $misreads:expr)?
        $(, needs_link_rate $link_rate:expr)?
        $(, tells_flows_apart $apart:expr)?
        $(, fills_up_to $fills:expr)?
        $(, reads_acks $reads_acks:expr)?
        $(, fits $fits:expr)?;
    )*) => {
        /// Every queue, by name.
        pub const QUEUES: &[Entry] = &[$( Entry {
            name: $name, aliases: &[$($alias),*], summary: $summary,
            parameters: Listed::By(<crate::$mod::Config as Parameters>::describe),
        }, )*];

        /// A queue of any kind, dispatched by `match`. `repr(u32)` as for
        /// `AnyElement` of `brakelight-links`.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        #[repr(u32)]
        pub enum AnyQueue<P> {
            $( #[doc = $summary] $Var(crate::$mod::$Ty<P>), )*
            /// One from outside.
            Custom(BoxedQueue<P>),
        }

        impl<P: Duplicate> Queue<P> for AnyQueue<P> {
            pass_to_queue!(AnyQueue { $($Var)* Custom } inline { DropTail CoDel Bmcc Abc } getters);
        }

        /// A queue's settings, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueConfig {
            $( #[doc = $summary] $Var(crate::$mod::Config), )*
            /// A queue from outside.
            Custom(CustomQueueConfig),
        }

        impl QueueConfig {
            /// Finds a queue that Brakelight brings, and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $name $(|| name == $alias)* {
                    return crate::$mod::Config::from_options(options.iter().copied())
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
                        let encoding: fn(&crate::$mod::Config) -> Option<Encoding> =
                            or!($($encoding,)? else |_| None);
                        encoding(config)
                    } )*
                    QueueConfig::Custom(config) => config.own_encoding(),
                }
            }

            /// Returns `true` if flows of any encoding may pass it, and it reads them all as its own.
            pub fn misreads(&self) -> bool {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let misreads: fn(&crate::$mod::Config) -> bool = or!($($misreads,)? else |_| false);
                        misreads(config)
                    } )*
                    QueueConfig::Custom(_) => false,
                }
            }

            /// Returns `true` if it asks the link what it could have carried: in simulation the truth,
            /// which a real router must measure or be told.
            pub fn needs_link_rate(&self) -> bool {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let needs: fn(&crate::$mod::Config) -> bool = or!($($link_rate,)? else |_| false);
                        needs(config)
                    } )*
                    QueueConfig::Custom(config) => config.needs_link_rate(),
                }
            }

            /// Returns `true` if it serves flows of its own encoding and others in different ways, by flow.
            pub fn tells_flows_apart(&self) -> bool {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let apart: fn(&crate::$mod::Config) -> bool = or!($($apart,)? else |_| false);
                        apart(config)
                    } )*
                    QueueConfig::Custom(config) => config.tells_flows_apart(),
                }
            }

            /// Returns up to which limit it fills behind `buffer`, if it drops nothing before it is full.
            pub fn fills_up_to(&self, buffer: Limit) -> Option<Limit> {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let fills: fn(&crate::$mod::Config, Limit) -> Option<Limit> =
                            or!($($fills,)? else |_, _| None);
                        fills(config, buffer)
                    } )*
                    QueueConfig::Custom(config) => config.fills_up_to(buffer),
                }
            }

            /// Returns `true` if it may read what packets acknowledge
            /// ([`acknowledgement`](brakelight_core::packet::Packet::acknowledgement)). One from outside may.
            pub fn reads_acks(&self) -> bool {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let reads: fn(&crate::$mod::Config) -> bool = or!($($reads_acks,)? else |_| false);
                        reads(config)
                    } )*
                    QueueConfig::Custom(_) => true,
                }
            }

            /// Returns an error if its settings do not fit a link of this kind.
            pub fn fits(&self, link: &LinkKind) -> Result<(), Misfit> {
                match self {
                    $( QueueConfig::$Var(config) => {
                        let fits: fn(&crate::$mod::Config, &LinkKind) -> Result<(), Misfit> =
                            or!($($fits,)? else |_, _| Ok(()));
                        fits(config, link)
                    } )*
                    QueueConfig::Custom(config) => config.fits(link),
                }
            }

            /// An empty queue.
            pub fn build<P: Duplicate>(&self, place: &Place) -> AnyQueue<P> {
                match self {
                    $( QueueConfig::$Var(config) => AnyQueue::$Var(crate::$mod::$Ty::new(config, place)), )*
                    QueueConfig::Custom(config) => config.build(place),
                }
            }
        }
    };
}

impl QueueConfig {
    /// Returns `true` if flows of this encoding may pass it.
    pub fn speaks(&self, encoding: Encoding) -> bool {
        self.misreads() || self.traits().speaks.contains(&encoding)
    }

    /// Returns `true` if it was told to read flows of this encoding as its own, and some codepoint means one
    /// thing to them and another to it.
    pub fn misreads_flows_of(&self, encoding: Encoding) -> bool {
        let differs =
            |own: Encoding| (0..4).map(Ecn::from_bits).any(|ecn| own.mark(ecn) != encoding.mark(ecn));
        // BMCC reads more than a mark.
        let differs = |own| differs(own) || !self.traits().speaks.contains(&encoding);
        self.misreads() && encoding.sent().is_capable() && self.own_encoding().is_some_and(differs)
    }
}

queues!(make_queues);
