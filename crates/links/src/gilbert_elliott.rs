//! Loss in bursts: the Gilbert-Elliott model (Gilbert 1960, Elliott 1963), a Markov chain of a good and a bad
//! state that moves once per packet.
//!
//! ```text
//! a packet is lost with the probability of the present state; then the state changes:
//!   good -> bad with p, bad -> good with r
//! share of packets in the bad state   pi = p / (p + r)
//! mean loss                           pi * loss_bad + (1 - pi) * loss_good
//! mean packets in a row in the bad state   1 / r
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | p | `p` | 1 | 0.005 | with `r`: 1 % of the packets lost |
//! | r | `r` | 1 | 0.495 | bursts of about two packets |
//! | 1 - h | `loss_bad` | 1 | 1 | Gilbert's simple model; netem `gemodel` |
//! | 1 - k | `loss_good` | 1 | 0 | Gilbert's simple model; netem `gemodel` |
//!
//! Deviations: D1 the chain starts in the good state, as netem's does, not in its stationary distribution.

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::random::Random;
use brakelight_core::time::Time;

use super::outbox::{Outbox, immediate};

parameters! {
    /// The settings of loss in bursts.
    pub struct Config {
        /// Probability, per packet, to go from the good to the bad state.
        p: f64 = 0.005, in 0.0..=1.0, from "1 % of the packets lost";
        /// Probability, per packet, to go from the bad to the good state.
        r: f64 = 0.495, in 0.0..=1.0, from "bursts of about two packets";
        /// Probability of loss in the bad state.
        loss_bad: f64 = 1.0, in 0.0..=1.0, from "netem gemodel, 1-h";
        /// Probability of loss in the good state.
        loss_good: f64 = 0.0, in 0.0..=1.0, from "netem gemodel, 1-k";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    Bad,
}

/// A path element that loses packets in bursts.
#[derive(Clone, Debug)]
pub struct GilbertElliott<P> {
    config: Config,
    random: Random,
    state: State,
    outbox: Outbox<P>,
}

impl<P: Packet> GilbertElliott<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        GilbertElliott {
            config: config.clone(),
            random: site.random,
            state: State::Good,
            outbox: Outbox::new(),
        }
    }

    fn loses(&mut self) -> bool {
        let (loss, leave, other) = match self.state {
            State::Good => (self.config.loss_good, self.config.p, State::Bad),
            State::Bad => (self.config.loss_bad, self.config.r, State::Good),
        };
        let lost = self.random.chance(loss);
        if self.random.chance(leave) {
            self.state = other;
        }
        lost
    }
}

impl<P: Packet> PathElement<P> for GilbertElliott<P> {
    fn accept(&mut self, now: Time, packet: P) {
        if self.loses() {
            self.outbox.lose(now, packet, Reason::Lost);
        } else {
            self.outbox.pass(now, packet);
        }
    }

    immediate!();
}
