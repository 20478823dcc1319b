//! BBR's signature behaviour over a path whose rate and delay are known.

mod support;

use brakelight_core::controller::Controller;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use support::{FlowSpec, Link, MSS, OVERHEAD, World, inspect};

const RTT: Duration = Duration::from_millis(100);

fn payload_bps(rate: Rate) -> f64 {
    rate.as_bps_f64() * MSS.as_f64() / (MSS + OVERHEAD).as_f64()
}

#[test]
fn v1_estimates_the_bandwidth_and_the_round_trip_time() {
    let rate = Rate::from_mbps(12);
    let mut world = World::new(Link::fixed(rate, 250), &[FlowSpec::bulk("bbr", RTT)]);
    world.run(Time::from_secs(5), |_, _, _| {});
    let controller = world.controller(0);
    let bandwidth = inspect(controller, "bandwidth_bps");
    assert!((bandwidth / payload_bps(rate) - 1.0).abs() < 0.01, "{bandwidth}");
    // 100 ms and one transmission time of 1 ms.
    let min_rtt = inspect(controller, "min_rtt_ms");
    assert!((101.0..101.5).contains(&min_rtt), "{min_rtt}");
}

/// The cycle's gains and their lengths: eight phases, 5/4 then 3/4 then six of 1, about one min_rtt each.
#[test]
fn v1_cycles_through_eight_phases() {
    let mut world = World::new(Link::fixed(Rate::from_mbps(12), 250), &[FlowSpec::bulk("bbr", RTT)]);
    let mut phases: Vec<(Time, f64)> = Vec::new();
    world.run(Time::from_secs(9), |now, _, controller| {
        let gain = inspect(controller, "pacing_gain");
        if now > Time::from_secs(3) && phases.last().is_none_or(|(_, last)| *last != gain) {
            phases.push((now, gain));
        }
    });
    let starts: Vec<_> = phases.iter().filter(|(_, gain)| *gain == 1.25).map(|(at, _)| *at).collect();
    assert!(starts.len() >= 5, "{phases:?}");
    for pair in starts.windows(2) {
        let cycle = pair[1].since(pair[0]).as_secs_f64();
        assert!((0.7..1.0).contains(&cycle), "a cycle of {cycle} s in {phases:?}");
    }
    let from = phases.iter().position(|(_, gain)| *gain == 1.25).unwrap();
    for (index, (_, gain)) in phases[from..].iter().enumerate() {
        assert_eq!(*gain, [1.25, 0.75, 1.0][index % 3], "{phases:?}");
    }
}

#[test]
fn v1_probes_the_round_trip_time_every_ten_seconds() {
    let mut world = World::new(Link::fixed(Rate::from_mbps(12), 250), &[FlowSpec::bulk("bbr", RTT)]);
    let mut probing = false;
    let mut episodes: Vec<(Time, Time)> = Vec::new();
    let mut least = u64::MAX;
    world.run(Time::from_secs(45), |now, _, controller| {
        let probe = inspect(controller, "probe_rtt") > 0.0;
        match (probing, probe) {
            (false, true) => episodes.push((now, now)),
            (true, _) => episodes.last_mut().unwrap().1 = now,
            _ => {}
        }
        if probe {
            least = least.min(controller.cwnd().0);
        }
        probing = probe;
    });
    assert_eq!(least, 4 * MSS.0);
    assert!((3..=4).contains(&episodes.len()), "{episodes:?}");
    for pair in episodes.windows(2) {
        let gap = pair[1].0.since(pair[0].1).as_secs_f64();
        // The age counts from the last sample that met the minimum, and while the pipe refills samples meet it.
        assert!((10.0..10.75).contains(&gap), "{gap} s between episodes {episodes:?}");
    }
    for (from, to) in &episodes {
        let length = to.since(*from).as_secs_f64();
        assert!((0.2..0.55).contains(&length), "{length} s in {episodes:?}");
    }
}

#[test]
fn v1_fills_the_link_and_leaves_its_queue_short() {
    let rate = Rate::from_mbps(12);
    let mut world = World::new(Link::fixed(rate, 250), &[FlowSpec::bulk("bbr", RTT)]);
    world.run(Time::from_secs(30), |_, _, _| {});
    let (from, to) = (Time::from_secs(3), Time::from_secs(30));
    let throughput = world.throughput(0, from, to).as_bps_f64() / rate.as_bps_f64();
    assert!(throughput > 0.95, "{throughput}");
    // A probe of 5/4 for one RTT queues a quarter of the bandwidth-delay product: 25 ms.
    let p95 = world.sojourn_quantile(from, to, 0.95).as_millis_f64();
    assert!(p95 < 35.0, "{p95} ms");
}

#[test]
fn v1_follows_a_rate_that_doubles_and_halves() {
    let (slow, fast) = (Rate::from_mbps(6), Rate::from_mbps(24));
    let mut link = Link::fixed(slow, 400);
    link.rates.push((Time::from_secs(10), fast));
    link.rates.push((Time::from_secs(20), slow));
    let mut world = World::new(link, &[FlowSpec::bulk("bbr", RTT)]);
    world.run(Time::from_secs(30), |_, _, _| {});
    // Four-fold takes log(4)/log(1.25) = 6.2 cycles of 0.8 s.
    let reached = world.throughput(0, Time::from_secs(17), Time::from_secs(20));
    assert!(reached.as_bps_f64() > 0.93 * fast.as_bps_f64(), "{reached}");
    // The old maximum leaves the filter after ten rounds.
    let bandwidth = inspect(world.controller(0), "bandwidth_bps");
    assert!((bandwidth / payload_bps(slow) - 1.0).abs() < 0.05, "{bandwidth}");
}

/// A bucket of half a megabyte lets Startup see 100 Mbit/s; then 2 Mbit/s remain. Two lossy intervals later that rate is
/// in use, for 48 rounds of 50 ms and a little queueing, and hardly a packet is lost meanwhile.
#[test]
fn v1_takes_a_policed_rate_for_the_bandwidth() {
    let policed = Rate::from_mbps(2);
    let mut link = Link::fixed(Rate::from_mbps(100), 1000);
    link.policer = Some((policed, Bytes(500_000)));
    let mut world = World::new(link, &[FlowSpec::bulk("bbr", Duration::from_millis(50))]);
    let mut changes: Vec<(Time, f64)> = Vec::new();
    world.run(Time::from_secs(5), |now, _, controller| {
        let state = inspect(controller, "policed");
        if changes.last().map_or(0.0, |last| last.1) != state {
            changes.push((now, state));
            let bandwidth = inspect(controller, "bandwidth_bps");
            assert!((bandwidth / payload_bps(policed) - 1.0).abs() < 0.03, "{bandwidth}");
        }
    });
    let [(from, 1.0), (to, 0.0), ..] = changes[..] else { panic!("never policed: {changes:?}") };
    assert!(from < Time::from_millis(1500), "noticed at {from:?}");
    let held = to.since(from).as_secs_f64();
    assert!((48.0 * 0.05..48.0 * 0.06).contains(&held), "held for {held} s");
    let lost = world.drops.iter().filter(|(at, _)| *at > from && *at < to).count();
    let passed = world.passed.iter().filter(|packet| packet.at > from && packet.at < to).count();
    assert!(lost * 20 < passed, "{lost} lost of {passed}");
}
