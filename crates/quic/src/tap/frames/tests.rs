use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A frame as a sender would write it, for payloads whose ACKs are known.
#[derive(Clone, Debug)]
enum Frame {
    Ack {
        largest: u64,
        first: u64,
        further: Vec<(u64, u64)>,
        ecn: Option<EcnCounts>,
    },
    Padding(usize),
    /// A type followed by integers.
    Integers(u64, Vec<u64>),
    /// A type, integers, and bytes with their length before them.
    Bytes(u64, Vec<u64>, Vec<u8>),
    NewConnectionId(Vec<u8>),
    Path(u64, [u8; 8]),
}

/// Integers that each of these frames has.
const INTEGERS: &[(u64, usize)] = &[
    (0x01, 0),
    (0x04, 3),
    (0x05, 2),
    (0x10, 1),
    (0x11, 2),
    (0x12, 1),
    (0x13, 1),
    (0x14, 1),
    (0x15, 2),
    (0x16, 1),
    (0x17, 1),
    (0x19, 1),
    (0x1e, 0),
    (0x1f, 0),
    (0x24, 4),
    (0xaf, 4),
];

/// Integers before the bytes of each of these frames.
const BYTES: &[(u64, usize)] =
    &[(0x06, 1), (0x07, 0), (0x0a, 1), (0x0b, 1), (0x0e, 2), (0x0f, 2), (0x1c, 2), (0x1d, 1), (0x31, 0)];

/// Writes `value` in the shortest form, or a longer one by `longer` steps, which the format allows.
fn varint(out: &mut Vec<u8>, value: u64, longer: u8) {
    let shortest = match value {
        0..=0x3f => 0,
        0x40..=0x3fff => 1,
        0x4000..=0x3fff_ffff => 2,
        _ => 3,
    };
    let form = (shortest + longer).min(3);
    let bytes = (value | u64::from(form) << ((8usize << form) - 2)).to_be_bytes();
    out.extend_from_slice(&bytes[8 - (1 << form)..]);
}

impl Frame {
    fn write(&self, out: &mut Vec<u8>, longer: u8) {
        match self {
            Frame::Ack { largest, first, further, ecn } => {
                varint(out, if ecn.is_some() { 3 } else { 2 }, 0);
                for value in [*largest, 7, further.len() as u64, *first] {
                    varint(out, value, longer);
                }
                for (gap, length) in further {
                    varint(out, *gap, longer);
                    varint(out, *length, longer);
                }
                if let Some(EcnCounts { ect0, ect1, ce }) = ecn {
                    for value in [*ect0, *ect1, *ce] {
                        varint(out, value, longer);
                    }
                }
            }
            Frame::Padding(length) => out.resize(out.len() + length, 0),
            Frame::Integers(kind, values) => {
                varint(out, *kind, 0);
                values.iter().for_each(|value| varint(out, *value, longer));
            }
            Frame::Bytes(kind, values, bytes) => {
                varint(out, *kind, 0);
                values.iter().for_each(|value| varint(out, *value, longer));
                varint(out, bytes.len() as u64, longer);
                out.extend_from_slice(bytes);
            }
            Frame::NewConnectionId(id) => {
                out.extend_from_slice(&[0x18, 5, 4, id.len() as u8]);
                out.extend_from_slice(id);
                out.extend_from_slice(&[0x33; 16]);
            }
            Frame::Path(kind, data) => {
                varint(out, *kind, 0);
                out.extend_from_slice(data);
            }
        }
    }
}

fn integer() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..64, 0u64..16_384, 0u64..(1 << 30), 0u64..(1 << 62)]
}

fn counts() -> impl Strategy<Value = EcnCounts> {
    (integer(), integer(), integer()).prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce })
}

fn ack() -> impl Strategy<Value = Frame> {
    let further = prop::collection::vec((0u64..200, 0u64..200), 0..20);
    (0u64..1000, further, integer(), prop::option::of(counts())).prop_map(|(first, further, above, ecn)| {
        let needed: u64 = first + further.iter().map(|(gap, length)| gap + length + 2).sum::<u64>();
        Frame::Ack { largest: needed + above.min((1 << 62) - 1 - needed), first, further, ecn }
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let integers = prop::sample::select(INTEGERS).prop_flat_map(|(kind, count)| {
        prop::collection::vec(integer(), count).prop_map(move |values| Frame::Integers(kind, values))
    });
    let bytes = prop::sample::select(BYTES).prop_flat_map(|(kind, count)| {
        let values = prop::collection::vec(integer(), count);
        let data = prop::collection::vec(any::<u8>(), 0..100);
        (values, data).prop_map(move |(values, data)| Frame::Bytes(kind, values, data))
    });
    let id = prop::collection::vec(any::<u8>(), 1..=20).prop_map(Frame::NewConnectionId);
    let path = (0x1au64..=0x1b, any::<[u8; 8]>()).prop_map(|(kind, data)| Frame::Path(kind, data));
    prop_oneof![3 => ack(), 1 => (1usize..50).prop_map(Frame::Padding), 3 => integers, 3 => bytes, 1 => id, 1 => path]
}

type Seen = (u64, Vec<RangeInclusive<u64>>, Option<EcnCounts>);

fn seen(payload: &[u8]) -> (Vec<Seen>, Result<(), Stop>) {
    let mut seen = Vec::new();
    let end = acks(payload, |ack| seen.push((ack.largest, ack.ranges().collect(), ack.ecn)));
    (seen, end)
}

fn expected(frames: &[Frame]) -> Vec<Seen> {
    let expected = frames.iter().filter_map(|frame| {
        let Frame::Ack { largest, first, further, ecn } = frame else { return None };
        let mut ranges = vec![largest - first..=*largest];
        for (gap, length) in further {
            // rfc9000 19.3.1: each range ends gap + 2 below the smallest of the one before.
            let end = ranges.last()?.start() - gap - 2;
            ranges.push(end - length..=end);
        }
        Some((*largest, ranges, *ecn))
    });
    expected.collect()
}

proptest! {
    #[test]
    fn finds_every_ack_among_frames_of_all_kinds(frames in prop::collection::vec(frame(), 0..12), longer in 0u8..3) {
        let mut payload = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut payload, longer));
        prop_assert_eq!(seen(&payload), (expected(&frames), Ok(())));
    }

    #[test]
    fn a_packet_cut_short_shows_the_acks_before_the_cut(
        frames in prop::collection::vec(frame(), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut payload = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut payload, 0));
        let (found, _) = seen(&payload[..cut.index(payload.len())]);
        prop_assert!(expected(&frames).starts_with(&found));
    }
}

/// Bytes that often begin like frames, so that the parser gets past the first.
fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let start = (0u8..0x32).prop_map(|kind| vec![kind]);
    let ack = (2u8..4, prop::collection::vec(0u8..80, 0..24)).prop_map(|(kind, mut rest)| {
        rest.insert(0, kind);
        rest
    });
    let piece = prop_oneof![start, ack, prop::collection::vec(any::<u8>(), 0..12), Just(vec![0x40, 0xaf])];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn no_input_makes_the_parser_panic_or_invent_packet_numbers() {
    let cases = std::env::var("BRAKELIGHT_FUZZ_INPUTS")
        .map(|text| text.parse().expect("BRAKELIGHT_FUZZ_INPUTS is a number of inputs"))
        .unwrap_or(20_000);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&inputs(), |payload| {
        let mut found = 0;
        let _ = acks(&payload, |ack| {
            found += 1;
            let mut before = None;
            for range in ack.ranges() {
                assert!(range.start() <= range.end() && *range.end() <= ack.largest);
                assert!(
                    before.is_none_or(|before| *range.end() + 1 < before),
                    "ranges fall with a gap between"
                );
                before = Some(*range.start());
            }
        });
        assert!(found * 5 <= payload.len(), "an ACK takes five bytes and more");
        Ok(())
    });
    result.unwrap();
}

#[test]
fn reads_the_counts_of_an_ack_written_by_hand() {
    // ACK_ECN, largest 300 in two bytes, delay 5, one further range, first range 2, gap 1, length 3; 10, 20
    // and 70.
    let payload = [0x03, 0x41, 0x2c, 5, 1, 2, 1, 3, 10, 20, 0x40, 70, 0, 0];
    let counts = EcnCounts { ect0: 10, ect1: 20, ce: 70 };
    assert_eq!(seen(&payload), (vec![(300, vec![298..=300, 292..=295], Some(counts))], Ok(())));
}

#[test]
fn refuses_an_ack_of_packets_below_zero() {
    assert_eq!(seen(&[0x02, 5, 0, 0, 6]), (vec![], Err(Stop::Malformed)));
    assert_eq!(seen(&[0x02, 5, 0, 1, 2, 2, 0]), (vec![], Err(Stop::Malformed)));
}

#[test]
fn stops_at_a_type_that_is_not_known_and_keeps_what_came_before() {
    let (found, end) = seen(&[0x02, 9, 0, 0, 1, 0x21, 0x02, 9, 0, 0, 1]);
    assert_eq!((found.len(), end), (1, Err(Stop::Unknown(0x21))));
}

#[test]
fn a_stream_without_a_length_reaches_to_the_end_of_the_packet() {
    // STREAM with an offset, no length: what looks like an ACK behind it is data.
    assert_eq!(seen(&[0x0c, 4, 0, 0x02, 9, 0, 0, 1]), (vec![], Ok(())));
}

#[test]
fn stream_frames_reach_as_far_as_the_farthest_of_them() {
    // ACK; STREAM with offset and length; with length; with offset, up to the end.
    let ack = [0x02, 5, 0, 0, 0];
    let payload = [&ack[..], &[0x0e, 2, 0x40, 100, 3, 7, 7, 7], &[0x0a, 2, 2, 7, 7], &[0x0c, 2, 40, 7, 7]];
    assert_eq!(stream_end(&payload.concat()), Some(103));
    assert_eq!(stream_end(&payload[2..].concat()), Some(42));
    assert_eq!(stream_end(&[&ack[..], &[0, 0, 1]].concat()), None);
    // The second frame ends after the packet does.
    assert_eq!(stream_end(&[0x0a, 2, 1, 7, 0x0e, 2, 9, 5, 7]), Some(1));
    assert_eq!(stream_end(&[]), None);
}
