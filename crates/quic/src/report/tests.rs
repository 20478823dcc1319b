use brakelight_core::random::Random;
use proptest::prelude::*;

use super::*;

fn inputs() -> u64 {
    std::env::var("BRAKELIGHT_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

#[test]
fn a_report_is_written_as_rfc8888_draws_it() {
    let mut seen = Unreported::default();
    seen.on_packet(0x1_0002, Time::from_secs(2), Ecn::Ect1);
    seen.on_packet(0x1_0004, Time::from_millis(2_500), Ecn::Ce);
    let reports = seen.take(Time::from_secs(3));
    assert_eq!(reports.len(), 1);
    #[rustfmt::skip]
    let expected = [
        0x8b, 205, 0, 6,  0, 0, 0x62, 0x6c,  0, 0, 0x62, 0x6c,  0, 2, 0, 3,
        0b1010_0100, 0, 0, 0,  0b1110_0010, 0, 0, 0,  0, 3, 0, 0,
    ];
    assert_eq!(reports[0].encode()[..], expected);
    assert!(seen.is_empty());
}

#[test]
fn an_invitation_is_a_report_of_nothing() {
    let bytes = FeedbackPacket::invitation().encode();
    assert_eq!((bytes.len(), FeedbackPacket::decode(&bytes).unwrap().is_invitation()), (12, true));
}

#[test]
fn faults_are_told_apart() {
    let mut bytes = FeedbackPacket::invitation().encode().to_vec();
    assert_eq!(FeedbackPacket::decode(b"hello"), Err(Malformed::Foreign));
    assert_eq!(FeedbackPacket::decode(&bytes[..8]), Err(Malformed::Length));
    bytes.splice(8..8, [0, 0, 0, 1, 0, 0, 0, 9]);
    bytes[3] = 4;
    assert_eq!(FeedbackPacket::decode(&bytes), Err(Malformed::Block));
}

#[test]
fn what_does_not_fit_one_report_goes_into_the_next() {
    let mut seen = Unreported::default();
    (0..500).for_each(|number| seen.on_packet(number, Time::ZERO, Ecn::Ect0));
    seen.on_packet(1 << 40, Time::ZERO, Ecn::Ect0);
    let reports = seen.take(Time::ZERO);
    let lengths: Vec<usize> = reports.iter().map(|report| report.blocks[0].metrics.len()).collect();
    assert_eq!(lengths, [240, 240, 20, 1]);
}

#[test]
fn of_a_packet_that_came_twice_the_first_arrival_is_reported() {
    let mut seen = Unreported::default();
    seen.on_packet(5, Time::from_millis(1000), Ecn::Ce);
    seen.on_packet(5, Time::from_millis(2000), Ecn::Ect0);
    let report = &seen.take(Time::from_millis(2000))[0];
    let metric = report.blocks[0].metrics[0].unwrap();
    assert_eq!(
        (report.blocks[0].metrics.len(), metric.ecn, metric.before),
        (1, Ecn::Ce, Some(Duration::from_secs(1)))
    );
}

#[test]
fn numbers_and_times_go_on_where_the_short_ones_wrap() {
    assert_eq!(expand(2, 0x1_fffe), 0x2_0002);
    assert_eq!(expand(0xfffe, 0x2_0001), 0x1_fffe);
    assert_eq!(expand(0xfffe, 1), 0xfffe);
    let mut clock = Unwrapper::default();
    let first = clock.written_at(u32::MAX);
    let second = clock.written_at(65_535);
    assert_eq!(second.since(first), Duration::from_secs(1));
    assert_eq!(clock.written_at(u32::MAX), first);
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        blocks in prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u16>(), 0..40)), 0..4),
        timestamp in any::<u32>(),
    ) {
        let blocks = blocks.into_iter().map(|(begin, words)| Block {
            begin,
            metrics: words.into_iter().map(metric).collect(),
        });
        let report = FeedbackPacket { blocks: blocks.collect(), timestamp };
        let bytes = report.encode();
        prop_assert_eq!(&FeedbackPacket::decode(&bytes).unwrap(), &report);
        // Times survive to half a unit, so they are written again as they were.
        prop_assert_eq!(FeedbackPacket::decode(&bytes).unwrap().encode(), bytes);
    }

    #[test]
    fn arrivals_come_back_to_within_the_units(
        arrivals in prop::collection::btree_map(0u64..3000, 0u64..7_000_000_000, 1..300),
        wait in 0u64..1_000_000_000,
    ) {
        let mut seen = Unreported::default();
        arrivals.iter().for_each(|(&number, &at)| seen.on_packet(number, Time::from_nanos(at), Ecn::Ect1));
        let now = Time::from_nanos(7_000_000_000 + wait);
        let mut found = std::collections::BTreeMap::new();
        for report in seen.take(now) {
            let report = FeedbackPacket::decode(&report.encode()).unwrap();
            for block in &report.blocks {
                let metrics = block.metrics.iter().enumerate();
                found.extend(metrics.filter_map(|(place, metric)| {
                    Some((u64::from(block.begin) + place as u64, (*metric)?.before))
                }));
            }
        }
        prop_assert_eq!(found.len(), arrivals.len());
        for (number, before) in found {
            let truth = now.since(Time::from_nanos(arrivals[&number])).as_nanos();
            match before {
                Some(before) => prop_assert!(truth.abs_diff(before.as_nanos()) <= 1_000_000_000 / 2048 + 1),
                // rfc8888 3.1: longer ago than 13 bits reach, 7.998 s.
                None => prop_assert!(truth * 1024 + 500_000_000 >= LONG_AGO * 1_000_000_000),
            }
        }
    }
}

/// Mostly a real report with a few bytes changed: pure noise would not get past its first byte.
#[test]
fn no_input_makes_reading_a_report_panic() {
    let mut random = Random::stream(7, "reports");
    let mut read = 0;
    for _ in 0..inputs() {
        let mut seen = Unreported::default();
        for _ in 0..random.bits() % 40 {
            let number = random.bits() % 64;
            seen.on_packet(
                number,
                Time::from_nanos(random.bits() % (1 << 34)),
                Ecn::from_bits(random.bits() as u8),
            );
        }
        let report = seen.take(Time::from_nanos(random.bits() % (1 << 34))).pop().unwrap_or_default();
        let mut bytes = report.encode().to_vec();
        for _ in 0..random.bits() % 4 {
            let place = (random.bits() % bytes.len() as u64) as usize;
            bytes[place] = random.bits() as u8;
        }
        if random.chance(0.2) {
            bytes.truncate((random.bits() % (bytes.len() as u64 + 1)) as usize);
        }
        if let Ok(report) = FeedbackPacket::decode(&bytes) {
            read += 1;
            // What was read can be written, and is the same when it is read again.
            assert_eq!(FeedbackPacket::decode(&report.encode()).as_ref(), Ok(&report));
        }
    }
    assert!(read > inputs() / 10, "only {read} inputs were reports");
}
