//! What to run and what came out, as data.
//!
//! | module | holds |
//! |---|---|
//! | [`scenario`] | what to run: links, flows, paths, what to record |
//! | [`traffic`] | what an application asks of its flow |
//! | [`spelled`] | an algorithm's settings together with the words they were given in |
//! | [`outcome`] | what came out: one row per run, time series, link logs |
//! | [`documents`] | the JSON documents of the command line, and where a result came from |
#![forbid(unsafe_code)]

pub mod documents;
pub mod outcome;
pub mod scenario;
pub mod spelled;
pub mod traffic;
