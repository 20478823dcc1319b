//! A candidate for the arena in Rust: a window that keeps the queue short. `short_queue.c` has the same rule.
//!
//! ```sh
//! rustc --edition 2024 --target wasm32-unknown-unknown --crate-type cdylib -O \
//!   examples/candidate/short_queue.rs
//! brakelight arena short_queue.wasm
//! ```
#![no_std]

/// The buffer, field by field as in `docs/arena.md`. What is not read here has no name.
#[repr(C)]
struct Buffer {
    mss: f64,
    connection: [f64; 3],
    cwnd: f64,
    decision: [f64; 4],
    inflight: f64,
    srtt: f64,
    min_rtt: f64,
    rtt: f64,
    variation: f64,
    newly_acked: f64,
    ack: [f64; 7],
    round_start: f64,
    cwnd_limited: f64,
    recovery: f64,
    packet: [f64; 8],
    kind: f64,
    rest: [f64; 8],
    /// Not of the interface: whether the queue has been long once.
    was_long: bool,
}

static mut BUFFER: Buffer = unsafe { core::mem::zeroed() };

fn buffer() -> &'static mut Buffer {
    // There is one thread, and no function holds it while another one is called.
    unsafe { &mut *(&raw mut BUFFER) }
}

#[unsafe(no_mangle)]
extern "C" fn brakelight_abi() -> i32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn brakelight_buffer() -> *const f64 {
    &raw const buffer().mss
}

#[unsafe(no_mangle)]
extern "C" fn init() {}

#[unsafe(no_mangle)]
extern "C" fn on_ack() {
    let b = buffer();
    let queued = b.rtt - b.min_rtt;
    let target = if 0.25 * b.min_rtt > 0.01 { 0.25 * b.min_rtt } else { 0.01 };
    if queued > target {
        b.was_long = true;
        // Once a round trip: the further above the target, the more, and half at most.
        if b.round_start == 1.0 && b.recovery == 0.0 {
            let share = 0.8 * (queued - target) / queued;
            b.cwnd *= 1.0 - if share < 0.5 { share } else { 0.5 };
        }
    } else if b.cwnd_limited == 1.0 && b.recovery != 1.0 {
        // Doubles each round trip until the queue has been long once, and then adds two packets.
        b.cwnd += if b.was_long { 2.0 * b.mss * b.newly_acked / b.cwnd } else { b.newly_acked };
    }
    b.cwnd = if b.cwnd > 2.0 * b.mss { b.cwnd } else { 2.0 * b.mss };
}

#[unsafe(no_mangle)]
extern "C" fn on_loss() {
    let b = buffer();
    b.was_long = true;
    b.cwnd *= 0.7;
}

#[unsafe(no_mangle)]
extern "C" fn on_timeout() {
    let b = buffer();
    if b.kind == 1.0 {
        b.cwnd = b.mss;
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
