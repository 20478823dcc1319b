//! What the kernel answers over rtnetlink about queue disciplines.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| brakelight_tcp::qdisc::read_answers(bytes));
