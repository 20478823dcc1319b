use brakelight_core::parameters::Parameters;
use brakelight_testkit::events::{
    MSS, ack, connection, idle, loss, packet, packets, send, spurious, timeout,
};

use super::*;

const RTT: Duration = Duration::from_millis(100);

fn cubic(options: &[(&str, &str)], initial_pkts: u64) -> Cubic {
    let config = Config::from_options(options.iter().copied()).expect("valid options");
    Cubic::new(config, &connection(initial_pkts))
}

/// One ACK of one packet at `now`.
fn acked(cubic: &mut Cubic, now: Time) {
    cubic.on_ack(&ack(now, &[packet(0, now.saturating_sub(RTT))], RTT));
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-3 * right.abs().max(1.0)
}

/// A window of 100 packets that has just lost: 70 packets, towards 100.
fn after_a_loss(options: &[(&str, &str)]) -> Cubic {
    let mut cubic = cubic(options, 100);
    cubic.on_loss(&loss(Time::ZERO));
    cubic
}

#[test]
fn a_loss_leaves_seven_tenths_and_the_curve_returns_to_the_maximum_after_k() {
    let mut cubic = after_a_loss(&[]);
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (packets(70), Some(packets(70))));
    acked(&mut cubic, Time::from_secs(1));
    let epoch = cubic.model.epoch.expect("an epoch");
    // K = cbrt((100 - 70) / 0.4) = cbrt(75) = 4.2172 s.
    assert!(close(epoch.k_s, 4.2172), "{}", epoch.k_s);
    let at = |t_s: f64| epoch.curve_pkts(0.4, Duration::from_secs_f64(t_s));
    assert!(close(at(0.0), 70.0) && close(at(4.2172), 100.0) && close(at(2.0 * 4.2172), 130.0));
    // W(1) = 100 - 0.4 * 3.2172^3 = 86.681.
    assert!(close(at(1.0), 86.681), "{}", at(1.0));
}

#[test]
fn each_packet_acked_takes_its_share_of_the_way_to_the_curve_one_rtt_ahead() {
    let mut cubic = after_a_loss(&[]);
    acked(&mut cubic, Time::from_secs(1));
    // W(0.1) = 100 - 0.4 * 4.1172^3 = 72.083; (72.083 - 70) / 70 = 0.02976 for one packet.
    assert!(close(cubic.model.cwnd_pkts - 70.0, 0.02976), "{}", cubic.model.cwnd_pkts);
    // Two seconds in: 0.4 (2.1 - 4.2172)^3 + 100 = 96.204; (96.204 - 70.0298) / 70.0298 = 0.37376.
    let before_pkts = cubic.model.cwnd_pkts;
    acked(&mut cubic, Time::from_secs(3));
    assert!(close(cubic.model.cwnd_pkts - before_pkts, 0.37376), "{}", cubic.model.cwnd_pkts - before_pkts);
}

#[test]
fn the_window_grows_by_half_per_rtt_at_most_and_never_falls_towards_the_curve() {
    let mut cubic = after_a_loss(&[("reno_friendly", "false")]);
    acked(&mut cubic, Time::from_secs(1));
    let before_pkts = cubic.model.cwnd_pkts;
    acked(&mut cubic, Time::from_secs(100));
    assert!(close(cubic.model.cwnd_pkts - before_pkts, 0.5));
    // Far above the curve: nothing.
    cubic.model.cwnd_pkts = 1e9;
    acked(&mut cubic, Time::from_secs(100));
    assert_eq!(cubic.model.cwnd_pkts, 1e9);
}

#[test]
fn fast_convergence_gives_way_when_the_maximum_fell() {
    let mut cubic = after_a_loss(&[]);
    cubic.on_loss(&loss(Time::from_secs(1)));
    // 70 < 100: W_max = 70 * 1.7 / 2 = 59.5.
    assert!(close(cubic.model.w_max_pkts.unwrap(), 59.5));
    let mut plain = after_a_loss(&[("fast_convergence", "false")]);
    plain.on_loss(&loss(Time::from_secs(1)));
    assert!(close(plain.model.w_max_pkts.unwrap(), 70.0));
    // Above the last maximum it stays what it was.
    cubic.model.cwnd_pkts = 80.0;
    cubic.on_loss(&loss(Time::from_secs(2)));
    assert!(close(cubic.model.w_max_pkts.unwrap(), 80.0));
}

#[test]
fn follows_reno_where_reno_is_faster() {
    // RTT 10 ms, 10 packets before the loss: the curve gains 3 packets in cbrt(3 / 0.4) = 1.96 s, while
    // Reno's estimate gains 0.5294 packets per RTT and reaches 10 after 5.7 RTTs, then 1 per RTT.
    let rtt = Duration::from_millis(10);
    let mut cubic = cubic(&[], 10);
    cubic.on_loss(&loss(Time::ZERO));
    let mut now = Time::from_secs(1);
    let mut per_rtt = |cubic: &mut Cubic| {
        let before_pkts = cubic.model.cwnd_pkts;
        for _ in 0..before_pkts as u64 {
            cubic.on_ack(&ack(now, &[packet(0, now)], rtt));
        }
        now += rtt;
        cubic.model.cwnd_pkts - before_pkts
    };
    while cubic.model.cwnd_pkts < 9.4 {
        let gain = per_rtt(&mut cubic);
        assert!(
            (0.45..0.53).contains(&gain),
            "alpha 0.5294 per window of ACKs below the last maximum, not {gain}"
        );
    }
    while cubic.model.cwnd_pkts < 10.0 {
        per_rtt(&mut cubic);
    }
    let gain = per_rtt(&mut cubic);
    assert!((0.9..1.01).contains(&gain), "one packet per RTT above it, not {gain}");
}

#[test]
fn before_the_first_loss_the_window_grows_by_a_twentieth_per_rtt() {
    let mut cubic = cubic(&[], 100);
    cubic.model.ssthresh_pkts = 100.0;
    acked(&mut cubic, Time::from_secs(1));
    assert!(close(cubic.model.cwnd_pkts, 100.05));
    let mut plain = self::cubic(&[("initial_growth", "0"), ("reno_friendly", "false")], 100);
    plain.model.ssthresh_pkts = 100.0;
    acked(&mut plain, Time::from_secs(1));
    // K = 0 and W_max = 100: W(0.1) = 100.0004.
    assert!(close((plain.model.cwnd_pkts - 100.0) * 1e6, 4.0), "{}", plain.model.cwnd_pkts);
}

#[test]
fn a_timeout_forgets_the_maximum_and_slow_start_returns_to_the_threshold() {
    let mut cubic = after_a_loss(&[("hystart", "off")]);
    cubic.on_timeout(&timeout(Time::from_secs(1), Timeout::Rto));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (packets(1), Some(packets(49))));
    assert_eq!(cubic.model.w_max_pkts, None);
    // The second expiry for the same data does not lower the threshold again.
    cubic.on_timeout(&TimeoutEvent { repeated: true, ..timeout(Time::from_secs(2), Timeout::Rto) });
    assert_eq!(cubic.ssthresh(), Some(packets(49)));
    for _ in 0..48 {
        acked(&mut cubic, Time::from_secs(3));
    }
    assert_eq!(cubic.cwnd(), packets(49));
    acked(&mut cubic, Time::from_secs(3));
    let epoch = cubic.model.epoch.expect("congestion avoidance");
    assert!(epoch.k_s == 0.0 && close(epoch.origin_pkts, 49.0));
}

#[test]
fn a_probe_timeout_is_no_congestion_and_persistent_congestion_starts_over() {
    let mut cubic = cubic(&[], 100);
    cubic.on_timeout(&timeout(Time::ZERO, Timeout::Pto));
    assert_eq!(cubic.cwnd(), packets(100));
    cubic.on_loss(&loss(Time::ZERO));
    cubic.on_timeout(&timeout(Time::ZERO, Timeout::PersistentCongestion));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (packets(2), Some(packets(70))));
}

#[test]
fn a_spurious_loss_restores_window_threshold_maximum_and_curve() {
    let mut cubic = after_a_loss(&[]);
    for ms in 1000..1100 {
        acked(&mut cubic, Time::from_millis(ms));
    }
    let model = cubic.model;
    cubic.on_loss(&loss(Time::from_millis(1100)));
    assert_ne!(cubic.model, model);
    cubic.on_spurious_loss(&spurious(Time::from_millis(1200), false));
    assert_eq!(cubic.model, model);
    cubic.on_timeout(&timeout(Time::from_millis(1300), Timeout::Rto));
    cubic.on_spurious_loss(&spurious(Time::from_millis(1400), true));
    assert_eq!(cubic.model, model);
}

#[test]
fn time_when_the_window_was_not_needed_does_not_count() {
    let start = after_a_loss(&[]);
    let (mut busy, mut limited, mut idle) = (start.clone(), start.clone(), start);
    for cubic in [&mut busy, &mut limited, &mut idle] {
        acked(cubic, Time::from_secs(1));
    }
    // Ten seconds with ACKs that tell nothing about the path.
    for ms in (1000..=11_000).step_by(100) {
        let now = Time::from_millis(ms);
        limited.on_ack(&AckEvent { cwnd_limited: false, ..ack(now, &[packet(0, now)], RTT) });
    }
    // Ten seconds of silence.
    idle.on_send(&send(Time::from_secs(11), 1, Bytes::ZERO));
    acked(&mut busy, Time::from_millis(1100));
    acked(&mut limited, Time::from_millis(11_100));
    acked(&mut idle, Time::from_millis(11_100));
    assert!(close(busy.model.cwnd_pkts, limited.model.cwnd_pkts));
    assert!(close(busy.model.cwnd_pkts, idle.model.cwnd_pkts));
}

#[test]
fn the_horizon_may_be_the_smallest_rtt_as_in_linux() {
    let mut cubic = after_a_loss(&[("horizon", "min_rtt"), ("reno_friendly", "false")]);
    cubic.delay_min = Some(Duration::from_millis(50));
    acked(&mut cubic, Time::from_secs(1));
    // W(0.05) = 100 - 0.4 * 4.16716^3 = 71.054; 1.054 / 70 = 0.015061.
    assert!(close((cubic.model.cwnd_pkts - 70.0) * 100.0, 1.5061), "{}", cubic.model.cwnd_pkts);
}

#[test]
fn slow_start_counts_bytes_and_stops_at_the_threshold() {
    let mut cubic = cubic(&[("hystart", "off")], 10);
    let now = Time::from_millis(100);
    let two = [packet(0, Time::ZERO), packet(1, Time::ZERO)];
    for _ in 0..5 {
        cubic.on_ack(&ack(now, &two, RTT));
    }
    assert_eq!(cubic.cwnd(), packets(20), "doubled in one RTT with an ACK for every second packet");
    cubic.on_loss(&loss(now));
    cubic.on_timeout(&timeout(now, Timeout::Rto));
    for _ in 0..5 {
        cubic.on_ack(&ack(now, &two, RTT));
    }
    assert_eq!(cubic.cwnd().0 / MSS.0, 9, "0.49 of 20 packets");
}

#[test]
fn classic_hystart_ends_slow_start_when_the_delay_rises() {
    let mut cubic = cubic(&[], 32);
    let mut number = 0;
    for round in 0..20_u64 {
        let now = Time::from_millis(1000 * round);
        // 10 ms of queue per round: more than clamp(100 / 8, 4, 16) = 12.5 ms from the second on.
        let rtt = Duration::from_millis(100 + 10 * round);
        for _ in 0..32 {
            cubic.on_send(&send(now, number + 32, packets(32)));
            cubic.on_ack(&ack(now + Duration::from_millis(3 * (number % 32)), &[packet(number, now)], rtt));
            number += 1;
        }
        if round < 2 {
            assert_eq!(cubic.ssthresh(), Some(Bytes(u64::MAX)), "in round {round}");
        }
    }
    let ssthresh_pkts = cubic.ssthresh().unwrap().0 / MSS.0;
    assert!((96..=128).contains(&ssthresh_pkts), "in the third round, not at {ssthresh_pkts}");
}

/// Sends and acknowledges a round of 10 packets, 10 ms apart, with this RTT.
fn round_of_ten(cubic: &mut Cubic, number: &mut u64, rtt: Duration) {
    for _ in 0..10 {
        let now = Time::from_millis(10 * *number);
        cubic.on_ack(&ack(now, &[packet(*number, now.saturating_sub(rtt))], rtt));
        cubic.on_send(&send(now, *number + 10, packets(9)));
        *number += 1;
    }
}

/// A flow whose first slow start HyStart++ has ended, and the number of its next packet.
fn after_hystart_plus_plus() -> (Cubic, u64) {
    let (mut cubic, mut number) = (cubic(&[("hystart", "plusplus")], 10), 0);
    for sent in 0..10 {
        cubic.on_send(&send(Time::ZERO, sent, packets(sent)));
    }
    // A round without a queue, one with 20 ms of it, then five of conservative slow start.
    round_of_ten(&mut cubic, &mut number, RTT);
    while cubic.ssthresh() == Some(Bytes(u64::MAX)) {
        assert!(number < 100, "five rounds of conservative slow start end the first slow start");
        round_of_ten(&mut cubic, &mut number, Duration::from_millis(120));
    }
    (cubic, number)
}

/// rfc9406 4.3: HyStart++ is for the initial slow start only.
#[test]
fn hystart_plus_plus_leaves_the_slow_start_after_a_timeout_alone() {
    let (mut cubic, mut number) = after_hystart_plus_plus();
    cubic.model.cwnd_pkts = 100.0;
    cubic.on_timeout(&timeout(Time::from_millis(10 * number), Timeout::Rto));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (packets(1), Some(packets(70))));
    // The RTT rises from round to round, and each packet acknowledged adds one up to ssthresh.
    for round in 1..=6 {
        round_of_ten(&mut cubic, &mut number, Duration::from_millis(120 + 30 * round));
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (packets(1 + 10 * round), Some(packets(70))));
    }
}

/// A loss that ends the first slow start and turns out to be none brings it back, and HyStart++ with it.
#[test]
fn hystart_plus_plus_goes_on_where_an_undo_resumes_the_first_slow_start() {
    let (mut cubic, mut number) = (cubic(&[("hystart", "plusplus")], 10), 0);
    for sent in 0..10 {
        cubic.on_send(&send(Time::ZERO, sent, packets(sent)));
    }
    round_of_ten(&mut cubic, &mut number, RTT);
    cubic.on_loss(&loss(Time::from_millis(100)));
    cubic.on_spurious_loss(&spurious(Time::from_millis(100), false));
    assert_eq!(cubic.ssthresh(), Some(Bytes(u64::MAX)));
    for _ in 0..7 {
        round_of_ten(&mut cubic, &mut number, Duration::from_millis(120));
    }
    assert_ne!(cubic.ssthresh(), Some(Bytes(u64::MAX)));
}

#[test]
fn an_idle_period_decays_the_window_and_keeps_the_first_slow_start_open() {
    let mut cubic = cubic(&[], 10);
    cubic.model.cwnd_pkts = 64.0;
    cubic.on_idle_restart(&idle(Time::from_secs(2), Duration::from_millis(700)));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (packets(16), Some(Bytes(u64::MAX))));
}

#[test]
fn a_new_packet_size_keeps_the_window_in_bytes() {
    let mut cubic = after_a_loss(&[]);
    cubic.on_mtu_change(Bytes(500));
    assert_eq!(cubic.cwnd(), packets(70));
    assert_eq!(cubic.ssthresh(), Some(packets(70)));
    assert!(close(cubic.model.w_max_pkts.unwrap(), 200.0));
    assert!(close(cubic.model.cwnd_prior_pkts, 200.0), "{}", cubic.model.cwnd_prior_pkts);
}

#[test]
fn what_is_shown_is_the_maximum_the_estimate_and_the_time_to_return() {
    let mut cubic = after_a_loss(&[]);
    acked(&mut cubic, Time::from_secs(1));
    let mut shown = std::vec::Vec::new();
    cubic.inspect(&mut |name, value| shown.push((name, value)));
    let [("w_max_pkts", w_max), ("w_est_pkts", w_est), ("k_s", k_s)] = shown[..] else { panic!("{shown:?}") };
    // 100 packets before the loss; 70 after it, and a share of a packet since; K as above.
    assert!(close(w_max, 100.0) && (70.0..71.0).contains(&w_est) && close(k_s, 4.2172), "{shown:?}");
}

#[test]
fn a_clipped_window_keeps_its_model_and_rises_again_at_once() {
    let mut cubic = after_a_loss(&[]);
    acked(&mut cubic, Time::from_secs(1));
    let epoch = cubic.model.epoch;
    cubic.cap_cwnd(packets(10));
    assert_eq!((cubic.cwnd(), cubic.model.epoch), (packets(10), epoch));
    acked(&mut cubic, Time::from_secs(1));
    // Far below the curve the window takes half a packet per packet ACKed, or what Reno would have at once.
    assert!(cubic.model.cwnd_pkts >= 10.5);
}

#[test]
fn ecn_is_sent_and_obeyed_only_when_asked_for() {
    assert_eq!(cubic(&[], 10).encoding(), Encoding::None);
    let mut marked = cubic(&[("ecn", "true")], 100);
    assert_eq!(marked.encoding(), Encoding::Classic);
    marked.on_ce(&loss(Time::ZERO));
    assert_eq!(marked.cwnd(), packets(70));
}

/// One loss for every 1/p packets gives a mean window of 1.054 RTT^0.75 / p^0.75 (rfc9438 5.1).
#[test]
fn the_mean_window_follows_the_response_function() {
    for (packets_per_loss, expected_pkts) in [(10_000.0_f64, 187.4), (100_000.0, 1054.0)] {
        // Near the maximum the curve is flat, so periods settle slowly: start where they settle, a mean of
        // (3 + beta) / 4 of the maximum. Fast convergence would see every ripple.
        let mut cubic = cubic(&[("hystart", "off"), ("fast_convergence", "false")], 100);
        cubic.model.cwnd_pkts = expected_pkts * 4.0 / 3.7;
        cubic.on_loss(&loss(Time::ZERO));
        let (mut now, mut sent, mut area, mut periods) = (Time::ZERO, 0.0, 0.0, 0);
        let mut time_s = 0.0;
        while periods < 100 {
            let burst_pkts = cubic.model.cwnd_pkts;
            // Sixteen ACKs per RTT are fine enough.
            for _ in 0..16 {
                now += RTT / 16;
                let share = brakelight_core::controller::PacketInfo {
                    size: Bytes((burst_pkts * MSS.as_f64() / 16.0) as u64),
                    ..packet(0, now)
                };
                cubic.on_ack(&ack(now, &[share], RTT));
            }
            sent += burst_pkts;
            area += burst_pkts * RTT.as_secs_f64();
            time_s += RTT.as_secs_f64();
            if sent >= packets_per_loss {
                sent -= packets_per_loss;
                periods += 1;
                cubic.on_loss(&loss(now));
            }
        }
        let mean_pkts = area / time_s;
        assert!((mean_pkts / expected_pkts - 1.0).abs() < 0.02, "{mean_pkts} for {expected_pkts}");
    }
}
