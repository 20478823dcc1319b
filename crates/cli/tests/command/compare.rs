//! What `compare` assumes where nothing is asked for, and what it says of it.

use serde_json::Value;

use super::json;
use crate::support::{Scratch, ok};

/// A file with this many delivery opportunities in every millisecond of a second.
fn steady(scratch: &Scratch, name: &str, per_millisecond: usize) {
    let line = |ms: usize| format!("{ms}\n").repeat(per_millisecond);
    scratch.write(name, (1..=1000).map(line).collect::<String>());
}

/// The rows of a comparison.
fn rows(scratch: &Scratch, arguments: &[&str]) -> Vec<Value> {
    let output = scratch.brakelight(&[&["compare", "--format", "json"], arguments].concat());
    json(&ok(&output))["runs"].as_array().unwrap().clone()
}

#[test]
fn a_fast_link_is_not_held_back_by_its_acks() {
    let scratch = Scratch::new("compare-acks");
    // 746 Mbit/s: an ACK for every second packet takes 14 Mbit/s.
    steady(&scratch, "fast.down", 62);
    let fast = ["--trace", "fast.down", "--schemes", "cubic", "--buffer", "20MB"];
    let rows = rows(&scratch, &[&fast[..], &["--duration", "6s", "--runs", "1"]].concat());
    assert!(rows[0]["utilization"].as_f64().unwrap() > 0.9, "{}", rows[0]);
}

#[test]
fn a_recording_is_run_to_its_end() {
    let scratch = Scratch::new("compare-whole");
    scratch.write("long.down", (1..=700).map(|i| format!("{}\n", 100 * i)).collect::<String>());
    let rows = rows(&scratch, &["--trace", "long.down", "--schemes", "cubic", "--runs", "1"]);
    assert_eq!(rows[0]["duration_s"], 70.0);
}

#[test]
fn a_buffer_holds_what_a_fast_path_does() {
    let scratch = Scratch::new("compare-buffer");
    // 240 Mbit/s and 100 ms are 2,000 packets.
    steady(&scratch, "fast.down", 20);
    let rows =
        rows(&scratch, &["--trace", "fast.down", "--schemes", "newreno", "--duration", "10s", "--runs", "1"]);
    assert!(rows[0]["utilization"].as_f64().unwrap() > 0.9, "{}", rows[0]);
}
