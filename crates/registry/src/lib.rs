//! The algorithms by their names: those that Brakelight brings, and those that a program adds to a
//! [`Registry`] at run time.
//!
//! An algorithm from outside is written as a built-in one is: a configuration by
//! [`parameters!`](brakelight_core::parameters!), a type, and the trait of its kind. What a line of the table
//! says of a built-in one, two short traits say of it: [`Algorithm`] its name and its settings, and
//! [`CustomController`], [`CustomFeedback`], [`CustomQueue`], [`CustomElement`] or [`CustomRadio`] how it is
//! built and what others must know of it.
//!
//! ```
//! use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, TimeoutEvent};
//! use brakelight_core::parameters;
//! use brakelight_registry::{Algorithm, CustomController, Registry};
//! use brakelight_core::units::Bytes;
//!
//! parameters! {
//!     /// Settings of [`Still`].
//!     pub struct Config {
//!         /// The window, in packets.
//!         packets: u32 = 20, in 1..=1000, from "chosen here";
//!     }
//! }
//!
//! /// A window that never changes.
//! #[derive(Clone, Debug)]
//! pub struct Still {
//!     window: Bytes,
//! }
//!
//! impl Controller for Still {
//!     fn on_ack(&mut self, _event: &AckEvent<'_>) {}
//!     fn on_loss(&mut self, _event: &LossEvent) {}
//!     fn on_timeout(&mut self, _event: &TimeoutEvent) {}
//!     fn cwnd(&self) -> Bytes {
//!         self.window
//!     }
//! }
//!
//! impl Algorithm for Still {
//!     type Config = Config;
//!     const NAME: &'static str = "still";
//!     const SUMMARY: &'static str = "A window that never changes";
//! }
//!
//! impl CustomController for Still {
//!     fn build(config: &Config, connection: &Connection) -> Self {
//!         Still { window: Bytes(u64::from(config.packets) * connection.mss.0) }
//!     }
//! }
//!
//! let mut registry = Registry::standard();
//! registry.add_controller::<Still>().unwrap();
//! assert_eq!(registry.controller("still", &[("packets", "50")]).unwrap().name(), "still");
//! let refused = registry.controller("still", &[("packets", "0")]).unwrap_err();
//! assert_eq!(refused.to_string(), "still: packets = `0` is out of range: valid is 1 to 1000");
//! ```
//!
//! Built-in algorithms are dispatched by `match`; one from outside is called through a pointer, behind the
//! variant `Custom` of its kind's enum.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod lookup;
mod names;
#[cfg(test)]
mod tests;

pub use brakelight_core::custom::Algorithm;
pub use brakelight_core::facts::{
    Bench, BuildError, Carries, Entry, Host, Kernel, Listed, Needs, Options, Preset, Protocol, Routers,
    Traits, find, names,
};
pub use brakelight_core::queue::{LinkKind, Misfit};
pub use brakelight_links::custom::*;
pub use brakelight_links::elements::{ELEMENTS, ElementConfig, RADIOS, RadioConfig};
pub use brakelight_routers::{
    AnyQueue, BoxedQueue, CustomQueue, CustomQueueConfig, DynQueue, QUEUES, QueueConfig, QueueFactory,
};
pub use brakelight_senders::{
    AnyController, AnyFeedback, CONTROLLERS, ControllerConfig, ControllerFactory, CustomController,
    CustomControllerConfig, CustomFeedback, CustomFeedbackConfig, DynController, DynFeedback, FEEDBACKS,
    FeedbackConfig, HostedConfig,
};
pub use lookup::{AnyConfig, RegisterError, Registry};
pub use names::{COMPARED, DEFAULT_CONTROLLER, DEFAULT_QUEUE, SHORTHANDS, Shorthand};
