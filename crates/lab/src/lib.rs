//! What people do with runs: compare schemes, judge claims, rank, report. A library: it parses no command
//! line, prints nothing, ends no process, and leaves threads to its caller.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@compare`], [`mod@run`], [`mod@reproduce`], [`parity`] | one job each, from request to result |
//! | [`mod@attack`], [`mod@evaluate`], [`conformance`], [`stability`] | the same |
//! | [`arena`] | one score of a sender, on links that it need not have seen |
//! | [`mod@bench`], [`listing`] | the same |
//! | [`checks`] | what the papers say of the rules themselves, measured on the code |
//! | [`analysis`] | the papers' mathematics: fluid models, and where they settle |
//! | [`jobs`], [`runner`], [`progress`] | many runs at once, by any simulator or stack; how far they are |
//! | [`mod@sweep`], [`frame`] | grids of runs; rows as columns, for CSV, Arrow and Parquet |
//! | [`setup`] | what a comparison assumes where nothing else is asked for |
//! | [`table`], [`summary`] | rows, and what they say together: medians, ranking, the Pareto frontier |
//! | [`decision`], [`mod@advise`] | what to deploy, by what somebody can change |
//! | [`interval`], [`fairness`] | how sure the numbers of several runs are; what two flows do to each other |
//! | [`report`], [`output`], [`series`], [`text`] | results as HTML, as files, as time series, as text |
//! | [`qlog`] | what each end of a flow did, as QUIC's logs |
//! | [`figures`] | results as pictures for a paper |
//! | [`fetch`] | public recordings from the network |
//! | [`schemes`], [`input`], [`values`] | default schemes, files read, values as people write them |
//! | [`origin`], [`error`] | where a result comes from, what can go wrong |
#![cfg_attr(
    all(feature = "quic", target_os = "linux"),
    doc = "| [`hosted`] | hosts from outside over real sockets |"
)]
#![cfg_attr(feature = "quic", doc = "| [`quinn`] | the real QUIC stack as a host of the simulator |")]
#![forbid(unsafe_code)]

pub mod advise;
pub mod analysis;
pub mod arena;
pub mod attack;
pub mod bench;
pub mod checks;
pub mod compare;
pub mod conformance;
pub mod decision;
pub mod error;
pub mod evaluate;
pub mod fairness;
pub mod fetch;
pub mod figures;
pub mod frame;
#[cfg(all(feature = "quic", target_os = "linux"))]
pub mod hosted;
pub mod input;
pub mod interval;
pub mod jobs;
pub mod listing;
pub mod origin;
pub mod output;
mod parallel;
pub mod parity;
pub mod progress;
pub mod qlog;
#[cfg(feature = "quic")]
pub mod quinn;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod runner;
pub mod schemes;
pub mod series;
pub mod setup;
pub mod stability;
pub mod summary;
pub mod sweep;
pub mod table;
#[cfg(test)]
mod testing;
pub mod text;
pub mod traces;
pub mod values;

pub use attack::{Attack, attack};
pub use compare::{Compare, compare};
pub use error::Error;
pub use progress::Progress;
pub use reproduce::reproduce;
pub use run::run;
pub use runner::{Runner, Simulator};
pub use sweep::{Grid, sweep};
pub use table::Table;
