//! The algorithms of this crate, held to what Brakelight's own are held to: one line each.

use out_of_tree::registry;

brakelight_testkit::conformance_controller!(registry(), "aimd", [("increase", "4"), ("decrease", "0.8")]);
brakelight_testkit::conformance_queue!(registry(), "ramp", [("min", "0s"), ("max", "1ms"), ("most", "1")]);
brakelight_testkit::conformance_element!(registry(), "bucket", [("rate", "1Mbps"), ("burst", "1500B")]);
brakelight_testkit::conformance_application!(registry(), "sensor", [("size", "20kB"), ("interval", "5ms")]);
brakelight_testkit::conformance_host!(registry(), "stopgap/window", [("window", "2")], [("window", "200")]);
