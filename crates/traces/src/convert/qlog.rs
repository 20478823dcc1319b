//! qlog of an endpoint that received: `packet_received` events with the length of each packet.
//!
//! | what | where |
//! |---|---|
//! | the document | one object (`.qlog`), or records each after 0x1e (`.sqlog`, RFC 7464) |
//! | the same of early drafts | events that are lists, named by [`event_fields`](super::qlog_early) |
//! | the event | `transport:packet_received` or `quic:packet_received` (draft-ietf-quic-qlog-quic-events) |
//! | its time | `time` in milliseconds, absolute, or relative to the one before where `time_format` says so |
//! | its bytes | `data.raw.length`, in older files `data.packet_size` or `data.header.packet_size` |
//!
//! qlog counts the bytes of QUIC packets: those of UDP and IP are added, 28 a packet.

use serde_json::Value;

use super::qlog_early::{Fields, time_unit};
use super::{Arrivals, ConvertError, ConvertOptions, Converted, Format, json, refuse_json};

/// Headers of IPv4 and UDP, which qlog does not count.
const HEADERS: u64 = 28;

pub(super) fn from_qlog(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let mut arrivals = Arrivals::default();
    if bytes.first() == Some(&0x1e) {
        let mut relative = false;
        let mut clock = 0.0;
        for (index, record) in bytes.split(|byte| *byte == 0x1e).enumerate().skip(1) {
            let place = format!("record {index}");
            // The last one may have been cut off with its program.
            let last = record.last() != Some(&b'\n');
            let value: Value = match serde_json::from_slice(record) {
                Ok(value) => value,
                Err(_) if last && index > 1 => break,
                Err(error) => return Err(refuse_json(place, format!("not JSON: {error}"))),
            };
            if index == 1 {
                relative = is_relative(value.get("trace").unwrap_or(&value));
            } else {
                take(&value, &place, (relative, 1.0), &mut clock, &mut arrivals)?;
            }
        }
    } else {
        let document = json(bytes)?;
        let traces = document
            .get("traces")
            .and_then(Value::as_array)
            .ok_or_else(|| refuse_json("traces", "missing: expected the list that qlog has"))?;
        for (number, trace) in traces.iter().enumerate() {
            let events = trace.get("events").and_then(Value::as_array);
            let events = events
                .ok_or_else(|| refuse_json(format!("traces[{number}].events"), "missing: expected a list"))?;
            let place = format!("traces[{number}]");
            let fields = Fields::of(trace, &place)?;
            let unit = time_unit(trace, &place)?;
            let relative = fields.as_ref().map_or_else(|| is_relative(trace), |fields| fields.relative);
            let mut clock = 0.0;
            for (index, event) in events.iter().enumerate() {
                let place = format!("{place}.events[{index}]");
                let named = fields.as_ref().filter(|_| event.is_array()).map(|fields| fields.event(event));
                take(named.as_ref().unwrap_or(event), &place, (relative, unit), &mut clock, &mut arrivals)?;
            }
        }
    }
    let (trace, fine) = arrivals.trace(options.opportunity, "`packet_received` event with a length")?;
    let notes = vec![format!("{HEADERS} bytes were added to each packet, for the headers of IP and UDP")];
    Ok(Converted::of_opportunities(trace, fine, Format::Qlog, options, notes))
}

/// Returns `true` if the times of a trace are relative to the event before.
fn is_relative(trace: &Value) -> bool {
    let format = trace.pointer("/common_fields/time_format").and_then(Value::as_str);
    matches!(format, Some("delta" | "relative_to_previous_event"))
}

/// Takes an event whose time is relative to the one before or not, in so many milliseconds.
fn take(
    event: &Value,
    place: &str,
    (relative, unit): (bool, f64),
    clock: &mut f64,
    arrivals: &mut Arrivals,
) -> Result<(), ConvertError> {
    // Some of the early writers have numbers as strings.
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let time = event.get("time").and_then(number).map(|time| time * unit);
    let time = time.filter(|ms| (0.0..=1e13).contains(ms));
    let Some(time) = time else {
        let problem = "missing: expected milliseconds, from 0 to 1e13".to_string();
        return Err(refuse_json(format!("{place}.time"), problem));
    };
    *clock = if relative { *clock + time } else { time };
    let name = event.get("name").and_then(Value::as_str).unwrap_or_default();
    if !matches!(name, "transport:packet_received" | "quic:packet_received") {
        return Ok(());
    }
    let paths = ["/data/raw/length", "/data/packet_size", "/data/header/packet_size"];
    let length = paths.iter().find_map(|path| event.pointer(path)?.as_u64());
    if let Some(length) = length.filter(|length| (1..=65_535).contains(length)) {
        arrivals.push(libm::round(*clock * 1e6) as i128, (length + HEADERS) as u32);
    }
    Ok(())
}
