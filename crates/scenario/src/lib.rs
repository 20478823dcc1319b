//! What to run and what came out, as data.
//!
//! | module | holds |
//! |---|---|
//! | [`scenario`] | what to run: links, flows, paths, what to record |
//! | [`buffer`] | a buffer's size, in packets, bytes or bandwidth-delay products |
//! | [`build`] | from a link as data to its path element |
//! | [`clock`] | a receiver's clock |
//! | [`trace`] | the crate `brakelight-traces`, under the name that scenarios have for it |
//! | [`traffic`] | what an application asks of its flow |
//! | [`scheme_string`] | an algorithm's settings together with the words they were given in |
//! | [`outcome`] | what came out: one row per run, time series, link logs |
//! | [`link_log`] | link logs as text, as Mahimahi writes them |
//! | [`measure`] | what links are watched for, simulated or real |
//! | [`median`] | several runs as one row |
//! | [`documents`] | the JSON documents of the command line, and where a result came from |
//! | [`mod@file`] | scenario files: TOML in, TOML out; the same words in JSON and whatever else serde reads |
//! | [`identity`] | the hash by which a run is known |
//! | [`schema`] | JSON Schemas of scenarios, experiments and results |
//! | [`scheme`], [`compare`] | the shorthand of the command line, and the scenario behind it |
//! | [`deployment`] | what must be changed to use a scheme in place of what runs today |
//! | [`decision`] | what a comparison says to deploy |
//! | [`experiment`] | a paper's figure as a matrix to run and checks to pass |
//! | [`cost`] | what a scenario takes to simulate, estimated before it runs |
//! | [`limits`] | how long a run may be, by what its senders can count |
//! | [`routers`] | what controllers need of the routers on their path |
//! | [`mod@reference`] | real measurements, and how close a model must lie |
//! | [`input`] | files read whole, up to a limit for each kind: the module of `brakelight-traces` |
//! | [`problem`] | what can be wrong with an input |
#![forbid(unsafe_code)]

mod agreement;
pub mod buffer;
pub mod build;
pub mod clock;
pub mod compare;
pub mod cost;
pub mod decision;
pub mod deployment;
mod document;
pub mod documents;
pub mod experiment;
pub mod file;
pub mod identity;
pub mod limits;
pub mod link_log;
pub mod measure;
pub mod median;
pub mod outcome;
pub mod problem;
pub mod reference;
pub mod routers;
pub mod scenario;
pub mod schema;
pub mod scheme;
pub mod scheme_string;
mod validate;

/// What an application asks of its flow: the configuration of every application.
pub use brakelight_apps::traffic;
/// Recordings and recipes: what the trace of a link is read or made from.
pub use brakelight_traces as trace;
/// The same limits hold for scenarios and experiments as for recordings.
pub use brakelight_traces::input;
