//! Properties of units, times and pacing, each shown for every input of a stated domain. `BRAKELIGHT_PROOFS`
//! takes the whole domains, which takes minutes; without it a part of the larger ones is looked at.

use std::eprintln;
use std::vec::Vec;

use crate::sender::Pacer;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// What is printed of a property that holds.
pub(crate) fn verdict() -> &'static str {
    if stride(2) == 1 { "proved" } else { "holds in part of the domain" }
}

/// Every value of a domain where all are asked for, and every `step`th otherwise.
fn stride(step: usize) -> usize {
    if std::env::var_os("BRAKELIGHT_PROOFS").is_some() { 1 } else { step }
}

/// Powers of two and their neighbors, and the ends of the range: where arithmetic of 64 bits goes wrong.
fn edges() -> Vec<u64> {
    let mut edges: Vec<u64> =
        (0..64).map(|bit| 1_u64 << bit).flat_map(|power| [power - 1, power, power + 1]).collect();
    edges.extend([u64::MAX - 1, u64::MAX, 1_000_000_000, 8_000_000_000, 8_000_000_001]);
    edges
}

#[test]
fn seconds_become_the_nearest_nanosecond() {
    let mut before = Duration::ZERO;
    // Positive numbers are in the order of their bits, up to infinity.
    for bits in (0..=f32::INFINITY.to_bits()).step_by(stride(251)) {
        let secs = f64::from(f32::from_bits(bits));
        let nanos = Duration::from_secs_f64(secs);
        assert!(nanos >= before, "{secs}");
        before = nanos;
        let exact = secs * 1e9;
        if exact < 4e15 {
            assert!((nanos.as_nanos() as f64 - exact).abs() <= 0.5, "{secs}");
        } else if exact >= 1.9e19 {
            assert_eq!(nanos, Duration::MAX, "{secs}");
        }
    }
    for bits in (0x8000_0000..=u32::MAX).step_by(stride(251)) {
        assert_eq!(Duration::from_secs_f64(f64::from(f32::from_bits(bits))), Duration::ZERO);
    }
    for bits in (0x7f80_0001..0x8000_0000_u32).step_by(stride(251)) {
        assert_eq!(Duration::from_secs_f64(f64::from(f32::from_bits(bits))), Duration::ZERO);
    }
    let verdict = verdict();
    let bounds = "every f32, infinities and NaN included";
    eprintln!(
        "core/src/time.rs | Duration::from_secs_f64 | never falls where seconds rise | {bounds} | {verdict}"
    );
    eprintln!(
        "core/src/time.rs | Duration::from_secs_f64 | at most half a nanosecond off below 2^52 ns | {bounds} | {verdict}"
    );
    eprintln!(
        "core/src/time.rs | Duration::from_secs_f64 | zero below zero and for NaN, and saturates | {bounds} | {verdict}"
    );
}

#[test]
fn times_and_lengths_saturate_at_every_edge() {
    for first in edges() {
        for second in edges() {
            let (early, length) = (Time::from_nanos(first), Duration::from_nanos(second));
            assert_eq!(early.saturating_add(length).as_nanos(), first.saturating_add(second));
            assert_eq!(early.saturating_sub(length).as_nanos(), first.saturating_sub(second));
            let since = Time::from_nanos(second).since(early);
            assert_eq!(since.as_nanos(), second.saturating_sub(first));
            if first <= second {
                assert_eq!(early + since, Time::from_nanos(second));
            }
        }
    }
    let verdict = verdict();
    let bounds = "both within one of a power of two";
    eprintln!(
        "core/src/time.rs | Time::since, saturating_add, saturating_sub | no overflow, and undo each other | {bounds} | {verdict}"
    );
}

#[test]
fn the_time_for_a_packet_is_the_nearest_and_grows_with_it() {
    for kbps in (1..=65_536_u64).step_by(stride(641)) {
        let bps = kbps * 1000;
        let rate = Rate::from_bps(bps);
        let mut before = Duration::ZERO;
        for size in 0..=65_535_u64 {
            let time = rate.time_for(Bytes(size));
            assert!(time >= before);
            before = time;
            let off = i128::from(time.as_nanos()) * i128::from(bps) - i128::from(size) * 8_000_000_000;
            assert!(2 * off.abs() <= i128::from(bps), "{size} bytes at {rate}");
        }
    }
    let verdict = verdict();
    let bounds = "sizes to 65,535 bytes, rates to 65,536 kbit/s in whole kbit/s";
    eprintln!("core/src/units.rs | Rate::time_for | at most half a nanosecond off | {bounds} | {verdict}");
    eprintln!("core/src/units.rs | Rate::time_for | never falls where sizes rise | {bounds} | {verdict}");
}

#[test]
fn a_time_or_a_size_beyond_64_bits_saturates() {
    let saturated = |exact: u128| u64::try_from(exact).unwrap_or(u64::MAX);
    for first in edges() {
        for second in edges() {
            let (rate, other) = (Rate::from_bps(first), u128::from(second));
            let time = rate.time_for(Bytes(second));
            let exact = match first {
                0 => u64::MAX,
                bps => saturated((other * 8_000_000_000 + u128::from(bps / 2)) / u128::from(bps)),
            };
            assert_eq!(time.as_nanos(), exact, "{second} bytes at {first} bit/s");
            let carried = rate.bytes_in(Duration::from_nanos(second));
            assert_eq!(
                carried.0,
                saturated(u128::from(first) * other / 8_000_000_000),
                "{second} ns at {first} bit/s"
            );
        }
    }
    let verdict = verdict();
    let bounds = "rate and size or time within one of a power of two";
    eprintln!(
        "core/src/units.rs | Rate::time_for, bytes_in | exact, and saturate beyond 64 bits | {bounds} | {verdict}"
    );
}

#[test]
fn a_spaced_packet_is_due_within_one_interval_of_the_last() {
    // A byte takes a nanosecond, so that intervals are whole.
    let rate = Rate::from_bps(8_000_000_000);
    let at = Time::from_nanos;
    for size in 1..=64_u64 {
        for due in 0..=130_u64 {
            for now in 0..=130_u64 {
                let mut pacer = Pacer::Spaced { due: at(due), unpaced: 0 };
                pacer.sent(at(now), size, rate);
                let next = pacer.ready_at(size, rate).as_nanos();
                let from = due.max(now);
                assert!(next <= from + size && next >= from + size.div_ceil(2), "{size}, {due}, {now}");
                // Late by nothing: whole intervals, so that the rate is kept.
                assert!(now > due || next == due + size);
            }
        }
    }
    let verdict = verdict();
    let bounds = "intervals to 64 ns, and a packet that is early or late by up to two of them";
    eprintln!(
        "core/src/sender/pacer.rs | Pacer::sent | half an interval to a whole one between packets | {bounds} | {verdict}"
    );
    eprintln!(
        "core/src/sender/pacer.rs | Pacer::sent | a packet that is not late keeps the rate | {bounds} | {verdict}"
    );
}

#[test]
fn a_packet_that_was_told_to_leave_finds_its_tokens() {
    for mbps in (1..=16_000_u64).step_by(stride(97)) {
        let rate = Rate::from_mbps(mbps);
        for size in (1..=65_535_u64).step_by(stride(7)) {
            let pacer = Pacer::Bucket { tokens: 0, size: 65_535, filled_at: Time::ZERO };
            let ready = pacer.ready_at(size, rate);
            let held = pacer.tokens_at(ready, rate);
            assert!(held >= size && held <= 65_535, "{size} bytes at {rate}: {held}");
        }
    }
    let verdict = verdict();
    let bounds = "an empty bucket, sizes to 65,535 bytes, rates to 16 Gbit/s in whole Mbit/s";
    eprintln!(
        "core/src/sender/pacer.rs | Pacer::tokens_at | what may leave at `ready_at` finds its tokens | {bounds} | {verdict}"
    );
    eprintln!(
        "core/src/sender/pacer.rs | Pacer::tokens_at | no more than the bucket holds | {bounds} | {verdict}"
    );
}
