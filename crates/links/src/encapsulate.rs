//! The ingress of a tunnel (RFC 6040 section 4.1): an outer header goes around the packet, and routers inside
//! the tunnel see only that one's ECN field.
//!
//! | mode | outer field | source |
//! |---|---|---|
//! | `normal` | the inner one's | rfc6040 4.1 |
//! | `compatibility` | Not-ECT: for an egress that does not understand ECN | rfc6040 4.1 |
//!
//! The other end is [`decapsulate`](super::decapsulate). A packet that cannot be told to be carried
//! ([`Packet::set_tunnel`]), and one that is in a tunnel already, passes as it is.

use alloc::format;

use brakelight_core::ecn::Ecn;
use brakelight_core::packet::{Packet, Tunnel};
use brakelight_core::parameters::ParameterError;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::time::Time;

use super::outbox::{Outbox, immediate};

choices! {
    /// What the outer header's ECN field is.
    pub enum Mode {
        /// The inner one's.
        Normal = "normal",
        /// Not-ECT.
        Compatibility = "compatibility",
    }
}

parameters! {
    /// The settings of a tunnel's ingress.
    pub struct Config {
        check whole_words;
        /// What the outer header's ECN field is.
        mode: Mode = Mode::Normal, in .., from "rfc6040 4.1";
        /// Bytes of the outer header, in whole words of four: 20 for IPv4, 40 for IPv6, some 60 with ESP.
        overhead: u32 = 20, in 0..=Tunnel::MOST, from "rfc2003 3.1";
    }
}

fn whole_words(config: &Config) -> Result<(), ParameterError> {
    if config.overhead.is_multiple_of(4) {
        return Ok(());
    }
    let reason = format!("overhead = `{}` is no multiple of 4, which headers are", config.overhead);
    Err(ParameterError::Conflict { reason })
}

/// A tunnel's ingress.
#[derive(Clone, Debug)]
pub struct Encapsulate<P> {
    config: Config,
    outbox: Outbox<P>,
}

impl<P: Packet> Encapsulate<P> {
    /// Returns an ingress without packets.
    pub fn new(config: &Config, _site: Site) -> Self {
        Encapsulate { config: config.clone(), outbox: Outbox::new() }
    }
}

impl<P: Packet> PathElement<P> for Encapsulate<P> {
    fn accept(&mut self, now: Time, mut packet: P) {
        if packet.tunnel().is_none() {
            let inner = packet.ecn();
            packet.set_tunnel(Some(Tunnel::new(inner, self.config.overhead)));
            if self.config.mode == Mode::Compatibility && packet.tunnel().is_some() {
                packet.set_ecn(Ecn::NotEct);
            }
        }
        self.outbox.pass(now, packet);
    }

    immediate!();
}
