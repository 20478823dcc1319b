//! `run --qlog`: files that keep to the drafts, say what the run says, and can be read back.
//!
//! The rules below are those of draft-ietf-quic-qlog-main-schema-14 and draft-ietf-quic-qlog-quic-events-14,
//! of which each check names the definition.

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::{Scratch, ok, text};

const SCENARIO: &str = "name = \"lossy\"\nduration = \"4s\"\n\n\
    [[link]]\nname = \"link\"\nrate = \"8Mbps\"\nbuffer = \"20pkt\"\n\n\
    [[flow]]\nname = \"main\"\ncontroller = \"CONTROLLER\"\nhost = \"quic\"\nrtt = \"40ms\"\npath = [\"link\"]\n";

/// The header and the events of a file.
fn records(bytes: &[u8]) -> (Value, Vec<Value>) {
    assert_eq!(bytes.first(), Some(&0x1e), "RFC 7464: every text begins with a record separator");
    let mut records = bytes.split(|byte| *byte == 0x1e).skip(1).map(|record| {
        assert_eq!(record.last(), Some(&b'\n'), "RFC 7464: and ends with a line feed");
        serde_json::from_slice::<Value>(record).unwrap()
    });
    let header = records.next().unwrap();
    (header, records.collect())
}

/// The keys of an object, sorted.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn check_header(bytes: &[u8], header: &Value, vantage_point: &str) {
    // main-schema, LogFile: both fields within the first 256 bytes.
    let start = String::from_utf8_lossy(&bytes[..256]).into_owned();
    assert!(start.contains("urn:ietf:params:qlog:file:sequential"), "{start}");
    assert!(start.contains("application/qlog+json-seq"), "{start}");
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    // QlogFileSeq, TraceSeq: no other keys.
    let allowed = ["description", "file_schema", "serialization_format", "title", "trace"];
    assert!(keys(header).iter().all(|key| allowed.contains(key)), "{header}");
    let trace = &header["trace"];
    let allowed = ["common_fields", "description", "event_schemas", "title", "vantage_point"];
    assert!(keys(trace).iter().all(|key| allowed.contains(key)), "{trace}");
    // quic-events, "Draft Event Schema Identification": the number of the draft.
    assert_eq!(trace["event_schemas"], serde_json::json!(["urn:ietf:params:qlog:events:quic-14"]));
    assert_eq!(trace["vantage_point"]["type"], vantage_point);
    let common = &trace["common_fields"];
    assert_eq!(common["time_format"], "relative_to_epoch");
    // ReferenceTime: a monotonic clock MUST have an unknown epoch.
    assert_eq!(
        common["reference_time"],
        serde_json::json!({ "clock_type": "monotonic", "epoch": "unknown" })
    );
}

/// Checks one event by its definition, and returns its name.
fn check_event(event: &Value) -> &str {
    assert_eq!(keys(event), ["data", "name", "time"], "{event}");
    assert!(event["time"].as_f64().is_some_and(|time| (0.0..=4000.0).contains(&time)), "{event}");
    let (name, data) = (event["name"].as_str().unwrap(), &event["data"]);
    match name {
        // QUICPacketSent, QUICPacketReceived, PacketHeader, RawInfo
        "quic:packet_sent" | "quic:packet_received" => {
            assert_eq!(keys(data), ["header", "raw"], "{event}");
            assert_eq!(data["header"]["packet_type"], "1RTT");
            assert!(data["raw"]["length"].as_u64().is_some(), "{event}");
        }
        // QUICPacketLost
        "quic:packet_lost" => assert_eq!(data["header"]["packet_type"], "1RTT", "{event}"),
        // QUICRecoveryMetricsUpdated: at least one of its fields, each of its type.
        "quic:recovery_metrics_updated" => {
            assert!(!keys(data).is_empty(), "{event}");
            for (key, value) in data.as_object().unwrap() {
                let of_type = match key.as_str() {
                    "min_rtt" | "smoothed_rtt" | "latest_rtt" | "rtt_variance" => {
                        value.as_f64().is_some_and(|ms| (0.0..10_000.0).contains(&ms))
                    }
                    "congestion_window" | "bytes_in_flight" | "pacing_rate" => value.as_u64().is_some(),
                    _ => false,
                };
                assert!(of_type, "{key} in {event}");
            }
        }
        // QUICCongestionStateUpdated
        "quic:congestion_state_updated" => {
            assert!(data["new"].is_string(), "{event}");
            assert!(keys(data).iter().all(|key| ["new", "old"].contains(key)), "{event}");
        }
        _ => panic!("{event}"),
    }
    name
}

#[test]
fn a_run_is_logged_as_the_drafts_say_and_read_back_as_what_the_run_says() {
    let scratch = Scratch::new("qlog");
    scratch.write("a.toml", SCENARIO.replace("CONTROLLER", "cubic"));
    let plain = ok(&scratch.brakelight(&["run", "a.toml", "--format", "json"]));
    let output = scratch.brakelight(&["run", "a.toml", "--format", "json", "--qlog", "q"]);
    let logged = ok(&output);
    let [plain, document] = [plain, logged].map(|text| serde_json::from_str::<Value>(&text).unwrap());
    assert_eq!(plain["runs"], document["runs"], "the log changes nothing");
    let row = &document["runs"][0];
    let read = |name: &str| std::fs::read(scratch.path(&format!("q/{name}"))).unwrap();

    let bytes = read("main.sqlog");
    let (header, events) = records(&bytes);
    check_header(&bytes, &header, "client");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut before = 0.0;
    for event in &events {
        *counts.entry(check_event(event)).or_default() += 1;
        let time = event["time"].as_f64().unwrap();
        assert!(time >= before, "{event} after {before}");
        before = time;
    }
    // A queue of 20 packets overflows: what was dropped is lost, and sent again.
    let dropped = row["dropped_packets"].as_u64().unwrap();
    let retransmitted = row["retransmitted_packets"].as_u64().unwrap();
    assert!(dropped > 0 && counts["quic:packet_lost"].abs_diff(retransmitted) <= 20, "{counts:?}: {row}");
    assert_eq!(
        counts["quic:packet_sent"],
        row["sent_packets"].as_u64().unwrap_or(counts["quic:packet_sent"])
    );
    let states: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "quic:congestion_state_updated")
        .map(|event| event["data"]["new"].as_str().unwrap())
        .collect();
    assert!(states.contains(&"recovery") && states.contains(&"open"), "{states:?}");
    let least = |key: &str| {
        let values = events.iter().filter_map(|event| event["data"][key].as_f64());
        values.fold(f64::INFINITY, f64::min)
    };
    assert!((40.0..45.0).contains(&least("min_rtt")) && least("smoothed_rtt") >= 40.0);

    // The receiver's file, by what reads the files of others.
    let bytes = read("main.receiver.sqlog");
    let (header, events) = records(&bytes);
    check_header(&bytes, &header, "server");
    events.iter().for_each(|event| {
        check_event(event);
    });
    let shown =
        scratch.brakelight(&["trace", "convert", "q/main.receiver.sqlog", "--to", "csv", "--bin", "1s"]);
    let table = ok(&shown);
    let rates: Vec<f64> =
        table.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    // Once the link is full, it carries 8 Mbit/s.
    assert!(rates[1..3].iter().all(|mbps| (7.5..=8.1).contains(mbps)), "{table}");
    assert!(text(&shown.stderr).contains("28 bytes were added"), "{}", text(&shown.stderr));
}

#[test]
fn a_flow_in_the_real_stack_shows_its_window_and_its_losses() {
    let scratch = Scratch::new("qlog-quinn");
    scratch.write("a.toml", SCENARIO.replace("CONTROLLER", "newreno"));
    ok(&scratch.brakelight(&["run", "a.toml", "--host", "quinn", "--qlog", "q"]));
    let bytes = std::fs::read(scratch.path("q/main.sqlog")).unwrap();
    let (header, events) = records(&bytes);
    check_header(&bytes, &header, "client");
    let names: Vec<&str> = events.iter().map(check_event).collect();
    assert!(names.contains(&"quic:packet_lost") && names.contains(&"quic:packet_received"));
    assert!(events.iter().any(|event| event["data"]["congestion_window"].as_u64() > Some(20_000)));
}

#[test]
fn a_log_where_it_cannot_be_is_refused() {
    let scratch = Scratch::new("qlog-refused");
    scratch.write("a.toml", SCENARIO.replace("CONTROLLER", "cubic"));
    scratch.write("mine/letter.txt", "");
    let run = |more: &[&str]| {
        let output = scratch.brakelight(&[&["run", "a.toml", "--qlog"], more].concat());
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let said = run(&["mine"]);
    assert!(said.contains("--qlog `mine`: the folder holds other files (`letter.txt`)"), "{said}");
    let said = run(&["q", "--on", "emulator"]);
    assert!(said.contains("--qlog: only the simulator writes it here"), "{said}");
}
