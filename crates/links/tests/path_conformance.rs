//! What every path element must do, over every line of its tables; for links, with every service and every
//! queue of the registry; for radios, with the queues that use most of what they say.

use brakelight_links::elements::{ELEMENTS, ElementConfig, RADIOS, RadioConfig};
use brakelight_registry::{Options, QUEUES, QueueConfig};
use brakelight_testkit::conformance::path::{self, Case};

/// Each element with its defaults, and with whatever else changes its course.
fn element_cases() -> Vec<Case> {
    const OTHER: &[(&str, Options<'_>)] = &[
        ("delay", &[("delay", "0s")]),
        ("delay-steps", &[("delays", "20ms/0s/7ms"), ("hold", "30ms"), ("beat", "11ms")]),
        ("loss-steps", &[("steps", "50ms:0/70ms:0.4/30ms:1"), ("repeat", "false")]),
        ("gilbert-elliott", &[("p", "0.1"), ("r", "0.3"), ("loss_good", "0.05"), ("loss_bad", "0.9")]),
        ("policer", &[("rate", "3Mbps"), ("burst", "4500B")]),
        ("policer", &[("rate", "64kbps"), ("burst", "1500B")]),
        ("shaper", &[("queue", "droptail"), ("setter", "fixed/rate=12Mbps"), ("limit", "60pkt")]),
        ("shaper", &[("queue", "fq_codel"), ("setter", "autorate")]),
        ("shaper", &[("queue", "codel"), ("setter", "follow"), ("side", "down")]),
        ("shaper", &[("setter", "oracle")]),
        (
            "circuit-breaker",
            &[
                ("rate", "3Mbps"),
                ("burst", "4500B"),
                ("interval", "20ms"),
                ("intervals", "1"),
                ("down", "30ms"),
            ],
        ),
        ("jitter", &[("keep_order", "false")]),
        ("jitter", &[("hold", "300ms")]),
        ("jitter", &[("distribution", "normal"), ("spread", "10ms")]),
        ("jitter", &[("distribution", "exponential"), ("keep_order", "false")]),
        ("jitter", &[("distribution", "pareto"), ("shape", "1.2")]),
        ("reorder", &[("rate", "0.3"), ("hold", "7ms")]),
        ("reorder", &[("rate", "0.3"), ("hold", "40ms"), ("overtaken_by", "2")]),
        ("duplicate", &[("rate", "0.5")]),
        ("rewrite", &[("action", "mark-ce"), ("rate", "0.5")]),
        ("rewrite", &[("action", "cheat")]),
        ("ack-loss", &[("rate", "0.3")]),
        ("ack-thin", &[("every", "3"), ("hold", "2ms")]),
        ("ack-thin", &[("every", "16")]),
        ("ack-thin", &[("hold", "0s")]),
        ("ack-thin", &[("every", "2"), ("hold", "12ms")]),
    ];
    let defaults = ELEMENTS.iter().map(|entry| (entry.name, &[] as Options<'_>));
    let case = |(name, options)| path::element(ElementConfig::new(name, options).unwrap());
    defaults.chain(OTHER.iter().copied()).map(case).collect()
}

fn link_cases() -> Vec<Case> {
    // What defaults leave off; above all what asks the link for more.
    const OTHER: &[(&str, Options<'_>)] = &[
        ("abc", &[("variant", "prototype")]),
        ("abc", &[("marking", "hotnets"), ("x", "sojourn"), ("feedback", "enqueue")]),
        ("cake", &[("bandwidth", "6Mbps"), ("diffserv", "besteffort"), ("link_layer", "docsis")]),
        ("cake", &[("bandwidth", "40Mbps"), ("ingress", "true"), ("dscps", "ef/cs1/0/af41")]),
        ("codel", &[("ecn", "true")]),
        ("codel", &[("drop", "behind-head")]),
        ("fq_codel", &[("flows", "3"), ("quantum", "300B"), ("ce_threshold", "5ms")]),
        ("fq_codel", &[("ecn", "false"), ("drop_batch", "1"), ("memory_limit", "30kB")]),
        ("pie", &[("ecn", "true"), ("delay", "rate"), ("derandomize", "true"), ("max_burst", "0s")]),
        ("pie", &[("active_above", "0.1"), ("cap", "false"), ("tupdate", "1ms")]),
        ("pie", &[("variant", "mahimahi"), ("target", "20ms"), ("max_burst", "100ms")]),
        ("red", &[("ecn", "true"), ("adaptive", "true"), ("wait", "true"), ("interval", "10ms")]),
        ("red", &[("gentle", "false"), ("wq", "0.2"), ("min_th", "3")]),
    ];
    let defaults = QUEUES.iter().map(|entry| (entry.name, &[] as Options<'_>));
    let cases = |(name, options)| path::links(&QueueConfig::new(name, options).unwrap());
    defaults.chain(OTHER.iter().copied()).flat_map(cases).collect()
}

fn restart_cases() -> Vec<Case> {
    QUEUES
        .iter()
        .flat_map(|entry| path::restarting_links(&QueueConfig::new(entry.name, &[]).unwrap()))
        .collect()
}

fn delaying_cases() -> Vec<Case> {
    let queue = |name| QueueConfig::new(name, &[]).unwrap();
    ["droptail", "codel", "abc"].into_iter().flat_map(|name| path::delaying_links(&queue(name))).collect()
}

fn light_heavy_cases() -> Vec<Case> {
    let queue = |name| QueueConfig::new(name, &[]).unwrap();
    ["droptail", "fq_codel", "abc"]
        .into_iter()
        .flat_map(|name| path::light_heavy_links(&queue(name)))
        .collect()
}

/// Each radio with its defaults, and with several users, losses and every way to share and to estimate.
fn radio_cases() -> Vec<Case> {
    const OTHER: &[(&str, Options<'_>)] = &[
        (
            "wifi",
            &[
                ("stations", "3"),
                ("queues", "shared"),
                ("loss", "0.3"),
                ("retries", "2"),
                ("mcs", "0..7"),
                ("period", "50ms"),
            ],
        ),
        (
            "wifi",
            &[
                ("stations", "3"),
                ("queues", "per-station"),
                ("loss", "0.3"),
                ("retries", "2"),
                ("mcs", "0..7"),
                ("period", "50ms"),
            ],
        ),
        (
            "cellular",
            &[("users", "3"), ("estimate", "naive"), ("bler", "0.3"), ("snr", "6"), ("spread", "10")],
        ),
        (
            "cellular",
            &[("users", "3"), ("estimate", "hypothetical"), ("bler", "0.3"), ("snr", "6"), ("spread", "10")],
        ),
        (
            "cellular",
            &[("users", "3"), ("estimate", "truth"), ("bler", "0.3"), ("snr", "6"), ("spread", "10")],
        ),
        ("cellular", &[("users", "3"), ("scheduler", "rr"), ("bler", "0.3"), ("snr", "6"), ("spread", "10")]),
        (
            "nr",
            &[
                ("users", "3"),
                ("blocks", "24"),
                ("bler", "0.4"),
                ("attempts", "2"),
                ("combining", "1"),
                ("rlc", "7pkt"),
            ],
        ),
        (
            "nr",
            &[
                ("users", "2"),
                ("blocks", "11"),
                ("rlc_mode", "um"),
                ("bler", "0.5"),
                ("attempts", "2"),
                ("scs", "15"),
                ("pattern", "fdd"),
                ("rlc", "20kB"),
            ],
        ),
        (
            "nr",
            &[
                ("users", "3"),
                ("direction", "up"),
                ("blocks", "24"),
                ("bler", "0.3"),
                ("pattern", "DDDDDDDSUU"),
                ("special", "6/4/4"),
                ("scheduler", "rr"),
                ("estimate", "truth"),
            ],
        ),
        (
            "nr",
            &[
                ("users", "2"),
                ("direction", "up"),
                ("blocks", "24"),
                ("configured", "4"),
                ("rlc", "5pkt"),
                ("handover", "300ms"),
                ("handover_gaps", "random"),
                ("interruption", "40ms"),
                ("forward", "false"),
            ],
        ),
        (
            "nr",
            &[
                ("blocks", "24"),
                ("handover", "200ms"),
                ("interruption", "30ms"),
                ("rlc", "10pkt"),
                ("bler", "0.3"),
            ],
        ),
        (
            "nr",
            &[
                ("scs", "120"),
                ("blocks", "24"),
                ("pattern", "DDSU"),
                ("snr", "0"),
                ("report", "1ms"),
                ("estimate", "naive"),
            ],
        ),
    ];
    let defaults = RADIOS.iter().map(|entry| (entry.name, &[] as Options<'_>));
    let case = |(radio, options), queue| {
        path::radio(RadioConfig::new(radio, options).unwrap(), &QueueConfig::new(queue, &[]).unwrap())
    };
    let cases = |radio| ["droptail", "codel", "abc"].map(|queue| case(radio, queue));
    defaults.chain(OTHER.iter().copied()).flat_map(cases).collect()
}

fn all_cases() -> impl Iterator<Item = Case> {
    element_cases()
        .into_iter()
        .chain(link_cases())
        .chain(restart_cases())
        .chain(delaying_cases())
        .chain(light_heavy_cases())
        .chain(radio_cases())
}

#[test]
fn packets_are_conserved_and_the_end_is_quiet() {
    all_cases().for_each(|case| path::conserves_packets_and_ends_quietly(&case));
}

#[test]
fn packets_keep_the_order_they_are_promised_to_keep() {
    all_cases().for_each(|case| path::keeps_its_order(&case));
}

#[test]
fn a_late_clock_changes_nothing() {
    all_cases().for_each(|case| path::does_the_same_when_called_late(&case));
}

#[test]
fn the_suite_reaches_drops_and_idle_times() {
    link_cases().iter().for_each(path::is_put_to_the_test);
}

#[test]
fn an_instance_built_again_does_the_same() {
    all_cases().for_each(|case| path::repeats_itself(&case));
}
