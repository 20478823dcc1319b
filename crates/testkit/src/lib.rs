//! Conformance suites for algorithms, and test doubles: what tests need in place of a real host, packet or
//! link.
//!
//! | module | holds |
//! |---|---|
//! | [`conformance`] | what every algorithm is held to: one macro line for one of your own |
//! | [`packet`] | a packet of nothing but its facts |
//! | [`events`] | events for unit tests of controllers |
//! | [`link`] | links as a queue sees them: of one rate, and with outages |
//! | [`world`] | flows over one link with a FIFO buffer, whose rate and delay are known exactly |
//! | [`mutate`] | broken inputs for tests of parsers |
//! | [`mod@skip`] | tests that a machine cannot run: where every test must run, they fail |
//! | [`real_time`] | tests that wait for real time or for the kernel, each with its reason and bound |
//! | [`sources`] | the texts of this repository, for tests that read them |
//! | [`prose`] | how easy words are to read |
//! | [`page`], [`part`] | the generated parts of validation pages, for tests within this repository |
//!
//! The flows of [`world`] stand on [`brakelight_core::sender`], as every host does, and hold themselves to
//! the contract between host and controller: a test that breaks it panics.
//!
//! It is a development dependency only.

pub use brakelight_apps as apps;
pub use brakelight_core as core;
pub use brakelight_links as links;
pub use brakelight_registry as registry;

pub mod conformance;
pub mod events;
pub mod link;
pub mod mutate;
pub mod packet;
pub mod page;
pub mod part;
pub mod prose;
pub mod real_time;
mod sender;
pub mod skip;
pub mod sources;
pub mod world;

pub use link::{Fixed, Outages};
pub use packet::Sample;
pub use skip::skip;
pub use world::{FlowSpec, Link, MSS, OVERHEAD, World, inspect};
