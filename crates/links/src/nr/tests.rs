use brakelight_core::packet::PacketId;
use brakelight_core::parameters::Parameters;
use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::cellular::cell::Cell;
use crate::cellular::channel::Channel;

type Options<'a> = &'a [(&'a str, &'a str)];

/// A channel that always has the best index, and no errors.
const CLEAR: Options<'static> = &[("snr", "40"), ("shadow", "0"), ("fading", "none"), ("bler", "0")];

fn config(options: &[Options<'_>]) -> Config {
    Config::from_options(options.concat()).unwrap()
}

fn station(options: &[Options<'_>], limit: u32, seed: u64) -> Nr<Sample> {
    let queue = QueueConfig::new("droptail", &[]).unwrap();
    let site = Site { random: Random::stream(seed, "nr"), ids: PacketId(1 << 63) };
    Nr::new(&config(options), &queue, Limit::Packets(limit), site)
}

/// Everything that happens until nothing is left: identity, time, whether it was handed on.
fn drain(station: &mut Nr<Sample>) -> Vec<(u64, Time, bool)> {
    let mut all = Vec::new();
    while let Some(wake) = station.next_wakeup() {
        while let Some(output) = station.poll(wake) {
            all.push((output.packet().id, output.at(), matches!(output, Output::Departed(_))));
        }
    }
    all
}

fn us(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// How long a packet takes that arrives alone at `at`.
fn alone(options: &[Options<'_>], at: Time) -> Duration {
    let mut station = station(options, 500, 1);
    station.accept(at, Sample::new(0, 60));
    let [(0, left, true)] = drain(&mut station)[..] else { panic!("one packet") };
    left.since(at)
}

/// The mean of that over packets a second apart, whose phases are spread evenly over `period`.
fn mean_alone_ms(options: &[Options<'_>], period: Duration) -> f64 {
    const ARRIVALS: u64 = 400;
    let mut station = station(options, 500, 1);
    let mut took_ms = 0.0;
    for index in 0..ARRIVALS {
        let phase = Duration::from_nanos(period.as_nanos() * (2 * index + 1) / (2 * ARRIVALS));
        let at = Time::from_secs(1 + index) + phase;
        station.accept(at, Sample::new(index, 60));
        let [(_, left, true)] = drain(&mut station)[..] else { panic!("one packet") };
        took_ms += left.since(at).as_millis_f64();
    }
    took_ms / ARRIVALS as f64
}

const SECONDS: u64 = 10;

/// What is carried when all users always have data, Mbit/s, by user.
fn backlogged(station: &mut Nr<Sample>) -> Vec<f64> {
    let users = station.station.users.len() as u32;
    let mut carried = alloc::vec![0.0; users as usize];
    let mut id = 0;
    for ms in 0..1000 * SECONDS {
        let now = Time::from_millis(ms);
        for flow in 0..users {
            let queue = &station.station.users[flow as usize].queue;
            for _ in queue.backlog().packets..1000 {
                station.accept(now, Sample { flow, ..Sample::new(id, 9000) });
                id += 1;
            }
        }
        while let Some(output) = station.poll(now) {
            if let Output::Departed(departed) = output {
                carried[departed.packet.flow as usize] += 72e-3 / SECONDS as f64;
            }
        }
    }
    carried
}

#[test]
fn the_best_channel_carries_what_the_standard_says() {
    // ts38306 4.1.2: layers x 8 bits x 948/1024 x 273 x 12 / (0.5 ms / 14) x (1 - 0.14) = 2337.0 Mbit/s.
    let fdd: Options<'_> = &[("pattern", "fdd"), ("layers", "4")];
    let formula = 4.0 * 8.0 * 948.0 / 1024.0 * 273.0 * 12.0 / (0.5e-3 / 14.0) * 0.86 * 1e-6;
    assert!((formula - 2337.0_f64).abs() < 0.1, "{formula}");
    let peak = config(&[CLEAR, fdd]).peak().as_mbps_f64();
    // Whole bits of a block, and an efficiency of four digits.
    assert!((peak / formula - 1.0).abs() < 1e-4, "{peak}");
    // DDDSU with 10 of 14 symbols: 3.714 of 5 slots.
    let tdd = config(&[CLEAR, &[("layers", "4")]]).peak().as_mbps_f64();
    assert!((tdd / formula - 3.714 / 5.0).abs() < 1e-4, "{tdd}");
    // Up: an overhead of 0.08, one slot of five; two symbols are too few.
    let up = config(&[CLEAR, &[("layers", "4"), ("direction", "up")]]).peak().as_mbps_f64();
    assert!((up / formula - 0.92 / 0.86 / 5.0).abs() < 1e-4, "{up}");
    for options in [fdd, &[("layers", "4")], &[("layers", "4"), ("direction", "up")]] {
        let mut station = station(&[CLEAR, options], 1000, 1);
        let said = config(&[CLEAR, options]).peak().as_mbps_f64();
        let carried = backlogged(&mut station)[0];
        assert!((carried / said - 1.0).abs() < 0.005, "{options:?}: {carried} of {said}");
        let nominal = station.station.capacity.nominal().as_mbps_f64();
        assert!((nominal / said - 1.0).abs() < 1e-6, "{options:?}: {nominal} of {said}");
    }
}

#[test]
fn backlogged_users_are_given_what_is_said_to_be_the_capacity() {
    for options in [
        &[("blocks", "51")][..],
        &[
            ("users", "3"),
            ("blocks", "106"),
            ("spread", "10"),
            ("bler", "0.4"),
            ("combining", "1"),
            ("attempts", "2"),
        ],
        &[("direction", "up"), ("blocks", "106"), ("bler", "0.3"), ("users", "2"), ("scheduler", "rr")],
        &[("direction", "up"), ("pattern", "DDDDDDDSUU"), ("blocks", "106"), ("special", "6/4/4")],
        &[("direction", "up"), ("blocks", "106"), ("users", "2"), ("configured", "20")],
        &[("blocks", "51"), ("rlc", "30pkt"), ("handover", "1s"), ("users", "2")],
    ] {
        let mut station = station(&[options], 1000, 1);
        let carried: f64 = backlogged(&mut station).iter().sum();
        let said = station.capacity_between(Time::ZERO, Time::from_secs(SECONDS)).0 as f64;
        let ratio = carried / (said * 8e-6 / SECONDS as f64);
        assert!((ratio - 1.0).abs() < 0.02, "{options:?}: {ratio}");
    }
}

#[test]
fn a_packet_waits_for_a_slot_that_goes_its_way() {
    // DDDSU of 0.5 ms: what comes after the special slot began at 1.5 ms waits until 2.5 ms; decoding takes a
    // slot.
    let took = |at| alone(&[CLEAR], us(at)).as_nanos() / 1000;
    assert_eq!([10_000, 10_100, 11_500, 11_501, 12_400].map(took), [1000, 1400, 1000, 1999, 1100]);
    // By hand: slots 0 to 2 wait 0.25 ms on average, those of 3 the same for the special slot; in slots 3 and
    // 4 the mean wait is 0.5 ms more and 0.25 ms.
    let mean = mean_alone_ms(&[CLEAR], Duration::from_micros(2500));
    let by_hand = (3.0 * 0.25 + (0.5 + 0.25) + 0.25) / 5.0 + 1.0;
    assert!((mean - by_hand).abs() < 0.01, "{mean} and {by_hand}");
    // Slots of 0.125 ms.
    let mean = mean_alone_ms(
        &[CLEAR, &[("scs", "120"), ("blocks", "66"), ("pattern", "fdd"), ("decode", "0")]],
        Duration::from_millis(1),
    );
    assert!((mean - (0.0625 + 0.125)).abs() < 0.001, "{mean}");
}

#[test]
fn a_block_that_fails_comes_again_when_feedback_and_pattern_allow() {
    let config = config(&[]);
    let timing = Timing::new(&config, config.frame());
    // Slot 0: feedback in the special slot 3 (k1 = 2), answered from slot 6 on. Slot 1 the same. Slot 2:
    // feedback in 4, answered from 7 on. Slot 3: feedback in 8, answered in 11.
    assert_eq!([0, 1, 2, 3].map(|slot| timing.repeats(slot)), [6, 6, 7, 11]);
    // Two symbols down in the special slot are no feedback's.
    let all_down = self::config(&[&[("special", "12/2/0")]]);
    let timing = Timing::new(&all_down, all_down.frame());
    assert_eq!([0, 1, 2, 3].map(|slot| timing.repeats(slot)), [7, 7, 7, 12]);
    // Up: sent in 4, answered from 7 on, which is down; again in the first slot up from 9 on.
    let up = self::config(&[&[("direction", "up")]]);
    let timing = Timing::new(&up, up.frame());
    assert_eq!(timing.repeats(4), 9);
    // LTE's eight subframes.
    let lte = self::config(&[&[
        ("pattern", "fdd"),
        ("scs", "15"),
        ("blocks", "50"),
        ("k1", "4"),
        ("turnaround", "4"),
    ]]);
    assert_eq!(Timing::new(&lte, lte.frame()).repeats(3), 11);
}

#[test]
fn attempts_fail_as_often_as_they_should() {
    // Half of the first attempts fail, a quarter of the second: 0.5, 0.375, 0.125.
    let options: Options<'_> = &[
        ("snr", "40"),
        ("shadow", "0"),
        ("fading", "none"),
        ("bler", "0.5"),
        ("combining", "0.5"),
        ("attempts", "2"),
        ("pattern", "fdd"),
    ];
    // In FDD every slot is followed by feedback in 2 and an answer in 3: 2.5 ms a round.
    for (mode, last) in [("am", Some(30)), ("um", None)] {
        let mut station = station(&[options, &[("rlc_mode", mode)]], 500, 2);
        let mut counts = [0; 3];
        for id in 0..2000 {
            let at = Time::from_millis(200 * id);
            station.accept(at, Sample::new(id, 1500));
            let [(_, left, handed_on)] = drain(&mut station)[..] else { panic!("one packet") };
            let rounds = (left.since(at).as_millis_f64() - 1.0) / 2.5;
            match (handed_on, rounds) {
                (true, 0.0) => counts[0] += 1,
                (true, 1.0) => counts[1] += 1,
                // Given up when the second feedback is in; then a status report, or nothing.
                (true, rounds) => {
                    assert!(rounds * 2.5 + 1e-6 >= 5.0 + last.expect("lost otherwise") as f64, "{rounds}");
                    counts[2] += 1;
                }
                (false, _) => {
                    assert_eq!((mode, left.since(at)), ("um", Duration::from_millis(5)));
                    counts[2] += 1;
                }
            }
        }
        for (count, expected) in counts.into_iter().zip([1000_i32, 750, 250]) {
            assert!((count - expected).abs() < 70, "{mode}: {counts:?}");
        }
    }
    // A = 1.5, g = 0.125.
    assert!((harq::received(&config(&[options])) - 0.875 / 1.5).abs() < 1e-12);
    // Without an end and without combining it is what LTE's station counts.
    let plain = config(&[&[("bler", "0.3"), ("combining", "1"), ("attempts", "32")]]);
    assert!((harq::received(&plain) - 0.7).abs() < 1e-9);
}

#[test]
fn an_idle_user_asks_before_it_sends() {
    // 3GPP's example of LTE, ts36881 table 5.2.1-1: on average 5 ms until it may ask, every 10 ms, or 0.5 ms;
    // asking takes 1 ms, the answer 3 + 1, the user 3, the data 1, decoding 3: 17 ms and 12.5 ms.
    let lte: Options<'_> = &[
        ("direction", "up"),
        ("pattern", "fdd"),
        ("scs", "15"),
        ("blocks", "50"),
        ("turnaround", "4"),
        ("k2", "4"),
        ("decode", "3"),
    ];
    for (request, total) in [("10ms", 17.0), ("1ms", 12.5)] {
        let mean = mean_alone_ms(&[CLEAR, lte, &[("request", request)]], Duration::from_millis(10));
        assert!((mean - total).abs() < 0.02, "{request}: {mean}");
    }
    // DDDSU at 30 kHz. It asks in the special slot 3, at 11.5 ms. That is known from slot 6 on, and the grant
    // for slot 9 is decided in 7. Slot 9 begins at 14.5 ms and is decoded a slot after its end, at 15.5 ms.
    assert_eq!(alone(&[CLEAR, &[("direction", "up")]], us(10_000)), Duration::from_micros(5500));
    // With blocks of its own it waits for slot 4 alone: 12.0 ms, and again 1 ms.
    let own: Options<'_> = &[("direction", "up"), ("configured", "10")];
    assert_eq!(alone(&[CLEAR, own], us(10_000)), Duration::from_millis(3));
}

#[test]
fn a_backlogged_user_asks_once() {
    let mut station =
        station(&[CLEAR, &[("direction", "up"), ("blocks", "51"), ("request", "640ms")]], 500, 1);
    // 51 blocks carry 51 x 2290 bits = 14.6 kB in a slot; 300 bytes first.
    for id in 0..60 {
        station.accept(us(0), Sample::new(id, 1500));
    }
    let all = drain(&mut station);
    let slots: Vec<u64> = all.iter().map(|(_, at, _)| at.since(Time::ZERO).as_nanos() / 500_000).collect();
    // Asked in slot 3, a first grant in 9; what it says is known in 12, decided for slot 14, and from then on
    // every slot up is full: nine packets each.
    assert_eq!(slots[0], 14 + 2);
    let per_slot = |slot| slots.iter().filter(|&&other| other == slot).count();
    assert!([16, 21, 26, 31].map(per_slot).iter().all(|&count| count == 9 || count == 10), "{slots:?}");
    assert_eq!(slots.len(), 60);
}

#[test]
fn the_buffer_below_the_queue_hides_waiting_from_it_and_costs_nothing() {
    let run = |rlc: &str| {
        let mut station = station(&[&[("blocks", "24"), ("rlc", rlc), ("bler", "0.3")]], 500, 5);
        let mut waiting = 0;
        for id in 0..400 {
            station.accept(us(id * 100), Sample::new(id, 1500));
            waiting = waiting.max(station.station.users[0].queue.backlog().packets);
        }
        (drain(&mut station), waiting)
    };
    let (plain, seen) = run("0pkt");
    assert!(plain.iter().all(|(_, _, handed_on)| *handed_on));
    for (rlc, hidden) in [("50pkt", 50), ("150kB", 100)] {
        let (deep, less) = run(rlc);
        assert_eq!(deep, plain, "the same packets at the same times");
        // A packet that is partly sent is in the buffer, too.
        assert!((seen - less).abs_diff(hidden) <= 1, "{rlc}: {seen} and {less}");
    }
}

#[test]
fn a_handover_interrupts_and_forwards_or_loses() {
    let handover: Options<'_> =
        &[("blocks", "24"), ("handover", "100ms"), ("interruption", "30ms"), ("rlc", "20pkt")];
    let run = |forward: &str| {
        let mut station = station(&[CLEAR, handover, &[("forward", forward)]], 500, 3);
        // As many as take about 50 ms, from 60 ms on.
        for id in 0..300 {
            station.accept(us(60_000), Sample::new(id, 1500));
        }
        drain(&mut station)
    };
    let (forwarded, lost) = (run("true"), run("false"));
    assert!(forwarded.iter().all(|(_, _, handed_on)| *handed_on));
    assert!(forwarded.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order");
    for all in [&forwarded, &lost] {
        // What was decoded at the last moment leaves at 100 ms; the next slot ends at 130.5 ms, and is
        // decoded at 131 ms.
        let inside = all.iter().filter(|(_, at, on)| *on && *at > us(100_000) && *at < us(131_000)).count();
        assert_eq!(inside, 0);
        assert!(
            all.iter().any(|(_, at, _)| *at <= us(100_000)) && all.iter().any(|(_, at, _)| *at > us(131_000))
        );
    }
    let dropped: Vec<u64> = lost.iter().filter(|(_, _, on)| !on).map(|(id, ..)| *id).collect();
    // The buffer's twenty, and what was sent in the last two slots.
    assert!((20..40).contains(&dropped.len()), "{dropped:?}");
    assert!(lost.iter().filter(|(_, _, on)| !on).all(|(_, at, _)| *at == us(100_000)));
    assert!(dropped.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{dropped:?}");
}

#[test]
fn handovers_of_users_take_turns_and_random_ones_come_as_often() {
    let cell = config(&[&[("users", "4"), ("handover", "2s"), ("interruption", "100ms")]]).cell();
    let starts = |cell: &Cell, index| {
        let channel = Channel::new(cell, index, &mut Random::stream(1, "channel"));
        let slots = channel.slots();
        (0..slots).filter(|&slot| channel.leaves_cell(slot)).collect::<Vec<_>>()
    };
    // At 0.5, 1, 1.5 and 2 s.
    assert_eq!([0, 1, 2, 3].map(|index| starts(&cell, index)[0]), [1000, 2000, 3000, 4000]);
    let random =
        config(&[&[("handover", "500ms"), ("interruption", "50ms"), ("handover_gaps", "random")]]).cell();
    let all = starts(&random, 0);
    // 240 in two minutes, give or take three standard deviations.
    assert!(all.len().abs_diff(240) < 50, "{}", all.len());
    let gaps: Vec<u64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap > 100), "an interruption ends before the next begins");
    assert!(gaps.iter().any(|&gap| gap < 300) && gaps.iter().any(|&gap| gap > 3000), "{gaps:?}");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |options: Options<'_>| {
        alloc::string::ToString::to_string(&Config::from_options(options.iter().copied()).unwrap_err())
    };
    let cases: [(Options<'_>, &str); 14] = [
        (&[("report", "5100us")], "report = 5.1ms must be whole slots of 500us"),
        (&[("report", "7ms")], "report = 7ms must divide 120s"),
        (&[("scs", "60")], "blocks must be at most 135"),
        (&[("scs", "45")], "scs = `45` is not one of 15, 30, 60, 120"),
        (&[("direction", "up"), ("layers", "8")], "layers must be at most 4 up"),
        (&[("pattern", "DDDSUUU")], "pattern must divide 20ms: its slots last 3.5ms"),
        (&[("pattern", "DDDD")], "pattern has no slot up for feedback"),
        (
            &[("pattern", "DDDS"), ("direction", "up")],
            "pattern has no slot that carries data in this direction",
        ),
        (&[("pattern", "DDDXU")], "is not slots such as `DDDSU`"),
        (&[("special", "10/2/3")], "14 together"),
        (&[("pattern", "DDDDDDDSUU"), ("window", "2ms")], "window must be at least 5ms: one pattern"),
        (&[("users", "4"), ("configured", "100")], "configured must be at most blocks / users"),
        (&[("handover", "40ms")], "handover must be longer than interruption"),
        (&[("rlc", "many")], "rlc = `many` is not"),
    ];
    for (options, says) in cases {
        let error = refused(options);
        assert!(error.contains(says), "{options:?}: {error}");
    }
}
