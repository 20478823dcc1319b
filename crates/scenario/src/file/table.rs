//! TOML tables that know their lines: unknown keys are refused when a table is opened, and every complaint names file,
//! line, field, value and what would be valid.

use std::ops::Range;
use std::str::FromStr;

use brakelight_core::registry::BuildError;
use brakelight_core::units::ParseError;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::problem::{InputError, Problem};

/// The longest value that a message repeats in full.
const SHOWN: usize = 60;

/// A file's name and text.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

/// A table whose keys are all known.
pub(crate) struct Table<'a> {
    source: &'a Source<'a>,
    pub(crate) owner: String,
    keys: &'static [&'static str],
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

/// A value and the key it stands under.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    source: &'a Source<'a>,
    owner: &'a str,
    key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

/// A type of whole numbers.
pub(crate) trait Whole: TryFrom<i128> {
    /// The largest.
    const MOST: u64;
}

impl Whole for u32 {
    const MOST: u64 = u32::MAX as u64;
}

impl Whole for u64 {
    const MOST: u64 = u64::MAX;
}

impl<'a> Source<'a> {
    /// Reads the text as TOML.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'a>>, InputError> {
        DeTable::parse(self.text).map_err(|error| {
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            self.error(error.span().unwrap_or(0..0), "", Problem::Syntax { message })
        })
    }

    /// The line of a byte offset, from 1.
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    pub(crate) fn error(&self, span: Range<usize>, owner: &str, problem: Problem) -> InputError {
        InputError {
            file: Some(self.file.to_string()),
            line: Some(self.line(span.start)),
            owner: owner.to_string(),
            problem: Box::new(problem),
        }
    }
}

impl<'a> Table<'a> {
    /// Opens `table`, which may hold `keys` and no others.
    pub(crate) fn open(
        source: &'a Source<'a>,
        owner: String,
        keys: &'static [&'static str],
        table: &'a DeTable<'a>,
        span: Range<usize>,
    ) -> Result<Self, InputError> {
        // The table is sorted by key; the first unknown one in the text is the one to name.
        let unknown = table.iter().filter(|(key, _)| !keys.contains(&key.get_ref().as_ref()));
        if let Some((key, _)) = unknown.min_by_key(|(key, _)| key.span().start) {
            let problem = Problem::UnknownKey { key: shorten(key.get_ref()), valid: keys.join(", ") };
            return Err(source.error(key.span(), &owner, problem));
        }
        Ok(Table { source, owner, keys, table, span })
    }

    /// The value of `key`, if there is one.
    pub(crate) fn get(&'a self, key: &'static str) -> Option<Field<'a>> {
        debug_assert!(self.keys.contains(&key), "`{key}` is read but not among the valid keys");
        let value = self.table.get(key)?;
        Some(Field { source: self.source, owner: &self.owner, key, value })
    }

    /// The value of `key`, which must be there.
    pub(crate) fn require(&'a self, key: &'static str, expected: &str) -> Result<Field<'a>, InputError> {
        self.get(key).ok_or_else(|| self.missing(key, expected))
    }

    /// The complaint that `key` is not there.
    pub(crate) fn missing(&self, key: &str, expected: &str) -> InputError {
        self.error(Problem::MissingKey { key: key.to_string(), expected: expected.to_string() })
    }

    /// The quantity under `key`, or `default`.
    pub(crate) fn quantity<T: FromStr<Err = ParseError>>(
        &'a self,
        key: &'static str,
        default: T,
    ) -> Result<T, InputError> {
        self.get(key).map_or(Ok(default), |field| field.quantity())
    }

    /// The whole number under `key`, or `default`.
    pub(crate) fn integer<T: Whole>(&'a self, key: &'static str, default: T) -> Result<T, InputError> {
        self.get(key).map_or(Ok(default), |field| field.integer())
    }

    /// The truth value under `key`, or `default`.
    pub(crate) fn boolean(&'a self, key: &'static str, default: bool) -> Result<bool, InputError> {
        self.get(key).map_or(Ok(default), |field| field.boolean())
    }

    /// A complaint about the table as a whole.
    pub(crate) fn error(&self, problem: Problem) -> InputError {
        self.source.error(self.span.clone(), &self.owner, problem)
    }

    /// A complaint about a part of the table that `place` describes.
    pub(crate) fn located(&self, problem: Problem, place: &str) -> InputError {
        self.source.error(self.span.clone(), place, problem)
    }

    /// Where `key` stands, or the table if it does not.
    pub(crate) fn span_of(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or(self.span.clone(), Spanned::span)
    }
}

impl<'a> Field<'a> {
    /// The value as the file spells it, without quotes, shortened for a message.
    fn shown(&self) -> String {
        match self.value.get_ref().as_str() {
            Some(text) => shorten(text),
            None => shorten(self.source.text.get(self.value.span()).unwrap_or_default()),
        }
    }

    pub(crate) fn error(&self, problem: Problem) -> InputError {
        self.source.error(self.value.span(), self.owner, problem)
    }

    /// The complaint that the value is not `expected`.
    pub(crate) fn malformed(&self, expected: &str) -> InputError {
        let (key, value) = (self.key.to_string(), self.shown());
        self.error(Problem::Malformed { key, value, expected: expected.to_string() })
    }

    /// The complaint that the value cannot stand beside another one.
    pub(crate) fn contradiction(&self, reason: String) -> InputError {
        self.error(Problem::Contradiction { key: self.key.to_string(), reason })
    }

    /// The complaint that an algorithm could not be built.
    pub(crate) fn algorithm(&self, error: BuildError) -> InputError {
        self.error(Problem::Algorithm { key: self.key.to_string(), error })
    }

    /// The text of a string.
    pub(crate) fn text(&self, expected: &str) -> Result<&'a str, InputError> {
        self.value.get_ref().as_str().ok_or_else(|| self.malformed(&format!("{expected}, in quotes")))
    }

    /// The text of a string, owned.
    pub(crate) fn string(&self, expected: &str) -> Result<String, InputError> {
        self.text(expected).map(str::to_string)
    }

    /// A quantity with its unit, as a string.
    pub(crate) fn quantity<T: FromStr<Err = ParseError>>(&self) -> Result<T, InputError> {
        // A bare number has no unit: parsing its spelling gives the complaint with what would be valid.
        let raw = self.source.text.get(self.value.span()).unwrap_or_default();
        let text = self.value.get_ref().as_str().unwrap_or(raw);
        text.parse().map_err(|error: ParseError| self.malformed(error.expected))
    }

    /// A whole number, zero or more.
    pub(crate) fn integer<T: Whole>(&self) -> Result<T, InputError> {
        self.whole()
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| self.malformed(&format!("a whole number from 0 to {}", T::MOST)))
    }

    fn whole(&self) -> Option<i128> {
        let integer = self.value.get_ref().as_integer()?;
        i128::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// A finite number.
    pub(crate) fn number(&self) -> Result<f64, InputError> {
        let value = self.value.get_ref();
        let float = value.as_float().and_then(|float| float.as_str().parse::<f64>().ok());
        let number = float.or_else(|| self.whole().map(|whole| whole as f64));
        number.filter(|number| number.is_finite()).ok_or_else(|| self.malformed("a number"))
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self) -> Result<bool, InputError> {
        self.value.get_ref().as_bool().ok_or_else(|| self.malformed("`true` or `false`"))
    }

    /// The elements of an array.
    pub(crate) fn array(&self, expected: &str) -> Result<Vec<Field<'a>>, InputError> {
        let array = self.value.get_ref().as_array().ok_or_else(|| self.malformed(expected))?;
        Ok(array.iter().map(|value| Field { value, ..*self }).collect())
    }

    /// The table under this key, owned by `owner`.
    pub(crate) fn table(
        &self,
        owner: String,
        keys: &'static [&'static str],
        expected: &str,
    ) -> Result<Table<'a>, InputError> {
        let table = self.value.get_ref().as_table().ok_or_else(|| self.malformed(expected))?;
        Table::open(self.source, owner, keys, table, self.value.span())
    }

    /// The keys and values of the table under this key, in the order of the file.
    pub(crate) fn pairs(&self, expected: &str) -> Result<Vec<(&'a str, Field<'a>)>, InputError> {
        let table = self.value.get_ref().as_table().ok_or_else(|| self.malformed(expected))?;
        let mut pairs: Vec<_> = table.iter().collect();
        pairs.sort_by_key(|(key, _)| key.span().start);
        let field = |(key, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
            let key: &'a str = key.get_ref();
            (key, Field { key, value, ..*self })
        };
        Ok(pairs.into_iter().map(field).collect())
    }

    /// A value that is to stand in a text: a string's text, a number as the file spells it.
    pub(crate) fn label(&self) -> Result<String, InputError> {
        let value = self.value.get_ref();
        match value.as_str() {
            Some(text) => Ok(text.to_string()),
            None if value.is_integer() || value.is_float() || value.is_bool() => Ok(self.shown()),
            None => Err(self.malformed("a text, a number or a truth value")),
        }
    }

    /// A complaint about the part of this value that `place` describes.
    pub(crate) fn located(&self, problem: Problem, place: &str) -> InputError {
        self.source.error(self.value.span(), place, problem)
    }

    /// The string under `key` of the table this field holds, if it is a table with such a string.
    pub(crate) fn peek(&self, key: &str) -> Option<&'a str> {
        self.value.get_ref().as_table()?.get(key)?.get_ref().as_str()
    }

    /// Whether the value is a string.
    pub(crate) fn is_text(&self) -> bool {
        self.value.get_ref().is_str()
    }

    /// Whether the value is a table.
    pub(crate) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// The key.
    pub(crate) fn key(&self) -> &'a str {
        self.key
    }

    /// What the field belongs to.
    pub(crate) fn owner(&self) -> &'a str {
        self.owner
    }
}

/// `text` on one line, cut where a message would become unreadable.
fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= SHOWN && line.len() == text.trim_end().len() {
        return line.to_string();
    }
    let head: String = line.chars().take(SHOWN).collect();
    head + "..."
}
