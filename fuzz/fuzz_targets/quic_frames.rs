//! The payload of a QUIC packet: ACKs have ranges that fall, within what was sent.
#![no_main]

use brakelight_quic::tap::frames;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|payload: &[u8]| {
    let _ = frames::acks(payload, |ack| {
        let mut before = None;
        for range in ack.ranges() {
            assert!(range.start() <= range.end() && *range.end() <= ack.largest);
            assert!(before.is_none_or(|before| *range.end() + 1 < before));
            before = Some(*range.start());
        }
    });
    let _ = frames::stream_end(payload);
    let _ = frames::is_eliciting(payload);
});
