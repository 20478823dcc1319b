use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use brakelight_core::random::Random;
use proptest::prelude::*;

use super::*;

fn trace(timestamps: &[u64]) -> Trace {
    Trace::from_millis(timestamps.iter().copied()).unwrap()
}

fn refusal(text: &str) -> String {
    Trace::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn reads_one_opportunity_a_line() {
    let trace = Trace::parse(b"0\n3\n3\r\n 10 \n\n").unwrap();
    assert_eq!(trace.millis().collect::<Vec<_>>(), [0, 3, 3, 10]);
    assert_eq!(trace.period(), Duration::from_millis(10));
    assert_eq!(trace.opportunities(), 4);
    // 4 * 1504 bytes in 10 ms.
    assert_eq!(trace.mean_rate(Bytes(1504)), Rate::from_bps(4_812_800));
}

#[test]
fn a_last_line_without_an_end_counts() {
    assert_eq!(Trace::parse(b"1\n2").unwrap(), Trace::parse(b"1\n2\n").unwrap());
}

#[test]
fn a_refusal_names_line_value_and_what_would_be_valid() {
    let expected =
        "expected a whole number of milliseconds from 0 to 4294967295, one per delivery opportunity";
    assert_eq!(refusal(""), alloc::format!("the trace is empty: {expected}, one a line"));
    assert_eq!(refusal("\n \n"), alloc::format!("the trace is empty: {expected}, one a line"));
    assert_eq!(refusal("1\n\n2\n"), alloc::format!("line 2: the line is empty: {expected}"));
    assert_eq!(refusal("1\ntwo\n"), alloc::format!("line 2: `two` is not a whole number: {expected}"));
    assert_eq!(refusal("1\n2.5\n"), alloc::format!("line 2: `2.5` is not a whole number: {expected}"));
    assert_eq!(refusal("-4\n"), alloc::format!("line 1: `-4` is negative: {expected}"));
    assert_eq!(refusal("1\n4294967296\n"), alloc::format!("line 2: `4294967296` is too large: {expected}"));
    assert_eq!(
        refusal("5\n4\n"),
        "line 2: `4` is less than `5` on the line before: timestamps must not decrease"
    );
    assert_eq!(
        refusal("0\n0\n"),
        "line 2: the last timestamp is `0`, but it is the trace's period: it must be at least 1"
    );
    assert_eq!(
        Trace::parse_at_most(b"1\n2\n3\n", 2).unwrap_err().to_string(),
        "line 3: the trace is too long: at most 2 opportunities are valid"
    );
}

#[test]
fn a_refusal_shortens_long_and_escapes_unprintable_values() {
    let nines = "9".repeat(1000);
    assert!(refusal(&nines).starts_with(&alloc::format!("line 1: `{}...` is too large", "9".repeat(40))));
    assert!(Trace::parse(b"\xff\x00").unwrap_err().to_string().starts_with("line 1: `\\xff\\x00` is not"));
}

#[test]
fn a_number_of_any_length_is_only_too_large() {
    assert!(matches!(Trace::parse(b"18446744073709551617"), Err(TraceError::TooLate { line: 1, .. })));
    assert_eq!(Trace::parse(b"000000000000000000000000000007").unwrap(), trace(&[7]));
}

#[test]
fn from_millis_checks_as_the_parser_does() {
    assert_eq!(Trace::from_millis([]), Err(TraceError::Empty));
    assert_eq!(
        Trace::from_millis([1, MAX_MILLIS + 1]).unwrap_err(),
        TraceError::TooLate { line: 2, text: "4294967296".to_string() }
    );
    assert_eq!(trace(&[0, 3, 3, 10]), Trace::parse(b"0\n3\n3\n10\n").unwrap());
}

#[test]
fn repeats_with_its_last_timestamp() {
    let trace = trace(&[0, 3, 3, 10]);
    let at = Time::from_millis;
    // Opportunities at 0 3 3 10, 10 13 13 20, 20 23 23 30: both ends of a cycle meet.
    assert_eq!(trace.count_between(at(0), at(1)), 1);
    assert_eq!(trace.count_between(at(1), at(3)), 0);
    assert_eq!(trace.count_between(at(3), at(4)), 2);
    assert_eq!(trace.count_between(at(10), at(11)), 2);
    assert_eq!(trace.count_between(at(0), at(10)), 3);
    assert_eq!(trace.count_between(at(10), at(20)), 4);
    assert_eq!(trace.count_between(at(0), at(1000)), 399);
    assert_eq!(trace.count_between(at(20), at(10)), 0);
}

#[test]
fn a_digest_is_made_once_for_all_clones_and_does_not_make_traces_differ() {
    let made = trace(&[1, 2, 2]);
    let bytes = core::array::from_fn(|i| i as u8);
    assert_eq!(made.digest(|_| bytes), bytes);
    assert_eq!(made.clone().digest(|_| panic!("it is known")), bytes);
    let other = trace(&[1, 2, 2]);
    assert_eq!(made, other, "one was hashed, the other was not");
    assert_eq!(other.digest(|trace| [trace.opportunities() as u8; 32]), [3; 32]);
}

#[test]
fn counts_are_exact_to_the_nanosecond() {
    let trace = trace(&[5]);
    let at = Time::from_nanos;
    assert_eq!(trace.count_between(at(5_000_000), at(5_000_001)), 1);
    assert_eq!(trace.count_between(at(5_000_001), at(10_000_000)), 0);
}

/// The definition, counted out.
fn counted(timestamps: &[u64], from: u64, to: u64) -> u64 {
    let period = timestamps[timestamps.len() - 1] * 1_000_000;
    (0..=to / period)
        .flat_map(|cycle| timestamps.iter().map(move |ms| cycle * period + ms * 1_000_000))
        .filter(|at| (from..to).contains(at))
        .count() as u64
}

fn timestamps() -> impl Strategy<Value = Vec<u64>> {
    (proptest::collection::vec(prop_oneof![Just(0_u64), 0..3_u64, 0..60_u64], 1..40), 1..50_u64).prop_map(
        |(gaps, last)| {
            let mut at = 0;
            let mut timestamps: Vec<u64> = gaps
                .into_iter()
                .map(|gap| {
                    at += gap;
                    at
                })
                .collect();
            timestamps.push(at + last);
            timestamps
        },
    )
}

/// Points of time that are often exactly on an opportunity.
fn points() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(
        prop_oneof![(0..400_u64).prop_map(|ms| ms * 1_000_000), 0..400_000_000_u64],
        2..30,
    )
}

proptest! {
    #[test]
    fn counting_agrees_with_the_definition(timestamps in timestamps(), points in points()) {
        let trace = trace(&timestamps);
        let mut count = Count::default();
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let expected = if from < to { counted(&timestamps, from, to) } else { 0 };
            prop_assert_eq!(trace.count_between(Time::from_nanos(from), Time::from_nanos(to)), expected);
            // It moves forwards and backwards, near and far.
            prop_assert_eq!(trace.through(&mut count, Time::from_nanos(to)), counted(&timestamps, 0, to + 1));
        }
    }

    #[test]
    fn writing_and_reading_gives_the_same_trace(timestamps in timestamps()) {
        let mut text = String::new();
        for ms in &timestamps {
            writeln!(text, "{ms}").unwrap();
        }
        let parsed = Trace::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(parsed.millis().collect::<Vec<_>>(), timestamps);
    }
}

/// What every input must satisfy, valid or not: no panic, an error that names its line, and for a trace the
/// invariants that its users rely on.
fn fuzz_parse(bytes: &[u8]) {
    match Trace::parse(bytes) {
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.len() < 300 && message.chars().all(|c| c.is_ascii_graphic() || c == ' '),
                "{message}"
            );
        }
        Ok(trace) => {
            assert!(!trace.period().is_zero());
            let lines = bytes.trim_ascii_end().split(|&byte| byte == b'\n').count() as u64;
            assert_eq!(trace.opportunities(), lines);
            let last = Time::ZERO + trace.period();
            assert_eq!(trace.before(last + Duration::from_nanos(1)) - trace.before(last), {
                let at_end = trace.millis().filter(|ms| Duration::from_millis(*ms) == trace.period()).count();
                (at_end + trace.millis().take_while(|ms| *ms == 0).count()) as u64
            });
            assert_eq!(trace.count_between(last, last + trace.period()), lines);
        }
    }
}

#[test]
fn no_input_makes_the_parser_panic() {
    let inputs = std::env::var("BRAKELIGHT_FUZZ_INPUTS")
        .map(|text| text.parse().expect("BRAKELIGHT_FUZZ_INPUTS is a number of inputs"))
        .unwrap_or(100_000_u64);
    const SEEDS: &[&[u8]] =
        &[b"0\n1\n1\n2\n7\n40\n", b"1\r\n2\r\n", b"4294967295\n", b"12\n12\n12", b"-1\n", b"5\n4\n"];
    const BYTES: &[u8] = b"0123456789\n\n\r -+.e#\xff\0";
    let mut random = Random::stream(1, "trace fuzz");
    let mut below = |n: usize| (random.bits() % n as u64) as usize;
    let mut valid = 0;
    let mut input = Vec::new();
    for _ in 0..inputs {
        input.clear();
        if below(3) == 0 {
            for _ in 0..below(24) {
                input.push(BYTES[below(BYTES.len())]);
            }
        } else {
            input.extend_from_slice(SEEDS[below(SEEDS.len())]);
            for _ in 0..1 + below(4) {
                let at = below(input.len() + 1);
                match below(4) {
                    0 => input.insert(at, BYTES[below(BYTES.len())]),
                    1 if at < input.len() => {
                        input.remove(at);
                    }
                    2 if at < input.len() => input[at] ^= 1 << below(8),
                    _ => {
                        let tail = input[at..].to_vec();
                        input.extend(tail);
                    }
                }
            }
        }
        fuzz_parse(&input);
        valid += u64::from(Trace::parse(&input).is_ok());
    }
    // Both halves of the driver must be reached.
    assert!(
        inputs < 1000 || (valid > inputs / 20 && valid < inputs),
        "{valid} of {inputs} inputs were valid"
    );
}

#[test]
fn a_millisecond_is_spread_over_the_one_that_ends_there() {
    let spread = trace(&[0, 2, 2, 2, 2, 3, 10]).spread();
    let micros: Vec<u64> = (0..=10_000)
        .flat_map(|us| {
            let at = Time::from_nanos(us * 1_000);
            let after = at.saturating_add(Duration::from_nanos(1));
            core::iter::repeat_n(us, spread.count_between(at, after) as usize)
        })
        .collect();
    // The one at 0 stays, and comes again at the period.
    assert_eq!(micros, [0, 1_250, 1_500, 1_750, 2_000, 3_000, 10_000, 10_000]);
    assert_eq!(spread.millis().collect::<Vec<_>>(), [0, 2, 2, 2, 2, 3, 10]);
    assert_eq!((spread.period(), spread.opportunities()), (Duration::from_millis(10), 7));
    assert_eq!(spread.spread(), spread);
}

#[test]
fn a_long_trace_is_spread_in_longer_ticks() {
    for (hours, tick) in [(100_u64, 100_u64), (2, 10), (1, 1)] {
        let end = hours * 3_600_000;
        let spread = trace(&[end, end]).spread();
        assert_eq!(spread.period(), Duration::from_millis(end));
        let half = Time::from_nanos(end * 1_000_000 - 500_000);
        assert_eq!(spread.count_between(half, half.saturating_add(Duration::from_nanos(tick))), 1, "{hours}");
    }
    let days = trace(&[49 * 86_400_000]);
    assert_eq!(days.spread(), days);
}

proptest! {
    /// Whatever is asked at the end of a millisecond, the answer is the same.
    #[test]
    fn spreading_moves_nothing_out_of_its_millisecond(
        mut stamps in prop::collection::vec(0_u64..300, 1..200),
        end in 1_u64..400,
        ask in 0_u64..1_000,
    ) {
        stamps.sort_unstable();
        stamps.push(end.max(*stamps.last().unwrap()).max(1));
        let read = trace(&stamps);
        let spread = read.spread();
        let at = Time::from_millis(ask).saturating_add(Duration::from_nanos(1));
        prop_assert_eq!(read.before(at), spread.before(at));
        prop_assert_eq!(read.millis().collect::<Vec<_>>(), spread.millis().collect::<Vec<_>>());
    }
}

/// An opportunity every 12 us for 12 ms: a gigabit per second.
fn gigabit() -> impl Iterator<Item = (u64, u32)> {
    (1..=1000).map(|index| (12 * index, 1))
}

#[test]
fn microseconds_are_kept() {
    let trace = Trace::from_micros(gigabit()).unwrap();
    assert_eq!((trace.tick(), trace.period()), (Duration::from_micros(1), Duration::from_millis(12)));
    assert_eq!(trace.micros().collect::<Vec<_>>(), gigabit().collect::<Vec<_>>());
    // Mahimahi's format holds a packet until the end of its millisecond.
    assert_eq!(trace.millis().take(84).collect::<Vec<_>>(), [[1; 83].as_slice(), &[2]].concat());
    assert_eq!(trace.count_between(Time::from_nanos(12_000), Time::from_nanos(36_000)), 2);
    assert_eq!(trace.spread(), trace);
}

#[test]
fn whole_milliseconds_are_a_trace_as_it_is_read() {
    let instants = [(0, 1), (3_000, 2), (7_000, 0), (10_000, 1)];
    assert_eq!(Trace::from_micros(instants).unwrap(), trace(&[0, 3, 3, 10]));
}

#[test]
fn many_instants_share_ticks_of_ten_microseconds_or_more() {
    let long = [(1, 1), (5, 1), (12, 1), (u64::from(u32::MAX) + 5, 1)];
    let trace = Trace::from_micros(long).unwrap();
    assert_eq!(trace.tick(), Duration::from_micros(10));
    let kept: Vec<(u64, u32)> = trace.micros().collect();
    assert_eq!(kept[..2], [(10, 2), (20, 1)]);
    let many = (1..=MOST_FINE_SLOTS as u64).map(|index| (7 * index, 1));
    assert_eq!(Trace::from_micros(many).unwrap().tick(), Duration::from_micros(10));
}

#[test]
fn instants_are_checked_as_lines_are() {
    let refusal = |instants: &[(u64, u32)]| Trace::from_micros(instants.iter().copied()).unwrap_err();
    assert_eq!(refusal(&[]), TraceError::Empty);
    assert_eq!(refusal(&[(5, 0)]), TraceError::Empty);
    assert_eq!(refusal(&[(0, 1)]), TraceError::ZeroPeriod { line: 1 });
    assert_eq!(refusal(&[(5, 1), (4, 1)]), TraceError::Decreasing { line: 2, value: 4, previous: 5 });
    assert!(matches!(refusal(&[(MAX_MILLIS * 1_000 + 1, 1)]), TraceError::TooLate { line: 1, .. }));
    let most = MAX_OPPORTUNITIES as u32;
    assert!(matches!(refusal(&[(5, most), (6, 1)]), TraceError::TooLong { line: 2, .. }));
}
