//! Loss of acknowledgements alone: packets small enough to be nothing else are lost, data passes.

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

use super::outbox::{Outbox, immediate};

parameters! {
    /// The settings of ACK loss.
    pub struct Config {
        /// Probability that an ACK is lost.
        rate: f64 = 0.01, in 0.0..=1.0, from "1 % of the ACKs";
        /// The largest packet that is taken for an ACK.
        max_size: Bytes = Bytes(128), in Bytes(0).., from "above IPv6 with the longest TCP header, 100 bytes";
    }
}

/// A path element that loses acknowledgements.
#[derive(Clone, Debug)]
pub struct AckLoss<P> {
    config: Config,
    random: Random,
    outbox: Outbox<P>,
}

impl<P: Packet> AckLoss<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        AckLoss { config: config.clone(), random: site.random, outbox: Outbox::new() }
    }
}

impl<P: Packet> PathElement<P> for AckLoss<P> {
    fn accept(&mut self, now: Time, packet: P) {
        let is_ack = u64::from(packet.size()) <= self.config.max_size.0;
        if is_ack && self.random.chance(self.config.rate) {
            self.outbox.lose(now, packet, Reason::Lost);
        } else {
            self.outbox.pass(now, packet);
        }
    }

    immediate!();
}
