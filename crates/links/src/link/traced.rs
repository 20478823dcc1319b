//! Service by a trace of delivery opportunities, as Mahimahi's `mm-link` does it.
//!
//! ```text
//! each opportunity carries O bytes at one instant; a packet of s bytes costs s + H of them
//! a packet that costs more than is left of an opportunity takes all of it and goes on in the next
//! it leaves in the opportunity that carries its last byte; what is left serves the next packet in the queue
//! where the queue is empty the rest of the opportunity is lost
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | O | `opportunity` | bytes | 1504 | Mahimahi `link_queue.cc`, `PACKET_SIZE` |
//! | H | `overhead` | bytes | 4 | the TUN header that Mahimahi counts into every packet |
//! | - | `offset` | time | 0 s | starts the trace in its middle |
//! | - | `spread` | yes or no | no | see [`Trace::spread`] |
//!
//! An opportunity is used before a packet that arrives at the same instant is let in, as there.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::fixed::BIT_NANOS;
use super::{Service, rate_in_window};
use crate::trace::{Count, Cursor, Trace};

parameters! {
    /// The settings of a link served by a trace.
    pub struct Config {
        /// What one delivery opportunity carries.
        opportunity: Bytes = Bytes(1504), in Bytes(1)..=Bytes(1 << 20), from "Mahimahi PACKET_SIZE";
        /// What every packet costs beyond its size at the IP layer.
        overhead: Bytes = Bytes(4), in Bytes(0)..=Bytes(1 << 16), from "Mahimahi: the TUN header";
        /// Where in the trace the run begins.
        offset: Duration = Duration::ZERO, in .., from "Mahimahi: 0";
        /// Whether the opportunities of a millisecond come one after another in it, not all at its end.
        spread: bool = false, in .., from "Mahimahi: at once";
    }
}

/// A service that follows a trace, with its position in the trace.
#[derive(Clone, Debug)]
pub struct Traced {
    trace: Trace,
    opportunity: u32,
    overhead: u32,
    /// Trace time at the start of the run, nanoseconds.
    offset: u64,
    /// Opportunities of the trace before the start of the run.
    skipped: u64,
    nominal: Rate,
    /// The slot of the next unused opportunity, when that is, and how many the slot has left.
    next: Cursor,
    next_at: Time,
    left_in_slot: u32,
    /// The opportunity in use, and its bytes not yet used.
    current_at: Time,
    left: u32,
    /// Bytes lost since the last packet was taken.
    unused: u64,
    /// The two ends of the capacity window, and of the one ahead.
    window_end: Count,
    window_start: Count,
    ahead_end: Count,
    ahead_start: Count,
    /// The last capacity that was asked for: the window, its opportunities, the rate. They change less often
    /// than packets leave.
    seen: (Duration, u64, Rate),
}

impl Traced {
    /// Returns the service of a trace from its `offset` on.
    pub fn new(config: &Config, trace: Trace) -> Self {
        let trace = if config.spread { trace.spread() } else { trace };
        let offset = config.offset.as_nanos() % trace.period().as_nanos();
        // The first opportunity at or after the offset.
        let next = offset.checked_sub(1).map_or_else(Cursor::default, |nanos| trace.locate(nanos));
        Traced {
            opportunity: config.opportunity.0 as u32,
            overhead: config.overhead.0 as u32,
            offset,
            skipped: trace.position(next),
            nominal: trace.mean_rate(config.opportunity),
            next,
            next_at: Time::from_nanos(trace.instant(next) - offset),
            left_in_slot: trace.width(next),
            current_at: Time::ZERO,
            left: 0,
            unused: 0,
            window_end: Count::near(next),
            window_start: Count::near(next),
            ahead_end: Count::near(next),
            ahead_start: Count::near(next),
            seen: (Duration::ZERO, 0, Rate::ZERO),
            trace,
        }
    }

    /// Returns the trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the opportunities, as times of the run, in `from <= t < to`: what a Mahimahi log lists.
    pub fn opportunities_between(&self, from: Time, to: Time) -> u64 {
        self.trace.count_between(self.in_trace(from), self.in_trace(to))
    }

    fn in_trace(&self, t: Time) -> Time {
        t.saturating_add(Duration::from_nanos(self.offset))
    }

    /// Opens the next opportunity.
    fn take(&mut self) {
        self.current_at = self.next_at;
        self.left = self.opportunity;
        self.left_in_slot -= 1;
        if self.left_in_slot == 0 {
            self.trace.step(&mut self.next);
            self.enter_slot();
        }
    }

    fn enter_slot(&mut self) {
        self.left_in_slot = self.trace.width(self.next);
        self.next_at = Time::from_nanos(self.trace.instant(self.next) - self.offset);
    }

    /// Opportunities of the trace before the next unused one.
    pub(super) fn used(&self) -> u64 {
        self.trace.position(self.next) + u64::from(self.trace.width(self.next) - self.left_in_slot)
    }

    fn bits(&self, opportunities: u64) -> f64 {
        self.bytes(opportunities).as_f64() * 8.0
    }

    fn bytes(&self, opportunities: u64) -> Bytes {
        Bytes(opportunities * u64::from(self.opportunity))
    }
}

impl Service for Traced {
    fn wake(&mut self, now: Time) {
        if self.next_at > now {
            return;
        }
        let before = self.used();
        let now = self.in_trace(now);
        self.trace.seek(&mut self.next, now.as_nanos());
        self.enter_slot();
        self.unused += self.bytes(self.used() - before).0;
    }

    fn ready(&self) -> Time {
        if self.left > 0 { self.current_at } else { self.next_at }
    }

    fn begin(&mut self, size: u32) -> Time {
        self.unused = 0;
        let mut cost = size.saturating_add(self.overhead);
        while self.left < cost {
            cost -= self.left;
            self.take();
        }
        self.left -= cost;
        self.current_at
    }

    fn idle(&mut self, _now: Time) {
        self.unused += u64::from(self.left);
        self.left = 0;
    }

    fn unfinished(&self, now: Time) -> u128 {
        // Up to `now`, and of all that was taken after it only the last has something left for others.
        let passed = self.trace.before(self.in_trace(now).saturating_add(Duration::from_nanos(1)));
        let taken = self.bytes(self.used().saturating_sub(passed)).0;
        u128::from(taken.saturating_sub(u64::from(self.left))) * u128::from(BIT_NANOS)
    }

    fn cost(&self, size: u32) -> Bytes {
        Bytes(u64::from(size) + u64::from(self.overhead))
    }

    fn nominal(&self) -> Rate {
        self.nominal
    }

    fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.bytes(self.opportunities_between(from, to))
    }

    fn capacity(&mut self, now: Time, window: Duration) -> Rate {
        let until = self.in_trace(now);
        let through = self.trace.through(&mut self.window_end, until);
        if window > now.since(Time::ZERO) {
            return rate_in_window(self.bits(through - self.skipped), now, window, self.nominal);
        }
        let opportunities = through - self.trace.through(&mut self.window_start, until - window);
        if (window, opportunities) != (self.seen.0, self.seen.1) {
            let rate = rate_in_window(self.bits(opportunities), now, window, self.nominal);
            self.seen = (window, opportunities, rate);
        }
        self.seen.2
    }

    fn unused(&self) -> Bytes {
        Bytes(self.unused)
    }

    fn opportunity(&self) -> Bytes {
        Bytes(u64::from(self.opportunity))
    }

    fn lookahead(&mut self, now: Time, ahead: Duration, window: Duration) -> Option<Rate> {
        let start = self.in_trace(now) + ahead;
        let before = self.trace.through(&mut self.ahead_start, start);
        let through = self.trace.through(&mut self.ahead_end, start + window);
        Some(rate_in_window(self.bits(through - before), now + ahead + window, window, self.nominal))
    }
}
