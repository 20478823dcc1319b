//! E-ABC's sender (`abc17` 5): [RCP's](super::rcp), with a router that writes ABC's target rate
//! (`brakelight_routers::eabc`). The paper says no more than that it is rate-based; the authors'
//! code runs both routers with one sender.

pub use super::rcp::{Config, Rcp as EAbc};
