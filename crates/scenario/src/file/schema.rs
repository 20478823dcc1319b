//! What the values of scenario files are in a JSON Schema.

use std::borrow::Cow;

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::values::{List, PhaseEntry, Quantity, Step, Text, Textual};
use crate::traffic::Offer;

/// A quantity as it is spelled.
pub(crate) trait Unit {
    /// What it is.
    const WHAT: &'static str;
    /// What its strings look like, as a regular expression.
    const PATTERN: &'static str;
    /// A string that is one.
    const EXAMPLE: &'static str;
}

impl Unit for Duration {
    const WHAT: &'static str = "time";
    const PATTERN: &'static str = r"^\s*[0-9.]+\s*(ns|us|µs|ms|s|min|h)\s*$";
    const EXAMPLE: &'static str = "100ms";
}

impl Unit for Rate {
    const WHAT: &'static str = "rate";
    const PATTERN: &'static str = r"^\s*[0-9.]+\s*[kMG]?(bps|bit/s)\s*$";
    const EXAMPLE: &'static str = "12Mbps";
}

impl Unit for Bytes {
    const WHAT: &'static str = "size";
    const PATTERN: &'static str = r"^\s*[0-9.]+\s*(B|[kKMG]B|[KMG]iB)\s*$";
    const EXAMPLE: &'static str = "1500B";
}

impl Unit for Limit {
    const WHAT: &'static str = "buffer";
    const PATTERN: &'static str = r"^\s*([0-9]+\s*pkt|[0-9.]+\s*(B|[kKMG]B|[KMG]iB))\s*$";
    const EXAMPLE: &'static str = "250pkt";
}

impl<T: Unit> JsonSchema for Quantity<T> {
    fn schema_name() -> Cow<'static, str> {
        T::WHAT.into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("brakelight::{}", T::WHAT).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": format!("A {} with its unit.", T::WHAT),
            "pattern": T::PATTERN,
            "examples": [T::EXAMPLE],
        })
    }
}

impl<T: Textual> JsonSchema for Text<T> {
    fn inline_schema() -> bool {
        T::DEFINITION.is_none()
    }

    fn schema_name() -> Cow<'static, str> {
        T::DEFINITION.unwrap_or("string").into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("brakelight::{}", Self::schema_name()).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("list_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": generator.subschema_for::<T>()})
    }
}

impl JsonSchema for PhaseEntry {
    fn schema_name() -> Cow<'static, str> {
        "phase".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (time, offer) =
            (generator.subschema_for::<Quantity<Duration>>(), generator.subschema_for::<Text<Offer>>());
        json_schema!({
            "type": "array",
            "description": "How long, and what it offers: a rate, `backlogged` or `idle`.",
            "prefixItems": [time, offer],
            "items": false,
            "minItems": 2,
        })
    }
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (time, rate) =
            (generator.subschema_for::<Quantity<Duration>>(), generator.subschema_for::<Quantity<Rate>>());
        json_schema!({
            "type": "array",
            "description": "How long, and how fast.",
            "prefixItems": [time, rate],
            "items": false,
            "minItems": 2,
        })
    }
}
