//! A controller, a queue and a path element that Brakelight does not know, each in a file of its own.

pub mod aimd;
pub mod policer;
pub mod ramp;

use brakelight_core::registry::Registry;

/// Returns what Brakelight brings, and this crate's algorithms.
///
/// # Panics
/// Panics if Brakelight has taken one of the names.
pub fn registry() -> Registry {
    let mut registry = Registry::standard();
    let added = [
        registry.add_controller::<aimd::Aimd>(),
        registry.add_queue::<ramp::Ramp<_>>(),
        registry.add_element::<policer::Policer<_>>(),
    ];
    for result in added {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
    registry
}
