//! Congestion control algorithms written once, without a clock, a socket, a thread or a log.
//!
//! Time comes in as an argument and decisions go out as values, so the same code runs in simulation,
//! in emulation and in real endpoints. `#![no_std]` makes the compiler prove it.
//!
//! | module | holds |
//! |---|---|
//! | [`time`], [`units`], [`ecn`], [`packet`], [`random`] | the shared nouns |
//! | [`mod@parameters`] | configuration structs |
//! | [`suggest`] | what may be meant by a name that does not exist |
//! | [`table`], [`registry`] | the one-line-per-algorithm tables and what is made of them |
//! | [`estimate`] | filters: one per file |
//! | [`controller`] | senders: one file per algorithm |
//! | [`sender`] | the contract between host and controller: delivery, round trips, RTT, pacing, episodes |
//! | [`feedback`] | receivers: what an ACK must carry |
//! | [`queue`] | routers: one file per queue discipline |
//! | [`path`] | links, delay lines, loss: what a packet passes |
//! | [`endpoint`] | what sits at the ends of a path |
//! | [`host`] | transports from outside |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
mod dispatch;
#[macro_use]
pub mod parameters;
#[macro_use]
pub mod table;

pub mod controller;
pub mod ecn;
pub mod endpoint;
pub mod estimate;
pub mod feedback;
pub mod frugal;
pub mod host;
pub mod packet;
pub mod path;
pub mod queue;
pub mod random;
pub mod registry;
pub mod sender;
pub mod suggest;
pub mod time;
pub mod units;
