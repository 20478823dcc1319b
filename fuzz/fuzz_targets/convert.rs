//! Other files that become traces: CSV, captures, iperf3's JSON. The first byte says which.
#![no_main]

use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::convert::{Format, convert};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let formats = [Format::Csv, Format::Pcap, Format::Iperf3, Format::detect(bytes)];
    let _ = convert(bytes, formats[usize::from(kind % 4)], OPPORTUNITY);
});
