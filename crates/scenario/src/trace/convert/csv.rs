//! Tables of rates.
//!
//! ```text
//! start_s,mbps  optional
//! 0,12.5        from 0 to 0.1 s at 12.5 Mbit/s
//! 0.1,9
//! 0.2,          the end; without this line the last interval lasts as long as the one before it, or a second
//! ```
//!
//! Read line by line, not by the crate `csv`: a row is two numbers without quotes, and an error names the
//! line of the file, where the crate's position of a row is that of the comments before it.
//!
//! Times increase, are rounded to milliseconds and may start anywhere: the first becomes 0.

use std::fmt::Write;

use brakelight_core::path::trace::Trace;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};

use super::{ConvertError, Converted, at_rates, shorten};

const TIME: &str =
    "expected seconds, from -1e9 to 1e9, more than on the line before by at least a millisecond";
const RATE: &str = "expected Mbit/s, from 0 to 1000000";
const ROW: &str = "expected two columns, `start_s,mbps`";

pub(super) fn from_csv(bytes: &[u8], opportunity: Bytes) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    // Start in milliseconds, and the rate from there on; none at the end.
    let mut rows: Vec<(i64, Option<Rate>)> = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let refuse =
            |field, value: &str, expected| ConvertError::Csv { line, field, value: shorten(value), expected };
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let Some((start, mbps)) = row.split_once(',').map(|(a, b)| (a.trim(), b.trim())) else {
            return Err(refuse("the row", row, ROW));
        };
        let header = rows.is_empty() && start.starts_with(|c: char| c.is_ascii_alphabetic());
        if header && mbps.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        if rows.last().is_some_and(|(_, rate)| rate.is_none()) {
            return Err(refuse(
                "the row",
                row,
                "expected nothing after the line that ends the last interval",
            ));
        }
        let seconds: f64 = start.parse().map_err(|_| refuse("start_s", start, TIME))?;
        if !(-1e9..=1e9).contains(&seconds) {
            return Err(refuse("start_s", start, TIME));
        }
        let start_ms = libm::round(seconds * 1e3) as i64;
        if rows.last().is_some_and(|(previous, _)| start_ms <= *previous) {
            return Err(refuse("start_s", start, TIME));
        }
        let rate = if mbps.is_empty() && !rows.is_empty() {
            None
        } else {
            let value: f64 = mbps.parse().map_err(|_| refuse("mbps", mbps, RATE))?;
            if !(0.0..=1e6).contains(&value) {
                return Err(refuse("mbps", mbps, RATE));
            }
            Some(Rate::from_bps_f64(value * 1e6))
        };
        rows.push((start_ms, rate));
    }
    let stretches = stretches(&rows).ok_or(ConvertError::Empty("row of `start_s,mbps`"))?;
    Ok(Converted { trace: at_rates(&stretches, opportunity)?, notes: Vec::new() })
}

/// Length in milliseconds and rate of each interval.
fn stretches(rows: &[(i64, Option<Rate>)]) -> Option<Vec<(u64, Rate)>> {
    let mut stretches: Vec<(u64, Rate)> = Vec::with_capacity(rows.len());
    for pair in rows.windows(2) {
        stretches.push((pair[0].0.abs_diff(pair[1].0), pair[0].1?));
    }
    if let (_, Some(rate)) = rows.last()? {
        let length = stretches.last().map_or(1_000, |(length, _)| *length);
        stretches.push((length, *rate));
    }
    Some(stretches)
}

/// Returns the rate of the trace in each interval, as a table that reads back into the same number of
/// opportunities in each of them. An opportunity at the millisecond t belongs to the interval in which t - 1
/// lies: it ends what it carries.
pub fn to_csv(trace: &Trace, interval: Duration, opportunity: Bytes) -> String {
    let period_ms = trace.period().as_nanos() / 1_000_000;
    let width_ms = (interval.as_nanos() / 1_000_000).clamp(1, period_ms);
    let mut text = String::from("start_s,mbps\n");
    let mut stamps = trace.millis().peekable();
    let mut start = 0;
    while start < period_ms {
        let end = (start + width_ms).min(period_ms);
        let mut count = 0;
        while stamps.next_if(|ms| *ms <= end).is_some() {
            count += 1;
        }
        let mbps = (count * opportunity.bits()) as f64 / ((end - start) * 1_000) as f64;
        writeln!(text, "{},{mbps}", start as f64 / 1e3).expect("a string takes any text");
        start = end;
    }
    writeln!(text, "{},", period_ms as f64 / 1e3).expect("a string takes any text");
    text
}
