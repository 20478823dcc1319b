//! Controllers in WebAssembly: what others wrote and compiled, run without access to files, clocks, the
//! network or the program's memory.
//!
//! | module | holds |
//! |---|---|
//! | [`abi`] | what a module exports, and the fields through which it is told and answers |
//! | [`module`] | reading a module, and refusing what cannot be a controller |
//! | [`controller`] | the controller `wasm`: one instance for each flow |
//!
//! The same module with the same events gives the same decisions on every machine: it can import nothing, its
//! floats are those of IEEE 754 with one NaN, and its work and its memory are counted, not timed.
#![forbid(unsafe_code)]

pub mod abi;
pub mod controller;
pub mod module;

pub use controller::add_to;
