use brakelight_core::ecn::Ecn;
use brakelight_core::parameters::Parameters;
use brakelight_core::time::Duration;
use brakelight_testkit::events::{ack, connection, idle, loss, packet};

use super::*;

fn bmcc(options: &[(&str, &str)], initial_pkts: u64) -> Bmcc {
    let config = Config::from_options(options.iter().copied()).unwrap();
    Bmcc::new(config, &connection(initial_pkts))
}

/// An ACK of one packet at `ms` over a round trip of `rtt_ms`, with an option that says `load`.
fn hear(bmcc: &mut Bmcc, ms: u64, rtt_ms: u64, load: f64) {
    let now = Time::from_millis(ms);
    let acked = [packet(0, now.saturating_sub(Duration::from_millis(rtt_ms)))];
    let report = ReceiverReport::LoadFactor(bmcc.layout.to_option(load));
    bmcc.on_ack(&AckEvent { report, ..ack(now, &acked, Duration::from_millis(rtt_ms)) });
}

/// What one ACK adds to a window of 100 packets of a flow that has seen overload, in packets.
fn growth_pkts(options: &[(&str, &str)], rtt_ms: u64, load: f64) -> f64 {
    let mut bmcc = bmcc(options, 100);
    bmcc.new = false;
    hear(&mut bmcc, 1000, rtt_ms, load);
    bmcc.window.packets() - 100.0
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-4 * b.abs().max(0.01), "{a} is not {b}");
}

/// bmcc eq.2 to 4: per window, 0.35 * 0.85 / 0.15 at eta_0 and 0.35 * 0.5 / 0.5 at a half; (T / t_p)^2
/// packets from eta on.
#[test]
fn below_eta_it_multiplies_and_above_it_adds() {
    near(growth_pkts(&[], 200, 0.15), 1.98333);
    near(growth_pkts(&[], 200, 0.5), 0.35);
    near(growth_pkts(&[], 100, 0.5), libm::sqrt(1.35) - 1.0);
    near(growth_pkts(&[], 200, 0.76), 0.01);
    near(growth_pkts(&[], 400, 0.99), 0.04);
    // open-questions#X-38
    near(growth_pkts(&[], 2000, 0.15), 3.0);
}

/// B-U1, B-U4, B-U2: the first option of 1 or more ends the new flow's law, and the window falls by beta(f^).
#[test]
fn a_new_flow_multiplies_until_the_load_first_reaches_one() {
    let mut bmcc = bmcc(&[], 100);
    hear(&mut bmcc, 0, 200, 0.9);
    near(bmcc.window.packets(), 100.0 + 0.35 * 0.1 / 0.9);
    let before = bmcc.window.packets();
    hear(&mut bmcc, 1, 200, 1.1);
    near(bmcc.window.packets(), before * 0.7625);
    let before = bmcc.window.packets();
    hear(&mut bmcc, 2, 200, 0.9);
    near(bmcc.window.packets(), before + 1.0 / before);
}

#[test]
fn falls_once_per_round_trip_or_interval_whichever_is_longer() {
    for (rtt_ms, period_ms) in [(50, 200), (200, 200), (700, 700)] {
        let mut bmcc = bmcc(&[], 100);
        hear(&mut bmcc, 0, rtt_ms, 1.2);
        hear(&mut bmcc, period_ms - 1, rtt_ms, 1.2);
        near(bmcc.window.packets(), 65.0);
        hear(&mut bmcc, period_ms, rtt_ms, 1.2);
        near(bmcc.window.packets(), 42.25);
    }
}

/// B-U2: a CE mark is overload by itself, whether or not an option came with it.
#[test]
fn ce_falls_by_the_most() {
    let mut bmcc = bmcc(&[], 100);
    bmcc.on_ce(&loss(Time::from_millis(5)));
    near(bmcc.window.packets(), 65.0);
    hear(&mut bmcc, 6, 100, 1.2);
    near(bmcc.window.packets(), 65.0);
}

/// bmcc VI
#[test]
fn beside_tcp_it_falls_on_ce_only_and_by_the_load() {
    let mut bmcc = bmcc(&[("coexist", "true")], 100);
    hear(&mut bmcc, 0, 200, 1.1);
    near(bmcc.window.packets(), 100.01);
    bmcc.on_ce(&loss(Time::from_millis(5)));
    near(bmcc.window.packets(), 100.01 * 0.7625);
    hear(&mut bmcc, 300, 200, 0.9);
    let before = bmcc.window.packets();
    bmcc.on_ce(&loss(Time::from_millis(400)));
    near(bmcc.window.packets(), before * 0.875);
    // A mark says that the link is full: no multiplying before the receiver has said otherwise.
    assert_eq!(bmcc.load, 1.0);
}

/// bmcc VII: 100 packets in 200 ms are 100 per t_p; at half load 100^(1/2) = 10 packets per window, at full
/// load one.
#[test]
fn one_power_law_may_replace_the_modes() {
    let power = &[("increase", "power")];
    near(growth_pkts(power, 200, 0.5), 0.1);
    near(growth_pkts(power, 200, 0.9999), 0.01 * libm::pow(100.0, 0.0001));
    // 100 packets in 100 ms are 200 per t_p.
    near(growth_pkts(power, 100, 0.5), 0.25 * libm::sqrt(200.0) / 100.0);
    near(growth_pkts(power, 10_000, 0.15), 3.0);
}

/// open-questions#X-71
#[test]
fn a_loss_that_no_load_announced_makes_it_grow_like_tcp() {
    let mut bmcc = bmcc(&[], 100);
    bmcc.on_loss(&loss(Time::from_millis(5)));
    near(bmcc.window.packets(), 50.0);
    hear(&mut bmcc, 500, 100, 0.15);
    near(bmcc.window.packets(), 50.02);
    // A bottleneck that marks after all.
    hear(&mut bmcc, 600, 100, 1.0);
    near(bmcc.window.packets(), 50.02 * 0.875);
    hear(&mut bmcc, 900, 200, 0.5);
    near(bmcc.window.packets(), 50.02 * 0.875 + 0.35);
}

/// A halved window leaves a link that marks below eta: a loss there says nothing of the bottleneck.
#[test]
fn a_loss_at_a_bottleneck_that_marked_lately_only_halves() {
    let mut bmcc = bmcc(&[], 100);
    hear(&mut bmcc, 0, 80, 1.0);
    hear(&mut bmcc, 1_000, 80, 0.8);
    hear(&mut bmcc, 1_080, 80, 0.5);
    bmcc.on_loss(&loss(Time::from_millis(1_100)));
    assert!(!bmcc.reno);
    // Ten seconds later nothing shows any more that this bottleneck marks.
    hear(&mut bmcc, 11_081, 80, 0.5);
    bmcc.on_loss(&loss(Time::from_millis(11_081)));
    assert!(bmcc.reno);
    // Until it does.
    hear(&mut bmcc, 12_000, 80, 0.8);
    assert!(!bmcc.reno);
}

/// The receiver says a load that stays ever more seldom.
#[test]
fn a_load_that_stayed_is_as_recent_as_its_end() {
    let mut bmcc = bmcc(&[], 100);
    hear(&mut bmcc, 0, 80, 1.0);
    hear(&mut bmcc, 1_000, 80, 0.8);
    hear(&mut bmcc, 20_000, 80, 0.5);
    bmcc.on_loss(&loss(Time::from_millis(20_100)));
    assert!(!bmcc.reno);
}

#[test]
fn a_loss_in_medium_load_only_halves() {
    let mut bmcc = bmcc(&[], 100);
    hear(&mut bmcc, 0, 200, 1.0);
    hear(&mut bmcc, 1, 200, 0.8);
    bmcc.on_loss(&loss(Time::from_millis(5)));
    assert!(!bmcc.reno);
    // The loss was a decrease: no second one within t_p.
    let before = bmcc.window.packets();
    hear(&mut bmcc, 100, 200, 1.2);
    near(bmcc.window.packets(), before);
}

#[test]
fn idleness_makes_the_estimate_start_over() {
    let mut bmcc = bmcc(&[], 100);
    hear(&mut bmcc, 0, 200, 1.2);
    bmcc.on_idle_restart(&idle(Time::from_secs(3), Duration::from_secs(2)));
    assert_eq!((bmcc.load, bmcc.new), (0.15, false));
}

#[test]
fn counts_options_and_changes() {
    let mut bmcc = bmcc(&[], 100);
    for load in [0.15, 0.5, 0.5, 0.6] {
        hear(&mut bmcc, 0, 200, load);
    }
    let acked = [packet(0, Time::ZERO)];
    bmcc.on_ack(&ack(Time::from_millis(1), &acked, Duration::from_millis(200)));
    // 0.15 itself is the first new thing: in sixteen bits it is a little more.
    assert_eq!((bmcc.acks, bmcc.options, bmcc.changes), (5, 4, 3));
    assert_eq!(bmcc.encoding().sent(), Ecn::Ect0);
}
