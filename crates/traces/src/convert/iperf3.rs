//! What `iperf3 --json` prints: `intervals[i].sum` with `start`, `end` and `bytes`.
//!
//! Of the two ends the receiver knows what the link carried; the sender's intervals count what its own
//! buffers took. A client's file has the receiver's intervals where the client received, or where it was run
//! with `--get-server-output`. A test in both directions (`--bidir`) has those from the server in
//! `sum_bidir_reverse`. `iperf3 --json-stream` prints the [same in parts](super::iperf3_stream).
//!
//! With `--omit` the clock begins again after the warm-up. The interval in which that happens has the start
//! of the old clock and the end of the new one (iperf3 3.12: 0.999995 to 1.000074): it is warm-up too.

use brakelight_core::units::{Bytes, Rate};
use serde_json::Value;

use super::{
    ConvertError, ConvertOptions, Converted, Format, Selection, iperf3_stream, json, refuse_json, shorten,
};

// What is said of a test in either form, JSON or text.
pub(super) const BOTH_WAYS: &str =
    "the test went both ways (--bidir): give `up`, from the client to the server, or `down`";
pub(super) const UP_ONLY: &str = "the test went `up` only, from the client to the server";
pub(super) const DOWN_ONLY: &str = "the test went `down` only, from the server to the client";
pub(super) const RECEIVERS: &str = "these are the receiver's intervals, which the server sent";

pub(super) fn from_iperf3(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let document = parse(bytes)?;
    let own = own_intervals(&document)?;
    let sum = sum(&document, own, went_both_ways(own), options.selection)?;
    let mut notes = Vec::new();
    let mut warnings = Vec::new();
    let mut chosen = ("", own);
    if is_sender(&document, own, sum) {
        let server = document.get("server_output_json");
        match server.and_then(|server| Some((server, intervals(server)?))) {
            Some((server, theirs)) if !theirs.is_empty() && !is_sender(server, theirs, sum) => {
                chosen = ("server_output_json.", theirs);
                notes.push(RECEIVERS.to_string());
            }
            _ => warnings.push(sender_only(means(&document, sum), "JSON")),
        }
    }
    let (stretches, omitted) = stretches(chosen.0, chosen.1, sum)?;
    notes.push(
        "iperf3 counts payload: the headers, about 3.5 % for TCP in 1500-byte packets, are not in these rates".to_string(),
    );
    if omitted > 0 {
        notes.push(format!("{omitted} intervals of iperf3's warm-up (--omit) were left out"));
    }
    Converted::of_rates(&stretches, Format::Iperf3, options, notes, warnings)
}

/// Returns the two ways of a test in both directions with their bytes, the most first; nothing for any other.
pub(super) fn selections(bytes: &[u8]) -> Result<Vec<(Selection, Bytes)>, ConvertError> {
    let document = parse(bytes)?;
    let own = own_intervals(&document)?;
    if !went_both_ways(own) {
        return Ok(Vec::new());
    }
    let carried = |sum: &str| {
        let bytes = own.iter().filter_map(|interval| interval.get(sum)?.get("bytes")?.as_u64());
        Bytes(bytes.fold(0, u64::saturating_add))
    };
    let mut ways = vec![(Selection::Up, carried("sum")), (Selection::Down, carried("sum_bidir_reverse"))];
    ways.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(ways)
}

fn parse(bytes: &[u8]) -> Result<Value, ConvertError> {
    let document = match json(bytes) {
        Ok(document) if document.get("event").is_none() => document,
        other => iperf3_stream::document(bytes).unwrap_or(other)?,
    };
    match document.get("error").and_then(Value::as_str) {
        Some(failure) => Err(refuse_json("error", format!("iperf3 failed: {}", shorten(failure)))),
        None => Ok(document),
    }
}

fn own_intervals(document: &Value) -> Result<&[Value], ConvertError> {
    intervals(document)
        .ok_or_else(|| refuse_json("intervals", "missing: expected the list that `iperf3 --json` prints"))
}

fn went_both_ways(own: &[Value]) -> bool {
    own.iter().any(|interval| interval.get("sum_bidir_reverse").is_some())
}

fn intervals(document: &Value) -> Option<&[Value]> {
    document.get("intervals")?.as_array().map(Vec::as_slice)
}

/// The key of the direction that is asked for.
fn sum(
    document: &Value,
    own: &[Value],
    both: bool,
    selection: Selection,
) -> Result<&'static str, ConvertError> {
    let invalid = |valid| Err(ConvertError::Direction { selection, valid });
    match (selection, both) {
        (Selection::Up, true) => Ok("sum"),
        (Selection::Down, true) => Ok("sum_bidir_reverse"),
        (_, true) => invalid(BOTH_WAYS),
        (Selection::OneDirection | Selection::All, false) => Ok("sum"),
        (Selection::Up | Selection::Down, false) => {
            let at_server = document.pointer("/start/accepted_connection").is_some();
            let went_up = is_sender(document, own, "sum") != at_server;
            match (selection == Selection::Up) == went_up {
                true => Ok("sum"),
                false if went_up => invalid(UP_ONLY),
                false => invalid(DOWN_ONLY),
            }
        }
        (_, false) => {
            invalid("iperf3's JSON has no packets: give `up`, from the client to the server, or `down`")
        }
    }
}

/// Returns `true` if the intervals count what was sent: they say so, or, before iperf3 3.7, whoever ran the
/// client's side of a test that is not reversed.
fn is_sender(document: &Value, intervals: &[Value], sum: &str) -> bool {
    let said = intervals.iter().find_map(|interval| interval.get(sum)?.get("sender")?.as_bool());
    said.unwrap_or_else(|| {
        let reverse = document.pointer("/start/test_start/reverse").and_then(Value::as_u64) == Some(1);
        let client = document.pointer("/start/connecting_to").is_some();
        client && (reverse == (sum == "sum_bidir_reverse"))
    })
}

/// The mean rates of what was sent and of what arrived, in Mbit/s.
fn means(document: &Value, sum: &str) -> Option<(f64, f64)> {
    let mean = |end: &str| {
        let total = document.pointer(&format!("/end/{}", sum.replacen("sum", end, 1)))?;
        let (bytes, seconds) = (total.get("bytes")?.as_f64()?, total.get("seconds")?.as_f64()?);
        (bytes > 0.0 && seconds > 0.0).then(|| libm::round(bytes * 8e-4 / seconds) / 100.0)
    };
    mean("sum_sent").zip(mean("sum_received"))
}

/// What to know about a trace of the sender's intervals. `means` are the rates of what was sent and of what
/// arrived, in Mbit/s, where they are known; `form` is what the server's own file is.
pub(super) fn sender_only(means: Option<(f64, f64)>, form: &str) -> String {
    let means = means.map_or(String::new(), |(sent, received)| {
        format!(" (all in all {sent} Mbit/s, where {received} Mbit/s arrived)")
    });
    format!(
        "these are the sender's intervals: they count what its own buffers took{means}; \
         `iperf3 --get-server-output`, or the server's own {form}, has the receiver's"
    )
}

/// Length in milliseconds and rate of each interval, and how many were left out.
fn stretches(place: &str, intervals: &[Value], sum: &str) -> Result<(Vec<(u64, Rate)>, usize), ConvertError> {
    let mut stretches = Vec::with_capacity(intervals.len());
    let mut omitted = 0;
    // Where the last interval ended, in milliseconds of iperf3's clock.
    let mut at_ms = None;
    for (index, interval) in intervals.iter().enumerate() {
        let values = interval.get(sum);
        let path = |field: &str| format!("{place}intervals[{index}].{sum}.{field}");
        let number = |field: &str| -> Result<f64, ConvertError> {
            match values.and_then(|values| values.get(field)).and_then(Value::as_f64) {
                Some(value) if (0.0..=1e15).contains(&value) => Ok(value),
                Some(value) => Err(refuse_json(path(field), format!("{value} is not between 0 and 1e15"))),
                None => Err(refuse_json(path(field), "missing: expected a number")),
            }
        };
        if values.and_then(|values| values.get("omitted")).and_then(Value::as_bool) == Some(true) {
            omitted += 1;
            continue;
        }
        let (start, end, carried) = (number("start")?, number("end")?, number("bytes")?);
        let to_ms = |seconds: f64| libm::round(seconds * 1e3) as u64;
        // The warm-up ended within it: it starts by one clock and ends by another.
        let own = values.and_then(|values| values.get("seconds")).and_then(Value::as_f64);
        let short = own.is_some_and(|seconds| end - start < 0.5 * seconds);
        if at_ms.is_none() && omitted > 0 && (short || to_ms(end) <= to_ms(start)) {
            omitted += 1;
            continue;
        }
        let from_ms = at_ms.unwrap_or(to_ms(start));
        if to_ms(end) <= from_ms || end > 1e9 {
            return Err(refuse_json(
                path("end"),
                format!("{end} is not between the interval's start and 1e9"),
            ));
        }
        // Its own length makes the rate; rounded ends only place it.
        let rate = Rate::from_bps_f64(carried * 8.0 / ((to_ms(end) - from_ms) as f64 * 1e-3));
        stretches.push((to_ms(end) - from_ms, rate));
        at_ms = Some(to_ms(end));
    }
    if stretches.is_empty() {
        return Err(ConvertError::Empty("interval"));
    }
    Ok((stretches, omitted))
}
