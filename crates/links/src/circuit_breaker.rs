//! A circuit breaker: it measures what exceeds the rate that was provisioned, and stops all traffic once that
//! lasts (RFC 8084). It is the managed kind of section 5.3, for a rate that is known.
//!
//! ```text
//! a packet is in excess if a token bucket of rate R and size B has no tokens for it; it passes all the same
//! in each interval T:    share = bytes in excess / bytes
//! N intervals in a row with share > threshold:  every packet is dropped for the time D; then it begins anew
//! ```
//!
//! An interval without packets has a share of zero. Intervals follow each other from the first packet on, so
//! that a packet may close several.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `rate` | bit/s | 10 Mbit/s | the operator's |
//! | B | `burst` | bytes | 100 kB | chosen here: the buffer of a router |
//! | threshold | `threshold` | share | 0.1 | rfc3714 1: a loss at which to stop |
//! | T | `interval` | time | 5 s | rfc8084 4: many round trips, seconds to tens of seconds |
//! | N | `intervals` | - | 3 | rfc8084 4: the excess must persist |
//! | D | `down` | time | 60 s | rfc8084 4: longer than the congestion that it answers |

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::outbox::{Outbox, immediate};

parameters! {
    /// The settings of a circuit breaker.
    pub struct Config {
        /// The rate that was provisioned.
        rate: Rate = Rate::from_mbps(10), in Rate::from_bps(1)..=Rate::from_mbps(10_000_000), from "the operator's";
        /// What may arrive at once besides.
        burst: Bytes = Bytes(100_000), in Bytes(1)..=Bytes(1_000_000_000), from "a router's buffer";
        /// Share of bytes in excess, above which an interval counts.
        threshold: f64 = 0.1, in 0.0..=1.0, from "rfc3714 1";
        /// The length of an interval.
        interval: Duration = Duration::from_secs(5), in Duration::from_millis(1)..=Duration::from_secs(3600), from "rfc8084 4";
        /// How many of them in a row trip it.
        intervals: u32 = 3, in 1..=1000, from "rfc8084 4";
        /// How long it stays open, and nothing passes.
        down: Duration = Duration::from_secs(60), in Duration::from_millis(1)..=Duration::from_secs(86_400), from "rfc8084 4";
    }
}

/// A path element that stops all traffic once too much of it exceeds a rate for too long.
#[derive(Clone, Debug)]
pub struct CircuitBreaker<P> {
    config: Config,
    /// What the bucket lacked to be full at `at`, in bits per second times nanoseconds.
    missing: u128,
    at: Time,
    /// When the present interval ends; none before the first packet, and after it was open.
    ends: Option<Time>,
    bytes: u64,
    excess: u64,
    /// Intervals in a row that were above the threshold.
    above: u32,
    open_until: Time,
    outbox: Outbox<P>,
}

/// A byte in the unit of bit/s times nanoseconds.
const PER_BYTE: u128 = 8_000_000_000;

impl<P: Packet> CircuitBreaker<P> {
    /// Returns a breaker that is closed, with a full bucket.
    pub fn new(config: &Config, _site: Site) -> Self {
        CircuitBreaker {
            config: config.clone(),
            missing: 0,
            at: Time::ZERO,
            ends: None,
            bytes: 0,
            excess: 0,
            above: 0,
            open_until: Time::ZERO,
            outbox: Outbox::new(),
        }
    }

    /// Closes the intervals that have ended by `now`.
    fn close_intervals(&mut self, now: Time) {
        let ends = *self.ends.get_or_insert(now + self.config.interval);
        if now < ends {
            return;
        }
        let is_above = self.excess as f64 > self.config.threshold * self.bytes as f64;
        self.above = if is_above { self.above + 1 } else { 0 };
        (self.bytes, self.excess) = (0, 0);
        if self.above >= self.config.intervals {
            self.open_until = now + self.config.down;
            self.above = 0;
            self.ends = None;
            return;
        }
        // All others until now had no packet.
        let length = self.config.interval.as_nanos();
        let later = now.since(ends).as_nanos() / length + 1;
        if later > 1 {
            self.above = 0;
        }
        self.ends = Some(ends + Duration::from_nanos(later * length));
    }

    /// Takes tokens for `size` bytes at `now`, if there are enough. Returns whether there were.
    fn fits(&mut self, now: Time, size: u32) -> bool {
        let came = u128::from(self.config.rate.bps()) * u128::from(now.since(self.at).as_nanos());
        self.missing = self.missing.saturating_sub(came);
        self.at = now;
        let after = self.missing + u128::from(size) * PER_BYTE;
        let fits = after <= u128::from(self.config.burst.0) * PER_BYTE;
        if fits {
            self.missing = after;
        }
        fits
    }
}

impl<P: Packet> PathElement<P> for CircuitBreaker<P> {
    fn accept(&mut self, now: Time, packet: P) {
        if now >= self.open_until {
            self.close_intervals(now);
        }
        if now < self.open_until {
            self.outbox.lose(now, packet, Reason::Early);
            return;
        }
        let size = packet.size();
        self.bytes += u64::from(size);
        if !self.fits(now, size) {
            self.excess += u64::from(size);
        }
        self.outbox.pass(now, packet);
    }

    immediate!();
}
