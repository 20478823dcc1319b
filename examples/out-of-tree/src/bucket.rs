//! Token bucket without a buffer, as operators have where a plan's rate ends. What finds too few
//! tokens is dropped.
//!
//! tokens(t) = min(burst, tokens(t0) + rate * (t - t0))

use brakelight_core::packet::{BoxedPacket, Packet};
use brakelight_core::parameters;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::outbox::Outbox;
use brakelight_registry::{Algorithm, CustomElement};

parameters! {
    /// Settings of [`Bucket`].
    pub struct Config {
        /// The rate at which tokens come.
        rate: Rate = Rate::from_mbps(10), in Rate::from_bps(1)..=Rate::from_mbps(1_000_000), from "chosen here";
        /// The most tokens that there are.
        burst: Bytes = Bytes(30_000), in Bytes(1500)..=Bytes(1_000_000_000), from "chosen here";
    }
}

/// The bucket.
#[derive(Clone, Debug)]
pub struct Bucket<P> {
    config: Config,
    /// Bytes that may pass.
    tokens: f64,
    /// When that was so.
    at: Time,
    outbox: Outbox<P>,
}

impl Algorithm for Bucket<BoxedPacket> {
    type Config = Config;
    const NAME: &'static str = "bucket";
    const SUMMARY: &'static str = "Token bucket: drops what exceeds a rate";
}

impl CustomElement for Bucket<BoxedPacket> {
    fn build(config: &Config, _site: Site) -> Self {
        Bucket {
            config: config.clone(),
            tokens: config.burst.as_f64(),
            at: Time::ZERO,
            outbox: Outbox::new(),
        }
    }
}

impl<P: Packet> PathElement<P> for Bucket<P> {
    fn accept(&mut self, now: Time, packet: P) {
        let new = self.config.rate.as_bps_f64() / 8.0 * now.since(self.at).as_secs_f64();
        self.tokens = (self.tokens + new).min(self.config.burst.as_f64());
        self.at = now;
        let cost = f64::from(packet.size());
        if cost > self.tokens {
            self.outbox.lose(now, packet, Reason::Lost);
            return;
        }
        self.tokens -= cost;
        self.outbox.pass(now, packet);
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        self.outbox.poll(now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.outbox.next_wakeup()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.outbox.for_each(visit);
    }
}
