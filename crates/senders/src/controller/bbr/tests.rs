//! Where the versions agree, and where they differ, by their sources.

use brakelight_core::controller::{AckEvent, Controller, PacketInfo, RecoveryState, SendEvent, Timeout};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_testkit::events::{
    MSS, ack, connection, idle, loss, packet, packets, send, spurious, timeout,
};

use super::bounds::{UNBOUNDED, Undo};
use super::machine::{Machine, State};
use super::{v1, v2, v3};

const RTT: Duration = Duration::from_millis(100);

fn probes_rtt(controller: &dyn Controller) -> bool {
    let mut probing = false;
    controller.inspect(&mut |name, value| probing |= name == "probe_rtt" && value > 0.0);
    probing
}

/// When ProbeRTT begins if one packet in 100 ms is acknowledged and every RTT is exactly 100 ms, within 30 s.
fn first_probe(mut controller: impl Controller) -> Option<Duration> {
    (1..300).find_map(|number| {
        let now = Time::ZERO + RTT * number;
        controller.on_send(&send(now, number, packets(1)));
        let acked =
            [PacketInfo { delivered: packets(number - 1), ..packet(number, now.saturating_sub(RTT)) }];
        controller.on_ack(&AckEvent { delivered: packets(number), ..ack(now, &acked, RTT) });
        probes_rtt(&controller).then(|| now.since(Time::ZERO))
    })
}

/// linux 5.11 tcp_bbr.c and google/bbr v3 tcp_bbr.c, bbr_update_min_rtt: only a smaller RTT renews the
/// estimate. The first sample, at 100 ms, is 10 s old at 10.1 s and too old one ACK later. In version 3 the
/// interval is 5 s (ccwg-bbr 4.3.4).
#[test]
fn an_rtt_equal_to_the_smallest_does_not_postpone_probe_rtt_in_versions_1_and_3() {
    let first = first_probe(v1::Bbr::new(v1::Config::default(), &connection(10)));
    assert_eq!(first, Some(Duration::from_millis(10_200)), "version 1");
    let third = first_probe(Machine::new(v3::Config::default(), &connection(10)));
    assert_eq!(third, Some(Duration::from_millis(5_200)), "version 3");
}

/// ccwg-bbr 4.3.4 and 4.5.7: the window of min_rtt, 10 s, is longer than the interval of ProbeRTT, 5 s. So
/// the smallest RTT, met at 100 ms only, outlives the ProbeRTT of 5.2 s, and gives way at 10.2 s.
#[test]
fn min_rtt_outlives_the_first_probe_rtt() {
    let longer = Duration::from_millis(150);
    let mut machine = Machine::new(v3::Config::default(), &connection(10));
    for number in 1..=102 {
        let now = Time::ZERO + RTT * number;
        machine.on_send(&send(now, number, packets(1)));
        let acked =
            [PacketInfo { delivered: packets(number - 1), ..packet(number, now.saturating_sub(RTT)) }];
        let rtt = if number == 1 { RTT } else { longer };
        machine.on_ack(&AckEvent { delivered: packets(number), ..ack(now, &acked, rtt) });
        assert_eq!(machine.min_rtt.value, if number < 102 { RTT } else { longer }, "at {now:?}");
    }
}

/// google/bbr v2alpha tcp_bbr2.c, bbr_update_min_rtt: `rs->rtt_us <= bbr->probe_rtt_min_us`.
#[test]
fn an_rtt_equal_to_the_smallest_postpones_probe_rtt_in_version_2() {
    assert_eq!(first_probe(Machine::new(v2::Config::default(), &connection(10))), None);
}

/// Versions 2 and 3 with a window of 100 packets, over a path of 8 Mbit/s and 100 ms: 100 packets of 1000
/// bytes.
fn settled(state: State) -> [Machine; 2] {
    let mut machines = [
        Machine::new(v2::Config::default(), &connection(100)),
        Machine::new(v3::Config::default(), &connection(100)),
    ];
    for machine in &mut machines {
        let acked = [packet(1, Time::ZERO)];
        machine.on_ack(&AckEvent { delivered: packets(1), ..ack(Time::ZERO + RTT, &acked, RTT) });
        machine.state = state;
        machine.full.reached = true;
        machine.bandwidth = [Rate::from_mbps(8), Rate::ZERO];
        machine.cwnd = packets(200);
    }
    machines
}

/// A packet with these marks of its sending, delivered 100 ms later with `delivered_pkts` in all: so many in
/// 100 ms.
fn sampled(machine: &mut Machine, now: Time, delivered_pkts: u64, app_limited: bool) {
    let before = packets(1_000);
    let sent_at = now.saturating_sub(RTT);
    let acked = [PacketInfo { delivered: before, app_limited, ..packet(1_000, sent_at) }];
    machine.on_ack(&AckEvent { delivered: before + packets(delivered_pkts), ..ack(now, &acked, RTT) });
}

/// ccwg-bbr 4.5.4, UpdateMaxBw: a sample that the application limited counts only if it is not below the
/// maximum.
#[test]
fn samples_that_the_application_limited_do_not_lower_the_next_cycles_bandwidth() {
    for mut machine in settled(State::Cruise) {
        let previous = Rate::from_mbps(8);
        // 50 packets in 100 ms are 4 Mbit/s, 25 are 2 Mbit/s.
        sampled(&mut machine, Time::from_millis(300), 50, true);
        assert_eq!(machine.bandwidth, [previous, Rate::ZERO]);
        sampled(&mut machine, Time::from_millis(400), 25, false);
        sampled(&mut machine, Time::from_millis(500), 50, true);
        assert_eq!(machine.bandwidth, [previous, Rate::from_mbps(2)]);
        // 125 packets are 10 Mbit/s: the path carried them, whoever was the limit.
        sampled(&mut machine, Time::from_millis(600), 125, true);
        assert_eq!(machine.bandwidth, [previous, Rate::from_mbps(10)]);
    }
}

/// ccwg-bbr 4.4.1, HandleRestartFromIdle: within ProbeBW the first packet after a pause is paced at the
/// estimate, whatever the phase's gain: 8 Mbit/s less the margin of 1 %. The same where the host tells of the
/// pause.
#[test]
fn a_flow_that_was_idle_starts_again_at_the_estimated_bandwidth() {
    let now = Time::from_secs(1);
    let first = SendEvent { app_limited: true, ..send(now, 2, Bytes::ZERO) };
    for state in [State::Up, State::Down, State::Cruise, State::Refill] {
        for mut machine in settled(state) {
            machine.pacing.rate = Rate::from_mbps(20);
            machine.on_send(&SendEvent { inflight: MSS, ..first });
            machine.on_send(&SendEvent { app_limited: false, ..first });
            assert_eq!(machine.pacing_rate(), Some(Rate::from_mbps(20)), "{state:?}: it was not idle");
            let mut told = machine.clone();
            machine.on_send(&first);
            told.on_idle_restart(&idle(now, Duration::from_secs(1)));
            for machine in [machine, told] {
                assert_eq!(machine.pacing_rate(), Some(Rate::from_bps(7_920_000)), "{state:?}");
            }
        }
    }
}

/// The same pause for version 1, Linux 6.12 tcp_bbr.c, bbr_cwnd_event: 10 packets in 100 ms are 800 kbit/s,
/// 792 paced.
#[test]
fn version_1_starts_again_at_the_estimated_bandwidth() {
    let mut bbr = v1::Bbr::new(v1::Config::default(), &connection(10));
    let mut gains = std::collections::BTreeSet::new();
    for round in 1..60 {
        let now = Time::ZERO + RTT * round;
        let acked = [packet(10 * round, now.saturating_sub(RTT))];
        let delivered = packets(10 * round + 10);
        bbr.on_ack(&AckEvent {
            delivered,
            inflight: packets(5),
            inflight_before: packets(30),
            ..ack(now, &acked, RTT)
        });
        if round > 20 {
            let mut restarted = bbr.clone();
            let first = SendEvent { app_limited: true, ..send(now, 1_000, Bytes::ZERO) };
            restarted.on_send(&first);
            assert_eq!(restarted.pacing_rate(), Some(Rate::from_bps(792_000)), "round {round}");
            gains.insert(bbr.pacing_rate().unwrap());
        }
    }
    assert!(gains.len() >= 2, "the phases before the pauses paced otherwise: {gains:?}");
}

/// Linux 6.12 tcp_bbr.c, bbr_update_min_rtt: ProbeRTT waits for one ACK after a pause, no longer.
#[test]
fn the_first_ack_after_a_pause_lets_probe_rtt_come_again() {
    let mut bbr = v1::Bbr::new(v1::Config::default(), &connection(10));
    bbr.on_idle_restart(&idle(Time::ZERO, Duration::from_secs(1)));
    assert_eq!(first_probe(bbr), Some(Duration::from_millis(10_200)));
    let mut machine = Machine::new(v3::Config::default(), &connection(10));
    machine.on_idle_restart(&idle(Time::ZERO, Duration::from_secs(1)));
    assert_eq!(first_probe(machine), Some(Duration::from_millis(5_200)));
}

/// An ACK of one packet at `millis` while the host is in `recovery`.
fn acked_in(controller: &mut impl Controller, millis: u64, recovery: RecoveryState) {
    let now = Time::from_millis(millis);
    // Limited by the application, so that the rate of a packet per RTT does not end Startup.
    let acked = [PacketInfo { app_limited: true, ..packet(millis, now.saturating_sub(RTT)) }];
    let inflight = packets(10);
    controller.on_ack(&AckEvent {
        recovery,
        inflight,
        delivered: packets(millis + 1),
        ..ack(now, &acked, RTT)
    });
}

/// Linux 6.12 tcp_bbr.c, bbr_save_cwnd; ccwg-bbr 4.6.4.4, SaveCwnd: the window of before the repair comes
/// back after it. While losses are repaired, the larger of two saved windows counts; after that, the newest,
/// even if smaller.
fn saves_its_window(mut controller: impl Controller, name: &str) {
    let within = |controller: &dyn Controller, pkts: u64| {
        let window = controller.cwnd();
        assert!(
            window >= packets(pkts) && window <= packets(pkts + 4),
            "{name}: {window:?}, not {pkts} packets"
        );
    };
    acked_in(&mut controller, 100, RecoveryState::Open);
    controller.cap_cwnd(packets(80));
    controller.on_timeout(&timeout(Time::from_millis(400), Timeout::Rto));
    within(&controller, 1);
    acked_in(&mut controller, 500, RecoveryState::Open);
    within(&controller, 80);

    controller.cap_cwnd(packets(20));
    controller.on_timeout(&timeout(Time::from_millis(800), Timeout::Rto));
    acked_in(&mut controller, 900, RecoveryState::Open);
    within(&controller, 20);

    controller.cap_cwnd(packets(18));
    controller.on_loss(&loss(Time::from_millis(1_000)));
    acked_in(&mut controller, 1_001, RecoveryState::Recovery);
    controller.cap_cwnd(packets(6));
    controller.on_timeout(&timeout(Time::from_millis(1_300), Timeout::Rto));
    acked_in(&mut controller, 1_400, RecoveryState::Open);
    within(&controller, 18);
}

#[test]
fn the_window_of_before_a_repair_comes_back_after_it() {
    saves_its_window(v1::Bbr::new(v1::Config::default(), &connection(100)), "version 1");
    saves_its_window(Machine::new(v2::Config::default(), &connection(100)), "version 2");
    saves_its_window(Machine::new(v3::Config::default(), &connection(100)), "version 3");
}

/// A loss within ProbeRTT, whose window is small on purpose, must not take that window for the one to return
/// to.
#[test]
fn a_loss_within_probe_rtt_keeps_the_window_of_before_it() {
    for mut machine in settled(State::ProbeRtt { cwnd: packets(50), done: None, round_done: false }) {
        machine.prior_cwnd = packets(120);
        machine.cwnd = packets(50);
        machine.on_loss(&loss(Time::from_secs(1)));
        assert_eq!(machine.prior_cwnd, packets(120));
    }
}

/// ccwg-bbr 4.5.10.2, HandleInflightTooHigh: 30 % less than the target of 100 packets, where less than that
/// was in flight; what was in flight, where it was more. A flow limited by its application learns no bound.
#[test]
fn a_probe_that_lost_too_much_bounds_the_flight_by_what_it_held_or_seven_tenths() {
    let acked = [packet(2, Time::ZERO)];
    let event = ack(Time::from_secs(1), &acked, RTT);
    for (inflight_pkts, app_limited, bound) in
        [(10, false, packets(70)), (90, false, packets(90)), (90, true, UNBOUNDED)]
    {
        for mut machine in settled(State::Cruise) {
            machine.on_inflight_too_high(&event, packets(inflight_pkts), app_limited);
            assert_eq!(machine.long.inflight, bound);
        }
    }
}

/// ccwg-bbr 4.6.4.2, QuantizationBudget: room for three send quanta, and two packets more while probing
/// upwards. At 20 Mbit/s a quantum, 977 us, is two packets of 1000 bytes.
#[test]
fn the_flight_leaves_room_for_three_quanta_and_for_two_packets_more_while_probing_upwards() {
    for (state, room) in [(State::Cruise, [100, 6]), (State::Up, [102, 8])] {
        for mut machine in settled(state) {
            machine.pacing.rate = Rate::from_mbps(20);
            let windows = [Rate::from_mbps(8), Rate::ZERO].map(|bandwidth| machine.inflight(bandwidth, 1.0));
            assert_eq!(windows, room.map(packets), "{state:?}");
        }
    }
}

/// ccwg-bbr 4.5.10.4.2, HandleSpuriousLossDetection: losses that were none lead back to the probe that they
/// ended.
#[test]
fn an_undone_loss_that_ended_a_probe_begins_the_next_one() {
    for (undo, state, next) in [
        (Undo::Up, State::Down, State::Refill),
        (Undo::Up, State::Cruise, State::Refill),
        (Undo::Up, State::Up, State::Up),
        (Undo::Startup, State::Cruise, State::Startup),
        (Undo::Nothing, State::Down, State::Down),
    ] {
        for mut machine in settled(state) {
            machine.long.undo = undo;
            machine.on_spurious_loss(&spurious(Time::from_secs(1), false));
            assert_eq!((machine.state, machine.long.undo), (next, Undo::Nothing), "{undo:?} from {state:?}");
        }
    }
}

/// The same for version 1, Linux 6.12 tcp_bbr.c, bbr_save_cwnd: one packet a round trip until ProbeRTT, and a
/// loss in it.
#[test]
fn a_loss_within_version_1s_probe_rtt_keeps_the_window_of_before_it() {
    let mut bbr = v1::Bbr::new(v1::Config::default(), &connection(10));
    let (mut before, mut lost, mut after) = (Bytes::ZERO, false, None);
    for number in 1..200 {
        let now = Time::ZERO + RTT * number;
        let acked =
            [PacketInfo { delivered: packets(number - 1), ..packet(number, now.saturating_sub(RTT)) }];
        bbr.on_ack(&AckEvent { delivered: packets(number), inflight: MSS, ..ack(now, &acked, RTT) });
        match (probes_rtt(&bbr), lost) {
            (false, false) => before = bbr.cwnd(),
            (true, false) => {
                assert_eq!(bbr.cwnd(), packets(4));
                bbr.on_loss(&loss(now));
                lost = true;
            }
            (false, true) => after = after.or(Some(bbr.cwnd())),
            (true, true) => {}
        }
    }
    // 2 BDP of one packet and three quanta of one, made even: 6; from the window of ProbeRTT it would be
    // 4 + 1.
    assert!(before >= packets(6) && after == Some(packets(6)), "{after:?} after {before:?}");
}
