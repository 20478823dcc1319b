//! Arrivals for the unit tests of receivers.

use brakelight_core::ecn::Ecn;
use brakelight_core::feedback::Arrival;
use brakelight_core::packet::Header;
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

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
