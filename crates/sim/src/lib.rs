//! The simulator: a scenario in, an outcome out.
//!
//! | module | holds |
//! |---|---|
//! | [`simulation`] | one run |
//! | [`network`] | a scenario's links and paths as elements and routes |
//! | [`engine`] | events in a total order; moves packets between endpoints and path elements |
//! | [`packet`] | the simulated packet |
//! | [`host`] | the modelled host: both ends of a flow |
//! | [`outside`] | hosts from outside: flows of transports that others wrote |
//! | [`statistics`], [`report`] | what is watched |

#![forbid(unsafe_code)]

pub mod engine;
pub mod host;
pub mod network;
pub mod outside;
pub mod packet;
pub mod report;
pub mod simulation;
pub mod statistics;

pub use network::{SetupError, Traces};
pub use simulation::{
    ActionError, FlowPhase, FlowView, LinkView, PacketView, RunError, Simulation, run, run_with,
};
