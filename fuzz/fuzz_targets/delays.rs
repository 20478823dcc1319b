//! Lists of delays: LeoReplayer's and IRTT's.
#![no_main]

use brakelight_scenario::trace::convert::delays::delays;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = delays(bytes);
});
