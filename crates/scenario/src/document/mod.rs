//! Documents as trees: what a TOML file, a JSON text or a Python dict says, each value with its place in the
//! text if there is one.
//!
//! Every document is read in the same way, so the messages are the same whatever it was written in: a
//! [`Node`] is a serde deserializer whose errors ([`Refusal`]) know the path to the value.
//! [`Document::error`] adds file, line and value.

mod deserialize;
mod node;
mod refusal;

use std::ops::Range;

use serde::Deserialize;
use toml::de::DeTable;

pub(crate) use deserialize::keys_of;
pub(crate) use node::{Node, Value};
pub(crate) use refusal::{Reason, Refusal};

use crate::problem::{InputError, Problem};
use refusal::Step;

/// The longest value that a message repeats in full.
const SHOWN: usize = 60;

/// A document, and the file it came from.
pub(crate) struct Document<'a> {
    /// The file's name and its text; none for what another program handed over.
    source: Option<(&'a str, &'a str)>,
    root: Node,
}

impl<'a> Document<'a> {
    /// Reads `text` as TOML; `file` is for messages.
    pub(crate) fn parse(file: &'a str, text: &'a str) -> Result<Self, InputError> {
        match DeTable::parse(text) {
            Ok(table) => Ok(Document { source: Some((file, text)), root: Node::from_toml(text, &table) }),
            Err(error) => {
                let message = error.message().lines().collect::<Vec<_>>().join(", ");
                Err(InputError {
                    file: Some(file.to_string()),
                    line: Some(line(text, error.span().unwrap_or(0..0).start)),
                    owner: String::new(),
                    problem: Box::new(Problem::Syntax { message }),
                })
            }
        }
    }

    /// What another program handed over.
    pub(crate) fn of(root: Node) -> Self {
        Document { source: None, root }
    }

    /// The document as a `T`.
    pub(crate) fn read<T: Deserialize<'a>>(&'a self) -> Result<T, Refusal> {
        T::deserialize(&self.root)
    }

    /// The message for `refusal`: with file and line where there are any, the field, its value, and what
    /// would be valid.
    pub(crate) fn error(&self, refusal: Refusal) -> InputError {
        let found = self.find(&refusal);
        let key = found.key;
        let problem = match *refusal.reason {
            Reason::Malformed(expected) => {
                Problem::Malformed { key, value: self.shown(found.node), expected }
            }
            Reason::UnknownKey(valid) => Problem::UnknownKey { key: shorten(&key), valid },
            Reason::Missing(expected) => Problem::MissingKey { key, expected },
            Reason::Contradiction(reason) => Problem::Contradiction { key, reason },
            Reason::Algorithm(error) => Problem::Algorithm { key, error },
            Reason::Other(problem) => problem,
        };
        InputError {
            file: self.source.map(|(file, _)| file.to_string()),
            line: self.source.map(|(_, text)| line(text, found.span.start)),
            owner: refusal.owner.unwrap_or(found.owner),
            problem: Box::new(problem),
        }
    }

    fn find(&self, refusal: &Refusal) -> Found<'_> {
        let mut found = Found {
            key: String::new(),
            owner: String::new(),
            node: &self.root,
            span: self.root.span.clone(),
        };
        // The table or list that the next key is looked up in, by its own key and its place in a list.
        let mut outer: Option<(&str, Option<usize>)> = None;
        for step in refusal.path() {
            match step {
                Step::Key(key) => {
                    let name = outer.and_then(|(key, index)| called(key, index, found.node));
                    if let Some(name) = name {
                        found.owner.push_str(if found.owner.is_empty() { "" } else { ", " });
                        found.owner.push_str(&name);
                    }
                    outer = Some((key, None));
                    found.key.clone_from(key);
                    let Some((key, node)) = found.node.entry(key) else { continue };
                    (found.node, found.span) = (node, node.span.clone());
                    if matches!(*refusal.reason, Reason::UnknownKey(_)) {
                        found.span = key.span.clone();
                    }
                }
                Step::Index(index) => {
                    outer = outer.map(|(key, _)| (key, Some(*index)));
                    let Some(node) = found.node.elements().and_then(|list| list.get(*index)) else {
                        continue;
                    };
                    (found.node, found.span) = (node, node.span.clone());
                }
            }
        }
        found
    }

    /// The value as the document spells it, without quotes, shortened for a message.
    fn shown(&self, node: &Node) -> String {
        match (&node.value, self.source) {
            (Value::Text(text), _) => shorten(text),
            (_, Some((_, text))) => shorten(text.get(node.span.clone()).unwrap_or_default()),
            (_, None) => shorten(&node.to_string()),
        }
    }
}

/// What a path leads to.
struct Found<'d> {
    /// The last key of the path.
    key: String,
    /// What the key belongs to, in words.
    owner: String,
    /// The value, or the last table on the way to it that is there.
    node: &'d Node,
    span: Range<usize>,
}

/// What messages call the table under `key`, or the one at `index` of the list there; none where they do not
/// name it.
fn called(key: &str, index: Option<usize>, table: &Node) -> Option<String> {
    match (key, index) {
        ("link" | "flow", Some(index)) => Some(match table.entry("name") {
            Some((_, Node { value: Value::Text(name), .. })) => format!("{key} `{name}`"),
            _ => format!("{key} {}", index + 1),
        }),
        // Their keys are names that the file chose.
        ("sweep" | "case" | "schemes", _) => None,
        _ => Some(key.to_string()),
    }
}

/// The line of a byte offset, from 1.
fn line(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
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
