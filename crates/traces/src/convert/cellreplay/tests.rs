use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_testkit::mutate::{fuzz_inputs, mutate};

use super::*;
use crate::conditions::{TrainStatistics, limits};
use crate::convert::delays::delays;
use crate::convert::{Selection, convert};
use crate::recording::{LinkDirection, file};

/// Two trains, 50 ms apart, and what ends them.
const LIGHT: &str = "0 25 0 3 7 12\n50 31 0 4 4\n100 25 0\n";

/// 600 heavy opportunities in 100 ms: six a millisecond, 67.2 Mbit/s at 1400 bytes.
fn heavy() -> String {
    (1..=100).map(|ms| format!("{ms}\n").repeat(6)).collect()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pair() -> Converted {
    let mut converted = convert(heavy().as_bytes(), Format::Mahimahi, ConvertOptions::default()).unwrap();
    converted.add_delays(&delays(LIGHT.as_bytes()).unwrap()).unwrap();
    converted
}

fn refusal(text: &str) -> String {
    delays(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_line_is_a_train_with_its_base_delay_and_its_arrivals() {
    let read = delays(LIGHT.as_bytes()).unwrap();
    let trains = read.trains.unwrap();
    assert_eq!((trains.trains().len(), trains.period(), read.length), (3, ms(100), ms(100)));
    assert_eq!(trains.trains()[0].opportunities, [0, 3, 7, 12].map(ms));
    assert_eq!((trains.trains()[1].at, trains.trains()[1].delay), (ms(50), ms(31)));
    assert_eq!((trains.opportunity(), trains.idle()), (Trains::OPPORTUNITY, Trains::IDLE));
    assert_eq!(read.down.delays, [(ms(0), ms(25)), (ms(50), ms(31)), (ms(100), ms(25))]);
    assert_eq!(read.format.to_string(), "cellreplay");
}

#[test]
fn a_pair_keeps_the_heavy_rate_and_its_length() {
    let converted = pair();
    assert_eq!(converted.format, Format::CellReplay);
    // 600 * 1400 / 1500.
    assert_eq!((converted.trace.opportunities(), converted.trace.period()), (560, ms(100)));
    let trace = converted.recording.trace(None).unwrap();
    assert_eq!((trace.opportunities(), trace.period()), (560, ms(100)));
    let recorded = trace.recorded().unwrap();
    assert_eq!(recorded.trains.as_ref().map(|trains| trains.trains().len()), Some(3));
    // The base delays are the delay of the path ahead, where the link has them, and back.
    for direction in [Direction::Forward, Direction::Reverse] {
        let conditions = recorded.conditions(direction).unwrap();
        assert_eq!([10, 60].map(|at| conditions.delay(ms(at))), [25, 31].map(ms));
    }
    assert!(limits(&trace).iter().any(|limit| limit.starts_with("a flow that pauses takes light")));
}

#[test]
fn the_heavy_file_alone_is_named_by_its_format() {
    let up = ConvertOptions { selection: Selection::Up, ..ConvertOptions::default() };
    let converted = convert(heavy().as_bytes(), Format::CellReplay, up).unwrap();
    assert_eq!(converted.trace.opportunities(), 560);
    assert_eq!(converted.recording.directions(), [LinkDirection::Up]);
    assert_eq!(
        converted.notes,
        ["CellReplay's opportunities carry 1.4kB: they were gathered into ones of 1.5kB"]
    );
    // What is left at the end is the period's.
    let few = convert(b"5\n8\n9\n12\n", Format::CellReplay, ConvertOptions::default()).unwrap();
    assert_eq!(few.trace.millis().collect::<Vec<_>>(), [8, 9, 12]);
    let none = convert(b"5\n", Format::CellReplay, ConvertOptions::default()).unwrap_err();
    assert_eq!(none, ConvertError::Silent(Bytes(1500)));
}

#[test]
fn a_recording_with_trains_reads_back() {
    let recording = pair().recording;
    let bytes = file::write(&recording).unwrap();
    assert_eq!(file::read(&bytes).unwrap(), recording);
}

#[test]
fn trains_are_described() {
    let read = delays(LIGHT.as_bytes()).unwrap();
    let found = TrainStatistics::of(&read.trains.unwrap());
    assert_eq!((found.trains, found.every_ms, found.opportunities, found.length_ms), (2, 50.0, 3.5, 8.0));
    // 3 and 2 packets of 1400 bytes after the first in 12 and 4 ms.
    assert!((found.light_mbps - 5.0 * 11_200.0 / 16e3).abs() < 1e-9, "{}", found.light_mbps);
}

#[test]
fn the_wrong_one_of_the_two_files_is_told() {
    assert_eq!(Format::detect(LIGHT.as_bytes()), Format::Mahimahi);
    for format in [Format::Mahimahi, Format::CellReplay] {
        let error = convert(LIGHT.as_bytes(), format, ConvertOptions::default()).unwrap_err();
        assert_eq!(error, ConvertError::LightAlone);
    }
}

#[test]
fn what_is_no_train_is_refused_by_line_and_field() {
    const TIMES: &str = "expected a whole number of milliseconds, from 0 to";
    assert_eq!(refusal("0 25 0\n50 x 0\n"), format!("line 2: the base delay is `x`: {TIMES} 60000"));
    assert_eq!(refusal("0 25 0\n-1 25 0\n"), format!("line 2: the time is `-1`: {TIMES} 86400000"));
    assert_eq!(refusal("0 25 0 60001\n"), format!("line 1: a light opportunity is `60001`: {TIMES} 60000"));
    assert!(refusal("0 25\n").starts_with("line 1: the light opportunities is ``: expected when each"));
    assert_eq!(
        refusal("0 25 0\n50 25 0\n49 25 0\n"),
        "line 3: the time is `49`: it must not be before that of the line above"
    );
    assert_eq!(refusal("0 25 0\n\n50 25 0\n"), format!("line 2: the time is ``: {TIMES} 86400000"));
    assert_eq!(refusal("0 25 0\n"), "there are fewer than two light trains: two or more are valid");
}

#[test]
fn trains_of_one_time_and_packets_out_of_order_are_put_right_and_told() {
    let read = delays(b"0 25 0\n0 26 0 2\n50 25 0 9 4\n").unwrap();
    let trains = read.trains.unwrap();
    assert_eq!((trains.trains().len(), trains.trains()[0].delay), (2, ms(26)));
    assert_eq!(trains.trains()[1].opportunities, [0, 4, 9].map(ms));
    assert_eq!(read.notes.len(), 3, "{:?}", read.notes);
}

#[test]
fn no_input_makes_the_reader_panic() {
    let corpus = [LIGHT.to_string(), "0 0 0 0\n1 60000 60000\n".to_string()];
    let mut random = Random::stream(1, "fuzz cellreplay");
    let mut accepted = 0;
    for _ in 0..fuzz_inputs() {
        let Ok(read) = delays(mutate(&corpus, &mut random).as_bytes()) else { continue };
        accepted += 1;
        let mut converted = convert(heavy().as_bytes(), Format::Mahimahi, ConvertOptions::default()).unwrap();
        converted.add_delays(&read).unwrap();
        let bytes = file::write(&converted.recording).unwrap();
        assert_eq!(file::read(&bytes).unwrap(), converted.recording);
    }
    assert!(accepted > fuzz_inputs() / 20, "{accepted} accepted");
}
