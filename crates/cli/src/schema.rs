//! `schema`: JSON Schemas of what goes in and what comes out.

use brakelight_registry::Registry;
use brakelight_scenario::schema;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::text;

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The document
    pub document: Document,
}

/// A document with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// Scenario files, as TOML or JSON
    Scenario,
    /// What `compare`, `run` and `perf` print with `--format json`
    Outcome,
    /// Experiment files
    Experiment,
    /// What `attack` prints with `--format json`
    Attack,
}

/// Runs the command. The schemas name the algorithms of `registry`.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    text::print_json(&match arguments.document {
        Document::Scenario => schema::scenario(registry),
        Document::Outcome => schema::outcome(),
        Document::Experiment => schema::experiment(registry),
        Document::Attack => schema::attack(),
    })
}
