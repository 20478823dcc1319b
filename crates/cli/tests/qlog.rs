//! `run --qlog` and `compare --qlog`: files that keep to the drafts or open in qvis, say what the run says,
//! and can be read back.
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

/// What qvis asks of a file, by its sources at commit 72c8c4b (October 2025). Its loader refuses other files;
/// its congestion graph leaves out what it does not find, or draws nothing.
fn check_as_qvis(name: &str, bytes: &[u8], vantage_point: &str) -> Vec<Value> {
    // filemanager/data/FileLoader.ts: by the ending it is a text sequence.
    assert!(name.ends_with(".sqlog"));
    let (header, events) = records(bytes);
    // filemanager/newlineconverter/textsequencejsontoqlog.ts: version, format and trace come first.
    assert_eq!(header["qlog_format"], "JSON-SEQ");
    assert!(header["trace"].is_object(), "{header}");
    // data/QlogSchema02.ts: the versions that QlogLoaderV2 reads.
    let known = ["draft-02", "draft-02-RC1", "qlog-03-WIP", "0.3"];
    assert!(known.contains(&header["qlog_version"].as_str().unwrap()), "{header}");
    // data/QlogLoaderV2.ts: relative times have something that they are relative to, and none goes back; no
    // event or each is in a group; sizes and types stand where the second draft has them.
    let common = &header["trace"]["common_fields"];
    assert_eq!(common["time_format"], "relative");
    assert!(common["reference_time"].is_number(), "{header}");
    assert_eq!(header["trace"]["vantage_point"]["type"], vantage_point);
    assert!(events.is_sorted_by_key(|event| event["time"].as_f64().unwrap()));
    for event in &events {
        assert!(event["group_id"].is_null() && event["data"]["packet_type"].is_null(), "{event}");
        let header = &event["data"]["header"];
        assert!(header["packet_size"].is_null() && header["payload_length"].is_null(), "{event}");
        // data/QlogSchema.ts: the categories and types that the views look up.
        let name = event["name"].as_str().unwrap();
        let known = match name.split_once(':').unwrap() {
            ("transport", name) => ["packet_sent", "packet_received"].contains(&name),
            ("recovery", name) => {
                ["packet_lost", "metrics_updated", "congestion_state_updated"].contains(&name)
            }
            _ => false,
        };
        assert!(known, "{event}");
        // congestiongraph/renderer/CongestionGraphD3Renderer.ts: packets without a length are left out, and
        // all that it shows of packets is found by their type.
        if name.starts_with("transport:") {
            assert!(event["data"]["raw"]["length"].as_u64().is_some_and(|length| length > 0), "{event}");
        }
        if name.contains("packet") {
            assert_eq!(header["packet_type"], "1RTT", "{event}");
        }
    }
    events
}

#[test]
fn version_0_3_is_what_qvis_opens_and_says_the_same() {
    let scratch = Scratch::new("qlog-qvis");
    scratch.write("a.toml", SCENARIO.replace("CONTROLLER", "cubic"));
    ok(&scratch.brakelight(&["run", "a.toml", "--qlog", "new"]));
    ok(&scratch.brakelight(&["run", "a.toml", "--qlog", "old", "--qlog-version", "0.3"]));
    let read = |name: &str| std::fs::read(scratch.path(name)).unwrap();
    for (file, vantage_point) in [("main.sqlog", "client"), ("main.receiver.sqlog", "server")] {
        let old = check_as_qvis(file, &read(&format!("old/{file}")), vantage_point);
        let (_, new) = records(&read(&format!("new/{file}")));
        assert_eq!(old.len(), new.len());
        for (old, new) in old.iter().zip(&new) {
            assert_eq!((&old["time"], &old["data"]), (&new["time"], &new["data"]));
            let [old, new] = [old, new].map(|event| event["name"].as_str().unwrap());
            let word = |name: &str| name.split(':').nth(1).unwrap().replace("recovery_", "");
            assert_eq!(word(old), word(new));
        }
    }
    // The four lines of the congestion graph, each of more than one value.
    let sender = check_as_qvis("main.sqlog", &read("old/main.sqlog"), "client");
    for key in ["congestion_window", "bytes_in_flight", "smoothed_rtt", "latest_rtt"] {
        let values =
            sender.iter().filter(|event| event["data"][key].as_f64().is_some_and(|value| value > 0.0));
        assert!(values.count() > 100, "{key}");
    }
    // Both versions are the same trace to what reads the files of others.
    let [old, new] = ["old", "new"].map(|folder| {
        let file = format!("{folder}/main.receiver.sqlog");
        ok(&scratch.brakelight(&["trace", "convert", &file, "--to", "csv", "--bin", "1s"]))
    });
    let rows = |table: &str| {
        table.lines().filter(|line| !line.starts_with('#')).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(rows(&old), rows(&new));
    assert!(rows(&old).len() >= 4, "{old}");
}

#[test]
fn a_comparison_is_logged_in_a_folder_for_each_trace_and_scheme() {
    let scratch = Scratch::new("qlog-compare");
    let compare = |more: &[&str]| {
        let line = "compare --trace fixed --schemes cubic,cubic:beta=0.5 --duration 4s --runs 2 --format csv";
        let line: Vec<&str> = line.split(' ').chain(more.iter().copied()).collect();
        ok(&scratch.brakelight(&line))
    };
    assert_eq!(compare(&[]), compare(&["--qlog", "q"]), "the log changes nothing");
    let mut folders: Vec<String> = std::fs::read_dir(scratch.path("q"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    assert_eq!(folders, ["cubic-beta=0.5-on-fixed", "cubic-on-fixed"]);
    let windows = |folder: &str| {
        let files = std::fs::read_dir(scratch.path(&format!("q/{folder}"))).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        names.sort();
        assert_eq!(names.len(), 2, "{names:?}");
        let bytes = std::fs::read(&names[1]).unwrap();
        let (header, events) = records(&bytes);
        check_header(&bytes, &header, "client");
        events.iter().filter_map(|event| event["data"]["congestion_window"].as_u64()).collect::<Vec<_>>()
    };
    let [half, usual] = ["cubic-beta=0.5-on-fixed", "cubic-on-fixed"].map(windows);
    assert!(half.len() > 100 && usual.len() > 100 && half != usual);
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
    let said = run(&["q", "--qlog-version", "0.4"]);
    assert!(said.contains("14") && said.contains("0.3") && said.lines().count() == 1, "{said}");
    let said = run(&["q", "--on", "emulator"]);
    assert!(said.contains("--qlog: only the simulator writes it here"), "{said}");
}
