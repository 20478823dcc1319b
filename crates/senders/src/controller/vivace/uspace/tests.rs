use super::*;
use crate::controller::vivace::Config;

fn rules() -> Rules {
    Rules::from(&Config::default())
}

fn controller() -> Uspace {
    let connection = Connection {
        mss: Bytes(1448),
        overhead: Bytes(52),
        initial_window: Bytes(14480),
        now: Time::ZERO,
        random: Random::stream(1, "vivace"),
    };
    let mut vivace = Uspace::new(rules(), &connection);
    vivace.phase = Phase::Learning { again: false };
    vivace.rate_mbps = 100.0;
    vivace
}

/// 100 packets of 1250 bytes in 0.099 s and the last one's 1 ms: 10 Mbit/s.
fn interval() -> Interval {
    Interval {
        rate_mbps: 10.0,
        start: Time::from_millis(1000),
        last_sent: Time::from_millis(1099),
        sent: 100,
        sent_bytes: 125_000,
        ..Interval::default()
    }
}

#[test]
fn utility_is_rate_to_the_power_less_latency_and_loss() {
    let rules = rules();
    let mut known = interval();
    assert!((known.sent_mbps() - 10.0).abs() < 1e-9);
    // 10^0.9 = 7.9433
    assert!((known.utility(&rules) - 7.943_282_347).abs() < 1e-6);
    // 2 % lost cost 11.35 * 10 * 0.02 = 2.27
    known.lost_bytes = 2_500;
    assert!((known.utility(&rules) - 5.673_282_347).abs() < 1e-6);
    // RTTs that grow by 20 ms a second cost 900 * 10 * 0.02 = 180
    for i in 0..100 {
        known.regression.add(f64::from(i) * 0.001, 0.1 + f64::from(i) * 0.000_02);
    }
    assert!((known.utility(&rules) + 174.326_717_65).abs() < 1e-6);
}

#[test]
fn slopes_below_the_filter_and_falling_rtts_cost_nothing() {
    let rules = rules();
    for slope in [0.009, -0.009, -0.5] {
        let mut known = interval();
        for i in 0..100 {
            known.regression.add(f64::from(i) * 0.001, 0.1 + f64::from(i) * 0.001 * slope);
        }
        assert!((known.utility(&rules) - 7.943_282_347).abs() < 1e-6, "slope {slope}");
    }
}

#[test]
fn steps_grow_with_confidence_and_shrink_with_a_new_direction() {
    let mut vivace = controller();
    let mut steps = std::vec::Vec::new();
    for gradient in [0.5, 0.5, 0.5, 0.5, 0.5, -0.5, -0.5] {
        let before = vivace.rate_mbps;
        vivace.climb(gradient);
        steps.push(vivace.rate_mbps - before);
    }
    // m = 1, 2, 3, 5, 7, then 1, 2 the other way; all within 5 % of about 100
    for (step, expected) in steps.iter().zip([0.5, 1.0, 1.5, 2.5, 3.5, -0.5, -1.0]) {
        assert!((step - expected).abs() < 1e-9, "{steps:?}");
    }
}

#[test]
fn the_bound_widens_while_it_bites() {
    let mut vivace = controller();
    let mut shares = std::vec::Vec::new();
    for gradient in [1e3, 1e3, 1e3, -1e3, -1e3] {
        let before = vivace.rate_mbps;
        vivace.climb(gradient);
        shares.push((vivace.rate_mbps - before) / before);
    }
    for (share, expected) in shares.iter().zip([0.05, 0.15, 0.25, -0.05, -0.15]) {
        assert!((share - expected).abs() < 1e-9, "{shares:?}");
    }
    // A small step lets the bound shrink back to what it needs.
    vivace.climb(-0.001);
    assert_eq!(vivace.bitten, 0);
}

#[test]
fn a_timeout_halves_the_rate_and_forgets_the_pair() {
    let mut vivace = controller();
    vivace.plan();
    let event = |kind, now| TimeoutEvent { now, kind, inflight: Bytes::ZERO, repeated: false };
    vivace.on_timeout(&event(Timeout::Pto, Time::from_secs(1)));
    assert_eq!((vivace.rate_mbps, vivace.intervals), (100.0, 2));
    vivace.on_timeout(&event(Timeout::Rto, Time::from_secs(1)));
    assert_eq!((vivace.rate_mbps, vivace.intervals), (50.0, 0));
}

#[test]
fn a_timeout_while_acks_flow_only_forgets_the_pair() {
    let mut vivace = controller();
    vivace.plan();
    let now = Time::from_millis(99);
    vivace.on_timeout(&TimeoutEvent { now, kind: Timeout::Rto, inflight: Bytes::ZERO, repeated: true });
    assert_eq!((vivace.rate_mbps, vivace.intervals), (100.0, 0));
}

#[test]
fn below_the_lowest_rate_it_starts_again() {
    let mut vivace = controller();
    vivace.rate_mbps = 0.15;
    let now = Time::from_secs(1);
    vivace.on_timeout(&TimeoutEvent { now, kind: Timeout::Rto, inflight: Bytes::ZERO, repeated: false });
    assert!((vivace.rate_mbps - 0.1).abs() < 1e-9);
    assert!(matches!(vivace.phase, Phase::Starting(None)));
}
