use brakelight_core::controller::Controller;
use brakelight_core::ecn::Ecn as Codepoint;
use brakelight_core::time::Time;
use brakelight_core::units::Rate;
use brakelight_testkit::events::{connection, loss, packets, send};

use super::*;
use crate::controller::bbr::{v2, v3};

/// Version 3 over a path of 4 ms.
fn machine(codepoint: EcnUse) -> Machine {
    let mut machine = Machine::new(
        v3::Config::new(v3::Values { ecn: codepoint, ..v3::Values::default() }).unwrap(),
        &connection(10),
    );
    machine.min_rtt.value = Duration::from_millis(4);
    machine
}

/// A round in which `marked` of `delivered` packets came back with CE.
fn round(machine: &mut Machine, marked: u64, delivered: u64) {
    machine.ecn.marked += packets(marked);
    let total = machine.ecn.before.1 + packets(delivered);
    machine.update_ecn_alpha(total);
}

#[test]
fn packets_carry_the_codepoint_that_was_asked_for_and_none_by_default() {
    for (codepoint, ecn) in
        [(EcnUse::Off, Codepoint::NotEct), (EcnUse::Ect0, Codepoint::Ect0), (EcnUse::Ect1, Codepoint::Ect1)]
    {
        assert_eq!(machine(codepoint).on_send(&send(Time::ZERO, 0, Bytes::ZERO)).ecn, ecn);
    }
    for controller in [
        Machine::new(v2::Config::default(), &connection(10)),
        Machine::new(v3::Config::default(), &connection(10)),
    ] {
        assert_eq!(controller.encoding(), Encoding::None);
    }
}

#[test]
fn alpha_moves_a_sixteenth_towards_the_share_of_each_round() {
    let mut machine = machine(EcnUse::Ect1);
    // 1 + (2/8 - 1) / 16 = 0.953125; then (0 - 0.953125) / 16 less: 0.8935546875.
    round(&mut machine, 2, 8);
    assert!((machine.ecn.alpha - 0.953_125).abs() < 1e-12);
    round(&mut machine, 0, 10);
    assert!((machine.ecn.alpha - 0.893_554_687_5).abs() < 1e-12);
}

#[test]
fn marks_count_from_an_rtt_of_5_ms_down() {
    let mut machine = machine(EcnUse::Ect1);
    machine.min_rtt.value = Duration::from_micros(5001);
    round(&mut machine, 2, 8);
    machine.note_marks(packets(1));
    assert_eq!((machine.ecn.alpha, machine.ecn.in_round), (1.0, false));
    machine.min_rtt.value = Duration::from_millis(5);
    round(&mut machine, 2, 8);
    machine.note_marks(packets(1));
    assert!(machine.ecn.alpha < 1.0 && machine.ecn.in_round);
}

#[test]
fn two_rounds_in_a_row_with_half_of_the_packets_marked_end_startup() {
    let mut machine = machine(EcnUse::Ect1);
    machine.bandwidth[1] = Rate::from_mbps(80);
    for (marked, ended) in [(5, false), (4, false), (5, false), (5, true)] {
        round(&mut machine, marked, 10);
        assert_eq!(machine.full.reached, ended);
    }
    // 80 Mbit/s for 4 ms are 40 packets of 1000 bytes, and the send quantum allows no more.
    assert!(machine.long.inflight >= packets(40) && machine.long.inflight < UNBOUNDED);
}

#[test]
fn a_round_with_marks_takes_a_third_of_alpha_from_the_flight() {
    let mut machine = machine(EcnUse::Ect1);
    machine.cwnd = packets(100);
    assert_eq!(machine.inflight_after_marks(), UNBOUNDED);
    (machine.ecn.in_round, machine.ecn.alpha) = (true, 0.3);
    assert_eq!(machine.inflight_after_marks(), packets(90));
}

#[test]
fn a_sample_with_more_than_half_marked_went_too_far() {
    let mut machine = machine(EcnUse::Ect1);
    round(&mut machine, 0, 1);
    let sample = RateSample {
        rate: None,
        delivered: packets(10),
        interval: Duration::from_millis(4),
        prior_delivered: Bytes::ZERO,
        tx_in_flight: packets(10),
        lost: Bytes::ZERO,
        app_limited: false,
    };
    assert!(!machine.is_marked_too_much(&sample, packets(5)));
    assert!(machine.is_marked_too_much(&sample, packets(6)));
}

#[test]
fn when_marks_cease_the_next_probe_starts_at_once_with_half_of_the_bound() {
    let mut machine = machine(EcnUse::Ect1);
    round(&mut machine, 0, 1);
    assert_eq!(machine.reprobe_after_marks(), None);
    machine.ecn.in_cycle = true;
    assert_eq!(machine.reprobe_after_marks(), Some(30), "without a bound there is nothing to grow");
    // Half of 100 packets: 50, of which the power of two below is 2^5.
    machine.long.inflight = packets(100);
    assert_eq!(machine.reprobe_after_marks(), Some(5));
    machine.on_ce(&loss(Time::ZERO));
    assert_eq!(machine.reprobe_after_marks(), None, "marks still come");
    machine.on_recovery_exit(Time::ZERO);
    machine.ecn.loss_in_cycle = true;
    assert_eq!(machine.reprobe_after_marks(), None, "losses are another matter");
}

/// google/bbr v3 tcp_bbr.c, bbr_start_bw_probe_down: what one probe brought about is not held against the
/// next.
#[test]
fn each_probe_begins_without_the_marks_and_losses_of_the_last() {
    let mut machine = machine(EcnUse::Ect1);
    round(&mut machine, 0, 1);
    machine.state = super::super::machine::State::Up;
    machine.ecn.in_round = true;
    machine.ecn.in_cycle = true;
    machine.ecn.loss_in_cycle = true;
    machine.start_down(Time::ZERO, packets(1));
    assert_eq!(machine.reprobe_after_marks(), None, "no mark yet in this cycle");
    assert_eq!(machine.inflight_after_marks(), UNBOUNDED, "nor in this round");
    machine.ecn.in_cycle = true;
    assert_eq!(machine.reprobe_after_marks(), Some(30), "marks, and no losses");
}
