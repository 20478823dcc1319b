//! The JSON of Genet and of the traces it took from Pantheon: `timestamps` in seconds, `bandwidths` in
//! Mbit/s, `delays` in milliseconds, `loss` and `queue` (Xia et al., "Genet: Automatic Curriculum
//! Generation for Learning Adaptation in Networking", SIGCOMM 2022; `simulator/trace.py` of its program).
//!
//! A bandwidth holds from its time to the next one; the last time ends the trace.

use brakelight_core::time::Duration;
use brakelight_links::replay::{CERTAIN, MAX_DELAY};
use serde_json::Value;

use super::series::{Sample, Series};
use super::{ConvertError, ConvertOptions, Converted, Format, json, refuse_json};

pub(super) fn from_json(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let document = json(bytes)?;
    let times = numbers(&document, "timestamps", 1e9)?;
    let rates = numbers(&document, "bandwidths", 1e6)?;
    if times.len() != rates.len() && times.len() != rates.len() + 1 {
        let problem = format!("{} values, where `timestamps` has {}", rates.len(), times.len());
        return Err(refuse_json("bandwidths", problem));
    }
    let ms: Vec<i64> = times.iter().map(|seconds| libm::round(seconds * 1e3) as i64).collect();
    if let Some(index) = ms.windows(2).position(|pair| pair[0] > pair[1]) {
        let problem = format!("{} is less than the one before", times[index + 1]);
        return Err(refuse_json(format!("timestamps[{}]", index + 1), problem));
    }
    let last = *ms.last().ok_or(ConvertError::Empty("timestamp"))?;
    let mut samples: Vec<Sample> = ms
        .iter()
        .zip(&rates)
        .filter(|(start, _)| **start < last)
        .map(|(&start, mbps)| Sample { start, end: None, rate: mbps * 1e6 })
        .collect();
    if let Some(sample) = samples.last_mut() {
        sample.end = Some(last);
    }
    let series = Series::of(&samples).ok_or(ConvertError::Empty("bandwidth that lasts"))?;
    let mut notes = Vec::new();
    let mut warnings: Vec<String> = series.warning().into_iter().collect();
    let delays = numbers(&document, "delays", 1e7).unwrap_or_default();
    let (least, most) = delays.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), d| (a.min(*d), b.max(*d)));
    if !delays.is_empty() {
        let text = format!(
            "its one-way delay, {least} to {most} ms, is not in a trace of opportunities: `--to bltrace` keeps it"
        );
        if most > least { warnings.push(text) } else { notes.push(text) }
    }
    let loss = document.get("loss").and_then(Value::as_f64).filter(|loss| (0.0..=1.0).contains(loss));
    if let Some(loss) = loss.filter(|loss| *loss > 0.0) {
        let percent = 100.0 * loss;
        warnings.push(format!(
            "its loss, {percent} %, is not in a trace of opportunities: `--to bltrace` keeps it"
        ));
    }
    let no_gaps = series.warning().is_none();
    let mut converted = Converted::of_rates(&series.stretches, Format::Genet, options, notes, warnings)?;
    let recorded = &mut converted.recording.down;
    if let Some(loss) = loss.filter(|loss| *loss > 0.0) {
        recorded.losses = vec![(Duration::ZERO, (loss * f64::from(CERTAIN)) as u32)];
    }
    // A gap that was left out moves what comes after it.
    if no_gaps && most <= MAX_DELAY.as_millis_f64() {
        recorded.delays = delays_over_time(&ms, &delays, last);
    }
    Ok(converted)
}

/// Delays in milliseconds with the times from which they hold, the first of them 0.
fn delays_over_time(ms: &[i64], delays: &[f64], last: i64) -> Vec<(Duration, Duration)> {
    let first = ms.first().copied().unwrap_or(0);
    let values = ms.iter().zip(delays).filter(|(at, _)| **at < last);
    let mut values: Vec<(Duration, Duration)> = values
        .map(|(at, delay)| {
            (Duration::from_millis(at.abs_diff(first)), Duration::from_micros((delay * 1e3) as u64))
        })
        .collect();
    values.dedup_by_key(|(from, _)| *from);
    values.dedup_by_key(|(_, delay)| *delay);
    values
}

/// The list of numbers of this name, from 0 to `most`.
fn numbers(document: &Value, name: &str, most: f64) -> Result<Vec<f64>, ConvertError> {
    let list = document
        .get(name)
        .and_then(Value::as_array)
        .ok_or_else(|| refuse_json(name.to_string(), "missing: expected a list of numbers"))?;
    list.iter()
        .enumerate()
        .map(|(index, value)| {
            value.as_f64().filter(|number| (0.0..=most).contains(number)).ok_or_else(|| {
                refuse_json(format!("{name}[{index}]"), format!("{value} is not a number from 0 to {most}"))
            })
        })
        .collect()
}
