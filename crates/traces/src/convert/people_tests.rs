//! Files that people have: each as its program writes it, with the values that it holds.

use super::*;

fn of(text: &str, options: ConvertOptions) -> Result<Converted, String> {
    let format = Format::detect(text.as_bytes());
    convert(text.as_bytes(), format, options).map_err(|error| error.to_string())
}

fn plain(text: &str) -> Result<Converted, String> {
    of(text, ConvertOptions::default())
}

fn way(selection: Selection) -> ConvertOptions {
    ConvertOptions { selection, ..ConvertOptions::default() }
}

fn column(name: &str) -> ConvertOptions {
    ConvertOptions { column: Some(name.to_string()), ..ConvertOptions::default() }
}

/// Mbit/s and seconds.
fn rate(converted: &Converted) -> (f64, f64) {
    let seconds = converted.trace.period().as_secs_f64();
    let mbps = converted.trace.opportunities() as f64 * 0.012 / seconds;
    (libm::round(mbps * 100.0) / 100.0, libm::round(seconds * 100.0) / 100.0)
}

/// iperf3 3.12 with `-O 1 -t 4`: the interval in which the warm-up ends has its start by the old clock.
fn omitting(start: f64, seconds: f64) -> String {
    let interval = |start: f64, end: f64, seconds: f64, bytes: u64, omitted: bool| {
        format!(
            r#"{{"sum": {{"start": {start}, "end": {end}, "seconds": {seconds}, "bytes": {bytes}, "omitted": {omitted}, "sender": false}}}}"#
        )
    };
    let intervals = [
        interval(0.0, 1.000108, 1.000108, 2_621_440, true),
        interval(start, 1.000074, seconds, 2_500_000, false),
        interval(1.000074, 2.000078, 1.000004, 2_500_000, false),
        interval(2.000078, 3.000081, 1.000003, 2_500_000, false),
        interval(3.000081, 4.000075, 0.999994, 2_500_000, false),
    ];
    format!(r#"{{"start": {{}}, "intervals": [{}], "end": {{}}}}"#, intervals.join(","))
}

#[test]
fn the_warm_up_of_iperf3_is_left_out_with_the_interval_in_which_it_ends() {
    for (start, seconds) in [(0.999995, 2.000069), (0.98, 1.98), (1.00009, 2.0)] {
        let made = plain(&omitting(start, seconds)).unwrap();
        assert_eq!(rate(&made), (20.0, 3.0), "{start}");
        assert!(made.notes[1].starts_with("2 intervals of iperf3's warm-up"), "{:?}", made.notes);
    }
    // A clock that began again, as most versions write it.
    let made = plain(&omitting(0.0, 1.000074)).unwrap();
    assert_eq!(rate(&made), (20.0, 4.0));
    assert!(made.notes[1].starts_with("1 intervals of iperf3's warm-up"), "{:?}", made.notes);
}

#[test]
fn lines_of_iperf3_leave_out_the_interval_in_which_the_warm_up_ends() {
    let text = "[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec                  (omitted)
[  5]   1.00-1.00   sec  2.38 MBytes  9.96 Mbits/sec
[  5]   1.00-2.00   sec  2.38 MBytes  20.0 Mbits/sec
[  5]   2.00-3.00   sec  2.38 MBytes  20.0 Mbits/sec
";
    let made = plain(text).unwrap();
    assert_eq!(rate(&made), (20.0, 2.0));
    assert!(made.notes.iter().any(|note| note.starts_with("2 intervals of the warm-up")), "{:?}", made.notes);
}

pub(super) const STREAM: &str = r#"{"event": "start", "data": {"connecting_to": {"host": "192.0.2.1"}, "test_start": {"reverse": 1}}}
{"event": "interval", "data": {"sum": {"start": 0, "end": 0.1, "bytes": 150000, "omitted": false, "sender": false}}}
{"event": "interval", "data": {"sum": {"start": 0.1, "end": 0.2, "bytes": 75000, "omitted": false, "sender": false}}}
{"event": "end", "data": {"sum_received": {"start": 0, "end": 0.2, "seconds": 0.2, "bytes": 225000}}}
"#;

#[test]
fn a_stream_of_iperf3_is_its_document_in_parts() {
    let whole = plain(STREAM).unwrap();
    assert_eq!((rate(&whole), whole.format), ((9.0, 0.2), Format::Iperf3));
    assert_eq!(whole.warnings, Vec::<String>::new());
    assert_eq!(rate(&of(STREAM, way(Selection::Down)).unwrap()), (9.0, 0.2));
    // Stopped while it wrote.
    let cut = &STREAM[..STREAM.len() - 40];
    assert_eq!(plain(cut).unwrap().trace, whole.trace);
    let first: String = STREAM.lines().take(1).collect();
    assert_eq!(plain(&first).unwrap_err(), "the file holds no interval");
    let failed = format!("{first}\n{{\"event\": \"error\", \"data\": \"unable to connect\"}}\n");
    assert_eq!(plain(&failed).unwrap_err(), "`error`: iperf3 failed: unable to connect");
    let wrong = STREAM.replace("{\"event\": \"end\"", "event: end");
    assert!(plain(&wrong).unwrap_err().starts_with("`line 4`: not JSON"));
    assert!(selections(STREAM.as_bytes(), Format::Iperf3).unwrap().is_empty());
}

pub(super) fn early_qlog(fields: &str, unit: &str, step: f64) -> String {
    let events: Vec<String> = (0..60)
        .map(|n| {
            let event = if n % 10 == 9 { "PACKET_SENT" } else { "PACKET_RECEIVED" };
            let at = f64::from(n) * step;
            format!(r#"[{at}, "TRANSPORT", "{event}", {{"packet_type": "1RTT", "header": {{"packet_size": 1472}}}}]"#)
        })
        .collect();
    format!(
        r#"{{"qlog_version": "draft-00", "traces": [{{"event_fields": [{fields}], "configuration": {{"time_units": "{unit}"}},
            "events": [{}]}}]}}"#,
        events.join(",\n")
    )
}

#[test]
fn events_of_early_qlog_are_lists() {
    let fields = r#""relative_time", "CATEGORY", "EVENT_TYPE", "DATA""#;
    let micros = plain(&early_qlog(fields, "us", 2_000.0)).unwrap();
    // 54 packets of 1500 bytes with their headers; the last at 116 ms.
    assert_eq!((micros.trace.opportunities(), micros.trace.period().as_millis_f64()), (54, 116.0));
    assert_eq!(plain(&early_qlog(fields, "ms", 2.0)).unwrap().trace, micros.trace);
    // Times from event to event.
    let delta = early_qlog(r#""delta_time", "category", "event", "data""#, "ms", 0.05);
    assert!(plain(&delta).unwrap().trace.period().as_millis_f64() > 80.0);
    let refused = |text: &str| plain(text).unwrap_err();
    assert_eq!(
        refused(&early_qlog(fields, "s", 1.0)),
        "`traces[0].configuration.time_units`: \"s\" is not a unit of times: valid are `ms` and `us`"
    );
    assert!(
        refused(&early_qlog("\"time\"", "ms", 1.0)).starts_with("`traces[0].event_fields`: expected a time")
    );
    let no_time = early_qlog(fields, "ms", 1.0).replace("[0, \"T", "[null, \"T");
    assert!(refused(&no_time).starts_with("`traces[0].events[0].time`: missing"));
}

#[test]
fn columns_of_receivers_and_senders_are_directions() {
    for header in [
        "time_s,rx_Mbps,tx_Mbps",
        "t,RxMbps,TxMbps",
        "time,Received (Mbit/s),Sent (Mbit/s)",
        "time,DL Mbps,UL Mbps",
    ] {
        let table = format!("{header}\n0,24,12\n1,24,12\n");
        let refused = plain(&table).unwrap_err();
        assert!(refused.contains("`--direction down`"), "{header}: {refused}");
        assert_eq!(rate(&of(&table, way(Selection::Down)).unwrap()).0, 24.0, "{header}");
        assert_eq!(rate(&of(&table, way(Selection::Up)).unwrap()).0, 12.0, "{header}");
    }
}

/// No advice leads to a refusal that gives the same one.
#[test]
fn what_a_refusal_advises_is_no_circle() {
    for header in ["time,wifi_mbps,lte_mbps", "time,rx1_dl_mbps,rx2_dl_mbps", "time,rx_mbps,other_mbps"] {
        let table = format!("{header}\n0,24,12\n1,24,12\n");
        let refused = plain(&table).unwrap_err();
        assert!(!refused.contains("--direction"), "{header}: {refused}");
        let name = refused.split("--column ").nth(1).unwrap().split('`').next().unwrap();
        assert!(of(&table, column(name)).is_ok(), "{name} of {refused}");
        if let Err(refused) = of(&table, way(Selection::Up)) {
            assert!(
                refused.contains("no rate column's name says `up`") && !refused.contains("--direction"),
                "{refused}"
            );
        }
    }
}

#[test]
fn tables_of_other_languages_are_read() {
    let table = |text: &str| rate(&plain(text).unwrap());
    assert_eq!(table("time_s;download_mbps\n0,0;20,5\n1,0;20,5\n2,0;20,5\n"), (20.5, 3.0));
    assert_eq!(table("time_s;download_mbps\n0;20.5\n1;20.5\n2;20.5\n"), (20.5, 3.0));
    assert_eq!(table("0,0;20,5\n0,5;20,5\n"), (20.5, 1.0));
    assert_eq!(table("time_s\tmbps\n0\t20.5\n1\t20.5\n"), (20.5, 2.0));
    assert_eq!(table("0,5\t20,5\n1,0\t20,5\n"), (20.5, 1.0));
    let many = "time;speed;rx_mbps;tx_mbps\n0,0;3,1;24,0;1,5\n1,0;3,2;24,0;1,5\n";
    assert_eq!(rate(&of(many, way(Selection::Down)).unwrap()), (24.0, 2.0));
    assert_eq!(selections(many.as_bytes(), Format::Csv).unwrap().len(), 2);
    let refused = plain("time_s;mbps\n0;20,5\n1;fast\n").unwrap_err();
    assert!(refused.starts_with("line 3: the rate is `fast`"), "{refused}");
}

pub(super) const LINK_LOG: &str = "# mahimahi mm-link (down) [x] > down.log
# command line: mm-link up down
# queue: droptail
# init timestamp: 1700000000000
# base timestamp: 7
8 # 1504
8 + 1504
8 - 1504 0
9 # 1504
10 d 2 3008
12 # 1504
";

#[test]
fn the_opportunities_of_a_link_are_in_its_log() {
    let made = plain(LINK_LOG).unwrap();
    assert_eq!(made.format, Format::LinkLog);
    assert_eq!(made.trace.millis().collect::<Vec<_>>(), [1, 2, 5]);
    // Without its head the first opportunity is the beginning.
    let body: String = LINK_LOG.lines().skip(5).map(|line| format!("{line}\n")).collect();
    assert_eq!(plain(&body).unwrap().trace.millis().collect::<Vec<_>>(), [0, 1, 4]);
    // A link of a rate: bytes are gathered.
    let parts = LINK_LOG.replace("# 1504", "# 750");
    assert_eq!(plain(&parts).unwrap().trace.millis().collect::<Vec<_>>(), [2]);
    let refused = |from, to| plain(&LINK_LOG.replace(from, to)).unwrap_err();
    assert!(refused("10 d 2 3008", "10 d").starts_with("line 10: the row is `10 d`: expected an event"));
    assert!(
        refused("9 # 1504", "6 # 1504").starts_with("line 9: the time is `6`: expected whole milliseconds")
    );
    assert!(refused(" # ", " + ").starts_with("the file holds no delivery opportunity"));
    assert!(refused("timestamp: 7", "timestamp: x").starts_with("line 5: the base timestamp is"));
}

pub(super) const FLENT: &str = r#"{"metadata": {"NAME": "rrul", "DATA_FILENAME": "a.flent.gz"}, "version": 4,
 "x_values": [0.0, 0.2, 0.4, 0.6], "results": {"TCP download BE": [12.0, 12.0, 6.0, 6.0], "TCP download sum": [24.0, 24.0, 12.0, null],
 "Ping (ms) ICMP": [30, 30, 30, 30], "TCP upload": [1.2, 1.2, 1.2, 1.2]}, "raw_values": {}}"#;

#[test]
fn a_series_of_flent_is_chosen_by_its_direction_or_name() {
    let down = of(FLENT, way(Selection::Down)).unwrap();
    assert_eq!((down.format, rate(&down)), (Format::Flent, (20.0, 0.6)));
    assert!(down.notes[0].contains("`TCP download sum`"), "{:?}", down.notes);
    assert_eq!(rate(&of(FLENT, way(Selection::Up)).unwrap()), (1.2, 0.8));
    assert_eq!(rate(&of(FLENT, column("tcp download be")).unwrap()), (9.0, 0.8));
    let refused = plain(FLENT).unwrap_err();
    assert!(refused.contains("`--direction down`") && refused.contains("`TCP download BE`"), "{refused}");
    let refused = of(FLENT, column("TCP")).unwrap_err();
    assert!(refused.contains("`TCP download sum`") && refused.contains("`Ping (ms) ICMP`"), "{refused}");
    let one = FLENT.replace("upload", "Ping (ms)").replace("TCP download BE", "UDP ping");
    assert_eq!(rate(&plain(&one).unwrap()), (20.0, 0.6));
    let pings = one.replace("TCP download sum", "RTT");
    assert!(plain(&pings).unwrap_err().contains("no series' name says that it holds rates"));
    let refused = |from, to| of(&FLENT.replace(from, to), way(Selection::Down)).unwrap_err();
    assert_eq!(
        refused("0.0, 0.2, 0.4, 0.6", "0.0, 0.2"),
        "`results.TCP download sum`: 4 values, where `x_values` has 2"
    );
    assert!(refused("[24.0", "[-1").starts_with("`results.TCP download sum[0]`: -1 is not a rate"));
    assert!(refused("0.2, 0.4", "0.4, 0.2").starts_with("`x_values[2]`: 0.2 is not a number of seconds"));
    assert!(refused("\"results\"", "\"result\"").starts_with("`results`: missing"));
    assert_eq!(selections(FLENT.as_bytes(), Format::Flent).unwrap().len(), 2);
}

const STATES: &str = "Timestamp,CellID,DL_bitrate,UL_bitrate,State,CELLHEX
2019.12.14_10.16.30,1,12,12,D,C
2019.12.14_10.16.31,1,0,12,I,C
2019.12.14_10.16.32,1,0,12,I,C
2019.12.14_10.16.33,1,24,12,D,C
";

#[test]
fn rows_of_an_idle_application_are_warned_about_or_left_out() {
    let kept = of(STATES, way(Selection::Down)).unwrap();
    assert_eq!(kept.trace.period().as_secs_f64(), 4.0);
    let said = kept
        .warnings
        .iter()
        .find(|warning| warning.contains("2 of 4 rows the application was idle by `State`"));
    assert!(said.is_some_and(|said| said.contains("--without-idle")), "{:?}", kept.warnings);
    let options = ConvertOptions { without_idle: true, ..way(Selection::Down) };
    let left_out = of(STATES, options).unwrap();
    assert_eq!(left_out.trace.period().as_secs_f64(), 2.0);
    assert!(left_out.notes.iter().any(|note| note.ends_with("they were left out")), "{:?}", left_out.notes);
}

#[test]
fn long_rates_of_nought_are_warned_about_or_left_out() {
    let zeros = |zeros: usize| {
        let rows =
            (0..zeros + 2).map(|row| format!("{row},{}\n", if row == 0 || row > zeros { 12 } else { 0 }));
        rows.collect::<String>()
    };
    let warned = |text: &str| {
        let made = plain(text).unwrap();
        made.warnings.iter().any(|warning| warning.contains("--without-idle"))
    };
    assert!(!warned(&zeros(4)), "an outage");
    for header in ["", "time,mbps\n", "time,cell,state,mbps\n"] {
        let rows = zeros(5);
        let text = if header.contains("cell") { rows.replace(',', ",1,D,") } else { rows };
        let text = format!("{header}{text}");
        assert!(warned(&text), "{text}");
        let options = ConvertOptions { without_idle: true, ..ConvertOptions::default() };
        assert_eq!(rate(&of(&text, options).unwrap()), (12.0, 2.0), "{text}");
    }
    let columns = zeros(5).replace(',', " ");
    assert!(warned(&columns));
    let options = ConvertOptions { without_idle: true, ..ConvertOptions::default() };
    assert_eq!(rate(&of(&columns, options.clone()).unwrap()), (12.0, 2.0));
    assert_eq!(of("1\n2\n", options).unwrap_err(), "files of this format have no `--without-idle`");
}

#[test]
fn the_column_of_the_times_can_be_named() {
    let table = "seq,elapsed,cell,mbps\n1,0.0,7,12\n2,0.5,7,24\n3,1.0,7,12\n";
    let refused = plain(table).unwrap_err();
    assert!(refused.contains("`elapsed`") && refused.contains("`--time-column`"), "{refused}");
    let named =
        |time: &str| ConvertOptions { time_column: Some(time.to_string()), ..ConvertOptions::default() };
    let made = of(table, named("Elapsed")).unwrap();
    assert_eq!(rate(&made), (16.0, 1.5));
    assert!(made.notes[0].contains("the time `elapsed`"), "{:?}", made.notes);
    assert_eq!(rate(&of(&table.replace("elapsed", "at_ms"), named("at_ms")).unwrap()).1, 0.0);
    assert!(of(table, named("when")).unwrap_err().starts_with("no column is called `when`"));
    assert_eq!(rate(&of("at,mbps\n0,12\n1,12\n", named("at")).unwrap()), (12.0, 2.0));
    assert_eq!(of("1 2\n2 2\n", named("at")).unwrap_err(), "files of this format have no `--time-column`");
}

#[test]
fn files_that_gzip_packed_are_read_like_those_in_them() {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    let packed = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let path = std::env::temp_dir().join(format!("brakelight-packed-{}", std::process::id()));
    let read = |bytes: &[u8], options: ConvertOptions| {
        std::fs::write(&path, bytes).unwrap();
        convert_file(&path, None, options)
    };
    for text in ["1\n2\n5\n", "time,mbps\n0,12\n1,24\n", "0.5 12\n1 24\n", STREAM, LINK_LOG] {
        let mut of_packed = read(&packed(text.as_bytes()), ConvertOptions::default()).unwrap();
        let mut of_plain = read(text.as_bytes(), ConvertOptions::default()).unwrap();
        // The hash is of the file as it lies there.
        assert_eq!(of_packed.recording.about.source_sha256, Some(sha256(&packed(text.as_bytes()))));
        of_packed.recording.about.source_sha256 = None;
        of_plain.recording.about.source_sha256 = None;
        assert_eq!(of_packed, of_plain, "{text}");
    }
    assert_eq!(read(&packed(FLENT.as_bytes()), way(Selection::Up)).unwrap().format, Format::Flent);
    // JSON may hold 32 MB: a hundred and more times the size of this file.
    let bomb = packed(format!("{{{}", " ".repeat(40_000_000)).as_bytes());
    assert!(bomb.len() < 200_000);
    let refused = read(&bomb, ConvertOptions::default()).unwrap_err();
    assert!(matches!(&refused, FileError::Read { error, .. } if error.kind() == io::ErrorKind::FileTooLarge));
    assert!(
        refused.to_string().ends_with("unpacked it is longer than 32MB, the most that such a file may hold")
    );
    let delays = delays::delay_file(&{
        std::fs::write(&path, packed(b"12\n13\n")).unwrap();
        path.clone()
    });
    assert_eq!(delays.unwrap().down.delays.len(), 2);
    std::fs::write(&path, packed(b"1\n2\n5\n")).unwrap();
    assert_eq!(super::super::names::read(&path).unwrap().millis().collect::<Vec<_>>(), [1, 2, 5]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_refusal_says_whose_file_it_looks_like_and_what_to_do() {
    let path = std::env::temp_dir().join(format!("brakelight-looks-{}", std::process::id()));
    let refused = |text: &str, format: Option<Format>| {
        std::fs::write(&path, text).unwrap();
        convert_file(&path, format, ConvertOptions::default()).unwrap_err().to_string()
    };
    let ping = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=1 ms\n";
    assert!(refused(ping, None).contains("it looks like what `ping` prints: it has delays and no capacity"));
    for (text, said) in [
        (
            "1\ntwo\n",
            "(read as a trace of Mahimahi, since nothing in it tells another format; `--from` names one)",
        ),
        ("time,mbps\n0,fast\n", "(read as a table of rates; `--from` names another format)"),
        ("{\"a\": 1}", "(read as iperf3's JSON; `--from` names another format)"),
    ] {
        let refusal = refused(text, None);
        assert!(refusal.ends_with(said) && !refusal.contains('\n'), "{refusal}");
    }
    assert!(!refused("1\ntwo\n", Some(Format::Mahimahi)).contains("--from"));
    std::fs::remove_file(&path).unwrap();
}
