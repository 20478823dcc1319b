//! The command with this crate's algorithms, run as its users run it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

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
    for (kind, name, option) in [
        ("controllers", "aimd", "increase"),
        ("queues", "ramp", "most"),
        ("elements", "bucket", "burst"),
        ("applications", "sensor", "interval"),
    ] {
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
    let (scheme, utilization, delay) =
        (place("scheme"), place("utilization"), place("queueing_delay_p95_ms"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[scheme].to_string(), cells[utilization].parse().unwrap(), cells[delay].parse().unwrap())
    };
    lines.map(row).collect()
}

#[test]
fn its_controller_and_its_queue_are_compared_with_cubic() {
    let arguments =
        ["compare", "--trace", "lte-walking", "--duration", "20s", "--runs", "1", "--format", "csv"];
    let table = said(&[&arguments[..], &["--schemes", "cubic,aimd,aimd+ramp,aimd:increase=8"]].concat());
    let rows = rows(&table);
    let names: Vec<&str> = rows.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["cubic", "aimd", "aimd+ramp", "aimd:increase=8"]);
    assert!(rows.iter().all(|(_, utilization, _)| (0.2..=1.0).contains(utilization)), "{table}");
    assert!(rows[2].2 < 0.7 * rows[1].2, "the ramp shortens the queue:\n{table}");
}

/// The first number called `key` in a JSON document.
fn number(document: &str, key: &str) -> f64 {
    let (_, rest) =
        document.split_once(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key} in {document}"));
    let end = rest.find([',', '}', '\n']).expect("a document ends");
    rest[..end].trim().parse().unwrap_or_else(|error| panic!("{key}: {error} in {document}"))
}

/// The modelled host, and the real QUIC stack in simulation.
#[test]
fn a_scenario_file_names_all_four() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenario.toml");
    for host in ["quic", "quinn"] {
        let document = said(&["run", scenario.to_str().unwrap(), "--host", host, "--format", "json"]);
        assert!(document.contains("\"aimd"), "{document}");
        // One at the start and one every 50 ms for 10 s; the last ones are on their way.
        let readings = number(&document, "readings");
        assert!((180.0..=201.0).contains(&readings), "{host}: {readings}");
        assert!((20.0..300.0).contains(&number(&document, "age_ms_p95")), "{host}: {document}");
    }
}

#[test]
fn its_controller_sends_over_quic_through_real_sockets() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_out-of-tree"))
        .args(["perf-server", "--listen", "127.0.0.1:0", "--controller", "aimd"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut line = String::new();
    BufReader::new(server.stderr.take().expect("piped")).read_line(&mut line).expect("the server speaks");
    let address = line.strip_prefix("listening on ").and_then(|line| line.split(';').next());
    let address = address.unwrap_or_else(|| panic!("{line}"));
    for direction in ["--upload", "--download"] {
        let client = ["perf", address, "--controller", "aimd:increase=4", "--bytes", "2MB", direction];
        let document = said(&[&client[..], &["--format", "json"]].concat());
        assert!(document.contains("aimd:increase=4"), "{document}");
        assert!(number(&document, "goodput_mbps") > 0.0, "{direction}: {document}");
    }
    server.kill().expect("the server runs");
    server.wait().expect("the server ends");
}

/// Six programs send as much as the link carries, each. A buffer of 1,000 packets holds all of it, so only
/// the ramp drops.
#[test]
fn its_queue_drops_real_packets_on_the_emulator() {
    const WHAT: &str = "a queue from outside on the emulator";
    let doctor = brakelight(&["emulate", "--doctor"]);
    if !doctor.status.success() {
        return brakelight_testkit::skip(WHAT, String::from_utf8_lossy(&doctor.stdout));
    }
    if Command::new("ping").arg("-V").output().is_err() {
        return brakelight_testkit::skip(WHAT, "`ping` is not installed");
    }
    let dropped = |queue: &str| {
        let link = ["emulate", "--up", "1Mbps", "--buffer", "1000pkt", "--queue", queue];
        let pings =
            "for i in 1 2 3 4 5 6; do ping -q -c 50 -i 0.01 -s 1372 -W 1 $BRAKELIGHT_HOST & done; wait";
        let output = brakelight(&[&link[..], &["--", "sh", "-c", pings]].concat());
        let summary = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{summary}");
        // emulated: up 83 packets delivered, 217 dropped; down ...
        let (up, _) = summary.split_once(" dropped").unwrap_or_else(|| panic!("{summary}"));
        up.rsplit(' ')
            .next()
            .and_then(|count| count.parse::<u32>().ok())
            .unwrap_or_else(|| panic!("{summary}"))
    };
    assert_eq!(dropped("droptail"), 0);
    assert!(dropped("ramp:min=0s,max=20ms,most=1") >= 10);
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
