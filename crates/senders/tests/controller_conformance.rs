//! What every controller owes its host, whatever happens: run over the registry, so a new one gets it for
//! free.

use std::mem::size_of;

use brakelight_registry::{AnyController, CONTROLLERS, ControllerConfig, Registry};
use brakelight_testkit::conformance::controller;

/// Settings besides the defaults that change what a controller does.
const VARIANTS: &[(&str, &[(&str, &str)])] = &[
    ("abc", &[("variant", "prototype")]),
    ("abc", &[("variant", "adaptive")]),
    ("abc", &[("encoding", "proxied"), ("additive_increase", "false")]),
    ("rcp", &[("cap", "1")]),
    ("bbr2", &[("ecn", "ect0"), ("ecn_max_rtt", "1s")]),
    ("bbr3", &[("ecn", "ect1"), ("ecn_max_rtt", "1s")]),
    ("prague", &[("transition", "0"), ("initial_alpha", "0")]),
    ("bmcc", &[("coexist", "true")]),
    ("bmcc", &[("increase", "power"), ("fallback", "false"), ("new_flow", "false")]),
    ("vcp", &[("freeze", "overload"), ("ai_rtt", "100ms")]),
    ("quicdc", &[("threshold", "5ms")]),
    ("quicdc", &[("baseline", "first"), ("horizon", "1s"), ("filter", "linux"), ("threshold", "20ms")]),
    ("quicdc", &[("baseline", "minimum"), ("threshold", "10%")]),
    ("gcc", &[("initial_rate", "5Mbps"), ("probing", "false"), ("window", "10")]),
    ("gcc", &[("loss_model", "draft"), ("burst", "0s"), ("pacing_gain", "1")]),
    ("nada", &[("ecn", "true"), ("max_rate", "20Mbps"), ("baseline", "minimum")]),
    ("scream", &[("ecn", "l4s"), ("reduce_jitter", "true"), ("max_rate", "20Mbps")]),
    (
        "scream",
        &[("ecn", "classic"), ("loss_threshold", "0.01"), ("limit_undershoot", "true"), ("compete", "true")],
    ),
    ("westwood", &[("reduction", "linux"), ("filter", "fast")]),
    ("abc", &[("other", "newreno")]),
    ("abc", &[("other", "vegas")]),
    ("abc", &[("other", "copa")]),
    ("abc", &[("other", "bbr"), ("pacing", "2")]),
    ("abc", &[("other", "bbr2")]),
    ("abc", &[("other", "bbr3")]),
    ("abc", &[("other", "westwood")]),
    ("abc", &[("other", "ctcp")]),
    ("abc", &[("other", "vivace")]),
    ("vegas", &[("slow_start", "every")]),
    ("vivace", &[("variant", "kernel")]),
    ("cubic", &[("rules", "mvfst")]),
    ("cubic", &[("hystart", "plusplus"), ("ecn", "true"), ("horizon", "min_rtt")]),
    ("xcp", &[("demand", "5Mbps")]),
    ("external", &[("cwnd", "3pkt"), ("pacing_rate", "2Mbps"), ("ecn", "true")]),
];

/// Every controller with its defaults, and the variants.
fn controllers() -> impl Iterator<Item = ControllerConfig> {
    let defaults = CONTROLLERS.iter().map(|entry| (entry.name, &[][..]));
    let built = |(name, options)| ControllerConfig::new(name, options).expect("a registered name");
    defaults.chain(VARIANTS.iter().copied()).map(built)
}

#[test]
fn every_controller_stays_sound_and_repeats_itself() {
    for config in controllers() {
        controller::stays_sound_and_repeats_itself(&config);
    }
}

#[test]
fn every_controller_fits_a_flow() {
    assert!(size_of::<AnyController>() <= 1024, "{} bytes", size_of::<AnyController>());
}

#[test]
fn every_controller_can_start() {
    for config in controllers() {
        controller::can_start(&config);
    }
}

#[test]
fn every_controller_is_as_its_line_says() {
    for config in controllers() {
        controller::is_as_it_says(&config, &Registry::standard());
    }
}
