//! ABC's router for L4S senders as they are: it knows its link's rate, as ABC's router does, and says what
//! follows from it by CE marks (rfc9331), to which TCP Prague and its kin respond. Of no paper; what was
//! measured, and what was tried and not kept, is in docs/abc-l4s.md.
//!
//! ```text
//! mu = what the link could have carried in the last H, over H
//! e += (|mu(t) - mu(t - H)| H - e) dt / A              mean error of mu as a forecast of the next H, bytes
//! Q* = d_t mu + c e + two packets                       what may wait
//! an ECT(1) packet that leaves and that stood in a queue is marked CE if more than Q* stays behind it
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | d_t | `target` | s | 1 ms | ours; rfc9332 A.1 has 800 us as its least threshold |
//! | c | `cushion` | 1 | 3 | ours |
//! | H | `horizon` | s | 40 ms | ours |
//! | A | `averaging` | s | 1 s | ours |
//! | - | `classic_target` | s | 5 ms | rfc8289 4.3 |
//!
//! # From ABC's equation to a mark
//!
//! ABC's router asks its senders for a window of `W* = W tr / cr` one round trip R later (abc20 eq.1 and
//! 2). What is outstanding is `W = mu R + q`, so with eta = 1 the target is reached where `q = d_t mu`. A
//! Prague sender gains a packet each round trip and loses the share p / 2 of its window, p being the share
//! of marks (prague 2.4.2, 2.4.3):
//!
//! ```text
//! w' = 1 / R - w p / (2 R)         so tr / cr = 1 + 1 / w - p / 2, and  p = 2 (1 - tr / cr) + 2 / w
//! ```
//!
//! Two facts make this share the wrong thing to send. Prague answers the mean of p over 16 round trips
//! (alpha), so on links that move p comes too late; and each round trip with any mark at all costs alpha /
//! 2. A relay, which marks all packets while W > W* and none otherwise, gives the same mean window with a
//! larger alpha: where a share s of the round trips is marked, alpha = s, and rest is at `s^2 / 2 = 1 / w`,
//! so alpha = sqrt(2 / w) in place of 2 / w. With 50 packets that is 0.20 in place of 0.04. The first cut
//! after a fall of the rate is then 10 % and not 2 %. Of the queue the relay costs one cut, sqrt(w / 2)
//! packets.
//!
//! # The cushion
//!
//! Prague falls within some round trips, and regains one packet in each. What a cut takes too much is
//! missing for `w alpha / 2` round trips, so a router that marks every short dip of its link leaves it
//! unused. e is what such dips amount to within H. With c e allowed to wait, a steady link has no queue,
//! and a noisy one as much as pays. A burst of the link, such as a Wi-Fi aggregate or a slot of TDD, is
//! within c e, too, and a packet that came after the link's last service did not stand in a queue: it is
//! never marked ([`bursts`](crate::bursts)).
//!
//! # Stability
//!
//! All flows see the same marks while q > Q*, and none otherwise. With N flows of windows w_i and round trips
//! R_i a marked round trip takes the share alpha_i / 2 of each. Larger windows lose more packets, and gain as
//! many: windows approach each other as under any AIMD (chiu89).
//!
//! A relay cannot diverge. With all packets marked alpha gains 1 / 16 in the first round trip, so each w_i
//! falls by at least 1 / 32 in the second, and faster after it, down to two packets. With none marked the
//! sum grows by the sum of 1 / R_i packets per second. So q exceeds Q* by what comes in before the cut is
//! felt: `sum_i (R_i + x) / R_i` packets on a steady link, x being the queueing delay. It falls below by one
//! cut.
//! Where `2 N` packets are more than `mu R + Q*` the senders are at their floor, and the queue holds the
//! rest.
//!
//! Unequal round trips share badly: all are cut together, so rates go by the inverse square of the round
//! trip, as under any relay. With 20 and 80 ms that was 17 to 1 (DualPI2: 12 to 1).
//!
//! # Classic traffic
//!
//! ECT(1) and CE go to the L queue (rfc9331 5.1), all else to the other one, which is under CoDel with ECN
//! (rfc8289). The link serves them by weights that [`abc_dual`](super::dual) finds for ABC's and other
//! flows, with its defaults: max-min fair over the heaviest flows. mu is the L queue's share of the link.
//!
//! # Deviations
//!
//! - D1. Nothing here follows one flow: memory is that of `abc_dual`'s two lists of heavy flows, and a ring
//!   of bins of a millisecond.
//! - D2. The L queue drops only what the buffer, shared by both, has no room for. rfc9332 4.2 asks for more
//!   against flows that answer no mark; here weights keep them from starving the other queue.

use alloc::boxed::Box;

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::packet::Packet;
use brakelight_core::queue::{Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::dual::weights::{Meter, Shares};
use super::dual::{DualSettings, Share};
use crate::bursts::{Bursts, Waiting};
use crate::codel::{self, CoDel};
use crate::fifo::Fifo;

parameters! {
    /// The settings of ABC's router for L4S senders.
    pub struct Config {
        /// Queueing delay that may stand on a link without variation (d_t).
        target: Duration = Duration::from_millis(1), in Duration::ZERO..=Duration::from_secs(10), from "ours";
        /// Mean errors of the forecast of mu that may wait (c).
        cushion: f64 = 3.0, in 0.0..=100.0, from "ours";
        /// Time over which mu is measured, and ahead of which it is a forecast (H).
        horizon: Duration = Duration::from_millis(40), in Duration::from_millis(2)..=Duration::from_millis(250), from "ours";
        /// Time over which errors of the forecast are averaged (A).
        averaging: Duration = Duration::from_secs(1), in Duration::from_millis(10)..=Duration::from_secs(100), from "ours";
        /// Sojourn time that the queue of other traffic may settle at, under CoDel.
        classic_target: Duration = Duration::from_millis(5), in Duration::from_micros(1)..=Duration::from_secs(10), from "rfc8289 4.3";
        /// Whether flows of other encodings may pass, too: to see what misread marks do.
        misread: bool = false, in .., from "ours";
        /// The buffer that both queues share, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "the link";
    }
}

/// Length of a bin.
const BIN: Duration = Duration::from_millis(1);
const BIN_S: f64 = 0.001;
/// Bins of capacity that are remembered: two of the longest horizon.
const HISTORY: usize = 512;
/// What always may wait: two packets of the largest size, as in Linux 6.17 `sch_dualpi2.c`.
const FLOOR: u32 = 1500;
const FLOOR_PACKETS: f64 = 2.0;

/// How much may wait.
#[derive(Clone, Debug)]
struct Law {
    target_s: f64,
    cushion: f64,
    horizon_bins: usize,
    averaging_bins: f64,
    /// The number of the bin that is open, from the start of time; none before the first event.
    bin: Option<u64>,
    /// Up to when the link's capacity has been counted.
    counted: Time,
    /// Bins since the first, as far as that matters for the mean.
    seen: f64,
    /// Bytes that the link could have carried up to the end of each of the last bins, by their number modulo
    /// [`HISTORY`].
    carried: Box<[f64; HISTORY]>,
    mu_bytes_per_s: f64,
    error_bytes: f64,
}

impl Law {
    fn new(config: &Config) -> Self {
        Law {
            target_s: config.target.as_secs_f64(),
            cushion: config.cushion,
            horizon_bins: (config.horizon.as_nanos() / BIN.as_nanos()) as usize,
            averaging_bins: config.averaging.as_secs_f64() / BIN_S,
            bin: None,
            counted: Time::ZERO,
            seen: 0.0,
            carried: Box::new([0.0; HISTORY]),
            mu_bytes_per_s: 0.0,
            error_bytes: 0.0,
        }
    }

    /// Returns Q*, in the link's bytes.
    fn may_wait(&self, link: &impl LinkView) -> f64 {
        let floor = FLOOR_PACKETS * link.cost(FLOOR).as_f64();
        self.target_s * self.mu_bytes_per_s + self.cushion * self.error_bytes + floor
    }

    /// Closes the bins that ended by `now`.
    #[inline]
    fn advance(&mut self, now: Time, link: &mut impl LinkView) {
        let bin = now.since(Time::ZERO).as_nanos() / BIN.as_nanos();
        if self.bin != Some(bin) {
            self.close(now, bin, link);
        }
    }

    fn close(&mut self, now: Time, bin: u64, link: &mut impl LinkView) {
        let Some(open) = self.bin.replace(bin) else {
            self.counted = now;
            let horizon = BIN * self.horizon_bins as u64;
            self.assume_steady(bin, link.capacity(horizon).as_bps_f64() / 8.0 * BIN_S);
            return;
        };
        let passed = now.since(self.counted);
        let bytes = link.capacity(passed).as_bps_f64() / 8.0 * passed.as_secs_f64();
        self.counted = now;
        let per_bin = bytes / (bin - open) as f64;
        if bin - open > HISTORY as u64 {
            // Longer than the memory: of the pause only the mean is known, and no forecast of it is left.
            self.assume_steady(bin, per_bin);
            return;
        }
        let before = self.carried[at(open.wrapping_sub(1))];
        for closed in open..bin {
            self.carried[at(closed)] = before + (closed - open + 1) as f64 * per_bin;
            self.judge(closed);
        }
        self.mu_bytes_per_s = self.carried(bin - 1) / (self.horizon_bins as f64 * BIN_S);
    }

    /// Fills the memory before `bin` as if the link had always carried `per_bin` bytes in each bin.
    fn assume_steady(&mut self, bin: u64, per_bin: f64) {
        for back in 0..HISTORY as u64 {
            self.carried[at(bin.wrapping_sub(1 + back))] = -(back as f64) * per_bin;
        }
        self.mu_bytes_per_s = per_bin / BIN_S;
    }

    /// Bytes that the link could have carried in one horizon up to the end of `last`.
    fn carried(&self, last: u64) -> f64 {
        self.carried[at(last)] - self.carried[at(last.wrapping_sub(self.horizon_bins as u64))]
    }

    /// Holds what the link could carry in one horizon against what it could in the one before.
    fn judge(&mut self, last: u64) {
        let off = self.carried(last) - self.carried(last.wrapping_sub(self.horizon_bins as u64));
        let off = if off < 0.0 { -off } else { off };
        // A mean of what was seen so far, and later an exponential one.
        self.seen = (self.seen + 1.0).min(self.averaging_bins);
        self.error_bytes += (off - self.error_bytes) / self.seen;
    }
}

/// The place of bin number `bin` in the ring, whose length is a power of two: numbers may wrap around.
fn at(bin: u64) -> usize {
    (bin % HISTORY as u64) as usize
}

/// The two queues, as indices.
const LOW: usize = 0;
const CLASSIC: usize = 1;

/// ABC's router for L4S senders, with a queue for other traffic.
#[derive(Clone, Debug)]
pub struct AbcL4s<P> {
    law: Law,
    limit: Limit,
    low: Fifo<P>,
    classic: CoDel<P>,
    /// What the packets of the L queue will take of the link.
    waiting: Bytes,
    /// Packets that were marked so far.
    marked: u64,
    /// Q* when a packet of the L queue left last.
    may_wait_bytes: f64,
    bursts: Bursts,
    settings: DualSettings,
    meters: [Meter; 2],
    shares: Shares,
    /// When the next packet of each queue starts, in bytes per weight after the packet in service.
    starts: [f64; 2],
    weights: [f64; 2],
    /// The L queue's part of the link's rate.
    share: f64,
    next_update: Time,
}

impl<P: Packet> AbcL4s<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let settings = DualSettings::default();
        // The limit is kept here, so the other queue has none.
        let classic = codel::Values {
            target: config.classic_target,
            ecn: true,
            limit: Some(Limit::Packets(u32::MAX)),
            ..codel::Values::default()
        };
        let classic = codel::Config::new(classic).expect("ecn goes with drop=head");
        AbcL4s {
            law: Law::new(config),
            limit: config.limit.unwrap_or(place.limit),
            low: Fifo::default(),
            classic: CoDel::new(&classic, place),
            waiting: Bytes::ZERO,
            marked: 0,
            may_wait_bytes: 0.0,
            bursts: Bursts::default(),
            meters: [Meter::new(&settings), Meter::new(&settings)],
            shares: Shares::new(&settings),
            starts: [0.0; 2],
            weights: [0.5; 2],
            share: 1.0,
            next_update: Time::ZERO + settings.period,
            settings,
        }
    }

    /// Computes the weights that were due by `now`, as `abc_dual` does.
    fn update(&mut self, now: Time, link: &mut impl LinkView) {
        let missed = now.since(self.next_update).periods(self.settings.period);
        self.next_update += self.settings.period * (missed + 1);
        if missed > 0 {
            self.meters.iter_mut().for_each(|meter| meter.age(missed));
        }
        let capacity_bps = link.capacity(self.settings.averaging).as_bps_f64();
        let weight = self.shares.abc_weight(&mut self.meters, None, capacity_bps);
        self.meters.iter_mut().for_each(|meter| meter.age(1));
        let Some(weight) = weight else { return };
        let least = self.settings.least;
        self.weights[LOW] = weight.clamp(least, 1.0 - least);
        self.weights[CLASSIC] = 1.0 - self.weights[LOW];
        self.share = weight.max(least);
    }

    /// The queue whose next packet starts first.
    fn next_queue(&self) -> usize {
        if self.low.is_empty() {
            CLASSIC
        } else if self.classic.backlog().packets == 0 || self.starts[LOW] <= self.starts[CLASSIC] {
            LOW
        } else {
            CLASSIC
        }
    }

    // goyal96, with v moved to zero after every packet
    fn served(&mut self, own: usize, cost: Bytes) {
        if self.backlog().packets == 0 {
            self.starts = [0.0; 2];
            return;
        }
        let its = 1 - own;
        self.starts[its] = (self.starts[its] - self.starts[own]).max(0.0);
        self.starts[own] = cost.as_f64() / self.weights[own];
    }

    fn dequeue_low(&mut self, now: Time, link: &mut impl LinkView) -> Option<Dequeued<P>> {
        let (mut packet, arrived) = self.low.pop()?;
        self.waiting -= link.cost(packet.size());
        self.bursts.serve(now);
        self.may_wait_bytes = self.law.may_wait(link);
        let stood = !self.bursts.delay(Waiting::Persistent, now, arrived).is_zero();
        let mark = if stood && self.waiting.as_f64() > self.may_wait_bytes {
            packet.set_ecn(Ecn::Ce);
            self.marked += 1;
            Mark::Ce
        } else {
            Mark::None
        };
        Some(Dequeued { packet, arrived, mark })
    }
}

impl<P: Packet> Queue<P> for AbcL4s<P> {
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        if now >= self.next_update {
            self.update(now, link);
        }
        self.law.advance(now, &mut Share { link, share: self.share });
        // rfc9331 5.1: CE may have been ECT(1) before
        let queue = if matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce) { LOW } else { CLASSIC };
        let cost = link.cost(packet.size());
        self.meters[queue].add(packet.flow(), cost);
        if !self.backlog().admits(self.limit, packet.size()) {
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
        } else if queue == LOW {
            self.waiting += cost;
            self.low.push(now, packet);
        } else {
            self.classic.enqueue(now, packet, link, drops);
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        if now >= self.next_update {
            self.update(now, link);
        }
        self.law.advance(now, &mut Share { link, share: self.share });
        // CoDel may drop all that the other queue holds.
        let mut queue = self.next_queue();
        let mut left = None;
        if queue == CLASSIC {
            self.bursts.serve(now);
            left = self.classic.dequeue(now, link, drops);
        }
        if left.is_none() {
            queue = LOW;
            left = self.dequeue_low(now, link);
        }
        let left = left?;
        self.served(queue, link.cost(left.packet.size()));
        Some(left)
    }

    fn backlog(&self) -> Backlog {
        self.low.backlog().with(self.classic.backlog())
    }

    fn waiting_since(&self) -> Option<Time> {
        self.low.head_arrived().into_iter().chain(self.classic.waiting_since()).min()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("capacity_bps", 8.0 * self.law.mu_bytes_per_s);
        visit("forecast_error_bytes", self.law.error_bytes);
        visit("may_wait_bytes", self.may_wait_bytes);
        visit("low_backlog_bytes", self.low.backlog().bytes.as_f64());
        visit("classic_backlog_bytes", self.classic.backlog().bytes.as_f64());
        visit("low_share", self.share);
        visit("marked_packets", self.marked as f64);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.low.for_each(visit);
        self.classic.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
