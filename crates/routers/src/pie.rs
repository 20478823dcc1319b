//! PIE, Proportional Integral controller Enhanced (Pan et al., RFC 8033): drops arriving packets at random,
//! with a probability that a proportional-integral controller of the queueing delay moves every T_UPDATE.
//!
//! ```text
//! every T_UPDATE:                                                                    rfc8033 4.2
//!   p      = alpha (d - target) + beta (d - d_old)
//!   p      is divided by 2048, 512, 128, 32, 8, 2 while prob < 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1
//!   p      = min(p, 0.02) where prob >= 0.1                                          rfc8033 5.5
//!   prob  += p;  prob *= 0.98 where d = d_old = 0;  prob is kept in [0, 1];  d_old = d
//!   burst  = max(burst - T_UPDATE, 0)                                                rfc8033 4.4
//! on arrival:
//!   burst  = MAX_BURST where prob = 0 and d, d_old < target / 2                      rfc8033 4.4
//!   let in if burst > 0, or d_old < target / 2 and prob < 0.2, or backlog <= 2 MEAN_PKTSIZE    rfc8033 4.1
//!   else with probability prob: mark it if prob < mark_ecnth and it is capable, else drop it   rfc8033 5.1
//! d:  how long the last packet that left had waited, or backlog * avg_dq_time / DQ_THRESHOLD   rfc8033 5.2
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | QDELAY_REF | `target` | s | 15 ms | rfc8033 4.2 |
//! | T_UPDATE | `tupdate` | s | 15 ms | rfc8033 4.2 |
//! | alpha, beta | `alpha`, `beta` | 1/s | 0.125, 1.25 | rfc8033 4.2 |
//! | MAX_BURST | `max_burst` | s | 150 ms | rfc8033 4.4 |
//! | MEAN_PKTSIZE | `mean_packet` | bytes | 1500 | rfc8033 4.1 (D1) |
//! | MARK_ECNTH | `mark_ecnth` | 1 | 0.1 | rfc8033 5.1 |
//! | d | `delay` | s | `timestamp` | rfc8033 4.3, 5.2 |
//! | DQ_THRESHOLD | `dq_threshold` | bytes | 16384 | rfc8033 5.2 |
//! | 5.5, capped increase | `cap` | - | true | rfc8033 5.5 |
//! | 5.4, drops spread out | `derandomize` | - | false | rfc8033 5.4 |
//! | 5.3, on and off | `active_above` | share of the limit | none: always on | rfc8033 5.3 |
//!
//! # Deviations
//!
//! - D1. `mean_packet` is given, not learned.
//! - D2. T_UPDATE has no timer: the updates that were due are made when a packet comes or goes, each as of
//!   its own time. Nothing that they read changes in between, so this is exact.
//! - D3. A queue that a packet leaves empty has a delay of zero with `delay=timestamp`. RFC 8033 keeps the
//!   delay of the last packet for ever; Linux 6.12 sch_pie.c and ns-3 3.37 pie-queue-disc.cc do as here, and
//!   only so can prob decay while idle.
//! - D4. With `delay=rate` a measurement starts at a departure and counts the packets after it, so that bytes
//!   and time belong together.
//! - D5. Without the addition of Linux 6.12 sch_pie.c to prob of 2 % per update above 250 ms, which is not in
//!   RFC 8033.
//! - D6. `variant=mahimahi` is another controller, imitated in `pie/mahimahi.rs`, where M1 to M10 say how it
//!   differs.

use brakelight_core::packet::Packet;
use brakelight_core::parameters::{OrNone, ParameterError};
use brakelight_core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::fifo::MarkingFifo;

mod mahimahi;

use mahimahi::Mahimahi;

choices! {
    /// Which implementation of PIE the controller follows.
    pub enum Variant {
        /// RFC 8033.
        Rfc = "rfc",
        /// Mahimahi's.
        Mahimahi = "mahimahi",
    }
}

choices! {
    /// Where the queueing delay is read from.
    pub enum DelayOf {
        /// The time that the last packet to leave had waited.
        Timestamp = "timestamp",
        /// The bytes that wait, and a measured time per byte.
        Rate = "rate",
    }
}

parameters! {
    /// PIE's settings.
    pub struct Config {
        check consistent;
        /// Queueing delay to settle at.
        target: Duration = Duration::from_millis(15), in Duration::from_nanos(1)..=Duration::from_secs(10), from "rfc8033 4.2";
        /// Time between updates of the probability; none: the variant's.
        tupdate: Option<Duration> = None, in OrNone(Duration::from_millis(1)..=Duration::from_secs(10)), from "rfc8033 4.2: 15ms; Mahimahi: 30ms";
        /// Gain on the distance to the target, per second of it; Mahimahi: per millisecond.
        alpha: f64 = 0.125, in 0.0..=100.0, from "rfc8033 4.2";
        /// Gain on the change of the delay, per second of it; Mahimahi: per millisecond.
        beta: f64 = 1.25, in 0.0..=100.0, from "rfc8033 4.2";
        /// How long a burst passes untouched.
        max_burst: Duration = Duration::from_millis(150), in Duration::ZERO..=Duration::from_secs(100), from "rfc8033 4.4";
        /// Whether ECN-capable packets are marked CE instead of dropped.
        ecn: bool = false, in .., from "rfc8033 5.1";
        /// The probability from which they are dropped nevertheless.
        mark_ecnth: f64 = 0.1, in 0.0..=1.0, from "rfc8033 5.1";
        /// Where the delay is read from; none: the variant's.
        delay: Option<DelayOf> = None, in .., from "rfc8033 4.3: timestamp; Mahimahi: rate";
        /// Bytes over which a rate is measured.
        dq_threshold: Bytes = Bytes(16384), in Bytes(1)..=Bytes(1 << 30), from "rfc8033 5.2";
        /// Size of a packet, two of which are never dropped from.
        mean_packet: Bytes = Bytes(1500), in Bytes(0)..=Bytes(1 << 20), from "rfc8033 4.1";
        /// Whether the probability rises by no more than 2 % per update from 10 % on.
        cap: bool = true, in .., from "rfc8033 5.5";
        /// Whether drops are kept from coming too close or too far apart.
        derandomize: bool = false, in .., from "rfc8033 5.4";
        /// Share of the buffer that must fill before the controller goes on; none: it is always on.
        active_above: Option<f64> = None, in OrNone(0.0..=1.0), from "rfc8033 5.3: a third";
        /// Which implementation of PIE the controller follows.
        variant: Variant = Variant::Rfc, in .., from "rfc8033";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "the link";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    let refuse = |what: &str| {
        let reason = alloc::format!("{what} needs variant=rfc: Mahimahi's PIE has nothing of the kind");
        Err(ParameterError::Conflict { reason })
    };
    if config.variant == Variant::Rfc {
        return Ok(());
    }
    if config.target < Duration::from_millis(1) {
        let reason = "target must be 1ms or more with variant=mahimahi, which counts whole milliseconds";
        return Err(ParameterError::Conflict { reason: reason.into() });
    }
    match &**config {
        Values { ecn: true, .. } => refuse("ecn"),
        Values { derandomize: true, .. } => refuse("derandomize"),
        Values { active_above: Some(_), .. } => refuse("active_above"),
        Values { delay: Some(DelayOf::Timestamp), .. } => refuse("delay=timestamp"),
        _ => Ok(()),
    }
}

/// A FIFO under PIE.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    limit: Limit,
    /// The probability below which capable packets are marked.
    mark_below: Option<f64>,
    packets: MarkingFifo<P>,
    random: Random,
    control: Control,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
enum Control {
    Rfc(Rfc),
    Mahimahi(Mahimahi),
}

impl<P: Packet> Pie<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let limit = config.limit.unwrap_or(place.limit);
        Pie {
            limit,
            mark_below: config.ecn.then_some(config.mark_ecnth),
            packets: MarkingFifo::default(),
            random: place.random.clone(),
            control: match config.variant {
                Variant::Rfc => Control::Rfc(Rfc::new(config, limit)),
                Variant::Mahimahi => Control::Mahimahi(Mahimahi::new(config)),
            },
        }
    }
}

impl<P: Packet> Queue<P> for Pie<P> {
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        let backlog = self.packets.backlog();
        let fits = backlog.admits(self.limit, packet.size());
        let (chosen, prob) = match &mut self.control {
            Control::Rfc(rfc) => {
                rfc.advance(now, backlog);
                (fits && rfc.chooses(backlog, &mut self.random), rfc.prob)
            }
            Control::Mahimahi(mahimahi) => {
                mahimahi.advance(now);
                let chosen = fits && mahimahi.chooses(&mut self.random);
                if fits && !chosen {
                    mahimahi.enters(link.cost(packet.size()));
                }
                (chosen, mahimahi.prob)
            }
        };
        if fits && !chosen {
            self.packets.push(now, packet);
        } else if fits && self.mark_below.is_some_and(|most| prob < most) && may_mark_ce(&packet) {
            // rfc8033 5.1
            self.packets.push_marked(now, packet);
        } else {
            if let Control::Rfc(rfc) = &mut self.control {
                rfc.accumulated = 0.0;
            }
            let reason = if fits { Reason::Early } else { Reason::Overflow };
            drops.push(Dropped { at: now, packet, reason });
        }
        if let Control::Rfc(rfc) = &mut self.control {
            rfc.switch(self.packets.backlog());
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, _drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        if let Control::Rfc(rfc) = &mut self.control {
            rfc.advance(now, self.packets.backlog());
        }
        let left = self.packets.pop()?;
        let size = left.packet.size();
        match &mut self.control {
            Control::Rfc(rfc) => rfc.leaves(now, size, now.since(left.arrived), self.packets.backlog()),
            Control::Mahimahi(mahimahi) => mahimahi.leaves(now, link.cost(size)),
        }
        Some(left)
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let (prob, delay_ms, burst_ms) = match &self.control {
            Control::Rfc(rfc) => (rfc.prob, rfc.delay_s * 1e3, rfc.burst.as_millis_f64()),
            Control::Mahimahi(mahimahi) => mahimahi.shown(),
        };
        visit("drop_probability", prob);
        visit("qdelay_ms", delay_ms);
        visit("burst_allowance_ms", burst_ms);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

/// RFC 8033's controller.
#[derive(Clone, Debug)]
struct Rfc {
    config: Config,
    limit: Limit,
    target_s: f64,
    tupdate: Duration,
    next_update: Time,
    prob: f64,
    /// d and d_old.
    delay_s: f64,
    delay_old_s: f64,
    burst: Duration,
    /// The sum of the probabilities since the last drop.
    accumulated: f64,
    active: bool,
    meter: Option<Meter>,
}

impl Rfc {
    fn new(config: &Config, limit: Limit) -> Self {
        let tupdate = config.tupdate.unwrap_or(Duration::from_millis(15));
        let rate = config.delay == Some(DelayOf::Rate);
        Rfc {
            limit,
            target_s: config.target.as_secs_f64(),
            tupdate,
            next_update: Time::ZERO + tupdate,
            prob: 0.0,
            delay_s: 0.0,
            delay_old_s: 0.0,
            burst: config.max_burst,
            accumulated: 0.0,
            active: config.active_above.is_none(),
            meter: rate.then(|| Meter::new(config.dq_threshold)),
            config: config.clone(),
        }
    }

    /// Makes the updates that are due by `now`; `backlog` is what waited since the last call.
    #[inline]
    fn advance(&mut self, now: Time, backlog: Backlog) {
        if self.next_update <= now {
            self.catch_up(now, backlog);
        }
    }

    fn catch_up(&mut self, now: Time, backlog: Backlog) {
        while self.next_update <= now {
            let before = (self.prob, self.delay_old_s, self.burst);
            self.update(backlog);
            self.next_update += self.tupdate;
            // Idle for long: nothing will change until a packet comes.
            if before == (self.prob, self.delay_old_s, self.burst) && self.next_update <= now {
                let behind = now.since(self.next_update).periods(self.tupdate);
                self.next_update += self.tupdate * (behind + 1);
            }
        }
    }

    fn update(&mut self, backlog: Backlog) {
        if !self.active {
            return;
        }
        if let Some(meter) = &self.meter {
            self.delay_s = meter.delay_s(backlog.bytes);
        }
        // rfc8033 4.2
        let mut p = self.config.alpha * (self.delay_s - self.target_s)
            + self.config.beta * (self.delay_s - self.delay_old_s);
        p /= divisor(self.prob);
        // rfc8033 5.5
        if self.config.cap && self.prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        let mut prob = self.prob + p;
        // rfc8033 4.2
        if self.delay_s == 0.0 && self.delay_old_s == 0.0 {
            prob *= 0.98;
        }
        self.prob = prob.clamp(0.0, 1.0);
        self.delay_old_s = self.delay_s;
        // rfc8033 4.4
        self.burst = self.burst.saturating_sub(self.tupdate);
    }

    /// No congestion at all, as far as two delays tell.
    fn is_calm(&self) -> bool {
        let half = self.target_s / 2.0;
        self.prob == 0.0 && self.delay_s < half && self.delay_old_s < half
    }

    /// Whether a packet that finds `backlog` is to be dropped or marked.
    fn chooses(&mut self, backlog: Backlog, random: &mut Random) -> bool {
        if !self.active {
            return false;
        }
        // rfc8033 4.4
        if self.is_calm() {
            self.burst = self.config.max_burst;
        }
        if !self.burst.is_zero() {
            return false;
        }
        // rfc8033 4.1
        if self.delay_old_s < self.target_s / 2.0 && self.prob < 0.2 {
            return false;
        }
        if backlog.bytes.0 <= 2 * self.config.mean_packet.0 {
            return false;
        }
        if self.config.derandomize {
            // rfc8033 5.4
            if self.prob == 0.0 {
                self.accumulated = 0.0;
            }
            self.accumulated += self.prob;
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                self.accumulated = 0.0;
                return true;
            }
        }
        let chosen = random.chance(self.prob);
        if chosen {
            self.accumulated = 0.0;
        }
        chosen
    }

    /// A packet of `size` bytes that waited for `sojourn` leaves `backlog` behind.
    fn leaves(&mut self, now: Time, size: u32, sojourn: Duration, backlog: Backlog) {
        match &mut self.meter {
            Some(meter) => meter.departure(now, size, backlog.bytes),
            None if backlog.is_empty() => self.delay_s = 0.0,
            None => self.delay_s = sojourn.as_secs_f64(),
        }
    }

    /// Goes on when a share of the buffer is full, off when all is calm.
    fn switch(&mut self, backlog: Backlog) {
        let Some(share) = self.config.active_above else { return };
        // rfc8033 5.3
        let full = match self.limit {
            Limit::Packets(most) => f64::from(backlog.packets) >= share * f64::from(most),
            Limit::Bytes(most) => backlog.bytes.as_f64() >= share * most.as_f64(),
        };
        if !self.active && full {
            self.active = true;
            (self.prob, self.delay_old_s, self.accumulated) = (0.0, 0.0, 0.0);
            self.burst = self.config.max_burst;
            self.meter = self.meter.as_ref().map(|meter| Meter::new(meter.threshold));
        } else if self.active && !full && self.is_calm() {
            self.active = false;
        }
    }
}

/// What p is divided by at the probability `prob`.
fn divisor(prob: f64) -> f64 {
    // rfc8033 4.2
    const STEPS: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    STEPS.iter().find(|(below, _)| prob < *below).map_or(1.0, |(_, divisor)| *divisor)
}

/// The time that `threshold` bytes take to leave, averaged.
#[derive(Clone, Debug)]
struct Meter {
    threshold: Bytes,
    /// Since when bytes are counted, and how many.
    counting: Option<(Time, u64)>,
    average_s: f64,
}

impl Meter {
    fn new(threshold: Bytes) -> Self {
        Meter { threshold, counting: None, average_s: 0.0 }
    }

    /// A packet leaves `waiting` behind.
    fn departure(&mut self, now: Time, size: u32, waiting: Bytes) {
        // rfc8033 5.2
        if let Some((since, count)) = &mut self.counting {
            *count += u64::from(size);
            if *count >= self.threshold.0 {
                // As many bytes as counted took this long; the threshold is a part of them.
                let share = self.threshold.as_f64() / *count as f64;
                let took_s = now.since(*since).as_secs_f64() * share;
                let weight = (self.threshold.as_f64() / 65536.0).min(1.0);
                self.average_s = if self.average_s == 0.0 {
                    took_s
                } else {
                    took_s * weight + self.average_s * (1.0 - weight)
                };
                self.counting = None;
            }
        }
        if self.counting.is_none() && waiting >= self.threshold {
            self.counting = Some((now, 0));
        }
    }

    fn delay_s(&self, waiting: Bytes) -> f64 {
        waiting.as_f64() * self.average_s / self.threshold.as_f64()
    }
}

#[cfg(test)]
mod tests;
