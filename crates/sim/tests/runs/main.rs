//! Whole runs: what comes out of them, and that neither steps, clones, actions nor saved events change it.

mod actions;
mod joints;
mod outage;
mod outcomes;
mod stepping;
#[path = "../support/mod.rs"]
mod support;
