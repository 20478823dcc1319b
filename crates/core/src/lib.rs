//! The contract of congestion control algorithms: what hosts, controllers, receivers, routers and path
//! elements tell each other. No algorithm is here.
//!
//! Time comes in as an argument and decisions go out as values, so the same code runs in simulation,
//! in emulation and in real endpoints. `#![no_std]` makes the compiler prove it.
//!
//! | module | holds |
//! |---|---|
//! | [`time`], [`units`], [`ecn`], [`packet`], [`random`] | the shared nouns |
//! | [`controller`] | the sender's half of an algorithm, and the contract with its host |
//! | [`sender`] | what every host does for its controller: delivery, round trips, RTT, pacing, episodes |
//! | [`feedback`] | the receiver's half |
//! | [`queue`] | the router's half |
//! | [`path`] | what a packet passes |
//! | [`endpoint`], [`host`] | what sits at the ends of a path |
//! | [`mod@parameters`] | configuration structs |
//! | [`facts`] | what is to be known of an algorithm by those who do not run it |
//! | [`custom`], [`dispatch`] | what the enums over all algorithms of a kind are made of |
//! | [`suggest`] | what may be meant by a name that does not exist |
//! | [`frugal`] | queues that waste no memory |
//!
//! The algorithms are in `brakelight-senders`, `brakelight-routers` and `brakelight-links`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
pub mod dispatch;
#[macro_use]
pub mod parameters;

pub mod controller;
pub mod custom;
pub mod ecn;
pub mod endpoint;
pub mod facts;
pub mod feedback;
pub mod frugal;
pub mod host;
pub mod packet;
pub mod path;
#[cfg(test)]
mod proofs;
pub mod queue;
pub mod random;
pub mod sender;
pub mod suggest;
pub mod time;
pub mod units;
