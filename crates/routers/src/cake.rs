//! CAKE, Common Applications Kept Enhanced (Høiland-Jørgensen, Täht and Morton, LANMAN 2018; Linux 6.1
//! `sch_cake.c`): a shaper without bursts, tins by codepoint, fairness between hosts and between the flows of
//! each, COBALT on every flow, and a filter for ACKs.
//!
//! ```text
//! on arrival:    to the tin of its codepoint, there to the queue of its flow          [`tin`], [`diffserv`]
//!                the ACK filter may drop an older ACK of its flow                                  [`acks`]
//! buffer full:   drop the head of the queue that holds most, of all tins; COBALT is told
//!
//! on departure:
//!   shaper:      nothing before min(next, failsafe)                                        cake18 III-A
//!   tin:         the last of those within their rates, else the one that is due first; in that order   III-B
//!                without a shaper: in turn, by weight
//!   queue:       DRR++ with a quantum divided by the load of its hosts                     III-C, [`tin`]
//!   packet:      COBALT may mark it, or drop it unless it is the last of its queue        III-D, [`cobalt`]
//!   then:        next += cost / bandwidth; failsafe += 1.5 cost / bandwidth; both start over when a packet
//!                comes to an empty queue after `next`; the tin's clock likewise, at its rate
//!
//! cost = what the link makes of the packet                                                   [`framing`]
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | bandwidth | `bandwidth` | bit/s | none: no shaper | tc-cake(8) |
//! | interval | `rtt` | s | 100 ms | tc-cake(8), `internet` |
//! | target | `target` | s | rtt / 20 | iproute2 tc/q_cake.c, `rtt` |
//! | - | `diffserv` | - | diffserv3 | tc-cake(8) |
//! | - | `isolation` | - | triple-isolate | tc-cake(8) |
//! | overhead, mpu | `overhead`, `mpu` | bytes | the link's | tc-cake(8) |
//! | - | `memory_limit` | bytes | 4 bandwidth rtt, at least 4 MiB (D3) | Linux 6.1 sch_cake.c |
//!
//! # Deviations
//!
//! - D1. Packets are counted at the IP layer, so `link_layer=raw` adds nothing. Linux counts Ethernet's 14
//!   bytes in `raw` mode; `overhead=14` is the same. The largest packet, for the quantum and for COBALT, is
//!   1514 bytes in both.
//! - D2. Hosts and codepoints of real packets are read from their headers. Simulated packets have neither:
//!   each flow is from a host of its own to a host of its own, unless `srchosts` and `dsthosts` group them,
//!   and `dscps` gives them codepoints.
//! - D3. `memory_limit` counts bytes of packets. Linux counts what it allocates for them, two to three times
//!   as much. The buffer's own limit holds as well.
//! - D4. Of queues that hold equally much the one found first overflows; in Linux the order of a heap
//!   decides.
//! - D5. The hash of a flow is of this project's making, mixed with a number drawn from the seed.
//! - D6. The ACK filter knows the cumulative acknowledgement, SACK blocks and ECN flags. Of real packets
//!   those with SACK blocks, or with options besides timestamps, are all kept; Linux compares blocks. It does
//!   not compare timestamps, which rise with the acknowledgements.
//! - D7. The shaper wakes exactly when the next packet is due; Linux's timer may be late, and makes up for
//!   it.
//! - D8. `autorate-ingress`, `nat`, `wash`, `fwmark` and `split-gso` are not there.
//! - D9. With `ecn=false` nothing is marked, for comparisons; Linux always marks.

use alloc::vec::Vec;

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::packet::Packet;
use brakelight_core::parameters::OrNone;
use brakelight_core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};

mod acks;
mod cobalt;
mod diffserv;
mod framing;
mod hosts;
mod tin;

pub use acks::AckFilter;
pub use diffserv::{Codepoints, Diffserv};
pub use framing::{Framing, LinkLayer};
pub use hosts::{Groups, Isolation};

use framing::Costs;
use hosts::Identify;
use tin::{Fairness, In, Pace, Tin};

parameters! {
    /// CAKE's settings.
    pub struct Config {
        /// The rate that it shapes to; none leaves the pace to the link.
        bandwidth: Option<Rate> = None, in OrNone(Rate::from_bps(1000)..=Rate::from_mbps(1_000_000)), from "tc-cake(8): unlimited";
        /// COBALT's interval: a typical round trip.
        rtt: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(1000), from "tc-cake(8): internet";
        /// COBALT's target; none is a twentieth of `rtt`.
        target: Option<Duration> = None, in OrNone(Duration::from_nanos(1)..=Duration::from_secs(100)), from "iproute2 tc/q_cake.c: rtt / 20";
        /// Which tins there are.
        diffserv: Diffserv = Diffserv::Diffserv3, in .., from "tc-cake(8)";
        /// What is kept apart, and what shares fairly.
        isolation: Isolation = Isolation::TripleIsolate, in .., from "tc-cake(8)";
        /// The link behind the shaper, which sets framing, overhead and mpu.
        link_layer: LinkLayer = LinkLayer::Raw, in .., from "tc-cake(8)";
        /// How the link cuts packets up; none is as `link_layer` has it.
        framing: Option<Framing> = None, in .., from "tc-cake(8)";
        /// Bytes that the link adds to a packet at the IP layer; none is as `link_layer` has it.
        overhead: Option<i32> = None, in OrNone(-64..=256), from "tc-cake(8)";
        /// Bytes of the link's smallest packet; none is as `link_layer` has it.
        mpu: Option<u32> = None, in OrNone(0..=256), from "tc-cake(8)";
        /// Whether the shaper stands behind the bottleneck, so that what it drops has used the link.
        ingress: bool = false, in .., from "tc-cake(8): egress";
        /// Which ACKs are dropped for the sake of newer ones.
        ack_filter: AckFilter = AckFilter::Off, in .., from "tc-cake(8): no-ack-filter";
        /// Whether ECN-capable packets are marked CE instead of dropped.
        ecn: bool = true, in .., from "Linux 6.1 sch_cake.c";
        /// The most bytes held; none is four times bandwidth and rtt, at least 4 MiB, at most 10240 packets.
        memory_limit: Option<Bytes> = None, in OrNone(Bytes(0)..=Bytes(1 << 40)), from "Linux 6.1 sch_cake.c";
        /// The buffer that all flows share, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "the link";
        /// Flows of each source host, as `1/20`: a scenario's flows in order; none is one each.
        srchosts: Option<Groups> = None, in .., from "the packets";
        /// Flows of each destination host, as `1/20`; none is one each.
        dsthosts: Option<Groups> = None, in .., from "the packets";
        /// Each flow's codepoint, as `ef/cs1/0`, in a scenario's order; none is the packets' own.
        dscps: Option<Codepoints> = None, in .., from "the packets";
    }
}

/// Linux 6.1 sch_cake.c, cake_init: the most packets.
const MOST_PACKETS: u64 = 10_240;
/// Linux 6.1 sch_cake.c, cake_reconfigure.
const LEAST_MEMORY: u64 = 4 << 20;

impl Config {
    fn costs(&self) -> Costs {
        let (framing, overhead, mpu) = self.link_layer.costs();
        Costs {
            framing: self.framing.unwrap_or(framing),
            overhead: self.overhead.unwrap_or(overhead),
            mpu: self.mpu.unwrap_or(mpu),
        }
    }

    fn most_memory(&self) -> Bytes {
        let most = MOST_PACKETS * tin::FULL_FRAME;
        let shaped = self.bandwidth.map_or(most, |rate| (4 * rate.bytes_in(self.rtt).0).max(LEAST_MEMORY));
        self.memory_limit.unwrap_or(Bytes(shaped.min(most)))
    }
}

/// A shaper with tins, each with queues in turn, each under COBALT.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    tins: Vec<Tin<P>>,
    diffserv: Diffserv,
    fairness: Fairness,
    identify: Identify,
    dscps: Option<Codepoints>,
    costs: Costs,
    pace: Option<Pace>,
    /// When the shaper lets the next packet out, and when it does so whatever was charged for drops.
    time_next: Time,
    failsafe: Time,
    /// The tin whose turn it is.
    current: usize,
    ingress: bool,
    ecn: bool,
    filter: AckFilter,
    limit: Limit,
    memory_limit: Bytes,
    backlog: Backlog,
    acks_dropped: u64,
    random: Random,
}

impl<P: Packet> Cake<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let target = config.target.unwrap_or(config.rtt / 20).max(Duration::from_nanos(1));
        // In bytes per second, as Linux has it: 0 for no shaper.
        let rate = config.bandwidth.map_or(0, |rate| (rate.bps() / 8).max(1));
        let mut random = place.random.clone();
        Cake {
            tins: config
                .diffserv
                .shares(rate)
                .into_iter()
                .map(|share| Tin::new(share, target, config.rtt))
                .collect(),
            diffserv: config.diffserv,
            fairness: config.isolation.fairness(),
            identify: Identify::new(
                config.isolation,
                config.srchosts.clone(),
                config.dsthosts.clone(),
                random.bits(),
            ),
            dscps: config.dscps.clone(),
            costs: config.costs(),
            pace: (rate > 0).then(|| Pace::of(rate)),
            time_next: Time::ZERO,
            failsafe: Time::ZERO,
            current: 0,
            ingress: config.ingress,
            ecn: config.ecn,
            filter: config.ack_filter,
            limit: config.limit.unwrap_or(place.limit),
            memory_limit: config.most_memory(),
            backlog: Backlog::default(),
            acks_dropped: 0,
            random,
        }
    }

    /// The tin of a packet.
    fn tin_of(&self, packet: &P) -> usize {
        let listed = self.dscps.as_ref().and_then(|list| list.of(packet.source_host()));
        self.diffserv.tin(listed.unwrap_or_else(|| packet.dscp()))
    }

    fn is_over_limit(&self) -> bool {
        let over = match self.limit {
            Limit::Packets(most) => self.backlog.packets > most,
            Limit::Bytes(most) => self.backlog.bytes > most,
        };
        over || self.backlog.bytes > self.memory_limit
    }

    /// Drops the head of the queue that holds most.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, drops: &mut Drops<P>) {
        let (mut fattest, mut most) = ((0, 0), Bytes::ZERO);
        for (index, tin) in self.tins.iter().enumerate() {
            if tin.bytes <= most {
                continue;
            }
            for (place, queue) in tin.queues.iter().enumerate() {
                if queue.packets.backlog().bytes > most {
                    (fattest, most) = ((index, place), queue.packets.backlog().bytes);
                }
            }
        }
        let (index, place) = fattest;
        let Some((packet, _)) = self.take(index, place) else { return };
        let tin = &mut self.tins[index];
        tin.queues[place].cobalt.overflowed(&tin.law, now);
        if self.ingress {
            self.charge(index, packet.size(), now, true);
        }
        drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
    }

    /// Takes the head of a queue.
    fn take(&mut self, index: usize, place: usize) -> Option<(P, Time)> {
        let tin = &mut self.tins[index];
        let head = tin.queues[place].packets.pop()?;
        tin.bytes.0 -= u64::from(head.0.size());
        self.backlog.remove(head.0.size());
        Some(head)
    }

    /// Charges the shaper and the tin for a packet, and returns its cost.
    fn charge(&mut self, index: usize, size: u32, now: Time, dropped: bool) -> i64 {
        // Linux 6.1 sch_cake.c, cake_advance_shaper
        let cost = self.costs.of(size);
        let tin = &mut self.tins[index];
        if let (Some(whole), Some(own)) = (self.pace, tin.pace) {
            let own = own.time_for(cost);
            if tin.time_next < now {
                tin.time_next += own;
            } else if tin.time_next < now + own {
                tin.time_next = now + own;
            }
            let whole = whole.time_for(cost);
            self.time_next += whole;
            if !dropped {
                self.failsafe += whole + whole / 2;
            }
        }
        i64::from(cost)
    }

    /// The shaper's clocks start over, if they are in the past and nothing waits.
    fn refresh(&mut self, index: usize, now: Time) {
        let tin = &mut self.tins[index];
        if tin.bytes == Bytes::ZERO {
            tin.time_next = tin.time_next.max(now);
            if self.backlog.is_empty() && self.time_next < now {
                self.time_next = now;
                self.failsafe = now;
            }
        }
    }

    /// Chooses the tin to serve. Returns `None` if none has anything.
    fn choose_tin(&mut self, now: Time) -> Option<usize> {
        if self.pace.is_none() {
            if !self.tins.iter().any(Tin::is_active) {
                return None;
            }
            loop {
                let tin = &mut self.tins[self.current];
                if tin.deficit >= 0 && tin.is_active() {
                    return Some(self.current);
                }
                if tin.deficit <= 0 {
                    tin.deficit += tin.weight;
                }
                self.current = (self.current + 1) % self.tins.len();
            }
        }
        // The last one within its rate; else the one that is due first.
        let active = || self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active());
        let within = active().rfind(|(_, tin)| tin.time_next <= now);
        within.or_else(|| active().rev().min_by_key(|(_, tin)| tin.time_next)).map(|(index, _)| index)
    }

    /// The queue of a tin that is served next.
    fn choose_queue(&mut self, index: usize, first: &mut bool) -> Option<(In, usize)> {
        let tin = &self.tins[index];
        let in_chain = |which: In| tin.chain(which).first().map(|place| (which, place));
        let decaying = in_chain(In::Decaying);
        let turn = core::mem::take(first);
        decaying.filter(|_| turn).or_else(|| in_chain(In::New)).or_else(|| in_chain(In::Old)).or(decaying)
    }
}

impl<P: Packet> Queue<P> for Cake<P> {
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        let index = self.tin_of(&packet);
        let hashes = self.identify.hashes(&packet);
        self.refresh(index, now);
        let tin = &mut self.tins[index];
        let place = tin.find(hashes);
        let size = packet.size();
        tin.queues[place].packets.push(now, packet);
        tin.bytes.0 += u64::from(size);
        self.backlog.add(size);
        if self.filter != AckFilter::Off
            && let Some(older) = acks::superfluous(&tin.queues[place].packets, self.filter)
            && let Some((packet, _)) = tin.queues[place].packets.take(older)
        {
            tin.bytes.0 -= u64::from(packet.size());
            self.backlog.remove(packet.size());
            self.acks_dropped += 1;
            if self.ingress {
                self.charge(index, packet.size(), now, true);
            }
            drops.push(Dropped { at: now, packet, reason: Reason::Early });
        }
        self.tins[index].wake(place, self.fairness);
        while self.is_over_limit() {
            self.drop_from_fattest(now, drops);
        }
    }

    fn dequeue(&mut self, now: Time, _link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        // Linux 6.1 sch_cake.c, cake_dequeue
        let mut first = true;
        'tins: loop {
            if self.backlog.is_empty() || self.held_until() > now {
                return None;
            }
            let index = self.choose_tin(now)?;
            loop {
                let Some((which, place)) = self.choose_queue(index, &mut first) else { continue 'tins };
                if self.tins[index].queues[place].deficit <= 0 {
                    self.tins[index].renew(which, place, self.fairness, &mut self.random);
                    continue;
                }
                loop {
                    let Some((mut packet, arrived)) = self.take(index, place) else {
                        let tin = &mut self.tins[index];
                        tin.queues[place].cobalt.found_empty(&tin.law, now);
                        tin.retire(which, place, now);
                        continue 'tins;
                    };
                    let tin = &mut self.tins[index];
                    let queue = &mut tin.queues[place];
                    let capable = self.ecn && may_mark_ce(&packet);
                    let ingress_flows = if self.ingress { tin.bulk } else { 0 };
                    let verdict =
                        queue.cobalt.decide(&tin.law, now, arrived, capable, ingress_flows, &mut self.random);
                    if verdict.mark {
                        packet.set_ecn(Ecn::Ce);
                    }
                    // The last packet may be marked, and is not dropped.
                    if !verdict.drop || queue.packets.is_empty() {
                        let cost = self.charge(index, packet.size(), now, false);
                        let tin = &mut self.tins[index];
                        tin.queues[place].deficit -= cost;
                        tin.deficit -= cost;
                        let mark = if verdict.mark { Mark::Ce } else { Mark::None };
                        return Some(Dequeued { packet, arrived, mark });
                    }
                    let size = packet.size();
                    drops.push(Dropped { at: now, packet, reason: Reason::Early });
                    if self.ingress {
                        let cost = self.charge(index, size, now, true);
                        let tin = &mut self.tins[index];
                        tin.queues[place].deficit -= cost;
                        tin.deficit -= cost;
                        break;
                    }
                }
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn held_until(&self) -> Time {
        match self.pace {
            Some(_) => self.time_next.min(self.failsafe),
            None => Time::ZERO,
        }
    }

    fn waiting_since(&self) -> Option<Time> {
        let mut oldest: Option<Time> = None;
        for tin in &self.tins {
            for which in [In::New, In::Old] {
                tin.for_each_in(which, &mut |queue| {
                    oldest = oldest.into_iter().chain(queue.packets.head_arrived()).min();
                });
            }
        }
        oldest
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let sum = |of: fn(&Tin<P>) -> u64| self.tins.iter().map(of).sum::<u64>() as f64;
        visit("sparse_flows", sum(|tin| u64::from(tin.sparse)));
        visit("bulk_flows", sum(|tin| u64::from(tin.bulk)));
        visit("decaying_flows", sum(|tin| u64::from(tin.decaying)));
        visit("queues_given", sum(|tin| tin.ways.misses));
        visit("hash_collisions", sum(|tin| tin.ways.collisions));
        visit("acks_dropped", self.acks_dropped as f64);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        for tin in &self.tins {
            for which in [In::New, In::Old] {
                tin.for_each_in(which, &mut |queue| queue.packets.for_each(visit));
            }
        }
    }
}

#[cfg(test)]
mod tests;
