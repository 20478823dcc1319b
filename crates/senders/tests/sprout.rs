//! Sprout's signature behaviour over a path whose rate and delay are known.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_testkit::{FlowSpec, Link, World, inspect};

fn world(link: Link, rtt_ms: u64) -> World {
    World::new(link, &[FlowSpec::bulk("sprout", Duration::from_millis(rtt_ms))])
}

/// winstein13 3.5: a link of steady rate is filled, and no packet waits for more than 100 ms.
#[test]
fn fills_a_steady_link_within_its_delay_budget() {
    for mbps in [2, 5, 10] {
        let mut world = world(Link::fixed(Rate::from_mbps(mbps), 250), 20);
        world.run(Time::from_secs(20), |_, _, _| {});
        let (from, to) = (Time::from_secs(2), Time::from_secs(20));
        let throughput = world.throughput(0, from, to).as_mbps_f64();
        assert!(throughput > 0.97 * mbps as f64, "{throughput} of {mbps} Mbit/s");
        let worst = world.sojourn_quantile(from, to, 1.0);
        assert!(worst < Duration::from_millis(100), "{worst} at {mbps} Mbit/s");
    }
}

/// The budget counts everything in flight: where the propagation delay alone takes it, the link stays partly
/// idle.
#[test]
fn leaves_a_long_path_partly_idle() {
    let mut world = world(Link::fixed(Rate::from_mbps(12), 250), 100);
    world.run(Time::from_secs(20), |_, _, _| {});
    let (from, to) = (Time::from_secs(2), Time::from_secs(20));
    let share = world.throughput(0, from, to).as_mbps_f64() / 12.0;
    assert!((0.3..0.6).contains(&share), "{share}");
    assert!(world.sojourn_quantile(from, to, 0.95) < Duration::from_millis(40));
}

/// An outage is noticed within ticks, hardly anything is sent into it, and a second after its end the link is
/// full.
#[test]
fn stops_in_an_outage_and_comes_back() {
    let mut link = Link::fixed(Rate::from_mbps(5), 1000);
    link.rates.push((Time::from_secs(10), Rate::from_bps(6_000)));
    link.rates.push((Time::from_secs(14), Rate::from_mbps(5)));
    let mut world = world(link, 20);
    let mut blackout = f64::INFINITY;
    world.run(Time::from_secs(20), |now, _, controller| {
        if now > Time::from_millis(10_500) && now < Time::from_secs(14) {
            blackout = blackout.min(inspect(controller, "forecast_packets"));
        }
    });
    assert_eq!(blackout, 0.0);
    let throughput = world.throughput(0, Time::from_secs(15), Time::from_secs(20)).as_mbps_f64();
    assert!(throughput > 0.95 * 5.0, "{throughput}");
    // What waited was sent before the outage was known: within one budget.
    let waited = world.passed.iter().filter(|packet| packet.sojourn > Duration::from_millis(500)).count();
    assert!(waited < 60, "{waited}");
}

#[test]
fn follows_a_rate_that_halves_without_a_standing_queue() {
    let mut link = Link::fixed(Rate::from_mbps(8), 1000);
    link.rates.push((Time::from_secs(10), Rate::from_mbps(2)));
    let mut world = world(link, 20);
    world.run(Time::from_secs(20), |_, _, _| {});
    let worst = world.sojourn_quantile(Time::from_secs(11), Time::from_secs(20), 1.0);
    assert!(worst < Duration::from_millis(110), "{worst}");
    let throughput = world.throughput(0, Time::from_secs(11), Time::from_secs(20)).as_mbps_f64();
    assert!(throughput > 0.9 * 2.0, "{throughput}");
}
