//! The state machine of one direction, by a virtual clock and a link of bytes that flow.

use brakelight_core::parameters::Value as _;

use super::*;

const STEP: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(40);
const TBF: QdiscFacts = QdiscFacts { burst: 3_100, fifo: true };
const CAKE: QdiscFacts = QdiscFacts { burst: 0, fifo: false };

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn control(setter: &str, qdisc: QdiscFacts, rate: u64) -> Control {
    let config = SetterConfig::parse(setter).unwrap();
    Control::new(at(0), &config, Side::Up, qdisc, &Counters::default(), Some(Rate::from_mbps(rate)))
}

/// A shaper with senders that always have something, before a link with a queue without end.
struct World {
    control: Control,
    now: Time,
    link: Rate,
    /// Bytes that left the shaper, and that wait at the link.
    left: f64,
    queue: f64,
    /// Replies under way: when they come, when they were sent.
    replies: VecDeque<(Time, Time)>,
    probe: Time,
    changes: Vec<(Time, Rate)>,
}

impl World {
    fn new(setter: &str, rate: u64, link: u64) -> Self {
        World {
            control: control(setter, CAKE, rate),
            now: at(0),
            link: Rate::from_mbps(link),
            left: 0.0,
            queue: 0.0,
            replies: VecDeque::new(),
            probe: at(0),
            changes: Vec::new(),
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            let passed = STEP.as_secs_f64() / 8.0;
            let rate = self.control.rate().unwrap().as_bps_f64();
            self.left += rate * passed;
            self.queue = (self.queue + (rate - self.link.as_bps_f64()) * passed).max(0.0);
            while self.replies.front().is_some_and(|(comes, _)| *comes <= self.now) {
                let (_, sent) = self.replies.pop_front().unwrap();
                self.control.on_reply(self.now, self.now.since(sent), 0);
            }
            if self.probe <= self.now {
                self.probe = self.now + Duration::from_millis(50);
                let wait = Duration::from_secs_f64(self.queue * 8.0 / self.link.as_bps_f64());
                self.replies.push_back((self.now + RTT + wait, self.now));
            }
            if self.control.next_look() <= self.now {
                let counters =
                    Counters { left: self.left as u64, waiting_bytes: 30_000, waiting_packets: 20 };
                self.control.on_counters(self.now, &counters);
            }
            if let Some(rate) = self.control.wants(self.now) {
                self.control.on_chosen(self.now, rate);
                self.changes.push((self.now, rate));
            }
        }
    }

    fn mbps(&self) -> f64 {
        self.control.rate().unwrap().as_mbps_f64()
    }

    /// Lets the link fall at once. Returns after what time the rate falls by a tenth, and is no more than the
    /// link's, and the longest wait at the link.
    fn fall(&mut self, link: u64) -> (Duration, Duration, Duration) {
        self.link = Rate::from_mbps(link);
        let (began, before) = (self.now, self.mbps());
        let (mut first, mut longest) = (None, Duration::ZERO);
        while self.control.rate().unwrap() > self.link {
            self.run(STEP);
            if self.mbps() < 0.9 * before {
                first.get_or_insert(self.now.since(began));
            }
            longest = longest.max(Duration::from_secs_f64(self.queue * 8.0 / self.link.as_bps_f64()));
            assert!(self.now.since(began) < Duration::from_secs(60), "it never fell: {} Mbit/s", self.mbps());
        }
        (first.unwrap(), self.now.since(began), longest)
    }
}

#[test]
fn a_fixed_rate_is_set_once() {
    let mut world = World::new("fixed/rate=12Mbps", 20, 50);
    world.run(Duration::from_secs(10));
    assert_eq!(world.changes, [(at(1), Rate::from_mbps(12))]);
}

#[test]
fn autorate_climbs_while_there_is_room_and_falls_when_three_probes_are_late() {
    let mut world = World::new("autorate/min=2Mbps/base=10Mbps/max=40Mbps", 10, 30);
    world.run(Duration::from_secs(20));
    assert!(world.mbps() > 25.0, "{}", world.mbps());
    let (first, fell, _) = world.fall(5);
    // 25 Mbit/s too much let a probe that is sent t after the fall wait 5 t. Three are late by 60 ms: the
    // third is sent after 12 + 150 ms at most, and answered 40 + 5 * 162 ms later.
    assert!(first < Duration::from_millis(1_100), "{first:?}");
    assert!(fell < Duration::from_secs(10), "{fell:?}");
}

#[test]
fn follow_is_near_the_link_s_rate_and_falls_with_it_within_a_few_round_trips() {
    let mut world = World::new("follow/base=10Mbps/safe=2Mbps/max=100Mbps", 10, 20);
    world.run(Duration::from_secs(20));
    assert!((16.0..24.0).contains(&world.mbps()), "{}", world.mbps());
    assert!(!world.control.is_blind());
    let (first, fell, longest) = world.fall(8);
    // 12 Mbit/s too much let a probe that is sent t after the fall wait 1.5 t. Two are late by 4 ms: the
    // second is sent after 3 + 100 ms at most, and answered 40 + 1.5 * 103 ms later.
    assert!(first < Duration::from_millis(310), "{first:?}");
    assert!(fell < Duration::from_secs(1), "{fell:?}");
    // 1.5 * 310 ms by then, and half as much while the rate comes down.
    assert!(longest < Duration::from_millis(700), "{longest:?}");
    // It searches around the link's rate: its mean is what counts.
    let left = world.left;
    world.run(Duration::from_secs(10));
    let mean = (world.left - left) * 8.0 / 10.0 / 1e6;
    assert!((5.5..8.1).contains(&mean), "{mean}");
}

#[test]
fn without_replies_follow_says_that_it_is_blind_and_holds_its_safe_rate() {
    let mut control = control("follow/base=20Mbps/safe=6Mbps", CAKE, 20);
    let mut now = at(0);
    while now < at(5_000) {
        now += STEP;
        if control.next_look() <= now {
            let left = now.as_nanos() / 1_000_000 * 2_000;
            control.on_counters(now, &Counters { left, waiting_bytes: 0, waiting_packets: 0 });
        }
        if let Some(rate) = control.wants(now) {
            control.on_chosen(now, rate);
        }
    }
    assert!(control.is_blind());
    assert_eq!(control.rate(), Some(Rate::from_mbps(6)));
}

#[test]
fn a_look_that_comes_late_leaves_out_no_tick() {
    let rates = |every: u64| {
        let mut control = control("follow", CAKE, 20);
        let mut rates = Vec::new();
        for ms in 1..=3_000 {
            if ms % 50 == 1 {
                control.on_reply(at(ms), Duration::from_millis(if ms < 1_500 { 40 } else { 90 }), 0);
            }
            if ms % every == 0 {
                let counters = Counters { left: ms * 2_000, waiting_bytes: 9_000, waiting_packets: 6 };
                control.on_counters(at(ms), &counters);
            }
            if ms % 300 == 0 {
                rates.push(control.wants(at(ms)).map_or(0.0, Rate::as_mbps_f64));
            }
        }
        rates
    };
    let (on_time, late) = (rates(10), rates(30));
    assert!(on_time.iter().any(|rate| *rate > 0.0), "{on_time:?}");
    for (on_time, late) in on_time.iter().zip(&late) {
        // A reply is heard in between, and the ticks that are made up for know of it early.
        assert!((on_time - late).abs() <= 0.05 * on_time, "{on_time} {late}");
    }
}

#[test]
fn small_changes_on_tbf_wait_until_bursts_are_a_small_share_and_large_ones_do_not() {
    let chosen = |qdisc, from: f64, to: f64| {
        let mut control = control(&format!("fixed/rate={to}Mbps"), qdisc, 20);
        control.on_chosen(at(1_000), Rate::from_bps_f64(from * 1e6));
        move |ms: u64| control.wants(at(1_000 + ms)).is_some()
    };
    // 3100 B * 8 / (0.05 * 19 Mbit/s) = 26.1 ms
    for to in [20.0, 18.0] {
        let small = chosen(TBF, 19.0, to);
        assert!(!small(26) && small(27));
    }
    // At 1 Mbit/s that would be 496 ms.
    let slow = chosen(TBF, 1.0, 1.05);
    assert!(!slow(49) && slow(50));
    let (rise, fall) = (chosen(TBF, 2.0, 20.0), chosen(TBF, 23.0, 20.0));
    assert!(rise(0) && fall(0));
    // Closer than 0.5 %.
    let close = chosen(TBF, 20.05, 20.0);
    assert!(!close(60_000));
    let cake = chosen(CAKE, 19.0, 20.0);
    assert!(cake(0));
}

#[test]
fn a_probe_has_left_once_what_waited_before_it_has() {
    let mut control = control("fixed/rate=8Mbps", TBF, 8);
    let seen = |left, waiting_bytes| Counters { left, waiting_bytes, waiting_packets: 1 };
    // Nothing waits: it leaves at once.
    control.on_probe(at(10), 0, 100, &seen(0, 0));
    assert_eq!(control.left_at(0), Some(at(10)));
    // 900 bytes wait before the next, and 1000 bytes more before the third.
    control.on_counters(at(20), &seen(100, 900));
    control.on_probe(at(20), 1, 100, &seen(100, 900));
    control.on_probe(at(20), 2, 100, &seen(100, 2_000));
    assert_eq!(control.next_look(), at(22));
    control.on_counters(at(22), &seen(600, 1_500));
    assert_eq!(control.left_at(1), None);
    // Some time within these 2 ms: at the earliest.
    control.on_counters(at(24), &seen(1_600, 600));
    assert_eq!((control.left_at(1), control.left_at(2)), (Some(at(22)), None));
    control.on_counters(at(26), &seen(2_200, 0));
    assert_eq!((control.left_at(2), control.next_look()), (Some(at(24)), at(126)));
    // Where flows are kept apart, it waits behind no data.
    let mut cake = Control { qdisc: CAKE, ..control };
    cake.on_probe(at(30), 3, 100, &seen(2_200, 50_000));
    assert_eq!(cake.left_at(3), Some(at(30)));
}

#[test]
fn a_setter_sleeps_when_only_its_own_probes_pass_and_wakes_with_data() {
    let mut control = control("autorate", CAKE, 20);
    let mut left = 0;
    let mut now = at(0);
    while now < at(61_000) {
        now += Duration::from_millis(50);
        if control.probes_every().is_some() {
            left += 98;
            control.on_own_packet(98);
        }
        control.on_counters(now, &Counters { left, waiting_bytes: 0, waiting_packets: 0 });
    }
    assert!(control.is_asleep() && control.probes_every().is_none());
    assert_eq!(control.departed(), (0, 0));
    control.on_counters(now + LOOK, &Counters { left: left + 1514, waiting_bytes: 0, waiting_packets: 0 });
    assert!(!control.is_asleep() && control.probes_every().is_some());
    assert_eq!(control.departed(), (1514, 0));
}

#[test]
fn probes_that_were_not_sent_hide_no_data() {
    let mut control = control("autorate", CAKE, 20);
    for _ in 0..100 {
        control.on_own_packet(98);
    }
    control.on_counters(at(100), &Counters::default());
    control.on_counters(at(200), &Counters { left: 3_000, waiting_bytes: 0, waiting_packets: 0 });
    assert_eq!(control.departed(), (3_000, 0));
}

#[test]
fn an_unlimited_qdisc_gets_the_setter_s_first_rate() {
    let config = SetterConfig::parse("autorate/base=15Mbps").unwrap();
    let control = Control::new(at(0), &config, Side::Up, CAKE, &Counters::default(), None);
    assert_eq!((control.rate(), control.wants(at(0))), (None, Some(Rate::from_mbps(15))));
}
