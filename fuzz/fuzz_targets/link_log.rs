//! A link's log: what is accepted reads back the same.
#![no_main]

use brakelight_scenario::link_log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(log) = link_log::parse(text) {
        let mut written = String::new();
        link_log::write(&log, "brakelight", &mut written).expect("a string takes everything");
        assert_eq!(link_log::parse(&written).as_ref(), Ok(&log));
    }
});
