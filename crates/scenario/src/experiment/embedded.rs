//! The experiments that the project ships.

/// File name and text of every file of `experiments/`, by name.
pub const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));
