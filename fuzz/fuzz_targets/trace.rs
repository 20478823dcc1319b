//! A trace in Mahimahi's format: what is accepted reads back the same.
#![no_main]

use brakelight_links::trace::Trace;
use brakelight_scenario::trace::convert::to_mahimahi;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = Trace::parse(bytes) {
        assert_eq!(Trace::parse(to_mahimahi(&trace).as_bytes()).as_ref(), Ok(&trace));
    }
});
