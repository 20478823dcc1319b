//! Values of a document.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value, and the bytes of the text that it takes; none where the document is no text.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Range<usize>,
}

/// What a document can say.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// As if the key were not there.
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// In the order of the text.
    Table(Vec<(Key, Node)>),
    /// A date or a time, as it is spelled. No key takes one.
    Date(String),
}

/// The key of a table's entry.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
}

/// A number, as it is spelled and as it is read.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) spelled: String,
    /// None where it has a point or an exponent, or is too large.
    pub(crate) whole: Option<i128>,
    /// None where it is too large.
    pub(crate) float: Option<f64>,
}

impl Number {
    fn whole(number: i128) -> Self {
        Number { spelled: number.to_string(), whole: Some(number), float: Some(number as f64) }
    }
}

impl Node {
    /// The tree of a TOML document.
    pub(crate) fn from_toml(text: &str, table: &Spanned<DeTable<'_>>) -> Self {
        Node { value: Value::Table(entries(text, table.get_ref())), span: table.span() }
    }

    fn from_toml_value(text: &str, given: &Spanned<DeValue<'_>>) -> Self {
        let span = given.span();
        let spelled = || text.get(span.clone()).unwrap_or_default().to_string();
        let value = match given.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => {
                let whole = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
                Value::Number(Number { spelled: spelled(), whole, float: whole.map(|whole| whole as f64) })
            }
            DeValue::Float(float) => {
                let float = float.as_str().parse().ok();
                Value::Number(Number { spelled: spelled(), whole: None, float })
            }
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Datetime(_) => Value::Date(spelled()),
            DeValue::Array(list) => {
                Value::List(list.iter().map(|value| Node::from_toml_value(text, value)).collect())
            }
            DeValue::Table(table) => Value::Table(entries(text, table)),
        };
        Node { value, span }
    }

    /// The entry of `key`, if this is a table that has one.
    pub(crate) fn entry(&self, key: &str) -> Option<(&Key, &Node)> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|(other, _)| other.name == key).map(|(key, node)| (key, node))
    }

    /// The elements, if this is a list.
    pub(crate) fn elements(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }
}

/// The parser sorts a table by its keys; this is the order of the text again.
fn entries(text: &str, table: &DeTable<'_>) -> Vec<(Key, Node)> {
    let entry = |(key, value): (&Spanned<_>, &Spanned<_>)| {
        let name: &std::borrow::Cow<'_, str> = key.get_ref();
        (Key { name: name.to_string(), span: key.span() }, Node::from_toml_value(text, value))
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(key, _)| key.span.start);
    entries
}

/// For messages about a value that has no text.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Null => f.write_str("null"),
            Value::Boolean(value) => value.fmt(f),
            Value::Number(number) => f.write_str(&number.spelled),
            Value::Text(text) | Value::Date(text) => f.write_str(text),
            Value::List(list) => {
                let list: Vec<String> = list.iter().map(Node::to_string).collect();
                write!(f, "[{}]", list.join(", "))
            }
            Value::Table(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(key, node)| format!("{}: {node}", key.name)).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}

/// The tree of whatever a deserializer holds.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer.deserialize_any(AnyValue)?;
        Ok(Node { value, span: 0..0 })
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(Number::whole(number.into())))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Value, E> {
        Ok(Value::Number(Number::whole(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(Number::whole(number.into())))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(Number { spelled: number.to_string(), whole: None, float: Some(number) }))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = access.next_element()? {
            list.push(node);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        while let Some((name, node)) = access.next_entry::<String, Node>()? {
            if entries.iter().any(|(key, _)| key.name == name) {
                return Err(A::Error::custom(format_args!("`{name}` is given twice")));
            }
            entries.push((Key { name, span: 0..0 }, node));
        }
        Ok(Value::Table(entries))
    }
}
