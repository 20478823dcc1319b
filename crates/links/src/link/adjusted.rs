//! Service at a rate that is set while the run goes on: store and forward, where a packet under way when the
//! rate changes goes on at the new rate, as in [`steps`](super::steps).
//!
//! ```text
//! at t, rate := R:   a packet under way with w bit left leaves at t + w / R
//! R = 0:             it leaves once a later rate has carried the rest
//! ```
//!
//! A link of any other service becomes one of this when its rate is first set. What it was before is kept:
//! the capacity of a time that has passed does not change, and a window that reaches back covers both.
//!
//! Work is counted in bit/s times nanoseconds, in integers: departures are the exact times rounded down to
//! nanoseconds.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::packet::Packet;
use brakelight_core::queue::Queue;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::fixed::BIT_NANOS;
use super::{Link, Service, rate_in_window};
use crate::elements::AnyService;

/// The highest rate that can be set. The lowest is zero: nothing moves until another is set.
pub const FASTEST: Rate = Rate::from_mbps(10_000_000);

/// A rate, from a time on.
#[derive(Clone, Copy, Debug)]
struct Change {
    from: Time,
    rate: u64,
    /// Work that the link could do between the first change and this one.
    before: u128,
}

/// A transmitter whose rate is set from outside, and the service `S` that it was before.
#[derive(Clone, Debug)]
pub struct Adjusted<S> {
    past: S,
    /// One or more, by time.
    changes: Vec<Change>,
    rate: u64,
    /// When the transmitter is free, rounded down, and the work left then, which takes less than a
    /// nanosecond. At rate zero the time is when the packet under way came to a halt, and the work is all
    /// that is left of it.
    free_at: Time,
    left: u128,
    /// Work not done since the last packet was taken.
    idle: u128,
}

impl<S: Service> Adjusted<S> {
    /// Returns the rate that was set last.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    fn new(past: S, now: Time, rate: Rate, sending: bool) -> Self {
        let first = Change { from: now, rate: rate.bps(), before: 0 };
        let left = if sending { past.unfinished(now) } else { 0 };
        let idle = u128::from(past.unused().0) * u128::from(BIT_NANOS);
        let mut adjusted =
            Adjusted { past, changes: vec![first], rate: rate.bps(), free_at: now, left, idle };
        adjusted.settle();
        adjusted
    }

    fn set(&mut self, now: Time, rate: Rate, sending: bool) {
        self.left = match sending {
            true => self.unfinished(now),
            // The fraction of a nanosecond that the last packet took counts only in that nanosecond.
            false if self.free_at < now => 0,
            false => self.left,
        };
        let change = Change { from: now, rate: rate.bps(), before: self.work_before(now) };
        match self.changes.last_mut() {
            Some(last) if last.from == now => *last = change,
            _ => self.changes.push(change),
        }
        self.rate = rate.bps();
        self.free_at = now;
        self.settle();
    }

    /// Does the work that is left, as far as whole nanoseconds go.
    fn settle(&mut self) {
        let rate = u128::from(self.rate);
        if let Some(nanos) = self.left.checked_div(rate) {
            self.free_at = self.free_at.saturating_add(Duration::from_nanos(nanos as u64));
            self.left %= rate;
        }
    }

    /// Work that the link could do between its first change and `t`.
    fn work_before(&self, t: Time) -> u128 {
        let index = self.changes.partition_point(|change| change.from <= t);
        let Some(change) = index.checked_sub(1).map(|index| self.changes[index]) else { return 0 };
        change.before + u128::from(change.rate) * u128::from(t.since(change.from).as_nanos())
    }

    fn since(&self) -> Time {
        self.changes[0].from
    }
}

impl<S: Service> Service for Adjusted<S> {
    fn wake(&mut self, now: Time) {
        if now > self.free_at {
            self.idle += u128::from(self.rate) * u128::from(now.since(self.free_at).as_nanos());
            self.left = 0;
            self.free_at = now;
        }
    }

    fn ready(&self) -> Time {
        self.free_at
    }

    fn begin(&mut self, size: u32) -> Time {
        self.idle = 0;
        self.left += u128::from(self.cost(size).0) * u128::from(BIT_NANOS);
        self.settle();
        if self.rate == 0 { Time::MAX } else { self.free_at }
    }

    fn idle(&mut self, _now: Time) {}

    fn unfinished(&self, now: Time) -> u128 {
        u128::from(self.rate) * u128::from(self.free_at.since(now).as_nanos()) + self.left
    }

    fn cost(&self, size: u32) -> Bytes {
        self.past.cost(size)
    }

    fn nominal(&self) -> Rate {
        self.past.nominal()
    }

    fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        let since = self.since();
        let bytes = |t: Time| (self.work_before(t) / u128::from(BIT_NANOS)) as u64;
        self.past.capacity_between(from.min(since), to.min(since))
            + Bytes(bytes(to).saturating_sub(bytes(from)))
    }

    fn capacity(&mut self, now: Time, window: Duration) -> Rate {
        let (from, since) = (now.saturating_sub(window), self.since());
        let own = (self.work_before(now) - self.work_before(from)) as f64 * 1e-9;
        let past = self.past.capacity_between(from.min(since), now.min(since)).as_f64() * 8.0;
        rate_in_window(own + past, now, window, self.nominal())
    }

    fn unused(&self) -> Bytes {
        Bytes((self.idle / u128::from(BIT_NANOS)) as u64)
    }

    fn opportunity(&self) -> Bytes {
        self.past.opportunity()
    }

    /// As far as anybody knows, the rate stays.
    fn lookahead(&mut self, _now: Time, _ahead: Duration, _window: Duration) -> Option<Rate> {
        Some(self.rate())
    }
}

impl AnyService {
    fn set_rate(&mut self, now: Time, rate: Rate, sending: bool) {
        match self {
            AnyService::Adjusted(adjusted) => adjusted.set(now, rate, sending),
            _ => {
                let adjusted = Adjusted::new(self.clone(), now, rate, sending);
                *self = AnyService::Adjusted(Box::new(adjusted));
            }
        }
    }
}

impl<P: Packet, Q: Queue<P>> Link<P, Q, AnyService> {
    /// Gives the link this rate from `now` on, whatever served it before, after everything due by `now` has
    /// been done. What happened is to be polled.
    ///
    /// # Panics
    /// If the rate is above [`FASTEST`].
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        assert!(rate <= FASTEST, "a rate of {rate} is above {FASTEST}");
        self.catch_up(now);
        let sending = self.sending.is_some();
        let idle = self.is_idle();
        if idle {
            self.service.wake(now);
        }
        self.service.set_rate(now, rate, sending);
        self.due = match (sending, idle) {
            (true, _) if rate == Rate::ZERO => Time::MAX,
            (false, true) => Time::MAX,
            _ => self.service.ready(),
        };
        if let Some(sending) = &mut self.sending {
            let arrived = sending.at - sending.queued;
            (sending.at, sending.queued) = (self.due, self.due.since(arrived));
        }
    }
}

#[cfg(test)]
mod tests;
