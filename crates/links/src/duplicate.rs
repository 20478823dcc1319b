//! Duplication: some packets arrive twice, the copy right behind the original.

use brakelight_core::packet::{Duplicate as Copied, PacketId};
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::random::Random;
use brakelight_core::time::Time;

use super::outbox::{Outbox, immediate};

parameters! {
    /// The settings of duplication.
    pub struct Config {
        /// Probability that a packet is duplicated.
        rate: f64 = 0.01, in 0.0..=1.0, from "netem duplicate";
    }
}

/// A path element that duplicates packets.
#[derive(Clone, Debug)]
pub struct Duplicate<P> {
    config: Config,
    random: Random,
    next_id: PacketId,
    outbox: Outbox<P>,
}

impl<P: Copied> Duplicate<P> {
    /// Returns an element without packets. Copies are numbered from the site's first identity on.
    pub fn new(config: &Config, site: Site) -> Self {
        Duplicate { config: config.clone(), random: site.random, next_id: site.ids, outbox: Outbox::new() }
    }
}

impl<P: Copied> PathElement<P> for Duplicate<P> {
    fn accept(&mut self, now: Time, packet: P) {
        if !self.random.chance(self.config.rate) {
            self.outbox.pass(now, packet);
            return;
        }
        let copy = packet.duplicate(self.next_id);
        self.next_id.0 += 1;
        self.outbox.pass(now, packet);
        self.outbox.make(now, copy);
    }

    immediate!();
}
