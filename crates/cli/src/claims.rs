//! Checks of the papers' claims that no table of measurements can make: experiments ask for them by name, as `builtin:NAME`.

use brakelight_scenario::experiment::Finding;

/// Runs the check called `name`, if there is one.
pub fn builtin(name: &str) -> Option<Finding> {
    let _ = name;
    None
}
