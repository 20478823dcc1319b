//! TCP's loss recovery, by worked traces over a path of 100 ms.

use brakelight_core::controller::Controller;
use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{ControllerConfig, FeedbackConfig, Host};
use brakelight_scenario::traffic::{OnOff, Traffic};

use super::harness::{Verdict, World, config, segments};
use super::tests::losing;
use crate::engine::Routed;
use crate::packet::{Kind, SimPacket};

const RTT: Duration = Duration::from_millis(100);

fn tcp(count: u64) -> super::FlowConfig {
    config(Host::Tcp, segments(Host::Tcp, count))
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

#[test]
fn new_data_leaves_on_the_first_two_duplicate_acks() {
    // rfc3042: segment 0 is lost; 1, 2 and 3 arrive and are SACKed at 100 ms, each lets one packet out.
    let mut world = World::new(tcp(30), RTT, losing(&[0]));
    world.run(ms(105));
    let at_100: Vec<u32> =
        world.data().filter(|sent| sent.millis() >= 100.0).filter_map(|sent| sent.segment()).collect();
    assert_eq!(at_100[..3], [10, 11, 0], "two new segments, then the fast retransmission: {at_100:?}");
}

#[test]
fn two_losses_in_one_flight_are_one_episode() {
    let mut world = World::new(tcp(200), RTT, losing(&[12, 15]));
    world.run(ms(160));
    let before = world.cwnd();
    world.run(Time::from_secs(5));
    let counters = world.host.counters();
    assert_eq!((counters.lost_packets, counters.timeouts, counters.undone_episodes), (2, 0, 0));
    assert_eq!(world.retransmissions().len(), 2);
    // One halving of the window at the moment of the loss (20 packets and growing), then growth by a packet
    // per RTT.
    assert!(before >= 20.0);
    assert!(world.host.is_complete());
}

#[test]
fn a_lost_retransmission_is_noticed_without_a_timeout() {
    // rfc8985 3.1: what was sent after the retransmission is delivered before it.
    let mut world = World::new(tcp(200), RTT, losing(&[12, 12]));
    world.run(Time::from_secs(5));
    let counters = world.host.counters();
    assert_eq!(counters.timeouts, 0);
    assert_eq!(counters.lost_packets, 2);
    let times = world.times_of(12);
    assert_eq!(times.len(), 3);
    assert!((times[2] - times[1] - 100.0).abs() < 30.0, "{times:?}");
}

#[test]
fn recovery_sends_in_proportion_to_what_is_delivered() {
    // A window of 80 packets in flight when one is lost, target 40: in the round trip of the repair about one
    // packet leaves for two delivered.
    let mut config = config(Host::Tcp, Traffic::Backlogged);
    config.initial_window = 80;
    let mut world = World::new(config, RTT, losing(&[0]));
    world.run(ms(100));
    world.run(ms(199));
    let sent = world.data().filter(|sent| sent.millis() > 99.0).count();
    // 79 delivered at 100 ms: two by limited transmit, one retransmission, the rest by proportion.
    assert!((38..=42).contains(&sent), "{sent}");
    world.run(ms(260));
    assert!((40.0..43.0).contains(&world.cwnd()), "{}", world.cwnd());
}

/// Linux 6.12 tcp_input.c, tcp_time_to_recover: segment 85 leaves during the episode that 0 began, and its
/// loss is known before that episode ends, because the retransmission of 0 is lost as well. It halves the
/// window once more, though by then it has been sent again.
#[test]
fn what_an_episode_sent_and_lost_begins_the_next_one() {
    let mut config = config(Host::Tcp, Traffic::Backlogged);
    config.initial_window = 80;
    let mut world = World::new(config, RTT, losing(&[0, 0, 85]));
    world.run(ms(290));
    assert_eq!(world.cwnd(), 40.0);
    assert_eq!(world.times_of(85).len(), 2);
    world.run(ms(330));
    assert_eq!(world.cwnd(), 20.0);
}

#[test]
fn a_packet_two_places_late_is_no_loss() {
    let mut world = World::new(tcp(100), RTT, |_, packet: &SimPacket| match packet.kind() {
        // Overtaken by two packets of the same burst; reordering was never seen before.
        Kind::Data { segment: 7, .. } => Verdict::Late(Duration::from_nanos(1)),
        Kind::Data { segment: 10.., .. } => Verdict::Deliver,
        _ => Verdict::Deliver,
    });
    world.run(Time::from_secs(5));
    let counters = world.host.counters();
    assert_eq!((counters.lost_packets, counters.retransmitted_packets), (0, 0));
}

#[test]
fn once_reordering_was_seen_a_packet_within_the_window_is_no_loss() {
    // Every 40th packet comes 20 ms late: less than min_rtt / 4. Only the first takes the sender by surprise.
    let mut world = World::new(tcp(2_000), RTT, |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { segment, .. } if segment % 40 == 20 => Verdict::Late(Duration::from_millis(20)),
        _ => Verdict::Deliver,
    })
    .bottleneck(Rate::from_mbps(50), 1_000_000);
    world.run(Time::from_secs(10));
    let counters = world.host.counters();
    assert!(counters.lost_packets <= 1, "{counters:?}");
    assert_eq!(counters.undone_episodes, counters.lost_packets);
    assert!(world.host.is_complete());
}

/// How many packets the sender takes for lost of which none is, once `repaired` losses were repaired since a
/// DSACK told it to wait twice as long for late packets.
fn taken_for_lost_after(repaired: u32) -> u64 {
    // Each loss is repaired before the next one: the first ends slow start, whose window is wide.
    let lost: Vec<u32> = (0..repaired).map(|nth| 400 + 400 * nth + if nth > 0 { 800 } else { 0 }).collect();
    let last = lost.last().map_or(800, |lost| lost + 800);
    let mut met = std::collections::BTreeSet::new();
    let mut world = World::new(tcp(u64::from(last) + 400), RTT, move |_, packet: &SimPacket| {
        let Kind::Data { segment, .. } = packet.kind() else { return Verdict::Deliver };
        if !met.insert(segment) {
            return Verdict::Deliver;
        }
        match segment {
            // The path reorders, which the sender does not know yet: it sends the packet again, and the DSACK
            // says that it need not have.
            100 => Verdict::Late(Duration::from_millis(60)),
            // More than a quarter of the smallest RTT, less than half of it.
            200 => Verdict::Late(Duration::from_millis(35)),
            segment if segment == last => Verdict::Late(Duration::from_millis(35)),
            segment if lost.contains(&segment) => Verdict::Drop,
            _ => Verdict::Deliver,
        }
    });
    world.run(Time::from_secs(120));
    let counters = world.host.counters();
    assert!(world.host.is_complete());
    assert_eq!(counters.timeouts, 0, "{counters:?}");
    counters.lost_packets - u64::from(repaired)
}

/// rfc8985 6.2, step 4: a DSACK makes the reordering window a quarter of the smallest RTT longer, for the
/// next 16 recoveries.
#[test]
fn a_dsack_widens_the_reordering_window_for_sixteen_recoveries() {
    assert_eq!(taken_for_lost_after(0), 1, "the first surprise alone");
    assert_eq!(taken_for_lost_after(15), 1, "35 ms are within two quarters of 100 ms");
    assert_eq!(taken_for_lost_after(16), 2, "35 ms are beyond a quarter of 100 ms");
}

#[test]
fn a_timeout_that_was_only_a_delay_is_undone() {
    // Everything sent from 0.5 to 1.5 s arrives at 1.55 s, in order; nothing is lost.
    let mut config = config(Host::Tcp, Traffic::RateLimited(Rate::from_mbps(5)));
    config.stop = Some(Time::from_secs(4));
    let mut world = World::new(config, RTT, |now: Time, packet: &SimPacket| {
        let slow = packet.direction() == Direction::Forward && now >= ms(500) && now < ms(1_500);
        if slow { Verdict::Late(ms(1_500).since(now)) } else { Verdict::Deliver }
    });
    world.run(ms(499));
    let before = world.cwnd();
    world.run(ms(1_540));
    assert_eq!(world.cwnd(), 1.0);
    world.run(Time::from_secs(10));
    let counters = world.host.counters();
    assert!(counters.timeouts >= 1, "{counters:?}");
    assert_eq!(counters.undone_episodes, 1, "{counters:?}");
    // The last segment left again as a probe and the first at the timeout; the rest was rightly believed on
    // its way.
    assert_eq!(counters.retransmitted_packets, counters.timeouts + counters.tail_probes, "{counters:?}");
    assert!(world.cwnd() >= before, "{} after {before}", world.cwnd());
    assert!(world.host.is_complete());
}

#[test]
fn timeouts_back_off_exponentially_and_start_at_srtt_plus_200_ms() {
    // Nothing gets through from 350 ms on.
    let mut config = config(Host::Tcp, Traffic::Backlogged);
    config.initial_window = 4;
    let mut world = World::new(
        config,
        RTT,
        |now: Time, _: &SimPacket| if now >= ms(350) { Verdict::Drop } else { Verdict::Deliver },
    );
    world.run(Time::from_secs(12));
    let counters = world.host.counters();
    // The ACKs of the flight sent at 200 ms arrive at 300 ms and re-arm everything: a probe at 500 + 2 ms,
    // then the timeout starts from it: srtt + 200 ms at least.
    assert_eq!(counters.tail_probes, 1);
    let head = world.data().map(|sent| (sent.millis(), sent.segment().unwrap())).collect::<Vec<_>>();
    let lowest = head.iter().filter(|(at, _)| *at > 600.0).map(|&(_, segment)| segment).min().unwrap();
    let times = world.times_of(lowest);
    assert!((times[1] - 502.0 - 300.0).abs() < 20.0, "{times:?}");
    let gaps: Vec<f64> = times[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 4, "{times:?}");
    for pair in gaps.windows(2) {
        assert!((pair[1] / pair[0] - 2.0).abs() < 1e-6, "{gaps:?}");
    }
    assert_eq!(world.cwnd(), 1.0);
}

#[test]
fn a_timeout_repairs_the_whole_flight_by_slow_start() {
    // The flight sent at 100 ms is lost whole, and so is everything until 350 ms.
    let mut world = World::new(tcp(300), RTT, |now: Time, _: &SimPacket| {
        if now >= ms(90) && now < ms(350) { Verdict::Drop } else { Verdict::Deliver }
    });
    world.run(Time::from_secs(20));
    let counters = world.host.counters();
    assert_eq!((counters.timeouts, counters.tail_probes), (1, 1), "{counters:?}");
    assert_eq!(counters.undone_episodes, 0);
    assert_eq!(counters.goodput_bytes, 300 * 1448);
    // What was lost left again once: a flight of 20 and the probe.
    assert_eq!((counters.lost_packets, counters.retransmitted_packets), (21, 21), "{counters:?}");
    assert!(world.host.is_complete());
}

#[test]
fn a_probe_for_a_late_ack_costs_nothing() {
    // The ACK of the last flight comes 150 ms late: the probe is needless, DSACK says so, the window stays.
    let mut world = World::new(tcp(60), RTT, |now: Time, packet: &SimPacket| {
        let slow = packet.direction() == Direction::Reverse && now >= ms(240) && now < ms(260);
        if slow { Verdict::Late(Duration::from_millis(250)) } else { Verdict::Deliver }
    });
    world.run(Time::from_secs(5));
    let counters = world.host.counters();
    assert_eq!((counters.tail_probes, counters.timeouts, counters.lost_packets), (1, 0, 0), "{counters:?}");
    assert_eq!(counters.retransmitted_packets, 1);
    assert_eq!(
        world.host.controller().map(brakelight_core::controller::Controller::ssthresh).unwrap(),
        Some(Bytes(u64::MAX))
    );
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    // rfc8985 7.4.2: only the last packet of a flight is lost, and then more is sent.
    let periods =
        OnOff { on: Duration::from_millis(40), off: Duration::from_secs(1), rate: None, random: false };
    let mut config = config(Host::Tcp, Traffic::OnOff(periods));
    config.stop = Some(Time::from_secs(2));
    let mut world = World::new(config, RTT, losing(&[9]));
    world.run(Time::from_secs(5));
    let counters = world.host.counters();
    assert_eq!((counters.tail_probes, counters.timeouts), (1, 0), "{counters:?}");
    let ssthresh = world.host.controller().map(brakelight_core::controller::Controller::ssthresh).unwrap();
    assert!(ssthresh.unwrap() < Bytes(20 * 1448), "{ssthresh:?}");
}

#[test]
fn acks_are_quick_at_first_then_one_for_two_and_a_lone_packet_waits_40_ms() {
    let mut world = World::new(tcp(41), RTT, |_, _: &SimPacket| Verdict::Deliver);
    world.run(Time::from_secs(2));
    // 16 quick ACKs, 12 for the next 24 segments, and one for the last by the timer.
    assert_eq!(world.acks().count(), 16 + 12 + 1);
    let last = world.acks().last().unwrap().millis();
    assert_eq!(last, 250.0 + 40.0);
    assert!(world.acks().all(|sent| sent.packet.size == 52));
}

#[test]
fn an_ack_carries_three_sack_blocks_at_most_the_newest_first() {
    let mut world = World::new(tcp(30), RTT, losing(&[1, 3, 5, 7]));
    world.run(ms(99));
    let sizes: Vec<u16> = world.acks().map(|sent| sent.packet.size).collect();
    // 0 | 2 | 4 | 6 | 8 9: no block, one, two, three, three (of four), three.
    assert_eq!(sizes, [52, 64, 72, 80, 80, 80]);
    world.run(Time::from_secs(3));
    assert_eq!(world.host.counters().retransmitted_packets, 4);
    assert!(world.host.is_complete());
}

#[test]
fn ce_reduces_the_window_once_per_round_trip_and_sets_cwr() {
    let mut config = config(Host::Tcp, Traffic::Backlogged);
    config.controller = ControllerConfig::new("newreno", &[("ecn", "true")]).unwrap();
    config.initial_window = 40;
    // Ten packets of the first flight are marked.
    let mut world = World::new(config, RTT, |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { segment: 10..20, .. } => Verdict::Mark,
        _ => Verdict::Deliver,
    });
    world.run(ms(190));
    assert_eq!(world.data().filter(|sent| sent.packet.cwr()).count(), 1);
    world.run(ms(290));
    let counters = world.host.counters();
    assert_eq!((counters.lost_packets, counters.retransmitted_packets), (0, 0));
    assert_eq!(counters.ce_packets, 10);
    // 40 packets and ten acknowledged before the first mark, halved once.
    assert!((24.0..28.0).contains(&world.cwnd()), "{}", world.cwnd());
}

/// Accurate ECN: the sender hears of every mark exactly once, whatever becomes of ACKs, and Prague goes on
/// growing in the round trips in which it answers marks.
#[test]
fn accurate_ecn_counts_every_mark_once_though_acks_are_lost() {
    let mut config = tcp(5_000);
    config.controller = ControllerConfig::new("prague", &[]).unwrap();
    config.feedback = FeedbackConfig::new("accecn", &[]).unwrap();
    let mut acks = 0;
    let mut world = World::new(config, RTT, move |_, packet: &SimPacket| match packet.kind() {
        Kind::Data { segment, .. } if segment % 5 == 0 => Verdict::Mark,
        Kind::Ack { .. } => {
            acks += 1;
            if acks % 3 == 0 { Verdict::Drop } else { Verdict::Deliver }
        }
        _ => Verdict::Deliver,
    });
    world.run(Time::from_secs(30));
    assert!(!world.host.is_complete(), "the run looks at the middle of the transfer");
    let mut shown = std::collections::BTreeMap::new();
    world.host.controller().unwrap().inspect(&mut |name, value| {
        shown.insert(name, value);
    });
    // A fifth of every round is marked: W p / 2 lost and 1 - p won in each balance at W = 8.
    assert!((0.15..0.25).contains(&shown["alpha"]), "{shown:?}");
    assert!((6.0..12.0).contains(&shown["window_packets"]), "{shown:?}");
    world.run(Time::from_secs(600));
    assert!(world.host.is_complete());
    let marked = world.data().filter(|sent| sent.segment().is_some_and(|segment| segment % 5 == 0)).count();
    assert_eq!(world.host.counters().ce_packets, marked as u64);
}

#[test]
fn a_long_pause_restarts_the_window() {
    let periods =
        OnOff { on: Duration::from_millis(500), off: Duration::from_secs(60), rate: None, random: false };
    let mut world =
        World::new(config(Host::Tcp, Traffic::OnOff(periods)), RTT, |_, _: &SimPacket| Verdict::Deliver);
    world.run(Time::from_secs(30));
    assert!(world.cwnd() > 100.0);
    world.run(ms(60_500));
    assert_eq!(world.cwnd(), 10.0);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // Ten packets a second never need a window of ten at 100 ms.
    let rate = Rate::from_bps(1448 * 8 * 10);
    let mut world =
        World::new(config(Host::Tcp, Traffic::RateLimited(rate)), RTT, |_, _: &SimPacket| Verdict::Deliver);
    world.run(Time::from_secs(60));
    assert_eq!(world.cwnd(), 10.0);
}

#[test]
fn doubled_packets_change_nothing_but_the_count_of_acks() {
    let mut clean = World::new(tcp(500), RTT, |_, _: &SimPacket| Verdict::Deliver);
    let mut doubled = World::new(tcp(500), RTT, |_, _: &SimPacket| Verdict::Twice(Duration::from_millis(3)));
    clean.run(Time::from_secs(10));
    doubled.run(Time::from_secs(10));
    let (clean, doubled) = (clean.host.counters(), doubled.host.counters());
    assert_eq!(clean.sent_packets, doubled.sent_packets);
    assert_eq!(clean.goodput_bytes, doubled.goodput_bytes);
    assert_eq!((doubled.lost_packets, doubled.timeouts), (0, 0));
}

/// Drops all data in this period of a path of 100 ms and 10 Mbit/s, for a backlogged flow of `controller`.
fn after_an_outage(
    controller: &str,
    from: Time,
    until: Time,
) -> World<impl FnMut(Time, &SimPacket) -> Verdict> {
    let mut config = config(Host::Tcp, Traffic::Backlogged);
    config.controller = ControllerConfig::new(controller, &[]).unwrap();
    World::new(config, RTT, move |now, packet: &SimPacket| {
        let lost = packet.direction() == Direction::Forward && now >= from && now < until;
        if lost { Verdict::Drop } else { Verdict::Deliver }
    })
    .bottleneck(Rate::from_mbps(10), 125_000)
}

/// Linux 6.12 net/ipv4/tcp_bbr.c, bbr_set_cwnd_to_recover_or_restore: the window of before comes back when
/// the state falls below TCP_CA_Recovery, and TCP_CA_Loss lasts until all that was out at the timeout is
/// acknowledged.
#[test]
fn bbr_slow_starts_from_one_packet_after_a_timeout() {
    for controller in ["bbr", "bbr2", "bbr3"] {
        let mut world = after_an_outage(controller, Time::from_secs(3), Time::from_secs(4));
        world.run(Time::from_secs(4));
        let acked = world.host.counters().acked_packets;
        assert!(world.host.counters().timeouts > 0, "{controller}: the outage outlasts the timeout");
        let mut now = Time::from_secs(4);
        while world.host.counters().acked_packets == acked {
            now += Duration::from_millis(10);
            assert!(now < Time::from_secs(20), "{controller}: nothing is repaired");
            world.run(now);
        }
        assert!(world.cwnd() <= 8.0, "{controller}: {} packets after the first ACK", world.cwnd());
        world.run(now + Duration::from_secs(3));
        assert!(world.cwnd() >= 80.0, "{controller}: {} packets once all is repaired", world.cwnd());
    }
}

/// rfc8985 6.2, step 4: with two segments SACKed and no reordering seen, a segment may come a quarter of
/// min_rtt late. Segment 7 of ten leaves at 0, 8 and 9 come back at 100 ms, and 7 counts as lost at 100 + 100
/// / 4 ms.
#[test]
fn a_segment_with_fewer_than_three_behind_it_is_lost_a_quarter_of_the_rtt_later() {
    let mut world = World::new(tcp(10), RTT, losing(&[7]));
    world.run(Time::from_secs(3));
    assert_eq!(world.times_of(7), [0.0, 125.0]);
    let counters = world.host.counters();
    assert_eq!((counters.lost_packets, counters.tail_probes, counters.timeouts), (1, 0, 0));
}

/// One segment every 5 ms for `seconds`, of which some come late and some are lost the first time.
fn steady(
    seconds: u64,
    late: &'static [(u32, u64)],
    lost: impl Fn(u32) -> bool,
) -> World<impl FnMut(Time, &SimPacket) -> Verdict> {
    let mut config = config(Host::Tcp, Traffic::RateLimited(Rate::from_bps(1448 * 8 * 200)));
    config.stop = Some(Time::from_secs(seconds));
    let mut seen = std::collections::BTreeSet::new();
    World::new(config, RTT, move |_, packet: &SimPacket| {
        let Kind::Data { segment, .. } = packet.kind() else { return Verdict::Deliver };
        if !seen.insert(segment) {
            return Verdict::Deliver;
        }
        match late.iter().find(|(late, _)| *late == segment) {
            Some((_, millis)) => Verdict::Late(Duration::from_millis(*millis)),
            None if lost(segment) => Verdict::Drop,
            None => Verdict::Deliver,
        }
    })
}

/// rfc3708: the original of segment 100 comes 150 ms late, after its retransmission, whose timestamp
/// therefore says nothing. The DSACK that it causes says that the retransmission was needless: the episode is
/// undone.
#[test]
fn a_retransmission_that_a_dsack_calls_needless_is_undone() {
    let mut world = steady(2, &[(100, 150)], |_| false);
    world.run(ms(490));
    let ssthresh = |world: &World<_>| world.host.controller().unwrap().ssthresh();
    let threshold = ssthresh(&world);
    // Declared lost with the third SACK behind it, about 115 ms after it left; repaired 100 ms later.
    world.run(ms(700));
    assert_eq!(world.times_of(100).len(), 2);
    assert!(ssthresh(&world) < threshold, "the window was reduced");
    assert_eq!(world.host.counters().undone_episodes, 0);
    world.run(Time::from_secs(3));
    let counters = world.host.counters();
    assert_eq!(
        (counters.undone_episodes, counters.lost_packets, counters.timeouts),
        (1, 1, 0),
        "{counters:?}"
    );
}

/// rfc8985 6.2, step 2: the newest delivered packet may be a retransmission, and what left before it and has
/// not arrived is lost. The second copy of 3 is lost, that of 5 arrives 2 ms late: 3 leaves again without a
/// timeout.
#[test]
fn a_delivered_retransmission_shows_that_the_one_before_it_is_lost() {
    let mut left = vec![3, 5, 3];
    let mut world = World::new(tcp(10), RTT, move |_, packet: &SimPacket| {
        let Kind::Data { segment, .. } = packet.kind() else { return Verdict::Deliver };
        if let Some(at) = left.iter().position(|&other| other == segment) {
            left.remove(at);
            return Verdict::Drop;
        }
        if segment == 5 { Verdict::Late(Duration::from_millis(2)) } else { Verdict::Deliver }
    });
    world.run(Time::from_secs(3));
    let (three, five) = (world.times_of(3), world.times_of(5));
    assert_eq!((three.len(), five.len()), (3, 2), "{three:?} {five:?}");
    assert!((three[2] - five[1] - 102.0).abs() < 0.01, "{three:?} {five:?}");
    assert_eq!(world.host.counters().timeouts, 0);
}

/// rfc5682 2.1, step 2b: the first ACK after a timeout that advances `snd_una` lets new data out before
/// retransmissions.
#[test]
fn new_data_leaves_first_when_a_timeout_may_have_been_a_mistake() {
    let mut world = World::new(tcp(300), RTT, |now: Time, _: &SimPacket| {
        if now >= ms(90) && now < ms(350) { Verdict::Drop } else { Verdict::Deliver }
    });
    world.run(Time::from_secs(5));
    assert_eq!(world.host.counters().timeouts, 1);
    // The head of the flight that was lost, 10 to 29, leaves at the timeout; its ACK comes 100 ms later.
    let at = world.times_of(10).last().copied().unwrap();
    let next = world.data().find(|sent| sent.millis() > at + 99.0).and_then(|sent| sent.segment());
    assert!(next >= Some(30), "{next:?} after the timeout at {at} ms");
}
