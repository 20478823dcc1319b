//! DualPI2's decisions held, packet by packet, against two readings of what it was made from: RFC 9332
//! appendix A, and Linux 6.18 `sch_dualpi2.c` in its own integers. Both see the same arrivals and the same
//! opportunities of a link, and must mark, drop and send the same packets in the same order.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::Parameters;
use brakelight_core::units::Rate;
use brakelight_testkit::packet::Sample;

use super::*;
use crate::scripted::{Bench, place};

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Passed,
    Marked,
    Dropped,
}

/// A packet that waits.
#[derive(Clone, Copy)]
struct Waits {
    id: u64,
    size: u32,
    ecn: Ecn,
    since: Time,
    /// L packets that it found.
    found: usize,
}

/// The two queues of a reading, and the credit of Linux's scheduler, which the RFC leaves open (D1).
struct Pair {
    low: VecDeque<Waits>,
    classic: VecDeque<Waits>,
    /// In hundredths of a byte: what the Classic queue is owed.
    credit: i64,
}

const WEIGHT_CLASSIC: i64 = 10;
const WEIGHT_LOW: i64 = 90;
const FULL: i64 = 1500;

impl Pair {
    fn new() -> Self {
        let credit = FULL * (WEIGHT_CLASSIC - WEIGHT_LOW);
        Pair { low: VecDeque::new(), classic: VecDeque::new(), credit }
    }

    fn add(&mut self, id: u64, size: u32, ecn: Ecn, since: Time) {
        let found = self.low.len();
        // rfc9332 A.1, dualpi2_enqueue: by the bit that ECT(1) and CE share
        let queue = if ecn as u8 & 1 == 1 { &mut self.low } else { &mut self.classic };
        queue.push_back(Waits { id, size, ecn, since, found });
    }

    fn bytes(&self) -> u64 {
        self.low.iter().chain(&self.classic).map(|packet| u64::from(packet.size)).sum()
    }

    /// The next packet, whether it was of the L queue, and what its leaving costs in credit.
    fn take(&mut self) -> Option<(Waits, bool, i64)> {
        let both = !self.low.is_empty() && !self.classic.is_empty();
        let from_low = !self.low.is_empty() && (!both || self.credit <= 0);
        let queue = if from_low { &mut self.low } else { &mut self.classic };
        let Some(packet) = queue.pop_front() else {
            self.credit = FULL * (WEIGHT_CLASSIC - WEIGHT_LOW);
            return None;
        };
        let weight = if from_low { WEIGHT_CLASSIC } else { -WEIGHT_LOW };
        Some((packet, from_low, if both { weight * i64::from(packet.size) } else { 0 }))
    }

    /// How long the older of the two heads has waited at `at`.
    fn longest(&self, at: Time) -> Duration {
        let heads = [self.low.front(), self.classic.front()];
        heads.into_iter().flatten().map(|head| at.since(head.since)).max().unwrap_or(Duration::ZERO)
    }
}

/// A reading.
trait Reading {
    fn pair(&mut self) -> &mut Pair;
    fn period(&self) -> Duration;
    /// The update of the probabilities at `at`.
    fn update(&mut self, at: Time);
    /// What becomes of a packet that leaves one of the queues.
    fn judge(&mut self, packet: Waits, from_low: bool, now: Time) -> Verdict;
}

/// RFC 9332 appendix A with the overload handling of A.2, as this crate reads it: D2, D3 and D7.
struct Rfc {
    pair: Pair,
    base: f64,
    previous: Duration,
    counts: [f64; 2],
}

impl Rfc {
    const MIN: Duration = Duration::from_micros(800);
    const RANGE: Duration = Duration::from_micros(400);
    const COUPLING: f64 = 2.0;

    fn recur(&mut self, low: bool, likelihood: f64) -> bool {
        let count = &mut self.counts[usize::from(low)];
        *count += likelihood;
        if *count <= 1.0 {
            return false;
        }
        *count -= 1.0;
        true
    }

    fn laqm(waited: Duration) -> f64 {
        if waited >= Self::MIN + Self::RANGE {
            1.0
        } else if waited > Self::MIN {
            (waited - Self::MIN).as_secs_f64() / Self::RANGE.as_secs_f64()
        } else {
            0.0
        }
    }
}

impl Reading for Rfc {
    fn pair(&mut self) -> &mut Pair {
        &mut self.pair
    }

    fn period(&self) -> Duration {
        Duration::from_millis(15)
    }

    fn update(&mut self, at: Time) {
        let current = self.pair.longest(at);
        let (alpha, beta, target_s) = (0.15, 3.0, 0.015);
        let step = alpha * (current.as_secs_f64() - target_s)
            + beta * (current.as_secs_f64() - self.previous.as_secs_f64());
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.previous = current;
    }

    fn judge(&mut self, packet: Waits, from_low: bool, now: Time) -> Verdict {
        let squared = self.base * self.base;
        let coupled = Self::COUPLING * self.base;
        if from_low && coupled < 1.0 {
            // More than one packet was queued, the one that leaves among them.
            let alone = self.pair.low.is_empty();
            let native = if alone { 0.0 } else { Self::laqm(now.since(packet.since)) };
            return if self.recur(true, native.max(coupled)) { Verdict::Marked } else { Verdict::Passed };
        }
        if from_low {
            return if self.recur(true, squared) { Verdict::Dropped } else { Verdict::Marked };
        }
        match self.recur(false, squared) {
            false => Verdict::Passed,
            true if packet.ecn == Ecn::NotEct || coupled >= 1.0 => Verdict::Dropped,
            true => Verdict::Marked,
        }
    }
}

/// Linux 6.18 `sch_dualpi2.c` with its defaults, but for `min_qlen_step`: probabilities in 32 bits, delays
/// in nanoseconds.
struct Kernel {
    pair: Pair,
    probability: u32,
    last: i64,
    random: Random,
    min_qlen_step: usize,
}

impl Kernel {
    /// `dualpi2_scale_alpha_beta`: gains in 1/256 Hz become parts of a probability per 64 ns, cut off.
    const ALPHA: i64 = 41 * (u32::MAX as i64) / 4 / 1_000_000_000;
    const BETA: i64 = 819 * (u32::MAX as i64) / 4 / 1_000_000_000;

    fn roll(&mut self, probability: u32) -> bool {
        (self.random.bits() >> 32) as u32 <= probability
    }
}

/// A gain of the kernel's in this crate's unit, 1/s per update.
fn per_second(gain: i64) -> f64 {
    gain as f64 / 64.0 * 1e9 / f64::from(u32::MAX)
}

impl Reading for Kernel {
    fn pair(&mut self) -> &mut Pair {
        &mut self.pair
    }

    fn period(&self) -> Duration {
        Duration::from_millis(16)
    }

    fn update(&mut self, at: Time) {
        let delay = self.pair.longest(at).as_nanos() as i64;
        let delta = (delay - 15_000_000) * Self::ALPHA + (delay - self.last) * Self::BETA;
        self.last = delay;
        let moved = i64::from(self.probability) + delta.signum() * (delta.abs() / 64);
        self.probability = moved.clamp(0, i64::from(u32::MAX)) as u32;
    }

    fn judge(&mut self, packet: Waits, from_low: bool, now: Time) -> Verdict {
        let base = self.probability;
        let coupled = 2 * u64::from(base);
        let overload = coupled > u64::from(u32::MAX);
        let mut marked = false;
        // must_drop: nothing below two packets of the largest size
        if self.pair.bytes() >= 2 * FULL as u64 {
            if from_low && !overload {
                marked = self.roll(coupled as u32);
            } else {
                let chosen = self.roll(base) && self.roll(base);
                if chosen && (from_low || overload || packet.ecn == Ecn::NotEct) {
                    return Verdict::Dropped;
                }
                marked = chosen || from_low;
            }
        }
        // do_step_aqm, where the packet found as many as it takes
        let step = from_low && packet.found >= self.min_qlen_step;
        marked |= step && now.since(packet.since) > Duration::from_millis(1);
        if marked { Verdict::Marked } else { Verdict::Passed }
    }
}

/// A packet to come, or an opportunity of the link.
enum Event {
    Arrives { size: u32, ecn: Ecn },
    Leaves,
}

/// A minute of arrivals and opportunities: idle times, loads below and above the link's, and overload, in
/// bursts and one by one.
fn script(seed: u64) -> Vec<(Time, Event)> {
    let mut random = Random::stream(seed, "script");
    let mut events = Vec::new();
    let mut now = Time::ZERO;
    let (mut arrive_at, mut leave_at) = (Time::ZERO, Time::ZERO);
    let mut load = 1.0;
    let mut change_at = Time::ZERO;
    while now < Time::from_secs(60) {
        now = arrive_at.min(leave_at).min(change_at);
        if now == change_at {
            load = [0.02, 0.5, 0.9, 0.98, 1.05, 1.6][(6.0 * random.uniform()) as usize];
            change_at += Duration::from_secs_f64(0.2 + 2.0 * random.exponential());
        }
        if now == arrive_at {
            for _ in 0..1 + (4.0 * random.uniform() * random.uniform()) as u32 {
                let size = [1500, 1500, 1500, 600, 100][(5.0 * random.uniform()) as usize];
                let kinds = [Ecn::Ect1, Ecn::Ect1, Ecn::Ect1, Ecn::Ce, Ecn::Ect0, Ecn::NotEct, Ecn::NotEct];
                let ecn = kinds[(7.0 * random.uniform()) as usize];
                events.push((now, Event::Arrives { size, ecn }));
            }
            arrive_at += Duration::from_secs_f64(1e-4 + 1.6e-3 * random.exponential() / load);
        }
        if now == leave_at {
            events.push((now, Event::Leaves));
            let gap_s = if random.chance(0.1) { 3e-3 } else { 6e-4 };
            leave_at += Duration::from_secs_f64(gap_s * (0.5 + random.uniform()));
        }
    }
    events
}

/// What happened to the packets of a script, in the order in which it did.
fn read(reading: &mut impl Reading, events: &[(Time, Event)]) -> Vec<(u64, Verdict)> {
    let (mut fates, mut next_id) = (Vec::new(), 0);
    let mut update_at = Time::ZERO + reading.period();
    for (now, event) in events {
        while update_at <= *now {
            reading.update(update_at);
            update_at += reading.period();
        }
        if let Event::Arrives { size, ecn } = event {
            reading.pair().add(next_id, *size, *ecn, *now);
            next_id += 1;
            continue;
        }
        while let Some((packet, from_low, cost)) = reading.pair().take() {
            let fate = reading.judge(packet, from_low, *now);
            fates.push((packet.id, fate));
            // A packet that is dropped charges nothing (D5).
            if fate != Verdict::Dropped {
                reading.pair().credit += cost;
                break;
            }
        }
    }
    fates
}

/// The same of the queue.
fn queue(options: &[(&str, &str)], events: &[(Time, Event)]) -> Vec<(u64, Verdict)> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    let mut bench = Bench::new(DualPi2::new(&config, &place(1_000_000)), Rate::from_mbps(12));
    let mut fates = Vec::new();
    for (now, event) in events {
        if let Event::Arrives { size, ecn } = event {
            bench.arrive_as(*now, Sample { ecn: *ecn, encoding: Encoding::L4s, ..Sample::new(0, *size) });
            continue;
        }
        let left = bench.leave(*now);
        fates.extend(bench.dropped().into_iter().map(|id| (id, Verdict::Dropped)));
        fates.extend(left.map(|left| {
            (left.packet.id, if left.mark == Mark::Ce { Verdict::Marked } else { Verdict::Passed })
        }));
    }
    fates
}

/// Fails at the first packet that had another fate, and where a fate was too rare to prove anything.
fn same(ours: &[(u64, Verdict)], theirs: &[(u64, Verdict)]) {
    if let Some(at) = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs) {
        panic!("packet {at}: {:?}, and the reading has {:?}", ours[at], theirs[at]);
    }
    assert_eq!(ours.len(), theirs.len());
    for fate in [Verdict::Passed, Verdict::Marked, Verdict::Dropped] {
        let times = ours.iter().filter(|(_, other)| *other == fate).count();
        assert!(times > 1000, "{fate:?}: {times}");
    }
}

fn rfc() -> Rfc {
    Rfc { pair: Pair::new(), base: 0.0, previous: Duration::ZERO, counts: [0.0; 2] }
}

fn kernel(min_qlen_step: usize) -> Kernel {
    // The stream that `place` gives the queue: the same numbers for the same questions.
    let random = Random::stream(1, "queue");
    Kernel { pair: Pair::new(), probability: 0, last: 0, random, min_qlen_step }
}

#[test]
fn every_packet_fares_as_rfc_9332_says() {
    for seed in 1..=4 {
        let events = script(seed);
        same(&queue(&[], &events), &read(&mut rfc(), &events));
    }
}

#[test]
fn every_packet_fares_as_in_linux() {
    let (alpha, beta) = (per_second(Kernel::ALPHA), per_second(Kernel::BETA));
    let (alpha, beta) = (alloc::format!("{alpha}"), alloc::format!("{beta}"));
    for seed in 1..=4 {
        let events = script(seed);
        for (step, found) in [("0", 0), ("1", 1), ("3", 3)] {
            let options =
                [("rules", "linux"), ("alpha", &alpha), ("beta", &beta), ("threshold_packets", step)];
            same(&queue(&options, &events), &read(&mut kernel(found), &events));
        }
    }
}

#[test]
fn the_gains_that_linux_cuts_off_are_those_of_the_rules() {
    // 41/256 and 819/256 Hz, cut off to whole parts of 2^32 per 64 ns: the rules say 0.16 and 3.2.
    let (alpha, beta) = (per_second(Kernel::ALPHA), per_second(Kernel::BETA));
    assert!((alpha - 0.16).abs() < 2e-4 && (beta - 3.2).abs() < 3e-3, "{alpha} {beta}");
}
