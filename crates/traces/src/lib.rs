//! Traces of delivery opportunities: the embedded ones, where names lead, what a trace is like, and how to
//! make one.
//!
//! | module | holds |
//! |---|---|
//! | [`embedded`] | the synthetic traces that come with the program |
//! | [`catalogue`] | public recordings: where they lie, under which licence |
//! | [`names`] | from what a scenario calls a trace to the trace itself |
//! | [`conditions`] | delay and loss beside a trace, and what it cannot tell |
//! | [`statistics`] | mean, variation, autocorrelation, outages |
//! | [`recipe`] | what a synthetic trace is made of, as a TOML file |
//! | [`synth`] | the seeded generator |
//! | [`measured`] | links with the distribution and the memory of measured ones |
//! | [`fit`] | from a recording to a recipe |
//! | [`convert`] | from captures, tables and iperf3 to a trace, and back to tables |
//! | [`recording`] | a recording with delay and loss, and its file format, `.bltrace` |
//! | [`plot`] | a picture of a trace in the letters of a terminal |
//! | [`input`] | files read whole, up to a limit for each kind |
//! | [`checksum`] | SHA-256, by which files and runs are known |
//!
//! The trace itself, and the one parser of Mahimahi's format, is [`brakelight_links::trace::Trace`].
#![forbid(unsafe_code)]

use brakelight_core::units::Bytes;

pub mod catalogue;
pub mod checksum;
pub mod conditions;
pub mod convert;
pub mod embedded;
pub mod fit;
pub mod input;
pub mod measured;
pub mod names;
pub mod plot;
pub mod recipe;
pub mod recording;
pub mod statistics;
pub mod synth;

/// What one opportunity carries where a rate is made into opportunities or opportunities into a rate: one
/// full IP packet, so that one opportunity a millisecond is 12 Mbit/s. A link that counts as Mahimahi does
/// adds 4 bytes.
pub const OPPORTUNITY: Bytes = Bytes(1500);
