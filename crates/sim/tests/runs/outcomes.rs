//! What comes out of runs, as data: valid by its schema, read back as it was, known by its identity.

use std::collections::BTreeMap;

use brakelight_scenario::decision::{Candidate, Choice, Decision};
use brakelight_scenario::deployment::Change;
use brakelight_scenario::documents::{Origin, Runs};
use brakelight_scenario::file::read;
use brakelight_scenario::identity::{MODELLED, RunId};
use brakelight_scenario::outcome::{Outcome, Ratio, Run};
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::schema;
use serde_json::Value;

const TEXT: &str = r#"
duration = "3s"
record = { series = true, link_logs = true, state = true, unfairness = "1s" }
[[link]]
name = "cell"
steps = [["500ms", "12Mbps"], ["500ms", "2Mbps"]]
queue = "abc"
[[link]]
name = "wire"
rate = "20Mbps"
[[flow]]
name = "main"
controller = "abc"
path = ["cell", "loss:rate=0.001"]
reverse = ["wire"]
[[flow]]
name = "film"
controller = "bbr"
path = ["wire"]
traffic = "video"
[[flow]]
name = "pages"
controller = "cubic"
path = ["wire"]
traffic = { kind = "short-flows", per_second = 5, size = "30kB" }
"#;

fn scenario() -> Scenario {
    read("outcomes.toml", TEXT).unwrap()
}

fn run(scenario: &Scenario) -> Outcome {
    brakelight_sim::run(scenario, &BTreeMap::new()).unwrap()
}

/// The schema with every object closed: a key that the schema does not know is a mistake here, though readers
/// skip it.
fn closed(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                map.insert("additionalProperties".to_string(), false.into());
            }
            map.values_mut().for_each(closed);
        }
        Value::Array(list) => list.iter_mut().for_each(closed),
        _ => {}
    }
}

#[test]
fn outcomes_are_valid_by_the_schema() {
    let mut strict = schema::outcome();
    closed(&mut strict);
    let validators = [schema::outcome(), strict].map(|schema| jsonschema::validator_for(&schema).unwrap());
    let first = run(&scenario()).run;
    let second = run(&Scenario { seed: 2, ..scenario() }).run;
    let median = Run::median(&[first.clone(), second.clone()]).unwrap();
    let ratio = Some(Ratio { value: 1.5, interval95: Some([1.25, 1.75]) });
    let choice = Choice {
        change: Change::Senders,
        best: Candidate { scheme: "copa".into(), link_rate: false },
        next: Some(Candidate { scheme: "bbr3".into(), link_rate: false }),
        ahead: ratio,
        significant: Some(true),
        throughput: ratio,
        p95: ratio,
    };
    let document = Runs {
        origin: Origin::default(),
        runs: vec![first.clone(), median],
        every_run: vec![first, second],
        decision: Some(Decision {
            today: Some("cubic".into()),
            against: Some("bbr3".into()),
            choices: vec![choice, Choice::default()],
        }),
    };
    let document = serde_json::to_value(document).unwrap();
    for validator in &validators {
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
    }
    let mut lacking = document;
    lacking["runs"][0].as_object_mut().unwrap().remove("utilization");
    assert!(!validators[0].is_valid(&lacking));
}

#[test]
fn no_flow_carries_more_than_its_link_could_at_any_time() {
    let text = "duration = \"5s\"\nrecord = { series = true, bin = \"100ms\" }\n\
        [[link]]\nname = \"cell\"\nsteps = [[\"500ms\", \"12Mbps\"], [\"500ms\", \"1Mbps\"]]\n\
        [[flow]]\nname = \"main\"\ncontroller = \"cubic\"\npath = [\"cell\"]\nrtt = \"120ms\"\n";
    let series = run(&read("line.toml", text).unwrap()).series.unwrap();
    let (link, flow) = (&series.links[0], &series.flows[0]);
    // A packet that began to leave before a bin may end in it.
    let packet = 1500.0 * 8.0 / 0.1e6;
    for (bin, (could, did)) in link.capacity_mbps.iter().zip(&flow.throughput_mbps).enumerate() {
        assert!(*did <= could + packet, "bin {bin}: {did} of {could} Mbit/s");
    }
}

#[test]
fn an_outcome_reads_back_as_it_was() {
    let outcome = run(&scenario());
    assert!(outcome.series.is_some() && outcome.link_logs.iter().any(|log| !log.events.is_empty()));
    let text = serde_json::to_string(&outcome).unwrap();
    let again: Outcome = serde_json::from_str(&text).unwrap();
    // Not a number is null, and null is not a number again, which does not equal itself.
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert_eq!(again.link_logs, outcome.link_logs);
    assert_eq!(again.run.throughput_mbps, outcome.run.throughput_mbps);
}

#[test]
fn readers_skip_keys_they_do_not_know_and_fill_in_those_that_are_not_there() {
    let mut row = serde_json::to_value(run(&scenario()).run).unwrap();
    row["of_a_later_version"] = 1.into();
    row["flows"][0]["of_a_later_version"] = "x".into();
    row.as_object_mut().unwrap().remove("marks");
    row["links"][0].as_object_mut().unwrap().remove("utilization");
    let read: Run = serde_json::from_value(row).unwrap();
    assert_eq!((read.marks, read.links[0].utilization), (Default::default(), 0.0));
    assert!(read.throughput_mbps > 1.0);
}

#[test]
fn a_row_has_the_identity_of_its_run_and_medians_that_of_their_set() {
    let none = BTreeMap::new();
    let (one, two) = (scenario(), Scenario { seed: 2, ..scenario() });
    let runs = [run(&one).run, run(&two).run];
    let ids = [&one, &two].map(|scenario| Some(RunId::of(scenario, &none, MODELLED)));
    assert_eq!([runs[0].run_id, runs[1].run_id], ids);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(Run::median(&runs).unwrap().run_id, RunId::of_set(ids));
    assert_eq!(Run::median(&runs[..1]).unwrap().run_id, ids[0]);
}

#[test]
fn goodput_and_throughput_are_over_the_same_time() {
    // Flows that begin before the measured interval or in it, and end in it or later. Nothing is lost: a
    // packet of 1,500 bytes has 1,448 of payload.
    for (start, stop) in [("0s", "5s"), ("1s", "5s"), ("0s", "2s"), ("1500ms", "3100ms")] {
        let text = format!(
            "duration = \"5s\"\nmeasure_from = \"700ms\"\n[[link]]\nname = \"wire\"\nrate = \"12Mbps\"\nbuffer = \"9000pkt\"\n\
             [[flow]]\nname = \"main\"\ncontroller = \"vegas\"\npath = [\"wire\"]\nrtt = \"20ms\"\n\
             start = \"{start}\"\nstop = \"{stop}\"\n"
        );
        let run = run(&read("window.toml", &text).unwrap()).run;
        let flow = &run.flows[0];
        assert!(flow.throughput_mbps > 8.0, "{flow:?}");
        for (goodput, throughput) in
            [(flow.goodput_mbps, flow.throughput_mbps), (run.goodput_mbps, run.throughput_mbps)]
        {
            let share = goodput / throughput;
            // What is between link and receiver at the end: 10 ms of the 1.3 s and more of a flow.
            assert!((share - 1448.0 / 1500.0).abs() < 0.01 / 1.3, "{start} to {stop}: {share}");
        }
    }
}
