//! The contract of hosts, for every controller of every stack, and that of controllers for s2n-quic's alone.
#![cfg(feature = "stacks")]

mod support;

use brakelight_registry::Registry;
use support::registry;

/// With s2n-quic's controllers as controllers of the modelled hosts.
fn registry_with_s2n() -> Registry {
    let mut registry = Registry::standard();
    let cubic = s2n_quic_core::recovery::cubic::Endpoint::default();
    brakelight_stacks::add_s2n_controller(&mut registry, "s2n-cubic", "Cubic of s2n-quic", cubic).unwrap();
    let bbr = s2n_quic_core::recovery::bbr::Endpoint::default();
    brakelight_stacks::add_s2n_controller(&mut registry, "s2n-bbr", "BBRv2 of s2n-quic", bbr).unwrap();
    registry
}

mod s2n_cubic_alone {
    use super::registry_with_s2n;
    brakelight_testkit::conformance_controller!(registry_with_s2n(), "s2n-cubic");
}

mod s2n_bbr_alone {
    use super::registry_with_s2n;
    brakelight_testkit::conformance_controller!(registry_with_s2n(), "s2n-bbr");
}

mod quinn_newreno {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "quinn/newreno", [("beta", "0.7")]);
}

mod quinn_cubic {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "quinn/cubic", [("initial_window", "32")]);
}

mod quinn_bbr {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "quinn/bbr", [("initial_window", "10")]);
}

mod noq_newreno {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "noq/newreno", [("beta", "0.7")]);
}

mod noq_cubic {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "noq/cubic", [("initial_window", "32")]);
}

mod noq_bbr3 {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "noq/bbr3", [("stream_window", "1.25MB")]);
}

mod brakelight_noq_copa {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "brakelight-noq/copa", [("stream_window", "1.25MB")]);
}

mod s2n_quic_cubic {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "s2n-quic/cubic", [("initial_window", "32")]);
}

mod s2n_quic_bbr {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "s2n-quic/bbr", [("stream_window", "3.75MB")]);
}

mod str0m_gcc {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "str0m/gcc", [("desired_rate", "5Mbps")]);
}

#[cfg(feature = "stacks-c")]
mod quiche_reno {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "quiche/reno", [("hystart", "false")]);
}

#[cfg(feature = "stacks-c")]
mod quiche_cubic {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "quiche/cubic", [("initial_window", "32")]);
}

#[cfg(feature = "stacks-c")]
mod quiche_bbr2 {
    use super::registry;
    brakelight_testkit::conformance_host!(registry(), "quiche/bbr2", [("datagram", "1200")]);
}
