//! The schemas hold for what the repository holds, and refuse what the readers refuse.

use std::fs;
use std::path::Path;

use brakelight_registry::Registry;
use brakelight_scenario::experiment::{self, EMBEDDED};
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::schema;
use jsonschema::Validator;
use serde_json::{Value, json};

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{error}\n{schema:#}"))
}

fn scenario() -> Validator {
    validator(&schema::scenario(&Registry::standard()))
}

#[track_caller]
fn holds(validator: &Validator, document: &Value, name: &str) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{document:#}");
}

#[test]
fn the_examples_are_valid() {
    let valid = scenario();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut examples = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            holds(&valid, &toml::from_str(&text).unwrap(), &path.display().to_string());
            examples += 1;
        }
    }
    assert!(examples > 1, "{examples}");
}

#[test]
fn the_experiments_and_their_scenarios_are_valid() {
    let (of_experiment, of_scenario) = (validator(&schema::experiment(&Registry::standard())), scenario());
    for (name, text) in EMBEDDED {
        holds(&of_experiment, &toml::from_str(text).unwrap(), name);
        let read = experiment::read(name, text).unwrap();
        holds(&of_experiment, &serde_json::to_value(&read).unwrap(), name);
        for job in read.jobs.iter().filter(|job| job.scenario.seed == 1) {
            holds(&of_scenario, &serde_json::to_value(&job.scenario).unwrap(), name);
        }
    }
}

#[test]
fn every_kind_of_traffic_is_valid() {
    let valid = scenario();
    for traffic in [
        json!("video"),
        json!({"kind": "backlogged"}),
        json!({"kind": "size", "size": "1MB"}),
        json!({"kind": "on-off", "on": "1s", "off": "2s", "random": true}),
        json!({"kind": "short-flows", "per_second": 5, "size": "30kB", "pareto_shape": 1.5}),
        json!({"kind": "rate-limited", "rate": "1Mbps"}),
        json!({"kind": "phases", "phases": [["5s", "200kbps"], ["1s", "idle"], ["5s", "backlogged"]]}),
        json!({"kind": "request-response", "request": "1kB", "response": "1MB"}),
        json!({"kind": "game"}),
        json!({"kind": "video", "ladder": ["1Mbps", "2Mbps"]}),
        json!({"kind": "call", "fps": 60}),
    ] {
        let mut document = least();
        document["flow"][0]["traffic"] = traffic;
        holds(&valid, &document, "traffic");
        serde_json::from_value::<Scenario>(document).unwrap();
    }
}

fn least() -> Value {
    json!({
        "link": [{"name": "up", "rate": "12Mbps"}],
        "flow": [{"controller": "cubic:beta=0.8", "path": ["up", "loss:rate=0.01"]}],
    })
}

#[test]
fn what_the_reader_refuses_is_invalid() {
    let valid = scenario();
    holds(&valid, &least(), "the least");
    let changes: [&dyn Fn(&mut Value); 12] = [
        &|json| json["links"] = json!([]),
        &|json| json["link"][0]["rate"] = json!("12"),
        &|json| json["link"][0]["rate"] = json!(12),
        &|json| json["link"][0]["trace"] = json!("lte-driving"),
        &|json| json["link"][0]["queue"] = json!("droptale"),
        &|json| json["flow"][0]["controller"] = json!("cubik"),
        &|json| json["flow"][0]["count"] = json!(-1),
        &|json| json["flow"][0]["host"] = json!("sctp"),
        &|json| json["flow"][0]["traffic"] = json!({"kind": "size", "rate": "1Mbps"}),
        &|json| json["flow"][0]["rtt"] = json!("100"),
        &|json| drop(json["flow"][0].as_object_mut().unwrap().remove("path")),
        &|json| drop(json.as_object_mut().unwrap().remove("flow")),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut document = least();
        change(&mut document);
        assert!(!valid.is_valid(&document), "change {index}: {document}");
        let read = serde_json::from_value::<Scenario>(document);
        assert!(read.is_err(), "change {index}");
    }
}

#[test]
fn the_defaults_that_the_schema_states_are_the_readers() {
    let schema = schema::scenario(&Registry::standard());
    let plain = read(least());
    let mut stated = 0;
    let definitions = [
        (&schema["properties"], ""),
        (&schema["$defs"]["LinkTable"]["properties"], "link"),
        (&schema["$defs"]["FlowTable"]["properties"], "flow"),
    ];
    for (properties, list) in definitions {
        for (key, property) in properties.as_object().unwrap() {
            let Some(default) = property.get("default") else { continue };
            let mut document = least();
            match list {
                "" => document[key] = default.clone(),
                list => document[list][0][key] = default.clone(),
            }
            assert_eq!(read(document), plain, "{list} {key}");
            stated += 1;
        }
    }
    assert!(stated > 15, "{stated}");
}

fn read(document: Value) -> Scenario {
    serde_json::from_value(document).unwrap()
}

#[test]
fn names_come_from_the_registry_and_ids_have_a_version() {
    let registry = Registry::standard();
    let schema = schema::scenario(&registry);
    assert_eq!(schema["$id"], "urn:brakelight:schema:scenario:1");
    for (kind, count) in
        [("controller", registry.controllers().count()), ("queue", registry.queues().count())]
    {
        assert_eq!(schema["$defs"][kind]["examples"].as_array().unwrap().len(), count, "{kind}");
    }
    assert_eq!(schema::outcome()["$id"], "urn:brakelight:schema:outcome:1");
    assert_eq!(schema::experiment(&registry)["$id"], "urn:brakelight:schema:experiment:1");
    assert_eq!(schema::attack()["$id"], "urn:brakelight:schema:attack:1");
    // Aliases and names with signs in them.
    let valid = scenario();
    for controller in ["reno", "westwood+", "cubic : beta=0.7"] {
        let mut document = least();
        document["flow"][0]["controller"] = json!(controller);
        holds(&valid, &document, controller);
    }
}
