//! What the tests of the stacks share.

use brakelight_registry::Registry;

/// The registry with every stack of this build.
pub fn registry() -> Registry {
    let mut registry = Registry::standard();
    brakelight_stacks::add_to(&mut registry).unwrap();
    registry
}

/// Every controller of every stack of this build, as its stack was published: not ours in noq, and not that
/// of media.
#[allow(dead_code, reason = "not every test needs them")]
pub fn controllers() -> Vec<&'static str> {
    let registry = registry();
    let published = registry.hosts().filter(|(host, _)| !["brakelight-noq", "str0m"].contains(host));
    published.flat_map(|(_, factory)| factory.controllers()).map(|controller| controller.name).collect()
}
