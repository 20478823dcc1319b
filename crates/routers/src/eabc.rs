//! The router of E-ABC, ABC with an explicit rate (Goyal et al., HotNets 2017 section 5, `abc17`).
//!
//! ABC tells senders by one bit a packet how far they are from the target rate. E-ABC writes the rate itself:
//!
//! ```text
//! tr = eta mu - (mu / delta) max(x - d_t, 0)          abc20 eq.1, abc17 eq.1  target rate of the link
//! on every packet that leaves: rate = min(rate, tr / n)                 n flows that sent in the last W (D1)
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | eta | `eta` | 1 | 0.98 | abc17 5 |
//! | delta | `delta` | s | 133 ms | abc17 5: 100 ms / 0.75 |
//! | d_t | `target` | s | 50 ms | abc17 5 |
//! | T | `window` | s | 20 ms | abc17 5 |
//! | W | `flows_window` | s | 500 ms | D1 |
//! | floor | `floor` | packets per W | 5 | D2 |
//! | mu | - | bit/s | measured | what the link could have carried in the last T, used or not |
//! | x | - | s | backlog / mu | as ABC's router |
//!
//! # Deviations
//!
//! - D1. abc17 runs one flow and does not say how several share the target rate; the authors' code
//!   (<https://github.com/prateshg/ABC-NSDI2020>, `rcp_packet_queue.cc`, mode 1) writes all of it into every
//!   packet, so that n flows together would send n times too much. In ABC the question does not arise, for
//!   each sender scales the rate it has. Here each flow that carries a rate and sent within W is given an
//!   equal part. A flow that wants less leaves the rest unused.
//! - D2. tr is 0 where the link is out or the queue long; only packets tell senders that it has risen. As in
//!   the authors' code it does not fall below 0.01 packets per millisecond, said as packets of a delivery
//!   opportunity per W.
//! - D3. Packets without a rate, those of other schemes among them, are neither counted in n nor taken off
//!   tr.

use alloc::collections::{BTreeMap, VecDeque};

use brakelight_core::ecn::Mark;
use brakelight_core::packet::{FlowId, Header, Packet};
use brakelight_core::queue::{Backlog, Dequeued, Drops, LinkView, Place, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::abc::target_rate_bps;
use super::fifo::Fifo;
use super::rcp::lower;

parameters! {
    /// The settings of E-ABC's router.
    pub struct Config {
        /// Share of the link's rate to aim at.
        eta: f64 = 0.98, in 0.1..=1.0, from "abc17 5";
        /// Time in which a queue above the target is drained.
        delta: Duration = Duration::from_millis(133), in Duration::from_micros(1)..=Duration::from_secs(100), from "abc17 5";
        /// Queueing delay below which nothing is drained (d_t).
        target: Duration = Duration::from_millis(50), in Duration::ZERO..=Duration::from_secs(100), from "abc17 5";
        /// Window over which the link's rate is measured (T).
        window: Duration = Duration::from_millis(20), in Duration::from_micros(1)..=Duration::from_secs(10), from "abc17 5";
        /// Time for which a flow counts after its last packet.
        flows_window: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(100), from "D1";
        /// The least rate of the link, in packets of one delivery opportunity in that time.
        floor: f64 = 5.0, in 0.01..=1000.0, from "D2";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "abc20 7.2: 250 packets";
    }
}

/// How many flows sent lately.
#[derive(Clone, Debug, Default)]
struct Flows {
    /// Runs of packets of one flow, by the time of their last.
    runs: VecDeque<(Time, FlowId)>,
    /// How many runs each flow has.
    counts: BTreeMap<FlowId, u32>,
}

impl Flows {
    fn sent(&mut self, now: Time, flow: FlowId) {
        match self.runs.back_mut() {
            Some((at, last)) if *last == flow => *at = now,
            _ => {
                self.runs.push_back((now, flow));
                *self.counts.entry(flow).or_insert(0) += 1;
            }
        }
    }

    /// Flows that sent in (now - window, now].
    fn count(&mut self, now: Time, window: Duration) -> usize {
        while let Some(&(at, flow)) = self.runs.front()
            && now.since(at) >= window
        {
            self.runs.pop_front();
            if let Some(count) = self.counts.get_mut(&flow) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&flow);
                }
            }
        }
        self.counts.len()
    }
}

/// E-ABC's router.
#[derive(Clone, Debug)]
pub struct EAbc<P> {
    config: Config,
    limit: Limit,
    target_s: f64,
    per_delta: f64,
    packets: Fifo<P>,
    /// What the packets held will take of the link.
    waiting: Bytes,
    flows: Flows,
    /// mu, tr and n at the last packet that left.
    last: (f64, f64, usize),
}

impl<P: Packet> EAbc<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        EAbc {
            limit: config.limit.unwrap_or(place.limit),
            target_s: config.target.as_secs_f64(),
            per_delta: 1.0 / config.delta.as_secs_f64(),
            packets: Fifo::default(),
            waiting: Bytes::ZERO,
            flows: Flows::default(),
            last: (0.0, 0.0, 0),
            config: config.clone(),
        }
    }
}

impl<P: Packet> Queue<P> for EAbc<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        if matches!(packet.header(), Header::Rate { .. }) {
            self.flows.sent(now, packet.flow());
        }
        let cost = link.cost(packet.size());
        if self.packets.push_within(self.limit, now, packet, drops) {
            self.waiting += cost;
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, _drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        let (mut packet, arrived) = self.packets.pop()?;
        let size = packet.size();
        let cost = link.cost(size);
        self.waiting -= cost;
        let mu_bps = link.capacity(self.config.window).as_bps_f64();
        let aim_bps = self.config.eta * mu_bps;
        let waiting_bits = self.waiting.bits() as f64;
        let floor_bps =
            self.config.floor * link.opportunity().bits() as f64 / self.config.flows_window.as_secs_f64();
        let tr_bps =
            target_rate_bps(aim_bps, mu_bps, waiting_bits, self.target_s, self.per_delta).max(floor_bps);
        let flows = self.flows.count(now, self.config.flows_window);
        self.last = (mu_bps, tr_bps, flows);
        let framing = f64::from(size) / cost.as_f64();
        lower(&mut packet, tr_bps / flows.max(1) as f64 * framing);
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("capacity_bps", self.last.0);
        visit("target_rate_bps", self.last.1);
        visit("flows", self.last.2 as f64);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
