//! FQ-CoDel (RFC 8290): a queue for every flow, as far as a hash can tell them apart, each under CoDel,
//! served in turn; flows that send little are served first.
//!
//! ```text
//! on arrival:    into the queue hash(flow, perturbation); a queue that is on no list joins the new ones with
//!                a deficit of one quantum                                                        rfc8290 4.1
//! buffer full:   drop half of the bytes of the queue that holds most, from its head, at most `drop_batch`
//!                packets
//! on departure:  the first of the new queues, else of the old ones                               rfc8290 4.2
//!   deficit <= 0:     deficit += quantum; it goes to the end of the old ones; again
//!   CoDel's packet:   deficit -= its size; it leaves
//!   nothing there:    a new queue goes to the end of the old ones, if there are any; else it is on no list;
//!                     again
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | target, interval | `target`, `interval` | s | 5 ms, 100 ms | rfc8290 5.2.1, 5.2.2 |
//! | quantum | `quantum` | bytes | 1500 | rfc8290 5.2.4: 1514 (D1) |
//! | flows | `flows` | queues | 1024 | rfc8290 5.2.5 |
//! | - | `ecn` | - | true | rfc8290 5.2.6; Linux 6.12 sch_fq_codel.c |
//! | ce_threshold | `ce_threshold` | s | none | rfc8290 5.2.7 |
//! | limit | `limit` | packets or bytes | the link's | rfc8290 5.2.3: 10240 packets |
//! | - | `memory_limit` | bytes | 32 MiB | Linux 6.12 `sch_fq_codel.c` (D2) |
//! | - | `drop_batch` | packets | 64 | rfc8290 4.1; Linux 6.12 sch_fq_codel.c |
//!
//! # Deviations
//!
//! - D1. The quantum is 1500, not 1514 bytes: packets are counted at the IP layer here, without Ethernet's 14
//!   bytes.
//! - D2. `memory_limit` counts bytes of packets. Linux 6.12 sch_fq_codel.c counts what the kernel allocates
//!   for them, which is two to three times as much.
//! - D3. Whether more than an MTU waits is asked of the flow's own queue, as RFC 8289 has it. Linux 6.12
//!   codel_impl.h, codel_should_drop, asks it of all queues together, so that CoDel there may drop the last
//!   packet of a flow while others have packets.
//! - D4. As in Linux 6.12 sch_fq_codel.c, fq_codel_drop, packets dropped for want of room count as drops of
//!   that queue's CoDel, which then goes on faster.
//! - D5. The hash is of this project's making: one per flow, mixed with a number drawn from the seed; RFC
//!   8290 asks for no particular one.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::packet::{FlowId, Packet};
use brakelight_core::parameters::OrNone;
use brakelight_core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::bursts::Waiting;
use super::codel::{DropAt, Law, State};
use super::fifo::Fifo;

parameters! {
    /// FQ-CoDel's settings.
    pub struct Config {
        /// Sojourn time that each flow's queue may settle at.
        target: Duration = Duration::from_millis(5), in Duration::from_nanos(1)..=Duration::from_secs(10), from "rfc8290 5.2.2";
        /// Time for which the sojourn time must exceed it: a worst-case round trip.
        interval: Duration = Duration::from_millis(100), in Duration::from_nanos(1)..=Duration::from_secs(100), from "rfc8290 5.2.1";
        /// Bytes that a flow may send in its turn.
        quantum: Bytes = Bytes(1500), in Bytes(256)..=Bytes(1 << 20), from "rfc8290 5.2.4";
        /// Queues that flows are spread over.
        flows: u32 = 1024, in 1..=65_536, from "rfc8290 5.2.5";
        /// Whether ECN-capable packets are marked CE instead of dropped.
        ecn: bool = true, in .., from "rfc8290 5.2.6; Linux 6.12 sch_fq_codel.c";
        /// Sojourn time from which every capable packet is marked, whatever CoDel decides; none: no such
        /// threshold.
        ce_threshold: Option<Duration> = None, in OrNone(Duration::ZERO..=Duration::from_secs(10)), from "rfc8290 5.2.7";
        /// The backlog of a flow that is never dropped from: one packet of the largest size.
        mtu: Bytes = Bytes(1500), in Bytes(0)..=Bytes(1 << 20), from "rfc8289 5.5: the largest packet";
        /// The most packets dropped at once when the buffer is full.
        drop_batch: u32 = 64, in 1..=65_536, from "rfc8290 4.1";
        /// The most bytes held, whatever the buffer allows.
        memory_limit: Bytes = Bytes(32 << 20), in Bytes(0)..=Bytes(1 << 40), from "Linux 6.12 sch_fq_codel.c";
        /// The buffer that all flows share, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "the link; rfc8290 5.2.3: 10240 packets";
    }
}

/// Queues in turn, each under CoDel.
#[derive(Clone, Debug)]
pub struct FqCoDel<P> {
    law: Law,
    ce_threshold: Option<Duration>,
    quantum: i64,
    drop_batch: u32,
    limit: Limit,
    memory_limit: Bytes,
    perturbation: u64,
    queues: Vec<FlowQueue<P>>,
    /// Those on a list, by their place in `queues`, in the order of their turns.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    backlog: Backlog,
}

/// One flow's packets, or those of several that the hash does not tell apart.
#[derive(Clone, Debug)]
struct FlowQueue<P> {
    packets: Fifo<P>,
    codel: State,
    deficit: i64,
    listed: bool,
}

impl<P: Packet> FqCoDel<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let queue =
            |_| FlowQueue { packets: Fifo::default(), codel: State::default(), deficit: 0, listed: false };
        FqCoDel {
            law: Law {
                target: config.target,
                interval: config.interval,
                mtu: config.mtu,
                ecn: config.ecn,
                drop: DropAt::Head,
                delay: Waiting::Sojourn,
            },
            ce_threshold: config.ce_threshold,
            quantum: config.quantum.0 as i64,
            drop_batch: config.drop_batch,
            limit: config.limit.unwrap_or(place.limit),
            memory_limit: config.memory_limit,
            perturbation: place.random.clone().bits(),
            queues: (0..config.flows).map(queue).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// The queue of a flow.
    fn place_of(&self, flow: FlowId) -> usize {
        // SplitMix64's finalizer, scaled to the number of queues.
        let mut hash = u64::from(flow.0) ^ self.perturbation;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        (((hash >> 32) * self.queues.len() as u64) >> 32) as usize
    }

    fn is_over_limit(&self) -> bool {
        let over = match self.limit {
            Limit::Packets(most) => self.backlog.packets > most,
            Limit::Bytes(most) => self.backlog.bytes > most,
        };
        over || self.backlog.bytes > self.memory_limit
    }

    /// Drops from the head of the queue that holds most, half of it or a batch.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, drops: &mut Drops<P>) {
        // rfc8290 4.1; the first of several that hold as much
        let mut fattest = 0;
        for (place, queue) in self.queues.iter().enumerate() {
            if queue.packets.backlog().bytes > self.queues[fattest].packets.backlog().bytes {
                fattest = place;
            }
        }
        let queue = &mut self.queues[fattest];
        let half = queue.packets.backlog().bytes.0 / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some((packet, _)) = queue.packets.pop() {
            self.backlog.remove(packet.size());
            packets += 1;
            bytes += u64::from(packet.size());
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
            if packets >= self.drop_batch || bytes >= half {
                break;
            }
        }
        queue.codel.overflowed(packets);
    }
}

impl<P: Packet> Queue<P> for FqCoDel<P> {
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        let place = self.place_of(packet.flow());
        let queue = &mut self.queues[place];
        self.backlog.add(packet.size());
        queue.packets.push(now, packet);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(place as u32);
        }
        while self.is_over_limit() {
            self.drop_from_fattest(now, drops);
        }
    }

    fn dequeue(&mut self, now: Time, _link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        // rfc8290 4.2
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let place = *list.front()?;
            let queue = &mut self.queues[place as usize];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            let before = queue.packets.backlog();
            let taken = queue.codel.dequeue(&self.law, now, &mut queue.packets, drops);
            let after = queue.packets.backlog();
            self.backlog.packets -= before.packets - after.packets;
            self.backlog.bytes -= before.bytes - after.bytes;
            let Some(mut left) = taken else {
                list.pop_front();
                // One turn among the old ones first: else a flow that comes back at once would starve them.
                if is_new && !self.old.is_empty() {
                    self.old.push_back(place);
                } else {
                    queue.listed = false;
                }
                continue;
            };
            queue.deficit -= i64::from(left.packet.size());
            // rfc8290 5.2.7
            if self.ce_threshold.is_some_and(|most| now.since(left.arrived) > most)
                && may_mark_ce(&left.packet)
            {
                left.packet.set_ecn(Ecn::Ce);
                left.mark = Mark::Ce;
            }
            return Some(left);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn waiting_since(&self) -> Option<Time> {
        self.queues.iter().filter_map(|queue| queue.packets.head_arrived()).min()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("new_queues", self.new.len() as f64);
        visit("old_queues", self.old.len() as f64);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        for queue in &self.queues {
            queue.packets.for_each(visit);
        }
    }
}

#[cfg(test)]
mod tests;
