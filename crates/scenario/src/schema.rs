//! JSON Schemas (draft 2020-12) of what goes in and what comes out, made of the types that read and write it.
//!
//! Each has a version, in its `$id`. It goes up when a document that was valid no longer is, or when a value
//! comes to mean something else; new keys that may be left out do not change it. Programs that read results
//! skip keys they do not know.

use brakelight_registry::{Entry, Registry};
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::documents::{Attacked, Runs};
use crate::experiment::ExperimentTable;
use crate::file::tables::ScenarioTable;

/// The version of the scenario's schema.
pub const SCENARIO: u32 = 1;
/// The version of the results' schema.
pub const OUTCOME: u32 = 1;
/// The version of the schema of what an attack found.
pub const ATTACK: u32 = 1;
/// The version of the experiment's schema.
pub const EXPERIMENT: u32 = 1;

/// Returns the schema of a scenario: of a file, of JSON, of a Python dict. Algorithms are those of
/// `registry`.
pub fn scenario(registry: &Registry) -> Value {
    input::<ScenarioTable>("scenario", SCENARIO, registry)
}

/// Returns the schema of an experiment. Algorithms are those of `registry`.
pub fn experiment(registry: &Registry) -> Value {
    input::<ExperimentTable>("experiment", EXPERIMENT, registry)
}

/// Returns the schema of what `compare`, `run` and `perf` print with `--format json`.
pub fn outcome() -> Value {
    output::<Runs>("outcome", OUTCOME)
}

/// Returns the schema of what `attack` prints with `--format json`.
pub fn attack() -> Value {
    output::<Attacked>("attack", ATTACK)
}

fn output<T: JsonSchema>(name: &str, version: u32) -> Value {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    head(&mut schema, name, version);
    schema.into()
}

fn input<T: JsonSchema>(name: &str, version: u32, registry: &Registry) -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(WithoutNull);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    head(&mut schema, name, version);
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        name_algorithms(definitions, "controller", registry.controllers());
        name_algorithms(definitions, "feedback", registry.feedbacks());
        name_algorithms(definitions, "queue", registry.queues());
        name_algorithms(definitions, "radio", registry.radios());
        if let Some(Value::Object(station)) = definitions.get_mut("station") {
            let names: Vec<&str> = registry.elements().map(|entry| entry.name).collect();
            station.insert("examples".to_string(), names.into());
        }
    }
    schema.into()
}

fn head(schema: &mut Schema, name: &str, version: u32) {
    schema.insert("$id".to_string(), format!("urn:brakelight:schema:{name}:{version}").into());
    schema.insert("title".to_string(), format!("Brakelight {name}, version {version}").into());
}

/// Says in the definition of `kind` which algorithms there are.
fn name_algorithms<'a>(
    definitions: &mut Map<String, Value>,
    kind: &str,
    entries: impl Iterator<Item = &'a Entry> + Clone,
) {
    let Some(Value::Object(definition)) = definitions.get_mut(kind) else { return };
    let all = entries.clone().flat_map(|entry| entry.aliases.iter().chain([&entry.name]));
    let mut names: Vec<String> = all.map(|name| name.replace('+', "\\+").replace('.', "\\.")).collect();
    names.sort_unstable();
    definition.insert("pattern".to_string(), format!("^\\s*({})\\s*(:.*)?$", names.join("|")).into());
    let examples: Vec<&str> = entries.map(|entry| entry.name).collect();
    definition.insert("examples".to_string(), examples.into());
}

/// A key may be left out, and then it is not there; that null would be read in the same way need not be said
/// of every key.
#[derive(Clone)]
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".to_string(), only);
            }
        }
        let Some(Value::Array(any)) = schema.get_mut("anyOf") else { return };
        let null = serde_json::json!({"type": "null"});
        any.retain(|schema| *schema != null);
        if let [Value::Object(only)] = any.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                schema.insert(key, value);
            }
        }
    }
}
