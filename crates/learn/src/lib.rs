//! Controllers that learning agents drive. A connection's time is cut into monitor intervals; at the end of
//! each the agent learns what was measured, and decides a window or a rate.
//!
//! | module | holds |
//! |---|---|
//! | [`interval`] | what is measured of a monitor interval |
//! | [`preset`] | observations, actions, rewards |
//! | [`monitor`] | the controller: it measures, asks and sets |
//! | [`remote`] | an agent outside, for environments: told and asked between two steps of a simulation |
//! | `onnx` (feature `onnx`) | an agent that is a model: the controller `onnx` of the command |
//!
//! Environments and the command have the same controller, so a model decides in both alike.
#![forbid(unsafe_code)]

pub mod interval;
pub mod monitor;
#[cfg(feature = "onnx")]
pub mod onnx;
pub mod preset;
pub mod remote;
