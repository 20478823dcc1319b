//! Two columns of numbers with blanks between: a time in seconds and a rate.
//!
//! ```text
//! 0.2       10.35   the rate until 0.2 s
//! 0.400018 135.63   the rate from 0.2 to 0.400018 s
//! ```
//!
//! Files of this kind name neither unit nor whether a time begins or ends its interval. The unit is Mbit/s
//! unless the user says otherwise. A file whose first time is one interval long has the ends of intervals
//! (the first one began at 0); any other has their beginnings.

use super::series::{Sample, Series};
use super::{ConvertError, ConvertOptions, Converted, Format, RateUnit, idle};

const TIME: &str = "expected seconds from 0 to 1e10, no less than on the line before";
const RATE: &str = "expected a rate from 0 to 1e12 bit/s, in Mbit/s or the unit of `--unit`";
const ROW: &str = "expected two numbers with blanks between, a time in seconds and a rate";

/// How far the first time may lie from one interval to be its end, as a share of the interval.
const NEAR: f64 = 0.05;

/// Returns `true` if this line may be one of such a file.
pub(super) fn is_row(line: &[u8]) -> bool {
    let Ok(line) = str::from_utf8(line) else { return false };
    let mut values = line.split_ascii_whitespace().map(str::parse::<f64>);
    matches!((values.next(), values.next(), values.next()), (Some(Ok(_)), Some(Ok(_)), None))
}

pub(super) fn from_columns(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let unit = options.unit.unwrap_or(RateUnit::MBIT);
    let mut rows: Vec<(i64, f64)> = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let refuse = |field, value: &str, expected| ConvertError::line(line, field, value, expected);
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let mut values = row.split_ascii_whitespace();
        let (Some(time), Some(rate), None) = (values.next(), values.next(), values.next()) else {
            return Err(refuse("the row", row, ROW));
        };
        let at = time.parse().ok().filter(|seconds| (0.0..=1e10).contains(seconds));
        let at = at.map(|seconds: f64| libm::round(seconds * 1e3) as i64);
        let at = at.filter(|ms| rows.last().is_none_or(|(last, _)| last <= ms));
        let rate_bps = rate.parse::<f64>().ok().map(|rate| unit.bps(rate));
        let rate_bps = rate_bps.filter(|rate| (0.0..=1e12).contains(rate));
        rows.push((
            at.ok_or_else(|| refuse("the time", time, TIME))?,
            rate_bps.ok_or_else(|| refuse("the rate", rate, RATE))?,
        ));
    }
    let mut notes = Vec::new();
    if options.unit.is_none() {
        notes.push("the file names no unit: rates were taken as Mbit/s; `--unit` says otherwise".to_string());
    }
    let mut samples: Vec<Sample> =
        rows.iter().map(|&(start, rate)| Sample { start, end: None, rate }).collect();
    if ends(&rows) {
        notes.push(
            "each time was taken as the end of its interval, since the first is one interval long"
                .to_string(),
        );
        let starts = std::iter::once(0).chain(rows.iter().map(|(end, _)| *end));
        for (sample, start) in samples.iter_mut().zip(starts) {
            sample.end = Some(sample.start);
            sample.start = start;
        }
        // Of less than half a millisecond.
        samples.retain(|sample| sample.end > Some(sample.start));
    } else {
        notes.push("each time was taken as the beginning of its interval".to_string());
    }
    let mut series = Series::of(&samples).ok_or(ConvertError::Empty("row of two numbers"))?;
    let mut warnings = series.warning().into_iter().collect();
    idle::zeros(&mut series.stretches, options, &mut notes, &mut warnings);
    Converted::of_rates(&series.stretches, Format::Columns, options, notes, warnings)
}

/// Returns `true` if the times end intervals of which the first began at 0.
fn ends(rows: &[(i64, f64)]) -> bool {
    let mut lengths: Vec<i64> = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    lengths.sort_unstable();
    let (Some(&(first, _)), Some(&median)) = (rows.first(), lengths.get(lengths.len() / 2)) else {
        return false;
    };
    first > 0 && (first - median).abs() as f64 <= NEAR * median as f64
}
