//! Every scenario and experiment that the repository holds survives JSON and TOML.

use std::fs;
use std::path::Path;

use brakelight_scenario::experiment::{self, EMBEDDED, Experiment};
use brakelight_scenario::file;
use brakelight_scenario::scenario::Scenario;

fn survives(scenario: &Scenario, name: &str) {
    let json = serde_json::to_string(scenario).unwrap();
    let read = serde_json::from_str::<Scenario>(&json);
    assert_eq!(read.unwrap_or_else(|error| panic!("{name}: {error}\n{json}")), *scenario, "{name}");
    let text = file::write(scenario);
    let read = file::read(name, &text);
    assert_eq!(read.unwrap_or_else(|error| panic!("{error}\n{text}")), *scenario, "{name}");
}

#[test]
fn the_examples_survive() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut examples = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            survives(&file::read(&path.display().to_string(), &text).unwrap(), &path.display().to_string());
            examples += 1;
        }
    }
    assert!(examples > 1, "{examples}");
}

#[test]
fn the_experiments_and_their_scenarios_survive() {
    for (name, text) in EMBEDDED {
        let read = experiment::read(name, text).unwrap();
        let json = serde_json::to_string(&read).unwrap();
        let again = serde_json::from_str::<Experiment>(&json);
        assert_eq!(again.unwrap_or_else(|error| panic!("{name}: {error}\n{json}")), read, "{name}");
        let toml = toml::to_string(&read).unwrap();
        let again = experiment::read(name, &toml);
        assert_eq!(again.unwrap_or_else(|error| panic!("{error}\n{toml}")), read, "{name}");
        // Seeds differ in nothing else.
        for job in read.jobs.iter().filter(|job| job.scenario.seed == 1) {
            survives(&job.scenario, name);
        }
    }
}
