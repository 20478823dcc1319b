//! Which schemes `compare` runs when none is named: made from the registry, so that a new algorithm is in it at once.

use brakelight_core::registry::{CONTROLLERS, QUEUES};
use brakelight_scenario::scheme::Scheme;

/// What comes first, where it is registered; the queues that a router of today has, below the controller it has.
const FIRST: &[&str] = &["abc", "cubic", "cubic+codel", "cubic+fq_codel", "cubic+pie", "cubic+red"];

/// The schemes of `FIRST`, then every other controller with the queue that it brings.
pub fn defaults() -> Vec<Scheme> {
    let registered = |name: &&str| {
        let (controller, queue) = name.split_once('+').unwrap_or((name, "droptail"));
        CONTROLLERS.iter().any(|entry| entry.name == controller)
            && QUEUES.iter().any(|entry| entry.name == queue)
    };
    let first = FIRST.iter().copied().filter(registered);
    let rest = CONTROLLERS.iter().map(|entry| entry.name).filter(|name| !FIRST.contains(name));
    first.chain(rest).map(|name| Scheme::parse(name).expect("a registered name is a scheme")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_is_there_once() {
        let names: Vec<String> = defaults().iter().map(Scheme::to_string).collect();
        for entry in CONTROLLERS {
            assert_eq!(
                names.iter().filter(|name| *name == entry.name).count(),
                1,
                "{} in {names:?}",
                entry.name
            );
        }
    }
}
