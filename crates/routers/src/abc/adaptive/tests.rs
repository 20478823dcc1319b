use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::parameters::Parameters;
use brakelight_core::queue::Queue;
use brakelight_core::time::Time;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use crate::abc::{Abc, Config};
use crate::scripted::{Bench, ms, place};

fn adaptive(options: &[(&str, &str)]) -> Bench<Abc<Sample>> {
    let options = [("variant", "adaptive")].into_iter().chain(options.iter().copied());
    let config = Config::from_options(options).unwrap();
    Bench::new(Abc::new(&config, &place(10_000)), Rate::from_mbps(12))
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn what_the_link_serves_in_a_loop_delay_is_ordered_and_a_surplus_is_taken_back() {
    // mu = 1.5e6 bytes/s, tau = 40 ms, delta = 28 ms: O* = 1.5e6 * 0.04 = 60,000 bytes.
    let mut bench = adaptive(&[("loop_delay", "40ms")]);
    bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(0)).unwrap();
    near(bench.shown("target_rate_bps"), 8.0 * (1.5e6 + 60_000.0 / 0.028));
    let mut bench = adaptive(&[("loop_delay", "40ms")]);
    for _ in 0..101 {
        bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    }
    // 100 packets behind the one that leaves: 90,000 bytes too many.
    bench.leave(ms(0)).unwrap();
    near(bench.shown("target_rate_bps"), 8.0 * (1.5e6 - 90_000.0 / 0.028));
    near(bench.shown("f"), 1.0 / 16.0);
}

#[test]
fn what_is_ordered_beyond_the_link_s_rate_finds_room_in_the_buffer() {
    let config = Config::from_options([("variant", "adaptive"), ("loop_delay", "40ms")]).unwrap();
    let mut bench = Bench::new(Abc::new(&config, &place(10)), Rate::from_mbps(12));
    bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(0)).unwrap();
    // 15,000 bytes within 40 ms, where delta alone would have 60,000 within 28 ms.
    near(bench.shown("target_rate_bps"), 8.0 * (1.5e6 + 15_000.0 / 0.04));
    for _ in 0..5 {
        bench.arrive(ms(1), Encoding::Abc, Ecn::Ect1);
    }
    bench.leave(ms(1)).unwrap();
    near(bench.shown("target_rate_bps"), 8.0 * (1.5e6 + 9_000.0 / 0.04));
}

/// A flight of 30 packets leaves within 30 ms, of a link that serves one in a millisecond. Its first packets
/// would all be accelerates: cr is not yet what leaves.
#[test]
fn a_flight_orders_no_longer_a_queue_than_the_buffer_holds() {
    for (buffer, accelerates) in [(10, 18), (20, 22), (10_000, 29)] {
        let config = Config::from_options([("variant", "adaptive"), ("loop_delay", "100ms")]).unwrap();
        let mut bench = Bench::new(Abc::new(&config, &place(buffer)), Rate::from_mbps(12));
        let (mut ordered, mut queue, mut longest) = (0, 0, 0);
        for packet in 0..30 {
            bench.arrive(ms(packet), Encoding::Abc, Ecn::Ect1);
            if bench.leave(ms(packet)).unwrap().mark == Mark::Accelerate {
                ordered += 1;
                queue += 2;
            }
            longest = longest.max(queue);
            queue = (queue - 1).max(0);
            assert!(bench.shown("to_wait_bytes") <= 7.0 / 8.0 * f64::from(buffer) * 1500.0);
        }
        // Of 20 packets 17 may be ordered: the second to the 17th packet are accelerates, then every second.
        assert_eq!(ordered, accelerates, "a buffer of {buffer}");
        assert!(8 * longest <= 7 * buffer as i32, "{longest} packets come to a buffer of {buffer}");
    }
}

/// Two packets do not fit into seven eighths of two. A router that braked all would be left by its senders.
#[test]
fn a_buffer_of_two_packets_has_accelerates() {
    let config = Config::from_options([("variant", "adaptive"), ("loop_delay", "40ms")]).unwrap();
    let mut bench = Bench::new(Abc::new(&config, &place(2)), Rate::from_mbps(12));
    let mut accelerates = 0;
    for packet in 0..30 {
        bench.arrive(ms(packet), Encoding::Abc, Ecn::Ect1);
        accelerates += u32::from(bench.leave(ms(packet)).unwrap().mark == Mark::Accelerate);
    }
    assert!(accelerates >= 10, "{accelerates}");
}

/// A link that stops serves nothing of what was ordered. One tau later that has come, or never will.
#[test]
fn orders_older_than_the_loop_need_no_room() {
    let config = Config::from_options([("variant", "adaptive"), ("loop_delay", "10ms")]).unwrap();
    let mut bench = Bench::new(Abc::new(&config, &place(40)), Rate::from_mbps(12));
    for packet in 0..8 {
        bench.arrive(ms(packet), Encoding::Abc, Ecn::Ect1);
        bench.leave(ms(packet)).unwrap();
    }
    // Seven accelerates brought fourteen packets. Six of them were served.
    near(bench.shown("to_wait_bytes"), 8.0 * 1500.0);
    bench.link.capacity = Rate::from_bps(1000);
    bench.arrive(ms(100), Encoding::None, Ecn::NotEct);
    bench.leave(ms(100)).unwrap();
    near(bench.shown("to_wait_bytes"), 0.0);
}

#[test]
fn the_cushion_grows_with_the_loop_s_delay_up_to_110_ms_and_then_falls() {
    for (tau_s, share) in
        [(0.002, 0.7), (0.07, 0.7), (0.1, 1.0), (0.11, 1.1), (0.15, 0.5), (0.2, -0.2), (0.4, -0.2)]
    {
        near(super::cushion_share(tau_s), share);
    }
}

/// tau = 40 ms, so what is outstanding is smoothed over 10 ms.
#[test]
fn a_burst_moves_the_target_rate_by_what_it_adds_to_the_mean() {
    let mut bench = adaptive(&[("loop_delay", "40ms")]);
    bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(0)).unwrap();
    near(bench.shown("outstanding_bytes"), 0.0);
    for _ in 0..11 {
        bench.arrive(ms(1), Encoding::Abc, Ecn::Ect1);
    }
    // A millisecond of ten: a tenth of the ten packets that wait.
    bench.leave(ms(1)).unwrap();
    near(bench.shown("outstanding_bytes"), 0.1 * 15_000.0);
    // Ten milliseconds later nothing is left of what was: nine wait, and the second packet ordered two.
    bench.leave(ms(11)).unwrap();
    near(bench.shown("outstanding_bytes"), 9.0 * 1500.0 + 3000.0);
}

/// Packets pass at any place within a bin of 2 ms.
#[test]
fn a_steady_link_is_forecast_without_an_error_whenever_packets_pass() {
    let mut bench = adaptive(&[("loop_delay", "40ms")]);
    bench.link.capacity = Rate::from_mbps(60);
    for packet in 0..20_000_u64 {
        // 170 us, and every third time as much again.
        let now = Time::from_nanos(170_000 * (packet + packet / 3));
        bench.arrive(now, Encoding::Abc, Ecn::Ect1);
        bench.leave(now).unwrap();
    }
    let error = bench.shown("forecast_error_bytes");
    assert!(error < 0.01, "{error} bytes");
    near(bench.shown("capacity_bps"), 60e6);
}

#[test]
fn an_accelerate_counts_as_two_packets_on_their_way_for_one_loop_delay() {
    let mut bench = adaptive(&[("loop_delay", "40ms")]);
    for now in 0..3 {
        bench.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
        bench.leave(ms(now)).unwrap();
    }
    // The bucket is empty at first: with f = 1 the second packet and the third stay accelerates.
    near(bench.shown("on_its_way_bytes"), 4.0 * 1500.0);
    bench.arrive(ms(40), Encoding::None, Ecn::NotEct);
    near(bench.shown("on_its_way_bytes"), 4.0 * 1500.0);
    bench.arrive(ms(46), Encoding::Abc, Ecn::Ect1);
    near(bench.shown("on_its_way_bytes"), 0.0);
}

/// Senders at the end of a loop: each accelerate that leaves brings two packets `delay_ms` later, each brake
/// none; one packet more every 100 ms. Returns the packets that waited at the end of each millisecond.
fn closed_loop(
    bench: &mut Bench<Abc<Sample>>,
    delay_ms: u64,
    until_ms: u64,
    per_ms: impl Fn(u64) -> u64,
) -> Vec<u32> {
    let mut coming: VecDeque<(u64, u64)> = VecDeque::from([(0, 20)]);
    let mut waiting = Vec::new();
    for now in 0..until_ms {
        if now % 100 == 0 {
            bench.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
        }
        while coming.front().is_some_and(|(at, _)| *at <= now) {
            let (_, count) = coming.pop_front().unwrap();
            for _ in 0..count {
                bench.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
            }
        }
        bench.link.capacity = Rate::from_mbps(12 * per_ms(now));
        for _ in 0..per_ms(now) {
            if bench.leave(ms(now)).is_some_and(|left| left.mark == Mark::Accelerate) {
                coming.push_back((now + delay_ms, 2));
            }
        }
        waiting.push(bench.queue.backlog().packets);
    }
    waiting
}

#[test]
fn the_router_finds_its_loop_s_delay_by_what_its_marks_bring() {
    for delay_ms in [10, 24, 60, 100, 150, 280] {
        let mut bench = adaptive(&[]);
        // 12 and 36 Mbit/s, by turns of 300 ms.
        closed_loop(&mut bench, delay_ms, 12_000, |now| if now / 300 % 2 == 0 { 1 } else { 3 });
        let found = bench.shown("loop_delay_ms");
        assert!((found - delay_ms as f64).abs() <= 4.0, "{delay_ms} ms: found {found}");
    }
}

#[test]
fn a_start_finds_its_loop_s_delay_with_the_first_flight_that_comes_back() {
    // Above 100 ms it stays with that until all lags have been seen.
    for (delay_ms, expected) in [(10, 10.0), (24, 24.0), (40, 40.0), (60, 60.0), (150, 100.0), (280, 100.0)] {
        let mut bench = adaptive(&[]);
        closed_loop(&mut bench, delay_ms, delay_ms + 20, |_| 3);
        let found = bench.shown("loop_delay_ms");
        assert!((found - expected).abs() <= 4.0, "{delay_ms} ms: found {found}");
    }
}

#[test]
fn the_loop_rests_where_the_given_delay_is_off_by_less_than_delta() {
    // delta = 0.7 tau: 60 ms lie within it of every one of these.
    for given in ["36ms", "44ms", "60ms", "80ms", "120ms", "190ms"] {
        let mut bench = adaptive(&[("loop_delay", given)]);
        let waiting = closed_loop(&mut bench, 60, 12_000, |_| 1);
        let late = &waiting[8_000..];
        let swing = late.iter().max().unwrap() - late.iter().min().unwrap();
        assert!(swing <= 12, "{given}: {swing} packets");
    }
}

#[test]
fn silence_longer_than_any_loop_leaves_nothing_on_its_way() {
    let mut bench = adaptive(&[]);
    closed_loop(&mut bench, 40, 500, |_| 1);
    assert!(bench.shown("on_its_way_bytes") > 0.0);
    bench.arrive(ms(60_000), Encoding::Abc, Ecn::Ect1);
    near(bench.shown("on_its_way_bytes"), 0.0);
}

#[test]
fn options_of_equation_1_are_refused_and_those_of_the_rule_need_it() {
    let refused =
        |options: &[(&str, &str)]| Config::from_options(options.iter().copied()).unwrap_err().to_string();
    for given in [("lookahead", "40ms"), ("integral", "1s"), ("eta_of", "cr"), ("x", "sojourn")] {
        let error = refused(&[("variant", "adaptive"), given]);
        assert!(error.contains(given.0) && error.contains("variant=adaptive"), "{error}");
    }
    assert!(refused(&[("loop_delay", "40ms")]).contains("variant=adaptive"));
    assert!(refused(&[("variant", "adaptive"), ("loop_delay", "1s")]).contains("2ms to 400ms"));
}
