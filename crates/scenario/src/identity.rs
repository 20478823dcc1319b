//! The identity of a run: a hash of everything that decides what comes out of it, and of nothing else.
//!
//! The hash is the first 16 bytes of SHA-256 (FIPS 180-4), in hexadecimal, over a JSON text without white
//! space whose keys are sorted and whose numbers and strings are as `serde_json` writes them:
//!
//! ```json
//! {"host": "modelled", "scenario": {...}, "schema": 1, "traces": {"lte-driving": "9f2c..."}}
//! ```
//!
//! - `scenario`: the scenario in the words of its file, every default written out, quantities in their
//!   canonical units, the options of every algorithm sorted, all of them there. Its name is not there, nor
//!   which series and logs are kept: they decide nothing.
//! - `traces`: for every trace it uses SHA-256 over its delivery opportunities: each as its millisecond, 64
//!   bits, little endian; the period in nanoseconds last. Where opportunities lie between milliseconds, all
//!   of them follow in microseconds with their counts, and then what was recorded of delay and loss, and of
//!   light trains.
//! - `host`: what ran the flows: `modelled`, or the stack.
//! - `schema`: the version of the results ([`schema::OUTCOME`](crate::schema)).
//!
//! So two spellings of a scenario have one identity, and runs that differ in anything have two.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use brakelight_core::packet::Direction;
use brakelight_core::time::Duration;
use brakelight_links::replay::Conditions;
use brakelight_links::trace::Trace;
use brakelight_links::trains::Trains;
use brakelight_traces::checksum::hexadecimal;
pub use brakelight_traces::checksum::sha256;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::file::canonical_table;
use crate::scenario::{Scenario, Service};
use crate::schema;

/// The modelled host, as the identity of its runs names it.
pub const MODELLED: &str = "modelled";

/// The identity of a run, or of several as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; 16]);

impl RunId {
    /// Returns the identity of a run of `scenario` from its beginning to its end, its flows run by `host`. A
    /// trace that is not in `traces` counts as an empty one.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use brakelight_scenario::{file, identity::{MODELLED, RunId}};
    ///
    /// let text = "[[link]]\nname = \"up\"\nrate = \"12Mbps\"\n\
    ///     [[flow]]\ncontroller = \"cubic\"\npath = [\"up\"]\n";
    /// let other = "[[link]]\nname = \"up\"\nrate = \"12000kbps\"\n\
    ///     [[flow]]\ncontroller = \"cubic:beta=0.70\"\npath = [\"up\"]\nrtt = \"0.1s\"\n";
    /// let id = |text| RunId::of(&file::read("x.toml", text).unwrap(), &BTreeMap::new(), MODELLED);
    /// assert_eq!(id(text), id(other));
    /// assert_eq!(id(text).to_string().len(), 32);
    /// ```
    pub fn of(scenario: &Scenario, traces: &BTreeMap<String, Trace>, host: &str) -> Self {
        let digest = |name: &str| traces.get(name).map_or_else(String::new, digest);
        let mut used = serde_json::Map::new();
        for link in &scenario.links {
            if let Service::Trace(name) = &link.service {
                used.insert(name.clone(), Value::from(digest(name)));
            }
        }
        let run = serde_json::json!({
            "host": host,
            "scenario": table(scenario),
            "schema": schema::OUTCOME,
            "traces": used,
        });
        RunId::hash(&sorted(&run))
    }

    /// Returns the identity of several runs together, in this order; none if one of them has none.
    pub fn of_set(runs: impl IntoIterator<Item = Option<RunId>>) -> Option<Self> {
        let ids: Option<Vec<String>> = runs.into_iter().map(|id| Some(id?.to_string())).collect();
        Some(RunId::hash(&sorted(&Value::from(ids?))))
    }

    fn hash(text: &str) -> Self {
        let digest = Sha256::digest(text);
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        RunId(id)
    }
}

/// Returns what decides a run of `scenario`, but for what its traces hold: equal for two scenarios if and
/// only if their runs are equal.
pub fn canonical(scenario: &Scenario) -> String {
    sorted(&table(scenario))
}

fn table(scenario: &Scenario) -> Value {
    serde_json::to_value(canonical_table(scenario)).expect("a scenario's keys are strings")
}

/// The text of `value` without white space, keys sorted whatever order the map keeps them in.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<&String, String> =
                map.iter().map(|(key, value)| (key, sorted(value))).collect();
            let entries = map.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(sorted).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

/// What a trace holds, as a hash in hexadecimal. A sweep asks for that of the same trace thousands of times.
fn digest(trace: &Trace) -> String {
    let digest = trace.digest(|trace| {
        let mut hash = Sha256::new();
        for ms in trace.millis() {
            hash.update(ms.to_le_bytes());
        }
        hash.update(trace.period().as_nanos().to_le_bytes());
        if trace.tick() < Duration::from_millis(1) {
            for (micros, count) in trace.micros() {
                hash.update(micros.to_le_bytes());
                hash.update(count.to_le_bytes());
            }
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            let conditions = trace.recorded().and_then(|recorded| recorded.conditions(direction));
            if let Some(conditions) = conditions {
                update_with(&mut hash, direction, conditions);
            }
        }
        if let Some(trains) = trace.recorded().and_then(|recorded| recorded.trains.as_ref()) {
            update_with_trains(&mut hash, trains);
        }
        hash.finalize().into()
    });
    hexadecimal(&digest)
}

/// Adds what was recorded of the path in one direction.
fn update_with(hash: &mut Sha256, direction: Direction, conditions: &Conditions) {
    hash.update([match direction {
        Direction::Forward => b'f',
        Direction::Reverse => b'r',
    }]);
    for (from, delay) in conditions.delays() {
        hash.update(from.as_nanos().to_le_bytes());
        hash.update(delay.as_nanos().to_le_bytes());
    }
    hash.update([b'l']);
    for (from, loss) in conditions.losses() {
        hash.update(from.as_nanos().to_le_bytes());
        hash.update(loss.to_le_bytes());
    }
    hash.update([u8::from(conditions.reorders())]);
}

/// Adds light trains.
fn update_with_trains(hash: &mut Sha256, trains: &Trains) {
    hash.update([b't']);
    hash.update(trains.opportunity().0.to_le_bytes());
    hash.update(trains.idle().as_nanos().to_le_bytes());
    for train in trains.trains() {
        hash.update(train.at.as_nanos().to_le_bytes());
        hash.update(train.delay.as_nanos().to_le_bytes());
        hash.update((train.opportunities.len() as u64).to_le_bytes());
        for opportunity in &train.opportunities {
            hash.update(opportunity.as_nanos().to_le_bytes());
        }
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

/// A text is not the identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the identity of a run: valid are 32 hexadecimal digits")]
pub struct RunIdError(String);

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let refuse = || RunIdError(text.chars().take(60).collect());
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let digits: Vec<u32> = text.as_bytes().iter().map(digit).collect::<Option<_>>().ok_or_else(refuse)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |sum, digit| sum * 16 + *digit as u8)).collect();
        if digits.len() != 32 {
            return Err(refuse());
        }
        bytes.try_into().map(RunId).map_err(|_| refuse())
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for RunId {
    fn schema_name() -> Cow<'static, str> {
        "run_id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{32}$"})
    }
}

#[cfg(test)]
mod tests;
