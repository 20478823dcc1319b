//! Schemes that follow a load factor, over whole paths: with their routers, their receivers and the modelled host.

mod support;

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use support::page::{check, growth, measured};
use support::{Dumbbell, Growth};

/// The pages say what the code does.
fn page(scheme: &str) {
    check(scheme, "measured", &measured(scheme));
    check(scheme, "growth", &growth(scheme));
}

#[test]
fn vcp() {
    page("vcp");
}

#[test]
fn mlcp() {
    page("mlcp");
}

/// HN-U1, ABC-U12, with router, receiver and host between: on a link that stays below 80 % a window of 100 packets has doubled after
/// twelve round trips of 200 ms, and not after ten.
#[test]
fn vcp_doubles_in_twelve_round_trips() {
    let mut dumbbell = Dumbbell::new("vcp", Rate::from_mbps(200), Duration::from_millis(200)).alone();
    dumbbell.scenario.record.bin = Duration::from_millis(20);
    let dumbbell = dumbbell.measured(0, 5).each(|_, flow| {
        flow.initial_window = 100;
        flow.start_within = Duration::ZERO;
        flow.jitter = Duration::ZERO;
    });
    let series = dumbbell.outcome().series.expect("series were asked for").flows.remove(0);
    let doubled = series.cwnd_pkts.iter().position(|window| *window >= 200.0).expect("it grows");
    let round_trips = series.time_s[doubled] / 0.2;
    // The first ACKs come after one round trip.
    assert!((12.0..=13.1).contains(&round_trips), "{round_trips}");
}

/// B-F5, first part: SACK's slow start runs into the buffer at 100,000 packets and loses nine tenths of as many; VCP is far below 1 % of
/// the bandwidth-delay product after 6.5 s.
#[test]
fn on_an_idle_link_of_2_gbps_vcp_has_hardly_begun_when_slow_start_overshoots() {
    let (sack, vcp) = (Growth::of("newreno"), Growth::of("vcp"));
    assert!((sack.at(2.0) / 1024.0).log2().abs() <= 1.0, "{}", sack.at(2.0));
    assert!(
        sack.most() > 95_000.0 && (80_000..120_000).contains(&sack.lost),
        "{} {}",
        sack.most(),
        sack.lost
    );
    assert!(vcp.at(6.5) < 500.0 && vcp.lost == 0, "{}", vcp.at(6.5));
}

/// xia05: the link stays busy, the queue short, nothing is lost, and two flows come to share.
#[test]
fn two_flows_share_a_busy_link_without_a_queue() {
    for scheme in ["vcp", "mlcp"] {
        let dumbbell = Dumbbell::new(scheme, Rate::from_mbps(10), Duration::from_millis(80));
        let (early, late) = (dumbbell.clone().measured(10, 20).run(), dumbbell.measured(100, 160).run());
        assert!(late.utilization > 0.85, "{scheme}: {}", late.utilization);
        assert!(late.queueing_delay_ms.expect("packets").p95 < 8.0, "{scheme}");
        assert_eq!(late.dropped_packets, 0, "{scheme}");
        let jain = |run: &brakelight_scenario::outcome::Run| run.jain.expect("two flows");
        assert!(
            jain(&late) > 0.98 && jain(&late) > jain(&early),
            "{scheme}: {} {}",
            jain(&early),
            jain(&late)
        );
    }
}

/// B-F10, in small: rates do not depend on round trips of 40 and 160 ms, where NewReno's are several times apart.
#[test]
fn round_trips_do_not_decide_the_shares() {
    let shares = |scheme: &str| {
        let dumbbell = Dumbbell::new(scheme, Rate::from_mbps(10), Duration::from_millis(80));
        let dumbbell = dumbbell.measured(100, 200).each(|index, flow| {
            flow.rtt = Duration::from_millis(if index == 0 { 40 } else { 160 });
        });
        dumbbell.run().jain.expect("two flows")
    };
    let newreno = shares("newreno");
    for scheme in ["vcp", "mlcp"] {
        let jain = shares(scheme);
        assert!(jain > 0.9 && jain > newreno, "{scheme}: {jain}, newreno {newreno}");
    }
}
