#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[macro_use]
extern crate brakelight_core;
#[cfg(test)]
extern crate std;

#[macro_use]
mod table;

mod any_controller;
mod any_feedback;
pub mod controller;
pub mod custom;
pub mod feedback;

pub use any_controller::{AnyController, CONTROLLERS, ControllerConfig};
pub use any_feedback::{AnyFeedback, FEEDBACKS, FeedbackConfig};
pub use custom::{
    ControllerFactory, CustomController, CustomControllerConfig, CustomFeedback, CustomFeedbackConfig,
    DynController, DynFeedback, HostedConfig,
};
