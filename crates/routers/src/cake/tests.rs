use alloc::string::ToString;
use alloc::vec::Vec;

use brakelight_core::ecn::Encoding;
use brakelight_core::packet::{Acknowledgement, Block};
use brakelight_core::parameters::Parameters;
use brakelight_core::queue::Queue;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

type Bed = Bench<Cake<Sample>>;

fn cake_within(options: &[(&str, &str)], packets: u32) -> Bed {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(Cake::new(&config, &place(packets)), Rate::from_mbps(12))
}

fn cake(options: &[(&str, &str)]) -> Bed {
    cake_within(options, 100_000)
}

fn packet(flow: u32, size: u32) -> Sample {
    Sample { flow, encoding: Encoding::Classic, ecn: Ecn::Ect0, ..Sample::new(0, size) }
}

fn arrive(bench: &mut Bed, now: Time, flow: u32, size: u32, count: u32) {
    (0..count).for_each(|_| {
        bench.arrive_as(now, packet(flow, size));
    });
}

/// The flows of the next packets.
fn served(bench: &mut Bed, now: Time, count: usize) -> Vec<u32> {
    (0..count).map(|_| bench.leave(now).unwrap().packet.flow).collect()
}

/// Keeps `backlog` packets of 1500 bytes of each flow in the queue for `time`, while the link takes one every
/// millisecond, or whenever the queue lets one go. Returns the bytes of each flow that left.
fn saturate(bench: &mut Bed, flows: u32, backlog: u32, time: Duration) -> Vec<u64> {
    let mut bytes = alloc::vec![0; flows as usize];
    (0..flows).for_each(|flow| arrive(bench, Time::ZERO, flow, 1500, backlog));
    let mut now = Time::ZERO;
    while now < Time::ZERO + time {
        let left = bench.leave(now);
        for Dropped { packet, .. } in core::mem::take(&mut bench.drops) {
            bench.arrive_as(now, packet);
        }
        match left {
            Some(left) => {
                bytes[left.packet.flow as usize] += u64::from(left.packet.size);
                bench.arrive_as(now, packet(left.packet.flow, 1500));
                if bench.queue.pace.is_none() {
                    now += Duration::from_millis(1);
                }
            }
            None => now = bench.queue.held_until(),
        }
    }
    bytes
}

#[test]
fn flows_take_turns_by_bytes() {
    let mut bench = cake(&[]);
    arrive(&mut bench, ms(0), 1, 1514, 4);
    arrive(&mut bench, ms(0), 2, 757, 8);
    assert_eq!(served(&mut bench, ms(0), 12), [1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2]);
}

#[test]
fn a_sparse_flow_leaves_before_the_bulk_ones_and_once_bulk_takes_its_turn() {
    let mut bench = cake(&[]);
    for flow in 1..=5 {
        arrive(&mut bench, ms(0), flow, 1514, 10);
    }
    served(&mut bench, ms(0), 7);
    for now in [1, 2, 3] {
        arrive(&mut bench, ms(now), 9, 200, 1);
        assert_eq!(served(&mut bench, ms(now), 1), [9]);
        served(&mut bench, ms(now), 5);
    }
    // It sends more than its quantum: the fourth packet of 600 bytes waits for its turn.
    arrive(&mut bench, ms(4), 9, 600, 4);
    let order = served(&mut bench, ms(4), 10);
    assert_eq!(order[..3], [9, 9, 9]);
    assert_eq!(order[3..].iter().filter(|flow| **flow == 9).count(), 1);
    assert_ne!(order[3], 9);
}

#[test]
fn a_host_with_one_flow_gets_as_much_as_one_with_twenty() {
    for (isolation, groups) in
        [("dual-srchost", "srchosts"), ("dual-dsthost", "dsthosts"), ("triple-isolate", "srchosts")]
    {
        let mut bench = cake(&[("isolation", isolation), (groups, "1/20")]);
        let bytes = saturate(&mut bench, 21, 30, Duration::from_secs(20));
        let alone = bytes[0] as f64 / bytes.iter().sum::<u64>() as f64;
        assert!((alone - 0.5).abs() < 0.025, "{isolation}: {alone}");
        // The twenty share alike.
        let (least, most) = (bytes[1..].iter().min().unwrap(), bytes[1..].iter().max().unwrap());
        assert!(*most as f64 / *least as f64 <= 1.1, "{least} to {most}");
    }
    let mut bench = cake(&[("isolation", "flows"), ("srchosts", "1/20")]);
    let bytes = saturate(&mut bench, 21, 30, Duration::from_secs(20));
    let alone = bytes[0] as f64 / bytes.iter().sum::<u64>() as f64;
    assert!((alone - 1.0 / 21.0).abs() < 0.005, "{alone}");
}

#[test]
fn triple_isolation_lets_neither_side_gain_by_many_flows() {
    // Ten flows of one source to ten destinations, one of another source to one of ten more destinations.
    let mut bench = cake(&[("srchosts", "10/1")]);
    let bytes = saturate(&mut bench, 11, 30, Duration::from_secs(20));
    let alone = bytes[10] as f64 / bytes.iter().sum::<u64>() as f64;
    assert!((alone - 0.5).abs() < 0.025, "{alone}");
    let mut bench = cake(&[("dsthosts", "10/1")]);
    let bytes = saturate(&mut bench, 11, 30, Duration::from_secs(20));
    let alone = bytes[10] as f64 / bytes.iter().sum::<u64>() as f64;
    assert!((alone - 0.5).abs() < 0.025, "{alone}");
}

#[test]
fn one_queue_holds_what_the_isolation_does_not_tell_apart() {
    let mut bench = cake(&[("isolation", "flowblind")]);
    arrive(&mut bench, ms(0), 1, 1500, 3);
    arrive(&mut bench, ms(0), 2, 1500, 3);
    assert_eq!(served(&mut bench, ms(0), 6), [1, 1, 1, 2, 2, 2]);
    let mut bench = cake(&[("isolation", "srchost"), ("srchosts", "2/1")]);
    (0..3).for_each(|flow| arrive(&mut bench, ms(0), flow, 1514, 2));
    assert_eq!(served(&mut bench, ms(0), 6), [0, 2, 0, 2, 1, 1]);
}

#[test]
fn the_shaper_keeps_its_rate_within_a_hundredth() {
    for (rate, seconds) in [("1Mbps", 60), ("20Mbps", 10), ("950Mbps", 1)] {
        for layer in ["raw", "docsis", "pppoa-vcmux", "pppoe-ptm"] {
            let mut bench = cake(&[("bandwidth", rate), ("link_layer", layer), ("ecn", "false")]);
            let time = Duration::from_secs(seconds);
            let bytes = saturate(&mut bench, 3, 100, time);
            let costs = bench.queue.costs;
            let cost = bytes.iter().map(|sum| sum / 1500 * u64::from(costs.of(1500))).sum::<u64>();
            let wanted = Config::from_options([("bandwidth", rate)]).unwrap().bandwidth.unwrap();
            let share = cost as f64 / wanted.bytes_in(time).0 as f64;
            assert!((share - 1.0).abs() < 0.01, "{rate}, {layer}: {share}");
        }
    }
}

#[test]
fn the_shaper_says_when_the_next_packet_is_due_and_saves_nothing_up() {
    let mut bench = cake(&[("bandwidth", "12Mbps")]);
    arrive(&mut bench, ms(10), 1, 1500, 3);
    assert_eq!(bench.queue.held_until(), ms(10));
    assert!(bench.leave(ms(10)).is_some());
    assert!(bench.leave(ms(10)).is_none());
    // 1500 bytes at 12 Mbit/s: a millisecond, which is rounded down to nanoseconds.
    let due = bench.queue.held_until();
    assert!(ms(11).since(due).as_nanos() <= 1, "{due:?}");
    assert!(bench.leave(due).is_some());
    // Served late, it catches up: the second packet was due at 12 ms, the third at 13.
    assert!(bench.leave(ms(14)).is_some());
    arrive(&mut bench, ms(14), 1, 1500, 2);
    assert!(bench.leave(ms(14)).is_some());
    assert!(bench.leave(ms(14)).is_none());
    assert!(bench.leave(ms(15)).is_some());
    // Idle time counts for nothing.
    arrive(&mut bench, ms(100), 1, 1500, 2);
    assert!(bench.leave(ms(100)).is_some());
    assert!(bench.leave(ms(100)).is_none());
}

#[test]
fn tins_go_first_up_to_their_thresholds() {
    // Voice, best effort and bulk, in diffserv3: a quarter, all, and a sixteenth.
    let mut bench = cake(&[("bandwidth", "16Mbps"), ("dscps", "ef/0/cs1"), ("diffserv", "diffserv3")]);
    let bytes = saturate(&mut bench, 3, 200, Duration::from_secs(20));
    let all = bytes.iter().sum::<u64>() as f64;
    let [voice, best_effort, bulk] = [0, 1, 2].map(|flow| bytes[flow] as f64 / all);
    assert!((voice - 0.25).abs() < 0.02, "voice: {voice}");
    assert!((bulk - 0.0625).abs() < 0.01, "bulk: {bulk}");
    assert!((best_effort - 0.6875).abs() < 0.02, "best effort: {best_effort}");
    // Video gets half in diffserv4, voice a quarter.
    let mut bench = cake(&[("bandwidth", "16Mbps"), ("dscps", "ef/0/af41"), ("diffserv", "diffserv4")]);
    let bytes = saturate(&mut bench, 3, 200, Duration::from_secs(20));
    let all = bytes.iter().sum::<u64>() as f64;
    let [voice, best_effort, video] = [0, 1, 2].map(|flow| bytes[flow] as f64 / all);
    assert!((voice - 0.25).abs() < 0.02 && (video - 0.5).abs() < 0.02, "{voice}, {video}");
    assert!((best_effort - 0.25).abs() < 0.02, "{best_effort}");
}

#[test]
fn without_a_shaper_tins_share_by_weight() {
    let mut bench = cake(&[("dscps", "ef/0/cs1"), ("diffserv", "diffserv3")]);
    let bytes = saturate(&mut bench, 3, 100, Duration::from_secs(60));
    let all = bytes.iter().sum::<u64>() as f64;
    let [voice, best_effort, bulk] = [0, 1, 2].map(|flow| bytes[flow] as f64 / all);
    // 256, 1024 and 64 parts of 1344.
    assert!((voice - 0.190).abs() < 0.01, "{voice}");
    assert!((best_effort - 0.762).abs() < 0.01, "{best_effort}");
    assert!((bulk - 0.048).abs() < 0.01, "{bulk}");
}

#[test]
fn a_tin_that_is_alone_gets_all() {
    let mut bench = cake(&[("bandwidth", "16Mbps"), ("dscps", "cs1")]);
    let bytes = saturate(&mut bench, 1, 200, Duration::from_secs(5));
    assert!((bytes[0] as f64 / 10e6 - 1.0).abs() < 0.01, "{bytes:?}");
}

#[test]
fn the_memory_limit_costs_the_flow_that_holds_most_its_head() {
    let mut bench = cake(&[("memory_limit", "30kB")]);
    arrive(&mut bench, ms(0), 1, 1500, 12);
    arrive(&mut bench, ms(0), 2, 1500, 8);
    assert!(bench.dropped().is_empty());
    arrive(&mut bench, ms(0), 2, 1000, 1);
    assert_eq!(bench.dropped(), [0]);
    assert_eq!(bench.queue.backlog(), Backlog { packets: 20, bytes: Bytes(29_500) });
    // A packet more than fits costs the longest queue, even if another flow brings it.
    arrive(&mut bench, ms(0), 3, 700, 1);
    assert_eq!(bench.dropped(), [1]);
}

#[test]
fn memory_follows_bandwidth_and_rtt() {
    let most =
        |options: &[(&str, &str)]| Config::from_options(options.iter().copied()).unwrap().most_memory().0;
    assert_eq!(most(&[]), 10_240 * 1514);
    assert_eq!(most(&[("bandwidth", "10Mbps")]), 4 << 20);
    // 4 x 12.5 MB/s x 0.1 s.
    assert_eq!(most(&[("bandwidth", "100Mbps")]), 5_000_000);
    assert_eq!(most(&[("bandwidth", "1Gbps")]), 10_240 * 1514);
    assert_eq!(most(&[("bandwidth", "1Gbps"), ("memory_limit", "64MB")]), 64_000_000);
}

#[test]
fn capable_packets_are_marked_others_dropped_and_the_last_is_kept() {
    let run = |ecn: Ecn, options: &[(&str, &str)]| {
        let mut bench = cake(options);
        let (mut marked, mut dropped) = (0, 0);
        for now in 0..3000 {
            let encoding = if ecn == Ecn::NotEct { Encoding::None } else { Encoding::Classic };
            for _ in 0..if now < 50 { 2 } else { 1 } {
                bench.arrive_as(ms(now), Sample { ecn, encoding, ..Sample::new(0, 1500) });
            }
            marked += u32::from(bench.leave(ms(now)).is_some_and(|left| left.mark == Mark::Ce));
            dropped += bench.dropped().len();
        }
        (marked, dropped)
    };
    let (marked, dropped) = run(Ecn::Ect0, &[]);
    assert!(marked > 100 && dropped == 0, "{marked}, {dropped}");
    // Each drop takes a packet off the queue: once fifty are gone nothing stands.
    let (marked, dropped) = run(Ecn::NotEct, &[]);
    assert!(marked == 0 && (40..60).contains(&dropped), "{marked}, {dropped}");
    let (marked, dropped) = run(Ecn::Ect0, &[("ecn", "false")]);
    assert!(marked == 0 && (40..60).contains(&dropped), "{marked}, {dropped}");
    // A packet alone in its queue for a second, many times over.
    let mut bench = cake(&[]);
    for second in 0..50 {
        bench.arrive_as(ms(1000 * second), Sample::new(0, 1500));
        assert!(bench.leave(ms(1000 * second + 900)).is_some());
    }
    assert!(bench.dropped().is_empty());
}

/// No packet.
const NONE: [u64; 0] = [];

/// A pure ACK of flow 1 up to so many segments.
fn ack(cumulative: u32) -> Sample {
    let blocks = [Block::default(); 3];
    let says = Acknowledgement { cumulative, blocks, echo: 0, replaceable: true };
    Sample { flow: 1, ack: true, acknowledgement: Some(says), ..Sample::new(0, 60) }
}

fn with(sample: Sample, change: impl FnOnce(&mut Acknowledgement)) -> Sample {
    let mut says = sample.acknowledgement.unwrap();
    change(&mut says);
    Sample { acknowledgement: Some(says), ..sample }
}

/// The ids that the filter drops, and those that leave.
fn filtered(filter: &str, packets: &[Sample]) -> (Vec<u64>, Vec<u64>) {
    let mut bench = cake(&[("ack_filter", filter)]);
    packets.iter().for_each(|packet| {
        bench.arrive_as(ms(0), *packet);
    });
    let dropped = bench.dropped();
    let left = core::iter::from_fn(|| bench.leave(ms(0))).map(|left| left.packet.id).collect();
    (dropped, left)
}

#[test]
fn the_filter_keeps_the_newest_ack_and_one_before_it() {
    let acks: Vec<Sample> = (1..=6).map(ack).collect();
    assert_eq!(filtered("off", &acks), (NONE.into(), (0..6).collect()));
    assert_eq!(filtered("on", &acks), ([0, 1, 2, 3].into(), [4, 5].into()));
    assert_eq!(filtered("aggressive", &acks), ([0, 1, 2, 3, 4].into(), [5].into()));
}

#[test]
fn the_filter_drops_no_data_and_no_duplicate_acks() {
    let data = |cumulative| Sample { ack: false, size: 1500, ..ack(cumulative) };
    let (dropped, left) = filtered("aggressive", &[data(1), data(2), data(3), ack(4)]);
    assert_eq!((dropped.len(), left.len()), (0, 4));
    // Data acknowledges, too: it makes ACKs before it superfluous.
    assert_eq!(filtered("on", &[ack(1), ack(2), data(3)]).0, [0]);
    // Three duplicates tell of a loss.
    assert_eq!(filtered("aggressive", &[ack(7), ack(7), ack(7), ack(7)]).0, NONE);
    // Another flow's are not compared with it.
    let other = Sample { flow: 2, ..ack(9) };
    let one_queue = {
        let mut bench = cake(&[("ack_filter", "aggressive"), ("isolation", "flowblind")]);
        for packet in [ack(1), other, ack(1), other] {
            bench.arrive_as(ms(0), packet);
        }
        bench.dropped()
    };
    assert_eq!(one_queue, NONE);
}

#[test]
fn the_filter_lets_changes_of_the_ecn_flags_pass() {
    let echo = |cumulative| with(ack(cumulative), |says| says.echo = 1);
    // 2 is not eligible once 3 follows with other flags; 3 and 4 are alike.
    assert_eq!(filtered("on", &[ack(1), ack(2), echo(3), echo(4), echo(5)]).0, [0, 2]);
    assert_eq!(filtered("aggressive", &[ack(1), echo(2)]).0, NONE);
}

#[test]
fn the_filter_keeps_what_the_newer_ack_does_not_say() {
    let sacks =
        |cumulative, ahead, length| with(ack(cumulative), |says| says.blocks[0] = Block { ahead, length });
    // A block that grows is covered; one that went away is not.
    assert_eq!(filtered("aggressive", &[sacks(1, 2, 1), sacks(1, 2, 2)]).0, [0]);
    assert_eq!(filtered("aggressive", &[sacks(1, 2, 1), sacks(2, 1, 2)]).0, [0]);
    assert_eq!(filtered("aggressive", &[sacks(1, 2, 3), sacks(2, 4, 9)]).0, NONE);
    assert_eq!(filtered("aggressive", &[sacks(1, 2, 1), ack(5)]).0, NONE);
    let kept = with(ack(1), |says| says.replaceable = false);
    assert_eq!(filtered("aggressive", &[kept, ack(2), ack(3)]).0, [1]);
    // Older than what waits, and across the wrap.
    assert_eq!(filtered("aggressive", &[ack(5), ack(4)]).0, NONE);
    assert_eq!(filtered("aggressive", &[ack(u32::MAX), ack(2)]).0, [0]);
}

#[test]
fn on_ingress_drops_are_charged_to_the_shaper() {
    let left = |ingress: &str| {
        let options = [("bandwidth", "12Mbps"), ("ingress", ingress), ("ecn", "false"), ("rtt", "20ms")];
        let mut bench = cake(&options);
        saturate(&mut bench, 2, 50, Duration::from_secs(10)).iter().sum::<u64>()
    };
    let (egress, ingress) = (left("false"), left("true"));
    // Drops take what would have left: most of it, as nobody slows down.
    assert!(egress > 14_900_000 && ingress < egress * 9 / 10, "{egress}, {ingress}");
}

#[test]
fn contradictions_and_bad_values_are_refused_with_what_would_be_valid() {
    let refusal = |name, value| Config::from_options([(name, value)]).unwrap_err().to_string();
    assert_eq!(refusal("overhead", "300"), "overhead = `300` is out of range: valid is -64 to 256, or none");
    assert_eq!(refusal("mpu", "-1"), "mpu = `-1` is not a whole number, or `none`");
    assert_eq!(
        refusal("srchosts", "0/2"),
        "srchosts = `0/2` is not numbers of flows, 1 to 65536, with `/` between them, or `none`"
    );
    assert!(refusal("dscps", "gold").contains("each a name such as `cs1`"));
    assert!(refusal("isolation", "triple").contains("triple-isolate"));
}
