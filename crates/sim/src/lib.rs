//! The simulator: a scenario in, an outcome out.
//!
//! | module | holds |
//! |---|---|
//! | [`engine`] | events in a total order; moves packets between endpoints and path elements |
//! | [`packet`] | the simulated packet |
//! | [`host`] | the modelled host: both ends of a flow |
//! | `traffic` | applications |
//! | [`statistics`] | streamed measurements |

#![forbid(unsafe_code)]

pub mod engine;
pub mod host;
pub mod packet;
pub mod statistics;
mod traffic;
