use brakelight_testkit::events;

use super::*;
use crate::controller::vivace::{Config, Variant};

fn controller() -> Kernel {
    let rules = Rules::from(
        &Config::new(super::super::Values { variant: Variant::Kernel, ..super::super::Values::default() })
            .unwrap(),
    );
    let mut kernel = Kernel::new(rules, &events::connection(10));
    kernel.phase = Phase::Moving;
    kernel.rate_mbps = 10.0;
    kernel.last_rate_mbps = 9.0;
    kernel
}

/// 125 packets of 1000 bytes delivered in 100 ms are 10 Mbit/s, two packets' time of it is 1.6 ms.
fn interval(change_us: i64) -> Interval {
    let first_srtt = Duration::from_millis(100);
    let last_us = 100_000 + change_us;
    Interval {
        rate_mbps: 10.0,
        send_start: Time::from_millis(1000),
        send_end: Time::from_millis(1050),
        receive_start: Time::from_millis(1100),
        receive_end: Time::from_millis(1200),
        first_srtt,
        last_srtt: Duration::from_micros(last_us as u64),
        delivered: 125,
        ..Interval::default()
    }
}

#[test]
fn utility_is_the_rate_less_latency_and_loss() {
    let kernel = controller();
    assert!((kernel.utility(&interval(0)) - 10.0).abs() < 1e-9);
    // 2 ms in 50 ms: 4 %, 900 * 10 * 0.04 = 360, and as much is gained where RTTs fall.
    assert!((kernel.utility(&interval(2_000)) + 350.0).abs() < 1e-9);
    assert!((kernel.utility(&interval(-2_000)) - 370.0).abs() < 1e-9);
    // 1.55 ms are 3.1 %, but less than two packets' time; 1.7 ms in 60 ms are less than 3 %.
    assert!((kernel.utility(&interval(1_550)) - 10.0).abs() < 1e-9);
    let slow = Interval { send_end: Time::from_millis(1060), ..interval(1_700) };
    assert!((kernel.utility(&slow) - 10.0).abs() < 1e-9);
    // 5 of 125 lost: 11 * 10 * 0.04 = 4.4
    let lossy = Interval { delivered: 120, lost: 5, ..interval(0) };
    assert!((kernel.utility(&lossy) - 5.6).abs() < 1e-9);
    let nothing = Interval { delivered: 0, lost: 125, ..interval(0) };
    assert_eq!(kernel.utility(&nothing), 0.0);
}

#[test]
fn starting_ignores_a_tenth_of_losses_and_falling_rtts() {
    let mut kernel = controller();
    kernel.phase = Phase::Starting;
    let lossy = Interval { delivered: 113, lost: 12, ..interval(-2_000) };
    assert!((kernel.utility(&lossy) - 10.0).abs() < 1e-9);
    // 13 of 125 are 10.4 %: 11 * 10 * 0.104 = 11.44
    let lossier = Interval { delivered: 112, lost: 13, ..interval(0) };
    assert!((kernel.utility(&lossier) + 1.44).abs() < 1e-9);
}

#[test]
fn starting_grows_by_half_and_returns_to_the_rate_before() {
    let mut kernel = controller();
    kernel.phase = Phase::Starting;
    kernel.intervals[0] = Interval { utility: 5.0, ..interval(0) };
    kernel.decide_starting(Time::ZERO);
    assert_eq!((kernel.rate_mbps, kernel.last_rate_mbps), (15.0, 10.0));
    assert_eq!(kernel.intervals[0].rate_mbps, 15.0);
    // The RTT rose by 4 %: 15 - 900 * 15 * 0.04 is worse.
    kernel.intervals[0] = Interval { rate_mbps: 15.0, utility: 10.0, ..interval(2_000) };
    kernel.decide_starting(Time::ZERO);
    assert_eq!((kernel.rate_mbps, kernel.phase), (10.0, Phase::Probing));
}

#[test]
fn a_rate_is_found_only_where_both_pairs_agree() {
    for (changes_us, found) in [
        ([0, 0, 0, 0], Some(10.5)),
        ([2_000, 0, 2_000, 0], Some(9.5)),
        ([2_000, 0, 0, 2_000], None),
        ([0, 0, 2_000, 0], None),
    ] {
        let mut kernel = controller();
        kernel.phase = Phase::Probing;
        for (index, change_us) in changes_us.into_iter().enumerate() {
            let rate_mbps = if index % 2 == 0 { 10.5 } else { 9.5 };
            kernel.intervals[index] = Interval { rate_mbps, ..interval(change_us) };
        }
        kernel.decide_probing(Time::ZERO);
        assert_eq!(kernel.rate_mbps, found.unwrap_or(10.0), "{changes_us:?}");
        assert_eq!(kernel.phase == Phase::Moving, found.is_some(), "{changes_us:?}");
    }
}

#[test]
fn pairs_come_in_either_order() {
    let mut kernel = controller();
    let mut orders = [0; 2];
    for _ in 0..40 {
        kernel.plan_probing();
        for pair in [0, 2] {
            let [a, b] = [0, 1].map(|index| kernel.intervals[pair + index].rate_mbps);
            assert!((a + b - 20.0).abs() < 1e-9 && ((a - b).abs() - 1.0).abs() < 1e-9, "{a} and {b}");
            orders[usize::from(a > b)] += 1;
        }
    }
    assert!(orders.iter().all(|count| *count > 20), "{orders:?}");
}

/// After Probing the rate is the last one, so there is no gradient.
#[test]
fn the_first_move_goes_up_by_the_least_step() {
    let mut kernel = controller();
    kernel.last_rate_mbps = 10.0;
    kernel.intervals[0] = Interval { utility: 10.0, ..interval(2_000) };
    kernel.decide_moving(Time::ZERO);
    assert!((kernel.rate_mbps - 10.22).abs() < 1e-9, "{}", kernel.rate_mbps);
    assert_eq!(kernel.phase, Phase::Moving);
}

#[test]
fn a_step_down_leads_back_to_probing() {
    let mut kernel = controller();
    // From 9 to 10 Mbit/s utility fell from 9 to -350: gradient -359, far beyond the bound of 10 %.
    kernel.intervals[0] = Interval { utility: 9.0, ..interval(2_000) };
    kernel.decide_moving(Time::ZERO);
    assert!((kernel.last_gradient + 359.0).abs() < 1e-9);
    assert!((kernel.rate_mbps - 9.0).abs() < 1e-9);
    assert_eq!(kernel.phase, Phase::Probing);
}

#[test]
fn steps_grow_with_confidence_within_a_bound_that_widens_while_it_bites() {
    let mut kernel = controller();
    kernel.rate_mbps = 20.0;
    // 0.2 Mbit/s * 2, m = 3, 4, 5 in the same direction
    for expected in [1.2, 1.6, 2.0] {
        assert!((kernel.step(2.0) - expected).abs() < 1e-9);
    }
    // A new direction: m = 2, and the next one leaves it there.
    assert!((kernel.step(-4.0) + 1.6).abs() < 1e-9);
    kernel.last_rate_mbps = 21.0;
    assert!((kernel.step(-2.0) + 0.8).abs() < 1e-9);
    // 10 %, 17 %, 24 % of 20 Mbit/s; 2.2 % at least
    for expected in [2.0, 3.4, 4.8] {
        assert!((kernel.step(-1e3) + expected).abs() < 1e-9);
    }
    assert!((kernel.step(-1e-3) + 0.44).abs() < 1e-9);
    assert!((kernel.step(-1e3) + 2.0).abs() < 1e-9);
}

#[test]
fn the_window_is_twice_the_rate_times_the_rtt() {
    let mut kernel = controller();
    kernel.pacing_mbps = 8.0;
    kernel.srtt = Some(Duration::from_millis(50));
    kernel.set_window();
    assert_eq!(kernel.cwnd(), Bytes(100_000));
    kernel.pacing_mbps = 0.008;
    kernel.set_window();
    assert_eq!(kernel.cwnd(), Bytes(4_000));
}

#[test]
fn a_timeout_leaves_one_packet_until_the_next_ack_and_the_rate_as_it_is() {
    let mut kernel = controller();
    kernel.on_timeout(&events::timeout(Time::from_secs(1), Timeout::Pto));
    assert_eq!(kernel.repair, Repair::None);
    kernel.on_timeout(&events::timeout(Time::from_secs(1), Timeout::Rto));
    assert_eq!((kernel.cwnd(), kernel.rate_mbps), (Bytes(1000), 10.0));
    let packet = [events::packet(0, Time::ZERO)];
    kernel.on_ack(&events::ack(Time::from_millis(1100), &packet, Duration::from_millis(100)));
    assert_eq!((kernel.cwnd(), kernel.waiting), (Bytes(250_000), true));
    kernel.on_recovery_exit(Time::from_millis(1200));
    kernel.on_ack(&events::ack(Time::from_millis(1200), &packet, Duration::from_millis(100)));
    assert_eq!((kernel.waiting, kernel.repair, kernel.rate_mbps), (false, Repair::None, 10.0));
}

/// K3: 50 packets at least, and none is closed before one sent in it is answered; 11 at its beginning are
/// left out, 9 at its end.
#[test]
fn an_interval_lasts_a_round_trip_and_leaves_its_ends_out() {
    let mut kernel = controller();
    kernel.phase = Phase::Probing;
    let rtt = Duration::from_millis(100);
    let mut acked = 0;
    let mut ack = |kernel: &mut Kernel, count: u64| {
        for _ in 0..count {
            acked += 1;
            let packet = [events::packet(acked, Time::ZERO)];
            kernel.on_ack(&events::ack(Time::from_millis(acked), &packet, rtt));
        }
    };
    for number in 0..60 {
        kernel.on_send(&events::send(Time::ZERO, number, Bytes::ZERO));
    }
    ack(&mut kernel, 1);
    assert_eq!(kernel.sending, 0);
    ack(&mut kernel, 1);
    assert_eq!((kernel.sending, kernel.intervals[0].until), (1, Some(60)));
    ack(&mut kernel, 48);
    assert_eq!(kernel.receiving, 0);
    ack(&mut kernel, 1);
    // Counted: what came when more than ten others had been, the 12th to the 51st.
    assert_eq!((kernel.receiving, kernel.intervals[0].delivered), (1, 40));
}
