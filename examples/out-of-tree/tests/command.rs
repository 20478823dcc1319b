//! The command with this crate's algorithms, run as its users run it.

use std::path::Path;
use std::process::{Command, Output};

fn brakelight(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_out-of-tree"));
    command.args(arguments).output().expect("the command starts")
}

fn said(arguments: &[&str]) -> String {
    let output = brakelight(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn refused(arguments: &[&str]) -> String {
    let output = brakelight(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn its_algorithms_are_listed_with_their_options() {
    for (kind, name, option) in
        [("controllers", "aimd", "increase"), ("queues", "ramp", "most"), ("elements", "policer", "burst")]
    {
        let list = said(&["list", kind, "--format", "csv"]);
        for line in [format!("{name},,"), format!("{name},{option},")] {
            assert!(list.lines().any(|row| row.starts_with(&line)), "{line} in\n{list}");
        }
    }
    assert!(said(&["list", "schemes", "--format", "csv"]).lines().any(|row| row.starts_with("aimd,")));
}

/// Rows of a table as CSV, by the column `scheme`.
fn rows(table: &str) -> Vec<(String, f64, f64)> {
    let mut lines = table.lines();
    let heading: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let place = |name: &str| {
        heading.iter().position(|column| *column == name).unwrap_or_else(|| panic!("{name} in {heading:?}"))
    };
    let (scheme, utilization, delay) = (place("scheme"), place("utilization"), place("queueing_delay_p95_ms"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[scheme].to_string(), cells[utilization].parse().unwrap(), cells[delay].parse().unwrap())
    };
    lines.map(row).collect()
}

#[test]
fn its_controller_and_its_queue_are_compared_with_cubic() {
    let arguments = ["compare", "--trace", "lte-walking", "--duration", "20s", "--runs", "1", "--format", "csv"];
    let table = said(&[&arguments[..], &["--schemes", "cubic,aimd,aimd+ramp,aimd:increase=8"]].concat());
    let rows = rows(&table);
    let names: Vec<&str> = rows.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["cubic", "aimd", "aimd+ramp", "aimd:increase=8"]);
    assert!(rows.iter().all(|(_, utilization, _)| (0.2..=1.0).contains(utilization)), "{table}");
    assert!(rows[2].2 < 0.7 * rows[1].2, "the ramp shortens the queue:\n{table}");
}

#[test]
fn a_scenario_file_names_all_three() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenario.toml");
    let document = said(&["run", scenario.to_str().unwrap(), "--format", "json"]);
    assert!(document.contains("aimd"), "{document}");
}

#[test]
fn what_it_refuses_it_refuses_in_words() {
    let message = refused(&["compare", "--schemes", "aimd:decrease=2"]);
    assert!(message.contains("decrease = `2` is out of range: valid is 0.1 to 0.95"), "{message}");
    let message = refused(&["compare", "--schemes", "aimd+ramp:min=1s"]);
    assert!(message.contains("min = `1s` is not less than max = `50ms`"), "{message}");
    let message = refused(&["compare", "--schemes", "aimdd"]);
    assert!(message.contains("unknown controller `aimdd`") && message.contains("aimd"), "{message}");
}
