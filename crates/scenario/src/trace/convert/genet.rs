//! The JSON of Genet and of the traces it took from Pantheon: `timestamps` in seconds, `bandwidths` in
//! Mbit/s, `delays` in milliseconds, `loss` and `queue` (Xia et al., "Genet: Automatic Curriculum
//! Generation for Learning Adaptation in Networking", SIGCOMM 2022; `simulator/trace.py` of its program).
//!
//! A bandwidth holds from its time to the next one; the last time ends the trace.

use serde_json::Value;

use super::series::{Sample, Series};
use super::{ConvertError, ConvertOptions, Converted, Format, at_rates, resolution};

pub(super) fn from_json(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let document: Value = serde_json::from_slice(bytes)
        .map_err(|error| refusal("document".to_string(), format!("not JSON: {error}")))?;
    let times = numbers(&document, "timestamps", 1e9)?;
    let rates = numbers(&document, "bandwidths", 1e6)?;
    if times.len() != rates.len() && times.len() != rates.len() + 1 {
        let problem = format!("{} values, where `timestamps` has {}", rates.len(), times.len());
        return Err(refusal("bandwidths".to_string(), problem));
    }
    let ms: Vec<i64> = times.iter().map(|seconds| libm::round(seconds * 1e3) as i64).collect();
    if let Some(index) = ms.windows(2).position(|pair| pair[0] > pair[1]) {
        let problem = format!("{} is less than the one before", times[index + 1]);
        return Err(refusal(format!("timestamps[{}]", index + 1), problem));
    }
    let last = *ms.last().ok_or(ConvertError::Empty("timestamp"))?;
    let samples: Vec<Sample> = ms
        .iter()
        .zip(&rates)
        .filter(|(start, _)| **start < last)
        .map(|(&start, mbps)| Sample { start, end: None, rate: mbps * 1e6 })
        .collect();
    let mut samples = samples;
    if let Some(sample) = samples.last_mut() {
        sample.end = Some(last);
    }
    let series = Series::of(&samples).ok_or(ConvertError::Empty("bandwidth that lasts"))?;
    let mut notes = Vec::new();
    let mut warnings: Vec<String> = series.warning().into_iter().collect();
    let delays = numbers(&document, "delays", 1e7).unwrap_or_default();
    let (least, most) = delays.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), d| (a.min(*d), b.max(*d)));
    if !delays.is_empty() {
        let text = format!("its one-way delay, {least} to {most} ms, is not in a trace of opportunities");
        if most > least { warnings.push(text) } else { notes.push(text) }
    }
    if let Some(loss) = document.get("loss").and_then(Value::as_f64).filter(|loss| *loss > 0.0) {
        warnings.push(format!("its loss, {} %, is not in a trace of opportunities", 100.0 * loss));
    }
    let trace = at_rates(&series.stretches, options.opportunity)?;
    Ok(Converted { trace, format: Format::Genet, resolution: resolution(&series.stretches), notes, warnings })
}

fn refusal(field: String, problem: String) -> ConvertError {
    ConvertError::Json { field, problem }
}

/// The list of numbers of this name, from 0 to `most`.
fn numbers(document: &Value, name: &str, most: f64) -> Result<Vec<f64>, ConvertError> {
    let list = document
        .get(name)
        .and_then(Value::as_array)
        .ok_or_else(|| refusal(name.to_string(), "missing: expected a list of numbers".to_string()))?;
    list.iter()
        .enumerate()
        .map(|(index, value)| {
            value.as_f64().filter(|number| (0.0..=most).contains(number)).ok_or_else(|| {
                refusal(format!("{name}[{index}]"), format!("{value} is not a number from 0 to {most}"))
            })
        })
        .collect()
}
