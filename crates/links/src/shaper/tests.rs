//! Shapers: rates, what setters see, and the law of cake-autorate by worked numbers.

use alloc::string::ToString;
use alloc::vec::Vec;
use std::vec;

use brakelight_core::packet::{Acknowledgement, Block, PacketId};
use brakelight_core::parameters::{Parameters, Value};
use brakelight_core::random::Random;
use brakelight_testkit::Sample;

use super::*;

fn shaper(options: &[(&str, &str)]) -> Shaper<Sample> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Shaper::new(&config, Site { random: Random::stream(1, "shaper"), ids: PacketId(PacketId::FIRST_COPY) })
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Everything that happens by `until`, one wake-up after the other.
fn run(shaper: &mut Shaper<Sample>, until: Time) -> Vec<Output<Sample>> {
    let mut outputs = Vec::new();
    while let Some(due) = shaper.next_wakeup().filter(|due| *due <= until) {
        while let Some(output) = shaper.poll(due) {
            outputs.push(output);
        }
    }
    outputs
}

#[test]
fn serves_its_queue_at_a_fixed_rate() {
    let mut shaper = shaper(&[("queue", "droptail"), ("setter", "fixed/rate=12Mbps")]);
    for id in 0..3 {
        shaper.accept(ms(0), Sample::new(id, 1500));
    }
    let at: Vec<Time> = run(&mut shaper, ms(100)).iter().map(Output::at).collect();
    assert_eq!(at, [ms(1), ms(2), ms(3)], "1500 bytes at 12 Mbit/s take 1 ms");
}

#[test]
fn takes_a_share_of_the_mean_of_its_link() {
    let mut shaper = shaper(&[("setter", "fixed/share=0.5")]);
    let config = fixed::Config::from_options([("rate", "30Mbps")]).unwrap();
    shaper.set_truth(&AnyService::Fixed(fixed::Fixed::new(&config)));
    assert_eq!(shaper.rate(), Rate::from_mbps(15));
}

#[test]
fn reads_the_options_of_queue_and_setter() {
    let choice = QueueChoice::parse("cake/nothing=1");
    assert!(choice.is_err(), "cake has no option called nothing");
    assert_eq!(
        choice::words("cake/dscps=ef/cs1/0/rtt=50ms"),
        Some(("cake", vec![("dscps", "ef/cs1/0"), ("rtt", "50ms")]))
    );
    assert_eq!(choice::words("cake"), Some(("cake", vec![])));
    assert_eq!(choice::words("cake/"), None);
    let setter = SetterConfig::parse("autorate/max=50Mbps").unwrap();
    assert_eq!((setter.name(), setter.show()), ("autorate", "autorate/max=50Mbps".to_string()));
    let refused = SetterConfig::parse("autorate/min=30Mbps").unwrap_err();
    assert!(refused.contains("min = `30Mbps`, base = `20Mbps`"), "{refused}");
    assert!(SetterConfig::parse("falow").unwrap_err().contains("follow"));
}

/// Data of 1500 bytes with a number, and the ACK of everything below `cumulative`.
fn data(number: u32) -> Sample {
    Sample { sequence: Some(number), ..Sample::new(u64::from(number), 1500) }
}

fn ack(cumulative: u32, blocks: [Block; 3]) -> Sample {
    let says = Acknowledgement { cumulative, blocks, echo: 0, replaceable: true };
    Sample { ack: true, back: true, acknowledgement: Some(says), ..Sample::new(1 << 20, 52) }
}

#[test]
fn counts_what_flows_delivered_and_what_is_under_way() {
    let mut passing = Passing::new(Side::Up);
    for number in 0..4 {
        passing.on_departure(ms(u64::from(number)), &data(number));
    }
    assert_eq!((passing.delivered(), passing.under_way()), (0, 6000));
    // The newest that the ACK reports is number 1, which left after 1 ms.
    let none = [Block::default(); 3];
    assert_eq!(passing.on_acknowledgement(ms(41), &ack(2, none)), Some(Duration::from_millis(40)));
    assert_eq!((passing.delivered(), passing.under_way()), (3000, 3000));
    // Number 3 by a SACK block, number 2 is missing; it leaves again and gives no RTT.
    let block = [Block { ahead: 1, length: 1 }, Block::default(), Block::default()];
    assert_eq!(passing.on_acknowledgement(ms(45), &ack(2, block)), Some(Duration::from_millis(42)));
    passing.on_departure(ms(50), &data(2));
    assert_eq!(passing.under_way(), 1500, "a copy takes the place of the first");
    assert_eq!(passing.on_acknowledgement(ms(90), &ack(4, none)), None, "rfc6298 3");
    assert_eq!((passing.delivered(), passing.under_way()), (6000, 0));
}

#[test]
fn forgets_what_nobody_acknowledges() {
    let mut passing = Passing::new(Side::Up);
    passing.on_departure(ms(0), &data(0));
    passing.forget(ms(2900));
    assert_eq!(passing.under_way(), 1500);
    passing.forget(ms(4000));
    assert_eq!(passing.under_way(), 0);
}

#[test]
fn reads_the_delay_on_the_way_here_off_timestamps() {
    let mut passing = Passing::new(Side::Down);
    let sent = |at| Sample { sent_at: Some(ms(at)), ..data(0) };
    assert_eq!(passing.on_arrival(ms(30), &sent(5)), Some(Duration::ZERO));
    assert_eq!(passing.on_arrival(ms(47), &sent(10)), Some(Duration::from_millis(12)));
    assert_eq!(passing.on_arrival(ms(40), &sent(20)), Some(Duration::ZERO), "a shorter way than any before");
}

#[test]
fn sends_probes_and_sleeps_when_nothing_comes() {
    let mut shaper = shaper(&[("setter", "autorate")]);
    shaper.accept(ms(0), Sample::new(1, 1500));
    let outputs = run(&mut shaper, Time::MAX);
    let probes: Vec<Time> =
        outputs.iter().filter(|output| matches!(output, Output::Duplicated(_))).map(Output::at).collect();
    assert_eq!(probes[..3], [ms(50), ms(100), ms(150)], "six pingers, each every 300 ms");
    assert_eq!(probes.len(), 1200, "for 60 s after the last packet");
    assert_eq!(shaper.next_wakeup(), None);
}

/// cake-autorate with a probe's reply every 50 ms.
struct Bench {
    setter: autorate::Autorate,
    number: u64,
    at: Time,
}

impl Bench {
    fn new() -> Self {
        let setter = autorate::Autorate::new(&autorate::Config::default(), Side::Up);
        Bench { setter, number: 0, at: Time::from_secs(10) }
    }

    fn reply(&mut self, rtt_ms: u64) -> u64 {
        self.at += Duration::from_millis(50);
        let value = Duration::from_millis(rtt_ms);
        self.setter.on_delay(Delay { now: self.at, value, source: Source::Probe(self.number) });
        self.number += 1;
        self.setter.rate().bps() / 1000
    }

    /// A reading of the load: so many bytes have left by now.
    fn load(&mut self, departed: u64) {
        let waiting = brakelight_core::queue::Backlog::default();
        let now = self.at;
        let seen = Seen {
            now,
            arrived: departed,
            departed,
            delivered: 0,
            under_way: 0,
            readable: 0,
            waiting,
            truth: None,
        };
        self.setter.on_tick(&seen);
    }
}

#[test]
fn autorate_cuts_by_a_quarter_where_the_delay_is_far_above_the_threshold() {
    let mut bench = Bench::new();
    // Baselines of 20 ms: each of six pingers falls from 100 ms by 0.9 of the way, again and again.
    for _ in 0..60 {
        bench.reply(40);
    }
    assert_eq!(bench.setter.rate().bps(), 20_000_000, "at the base rate there is nothing to decay to");
    // delta is about 180 ms. Two of six do not make bufferbloat, three do; then avg = 3 * 180 / 6 = 90 ms,
    // above 60.6 ms: the full cut, 20000 * 0.75.
    assert_eq!(bench.reply(400), 20_000);
    assert_eq!(bench.reply(400), 20_000);
    assert_eq!(bench.reply(400), 15_000);
    // 300 ms must have passed: six replies of 50 ms come within, the seventh after.
    for _ in 0..6 {
        assert_eq!(bench.reply(400), 15_000);
    }
    assert_eq!(bench.reply(400), 11_250);
}

#[test]
fn autorate_raises_by_four_per_cent_per_reading_of_a_high_load() {
    let mut bench = Bench::new();
    for _ in 0..60 {
        bench.reply(40);
    }
    // 450 kB in 200 ms are 18 Mbit/s, 90 % of the rate.
    bench.load(450_000);
    assert_eq!(bench.reply(40), 20_800);
    assert_eq!(bench.reply(40), 20_800, "one step per reading");
    bench.load(910_000);
    assert_eq!(bench.reply(40), 21_632);
    // The load is low: 1 % a second back to the base rate, a second after the last step.
    bench.load(910_000);
    for _ in 0..20 {
        assert_eq!(bench.reply(40), 21_632);
    }
    assert_eq!(bench.reply(40), 21_415);
}

/// What `follow` does in one interval of 10 ms behind which `under_way` bytes are on their way.
fn follow_tick(setter: &mut follow::Follow, at: Time, total: u64, delivered: u64, under_way: u64) {
    follow_tick_with(setter, at, total, delivered, under_way, 5);
}

/// The same, while so many packets wait in the shaper.
fn follow_tick_with(
    setter: &mut follow::Follow,
    at: Time,
    total: u64,
    delivered: u64,
    under_way: u64,
    packets: u32,
) {
    let bytes = brakelight_core::units::Bytes(1500 * u64::from(packets));
    let waiting = brakelight_core::queue::Backlog { packets, bytes };
    setter.on_tick(&Seen {
        now: at,
        arrived: total,
        departed: total,
        delivered,
        under_way,
        readable: total,
        waiting,
        truth: None,
    });
}

/// A link of 20 Mbit/s and 40 ms: 25 kB in 10 ms.
#[test]
fn follow_falls_by_the_queue_that_stands_and_searches_where_none_does() {
    let mut setter = follow::Follow::new(&follow::Config::default(), Side::Up);
    let mut rate_after = |ticks: std::ops::Range<u64>, delays: [u64; 2]| {
        for tick in ticks {
            let now = ms(10 * tick);
            for value in delays {
                setter.on_delay(Delay { now, value: Duration::from_millis(value), source: Source::Flow });
            }
            follow_tick(&mut setter, now, 25_000 * tick + 110_000, 25_000 * tick, 110_000);
        }
        setter.rate().as_bps_f64() / 1e6
    };
    rate_after(1..5, [40, 40]);
    // 5 ms stand, 4 of which may: 1 ms of 20 Mbit/s too much, over 0.7 * 40 ms.
    let mbps = rate_after(5..500, [45, 45]);
    assert!((mbps - 20.0 * 27.0 / 28.0).abs() < 0.01, "{mbps}");
    // One packet that waits longer is no queue.
    let mbps = rate_after(500..520, [45, 60]);
    assert!((mbps - 20.0 * 27.0 / 28.0).abs() < 0.01, "{mbps}");
    let mbps = rate_after(520..540, [48, 48]);
    assert!((mbps - 20.0 * 6.0 / 7.0).abs() < 0.01, "{mbps}");
    // Nothing stands, and data waits here: a quarter more per round trip, up to twice what is delivered.
    let mbps = rate_after(540..546, [41, 60]);
    assert!((22.0..30.0).contains(&mbps), "{mbps}");
    let mbps = rate_after(546..700, [41, 60]);
    assert!((38.0..50.0).contains(&mbps), "{mbps}");
}

/// A sender that never lets anything wait here, and a link that fades for half a second.
#[test]
fn follow_comes_back_to_what_the_link_carried_though_nothing_waits() {
    let mut setter = follow::Follow::new(&follow::Config::default(), Side::Up);
    let (mut tick, mut total) = (0_u64, 0_u64);
    let mut rate_after = |ticks: u64, delay: u64, bytes: u64| {
        for _ in 0..ticks {
            (tick, total) = (tick + 1, total + bytes);
            let now = ms(10 * tick);
            setter.on_delay(Delay { now, value: Duration::from_millis(delay), source: Source::Flow });
            follow_tick_with(&mut setter, now, total + 100_000, total, 100_000, 0);
        }
        setter.rate().as_bps_f64() / 1e6
    };
    rate_after(300, 40, 25_000);
    let faded = rate_after(50, 80, 6_250);
    assert!(faded < 5.0, "{faded}");
    // A quarter more per round trip: 6 of them, and what the mean of O takes.
    let back = rate_after(60, 40, 6_250);
    assert!((20.0..24.0).contains(&back), "{back}");
    let later = rate_after(1500, 40, 6_250);
    assert!((20.0..24.0).contains(&later), "{later}");
}

#[test]
fn follow_says_that_it_is_blind_where_probes_are_never_late_and_nothing_waits_here() {
    let config = follow::Config::from_options([("safe", "10Mbps"), ("base", "30Mbps")]).unwrap();
    let mut setter = follow::Follow::new(&config, Side::Down);
    let mut blind_at = None;
    for tick in 1..2000_u64 {
        let now = ms(10 * tick);
        if tick % 5 == 0 {
            setter.on_delay(Delay { now, value: Duration::from_millis(7), source: Source::Probe(tick) });
        }
        let waiting = brakelight_core::queue::Backlog::default();
        let total = 25_000 * tick;
        setter.on_tick(&Seen {
            now,
            arrived: total,
            departed: total,
            delivered: 0,
            under_way: 0,
            readable: 0,
            waiting,
            truth: None,
        });
        if setter.is_blind() && blind_at.is_none() {
            blind_at = Some(now);
        }
    }
    let blind_at = blind_at.expect("20 Mbit/s pass, and no delay shows").since(Time::ZERO).as_secs_f64();
    assert!((10.0..10.5).contains(&blind_at), "{blind_at}");
    assert_eq!(setter.rate(), Rate::from_mbps(10));
    // A flow that can be read shows the queue: it sees again.
    let now = Time::from_secs(21);
    setter.on_delay(Delay { now, value: Duration::from_millis(3), source: Source::Flow });
    let waiting = brakelight_core::queue::Backlog::default();
    let total = 25_000 * 2100;
    setter.on_tick(&Seen {
        now,
        arrived: total,
        departed: total,
        delivered: 0,
        under_way: 0,
        readable: total,
        waiting,
        truth: None,
    });
    assert!(!setter.is_blind());
}

#[test]
fn follow_lowers_its_rate_in_an_outage_and_does_not_call_it_blindness() {
    let mut setter = follow::Follow::new(&follow::Config::default(), Side::Up);
    let total = |tick: u64| 25_000 * tick.min(500);
    for tick in 1..=900_u64 {
        let now = ms(10 * tick);
        if tick <= 500 {
            setter.on_delay(Delay { now, value: Duration::from_millis(40), source: Source::Flow });
        }
        follow_tick(&mut setter, now, total(tick) + 110_000, total(tick), 110_000);
        assert!(!setter.is_blind(), "at {now:?}");
    }
    // What is sent into a link that stands still only asks when it goes again.
    assert_eq!(setter.rate(), Rate::from_bps(50_000));
}
