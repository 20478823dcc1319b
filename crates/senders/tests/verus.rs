//! Verus's signature behaviour over a path whose rate and delay are known.

use brakelight_core::controller::Controller;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_registry::AnyController;
use brakelight_testkit::{FlowSpec, Link, World, inspect};

fn world(mbps: u64, rtt_ms: u64, ratio: &str) -> World {
    let options = [("ratio", ratio)];
    let flow = FlowSpec { options: &options, ..FlowSpec::bulk("verus", Duration::from_millis(rtt_ms)) };
    World::new(Link::fixed(Rate::from_mbps(mbps), 1000), &[flow])
}

/// zaki15 5: R bounds the ratio of the delay to the smallest delay.
#[test]
fn the_delay_settles_below_r_times_the_smallest() {
    for (ratio, rtt_ms) in [("2", 100), ("2", 40), ("4", 100)] {
        let mut world = world(12, rtt_ms, ratio);
        world.run(Time::from_secs(40), |_, _, _| {});
        let (from, to) = (Time::from_secs(15), Time::from_secs(40));
        let throughput = world.throughput(0, from, to).as_mbps_f64();
        assert!(throughput > 0.95 * 12.0, "R = {ratio}, {rtt_ms} ms: {throughput} Mbit/s");
        let most = (ratio.parse::<f64>().unwrap() - 1.0) * rtt_ms as f64;
        let p95 = world.sojourn_quantile(from, to, 0.95).as_millis_f64();
        assert!(p95 > 0.5 * most && p95 < 1.25 * most, "R = {ratio}, {rtt_ms} ms: p95 {p95} ms");
    }
}

/// Slow start ends once, by a loss or by a delay of half a second, and the smallest delay is the path's.
#[test]
fn leaves_slow_start_and_knows_the_path() {
    let mut world = world(12, 100, "2");
    let mut starts = 0;
    let mut starting = false;
    world.run(Time::from_secs(30), |_, _, controller| {
        let now = inspect(controller, "slow_start") > 0.0;
        starts += u32::from(now && !starting);
        starting = now;
    });
    assert_eq!(starts, 1);
    let min_ms = inspect(world.controller(0), "min_ms");
    assert!((101.0..102.0).contains(&min_ms), "{min_ms}");
}

/// zaki15 fig. 7: the profile is learnt anew when the rate changes.
#[test]
fn follows_a_rate_that_doubles_and_halves() {
    let mut link = Link::fixed(Rate::from_mbps(6), 1000);
    link.rates.push((Time::from_secs(15), Rate::from_mbps(12)));
    link.rates.push((Time::from_secs(40), Rate::from_mbps(6)));
    let mut world = World::new(link, &[FlowSpec::bulk("verus", Duration::from_millis(50))]);
    world.run(Time::from_secs(60), |_, _, _| {});
    let up = world.throughput(0, Time::from_secs(25), Time::from_secs(40)).as_mbps_f64();
    assert!(up > 0.9 * 12.0, "{up} Mbit/s");
    let down = world.throughput(0, Time::from_secs(45), Time::from_secs(60)).as_mbps_f64();
    assert!(down > 0.9 * 6.0, "{down} Mbit/s");
    let median = world.sojourn_quantile(Time::from_secs(50), Time::from_secs(60), 0.5);
    assert!(median < Duration::from_millis(80), "{median}");
}

/// What an epoch allows and the application does not use is gone: it must not leave at once after a pause.
#[test]
fn permission_does_not_add_up_while_the_application_pauses() {
    let mut world = world(12, 100, "2");
    world.run(Time::from_secs(20), |_, _, _| {});
    let mut controller = world.controller(0).clone();
    // Nothing is acknowledged meanwhile, so what is in flight stays in it.
    let packets = |controller: &AnyController| controller.cwnd().as_f64() / 1448.0;
    let before = packets(&controller);
    let mut window: f64 = 0.0;
    let end = Time::from_secs(20) + Duration::from_millis(900);
    while let Some(at) = controller.next_timer().filter(|&at| at < end) {
        controller.on_timer(at);
        window = window.max(inspect(&controller, "window_packets"));
        let allowed = packets(&controller) - before;
        assert!(allowed <= window, "{allowed} packets may leave, the window was {window} at most");
    }
}
