//! The loss recovery of ns-2's `Sack1`, rule by rule, beside that of the profile `tcp`.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_registry::{ControllerConfig, FeedbackConfig, Host};
use brakelight_scenario::traffic::Traffic;

use super::harness::{Verdict, World, config, segments};
use super::tests::losing;
use crate::packet::SimPacket;

const RTT: Duration = Duration::from_millis(100);

/// A flow of this host that acknowledges each packet and begins with `window` of them.
fn flow(host: Host, traffic: Traffic, window: u32) -> super::FlowConfig {
    super::FlowConfig { ack_every: 1, initial_window: window, ..config(host, traffic) }
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// tcp.cc, send_one
#[test]
fn new_data_leaves_on_the_first_two_duplicate_acks() {
    let mut world = World::new(flow(Host::Ns2, segments(Host::Ns2, 30), 10), RTT, losing(&[0]));
    world.run(ms(105));
    let at_100: Vec<u32> =
        world.data().filter(|sent| sent.millis() >= 100.0).filter_map(|sent| sent.segment()).collect();
    assert_eq!(at_100[..3], [10, 11, 0], "two new segments, then the fast retransmission: {at_100:?}");
}

/// tcp-sack1.cc, dupack_action
#[test]
fn the_window_is_halved_at_once_and_the_sender_waits_until_half_of_the_pipe_is_empty() {
    let pause = |host| {
        let rate = Rate::from_mbps(10);
        let mut world =
            World::new(flow(host, Traffic::Backlogged, 80), RTT, losing(&[0])).bottleneck(rate, 1_000_000);
        world.run(ms(180));
        let left: Vec<f64> =
            world.data().map(|sent| sent.millis()).filter(|millis| *millis > 100.0).collect();
        (world.cwnd(), left.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max))
    };
    // 40 of 82 packets must have left the pipe, 0.83 ms each. PRR sends a packet for every other ACK.
    let (cwnd, longest) = pause(Host::Ns2);
    assert_eq!(cwnd, 40.0);
    assert!((30.0..36.0).contains(&longest), "{longest}");
    let (_, longest) = pause(Host::Tcp);
    assert!(longest < 4.0, "{longest}");
}

/// tcp-sack1.cc, recv: a packet leaves the pipe by an ACK alone.
#[test]
fn a_recovery_stands_still_when_more_than_half_of_the_window_is_lost() {
    const LOST: [u32; 25] =
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];
    let timeouts = |host| {
        let mut world = World::new(flow(host, segments(host, 200), 40), RTT, losing(&LOST));
        world.run(Time::from_secs(20));
        assert!(world.host.is_complete());
        world.host.counters().timeouts
    };
    assert!(timeouts(Host::Ns2) >= 1);
    assert_eq!(timeouts(Host::Tcp), 0);
}

/// scoreboard-rq.cc, GetNextRetran: a hole is sent again once.
#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    let mut world = World::new(flow(Host::Ns2, segments(Host::Ns2, 200), 10), RTT, losing(&[12, 12]));
    world.run(Time::from_secs(5));
    assert_eq!(world.host.counters().timeouts, 1);
    let times = world.times_of(12);
    assert!(times[2] - times[1] >= 200.0, "{times:?}");
    assert!(world.host.is_complete());
}

/// tcp-sack1.cc, timeout: the scoreboard is cleared.
#[test]
fn a_timeout_sends_again_what_was_sacked() {
    let again = |host| {
        let mut world = World::new(flow(host, segments(host, 4), 4), RTT, losing(&[0, 2]));
        world.run(Time::from_secs(5));
        assert!(world.host.is_complete());
        world.retransmissions().iter().map(|(segment, _)| *segment).collect::<Vec<_>>()
    };
    assert_eq!(again(Host::Ns2), [0, 2, 3], "1 was acknowledged with 0");
    assert!(!again(Host::Tcp).contains(&3));
}

/// tcp.cc, rtt_timeout: Linux would wait for srtt and 200 ms.
#[test]
fn the_timer_of_a_steady_flow_fires_after_a_fifth_of_a_second() {
    let silent = |host| {
        let traffic = Traffic::RateLimited(Rate::from_mbps(1));
        let mut world = World::new(flow(host, traffic, 10), RTT, |now: Time, _: &SimPacket| {
            if now >= Time::from_secs(5) { Verdict::Drop } else { Verdict::Deliver }
        });
        world.run(Time::from_secs(7));
        let last_ack =
            world.acks().map(|ack| ack.millis()).filter(|at| *at < 5_000.0).fold(0.0, f64::max) + 50.0;
        world.retransmissions()[0].1 - last_ack
    };
    let wait = silent(Host::Ns2);
    assert!((199.0..=201.0).contains(&wait), "{wait}");
}

/// ns-default.tcl, `sfrto_enabled_` 0
#[test]
fn a_timeout_with_nothing_lost_is_not_taken_back() {
    let counters = |host| {
        let mut world =
            World::new(flow(host, segments(host, 400), 20), RTT, |now: Time, packet: &SimPacket| {
                let late = (ms(200)..ms(230)).contains(&now) && packet.size > 500;
                if late { Verdict::Late(Duration::from_millis(600)) } else { Verdict::Deliver }
            });
        world.run(Time::from_secs(20));
        assert!(world.host.is_complete());
        let counters = world.host.counters();
        (counters.timeouts > 0, counters.undone_episodes)
    };
    assert_eq!(counters(Host::Ns2), (true, 0));
    assert!(counters(Host::Tcp).1 >= 1);
}

/// tcp.cc, ecn
#[test]
fn marks_on_one_flight_halve_the_window_once() {
    let mut config = flow(Host::Ns2, Traffic::Backlogged, 40);
    config.controller = ControllerConfig::new("newreno", &[("ecn", "true")]).unwrap();
    config.feedback = FeedbackConfig::new("rfc3168", &[]).unwrap();
    let mut sent = 0;
    let mut world = World::new(config, RTT, move |_, packet: &SimPacket| {
        sent += usize::from(packet.size > 500);
        if packet.size > 500 && [6, 21].contains(&sent) { Verdict::Mark } else { Verdict::Deliver }
    });
    world.run(ms(105));
    // Five packets were acknowledged before the first mark. While the reaction lasts, none adds to the
    // window.
    assert_eq!(world.cwnd(), 22.5);
}

/// tcp.cc, opencwnd
#[test]
fn an_ack_opens_the_window_by_one_packet_whatever_it_covers() {
    let window = |host| {
        let mut acks = 0;
        let mut world = World::new(flow(host, segments(host, 3), 3), RTT, move |_, packet: &SimPacket| {
            acks += usize::from(packet.size < 500);
            if packet.size < 500 && acks < 3 { Verdict::Drop } else { Verdict::Deliver }
        });
        world.run(Time::from_secs(5));
        assert!(world.host.is_complete());
        world.cwnd()
    };
    // Two ACKs are lost, and the third covers three packets. RFC 3465 counts two of them.
    assert_eq!((window(Host::Ns2), window(Host::Tcp)), (4.0, 5.0));
}
