//! Independent loss: every packet is lost with the same probability, whatever happened to the others.

use super::outbox::{Outbox, immediate};
use super::{Output, PathElement, Site};
use crate::packet::Packet;
use crate::queue::Reason;
use crate::random::Random;
use crate::time::Time;

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
