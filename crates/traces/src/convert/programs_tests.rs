//! Conversions of what other programs and data sets write.

use brakelight_core::random::Random;
use brakelight_testkit::mutate::{fuzz_inputs, mutate};

use super::*;

const IPERF3_UP: &str = "Connecting to host 192.0.2.1, port 5201
[  5] local 192.0.2.2 port 32972 connected to 192.0.2.1 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-0.01   sec  1.92 MBytes   160 Mbits/sec    0   54.1 KBytes       (omitted)
[  5]   0.00-0.01   sec  30.0 KBytes  24.0 Mbits/sec    0   54.1 KBytes
[  5]   0.01-0.02   sec  0.00 Bytes  0.00 bits/sec    0    239 KBytes
[  5]   0.02-0.03   sec  15.0 KBytes  12.0 Mbits/sec    0    650 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-0.03   sec  45.0 KBytes  12.0 Mbits/sec   54             sender
[  5]   0.00-0.03   sec  40.0 KBytes  11.0 Mbits/sec                  receiver
";

const SERVER: &str = "
Server output:
-----------------------------------------------------------
Accepted connection from 192.0.2.2, port 32970
[  5] local 192.0.2.1 port 5201 connected to 192.0.2.2 port 32972
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-0.01   sec  15.0 KBytes  12.0 Mbits/sec
[  5]   0.01-0.02   sec  15.0 KBytes  12.0 Mbits/sec
[  5]   0.02-0.03   sec  15.0 KBytes  12.0 Mbits/sec
";

const IPERF3_BOTH: &str = "Connecting to host 192.0.2.1, port 5201
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  5][TX-C]   0.00-0.01   sec  30.0 KBytes  24.0 Mbits/sec    0   54.1 KBytes
[  7][RX-C]   0.00-0.01   sec  15.0 KBytes  12.0 Mbits/sec
[  5][TX-C]   0.01-0.02   sec  30.0 KBytes  24.0 Mbits/sec    0   54.1 KBytes
[  7][RX-C]   0.01-0.02   sec  15.0 KBytes  12.0 Mbits/sec
";

const IPERF2: &str = "Client connecting to 192.0.2.1, TCP port 5001
[  3] local 192.0.2.2 port 40000 connected with 192.0.2.1 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0- 1.0 sec  1.25 MBytes  10.5 Mbits/sec
[  3]  1.0- 2.0 sec  1.25 MBytes  10.5 Mbits/sec
[  3]  0.0- 2.0 sec  2.50 MBytes  10.5 Mbits/sec
";

const NUTTCP: &str = "    0.0150 MB /   0.01 sec =   12.0000 Mbps     0 retrans
    0.0300 MB /   0.01 sec =   24.0000 Mbps     0 retrans
    0.0450 MB /   0.02 sec =   18.0000 Mbps 13 %TX 12 %RX 0 retrans 0.52 msRTT
";

const GENET: &str = r#"{"timestamps": [0, 0.01, 0.02, 0.04], "bandwidths": [12, 24, 0.6, 9],
 "delays": [20, 25, 20, 20], "loss": 0.01, "queue": 50, "delay_noise": 0}"#;

const AUTORATE: &str = "SYSLOG; 2024-05-01-12:00:00; 1714564800.100000; Starting cake-autorate
LOAD_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS
LOAD; 2024-05-01-12:00:00; 1714564800.500000; 1714564800.400000; 4000; 800; 12000; 6000
LOAD; 2024-05-01-12:00:01; 1714564801.500000; 1714564801.400000; 4000; 800; 24000; 6000
";

const QLOG: &str = r#"{"qlog_version": "0.3", "traces": [{"common_fields": {"time_format": "relative"}, "events": [
 {"time": 10.5, "name": "transport:packet_sent", "data": {"raw": {"length": 1200}}},
 {"time": 11.0, "name": "transport:packet_received", "data": {"raw": {"length": 1472}}},
 {"time": 15.2, "name": "transport:packet_received", "data": {"raw": {"length": 1472}}}]}]}"#;

const G_NETTRACK: &str = "Timestamp,Longitude,Speed,CellID,DL_bitrate,UL_bitrate,State,CELLHEX
2019.12.14_10.16.30,-8.3,0,12,24,12,D,C
2019.12.14_10.16.31,-8.3,1,12,24,12,D,C
2019.12.14_10.16.31,-8.3,1,12,0,12,D,C
2019.12.14_10.16.32,-8.3,0,12,-,12,D,C
2019.12.14_10.16.33,-8.3,0,12,24,12,D,C
";

const STARLINK: &str = "timestamp_start_dl,timestamp_end_dl,download,timestamp_start_ul,timestamp_end_ul,upload,Speed(m/s)
2024-04-19 16:23:00.001039872,2024-04-19 16:23:01.001035008,1.2,2024-04-19 16:23:00.000116224,2024-04-19 16:23:01.000148992,0.6,28
2024-04-19 16:23:01.001035008,2024-04-19 16:23:02.001338112,2.4,2024-04-19 16:23:01.000148992,2024-04-19 16:23:02.000133888,0.6,28
2024-04-19 16:24:00.001039872,2024-04-19 16:24:01.001035008,1.2,2024-04-19 16:24:00.000116224,2024-04-19 16:24:01.000148992,0.6,28
";

fn options(selection: Selection) -> ConvertOptions {
    ConvertOptions { selection, ..ConvertOptions::default() }
}

/// Converts what the file seems to be.
fn read(text: &str, selection: Selection) -> Result<Converted, String> {
    let format = Format::detect(text.as_bytes());
    convert(text.as_bytes(), format, options(selection)).map_err(|error| error.to_string())
}

fn stamps(converted: &Converted) -> Vec<u64> {
    converted.trace.millis().collect()
}

/// How many opportunities lie in each 10 ms.
fn counts(converted: &Converted) -> Vec<usize> {
    let stamps = stamps(converted);
    let bins = (stamps.last().unwrap() - 1) / 10;
    (0..=bins).map(|bin| stamps.iter().filter(|ms| (**ms - 1) / 10 == bin).count()).collect()
}

#[test]
fn files_of_other_programs_are_known_by_their_lines() {
    for (text, format) in [
        (IPERF3_UP, "iperf3-text"),
        (IPERF3_BOTH, "iperf3-text"),
        (IPERF2, "iperf3-text"),
        (NUTTCP, "nuttcp"),
        (GENET, "genet"),
        (AUTORATE, "cake-autorate"),
        (&AUTORATE[AUTORATE.find("LOAD_").unwrap()..], "cake-autorate"),
        (QLOG, "qlog"),
        ("\u{1e}{\"file_schema\": \"urn:ietf:params:qlog:file:sequential\"}\n", "qlog"),
        (G_NETTRACK, "csv"),
        (STARLINK, "csv"),
        ("1.0\t361.0\n2.0\t703.0\n", "columns"),
        ("0.2 30.75\r\n", "columns"),
        ("12\n13\n", "mahimahi"),
    ] {
        let found = Format::detect(text.as_bytes());
        assert_eq!(found.to_string(), format, "{text}");
        assert_eq!(found.to_string().parse(), Ok(found));
    }
}

#[test]
fn lines_of_iperf3_are_taken_from_the_receiver() {
    let sent = read(IPERF3_UP, Selection::OneDirection).unwrap();
    assert_eq!(counts(&sent), [20, 0, 10]);
    assert!(
        sent.warnings[0].contains("all in all 12 Mbit/s, where 11 Mbit/s arrived"),
        "{:?}",
        sent.warnings
    );
    assert!(sent.notes[1].contains("1 intervals of the warm-up"), "{:?}", sent.notes);
    let received = read(&format!("{IPERF3_UP}{SERVER}"), Selection::Up).unwrap();
    assert_eq!(counts(&received), [10, 10, 10]);
    assert_eq!(received.warnings, Vec::<String>::new());
    // The server's own output, and a download's of the client.
    let server = SERVER.split_once("output:\n").unwrap().1;
    assert_eq!(read(server, Selection::Up).unwrap().warnings, Vec::<String>::new());
    let down = IPERF3_UP
        .replace("[  5] local", "Reverse mode, remote host 192.0.2.1 is sending\n[  5] local")
        .replacen("Retr  Cwnd", "", 1);
    let down = read(&down, Selection::Down).unwrap();
    assert_eq!(down.warnings, Vec::<String>::new());
    let refusal = read(IPERF3_UP, Selection::Down).unwrap_err();
    assert!(refusal.contains("went `up` only"), "{refusal}");
}

#[test]
fn lines_of_iperf3_in_both_directions_are_taken_one_way() {
    let refusal = read(IPERF3_BOTH, Selection::OneDirection).unwrap_err();
    assert!(refusal.contains("went both ways"), "{refusal}");
    let up = read(IPERF3_BOTH, Selection::Up).unwrap();
    assert_eq!((counts(&up), up.warnings.len()), (vec![20, 20], 1));
    let down = read(IPERF3_BOTH, Selection::Down).unwrap();
    assert_eq!((counts(&down), down.warnings.len()), (vec![10, 10], 0));
}

/// A server's `TX` is what it sent: of an upload its rows are `RX`.
#[test]
fn the_server_of_a_test_in_both_directions_names_them_from_its_side() {
    let server = "Accepted connection from 192.0.2.2, port 32970
[ ID][Role] Interval           Transfer     Bitrate
[  5][RX-S]   0.00-0.01   sec  15.0 KBytes  12.0 Mbits/sec
[  7][TX-S]   0.00-0.01   sec  90.0 KBytes  72.0 Mbits/sec    0   54.1 KBytes
";
    let up = read(server, Selection::Up).unwrap();
    assert_eq!((counts(&up), up.warnings.len()), (vec![10], 0));
    let down = read(server, Selection::Down).unwrap();
    assert_eq!((counts(&down), down.warnings.len()), (vec![60], 1));
    // Of an upload the client has the server's rows after its own.
    let up = read(&format!("{IPERF3_BOTH}\nServer output:\n{server}"), Selection::Up).unwrap();
    assert_eq!((counts(&up), up.warnings.len()), (vec![10], 0));
}

#[test]
fn the_sum_of_streams_is_taken_and_totals_are_not() {
    let streams = "[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec
[  7]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec
[SUM]   0.00-1.00   sec  2.00 MBytes  12.0 Mbits/sec
";
    assert_eq!(read(streams, Selection::OneDirection).unwrap().trace.opportunities(), 1000);
    let without = streams.lines().filter(|line| !line.contains("SUM")).collect::<Vec<_>>().join("\n");
    assert_eq!(
        read(&without, Selection::OneDirection).unwrap_err(),
        "`[SUM]`: missing, although there are 2 streams"
    );
    let old = read(IPERF2, Selection::OneDirection).unwrap();
    assert_eq!((old.trace.opportunities(), old.trace.period().as_secs_f64()), (1750, 2.0));
}

#[test]
fn intervals_of_nuttcp_follow_one_another() {
    assert_eq!(counts(&read(NUTTCP, Selection::OneDirection).unwrap()), [10, 20]);
    let total = NUTTCP.lines().last().unwrap();
    let refusal = read(total, Selection::OneDirection).unwrap_err();
    assert_eq!(refusal, "the file holds no interval of nuttcp (`nuttcp -i1`)");
}

#[test]
fn bandwidths_of_genet_hold_until_the_next_time() {
    let converted = read(GENET, Selection::OneDirection).unwrap();
    assert_eq!(counts(&converted), [10, 20, 0, 1]);
    assert_eq!(
        converted.warnings,
        [
            "its one-way delay, 20 to 25 ms, is not in a trace of opportunities: `--to bltrace` keeps it",
            "its loss, 1 %, is not in a trace of opportunities: `--to bltrace` keeps it"
        ]
    );
    let refused = |from, to| read(&GENET.replace(from, to), Selection::OneDirection).unwrap_err();
    assert_eq!(refused("0.01, 0.02", "0.02, 0.01"), "`timestamps[2]`: 0.01 is less than the one before");
    assert_eq!(refused("[12, 24", "[12, -1"), "`bandwidths[1]`: -1 is not a number from 0 to 1000000");
    assert_eq!(refused("[12, 24,", "["), "`bandwidths`: 2 values, where `timestamps` has 4");
}

#[test]
fn a_log_of_cake_autorate_gives_the_rate_of_its_shaper() {
    let down = read(AUTORATE, Selection::Down).unwrap();
    assert_eq!(down.trace.opportunities(), 3000);
    assert!(down.notes[0].contains("the shaper's own"), "{:?}", down.notes);
    assert_eq!(read(AUTORATE, Selection::Up).unwrap().trace.opportunities(), 1000);
    let refusal = read(AUTORATE, Selection::OneDirection).unwrap_err();
    assert!(refusal.contains("`--direction down`") && refusal.contains("`CAKE_DL_RATE_KBPS`"), "{refusal}");
    let achieved =
        ConvertOptions { column: Some("dl_achieved_rate_kbps".into()), ..ConvertOptions::default() };
    let achieved = convert(AUTORATE.as_bytes(), Format::CakeAutorate, achieved).unwrap();
    assert_eq!(achieved.trace.opportunities(), 666 + 1);
    let wrong = AUTORATE.replace("; 24000", "; much");
    assert_eq!(
        read(&wrong, Selection::Down).unwrap_err(),
        "line 4: the rate is `much`: expected kbit/s, from 0 to 1e9"
    );
}

#[test]
fn received_packets_of_qlog_become_opportunities() {
    let converted = read(QLOG, Selection::OneDirection).unwrap();
    assert_eq!(stamps(&converted), [0, 4]);
    // The same as a sequence of records, with times from one event to the next, cut off at the end.
    let sequence = "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"trace\":{\"common_fields\":{\"time_format\":\"relative_to_previous_event\"}}}\n\
        \u{1e}{\"time\":11,\"name\":\"quic:packet_received\",\"data\":{\"raw\":{\"length\":1472}}}\n\
        \u{1e}{\"time\":4,\"name\":\"quic:packet_received\",\"data\":{\"raw\":{\"length\":1472}}}\n\
        \u{1e}{\"time\":1,\"na";
    assert_eq!(stamps(&read(sequence, Selection::OneDirection).unwrap()), [0, 4]);
    let refusal = read(&QLOG.replace("packet_received", "packet_lost"), Selection::OneDirection).unwrap_err();
    assert_eq!(refusal, "the file holds no `packet_received` event with a length");
}

#[test]
fn a_table_of_many_columns_is_read_by_their_names() {
    let refusal = read(G_NETTRACK, Selection::OneDirection).unwrap_err();
    assert!(
        refusal.contains("`DL_bitrate`, `UL_bitrate`") && refusal.contains("`--direction down`"),
        "{refusal}"
    );
    // 24 kbit/s for a second, their half for the second of two rows, and no value for two.
    let down = read(G_NETTRACK, Selection::Down).unwrap();
    assert_eq!(down.notes[0], "the rate is `DL_bitrate`, the time `Timestamp`");
    assert_eq!(down.notes[1], "1 rows hold no value and were left out");
    assert_eq!(down.trace.period(), Duration::from_secs(4));
    assert_eq!(down.trace.opportunities(), 6);
    let up = read(G_NETTRACK, Selection::Up).unwrap();
    assert_eq!((up.trace.period(), up.trace.opportunities()), (Duration::from_secs(4), 4));
}

#[test]
fn the_times_of_a_direction_are_taken_and_gaps_left_out() {
    let down = read(STARLINK, Selection::Down).unwrap();
    assert_eq!(down.notes, ["the rate is `download`, the time `timestamp_start_dl` to `timestamp_end_dl`"]);
    assert!(down.warnings[0].contains("`download` names no unit: its values, with decimals and up to 2.4"));
    assert!(down.warnings[1].starts_with("1 gaps, 58.0 s in all"), "{:?}", down.warnings);
    assert_eq!((down.trace.opportunities(), down.trace.period()), (400, Duration::from_secs(3)));
    let whole = STARLINK.replace("1.2", "1").replace("2.4", "2").replace("0.6", "1");
    let refusal = read(&whole, Selection::Down).unwrap_err();
    assert_eq!(
        refusal,
        "nothing says the unit of `download`: give `--unit Mbit/s`, `--unit kbit/s` or another"
    );
    let unit = Some("kbit/s".parse().unwrap());
    let given = ConvertOptions { unit, ..options(Selection::Up) };
    assert_eq!(
        convert(STARLINK.replace("0.6", "600").as_bytes(), Format::Csv, given).unwrap().trace.opportunities(),
        150
    );
}

#[test]
fn columns_of_numbers_begin_or_end_their_intervals() {
    // The first time is one interval long: it ends the first interval.
    let ends = read("0.002 12\n0.004 24\n0.006 0\n0.008 24\n", Selection::OneDirection).unwrap();
    assert_eq!(stamps(&ends), [1, 2, 3, 3, 4, 4, 7, 7, 8, 8]);
    let begins = read("0 12\n0.002 24\n0.004 0\n0.006 24\n", Selection::OneDirection).unwrap();
    assert_eq!(stamps(&begins), stamps(&ends));
    assert!(begins.notes[1].contains("beginning of its interval"), "{:?}", begins.notes);
    let refused = |text| read(text, Selection::OneDirection).unwrap_err();
    assert_eq!(
        refused("1 2\n0.5 2\n"),
        "line 2: the time is `0.5`: expected seconds from 0 to 1e10, no less than on the line before"
    );
    assert_eq!(
        refused("1 2\n2 2 2\n"),
        "line 2: the row is `2 2 2`: expected two numbers with blanks between, a time in seconds and a rate"
    );
    let kbit = ConvertOptions { unit: Some(RateUnit::KBIT), ..ConvertOptions::default() };
    assert_eq!(convert(b"1 12\n2 24\n", Format::Columns, kbit).unwrap().trace.opportunities(), 3);
}

/// Twenty files that are wrong: each is refused in one line that says what is wrong.
#[test]
fn what_is_wrong_is_refused_in_a_line() {
    let cases: [(&str, Selection, &str); 20] = [
        ("", Selection::OneDirection, "the trace is empty"),
        ("12\nx\n", Selection::OneDirection, "line 2: `x` is not a whole number"),
        ("1 2\n2 fast\n", Selection::OneDirection, "line 2: the rate is `fast`"),
        ("1 2\n2 -3\n", Selection::OneDirection, "line 2: the rate is `-3`"),
        ("1 2\n2 3\n", Selection::Up, "`up` is not a direction of this file"),
        (IPERF3_UP, Selection::Down, "went `up` only"),
        ("[ ID] Interval\n", Selection::OneDirection, "the file holds no interval of iperf"),
        (
            "[ ID] Interval\n[  5] 0.00-x sec 1 KBytes 1 Kbits/sec\n",
            Selection::OneDirection,
            "line 2: the interval is",
        ),
        (
            "[ ID] Interval\n[  5] 0.00-0.1 sec 1 KBytes 1 Kbit\n",
            Selection::OneDirection,
            "line 2: the bitrate is",
        ),
        ("[ ID] Interval\niperf3: error - unable to connect\n", Selection::OneDirection, "unable to connect"),
        (" 1 MB / x sec = 1 Mbps\n", Selection::OneDirection, "line 1: the row is"),
        ("{\"timestamps\": [0, 1]}", Selection::OneDirection, "`bandwidths`: missing"),
        ("{\"bandwidths\": [0, 1]}", Selection::OneDirection, "`timestamps`: missing"),
        ("{\"qlog_version\": \"0.3\"}", Selection::OneDirection, "`traces`: missing"),
        ("\u{1e}{]", Selection::OneDirection, "`record 1`: not JSON"),
        (
            "a,b,c,d\n1,2,3,4\n",
            Selection::OneDirection,
            "no column's name says that it holds rates: choose one of `a`",
        ),
        ("a,b,c,mbps\n1,2,3,4\n", Selection::OneDirection, "no column's name says that it holds times"),
        ("time,b,c,mbps\n1,2\n", Selection::OneDirection, "line 2: the row is `1,2`"),
        ("time,b,c,mbps\n2,,,1\n1,,,1\n", Selection::OneDirection, "line 3: the time is `1`"),
        ("LOAD; 2024; 1; 1\n", Selection::Down, "no column is called `CAKE_DL_RATE_KBPS`"),
    ];
    for (text, selection, expected) in cases {
        let refusal = read(text, selection).unwrap_err();
        assert!(refusal.contains(expected), "{text:?}: {refusal}");
        assert!(!refusal.contains('\n'), "{refusal}");
    }
}

#[test]
fn options_that_a_file_has_no_use_for_are_refused() {
    let unit = ConvertOptions { unit: Some(RateUnit::MBIT), ..ConvertOptions::default() };
    let refusal = convert(b"1\n2\n", Format::Mahimahi, unit).unwrap_err().to_string();
    assert_eq!(refusal, "files of this format say their unit and have no `--unit`");
    let column = ConvertOptions { column: Some("x".into()), ..ConvertOptions::default() };
    let refusal = convert(b"1 2\n", Format::Columns, column.clone()).unwrap_err().to_string();
    assert_eq!(refusal, "files of this format have no `--column`");
    let refusal = convert(b"time,mbps\n0,1\n", Format::Csv, column).unwrap_err().to_string();
    assert_eq!(refusal, "no column is called `x`: the file has `time`, `mbps`");
    assert!("parsecs".parse::<RateUnit>().unwrap_err().contains("give one such as"));
}

#[test]
fn no_output_of_a_program_brings_the_readers_down() {
    let corpus: Vec<String> = [
        IPERF3_UP,
        SERVER,
        IPERF3_BOTH,
        IPERF2,
        NUTTCP,
        GENET,
        AUTORATE,
        QLOG,
        G_NETTRACK,
        STARLINK,
        "0.2 1\n0.4 2\n",
        people_tests::STREAM,
        people_tests::LINK_LOG,
        people_tests::FLENT,
        &people_tests::early_qlog(r#""delta_time", "category", "event", "data""#, "us", 1_000.0),
        "time;State;rx_mbps\n0,0;D;20,5\n1,0;I;0,0\n2,0;D;1.020,5\n",
        "0.000001 1514\n0.004 66\n0.0051 1514\n0.0093 1514\n",
        "\"Time\",\"Source\",\"Length\"\n0.1,192.0.2.1,1514\n0.2,192.0.2.1,1514\n",
    ]
    .map(String::from)
    .to_vec();
    let selections = [Selection::OneDirection, Selection::Down, Selection::Up];
    let mut random = Random::stream(1, "fuzz programs");
    let mut accepted = 0;
    for input in 0..fuzz_inputs() {
        let text = mutate(&corpus, &mut random);
        let selection = selections[(input % 3) as usize];
        let _ = super::selections(text.as_bytes(), Format::detect(text.as_bytes()));
        let options = ConvertOptions {
            without_idle: input % 5 == 4,
            time_column: (input % 7 == 6).then(|| "time".to_string()),
            ..options(selection)
        };
        match convert(text.as_bytes(), Format::detect(text.as_bytes()), options) {
            Ok(converted) => {
                assert!(converted.trace.opportunities() > 0);
                accepted += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(accepted > 0, "some inputs stay valid");
}
