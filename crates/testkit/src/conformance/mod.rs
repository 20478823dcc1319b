//! The conformance suites: what every controller, feedback, queue, path element and application must keep,
//! whatever it does.
//!
//! An algorithm from outside is held to what the built-in ones are held to by one line in its tests, which
//! names the registry that it is in and its name there. Lists of options, where they follow, are tried
//! besides the defaults:
//!
//! ```
//! # mod mine {
//! #     pub fn registry() -> brakelight_registry::Registry {
//! #         brakelight_registry::Registry::standard()
//! #     }
//! # }
//! brakelight_testkit::conformance_controller!(crate::mine::registry(), "newreno");
//! brakelight_testkit::conformance_queue!(
//!     crate::mine::registry(), "codel", [("ecn", "true")], [("target", "1ms")]
//! );
//! brakelight_testkit::conformance_element!(crate::mine::registry(), "jitter", [("keep_order", "false")]);
//! # fn main() {}
//! ```
//!
//! Each line is a module of tests, called after the kind; two lines of one kind stand in modules of their
//! own.

use std::fmt::Debug;

use brakelight_core::ecn::Encoding;
use proptest::test_runner::{Config, TestRunner};

pub mod application;
pub mod controller;
pub mod feedback;
pub mod host;
mod macros;
pub mod path;
pub mod queue;

/// Every encoding.
const ENCODINGS: [Encoding; 7] = [
    Encoding::None,
    Encoding::Classic,
    Encoding::Abc,
    Encoding::AbcProxied,
    Encoding::Bmcc,
    Encoding::L4s,
    Encoding::Explicit,
];

/// What a message calls an algorithm: its settings.
fn label(config: &impl Debug) -> String {
    format!("{config:?}")
}

/// Tries so many random inputs, and writes no file of those that failed.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) })
}
