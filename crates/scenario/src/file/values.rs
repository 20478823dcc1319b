//! The values of a scenario file: quantities with their units, and strings that stand for something.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use brakelight_core::parameters::Value as _;
use brakelight_core::time::Duration;
use brakelight_core::units::{ParseError, Rate};
use brakelight_links::elements::{ElementConfig, RadioConfig};
use brakelight_registry::{ControllerConfig, FeedbackConfig, Host, QueueConfig};
use schemars::{Schema, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

use crate::scenario::{Reordering, TraceOffset, Waiting};
use crate::scheme_string::Words;
use crate::traffic::Offer;
use crate::traffic::Repair;

/// A quantity with its unit: `"100ms"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity<T>(pub(crate) T);

impl<T: Display> Serialize for Quantity<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err = ParseError>> Deserialize<'de> for Quantity<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A bare number has no unit, so it is refused with what would be valid, and not for the lack of
        // quotes.
        deserializer.deserialize_any(QuantityVisitor(PhantomData)).map(Quantity)
    }
}

struct QuantityVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = ParseError>> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing is no quantity.
        "".parse::<T>().map_or_else(|error| f.write_str(error.expected), |_| Ok(()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error: ParseError| E::invalid_value(Unexpected::Str(text), &error.expected))
    }
}

/// A string that stands for a `T`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text<T>(pub(crate) T);

/// What a string of a document can stand for.
pub(crate) trait Textual: Sized {
    /// What should be there, for a message about a value that is no string.
    fn expected() -> String;
    /// Reads the string; the error says what would have been valid.
    fn read(text: &str) -> Result<Self, String>;
    /// The string that reads back as the same.
    fn show(&self) -> String;
    /// Its definition in a JSON Schema, if several keys share it.
    const DEFINITION: Option<&'static str> = None;
    /// What it is in a JSON Schema.
    fn schema() -> Schema {
        json_schema!({"type": "string"})
    }
}

impl<T: Textual> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.show())
    }
}

impl<'de, T: Textual> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData)).map(Text)
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: Textual> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&T::expected())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(|expected| E::invalid_value(Unexpected::Str(text), &expected.as_str()))
    }
}

/// Declares kinds of strings that are taken as they are.
macro_rules! plain_text {
    ($( $(#[$meta:meta])* $Name:ident: $expected:literal; )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $Name(pub(crate) String);

        impl Textual for $Name {
            fn expected() -> String {
                $expected.to_string()
            }
            fn read(text: &str) -> Result<Self, String> {
                Ok($Name(text.to_string()))
            }
            fn show(&self) -> String {
                self.0.clone()
            }
        }
    )+};
}
pub(crate) use plain_text;

plain_text! {
    /// What people call a scenario, a link or a flow.
    Name: "a name";
    /// What a link's trace is called, or where it lies.
    TraceName: "the name or file of a trace";
}

impl Textual for TraceOffset {
    fn schema() -> Schema {
        json_schema!({"type": "string", "examples": ["0s", "random"]})
    }
    fn expected() -> String {
        "a time, or `random`".to_string()
    }
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "random" => Ok(TraceOffset::Random),
            time => time.parse().map(TraceOffset::At).map_err(|error| error.expected.to_string()),
        }
    }
    fn show(&self) -> String {
        match self {
            TraceOffset::Random => "random".to_string(),
            TraceOffset::At(offset) => offset.to_string(),
        }
    }
}

impl Textual for Host {
    fn schema() -> Schema {
        json_schema!({"type": "string", "enum": ["tcp", "quic", "ns2"]})
    }
    fn expected() -> String {
        "`tcp`, `quic` or `ns2`".to_string()
    }
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "tcp" => Ok(Host::Tcp),
            "quic" => Ok(Host::Quic),
            "ns2" => Ok(Host::Ns2),
            _ => Err("a host: `tcp`, `quic` or `ns2`".to_string()),
        }
    }
    fn show(&self) -> String {
        match self {
            Host::Tcp => "tcp".to_string(),
            Host::Quic => "quic".to_string(),
            Host::Ns2 => "ns2".to_string(),
        }
    }
}

impl Textual for Reordering {
    fn schema() -> Schema {
        json_schema!({"type": "string", "enum": ["fixed", "adaptive"]})
    }
    fn expected() -> String {
        "`fixed` or `adaptive`".to_string()
    }
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "fixed" => Ok(Reordering::Fixed),
            "adaptive" => Ok(Reordering::Adaptive),
            _ => Err(Self::expected()),
        }
    }
    fn show(&self) -> String {
        match self {
            Reordering::Fixed => "fixed".to_string(),
            Reordering::Adaptive => "adaptive".to_string(),
        }
    }
}

impl Textual for Repair {
    fn schema() -> Schema {
        json_schema!({"type": "string", "enum": Repair::ALL.map(|(name, _)| name)})
    }
    fn expected() -> String {
        "`stream`, `none`, `nack` or `fec`".to_string()
    }
    fn read(text: &str) -> Result<Self, String> {
        let found = Repair::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, repair)| *repair).ok_or_else(Self::expected)
    }
    fn show(&self) -> String {
        let found = Repair::ALL.iter().find(|(_, repair)| repair == self);
        found.map_or_else(String::new, |(name, _)| (*name).to_string())
    }
}

impl Textual for Waiting {
    fn schema() -> Schema {
        json_schema!({"type": "string", "enum": ["lost", "kept"]})
    }
    fn expected() -> String {
        "`lost` or `kept`".to_string()
    }
    fn read(text: &str) -> Result<Self, String> {
        Waiting::parse(text)
    }
    fn show(&self) -> String {
        brakelight_core::parameters::Value::show(self)
    }
}

/// An algorithm by name and options: `"codel:target=50ms"`. `C` is its configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Algorithm<C> {
    pub(crate) words: Words,
    of: PhantomData<C>,
}

impl<C> Algorithm<C> {
    pub(crate) fn new(words: Words) -> Self {
        Algorithm { words, of: PhantomData }
    }
}

/// What an algorithm is, in words.
pub(crate) trait Kind {
    /// Such as `queue`.
    const KIND: &'static str;
}

impl Kind for ControllerConfig {
    const KIND: &'static str = "controller";
}

impl Kind for FeedbackConfig {
    const KIND: &'static str = "feedback";
}

impl Kind for QueueConfig {
    const KIND: &'static str = "queue";
}

impl Kind for RadioConfig {
    const KIND: &'static str = "radio";
}

impl Kind for ElementConfig {
    const KIND: &'static str = "path element";
}

impl<C: Kind> Textual for Algorithm<C> {
    const DEFINITION: Option<&'static str> = Some(C::KIND);
    fn schema() -> Schema {
        let description =
            format!("A {} by name, alone or with options: `name:option=value,option=value`.", C::KIND);
        json_schema!({"type": "string", "description": description})
    }
    fn expected() -> String {
        format!("a {} such as `name` or `name:option=value,option=value`", C::KIND)
    }
    fn read(text: &str) -> Result<Self, String> {
        Words::parse(text).map(Algorithm::new).ok_or_else(Self::expected)
    }
    fn show(&self) -> String {
        self.words.to_string()
    }
}

/// A station of a path: a link's name, or a path element with its options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Station(pub(crate) Words);

impl Station {
    /// What a path is.
    const PATH: &'static str = "a list of links and path elements such as `[\"up\", \"loss:rate=0.01\"]`";
}

impl Textual for Station {
    const DEFINITION: Option<&'static str> = Some("station");
    fn schema() -> Schema {
        let description = "A link by its name, or a path element by name and options: `loss:rate=0.01`.";
        json_schema!({"type": "string", "description": description})
    }
    fn expected() -> String {
        Self::PATH.to_string()
    }
    fn read(text: &str) -> Result<Self, String> {
        Words::parse(text).map(Station).ok_or_else(|| "a link or a path element".to_string())
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A list of `T`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// What can be listed.
pub(crate) trait Listed {
    /// What the list is, for a message about a value that is none.
    const LIST: &'static str;
}

impl Listed for Text<Station> {
    const LIST: &'static str = Station::PATH;
}

impl Listed for Quantity<Rate> {
    const LIST: &'static str = "a list of rates, ascending";
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Listed + Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData)).map(List)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Listed + Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::LIST)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut access: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = access.next_element()? {
            list.push(element);
        }
        Ok(list)
    }
}

impl Textual for Offer {
    fn schema() -> Schema {
        json_schema!({"type": "string", "examples": ["200kbps", "backlogged", "idle"]})
    }
    fn expected() -> String {
        "a rate, `backlogged` or `idle`".to_string()
    }
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "backlogged" => Ok(Offer::Backlogged),
            "idle" => Ok(Offer::Idle),
            rate => rate.parse().map(Offer::Rate).map_err(|_| Self::expected()),
        }
    }
    fn show(&self) -> String {
        match self {
            Offer::Backlogged => "backlogged".to_string(),
            Offer::Idle => "idle".to_string(),
            Offer::Rate(rate) => rate.to_string(),
        }
    }
}

/// How long a phase lasts, and what it offers: `["10s", "200kbps"]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PhaseEntry(pub(crate) Quantity<Duration>, pub(crate) Text<Offer>);

impl Listed for PhaseEntry {
    const LIST: &'static str =
        "a list of phases such as `[[\"10s\", \"200kbps\"], [\"20s\", \"backlogged\"]]`";
}

impl<'de> Deserialize<'de> for PhaseEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PhaseVisitor)
    }
}

struct PhaseVisitor;

impl<'de> Visitor<'de> for PhaseVisitor {
    type Value = PhaseEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PhaseEntry::LIST)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut access: A) -> Result<PhaseEntry, A::Error> {
        const PAIR: &str = "a time with a rate, `backlogged` or `idle`, such as `[\"10s\", \"200kbps\"]`";
        let not_a_pair = || A::Error::invalid_value(Unexpected::Seq, &PAIR);
        let time = access.next_element()?.ok_or_else(not_a_pair)?;
        let offer = access.next_element()?.ok_or_else(not_a_pair)?;
        match access.next_element::<serde::de::IgnoredAny>()? {
            None => Ok(PhaseEntry(time, offer)),
            Some(_) => Err(not_a_pair()),
        }
    }
}

/// How long a step lasts, and its rate: `["500ms", "12Mbps"]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Step(pub(crate) Quantity<Duration>, pub(crate) Quantity<Rate>);

impl Listed for Step {
    const LIST: &'static str = "a list of steps such as `[[\"500ms\", \"12Mbps\"], [\"500ms\", \"24Mbps\"]]`";
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Step::LIST)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut access: A) -> Result<Step, A::Error> {
        const PAIR: &str = "a time and a rate such as `[\"500ms\", \"12Mbps\"]`";
        let not_a_pair = || A::Error::invalid_value(Unexpected::Seq, &PAIR);
        let time = access.next_element()?.ok_or_else(not_a_pair)?;
        let rate = access.next_element()?.ok_or_else(not_a_pair)?;
        match access.next_element::<serde::de::IgnoredAny>()? {
            None => Ok(Step(time, rate)),
            Some(_) => Err(not_a_pair()),
        }
    }
}
