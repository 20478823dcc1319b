//! Filters and estimators that controllers, receivers and queues share: one a file.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[macro_use]
extern crate brakelight_core;
#[cfg(test)]
extern crate std;

pub mod adpm;
pub mod forecast;
pub mod load_factor;
pub mod one_way_queueing;
pub mod poisson_brownian;
pub mod sliding_min;
pub mod sliding_rate;
pub mod space_saving;
pub mod windowed_max;
pub mod windowed_min;
