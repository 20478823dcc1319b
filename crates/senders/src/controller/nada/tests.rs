use std::string::ToString;

use brakelight_core::controller::{MarkCount, ReceiveTime};
use brakelight_core::parameters::Parameters;
use brakelight_testkit::events::{ack, connection, packet, packets, timeout};

use super::*;

const RTT: Duration = Duration::from_millis(30);

fn nada(options: &[(&str, &str)]) -> Nada {
    Nada::new(Config::from_options(options.iter().copied()).unwrap(), &connection(10))
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} within {tolerance}");
}

/// A controller that saw these delays of its last packets, in ms.
fn queueing(delays_ms: &[u64]) -> Nada {
    let mut nada = nada(&[]);
    nada.delays = delays_ms.iter().map(|ms| Duration::from_millis(*ms)).collect();
    nada
}

#[test]
fn congestion_is_the_least_queueing_delay_and_the_penalties() {
    // rfc8698 eq.2: 1 % of losses costs 10 ms, 1 % of marks 2 ms, and twice as many four times as much.
    let mut nada = queueing(&[30, 25, 40]);
    assert_near(nada.congestion_ms(), 25.0, 1e-9);
    nada.p_loss = 0.01;
    assert_near(nada.congestion_ms(), 35.0, 1e-9);
    nada.p_mark = 0.02;
    assert_near(nada.congestion_ms(), 43.0, 1e-9);
    // A tenth of losses would be 1000 ms.
    nada.p_loss = 0.1;
    assert_near(nada.congestion_ms(), 500.0, 1e-9);
}

#[test]
fn delay_counts_less_above_50_ms_after_a_loss() {
    // rfc8698 eq.1: 50 exp(-0.5 (100 - 50) / 50) = 30.33 ms.
    let mut nada = queueing(&[100]);
    assert_near(nada.congestion_ms(), 100.0, 1e-9);
    nada.intervals.on_loss(10, Time::from_millis(100), RTT);
    nada.intervals.on_arrival(20);
    assert_near(nada.congestion_ms(), 50.0 * (-0.5_f64).exp(), 1e-9);
    nada.delays[0] = Duration::from_millis(40);
    assert_near(nada.congestion_ms(), 40.0, 1e-9);
    // The only interval has 11 packets: the loss is recent for 7 * 11 of them.
    nada.intervals.on_arrival(87);
    assert!(nada.intervals.is_recent(7.0));
    nada.intervals.on_arrival(88);
    assert!(!nada.intervals.is_recent(7.0));
}

#[test]
fn intervals_between_losses_are_weighted_as_rfc_5348_says() {
    let mut intervals = LossInterval::default();
    assert_eq!(intervals.mean(), None);
    let at = |packet: u64| Time::from_millis(100 * packet);
    for number in [9, 29, 69] {
        intervals.on_loss(number, at(number), RTT);
    }
    // Intervals of 10, 20 and 40 packets, all of weight 1.
    assert_near(intervals.mean().unwrap(), 70.0 / 3.0, 1e-9);
    // A loss within a round trip of the last is the same event.
    intervals.on_loss(70, at(69) + RTT, RTT);
    assert_near(intervals.mean().unwrap(), 70.0 / 3.0, 1e-9);
    for number in [169, 269, 369, 469, 569, 669, 769, 869] {
        intervals.on_loss(number, at(number), RTT);
    }
    assert_near(intervals.mean().unwrap(), 100.0, 1e-9);
}

#[test]
fn the_ramp_up_exceeds_what_arrives_by_what_may_queue() {
    // rfc8698 eq.3: 50 / (30 + 100 + 120) = 0.2.
    let mut nada = nada(&[]);
    nada.srtt = Some(RTT);
    nada.ramp_up(1e6);
    assert_near(nada.rate_bps, 1.2e6, 1e-6);
    // It never lowers the rate.
    nada.ramp_up(0.5e6);
    assert_near(nada.rate_bps, 1.2e6, 1e-6);
}

#[test]
fn the_gradual_update_is_equation_7() {
    let step = Duration::from_millis(100);
    let rate_after = |x_curr: f64, x_prev: f64| {
        let mut nada = nada(&[]);
        (nada.rate_bps, nada.x_prev_ms) = (1e6, x_prev);
        nada.update_gradually(x_curr, step);
        nada.rate_bps
    };
    // The congestion that 1 Mbit/s deserves is 10 * 1.5 / 1 ms; there the rate stands.
    assert_near(rate_after(15.0, 15.0), 1e6, 1e-6);
    // 10 ms more: 0.5 * 100/500 * 10/500 = 0.2 %, and for the change 0.5 * 2 * 10/500 = 2 %.
    assert_near(rate_after(25.0, 25.0), 0.998e6, 1e-6);
    assert_near(rate_after(25.0, 15.0), 0.978e6, 1e-6);
    assert_near(rate_after(5.0, 5.0), 1.002e6, 1e-6);
    // More than the whole cannot go.
    assert_near(rate_after(10_000.0, 0.0), 0.0, 1e-6);
}

/// Reports packets sent every 8 ms (1 Mbit/s) that queued for `queueing_ms`, from `from` on.
fn run(nada: &mut Nada, from: u64, count: u64, queueing_ms: u64) {
    for number in from..from + count {
        let sent_at = Time::from_millis(8 * number);
        let received_at = sent_at + Duration::from_millis(15 + queueing_ms);
        let acked = [packet(number, sent_at)];
        let times = [ReceiveTime { number, sent_at, received_at }];
        let rtt = RTT + Duration::from_millis(queueing_ms);
        let mut event = ack(sent_at + rtt, &acked, rtt);
        event.rtt.min = RTT;
        event.receive_times = &times;
        nada.on_ack(&event);
    }
}

#[test]
fn it_ramps_up_while_nothing_queues_and_no_further_than_the_largest_rate() {
    let mut nada = nada(&[]);
    assert_eq!(nada.pacing_rate(), Some(Rate::from_bps(150_000)));
    run(&mut nada, 0, 100, 0);
    // (1 + 0.2) of 1 Mbit/s, of which a window of 500 ms holds 62 or 63 packets of 8000 bits.
    let mbps = nada.pacing_rate().unwrap().as_mbps_f64();
    assert!((1.19..=1.21).contains(&mbps), "{mbps}");
    let mut bounded = Nada::new(Config::from_options([("max_rate", "1Mbps")]).unwrap(), &connection(10));
    run(&mut bounded, 0, 100, 0);
    assert_eq!(bounded.pacing_rate(), Some(Rate::from_mbps(1)));
}

#[test]
fn a_queue_ends_the_ramp_up_and_lowers_the_rate() {
    let mut nada = nada(&[]);
    run(&mut nada, 0, 100, 0);
    let before = nada.rate_bps;
    run(&mut nada, 100, 50, 40);
    assert!(!nada.is_ramping);
    // The rise from nothing to 40 ms costs 0.5 * 2 * 40/500 = 8 %, and that it stays so a little more.
    assert!((0.88 * before..0.92 * before).contains(&nada.rate_bps), "{} of {before}", nada.rate_bps);
}

#[test]
fn losses_and_marks_are_smoothed_shares() {
    let mut nada = nada(&[("ecn", "true")]);
    run(&mut nada, 0, 10, 0);
    let sent_at = Time::from_secs(10);
    let (acked, lost) = ([packet(99, sent_at)], [packet(98, sent_at)]);
    let mut event = ack(sent_at + RTT, &acked, RTT);
    event.lost = &lost;
    event.marks.ce = MarkCount { packets: 1, bytes: Bytes(1000) };
    nada.on_ack(&event);
    // rfc8698 5.1.2: a tenth of one in two, and of one in one.
    assert_near(nada.p_loss, 0.05, 1e-9);
    assert_near(nada.p_mark, 0.1, 1e-9);
    assert!(!nada.is_ramping);
    assert_eq!(nada.encoding(), Encoding::Classic);
}

#[test]
fn a_timeout_halves_the_rate_and_a_probe_does_not() {
    let mut nada = nada(&[]);
    nada.rate_bps = 1e6;
    nada.on_timeout(&timeout(Time::from_secs(1), Timeout::Pto));
    assert_near(nada.rate_bps, 1e6, 1e-6);
    nada.on_timeout(&timeout(Time::from_secs(1), Timeout::PersistentCongestion));
    assert_near(nada.rate_bps, 0.5e6, 1e-6);
}

#[test]
fn the_window_holds_half_a_second_beyond_the_round_trip() {
    let mut nada = nada(&[]);
    assert_eq!(nada.cwnd(), packets(10));
    nada.srtt = Some(RTT);
    (nada.rtt_min, nada.rate_bps) = (RTT, 1e6);
    assert_eq!(nada.cwnd(), Bytes(66_250));
}

#[test]
fn refuses_rates_out_of_order() {
    let error = Config::from_options([("max_rate", "100kbps")]).unwrap_err().to_string();
    assert_eq!(error, "min_rate = 150kbps is above max_rate = 100kbps");
}
