//! A recording in the format `.bltrace`: what is accepted reads back the same.
#![no_main]

use brakelight_scenario::trace::recording::file::{read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(recording) = read(bytes) {
        let written = write(&recording).expect("what was read can be written");
        assert_eq!(read(&written).as_ref(), Ok(&recording));
    }
});
