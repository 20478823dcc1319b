//! ACK_RECEIVE_TIMESTAMPS frames against a second reader, written from draft-ietf-quic-receive-ts-03 apart
//! from the first, and against the worked examples of the draft.

use brakelight_senders::feedback::receive_timestamps::{
    Arrived, Frame, Malformed, ReceiveTimestamps, TYPE, TYPE_WITH_ECN, read_parameters, write_parameters,
};
use proptest::prelude::*;

/// What the second reader makes of a frame: packets acknowledged, one by one, the counts, and times by
/// packet in the order of the frame. `None` where it refuses it.
#[derive(Debug, PartialEq)]
struct Reading {
    delay: u64,
    spans: Vec<(i128, i128)>,
    ecn: Option<Vec<u64>>,
    times: Vec<(i128, i128)>,
    length: usize,
}

/// The second reader: all fields as signed numbers first, and rules afterwards.
fn second(bytes: &[u8], most: u64, exponent: u32) -> Option<Reading> {
    let mut at = 0;
    let mut next = || -> Option<i128> {
        let first = *bytes.get(at)?;
        let length = [1, 2, 4, 8][usize::from(first / 64)];
        let field = bytes.get(at..at + length)?;
        at += length;
        let mut wide = [0; 16];
        wide[16 - length..].copy_from_slice(field);
        wide[16 - length] %= 64;
        Some(i128::from_be_bytes(wide))
    };
    let kind = next()?;
    if kind != 0x0317_8307 && kind != 0x0317_8308 {
        return None;
    }
    let largest = next()?;
    let delay = next()? as u64;
    let further = next()?;
    let mut spans = vec![(largest - next()?, largest)];
    for _ in 0..further {
        let (before, _) = *spans.last()?;
        let end = before - next()? - 2;
        spans.push((end - next()?, end));
        // Bounds the loop by what the frame can hold.
        if spans.last()?.0 < 0 {
            return None;
        }
    }
    let ecn = if kind % 2 == 0 { Some(vec![next()? as u64, next()? as u64, next()? as u64]) } else { None };
    let mut times: Vec<(i128, i128)> = Vec::new();
    for _ in 0..next()? {
        let start = largest - next()?;
        if start < 0 {
            return None;
        }
        let deltas = next()?;
        for index in 0..deltas {
            let delta = next()? * 2_i128.pow(exponent);
            let time = match times.last() {
                None => delta,
                Some((_, before)) => before - delta,
            };
            times.push((start - index, time));
            if times.len() as u64 > most {
                return None;
            }
        }
    }
    let whole = spans.iter().all(|span| span.0 >= 0)
        && times.iter().all(|(packet, time)| *packet >= 0 && (0..1 << 62).contains(time));
    whole.then_some(Reading { delay, spans, ecn, times, length: at })
}

/// The first reader's result in the second one's terms.
fn first(bytes: &[u8], most: u64, exponent: u8) -> Option<Reading> {
    let (frame, rest) = Frame::decode(bytes, ReceiveTimestamps { most, exponent }).ok()?;
    Some(Reading {
        delay: frame.delay,
        spans: frame
            .ranges
            .iter()
            .map(|range| (i128::from(*range.start()), i128::from(*range.end())))
            .collect(),
        ecn: frame.ecn.map(Vec::from),
        times: frame.times.iter().map(|time| (i128::from(time.number), i128::from(time.at_us))).collect(),
        length: bytes.len() - rest.len(),
    })
}

fn arrived(times: &[(u64, u64)]) -> Vec<Arrived> {
    times.iter().map(|&(number, at_us)| Arrived { number, at_us }).collect()
}

const ASKED: ReceiveTimestamps = ReceiveTimestamps { most: 64, exponent: 0 };

/// receive-ts 8, tables 1 and 2.
const IN_ORDER: [(u64, u64); 10] = [
    (87, 300),
    (88, 305),
    (89, 310),
    (90, 320),
    (91, 330),
    (96, 350),
    (97, 355),
    (98, 360),
    (99, 370),
    (100, 380),
];
const LATE: [(u64, u64); 4] = [(92, 390), (93, 392), (94, 394), (95, 395)];

#[test]
fn the_first_example_of_the_draft_has_two_ranges() {
    let frame = Frame { ranges: vec![96..=100, 87..=91], times: arrived(&IN_ORDER), ..Frame::default() };
    let bytes = frame.encode(ASKED, 1200).unwrap();
    let expected = [
        [0x83, 0x17, 0x83, 0x07].as_slice(), // the type, as four bytes
        &[0x40, 100, 0, 1, 4, 3, 4],         // largest, delay, ranges: 100 to 96, and 96 - 3 - 2 = 91 to 87
        &[2],
        &[0, 5, 0x41, 0x7c, 10, 10, 5, 5], // 380 = 0x17c
        &[9, 5, 20, 10, 10, 5, 5],
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn packets_that_arrive_late_begin_a_range_and_come_first() {
    let times = [arrived(&IN_ORDER), arrived(&LATE)].concat();
    let frame = Frame { ranges: vec![87..=100], times, ..Frame::default() };
    let bytes = frame.encode(ASKED, 1200).unwrap();
    let expected = [
        [3].as_slice(),
        &[5, 4, 0x41, 0x8b, 1, 2, 2], // 395 = 0x18b
        &[0, 5, 10, 10, 10, 5, 5],
        &[9, 5, 20, 10, 10, 5, 5],
    ];
    assert_eq!(bytes[bytes.len() - 22..], expected.concat());
}

#[test]
fn where_not_all_fit_the_oldest_are_left_out() {
    let frame = Frame { ranges: vec![87..=100], times: arrived(&IN_ORDER), ..Frame::default() };
    let told = |asked: ReceiveTimestamps, room: usize| {
        let bytes = frame.encode(asked, room)?;
        assert!(bytes.len() <= room);
        let numbers = Frame::decode(&bytes, asked).unwrap().0.times;
        Some(numbers.iter().map(|time| time.number).collect::<Vec<_>>())
    };
    assert_eq!(told(ReceiveTimestamps { most: 3, exponent: 0 }, 1200), Some(vec![100, 99, 98]));
    // The head takes 9 bytes, the count of ranges 1, a range 2, the first time 2, each other 1.
    assert_eq!(told(ASKED, 15), Some(vec![100, 99]));
    assert_eq!(told(ASKED, 10), Some(vec![]));
    assert_eq!(told(ASKED, 9), None);
    // receive-ts 6: a peer that asked for none must not get such a frame.
    assert_eq!(frame.encode(ReceiveTimestamps::default(), 1200), None);
}

#[test]
fn a_frame_that_its_reader_rules_out_is_refused_with_what_is_wrong() {
    let frame = Frame { ranges: vec![87..=100], times: arrived(&IN_ORDER), ..Frame::default() };
    let bytes = frame.encode(ASKED, 1200).unwrap();
    let decode =
        |bytes: &[u8], most| Frame::decode(bytes, ReceiveTimestamps { most, exponent: 0 }).map(|_| ());
    assert_eq!(decode(&bytes, 9), Err(Malformed::Count { given: 10, most: 9 }));
    assert_eq!(decode(&bytes[..bytes.len() - 1], 64), Err(Malformed::Truncated));
    assert_eq!(decode(&[2, 100, 0, 0, 4], 64), Err(Malformed::Type(2)));
    let head = [0x83, 0x17, 0x83, 0x07];
    let with = |rest: &[u8]| [&head, rest].concat();
    // A first range that is longer than there are packets; times before the basis; a packet below 0.
    assert_eq!(decode(&with(&[3, 0, 0, 4, 0]), 64), Err(Malformed::Packet));
    assert_eq!(decode(&with(&[3, 0, 0, 3, 1, 0, 2, 5, 6]), 64), Err(Malformed::Time));
    assert_eq!(decode(&with(&[1, 0, 0, 1, 1, 0, 3, 9, 1, 1]), 64), Err(Malformed::Packet));
    let said = Malformed::Count { given: 10, most: 9 }.to_string();
    assert_eq!(said, "10 timestamps: must be at most 9, as max_receive_timestamps_per_ack says");
}

#[test]
fn what_a_peer_asks_for_is_read_past_its_other_parameters() {
    // initial_max_data of 100, then 0x4ac07 = 64 and 0x4ac26 = 3, each id as four bytes.
    let both = [
        [0x04, 0x02, 0x40, 0x64].as_slice(),
        &[0x80, 0x04, 0xac, 0x07, 2, 0x40, 64],
        &[0x80, 0x04, 0xac, 0x26, 1, 3],
    ];
    assert_eq!(read_parameters(&both.concat()), Ok(ReceiveTimestamps { most: 64, exponent: 3 }));
    let mut written = Vec::new();
    write_parameters(ReceiveTimestamps { most: 64, exponent: 3 }, &mut written);
    assert_eq!(written, both[1..].concat());
    assert_eq!(read_parameters(both[0]), Ok(ReceiveTimestamps::default()));
    // Without the first the second means nothing, whatever it says.
    assert_eq!(read_parameters(&[0x80, 0x04, 0xac, 0x26, 1, 21]), Ok(ReceiveTimestamps::default()));
    let exponent = [both[1], &[0x80, 0x04, 0xac, 0x26, 1, 21]].concat();
    assert_eq!(read_parameters(&exponent), Err(Malformed::Exponent(21)));
    assert_eq!(read_parameters(&[both[1], both[1]].concat()), Err(Malformed::Repeated(0x4ac07)));
    assert_eq!(read_parameters(&[0x80, 0x04, 0xac, 0x07, 2, 5, 5]), Err(Malformed::Length(0x4ac07)));
    assert_eq!(read_parameters(&[0x04, 0x02, 0x40]), Err(Malformed::Truncated));
}

/// Ranges from the highest down, as gaps and lengths; times for some of the packets and for some that no
/// range has.
fn frames() -> impl Strategy<Value = Frame> {
    let number = prop_oneof![0..64_u64, 0..1_u64 << 20, 0..1_u64 << 61];
    let ranges = (number, prop::collection::vec((2..40_u64, 0..40_u64), 1..8));
    let ecn = prop::option::of(prop::array::uniform3(0..1_u64 << 40));
    let times = prop::collection::vec((0..400_u64, prop_oneof![0..5_000_u64, 0..1_u64 << 40]), 0..90);
    (ranges, ecn, 0..1_u64 << 30, times).prop_map(|((largest, parts), ecn, delay, times)| {
        let mut ranges = Vec::new();
        let mut end = largest;
        for (gap, length) in parts {
            let start = end.saturating_sub(length);
            ranges.push(start..=end);
            let Some(next) = start.checked_sub(gap) else { break };
            end = next;
        }
        let arrived =
            |(below, at_us): (u64, u64)| Some(Arrived { number: largest.checked_sub(below)?, at_us });
        Frame { delay, ranges, ecn, times: times.into_iter().filter_map(arrived).collect() }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_alike_by_both(
        frame in frames(), most in 1..100_u64, exponent in 0..=20_u8, room in 20..1300_usize,
        rest in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let asked = ReceiveTimestamps { most, exponent };
        let Some(bytes) = frame.encode(asked, room) else {
            // Only for want of room: a frame without times has 26 numbers and the type at most.
            prop_assert!(room < 240);
            return Ok(());
        };
        prop_assert!(bytes.len() <= room);
        let kind = if frame.ecn.is_some() { TYPE_WITH_ECN } else { TYPE };
        prop_assert_eq!(&bytes[..4], &(0x8000_0000 | kind as u32).to_be_bytes());
        let padded = [&bytes[..], &rest].concat();
        let (read, left) = Frame::decode(&padded, asked).unwrap();
        prop_assert_eq!(left, &rest[..]);
        prop_assert_eq!((&read.ranges, read.ecn, read.delay), (&frame.ranges, frame.ecn, frame.delay));
        // The latest come first, each is one that was given, in whole units, and none is told twice.
        prop_assert!(read.times.windows(2).all(|pair| pair[0].at_us >= pair[1].at_us));
        let given = |time: &Arrived| frame.times.iter().any(|own| {
            own.number == time.number && own.at_us >> exponent << exponent == time.at_us
        });
        prop_assert!(read.times.iter().all(given));
        let mut numbers: Vec<u64> = read.times.iter().map(|time| time.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), read.times.len());
        if room >= 1200 && frame.times.len() < 40 {
            let mut all: Vec<u64> = frame.times.iter().map(|time| time.number).collect();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(numbers.len() as u64, most.min(all.len() as u64));
        }
        prop_assert_eq!(first(&padded, most, exponent), second(&padded, most, exponent.into()));
        // Every beginning of a frame is refused.
        for end in 0..bytes.len() {
            prop_assert_eq!(first(&bytes[..end], most, exponent), None);
        }
    }

    #[test]
    fn both_read_or_refuse_the_same_bytes(
        mut bytes in prop::collection::vec(prop_oneof![0..8_u8, any::<u8>()], 0..60),
        ecn: bool, most in 0..20_u64, exponent in 0..=20_u8,
    ) {
        bytes.splice(..0, (0x8317_8307 + u32::from(ecn)).to_be_bytes());
        prop_assert_eq!(first(&bytes, most, exponent), second(&bytes, most, exponent.into()));
    }

    #[test]
    fn parameters_are_read_as_they_were_written(most in 0..1_u64 << 62, exponent in 0..=20_u8) {
        let asks = ReceiveTimestamps { most, exponent };
        let mut bytes = Vec::new();
        write_parameters(asks, &mut bytes);
        prop_assert_eq!(read_parameters(&bytes), Ok(if most == 0 { ReceiveTimestamps::default() } else { asks }));
    }
}
