//! Queue disciplines: the router's half of an algorithm, one file a discipline.
//!
//! What a queue must do and may ask stands in [`brakelight_core::queue`]. [`AnyQueue`] is one of any kind,
//! dispatched by `match`, and [`QueueConfig`] the settings that it is built from.
//!
//! To add one: a new file here with the head (formulas, symbol table, deviations), a `Config`, `impl Queue`,
//! its `mod`, and one line in the table (`table.rs`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[macro_use]
extern crate brakelight_core;
#[cfg(test)]
extern crate std;

#[macro_use]
mod table;

pub mod abc;
mod any;
pub mod bmcc;
pub mod bursts;
pub mod cake;
pub mod codel;
pub mod custom;
pub mod droptail;
pub mod dualpi2;
pub mod eabc;
pub mod fifo;
pub mod fq_codel;
mod measured;
pub mod mlcp;
pub mod pie;
pub mod rcp;
pub mod red;
pub mod vcp;
pub mod xcp;
pub mod xcpw;

pub use abc::dual as abc_dual;
pub use abc::l4s as abc_l4s;
pub use any::{AnyQueue, QUEUES, QueueConfig};
pub use custom::{BoxedQueue, CustomQueue, CustomQueueConfig, DynQueue, QueueFactory};

#[cfg(test)]
mod scripted;
