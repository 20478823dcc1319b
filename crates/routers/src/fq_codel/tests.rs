use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::Parameters;
use brakelight_core::random::Random;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

fn fq_codel_within(options: &[(&str, &str)], packets: u32) -> Bench<FqCoDel<Sample>> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(FqCoDel::new(&config, &place(packets)), Rate::from_mbps(12))
}

fn fq_codel(options: &[(&str, &str)]) -> Bench<FqCoDel<Sample>> {
    fq_codel_within(options, 1000)
}

fn arrive(bench: &mut Bench<FqCoDel<Sample>>, now: u64, flow: u32, size: u32, count: u32) {
    for _ in 0..count {
        let packet = Sample { flow, encoding: Encoding::Classic, ecn: Ecn::Ect0, ..Sample::new(0, size) };
        bench.arrive_as(ms(now), packet);
    }
}

/// The flows of the next packets.
fn served(bench: &mut Bench<FqCoDel<Sample>>, now: u64, count: usize) -> Vec<u32> {
    (0..count).map(|_| bench.leave(ms(now)).unwrap().packet.flow).collect()
}

#[test]
fn flows_take_turns_by_bytes() {
    let mut bench = fq_codel(&[]);
    arrive(&mut bench, 0, 1, 1500, 4);
    arrive(&mut bench, 0, 2, 500, 12);
    // One quantum is one large packet or three small ones. A flow that has used up its quantum gets the next
    // one when its turn comes, and goes to the end of the list with it.
    assert_eq!(served(&mut bench, 0, 16), [1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2]);
}

#[test]
fn a_flow_that_comes_anew_is_served_before_those_that_stand() {
    let mut bench = fq_codel(&[]);
    for flow in 1..=5 {
        arrive(&mut bench, 0, flow, 1500, 10);
    }
    served(&mut bench, 0, 7);
    // Every time its packet is the next to leave, though fifty wait.
    for now in [1, 2, 3] {
        arrive(&mut bench, now, 9, 200, 1);
        assert_eq!(served(&mut bench, now, 1), [9]);
        served(&mut bench, now, 5);
    }
}

#[test]
fn a_new_flow_that_has_sent_its_quantum_waits_a_turn_of_the_others() {
    let mut bench = fq_codel(&[]);
    arrive(&mut bench, 0, 1, 1500, 10);
    arrive(&mut bench, 0, 2, 1500, 10);
    served(&mut bench, 0, 4);
    arrive(&mut bench, 0, 9, 1500, 1);
    assert_eq!(served(&mut bench, 0, 1), [9]);
    // It comes back at once, but goes behind the old ones. Of these 2 has just used up its quantum and goes
    // behind it.
    arrive(&mut bench, 0, 9, 1500, 1);
    assert_eq!(served(&mut bench, 0, 3), [1, 9, 2]);
}

#[test]
fn codel_acts_on_each_flow_by_itself() {
    let mut bench = fq_codel(&[("ecn", "false")]);
    // Flow 1 keeps thirty packets in its queue, flow 2 one at a time: both get half of a packet per
    // millisecond.
    arrive(&mut bench, 0, 1, 1500, 30);
    let mut dropped = vec![];
    for now in 0..1000 {
        if now % 4 == 0 {
            arrive(&mut bench, now, 2, 1500, 1);
        }
        if bench.leave(ms(now)).unwrap().packet.flow == 1 {
            arrive(&mut bench, now, 1, 1500, 1);
        }
        for drop in bench.drops.drain(..) {
            dropped.push(drop.packet.flow);
        }
        while bench.queue.backlog().packets < 30 {
            arrive(&mut bench, now, 1, 1500, 1);
        }
    }
    assert!(dropped.len() > 5, "{dropped:?}");
    assert!(dropped.iter().all(|flow| *flow == 1), "{dropped:?}");
}

#[test]
fn a_full_buffer_drops_half_of_the_fattest_flow_from_its_head() {
    let mut bench = fq_codel_within(&[], 50);
    arrive(&mut bench, 0, 1, 1000, 30);
    arrive(&mut bench, 0, 2, 1500, 20);
    // 20 of 1500 bytes and 30 of 1000 are 30 kB each. One more of flow 2 is one packet too many, and makes it
    // the fattest: 31.5 kB, half of which are 11 packets of 1500. Its packets have the ids from 30 on.
    arrive(&mut bench, 1, 2, 1500, 1);
    assert_eq!(bench.dropped(), (30..41).collect::<Vec<u64>>());
    assert_eq!(bench.queue.backlog(), Backlog { packets: 40, bytes: Bytes(30_000 + 10 * 1500) });
    // No more than a batch at once.
    let mut bench = fq_codel_within(&[("drop_batch", "4")], 50);
    arrive(&mut bench, 0, 1, 1000, 51);
    assert_eq!(bench.dropped(), [0, 1, 2, 3]);
    // By default that is 64.
    let mut bench = fq_codel_within(&[], 500);
    arrive(&mut bench, 0, 1, 1000, 501);
    assert_eq!(bench.dropped().len(), 64);
}

#[test]
fn memory_is_limited_beside_packets() {
    let mut bench = fq_codel(&[("memory_limit", "10kB")]);
    arrive(&mut bench, 0, 1, 1000, 11);
    // 11 kB, half of which are six packets.
    assert_eq!(bench.dropped().len(), 6);
}

#[test]
fn capable_packets_are_marked_by_default() {
    let mut bench = fq_codel(&[]);
    arrive(&mut bench, 0, 1, 1500, 10);
    served(&mut bench, 10, 1);
    let left = bench.leave(ms(110)).unwrap();
    assert_eq!((left.packet.ecn, left.mark, bench.dropped()), (Ecn::Ce, Mark::Ce, vec![]));
}

#[test]
fn beyond_the_ce_threshold_every_capable_packet_is_marked() {
    let mut bench = fq_codel(&[("ce_threshold", "3ms")]);
    arrive(&mut bench, 0, 1, 1500, 10);
    assert_eq!(bench.leave(ms(3)).unwrap().mark, Mark::None);
    for _ in 0..5 {
        assert_eq!(bench.leave(ms(4)).unwrap().mark, Mark::Ce);
    }
}

#[test]
fn the_perturbation_decides_which_flows_share_a_queue() {
    let places = |seed| {
        let config = Config::default();
        let place = Place { random: Random::stream(seed, "queue"), ..place(10) };
        let queue = FqCoDel::<Sample>::new(&config, &place);
        (0..2000).map(|flow| queue.place_of(FlowId(flow))).collect::<Vec<_>>()
    };
    assert_eq!(places(1), places(1));
    assert_ne!(places(1), places(2));
    // 2000 flows over 1024 queues: about exp(-2000 / 1024), that is 14 %, stay empty.
    let mut used = places(1);
    assert!(used.iter().all(|place| *place < 1024));
    used.sort_unstable();
    used.dedup();
    let empty = 1.0 - used.len() as f64 / 1024.0;
    assert!((0.11..0.17).contains(&empty), "{empty}");
}
