//! From characters to tokens.

use super::{ExpressionError, Fault};

/// A token and the character it begins at, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    Text(String),
    /// A metric, a dimension, a function or a keyword.
    Word(String),
    /// Punctuation, by its spelling.
    Sign(&'static str),
    End,
}

/// Longer signs before their prefixes.
const SIGNS: &[&str] =
    &["+-", "<=", ">=", "!=", "..", "<", ">", "~", "=", "+", "-", "*", "/", "%", "(", ")", "[", "]", ","];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut at = 1;
    loop {
        let blank = rest.len() - rest.trim_start().len();
        at += rest[..blank].chars().count();
        rest = &rest[blank..];
        let Some(first) = rest.chars().next() else {
            tokens.push(Token { at, kind: Kind::End });
            return Ok(tokens);
        };
        let (kind, length) = if first.is_ascii_digit() {
            number(rest, at)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = word(rest);
            (Kind::Word(rest[..length].to_string()), length)
        } else if first == '"' || first == '\'' {
            let inner = &rest[1..];
            let length = inner.find(first).ok_or_else(|| {
                let found = "no closing quote".to_string();
                ExpressionError { at, fault: Fault::Unexpected { expected: "a quoted label", found } }
            })?;
            (Kind::Text(inner[..length].to_string()), length + 2)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Kind::Sign(sign), sign.len())
        } else {
            let found = format!("`{first}`");
            let expected = "a number, a metric, a function or an operator";
            return Err(ExpressionError { at, fault: Fault::Unexpected { expected, found } });
        };
        tokens.push(Token { at, kind });
        at += rest[..length].chars().count();
        rest = &rest[length..];
    }
}

/// Digits, at most one point that a digit follows, and an exponent.
fn number(rest: &str, at: usize) -> Result<(Kind, usize), ExpressionError> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    // `1..2` is a range, not `1.` and `.2`.
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    match rest[..end].parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Kind::Number(number), end)),
        _ => {
            let found = format!("`{}`", &rest[..end.min(40)]);
            Err(ExpressionError { at, fault: Fault::Unexpected { expected: "a number in range", found } })
        }
    }
}

/// Letters, digits and underscores; points join them when one of those follows. A star stands for the rest of
/// a part when a point and a letter follow, so that `a*.5` and `a*b` stay products.
fn word(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let star = |at: usize| {
        bytes.get(at) == Some(&b'*')
            && bytes.get(at + 1) == Some(&b'.')
            && bytes.get(at + 2).is_some_and(u8::is_ascii_alphabetic)
    };
    let mut end = 0;
    while end < bytes.len() {
        let joins = bytes[end] == b'.' && end > 0 && (bytes.get(end + 1).is_some_and(part) || star(end + 1));
        if !part(&bytes[end]) && !joins && !star(end) {
            break;
        }
        end += 1;
    }
    end
}
