//! RCP's router (Dukkipati and McKeown, CCR 2006, `dukkipati06`; the authors' ns-2 code, `rcp.cc`).
//!
//! A router offers every flow the same rate R, and lowers to it what packets carry. It needs neither per-flow
//! state nor arithmetic per packet: R moves once per period so that spare capacity is used up and the queue
//! drained within an RTT.
//!
//! ```text
//! every T = min(period, d0):
//!   R = R (1 + (T / d0) (alpha (g C - y) - beta q / d0) / (g C))       dukkipati06; rcp.cc, rate_fact_mode 0
//!   floor / d0 <= R <= g C                                             rcp.cc
//!   d0 = (1 - k) d0 + k (mean RTT of the period, by bytes)             rcp.cc
//!     k = T / d0 where that RTT is above d0, else (R / C) (RTT / d0) (T / d0)
//! on every packet that leaves: rate = min(rate, R)
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | alpha | `alpha` | 1 | 0.5 | abc20 F |
//! | beta | `beta` | 1 | 0.25 | abc20 F |
//! | g | `utilization` | 1 | 0.95 | rcp.cc; ABC-NSDI2020 `rcp_packet_queue.cc` |
//! | period | `period` | s | 100 ms | ABC-NSDI2020 `rcp_packet_queue.cc` (D1) |
//! | floor | `floor` | packets of an RTT | 1 | D2 |
//! | R(0) | `start` | of g C | 0.05 | rcp.cc |
//! | d0 | `rtt_s` | s | 200 ms at first | rcp.cc |
//! | C | `counted` | bytes/s | measured | what the link could have carried in the period (D3, D6) |
//! | y | - | bytes/s | measured | what arrived in the period |
//! | q | - | bytes | measured | what waits when the period ends |
//!
//! # Deviations
//!
//! - D1. ns-2's period is 10 ms; the ABC authors updated every 100 ms, which on their paths of 100 ms is once
//!   an RTT. The page compares both.
//! - D2. `rcp.cc` has a floor of 0.01 packets of 1000 bytes per RTT, and the ABC authors' code one of 0.05
//!   packets per millisecond. Only packets tell senders of R, so a link that has been out must leave them one
//!   per RTT to come back.
//! - D3. RCP knows its link's capacity; here C is what passed of the delivery opportunities in T. All rates
//!   are in the link's bytes, framing included. Where none passed, R goes to the floor.
//! - D4. Timers are looked at when a packet arrives or leaves, and act as at the time they were due: nothing
//!   happens between.
//! - D5. The ABC authors' code bounds R from below only (`ceiling=false,floor=5`: 0.05 packets per ms), and
//!   its d0 is 100 ms plus the mean queueing delay of what just left (`propagation=100ms`). d0 of `rcp.cc`
//!   comes down by R / C of the difference only, so a link that has slowed down keeps R low for as long as R
//!   is low; the page has what that costs.
//! - D6. The ABC authors' code counts calls of its dequeue as capacity, and Mahimahi calls it once more where
//!   a packet of 1500 bytes leaves four of an opportunity and nothing waits: C is too high by what leaves the
//!   queue empty (`counted=dequeues`).

use brakelight_core::ecn::Mark;
use brakelight_core::packet::{Header, Packet};
use brakelight_core::queue::{Backlog, Dequeued, Drops, LinkView, Place, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::fifo::Fifo;
use super::xcp::{capacity_before, skip};

choices! {
    /// What counts as the capacity of a period.
    pub enum Counted {
        /// What the link could have carried.
        Link = "link",
        /// That, and one delivery opportunity more for each packet that leaves the queue empty.
        Dequeues = "dequeues",
    }
}

parameters! {
    /// The settings of RCP's router.
    pub struct Config {
        /// Share of the spare rate given out per RTT.
        alpha: f64 = 0.5, in 0.001..=2.0, from "abc20 F";
        /// Share of the queue drained per RTT.
        beta: f64 = 0.25, in 0.0..=2.0, from "abc20 F";
        /// Share of the capacity to aim at (g).
        utilization: f64 = 0.95, in 0.1..=1.0, from "rcp.cc";
        /// The longest time between two updates of the rate; the mean RTT where that is shorter.
        period: Duration = Duration::from_millis(100), in Duration::from_micros(100)..=Duration::from_secs(10), from "ABC-NSDI2020";
        /// The least rate, in packets of one delivery opportunity per RTT.
        floor: f64 = 1.0, in 0.01..=1000.0, from "D2";
        /// Whether the rate stays below g C.
        ceiling: bool = true, in .., from "rcp.cc";
        /// What counts as the capacity; `dequeues` is what the ABC authors' code counts (D6).
        counted: Counted = Counted::Link, in .., from "D6";
        /// d0 less the mean queueing delay of the period; none takes d0 from the headers.
        propagation: Option<Duration> = None,
            in brakelight_core::parameters::OrNone(Duration::from_millis(1)..=Duration::from_secs(10)), from "ABC-NSDI2020: 100 ms";
        /// The first rate, as a share of g C.
        start: f64 = 0.05, in 0.001..=1.0, from "rcp.cc";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "abc20 7.2: 250 packets";
    }
}

/// d0 before a header was seen (rcp.cc).
const INITIAL_S: f64 = 0.2;
/// Bounds of an RTT that counts: below the first nothing can be controlled, above the second nobody sends.
const RTT_S: core::ops::RangeInclusive<f64> = 0.0001..=10.0;

/// RCP's router.
#[derive(Clone, Debug)]
pub struct Rcp<P> {
    config: Config,
    limit: Limit,
    packets: Fifo<P>,
    /// What the packets held will take of the link.
    waiting: Bytes,
    /// R, bytes/s.
    rate: f64,
    /// d0.
    rtt_s: f64,
    /// T of the period under way, and when it ends.
    period: Duration,
    due: Time,
    /// What arrived in it; the part with a known RTT, and that weighted by the RTT.
    arrived: u64,
    timed_bytes: f64,
    rtt_bytes: f64,
    /// What left in it, how long that had waited in all, and what of it left the queue empty.
    left: u32,
    waited_s: f64,
    emptied: u32,
    /// C and y of the last period, bytes/s.
    capacity: f64,
    arriving: f64,
}

impl<P: Packet> Rcp<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let capacity = place.nominal.as_bps_f64() / 8.0;
        let period = config.period.min(Duration::from_secs_f64(INITIAL_S));
        Rcp {
            limit: config.limit.unwrap_or(place.limit),
            packets: Fifo::default(),
            waiting: Bytes::ZERO,
            rate: config.start * config.utilization * capacity,
            rtt_s: INITIAL_S,
            period,
            due: Time::ZERO + period,
            arrived: 0,
            timed_bytes: 0.0,
            rtt_bytes: 0.0,
            left: 0,
            waited_s: 0.0,
            emptied: 0,
            capacity,
            arriving: 0.0,
            config: config.clone(),
        }
    }

    /// Lets the updates happen that were due by `now`.
    #[inline]
    fn catch_up(&mut self, now: Time, link: &mut impl LinkView) {
        while self.due <= now {
            let before = self.rate;
            let quiet = self.arrived == 0;
            self.update(now, link);
            self.due += self.period;
            if quiet && self.rate.to_bits() == before.to_bits() && self.due < now {
                self.due = skip(self.due, self.period, now);
            }
        }
    }

    /// The end of a period, at `self.due`.
    #[cold]
    fn update(&mut self, now: Time, link: &mut impl LinkView) {
        let t_s = self.period.as_secs_f64();
        self.capacity = capacity_before(link, now.since(self.due), self.period);
        if self.config.counted == Counted::Dequeues {
            self.capacity += f64::from(self.emptied) * link.opportunity().as_f64() / t_s;
        }
        self.arriving = self.arrived as f64 / t_s;
        if let Some(propagation) = self.config.propagation {
            self.rtt_s = propagation.as_secs_f64() + self.waited_s / f64::from(self.left.max(1));
        } else if self.timed_bytes > 0.0 {
            let mean_s = self.rtt_bytes / self.timed_bytes;
            let gain = if mean_s >= self.rtt_s || self.capacity <= 0.0 {
                1.0
            } else {
                (self.rate / self.capacity).min(1.0) * mean_s / self.rtt_s
            };
            self.rtt_s += (mean_s - self.rtt_s) * (gain * t_s / self.rtt_s).min(1.0);
        }
        let aim = self.config.utilization * self.capacity;
        let floor = self.config.floor * link.opportunity().as_f64() / self.rtt_s;
        self.rate = if aim > 0.0 {
            // dukkipati06
            let change = self.config.alpha * (aim - self.arriving)
                - self.config.beta * self.waiting.as_f64() / self.rtt_s;
            let moved = self.rate * (1.0 + t_s / self.rtt_s * change / aim);
            let most = if self.config.ceiling { aim } else { f64::from(f32::MAX) };
            moved.min(most).max(floor)
        } else {
            floor
        };
        (self.arrived, self.timed_bytes, self.rtt_bytes) = (0, 0.0, 0.0);
        (self.left, self.waited_s, self.emptied) = (0, 0.0, 0);
        self.period = self.config.period.min(Duration::from_secs_f64(self.rtt_s));
    }
}

/// Lowers the rate that `packet` carries to `rate_bps`.
#[inline]
pub(super) fn lower(packet: &mut impl Packet, rate_bps: f64) {
    if let Header::Rate { bps, rtt_s } = packet.header() {
        let offered = rate_bps as f32;
        // Not-a-number counts as no offer so far.
        if !matches!(bps.partial_cmp(&offered), Some(core::cmp::Ordering::Less)) {
            packet.set_header(Header::Rate { bps: offered, rtt_s });
        }
    }
}

impl<P: Packet> Queue<P> for Rcp<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.catch_up(now, link);
        let cost = link.cost(packet.size());
        // rcp.cc: on arrival, whether or not there is room.
        self.arrived += cost.0;
        if let Header::Rate { rtt_s, .. } = packet.header()
            && rtt_s > 0.0
            && rtt_s.is_finite()
        {
            self.timed_bytes += cost.as_f64();
            self.rtt_bytes += f64::from(rtt_s).clamp(*RTT_S.start(), *RTT_S.end()) * cost.as_f64();
        }
        if self.packets.push_within(self.limit, now, packet, drops) {
            self.waiting += cost;
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, _drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        self.catch_up(now, link);
        let (mut packet, arrived) = self.packets.pop()?;
        let size = packet.size();
        let cost = link.cost(size);
        self.waiting -= cost;
        self.left += 1;
        self.waited_s += now.since(arrived).as_secs_f64();
        self.emptied += u32::from(self.packets.backlog().is_empty());
        lower(&mut packet, self.rate * 8.0 * f64::from(size) / cost.as_f64());
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate * 8.0);
        visit("mean_rtt_s", self.rtt_s);
        visit("capacity_bps", self.capacity * 8.0);
        visit("arriving_bps", self.arriving * 8.0);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
