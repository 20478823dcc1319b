//! QUIC endpoints that run the controllers: `quinn` and `quinn-proto`, unmodified, with our congestion
//! control and our reading of the ECN counts that every receiver sends back (RFC 9000 section 19.3.2).
//!
//! | module | holds |
//! |---|---|
//! | [`adapter`] | our controllers behind the stack's trait |
//! | [`validation`] | whether path and peer can be trusted with ECN |
//! | [`report`] | receive times and marks of single packets, in DATAGRAM frames |
//! | [`driver`] | the stack without sockets, under a virtual clock or a real one |
//! | [`tap`] | the ECN counts, read off the stack's decrypted packets |
//! | [`stamps`], [`socket`] | the ECN codepoint of each packet, from where it was encrypted to the wire |
//! | [`io_counts`] | datagrams per system call: whether GSO and GRO are used |
//! | [`builder`] | builds the endpoint of an application of quinn |
//! | [`perf`] | measuring over real sockets; like `driver::net` and `driver::SocketHost`, on Linux only |
#![forbid(unsafe_code)]

pub mod adapter;
pub mod builder;
pub mod driver;
pub mod io_counts;
#[cfg(target_os = "linux")]
pub mod perf;
pub mod report;
pub mod socket;
pub mod stamps;
pub mod tap;
pub mod validation;
