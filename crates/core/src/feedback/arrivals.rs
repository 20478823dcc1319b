//! Arrivals for the unit tests of receivers.

use super::Arrival;
use crate::ecn::Ecn;
use crate::packet::Header;
use crate::time::Time;
use crate::units::Bytes;

/// An ordinary packet with this ECN field.
pub(crate) fn arrival(ecn: Ecn) -> Arrival {
    Arrival {
        now: Time::ZERO,
        number: 0,
        size: Bytes(1000),
        ecn,
        cwr: false,
        header: Header::None,
        hash16: 0,
        sent_at: Time::ZERO,
        urgent: false,
    }
}
