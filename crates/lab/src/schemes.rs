//! Which schemes `compare` runs when none is named, and which there are: from the registry's tables.

use brakelight_core::ecn::Encoding;
use brakelight_registry::{COMPARED, CONTROLLERS, DEFAULT_CONTROLLER, QueueConfig, Registry};
use brakelight_scenario::deployment::Change;
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scheme::Scheme;

/// What stands for [`all`] in a list of schemes.
pub const ALL: &str = "all";

/// Returns the schemes of a comparison that names none: those of the registry's table, and every controller
/// that a program added and means to be compared, but for those of [hosts](of_hosts).
pub fn defaults(registry: &Registry) -> Vec<Scheme> {
    let added = compared(registry).filter(|name| CONTROLLERS.iter().all(|own| own.name != *name));
    parsed(registry, COMPARED.iter().copied().chain(added).map(str::to_string))
}

/// Returns every scheme: the [`defaults`], the default controller behind every queue that schemes have
/// settings for, which are those of today's routers, and every other controller with the queue that it
/// brings.
pub fn all(registry: &Registry) -> Vec<Scheme> {
    let preset = |name: &&str| {
        let serves = |queue: QueueConfig| queue.traits().preset.is_some() && queue.speaks(Encoding::None);
        registry.queue(name, &[]).is_ok_and(serves)
    };
    let behind = registry.queues().map(|entry| entry.name).filter(preset);
    let behind = behind.map(|queue| format!("{DEFAULT_CONTROLLER}+{queue}"));
    let mut schemes = defaults(registry);
    for scheme in parsed(registry, behind.chain(compared(registry).map(str::to_string))) {
        if !schemes.iter().any(|other| other.to_string() == scheme.to_string()) {
            schemes.push(scheme);
        }
    }
    schemes
}

/// Returns the controllers of hosts that were added, which are compared where they are named.
pub fn of_hosts(registry: &Registry) -> Vec<Scheme> {
    let names = registry.controllers().map(|entry| entry.name).filter(|name| is_of_host(registry, name));
    parsed(registry, names.map(str::to_string))
}

fn is_of_host(registry: &Registry, name: &str) -> bool {
    registry.controller(name, &[]).is_ok_and(|config| config.hosted().is_some())
}

/// Reads a list of schemes of algorithms of `registry`, or `all`.
pub fn parse_list(registry: &Registry, text: &str) -> Result<Vec<Scheme>, InputError> {
    if text.trim() == ALL { Ok(all(registry)) } else { Scheme::parse_list_with(registry, text) }
}

/// Returns those of `schemes` that need no more than what somebody can change, today's among them.
pub fn within(schemes: Vec<Scheme>, can: Change) -> Vec<Scheme> {
    schemes.into_iter().filter(|scheme| can.allows(scheme.deployment().change)).collect()
}

/// The controllers that decide by themselves and are more than a demonstration.
fn compared(registry: &Registry) -> impl Iterator<Item = &'static str> {
    let is = |name: &&str| {
        let needs = registry.controller(name, &[]).map(|config| config.needs());
        needs.is_ok_and(|needs| !needs.driven && !needs.demonstration)
    };
    registry.controllers().map(|entry| entry.name).filter(|name| !is_of_host(registry, name)).filter(is)
}

fn parsed(registry: &Registry, names: impl Iterator<Item = String>) -> Vec<Scheme> {
    names.map(|name| Scheme::parse_with(registry, &name).expect("a registered name is a scheme")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brakelight_core::controller::Connection;
    use brakelight_registry::{ControllerConfig, ControllerFactory, DynController, Needs};

    use super::*;

    fn names(schemes: &[Scheme]) -> Vec<String> {
        schemes.iter().map(Scheme::short_name).collect()
    }

    #[test]
    fn the_default_list_is_what_a_reader_expects_and_all_has_every_controller_once() {
        let registry = Registry::standard();
        let defaults = names(&defaults(&registry));
        let expected = [
            "cubic",
            "bbr3",
            "prague",
            "cubic+fq_codel",
            "cubic+cake",
            "copa",
            "abc",
            "abc-adaptive",
            "bmcc",
            "quicdc",
        ];
        for name in expected {
            assert!(defaults.iter().any(|own| own == name), "{name} in {defaults:?}");
        }
        assert!(defaults.len() <= 12, "a table that fits a screen: {defaults:?}");
        let all = names(&all(&registry));
        assert_eq!(all[..defaults.len()], defaults);
        for name in compared(&registry).chain(["cubic+codel", "cubic+pie", "cubic+red"]) {
            assert_eq!(all.iter().filter(|own| *own == name).count(), 1, "{name} in {all:?}");
        }
        assert!(!all.iter().any(|name| name == "external"), "nobody drives it");
    }

    /// A controller from outside.
    #[derive(Debug)]
    struct Added {
        demonstration: bool,
    }

    impl ControllerFactory for Added {
        fn needs(&self) -> Needs {
            Needs { demonstration: self.demonstration, ..Needs::PLAIN }
        }
        fn build(&self, connection: &Connection) -> Box<dyn DynController> {
            Box::new(ControllerConfig::new("cubic", &[]).unwrap().build(connection))
        }
    }

    #[test]
    fn a_demonstration_is_compared_only_where_it_is_named() {
        let mut registry = Registry::standard();
        for (name, demonstration) in [("mine", false), ("shown", true)] {
            registry.add_controller_factory(name, "added", Arc::new(Added { demonstration })).unwrap();
        }
        for list in [defaults(&registry), all(&registry)] {
            let names = names(&list);
            assert!(names.iter().any(|name| name == "mine") && !names.iter().any(|name| name == "shown"));
        }
        assert_eq!(names(&parse_list(&registry, "shown,cubic").unwrap()), ["shown", "cubic"]);
        assert_eq!(parse_list(&registry, " all").unwrap().len(), all(&registry).len());
    }

    #[test]
    fn what_somebody_can_change_decides_what_is_compared() {
        let list = || Scheme::parse_list("abc,cubic,copa,cubic+codel").unwrap();
        assert_eq!(names(&within(list(), Change::Senders)), ["cubic", "copa"]);
        assert_eq!(names(&within(list(), Change::Queue)), ["cubic", "cubic+codel"]);
        assert_eq!(within(list(), Change::Both).len(), 4);
    }
}
