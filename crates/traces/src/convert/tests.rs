use std::fs;

use brakelight_core::random::Random;
use brakelight_testkit::mutate::{fuzz_inputs, mutate};
use proptest::prelude::*;

use super::*;

fn stamps(trace: &Trace) -> Vec<u64> {
    trace.millis().collect()
}

fn csv(text: &str) -> Result<Vec<u64>, String> {
    convert(text.as_bytes(), Format::Csv, ConvertOptions::default())
        .map(|converted| stamps(&converted.trace))
        .map_err(|error| error.to_string())
}

fn iperf3(text: &str) -> Result<Converted, String> {
    convert(text.as_bytes(), Format::Iperf3, ConvertOptions::default()).map_err(|error| error.to_string())
}

fn capture(bytes: &[u8]) -> Result<Converted, ConvertError> {
    convert(bytes, Format::Pcap, ConvertOptions::default())
}

/// The beginning of an IP packet of `length` bytes from 10.0.0.1:443 to 10.0.0.2:50000, by UDP.
fn packet(length: u32) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x01, 0xbb, 0xc3, 0x50, 0, 0, 0, 0]);
    bytes
}

/// A classic capture, little endian, of Ethernet: microseconds and frame length of each packet.
fn classic(packets: &[(u64, u32)]) -> Vec<u8> {
    let mut bytes =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    for (micros, length) in packets {
        for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, 42, *length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 8, 0]);
        bytes.extend(packet(length.saturating_sub(14)));
    }
    bytes
}

/// A block of a pcapng file in the given byte order.
fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let length = word(12 + body.len() as u32);
    [&word(kind)[..], &length, body, &length].concat()
}

/// A pcapng file with one interface of raw IP, its options, and packets of ticks and length.
fn next_generation(big: bool, options: &[(u16, &[u8])], packets: &[(u64, u32)]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let section = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
    let mut interface = [&half(101)[..], &half(0), &word(0)].concat();
    for (code, value) in options {
        let padding = vec![0; (4 - value.len() % 4) % 4];
        interface.extend([&half(*code)[..], &half(value.len() as u16), value, &padding].concat());
    }
    interface.extend([0; 4]);
    let mut bytes = [block(0x0a0d_0d0a, &section, big), block(1, &interface, big)].concat();
    for (ticks, length) in packets {
        let (high, low) = ((ticks >> 32) as u32, *ticks as u32);
        let head = [word(0), word(high), word(low), word(28), word(*length)].concat();
        let body = [head, packet(*length)].concat();
        bytes.extend(block(6, &body, big));
    }
    bytes
}

#[test]
fn formats_are_known_by_their_first_bytes() {
    let cases: [(&[u8], Format); 12] = [
        (b"0\n1\n", Format::Mahimahi),
        (b"", Format::Mahimahi),
        (b"start_s,mbps\n0,1\n", Format::Csv),
        (b"0,12\n", Format::Csv),
        (b" {\"start\": 1}", Format::Iperf3),
        (b"\xef\xbb\xbf\r\n{", Format::Iperf3),
        (b"\xef\xbb\xbf0\r\n", Format::Mahimahi),
        (b"# by hand\r\n\r\n0,12\r\n", Format::Csv),
        (b"\"time\",\"mbps\"\n", Format::Csv),
        (&classic(&[]), Format::Pcap),
        (&next_generation(false, &[], &[]), Format::Pcap),
        (&next_generation(true, &[], &[]), Format::Pcap),
    ];
    for (bytes, format) in cases {
        assert_eq!(Format::detect(bytes), format, "{bytes:?}");
    }
}

#[test]
fn a_table_gives_each_interval_its_opportunities() {
    // 12 Mbit/s for 3 ms, nothing for 3 ms, 24 Mbit/s for as long as the interval before.
    assert_eq!(csv("start_s,mbps\n0,12\n0.003,0\n0.006,24\n").unwrap(), [1, 2, 3, 7, 7, 8, 8, 9, 9]);
    // The same with an end, comments, spaces, another origin and Windows' line ends.
    let spelled = "# made by hand\r\n10, 12\r\n10.003, 0\r\n\r\n10.006, 24\r\n10.009,\r\n";
    assert_eq!(csv(spelled).unwrap(), [1, 2, 3, 7, 7, 8, 8, 9, 9]);
    // One row lasts a second.
    assert_eq!(csv("0,0.036").unwrap(), [334, 667, 1000]);
}

#[test]
fn bits_carry_over_from_interval_to_interval() {
    // 8 kbit in the first 2 ms, 4 in the third: an opportunity; then 12 kbit in 4 ms.
    assert_eq!(csv("0,4\n0.003,3\n0.007,").unwrap(), [3, 7]);
}

#[test]
fn a_table_that_is_wrong_is_refused_by_line_and_column() {
    let time = "expected seconds, from -1e10 to 1e10, or a date such as `2024-05-01T12:00:00.5Z`, more than on the line \
                before by at least a millisecond; a header `time_ms` says milliseconds";
    let rate =
        "expected a rate from 0 to 1e12 bit/s, in the unit that the header names (without a header: Mbit/s)";
    let row = "expected two columns, `start_s,mbps`, or three, `start_s,mbps,end_s`";
    let cases = [
        ("start_s,mbps\n0,12\nx,12\n", format!("line 3: the time is `x`: {time}")),
        ("0,12\n0,13\n", format!("line 2: the time is `0`: {time}")),
        ("0,12\n0.0001,13\n", format!("line 2: the time is `0.0001`: {time}")),
        ("0,12\nnan,13\n", format!("line 2: the time is `nan`: {time}")),
        ("0,-1\n", format!("line 1: the rate is `-1`: {rate}")),
        ("0,12\n1,fast\n", format!("line 2: the rate is `fast`: {rate}")),
        ("0,1,2,3\n", format!("line 1: the row is `0,1,2,3`: {row}")),
        ("0,inf\n", format!("line 1: the rate is `inf`: {rate}")),
        ("time,mbps\n0,1e7\n", format!("line 2: the rate is `1e7`: {rate}")),
        ("0,\n", format!("line 1: the rate is ``: {rate}")),
        ("0,12\n7\n", format!("line 2: the row is `7`: {row}")),
        (
            "0,12,0.1\n0.2,12,0.3\n",
            "line 2: the time is `0.2`: expected the end of the interval before: the rate between the two is not known"
                .to_string(),
        ),
        (
            "0,12,0\n",
            "line 1: the end is `0`: expected an end after the start of the interval by at least a millisecond".to_string(),
        ),
        (
            "0,12\n1,\n2,12\n",
            "line 3: the row is `2,12`: expected nothing after the line that ends the last interval".to_string(),
        ),
        ("start_s,mbps\n", "the file holds no row of `start_s,mbps`".to_string()),
        ("0,0.001\n1,\n", "all of the file makes no delivery opportunity of 1.5kB".to_string()),
        (
            "0,1\n100000,\n",
            "the file lasts 100000 s and carries 8333333 opportunities: valid are up to 86400 s and 200 million".to_string(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(csv(text), Err(expected), "{text}");
    }
}

#[test]
fn a_trace_as_a_table() {
    // 3 opportunities in the first 100 ms, one in the second, 2 in the last 50 ms.
    let trace = Trace::from_millis([0, 10, 100, 150, 201, 250]).unwrap();
    let table = to_csv(&trace, Duration::from_millis(100), OPPORTUNITY);
    assert_eq!(table, "start_s,mbps,end_s\n0,0.36,0.1\n0.1,0.12,0.2\n0.2,0.48,0.25\n");
}

#[test]
fn a_trace_as_a_mahimahi_file() {
    let trace = Trace::from_millis([0, 10, 10, 250]).unwrap();
    assert_eq!(to_mahimahi(&trace), "0\n10\n10\n250\n");
}

const IPERF3: &str = r#"{"start": {}, "intervals": [
    {"sum": {"start": 0, "end": 0.01, "bytes": 99999, "omitted": true}},
    {"sum": {"start": 0, "end": 0.002, "bytes": 3000, "omitted": false}},
    {"sum": {"start": 0.002, "end": 0.004, "bytes": 0, "omitted": false}},
    {"sum": {"start": 0.004, "end": 0.006, "bytes": 6000, "omitted": false}}], "end": {}}"#;

#[test]
fn iperf3_intervals_become_rates() {
    let converted = iperf3(IPERF3).unwrap();
    assert_eq!(stamps(&converted.trace), [1, 2, 5, 5, 6, 6]);
    assert_eq!(converted.notes.len(), 2);
    assert!(converted.notes[1].starts_with("1 intervals of iperf3's warm-up"));
}

#[test]
fn iperf3_output_that_is_wrong_is_refused_by_field() {
    let replaced = |from: &str, to: &str| iperf3(&IPERF3.replace(from, to)).unwrap_err();
    assert_eq!(
        replaced("\"bytes\": 6000", "\"bits\": 1"),
        "`intervals[3].sum.bytes`: missing: expected a number"
    );
    assert_eq!(
        replaced("\"bytes\": 6000", "\"bytes\": -1"),
        "`intervals[3].sum.bytes`: -1 is not between 0 and 1e15"
    );
    assert_eq!(
        replaced("\"end\": 0.006", "\"end\": 0.004"),
        "`intervals[3].sum.end`: 0.004 is not between the interval's start and 1e9"
    );
    assert_eq!(
        replaced("\"end\": 0.006", "\"end\": 1e14"),
        "`intervals[3].sum.end`: 100000000000000 is not between the interval's start and 1e9"
    );
    assert_eq!(
        iperf3("{\"error\": \"unable to connect\"}").unwrap_err(),
        "`error`: iperf3 failed: unable to connect"
    );
    assert_eq!(iperf3("{\"intervals\": []}").unwrap_err(), "the file holds no interval");
    assert!(iperf3("{\"interval\": []}").unwrap_err().starts_with("`intervals`: missing"));
    assert!(iperf3("{").unwrap_err().starts_with("`document`: not JSON: EOF"));
}

#[test]
fn packets_become_opportunities_by_their_ip_bytes() {
    // Frames of 1514 bytes carry 1500; two halves make one opportunity; one of 3014 makes two.
    let packets = [(5_000_000, 1514), (5_000_900, 764), (5_001_100, 764), (5_009_999, 3014)];
    let converted = capture(&classic(&packets)).unwrap();
    assert_eq!(stamps(&converted.trace), [0, 1, 9, 9]);
    assert_eq!(converted.notes, Vec::<String>::new());
}

#[test]
fn packets_that_arrive_out_of_order_are_sorted() {
    let converted = capture(&classic(&[(3_000, 1514), (9_000, 1514), (4_000, 1514)])).unwrap();
    assert_eq!(stamps(&converted.trace), [0, 1, 6]);
}

#[test]
fn pcapng_times_obey_resolution_offset_and_byte_order() {
    for big in [false, true] {
        let micros = next_generation(big, &[], &[(7_000_000, 1500), (7_004_000, 1500)]);
        assert_eq!(stamps(&capture(&micros).unwrap().trace), [0, 4]);
        // if_tsresol 9: nanoseconds; beyond 2^32 of them.
        let nanos = next_generation(big, &[(9, &[9])], &[(4_294_000_000, 1500), (4_304_000_000, 1500)]);
        assert_eq!(stamps(&capture(&nanos).unwrap().trace), [0, 10]);
        // if_tsresol 0x8a: 1024 ticks a second.
        let binary = next_generation(big, &[(9, &[0x8a])], &[(1024, 1500), (2048, 1500)]);
        assert_eq!(stamps(&capture(&binary).unwrap().trace), [0, 1000]);
    }
}

#[test]
fn an_offset_moves_one_interface_against_another() {
    // A second section: its interface is 2 s ahead by its offset, its packet 1 ms later by its own clock.
    for big in [false, true] {
        let two = if big { 2_i64.to_be_bytes() } else { 2_i64.to_le_bytes() };
        let first = next_generation(big, &[], &[(1_000_000, 1500)]);
        let second = next_generation(big, &[(14, &two)], &[(1_001_000, 1500)]);
        assert_eq!(stamps(&capture(&[first, second].concat()).unwrap().trace), [0, 2001]);
    }
}

#[test]
fn a_capture_that_breaks_off_says_so() {
    let mut bytes = classic(&[(0, 1514), (2_000, 1514), (3_000, 1514)]);
    bytes.truncate(bytes.len() - 3);
    let converted = capture(&bytes).unwrap();
    assert_eq!(stamps(&converted.trace), [0, 2]);
    assert_eq!(converted.notes, ["the capture breaks off inside packet 3, which was left out"]);
}

#[test]
fn a_capture_that_is_wrong_is_refused_by_packet() {
    assert_eq!(capture(b"0\n1\n"), Err(ConvertError::Unrecognized("a pcap nor a pcapng file")));
    assert_eq!(capture(&classic(&[])), Err(ConvertError::Empty("packet that carries a time")));
    assert_eq!(capture(&classic(&[(0, 100), (9_000, 100)])), Err(ConvertError::Silent(Bytes(1500))));
    assert!(matches!(
        capture(&classic(&[(0, 1514)])),
        Err(ConvertError::Trace(TraceError::ZeroPeriod { .. }))
    ));
    let coarse = next_generation(false, &[(9, &[20])], &[(0, 1500)]);
    let refusal = capture(&coarse).unwrap_err().to_string();
    assert!(refusal.starts_with("packet 1: its interface counts time in less than"), "{refusal}");
    let mut unknown = next_generation(false, &[], &[(0, 1500)]);
    let interface = unknown.len() - 60 + 8;
    unknown[interface] = 3;
    let refusal = capture(&unknown).unwrap_err();
    assert_eq!(
        refusal,
        ConvertError::Pcap { packet: 1, problem: "names an interface that is not described" }
    );
}

#[test]
fn files_are_converted_by_what_they_hold() {
    let path = std::env::temp_dir().join(format!("brakelight-convert-{}", std::process::id()));
    fs::write(&path, "0,12\n0.002,\n").unwrap();
    assert_eq!(stamps(&convert_file(&path, None, ConvertOptions::default()).unwrap().trace), [1, 2]);
    let refusal =
        convert_file(&path, Some(Format::Mahimahi), ConvertOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("line 1: `0,12` is not a whole number"), "{refusal}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(convert_file(&path, None, ConvertOptions::default()), Err(FileError::Read { .. })));
    assert_eq!(
        "xlsx".parse::<Format>(),
        Err("unknown format `xlsx`: valid are `mahimahi`, `csv`, `columns`, `packets`, `pcap`, `pcapng`, `iperf3`, `iperf3-text`, \
             `nuttcp`, `genet`, `cake-autorate`, `flent`, `link-log`, `cellreplay`, `qlog`, `bltrace`"
            .to_string())
    );
}

/// A packet of a capture: microseconds, IP bytes, whether it goes back, whether by the second flow.
type Captured = (u32, u16, bool, bool);

/// A classic capture of raw IP between 10.0.0.1 and 10.0.0.2.
fn both_ways(packets: &[Captured]) -> Vec<u8> {
    let mut bytes = classic(&[]);
    bytes[20] = 101;
    for &(micros, length, back, second) in packets {
        for word in [micros / 1_000_000, micros % 1_000_000, 28, u32::from(length)] {
            bytes.extend(word.to_le_bytes());
        }
        let mut packet = packet(u32::from(length));
        packet[21] ^= u8::from(second);
        if back {
            packet[12..20].rotate_left(4);
            packet[20..24].rotate_left(2);
        }
        bytes.extend(packet);
    }
    bytes
}

#[test]
fn what_can_be_chosen_of_a_file_are_its_directions_with_the_most_first() {
    let packet = |length: u32, back: bool| (length * 1000, length as u16, back, false);
    let of = |packets: &[Captured]| selections(&both_ways(packets), Format::Pcap).unwrap();
    assert_eq!(of(&[packet(100, false), packet(200, false)]), []);
    let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
    let packets = [packet(100, false), packet(300, true), packet(400, true), packet(800, false)];
    // From one end of two is to the other: it stands there once.
    let expected = [(Selection::From(one), Bytes(900)), (Selection::From(other), Bytes(700))];
    assert_eq!(of(&packets), expected);
    for (selection, _) in expected {
        let options = ConvertOptions { opportunity: Bytes(100), selection, ..ConvertOptions::default() };
        convert(&both_ways(&packets), Format::Pcap, options).unwrap();
    }
    let json = r#"{"intervals": [{"sum": {"bytes": 5}, "sum_bidir_reverse": {"bytes": 7}}]}"#;
    let ways = selections(json.as_bytes(), Format::Iperf3).unwrap();
    assert_eq!(ways, [(Selection::Down, Bytes(7)), (Selection::Up, Bytes(5))]);
    assert_eq!(selections(br#"{"intervals": [{"sum": {"bytes": 5}}]}"#, Format::Iperf3).unwrap(), []);
    assert_eq!(selections(b"1\n2\n", Format::Mahimahi).unwrap(), []);
    assert!(selections(b"{", Format::Iperf3).is_err());
}

proptest! {
    /// Of a capture of two directions and two flows, what is chosen is what a capture of it alone would give.
    #[test]
    fn what_is_chosen_of_a_capture_is_what_a_capture_of_it_alone_gives(
        mut packets in prop::collection::vec((0_u32..3_000_000, 28_u16..9_000, any::<bool>(), any::<bool>()), 1..60),
        by_flow in any::<bool>(),
    ) {
        // The first is of the chosen direction, so that times count from the same packet.
        packets.sort_unstable();
        packets[0].2 = false;
        packets[0].3 = false;
        let wanted = |packet: &&Captured| !(packet.2 || by_flow && packet.3);
        let alone: Vec<Captured> = packets.iter().filter(wanted).copied().collect();
        let selection = if by_flow { "10.0.0.1:443-10.0.0.2:50000" } else { "from:10.0.0.1" };
        let selection = if by_flow { Selection::flow(selection) } else { selection.parse() }.unwrap();
        let of = |packets: &[Captured], selection| {
            let options = ConvertOptions { selection, ..ConvertOptions::default() };
            convert(&both_ways(packets), Format::Pcap, options).map(|converted| stamps(&converted.trace))
        };
        prop_assert_eq!(of(&packets, selection), of(&alone, selection));
        prop_assert_eq!(of(&alone, Selection::OneDirection), of(&alone, selection));
        let back = packets.iter().any(|packet| packet.2);
        let refused = matches!(of(&packets, Selection::OneDirection), Err(ConvertError::BothDirections { .. }));
        prop_assert_eq!(refused, back);
    }

    /// The unit of a table and the form of its times change nothing.
    #[test]
    fn a_table_means_the_same_in_every_unit(
        rates in prop::collection::vec(0_u64..50_000, 1..40),
        width_ms in 1_u64..2_000,
        begin_ms in 0_u64..2_000_000_000_000,
    ) {
        let table = |header: &str, time: &dyn Fn(u64) -> String, rate: &dyn Fn(u64) -> String| {
            let mut text = format!("{header}\r\n");
            for (index, bits_per_ms) in rates.iter().enumerate() {
                text += &format!("{},{}\r\n", time(index as u64 * width_ms), rate(*bits_per_ms * 8));
            }
            text += &format!("{},\r\n", time(rates.len() as u64 * width_ms));
            csv(&text)
        };
        let seconds = |ms: u64| format!("{}.{:03}", ms / 1_000, ms % 1_000);
        let plain = table("start_s,kbps", &seconds, &|rate| rate.to_string());
        let unix = table("time_ms,bit/s", &|ms| (begin_ms + ms).to_string(), &|rate| format!("{rate}000"));
        let bytes = table("timestamp,bytes_per_second", &|ms| seconds(begin_ms + ms), &|rate| (rate * 125).to_string());
        prop_assert_eq!(&plain, &unix);
        prop_assert_eq!(&plain, &bytes);
    }

    /// A table holds what a trace carries in each interval, and where it ends.
    #[test]
    fn tables_keep_the_count_of_every_interval(
        mut stamps in prop::collection::vec(0_u64..3_000, 1..200),
        end in 3_000_u64..3_500,
        width in prop::sample::select(vec![10_u64, 50, 100, 1_000]),
    ) {
        stamps.sort_unstable();
        stamps.push(end);
        let trace = Trace::from_millis(stamps).unwrap();
        let interval = Duration::from_millis(width);
        let table = to_csv(&trace, interval, OPPORTUNITY);
        let back = convert(table.as_bytes(), Format::Csv, ConvertOptions::default()).unwrap().trace;
        prop_assert_eq!(back.period(), trace.period());
        let counts = |trace: &Trace| {
            let mut counts = vec![0_i64; end.div_ceil(width) as usize];
            trace.millis().for_each(|ms| counts[(ms.saturating_sub(1) / width) as usize] += 1);
            counts
        };
        // Rates are whole bit/s: what is rounded away may leave an opportunity to the next interval.
        let (before, after) = (counts(&trace), counts(&back));
        let mut ahead = 0;
        for (before, after) in before.iter().zip(&after) {
            ahead += after - before;
            prop_assert!((-1..=1).contains(&ahead), "{:?} {:?}", before, after);
        }
    }
}

#[test]
fn no_table_or_json_brings_the_readers_down() {
    let corpus = [
        "start_s,mbps\n0,12\n0.1,0\n0.2,24.5\n0.3,\n".to_string(),
        "10,1\n20,0.5\n30,7\n".to_string(),
        "time_ms,kB/s,end\n1700000000000,12,1700000000100\n1700000000100,3,1700000000200\n".to_string(),
        "\u{feff}time,\"rate (bit/s)\"\r\n2024-02-28T23:59:59.9Z,1200000\r\n2024-02-29 00:00:00+00:00,24\r\n"
            .to_string(),
        IPERF3.to_string(),
        IPERF3.replace("\"end\": {}}", &format!("\"end\": {{}}, \"server_output_json\": {IPERF3}}}")),
        IPERF3.replace("{\"sum\"", "{\"sum_bidir_reverse\": {\"sender\": true}, \"sum\""),
    ];
    let mut random = Random::stream(1, "fuzz conversions");
    let mut accepted = 0;
    for _ in 0..fuzz_inputs() {
        let text = mutate(&corpus, &mut random);
        for format in [Format::detect(text.as_bytes()), Format::Csv] {
            match convert(text.as_bytes(), format, ConvertOptions::default()) {
                Ok(converted) => {
                    assert!(converted.trace.opportunities() > 0);
                    accepted += 1;
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    assert!(accepted > 0, "some inputs stay valid");
}

#[test]
fn no_capture_brings_the_readers_down() {
    let packets = [(5_000_000, 1514), (5_000_900, 764), (5_001_100, 764), (5_009_999, 3014)];
    let corpus = [
        classic(&packets),
        next_generation(false, &[(9, &[9]), (14, &[0; 8])], &packets),
        next_generation(true, &[(9, &[0x8a])], &packets),
    ];
    let mut random = Random::stream(1, "fuzz captures");
    let mut accepted = 0;
    for _ in 0..fuzz_inputs() {
        let mut pick = |n: usize| (random.bits() % n as u64) as usize;
        let mut bytes = corpus[pick(corpus.len())].clone();
        for _ in 0..pick(5) {
            let at = pick(bytes.len());
            match pick(4) {
                0 => bytes[at] = pick(256) as u8,
                1 => bytes[at] ^= 1 << pick(8),
                2 => bytes.truncate(at + 1),
                _ => {
                    let piece = bytes[at..bytes.len().min(at + 16)].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        match capture(&bytes) {
            Ok(converted) => {
                assert!(converted.trace.opportunities() > 0);
                accepted += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(accepted > 0, "some inputs stay valid");
}

#[test]
fn a_test_in_both_directions_is_taken_one_way() {
    let both =
        IPERF3.replace("}},\n", "}, \"sum_bidir_reverse\": {\"start\": 0, \"end\": 9, \"bytes\": 1}},\n");
    let taken = |text: &str, selection| {
        let options = ConvertOptions { selection, ..ConvertOptions::default() };
        convert(text.as_bytes(), Format::Iperf3, options).map_err(|error| error.to_string())
    };
    let refusal = taken(&both, Selection::OneDirection).unwrap_err();
    assert!(refusal.contains("went both ways") && refusal.contains("`up`"), "{refusal}");
    assert_eq!(stamps(&taken(&both, Selection::Up).unwrap().trace), [1, 2, 5, 5, 6, 6]);
    let refusal = taken(&both, Selection::Down).unwrap_err();
    assert!(refusal.starts_with("`intervals[1].sum_bidir_reverse.end`"), "{refusal}");
    // A download, of the client: received.
    let down = IPERF3
        .replace("\"start\": {}", "\"start\": {\"connecting_to\": {}, \"test_start\": {\"reverse\": 1}}");
    assert_eq!(taken(&down, Selection::Down).unwrap().warnings, Vec::<String>::new());
    let refusal = taken(&down, Selection::Up).unwrap_err();
    assert!(refusal.contains("went `down` only"), "{refusal}");
    let upload = down.replace("\"reverse\": 1", "\"reverse\": 0");
    assert_eq!(taken(&upload, Selection::Up).unwrap().warnings.len(), 1, "sent");
}

#[test]
fn directions_are_read_and_refused_in_words() {
    for text in ["all", "up", "down", "from:10.0.0.1", "to:2001:db8::1"] {
        assert_eq!(text.parse::<Selection>().unwrap().to_string(), text);
    }
    let flow = "[2001:db8::1]:443-10.0.0.1:5000";
    assert_eq!(Selection::flow(flow).unwrap().to_string(), flow);
    assert!("from:here".parse::<Selection>().unwrap_err().contains("`here` is not an IP address"));
    assert!("sideways".parse::<Selection>().unwrap_err().contains("valid are `from:ADDRESS`"));
    assert!(Selection::flow("10.0.0.1-10.0.0.2").unwrap_err().contains("give ADDRESS:PORT-ADDRESS:PORT"));
    let options = ConvertOptions { selection: Selection::Up, ..ConvertOptions::default() };
    let refusal = convert(b"0\n1\n", Format::Mahimahi, options).unwrap_err().to_string();
    assert!(refusal.contains("it holds one only"), "{refusal}");
}
