//! Behaviour of the modelled host, by worked traces.

use brakelight_core::controller::Controller;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{ControllerConfig, FeedbackConfig, Host};
use brakelight_scenario::traffic::Traffic;

use super::harness::{Verdict, World, config, segments};
use crate::packet::{Kind, SimPacket};

const RTT: Duration = Duration::from_millis(100);
const HOSTS: [Host; 2] = [Host::Tcp, Host::Quic];

fn clean(_now: Time, _packet: &SimPacket) -> Verdict {
    Verdict::Deliver
}

#[test]
fn a_transfer_over_a_clean_path_arrives_once_and_completely() {
    for host in HOSTS {
        let mut world = World::new(config(host, segments(host, 1_000)), RTT, clean);
        world.run(Time::from_secs(30));
        let counters = world.host.counters();
        assert_eq!(counters.sent_packets, 1_000, "{host:?}");
        assert_eq!(counters.retransmitted_packets, 0);
        assert_eq!(counters.lost_packets, 0);
        assert!(world.host.is_complete());
        // Slow start from 10 packets: 10, 20, ... 640 are seven flights; QUIC's pacing stretches each to 4/5
        // of an RTT.
        let completion = world.outcome("completion_ms").unwrap();
        let most = if host == Host::Tcp { 660.0 } else { 800.0 };
        assert!((600.0..most).contains(&completion), "{host:?}: {completion}");
    }
}

#[test]
fn a_backlogged_flow_fills_a_bottleneck() {
    for host in HOSTS {
        let mut world = World::new(config(host, Traffic::Backlogged), RTT, clean)
            .bottleneck(Rate::from_mbps(12), 250 * 1500);
        world.run(Time::from_secs(60));
        let counters = world.host.counters();
        let sent: u64 = counters.goodput_bytes * 1500 / config(host, Traffic::Backlogged).mss.0;
        let utilisation = Rate::over(Bytes(sent), Duration::from_secs(60)).as_mbps_f64() / 12.0;
        assert!(utilisation > 0.95, "{host:?}: {utilisation} {counters:?}");
        assert_eq!(counters.timeouts, 0, "{host:?}");
    }
}

/// Loses the given segments, each as often as it is listed.
pub(super) fn losing(lost: &'static [u32]) -> impl FnMut(Time, &SimPacket) -> Verdict {
    let mut left: Vec<u32> = lost.to_vec();
    move |_, packet| match packet.kind() {
        Kind::Data { segment, .. } => match left.iter().position(|&other| other == segment) {
            Some(at) => {
                left.remove(at);
                Verdict::Drop
            }
            None => Verdict::Deliver,
        },
        _ => Verdict::Deliver,
    }
}

#[test]
fn one_loss_in_the_middle_is_repaired_by_one_retransmission_within_a_round_trip() {
    for host in HOSTS {
        let mut world = World::new(config(host, segments(host, 60)), RTT, losing(&[3]));
        world.run(Time::from_secs(5));
        let counters = world.host.counters();
        assert_eq!(counters.lost_packets, 1, "{host:?}");
        assert_eq!(counters.timeouts, 0);
        // Sent at 0, missed when its third successor was acknowledged: at 100 ms.
        assert_eq!(world.retransmissions(), [(3, 100.0)], "{host:?}");
        assert!(world.host.is_complete());
    }
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe_within_two_smoothed_round_trips() {
    // Fifty segments take three flights; the last two packets are lost.
    let mut world = World::new(config(Host::Tcp, segments(Host::Tcp, 50)), RTT, losing(&[48, 49]));
    world.run(Time::from_secs(5));
    let counters = world.host.counters();
    assert_eq!(counters.timeouts, 0);
    assert_eq!(counters.tail_probes, 1);
    let last = world.data().filter(|sent| sent.millis() < 300.0).map(|sent| sent.millis()).last().unwrap();
    let again = world.retransmissions();
    // rfc8985 7.2: the last ACK re-arms the probe: 2 srtt + 2 ms after it.
    assert_eq!(again[0].0, 49);
    assert!(again[0].1 <= last + 100.0 + 202.1, "{again:?} after {last}");
    // The probe's SACK exposes the other loss.
    assert_eq!(again[1].0, 48);
    assert!((again[1].1 - again[0].1 - 100.0).abs() < 1.0, "{again:?}");
    assert!(world.host.is_complete());
}

mod property {
    use brakelight_core::packet::Direction;
    use brakelight_core::random::Random;
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Routed;

    /// Per mille of packets lost, late and doubled; the same in both directions.
    fn run(
        host: Host,
        seed: u64,
        loss: u32,
        late: u32,
        twice: u32,
        count: u64,
    ) -> (World<impl FnMut(Time, &SimPacket) -> Verdict>, Vec<String>) {
        let mut random = Random::stream(seed, "path");
        let mut config = config(host, segments(host, count));
        config.jitter = Duration::from_micros(200);
        let mut world = World::new(config, Duration::from_millis(40), move |now, _| {
            // The path calms down in the end, so that bounded time is meaningful.
            let storm = now < Time::from_secs(20);
            let draw = (random.uniform() * 1000.0) as u32;
            let extra = Duration::from_millis((random.uniform() * 60.0) as u64);
            match draw {
                _ if !storm => Verdict::Deliver,
                n if n < loss => Verdict::Drop,
                n if n < loss + late => Verdict::Late(extra),
                n if n < loss + late + twice => Verdict::Twice(extra),
                _ => Verdict::Deliver,
            }
        })
        .bottleneck(Rate::from_mbps(5), 30_000);
        world.run(Time::from_secs(400));
        let trace = world.sent.iter().map(|sent| format!("{:?} {:?}", sent.at, sent.packet)).collect();
        (world, trace)
    }

    /// While QUIC's loss timer runs, its probe timeout does not, and may have passed when that ends.
    #[test]
    fn a_probe_timeout_that_has_passed_is_due_now() {
        let (world, _) = run(Host::Quic, 14_192_955_534_082_835_799, 314, 34, 20, 139);
        assert!(world.host.is_complete());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn every_byte_arrives_exactly_once_whatever_the_path_does(
            host in prop::sample::select(vec![Host::Tcp, Host::Quic, Host::Ns2]),
            seed in any::<u64>(),
            loss in 0_u32..400,
            late in 0_u32..200,
            twice in 0_u32..100,
            count in 1_u64..600,
        ) {
            let (world, trace) = run(host, seed, loss, late, twice, count);
            let mss = super::config(host, Traffic::Backlogged).mss.0;
            prop_assert_eq!(world.host.counters().goodput_bytes, count * mss);
            prop_assert!(world.host.is_complete());
            prop_assert_eq!(world.host.inflight(), Bytes(0));
            let done = world.outcome("completion_ms").unwrap();
            prop_assert!(done < 320_000.0, "{}", done);
            let (_, again) = run(host, seed, loss, late, twice, count);
            prop_assert!(trace == again, "the same run twice differs");
            let acks = world.acks().count();
            prop_assert!(world.sent.iter().all(|sent| sent.packet.direction() == Direction::Forward || acks > 0));
        }
    }
}

/// The segments lost of the first flights, far enough apart to be gaps of their own.
const GAPS: &[u32] = &[20, 40, 60, 80, 100, 120, 140, 160, 180, 200];

#[test]
fn a_lying_receiver_acknowledges_its_share_of_the_gaps_and_the_sender_hears_of_the_rest() {
    for host in HOSTS {
        let repaired = |losses: &str| {
            let flow = config(host, segments(host, 1_000));
            let feedback = FeedbackConfig::new("lying", &[("losses", losses)]).unwrap();
            let mut world = World::new(super::FlowConfig { feedback, ..flow }, RTT, losing(GAPS));
            world.run(Time::from_secs(60));
            let counters = world.host.counters();
            // What was claimed is never sent again, so that the transfer lacks it.
            let missing = 1_000 - counters.goodput_bytes / config(host, Traffic::Backlogged).mss.0;
            (counters.retransmitted_packets, missing)
        };
        let (repairs, missing) = repaired("0");
        assert!(repairs >= 10 && missing == 0, "{host:?}: {repairs} and {missing}");
        let (repairs, half) = repaired("0.5");
        assert!((1..10).contains(&half) && repairs + half >= 10, "{host:?}: {repairs} and {half}");
        let (_, most) = repaired("0.9");
        assert!(most > half, "{host:?}: {most} and {half}");
    }
}

#[test]
fn stages_of_a_controller_add_up_to_its_life_and_follow_each_other() {
    let flow = config(Host::Tcp, Traffic::Backlogged);
    let controller = ControllerConfig::new("bbr3", &[]).unwrap();
    let mut world = World::new(super::FlowConfig { controller, ..flow }, RTT, clean)
        .bottleneck(Rate::from_mbps(12), 500 * 1500);
    let end = Time::from_secs(20);
    world.run(end);
    let stages = world.host.stages(end);
    let names = world.host.controller().unwrap().stage().unwrap().names;
    let life: f64 = names.iter().map(|name| stages[&format!("{name}_s")]).sum();
    // All but the first round trip, before any ACK.
    assert!((19.5..=20.0).contains(&life), "{life}");
    for name in names {
        let came: f64 =
            names.iter().filter(|from| *from != name).map(|from| stages[&format!("{from}_to_{name}")]).sum();
        let first = f64::from(u8::from(*name == "startup"));
        assert_eq!(stages[&format!("{name}_entries")], came + first, "{name}");
        assert!(stages[&format!("{name}_longest_s")] <= stages[&format!("{name}_s")]);
    }
    assert_eq!(stages["startup_to_drain"], 1.0);
    assert_eq!(stages["drain_start_pacing_gain"], 0.5);
    assert!(stages["up_entries"] >= 2.0 && !stages.contains_key("nowhere_s"), "{stages:?}");
    // Cubic has no stages.
    let mut world = World::new(config(Host::Tcp, segments(Host::Tcp, 100)), RTT, clean);
    world.run(end);
    assert!(world.host.stages(end).is_empty());
}
