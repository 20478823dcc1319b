//! What `iperf3 --json` prints: `intervals[i].sum` with `start`, `end` and `bytes`.

use brakelight_core::units::{Bytes, Rate};
use serde_json::Value;

use super::{ConvertError, Converted, at_rates, shorten};

pub(super) fn from_iperf3(bytes: &[u8], opportunity: Bytes) -> Result<Converted, ConvertError> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| ConvertError::Iperf3 {
        field: "document".to_string(),
        problem: format!("not JSON: {error}"),
    })?;
    let refuse = |field: String, problem: &str| ConvertError::Iperf3 { field, problem: problem.to_string() };
    if let Some(failure) = document.get("error").and_then(Value::as_str) {
        return Err(refuse("error".to_string(), &format!("iperf3 failed: {}", shorten(failure))));
    }
    let Some(intervals) = document.get("intervals").and_then(Value::as_array) else {
        return Err(refuse(
            "intervals".to_string(),
            "missing: expected the list that `iperf3 --json` prints",
        ));
    };
    let mut stretches = Vec::with_capacity(intervals.len());
    let mut omitted = 0;
    // Where the last interval ended, in milliseconds of iperf3's clock.
    let mut at_ms = None;
    for (index, interval) in intervals.iter().enumerate() {
        let path = |field: &str| format!("intervals[{index}].sum.{field}");
        let number = |field: &str| -> Result<f64, ConvertError> {
            match interval.get("sum").and_then(|sum| sum.get(field)).and_then(Value::as_f64) {
                Some(value) if (0.0..=1e15).contains(&value) => Ok(value),
                Some(value) => Err(refuse(path(field), &format!("{value} is not between 0 and 1e15"))),
                None => Err(refuse(path(field), "missing: expected a number")),
            }
        };
        if interval.pointer("/sum/omitted").and_then(Value::as_bool) == Some(true) {
            omitted += 1;
            continue;
        }
        let (start, end, carried) = (number("start")?, number("end")?, number("bytes")?);
        let to_ms = |seconds: f64| libm::round(seconds * 1e3) as u64;
        let from_ms = at_ms.unwrap_or(to_ms(start));
        if to_ms(end) <= from_ms || end > 1e9 {
            return Err(refuse(path("end"), &format!("{end} is not between the interval's start and 1e9")));
        }
        // Its own length makes the rate; rounded ends only place it.
        let rate = Rate::from_bps_f64(carried * 8.0 / ((to_ms(end) - from_ms) as f64 * 1e-3));
        stretches.push((to_ms(end) - from_ms, rate));
        at_ms = Some(to_ms(end));
    }
    if stretches.is_empty() {
        return Err(ConvertError::Empty("interval"));
    }
    let mut notes = vec![
        "iperf3 counts payload: the headers, about 3.5 % for TCP in 1500-byte packets, are not in these rates".to_string(),
    ];
    if omitted > 0 {
        notes.push(format!("{omitted} intervals of iperf3's warm-up (--omit) were left out"));
    }
    Ok(Converted { trace: at_rates(&stretches, opportunity)?, notes })
}
