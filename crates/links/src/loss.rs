//! Independent loss: every packet is lost with the same probability, whatever happened to the others.

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::random::Random;
use brakelight_core::time::Time;

use super::outbox::{Outbox, immediate};

parameters! {
    /// The settings of independent loss.
    pub struct Config {
        /// Probability that a packet is lost.
        rate: f64 = 0.01, in 0.0..=1.0, from "netem loss random";
    }
}

/// A path element that loses packets.
#[derive(Clone, Debug)]
pub struct Loss<P> {
    config: Config,
    random: Random,
    outbox: Outbox<P>,
}

impl<P: Packet> Loss<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        Loss { config: config.clone(), random: site.random, outbox: Outbox::new() }
    }
}

impl<P: Packet> PathElement<P> for Loss<P> {
    fn accept(&mut self, now: Time, packet: P) {
        if self.random.chance(self.config.rate) {
            self.outbox.lose(now, packet, Reason::Lost);
        } else {
            self.outbox.pass(now, packet);
        }
    }

    immediate!();
}
