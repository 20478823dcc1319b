//! `trace convert`: what it makes of other files, what it says about it, and what it refuses.

mod support;

use std::io::Write;
use std::process::{Output, Stdio};

use support::{Scratch, ok, text};

/// An upload of two seconds. The sender's buffers took 20 and 10 Mbit/s, the receiver had 8 and 8.
const UPLOAD: &str = r#"{"start": {"connecting_to": {"host": "192.0.2.1", "port": 5201}, "test_start": {"protocol": "TCP", "reverse": 0}},
"intervals": [
 {"sum": {"start": 0, "end": 1, "bytes": 2500000, "omitted": false, "sender": true}},
 {"sum": {"start": 1, "end": 2, "bytes": 1250000, "omitted": false, "sender": true}}],
"end": {"sum_sent": {"seconds": 2, "bytes": 3750000}, "sum_received": {"seconds": 2, "bytes": 2000000}}RECEIVED}"#;

/// What `--get-server-output` adds.
const RECEIVED: &str = r#", "server_output_json": {"intervals": [
 {"sum": {"start": 0, "end": 1, "bytes": 1000000, "omitted": false, "sender": false}},
 {"sum": {"start": 1, "end": 2, "bytes": 1000000, "omitted": false, "sender": false}}]}"#;

/// A classic capture of raw IP: microseconds, last byte of the source and of the destination, IP bytes.
fn capture(packets: &[(u32, u8, u8, u16)]) -> Vec<u8> {
    let mut bytes =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    for &(micros, source, destination, length) in packets {
        for word in [micros / 1_000_000, micros % 1_000_000, 28, u32::from(length)] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 0, destination]);
        bytes.extend([0, source, 0, destination, 0, 8, 0, 0]);
    }
    bytes
}

/// 10 packets a second from 1 to 2, and half as many back.
fn both_ways() -> Vec<u8> {
    let ahead = (0..21).map(|n| (n * 100_000, 1, 2, 1500));
    let back = (0..10).map(|n| (n * 200_000 + 50_000, 2, 1, 1500));
    let mut packets: Vec<(u32, u8, u8, u16)> = ahead.chain(back).collect();
    packets.sort_unstable();
    capture(&packets)
}

fn convert(scratch: &Scratch, arguments: &[&str]) -> Output {
    scratch.brakelight(&[&["trace", "convert"], arguments].concat())
}

/// One line, exit code 2, that holds all of `words`.
fn refused(output: &Output, words: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!((said.lines().count(), text(&output.stdout).as_str()), (1, ""), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "`{word}` in {said}"));
}

#[test]
fn an_upload_is_taken_from_the_receiver() {
    let scratch = Scratch::new("convert-upload");
    scratch.write("both.json", UPLOAD.replace("RECEIVED", RECEIVED));
    scratch.write("sent.json", UPLOAD.replace("RECEIVED", ""));
    // 2 MB in packets of 1500 bytes.
    let both = convert(&scratch, &["both.json"]);
    assert_eq!(ok(&both).lines().count(), 1333);
    assert!(text(&both.stderr).contains("the receiver's intervals"), "{}", text(&both.stderr));
    let sent = convert(&scratch, &["sent.json"]);
    assert_eq!(ok(&sent).lines().count(), 2500);
    let said = text(&sent.stderr);
    let warning = said.lines().find(|line| line.starts_with("warning: ")).unwrap_or_else(|| panic!("{said}"));
    for words in ["the sender's", "15 Mbit/s", "8 Mbit/s", "--get-server-output"] {
        assert!(warning.contains(words), "`{words}` in {warning}");
    }
}

#[test]
fn a_capture_of_both_directions_is_not_summed() {
    let scratch = Scratch::new("convert-directions");
    scratch.write("both.pcap", both_ways());
    refused(&convert(&scratch, &["both.pcap"]), &["--direction from:10.0.0.1", "from 10.0.0.2 to 10.0.0.1"]);
    let lines =
        |arguments: &[&str]| ok(&convert(&scratch, &[&["both.pcap"], arguments].concat())).lines().count();
    assert_eq!(lines(&["--direction", "from:10.0.0.1"]), 21);
    assert_eq!(lines(&["--direction", "to:10.0.0.1"]), 10);
    assert_eq!(lines(&["--flow", "10.0.0.2:2-10.0.0.1:1"]), 10);
    assert_eq!(lines(&["--direction", "all"]), 31);
    refused(&convert(&scratch, &["both.pcap", "--direction", "from:10.0.0.9"]), &["10.0.0.9", "10.0.0.1"]);
    refused(&convert(&scratch, &["both.pcap", "--direction", "up"]), &["from:ADDRESS"]);
}

#[test]
fn intervals_that_hide_outages_are_warned_about() {
    let scratch = Scratch::new("convert-coarse");
    scratch.write("coarse.csv", "start_s,mbps\n0,8\n1,9\n2,\n");
    scratch.write("fine.csv", "start_s,mbps\n0,8\n0.1,9\n0.2,\n");
    let warned = |file: &str| {
        let output = convert(&scratch, &[file]);
        ok(&output);
        text(&output.stderr).lines().any(|line| line.starts_with("warning: ") && line.contains("outage"))
    };
    assert!(warned("coarse.csv"));
    assert!(!warned("fine.csv"));
}

#[test]
fn the_header_of_a_table_names_its_unit() {
    let scratch = Scratch::new("convert-header");
    let lines = |header: &str, rate: &str| {
        scratch.write("table.csv", format!("{header}\n0,{rate}\n0.1,{rate}\n"));
        ok(&convert(&scratch, &["table.csv"])).lines().count()
    };
    // 12 Mbit/s for 200 ms, in eight words.
    for (header, rate) in [
        ("start_s,mbps", "12"),
        ("time,rate_kbps", "12000"),
        ("time,bandwidth (Mbit/s)", "12"),
        ("t,bits_per_second", "12000000"),
        ("timestamp,bytes/s", "1500000"),
        ("seconds,MB/s", "1.5"),
        ("time_s,throughput_kBps", "1500"),
        ("\"start\",\"gbps\"", "0.012"),
    ] {
        assert_eq!(lines(header, rate), 200, "{header}");
    }
    for (header, valid) in [
        ("start_s,rate", "Mbit/s"),
        ("time,capacity", "Mbit/s"),
        ("time,MBPS", "Mbit/s"),
        ("mbps,time", "start_s"),
    ] {
        scratch.write("table.csv", format!("{header}\n0,12\n0.1,12\n"));
        refused(&convert(&scratch, &["table.csv"]), &["line 1", valid]);
    }
}

#[test]
fn times_of_day_and_unix_times_begin_at_nought() {
    let scratch = Scratch::new("convert-times");
    let made = |rows: &str| {
        scratch.write("table.csv", rows);
        ok(&convert(&scratch, &["table.csv"]))
    };
    let plain = made("start_s,mbps\n0,12\n0.1,24\n0.2,\n");
    assert_eq!(made("timestamp,mbps\n1700000000.0,12\n1700000000.1,24\n1700000000.2,\n"), plain);
    assert_eq!(made("time_ms,mbps\n1700000000000,12\n1700000000100,24\n1700000000200,\n"), plain);
    assert_eq!(
        made("time,mbps\n2024-02-28T23:59:59.9Z,12\n2024-02-29T01:00:00+01:00,24\n2024-02-29 00:00:00.1,\n"),
        plain
    );
    scratch.write("table.csv", "time,mbps\n1700000000000,12\n1700000000100,24\n");
    refused(&convert(&scratch, &["table.csv"]), &["line 2", "time_ms"]);
    scratch.write("table.csv", "time,mbps\n2024-02-30T00:00:00Z,12\n");
    refused(&convert(&scratch, &["table.csv"]), &["line 2", "2024-02-30"]);
}

#[test]
fn a_hyphen_is_standard_input() {
    let scratch = Scratch::new("convert-stdin");
    let mut child = scratch
        .command(&["trace", "convert", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"start_s,mbps\n0,12\n0.003,\n").unwrap();
    assert_eq!(ok(&child.wait_with_output().unwrap()), "1\n2\n3\n");
}

#[test]
fn success_says_what_was_made() {
    let scratch = Scratch::new("convert-said");
    scratch.write("table.csv", "start_s,mbps\n0,12\n0.1,0\n0.2,24\n0.3,\n");
    let output = convert(&scratch, &["table.csv", "--out", "made.down"]);
    assert_eq!(ok(&output), "");
    let said = text(&output.stderr);
    for words in ["0.30 s", "12.0 Mbit/s", "longest gap 101 ms", "resolution 100 ms", "csv"] {
        assert!(said.contains(words), "`{words}` in {said}");
    }
}

#[test]
fn a_table_has_a_value_in_every_column_of_every_row() {
    let scratch = Scratch::new("convert-table");
    scratch.write("own.down", "0\n10\n100\n150\n201\n250\n");
    let table = ok(&convert(&scratch, &["own.down", "--to", "csv"]));
    for line in table.lines().skip(1) {
        assert!(line.split(',').all(|value| value.parse::<f64>().is_ok()), "{table}");
    }
    scratch.write("table.csv", table);
    let back = ok(&convert(&scratch, &["table.csv"]));
    assert!(back.ends_with("\n250\n"), "its end is kept: {back}");
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows_change_nothing() {
    let scratch = Scratch::new("convert-windows");
    let upload = UPLOAD.replace("RECEIVED", RECEIVED);
    for (name, contents) in [
        ("a.down", "0\n5\n10\n"),
        ("a.csv", "# by hand\nstart_s,mbps\n0,12\n0.1,24\n"),
        ("a.json", upload.as_str()),
    ] {
        scratch.write(name, contents);
        let plain = ok(&convert(&scratch, &[name]));
        scratch.write(name, format!("\u{feff}{}", contents.replace('\n', "\r\n")));
        assert_eq!(ok(&convert(&scratch, &[name])), plain, "{name}");
    }
}
