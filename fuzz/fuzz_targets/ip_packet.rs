//! A packet behind the emulator: what is read can be marked, and stays what it was.
#![no_main]

use brakelight_core::ecn::Ecn;
use brakelight_emulator::packet::{Header, headers, write_ecn};
use brakelight_emulator::tuple::FiveTuple;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = headers(bytes);
    let Ok(header) = Header::read(bytes) else { return };
    assert!(header.size as usize <= bytes.len());
    let flow = FiveTuple::read(bytes).map(|tuple| tuple.to_string());
    let mut bytes = bytes.to_vec();
    write_ecn(&mut bytes, Ecn::Ce);
    assert_eq!(Header::read(&bytes), Ok(Header { ecn: Ecn::Ce, ..header }));
    assert_eq!(FiveTuple::read(&bytes).map(|tuple| tuple.to_string()), flow);
});
