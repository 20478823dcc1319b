use brakelight_core::random::Random;
use brakelight_testkit::mutate::fuzz_inputs;
use proptest::prelude::*;

use super::*;

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn opportunities(instants: impl IntoIterator<Item = (u64, u32)>) -> Option<RecordedCapacity> {
    Some(RecordedCapacity::Opportunities(Trace::from_micros(instants).unwrap()))
}

/// A second with everything in it.
fn everything() -> Recording {
    let mut recording = Recording::new(us(1_000_000));
    recording.about.technology = Some("5G".to_string());
    recording.about.bin_us = Some(1_000);
    recording.reorders = true;
    recording.down = RecordedDirection {
        capacity: opportunities([(0, 1), (7, 1), (1_009, 3), (1_000_000, 1)]),
        delays: vec![(us(0), us(20_000)), (us(10_000), us(5)), (us(20_000), us(70_000_000 / 2))],
        losses: vec![(us(0), 0), (us(500_000), CERTAIN)],
        trains: None,
    };
    recording.up.capacity =
        Some(RecordedCapacity::Rates(vec![(us(0), Rate::from_mbps(5)), (us(3), Rate::ZERO)]));
    recording
}

/// The same with light trains up.
fn with_trains() -> Recording {
    let train = |at, delay, times: [u64; 3]| Train {
        at: us(at),
        delay: us(delay),
        opportunities: times.map(us).to_vec(),
    };
    let trains =
        vec![train(0, 25_000, [0, 3, 300]), train(50_000, 0, [7, 7, 7]), train(2_000_000, 1, [0; 3])];
    let trains = Trains::new(trains, Bytes(1_396), us(2_500)).unwrap();
    let mut recording = everything();
    recording.up.trains = Some(trains);
    recording
}

fn refusal(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

/// The file of a recording whose header was edited as text and whose length fits again.
fn with_header(recording: &Recording, from: &str, to: &str) -> Vec<u8> {
    let bytes = write(recording).unwrap();
    let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[12..12 + length]).unwrap();
    assert!(header.contains(from), "{header}");
    let header = header.replace(from, to);
    [&MAGIC[..], &(header.len() as u32).to_le_bytes(), header.as_bytes(), &bytes[12 + length..]].concat()
}

#[test]
fn what_is_written_reads_back() {
    let recording = everything();
    assert_eq!(read(&write(&recording).unwrap()).unwrap(), recording);
}

#[test]
fn keys_of_a_later_program_are_skipped_and_a_later_version_is_refused() {
    let recording = everything();
    let later = with_header(&recording, "\"reorders\"", "\"weather\":\"rain\",\"reorders\"");
    assert_eq!(read(&later).unwrap(), recording);
    let later = with_header(&recording, "\"version\":1", "\"version\":3");
    assert_eq!(refusal(&later), "the file has version 3 of the format: this program reads up to 2");
}

#[test]
fn light_trains_raise_the_version_and_nothing_else_does() {
    let recording = with_trains();
    let bytes = write(&recording).unwrap();
    assert_eq!(read(&bytes).unwrap(), recording);
    let header = |recording: &Recording| with_header(recording, "\"version\"", "\"version\"");
    assert!(String::from_utf8_lossy(&header(&recording)).contains("\"version\":2"));
    assert!(String::from_utf8_lossy(&header(&everything())).contains("\"version\":1"));
    // To version 1 the key says nothing, so that the lists of the trains are too much.
    let first = with_header(&recording, "\"version\":2", "\"version\":1");
    assert_eq!(refusal(&first), "the body goes on after the last list of the header");
    // A file of version 2 may have none.
    let none = with_header(&everything(), "\"version\":1", "\"version\":2");
    assert_eq!(read(&none).unwrap(), everything());
}

#[test]
fn damaged_trains_are_refused_in_a_line() {
    let recording = with_trains();
    let other = |from: &str, to: &str| refusal(&with_header(&recording, from, to));
    let trains = "\"trains\":{\"values\":3,\"opportunity\":1396,\"idle_us\":2500}";
    let with = |values: u64, opportunity: u64| {
        let changed =
            format!("\"trains\":{{\"values\":{values},\"opportunity\":{opportunity},\"idle_us\":2500}}");
        other(trains, &changed)
    };
    assert_eq!(with(1, 1396), "`up`, trains: there are fewer than two light trains: two or more are valid");
    assert_eq!(with(2, 1396), "the body goes on after the last list of the header");
    assert_eq!(with(4, 1396), "the file ends in the body: it was cut");
    assert_eq!(with(3, 0), "`up`, trains: a light opportunity carries 0B: valid are 1B to 65.536kB");
    assert_eq!(with(4_194_305, 1396), "header: `up` has a list of 4194305 values: at most 4194304 are valid");
    let mut both = recording;
    both.up.delays = vec![(us(0), us(1))];
    assert_eq!(
        write(&both).unwrap_err().to_string(),
        "`up` has light trains and a list of delays: the base delays of the trains are its delay"
    );
}

#[test]
fn a_damaged_file_is_refused_in_a_line() {
    let recording = everything();
    let bytes = write(&recording).unwrap();
    assert_eq!(refusal(b"1\n2\n"), "it is not a .bltrace file: its first bytes are others");
    assert_eq!(refusal(&bytes[..10]), "the file ends in the header: it was cut");
    assert_eq!(refusal(&bytes[..40]), "the file ends in the header: it was cut");
    let cut = &bytes[..bytes.len() - 1];
    assert_eq!(refusal(cut), "the body was changed: its SHA-256 is not the header's `body_sha256`");
    let long = [&MAGIC[..], &u32::MAX.to_le_bytes()].concat();
    assert_eq!(refusal(&long), "the header has 4294967295 bytes: at most 65536 are valid");
    let other = |from, to| refusal(&with_header(&recording, from, to));
    assert_eq!(other("\"bltrace\"", "\"other\""), "header: `format` is `other`: valid is `bltrace`");
    assert!(
        other("\"length_us\":1000000", "\"length_us\":\"a\"").starts_with("header: invalid type: string")
    );
    assert_eq!(
        other("\"length_us\":1000000", "\"length_us\":0"),
        "header: `length_us` is 0: valid are 1 to 4294967295000"
    );
    assert_eq!(
        other("\"delays\":3", "\"delays\":4194305"),
        "header: `down` has a list of 4194305 values: at most 4194304 are valid"
    );
    assert_eq!(
        other("\"length_us\":1000000", "\"length_us\":1000001"),
        "`down`, opportunities: the last one is not at the end"
    );
    assert_eq!(
        other("\"values\":4", "\"values\":3"),
        "`down`, opportunities: the last one is not at the end"
    );
    assert!(other("\"delays\":3", "\"delays\":2").starts_with("`down`, delays: its values hold for"));
    assert_eq!(
        other("\"up\":{\"capacity\":{\"kind\":\"rates\",\"values\":2}", "\"up\":{\"capacity\":null"),
        "the body goes on after the last list of the header"
    );
    assert_eq!(
        other("\"delays\":0,\"losses\":0", "\"delays\":1,\"losses\":0"),
        "the file ends in the body: it was cut"
    );
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let mut recording = everything();
    recording.length = us(2_000_000);
    recording.up.capacity = None;
    assert_eq!(
        write(&recording).unwrap_err().to_string(),
        "`down`, opportunities: the last one is at 1s, not at the end"
    );
}

#[test]
fn ten_minutes_of_a_gigabit_take_a_tenth_of_mahimahi_s_file() {
    // 83 or 84 opportunities a millisecond: the 50 million lines of Mahimahi have seven bytes, or a few less.
    let counts = (1..=600_000_u64).map(|ms| (1_000 * ms, if ms % 3 == 0 { 84 } else { 83 }));
    let trace = Trace::from_micros(counts).unwrap();
    let mahimahi: u64 =
        trace.micros().map(|(us, n)| u64::from(n) * (2 + u64::from((us / 1_000).ilog10()))).sum();
    let mut recording = Recording::new(trace.period());
    recording.down.capacity = Some(RecordedCapacity::Opportunities(trace));
    let bytes = write(&recording).unwrap();
    assert!(bytes.len() as u64 * 10 < mahimahi, "{} bytes, Mahimahi {mahimahi}", bytes.len());
    assert_eq!(read(&bytes).unwrap(), recording);
}

prop_compose! {
    /// Values that hold from increasing times, the first from 0, all before `length`.
    fn steps(length: u64, most: u64)(
        steps in prop::collection::btree_map(1..length, 0..=most, 0..20),
        first in 0..=most,
        any in any::<bool>(),
    ) -> Vec<(Duration, u64)> {
        let steps = [(0, first)].into_iter().chain(steps);
        steps.filter(|_| any).map(|(from, value)| (us(from), value)).collect()
    }
}

prop_compose! {
    fn trains()(
        list in prop::collection::btree_map(
            0..5_000_000_000_u64,
            (0..60_000_000_u64, prop::collection::vec(0..60_000_000_u64, 1..9)),
            2..9,
        ),
        opportunity in 1..=65_536_u64,
        idle in 0..60_000_000_u64,
    ) -> Trains {
        let train = |(at, (delay, mut times)): (u64, (u64, Vec<u64>))| {
            times.sort_unstable();
            Train { at: us(at), delay: us(delay), opportunities: times.into_iter().map(us).collect() }
        };
        Trains::new(list.into_iter().map(train).collect(), Bytes(opportunity), us(idle)).unwrap()
    }
}

prop_compose! {
    fn directions(length: u64)(
        instants in prop::collection::btree_map(0..length, 1_u32..300, 0..50),
        rates in steps(length, MOST_BPS),
        delays in steps(length, 60_000_000),
        losses in steps(length, u64::from(CERTAIN)),
        kind in 0..3,
        trains in prop::option::of(trains()),
    ) -> RecordedDirection {
        let rates = rates.into_iter().map(|(from, bps)| (from, Rate::from_bps(bps))).collect();
        RecordedDirection {
            capacity: match kind {
                0 => None,
                1 => Some(RecordedCapacity::Rates(rates)),
                _ => opportunities(instants.into_iter().chain([(length, 1)])),
            },
            delays: delays.into_iter().filter(|_| trains.is_none()).map(|(from, value)| (from, us(value))).collect(),
            trains,
            losses: losses.into_iter().map(|(from, value)| (from, value as u32)).collect(),
        }
    }
}

prop_compose! {
    fn recordings()(length in 2_u64..5_000_000_000)(
        length in Just(length),
        down in directions(length),
        up in directions(length),
        reorders in any::<bool>(),
        name in prop::option::of(".{0,20}"),
        bin_us in prop::option::of(any::<u64>()),
    ) -> Recording {
        let about = About { name, bin_us, ..About::default() };
        Recording { about, length: us(length), reorders, down, up }
    }
}

proptest! {
    /// A length beyond 2^32 us has ticks of 10 us: what was read is then written and read as the same.
    #[test]
    fn every_recording_reads_back(recording in recordings()) {
        let bytes = write(&recording).unwrap();
        let again = read(&bytes).unwrap();
        if recording.length.as_micros() <= u64::from(u32::MAX) {
            prop_assert_eq!(&again, &recording);
        }
        prop_assert_eq!(read(&write(&again).unwrap()).unwrap(), again);
    }
}

/// Bytes that were changed, with a hash that fits, so that the lists are reached.
#[test]
fn no_input_makes_the_reader_panic() {
    let mut random = Random::stream(1, "fuzz recordings");
    let bytes = write(&with_trains()).unwrap();
    let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let (head, body) = bytes[12..].split_at(length);
    let mut plain = Vec::new();
    ZlibDecoder::new(body).read_to_end(&mut plain).unwrap();
    let head: serde_json::Value = serde_json::from_slice(head).unwrap();
    let mut accepted = 0;
    for _ in 0..fuzz_inputs() {
        let mut changed = plain.clone();
        for _ in 0..random.bits() % 4 {
            let at = random.bits() as usize % changed.len();
            changed[at] = random.bits() as u8;
        }
        let mut head = head.clone();
        if random.chance(0.2) {
            head["down"]["delays"] = (random.bits() >> (random.bits() % 64)).into();
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&changed).unwrap();
        let body = encoder.finish().unwrap();
        head["body_sha256"] = sha256(&body).into();
        let head = head.to_string();
        let mut file = [&MAGIC[..], &(head.len() as u32).to_le_bytes(), head.as_bytes(), &body].concat();
        if random.chance(0.1) {
            let at = random.bits() as usize % file.len();
            file[at] = random.bits() as u8;
        }
        if let Ok(recording) = read(&file) {
            accepted += 1;
            assert_eq!(read(&write(&recording).unwrap()).unwrap(), recording);
        }
    }
    assert!(accepted > fuzz_inputs() / 10, "{accepted} accepted");
}
