//! Logs of cake-autorate: lines of values with semicolons between, under headers that name them.
//!
//! ```text
//! LOAD_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; ...; CAKE_DL_RATE_KBPS; ...
//! LOAD; 2024-05-01-12:00:00; 1714564800.5; 1714564800.4; 42000; 8000; 45000; 9000
//! ```
//!
//! What was achieved is what users asked for; the rate of the shaper follows what the link carries without a
//! queue (cake-autorate, README, "Theory of operation"). So the shaper's is taken, unless `--column` names
//! another. A log holds lines of several kinds (`DATA`, `LOAD`, `SUMMARY`), each with its own header; those
//! of the kind with the most lines are taken.

use std::collections::BTreeMap;

use super::series::{Sample, Series};
use super::{ConvertError, ConvertOptions, Converted, Format, RateUnit, Selection};

const KINDS: [&str; 3] = ["LOAD", "SUMMARY", "DATA"];
const TIME: &str = "expected Unix seconds such as `1714564800.5`, no less than on the line before";
const RATE: &str = "expected kbit/s, from 0 to 1e9";
const ROW: &str = "expected as many values as its header has names";

/// Returns `true` if this line begins such a log.
pub(super) fn is_log(line: &str) -> bool {
    let Some((kind, rest)) = line.split_once(';') else { return false };
    let kinds = ["INFO", "DEBUG", "SYSLOG", "ERROR", "SHAPER", "REFLECTOR", "CPU", "CPU_RAW"];
    let kind = kind.strip_suffix("_HEADER").unwrap_or(kind);
    rest.starts_with(' ') && (KINDS.contains(&kind) || kinds.contains(&kind))
}

pub(super) fn from_log(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let default = match options.selection {
        Selection::Down => Some("CAKE_DL_RATE_KBPS"),
        Selection::Up => Some("CAKE_UL_RATE_KBPS"),
        Selection::OneDirection => None,
        selection => {
            let valid = "a log of cake-autorate has no addresses: give `up` or `down`";
            return Err(ConvertError::Direction { selection, valid });
        }
    };
    let Some(column) = options.column.as_deref().or(default) else {
        let names =
            "`CAKE_DL_RATE_KBPS`, `CAKE_UL_RATE_KBPS`, `DL_ACHIEVED_RATE_KBPS`, `UL_ACHIEVED_RATE_KBPS`";
        let example = "DL_ACHIEVED_RATE_KBPS".to_string();
        return Err(ConvertError::SeveralRates { names: names.to_string(), example });
    };
    let mut headers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for row in text.lines() {
        let Some((kind, rest)) = row.split_once(';') else { continue };
        if let Some(kind) = kind.strip_suffix("_HEADER") {
            headers.insert(kind, rest.split(';').map(str::trim).collect());
        } else if KINDS.contains(&kind) {
            *counts.entry(kind).or_default() += 1;
        }
    }
    let has = |kind: &&&str| headers.get(**kind).is_some_and(|names| position(names, column).is_some());
    let kind = KINDS.iter().filter(has).max_by_key(|kind| counts.get(**kind)).ok_or_else(|| {
        let names: Vec<&str> = headers.values().flatten().copied().collect();
        ConvertError::NoColumn { column: column.to_string(), names: names.join(", ") }
    })?;
    let names = &headers[kind];
    let (rate, time) = (position(names, column), position(names, "LOG_TIMESTAMP"));
    let (Some(rate), Some(time)) = (rate, time) else {
        return Err(ConvertError::NoTime { names: names.join(", ") });
    };
    let mut samples: Vec<Sample> = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let refuse = |field, value: &str, expected| ConvertError::line(line, field, value, expected);
        let Some((this, rest)) = row.split_once(';') else { continue };
        if this != *kind {
            continue;
        }
        let values: Vec<&str> = rest.split(';').map(str::trim).collect();
        let (Some(at), Some(kbps)) = (values.get(time), values.get(rate)) else {
            return Err(refuse("the row", row, ROW));
        };
        let start = at.parse::<f64>().ok().filter(|seconds| (0.0..=1e10).contains(seconds));
        let start = start.map(|seconds| libm::round(seconds * 1e3) as i64);
        let start = start.filter(|ms| samples.last().is_none_or(|last| last.start <= *ms));
        let start = start.ok_or_else(|| refuse("the time", at, TIME))?;
        let value = kbps.parse::<f64>().ok().filter(|kbps| (0.0..=1e9).contains(kbps));
        let value = value.ok_or_else(|| refuse("the rate", kbps, RATE))?;
        samples.push(Sample { start, end: None, rate: RateUnit::KBIT.bps(value) });
    }
    let series = Series::of(&samples).ok_or(ConvertError::Empty("line with a rate"))?;
    let notes = vec![format!(
        "the rate is `{column}` of the `{kind}` lines{}",
        if column.starts_with("CAKE") { ", the shaper's own: the link may carry more" } else { "" }
    )];
    let warnings = series.warning().into_iter().collect();
    Converted::of_rates(&series.stretches, Format::CakeAutorate, options, notes, warnings)
}

fn position(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|known| known.eq_ignore_ascii_case(name))
}
