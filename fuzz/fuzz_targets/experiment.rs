//! An experiment file: what it runs and what it checks.
#![no_main]

use brakelight_scenario::experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = experiment::read("x.toml", text);
});
