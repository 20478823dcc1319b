//! A check of an experiment: what is accepted reads back the same.
#![no_main]

use brakelight_scenario::experiment::Expression;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(expression) = Expression::parse(text) {
        assert!(Expression::parse(expression.text()).is_ok());
    }
});
