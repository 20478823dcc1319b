//! Tables of rates.
//!
//! ```text
//! start_s,mbps  the header names the columns and their units
//! 0,12.5        from 0 to 0.1 s at 12.5 Mbit/s
//! 0.1,9
//! 0.2,          the end; without this line the last interval lasts as long as the one before it, or a second
//! ```
//!
//! | column | name | unit |
//! |---|---|---|
//! | 1 | `start_s`, `time`, `timestamp` and the like | `_s`, `_ms`, `_us`, `_ns`; else seconds, or dates |
//! | 2 | any | at its end: `mbps`, `rate_kbps`, `bandwidth (Mbit/s)`, `bytes/s` |
//! | 3 | any; a table need not have it | that of column 1: the end of the interval |
//!
//! A table without a header is taken to be of seconds and Mbit/s, or the unit of `--unit`, and a note says
//! so. Times increase, are rounded to milliseconds and may start anywhere, as Unix times do: the first
//! becomes 0.
//!
//! Read line by line, not by the crate `csv`: a row is two or three values, and an error names the line of
//! the file, where the crate's position of a row is that of the comments before it.

use std::fmt::Write;

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::trace::Trace;

use super::{ConvertError, ConvertOptions, Converted, Format, RateUnit, idle, units};

const TIME: &str = "expected seconds, from -1e10 to 1e10, or a date such as `2024-05-01T12:00:00.5Z`, more than on the \
                    line before by at least a millisecond; a header `time_ms` says milliseconds";
const RATE: &str =
    "expected a rate from 0 to 1e12 bit/s, in the unit that the header names (without a header: Mbit/s)";
const ROW: &str = "expected two columns, `start_s,mbps`, or three, `start_s,mbps,end_s`";
const END: &str = "expected an end after the start of the interval by at least a millisecond";
const NEXT: &str = "expected the end of the interval before: the rate between the two is not known";
const LAST: &str = "expected nothing after the line that ends the last interval";

/// What the numbers of a table mean.
#[derive(Clone, Copy)]
struct Units {
    /// Seconds in one of the unit of times.
    time: f64,
    /// bit/s in one of the unit of rates.
    rate: f64,
}

/// A row: times in milliseconds.
struct Row {
    start: i64,
    /// `None` in the row that ends the interval before it.
    rate: Option<Rate>,
    end: Option<i64>,
}

/// What is wrong in a line: the column, its text, what would be valid.
type Fault<'a> = (&'static str, &'a str, &'static str);

pub(super) fn from_csv(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let mut notes = Vec::new();
    let mut units = None;
    let mut rows: Vec<Row> = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let refuse = |(field, value, expected): Fault<'_>| ConvertError::line(line, field, value, expected);
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let mut values = row.split(',').map(|value| value.trim().trim_matches('"').trim());
        let (first, second, third) = (values.next().unwrap_or_default(), values.next(), values.next());
        let (Some(second), None) = (second, values.next()) else {
            return Err(refuse(("the row", row, ROW)));
        };
        let is_name = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        if units.is_none() && is_name(first) && is_name(second) {
            units = Some(header(first, second, options).map_err(refuse)?);
            continue;
        }
        let units = *units.get_or_insert_with(|| {
            let unit = options.unit.unwrap_or(RateUnit::MBIT);
            let said = if options.unit.is_some() { "" } else { " and Mbit/s" };
            notes.push(format!("the table has no header: it was taken to be of seconds{said}"));
            Units { time: 1.0, rate: unit.bps(1.0) }
        });
        let read = read(units, (first, second, third), row, rows.last()).map_err(refuse)?;
        rows.push(read);
    }
    let mut stretches = stretches(&rows).ok_or(ConvertError::Empty("row of `start_s,mbps`"))?;
    let mut warnings = Vec::new();
    idle::zeros(&mut stretches, options, &mut notes, &mut warnings);
    Converted::of_rates(&stretches, Format::Csv, options, notes, warnings)
}

/// The first line that is neither blank nor a comment.
pub(super) fn first_row(bytes: &[u8]) -> Option<String> {
    rows(bytes).next()
}

/// The lines that are neither blank nor a comment.
pub(super) fn rows(bytes: &[u8]) -> impl Iterator<Item = String> {
    let rows = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with(b"#"));
    rows.map(|row| String::from_utf8_lossy(row).into_owned())
}

/// The units that the header's first two names tell.
fn header<'a>(time: &'a str, rate: &'a str, options: &ConvertOptions) -> Result<Units, Fault<'a>> {
    let unit = options.unit.or_else(|| RateUnit::of_name(rate));
    Ok(Units {
        time: units::time(time).ok_or(("the header of the times", time, units::TIMES))?,
        rate: unit.ok_or(("the header of the rates", rate, units::RATES))?.bps(1.0),
    })
}

fn read<'a>(
    units: Units,
    (start, rate, end): (&'a str, &'a str, Option<&'a str>),
    row: &'a str,
    previous: Option<&Row>,
) -> Result<Row, Fault<'a>> {
    if previous.is_some_and(|previous| previous.rate.is_none()) {
        return Err(("the row", row, LAST));
    }
    let start_ms = units::milliseconds(start, units.time).ok_or(("the time", start, TIME))?;
    let fault = previous.and_then(|previous| match previous.end {
        Some(end) => (start_ms != end).then_some(NEXT),
        None => (start_ms <= previous.start).then_some(TIME),
    });
    if let Some(expected) = fault {
        return Err(("the time", start, expected));
    }
    if rate.is_empty() && previous.is_some() && end.is_none_or(str::is_empty) {
        return Ok(Row { start: start_ms, rate: None, end: None });
    }
    let value: f64 = rate.parse().map_err(|_| ("the rate", rate, RATE))?;
    if !(0.0..=1e12).contains(&(value * units.rate)) {
        return Err(("the rate", rate, RATE));
    }
    let end = end.filter(|end| !end.is_empty()).map(|text| {
        let end = units::milliseconds(text, units.time);
        end.filter(|end| *end > start_ms).ok_or(("the end", text, END))
    });
    Ok(Row { start: start_ms, rate: Some(Rate::from_bps_f64(value * units.rate)), end: end.transpose()? })
}

/// Length in milliseconds and rate of each interval.
fn stretches(rows: &[Row]) -> Option<Vec<(u64, Rate)>> {
    let mut stretches: Vec<(u64, Rate)> = Vec::with_capacity(rows.len());
    for pair in rows.windows(2) {
        stretches.push((pair[0].start.abs_diff(pair[1].start), pair[0].rate?));
    }
    let last = rows.last()?;
    if let Some(rate) = last.rate {
        let before = stretches.last().map_or(1_000, |(length, _)| *length);
        stretches.push((last.end.map_or(before, |end| end.abs_diff(last.start)), rate));
    }
    Some(stretches)
}

/// Returns the rate of the trace in each interval, as a table that reads back into the same number of
/// opportunities in each of them. An opportunity at the millisecond t belongs to the interval in which t - 1
/// lies: it ends what it carries.
pub fn to_csv(trace: &Trace, interval: Duration, opportunity: Bytes) -> String {
    let period_ms = trace.period().as_nanos() / 1_000_000;
    let width_ms = (interval.as_nanos() / 1_000_000).clamp(1, period_ms);
    let mut text = String::from("start_s,mbps,end_s\n");
    let mut stamps = trace.millis().peekable();
    let mut start = 0;
    while start < period_ms {
        let end = (start + width_ms).min(period_ms);
        let mut count = 0;
        while stamps.next_if(|ms| *ms <= end).is_some() {
            count += 1;
        }
        let mbps = (count * opportunity.bits()) as f64 / ((end - start) * 1_000) as f64;
        writeln!(text, "{},{mbps},{}", start as f64 / 1e3, end as f64 / 1e3)
            .expect("a string takes any text");
        start = end;
    }
    text
}
