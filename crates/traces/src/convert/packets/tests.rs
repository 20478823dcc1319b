use proptest::prelude::*;

use super::super::{RateUnit, convert};
use super::*;

fn meaning(text: &str) -> Meaning {
    Meaning::of(text.as_bytes())
}

/// Lines of times, in microseconds, and values.
fn list(rows: impl IntoIterator<Item = (u64, u64)>) -> String {
    rows.into_iter()
        .map(|(micros, value)| format!("{}.{:06}\t{value}\n", micros / 1_000_000, micros % 1_000_000))
        .collect()
}

#[test]
fn rates_of_data_sets_stay_rates() {
    for (what, text) in [
        ("a second, whole numbers", "1 361\n2 703\n3 924\n4 1514\n"),
        ("the same with a decimal", "1.0 361.0\n2.0 703.0\n3.0 924.0\n"),
        ("uneven intervals, decimals", "0.2 30.75\n0.402292 30.86\n0.602987 31.17\n"),
        ("uneven milliseconds, decimals", "0.0013 100.5\n0.0091 1514.0\n0.0093 66.0\n"),
        ("a fixed rate", "0 100\n0.1 100\n0.2 100\n0.3 100\n"),
        ("a fast fixed rate", "0 1400\n1 1400\n2 1400\n3 1400\n"),
        ("small whole numbers", "0.0011 12\n0.0093 24\n0.0094 12\n"),
        ("kbit/s", "0.0 120000\n0.1 98000\n0.2 130000\n"),
        ("chunks of a video, kbit/s", "0.1 4500\n4.3 2300\n6.2 8700\n11.9 4100\n"),
        ("milliseconds on a grid", "0.001 120\n0.002 250\n0.003 90\n0.004 480\n"),
        ("polled each second", "1700000000.012345 94\n1700000001.013456 1231\n1700000002.014567 87\n"),
        ("with an outage", "0 300\n1 0\n2 0\n3 300\n4 310\n"),
        ("one row", "0 1514\n"),
        ("nothing", ""),
        ("words", "0.001 1514\n0.002 fast\n"),
    ] {
        assert_eq!(meaning(text), Meaning::Rates, "{what}");
    }
}

#[test]
fn lists_of_packets_are_told_from_rates() {
    let both = (0..200).map(|n| (n * 5_000 + n * n * 7_919 % 4_000, if n % 3 == 0 { 66 } else { 1514 }));
    let slow = (0..50).map(|n| (n * 120_000 + n * n * 7_919 % 90_000, if n % 3 == 0 { 583 } else { 1514 }));
    let cards = (0..50).map(|n| (n * 900 + n * n * 7_919 % 800, 66 + 1448 * (1 + n * n % 7)));
    for (what, text) in [
        ("data and ACKs", list(both)),
        ("of a slow link", list(slow)),
        ("put together by the card", list(cards)),
        ("a burst at one instant", "0.000001 1514\n0.000001 1514\n0.000001 1514\n".to_string()),
        ("paced", list((0..100).map(|n| (n * 1_213 + n % 3, 1514)))),
        ("with commas", "0.000000,1514\n0.001211,66\n0.007113,1514\n".to_string()),
    ] {
        assert_eq!(meaning(&text), Meaning::Sizes, "{what}");
    }
}

#[test]
fn what_may_be_either_is_asked() {
    for (what, text) in [
        ("calls, each 20 ms", list((0..50).map(|n| (n * 20_000 + n * 7_919 % 900, 214)))),
        ("pings", list((0..9).map(|n| (n * 1_001_234, 98)))),
        ("a packet each millisecond", "0.000 1500\n0.001 1500\n0.002 1500\n".to_string()),
        ("a slow paced link by the millisecond", "0.000 1514\n0.012 1514\n0.024 1514\n".to_string()),
    ] {
        assert_eq!(meaning(&text), Meaning::Unclear, "{what}");
        let refused = convert(text.as_bytes(), Format::Columns, ConvertOptions::default()).unwrap_err();
        assert_eq!(refused, ConvertError::RatesOrSizes, "{what}");
        let refused = refused.to_string();
        assert!(refused.contains("`--from packets`") && refused.contains("`--unit Mbit/s`"), "{refused}");
    }
}

#[test]
fn sizes_are_summed_up_and_the_user_may_say_otherwise() {
    // 750 bytes each 1.1 or 4.9 ms: an opportunity for two of them.
    let text = list((0..400).map(|n| (n / 2 * 6_000 + n % 2 * 1_100, 750)));
    let made = convert(text.as_bytes(), Format::Columns, ConvertOptions::default()).unwrap();
    assert_eq!((made.format, made.trace.opportunities()), (Format::Packets, 200));
    assert!(made.warnings[0].contains("`--unit Mbit/s` reads it as rates"), "{:?}", made.warnings);
    let commas = text.replace('\t', ",");
    let same = convert(commas.as_bytes(), Format::Csv, ConvertOptions::default()).unwrap();
    assert_eq!(same.trace, made.trace);
    let rates = ConvertOptions { unit: Some(RateUnit::KBIT), ..ConvertOptions::default() };
    assert_eq!(convert(text.as_bytes(), Format::Columns, rates).unwrap().format, Format::Columns);
    let named = convert(b"0 1500\n1 1500\n", Format::Packets, ConvertOptions::default()).unwrap();
    assert_eq!(named.trace.opportunities(), 2);
    let refused = convert(b"0 1500\n1 fast\n", Format::Packets, ConvertOptions::default()).unwrap_err();
    assert!(refused.to_string().starts_with("line 2: the row is `1 fast`: expected a time"), "{refused}");
}

const TABLE: &str = "\"No.\",\"Time\",\"Source\",\"Destination\",\"Protocol\",\"Length\",\"Info\"
\"1\",\"0.000000\",\"192.0.2.1\",\"192.0.2.2\",\"TCP\",\"1500\",\"443 > 5, Len=1\"
\"2\",\"0.000400\",\"192.0.2.2\",\"192.0.2.1\",\"TCP\",\"66\",\"5 > 443\"
\"3\",\"0.002100\",\"192.0.2.1\",\"192.0.2.2\",\"TCP\",\"1500\",\"443 > 5\"
";

#[test]
fn a_table_of_packets_is_summed_up_one_way() {
    let of = |text: &str, selection: Option<&str>| {
        let selection = selection.map_or(Selection::OneDirection, |text| text.parse().unwrap());
        let format = Format::detect(text.as_bytes());
        convert(text.as_bytes(), format, ConvertOptions { selection, ..ConvertOptions::default() })
    };
    let refused = of(TABLE, None).unwrap_err().to_string();
    assert!(refused.contains("--direction from:192.0.2.1"), "{refused}");
    for selection in ["from:192.0.2.1", "to:192.0.2.2"] {
        let stamps: Vec<u64> = of(TABLE, Some(selection)).unwrap().trace.millis().collect();
        assert_eq!(stamps, [0, 2], "{selection}");
    }
    let refused = of(TABLE, Some("from:192.0.2.9")).unwrap_err().to_string();
    assert!(refused.contains("no packet is of `from:192.0.2.9`"), "{refused}");
    let refused = of(TABLE, Some("up")).unwrap_err().to_string();
    assert!(refused.contains("give `from:ADDRESS`"), "{refused}");
    let fields = "frame.time_relative\tframe.len\n0.000000\t1500\n0.000400\t1500\n0.003000\t1500\n";
    assert_eq!(of(fields, None).unwrap().trace.opportunities(), 3);
    let refused = of(&TABLE.replace("\"66\"", "\"big\""), Some("all")).unwrap_err().to_string();
    assert!(refused.starts_with("line 3: the size is `big`"), "{refused}");
}

#[test]
fn a_table_that_names_rates_is_never_one_of_packets() {
    let rates = "time,length,mbps\n0.0001,1514,12\n0.0043,66,12\n0.0059,1514,12\n";
    let made = convert(rates.as_bytes(), Format::Csv, ConvertOptions::default()).unwrap();
    assert_eq!(made.format, Format::Csv);
    // Much else has a length.
    let lengths = "time,length,speed,rate\n0,10,2,3\n1,11,2,3\n";
    let refused = convert(lengths.as_bytes(), Format::Csv, ConvertOptions::default()).unwrap_err();
    assert!(matches!(refused, ConvertError::NoRate { .. }), "{refused}");
}

proptest! {
    /// A packet in Poisson's times, of any size of Ethernet: never a rate.
    #[test]
    fn packets_milliseconds_apart_are_never_rates(
        packets in prop::collection::vec((0_u32..1_000_000, prop::sample::select(vec![54_u64, 66, 590, 1448, 1514])), 20..200),
        mean_us in 50_u64..9_000,
    ) {
        let mut at = 1_000_000_u64;
        let rows: Vec<(u64, u64)> = packets
            .iter()
            .map(|&(draw, size)| {
                at += (-libm::log((f64::from(draw) + 1.0) / 1_000_001.0) * mean_us as f64) as u64;
                (at, size)
            })
            .collect();
        prop_assert_ne!(meaning(&list(rows)), Meaning::Rates);
    }

    /// A rate each 100 ms or more by a clock that is off by a twentieth: always rates.
    #[test]
    fn rates_at_intervals_are_always_rates(
        rates in prop::collection::vec((40_u64..2_500, -50_i64..50), 10..100),
        interval_ms in prop::sample::select(vec![100_u64, 200, 500, 1_000]),
        decimals in any::<bool>(),
    ) {
        // More than a few values, as measured rates have.
        let values: BTreeSet<u64> = rates.iter().map(|(rate, _)| *rate).collect();
        prop_assume!(values.len() * 2 > rates.len());
        let rows = rates.iter().enumerate().map(|(index, (rate, off))| {
            let micros = (index as u64 + 1) * interval_ms * 1_000;
            (micros.saturating_add_signed(off * interval_ms as i64), *rate)
        });
        let text = list(rows);
        let text = if decimals { text.replace('\n', ".5\n") } else { text };
        prop_assert_eq!(meaning(&text), Meaning::Rates);
    }

    /// What is summed up is what there is.
    #[test]
    fn the_sizes_of_a_list_are_kept(
        packets in prop::collection::vec((1_u64..5_000, 40_u64..9_000), 2..100),
    ) {
        let mut at = 0;
        let rows: Vec<(u64, u64)> = packets.iter().map(|&(gap, size)| { at += gap; (at, size) }).collect();
        let total: u64 = rows.iter().map(|(_, size)| size).sum();
        let made = convert(list(rows.iter().copied()).as_bytes(), Format::Packets, ConvertOptions::default());
        match made {
            Ok(made) => {
                // The last millisecond is the end, whether something is due or not.
                prop_assert!(made.trace.opportunities().abs_diff(total / 1_500) <= 1);
            }
            // All that fills an opportunity came in the first millisecond.
            Err(ConvertError::Trace(_)) => {}
            Err(error) => prop_assert!(total < 1_500, "{}", error),
        }
    }

    #[test]
    fn no_list_brings_it_down(text in "[0-9a-z.,; \\t\\n-]{0,80}") {
        let _ = meaning(&text);
        let _ = convert(text.as_bytes(), Format::Packets, ConvertOptions::default());
    }
}
