//! XCPw's sender (`abc20` 7.3): [XCP's](super::xcp), with a router that computes its feedback anew for every
//! packet (`brakelight_routers::xcpw`).

pub use super::xcp::{Config, Xcp as XcpW};
