//! A recipe of a trace.
#![no_main]

use brakelight_scenario::trace::recipe::Recipe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(recipe) = toml::from_str::<Recipe>(text) {
        let _ = recipe.check();
    }
});
