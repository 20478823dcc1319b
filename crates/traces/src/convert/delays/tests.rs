use brakelight_core::random::Random;
use brakelight_testkit::mutate::{fuzz_inputs, mutate};

use super::*;
use crate::convert::{ConvertOptions, Format, convert};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Packets every 100 ms: when sent, up, down, the round trip, all in ms, and what `lost` says.
fn irtt(packets: &[(i64, i64, i64, &str)]) -> String {
    let trips = packets.iter().map(|(sent, up, down, lost)| {
        let (sent, rtt) = (1_700_000_000_000_000_000 + sent * 1_000_000, (up + down) * 1_000_000);
        let delay = match *lost {
            "false" => serde_json::json!({"send": up * 1_000_000, "receive": down * 1_000_000, "rtt": rtt}),
            _ => serde_json::json!({}),
        };
        serde_json::json!({"lost": lost, "delay": delay, "timestamps": {"client": {"send": {"wall": sent}}}})
    });
    serde_json::json!({"version": {}, "round_trips": trips.collect::<Vec<_>>()}).to_string()
}

const GOOD: [(i64, i64, i64, &str); 4] =
    [(0, 20, 30, "false"), (500, 25, 30, "false"), (1_000, 0, 0, "true_up"), (1_500, 0, 0, "true")];

fn refusal(text: &str) -> String {
    delays(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_list_holds_ten_milliseconds_a_line_for_both_directions() {
    let read = delays(b"12\n12\n16\r\n14\n").unwrap();
    assert_eq!(read.down.delays, [(ms(0), ms(12)), (ms(20), ms(16)), (ms(30), ms(14))]);
    assert_eq!((&read.up, read.length), (&read.down, ms(40)));
    assert_eq!(read.format.to_string(), "leoreplayer");
}

#[test]
fn irtt_s_packets_tell_delay_and_loss_each_way() {
    let read = delays(irtt(&GOOD).as_bytes()).unwrap();
    assert_eq!(read.up.delays, [(ms(0), ms(20)), (ms(500), ms(25))]);
    assert_eq!(read.down.delays, [(ms(0), ms(30))]);
    // In the second second one of two was lost on the way up, and one somewhere.
    assert_eq!(read.up.losses, [(ms(0), 0), (ms(1_000), 750_000_000)]);
    assert_eq!(read.down.losses, [(ms(0), 0), (ms(1_000), 250_000_000)]);
    assert_eq!((read.length, read.notes.len()), (ms(2_000), 0));
}

#[test]
fn clocks_that_differ_leave_half_of_the_round_trip() {
    let read = delays(irtt(&[(0, -5, 55, "false"), (10, -5, 65, "false")]).as_bytes()).unwrap();
    assert_eq!(read.up.delays, [(ms(0), ms(25)), (ms(10), ms(30))]);
    assert_eq!(read.down.delays, read.up.delays);
    assert!(read.notes[0].contains("the clocks differed"), "{:?}", read.notes);
}

#[test]
fn what_is_no_delay_is_refused_in_a_line() {
    let expected = "expected one whole number of milliseconds a line, from 0 to 60000, for every 10 ms";
    assert_eq!(refusal("12\n-3\n"), format!("line 2: the delay is `-3`: {expected}"));
    assert_eq!(refusal("12\n60001\n"), format!("line 2: the delay is `60001`: {expected}"));
    assert_eq!(refusal("12\n\n3\n"), format!("line 2: the delay is ``: {expected}"));
    assert_eq!(refusal(" \n"), "the file holds no delay");
    assert_eq!(refusal("{}"), "`round_trips`: missing: expected the list of IRTT's packets");
    assert_eq!(refusal("{\"round_trips\": []}"), "the file holds no packet of IRTT");
    assert_eq!(refusal(&irtt(&[(0, 0, 0, "true")])), "the file holds no packet of IRTT that was answered");
    assert_eq!(
        refusal(&irtt(&[(0, 1, 1, "maybe")])),
        "`round_trips[0].lost`: `maybe` is not one of `false`, `true`, `true_up`, `true_down`"
    );
    let early = refusal(&irtt(&[(0, 1, 1, "false"), (-1, 1, 1, "false")]));
    assert!(early.ends_with("is not within a day after the first packet's"), "{early}");
    assert_eq!(
        refusal("{\"round_trips\": [{}]}"),
        "`round_trips[0].timestamps.client.send.wall`: missing: expected nanoseconds"
    );
}

#[test]
fn delays_are_put_beside_a_capacity_and_cut_at_its_end() {
    let mut converted =
        convert(b"start_s,mbps,end_s\n0,12,0.025\n", Format::Csv, ConvertOptions::default()).unwrap();
    converted.add_delays(&delays(b"12\n13\n16\n14\n").unwrap()).unwrap();
    assert_eq!(converted.recording.down.delays, [(ms(0), ms(12)), (ms(10), ms(13)), (ms(20), ms(16))]);
    assert_eq!(converted.recording.up.delays, converted.recording.down.delays);
    let warning = "the capacity lasts 0.025 s and the delays 0.040 s: both were taken from their beginnings";
    assert_eq!(converted.warnings, [warning]);
    let trace = converted.recording.trace(None).unwrap();
    assert!(trace.recorded().is_some_and(|recorded| recorded.forward == recorded.reverse));
}

#[test]
fn no_input_makes_the_readers_panic() {
    let corpus = ["12\n13\n16\n".to_string(), irtt(&GOOD), irtt(&[(0, -5, 55, "false")])];
    let mut random = Random::stream(1, "fuzz delays");
    let mut accepted = 0;
    for _ in 0..fuzz_inputs() {
        if let Ok(read) = delays(mutate(&corpus, &mut random).as_bytes()) {
            accepted += 1;
            let mut converted =
                convert(b"start_s,mbps,end_s\n0,12,0.025\n", Format::Csv, ConvertOptions::default()).unwrap();
            converted.add_delays(&read).unwrap();
            converted.recording.trace(None).unwrap();
        }
    }
    assert!(accepted > fuzz_inputs() / 20, "{accepted} accepted");
}
