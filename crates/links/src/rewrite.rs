//! Middleboxes and receivers that rewrite the ECN field.
//!
//! | action | from | to |
//! |---|---|---|
//! | `bleach` | any codepoint | Not-ECT |
//! | `ect1-to-ect0` | ECT(1) | ECT(0): a router that treats the two alike |
//! | `mark-ce` | ECT | CE: a router that marks whatever happens |
//! | `cheat` | the brake of the packet's encoding | its accelerate: a greedy receiver, or a lying router |
//! | `erase-ce` | CE | the codepoint its sender sets |
//!
//! Each affects a packet with probability `rate`. Packets that are Not-ECT only change under none of them.

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::random::Random;
use brakelight_core::time::Time;

use super::outbox::{Outbox, immediate};

choices! {
    /// What happens to the ECN field.
    pub enum Action {
        /// It is cleared.
        Bleach = "bleach",
        /// ECT(1) becomes ECT(0).
        Ect1ToEct0 = "ect1-to-ect0",
        /// ECT becomes CE.
        MarkCe = "mark-ce",
        /// Brake becomes accelerate.
        Cheat = "cheat",
        /// CE becomes what the sender sends.
        EraseCe = "erase-ce",
    }
}

parameters! {
    /// The settings of a rewriter.
    pub struct Config {
        /// What happens to the ECN field.
        action: Action = Action::Bleach, in .., from "the alias `bleach`";
        /// Probability that it happens to a packet.
        rate: f64 = 1.0, in 0.0..=1.0, from "a middlebox touches all packets";
    }
}

/// A path element that rewrites ECN fields.
#[derive(Clone, Debug)]
pub struct Rewrite<P> {
    config: Config,
    random: Random,
    outbox: Outbox<P>,
}

impl<P: Packet> Rewrite<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        Rewrite { config: config.clone(), random: site.random, outbox: Outbox::new() }
    }
}

/// What `action` makes of `ecn` on a packet of a flow with this `encoding`.
fn rewritten(action: Action, ecn: Ecn, encoding: Encoding) -> Ecn {
    match action {
        Action::Bleach => Ecn::NotEct,
        Action::Ect1ToEct0 if ecn == Ecn::Ect1 => Ecn::Ect0,
        Action::MarkCe if ecn.is_capable() => Ecn::Ce,
        Action::Cheat if encoding.mark(ecn) == Mark::Brake => encoding.sent(),
        Action::EraseCe if ecn == Ecn::Ce => encoding.sent(),
        _ => ecn,
    }
}

impl<P: Packet> PathElement<P> for Rewrite<P> {
    fn accept(&mut self, now: Time, mut packet: P) {
        if self.random.chance(self.config.rate) {
            packet.set_ecn(rewritten(self.config.action, packet.ecn(), packet.encoding()));
        }
        self.outbox.pass(now, packet);
    }

    immediate!();
}
