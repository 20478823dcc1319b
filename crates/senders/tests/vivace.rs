//! Vivace's signature behaviour over a path whose rate and delay are known.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_testkit::{FlowSpec, Link, MSS, OVERHEAD, World, inspect};

const RTT: Duration = Duration::from_millis(100);

/// Both variants.
const VARIANTS: [&[(&str, &str)]; 2] = [&[("variant", "uspace")], &[("variant", "kernel")]];

fn vivace(options: &'static [(&'static str, &'static str)]) -> FlowSpec<'static> {
    FlowSpec { options, ..FlowSpec::bulk("vivace", RTT) }
}

#[test]
fn starting_doubles_until_utility_falls() {
    let mut world = World::new(Link::fixed(Rate::from_mbps(50), 500), &[vivace(VARIANTS[0])]);
    let mut rates: Vec<f64> = Vec::new();
    world.run(Time::from_secs(4), |_, _, controller| {
        let rate = inspect(controller, "rate_bps") / 1e6;
        if inspect(controller, "starting") > 0.0 && rates.last().is_none_or(|last| *last != rate) {
            rates.push(rate);
        }
    });
    // From 1.2 Mbit/s in doublings to the first rate above the link's; then back by one.
    assert_eq!(rates, [1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 76.8]);
    let rate = inspect(world.controller(0), "rate_bps") / 1e6;
    assert!((30.0..55.0).contains(&rate), "{rate}");
}

/// PCC-Kernel: half as much again, from 4.2 Mbit/s at 5 % more or less.
#[test]
fn the_module_starts_in_steps_of_a_half() {
    let mut world = World::new(Link::fixed(Rate::from_mbps(50), 500), &[vivace(VARIANTS[1])]);
    let mut rates: Vec<f64> = Vec::new();
    world.run(Time::from_secs(8), |_, _, controller| {
        let rate = inspect(controller, "rate_bps") / 1e6;
        if inspect(controller, "starting") > 0.0 && rates.last().is_none_or(|last| *last != rate) {
            rates.push(rate);
        }
    });
    assert!(rates.windows(2).all(|pair| (pair[1] / pair[0] - 1.5).abs() < 1e-9), "{rates:?}");
    assert!(rates[0] < 4.2 && *rates.last().expect("rates") > 47.0, "{rates:?}");
    let rate = inspect(world.controller(0), "rate_bps") / 1e6;
    assert!((30.0..55.0).contains(&rate), "{rate}");
}

/// On a link of one rate the utility of most decisions is that of the link's rate, and the queue stays short.
#[test]
fn utility_converges_at_the_link_rate() {
    let link = Rate::from_mbps(12);
    for (options, exponent) in VARIANTS.into_iter().zip([0.9, 1.0]) {
        let mut world = World::new(Link::fixed(link, 250), &[vivace(options)]);
        let mut good = Vec::new();
        world.run(Time::from_secs(60), |now, _, controller| {
            if now > Time::from_secs(10) {
                let utility = inspect(controller, "utility");
                if utility > 0.0 {
                    good.push(utility);
                }
            }
        });
        good.sort_by(f64::total_cmp);
        let median = good[good.len() / 2];
        let full = (12.0 * MSS.as_f64() / (MSS + OVERHEAD).as_f64()).powf(exponent);
        assert!((0.88..1.02).contains(&(median / full)), "{options:?}: {median} of {full}");
        let throughput = world.throughput(0, Time::from_secs(10), Time::from_secs(60));
        assert!(throughput.as_mbps_f64() > 0.93 * 12.0, "{options:?}: {throughput}");
        let median = world.sojourn_quantile(Time::from_secs(10), Time::from_secs(60), 0.5);
        assert!(median < Duration::from_millis(10), "{options:?}: {median}");
    }
}

#[test]
fn two_flows_share() {
    for options in VARIANTS {
        let late = FlowSpec { start: Time::from_secs(5), ..vivace(options) };
        let mut world = World::new(Link::fixed(Rate::from_mbps(24), 400), &[vivace(options), late]);
        world.run(Time::from_secs(45), |_, _, _| {});
        let [a, b] =
            [0, 1].map(|flow| world.throughput(flow, Time::from_secs(15), Time::from_secs(45)).as_mbps_f64());
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!(a + b > 22.0 && jain > 0.95, "{options:?}: {a} and {b} Mbit/s");
    }
}

#[test]
fn a_rate_that_falls_is_followed() {
    let mut link = Link::fixed(Rate::from_mbps(24), 400);
    link.rates.push((Time::from_secs(15), Rate::from_mbps(6)));
    let mut world = World::new(link, &[vivace(VARIANTS[0])]);
    world.run(Time::from_secs(40), |_, _, _| {});
    let rate = inspect(world.controller(0), "rate_bps") / 1e6;
    assert!((4.0..7.0).contains(&rate), "{rate}");
    let throughput = world.throughput(0, Time::from_secs(30), Time::from_secs(40));
    assert!(throughput.as_mbps_f64() > 5.4, "{throughput}");
    let median = world.sojourn_quantile(Time::from_secs(30), Time::from_secs(40), 0.5);
    assert!(median < Duration::from_millis(100), "{median}");
}

/// PCC-Kernel: behind a full buffer four intervals and two moves take six RTTs of 0.9 s, and the first move
/// goes up.
#[test]
fn the_module_follows_a_rate_that_falls_only_slowly() {
    let mut link = Link::fixed(Rate::from_mbps(24), 400);
    link.rates.push((Time::from_secs(15), Rate::from_mbps(6)));
    let mut world = World::new(link, &[vivace(VARIANTS[1])]);
    let mut rates: Vec<f64> = Vec::new();
    for end in [40, 80, 120, 160, 200] {
        world.run(Time::from_secs(end), |_, _, _| {});
        rates.push(inspect(world.controller(0), "rate_bps") / 1e6);
    }
    assert!(rates[0] < 16.0, "{rates:?}");
    assert!((4.0..7.0).contains(&rates[4]), "{rates:?}");
}
