//! `quinn-proto` under a virtual clock without sockets, or under the real one with them: one kind of end in
//! both.
//!
//! | file | holds |
//! |---|---|
//! | `end` | one end of a connection: timers, departures at the controller's rate, reports to the peer |
//! | [`net`] | ends over a real socket |
//! | `side` | an end that a simulator carries |
//! | `flow` | both ends of a connection as one state machine, with its application |
//! | `bundle` | a flow of short connections that come and go |
//! | `host` | either of them: what a simulator plugs in |
//! | `sockets` | either of them, or a flow of another stack, over two UDP sockets, under the real clock |
//! | [`measured`] | flows over sockets from beginning to end, as rows of results |
//! | `connection_id` | connection IDs by which many connections share a socket |
//! | `message` | an application's messages in DATAGRAM frames |
//! | `identity` | the fixed certificate and the TLS configurations |
//! | `slab` | the payloads of packets on their way |
//!
//! Under a virtual clock a run repeats itself packet for packet: the stack's generator is seeded, connection
//! ids have one length, the certificate is fixed and of Ed25519, whose signatures have one length, and the
//! size of packets is not searched for. What stays random is what TLS keeps to itself: keys and hellos, in
//! which nothing but their length matters to the network.

mod bundle;
mod connection_id;
mod end;
mod flow;
mod host;
pub mod identity;
#[cfg(target_os = "linux")]
pub mod measured;
mod message;
#[cfg(target_os = "linux")]
pub mod net;
mod side;
mod slab;
#[cfg(target_os = "linux")]
mod sockets;

pub use flow::{Flow, FlowSettings, Packet, SetupError, Totals};
pub use host::Host;
pub use side::{Outgoing, Side, SideSettings};
pub use slab::Handle;
#[cfg(target_os = "linux")]
pub use sockets::{FlowEnds, SocketHost};
