//! Rows for other programs, by RFC 4180: a heading, commas, quotes where they are needed.

use brakelight_scenario::outcome::Run;

use crate::frame;

/// Returns a document with a heading.
pub fn document<R: AsRef<[String]>>(heading: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut text = String::new();
    line(&mut text, heading.iter().copied());
    text + &lines(rows)
}

/// Returns the rows without a heading.
pub fn lines<R: AsRef<[String]>>(rows: impl IntoIterator<Item = R>) -> String {
    let mut text = String::new();
    for row in rows {
        line(&mut text, row.as_ref().iter().map(String::as_str));
    }
    text
}

fn line<'a>(text: &mut String, fields: impl Iterator<Item = &'a str>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        // rfc4180 2.6, 2.7
        if field.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&field.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(field);
        }
    }
    text.push('\n');
}

/// Returns a number, or nothing.
pub fn field(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

/// Returns the runs of `compare` and `run`: the JSON rows without their links and flows, with their setups
/// and what applications saw.
pub fn every_run<'a>(runs: impl IntoIterator<Item = &'a Run>) -> String {
    let frame = frame::every_run(runs);
    frame.csv_heading() + &frame.csv_rows()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_what_needs_it() {
        let rows =
            [["plain".to_string(), "a,b".to_string()], ["say \"x\"".to_string(), "two\nlines".to_string()]];
        assert_eq!(
            document(&["one", "two"], rows),
            "one,two\nplain,\"a,b\"\n\"say \"\"x\"\"\",\"two\nlines\"\n"
        );
    }

    #[test]
    fn every_row_is_as_long_as_the_heading() {
        let frame = frame::runs(&[Run::default()]);
        let text = frame.csv_heading() + &frame.csv_rows();
        let lengths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(lengths, [45, 45]);
    }
}
