//! Tables as spreadsheets of other languages write them: semicolons, tabs or blanks between the values, and a
//! decimal comma.
//!
//! ```text
//! time_s;download_mbps        time_s,download_mbps
//! 0,0;20,5               ->   0.0,20.5
//! 1,0;1.020,5                 1.0,1020.5
//! ```
//!
//! What separates values is told by the first row. A table is rewritten line by line, so that an error names
//! the line of the file.

use std::borrow::Cow;

use super::{ConvertError, csv};

const MARK: &str = "expected one decimal mark in all of the file: other values have a comma, and this point may group digits";

/// Returns the table with commas between its values and decimal points.
pub(super) fn with_commas(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ConvertError> {
    let mut rows = csv::rows(bytes);
    let (Some(first), second) = (rows.next(), rows.next()) else { return Ok(Cow::Borrowed(bytes)) };
    let Some(separator) = separator(&first, second.as_deref()) else { return Ok(Cow::Borrowed(bytes)) };
    let text = String::from_utf8_lossy(bytes);
    let has_commas = text
        .lines()
        .filter(|row| !is_comment(row))
        .any(|row| split(row.trim_matches([' ', '\r']), separator).any(is_decimal_comma));
    let mut made = String::with_capacity(bytes.len());
    for (line, row) in (1..).zip(text.lines()) {
        if is_comment(row) {
            made.push_str(row);
        } else {
            for (index, value) in split(row.trim_matches([' ', '\r']), separator).enumerate() {
                if index > 0 {
                    made.push(',');
                }
                if has_commas && groups_digits(value) {
                    return Err(ConvertError::line(line, "the value", value, MARK));
                }
                made.push_str(&plain(value));
            }
        }
        made.push('\n');
    }
    Ok(Cow::Owned(made.into_bytes()))
}

/// Returns `true` if the first row is of a table that [`with_commas`] rewrites.
pub(super) fn is_foreign(first: &str, second: Option<&str>) -> bool {
    separator(first, second).is_some()
}

/// What separates the values, unless it is the comma. A row of names has none that counts but one; in a row
/// of numbers a comma beside a semicolon or a tab is a decimal one.
fn separator(first: &str, second: Option<&str>) -> Option<char> {
    let names = first.trim_start_matches('"').starts_with(|c: char| c.is_ascii_alphabetic());
    let count = |separator| split(first, separator).count();
    let most = [';', '\t'].into_iter().max_by_key(|separator| count(*separator))?;
    if count(most) > 1 && (!names || count(most) >= count(',')) {
        return Some(most);
    }
    let words = |row: &str| row.split_ascii_whitespace().count();
    let numbers = |row: &str| row.split_ascii_whitespace().all(is_decimal_comma);
    if words(first) == 2 && numbers(first) {
        return Some(' ');
    }
    let blanks = names && !first.contains(',') && words(first) > 1;
    let values = |row: &str| {
        words(row) == words(first)
            && row.split_ascii_whitespace().all(|word| word.parse::<f64>().is_ok() || is_decimal_comma(word))
    };
    second.filter(|row| blanks && values(row)).map(|_| ' ')
}

/// The values of a row; separators within quotes do not count.
fn split(row: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut blank = false;
    row.split(move |c: char| {
        quoted ^= c == '"';
        // Blanks that follow one another are one separator.
        let again = separator == ' ' && blank;
        blank = c.is_ascii_whitespace();
        let ends = if separator == ' ' { blank && !again } else { c == separator };
        ends && !quoted
    })
    .map(|value| value.trim().trim_matches('"').trim())
}

/// A value as others read it.
fn plain(value: &str) -> Cow<'_, str> {
    if is_decimal_comma(value) {
        return Cow::Owned(value.replace('.', "").replace(',', "."));
    }
    if value.contains([',', '"']) { Cow::Owned(value.replace([',', '"'], " ")) } else { Cow::Borrowed(value) }
}

/// `20,5`, `-0,1`, `1.020,5`: a number with a decimal comma, and points between groups of three digits.
fn is_decimal_comma(value: &str) -> bool {
    let value = value.strip_prefix('-').unwrap_or(value);
    let Some((whole, decimals)) = value.split_once(',') else { return false };
    is_digits(decimals) && (is_digits(whole) || groups_digits(whole))
}

/// `1.020`: may be a thousand and more where others have decimal commas.
fn groups_digits(value: &str) -> bool {
    let value = value.strip_prefix('-').unwrap_or(value);
    let mut groups = value.split('.');
    let first = groups.next().unwrap_or_default();
    let mut rest = groups.peekable();
    (1..=3).contains(&first.len())
        && is_digits(first)
        && rest.peek().is_some()
        && rest.all(|group| group.len() == 3 && is_digits(group))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_comment(row: &str) -> bool {
    let row = row.trim();
    row.is_empty() || row.starts_with('#')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rewritten(text: &str) -> String {
        let made = with_commas(text.as_bytes()).unwrap();
        String::from_utf8(made.into_owned()).unwrap()
    }

    #[test]
    fn values_are_written_with_points_and_commas_between() {
        assert_eq!(rewritten("time_s;mbps\n0,0;20,5\n"), "time_s,mbps\n0.0,20.5\n");
        assert_eq!(rewritten("0,5;1.020,5\n1,5;1,0"), "0.5,1020.5\n1.5,1.0\n");
        assert_eq!(rewritten("time_s\tmbps\r\n0\t20.5\r\n"), "time_s,mbps\n0,20.5\n");
        assert_eq!(rewritten("0,2 30,75\n0,4   30,5\n"), "0.2,30.75\n0.4,30.5\n");
        assert_eq!(rewritten("time_s mbps\n0 20.5\n"), "time_s,mbps\n0,20.5\n");
        assert_eq!(rewritten("# a; b\nt;\"rate, Mbit/s\"\n0;1\n"), "# a; b\nt,rate  Mbit/s\n0,1\n");
    }

    #[test]
    fn tables_with_commas_stay_as_they_are() {
        for text in [
            "time,mbps\n0,20.5\n",
            "time,\"rate; of all\",mbps\n",
            "10, 12\n",
            "start_s,mbps,end_s\n0,1,2\n",
            "",
            "1\n2\n",
        ] {
            assert!(matches!(with_commas(text.as_bytes()), Ok(Cow::Borrowed(_))), "{text:?}");
        }
    }

    #[test]
    fn a_point_that_may_group_digits_beside_decimal_commas_is_refused() {
        let refusal = with_commas(b"t;mbps\n0;20,5\n1;1.020\n").unwrap_err().to_string();
        assert!(refusal.starts_with("line 3: the value is `1.020`: expected one decimal mark"), "{refusal}");
        // Without a decimal comma it is a point.
        assert_eq!(rewritten("t;mbps\n0;1.020\n"), "t,mbps\n0,1.020\n");
    }

    proptest! {
        /// Whatever separates values and decimals, the table is the same.
        #[test]
        fn separators_and_decimal_commas_change_nothing(
            rows in prop::collection::vec((0_u32..9_999, 0_u32..9_999), 1..30),
            separator in prop::sample::select(vec![";", "\t"]),
        ) {
            let table = |between: &str, mark: &str| {
                let mut text = format!("time_s{between}mbps\n");
                for (index, (whole, part)) in rows.iter().enumerate() {
                    text += &format!("{index}{mark}0{between}{whole}{mark}{part:04}\n");
                }
                text
            };
            let plain = table(",", ".");
            prop_assert_eq!(&rewritten(&table(separator, ",")), &plain);
            prop_assert_eq!(&rewritten(&table(separator, ".")), &plain);
        }

        #[test]
        fn no_text_brings_it_down(text in "[0-9a-z;,.\\t \"#\\n-]{0,60}") {
            let lines = text.lines().count();
            if let Ok(made) = with_commas(text.as_bytes()) {
                prop_assert_eq!(String::from_utf8_lossy(&made).lines().count(), lines);
            }
        }
    }
}
