//! QUIC-DC's reactions by worked arithmetic.

use std::vec::Vec;

use brakelight_core::controller::ReceiveTime;
use brakelight_core::parameters::Parameters;
use brakelight_testkit::events::{MSS, ack, connection, loss, packet, packets, timeout};

use super::*;

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn options(options: &[(&str, &str)]) -> Config {
    Config::from_options(options.iter().copied()).expect("valid options")
}

fn quicdc(threshold: &str) -> QuicDc {
    QuicDc::new(options(&[("threshold", threshold)]), &connection(100))
}

/// As the paper has it: a share of what the last loss showed, whatever that is.
fn papers(share: &str) -> QuicDc {
    let options = options(&[("threshold", share), ("most", "none"), ("forget", "none")]);
    QuicDc::new(options, &connection(100))
}

/// A packet sent at `sent_ms` over 25 ms and a queue of `queued_ms`, acknowledged 25 ms after it arrived.
fn deliver(controller: &mut QuicDc, number: u64, sent_ms: u64, queued_ms: u64) {
    let sent_at = at(sent_ms);
    let received_at = at(sent_ms + 25 + queued_ms);
    let now = at(sent_ms + 50 + queued_ms);
    let acked = [packet(number, sent_at)];
    let reports = [ReceiveTime { number, sent_at, received_at }];
    let event = AckEvent { receive_times: &reports, ..ack(now, &acked, now.since(sent_at)) };
    controller.on_ack(&event);
}

/// Packets every 10 ms over an empty path, from number 0 at 0 ms: BWE 100 packets/s, RTT_min 50 ms.
fn settle(controller: &mut QuicDc) {
    for index in 0..100 {
        deliver(controller, index, 10 * index, 0);
    }
}

#[test]
fn the_window_becomes_the_pipe_when_the_queueing_delay_reaches_the_threshold() {
    let mut controller = quicdc("20ms");
    settle(&mut controller);
    deliver(&mut controller, 100, 1_000, 19);
    assert!(controller.cwnd() > packets(100));
    deliver(&mut controller, 101, 1_010, 20);
    // 100 packets/s times 50 ms.
    let cwnd_pkts = controller.cwnd().as_f64() / MSS.as_f64();
    assert!((cwnd_pkts - 5.0).abs() < 0.6, "{cwnd_pkts}");
    assert_eq!(controller.ssthresh(), Some(controller.cwnd()));
}

#[test]
fn packets_sent_before_the_reaction_say_nothing_new() {
    let mut controller = quicdc("20ms");
    settle(&mut controller);
    deliver(&mut controller, 100, 1_000, 20);
    assert_eq!(controller.delay_events, 1);
    // The reaction was at 1070 ms.
    for (number, sent) in [(101, 1_010), (102, 1_060), (103, 1_070)] {
        deliver(&mut controller, number, sent, 80);
        assert_eq!(controller.delay_events, 1);
    }
    deliver(&mut controller, 104, 1_071, 80);
    assert_eq!(controller.delay_events, 2);
}

#[test]
fn a_loss_of_a_packet_sent_before_a_delay_event_belongs_to_it() {
    let mut controller = quicdc("20ms");
    settle(&mut controller);
    deliver(&mut controller, 100, 1_000, 20);
    let cwnd = controller.cwnd();
    controller.westwood.cap_cwnd(packets(3));
    controller.on_loss(&LossEvent { sent_at: at(1_070), ..loss(at(1_100)) });
    assert_eq!((controller.cwnd(), controller.ssthresh()), (packets(3), Some(cwnd)));
    assert_eq!(controller.reacted_at, Some(at(1_070)));
    controller.on_loss(&LossEvent { sent_at: at(1_071), ..loss(at(1_200)) });
    assert_eq!(controller.reacted_at, Some(at(1_200)));
}

#[test]
fn a_share_is_of_the_largest_less_the_smallest_rtt_as_of_the_last_loss() {
    let mut controller = papers("20%");
    settle(&mut controller);
    deliver(&mut controller, 100, 1_000, 100);
    assert_eq!((controller.threshold(), controller.delay_events), (None, 0));
    controller.on_loss(&LossEvent { sent_at: at(1_001), ..loss(at(1_160)) });
    // 150 - 50 ms.
    assert_eq!(controller.threshold(), Some(Duration::from_millis(20)));
    deliver(&mut controller, 101, 1_200, 19);
    assert_eq!(controller.delay_events, 0);
    deliver(&mut controller, 102, 1_210, 20);
    assert_eq!(controller.delay_events, 1);
}

#[test]
fn a_share_bounds_the_delay_before_the_first_loss_and_after_a_path_stood_still() {
    let most = Some(Duration::from_millis(60));
    let mut controller = quicdc("50%");
    settle(&mut controller);
    assert_eq!(controller.threshold(), most);
    deliver(&mut controller, 100, 1_000, 60);
    assert_eq!(controller.delay_events, 1);
    // A round trip of 50 ms and two seconds and a half.
    deliver(&mut controller, 101, 1_200, 2_500);
    controller.on_loss(&LossEvent { sent_at: at(1_201), ..loss(at(4_000)) });
    assert_eq!(controller.threshold(), most);
    // A buffer of 16 ms is full before the threshold is reached, again and again.
    for index in 0..3 {
        let sent = 5_000 + 1_000 * index;
        assert_eq!(controller.threshold(), most);
        deliver(&mut controller, 102 + index, sent, 16);
        controller.on_loss(&LossEvent { sent_at: at(sent + 1), ..loss(at(sent + 200)) });
    }
    assert_eq!(controller.threshold(), Some(Duration::from_millis(8)));
    // Losses of a path that never queues leave the threshold above its jitter.
    for index in 0..3 {
        let sent = 20_000 + 1_000 * index;
        deliver(&mut controller, 107 + index, sent, 1);
        controller.on_loss(&LossEvent { sent_at: at(sent + 1), ..loss(at(sent + 200)) });
    }
    assert_eq!(controller.threshold(), Some(LEAST));
}

#[test]
fn persistent_congestion_starts_over_and_a_probe_timeout_does_nothing() {
    let mut controller = quicdc("20ms");
    settle(&mut controller);
    let cwnd = controller.cwnd();
    controller.on_timeout(&timeout(at(2_000), Timeout::Pto));
    assert_eq!(controller.cwnd(), cwnd);
    controller.on_timeout(&timeout(at(2_000), Timeout::PersistentCongestion));
    assert_eq!(controller.cwnd(), packets(2));
}

#[test]
fn a_delay_event_is_never_taken_back() {
    let mut controller = quicdc("20ms");
    settle(&mut controller);
    deliver(&mut controller, 100, 1_000, 20);
    let cwnd = controller.cwnd();
    controller.on_spurious_loss(&SpuriousEvent { now: at(1_200), timeout: false });
    assert_eq!(controller.cwnd(), cwnd);
}

#[test]
fn it_is_paced_at_its_window_per_smoothed_rtt() {
    let mut controller = quicdc("20ms");
    assert_eq!(controller.pacing_rate(), None);
    settle(&mut controller);
    let expected = 8.0 * controller.cwnd().as_f64() / 0.05;
    let rate = controller.pacing_rate().expect("a rate").as_bps_f64();
    assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} {expected}");
}

#[test]
fn a_cap_lowers_the_window_and_leaves_the_threshold_of_slow_start() {
    let mut controller = quicdc("20ms");
    settle(&mut controller);
    let ssthresh = controller.ssthresh();
    controller.cap_cwnd(packets(7));
    assert_eq!((controller.cwnd(), controller.ssthresh()), (packets(7), ssthresh));
}

#[test]
fn thresholds_read_back_as_they_are_shown_and_bad_ones_are_refused() {
    let said: Vec<String> = ["20%", "12.5%", "20ms", "7%"]
        .into_iter()
        .map(|text| Threshold::parse(text).expect("a threshold").show())
        .collect();
    assert_eq!(said, ["20%", "12.5%", "20ms", "7%"]);
    let refuse = |text| Config::from_options([("threshold", text)]).unwrap_err().to_string();
    assert_eq!(refuse("0.5%"), "threshold = `0.5%` is out of range: valid is 1% to 100%, or 100us to 10s");
    assert_eq!(refuse("20s"), "threshold = `20s` is out of range: valid is 1% to 100%, or 100us to 10s");
    assert_eq!(refuse("20"), "threshold = `20` is not a share such as `20%` or a time such as `20ms`");
    assert_eq!(refuse("nan%"), "threshold = `nan%` is not a share such as `20%` or a time such as `20ms`");
}
