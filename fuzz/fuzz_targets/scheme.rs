//! Schemes with options, as `--schemes` takes them: what is accepted reads back the same.
#![no_main]

use brakelight_scenario::scheme::Scheme;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(scheme) = Scheme::parse(text) {
        assert_eq!(Scheme::parse(&scheme.to_string()).as_ref(), Ok(&scheme));
    }
    let _ = Scheme::parse_list(text);
});
