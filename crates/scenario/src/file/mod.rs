//! Scenario files: TOML with human units. Unknown keys are refused, everything else has a default or is asked
//! for.
//!
//! ```
//! let text = r#"
//! duration = "30s"
//!
//! [[link]]
//! name = "up"
//! rate = "12Mbps"
//! buffer = "250pkt"
//!
//! [[flow]]
//! controller = "newreno"
//! rtt = "100ms"
//! path = ["up"]
//! "#;
//! let scenario = brakelight_scenario::file::read("example.toml", text).unwrap();
//! assert_eq!(scenario.flows[0].name, "flow1");
//! let again = brakelight_scenario::file::read("example.toml", &brakelight_scenario::file::write(&scenario));
//! assert_eq!(again.unwrap(), scenario);
//! ```

mod read;
mod schema;
pub(crate) mod tables;
mod traffic;
pub(crate) mod values;
mod write;

pub use read::{deserialize_with, read, read_with};
pub use traffic::{APPLICATIONS, read_traffic, traffic_words};
pub(crate) use write::canonical_table;
pub use write::write;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::draw;
