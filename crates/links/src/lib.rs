//! Path elements: what a packet passes between its sender and its receiver. Links and shapers own a
//! queue; delay lines, lossy stretches and rewriters do not. Radios own several queues, and a channel.
//!
//! Simulator and emulator run the same elements: see the contract of
//! [`PathElement`](brakelight_core::path). To add one: a new file here and a `mod` and a line in
//! [`elements`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[macro_use]
extern crate brakelight_core;
#[cfg(test)]
extern crate std;

#[macro_use]
pub mod link;

pub mod ack_loss;
pub mod ack_thin;
pub mod cellular;
pub mod circuit_breaker;
pub mod custom;
pub mod decapsulate;
pub mod delay;
pub mod delay_steps;
pub mod duplicate;
pub mod elements;
pub mod encapsulate;
pub mod gilbert_elliott;
pub mod jitter;
pub mod loss;
pub mod loss_steps;
pub mod nr;
pub mod outbox;
pub mod policer;
pub mod reorder;
pub mod replay;
pub mod rewrite;
pub mod shaper;
pub mod trace;
pub mod trains;
pub mod varying_delay;
pub mod wifi;

pub use custom::{
    BoxedElement, CustomElement, CustomElementConfig, CustomRadio, CustomRadioConfig, DynElement, DynRadio,
};

#[cfg(test)]
mod tests;
