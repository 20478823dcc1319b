//! A buffer of several packets from a TUN device: every packet that it is cut into lies within it.
#![no_main]

use brakelight_emulator::segment::{Joined, LONGEST, Large, is_large};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = is_large(bytes);
    if let Some(large) = Large::read(bytes, bytes.len()) {
        let mut packet = vec![0; LONGEST];
        for index in 0..large.packets() {
            let _ = large.write_headers(index, &mut packet);
            assert!(large.data_of(index).end <= bytes.len());
        }
    }
    let (first, second) = bytes.split_at(bytes.len() / 2);
    if let Some(mut joined) = Joined::begin(first) {
        joined.join(second);
    }
});
