//! The private extension `brakelight._brakelight`: the library as Python sees it. It is thin: it converts
//! arguments, calls the library with the GIL released, and converts results. What people import is the Python
//! in `brakelight/`.
//!
//! | module | holds |
//! |---|---|
//! | [`lab`] | compare, run, sweep, attack, reproduce, lists of what there is |
//! | [`arena`], [`dataset`] | contests of senders; what they saw and did, to learn from |
//! | [`scenario`], [`trace`] | what is run |
//! | [`simulation`] | a run that is stepped |
//! | [`table`], [`frame`] | results: rows, and columns for Arrow |
//! | [`work`] | long work: off the GIL, watched, stopped by Ctrl-C |
//! | [`registry`], [`controller`], [`queue`], [`options`] | names of algorithms; classes in Python |
//! | [`environment`], [`dial`] | environments to learn in; a queue that an agent sets |
//! | `model` | models that decide, in ONNX (feature `onnx`) |
//! | [`command`] | the command |
//! | [`travel`] | what is pickled: fields, rows as bytes |
//! | [`error`], [`quantity`] | exceptions; times, rates and sizes as text |
#![deny(unsafe_code)]
// Nothing here is public: the documentation of the private modules is the whole.
#![allow(rustdoc::private_intra_doc_links)]

mod arena;
mod command;
mod controller;
mod dataset;
mod dial;
mod environment;
mod error;
mod frame;
mod lab;
#[cfg(feature = "onnx")]
mod model;
mod options;
mod quantity;
mod queue;
mod registry;
mod scenario;
mod simulation;
mod table;
mod trace;
mod travel;
mod work;

use pyo3::prelude::*;

/// The extension's module.
#[pymodule]
mod _brakelight {
    #[pymodule_export]
    use super::arena::{arena, arena_rounds, arena_scenarios};
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::controller::{
        AckInfo, ConnectionInfo, IdleInfo, LossInfo, PacketRecord, SendInfo, TimeoutInfo,
    };
    #[pymodule_export]
    use super::dataset::arena_dataset;
    #[pymodule_export]
    use super::dial::Dial;
    #[pymodule_export]
    use super::environment::Environments;
    #[pymodule_export]
    use super::error::{InputError, RunError};
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::lab::{Sweep, attack, compare, listing, reproduce, run};
    #[cfg(feature = "onnx")]
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::quantity::quantity;
    #[pymodule_export]
    use super::queue::{PacketView, PlaceInfo};
    #[pymodule_export]
    use super::registry::{register_controller, register_queue};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::simulation::{FlowView, LinkView, Simulation};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::Trace;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
