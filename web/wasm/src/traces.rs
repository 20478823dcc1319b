//! Traces by name: embedded ones, and those that the page brought.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::str::FromStr;

use brakelight::core::path::trace::Trace;
use brakelight::core::time::Duration;
use brakelight::core::units::Bytes;
use brakelight::scenario::input::gzip;
use brakelight::scenario::scenario::{Scenario, Service};
use brakelight::scenario::trace::OPPORTUNITY;
use brakelight::scenario::trace::convert::{self, ConvertOptions, Format, Selection};
use brakelight::scenario::trace::embedded::{EMBEDDED, Embedded, FITTED};
use brakelight::scenario::trace::recipe::Recipe;
use brakelight::scenario::trace::statistics::{Statistics, rates};
use brakelight::sim::Traces;
use serde_json::{Value, json};

/// The largest file that becomes a trace, bytes.
const LARGEST: usize = 20_000_000;
/// The most delivery opportunities of a trace: memory is 8 bytes for each.
const MOST_OPPORTUNITIES: f64 = 5e6;
/// The longest trace.
const LONGEST: Duration = Duration::from_secs(3600);
/// How many traces are kept besides the embedded ones.
const MOST_TRACES: usize = 16;
/// How many directions of a capture can be chosen: a capture of a whole network has thousands.
const MOST_DIRECTIONS: usize = 40;
/// Points of a preview.
const PREVIEW: u64 = 300;

/// The traces there are.
#[derive(Debug, Default)]
pub struct Shelf {
    own: BTreeMap<String, Trace>,
    /// Embedded traces that were made: making one takes longer than the first look at a run.
    made: RefCell<BTreeMap<&'static str, Trace>>,
}

impl Shelf {
    /// Returns the embedded traces alone.
    pub const fn new() -> Self {
        Shelf { own: BTreeMap::new(), made: RefCell::new(BTreeMap::new()) }
    }

    /// Keeps a file as the trace called `name`, and describes it. Of a file that holds several directions
    /// `direction` is taken, in the words of `trace convert --direction`; where none is given, the one with
    /// the most bytes. `directions` in the answer are those that there are.
    pub fn keep_file(
        &mut self,
        name: String,
        format: Option<&str>,
        direction: Option<&str>,
        file: &[u8],
    ) -> Result<Value, String> {
        if file.len() > LARGEST {
            return Err(format!("the file has {} bytes: at most {LARGEST} are valid here", file.len()));
        }
        let unpacked = gzip::unpacked(file.to_vec(), |_| Bytes(LARGEST as u64));
        let file = unpacked.map_err(|error| error.to_string())?;
        let file = file.as_slice();
        let format = match format {
            Some(format) => Format::from_str(format)?,
            None => Format::detect(file),
        };
        let selections = convert::selections(file, format).map_err(|error| error.to_string())?;
        let selection = match direction {
            Some(direction) => direction.parse()?,
            None => selections.first().map_or(Selection::default(), |(largest, _)| *largest),
        };
        let converted =
            convert::convert(file, format, ConvertOptions { selection, ..ConvertOptions::default() });
        let converted = converted.map_err(|error| error.to_string())?;
        let notes = [converted.notes, converted.warnings].concat();
        self.keep(name.clone(), converted.trace)?;
        let mut shown = self.show(&name)?;
        shown["format"] = json!(format.to_string());
        shown["notes"] = json!(notes);
        if !selections.is_empty() {
            let selections = selections.iter().take(MOST_DIRECTIONS);
            let choice = |(selection, bytes): &(Selection, Bytes)| json!([selection.to_string(), bytes.0]);
            shown["directions"] = selections.map(choice).collect();
            shown["direction"] = json!(selection.to_string());
        }
        Ok(shown)
    }

    /// Keeps what the generator makes of `recipe` as the trace called `name`, and describes it.
    pub fn keep_recipe(&mut self, name: String, recipe: Value) -> Result<Value, String> {
        let recipe: Recipe = serde_json::from_value(recipe).map_err(|error| error.to_string())?;
        recipe.check().map_err(|error| error.to_string())?;
        let rate = match (&recipe.cellular, &recipe.measured) {
            (Some(cellular), _) => cellular.mean.as_bps_f64(),
            (None, Some(measured)) => measured.rates.last().map_or(0.0, |rate| rate.as_bps_f64()),
            (None, None) => recipe.steps.iter().map(|step| step.rate.as_bps_f64()).fold(0.0, f64::max),
        };
        check_size(recipe.duration, rate * recipe.duration.as_secs_f64() / OPPORTUNITY.bits() as f64)?;
        let text = recipe.to_string();
        self.keep(name.clone(), recipe.generate().map_err(|error| error.to_string())?)?;
        let mut shown = self.show(&name)?;
        shown["recipe"] = json!(text);
        Ok(shown)
    }

    fn keep(&mut self, name: String, trace: Trace) -> Result<(), String> {
        if name.is_empty() || name.len() > 100 || name.contains(|c: char| c.is_control() || c == '/') {
            return Err("the name of a trace has 1 to 100 characters, none of them `/`".into());
        }
        if Embedded::find(&name).is_some() {
            return Err(format!("`{name}` is an embedded trace: choose another name"));
        }
        check_size(trace.period(), trace.opportunities() as f64)?;
        if self.own.len() >= MOST_TRACES && !self.own.contains_key(&name) {
            self.own.pop_first();
        }
        self.own.insert(name, trace);
        Ok(())
    }

    /// Returns the trace called `name`.
    pub fn find(&self, name: &str) -> Result<Trace, String> {
        let own = || self.own.get(name).cloned();
        let embedded = || {
            let embedded = Embedded::find(name)?;
            Some(self.made.borrow_mut().entry(embedded.name).or_insert_with(|| embedded.trace()).clone())
        };
        own().or_else(embedded).ok_or_else(|| {
            let known: Vec<&str> =
                EMBEDDED.iter().map(|trace| trace.name).chain(self.own.keys().map(String::as_str)).collect();
            format!("unknown trace `{name}`: the known ones are {}", known.join(", "))
        })
    }

    /// Describes the trace called `name`: its statistics, and its rate over time.
    pub fn show(&self, name: &str) -> Result<Value, String> {
        let trace = self.find(name)?;
        let bin = Duration::from_millis((trace.period().as_nanos() / 1_000_000 / PREVIEW).max(1));
        let statistics = Statistics::of(&trace, OPPORTUNITY);
        Ok(json!({
            "name": name,
            "duration_s": statistics.duration_s,
            "mean_mbps": statistics.mean_mbps,
            "cv_100ms": statistics.variation.cv_100ms,
            "longest_gap_ms": statistics.outages.longest_ms,
            "bin_s": bin.as_secs_f64(),
            "mbps": rates(&trace, bin, OPPORTUNITY),
        }))
    }

    /// Returns the trace called `name` as a Mahimahi file.
    pub fn text(&self, name: &str) -> Result<String, String> {
        Ok(convert::to_mahimahi(&self.find(name)?))
    }

    /// Returns the traces that `scenario` names.
    pub fn traces(&self, scenario: &Scenario) -> Result<Traces, String> {
        let mut traces = Traces::new();
        for link in &scenario.links {
            if let Service::Trace(name) = &link.service
                && !traces.contains_key(name)
            {
                traces.insert(name.clone(), self.find(name)?);
            }
        }
        Ok(traces)
    }

    /// Returns whether there is a trace called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.own.contains_key(name) || Embedded::find(name).is_some()
    }
}

fn check_size(period: Duration, opportunities: f64) -> Result<(), String> {
    if period > LONGEST || opportunities > MOST_OPPORTUNITIES {
        return Err(format!(
            "the trace lasts {period} and carries {opportunities:.0} opportunities: here {LONGEST} and {MOST_OPPORTUNITIES} are the most"
        ));
    }
    Ok(())
}

/// Returns the recipes of the embedded traces, by name.
pub fn recipes() -> Value {
    let recipe = |trace: &Embedded| (trace.name.to_string(), json!(trace.recipe()));
    Value::Object(EMBEDDED.iter().map(recipe).collect())
}

/// Returns the embedded trace that was fitted to the recording of this file name, or the nearest in kind.
pub fn stand_in(recording: &str) -> &'static str {
    let fitted = FITTED.iter().find(|(_, file)| *file == recording).map(|(name, _)| *name);
    let kind = if recording.ends_with(".up") { "fit-verizon-up" } else { "fit-verizon-down" };
    fitted.unwrap_or(kind)
}
