//! `quinn-proto` under a virtual clock without sockets, or under the real one with them: one kind of end in both.
//!
//! | file | holds |
//! |---|---|
//! | `end` | one end of a connection: timers, the gate that lets packets go at the controller's rate, reports to the peer |
//! | [`net`] | ends over a real socket |
//! | `side` | an end that a simulator carries |
//! | `flow` | both ends of a flow as one [`Endpoint`](brakelight_core::endpoint::Endpoint)-like machine, with its application |
//! | `application` | what the sending end offers |
//! | `identity` | the fixed certificate and the TLS configurations |
//! | `slab` | the payloads of packets on their way |
//!
//! Under a virtual clock a run repeats itself packet for packet: the stack's generator is seeded, connection ids have one length, the
//! certificate is fixed and of Ed25519, whose signatures have one length, and the size of packets is not searched for. What
//! stays random is what TLS keeps to itself: keys and hellos, in which nothing but their length matters to the network.

mod application;
mod end;
mod flow;
pub mod identity;
pub mod net;
mod side;
mod slab;

pub use application::{Application, UnsupportedTraffic};
pub use flow::{Direction, Flow, FlowSettings, Packet, SetupError};
pub use side::{Outgoing, Side, SideSettings};
pub use slab::Handle;
