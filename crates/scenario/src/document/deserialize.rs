//! A document's values as a serde deserializer. It differs from others in what its errors say: what would be
//! valid, in the words of the field (the `expecting` of its type), and never what Rust calls the type.

use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::{Key, Node, Number, Value};
use super::refusal::{Reason, Refusal};

/// The key that says which variant of an enum a table is.
const KIND: &str = "kind";

fn expected<'de>(visitor: &impl Visitor<'de>) -> String {
    (visitor as &dyn Expected).to_string()
}

impl Node {
    fn whole<T: TryFrom<i128>>(&self, most: impl Display) -> Result<T, Refusal> {
        let number = match &self.value {
            Value::Number(number) => number.whole.and_then(|whole| T::try_from(whole).ok()),
            _ => None,
        };
        number.ok_or_else(|| Refusal::malformed(format!("a whole number from 0 to {most}")))
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Number(Number { whole: Some(whole), .. }) => visitor.visit_i128(*whole),
            Value::Number(Number { float, .. }) => visitor.visit_f64(float.unwrap_or(f64::NAN)),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(list) => visitor.visit_seq(Elements(list.iter().enumerate())),
            Value::Table(entries) => visitor.visit_map(Entries::of(entries, None)),
            Value::Date(_) => Err(Refusal::invalid_type(Unexpected::Other("date"), &visitor)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value {
            Value::Boolean(value) => visitor.visit_bool(value),
            _ => Err(Refusal::malformed("`true` or `false`")),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_u32(self.whole(u32::MAX)?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_u64(self.whole(u64::MAX)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.value {
            Value::Number(Number { float: Some(number), .. }) if number.is_finite() => {
                visitor.visit_f64(*number)
            }
            _ => Err(Refusal::malformed("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            _ => Err(Refusal::malformed(format!("{}, in quotes", expected(&visitor)))),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_str(visitor)
    }

    /// What is to stand in a text: a string, or a number or a truth value as it is spelled.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Number(number) => visitor.visit_borrowed_str(&number.spelled),
            Value::Boolean(value) => visitor.visit_str(if *value { "true" } else { "false" }),
            _ => Err(Refusal::malformed(expected(&visitor))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match &self.value {
            Value::Table(entries) => Entries::of(entries, None).visit(fields, visitor),
            _ => Err(Refusal::malformed(expected(&visitor))),
        }
    }

    /// A variant is the value of the table's key `kind`, and what it holds the rest of the table; or it
    /// stands alone, as a string.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        if let Value::Text(text) = &self.value {
            return visitor.visit_borrowed_str(text);
        }
        match (&self.value, self.entry(KIND)) {
            (Value::Table(entries), Some((_, Node { value: Value::Text(kind), .. })))
                if variants.contains(&kind.as_str()) =>
            {
                visitor.visit_enum(Tagged { kind, entries })
            }
            _ => Err(Refusal::malformed(expected(&visitor))),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf unit unit_struct seq tuple tuple_struct map ignored_any
    }
}

/// The elements of a list.
struct Elements<'de>(std::iter::Enumerate<std::slice::Iter<'de, Node>>);

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Refusal;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refusal> {
        let Some((index, node)) = self.0.next() else { return Ok(None) };
        seed.deserialize(node).map(Some).map_err(|refusal| refusal.at(index))
    }
}

/// The entries of a table, but for the one that says which variant it is.
struct Entries<'de> {
    all: &'de [(Key, Node)],
    rest: std::slice::Iter<'de, (Key, Node)>,
    tag: Option<&'static str>,
    value: Option<(&'de Key, &'de Node)>,
}

impl<'de> Entries<'de> {
    fn of(all: &'de [(Key, Node)], tag: Option<&'static str>) -> Self {
        Entries { all, rest: all.iter(), tag, value: None }
    }

    /// Lets `visitor` have the entries, if they are all among `fields`. The first of those that are not is
    /// the one to name, before anything else that may be wrong.
    fn visit<V: Visitor<'de>>(self, fields: &[&str], visitor: V) -> Result<V::Value, Refusal> {
        let valid = || self.tag.iter().chain(fields);
        match self.all.iter().find(|(key, _)| valid().all(|known| *known != key.name)) {
            Some((key, _)) => {
                let valid = valid().copied().collect::<Vec<_>>().join(", ");
                Err(Refusal::new(Reason::UnknownKey(valid)).under(&key.name))
            }
            None => visitor.visit_map(self),
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        let tag = self.tag;
        let Some((key, node)) = self.rest.find(|(key, _)| Some(key.name.as_str()) != tag) else {
            return Ok(None);
        };
        self.value = Some((key, node));
        let name: StrDeserializer<'_, Refusal> = key.name.as_str().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|refusal| refusal.under(&key.name))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refusal> {
        let (key, node) = self.value.take().expect("serde asks for a value after its key");
        seed.deserialize(node).map_err(|refusal| refusal.under(&key.name))
    }
}

/// A table whose key `kind` names a variant.
struct Tagged<'de> {
    kind: &'de str,
    entries: &'de [(Key, Node)],
}

impl<'de> EnumAccess<'de> for Tagged<'de> {
    type Error = Refusal;
    type Variant = Rest<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Rest<'de>), Refusal> {
        let kind: StrDeserializer<'_, Refusal> = self.kind.into_deserializer();
        Ok((seed.deserialize(kind)?, Rest(self.entries)))
    }
}

/// The rest of such a table.
struct Rest<'de>(&'de [(Key, Node)]);

impl<'de> VariantAccess<'de> for Rest<'de> {
    type Error = Refusal;

    fn unit_variant(self) -> Result<(), Refusal> {
        self.struct_variant(&[], serde::de::IgnoredAny).map(|_| ())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refusal> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        Entries::of(self.0, Some(KIND)).visit(fields, visitor)
    }
}

impl<'de> Deserializer<'de> for Rest<'de> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_map(Entries::of(self.0, Some(KIND)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        Entries::of(self.0, Some(KIND)).visit(fields, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The keys of a table that is read as a `T`: those of its fields.
pub(crate) fn keys_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // It always fails: there is nothing to read.
    let _ = T::deserialize(Keys(&mut keys));
    keys
}

/// Notes the fields that a type asks for, and gives none.
struct Keys<'k>(&'k mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Keys<'_> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        Err(Refusal::malformed(expected(&visitor)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
