//! qlog of the early drafts: an event is a list of values, and `event_fields` names them.
//!
//! ```text
//! "event_fields": ["relative_time", "category", "event", "data"],
//! "configuration": {"time_units": "us"},
//! "events": [[2000, "transport", "packet_received", {...}], ...]
//! ```
//!
//! draft-marx-qlog-main-schema-00 and -01, 3.3.4 "Field names": `time` counts from the epoch, `relative_time`
//! from `reference_time`, `delta_time` from the event before. Implementations have the names in small letters
//! and in capitals, `event` and `event_type`. `time_units` is `ms` (the default) or `us`.

use serde_json::{Map, Value, json};

use super::{ConvertError, refuse_json};

/// Where an event of a trace has its time, category, name and data.
pub(super) struct Fields {
    time: usize,
    category: Option<usize>,
    event: usize,
    data: usize,
    /// Its times count from the event before.
    pub(super) relative: bool,
}

impl Fields {
    /// Returns the fields of a trace, or `None` if its events are objects.
    pub(super) fn of(trace: &Value, place: &str) -> Result<Option<Self>, ConvertError> {
        let Some(fields) = trace.get("event_fields") else { return Ok(None) };
        let place = format!("{place}.event_fields");
        let names = fields.as_array();
        let names =
            names.ok_or_else(|| refuse_json(place.clone(), "expected the names of an event's fields"))?;
        let find = |known: &[&str]| {
            names.iter().position(|name| {
                name.as_str().is_some_and(|name| known.iter().any(|known| name.eq_ignore_ascii_case(known)))
            })
        };
        let absolute = find(&["time", "relative_time"]);
        let (Some(time), Some(event), Some(data)) =
            (absolute.or(find(&["delta_time"])), find(&["event", "event_type", "name"]), find(&["data"]))
        else {
            let problem = "expected a time (`time`, `relative_time` or `delta_time`), `event` and `data`";
            return Err(refuse_json(place, problem));
        };
        Ok(Some(Fields { time, category: find(&["category"]), event, data, relative: absolute.is_none() }))
    }

    /// Returns an event in the form of later drafts.
    pub(super) fn event(&self, values: &Value) -> Value {
        let value = |index: usize| values.get(index).cloned().unwrap_or(Value::Null);
        let word = |index: usize| value(index).as_str().unwrap_or_default().to_ascii_lowercase();
        let category = self.category.map_or_else(|| "transport".to_string(), word);
        let mut event = Map::new();
        event.insert("time".to_string(), value(self.time));
        event.insert("name".to_string(), json!(format!("{category}:{}", word(self.event))));
        event.insert("data".to_string(), value(self.data));
        Value::Object(event)
    }
}

/// Milliseconds in one of the unit of a trace's times.
pub(super) fn time_unit(trace: &Value, place: &str) -> Result<f64, ConvertError> {
    match trace.pointer("/configuration/time_units") {
        None => Ok(1.0),
        Some(unit) => match unit.as_str() {
            Some("ms") => Ok(1.0),
            Some("us") => Ok(1e-3),
            _ => Err(refuse_json(
                format!("{place}.configuration.time_units"),
                format!("{unit} is not a unit of times: valid are `ms` and `us`"),
            )),
        },
    }
}
