use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::parameters::Parameters;
use brakelight_core::queue::Place;
use brakelight_core::random::Random;
use brakelight_core::units::Limit;
use brakelight_routers::cake::{self, Cake};
use brakelight_routers::droptail::{self, DropTail};
use brakelight_testkit::packet::Sample;

use super::fixed::Fixed;
use super::steps::Steps;
use super::traced::Traced;
use super::*;
use crate::trace::Trace;

fn place(limit: Limit) -> Place {
    Place { limit, nominal: Rate::from_mbps(12), random: Random::stream(1, "test") }
}

fn droptail(packets: u32) -> DropTail<Sample> {
    DropTail::new(&droptail::Config::default(), &place(Limit::Packets(packets)))
}

fn traced(timestamps: &[u64], options: &[(&str, &str)]) -> Traced {
    let config = traced::Config::from_options(options.iter().copied()).unwrap();
    Traced::new(&config, Trace::from_millis(timestamps.iter().copied()).unwrap())
}

fn fixed(options: &[(&str, &str)]) -> Fixed {
    Fixed::new(&fixed::Config::from_options(options.iter().copied()).unwrap())
}

fn ms(millis: f64) -> Time {
    Time::from_nanos((millis * 1e6) as u64)
}

type DropTailLink<S> = Link<Sample, DropTail<Sample>, S>;

/// Lets packets in and polls at every wake-up; the departures as (id, ms, queued ms).
fn run<S: Service>(link: &mut DropTailLink<S>, arrivals: &[(f64, u32)]) -> Vec<(u64, f64, f64)> {
    let mut departures = Vec::new();
    let mut drain = |link: &mut DropTailLink<S>, now: Time| {
        while let Some(output) = link.poll(now) {
            if let Output::Departed(departed) = output {
                departures.push((
                    departed.packet.id,
                    departed.at.as_nanos() as f64 * 1e-6,
                    departed.queued.as_millis_f64(),
                ));
            }
        }
    };
    for (id, &(at, size)) in arrivals.iter().enumerate() {
        while let Some(due) = link.next_wakeup().filter(|due| *due < ms(at)) {
            drain(link, due);
        }
        link.accept(ms(at), Sample::new(id as u64, size));
        drain(link, ms(at));
    }
    while let Some(due) = link.next_wakeup() {
        drain(link, due);
    }
    departures
}

/// The semantics of a Mahimahi link, opportunity by opportunity, worked out by hand on a trace with idle
/// gaps, several opportunities in one millisecond and packets of many sizes.
///
/// | opportunity, ms | what it carries (bytes on the link = size + 4) |
/// |---|---|
/// | 2 | nothing waits: lost |
/// | 5 | packet 0 (1504): all of it |
/// | 5 | packet 1 (500), packet 2 (500), 504 of packet 3 (1504) |
/// | 9 | 1000 of packet 3; then 504 lost, as nothing waits |
/// | 20 | packet 4 (100), and 1404 lost |
/// | 20 | lost |
/// | 22 (2 of the second cycle) | packet 5 arrives at this very instant, after it: lost |
/// | 25 | packet 5 (1504) |
#[test]
fn a_trace_is_replayed_as_mahimahi_does() {
    let mut link = Link::new(traced(&[2, 5, 5, 9, 20, 20], &[]), droptail(250));
    let departures =
        run(&mut link, &[(3.0, 1500), (3.5, 496), (4.0, 496), (4.0, 1500), (9.0, 96), (22.0, 1500)]);
    assert_eq!(
        departures,
        [(0, 5.0, 2.0), (1, 5.0, 1.5), (2, 5.0, 1.0), (3, 9.0, 5.0), (4, 20.0, 11.0), (5, 25.0, 3.0)]
    );
}

#[test]
fn a_packet_larger_than_an_opportunity_takes_several() {
    let mut link = Link::new(traced(&[1, 2, 3, 4], &[]), droptail(250));
    // 4004 bytes: 1504, 1504 and 996 of the third, whose other 508 carry the next packet's first bytes.
    assert_eq!(run(&mut link, &[(0.0, 4000), (0.0, 1500)]), [(0, 3.0, 3.0), (1, 4.0, 4.0)]);
}

#[test]
fn opportunity_and_overhead_can_be_set() {
    let mut link = Link::new(traced(&[1], &[("opportunity", "1500B"), ("overhead", "0B")]), droptail(250));
    assert_eq!(run(&mut link, &[(0.0, 1500), (0.0, 1500)]), [(0, 1.0, 1.0), (1, 2.0, 2.0)]);
    assert_eq!(link.cost(1500), Bytes(1500));
    assert_eq!(link.service().nominal(), Rate::from_mbps(12));
}

#[test]
fn an_offset_starts_the_trace_in_its_middle() {
    // From 6 ms on: opportunities at 10, 16, 20, 26 of the trace.
    let mut link = Link::new(traced(&[6, 10], &[("offset", "16ms")]), droptail(250));
    let departures = run(&mut link, &[(0.0, 1500), (0.0, 1500), (0.0, 1500)]);
    // The opportunity at 0 precedes the packets that arrive then.
    assert_eq!(departures.iter().map(|d| d.1).collect::<Vec<_>>(), [4.0, 10.0, 14.0]);
    assert_eq!(link.capacity_between(Time::ZERO, ms(10.0)), Bytes(2 * 1504));
}

#[test]
fn an_idle_link_wants_no_wakeup() {
    let mut link = Link::new(traced(&[1, 2], &[]), droptail(250));
    assert_eq!(link.next_wakeup(), None);
    assert_eq!(link.poll(ms(50.0)), None);
    link.accept(ms(50.5), Sample::new(0, 100));
    assert_eq!(link.next_wakeup(), Some(ms(51.0)));
    assert!(link.poll(ms(51.0)).is_some());
    assert_eq!(link.next_wakeup(), None);
}

#[test]
fn a_dropped_packet_leaves_an_idle_link_idle() {
    let mut link = Link::new(fixed(&[]), droptail(0));
    link.accept(ms(1.0), Sample::new(0, 100));
    assert_eq!(link.next_wakeup(), Some(ms(1.0)));
    assert!(matches!(link.poll(ms(1.0)), Some(Output::Dropped(_))));
    assert_eq!(link.next_wakeup(), None);
}

#[test]
fn unused_opportunities_are_counted_since_the_last_packet_was_taken() {
    let mut service = traced(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[]);
    service.wake(ms(3.5));
    assert_eq!(service.unused(), Bytes(3 * 1504));
    assert_eq!(service.ready(), ms(4.0));
    assert_eq!(service.begin(996), ms(4.0));
    assert_eq!(service.unused(), Bytes(0));
    service.idle(ms(4.0));
    assert_eq!(service.unused(), Bytes(504));
    service.wake(ms(35.0));
    // 5 to 35, the end included.
    assert_eq!(service.unused(), Bytes(504 + 31 * 1504));
    assert_eq!(service.ready(), ms(36.0));
}

#[test]
fn used_and_unused_bytes_make_the_capacity() {
    let sizes = [40, 1500, 700, 9000, 1496, 1, 300];
    let mut service = traced(&[0, 1, 1, 1, 4, 9, 30, 30, 31], &[]);
    let (mut now, mut used, mut unused) = (Time::ZERO, 0, 0);
    for round in 0..400_usize {
        let size = sizes[round % sizes.len()];
        service.wake(now);
        unused += service.unused().0;
        now = service.begin(size);
        used += service.cost(size).0;
        // Every third packet finds another one behind it.
        if round % 3 != 0 {
            service.idle(now);
            now += Duration::from_micros(round as u64 * 137 % 9000);
        } else {
            now = service.begin(200);
            used += service.cost(200).0;
            service.idle(now);
        }
    }
    assert_eq!(used + unused + service.unused().0, service.used() * 1504);
}

#[test]
fn capacity_counts_the_window_with_its_end_and_without_its_start() {
    let mut service = traced(&[2, 5, 5, 10], &[]);
    let rate = |opportunities: u64, window: Duration| Rate::over(Bytes(opportunities * 1504), window);
    let window = Duration::from_millis(10);
    // (2, 12]: 5 5 10 12; (5, 15]: 10 12 15 15.
    assert_eq!(service.capacity(ms(12.0), window), rate(4, window));
    assert_eq!(service.capacity(ms(15.0), Duration::from_millis(5)), rate(3, Duration::from_millis(5)));
    assert_eq!(service.capacity(ms(11.9), Duration::from_millis(1)), rate(0, window));
    // 4 of 10 ms are before the run: they count as the nominal 4 per 10 ms; (0, 6] has three.
    let mixed = Rate::from_bps_f64((3.0 * 1504.0 * 8.0 + 4_812_800.0 * 0.004) / 0.010);
    assert_eq!(service.capacity(ms(6.0), window), mixed);
    // An opportunity at the very start is in no window that begins there, but in one that begins before.
    let mut service = traced(&[0, 10], &[]);
    assert_eq!(service.capacity(ms(4.0), Duration::from_millis(4)), Rate::ZERO);
    let longer = Rate::from_bps_f64((1504.0 * 8.0 + 2_406_400.0 * 0.001) / 0.005);
    assert_eq!(service.capacity(ms(4.0), Duration::from_millis(5)), longer);
}

#[test]
fn looking_ahead_sees_what_the_capacity_will_be() {
    let mut service = traced(&[0, 2, 5, 5, 10, 31], &[("offset", "3ms")]);
    let (ahead, window) = (Duration::from_millis(13), Duration::from_millis(7));
    for step in 0..200 {
        let now = ms(f64::from(step) * 0.7);
        let then = now + ahead + window;
        let seen = service.lookahead(now, ahead, window);
        assert_eq!(seen, Some(service.capacity(then, window)));
    }
}

#[test]
fn a_fixed_rate_link_stores_and_forwards() {
    let mut link = Link::new(fixed(&[("rate", "12Mbps")]), droptail(250));
    assert_eq!(
        run(&mut link, &[(0.0, 1500), (0.25, 1500), (0.5, 750), (10.0, 1500)]),
        [(0, 1.0, 1.0), (1, 2.0, 1.75), (2, 2.5, 2.0), (3, 11.0, 1.0)]
    );
}

/// 12 Mbit/s fills a bucket of 3000 bytes in 2 ms.
#[test]
fn a_token_bucket_lets_a_burst_pass_at_once_and_the_rest_at_the_rate() {
    let bucket = [("rate", "12Mbps"), ("burst", "3kB")];
    let mut link = Link::new(fixed(&bucket), droptail(250));
    let arrivals = [(0.0, 1500), (0.0, 1500), (0.0, 1500), (0.0, 750), (4.0, 1500), (4.0, 1500), (4.0, 1500)];
    // The bucket is empty at 0 ms, has the tokens of packets 2 and 3 at 1 and 1.5 ms, is full at 3.5 ms.
    let left = [(0, 0.0, 0.0), (1, 0.0, 0.0), (2, 1.0, 1.0), (3, 1.5, 1.5)];
    let again = [(4, 4.0, 0.0), (5, 4.0, 0.0), (6, 5.0, 1.0)];
    assert_eq!(run(&mut link, &arrivals), [left.as_slice(), &again].concat());
}

#[test]
fn only_tokens_that_overflow_are_capacity_not_used() {
    let mut service = fixed(&[("rate", "8Mbps"), ("burst", "2kB")]);
    service.wake(ms(0.0));
    assert_eq!((service.begin(1000), service.begin(1000)), (ms(0.0), ms(0.0)));
    service.idle(ms(0.0));
    // Full again at 2 ms.
    service.wake(ms(5.0));
    assert_eq!(service.unused(), Bytes(3000));
}

#[test]
fn a_busy_fixed_rate_link_does_not_drift() {
    // 100 bytes at 7 Mbit/s take 114285 and 5/7 ns.
    let mut link = Link::new(fixed(&[("rate", "7Mbps")]), droptail(u32::MAX));
    let departures = run(&mut link, &vec![(0.0, 100); 70_000]);
    for (id, at, _) in departures {
        let nanos = (at * 1e6 + 0.5) as u64;
        assert_eq!(nanos, (id + 1) * 800_000_000_000 / 7_000_000, "packet {id}");
    }
}

#[test]
fn a_packet_that_arrives_within_the_last_fraction_waits_for_it() {
    let mut service = fixed(&[("rate", "7Mbps")]);
    service.wake(Time::ZERO);
    let first = service.begin(100);
    service.idle(first);
    service.wake(first);
    assert_eq!(service.begin(100).as_nanos(), 2 * 800_000 / 7);
}

#[test]
fn a_fixed_rate_link_counts_what_it_could_have_carried() {
    let mut service = fixed(&[("rate", "8Mbps"), ("overhead", "38B")]);
    service.wake(ms(5.0));
    assert_eq!(service.unused(), Bytes(5000));
    assert_eq!(service.begin(962), ms(6.0));
    assert_eq!(service.unused(), Bytes(0));
    service.idle(ms(6.0));
    service.wake(ms(8.0));
    assert_eq!(service.unused(), Bytes(2000));
    assert_eq!(service.capacity_between(ms(1.0), ms(3.5)), Bytes(2500));
    assert_eq!(service.capacity(ms(3.0), Duration::from_millis(1)), Rate::from_mbps(8));
}

fn steps(options: &[(&str, &str)]) -> Steps {
    Steps::new(&steps::Config::from_options(options.iter().copied()).unwrap())
}

/// 12 Mbit/s sends a packet of 1500 bytes in 1 ms, 6 Mbit/s in 2 ms.
#[test]
fn a_packet_under_way_goes_on_at_the_new_rate() {
    let schedule = [("schedule", "2500us:12Mbps 4ms:6Mbps")];
    let mut link = Link::new(steps(&schedule), droptail(250));
    let departures = run(&mut link, &[(0.0, 1500); 8]);
    // The third is half sent at 2.5 ms: 1 ms more. The fifth ends at 5.5; the sixth has 1 ms of 6 Mbit/s,
    // half of it, and 0.5 ms of the next cycle; the eighth is half sent at 9 ms.
    assert_eq!(departures.iter().map(|d| d.1).collect::<Vec<_>>(), [1.0, 2.0, 3.5, 5.5, 7.0, 8.0, 9.0, 11.0]);
}

/// The link is on from 0 to 1.5, 11.5 to 13 and 23 to 24.5 ms.
#[test]
fn nothing_moves_in_an_outage() {
    let schedule = [("schedule", "1500us:12Mbps 10ms:0bps")];
    let mut link = Link::new(steps(&schedule), droptail(250));
    assert_eq!(
        run(&mut link, &[(0.0, 1500), (0.0, 1500), (5.0, 750), (13.9, 1500)]),
        [(0, 1.0, 1.0), (1, 12.0, 12.0), (2, 12.5, 7.5), (3, 24.0, 10.1)]
    );
}

#[test]
fn the_last_rate_stays_when_the_schedule_does_not_repeat() {
    let schedule = [("schedule", "1ms:24Mbps 1ms:12Mbps"), ("repeat", "false")];
    let mut link = Link::new(steps(&schedule), droptail(250));
    let departures = run(&mut link, &[(0.0, 1500); 6]);
    assert_eq!(departures.iter().map(|d| d.1).collect::<Vec<_>>(), [0.5, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(link.capacity_between(Time::ZERO, ms(10.0)), Bytes(3000 + 9 * 1500));
}

#[test]
fn a_packet_caught_in_a_last_outage_stays_inside() {
    let schedule = [("schedule", "1500us:12Mbps 1ms:0bps"), ("repeat", "false")];
    let mut link = Link::new(steps(&schedule), droptail(250));
    assert_eq!(run(&mut link, &[(0.0, 1500); 3]).len(), 1);
    assert_eq!(link.next_wakeup(), None);
    link.accept(ms(9.0), Sample::new(9, 100));
    assert_eq!((link.poll(ms(1e6)), link.next_wakeup()), (None, None));
    let mut inside = 0;
    link.for_each(&mut |_| inside += 1);
    assert_eq!(inside, 3);
}

#[test]
fn a_packet_that_takes_many_cycles_is_not_walked_through_them() {
    // 8 bit a cycle of 2 ms at 8 kbit/s for 1 ms: a byte each.
    let schedule = [("schedule", "1ms:8kbps 1ms:0bps")];
    let mut link = Link::new(steps(&schedule), droptail(250));
    assert_eq!(run(&mut link, &[(0.0, 4_000_000)]), [(0, 7_999_999.0, 7_999_999.0)]);
}

#[test]
fn one_step_is_a_fixed_rate() {
    let arrivals: Vec<(f64, u32)> =
        (0..500).map(|i| (f64::from(i * i % 97 + 60 * i) * 0.01, 40 + i * 7 % 1461)).collect();
    let mut stepped = Link::new(steps(&[("schedule", "3ms:7Mbps")]), droptail(250));
    let mut constant = Link::new(fixed(&[("rate", "7Mbps")]), droptail(250));
    let mut sorted = arrivals.clone();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(run(&mut stepped, &sorted), run(&mut constant, &sorted));
}

#[test]
fn steps_count_what_they_could_have_carried() {
    let mut service = steps(&[("schedule", "10ms:8Mbps 10ms:16Mbps"), ("offset", "25ms")]);
    // From 5 ms of the schedule on: 5 ms at 1000, 10 ms at 2000, 10 ms at 1000 bytes/ms ...
    assert_eq!(service.capacity_between(Time::ZERO, ms(20.0)), Bytes(5_000 + 20_000 + 5_000));
    assert_eq!(service.capacity_between(ms(4.0), ms(6.0)), Bytes(3_000));
    assert_eq!(service.capacity(ms(6.0), Duration::from_millis(2)), Rate::from_mbps(12));
    assert_eq!(
        service.lookahead(ms(1.0), Duration::from_millis(3), Duration::from_millis(2)),
        Some(Rate::from_mbps(12))
    );
    // Half the window is before the run, where the mean of 12 Mbit/s is assumed.
    assert_eq!(service.capacity(ms(1.0), Duration::from_millis(2)), Rate::from_mbps(10));
    service.wake(ms(6.0));
    assert_eq!(service.unused(), Bytes(7_000));
    assert_eq!(service.begin(2_000), ms(7.0));
    service.wake(ms(16.0));
    assert_eq!(service.unused(), Bytes(8 * 2000 + 1000));
}

#[test]
fn a_schedule_is_spelled_as_it_is_shown() {
    use brakelight_core::parameters::Value;

    use super::steps::Schedule;
    let schedule = Schedule::parse(" 500ms:12Mbps  1.5s:0bps ").unwrap();
    assert_eq!(Schedule::parse(&schedule.show()).unwrap(), schedule);
    let refusal = |text: &str| steps::Config::from_options([("schedule", text)]).unwrap_err().to_string();
    assert!(refusal("12Mbps").contains("`12Mbps` has no `:`"), "{}", refusal("12Mbps"));
    assert!(refusal("5x:12Mbps").contains("`5x` is not a time"), "{}", refusal("5x:12Mbps"));
    assert!(refusal("").contains("one step or more"));
    assert!(refusal("0s:1Mbps").contains("a step longer than 0s"));
    assert!(refusal("1s:0bps").contains("at least one step with a rate above zero"));
    assert!(refusal("1s:20000Gbps").contains("a rate from 0bps to 10000Gbps"), "{}", refusal("1s:20000Gbps"));
}

#[test]
fn a_queue_that_shapes_is_asked_again_when_it_says() {
    let options = [("bandwidth", "12Mbps"), ("diffserv", "besteffort")];
    let config = cake::Config::from_options(options).unwrap();
    // Ten times as fast, or an opportunity every millisecond, half a millisecond beside the shaper's times.
    let fast = fixed(&[("rate", "120Mbps")]);
    let mut link = Link::new(fast, Cake::new(&config, &place(Limit::Packets(100))));
    (0..4).for_each(|id| link.accept(ms(0.5), Sample::new(id, 1500)));
    let times = |link: &mut dyn PathElement<Sample>, until: f64| {
        let mut times = Vec::new();
        while let Some(due) = link.next_wakeup().filter(|due| *due <= ms(until)) {
            while let Some(output) = link.poll(due) {
                times.push((output.packet().id, (output.at().as_nanos() as f64 / 1e5).round() / 10.0));
            }
        }
        times
    };
    // The shaper's millisecond apart; each takes a tenth of one on the link.
    assert_eq!(times(&mut link, 10.0), [(0, 0.6), (1, 1.6), (2, 2.6), (3, 3.6)]);
    assert_eq!(link.next_wakeup(), None);
    // One call that comes late tells the same.
    (4..7).for_each(|id| link.accept(ms(20.0), Sample::new(id, 1500)));
    let mut late = Vec::new();
    while let Some(output) = link.poll(ms(30.0)) {
        late.push((output.packet().id, (output.at().as_nanos() as f64 / 1e5).round() / 10.0));
    }
    assert_eq!(late, [(4, 20.1), (5, 21.1), (6, 22.1)]);
    let traced = traced(&[1, 2, 3, 4, 5, 6], &[("overhead", "0B"), ("opportunity", "1500B")]);
    let mut link = Link::new(traced, Cake::new(&config, &place(Limit::Packets(100))));
    (0..3).for_each(|id| link.accept(ms(0.5), Sample::new(id, 1500)));
    // The first leaves with the opportunity at 1 ms; those after it when they may and the link can.
    assert_eq!(times(&mut link, 10.0), [(0, 1.0), (1, 2.0), (2, 3.0)]);
}
