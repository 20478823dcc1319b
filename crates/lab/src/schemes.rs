//! Which schemes `compare` runs when none is named: made from the registry, so that a new algorithm is in it
//! at once.

use brakelight_core::ecn::Encoding;
use brakelight_core::registry::{DEFAULT_CONTROLLER, QueueConfig, Registry};
use brakelight_scenario::scheme::Scheme;

/// The scheme that all others are held against.
const SUBJECT: &str = "abc";

/// Returns the subject, the default controller by itself and behind every queue that schemes have settings
/// for, which are those of today's routers; then every other controller with the queue that it brings, but
/// for those that are driven from outside and those of [`hosts`](of_hosts).
pub fn defaults(registry: &Registry) -> Vec<Scheme> {
    let preset = |name: &&str| {
        let serves = |queue: QueueConfig| queue.traits().preset.is_some() && queue.speaks(Encoding::None);
        registry.queue(name, &[]).is_ok_and(serves)
    };
    let behind = registry.queues().map(|entry| entry.name).filter(preset);
    let behind = behind.map(|queue| format!("{DEFAULT_CONTROLLER}+{queue}"));
    let first = [SUBJECT, DEFAULT_CONTROLLER];
    let rest = registry.controllers().map(|entry| entry.name);
    let rest = rest.filter(|name| !first.contains(name) && !is_driven(registry, name) && !name.contains('/'));
    let names = first.map(str::to_string).into_iter().chain(behind).chain(rest.map(str::to_string));
    names.map(|name| Scheme::parse_with(registry, &name).expect("a registered name is a scheme")).collect()
}

/// Returns the controllers of hosts that were added, which are compared where they are named.
pub fn of_hosts(registry: &Registry) -> Vec<Scheme> {
    let names = registry.controllers().map(|entry| entry.name).filter(|name| name.contains('/'));
    names.map(|name| Scheme::parse_with(registry, name).expect("a registered name is a scheme")).collect()
}

fn is_driven(registry: &Registry, name: &str) -> bool {
    registry.controller(name, &[]).is_ok_and(|config| config.needs().driven)
}

#[cfg(test)]
mod tests {
    use brakelight_core::registry::CONTROLLERS;

    use super::*;

    #[test]
    fn every_controller_is_there_once_and_those_of_todays_routers_come_first() {
        let names: Vec<String> = defaults(&Registry::standard()).iter().map(Scheme::to_string).collect();
        let first = ["abc", "cubic", "cubic+codel", "cubic+fq_codel", "cubic+pie", "cubic+red", "newreno"];
        assert_eq!(names[..first.len()], first);
        for entry in CONTROLLERS.iter().filter(|entry| !is_driven(&Registry::standard(), entry.name)) {
            assert_eq!(
                names.iter().filter(|name| *name == entry.name).count(),
                1,
                "{} in {names:?}",
                entry.name
            );
        }
    }
}
