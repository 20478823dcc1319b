//! What every receiver owes its host, whatever arrives: run over the registry, so a new one gets it for free.

use brakelight_registry::{FEEDBACKS, FeedbackConfig};
use brakelight_testkit::conformance::feedback::{self, Feedback};

/// Settings besides the defaults that change what a receiver does.
const VARIANTS: &[(&str, &[(&str, &str)])] =
    &[("delayed", &[("echo", "exact")]), ("delayed", &[("on_change", "ack")]), ("lying", HONEST)];

/// What makes the receiver that lies say what arrived: then it owes its host what all others do.
const HONEST: &[(&str, &str)] = &[("marks", "false")];

/// Receivers whose echo is a latch, so that it does not add up to what arrived.
const LATCHED: &[&str] = &["rfc3168"];

/// Every receiver with its defaults, and the variants.
fn receivers() -> impl Iterator<Item = Feedback> {
    let truthful = FEEDBACKS.iter().filter(|entry| entry.name != "lying");
    let defaults = truthful.map(|entry| (entry.name, &[][..]));
    defaults.chain(VARIANTS.iter().copied()).map(|(name, options)| Feedback {
        config: FeedbackConfig::new(name, options).expect("a registered name"),
        adds_up: !LATCHED.contains(&name),
    })
}

#[test]
fn every_receiver_acknowledges_in_time_and_says_what_arrived() {
    receivers().for_each(|receiver| feedback::acknowledges_in_time_and_says_what_arrived(&receiver));
}

#[test]
fn an_unmarked_flow_hears_of_no_marks() {
    receivers().for_each(|receiver| feedback::tells_an_unmarked_flow_of_no_marks(&receiver));
}
