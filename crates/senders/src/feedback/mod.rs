//! Receivers, one file an algorithm: what an ACK must carry, and when it must leave.

pub mod accecn;
pub mod bmcc;
pub mod delayed;
pub mod explicit;
pub mod lying;
pub mod receive_times;
pub mod receive_timestamps;
pub mod rfc3168;
pub mod sprout;

#[cfg(test)]
pub(crate) mod arrivals;
