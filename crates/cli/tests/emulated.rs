//! Scenarios on the emulator: short runs by kernel TCP and by QUIC. They need iperf3 and a machine that lets a user make namespaces
//! and TUN devices; where something is missing, what was not run is said.

mod support;

use std::process::Command;

use brakelight_scenario::link_log;
use brakelight_scenario::outcome::LinkEvent;
use serde_json::Value;
use support::{Scratch, ok, text};

const SCENARIO: &str = "name = \"two flows\"\nduration = \"2s\"\nmeasure_from = \"500ms\"\n\n\
    [[link]]\nname = \"forward\"\nrate = \"8Mbps\"\nbuffer = \"40pkt\"\nqueue = \"codel\"\n\n\
    [[link]]\nname = \"reverse\"\nrate = \"8Mbps\"\nbuffer = \"100pkt\"\n\n\
    [[flow]]\nname = \"one\"\ncontroller = \"cubic\"\nrtt = \"20ms\"\npath = [\"forward\"]\nreverse = [\"reverse\"]\n\n\
    [[flow]]\nname = \"other\"\ncontroller = \"newreno\"\nrtt = \"20ms\"\npath = [\"forward\"]\nreverse = [\"reverse\"]\n";

/// Whether the machine can run hosts behind an emulated link; says what it lacks.
fn can_run(scratch: &Scratch, what: &str) -> bool {
    if Command::new("iperf3").arg("--version").output().is_err() {
        eprintln!("not run: {what}: iperf3 is not installed");
        return false;
    }
    can_emulate(scratch, what)
}

/// Whether the machine can emulate a link; says what it lacks.
fn can_emulate(scratch: &Scratch, what: &str) -> bool {
    let tried = scratch.brakelight(&["emulate", "--", "true"]);
    if !tried.status.success() {
        eprintln!("not run: {what}: no emulator here: {}", text(&tried.stderr).trim());
    }
    tried.status.success()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn a_scenario_by_kernel_tcp_gives_the_document_of_a_simulation_and_a_log_that_agrees() {
    let scratch = Scratch::new("emulated-run");
    if !can_run(&scratch, "a scenario by kernel TCP") {
        return;
    }
    scratch.write("two.toml", SCENARIO);
    let line = "run two.toml --on emulator --format json --out out --link-logs --series csv";
    let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
    let document: Value = serde_json::from_str(&ok(&output)).unwrap();
    let row = &document["runs"][0];
    assert_eq!((&row["scheme"], &row["trace"]), (&"two flows".into(), &"8Mbps".into()));
    assert!((number(row, "/capacity_mbps") - 8.0).abs() < 0.05, "{row}");
    let utilization = number(row, "/utilization");
    assert!((0.01..=1.0).contains(&utilization), "{row}");
    assert!(number(row, "/queueing_delay_ms/p95") > 0.0 && number(row, "/lateness_ms/p99") >= 0.0, "{row}");
    assert!(number(row, "/duration_s") >= 1.5, "{row}");
    let flows = row["flows"].as_array().unwrap();
    let names: Vec<_> =
        flows.iter().map(|flow| (flow["name"].as_str(), flow["controller"].as_str())).collect();
    assert_eq!(names, [(Some("one"), Some("cubic")), (Some("other"), Some("newreno"))]);
    for flow in flows {
        assert!(number(flow, "/goodput_mbps") > 0.0, "{flow}");
        assert!(number(flow, "/throughput_mbps") > number(flow, "/goodput_mbps") * 0.5, "{flow}");
        assert!(number(flow, "/rtt_ms/p50") >= 20.0, "{flow}");
    }
    if row["unreliable"] == true {
        assert!(text(&output.stderr).contains("unreliable: "), "{}", text(&output.stderr));
        assert!(!row["unreliable_because"].as_array().unwrap().is_empty());
    }

    // The log, by our own parser: of the whole run, of which the row measures all but the first half second.
    let files = scratch.list();
    let read = |name: &str| std::fs::read_to_string(scratch.path(&format!("out/{name}"))).unwrap();
    let log = link_log::parse(&read("links/two-flows.8Mbps.forward.log")).unwrap();
    let count = |which: fn(&LinkEvent) -> bool| log.events.iter().filter(|event| which(event)).count() as i64;
    let arrived = count(|event| matches!(event, LinkEvent::Arrival { .. }));
    let departed = count(|event| matches!(event, LinkEvent::Departure { .. }));
    let dropped = count(|event| matches!(event, LinkEvent::Drop { .. }));
    let inside = arrived - departed - dropped;
    assert!((0..=40).contains(&inside), "{arrived} came, {departed} left, {dropped} were dropped");
    let late =
        log.events.iter().filter(|event| matches!(event, LinkEvent::Drop { ms, .. } if *ms >= 500)).count();
    assert_eq!(row["links"][0]["dropped_packets"], late);
    assert!(files.contains(&"out/report.html".to_string()), "{files:?}");
    let series = read("series/two-flows.8Mbps.flow-one.csv");
    assert!(series.lines().count() > 10, "{series}");
    assert!(!files.iter().any(|name| name.contains("partial")), "{files:?}");
}

#[test]
fn parity_judges_a_scenario_by_the_table_and_says_so_by_its_exit_code() {
    let scratch = Scratch::new("emulated-parity");
    if !can_run(&scratch, "parity of a scenario") {
        return;
    }
    // Nothing but the queue's delay can differ by much: one second of one flow.
    let one = SCENARIO.split("[[flow]]\nname = \"other\"").next().unwrap();
    scratch.write("one.toml", one);
    let output = scratch.brakelight(&["parity", "one.toml", "--format", "json", "--out", "out"]);
    let document: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let row = &document["rows"][0];
    let cells = row["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    assert_eq!(number(row, "/simulator/runs"), 10.0);
    assert_eq!(number(&cells[0], "/tolerance_percent"), 8.0, "cubic at CoDel");
    let within = cells.iter().all(|cell| number(cell, "/off_percent") <= number(cell, "/tolerance_percent"));
    assert_eq!(row["verdict"], if within { "within" } else { "outside" });
    assert_eq!(output.status.code(), Some(if within { 0 } else { 1 }), "{}", text(&output.stderr));
    assert!(scratch.list().contains(&"out/parity.json".to_string()));
}

/// The scenario, measured from its beginning.
fn whole(scenario: &str) -> String {
    scenario.replace("measure_from = \"500ms\"\n", "")
}

#[test]
fn abc_by_quic_gives_the_document_of_a_simulation_with_the_marks_that_its_packets_carried() {
    let scratch = Scratch::new("emulated-quic");
    if !can_emulate(&scratch, "a scenario by QUIC") {
        return;
    }
    let abc = SCENARIO.replace("queue = \"codel\"", "queue = \"abc\"");
    let abc = abc.replace("\"cubic\"", "\"abc\"").replace("\"newreno\"", "\"abc:second_window=false\"");
    let line = "run two.toml --on emulator --host quinn --format json";
    // What `perf` says is of whole flows.
    scratch.write("two.toml", &abc);
    let refused = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("measure_from"), "{}", text(&refused.stderr));
    scratch.write("two.toml", whole(&abc));
    let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
    let document: Value = serde_json::from_str(&ok(&output)).unwrap();
    let row = &document["runs"][0];
    let flows = row["flows"].as_array().unwrap();
    let names: Vec<_> =
        flows.iter().map(|flow| (flow["name"].as_str(), flow["controller"].as_str())).collect();
    assert_eq!(names, [(Some("one"), Some("abc")), (Some("other"), Some("abc"))]);
    for flow in flows {
        assert!(number(flow, "/goodput_mbps") > 0.0, "{flow}");
        assert!(number(flow, "/throughput_mbps") > 0.0, "{flow}");
        assert!(number(flow, "/rtt_ms/p50") >= 20.0, "{flow}");
        assert!(number(flow, "/application/ended_s") > number(flow, "/application/started_s"), "{flow}");
    }
    // A router of ABC turns accelerates into brakes, and marks no CE.
    let (accelerates, brakes) = (number(row, "/marks/accelerate"), number(row, "/marks/brake"));
    assert!(accelerates > 100.0 && brakes > 100.0, "{row}");
    assert_eq!(number(row, "/marks/ce"), 0.0);
}

#[test]
fn parity_of_quic_holds_the_stack_and_its_model_against_the_emulator() {
    let scratch = Scratch::new("emulated-quic-parity");
    if !can_emulate(&scratch, "parity of QUIC") {
        return;
    }
    let one = SCENARIO.split("[[flow]]\nname = \"other\"").next().unwrap();
    scratch.write("one.toml", whole(one));
    let line = "parity one.toml --host quinn --format json --out out";
    let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
    let document: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let row = &document["rows"][0];
    let cells = row["cells"].as_array().unwrap();
    let sides: Vec<_> = cells.iter().map(|cell| (cell["of"].as_str(), cell["name"].as_str())).collect();
    let expected = [
        (Some("simulator"), Some("throughput_mbps")),
        (Some("simulator"), Some("p95_ms")),
        (Some("modelled"), Some("throughput_mbps")),
        (Some("modelled"), Some("p95_ms")),
    ];
    assert_eq!(sides, expected);
    assert_eq!(
        (number(&cells[0], "/tolerance_percent"), number(&cells[1], "/tolerance_percent")),
        (10.0, 30.0)
    );
    assert_eq!((number(row, "/simulator/runs"), number(row, "/modelled/runs")), (10.0, 10.0));
    assert!(number(row, "/modelled/throughput_mbps") > 0.0, "{row}");
    let within = cells.iter().all(|cell| number(cell, "/off_percent") <= number(cell, "/tolerance_percent"));
    assert_eq!(row["verdict"], if within { "within" } else { "outside" });
    assert_eq!(output.status.code(), Some(if within { 0 } else { 1 }), "{}", text(&output.stderr));
    assert!(scratch.list().contains(&"out/report.html".to_string()));
}
