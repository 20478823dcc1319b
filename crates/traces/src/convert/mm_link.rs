//! Logs of links: what Mahimahi's `mm-link --downlink-log` writes, and our emulator and simulator too. Their
//! `#` lines are the opportunities of the link, used or not; all others are about packets.
//!
//! ```text
//! # base timestamp: 7       the link began at this millisecond
//! 9 # 1504                  at 2 ms of the trace an opportunity of a full packet
//! 9 + 1504                  a packet arrived: nothing of the link
//! ```
//!
//! Mahimahi counts a full packet as 1504 bytes (`packetshell`'s header of 4 bytes before one of 1500), so
//! 1504 become one opportunity of 1500. Other sizes, of emulated links of a rate, are gathered until they
//! fill one.

use brakelight_core::units::Bytes;
use brakelight_links::trace::Trace;

use super::{ConvertError, ConvertOptions, Converted, Format, check_size};
use crate::OPPORTUNITY;

const EVENT: &str =
    "expected an event of a link: `MS # BYTES`, `MS + BYTES`, `MS - BYTES DELAY` or `MS d PACKETS BYTES`";
const TIME: &str =
    "expected whole milliseconds, no less than on the line of `#` before, nor than the base timestamp";
const BASE: &str = "expected a base timestamp in whole milliseconds";

/// What Mahimahi writes for a full packet.
const FULL: u64 = 1_504;

/// Returns `true` if these are lines of such a log.
pub(super) fn is_log(head: &str, first: &str) -> bool {
    head.starts_with("# mahimahi mm-link") || event(first).is_some()
}

/// The millisecond, the kind and the first number of an event.
fn event(row: &str) -> Option<(u64, &str, u64)> {
    let mut words = row.split_ascii_whitespace();
    let (at, kind, number) = (words.next()?.parse().ok()?, words.next()?, words.next()?.parse().ok()?);
    let second = words.next().map(str::parse::<u64>);
    let right = match (kind, second) {
        ("#" | "+", None) | ("-" | "d", Some(Ok(_))) => words.next().is_none(),
        _ => false,
    };
    right.then_some((at, kind, number))
}

pub(super) fn from_log(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let mut base: Option<u64> = None;
    let mut at_ms = 0;
    let mut stamps: Vec<(u64, u32)> = Vec::new();
    let (mut bytes, mut total, mut used) = (0, 0.0, false);
    for (line, row) in (1..).zip(text.lines()) {
        let row = row.trim();
        if let Some(header) = row.strip_prefix('#') {
            if let Some(at) = header.trim_start().strip_prefix("base timestamp:") {
                let parsed = at.trim().parse();
                base = Some(parsed.map_err(|_| ConvertError::line(line, "the base timestamp", at, BASE))?);
            }
            continue;
        }
        if row.is_empty() {
            continue;
        }
        let (ms, kind, carried) =
            event(row).ok_or_else(|| ConvertError::line(line, "the row", row, EVENT))?;
        if kind != "#" {
            used |= kind == "-";
            continue;
        }
        // Of a log whose head was cut off the first opportunity is the beginning.
        let since = ms.checked_sub(*base.get_or_insert(ms)).filter(|since| *since >= at_ms);
        at_ms = since.ok_or_else(|| ConvertError::line(line, "the time", &ms.to_string(), TIME))?;
        bytes += if carried == FULL { OPPORTUNITY.0 } else { carried.min(1 << 32) };
        let due = bytes / options.opportunity.0;
        bytes %= options.opportunity.0;
        total += due as f64;
        check_size(at_ms as f64 * 1e-3, total)?;
        if due > 0 {
            stamps.push((at_ms, due as u32));
        }
    }
    if base.is_none() || at_ms == 0 && stamps.is_empty() {
        return Err(ConvertError::Empty("delivery opportunity of a link (`MS # BYTES`)"));
    }
    if stamps.is_empty() {
        return Err(ConvertError::Silent(options.opportunity));
    }
    let millis = stamps.iter().flat_map(|&(ms, due)| std::iter::repeat_n(ms, due as usize));
    let trace = Trace::from_millis(millis)?;
    let mut notes = vec!["the opportunities of the link (`#`) were taken, used or not".to_string()];
    if bytes > 0 && !used {
        notes.push(format!("{} left in the end fill no opportunity", Bytes(bytes)));
    }
    Ok(Converted::of_opportunities(trace.clone(), trace, Format::LinkLog, options, notes))
}
