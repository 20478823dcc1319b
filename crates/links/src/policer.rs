//! A token-bucket policer: what exceeds a rate is dropped at once, and nothing waits.
//!
//! ```text
//! missing(0) = 0; a packet of s bytes that arrives dt after the last one:
//!                 missing = max(0, missing - R * dt / 8)
//!                 it passes, and missing = missing + s,  if missing + s <= B
//!                 it is dropped otherwise, and costs no tokens
//! ```
//!
//! `missing` is what the bucket lacks to be full. A policer has no queue and adds no delay. So a sender
//! learns its rate by losses alone, where shaping would delay what exceeds the rate (flach16 table 1).
//! Linux's `act_police` does the same.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `rate` | bit/s | 1.5 Mbit/s | T-Mobile's Binge On, to which it polices video |
//! | B | `burst` | bytes | 100 kB | chosen here: about half a second of R |

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

use super::outbox::{Outbox, immediate};

parameters! {
    /// The settings of a policer.
    pub struct Config {
        /// The rate at which tokens come.
        rate: Rate = Rate::from_bps(1_500_000), in Rate::from_bps(1)..=Rate::from_mbps(10_000_000), from "T-Mobile's Binge On";
        /// The most tokens, with which it begins; a larger packet never passes.
        burst: Bytes = Bytes(100_000), in Bytes(1)..=Bytes(1_000_000_000), from "about half a second";
    }
}

/// A path element that drops what exceeds a rate.
#[derive(Clone, Debug)]
pub struct Policer<P> {
    rate: u128,
    /// In units of [`PER_BYTE`], so that no division rounds.
    burst: u128,
    /// What the bucket lacked to be full at `at`, in the same unit.
    missing: u128,
    at: Time,
    outbox: Outbox<P>,
}

/// A byte in the unit of bit/s times nanoseconds.
const PER_BYTE: u128 = 8_000_000_000;

impl<P: Packet> Policer<P> {
    /// Returns a policer with a full bucket.
    pub fn new(config: &Config, _site: Site) -> Self {
        Policer {
            rate: u128::from(config.rate.bps()),
            burst: u128::from(config.burst.0) * PER_BYTE,
            missing: 0,
            at: Time::ZERO,
            outbox: Outbox::new(),
        }
    }
}

impl<P: Packet> PathElement<P> for Policer<P> {
    fn accept(&mut self, now: Time, packet: P) {
        let came = self.rate * u128::from(now.since(self.at).as_nanos());
        self.missing = self.missing.saturating_sub(came);
        self.at = now;
        let after = self.missing + u128::from(packet.size()) * PER_BYTE;
        if after <= self.burst {
            self.missing = after;
            self.outbox.pass(now, packet);
        } else {
            self.outbox.lose(now, packet, Reason::Early);
        }
    }

    immediate!();
}
