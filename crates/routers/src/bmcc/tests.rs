use std::vec::Vec;

use brakelight_core::parameters::Parameters;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

/// A router on 12 Mbit/s after an interval in which `percent` of that arrived, gamma being 1 unless said.
fn loaded(percent: u64, options: &[(&str, &str)]) -> Bench<Bmcc<Sample>> {
    let config = Config::from_options([("gamma", "1")].iter().chain(options).copied()).unwrap();
    let mut bench = Bench::new(Bmcc::new(&config, &place(1000)), Rate::from_mbps(12));
    // 200 packets of 1500 bytes are 100 %.
    for packet in 0..2 * percent {
        bench.arrive_as(ms(packet * 100 / percent), Sample::new(0, 1500));
        bench.leave(ms(packet * 100 / percent));
    }
    assert_eq!(bench.link.capacity, Rate::from_mbps(12));
    bench
}

/// What becomes of a packet.
fn pass(bench: &mut Bench<Bmcc<Sample>>, encoding: Encoding, ecn: Ecn) -> (u64, Ecn, Mark) {
    let id = bench.arrive(ms(201), encoding, ecn);
    let left = bench.leave(ms(201)).unwrap();
    (id, left.packet.ecn, left.mark)
}

/// B-U6: the share of marked packets follows from the bands of the hash.
#[test]
fn marks_the_packets_whose_hash_lies_below_the_load() {
    for (percent, share) in [(45, 0.125), (80, 0.25 + 0.05), (110, 0.75)] {
        let mut bench = loaded(percent, &[]);
        let marked = (0..4096)
            .filter(|_| {
                let (id, ecn, mark) = pass(&mut bench, Encoding::Bmcc, Ecn::Ect0);
                let h = bench.queue.layout.hash(id as u16);
                assert_eq!((ecn == Ecn::Ect1, mark), (percent as f64 / 100.0 > h, Mark::None), "{h}");
                ecn == Ecn::Ect1
            })
            .count();
        assert!((marked as f64 / 4096.0 - share).abs() < 0.002, "{percent} %: {marked}");
    }
}

#[test]
fn marks_follow_the_load_from_one_interval_to_the_next() {
    let mut bench = loaded(45, &[]);
    let mut loads = Vec::new();
    for (arrivals, checked_at) in [(0, 201), (128, 401), (10, 601)] {
        for packet in 0..arrivals {
            let at = ms(checked_at - 200 + packet);
            bench.arrive_as(at, Sample::new(0, 1500));
            bench.leave(at);
        }
        for _ in 0..32 {
            let id = bench.arrive(ms(checked_at), Encoding::Bmcc, Ecn::Ect0);
            let left = bench.leave(ms(checked_at)).unwrap();
            let f = bench.queue.measured.load();
            let h = bench.queue.layout.hash(id as u16);
            assert_eq!(left.packet.ecn == Ecn::Ect1, f > h, "{f} {h}");
            loads.push(f);
        }
    }
    loads.dedup();
    assert!(matches!(loads[..], [a, b, c] if a < b && c < b), "{loads:?}");
}

/// B-U2: at f >= u every flow hears of it on every packet.
#[test]
fn severe_overload_marks_every_packet_ce() {
    let mut bench = loaded(120, &[]);
    for _ in 0..100 {
        for (encoding, ecn) in
            [(Encoding::Bmcc, Ecn::Ect0), (Encoding::Bmcc, Ecn::Ect1), (Encoding::Classic, Ecn::Ect0)]
        {
            let (_, ecn, mark) = pass(&mut bench, encoding, ecn);
            assert_eq!((ecn, mark), (Ecn::Ce, Mark::Ce));
        }
        assert_eq!(pass(&mut bench, Encoding::None, Ecn::NotEct).1, Ecn::NotEct);
    }
}

#[test]
fn what_upstream_routers_said_is_kept() {
    for percent in [1, 60, 119] {
        let mut bench = loaded(percent, &[]);
        for _ in 0..64 {
            assert_eq!(pass(&mut bench, Encoding::Bmcc, Ecn::Ect1).1, Ecn::Ect1);
            let (_, ecn, mark) = pass(&mut bench, Encoding::Bmcc, Ecn::Ce);
            assert_eq!((ecn, mark), (Ecn::Ce, Mark::None));
        }
    }
}

#[test]
fn an_ordinary_ecn_flow_sees_no_bound() {
    let mut bench = loaded(110, &[]);
    for _ in 0..64 {
        assert_eq!(pass(&mut bench, Encoding::Classic, Ecn::Ect0).1, Ecn::Ect0);
    }
}

/// bmcc VI: with an AQM's meaning of 11 the load factor marks none, and an average queue does.
#[test]
fn beside_tcp_11_is_red_s() {
    let mut bench = loaded(150, &[("coexist", "true")]);
    for _ in 0..64 {
        // Every hash lies below 1.5.
        assert_eq!(pass(&mut bench, Encoding::Bmcc, Ecn::Ect0).1, Ecn::Ect1);
    }
    // 30 packets wait: above 3 * 7500 bytes once the average has followed.
    for _ in 0..30 {
        bench.arrive(ms(202), Encoding::Bmcc, Ecn::Ect0);
    }
    bench.arrive(ms(1200), Encoding::Bmcc, Ecn::Ect0);
    assert_eq!(bench.leave(ms(1200)).unwrap().packet.ecn, Ecn::Ce);
    // What cannot be marked is dropped before it waits.
    let id = bench.arrive(ms(1201), Encoding::None, Ecn::NotEct);
    assert_eq!(bench.dropped(), [id]);
}

/// 12 Mbit/s and 5 ms: the thresholds are five packets and three times as much. floyd93 4: p_b is 0.05
/// halfway; the packet after a mark counts already, so the gaps between marks are uniform from 1 to 19.
#[test]
fn red_spreads_its_marks_evenly() {
    let mut red = red(&Config::default(), &place(10));
    let mut chooses = |average: f64| red.judge(average) != Verdict::Admit;
    let mut gaps: Vec<u32> = Vec::new();
    let mut gap = 0;
    for _ in 0..200_000 {
        gap += 1;
        if chooses(15_000.0) {
            gaps.push(core::mem::take(&mut gap));
        }
    }
    let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 10.0).abs() < 0.2, "{mean}");
    assert_eq!(gaps[1..].iter().max(), Some(&19));
    assert!(!chooses(7_499.0) && chooses(22_500.0));
}
