//! Properties of one sample, from every state and for every sample of a small range. A filter divides by 4, 8
//! and 32 and compares, so that a range of some hundred nanoseconds has all its cases. What holds after one
//! sample from every state holds after any number.

use std::eprintln;

use super::*;

/// The largest value in the states and samples.
fn most(whole: u64, part: u64) -> u64 {
    if std::env::var_os("BRAKELIGHT_PROOFS").is_some() { whole } else { part }
}

fn state(smoothed: u64, deviation: u64, floor: u64, min: u64) -> RttEstimator {
    RttEstimator {
        smoothed,
        deviation,
        worst: floor,
        variance: floor,
        floor,
        min: Duration::from_nanos(min),
        ..RttEstimator::quic()
    }
}

#[test]
fn a_quic_sample_keeps_the_filters_between_what_they_have_seen() {
    let most = most(130, 40);
    for smoothed in 1..=most {
        for deviation in 0..=most / 2 {
            for sample in 0..=most {
                for min in [0, 1, sample / 2, sample, smoothed, most] {
                    for delay in [0, 1, 7, sample / 3, sample, most] {
                        let mut rtt = state(smoothed, deviation, 0, min);
                        rtt.sample_quic(Duration::from_nanos(sample), Duration::from_nanos(delay));
                        // rfc9002 5.3: the delay that was reported never takes a sample below min_rtt.
                        let lowest = sample.saturating_sub(delay).max(min.min(sample)).min(smoothed);
                        let range = lowest.max(1)..=smoothed.max(sample);
                        assert!(range.contains(&rtt.smoothed), "{smoothed}, {sample}, {min}, {delay}");
                        assert!(rtt.has_sample(), "{smoothed}, {sample}, {min}, {delay}");
                        let error = smoothed.max(sample) - lowest;
                        assert!(rtt.deviation <= deviation.max(error));
                        assert_eq!(rtt.min.as_nanos(), min.min(sample));
                        assert!(rtt.pto(Duration::ZERO).as_nanos() >= rtt.smoothed + GRANULARITY.as_nanos());
                    }
                }
            }
        }
    }
    let verdict = crate::proofs::verdict();
    let bounds = std::format!("times to {most} ns, six least round trips and six delays for each");
    for property in [
        "srtt stays between what it was and the sample, which is min_rtt at the least",
        "a filter with a sample never looks as if it had none",
        "rttvar stays at or below the larger of itself and the error",
        "min_rtt is the least sample",
        "the PTO is srtt and a millisecond at the least",
    ] {
        eprintln!("core/src/sender/rtt.rs | RttEstimator::sample_quic | {property} | {bounds} | {verdict}");
    }
}

#[test]
fn a_tcp_sample_keeps_the_filters_between_what_they_have_seen() {
    let most = most(260, 70);
    for smoothed in 1..=most {
        for deviation in 0..=most {
            for sample in 0..=most {
                for (floor, una) in [(0, 0), (0, 2), (50, 0), (50, 2)] {
                    let mut rtt = state(smoothed, deviation, floor, most);
                    rtt.round_end = 1;
                    rtt.sample_tcp(Duration::from_nanos(sample), una, 9);
                    let sample = sample.max(1);
                    let (low, high) = (smoothed.min(sample), smoothed.max(sample));
                    assert!((low..=high).contains(&rtt.smoothed), "{smoothed}, {sample}");
                    assert!(rtt.deviation <= deviation.max(high - low), "{smoothed}, {deviation}, {sample}");
                    assert!(rtt.variance >= floor && rtt.worst >= floor);
                    assert!(rtt.rto().is_some_and(|rto| rto.as_nanos() >= rtt.smoothed + floor));
                }
            }
        }
    }
    let verdict = crate::proofs::verdict();
    let bounds =
        std::format!("times to {most} ns, floors of 0 and 50 ns, a round that ends and one that goes on");
    for property in [
        "srtt stays between what it was and the sample",
        "mdev stays at or below the larger of itself and the error",
        "rttvar never falls below its floor",
        "the RTO is srtt and the floor at the least",
    ] {
        eprintln!("core/src/sender/rtt.rs | RttEstimator::sample_tcp | {property} | {bounds} | {verdict}");
    }
}

#[test]
fn no_sample_of_half_a_century_overflows() {
    let half = 50 * 365 * 86_400 * 1_000_000_000;
    let edges = [0, 1, 7, 8, 1_000_000, 1 << 40, half - 1, half];
    for first in edges {
        for second in edges {
            for third in edges {
                let (mut quic, mut tcp) = (RttEstimator::quic(), RttEstimator::tcp());
                for (place, sample) in
                    [first, second, third].map(Duration::from_nanos).into_iter().enumerate()
                {
                    quic.sample_quic(sample, Duration::from_nanos(third));
                    tcp.sample_tcp(sample, place as u64, place as u64 + 1);
                    let _ = (quic.pto(Duration::from_nanos(half)), tcp.rto());
                }
            }
        }
    }
    let verdict = crate::proofs::verdict();
    let bounds = "three samples and a delay of eight values from 0 to 50 years";
    eprintln!("core/src/sender/rtt.rs | RttEstimator | no overflow | {bounds} | {verdict}");
}
