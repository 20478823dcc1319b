//! What each element without a queue does, by behaviour. What all of them must do is in
//! `tests/path_conformance.rs`.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::facts::Options;
use brakelight_core::packet::{Packet, PacketId};
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_testkit::packet::Sample;

use super::elements::{AnyElement, ElementConfig};

const COPIES: u64 = 1 << 40;

fn element(name: &str, options: Options<'_>) -> AnyElement<Sample> {
    let site = Site { random: Random::stream(7, name), ids: PacketId(COPIES) };
    ElementConfig::new(name, options).unwrap().build(site)
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn drain(element: &mut AnyElement<Sample>, until: Time) -> Vec<Output<Sample>> {
    core::iter::from_fn(|| element.poll(until)).collect()
}

/// (id, ms) of what left.
fn departures(outputs: &[Output<Sample>]) -> Vec<(u64, f64)> {
    let left = |output: &Output<Sample>| match output {
        Output::Departed(departed) | Output::Duplicated(departed) => {
            Some((departed.packet.id, departed.at.as_nanos() as f64 * 1e-6))
        }
        Output::Dropped(_) => None,
    };
    outputs.iter().filter_map(left).collect()
}

/// One packet a millisecond; which of them were dropped.
fn drops(element: &mut AnyElement<Sample>, packets: u64, size: u32) -> Vec<bool> {
    let mut lost = Vec::new();
    for id in 0..packets {
        element.accept(ms(id), Sample::new(id, size));
        lost.extend(drain(element, ms(id)).iter().map(|output| matches!(output, Output::Dropped(_))));
    }
    assert_eq!(lost.len() as u64, packets);
    lost
}

fn share(lost: &[bool]) -> f64 {
    lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
}

/// Whether `measured` is within five standard deviations of a binomial share.
fn close(measured: f64, expected: f64, n: usize) -> bool {
    (measured - expected).abs() < 5.0 * libm::sqrt(expected * (1.0 - expected) / n as f64)
}

#[test]
fn a_delay_line_delays_by_a_constant() {
    let mut line = element("delay", &[("delay", "30ms")]);
    for (id, at) in [(0, 0), (1, 0), (2, 12)] {
        line.accept(ms(at), Sample::new(id, 100));
    }
    assert_eq!(line.next_wakeup(), Some(ms(30)));
    assert_eq!(departures(&drain(&mut line, ms(41))), [(0, 30.0), (1, 30.0)]);
    // Polled late, it still says when the packet left.
    assert_eq!(departures(&drain(&mut line, ms(99))), [(2, 42.0)]);
    assert_eq!(line.next_wakeup(), None);
}

#[test]
fn independent_loss_loses_the_share_it_was_told_to() {
    let lost = drops(&mut element("loss", &[("rate", "0.03")]), 100_000, 1500);
    assert!(close(share(&lost), 0.03, lost.len()), "{}", share(&lost));
    // Independent: a loss is as likely after a loss as ever.
    let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
    assert!(close(share(&after), 0.03, after.len()), "{}", share(&after));
    assert_eq!(share(&drops(&mut element("loss", &[("rate", "0")]), 1000, 1500)), 0.0);
    assert_eq!(share(&drops(&mut element("loss", &[("rate", "1")]), 1000, 1500)), 1.0);
}

#[test]
fn a_schedule_loses_by_the_time_of_arrival() {
    let schedule = ("steps", "300ms:0/200ms:1/500ms:0.25");
    // One packet a millisecond, for 20 periods.
    let lost = drops(&mut element("loss-steps", &[schedule]), 20_000, 1500);
    let of = |from: usize, to: usize| {
        let picked = lost.iter().enumerate().filter(|(at, _)| (from..to).contains(&(at % 1000)));
        picked.map(|(_, lost)| *lost).collect::<Vec<bool>>()
    };
    assert_eq!((share(&of(0, 300)), share(&of(300, 500))), (0.0, 1.0));
    let quarter = of(500, 1000);
    assert!(close(share(&quarter), 0.25, quarter.len()), "{}", share(&quarter));
    // Without `repeat` the last probability stays.
    let lost =
        drops(&mut element("loss-steps", &[("steps", "300ms:1/1ms:0"), ("repeat", "false")]), 5_000, 1500);
    assert_eq!(lost.iter().rposition(|lost| *lost), Some(299));
}

#[test]
fn a_schedule_of_loss_is_refused_with_what_would_be_valid() {
    let refusal =
        |steps: &str| ElementConfig::new("loss-steps", &[("steps", steps)]).unwrap_err().to_string();
    let valid = "is out of range: valid is a time above 0s and up to 86400s with 0 to 1 each";
    assert_eq!(refusal("1s:0/1s:1.5"), format!("loss-steps: steps = `1s:0/1s:1.5` {valid}"));
    assert_eq!(refusal("0s:0.5"), format!("loss-steps: steps = `0s:0.5` {valid}"));
    for wrong in ["", "0.5", "1s", "1s:x", "1:0.5", "1s:NaN"] {
        assert!(refusal(wrong).starts_with("loss-steps: steps = `"), "{}", refusal(wrong));
    }
    assert!(
        refusal("1s:0/0.5").contains("steps such as `9s:0/1s:0.1`: `0.5` is no time"),
        "{}",
        refusal("1s:0/0.5")
    );
}

#[test]
fn gilbert_elliott_loses_in_bursts_of_the_expected_length() {
    let lost = drops(&mut element("gilbert-elliott", &[("p", "0.01"), ("r", "0.25")]), 200_000, 1500);
    // p / (p + r) = 3.85 %; the variance of a Markov chain's share is larger by (2 - p - r) / (p + r).
    let expected: f64 = 0.01 / 0.26;
    let deviation = libm::sqrt(expected * (1.0 - expected) / lost.len() as f64 * (1.74 / 0.26));
    assert!((share(&lost) - expected).abs() < 5.0 * deviation, "{}", share(&lost));
    // Bursts are geometric with mean 1 / r: a loss follows a loss with probability 1 - r.
    let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
    assert!(close(share(&after), 0.75, after.len()), "{}", share(&after));
}

#[test]
fn gilbert_elliott_loses_in_both_states_with_their_own_probability() {
    // Always in the good state, then always in the bad one after the first packet.
    let good = drops(&mut element("burst-loss", &[("p", "0"), ("loss_good", "0.2")]), 20_000, 1500);
    assert!(close(share(&good), 0.2, good.len()), "{}", share(&good));
    let bad = drops(&mut element("burst-loss", &[("p", "1"), ("r", "0"), ("loss_bad", "0.6")]), 20_000, 1500);
    assert!(!bad[0]);
    assert!(close(share(&bad), 0.6, bad.len()), "{}", share(&bad));
}

/// 12 kbit packets at 1.2 Mbit/s: a token for a packet every 10 ms.
#[test]
fn a_policer_passes_its_burst_and_then_its_rate_at_once_or_not_at_all() {
    let mut policer = element("policer", &[("rate", "1200kbps"), ("burst", "4500B")]);
    // Three packets of burst; of those every millisecond after that one in ten.
    let dropped = drops(&mut policer, 100, 1500);
    let passed: Vec<usize> = (0..100).filter(|id| !dropped[*id]).collect();
    assert_eq!(passed, [0, 1, 2, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
    // Idle for long, it has its burst again and no more.
    for id in 0..5 {
        policer.accept(ms(5000), Sample::new(id, 1500));
    }
    let outputs = drain(&mut policer, ms(5000));
    assert_eq!(departures(&outputs), [(0, 5000.0), (1, 5000.0), (2, 5000.0)]);
    let early = |output: &&Output<Sample>| matches!(output, Output::Dropped(dropped) if dropped.reason == Reason::Early);
    assert_eq!(outputs.iter().filter(early).count(), 2);
    assert_eq!(policer.next_wakeup(), None, "nothing waits");
}

#[test]
fn a_policer_loses_no_fraction_of_a_token() {
    // 1 Gbit/s over a prime number of nanoseconds between packets: 10^6 packets of 500 bytes in 8.25 s.
    let mut policer = element("policer", &[("rate", "333333333bps"), ("burst", "1000B")]);
    let (mut passed, gap) = (0_u64, 8_251_u64);
    for id in 0..1_000_000 {
        let now = Time::from_nanos(id * gap);
        policer.accept(now, Sample::new(id, 500));
        passed += u64::from(matches!(policer.poll(now), Some(Output::Departed(_))));
    }
    // burst + rate * time, in whole packets.
    let bytes = 1000.0 + 333_333_333.0 / 8.0 * (999_999 * gap) as f64 * 1e-9;
    let most = libm::floor(bytes / 500.0) as u64;
    assert!(passed <= most && passed + 1 >= most, "{passed} of {most}");
}

#[test]
fn a_policer_that_no_packet_fits_passes_none() {
    let mut policer = element("policer", &[("rate", "1Gbps"), ("burst", "1499B")]);
    assert_eq!(share(&drops(&mut policer, 20, 1500)), 1.0);
}

/// 12 kbit packets at 1.2 Mbit/s: a token for a packet every 10 ms.
#[test]
fn a_breaker_passes_what_exceeds_its_rate_until_that_lasts_and_then_nothing() {
    let options = [("rate", "1200kbps"), ("burst", "3000B"), ("interval", "100ms"), ("down", "1s")];
    let mut breaker = element("circuit-breaker", &[&options[..], &[("threshold", "0.4")]].concat());
    // A packet every 5 ms: half of them are in excess. Three intervals of 100 ms later it opens.
    let dropped: Vec<usize> = (0..300_u64)
        .filter(|id| {
            breaker.accept(ms(5 * id), Sample::new(*id, 1500));
            drain(&mut breaker, ms(5 * id)).iter().any(|output| matches!(output, Output::Dropped(_)))
        })
        .map(|id| id as usize)
        .collect();
    // From 300 ms to 1300 ms.
    assert_eq!(dropped, (60..260).collect::<Vec<_>>());
    assert_eq!(breaker.next_wakeup(), None, "nothing waits");
}

#[test]
fn a_breaker_stays_closed_if_the_excess_does_not_last_or_is_small() {
    let passes = |threshold: &str, gap: u64, pause: u64| {
        let options = [("rate", "1200kbps"), ("burst", "3000B"), ("interval", "100ms")];
        let mut breaker = element("circuit-breaker", &[&options[..], &[("threshold", threshold)]].concat());
        (0..400_u64).all(|id| {
            // After every 30 packets a pause.
            let now = ms(gap * id + pause * (id / 30));
            breaker.accept(now, Sample::new(id, 1500));
            drain(&mut breaker, now).iter().all(|output| matches!(output, Output::Departed(_)))
        })
    };
    assert!(!passes("0.4", 5, 0), "half of it in excess");
    assert!(passes("0.6", 5, 0), "less than the threshold");
    assert!(passes("0.0", 10, 0), "at the rate");
    assert!(passes("0.4", 5, 500), "150 ms of excess, and intervals without packets");
}

#[test]
fn reordering_holds_packets_for_the_time_given() {
    let mut stretch = element("reorder", &[("rate", "1"), ("hold", "5ms")]);
    stretch.accept(ms(0), Sample::new(0, 100));
    stretch.accept(ms(1), Sample::new(1, 100));
    assert_eq!(stretch.next_wakeup(), Some(ms(5)));
    assert_eq!(departures(&drain(&mut stretch, ms(6))), [(0, 5.0), (1, 6.0)]);
}

#[test]
fn a_packet_held_back_follows_the_last_that_may_overtake_it() {
    let mut stretch = element("reorder", &[("rate", "0.2"), ("hold", "60s"), ("overtaken_by", "3")]);
    let mut order = Vec::new();
    for id in 0..1000 {
        stretch.accept(ms(id), Sample::new(id, 100));
        order.extend(departures(&drain(&mut stretch, ms(id))).into_iter().map(|(id, _)| id));
    }
    order.extend(departures(&drain(&mut stretch, ms(100_000))).into_iter().map(|(id, _)| id));
    let position = |id: u64| order.iter().position(|other| *other == id).unwrap();
    let mut held = 0;
    for id in 0..990 {
        let overtaken = (id + 1..1000).filter(|later| position(*later) < position(id)).count();
        // Those that were held back with it do not count as having overtaken it.
        assert!(overtaken == 0 || overtaken == 3, "packet {id} was overtaken by {overtaken}");
        held += usize::from(overtaken == 3);
    }
    assert!(close(held as f64 / 990.0, 0.2, 990), "{held}");
}

#[test]
fn duplicates_come_behind_their_originals_under_their_own_identity() {
    let mut stretch = element("duplicate", &[("rate", "1")]);
    stretch.accept(ms(3), Sample { flow: 9, ..Sample::new(5, 777) });
    stretch.accept(ms(4), Sample::new(6, 100));
    let outputs = drain(&mut stretch, ms(4));
    assert_eq!(departures(&outputs), [(5, 3.0), (COPIES, 3.0), (6, 4.0), (COPIES + 1, 4.0)]);
    let kinds: Vec<bool> = outputs.iter().map(|output| matches!(output, Output::Duplicated(_))).collect();
    assert_eq!(kinds, [false, true, false, true]);
    assert_eq!(*outputs[1].packet(), Sample { flow: 9, ..Sample::new(COPIES, 777) });
}

#[test]
fn rewriters_touch_what_they_say_and_nothing_else() {
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    let after = |action: &str, encoding: Encoding| {
        [NotEct, Ect1, Ect0, Ce].map(|ecn| {
            let mut stretch = element("rewrite", &[("action", action)]);
            stretch.accept(ms(0), Sample { ecn, encoding, ..Sample::new(0, 100) });
            drain(&mut stretch, ms(0))[0].packet().ecn
        })
    };
    assert_eq!(after("bleach", Encoding::Abc), [NotEct; 4]);
    assert_eq!(after("ect1-to-ect0", Encoding::L4s), [NotEct, Ect0, Ect0, Ce]);
    assert_eq!(after("mark-ce", Encoding::Classic), [NotEct, Ce, Ce, Ce]);
    assert_eq!(after("cheat", Encoding::Abc), [NotEct, Ect1, Ect1, Ce]);
    assert_eq!(after("cheat", Encoding::AbcProxied), [NotEct, Ect1, Ect0, Ect1]);
    assert_eq!(after("cheat", Encoding::Classic), [NotEct, Ect1, Ect0, Ce]);
    assert_eq!(after("erase-ce", Encoding::Classic), [NotEct, Ect1, Ect0, Ect0]);
    assert_eq!(after("erase-ce", Encoding::L4s), [NotEct, Ect1, Ect0, Ect1]);
}

#[test]
fn a_rewriter_touches_the_share_it_was_told_to() {
    let mut stretch = element("rewrite", &[("action", "mark-ce"), ("rate", "0.1")]);
    let mut marked = 0;
    for id in 0..20_000 {
        stretch.accept(ms(id), Sample { ecn: Ecn::Ect0, ..Sample::new(id, 100) });
        marked += drain(&mut stretch, ms(id)).iter().filter(|output| output.packet().ecn == Ecn::Ce).count();
    }
    assert!(close(marked as f64 / 20_000.0, 0.1, 20_000), "{marked}");
}

#[test]
fn ack_loss_spares_data() {
    assert_eq!(share(&drops(&mut element("ack-loss", &[("rate", "1")]), 100, 129)), 0.0);
    assert_eq!(share(&drops(&mut element("ack-loss", &[("rate", "1")]), 100, 128)), 1.0);
    let lost = drops(&mut element("ack-loss", &[("rate", "0.25")]), 20_000, 40);
    assert!(close(share(&lost), 0.25, lost.len()), "{}", share(&lost));
}

/// Two flows, an ACK of each every 2 ms. Of each three that follow each other the last waits for 5 ms, in
/// which two newer ones take its place.
#[test]
fn every_third_ack_of_each_flow_passes() {
    let mut stretch = element("ack-thin", &[("every", "3"), ("hold", "5ms")]);
    let mut outputs = Vec::new();
    for id in 0..24 {
        stretch.accept(ms(id), Sample { flow: (id % 2) as u32, ..Sample::new(id, 60) });
        outputs.append(&mut drain(&mut stretch, ms(id)));
    }
    outputs.append(&mut drain(&mut stretch, ms(60)));
    assert_eq!(
        departures(&outputs),
        [(8, 9.0), (9, 10.0), (14, 15.0), (15, 16.0), (20, 21.0), (21, 22.0), (22, 27.0), (23, 28.0)]
    );
    let early = |output: &&Output<Sample>| matches!(output, Output::Dropped(dropped) if dropped.reason == Reason::Early);
    assert_eq!(outputs.iter().filter(early).count(), 16);
}

/// rfc3449 5.2: an ACK is dropped only where a newer one takes its place.
#[test]
fn the_last_ack_passes_after_the_hold_though_its_turn_has_not_come() {
    let mut stretch = element("ack-thin", &[("every", "16"), ("hold", "5ms")]);
    for id in 0..3 {
        stretch.accept(ms(id), Sample::new(id, 60));
    }
    assert_eq!(departures(&drain(&mut stretch, ms(20))), [(2, 7.0)]);
    // One that nobody follows passes, too.
    stretch.accept(ms(20), Sample::new(3, 60));
    assert_eq!(departures(&drain(&mut stretch, ms(40))), [(3, 25.0)]);
    assert_eq!(stretch.next_wakeup(), None);
}

#[test]
fn acks_that_may_not_wait_cannot_be_thinned() {
    let error = ElementConfig::new("ack-thin", &[("every", "3"), ("hold", "0s")]).unwrap_err();
    assert!(error.to_string().contains("every = `3` with hold = `0s`"), "{error}");
}

#[test]
fn a_newer_ack_takes_the_place_of_the_one_that_waits() {
    let mut stretch = element("ack-thin", &[("hold", "10ms")]);
    let ack = |id: u64, flow: u32| Sample { flow, ..Sample::new(id, 60) };
    stretch.accept(ms(0), ack(0, 0));
    stretch.accept(ms(2), ack(1, 1));
    stretch.accept(ms(4), ack(2, 0));
    stretch.accept(ms(9), ack(3, 0));
    assert_eq!(stretch.next_wakeup(), Some(ms(4)), "a drop waits to be polled");
    let outputs = drain(&mut stretch, ms(11));
    assert_eq!(departures(&outputs), [(3, 10.0)]);
    assert_eq!(outputs.len(), 3);
    stretch.accept(ms(11), ack(4, 0));
    assert_eq!(departures(&drain(&mut stretch, ms(50))), [(1, 12.0), (4, 21.0)]);
    assert_eq!(stretch.next_wakeup(), None);
}

#[test]
fn data_takes_the_waiting_ack_of_its_flow_along() {
    let mut stretch = element("ack-thin", &[("hold", "10ms")]);
    stretch.accept(ms(0), Sample::new(0, 60));
    stretch.accept(ms(1), Sample { flow: 1, ..Sample::new(1, 60) });
    stretch.accept(ms(3), Sample::new(2, 1500));
    assert_eq!(departures(&drain(&mut stretch, ms(3))), [(0, 3.0), (2, 3.0)]);
    assert_eq!(stretch.next_wakeup(), Some(ms(11)));
    stretch.accept(ms(4), Sample::new(3, 60));
    assert_eq!(departures(&drain(&mut stretch, ms(60))), [(1, 11.0), (3, 14.0)]);
}

fn held(options: Options<'_>, packets: u64) -> Vec<f64> {
    let mut stretch = element("jitter", options);
    // Far enough apart that none has to wait for the one before it.
    let gap = 1_000;
    let mut held = Vec::new();
    for id in 0..packets {
        stretch.accept(ms(id * gap), Sample::new(id, 100));
        let left = departures(&drain(&mut stretch, ms((id + 1) * gap)));
        held.push(left[0].1 - (id * gap) as f64);
    }
    held
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    libm::sqrt(values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64)
}

/// Delays of 20 and 0 ms in turn, each for 30 ms.
#[test]
fn a_schedule_delays_by_the_time_of_arrival_and_keeps_the_order() {
    let mut line = element("delay-steps", &[("delays", "20ms/0ms"), ("hold", "30ms")]);
    for (id, at) in [(0, 0), (1, 29), (2, 30), (3, 55), (4, 60)] {
        line.accept(ms(at), Sample::new(id, 1500));
    }
    let left = departures(&drain(&mut line, ms(200)));
    // The third entered when there was no delay, behind one that leaves at 49 ms.
    assert_eq!(left, [(0, 20.0), (1, 49.0), (2, 49.0), (3, 55.0), (4, 80.0)]);
}

#[test]
fn on_a_beat_packets_leave_at_whole_multiples_alone() {
    let mut line = element("delay-steps", &[("delays", "0ms/5ms"), ("hold", "100ms"), ("beat", "60ms")]);
    for (id, at) in [(0, 0), (1, 1), (2, 60), (3, 119), (4, 121)] {
        line.accept(ms(at), Sample::new(id, 1500));
    }
    let left = departures(&drain(&mut line, ms(300)));
    assert_eq!(left, [(0, 0.0), (1, 60.0), (2, 60.0), (3, 180.0), (4, 180.0)]);
}

#[test]
fn jitter_has_the_moments_of_its_distribution() {
    const N: u64 = 50_000;
    // Means within five standard errors, which are the deviation / 224.
    let uniform = held(&[("mean", "8ms"), ("spread", "2ms")], N);
    assert!(
        (mean(&uniform) - 8.0).abs() < 0.026 && (deviation(&uniform) - 2.0 / libm::sqrt(3.0)).abs() < 0.02
    );
    assert!(uniform.iter().all(|held| (6.0..=10.0).contains(held)));

    let normal = held(&[("distribution", "normal"), ("mean", "20ms"), ("spread", "3ms")], N);
    assert!((mean(&normal) - 20.0).abs() < 0.068 && (deviation(&normal) - 3.0).abs() < 0.05);

    let exponential = held(&[("distribution", "exponential"), ("mean", "4ms")], N);
    assert!((mean(&exponential) - 4.0).abs() < 0.09 && (deviation(&exponential) - 4.0).abs() < 0.2);

    // Scale 4 * 4 / 5 = 3.2 ms; variance of a Pareto of shape 5: mean^2 / (shape (shape - 2)).
    let pareto = held(&[("distribution", "pareto"), ("mean", "4ms"), ("shape", "5"), ("max", "900ms")], N);
    assert!((mean(&pareto) - 4.0).abs() < 0.023 && pareto.iter().all(|held| *held >= 3.199));
    assert!((deviation(&pareto) - 4.0 / libm::sqrt(15.0)).abs() < 0.1);
}

#[test]
fn jitter_is_cut_without_heaping_up_at_its_ends() {
    for distribution in ["uniform", "normal", "exponential", "pareto"] {
        let options = [
            ("distribution", distribution),
            ("mean", "5ms"),
            ("spread", "9ms"),
            ("shape", "1.5"),
            ("max", "7ms"),
        ];
        let held = held(&options, 20_000);
        assert!(held.iter().all(|held| (0.0..=7.0).contains(held)), "{distribution}");
        for end in [0.0, 7.0] {
            let at_end = held.iter().filter(|held| (**held - end).abs() < 1e-4).count();
            assert!(at_end < 20, "{distribution}: {at_end} of 20000 at {end} ms");
        }
    }
}

#[test]
fn jitter_that_holds_draws_once_a_period() {
    let mut jitter =
        element("jitter", &[("mean", "5ms"), ("spread", "5ms"), ("max", "10ms"), ("hold", "1s")]);
    // The first packet comes at 2.5 s: periods end at 3.5 s, 4.5 s and so on.
    let mut times = Vec::new();
    for tenth in 25..95 {
        let now = Time::from_millis(100 * tenth);
        jitter.accept(now, Sample::new(tenth, 1000));
        let at = jitter.next_wakeup().expect("a packet");
        jitter.poll(at);
        times.push(at.since(now));
    }
    let periods: Vec<_> = times.chunks(10).collect();
    assert!(periods.iter().all(|period| period.iter().all(|time| time == &period[0])), "{times:?}");
    assert!(periods.windows(2).all(|pair| pair[0][0] != pair[1][0]), "{times:?}");
}

#[test]
fn jitter_of_no_width_or_no_length_is_a_delay_line() {
    for options in [
        [("distribution", "uniform"), ("mean", "5ms"), ("spread", "0s")],
        [("distribution", "normal"), ("mean", "5ms"), ("spread", "0s")],
    ] {
        assert!(held(&options, 50).iter().all(|held| (held - 5.0).abs() < 1e-6));
    }
    for distribution in ["uniform", "normal", "exponential", "pareto"] {
        let options = [("distribution", distribution), ("mean", "0s"), ("max", "0s")];
        assert_eq!(held(&options, 50), [0.0; 50], "{distribution}");
    }
}

#[test]
fn jitter_keeps_the_order_when_told_to_and_only_then() {
    for (keep, in_order) in [("true", true), ("false", false)] {
        let mut stretch = element("jitter", &[("keep_order", keep)]);
        for id in 0..1000 {
            stretch.accept(ms(id), Sample::new(id, 100));
        }
        let left = departures(&drain(&mut stretch, ms(5000)));
        assert_eq!(left.len(), 1000);
        assert!(left.is_sorted_by_key(|(_, at)| *at));
        assert_eq!(left.is_sorted_by_key(|(id, _)| *id), in_order);
    }
}

#[test]
fn packets_held_until_the_same_instant_leave_in_the_order_they_came() {
    let mut stretch = element("jitter", &[("keep_order", "false"), ("spread", "0s")]);
    for id in 0..100 {
        stretch.accept(ms(id / 50), Sample::new(id, 100));
    }
    let left = departures(&drain(&mut stretch, ms(100)));
    assert!(left.is_sorted_by_key(|(id, _)| *id) && left.len() == 100, "{left:?}");
}

/// What a tunnel lets through of a field that a router inside it has set to `outer`.
fn through_tunnel(ingress: Options<'_>, egress: Options<'_>, inner: Ecn, outer: Option<Ecn>) -> Option<Ecn> {
    let mut packet = Sample { ecn: inner, ..Sample::new(0, 1000) };
    for (name, options) in [("encapsulate", ingress), ("decapsulate", egress)] {
        let mut end = element(name, options);
        end.accept(ms(0), packet);
        packet = match end.poll(ms(0))? {
            Output::Departed(departed) => departed.packet,
            _ => return None,
        };
        if name == "encapsulate" {
            assert_eq!(Packet::size(&packet), 1020);
            // A router inside marks only what says that it may.
            if let (true, Some(outer)) = (packet.ecn.is_capable(), outer) {
                packet.ecn = outer;
            }
        }
    }
    assert_eq!(Packet::size(&packet), 1000);
    Some(packet.ecn)
}

#[test]
fn a_tunnel_hands_on_what_was_marked_before_it_and_congestion_inside() {
    for field in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        for ingress in [&[("mode", "normal")], &[("mode", "compatibility")]] {
            for egress in ["rfc6040", "rfc3168", "rfc4301", "discard"] {
                assert_eq!(through_tunnel(ingress, &[("mode", egress)], field, None), Some(field));
            }
        }
    }
    assert_eq!(through_tunnel(&[], &[], Ecn::Ect1, Some(Ecn::Ce)), Some(Ecn::Ce));
    let hidden: Options<'_> = &[("mode", "compatibility")];
    assert_eq!(through_tunnel(hidden, &[], Ecn::Ect1, Some(Ecn::Ce)), Some(Ecn::Ect1));
}

/// RFC 6040 makes ECT(1) the more severe of the two, and ABC's brake is ECT(0).
#[test]
fn a_brake_set_inside_a_tunnel_is_lost_at_its_end() {
    for egress in ["rfc6040", "rfc3168", "rfc4301", "discard"] {
        let out = through_tunnel(&[], &[("mode", egress)], Ecn::Ect1, Some(Ecn::Ect0));
        assert_eq!(out, Some(Ecn::Ect1), "{egress}");
    }
}

#[test]
fn a_refused_option_names_the_element_and_what_would_be_valid() {
    let refusal = |name, options| ElementConfig::new(name, options).unwrap_err().to_string();
    assert_eq!(refusal("loss", &[("rate", "1.5")]), "loss: rate = `1.5` is out of range: valid is 0 to 1");
    assert!(refusal("lossy", &[]).starts_with(
        "unknown path element `lossy` (did you mean `loss`?): valid are delay, delay-steps, loss,"
    ));
    assert_eq!(
        refusal("jitter", &[("mean", "200ms")]),
        "jitter: mean = `200ms` is larger than max = `100ms`: at most max is valid"
    );
}

#[test]
fn elements_are_small_enough_to_lie_side_by_side() {
    assert!(size_of::<Output<Sample>>() <= size_of::<Sample>() + 4 * size_of::<Duration>());
}
