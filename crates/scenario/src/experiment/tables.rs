//! The tables of an experiment's file, as they are written.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, ParseError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::file::tables::tables;
use crate::file::values::{List, Listed, Text, Textual, plain_text};

plain_text! {
    /// An experiment's name in the list of experiments.
    Id: "the id of the figure or claim";
    /// A title.
    Title: "what the experiment is about";
    /// A source.
    Source: "where it comes from";
    /// Anything that readers should know.
    Note: "a text";
    /// A scheme; may hold placeholders.
    SchemeText: "a scheme";
    /// A trace's name.
    TraceText: "the name of a trace";
    /// Where traces start; may hold placeholders.
    OffsetText: "a time, or `random`";
    /// A scenario file in a string; may hold placeholders.
    ScenarioText: "the text of a scenario file";
    /// A claim's name in the list of experiments.
    ClaimId: "an id";
    /// A claim in words.
    ClaimText: "what is claimed";
    /// How a claim is checked.
    CheckText: "an expression, `builtin:NAME` or `not-checkable`";
    /// An expression.
    ExpressionText: "an expression";
    /// Why a claim cannot hold.
    ArgumentText: "an expression of numbers alone, or `builtin:NAME`";
}

tables! {
    /// A paper's figure or claim: what to run, and what must hold of the measurements.
    #[schemars(extend("required" = ["id", "title", "source", "claim"]))]
    ExperimentTable {
        /// Its name in the list of experiments.
        id: Text<Id>,
        /// What it is about.
        title: Text<Title>,
        /// Where it comes from.
        source: Text<Source>,
        /// What a reader should know of the setup.
        note: Text<Note>,
        /// Which of several rules of a scheme made the source's numbers, as far as that is known.
        rule: Text<Note>,
        /// The schemes to run, as a list, or as a table from labels to schemes.
        schemes: Schemes,
        /// The traces to run on.
        traces: List<Text<TraceText>>,
        /// How many seeds, from 1 on; a metric is their median.
        seeds: u64,
        /// As of `compare`.
        rtt: Filled<Duration>,
        /// As of `compare`.
        buffer: Filled<Limit>,
        /// As of `compare`.
        duration: Filled<Duration>,
        /// As of `compare`.
        trace_offset: Text<OffsetText>,
        /// As of `compare`.
        against: Text<SchemeText>,
        /// A scenario file in a string, in place of `compare`'s setup.
        scenario: Text<ScenarioText>,
        /// Names and values: every combination is run, and `{name}` stands for the value.
        sweep: Pairs<Labels>,
        /// Combinations one by one, each with a label under `case`.
        case: List<Pairs<Label>>,
        /// Whether all its claims are this project's own, of no paper.
        ours: bool,
        /// What must hold.
        claim: List<ClaimTable>,
    }

    /// A claim and how to check it.
    #[serde(expecting = "a [[claim]]")]
    #[schemars(extend("required" = ["claim", "check"]))]
    ClaimTable {
        /// The id it is reported under; the experiment's if left out.
        id: Text<ClaimId>,
        /// What is claimed.
        claim: Text<ClaimText>,
        /// The paper's number or shape.
        paper: Text<Note>,
        /// What a reader should know besides.
        note: Text<Note>,
        /// What must hold: an expression, `builtin:NAME` or `not-checkable`.
        check: Text<CheckText>,
        /// What to show as measured, where it is not what stands left of the comparisons.
        show: Text<ExpressionText>,
        /// Whether it is this project's own, of no paper.
        ours: bool,
        /// Whether the paper's number is that of recordings which are not ours.
        recordings: bool,
        /// An argument, apart from the runs, that the claim cannot hold: an expression of numbers alone, or
        /// `builtin:NAME`.
        refuted: Text<ArgumentText>,
    }
}

impl Listed for ClaimTable {
    const LIST: &'static str = "a list of tables, each headed [[claim]]";
}

impl Listed for Text<TraceText> {
    const LIST: &'static str = "a list of traces";
}

impl Listed for Text<SchemeText> {
    const LIST: &'static str = "a list of schemes, or a table such as `{ codel = \"cubic+codel\" }`";
}

impl Listed for Pairs<Label> {
    const LIST: &'static str = "a list of tables, each headed [[case]]";
}

impl Listed for Label {
    const LIST: &'static str = "a list of values";
}

/// A quantity, or a string with placeholders that becomes one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Filled<T> {
    pub(crate) text: String,
    #[serde(skip)]
    of: PhantomData<T>,
}

impl<'de, T: FromStr<Err = ParseError>> Deserialize<'de> for Filled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FilledVisitor(PhantomData))
    }
}

struct FilledVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = ParseError>> Visitor<'_> for FilledVisitor<T> {
    type Value = Filled<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing is no quantity.
        "".parse::<T>().map_or_else(|error| f.write_str(error.expected), |_| Ok(()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Filled<T>, E> {
        Ok(Filled { text: text.to_string(), of: PhantomData })
    }
}

/// A string, or a number or a truth value as it is spelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Label(pub(crate) String);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(LabelVisitor)
    }
}

struct LabelVisitor;

impl Visitor<'_> for LabelVisitor {
    type Value = Label;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number or a truth value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Label, E> {
        Ok(Label(text.to_string()))
    }
}

/// The values of a name: at least one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Labels(pub(crate) List<Label>);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = List::<Label>::deserialize(deserializer)?;
        match list.0.is_empty() {
            true => Err(D::Error::invalid_length(0, &"a list with at least one value")),
            false => Ok(Labels(list)),
        }
    }
}

/// A table whose keys the file chooses, in its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pairs<T>(pub(crate) Vec<(String, T)>);

/// What can be a value of such a table.
pub(crate) trait Paired {
    /// What the table is, for a message about a value that is none.
    const TABLE: &'static str;
}

impl Paired for Labels {
    const TABLE: &'static str = "a table of lists such as `eta = [0.9, 0.98]`";
}

impl Paired for Label {
    const TABLE: &'static str = "a table with a label under `case`";
}

impl Paired for Text<SchemeText> {
    const TABLE: &'static str = <Self as Listed>::LIST;
}

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de, T: Paired + Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<T>(PhantomData<T>);

impl<'de, T: Paired + Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
    type Value = Pairs<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::TABLE)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Pairs<T>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = access.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

/// Labels and schemes. Schemes of a list are their own labels.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Schemes {
    /// Without labels.
    List(List<Text<SchemeText>>),
    /// With labels.
    Table(Pairs<Text<SchemeText>>),
}

impl Schemes {
    /// Labels and spellings.
    pub(crate) fn labelled(&self) -> Vec<(String, String)> {
        match self {
            Schemes::List(list) => list.0.iter().map(|scheme| (scheme.0.show(), scheme.0.show())).collect(),
            Schemes::Table(table) => {
                table.0.iter().map(|(label, scheme)| (label.clone(), scheme.0.show())).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Schemes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SchemesVisitor)
    }
}

struct SchemesVisitor;

impl<'de> Visitor<'de> for SchemesVisitor {
    type Value = Schemes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(<Text<SchemeText> as Listed>::LIST)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Schemes, A::Error> {
        let list = serde::de::value::SeqAccessDeserializer::new(access);
        List::deserialize(list).map(Schemes::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Schemes, A::Error> {
        PairsVisitor(PhantomData).visit_map(access).map(Schemes::Table)
    }
}

impl<T> JsonSchema for Filled<T> {
    fn schema_name() -> Cow<'static, str> {
        "filled".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A quantity with its unit; may hold placeholders, such as `{rtt}`, that become one.",
        })
    }
}

impl JsonSchema for Label {
    fn schema_name() -> Cow<'static, str> {
        "label".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}

impl<T: JsonSchema> JsonSchema for Pairs<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("pairs_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<T>()})
    }
}
