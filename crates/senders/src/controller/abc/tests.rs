use std::string::ToString;

use brakelight_core::controller::{MarkCount, Marks};
use brakelight_core::ecn::Ecn;
use brakelight_core::parameters::{Parameters, Value as _};
use brakelight_testkit::events::{
    MSS, ack, connection, idle, loss, packet, packets, send, spurious, timeout,
};

use super::*;

const RTT: Duration = Duration::from_millis(100);

fn abc(options: &[(&str, &str)], initial_pkts: u64) -> Abc {
    let config = Config::from_options(options.iter().copied()).expect("valid options");
    Abc::new(config, &connection(initial_pkts))
}

/// What this many packets of each mark say.
fn marks(accelerate: u64, brake: u64, ce: u64) -> Marks {
    let count = |count| MarkCount { packets: count, bytes: packets(count) };
    Marks { accelerate: count(accelerate), brake: count(brake), ce: count(ce), ..Marks::default() }
}

/// One ACK with these marks, while `inflight` is on its way.
fn marked(abc: &mut Abc, marks: Marks, inflight: Bytes) {
    let count = marks.accelerate.packets + marks.brake.packets + marks.ce.packets;
    let acked: std::vec::Vec<_> = (0..count).map(|number| packet(number, Time::ZERO)).collect();
    abc.on_ack(&AckEvent { marks, inflight_before: inflight, ..ack(Time::from_secs(1), &acked, RTT) });
}

/// One round trip of `window` packets, one ACK each, of which `accelerate` in a hundred accelerate, spread
/// evenly.
fn round(abc: &mut Abc, window: u64, accelerate: u64) {
    for index in 1..=window {
        let up = index * accelerate / 100 > (index - 1) * accelerate / 100;
        marked(abc, if up { marks(1, 0, 0) } else { marks(0, 1, 0) }, packets(1_000));
    }
}

const PLAIN: &[(&str, &str)] = &[("additive_increase", "false"), ("second_window", "false")];

/// ABC-U1, HN-U2: w becomes 2 w f in one RTT.
#[test]
fn a_round_trip_with_fraction_f_makes_the_window_2wf() {
    for (percent, expected_pkts) in [(100, 200), (75, 150), (50, 100), (25, 50), (10, 20), (0, 2)] {
        let mut abc = abc(PLAIN, 100);
        round(&mut abc, 100, percent);
        assert_eq!(abc.cwnd(), packets(expected_pkts), "f = {percent} %");
    }
}

/// ABC-U5: with a share p of the ACKs the change is (2f - 1) p w, of the same sign.
#[test]
fn lost_acks_slow_the_change_and_keep_its_sign() {
    for (percent, share, change_pkts) in [(80, 2, 30), (80, 4, 15), (20, 2, -30), (20, 4, -15), (50, 2, 0)] {
        let mut abc = abc(PLAIN, 100);
        // One ACK in `share` arrives: (2 * 0.8 - 1) * 100 / 2 = 30.
        round(&mut abc, 100 / share, percent);
        assert_eq!(abc.cwnd().0 as i64, 100_000 + change_pkts * 1000, "f = {percent} %, p = 1/{share}");
    }
}

/// ABC-U6: 2f + 1/w = 1.
#[test]
fn windows_settle_where_additive_increase_balances_the_brakes() {
    for initial_pkts in [20, 200] {
        let mut abc = abc(&[("second_window", "false")], initial_pkts);
        for _ in 0..500 {
            let window_pkts = abc.cwnd().0 / MSS.0;
            // f = 0.49 exactly: fractions of a packet, so that rounding hides nothing.
            for _ in 0..window_pkts {
                let mark = |share: f64| MarkCount { packets: 1, bytes: Bytes((share * MSS.as_f64()) as u64) };
                let marks = Marks { accelerate: mark(0.49), brake: mark(0.51), ..Marks::default() };
                marked(&mut abc, marks, packets(1_000));
            }
        }
        let window_pkts = abc.w_abc_bytes / MSS.as_f64();
        assert!((window_pkts - 50.0).abs() < 0.5, "1 / (1 - 0.98) = 50, not {window_pkts}");
    }
}

/// Section 6, open-questions#X-18: one packet per RTT whether an ACK covers one packet or two.
#[test]
fn additive_increase_counts_bytes_not_acks() {
    let mut single = abc(&[("second_window", "false")], 100);
    round(&mut single, 100, 50);
    let mut delayed = abc(&[("second_window", "false")], 100);
    for index in 0..50 {
        marked(&mut delayed, if index % 2 == 0 { marks(2, 0, 0) } else { marks(0, 2, 0) }, packets(1_000));
    }
    for abc in [single, delayed] {
        let gain_pkts = abc.w_abc_bytes / MSS.as_f64() - 100.0;
        assert!((gain_pkts - 1.0).abs() < 0.02, "{gain_pkts}");
    }
}

/// abc17 6: one packet every T, whatever the RTT and however many packets an ACK covers.
#[test]
fn the_window_gains_a_packet_every_t() {
    for (every, acks) in [("50ms", 10), ("50ms", 100), ("250ms", 10)] {
        let mut abc = abc(&[("second_window", "false"), ("increase_every", every)], 100);
        for number in 1..=acks {
            // Half of the packets accelerate, so that marks change nothing, over a second.
            let acked = [packet(2 * number, Time::ZERO), packet(2 * number + 1, Time::ZERO)];
            let now = Time::from_nanos(1_000_000_000 * number / acks);
            abc.on_ack(&AckEvent {
                marks: marks(1, 1, 0),
                inflight_before: packets(1_000),
                ..ack(now, &acked, RTT)
            });
        }
        let gain_pkts = abc.w_abc_bytes / MSS.as_f64() - 100.0;
        let expected_pkts = if every == "50ms" { 20.0 } else { 4.0 };
        assert!((gain_pkts - expected_pkts).abs() < 1e-9, "{every}, {acks} ACKs: {gain_pkts}");
    }
}

/// A pause is no time in which the window was tried.
#[test]
fn a_pause_counts_as_one_round_trip_of_growth_by_time() {
    let mut abc = abc(&[("second_window", "false"), ("increase_every", "50ms")], 100);
    abc.on_ack(&AckEvent {
        marks: marks(1, 1, 0),
        inflight_before: packets(1_000),
        ..ack(Time::from_secs(60), &[packet(1, Time::ZERO), packet(2, Time::ZERO)], RTT)
    });
    assert_eq!(abc.w_abc_bytes, packets(102).as_f64(), "100 ms are two packets");
}

#[test]
fn growth_by_time_needs_growth() {
    let options = [("additive_increase", "false"), ("increase_every", "50ms")];
    let error = Config::from_options(options).expect_err("they contradict each other");
    assert!(error.to_string().contains("increase_every needs additive_increase=true"), "{error}");
}

/// abc20 3.1.1: half-sized packets count half.
#[test]
fn bytes_count_not_packets() {
    let mut abc = abc(PLAIN, 100);
    let half = MarkCount { packets: 1, bytes: Bytes(500) };
    for _ in 0..10 {
        marked(&mut abc, Marks { accelerate: half, ..Marks::default() }, packets(1_000));
    }
    assert_eq!(abc.cwnd(), packets(105));
}

/// ABC-U13, open-questions#X-14.
#[test]
fn both_windows_stay_within_twice_the_packets_in_flight() {
    let mut abc = abc(&[], 100);
    for _ in 0..50 {
        marked(&mut abc, marks(10, 0, 0), packets(60));
        assert!(abc.w_abc_bytes <= packets(120).as_f64());
        assert!(abc.second.as_ref().unwrap().cwnd() <= packets(120));
    }
    assert_eq!(abc.cwnd(), packets(120), "and they reach it");
    marked(&mut abc, marks(1, 0, 0), packets(2));
    assert_eq!(abc.cwnd(), packets(10), "the floor of the cap");
}

/// Section 4.1: w_nonabc rises at once when w_abc lets more into flight.
#[test]
fn the_capped_window_follows_within_one_round_trip() {
    let mut abc = abc(&[], 10);
    for pkts in [10, 20, 40] {
        for _ in 0..pkts {
            marked(&mut abc, marks(1, 0, 0), packets(pkts));
        }
        assert_eq!(abc.cwnd(), packets(2 * pkts));
    }
}

/// abc20 section 6, open-questions#X-9.
#[test]
fn ce_and_drops_touch_the_second_window_alone() {
    let mut abc = abc(&[], 100);
    marked(&mut abc, marks(0, 0, 5), packets(100));
    assert_eq!(abc.w_abc_bytes, packets(100).as_f64(), "no change, and no additive increase");
    abc.on_ce(&loss(Time::from_secs(1)));
    let after_ce = abc.second.as_ref().unwrap().cwnd();
    assert!(after_ce < packets(75) && abc.w_abc_bytes == packets(100).as_f64());
    assert_eq!((abc.cwnd(), abc.recovery()), (after_ce, Recovery::Prr));
    abc.on_loss(&loss(Time::from_secs(2)));
    assert!(abc.cwnd() < packets(55) && abc.w_abc_bytes == packets(100).as_f64());
    abc.on_spurious_loss(&spurious(Time::from_secs(2), false));
    assert_eq!(abc.cwnd(), after_ce);
}

#[test]
fn a_loss_is_no_episode_while_marks_govern() {
    let mut abc = abc(&[], 100);
    for _ in 0..30 {
        marked(&mut abc, marks(0, 1, 0), packets(100));
    }
    assert_eq!((abc.cwnd().0 / MSS.0, abc.recovery()), (70, Recovery::Own));
}

#[test]
fn brakes_stop_at_the_floor() {
    for (options, floor_pkts) in [(&[][..], 2), (&[("variant", "prototype")], 5), (&[("floor", "3")], 3)] {
        let mut abc = abc(options, 10);
        for _ in 0..20 {
            marked(&mut abc, marks(0, 1, 0), packets(100));
        }
        assert_eq!(abc.cwnd(), packets(floor_pkts));
    }
}

#[test]
fn a_timeout_is_cubics_affair_or_takes_the_only_window() {
    let mut paper = abc(&[], 100);
    paper.on_timeout(&timeout(Time::ZERO, Timeout::Rto));
    assert_eq!((paper.cwnd(), paper.w_abc_bytes), (packets(1), packets(100).as_f64()));
    let mut prototype = abc(&[("variant", "prototype"), ("initial_window", "100")], 10);
    prototype.on_timeout(&timeout(Time::ZERO, Timeout::Pto));
    assert_eq!(prototype.cwnd(), packets(100));
    prototype.on_timeout(&timeout(Time::ZERO, Timeout::Rto));
    prototype.on_timeout(&TimeoutEvent { repeated: true, ..timeout(Time::ZERO, Timeout::Rto) });
    assert_eq!(prototype.cwnd(), packets(1));
    // A brake does not lift the window to the floor; accelerates do.
    marked(&mut prototype, marks(0, 1, 0), packets(1));
    assert!(prototype.cwnd() <= packets(1));
    prototype.on_spurious_loss(&spurious(Time::ZERO, true));
    assert_eq!(prototype.cwnd(), packets(100));
}

#[test]
fn the_prototype_is_a_set_of_options_that_explicit_ones_override_in_any_order() {
    let prototype =
        Rules::from(&Config::new(Values { variant: Variant::Prototype, ..Values::default() }).unwrap());
    assert!(!prototype.second_window && prototype.additive_increase);
    assert_eq!((prototype.encoding, prototype.floor_pkts, prototype.pacing), (Encoding::AbcProxied, 5, 2.0));
    assert_eq!(prototype.initial_pkts, Some(10));
    for options in [
        [
            ("variant", "prototype"),
            ("encoding", "abc"),
            ("second_window", "true"),
            ("floor", "7"),
            ("pacing", "0"),
        ],
        [
            ("pacing", "0"),
            ("floor", "7"),
            ("second_window", "true"),
            ("encoding", "abc"),
            ("variant", "prototype"),
        ],
    ] {
        let rules = Rules::from(&Config::from_options(options).unwrap());
        assert_eq!((rules.encoding, rules.floor_pkts, rules.pacing), (Encoding::Abc, 7, 0.0));
        assert!(rules.second_window);
    }
}

#[test]
fn every_packet_leaves_as_an_accelerate_and_asks_stock_receivers_not_to_repeat_brakes() {
    let mut paper = abc(&[], 10);
    let directive = paper.on_send(&send(Time::ZERO, 0, Bytes::ZERO));
    assert_eq!((directive.ecn, directive.cwr), (Ecn::Ect1, false));
    let mut proxied = abc(&[("encoding", "proxied")], 10);
    let directive = proxied.on_send(&send(Time::ZERO, 0, Bytes::ZERO));
    assert_eq!((directive.ecn, directive.cwr), (Ecn::Ect1, true));
}

#[test]
fn paces_at_its_gain_times_the_window_per_round_trip_once_there_is_one() {
    let mut abc = abc(&[("pacing", "2")], 10);
    assert_eq!(abc.pacing_rate(), None);
    marked(&mut abc, marks(0, 0, 0), packets(10));
    // 2 * 10 packets * 8000 bits / 0.1 s = 1.6 Mbit/s.
    assert_eq!(abc.pacing_rate(), Some(Rate::from_bps(1_600_000)));
    assert_eq!(self::abc(&[], 10).pacing_rate(), None);
}

#[test]
fn an_idle_period_decays_both_windows() {
    let mut abc = abc(&[], 10);
    for pkts in [10, 20, 40] {
        for _ in 0..pkts {
            marked(&mut abc, marks(1, 0, 0), packets(pkts));
        }
    }
    abc.on_idle_restart(&idle(Time::from_secs(2), Duration::from_millis(700)));
    assert_eq!((abc.cwnd(), abc.w_abc_bytes), (packets(20), packets(20).as_f64()));
}

#[test]
fn any_controller_that_hears_drops_ce_and_delay_can_take_cubics_place() {
    let names: std::vec::Vec<_> = Other::ALL.iter().map(|other| other.name()).collect();
    for name in ["cubic", "newreno", "bbr", "copa", "vegas"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    for &other in Other::ALL {
        let built = second(&Config::new(Values { other, ..Values::default() }).unwrap(), &connection(10));
        assert!(matches!(built.encoding(), Encoding::None | Encoding::Classic), "{}", other.name());
        assert!(Other::parse(other.name()) == Ok(other) && built.cwnd() > Bytes::ZERO);
    }
    assert_eq!(Other::parse("reno").map(|other| other.show()), Ok("newreno".into()));
    for refused in ["abc", "sprout", "nobody"] {
        let error = Config::from_options([("other", refused)]).unwrap_err().to_string();
        assert!(error.contains("one of ") && error.contains("cubic"), "{error}");
    }
}

/// What one ACK of `count` packets, numbered from `first`, makes of it: sent 100 ms ago, 8 Mbit/s.
fn delivered(abc: &mut Abc, first: u64, marks: Marks, inflight: Bytes) {
    let tag = abc.on_send(&send(Time::ZERO, first, inflight)).tag;
    let info = PacketInfo { tag, ..packet(first, Time::from_millis(900)) };
    abc.on_ack(&AckEvent { marks, inflight_before: inflight, ..ack(Time::from_secs(1), &[info], RTT) });
}

#[test]
fn a_controller_that_paces_is_told_that_marks_were_the_limit_and_gets_its_tags_back() {
    let mut abc = abc(&[("other", "bbr")], 10);
    delivered(&mut abc, 0, marks(0, 1, 0), packets(10));
    // w_abc 9, BBR's first window 10: marks govern, and from now on packets say so.
    assert!(abc.marks_govern());
    let tag = abc.on_send(&send(Time::from_secs(1), 1, Bytes::ZERO)).tag;
    assert_eq!(tag & MARKS_GOVERNED, MARKS_GOVERNED);
    delivered(&mut abc, 2, marks(0, 1, 0), packets(10));
    assert!(
        abc.shown[0].iter().all(|packet| packet.app_limited && packet.tag == 0) && abc.shown[0].len() == 1
    );
    // Cubic does not ask, so its packets go without.
    let mut plain = self::abc(&[], 10);
    delivered(&mut plain, 0, marks(0, 1, 0), packets(10));
    assert!(plain.marks_govern() && plain.on_send(&send(Time::ZERO, 1, Bytes::ZERO)).tag == 0);
}

#[test]
fn the_rate_of_a_controller_that_paces_is_the_flows_and_counts_as_a_window() {
    let mut abc = abc(&[("other", "bbr")], 10);
    let others = abc.second.as_ref().unwrap().pacing_rate();
    assert!(others.is_some() && abc.pacing_rate() == others);
    delivered(&mut abc, 0, marks(1, 0, 0), packets(10));
    let rate = abc.pacing_rate().unwrap();
    let second = abc.second.as_ref().unwrap();
    assert_eq!(abc.nonabc(), Some(rate.bytes_in(RTT).max(MSS).min(second.cwnd())));
    assert_eq!(abc.recovery(), if abc.marks_govern() { Recovery::Own } else { second.recovery() });
    // Its own pacing, where that is slower.
    let mut both = self::abc(&[("other", "bbr"), ("pacing", "0.01")], 10);
    delivered(&mut both, 0, marks(1, 0, 0), packets(10));
    assert!(both.pacing_rate() < both.second.as_ref().unwrap().pacing_rate());
}

/// open-questions#X-14: the cap follows every ACK and nothing else.
#[test]
fn neither_a_loss_nor_a_timeout_clips() {
    let mut abc = abc(&[], 100);
    abc.on_loss(&LossEvent { inflight: packets(2), ..loss(Time::from_secs(1)) });
    abc.on_timeout(&timeout(Time::from_secs(1), Timeout::Rto));
    assert_eq!(abc.w_abc_bytes, packets(100).as_f64());
    // The ACK that empties the pipe counts what it found there.
    marked(&mut abc, marks(0, 0, 40), packets(40));
    assert_eq!(abc.w_abc_bytes, packets(80).as_f64());
}

/// One ACK of one packet with these marks, an RTT of 100 ms times `queue` with the smallest at 100 ms.
fn heard(abc: &mut Abc, marks: Marks, inflight: Bytes, queue: u64) {
    let acked = [packet(0, Time::ZERO)];
    let mut event = AckEvent { marks, inflight_before: inflight, ..ack(Time::from_secs(1), &acked, RTT) };
    event.rtt.smoothed = RTT * queue;
    abc.on_ack(&event);
}

#[test]
fn where_no_marks_come_the_other_window_governs_until_they_do() {
    let mut abc = abc(&[], 10);
    for _ in 0..9 {
        heard(&mut abc, marks(0, 0, 0), packets(100), 1);
    }
    assert_eq!(abc.w_abc_bytes, packets(10).as_f64());
    heard(&mut abc, marks(0, 0, 0), packets(100), 1);
    assert_eq!(abc.w_abc_bytes, packets(200).as_f64());
    assert_eq!(abc.cwnd(), abc.second.as_ref().unwrap().cwnd());
    heard(&mut abc, marks(0, 1, 0), packets(100), 1);
    assert!(abc.w_abc_bytes < packets(200).as_f64(), "a brake is heard again");
    // CE is a mark: an ordinary router between ABC's does not make marks doubtful.
    for _ in 0..20 {
        heard(&mut abc, marks(0, 0, 1), packets(100), 1);
    }
    assert!(!abc.marks_are_spoiled());
    // Nobody else to go by.
    let mut alone = self::abc(&[("second_window", "false")], 10);
    for _ in 0..20 {
        heard(&mut alone, marks(0, 0, 0), packets(100), 1);
    }
    assert_eq!(alone.w_abc_bytes, packets(10).as_f64());
}

#[test]
fn brakes_without_end_and_without_a_queue_are_nobodys_word() {
    let brakes = |queue| {
        let mut abc = abc(&[("additive_increase", "false")], 10);
        // Eight to the floor of two packets, then as many as it takes.
        for _ in 0..8 + 63 {
            heard(&mut abc, marks(0, 1, 0), packets(2), queue);
        }
        assert_eq!(abc.w_abc_bytes, packets(2).as_f64());
        heard(&mut abc, marks(0, 1, 0), packets(2), queue);
        heard(&mut abc, marks(0, 1, 0), packets(2), queue);
        abc
    };
    let mut spoiled = brakes(1);
    assert_eq!(spoiled.w_abc_bytes, packets(10).as_f64(), "the cap's floor");
    // It stays so although a queue may now stand, until an accelerate shows that somebody tells the two
    // apart.
    heard(&mut spoiled, marks(0, 1, 0), packets(50), 2);
    assert_eq!(spoiled.w_abc_bytes, packets(100).as_f64());
    heard(&mut spoiled, marks(1, 0, 0), packets(50), 2);
    heard(&mut spoiled, marks(0, 1, 0), packets(50), 2);
    assert!(!spoiled.marks_are_spoiled() && spoiled.w_abc_bytes <= packets(100).as_f64());
    // With a queue behind them brakes are what an ABC router says.
    assert_eq!(brakes(2).w_abc_bytes, packets(2).as_f64());
}

/// D5: a queue before any brake is one that the second window answers for.
#[test]
fn linux_cubic_ends_slow_start_by_delay_unless_a_router_has_braked() {
    for (braked, ends) in [(false, true), (true, false)] {
        let mut abc = abc(&[("cubic", "linux")], 40);
        if braked {
            marked(&mut abc, marks(0, 1, 0), packets(1_000));
        }
        // Rounds of 16 ACKs, each 30 ms longer than the one before.
        for number in 0..64_u64 {
            let rtt = Duration::from_millis(100 + 30 * (number / 16));
            let now = Time::from_secs(1) + Duration::from_millis(10 * number);
            abc.on_send(&send(now, number / 16 * 16 + 40, packets(40)));
            let acked = [packet(number, Time::ZERO)];
            abc.on_ack(&AckEvent { marks: marks(1, 0, 0), ..ack(now, &acked, rtt) });
        }
        assert_eq!(
            abc.ssthresh().is_some_and(|ssthresh| ssthresh < packets(1_000)),
            ends,
            "braked: {braked}"
        );
    }
}

/// abc20 4.2: behind a proxy the codepoint of a brake is CE, which no probe and no demand may send.
#[test]
fn probes_and_demands_are_refused_where_a_brake_is_congestion() {
    for given in [("probe", "8"), ("demand", "measured")] {
        assert!(Config::from_options([("encoding", "abc"), given]).is_ok());
        let refused = Config::from_options([("encoding", "proxied"), given]).unwrap_err().to_string();
        assert!(refused.contains(given.0) && refused.contains("encoding=abc"), "{refused}");
    }
    assert!(Config::from_options([("encoding", "proxied")]).is_ok());
}

/// abc17 4: a brake that the sender made itself says nothing of a router; one more in the same ACK takes a
/// packet.
#[test]
fn the_senders_own_brakes_do_not_shrink_its_window() {
    let mut abc = abc(&[PLAIN, &[("probe", "8")]].concat(), 100);
    let tags: std::vec::Vec<u64> =
        (0..9).map(|number| abc.on_send(&send(Time::ZERO, number, Bytes::ZERO)).tag).collect();
    assert!(tags[7] != 0 && tags[..7].iter().all(|tag| *tag == 0), "{tags:?}");
    for (brakes, expected_pkts) in [(1, 100), (2, 99)] {
        let acked = [packet(6, Time::ZERO), PacketInfo { tag: tags[7], ..packet(7, Time::ZERO) }];
        abc.on_ack(&AckEvent { marks: marks(0, brakes, 0), ..ack(Time::from_secs(1), &acked, RTT) });
        assert_eq!(abc.cwnd(), packets(expected_pkts), "{brakes} brakes");
    }
}

/// abc17 6, footnote 5: d/2 packets a second ask for d, and d counts whole packets: 1052 bytes with their
/// headers.
#[test]
fn a_demand_counts_headers() {
    let mut abc = abc(&[("demand", "2104kbps")], 100);
    // 250 packets of 8416 bits a second: 125 accelerates, after the five that the bucket held.
    let asked = (0..4_000)
        .filter(|&number| {
            let event = send(Time::from_millis(number), number, packets(10));
            abc.on_send(&event).ecn == Ecn::Ect1
        })
        .count();
    assert!((500..=505).contains(&asked), "{asked} accelerates in 4 s");
}

/// The second window is another controller, and tags are its own: it must not see those of ABC, on no packet.
#[test]
fn the_second_window_is_shown_lost_packets_without_abcs_tags() {
    let mut abc = abc(&[("probe", "8")], 100);
    let tag = (0..8).map(|number| abc.on_send(&send(Time::ZERO, number, Bytes::ZERO)).tag).last().unwrap();
    assert_ne!(tag, 0);
    let lost = [PacketInfo { tag, ..packet(7, Time::ZERO) }];
    let acked = [packet(8, Time::ZERO)];
    abc.on_ack(&AckEvent { lost: &lost, newly_lost: MSS, ..ack(Time::from_secs(1), &acked, RTT) });
    assert_eq!((abc.shown[0].len(), abc.shown[1].len()), (1, 1));
    assert_eq!((abc.shown[1][0].number, abc.shown[1][0].tag), (7, 0));
}
