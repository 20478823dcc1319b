//! Service at a fixed rate: store and forward, one packet after the other; or by a token bucket.
//!
//! ```text
//! a packet of s bytes taken at t leaves at t + (s + H) * 8 / R
//! with a bucket of B bytes:  full(0) = 0;  a packet of s bytes taken at t:
//!                            full = max(full, t) + (s + H) * 8 / R
//!                            it leaves at max(t, full - B * 8 / R)                         tc-tbf(8)
//! ```
//!
//! `full` is when the bucket would be full again: a packet leaves as soon as there are tokens for all of it,
//! and takes no time on the wire. Without a bucket both lines say the same. Linux's bucket holds the largest
//! packet at least; so small a bucket lets packets leave at the rate, one packet earlier than a link without.
//!
//! Departures are the exact times rounded down to nanoseconds: the fraction is carried to the next packet, so
//! a busy link does not drift.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `rate` | bit/s | 12 Mbit/s | abc20 Fig. 19 |
//! | H | `overhead` | bytes | 0 | rates are meant at the IP layer |
//! | B | `burst` | bytes | 0, no bucket | tc-tbf(8) |
//! | - | `opportunity` | bytes | 1500 | what a queue that counts in opportunities is told one is |

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::Service;

parameters! {
    /// The settings of a link of fixed rate.
    pub struct Config {
        /// The rate.
        rate: Rate = Rate::from_mbps(12), in Rate::from_bps(1)..=Rate::from_mbps(10_000_000), from "abc20 Fig. 19";
        /// What every packet costs beyond its size at the IP layer.
        overhead: Bytes = Bytes(0), in Bytes(0)..=Bytes(1 << 16), from "rates at the IP layer";
        /// What one delivery opportunity is said to carry.
        opportunity: Bytes = Bytes(1500), in Bytes(1)..=Bytes(1 << 20), from "an Ethernet packet";
        /// The size of the token bucket; 0 is a link without one.
        burst: Bytes = Bytes(0), in Bytes(0)..=Config::LARGEST_BURST, from "tc-tbf(8)";
    }
}

impl Config {
    /// The largest token bucket.
    pub const LARGEST_BURST: Bytes = Bytes(1_000_000_000);
}

/// Bits per byte times nanoseconds per second: (bytes * this) / (bit/s) is in nanoseconds.
pub(super) const BIT_NANOS: u64 = 8_000_000_000;

/// A transmitter of fixed rate.
#[derive(Clone, Debug)]
pub struct Fixed {
    config: Config,
    rate: u64,
    /// When the work of all packets taken is done at this rate, rounded down, which is when the bucket is
    /// full again; the fraction is `carry / rate` nanoseconds.
    done_at: Time,
    carry: u64,
    /// How long an empty bucket takes to fill.
    bucket: Duration,
    /// When the transmitter is free: the last packet has left, or the first one has come.
    free_at: Time,
    /// Time spent idle since the last packet was taken.
    idle: Duration,
    /// The last two different sizes, the newest first: data and ACKs often take turns.
    recent: [Transmission; 2],
}

/// How long packets of a size are on the link.
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    size: u32,
    /// Whole nanoseconds, and the rest in 1 / rate nanoseconds.
    nanos: u64,
    rest: u64,
}

impl Fixed {
    /// Returns an idle transmitter.
    pub fn new(config: &Config) -> Self {
        let mut fixed = Fixed {
            config: config.clone(),
            rate: config.rate.bps(),
            done_at: Time::ZERO,
            carry: 0,
            bucket: config.rate.time_for(config.burst),
            free_at: Time::ZERO,
            idle: Duration::ZERO,
            recent: [Transmission::default(); 2],
        };
        fixed.recent = [fixed.transmission(0); 2];
        fixed
    }

    /// Returns how long a packet of `size` bytes at the IP layer is on the link at most; `None` if that
    /// depends on a token bucket.
    pub fn longest_transmission(&self, size: u32) -> Option<Duration> {
        // One nanosecond more for the fraction that is carried.
        let time = self.config.rate.time_for(self.cost(size)) + Duration::from_nanos(1);
        self.bucket.is_zero().then_some(time)
    }

    /// Makes `size` the newest of the last two sizes. A division costs more than all else here.
    #[inline(never)]
    fn make_newest(&mut self, size: u32) {
        self.recent.swap(0, 1);
        if self.recent[0].size != size {
            self.recent[0] = self.transmission(size);
        }
    }

    fn transmission(&self, size: u32) -> Transmission {
        let scaled = u128::from(self.cost(size).0) * u128::from(BIT_NANOS);
        let rate = u128::from(self.rate);
        let (nanos, rest) = match u64::try_from(scaled) {
            Ok(small) => (small / self.rate, small % self.rate),
            Err(_) => ((scaled / rate) as u64, (scaled % rate) as u64),
        };
        Transmission { size, nanos, rest }
    }
}

impl Service for Fixed {
    fn wake(&mut self, now: Time) {
        // Tokens that overflow are capacity not used; those that fill the bucket are not lost.
        self.idle += now.since(self.done_at);
        // A packet that arrives in the very nanosecond of the last departure still waits for the fraction.
        if now > self.done_at {
            self.carry = 0;
            self.done_at = now;
        }
        self.free_at = self.free_at.max(now);
    }

    fn ready(&self) -> Time {
        self.free_at
    }

    fn begin(&mut self, size: u32) -> Time {
        if size != self.recent[0].size {
            self.make_newest(size);
        }
        let Transmission { nanos, rest, .. } = self.recent[0];
        self.idle = Duration::ZERO;
        self.done_at += Duration::from_nanos(nanos);
        self.carry += rest;
        if self.carry >= self.rate {
            self.carry -= self.rate;
            self.done_at += Duration::from_nanos(1);
        }
        self.free_at = self.free_at.max(self.done_at.saturating_sub(self.bucket));
        self.free_at
    }

    fn idle(&mut self, _now: Time) {}

    fn unfinished(&self, now: Time) -> u128 {
        u128::from(self.rate) * u128::from(self.free_at.since(now).as_nanos()) + u128::from(self.carry)
    }

    fn cost(&self, size: u32) -> Bytes {
        Bytes(u64::from(size) + self.config.overhead.0)
    }

    fn nominal(&self) -> Rate {
        self.config.rate
    }

    fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        let since_start = |t: Time| self.config.rate.bytes_in(t.since(Time::ZERO));
        since_start(to).saturating_sub(since_start(from))
    }

    fn capacity(&mut self, _now: Time, _window: Duration) -> Rate {
        self.config.rate
    }

    fn unused(&self) -> Bytes {
        self.config.rate.bytes_in(self.idle)
    }

    fn opportunity(&self) -> Bytes {
        self.config.opportunity
    }

    fn lookahead(&mut self, _now: Time, _ahead: Duration, _window: Duration) -> Option<Rate> {
        Some(self.config.rate)
    }
}
