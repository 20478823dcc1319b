//! What every queue discipline must keep, whatever it does: run over the registry with default options, and
//! over the options that switch other behaviour on. A new line in the registry is tested without a line here.

use brakelight_registry::{Options, QUEUES, QueueConfig};
use brakelight_routers::abc_dual::Buffers;
use brakelight_testkit::conformance::queue::{self, Queue};

/// Options that switch on what the defaults leave off; each is tested like a queue of its own.
const VARIATIONS: &[(&str, Options<'_>)] = &[
    ("abc", &[("variant", "prototype")]),
    ("abc", &[("variant", "adaptive")]),
    ("abc", &[("variant", "adaptive"), ("loop_delay", "2ms"), ("cushion", "4")]),
    ("abc_dual", &[("variant", "adaptive")]),
    ("abc", &[("integral", "1s"), ("target", "10ms")]),
    ("abc", &[("marking", "hotnets"), ("x", "sojourn"), ("feedback", "enqueue")]),
    ("abc_l4s", &[("horizon", "250ms"), ("averaging", "10ms")]),
    ("abc_l4s", &[("target", "0s"), ("cushion", "0"), ("horizon", "2ms")]),
    ("bmcc", &[("coexist", "true")]),
    ("bmcc", &[("load", "busy-time"), ("interval", "20ms"), ("bits", "3")]),
    ("abc_dual", &[("weights", "zombie"), ("variant", "prototype")]),
    ("abc_dual", &[("weights", "loss"), ("period", "10ms"), ("counters", "2"), ("top", "1")]),
    ("abc_dual", &[("weights", "fixed"), ("buffers", "shared")]),
    ("abc_dual", &[("measure", "departures"), ("demand", "marks")]),
    ("cake", &[("bandwidth", "6Mbps"), ("diffserv", "besteffort"), ("link_layer", "docsis")]),
    (
        "cake",
        &[
            ("bandwidth", "40Mbps"),
            ("ingress", "true"),
            ("dscps", "ef/cs1/0/af41"),
            ("diffserv", "diffserv4"),
        ],
    ),
    ("cake", &[("ecn", "false"), ("memory_limit", "30kB"), ("srchosts", "1/3/2"), ("rtt", "10ms")]),
    ("cake", &[("isolation", "hosts"), ("dsthosts", "3/1"), ("diffserv", "diffserv8"), ("ack_filter", "on")]),
    ("codel", &[("ecn", "true")]),
    ("codel", &[("drop", "behind-head")]),
    ("dualpi2", &[("rules", "linux")]),
    ("dualpi2", &[("scheduler", "time-shift"), ("overload", "overflow")]),
    ("eabc", &[("flows_window", "1ms"), ("floor", "0.01")]),
    ("rcp", &[("period", "1ms"), ("ceiling", "false")]),
    ("xcp", &[("residues", "false")]),
    ("xcpw", &[("residues", "false"), ("gamma", "0")]),
    ("fq_codel", &[("flows", "3"), ("quantum", "300B"), ("ce_threshold", "5ms")]),
    ("fq_codel", &[("ecn", "false"), ("drop_batch", "1"), ("memory_limit", "30kB")]),
    ("pie", &[("ecn", "true"), ("delay", "rate"), ("derandomize", "true"), ("max_burst", "0s")]),
    ("pie", &[("active_above", "0.1"), ("cap", "false"), ("tupdate", "1ms")]),
    ("pie", &[("variant", "mahimahi"), ("target", "20ms"), ("max_burst", "100ms")]),
    ("red", &[("ecn", "true"), ("adaptive", "true"), ("wait", "true"), ("interval", "10ms")]),
    ("red", &[("gentle", "false"), ("wq", "0.2"), ("min_th", "3")]),
    ("vcp", &[("load", "busy-time"), ("interval", "20ms")]),
];

fn queues() -> impl Iterator<Item = Queue> {
    let defaults = QUEUES.iter().map(|entry| (entry.name, &[][..]));
    defaults.chain(VARIATIONS.iter().copied()).map(|(name, options)| {
        let config = QueueConfig::new(name, options).unwrap();
        let buffers = match &config {
            QueueConfig::AbcDual(config) if config.dual.buffers == Buffers::Own => 2,
            _ => 1,
        };
        Queue {
            buffers,
            classes_by_ecn: matches!(name, "dualpi2" | "abc_l4s"),
            acts: name != "droptail",
            ..Queue::new(config)
        }
    })
}

#[test]
fn every_queue_keeps_what_a_queue_must_keep() {
    queues().for_each(|queue| queue::keeps_what_a_queue_must_keep(&queue));
}

#[test]
fn same_operations_give_the_same_decisions() {
    queues().for_each(|queue| queue::repeats_itself(&queue));
}

#[test]
fn every_queue_that_controls_delay_acts_on_a_standing_queue() {
    queues().for_each(|queue| queue::acts_on_a_standing_queue(&queue));
}

#[test]
fn every_entry_says_what_it_is_and_where_its_numbers_come_from() {
    for entry in QUEUES {
        assert!(!entry.summary.is_empty());
        for parameter in entry.parameters() {
            assert!(!parameter.meaning.is_empty(), "{}: {}", entry.name, parameter.name);
            assert!(!parameter.source.is_empty(), "{}: {}", entry.name, parameter.name);
        }
    }
}
