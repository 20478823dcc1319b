use alloc::string::ToString;
use alloc::vec::Vec;

use brakelight_core::parameters::Parameters;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;
use proptest::prelude::*;

use super::*;
use crate::scripted::{Bench, ms, place};

const MBPS: f64 = 1e6;

fn abc(options: &[(&str, &str)]) -> Bench<Abc<Sample>> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bench::new(Abc::new(&config, &place(250)), Rate::from_mbps(12))
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

/// Lets `count` accelerates of 1500 bytes pass, one each millisecond from `from` on, none of them waiting: cr
/// is 12 Mbit/s from the twentieth on. How many stayed accelerates.
fn pass(bench: &mut Bench<Abc<Sample>>, from: u64, count: u64) -> u64 {
    let mut accelerates = 0;
    for now in from..from + count {
        bench.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
        let left = bench.leave(ms(now)).unwrap();
        assert_eq!(left.mark == Mark::Accelerate, left.packet.ecn == Ecn::Ect1);
        accelerates += u64::from(left.mark == Mark::Accelerate);
    }
    accelerates
}

#[test]
fn below_the_target_delay_the_target_rate_is_eta_of_the_capacity() {
    let mut bench = abc(&[]);
    pass(&mut bench, 0, 40);
    near(bench.shown("target_rate_bps"), 0.98 * 12.0 * MBPS);
    near(bench.shown("measured_rate_bps"), 12.0 * MBPS);
    // abc20 eq.2: 0.98 * 12 / (2 * 12).
    near(bench.shown("f"), 0.49);
}

#[test]
fn a_queue_above_the_target_is_drained_within_delta() {
    let mut bench = abc(&[]);
    for _ in 0..101 {
        bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    }
    bench.leave(ms(1)).unwrap();
    // 100 packets behind the one that left: x = 100 * 12000 bit / 12 Mbit/s = 100 ms; the drain is
    // 12 Mbit/s * (100 - 50) ms / 133 ms = 4.511 Mbit/s.
    near(bench.shown("target_rate_bps"), (0.98 * 12.0 - 12.0 * 50.0 / 133.0) * MBPS);
    // cr is one packet in 20 ms, 0.6 Mbit/s: twelve times less than the target, so f is cut to 1.
    near(bench.shown("measured_rate_bps"), 0.6 * MBPS);
    near(bench.shown("f"), 1.0);
}

#[test]
fn the_integral_takes_a_share_that_grows_while_the_queue_is_above_the_target_and_falls_below_it() {
    let mut bench = abc(&[("integral", "1s")]);
    for _ in 0..151 {
        bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    }
    // 150 packets behind: x = 150 ms, 100 ms above the target for 10 ms, over 133 ms times 1 s.
    bench.leave(ms(10)).unwrap();
    near(bench.shown("integral_share"), 0.1 * 0.01 / 0.133);
    near(bench.shown("target_rate_bps"), 12.0 * MBPS * (0.98 - 100.0 / 133.0 - 0.1 * 0.01 / 0.133));
    // It never takes more than half, and an empty queue, 50 ms below the target, gives it back.
    bench.leave(ms(100_000)).unwrap();
    near(bench.shown("integral_share"), 0.5);
    while bench.leave(ms(100_000)).is_some() {}
    bench.arrive(ms(100_100), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(100_100)).unwrap();
    near(bench.shown("integral_share"), 0.5 - 0.05 * 0.1 / 0.133);
    bench.arrive(ms(200_000), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(200_000)).unwrap();
    near(bench.shown("integral_share"), 0.0);
}

#[test]
fn with_sojourn_the_delay_is_what_the_packet_waited() {
    let mut bench = abc(&[("x", "sojourn")]);
    bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(90)).unwrap();
    near(bench.shown("target_rate_bps"), (0.98 * 12.0 - 12.0 * 40.0 / 133.0) * MBPS);
}

#[test]
fn the_link_s_framing_counts_in_both_rates() {
    let mut bench = abc(&[]);
    bench.link.overhead = 4;
    bench.link.capacity = Rate::from_bps(12_032_000);
    pass(&mut bench, 0, 40);
    // 20 packets of 1504 bytes in 20 ms.
    near(bench.shown("measured_rate_bps"), 12.032 * MBPS);
    near(bench.shown("f"), 0.49);
}

#[test]
fn f_never_leaves_zero_to_one() {
    // A queue of 250 packets on 1 Mbit/s: x = 3 s, and the target rate is far below zero.
    let mut bench = abc(&[]);
    bench.link.capacity = Rate::from_mbps(1);
    for _ in 0..250 {
        bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    }
    bench.leave(ms(1)).unwrap();
    assert!(bench.shown("target_rate_bps") < 0.0);
    near(bench.shown("f"), 0.0);

    // An outage: no capacity within the window.
    bench.link.capacity = Rate::ZERO;
    bench.leave(ms(2)).unwrap();
    near(bench.shown("f"), 0.0);

    // Nothing entered for longer than T, so eq.2 with the rate that enters would divide by zero.
    let mut bench = abc(&[("feedback", "enqueue")]);
    bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(30)).unwrap();
    near(bench.shown("measured_rate_bps"), 0.0);
    near(bench.shown("f"), 1.0);
}

#[test]
fn feedback_by_enqueue_divides_by_the_rate_that_enters() {
    let mut by_dequeue = abc(&[]);
    let mut by_enqueue = abc(&[("feedback", "enqueue")]);
    for bench in [&mut by_dequeue, &mut by_enqueue] {
        pass(bench, 0, 40);
        // Two arrive for one that leaves, for 20 ms.
        for now in 40..60 {
            bench.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
            bench.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
            bench.leave(ms(now)).unwrap();
        }
    }
    near(by_dequeue.shown("f"), 0.49);
    near(by_enqueue.shown("measured_rate_bps"), 24.0 * MBPS);
    near(by_enqueue.shown("f"), 0.245);
}

#[test]
fn perfect_knowledge_aims_at_the_future_rate_and_drains_at_the_present_one() {
    let mut bench = abc(&[("lookahead", "100ms")]);
    bench.link.ahead = Some(Rate::from_mbps(20));
    for _ in 0..101 {
        bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    }
    bench.leave(ms(1)).unwrap();
    near(bench.shown("target_rate_bps"), (0.98 * 20.0 - 12.0 * 50.0 / 133.0) * MBPS);
    let mut both = abc(&[("lookahead", "100ms"), ("lookahead_drain", "true")]);
    both.link.ahead = Some(Rate::from_mbps(20));
    for _ in 0..101 {
        both.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    }
    both.leave(ms(1)).unwrap();
    near(both.shown("target_rate_bps"), (0.98 * 20.0 - 20.0 * 50.0 / 133.0) * MBPS);
    // A link that does not know its future: the present rate.
    bench.link.ahead = None;
    bench.leave(ms(2)).unwrap();
    near(bench.shown("target_rate_bps"), (0.98 * 12.0 - 12.0 * 49.0 / 133.0) * MBPS);
}

/// What the bucket lets through while f = 1 throughout: capacity without end.
fn first_five_at_f_1(options: &[(&str, &str)]) -> Vec<Mark> {
    let mut bench = abc(options);
    bench.link.capacity = Rate::from_mbps(1_000_000);
    (0..5)
        .map(|now| {
            bench.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
            bench.leave(ms(now)).unwrap().mark
        })
        .collect()
}

#[test]
fn the_first_packet_brakes_although_f_is_one_because_one_token_does_not_exceed_one() {
    use Mark::{Accelerate, Brake};
    let rest = [Accelerate; 4];
    assert_eq!(first_five_at_f_1(&[])[0], Brake);
    assert_eq!(first_five_at_f_1(&[])[1..], rest);
    assert_eq!(first_five_at_f_1(&[("token_test", "at-least")])[0], Accelerate);
    assert_eq!(first_five_at_f_1(&[("token_start", "1")])[0], Accelerate);
    assert_eq!(first_five_at_f_1(&[("variant", "prototype")])[0], Accelerate);
}

#[test]
fn a_limit_of_one_token_is_refused_where_it_would_stop_every_accelerate() {
    let refused = Config::from_options([("token_limit", "1")]).unwrap_err();
    assert!(refused.to_string().contains("must exceed 1"), "{refused}");
    let config = [("token_limit", "1"), ("token_test", "at-least")];
    assert_eq!(first_five_at_f_1(&config), [Mark::Accelerate; 5]);
    // Cut after the test instead of before, a full bucket holds 1 + f in the test.
    assert!(Config::from_options([("token_limit", "1.5"), ("token_cap", "after")]).is_ok());
}

#[test]
fn the_cap_is_applied_before_the_test_or_after_it() {
    // Empty at the start, f = 1: the bucket holds 1, 2-1, ... and never reaches a cap of 5. Full at 5 with
    // f = 1, the test sees 5 or 6, and leaves 4 or 5. At 3, which is below the cap, one comes and one goes
    // either way.
    for (start, cap, left) in
        [("5", "before", 4.0), ("5", "after", 5.0), ("3", "before", 3.0), ("3", "after", 3.0)]
    {
        let mut bench = abc(&[("token_start", start), ("token_cap", cap)]);
        bench.link.capacity = Rate::from_mbps(1000);
        pass(&mut bench, 0, 1);
        near(bench.shown("tokens"), left);
    }
}

#[test]
fn an_idle_queue_keeps_resets_or_credits_the_bucket() {
    // Two opportunities of 1500 bytes passed unused; f = 0.49 * 20 = 1 for the first packet after them.
    for (idle, tokens) in [("keep", 3.0), ("reset", 1.0), ("credit", 3.0 + 2.0 * 0.49)] {
        let mut bench = abc(&[("token_start", "3"), ("token_idle", idle)]);
        bench.link.unused = Bytes(3000);
        bench.arrive(ms(100), Encoding::Abc, Ecn::Ect1);
        let mark = bench.leave(ms(100)).unwrap().mark;
        // One token comes with f = 1, and goes if the packet accelerates.
        near(bench.shown("tokens"), tokens);
        assert_eq!(mark == Mark::Brake, idle == "reset");
    }
}

#[test]
fn an_idle_period_may_have_to_last() {
    for (period, tokens) in [("0s", 1.0), ("60ms", 1.0), ("61ms", 3.0)] {
        let options = [("token_start", "3"), ("token_idle", "reset"), ("idle_period", period)];
        let mut bench = abc(&options);
        bench.arrive(ms(30), Encoding::Abc, Ecn::Ce);
        bench.leave(ms(40));
        bench.link.unused = Bytes(3000);
        bench.arrive(ms(100), Encoding::Abc, Ecn::Ect1);
        bench.leave(ms(100)).unwrap();
        near(bench.shown("tokens"), tokens);
    }
}

#[test]
fn the_variants_set_their_parts_and_a_part_given_by_itself_wins_in_either_order() {
    let rules = |options: &[(&str, &str)]| Config::from_options(options.iter().copied()).unwrap().rules();
    let paper = Rules {
        eta: 0.98,
        eta_of: EtaOf::Mu,
        x: DelayOf::Backlog,
        start: 0.0,
        cap: Cap::Before,
        idle: Idle::Keep,
    };
    let prototype = Rules {
        eta: 0.98,
        eta_of: EtaOf::Cr,
        x: DelayOf::Packets,
        start: 5.0,
        cap: Cap::After,
        idle: Idle::Credit,
    };
    assert_eq!(rules(&[]), paper);
    assert_eq!(rules(&[("variant", "prototype")]), prototype);
    assert_eq!(
        rules(&[("marking", "hotnets")]),
        Rules { start: 0.0, cap: Cap::After, idle: Idle::Reset, ..paper }
    );
    let mixed = Rules { eta_of: EtaOf::Mu, start: 2.0, ..prototype };
    assert_eq!(rules(&[("variant", "prototype"), ("eta_of", "mu"), ("token_start", "2")]), mixed);
    assert_eq!(rules(&[("token_start", "2"), ("eta_of", "mu"), ("variant", "prototype")]), mixed);
    assert_eq!(
        rules(&[("variant", "prototype"), ("marking", "nsdi")]),
        Rules { eta_of: EtaOf::Cr, x: DelayOf::Packets, ..paper }
    );
    assert_eq!(rules(&[("variant", "prototype"), ("token_limit", "8")]).start, 8.0);
}

#[test]
fn the_prototype_multiplies_eta_by_the_rate_that_leaves() {
    let mut bench = abc(&[("variant", "prototype")]);
    bench.link.capacity = Rate::from_mbps(24);
    pass(&mut bench, 0, 40);
    // Half the link is used: the paper's rule would say f = 0.98, this one stays at eta / 2.
    near(bench.shown("f"), 0.49);
    // 101 packets when this one left: x = 101 * 12000 bit / 24 Mbit/s = 50.5 ms, one of them the packet
    // itself.
    for _ in 0..101 {
        bench.arrive(ms(40), Encoding::Abc, Ecn::Ect1);
    }
    bench.leave(ms(40)).unwrap();
    near(bench.shown("target_rate_bps"), (0.98 * 12.0 - 24.0 * 0.5 / 133.0) * MBPS);
}

#[test]
fn half_a_token_each_lets_every_other_packet_accelerate() {
    // eta = 1: f = 1/2 exactly. 0.5 brake, 1.0 brake, 1.5 accelerate, 1.0 brake, 1.5 accelerate, ...
    let mut bench = abc(&[("eta", "1")]);
    bench.link.capacity = Rate::from_mbps(12);
    pass(&mut bench, 0, 40);
    let before = bench.shown("tokens");
    assert_eq!(pass(&mut bench, 40, 100), 50);
    near(bench.shown("tokens"), before);
}

#[test]
fn a_brake_is_left_alone_and_still_feeds_the_bucket() {
    let mut bench = abc(&[]);
    pass(&mut bench, 0, 40);
    let before = bench.shown("tokens");
    bench.arrive(ms(40), Encoding::Abc, Ecn::Ect0);
    let left = bench.leave(ms(40)).unwrap();
    assert_eq!((left.packet.ecn, left.mark), (Ecn::Ect0, Mark::None));
    near(bench.shown("tokens"), before + 0.49);
}

#[test]
fn ce_and_the_packets_of_others_leave_the_bucket_alone_but_count_in_the_rate() {
    let mut bench = abc(&[]);
    pass(&mut bench, 0, 40);
    let before = bench.shown("tokens");
    let others = [
        (Encoding::Abc, Ecn::Ce),
        (Encoding::Abc, Ecn::NotEct),
        (Encoding::None, Ecn::NotEct),
        (Encoding::Classic, Ecn::Ect0),
        (Encoding::Classic, Ecn::Ect1),
        (Encoding::Classic, Ecn::Ce),
    ];
    for (encoding, ecn) in others {
        bench.arrive(ms(39), encoding, ecn);
        let left = bench.leave(ms(39)).unwrap();
        assert_eq!((left.packet.ecn, left.mark), (ecn, Mark::None));
        assert_eq!(bench.shown("tokens"), before);
    }
    near(bench.shown("measured_rate_bps"), 12.0 * MBPS * 26.0 / 20.0);
}

#[test]
fn behind_a_proxy_brake_is_ce_and_an_earlier_one_still_feeds_the_bucket() {
    let mut bench = abc(&[]);
    for (ecn, expected) in [(Ecn::Ect1, Ecn::Ce), (Ecn::Ect0, Ecn::Ce)] {
        let mut first = abc(&[]);
        first.arrive(ms(0), Encoding::AbcProxied, ecn);
        let left = first.leave(ms(0)).unwrap();
        assert_eq!((left.packet.ecn, left.mark), (expected, Mark::Brake));
    }
    bench.arrive(ms(0), Encoding::AbcProxied, Ecn::Ce);
    assert_eq!(bench.leave(ms(0)).unwrap().mark, Mark::None);
    near(bench.shown("tokens"), 1.0);
}

#[test]
fn an_encoding_given_for_the_queue_is_read_into_every_packet() {
    let mut bench = abc(&[("encoding", "proxied")]);
    bench.arrive(ms(0), Encoding::Classic, Ecn::Ect0);
    assert_eq!(bench.leave(ms(0)).unwrap().packet.ecn, Ecn::Ce);
    let mut bench = abc(&[("encoding", "abc")]);
    bench.arrive(ms(0), Encoding::None, Ecn::Ect1);
    assert_eq!(bench.leave(ms(0)).unwrap().packet.ecn, Ecn::Ect0);
}

#[test]
fn a_full_buffer_drops_what_arrives() {
    let mut bench = abc(&[("limit", "2pkt")]);
    for _ in 0..3 {
        bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    }
    assert_eq!(bench.dropped(), [2]);
    assert_eq!(bench.queue.backlog().packets, 2);
    // What was dropped is not waiting either: x is 1 packet behind the one that leaves.
    bench.leave(ms(0)).unwrap();
    assert_eq!(bench.queue.waiting, Bytes(1500));
}

#[test]
fn along_two_routers_the_share_of_accelerates_is_the_lesser_one() {
    // f = 0.49 mu / 12: 0.49 and, on 8 Mbit/s, 0.3267. In either order.
    for (first, second) in [(12, 8), (8, 12)] {
        let (mut one, mut two) = (abc(&[]), abc(&[]));
        one.link.capacity = Rate::from_mbps(first);
        two.link.capacity = Rate::from_mbps(second);
        let mut accelerates = 0;
        for now in 0..10_040 {
            one.arrive(ms(now), Encoding::Abc, Ecn::Ect1);
            let between = one.leave(ms(now)).unwrap().packet;
            two.arrive_as(ms(now), between);
            let left = two.leave(ms(now)).unwrap().packet;
            assert!(!(between.ecn == Ecn::Ect0 && left.ecn == Ecn::Ect1), "a brake became an accelerate");
            accelerates += u64::from(now >= 40 && left.ecn == Ecn::Ect1);
        }
        let share = accelerates as f64 / 10_000.0;
        assert!((share - 0.49 * 8.0 / 12.0).abs() < 0.001, "{share}");
    }
}

proptest! {
    /// At most the sum of f may accelerate, plus what the bucket held at the start.
    #[test]
    fn never_more_than_a_share_f_accelerates(
        packets in prop::collection::vec((0_u64..3000, 1_u64..40, 40_u32..1500, 0_u8..4), 1..400),
        start in 0.0..5.0_f64,
        after in any::<bool>(),
    ) {
        let start_text = start.to_string();
        let options = [("token_start", start_text.as_str()), ("token_cap", if after { "after" } else { "before" })];
        let mut bench = abc(&options);
        let mut now = Time::ZERO;
        let (mut accelerates, mut shares) = (0.0, 0.0);
        for (wait, mbps, size, ecn) in packets {
            now += Duration::from_micros(wait);
            bench.link.capacity = Rate::from_mbps(mbps);
            bench.arrive_as(now, Sample {
                ecn: Ecn::from_bits(ecn), encoding: Encoding::Abc, ..Sample::new(0, size)
            });
            let left = bench.leave(now).unwrap();
            if matches!(Ecn::from_bits(ecn), Ecn::Ect0 | Ecn::Ect1) {
                shares += bench.shown("f");
            }
            accelerates += f64::from(u8::from(left.mark == Mark::Accelerate));
            prop_assert!(accelerates <= start + shares + 1e-9, "{accelerates} of {shares}");
        }
    }
}

#[test]
fn with_standing_waiting_for_a_burst_of_the_link_is_no_queue() {
    let mut bench = abc(&[("x", "standing")]);
    bench.arrive(ms(0), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(90)).unwrap();
    // Nothing left while it waited: for the link alone.
    near(bench.shown("target_rate_bps"), 0.98 * 12.0 * MBPS);
    bench.arrive(ms(20), Encoding::Abc, Ecn::Ect1);
    bench.leave(ms(180)).unwrap();
    // It was there for 70 ms when the one before left: 20 ms above the target.
    near(bench.shown("target_rate_bps"), (0.98 * 12.0 - 12.0 * 20.0 / 133.0) * MBPS);
}

fn is_full() -> bool {
    std::env::var_os("BRAKELIGHT_PROOFS").is_some()
}

/// What is printed of a property that holds.
fn verdict() -> &'static str {
    if is_full() { "proved" } else { "holds in part of the domain" }
}

/// Algorithm 1 from every level and for every share that is a multiple of 2^-8, where sums are exact: what
/// holds after one packet holds after any number.
#[test]
fn the_bucket_holds_what_it_got_and_never_more_than_its_limit() {
    let steps = if is_full() { 1024 } else { 256 };
    for marking in ["nsdi", "hotnets", "prototype"] {
        for limit in ["2", "5"] {
            let config = Config::from_options([("marking", marking), ("token_limit", limit)]).unwrap();
            let most = config.token_limit;
            let mut abc = Abc::<Sample>::new(&config, &place(250));
            for level in 0..=steps * most as u32 {
                for share in 0..=steps {
                    for accelerates in [false, true] {
                        let [level, f] = [level, share].map(|number| f64::from(number) / f64::from(steps));
                        abc.token = level;
                        let taken = abc.take_token(f, accelerates);
                        assert!((0.0..=most).contains(&abc.token), "{marking}: {level} + {f}: {}", abc.token);
                        assert!(!taken || accelerates && level + f >= 1.0, "{marking}: {level} + {f}");
                        let left = abc.token + f64::from(u8::from(taken));
                        // What is lost is what the bucket could not hold.
                        assert!(left <= level + f, "{marking}: {level} + {f}");
                        assert!(left >= (level + f).min(most), "{marking}: {level} + {f}");
                    }
                }
            }
        }
    }
    let verdict = verdict();
    let bounds = std::format!("three rules, limits of 2 and 5, levels and shares in steps of 1/{steps}");
    for property in [
        "the bucket stays from empty to its limit",
        "an accelerate costs a token that was there",
        "no more tokens than were given",
        "none lost but above the limit",
    ] {
        std::eprintln!("routers/src/abc.rs | Abc::take_token | {property} | {bounds} | {verdict}");
    }
}

/// For every capacity in whole kbit/s, and every queue: eq. 1 by the router's own arithmetic.
#[test]
fn the_target_rate_is_at_most_the_aim_and_falls_with_the_queue() {
    let most = if is_full() { 4_000_u32 } else { 400 };
    for mu in 0..=most {
        let mu_bps = f64::from(mu) * 1e3;
        let mut before = f64::INFINITY;
        for waiting in 0..=most {
            let tr_bps = target_rate_bps(0.98 * mu_bps, mu_bps, f64::from(waiting) * 8e2, 0.05, 1.0 / 0.133);
            assert!(tr_bps.is_finite() && tr_bps <= 0.98 * mu_bps && tr_bps <= before, "{mu}, {waiting}");
            // X0 = d_t + eta delta: there and above nothing is ordered.
            let x0_bits = mu_bps * (0.05 + 0.98 * 0.133);
            assert_eq!(
                tr_bps <= 1e-6 * mu_bps,
                f64::from(waiting) * 8e2 >= x0_bits * (1.0 - 1e-6),
                "{mu}, {waiting}"
            );
            before = tr_bps;
        }
    }
    let verdict = verdict();
    let bounds = std::format!("mu to {most} kbit/s, queues to {most} times 100 bytes");
    for property in
        ["never above eta mu", "never rises with the queue", "at or below zero from X0 on, and not before"]
    {
        std::eprintln!("routers/src/abc.rs | target_rate_bps | {property} | {bounds} | {verdict}");
    }
}

/// What became of an ECN field that came to a queue in which nothing is left to accelerate, and what the
/// bucket held after it.
fn through(options: &[(&str, &str)], encoding: Encoding, ecn: Ecn) -> (Ecn, f64) {
    let mut bench = abc(options);
    // The first packets find an empty window, and f = 1; the bucket holds less than a token from then on.
    pass(&mut bench, 0, 40);
    bench.queue.token = 0.25;
    bench.arrive(ms(40), encoding, ecn);
    (bench.leave(ms(40)).unwrap().packet.ecn, bench.shown("tokens"))
}

#[test]
fn misread_packets_are_read_by_their_field_alone() {
    // f = 0.49: neither of these has a token to take.
    let brake = (Ecn::Ect0, 0.74);
    let close = |found: (Ecn, f64), expected: (Ecn, f64)| {
        assert_eq!(found.0, expected.0);
        near(found.1, expected.1);
    };
    let misread = [("misread", "true")];
    close(through(&misread, Encoding::L4s, Ecn::Ect1), brake);
    close(through(&misread, Encoding::Abc, Ecn::Ect1), brake);
    // Ordinary ECN's ECT(0) stays as it is, and fills the bucket as a brake does (abc20 Algorithm 1).
    close(through(&misread, Encoding::Classic, Ecn::Ect0), brake);
    // Distinguished by their encoding, both pass without a trace.
    close(through(&[], Encoding::L4s, Ecn::Ect1), (Ecn::Ect1, 0.25));
    close(through(&[], Encoding::Classic, Ecn::Ect0), (Ecn::Ect0, 0.25));
    // CE and Not-ECT mean the same to all.
    for ecn in [Ecn::Ce, Ecn::NotEct] {
        close(through(&misread, Encoding::Classic, ecn), (ecn, 0.25));
    }
    // Behind a proxy both codepoints are accelerates, and a brake is CE.
    let proxied = [("misread", "true"), ("encoding", "proxied")];
    for (encoding, ecn) in [(Encoding::L4s, Ecn::Ect1), (Encoding::Classic, Ecn::Ect0)] {
        close(through(&proxied, encoding, ecn), (Ecn::Ce, 0.74));
    }
}
