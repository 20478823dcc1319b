//! A feedback report: what is accepted reads back the same. And the requests of `perf`.
#![no_main]

use brakelight_quic::perf::wire::{LENGTH, Received, Request};
use brakelight_quic::report::FeedbackPacket;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(report) = FeedbackPacket::decode(bytes) {
        assert_eq!(FeedbackPacket::decode(&report.encode()).as_ref(), Ok(&report));
    }
    if let Some(request) = bytes.first_chunk::<LENGTH>().and_then(Request::decode) {
        assert_eq!(Request::decode(&request.encode()), Some(request));
    }
    if let Some(received) = bytes.first_chunk() {
        let _ = Received::decode(received);
    }
});
