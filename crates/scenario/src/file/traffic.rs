//! The `traffic` of a flow: a kind alone, or a table with its numbers.

use std::fmt;

use brakelight_apps::custom::Applications;
use brakelight_core::parameters::Parameter;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{BuildError, Entry, Listed, Registry};
use schemars::JsonSchema;
use serde::de::{Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::tables::tables;
use super::values::{List, Listed as _, PhaseEntry, Quantity, Text};
use crate::document::{Document, Node, Reason, Refusal, keys_of};
use crate::problem::InputError;
use crate::scheme_string::Words;
use crate::traffic::{
    Arrivals, Call, Game, OnOff, Phase, Repair, RequestResponse, ShortFlows, SizeLaw, Traffic, Video,
};

const EXPECTED: &str = "a kind of traffic: backlogged, size, on-off, short-flows, rate-limited, phases, \
                        request-response, game, video, call or gaming, alone or as in `{ kind = \"size\", size = \"1MB\" }`";

/// Frames a second of `gaming`, unless it says otherwise.
const GAMING_FPS: u32 = 60;

/// What an application does.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum TrafficEntry {
    /// A kind alone.
    Alone(Alone),
    /// A table with its numbers.
    Table(TrafficTable),
    /// An application from outside, by name and options: `name:option=value,option=value`.
    Custom(String),
}

/// A kind of traffic that needs no numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Alone {
    /// Always more to send.
    Backlogged,
    /// A game's stream of updates, with the default numbers.
    Game,
    /// A player of adaptive-bitrate video, with the default numbers.
    Video,
    /// A real-time video call, with the default numbers.
    Call,
    /// Cloud gaming at 60 frames a second.
    Gaming,
}

/// Declares the kinds of traffic, each with its table.
macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $Kind:ident($Table:ident) = $name:literal; )+) => {
        /// A kind of traffic with its numbers.
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub(crate) enum TrafficTable {
            $( $(#[doc = $doc])+ #[serde(rename = $name)] $Kind($Table), )+
        }

        const KINDS: &[&str] = &[$($name),+];

        /// The applications that Brakelight brings, with their numbers.
        pub const APPLICATIONS: &[Entry] = &[$( Entry {
            name: $name,
            aliases: &[],
            summary: concat!($($doc),+).trim_ascii(),
            parameters: Listed::By($Table::parameters),
        }, )+];

        #[derive(Deserialize)]
        enum Kind {
            $( #[serde(rename = $name)] $Kind, )+
        }

        impl TrafficTable {
            fn of<'de, A: EnumAccess<'de>>(access: A) -> Result<Self, A::Error> {
                let (kind, numbers) = access.variant()?;
                match kind {
                    $( Kind::$Kind => numbers.newtype_variant().map(TrafficTable::$Kind), )+
                }
            }
        }

        /// The numbers of the kind called `name`, in words; none if there is no such kind.
        fn numbers(name: &str) -> Option<String> {
            let keys = match name {
                $( $name => keys_of::<$Table>(), )+
                _ => return None,
            };
            Some([&["kind"], keys].concat().join(", "))
        }
    };
}

kinds! {
    /// Always more to send.
    Backlogged(BackloggedTable) = "backlogged";
    /// One transfer, then silence.
    Size(SizeTable) = "size";
    /// Sends, is silent, sends.
    OnOff(OnOffTable) = "on-off";
    /// Short connections that arrive as a Poisson process.
    ShortFlows(ShortFlowsTable) = "short-flows";
    /// Payload at a constant rate.
    RateLimited(RateLimitedTable) = "rate-limited";
    /// Phases on one connection, each with its own rate.
    Phases(PhasesTable) = "phases";
    /// Asks, waits, thinks, asks again.
    RequestResponse(RequestResponseTable) = "request-response";
    /// Small packets at a fixed beat.
    Game(GameTable) = "game";
    /// Adaptive video: segments, a playback buffer, stalls.
    Video(VideoTable) = "video";
    /// A video call whose encoder follows the controller.
    Call(CallTable) = "call";
    /// Cloud gaming: a `call` with fitting numbers.
    Gaming(GamingTable) = "gaming";
}

/// Declares the tables of the kinds of traffic: each key with its type, its unit, and its default or
/// `required`.
macro_rules! numbers {
    ($(
        #[doc = $doc:literal]
        $Table:ident { $( #[doc = $meaning:literal] $key:ident: $ty:ty, $unit:literal, $default:literal; )* }
    )+) => {
        tables! { $( #[doc = $doc] $Table { $( #[doc = $meaning] $key: $ty, )* } )+ }

        $(impl $Table {
            fn parameters() -> Vec<Parameter> {
                vec![$( Parameter {
                    name: stringify!($key),
                    meaning: $meaning.trim_ascii(),
                    unit: $unit.to_string(),
                    default: $default.to_string(),
                    range: String::new(),
                    source: "",
                }, )*]
            }
        })+
    };
}

numbers! {
    /// No numbers.
    BackloggedTable {}

    /// The numbers of `size`.
    SizeTable {
        /// Payload of the transfer.
        size: Quantity<Bytes>, "size", "required";
    }

    /// The numbers of `on-off`.
    OnOffTable {
        /// How long it sends.
        on: Quantity<Duration>, "time", "required";
        /// How long it is silent.
        off: Quantity<Duration>, "time", "required";
        /// Payload rate while it sends; backlogged without one.
        rate: Quantity<Rate>, "rate", "none";
        /// Whether `on` and `off` are means of exponential distributions.
        random: bool, "true | false", "false";
    }

    /// The numbers of `short-flows`.
    ShortFlowsTable {
        /// How many arrive per second; or give `load`.
        per_second: f64, "number", "none";
        /// The rate that they offer together; or give `per_second`.
        load: Quantity<Rate>, "rate", "none";
        /// Payload of one connection; its mean with `pareto_shape`.
        size: Quantity<Bytes>, "size", "required";
        /// Shape of the Pareto distribution of sizes; all the same without it.
        pareto_shape: f64, "number", "none";
    }

    /// The numbers of `rate-limited`.
    RateLimitedTable {
        /// The payload rate offered.
        rate: Quantity<Rate>, "rate", "required";
    }

    /// The numbers of `phases`.
    PhasesTable {
        /// How long each phase lasts, and what it offers: a rate, `backlogged` or `idle`.
        phases: List<PhaseEntry>, "list of pairs", "required";
    }

    /// The numbers of `request-response`.
    RequestResponseTable {
        /// Payload of a request.
        request: Quantity<Bytes>, "size", "required";
        /// Payload of a response.
        response: Quantity<Bytes>, "size", "required";
        /// Mean of the exponential pause before the next request.
        think: Quantity<Duration>, "time", "0s";
    }

    /// The numbers of `game`.
    GameTable {
        /// Payload of one update.
        size: Quantity<Bytes>, "size", "100B";
        /// Time between updates.
        interval: Quantity<Duration>, "time", "33333333ns";
    }

    /// The numbers of `video`.
    VideoTable {
        /// The encoded rates on offer, ascending.
        ladder: List<Quantity<Rate>>, "list of rates", "300kbps, 750kbps, 1200kbps, 1850kbps, 2850kbps, 5800kbps";
        /// Playing time of a segment.
        segment: Quantity<Duration>, "time", "2s";
        /// How much playing time the player holds at most.
        buffer: Quantity<Duration>, "time", "30s";
        /// Playing time that must be there before playback starts.
        startup: Quantity<Duration>, "time", "4s";
    }

    /// The numbers of `call`.
    CallTable {
        /// The encoder's lowest rate.
        min_rate: Quantity<Rate>, "rate", "150kbps";
        /// The encoder's highest rate.
        max_rate: Quantity<Rate>, "rate", "2500kbps";
        /// Frames per second.
        fps: u32, "number", "30";
        /// A frame that arrives later than this after its capture is not shown.
        deadline: Quantity<Duration>, "time", "400ms";
        /// When the camera pauses, after the start.
        pause_at: Quantity<Duration>, "time", "0s";
        /// For how long it pauses; 0 for no pause.
        pause_for: Quantity<Duration>, "time", "0s";
        /// Whether the encoder is the statistical one of RFC 8593.
        statistical: bool, "true | false", "false";
        /// Size of a key frame of the statistical encoder.
        key_frame: Quantity<Bytes>, "size", "13500B";
        /// Time between key frames of the statistical encoder; 0 for none but where its rate jumps.
        key_interval: Quantity<Duration>, "time", "0s";
        /// Whether frames wait in a jitter buffer until their time to be shown comes.
        jitter_buffer: bool, "true | false", "false";
        /// Whether there is sound beside the frames: 50 messages a second, which nobody sends again.
        audio: bool, "true | false", "false";
        /// How frames travel, in a stream or in packets of their own, and how lost packets are repaired.
        repair: Text<Repair>, "stream | none | nack | fec", "stream";
    }

    /// The numbers of `gaming`.
    GamingTable {
        /// Frames per second.
        fps: u32, "number", "60";
        /// How frames travel, as in a `call`.
        repair: Text<Repair>, "stream | none | nack | fec", "stream";
    }
}

impl<'de> Deserialize<'de> for TrafficEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("traffic", KINDS, TrafficVisitor)
    }
}

struct TrafficVisitor;

impl<'de> Visitor<'de> for TrafficVisitor {
    type Value = TrafficEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, kind: &str) -> Result<TrafficEntry, E> {
        Ok(TrafficEntry::Alone(match kind {
            "backlogged" => Alone::Backlogged,
            "game" => Alone::Game,
            "video" => Alone::Video,
            "call" => Alone::Call,
            "gaming" => Alone::Gaming,
            other => match numbers(other) {
                Some(keys) => {
                    return Err(E::custom(format_args!("`{kind}` needs numbers: give a table with {keys}")));
                }
                None => return Ok(TrafficEntry::Custom(other.to_string())),
            },
        }))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<TrafficEntry, A::Error> {
        TrafficTable::of(access).map(TrafficEntry::Table)
    }
}

/// The quantity of `key`, which must be there.
fn required<T>(value: Option<Quantity<T>>, key: &str, expected: &str) -> Result<T, Refusal> {
    value.map(|quantity| quantity.0).ok_or_else(|| Refusal::missing(key, expected))
}

fn or<T>(value: Option<Quantity<T>>, default: T) -> T {
    value.map_or(default, |quantity| quantity.0)
}

impl TrafficEntry {
    /// The traffic, whose application may be one of `registry`.
    pub(super) fn resolve(self, registry: &Registry) -> Result<Traffic, Refusal> {
        let table = match self {
            TrafficEntry::Custom(text) => return custom(registry, &text),
            TrafficEntry::Alone(Alone::Backlogged) => return Ok(Traffic::Backlogged),
            TrafficEntry::Alone(Alone::Game) => return Ok(Traffic::Game(Game::default())),
            TrafficEntry::Alone(Alone::Video) => return Ok(Traffic::Video(Video::default())),
            TrafficEntry::Alone(Alone::Call) => return Ok(Traffic::Call(Call::default())),
            TrafficEntry::Alone(Alone::Gaming) => return Ok(Traffic::Call(Call::gaming(GAMING_FPS))),
            TrafficEntry::Table(table) => table,
        };
        Ok(match table {
            TrafficTable::Backlogged(_) => Traffic::Backlogged,
            TrafficTable::Size(table) => {
                Traffic::Size(required(table.size, "size", "the size of the transfer")?)
            }
            TrafficTable::OnOff(table) => Traffic::OnOff(OnOff {
                on: required(table.on, "on", "how long it sends")?,
                off: required(table.off, "off", "how long it is silent")?,
                rate: table.rate.map(|rate| rate.0),
                random: table.random.unwrap_or(false),
            }),
            TrafficTable::ShortFlows(table) => Traffic::ShortFlows(short_flows(&table)?),
            TrafficTable::RateLimited(table) => {
                Traffic::RateLimited(required(table.rate, "rate", "the rate offered")?)
            }
            TrafficTable::Phases(table) => {
                let phases = table.phases.ok_or_else(|| Refusal::missing("phases", PhaseEntry::LIST))?;
                let phase = |PhaseEntry(time, offer): PhaseEntry| Phase { length: time.0, offer: offer.0 };
                Traffic::Phases(phases.0.into_iter().map(phase).collect())
            }
            TrafficTable::RequestResponse(table) => Traffic::RequestResponse(RequestResponse {
                request: required(table.request, "request", "the size of a request")?,
                response: required(table.response, "response", "the size of a response")?,
                think: or(table.think, Duration::ZERO),
            }),
            TrafficTable::Game(table) => {
                let game = Game::default();
                Traffic::Game(Game {
                    size: or(table.size, game.size),
                    interval: or(table.interval, game.interval),
                })
            }
            TrafficTable::Video(table) => {
                let video = Video::default();
                let ladder = table.ladder.map(|ladder| ladder.0.into_iter().map(|rung| rung.0).collect());
                Traffic::Video(Video {
                    ladder: ladder.unwrap_or(video.ladder),
                    segment: or(table.segment, video.segment),
                    buffer: or(table.buffer, video.buffer),
                    startup: or(table.startup, video.startup),
                })
            }
            TrafficTable::Call(table) => {
                let call = Call::default();
                Traffic::Call(Call {
                    min_rate: or(table.min_rate, call.min_rate),
                    max_rate: or(table.max_rate, call.max_rate),
                    fps: table.fps.unwrap_or(call.fps),
                    deadline: or(table.deadline, call.deadline),
                    pause_at: or(table.pause_at, call.pause_at),
                    pause_for: or(table.pause_for, call.pause_for),
                    statistical: table.statistical.unwrap_or(call.statistical),
                    key_frame: or(table.key_frame, call.key_frame),
                    key_interval: or(table.key_interval, call.key_interval),
                    jitter_buffer: table.jitter_buffer.unwrap_or(call.jitter_buffer),
                    audio: table.audio.unwrap_or(call.audio),
                    repair: table.repair.map_or(call.repair, |repair| repair.0),
                })
            }
            TrafficTable::Gaming(table) => {
                let call = Call::gaming(table.fps.unwrap_or(GAMING_FPS));
                Traffic::Call(Call { repair: table.repair.map_or(call.repair, |repair| repair.0), ..call })
            }
        })
    }
}

tables! {
    /// A flow's traffic alone.
    TrafficAlone {
        /// What its application does.
        traffic: TrafficEntry,
    }
}

/// Returns the traffic that `text` says, as a scenario file would have it: a kind such as `call`, a table
/// such as `{ kind = "call", fps = 60 }`, or that table as JSON. Its application may be one of `registry`.
/// Numbers are checked with the scenario.
///
/// ```
/// use brakelight_registry::Registry;
/// use brakelight_scenario::file::{read_traffic, traffic_words};
///
/// let call = read_traffic(&Registry::standard(), "call").unwrap();
/// assert_eq!(call, read_traffic(&Registry::standard(), &traffic_words(&call)).unwrap());
/// assert_eq!(call, read_traffic(&Registry::standard(), r#"{"kind": "call", "fps": 30}"#).unwrap());
/// ```
///
/// # Errors
/// What is wrong, with the key, its value and what would be valid.
pub fn read_traffic(registry: &Registry, text: &str) -> Result<Traffic, InputError> {
    let text = text.trim();
    let given: Option<serde_json::Value> =
        text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
    let value = match &given {
        Some(_) => String::new(),
        None if text.starts_with('{') => format!("traffic = {text}"),
        None => format!("traffic = {}", toml::Value::from(text)),
    };
    let document = match given {
        Some(value) => {
            let node = Node::deserialize(serde_json::json!({ "traffic": value }));
            Document::of(node.expect("JSON has what a document has"))
        }
        None => Document::parse("", &value).map_err(nowhere)?,
    };
    let read = document.read::<TrafficAlone>().and_then(|alone| {
        let entry = alone.traffic.ok_or_else(|| Refusal::missing("traffic", EXPECTED))?;
        entry.resolve(registry).map_err(|refusal| refusal.under("traffic"))
    });
    read.map_err(|refusal| nowhere(document.error(refusal)))
}

/// The same error, of a text that stands in no file.
fn nowhere(error: InputError) -> InputError {
    InputError { file: None, line: None, ..error }
}

/// Returns `traffic` in the words that [`read_traffic`] takes.
pub fn traffic_words(traffic: &Traffic) -> String {
    match TrafficEntry::from(traffic) {
        TrafficEntry::Custom(text) => text,
        entry => match toml::Value::try_from(entry) {
            Ok(toml::Value::String(name)) => name,
            Ok(table) => table.to_string(),
            Err(error) => unreachable!("its keys are strings and its numbers are TOML's: {error}"),
        },
    }
}

/// The application of `registry` that `text` names.
fn custom(registry: &Registry, text: &str) -> Result<Traffic, Refusal> {
    let words = Words::parse(text).ok_or_else(|| Refusal::malformed(EXPECTED))?;
    let options: Vec<(&str, &str)> =
        words.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    registry.traffic(&words.name, &options).map_err(|error| match error {
        BuildError::Unknown { known, .. } if !known.is_empty() => {
            Refusal::malformed(format!("{EXPECTED}; or an application of this program: {known}"))
        }
        BuildError::Unknown { .. } => Refusal::malformed(EXPECTED),
        error => Refusal::new(Reason::Algorithm(error)),
    })
}

fn short_flows(table: &ShortFlowsTable) -> Result<ShortFlows, Refusal> {
    let arrivals = match (table.per_second, table.load) {
        (Some(rate), None) => Arrivals::PerSecond(rate),
        (None, Some(load)) => Arrivals::Load(load.0),
        (Some(_), Some(_)) => {
            return Err(Refusal::contradiction("load", "give `per_second` or `load`, not both"));
        }
        (None, None) => {
            let expected = "how many arrive per second, or `load`, the rate they offer";
            return Err(Refusal::missing("per_second", expected));
        }
    };
    let mean = required(table.size, "size", "the size of a connection, or its mean with `pareto_shape`")?;
    let size = match table.pareto_shape {
        Some(shape) => SizeLaw::Pareto { mean, shape },
        None => SizeLaw::Fixed(mean),
    };
    Ok(ShortFlows { arrivals, size })
}

impl From<&Traffic> for TrafficEntry {
    fn from(traffic: &Traffic) -> Self {
        TrafficEntry::Table(match traffic {
            Traffic::Backlogged => return TrafficEntry::Alone(Alone::Backlogged),
            Traffic::Custom(custom) => return TrafficEntry::Custom(custom.to_string()),
            &Traffic::Size(size) => TrafficTable::Size(SizeTable { size: Some(Quantity(size)) }),
            Traffic::OnOff(on_off) => TrafficTable::OnOff(OnOffTable {
                on: Some(Quantity(on_off.on)),
                off: Some(Quantity(on_off.off)),
                rate: on_off.rate.map(Quantity),
                random: Some(on_off.random),
            }),
            Traffic::ShortFlows(short) => TrafficTable::ShortFlows(ShortFlowsTable {
                per_second: match short.arrivals {
                    Arrivals::PerSecond(rate) => Some(rate),
                    Arrivals::Load(_) => None,
                },
                load: match short.arrivals {
                    Arrivals::PerSecond(_) => None,
                    Arrivals::Load(load) => Some(Quantity(load)),
                },
                size: Some(Quantity(short.size.mean())),
                pareto_shape: match short.size {
                    SizeLaw::Fixed(_) => None,
                    SizeLaw::Pareto { shape, .. } => Some(shape),
                },
            }),
            &Traffic::RateLimited(rate) => {
                TrafficTable::RateLimited(RateLimitedTable { rate: Some(Quantity(rate)) })
            }
            Traffic::Phases(phases) => {
                let entry = |phase: &Phase| PhaseEntry(Quantity(phase.length), Text(phase.offer));
                TrafficTable::Phases(PhasesTable { phases: Some(List(phases.iter().map(entry).collect())) })
            }
            Traffic::RequestResponse(exchange) => TrafficTable::RequestResponse(RequestResponseTable {
                request: Some(Quantity(exchange.request)),
                response: Some(Quantity(exchange.response)),
                think: Some(Quantity(exchange.think)),
            }),
            Traffic::Game(game) => TrafficTable::Game(GameTable {
                size: Some(Quantity(game.size)),
                interval: Some(Quantity(game.interval)),
            }),
            Traffic::Video(video) => TrafficTable::Video(VideoTable {
                ladder: Some(List(video.ladder.iter().map(|rate| Quantity(*rate)).collect())),
                segment: Some(Quantity(video.segment)),
                buffer: Some(Quantity(video.buffer)),
                startup: Some(Quantity(video.startup)),
            }),
            Traffic::Call(call) => TrafficTable::Call(CallTable {
                min_rate: Some(Quantity(call.min_rate)),
                max_rate: Some(Quantity(call.max_rate)),
                fps: Some(call.fps),
                deadline: Some(Quantity(call.deadline)),
                pause_at: Some(Quantity(call.pause_at)),
                pause_for: Some(Quantity(call.pause_for)),
                statistical: call.statistical.then_some(true),
                key_frame: call.statistical.then_some(Quantity(call.key_frame)),
                key_interval: call.statistical.then_some(Quantity(call.key_interval)),
                jitter_buffer: call.jitter_buffer.then_some(true),
                audio: call.audio.then_some(true),
                repair: (call.repair != Repair::Stream).then_some(Text(call.repair)),
            }),
        })
    }
}
