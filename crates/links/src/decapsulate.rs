//! The egress of a tunnel: the outer header comes off, and what becomes of its ECN field depends on how old
//! the egress is.
//!
//! `rfc6040` (RFC 6040 section 4.2), the field that goes on by what arrived:
//!
//! | inner \ outer | Not-ECT | ECT(0) | ECT(1) | CE |
//! |---|---|---|---|---|
//! | Not-ECT | Not-ECT | Not-ECT | Not-ECT | dropped |
//! | ECT(0) | ECT(0) | ECT(0) | ECT(1) | CE |
//! | ECT(1) | ECT(1) | ECT(1) | ECT(1) | CE |
//! | CE | CE | CE | CE | CE |
//!
//! | mode | difference | source |
//! |---|---|---|
//! | `rfc3168` | ECT(0) stays ECT(0) under ECT(1) | RFC 3168 9.1.1, full functionality |
//! | `rfc4301` | that, and Not-ECT under CE passes | RFC 4301 5.1.2.1: IPsec |
//! | `discard` | the inner field goes on, whatever the outer one says | RFC 2003, RFC 3168 9.1.1, limited |
//!
//! So CE set inside a tunnel comes out of all but the last, while ABC's brake does not come out of any:
//! ECT(0) over an inner ECT(1) is ECT(1) again. BMCC's ECT(1) over ECT(0) comes out of the first alone.

use brakelight_core::ecn::Ecn;
use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::time::Time;

use super::outbox::{Outbox, immediate};

choices! {
    /// How the egress combines the two ECN fields.
    pub enum Mode {
        /// RFC 6040.
        Rfc6040 = "rfc6040",
        /// RFC 3168, full functionality.
        Rfc3168 = "rfc3168",
        /// RFC 4301: IPsec.
        Rfc4301 = "rfc4301",
        /// The outer field is thrown away.
        Discard = "discard",
    }
}

parameters! {
    /// The settings of a tunnel's egress.
    pub struct Config {
        /// How the egress combines the two ECN fields.
        mode: Mode = Mode::Rfc6040, in .., from "rfc6040 4.2";
    }
}

/// A tunnel's egress.
#[derive(Clone, Debug)]
pub struct Decapsulate<P> {
    config: Config,
    outbox: Outbox<P>,
}

impl<P: Packet> Decapsulate<P> {
    /// Returns an egress without packets.
    pub fn new(config: &Config, _site: Site) -> Self {
        Decapsulate { config: config.clone(), outbox: Outbox::new() }
    }
}

/// The field that goes on; none where the packet is dropped.
fn forwarded(mode: Mode, inner: Ecn, outer: Ecn) -> Option<Ecn> {
    // rfc6040 4.2, figure 4
    match (mode, inner, outer) {
        (Mode::Discard, inner, _) => Some(inner),
        (Mode::Rfc4301, Ecn::NotEct, _) => Some(Ecn::NotEct),
        (_, Ecn::NotEct, Ecn::Ce) => None,
        (_, Ecn::NotEct, _) => Some(Ecn::NotEct),
        (_, _, Ecn::Ce) => Some(Ecn::Ce),
        (Mode::Rfc6040, Ecn::Ect0, Ecn::Ect1) => Some(Ecn::Ect1),
        (_, inner, _) => Some(inner),
    }
}

impl<P: Packet> PathElement<P> for Decapsulate<P> {
    fn accept(&mut self, now: Time, mut packet: P) {
        let Some(tunnel) = packet.tunnel() else {
            self.outbox.pass(now, packet);
            return;
        };
        let ecn = forwarded(self.config.mode, tunnel.inner(), packet.ecn());
        packet.set_tunnel(None);
        packet.set_ecn(ecn.unwrap_or(tunnel.inner()));
        match ecn {
            Some(_) => self.outbox.pass(now, packet),
            None => self.outbox.lose(now, packet, Reason::Early),
        }
    }

    immediate!();
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

    fn row(mode: Mode, inner: Ecn) -> [Option<Ecn>; 4] {
        FIELDS.map(|outer| forwarded(mode, inner, outer))
    }

    /// rfc6040 4.2, figure 4.
    #[test]
    fn rfc6040_forwards_the_more_severe_of_the_two_fields() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        assert_eq!(row(Mode::Rfc6040, NotEct), [Some(NotEct), Some(NotEct), Some(NotEct), None]);
        assert_eq!(row(Mode::Rfc6040, Ect0), [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]);
        assert_eq!(row(Mode::Rfc6040, Ect1), [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]);
        assert_eq!(row(Mode::Rfc6040, Ce), [Some(Ce); 4]);
    }

    #[test]
    fn older_egresses_forward_congestion_and_nothing_else() {
        use Ecn::{Ce, Ect0, NotEct};
        for mode in [Mode::Rfc3168, Mode::Rfc4301] {
            assert_eq!(row(mode, Ect0), [Some(Ect0), Some(Ect0), Some(Ect0), Some(Ce)]);
        }
        assert_eq!(row(Mode::Rfc3168, NotEct)[3], None);
        assert_eq!(row(Mode::Rfc4301, NotEct), [Some(NotEct); 4]);
        for inner in FIELDS {
            assert_eq!(row(Mode::Discard, inner), [Some(inner); 4]);
        }
    }
}
