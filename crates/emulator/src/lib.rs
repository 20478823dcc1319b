//! The emulator: real applications over the links and routers of the simulator, under a real clock.
//!
//! A command runs in a network namespace of its own. What it sends comes out of a TUN device there, passes the same
//! `core::path` elements and `core::queue` disciplines that a simulation runs, and goes into a TUN device on the outer
//! side; the other direction likewise, each in a thread of its own.
