//! A scenario file: what is accepted reads back the same.
#![no_main]

use brakelight_scenario::file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(scenario) = file::read("x.toml", text) {
        let written = file::write(&scenario);
        assert_eq!(file::read("x.toml", &written).as_ref(), Ok(&scenario), "{written}");
    }
});
