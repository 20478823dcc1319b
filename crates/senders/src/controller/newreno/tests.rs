use brakelight_core::controller::RecoveryState;
use brakelight_core::time::Duration;
use brakelight_testkit::events::{MSS, ack, connection, idle, loss, packet, packets, spurious, timeout};

use super::*;

const RTT: Duration = Duration::from_millis(100);

fn reno(initial_pkts: u64) -> NewReno {
    NewReno::new(Config::default(), &connection(initial_pkts))
}

fn acked(reno: &mut NewReno, count: u64) {
    let acked: std::vec::Vec<_> = (0..count).map(|number| packet(number, Time::ZERO)).collect();
    reno.on_ack(&ack(Time::from_secs(1), &acked, RTT));
}

#[test]
fn slow_start_doubles_with_delayed_acks_and_takes_two_packets_from_a_stretch_ack() {
    let mut reno = reno(10);
    for _ in 0..5 {
        acked(&mut reno, 2);
    }
    assert_eq!(reno.cwnd(), packets(20));
    acked(&mut reno, 20);
    assert_eq!(reno.cwnd(), packets(22));
}

#[test]
fn congestion_avoidance_adds_one_packet_per_window_of_bytes() {
    let mut reno = reno(20);
    reno.on_loss(&loss(Time::ZERO));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (packets(10), Some(packets(10))));
    for _ in 0..5 {
        acked(&mut reno, 2);
    }
    assert_eq!(reno.cwnd(), packets(11));
    // Half-sized packets count as half.
    let half = brakelight_core::controller::PacketInfo { size: Bytes(MSS.0 / 2), ..packet(0, Time::ZERO) };
    for _ in 0..21 {
        reno.on_ack(&ack(Time::from_secs(1), &[half], RTT));
    }
    assert_eq!(reno.cwnd(), packets(11));
    reno.on_ack(&ack(Time::from_secs(1), &[half], RTT));
    assert_eq!(reno.cwnd(), packets(12));
}

#[test]
fn the_window_holds_in_recovery_for_packets_sent_before_it_and_while_it_is_not_the_limit() {
    let mut reno = reno(10);
    let acked = [packet(0, Time::ZERO)];
    reno.on_ack(&AckEvent { recovery: RecoveryState::Recovery, ..ack(Time::from_secs(1), &acked, RTT) });
    reno.on_ack(&AckEvent { growth: Bytes::ZERO, ..ack(Time::from_secs(1), &acked, RTT) });
    reno.on_ack(&AckEvent { cwnd_limited: false, ..ack(Time::from_secs(1), &acked, RTT) });
    assert_eq!(reno.cwnd(), packets(10));
}

#[test]
fn after_a_timeout_slow_start_takes_one_packet_per_ack_up_to_half() {
    let mut reno = reno(20);
    reno.on_timeout(&timeout(Time::from_secs(1), Timeout::Rto));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (packets(1), Some(packets(10))));
    acked(&mut reno, 2);
    assert_eq!(reno.cwnd(), packets(2));
    reno.on_timeout(&TimeoutEvent { repeated: true, ..timeout(Time::from_secs(2), Timeout::Rto) });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (packets(1), Some(packets(10))));
    for _ in 0..9 {
        acked(&mut reno, 1);
    }
    assert_eq!(reno.cwnd(), packets(10));
    for _ in 0..5 {
        acked(&mut reno, 2);
    }
    assert_eq!(reno.cwnd(), packets(11));
}

#[test]
fn never_below_two_packets_after_a_loss() {
    let mut reno = reno(2);
    reno.on_loss(&loss(Time::ZERO));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (packets(2), Some(packets(2))));
}

#[test]
fn a_mistaken_episode_is_undone() {
    let mut reno = reno(20);
    reno.on_loss(&loss(Time::ZERO));
    reno.on_spurious_loss(&spurious(Time::ZERO, false));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (packets(20), Some(Bytes(u64::MAX))));
    reno.on_timeout(&timeout(Time::ZERO, Timeout::Rto));
    reno.on_spurious_loss(&spurious(Time::ZERO, true));
    assert_eq!(reno.cwnd(), packets(20));
    reno.on_loss(&loss(Time::ZERO));
    reno.on_recovery_exit(Time::ZERO);
    reno.on_spurious_loss(&spurious(Time::ZERO, false));
    assert_eq!(reno.cwnd(), packets(10), "too late to undo");
}

#[test]
fn probe_timeouts_and_persistent_congestion_are_told_apart() {
    let mut reno = reno(20);
    reno.on_timeout(&timeout(Time::ZERO, Timeout::Pto));
    assert_eq!(reno.cwnd(), packets(20));
    reno.on_loss(&loss(Time::ZERO));
    reno.on_timeout(&timeout(Time::ZERO, Timeout::PersistentCongestion));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (packets(2), Some(packets(10))));
}

#[test]
fn an_idle_period_decays_the_window() {
    let mut reno = reno(10);
    reno.cwnd = packets(64);
    reno.on_idle_restart(&idle(Time::from_secs(2), Duration::from_millis(700)));
    assert_eq!(reno.cwnd(), packets(16));
}

/// The mean window of a deterministic loss for every 1/p packets is about sqrt(3 / 2p) (RFC 3649 section 3,
/// RFC 5681's response function).
#[test]
fn the_mean_window_follows_the_square_root_law() {
    let mut reno = reno(10);
    reno.ssthresh = packets(10);
    let packets_per_loss = 10_000;
    let (mut sent, mut area, mut rounds, mut periods) = (0, 0, 0, 0);
    while periods < 40 {
        let window = reno.cwnd().0 / MSS.0;
        for _ in 0..window {
            acked(&mut reno, 1);
        }
        sent += window;
        if periods >= 10 {
            area += window;
            rounds += 1;
        }
        if sent >= packets_per_loss {
            sent -= packets_per_loss;
            periods += 1;
            reno.on_loss(&loss(Time::ZERO));
        }
    }
    let mean_pkts = area as f64 / rounds as f64;
    assert!((mean_pkts / 122.5 - 1.0).abs() < 0.02, "{mean_pkts}");
}
