use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::Parameters;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, ms, place};

fn codel(options: &[(&str, &str)]) -> Bench<CoDel<Sample>> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(CoDel::new(&config, &place(1000)), Rate::from_mbps(12))
}

/// Keeps `waiting` packets that are `age` old in the queue and takes one out each millisecond in `from..to`:
/// the milliseconds at which packets were dropped, one entry each.
fn drops_while_standing(bench: &mut Bench<CoDel<Sample>>, from: u64, to: u64) -> Vec<u64> {
    let mut at = Vec::new();
    for now in from..to {
        bench.arrive(ms(now), Encoding::None, Ecn::NotEct);
        bench.leave(ms(now)).unwrap();
        let dropped = bench.dropped().len();
        at.extend(vec![now; dropped]);
        for _ in 0..dropped {
            bench.arrive(ms(now), Encoding::None, Ecn::NotEct);
        }
    }
    at
}

/// Thirty packets that arrived at `now`: with one more and one less each millisecond, a sojourn of 30 ms.
fn thirty(bench: &mut Bench<CoDel<Sample>>, now: u64) {
    for _ in 0..30 {
        bench.arrive(ms(now), Encoding::None, Ecn::NotEct);
    }
}

#[test]
fn drops_are_spaced_by_the_interval_over_the_square_root_of_their_number() {
    let mut bench = codel(&[]);
    thirty(&mut bench, 0);
    let at = drops_while_standing(&mut bench, 0, 700);
    // The sojourn time reaches 5 ms at 5 ms, has been there for an interval at 105 ms. Then the sum over n of
    // 100 / sqrt(n) ms: 205, 275.7, 333.4, 383.4, 428.2, 469.0, 506.8, 542.1, 575.5, 607.1, 637.2, 666.1,
    // 693.8; the packet that leaves in the next whole millisecond goes.
    let mut due = 105.0;
    let mut expected = vec![105];
    for n in 1..14 {
        due += 100.0 / libm::sqrt(f64::from(n));
        expected.push(libm::ceil(due) as u64);
    }
    assert_eq!(at, expected);
    assert_eq!(&at[..5], [105, 205, 276, 334, 384]);
}

#[test]
fn a_sojourn_time_below_the_target_ends_the_dropping_state_at_once() {
    let mut bench = codel(&[]);
    thirty(&mut bench, 0);
    drops_while_standing(&mut bench, 0, 300);
    assert_eq!(bench.shown("dropping"), 1.0);
    while bench.queue.backlog().packets > 0 {
        bench.leave(ms(300));
    }
    bench.dropped();
    assert_eq!(bench.shown("dropping"), 0.0);
    // Nothing is dropped for an interval, however late the packets are.
    thirty(&mut bench, 301);
    for now in 350..450 {
        bench.leave(ms(now)).map(|_| bench.arrive(ms(now - 40), Encoding::None, Ecn::NotEct));
        assert!(bench.dropped().is_empty());
    }
    bench.leave(ms(450));
    assert_eq!(bench.dropped().len(), 1);
}

#[test]
fn entering_again_soon_goes_on_from_the_number_that_drops_had_risen_to() {
    for (pause, count) in [(200, 4), (2000, 1)] {
        let mut bench = codel(&[]);
        thirty(&mut bench, 0);
        // Drops at 105 (n = 1), 205 (2), 276 (3), 334 (4), 384 (5).
        assert_eq!(drops_while_standing(&mut bench, 0, 390).len(), 5);
        assert_eq!(bench.shown("drops_in_a_row"), 5.0);
        while bench.leave(ms(390)).is_some() {}
        bench.dropped();
        let again = 390 + pause;
        thirty(&mut bench, again);
        let at = drops_while_standing(&mut bench, again, again + 110);
        // 5 - 1 = 4 drops beyond the first: n starts at 4 if the last drop was due less than 1600 ms ago.
        assert_eq!(at, [again + 105]);
        assert_eq!(bench.shown("drops_in_a_row"), f64::from(count));
    }
}

#[test]
fn one_packet_behind_the_head_is_never_dropped_from() {
    let mut bench = codel(&[]);
    for now in 0..50 {
        bench.arrive(ms(10 * now), Encoding::None, Ecn::NotEct);
        bench.arrive(ms(10 * now), Encoding::None, Ecn::NotEct);
        // Two packets, each 500 ms late: no more than an MTU is ever left behind.
        bench.leave(ms(10 * now + 500)).unwrap();
        bench.leave(ms(10 * now + 500)).unwrap();
        assert!(bench.dropped().is_empty());
    }
}

#[test]
fn the_head_is_dropped_and_the_next_delivered() {
    let mut bench = codel(&[]);
    for _ in 0..10 {
        bench.arrive(ms(0), Encoding::None, Ecn::NotEct);
    }
    assert_eq!(bench.leave(ms(10)).unwrap().packet.id, 0);
    let second = bench.leave(ms(110)).unwrap();
    assert_eq!((second.packet.id, bench.dropped()), (2, vec![1]));
}

#[test]
fn behind_head_drops_the_second_and_delivers_the_first_as_mahimahi_does() {
    let mut bench = codel(&[("drop", "behind-head")]);
    for _ in 0..10 {
        bench.arrive(ms(0), Encoding::None, Ecn::NotEct);
    }
    assert_eq!(bench.leave(ms(10)).unwrap().packet.id, 0);
    let second = bench.leave(ms(110)).unwrap();
    assert_eq!((second.packet.id, bench.dropped()), (1, vec![2]));
    // Due next at 210 ms.
    assert_eq!(bench.leave(ms(209)).unwrap().packet.id, 3);
    assert_eq!(bench.leave(ms(210)).unwrap().packet.id, 4);
    assert_eq!(bench.dropped(), [5]);
    // 210 + 70.7 and 280.7 + 57.7 are both past at 400: two of the three left behind the head would go, but
    // once no more than an MTU is left behind the one that was taken out last, dropping ends.
    assert_eq!(bench.leave(ms(400)).unwrap().packet.id, 6);
    assert_eq!(bench.dropped(), [7, 8]);
    assert_eq!(bench.leave(ms(400)).unwrap().packet.id, 9);
    assert_eq!(bench.shown("dropping"), 0.0);
}

#[test]
fn several_drops_that_are_due_happen_in_one_dequeue() {
    let mut bench = codel(&[]);
    for _ in 0..20 {
        bench.arrive(ms(0), Encoding::None, Ecn::NotEct);
    }
    bench.leave(ms(10));
    bench.leave(ms(110));
    bench.dropped();
    // Due at 210, 280.7, 338.4, 388.4, 433.1: all five are past at 434, the next one at 473.9 is not.
    let next = bench.leave(ms(434)).unwrap();
    assert_eq!((next.packet.id, bench.dropped()), (8, vec![3, 4, 5, 6, 7]));
}

#[test]
fn with_ecn_capable_packets_are_marked_and_the_others_dropped() {
    let mut bench = codel(&[("ecn", "true")]);
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0] {
        bench.arrive(ms(0), Encoding::Classic, ecn);
    }
    bench.leave(ms(10));
    let marked = bench.leave(ms(110)).unwrap();
    assert_eq!((marked.packet.id, marked.packet.ecn, marked.mark), (1, Ecn::Ce, Mark::Ce));
    assert!(bench.dropped().is_empty());
    // The next is due at 210: packet 2 cannot be marked and goes, packet 3 takes its place; the one after is
    // due at 280.7 and not yet.
    let next = bench.leave(ms(210)).unwrap();
    assert_eq!((next.packet.id, next.mark, bench.dropped()), (3, Mark::None, vec![2]));
}

#[test]
fn behind_an_abc_proxy_ce_means_brake_so_the_packet_is_dropped() {
    let mut bench = codel(&[("ecn", "true")]);
    for _ in 0..5 {
        bench.arrive(ms(0), Encoding::AbcProxied, Ecn::Ect1);
    }
    bench.leave(ms(10));
    assert_eq!(bench.leave(ms(110)).unwrap().mark, Mark::None);
    assert_eq!(bench.dropped(), [1]);
}

#[test]
fn marking_what_mahimahi_would_drop_is_refused() {
    let refused = Config::from_options([("ecn", "true"), ("drop", "behind-head")]).unwrap_err();
    assert!(refused.to_string().contains("ecn needs drop=head"), "{refused}");
}

/// The link takes 20 packets every 20 ms, and 20 come 1 ms after it did: all wait for 19 ms at least. With
/// six that are always left behind, a third of a burst, most of a burst came after the one before.
#[test]
fn waiting_for_the_next_burst_is_no_delay_with_standing() {
    for (options, standing, dropped) in [
        (&[][..], 6, true),
        (&[("delay", "standing")][..], 6, false),
        (&[("delay", "standing")][..], 30, true),
    ] {
        let mut bench = codel(options);
        thirty(&mut bench, 0);
        for _ in standing..30 {
            bench.leave(ms(0));
        }
        let mut drops = 0;
        for burst in 1..=20 {
            for _ in 0..20 {
                bench.arrive(ms(20 * burst - 19), Encoding::None, Ecn::NotEct);
            }
            for _ in 0..20 {
                bench.leave(ms(20 * burst));
            }
            drops += bench.dropped().len();
        }
        assert_eq!(drops > 0, dropped, "{options:?} behind {standing} packets: {drops} drops");
    }
}
