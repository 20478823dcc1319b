//! A tin: 1024 queues found by an eight-way set-associative hash, served by DRR++ (cake18 III-C; Linux 6.1
//! `sch_cake.c`).
//!
//! ```text
//! arrival of flow f:  the queue at hash(f), if f has it; else one of the eight in its set that f has; else
//!                     an idle one of the set, which f gets; else the one at hash(f), shared
//! it was idle:        to the end of the new ones, with a quantum
//! departure:          the first decaying one, once; else the first of the new ones; else of the old ones
//!   deficit <= 0:       deficit += quantum / load; to the end of the old ones; again
//!   COBALT's packet:    deficit -= its cost; it leaves
//!   nothing there:      to the end of the decaying ones while COBALT has anything to forget, else idle;
//!                       again
//!
//! load = the most bulk flows that its source host or its destination host has, as the isolation asks; else 1
//! ```
//!
//! A flow is bulk from when it has used up its quantum with packets left, until its queue is found empty.

use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::packet::Packet;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::cobalt::{Law, State};
use super::diffserv::Share;
use crate::fifo::Fifo;

/// Queues of a tin, and entries of its table of hosts.
pub(super) const QUEUES: usize = 1024;
/// Places that a flow or a host may have.
const WAYS: usize = 8;
/// The largest packet, with Ethernet's header: Linux counts it so.
pub(super) const FULL_FRAME: u64 = 1514;
/// The smallest quantum, in bytes.
const LEAST_QUANTUM: u64 = 300;
/// The lowest rate, in bytes per second.
const LEAST_RATE: u64 = 64;

/// Nanoseconds per byte, in units of 2^-`shift`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    scaled: u64,
    shift: u32,
}

impl Pace {
    /// Returns the pace of `rate` bytes per second.
    pub(super) fn of(rate: u64) -> Self {
        // As Linux 6.1 sch_cake.c, cake_set_rate: 34 bits of precision.
        let mut pace = Pace { scaled: (1_000_000_000 << 34) / rate.max(LEAST_RATE), shift: 34 };
        while pace.scaled >> 34 > 0 {
            pace.scaled >>= 1;
            pace.shift -= 1;
        }
        pace
    }

    /// Returns how long `bytes` take.
    pub(super) fn time_for(self, bytes: u32) -> Duration {
        Duration::from_nanos((u64::from(bytes) * self.scaled) >> self.shift)
    }
}

/// Where a queue stands in the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// In none: it is idle.
    Idle,
    /// Among the new ones.
    Sparse,
    /// Among the old ones, found empty with its quantum used up: it still counts as sparse.
    SparseWait,
    /// Among the old ones.
    Bulk,
    /// Among the decaying ones.
    Decaying,
}

/// One queue.
#[derive(Clone, Debug)]
pub(super) struct FlowQueue<P> {
    pub(super) packets: Fifo<P>,
    pub(super) cobalt: State,
    pub(super) deficit: i64,
    pub(super) set: Set,
    /// The hash of the flow that has it.
    tag: u32,
    /// The places of its hosts in the table.
    source: u16,
    destination: u16,
}

/// A place of the table of hosts: a source host, and independently a destination host.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tag: u32,
    bulk_flows: u16,
}

/// Which hosts share fairly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fairness {
    pub(super) sources: bool,
    pub(super) destinations: bool,
}

/// The hashes of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hashes {
    pub(super) flow: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
}

/// How often the hash found what; for `inspect`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ways {
    /// Flows that were given an idle queue.
    pub(super) misses: u64,
    /// Packets of flows that share a queue, all of their set being taken.
    pub(super) collisions: u64,
}

/// Queues in order, by their places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    first: u16,
    last: u16,
}

/// No queue.
const NONE: u16 = u16::MAX;

impl Default for Chain {
    fn default() -> Self {
        Chain { first: NONE, last: NONE }
    }
}

impl Chain {
    pub(super) fn first(&self) -> Option<usize> {
        (self.first != NONE).then_some(usize::from(self.first))
    }
}

/// A queue's neighbors in its chain.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u16,
    behind: u16,
}

/// The chains of a tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum In {
    New,
    Old,
    Decaying,
}

/// A tin.
#[derive(Clone, Debug)]
pub(super) struct Tin<P> {
    pub(super) law: Law,
    pub(super) quantum: i64,
    pub(super) pace: Option<Pace>,
    pub(super) weight: i64,
    /// Without a shaper: what it may still send before others have their turn.
    pub(super) deficit: i64,
    /// With one: up to when it has used its rate.
    pub(super) time_next: Time,
    pub(super) bytes: Bytes,
    pub(super) sparse: u32,
    pub(super) bulk: u32,
    pub(super) decaying: u32,
    pub(super) ways: Ways,
    pub(super) queues: Vec<FlowQueue<P>>,
    sources: Vec<Host>,
    destinations: Vec<Host>,
    links: Vec<Links>,
    chains: [Chain; 3],
}

impl<P: Packet> Tin<P> {
    /// Returns an idle tin; the rate of `share` is in bytes per second, 0 for no shaper.
    pub(super) fn new(share: Share, target: Duration, rtt: Duration) -> Self {
        let pace = (share.rate > 0).then(|| Pace::of(share.rate));
        let packet_time = pace.map_or(Duration::ZERO, |pace| pace.time_for(FULL_FRAME as u32));
        // Linux 6.1 sch_cake.c, cake_set_rate: no less than one and a half packets.
        let wide = (packet_time * 3 / 2).max(target);
        let interval = (rtt + wide.saturating_sub(target)).max(wide * 2);
        let quantum = match share.rate {
            0 => FULL_FRAME,
            rate => (rate >> 12).clamp(LEAST_QUANTUM, FULL_FRAME),
        };
        let queue = || FlowQueue {
            packets: Fifo::default(),
            cobalt: State::default(),
            deficit: 0,
            set: Set::Idle,
            tag: 0,
            source: 0,
            destination: 0,
        };
        Tin {
            law: Law { target: wide, interval, packet_time },
            quantum: quantum as i64,
            pace,
            weight: share.weight,
            deficit: 0,
            time_next: Time::ZERO,
            bytes: Bytes::ZERO,
            sparse: 0,
            bulk: 0,
            decaying: 0,
            ways: Ways::default(),
            queues: (0..QUEUES).map(|_| queue()).collect(),
            sources: vec![Host::default(); QUEUES],
            destinations: vec![Host::default(); QUEUES],
            links: vec![Links { before: NONE, behind: NONE }; QUEUES],
            chains: [Chain::default(); 3],
        }
    }

    /// Whether flows in it want to be served.
    pub(super) fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    pub(super) fn chain(&self, which: In) -> &Chain {
        &self.chains[which as usize]
    }

    /// Calls `visit` with every queue of a chain, the first first.
    pub(super) fn for_each_in(&self, which: In, visit: &mut dyn FnMut(&FlowQueue<P>)) {
        let mut place = self.chain(which).first;
        while place != NONE {
            visit(&self.queues[usize::from(place)]);
            place = self.links[usize::from(place)].behind;
        }
    }

    /// Returns the queue of a flow, which is the flow's from now on.
    pub(super) fn find(&mut self, hashes: Hashes) -> usize {
        let reduced = hashes.flow as usize % QUEUES;
        let is = |queue: &FlowQueue<P>| queue.tag == hashes.flow;
        if is(&self.queues[reduced]) && self.queues[reduced].set != Set::Idle {
            return reduced;
        }
        let mine = ways(reduced).find(|&place| is(&self.queues[place]));
        let idle = |place: &usize| self.queues[*place].set == Set::Idle;
        let place = match mine.or_else(|| ways(reduced).find(idle)) {
            Some(place) => place,
            None => {
                self.ways.collisions += 1;
                reduced
            }
        };
        if mine.is_none() && idle(&place) {
            self.ways.misses += 1;
        }
        if mine.is_none() || idle(&place) {
            self.settle(place, hashes);
        }
        place
    }

    /// Gives the queue at `place` to a flow, and finds the places of its hosts.
    fn settle(&mut self, place: usize, hashes: Hashes) {
        let is_bulk = self.queues[place].set == Set::Bulk;
        if is_bulk {
            self.count_bulk(place, false);
        }
        let queue = &mut self.queues[place];
        queue.tag = hashes.flow;
        queue.source = place_of_host(&mut self.sources, hashes.source);
        queue.destination = place_of_host(&mut self.destinations, hashes.destination);
        if is_bulk {
            self.count_bulk(place, true);
        }
    }

    /// Its hosts have one bulk flow more, or one less.
    fn count_bulk(&mut self, place: usize, more: bool) {
        let queue = &self.queues[place];
        let hosts = [
            &mut self.sources[usize::from(queue.source)],
            &mut self.destinations[usize::from(queue.destination)],
        ];
        for host in hosts {
            if more {
                host.bulk_flows += 1;
            } else {
                host.bulk_flows -= 1;
            }
        }
    }

    /// How many bulk flows the queue's hosts have; at least 1.
    fn load(&self, place: usize, fairness: Fairness) -> i64 {
        let queue = &self.queues[place];
        let mut load = 1;
        if fairness.sources {
            load = load.max(self.sources[usize::from(queue.source)].bulk_flows);
        }
        if fairness.destinations {
            load = load.max(self.destinations[usize::from(queue.destination)].bulk_flows);
        }
        i64::from(load)
    }

    /// A flow's share of the quantum, where the last part of a byte is rounded by `dither`, 0 to 65535.
    fn share_of_quantum(&self, place: usize, fairness: Fairness, dither: i64) -> i64 {
        // As Linux 6.1 sch_cake.c divides: by a reciprocal of 16 bits.
        (self.quantum * (65_535 / self.load(place, fairness)) + dither) >> 16
    }

    /// A packet has come to the queue at `place`.
    pub(super) fn wake(&mut self, place: usize, fairness: Fairness) {
        match self.queues[place].set {
            Set::Idle | Set::Decaying => {
                if self.queues[place].set == Set::Decaying {
                    self.decaying -= 1;
                    self.unlink(In::Decaying, place);
                }
                self.push(In::New, place);
                self.sparse += 1;
                self.queues[place].set = Set::Sparse;
                self.queues[place].deficit = self.share_of_quantum(place, fairness, 0);
            }
            Set::SparseWait => {
                self.sparse -= 1;
                self.become_bulk(place);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// The queue at `place`, the first of `which`, has used up its quantum: it gets another one and goes
    /// behind the old ones.
    pub(super) fn renew(&mut self, which: In, place: usize, fairness: Fairness, random: &mut Random) {
        if self.queues[place].set == Set::Sparse {
            if self.queues[place].packets.is_empty() {
                self.queues[place].set = Set::SparseWait;
            } else {
                self.sparse -= 1;
                self.become_bulk(place);
            }
        }
        let dither = (random.bits() >> 48) as i64;
        self.queues[place].deficit += self.share_of_quantum(place, fairness, dither);
        self.unlink(which, place);
        self.push(In::Old, place);
    }

    /// The queue at `place`, in `which`, was served and has nothing.
    pub(super) fn retire(&mut self, which: In, place: usize, now: Time) {
        self.unlink(which, place);
        match self.queues[place].set {
            Set::Bulk => {
                self.bulk -= 1;
                self.count_bulk(place, false);
            }
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Decaying => self.decaying -= 1,
            Set::Idle => {}
        }
        if self.queues[place].cobalt.is_at_rest(now) {
            self.queues[place].set = Set::Idle;
        } else {
            self.queues[place].set = Set::Decaying;
            self.decaying += 1;
            self.push(In::Decaying, place);
        }
    }

    fn become_bulk(&mut self, place: usize) {
        self.queues[place].set = Set::Bulk;
        self.bulk += 1;
        self.count_bulk(place, true);
    }

    fn push(&mut self, which: In, place: usize) {
        let chain = &mut self.chains[which as usize];
        self.links[place] = Links { before: chain.last, behind: NONE };
        match chain.last {
            NONE => chain.first = place as u16,
            last => self.links[usize::from(last)].behind = place as u16,
        }
        chain.last = place as u16;
    }

    fn unlink(&mut self, which: In, place: usize) {
        let chain = &mut self.chains[which as usize];
        let Links { before, behind } = self.links[place];
        match before {
            NONE => chain.first = behind,
            before => self.links[usize::from(before)].behind = behind,
        }
        match behind {
            NONE => chain.last = before,
            behind => self.links[usize::from(behind)].before = before,
        }
    }
}

/// The places of a set, the one at `reduced` first.
fn ways(reduced: usize) -> impl Iterator<Item = usize> {
    let inner = reduced % WAYS;
    (0..WAYS).map(move |way| reduced - inner + (inner + way) % WAYS)
}

/// Returns the place of a host in its table, which is the host's from now on.
fn place_of_host(hosts: &mut [Host], hash: u32) -> u16 {
    let reduced = hash as usize % QUEUES;
    let mine = ways(reduced).find(|&place| hosts[place].tag == hash);
    let free = || ways(reduced).find(|&place| hosts[place].bulk_flows == 0);
    let place = mine.or_else(free).unwrap_or(reduced);
    hosts[place].tag = hash;
    place as u16
}

#[cfg(test)]
mod tests {
    use brakelight_testkit::packet::Sample;

    use super::*;

    const ALONE: Fairness = Fairness { sources: false, destinations: false };

    fn tin(rate: u64) -> Tin<Sample> {
        Tin::new(Share { rate, weight: 1 }, Duration::from_millis(5), Duration::from_millis(100))
    }

    fn hashes(flow: u32) -> Hashes {
        Hashes { flow, source: flow, destination: 7 }
    }

    /// A packet of the flow arrives.
    fn arrive(tin: &mut Tin<Sample>, flow: u32) -> usize {
        let place = tin.find(hashes(flow));
        tin.queues[place].packets.push(Time::ZERO, Sample::new(0, 1500));
        tin.wake(place, ALONE);
        place
    }

    #[test]
    fn eight_flows_of_a_set_get_a_queue_each_and_the_ninth_shares() {
        let mut tin = tin(0);
        // All of them hash to place 13, in the set of 8 to 15.
        let places: Vec<usize> = (0..9).map(|n| arrive(&mut tin, 13 + 1024 * (n + 1))).collect();
        assert_eq!(places, [13, 14, 15, 8, 9, 10, 11, 12, 13]);
        assert_eq!(tin.ways, Ways { misses: 8, collisions: 1 });
        // Those that have a queue keep it.
        assert_eq!(arrive(&mut tin, 13 + 1024 * 4), 8);
        assert_eq!(arrive(&mut tin, 21), 21);
    }

    #[test]
    fn a_queue_that_became_idle_is_given_to_another_flow() {
        let mut tin = tin(0);
        assert_eq!(arrive(&mut tin, 1024), 0);
        assert_eq!(arrive(&mut tin, 2048), 1);
        tin.queues[0].packets.pop();
        tin.retire(In::New, 0, Time::ZERO);
        assert_eq!(arrive(&mut tin, 3072), 0);
        // The first flow comes back, and finds another.
        assert_eq!(arrive(&mut tin, 1024), 2);
    }

    #[test]
    fn a_host_keeps_its_place_while_it_has_bulk_flows() {
        let mut hosts = vec![Host::default(); QUEUES];
        let places: Vec<u16> = (1..10)
            .map(|n| {
                let place = place_of_host(&mut hosts, 1024 * n + 5);
                hosts[usize::from(place)].bulk_flows += 1;
                place
            })
            .collect();
        assert_eq!(places, [5, 6, 7, 0, 1, 2, 3, 4, 5]);
        assert_eq!(place_of_host(&mut hosts, 1024 * 4 + 5), 0);
    }

    #[test]
    fn bulk_flows_are_counted_at_their_hosts() {
        let mut tin = tin(0);
        let mut random = Random::stream(1, "tin");
        let both = Fairness { sources: true, destinations: true };
        for flow in 1..=4 {
            let place = arrive(&mut tin, flow);
            tin.queues[place].deficit = 0;
            tin.renew(In::New, place, both, &mut random);
        }
        // Four flows of four sources, all to one destination.
        assert_eq!((tin.bulk, tin.sparse), (4, 0));
        assert_eq!(tin.load(1, Fairness { sources: true, destinations: false }), 1);
        assert_eq!(tin.load(1, both), 4);
        let quantum = tin.queues[4].deficit;
        assert!((378..=379).contains(&quantum), "{quantum}");
        tin.queues[1].packets.pop();
        tin.retire(In::Old, 1, Time::ZERO);
        assert_eq!((tin.bulk, tin.load(2, both)), (3, 3));
    }

    #[test]
    fn a_low_rate_widens_target_and_interval_and_narrows_the_quantum() {
        // 1 Mbit/s: 1514 bytes in 12.112 ms, so 18.168 ms and 13.168 ms more.
        let slow = tin(125_000);
        let micros = |time: Duration| time.as_nanos() / 1000;
        assert_eq!((micros(slow.law.target), micros(slow.law.interval)), (18_168, 113_168));
        assert_eq!(slow.quantum, 300);
        // 20 Mbit/s: the largest packet is short.
        let fast = tin(2_500_000);
        assert_eq!((micros(fast.law.target), micros(fast.law.interval)), (5000, 100_000));
        assert_eq!((fast.quantum, tin(0).quantum, tin(125_000_000).quantum), (610, 1514, 1514));
        assert_eq!(tin(125_000_000).law.packet_time, Duration::from_nanos(12_112));
    }

    #[test]
    fn paces_are_exact_to_a_nanosecond_per_packet() {
        for rate in [64, 1000, 125_000, 2_500_000, 1_250_000_000, 125_000_000_000] {
            let exact = 1500 * 1_000_000_000 / rate;
            let time = Pace::of(rate).time_for(1500).as_nanos();
            assert!(time.abs_diff(exact) <= 1 + exact / 1_000_000_000, "{rate}: {time}, not {exact}");
        }
    }
}
