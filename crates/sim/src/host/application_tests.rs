//! Behaviour of the applications, over paths whose effect can be worked out.

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::Host;
use brakelight_scenario::traffic::{
    Arrivals, Call, Game, OnOff, Repair, RequestResponse, ShortFlows, SizeLaw, Traffic, Video,
};

use super::harness::{Sent, Verdict, World, config};
use crate::engine::Routed;
use crate::packet::{Kind, SimPacket};

const RTT: Duration = Duration::from_millis(100);
const MSS: u64 = 1448;

fn clean(_now: Time, _packet: &SimPacket) -> Verdict {
    Verdict::Deliver
}

fn world(traffic: Traffic) -> World<fn(Time, &SimPacket) -> Verdict> {
    World::new(config(Host::Tcp, traffic), RTT, clean as fn(Time, &SimPacket) -> Verdict)
}

/// Asserts that the outcome `name` lies within `low..=high`.
#[track_caller]
fn expect<F: FnMut(Time, &SimPacket) -> Verdict>(world: &World<F>, name: &str, low: f64, high: f64) {
    let value = world.outcome(name).unwrap_or_else(|| panic!("there is no `{name}`"));
    assert!((low..=high).contains(&value), "{name} = {value}, not in {low} to {high}");
}

#[test]
fn a_rate_limited_flow_sends_a_packet_per_interval_without_drift() {
    let rate = Rate::from_bps(MSS * 8 * 70);
    let mut world = world(Traffic::RateLimited(rate));
    world.run(Time::from_secs(20));
    let times: Vec<f64> = world.data().map(|sent| sent.millis()).collect();
    // Packet n leaves at n / 70 s, to the nanosecond, as long as the window does not hold it.
    for (n, at) in times.iter().enumerate() {
        assert!((at - n as f64 * 1000.0 / 70.0).abs() < 1e-3, "packet {n} at {at}");
    }
    assert_eq!(times.len(), 20 * 70 + 1);
    expect(&world, "offered_mbps", rate.as_mbps_f64(), rate.as_mbps_f64() * 1.001);
    expect(&world, "backlog_kb", 0.0, 8.0 * 1.448);
}

#[test]
fn an_on_off_flow_is_silent_between_its_periods() {
    let second = Duration::from_secs(1);
    let periods =
        OnOff { on: second, off: second * 2, rate: Some(Rate::from_bps(MSS * 8 * 40)), random: false };
    let mut world = world(Traffic::OnOff(periods));
    world.run(Time::from_secs(9));
    let times: Vec<f64> = world.data().map(|sent| sent.millis()).collect();
    assert_eq!(times.iter().filter(|&&at| at < 9_000.0).count(), 3 * 40);
    assert!(times.iter().all(|at| at % 3_000.0 < 1_000.0), "{times:?}");
}

#[test]
fn a_backlogged_on_period_ends_at_once() {
    let second = Duration::from_secs(1);
    let periods = OnOff { on: second, off: second, rate: None, random: false };
    let mut world = world(Traffic::OnOff(periods));
    world.run(Time::from_secs(2) - Duration::from_nanos(1));
    assert!(world.data().all(|sent| sent.millis() <= 1_000.0));
    assert!(world.data().count() > 1_000);
}

#[test]
fn a_response_that_fits_the_first_window_takes_one_round_trip() {
    let traffic = Traffic::RequestResponse(RequestResponse {
        request: Bytes(300),
        response: Bytes(10 * MSS),
        think: Duration::ZERO,
    });
    let mut world = world(traffic);
    world.run(Time::from_millis(10_050));
    expect(&world, "responses", 100.0, 100.0);
    expect(&world, "response_ms_mean", 100.0, 100.0);
}

#[test]
fn a_lost_request_is_repeated_after_a_second() {
    let traffic = Traffic::RequestResponse(RequestResponse {
        request: Bytes(4_000),
        response: Bytes(MSS),
        think: Duration::from_secs(100),
    });
    let mut lost = false;
    let mut world = World::new(config(Host::Tcp, traffic), RTT, move |_, packet: &SimPacket| {
        let second_part = matches!(packet.kind(), Kind::Datagram { echo: 1, .. });
        if second_part && !std::mem::replace(&mut lost, true) { Verdict::Drop } else { Verdict::Deliver }
    });
    world.run(Time::from_secs(5));
    expect(&world, "responses", 1.0, 1.0);
    expect(&world, "response_ms_mean", 1_100.0, 1_100.0);
    // Three parts, all of them again.
    let parts = world.sent.iter().filter(|sent| matches!(sent.packet.kind(), Kind::Datagram { .. }));
    assert_eq!(parts.count(), 6);
}

#[test]
fn a_game_measures_the_round_trip_and_counts_what_is_lost() {
    let game = Game { size: Bytes(80), interval: Duration::from_millis(20) };
    let mut clean = world(Traffic::Game(game));
    clean.run(Time::from_secs(10));
    expect(&clean, "rtt_ms_p50", 99.5, 100.5);
    expect(&clean, "rtt_ms_p99", 99.5, 100.5);
    expect(&clean, "updates_lost_percent", 0.0, 0.0);
    expect(&clean, "updates", 498.0, 499.0);
    assert!(clean.sent.iter().all(|sent| sent.packet.size == 80 + 28));

    let mut updates = 0;
    let mut lossy = World::new(config(Host::Tcp, Traffic::Game(game)), RTT, move |_, packet: &SimPacket| {
        updates += u32::from(packet.direction() == Direction::Forward);
        let drop = packet.direction() == Direction::Forward && updates.is_multiple_of(4);
        if drop { Verdict::Drop } else { Verdict::Deliver }
    });
    lossy.run(Time::from_secs(10));
    expect(&lossy, "updates_lost_percent", 24.5, 25.5);
}

#[test]
fn a_player_climbs_to_the_highest_rate_on_a_fast_path_and_never_stalls() {
    let mut world = world(Traffic::Video(Video::default())).bottleneck(Rate::from_mbps(40), 500_000);
    world.run(Time::from_secs(120));
    expect(&world, "stalls", 0.0, 0.0);
    // Two segments of 75 kB within a few round trips.
    expect(&world, "startup_ms", 200.0, 1_500.0);
    // On an infinitely fast path f(B) gives 7 segments of 300 kbit/s, then 1.2, 1.85, 1.85, 2.85 four times,
    // and 60 of 5.8 Mbit/s: 4.951 on average. A real one climbs a little later.
    expect(&world, "bitrate_mbps", 4.8, 4.951);
    expect(&world, "stall_percent", 0.0, 0.0);
}

#[test]
fn a_player_on_a_slow_path_settles_near_its_rate() {
    let mut world = world(Traffic::Video(Video::default())).bottleneck(Rate::from_bps(1_500_000), 100_000);
    world.run(Time::from_secs(300));
    expect(&world, "stalls", 0.0, 0.0);
    // Between the rungs below and above 1.5 Mbit/s less headers.
    expect(&world, "bitrate_mbps", 1.0, 1.5);
}

#[test]
fn an_outage_longer_than_the_buffer_stalls_playback() {
    let mut world =
        World::new(config(Host::Tcp, Traffic::Video(Video::default())), RTT, |now: Time, _: &SimPacket| {
            let outage = now >= Time::from_secs(60) && now < Time::from_secs(100);
            if outage { Verdict::Drop } else { Verdict::Deliver }
        })
        .bottleneck(Rate::from_mbps(20), 200_000);
    world.run(Time::from_secs(200));
    expect(&world, "stalls", 1.0, 1.0);
    // 40 s of outage, at most 30 s of buffer, and what the backed-off timers add.
    expect(&world, "stall_ms", 10_000.0, 60_000.0);
}

#[test]
fn a_call_on_a_wide_path_sends_what_the_encoder_can() {
    let mut world = world(Traffic::Call(Call::default())).bottleneck(Rate::from_mbps(20), 200_000);
    world.run(Time::from_secs(60));
    expect(&world, "bitrate_mbps", 2.3, 2.5);
    expect(&world, "freezes", 0.0, 0.0);
    expect(&world, "frames_late_percent", 0.0, 0.0);
    expect(&world, "frame_delay_ms_p50", 50.0, 60.0);
}

#[test]
fn a_second_without_a_path_freezes_a_call_once() {
    let mut world =
        World::new(config(Host::Tcp, Traffic::Call(Call::default())), RTT, |now: Time, _: &SimPacket| {
            let outage = now >= Time::from_secs(30) && now < Time::from_secs(31);
            if outage { Verdict::Drop } else { Verdict::Deliver }
        })
        .bottleneck(Rate::from_mbps(20), 200_000);
    world.run(Time::from_secs(60));
    expect(&world, "freezes", 1.0, 1.0);
    // A probe at 0.27 s, timeouts at 0.57 and 1.18 s into the outage, of which the last gets through; then a
    // few round trips of slow start until a frame is in order that is not too old to be shown.
    expect(&world, "freeze_ms", 1_230.0, 2_000.0);
}

/// Half a round trip is 50 ms, and the frames of a call beside it cost a few more. What an outage swallows is
/// missed, since nobody sends it again.
#[test]
fn the_sound_of_a_call_arrives_beside_its_frames_and_is_not_sent_again() {
    for host in [Host::Tcp, Host::Quic] {
        let call = Traffic::Call(Call { audio: true, ..Call::default() });
        let mut whole =
            World::new(config(host, call.clone()), RTT, clean).bottleneck(Rate::from_mbps(20), 200_000);
        whole.run(Time::from_secs(60));
        expect(&whole, "audio_missed_percent", 0.0, 0.0);
        expect(&whole, "audio_delay_ms_p50", 50.0, 55.0);
        expect(&whole, "audio_delay_ms_p99", 50.0, 60.0);
        expect(&whole, "bitrate_mbps", 2.3, 2.5);
        let mut broken = World::new(config(host, call), RTT, |now: Time, _: &SimPacket| {
            let outage = now >= Time::from_secs(30) && now < Time::from_secs(33);
            if outage { Verdict::Drop } else { Verdict::Deliver }
        })
        .bottleneck(Rate::from_mbps(20), 200_000);
        broken.run(Time::from_secs(60));
        // 3 s of 60 s: messages wait for no window.
        expect(&broken, "audio_missed_percent", 4.9, 5.1);
    }
}

/// rfc8867 5.8
#[test]
fn a_pause_is_no_freeze_and_no_part_of_a_call() {
    let pause = Call {
        pause_at: Duration::from_secs(20),
        pause_for: Duration::from_millis(10_010),
        ..Call::default()
    };
    let mut world = world(Traffic::Call(pause)).bottleneck(Rate::from_mbps(20), 200_000);
    world.run(Time::from_secs(60));
    // 30 frames a second for 50 s, but for those on their way.
    expect(&world, "frames_shown", 1_490.0, 1_500.0);
    expect(&world, "freezes", 0.0, 0.0);
    expect(&world, "bitrate_mbps", 2.3, 2.5);
    expect(&world, "frames_skipped_percent", 0.0, 0.0);
}

#[test]
fn short_connections_arrive_as_a_poisson_process_and_leave_nothing_behind() {
    for host in [Host::Tcp, Host::Quic] {
        let flows =
            ShortFlows { arrivals: Arrivals::PerSecond(20.0), size: SizeLaw::Fixed(Bytes(5 * 1_400)) };
        let mut config = config(host, Traffic::ShortFlows(flows));
        config.stop = Some(Time::from_secs(100));
        let mut world = World::new(config, RTT, clean);
        world.run(Time::from_secs(200));
        // 2000 expected, standard deviation 45.
        expect(&world, "flows_started", 1_820.0, 2_180.0);
        assert_eq!(world.outcome("flows_started"), world.outcome("flows_completed"));
        // One flight: half a round trip.
        expect(&world, "completion_ms_mean", 50.0, 50.0);
        assert!(world.host.is_complete());
        assert_eq!(
            world.host.counters().goodput_bytes,
            world.outcome("flows_completed").unwrap() as u64 * 7_000
        );
    }
}

#[test]
fn sizes_of_short_connections_follow_pareto_and_each_starts_over_in_slow_start() {
    let law = SizeLaw::Pareto { mean: Bytes(30_000), shape: 1.8 };
    let flows = ShortFlows { arrivals: Arrivals::Load(Rate::from_mbps(12)), size: law };
    let mut world = world(Traffic::ShortFlows(flows));
    world.run(Time::from_secs(400));
    // 50 a second: 20,000, standard deviation 141.
    expect(&world, "flows_started", 19_500.0, 20_500.0);
    let mean = world.host.counters().goodput_bytes as f64 / world.outcome("flows_completed").unwrap();
    // The mean of a heavy tail converges slowly: a tenth is what 20,000 draws give.
    assert!((27_000.0..33_000.0).contains(&mean), "{mean}");
    // Median: 13,333 * 2^(1/1.8) = 19,600 bytes, 14 packets: two flights.
    expect(&world, "completion_ms_p50", 149.0, 151.0);
}

#[test]
fn short_connections_survive_loss_and_are_counted_when_they_end() {
    let flows = ShortFlows { arrivals: Arrivals::PerSecond(50.0), size: SizeLaw::Fixed(Bytes(20_000)) };
    let mut config = config(Host::Tcp, Traffic::ShortFlows(flows));
    config.stop = Some(Time::from_secs(20));
    let mut random = brakelight_core::random::Random::stream(9, "path");
    let mut world =
        World::new(
            config,
            RTT,
            move |_, _: &SimPacket| {
                if random.chance(0.05) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    world.run(Time::from_secs(200));
    assert_eq!(world.outcome("flows_started"), world.outcome("flows_completed"));
    assert!(world.host.is_complete());
    let counters = world.host.counters();
    assert_eq!(counters.goodput_bytes, world.outcome("flows_completed").unwrap() as u64 * 20_000);
    assert!(counters.retransmitted_packets > 0);
}

/// A call whose frames travel in packets of their own, over a path of 20 Mbit/s.
fn pieces<F: FnMut(Time, &SimPacket) -> Verdict>(repair: Repair, verdict: F) -> World<F> {
    let call = Traffic::Call(Call { repair, ..Call::default() });
    World::new(config(Host::Quic, call), RTT, verdict).bottleneck(Rate::from_mbps(20), 200_000)
}

/// The numbers of a flow's data packets, and of the pieces in them.
fn numbers<F: FnMut(Time, &SimPacket) -> Verdict>(world: &World<F>) -> Vec<(u32, u32)> {
    let number = |packet: &SimPacket| match packet.kind() {
        Kind::Data { number, segment, .. } => (number, segment),
        _ => unreachable!("data"),
    };
    world.data().map(|sent| number(&sent.packet)).collect()
}

fn dropping(number: u32) -> impl FnMut(Time, &SimPacket) -> Verdict {
    move |_, packet| match packet.kind() {
        Kind::Data { number: found, .. } if found == number => Verdict::Drop,
        _ => Verdict::Deliver,
    }
}

#[test]
fn a_lost_piece_lowers_the_window_and_is_not_sent_again() {
    let mut world = pieces(Repair::None, dropping(200));
    world.run(Time::from_secs(10));
    let numbers = numbers(&world);
    assert!(
        numbers
            .iter()
            .enumerate()
            .all(|(place, &(number, piece))| { (number, piece) == (place as u32, place as u32) })
    );
    let counters = world.host.counters();
    assert_eq!((counters.lost_packets, counters.retransmitted_packets), (1, 0));
    assert_eq!(counters.tail_probes, 0);
    expect(&world, "key_frame_requests", 1.0, 1.0);
    // The frame itself, and those of about a round trip and a half, until the key frame.
    expect(&world, "frames_lost_percent", 100.0 * 4.0 / 300.0, 100.0 * 8.0 / 300.0);
    expect(&world, "repair_percent", 0.0, 0.0);
    let seen = world.host.sender();
    assert!(seen.cwnd < Bytes(400_000), "{:?}", seen.cwnd);
}

#[test]
fn a_nack_brings_a_piece_again_in_another_packet() {
    let mut world = pieces(Repair::Nack, dropping(200));
    world.run(Time::from_secs(10));
    assert_eq!(world.host.counters().retransmitted_packets, 0);
    expect(&world, "key_frame_requests", 0.0, 0.0);
    expect(&world, "frames_lost_percent", 0.0, 0.0);
    // One packet of about two thousand.
    expect(&world, "repair_percent", 0.01, 0.1);
    expect(&world, "frames_late_percent", 0.0, 0.0);
}

#[test]
fn parity_brings_the_frame_without_a_round_trip() {
    // Every fiftieth packet is lost. NewReno's window is small then, with either.
    let delay = |repair| {
        let mut world = pieces(repair, |_: Time, packet: &SimPacket| match packet.kind() {
            Kind::Data { number, .. } if number % 50 == 25 => Verdict::Drop,
            _ => Verdict::Deliver,
        });
        world.run(Time::from_secs(10));
        expect(&world, "frames_lost_percent", 0.0, 0.0);
        world.outcome("frame_delay_ms_p95").expect("frames came")
    };
    let (nack, fec) = (delay(Repair::Nack), delay(Repair::Fec));
    assert!(nack > fec + 60.0, "{fec}, {nack}");
}

/// From 3 s to 4 s nothing passes. Where there is nothing to send again, PINGs find out that the path is
/// back.
#[test]
fn pieces_go_on_after_a_silence() {
    for repair in [Repair::None, Repair::Nack, Repair::Fec] {
        let mut world = pieces(repair, |now: Time, _: &SimPacket| {
            let silent = now >= Time::from_secs(3) && now < Time::from_secs(4);
            if silent { Verdict::Drop } else { Verdict::Deliver }
        });
        world.run(Time::from_secs(10));
        let counters = world.host.counters();
        assert!(counters.tail_probes >= 1, "{counters:?}");
        // A second of the call is lost, and what follows it until the key frame.
        expect(&world, "frames_shown", 220.0, 275.0);
        expect(&world, "freezes", 1.0, 2.0);
        let late: Vec<f64> = world.data().map(Sent::millis).filter(|&at| at > 9_900.0).collect();
        assert!(!late.is_empty());
    }
}

/// Reordering, copies and 5 % of losses: the contract with the controller holds (the host checks it).
#[test]
fn pieces_survive_a_wild_path() {
    for repair in [Repair::None, Repair::Nack, Repair::Fec] {
        let mut random = brakelight_core::random::Random::stream(7, "wild");
        let mut world =
            pieces(repair, move |_: Time, _: &SimPacket| match (random.uniform() * 100.0) as u32 {
                0..5 => Verdict::Drop,
                5..10 => Verdict::Late(Duration::from_millis(30)),
                10..15 => Verdict::Twice(Duration::from_millis(15)),
                _ => Verdict::Deliver,
            });
        world.run(Time::from_secs(30));
        assert!(world.outcome("frames_shown").is_some_and(|shown| shown > 300.0), "{repair:?}");
    }
}
