//! `bench --profile`, with other programs in valgrind's place: `scripts/instructions` runs valgrind itself.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Output;

use super::support::{Scratch, ok, text};

/// Runs the command with what `scratch` has in `bin`, and nothing else, on its path.
fn profile(scratch: &Scratch, rest: &[&str]) -> Output {
    let mut command = scratch.command(&["bench", "--profile"]);
    command.args(rest).env("PATH", scratch.path("bin")).output().unwrap()
}

/// Asserts that the command ends with `code` and one line that has `words`.
fn fails(output: &Output, code: i32, words: &str) {
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{said}");
    assert!(said.contains(words) && output.stdout.is_empty(), "{said}");
}

#[test]
fn a_packet_s_instructions_are_shown_by_part() {
    let scratch = Scratch::new("command-profile");
    let counted = "echo 200\necho events: Ir\necho 'fl=(1) ???'\n\
        echo 'fn=(1) brakelight_sim::host::connection::post_ack'\necho 1 600000\n\
        echo 'fn=(2) malloc'\necho 1 200000\n";
    let counter = scratch.write("bin/valgrind", format!("#!/bin/sh\necho \"$@\" >> called\n{counted}"));
    std::fs::set_permissions(&counter, Permissions::from_mode(0o755)).unwrap();

    let table = ok(&profile(&scratch, &[]));
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("data packets")).collect();
    let row = |name: &str| {
        format!(
            "{name}: 200 data packets, 4,000 instructions each; parts by function, with the code inlined into it"
        )
    };
    assert_eq!(rows, ["S1", "S2", "S3"].map(row));
    assert!(table.lines().any(|line| line.split_whitespace().eq(["host", "3,000", "75.0"])), "{table}");
    let called = std::fs::read_to_string(scratch.path("called")).unwrap();
    assert!(called.lines().next().unwrap().ends_with(" bench --counted S1"), "{called}");

    let document = super::json(&ok(&profile(&scratch, &["F1", "--format", "json"])));
    let part = |name: &str, instructions: f64, percent: f64| serde_json::json!({"name": name, "instructions_per_packet": instructions, "percent": percent});
    let expected = serde_json::json!([{
        "name": "F1", "packets": 200, "instructions": 800_000, "instructions_per_packet": 4000.0,
        "parts_by": "functions", "parts": [part("host", 3000.0, 75.0), part("other", 1000.0, 25.0)],
    }]);
    assert_eq!(document["profile"], expected);
}

#[test]
fn a_count_that_cannot_be_made_is_explained() {
    let scratch = Scratch::new("command-no-profile");
    fails(
        &profile(&scratch, &["S9"]),
        2,
        "--profile: unknown row `S9` (did you mean `S1`?): valid are S1, S2",
    );
    fails(&profile(&scratch, &["S1", "--with-ns3"]), 2, "--with-ns3");
    fails(&profile(&scratch, &["S1"]), 2, "valgrind is not installed");
    std::fs::create_dir(scratch.path("bin")).unwrap();
    symlink("/bin/false", scratch.path("bin/valgrind")).unwrap();
    fails(&profile(&scratch, &["S1"]), 1, "S1: valgrind ended with exit status: 1");
    std::fs::remove_file(scratch.path("bin/valgrind")).unwrap();
    symlink("/bin/echo", scratch.path("bin/valgrind")).unwrap();
    fails(&profile(&scratch, &["S1"]), 1, "was printed: valid is a number of packets above 0");
}

#[test]
fn the_counted_process_prints_its_packets() {
    let scratch = Scratch::new("command-counted");
    // 12 Mbit/s for 20 s are 20,000 packets of 1500 bytes.
    let packets: u64 = ok(&scratch.brakelight(&["bench", "--counted", "S1"])).trim().parse().unwrap();
    assert!((19_000..20_000).contains(&packets), "{packets}");
}
