//! Bounds of an attack: what is accepted reads back the same.
#![no_main]

use brakelight_lab::attack::Bounds;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(bounds) = text.parse::<Bounds>() {
        assert_eq!(bounds.to_string().parse().as_ref(), Ok(&bounds));
    }
});
