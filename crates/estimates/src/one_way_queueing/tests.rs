//! The estimate by worked arithmetic, over a path whose every delay the test decides.

use std::vec::Vec;

use brakelight_core::time::Time;
use brakelight_testkit::events::{ack, packet};

use super::*;

const FORWARD_US: u64 = 25_000;
const BACK_US: u64 = 25_000;

/// A receiver's clock: what it shows at `now`.
type Clock = fn(u64) -> u64;

const TRUE: Clock = |now_us| now_us;

/// One packet: sent when, queued how long forward and back, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Trip {
    sent_us: u64,
    queued_us: u64,
    back_us: u64,
}

fn at(us: u64) -> Time {
    Time::from_nanos(1_000 * us)
}

/// A path on which each packet is acknowledged by itself.
struct Path {
    estimate: OneWayQueueing,
    clock: Clock,
    number: u64,
}

impl Path {
    fn new(baseline: Baseline, clock: Clock) -> Self {
        Path { estimate: OneWayQueueing::new(baseline, None), clock, number: 0 }
    }

    /// The estimate after the packet, in microseconds.
    fn send(&mut self, trip: Trip) -> u64 {
        let received_us = trip.sent_us + FORWARD_US + trip.queued_us;
        let now = at(received_us + BACK_US + trip.back_us);
        let sent_at = at(trip.sent_us);
        let reports =
            [ReceiveTime { number: self.number, sent_at, received_at: at((self.clock)(received_us)) }];
        let acked = [packet(self.number, sent_at)];
        self.number += 1;
        let event = AckEvent { receive_times: &reports, ..ack(now, &acked, now.since(sent_at)) };
        self.estimate.on_ack(&event, |_, _| {});
        self.estimate.queueing().as_micros()
    }

    /// Packets every 10 ms whose queue goes up by 1 ms a packet to `peak_ms` and then is empty again,
    /// `cycles` times. The largest error, in microseconds.
    fn sawtooth(&mut self, from_us: u64, cycles: u64, peak_ms: u64, back: impl Fn(u64) -> u64) -> u64 {
        let mut worst = 0;
        for index in 0..cycles * peak_ms {
            let queued_us = 1_000 * (index % peak_ms);
            let trip = Trip { sent_us: from_us + 10_000 * index, queued_us, back_us: back(index) };
            worst = worst.max(self.send(trip).abs_diff(queued_us));
        }
        worst
    }
}

fn trip(sent_ms: u64, queued_ms: u64) -> Trip {
    Trip { sent_us: 1_000 * sent_ms, queued_us: 1_000 * queued_ms, back_us: 0 }
}

#[test]
fn the_sum_of_the_variations_is_the_queueing_delay() {
    for baseline in [Baseline::Bounded, Baseline::Minimum, Baseline::First] {
        let mut path = Path::new(baseline, TRUE);
        // OWD 25, 28, 45, 25 ms: variations +3, +17, -20.
        let measured: Vec<u64> =
            [(0, 0), (10, 3), (20, 20), (30, 0)].map(|(sent, queued)| path.send(trip(sent, queued))).to_vec();
        assert_eq!(measured, [0, 3_000, 20_000, 0], "{baseline:?}");
    }
}

#[test]
fn a_first_packet_that_queued_is_found_out_by_the_next_that_did_not() {
    let queues = [(0, 8), (10, 4), (20, 0), (30, 9)];
    let measure = |baseline| {
        let mut path = Path::new(baseline, TRUE);
        queues.map(|(sent, queued)| path.send(trip(sent, queued)))
    };
    assert_eq!(measure(Baseline::Bounded), [0, 0, 0, 9_000]);
    assert_eq!(measure(Baseline::Minimum), [0, 0, 0, 9_000]);
    // To the letter the sum stays 8 ms short for ever.
    assert_eq!(measure(Baseline::First), [0, 0, 0, 1_000]);
}

#[test]
fn the_offset_of_the_clocks_does_not_matter() {
    for baseline in [Baseline::Bounded, Baseline::Minimum, Baseline::First] {
        let mut plain = Path::new(baseline, TRUE);
        let mut ahead = Path::new(baseline, |now| now + 3_600_000_000);
        for (index, queued) in [0, 5, 11, 2, 30, 0, 7].into_iter().enumerate() {
            let trip = trip(10 * index as u64, queued);
            assert_eq!(plain.send(trip), ahead.send(trip));
        }
    }
}

/// 50 ppm over 100 s are 5 ms.
#[test]
fn a_skew_of_50_ppm_is_taken_out_by_the_bound_and_not_by_the_minimum() {
    const FAST: Clock = |now_us| now_us + now_us / 20_000;
    const SLOW: Clock = |now_us| now_us - now_us / 20_000;
    // 500 cycles of 20 packets of 10 ms: 100 s.
    let error = |baseline, clock| Path::new(baseline, clock).sawtooth(1_000_000, 500, 20, |_| 0);
    assert!(error(Baseline::Minimum, FAST) >= 4_900);
    assert!(error(Baseline::First, SLOW) >= 4_900);
    assert!(error(Baseline::Bounded, FAST) <= 2, "{}", error(Baseline::Bounded, FAST));
    // A slow clock lowers the empty path's OWD by 10 us in a cycle of 200 ms, which only its next empty
    // packet shows.
    assert!(error(Baseline::Bounded, SLOW) <= 11, "{}", error(Baseline::Bounded, SLOW));
}

#[test]
fn a_skewed_clock_with_a_busy_way_back_is_off_by_the_skew_since_it_was_last_idle() {
    const FAST: Clock = |now_us| now_us + now_us / 20_000;
    // Nine packets of ten queue on the way back, 1 to 40 ms.
    let back = |index: u64| if index.is_multiple_of(10) { 0 } else { 1_000 + 13_000 * index % 39_000 };
    let error = Path::new(Baseline::Bounded, FAST).sawtooth(1_000_000, 500, 21, back);
    // At most ten packets of 10 ms pass without a tight bound: 5 us.
    assert!(error <= 7, "{error} us");
}

#[test]
fn a_queue_on_the_way_back_is_none_forward() {
    for baseline in [Baseline::Bounded, Baseline::Minimum] {
        let mut path = Path::new(baseline, TRUE);
        for index in 0..200 {
            let back_us = if index == 0 { 0 } else { 80_000 };
            let measured = path.send(Trip { sent_us: 10_000 * index, queued_us: 0, back_us });
            assert_eq!(measured, 0, "{baseline:?}");
        }
    }
}

#[test]
fn a_clock_that_is_set_forward_shows_no_queue() {
    const STEP: Clock = |now_us| if now_us < 2_000_000 { now_us } else { now_us + 100_000 };
    let mut path = Path::new(Baseline::Bounded, STEP);
    assert!(path.sawtooth(1_000_000, 10, 20, |_| 0) <= 1);
    // The plain minimum sees 100 ms of queue for good.
    let mut plain = Path::new(Baseline::Minimum, STEP);
    assert_eq!(plain.sawtooth(1_000_000, 10, 20, |_| 0), 100_000);
}

#[test]
fn a_clock_that_is_set_back_hides_the_queue_until_it_is_empty_once() {
    const STEP: Clock = |now_us| if now_us < 2_100_000 { now_us } else { now_us - 100_000 };
    let mut path = Path::new(Baseline::Bounded, STEP);
    // The step comes inside the sixth cycle of 200 ms; from the seventh on the estimate is right again.
    assert!(path.sawtooth(1_000_000, 6, 20, |_| 0) <= 19_000);
    assert_eq!(path.sawtooth(2_200_000, 5, 20, |_| 0), 0);
}

#[test]
fn a_packet_that_was_overtaken_says_nothing() {
    let mut estimate = OneWayQueueing::new(Baseline::Bounded, None);
    let report = |number: u64, late_ms: u64| ReceiveTime {
        number,
        sent_at: Time::from_millis(number),
        received_at: Time::from_millis(number + 25 + late_ms),
    };
    let mut seen = Vec::new();
    // Packet 1 arrives behind 2 and 3, 40 ms late; packet 4 is never reported.
    for reports in [[report(0, 0), report(2, 0)], [report(3, 1), report(1, 40)], [report(5, 2), report(6, 3)]]
    {
        let acked = reports.map(|report| packet(report.number, report.sent_at));
        let now = Time::from_millis(100);
        let event = AckEvent { receive_times: &reports, ..ack(now, &acked, now.since(acked[1].sent_at)) };
        estimate.on_ack(&event, |packet, queueing| seen.push((packet.number, queueing.as_micros() / 1_000)));
    }
    let numbers: Vec<u64> = seen.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 2, 3, 5, 6]);
}

#[test]
fn a_lost_report_leaves_no_trace() {
    // Packets 2 to 5 are reported by an ACK that is lost.
    let queues = [0, 2, 4, 6, 8, 10, 12, 3];
    let mut all = Path::new(Baseline::Bounded, TRUE);
    let mut some = Path::new(Baseline::Bounded, TRUE);
    for (index, queued) in queues.into_iter().enumerate() {
        let trip = trip(10 * index as u64, queued);
        let complete = all.send(trip);
        if (2..6).contains(&index) {
            some.number += 1;
        } else {
            assert_eq!(some.send(trip), complete);
        }
    }
}

#[test]
fn packets_that_share_an_ack_are_bounded_each_by_its_own_round_trip() {
    // Two packets 5 ms apart, acknowledged together 10 ms after the second arrived; 0 and 4 ms of queue,
    // after a clock that jumped by 50 ms since the packet before.
    let mut estimate = OneWayQueueing::new(Baseline::Bounded, None);
    let mut give = |reports: &[ReceiveTime], now_ms: u64, delay_ms: u64| {
        let acked: Vec<_> = reports.iter().map(|report| packet(report.number, report.sent_at)).collect();
        let now = Time::from_millis(now_ms);
        let last = acked.last().expect("a packet");
        let event = AckEvent {
            receive_times: reports,
            ack_delay: Duration::from_millis(delay_ms),
            ..ack(now, &acked, now.since(last.sent_at))
        };
        let mut seen = Vec::new();
        estimate.on_ack(&event, |_, queueing| seen.push(queueing.as_micros()));
        seen
    };
    let report = |number, sent_ms, received_ms| ReceiveTime {
        number,
        sent_at: Time::from_millis(sent_ms),
        received_at: Time::from_millis(received_ms),
    };
    assert_eq!(give(&[report(0, 0, 25)], 50, 0), [0]);
    assert_eq!(give(&[report(1, 100, 175), report(2, 105, 184)], 169, 10), [0, 4_000]);
}

#[test]
fn a_clock_that_is_set_between_two_packets_of_an_ack_leaves_the_smallest_rtt_alone() {
    let mut estimate = OneWayQueueing::new(Baseline::Bounded, None);
    let report = |number, sent_ms, received_ms| ReceiveTime {
        number,
        sent_at: Time::from_millis(sent_ms),
        received_at: Time::from_millis(received_ms),
    };
    // One ACK for packets 1 ms apart; the clock is set forward by 100 ms between them.
    let reports = [report(0, 0, 25), report(1, 1, 126)];
    let acked = reports.map(|report| packet(report.number, report.sent_at));
    let event =
        AckEvent { receive_times: &reports, ..ack(Time::from_millis(51), &acked, Duration::from_millis(50)) };
    estimate.on_ack(&event, |_, _| {});
    assert_eq!(estimate.rtt_min(), Some(Duration::from_millis(50)));
    assert_eq!(estimate.queueing(), Duration::ZERO);
}

#[test]
fn a_longer_route_is_learnt_after_the_horizon() {
    let horizon = Duration::from_secs(5);
    let mut path = Path::new(Baseline::Bounded, TRUE);
    path.estimate = OneWayQueueing::new(Baseline::Bounded, Some(horizon));
    path.send(trip(0, 0));
    let late: Vec<u64> = (1..1_500).map(|index| path.send(trip(10 * index, 30))).collect();
    assert_eq!(late[0], 30_000);
    assert_eq!(late.last(), Some(&0));
}

/// From every baseline, for every one-way delay and every round trip of a small range: what the estimate does
/// depends on sums and differences alone. So it holds after any number of packets.
#[test]
fn the_estimate_is_within_zero_and_the_round_trip_above_the_smallest_by_any_clock() {
    // Clocks apart by nothing, by minutes, and by 146 years, at which 64 bits still hold all sums.
    for offset in [0, 600_000_000_000, i64::MAX as u64 / 2 - 100] {
        for before in -12..=12_i64 {
            for owd in -12..=12_i64 {
                for above in 0..=13_u64 {
                    measure_one(offset, before, owd, above);
                }
            }
        }
    }
    let bounds =
        "baselines and delays of -12 to 12 ns, round trips up to 13 ns above the least, three clock offsets";
    for property in [
        "from zero to what the round trip is above the least",
        "the same whatever the clocks' offset",
        "the baseline is never above the delay, and moves only as far as the round trip asks",
        "no overflow for clocks up to 146 years apart",
    ] {
        std::eprintln!(
            "estimates/src/one_way_queueing.rs | OneWayQueueing::measure | {property} | {bounds} | proved"
        );
    }
}

fn measure_one(offset: u64, before: i64, owd: i64, above: u64) {
    const LEAST: u64 = 40;
    // With an offset of zero the clocks' difference is still above -12 ns.
    let sent_at = Time::from_nanos(1_000);
    let received_at = Time::from_nanos((1_000 + offset).wrapping_add_signed(owd));
    let mut estimate = OneWayQueueing::new(Baseline::Bounded, None);
    estimate.base_ns = Some(offset as i64 + before);
    estimate.note_rtt(0, LEAST);
    let packet = ReceiveTime { number: 1, sent_at, received_at };
    let queueing = estimate.measure(&packet, Some(Duration::from_nanos(LEAST + above))).as_nanos();
    let base = estimate.base_ns.unwrap() - offset as i64;
    assert!(queueing <= above, "{offset}, {before}, {owd}, {above}");
    assert_eq!(queueing as i64, owd - base);
    // By hand: the sum of eq. 5, cut at the bound.
    let sum = (owd - before).max(0) as u64;
    assert_eq!(queueing, sum.min(above), "{offset}, {before}, {owd}, {above}");
    assert_eq!(base == before, sum <= above && owd >= before);
}
