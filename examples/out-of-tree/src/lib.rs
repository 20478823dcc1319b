//! A controller, a queue, a path element, an application and a host that Brakelight does not know, each in a
//! file of its own.

pub mod aimd;
pub mod bucket;

pub mod ramp;
pub mod sensor;
pub mod stopgap;

use brakelight_apps::Applications;
use brakelight_registry::Registry;

/// Returns what Brakelight brings, and this crate's algorithms.
///
/// # Panics
/// Panics if Brakelight has taken one of the names.
pub fn registry() -> Registry {
    let mut registry = Registry::standard();
    let added = [
        registry.add_controller::<aimd::Aimd>(),
        registry.add_queue::<ramp::Ramp<_>>(),
        registry.add_element::<bucket::Bucket<_>>(),
        registry.add_application::<sensor::Sensor>(),
        stopgap::add_to(&mut registry),
    ];
    for result in added {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
    registry
}
