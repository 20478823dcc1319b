//! The class of links that a trace belongs to, measured: so that the bound can be held against it.
//!
//! ```text
//! r(t) = what the trace carries in (t - T, t], over T          for each millisecond t of its period
//! for a mu_min: where r < mu_min the link stands still         what it carries then is left out
//!   mu_max = the greatest r
//!   a      = the greatest ratio of two r that are at most tau + 2 T apart; mu_max / mu_min where the link
//!            stands still for as long as that
//!   d      = the longest time within any W in which it stands still, W being the bound for this d
//! W = T + the bound of packets                                 T, for r looks back by T
//! ```
//!
//! Every mu_min gives a bound that holds. [`Measured::tightest`] looks at some and takes the least.

use std::collections::VecDeque;

use brakelight_core::time::Time;
use brakelight_links::trace::Trace;

use super::{Bound, Class, Law, Path};

/// Values of mu_min that are looked at: from the least that is not zero to the greatest.
const TRIED: u32 = 24;
/// The step of t, s.
const STEP_S: f64 = 1e-3;

/// A class that a trace belongs to, and the bound that follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// mu_min, mu_max, a and d.
    pub class: Class,
    /// The longest that a packet can wait, s.
    pub wait_s: f64,
}

impl Measured {
    /// Returns the class with the least bound of those looked at; none where no bound holds within one period
    /// of the trace.
    pub fn tightest(trace: &Trace, law: Law, path: Path) -> Option<Measured> {
        let rates_bps = rates_bps(trace, law.window_s, path.packet_bits);
        let high_bps = rates_bps.iter().copied().fold(0.0, f64::max);
        let lowest_bps = rates_bps.iter().copied().filter(|rate| *rate > 0.0).fold(high_bps, f64::min);
        let ratio = high_bps / lowest_bps;
        let mut best: Option<Measured> = None;
        for step in 0..TRIED {
            let low_bps = lowest_bps * libm::pow(ratio, f64::from(step) / f64::from(TRIED));
            let most_s = best.map_or(rates_bps.len() as f64 * STEP_S, |best| best.wait_s);
            best = Self::of(&rates_bps, [low_bps, high_bps], law, path, most_s).or(best);
        }
        best
    }

    /// Of one mu_min; none if a packet may wait for `most_s`.
    fn of(
        rates_bps: &[f64],
        [low_bps, high_bps]: [f64; 2],
        law: Law,
        path: Path,
        most_s: f64,
    ) -> Option<Measured> {
        let apart = steps_in(path.tau_s + 2.0 * law.window_s);
        let change = change(rates_bps, low_bps, apart).unwrap_or(high_bps / low_bps);
        let mut class = Class { low_bps, high_bps, change, outage_s: 0.0 };
        // Outages come on top.
        let served_s = law.window_s + Bound { law, path, class }.packets_s()?;
        loop {
            let wait_s = served_s + class.outage_s;
            if wait_s >= most_s {
                return None;
            }
            // A little longer, so that few steps lead there.
            let within = steps_in(wait_s).next_multiple_of(100);
            let outage_s = still_s(rates_bps, low_bps, within);
            if outage_s <= class.outage_s {
                return Some(Measured { class, wait_s });
            }
            class.outage_s = outage_s;
        }
    }
}

fn steps_in(time_s: f64) -> usize {
    (time_s / STEP_S).ceil() as usize
}

/// r, bit/s, of one period.
fn rates_bps(trace: &Trace, window_s: f64, opportunity_bits: f64) -> Vec<f64> {
    let window_ms = (window_s / STEP_S).round() as u64;
    let period_ms = trace.period().as_micros() / 1000;
    // The trace repeats, so that what came before its beginning is its end.
    let ends = (period_ms..2 * period_ms).map(|end_ms| {
        let [from, to] = [end_ms - window_ms, end_ms].map(|ms| Time::from_nanos(ms * 1_000_000 + 1));
        trace.count_between(from, to) as f64 * opportunity_bits / window_s
    });
    ends.collect()
}

/// The greatest ratio of two rates at most `apart` steps from each other; none where the link stands still
/// for as long.
fn change(rates_bps: &[f64], low_bps: f64, apart: usize) -> Option<f64> {
    let (mut highest, mut lowest) = (VecDeque::new(), VecDeque::new());
    let (mut change, mut still) = (1.0_f64, 0);
    for place in 0..2 * rates_bps.len() {
        let rate = rates_bps[place % rates_bps.len()];
        if rate < low_bps {
            still += 1;
            if still >= apart {
                return None;
            }
            continue;
        }
        still = 0;
        keep(&mut highest, place, rate, apart, |old, new| old <= new);
        keep(&mut lowest, place, rate, apart, |old, new| old >= new);
        change = change.max(highest[0].1 / lowest[0].1);
    }
    Some(change)
}

/// Adds a rate to those that may still be an extreme, and forgets those too far back.
fn keep(
    extremes: &mut VecDeque<(usize, f64)>,
    place: usize,
    rate: f64,
    apart: usize,
    is_past: impl Fn(f64, f64) -> bool,
) {
    while extremes.back().is_some_and(|&(_, old)| is_past(old, rate)) {
        extremes.pop_back();
    }
    extremes.push_back((place, rate));
    while extremes[0].0 + apart < place {
        extremes.pop_front();
    }
}

/// The longest time within `within` steps in which the link stands still, s.
fn still_s(rates_bps: &[f64], low_bps: f64, within: usize) -> f64 {
    let length = rates_bps.len();
    let is_still = |place: usize| usize::from(rates_bps[place % length] < low_bps);
    let (mut now, mut most) = (0, 0);
    for place in 0..2 * length {
        now += is_still(place);
        if place >= within {
            now -= is_still(place - within);
        }
        most = most.max(now);
    }
    most as f64 * STEP_S
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { tau_s: 0.1, flows: 1.0, packet_bits: 12_000.0 };

    /// One packet each millisecond for so many, or none.
    fn trace(parts: &[(u64, bool)]) -> Trace {
        let mut now = 0;
        let mut instants = Vec::new();
        for &(length, sends) in parts {
            instants.extend((now..now + length).filter(|_| sends).map(|ms| ms + 1));
            now += length;
        }
        Trace::from_millis(instants).unwrap()
    }

    #[test]
    fn a_steady_link_has_one_rate() {
        let measured = Measured::tightest(&trace(&[(10_000, true)]), Law::PAPER, PATH).unwrap();
        assert_eq!((measured.class.low_bps, measured.class.high_bps), (12e6, 12e6));
        assert_eq!((measured.class.change, measured.class.outage_s), (1.0, 0.0));
        let bound = Bound { law: Law::PAPER, path: PATH, class: measured.class };
        assert!((measured.wait_s - bound.packets_s().unwrap() - 0.02).abs() < 1e-9);
    }

    #[test]
    fn an_outage_is_found_and_waited_for() {
        // Of 200 ms, and windows of 20 ms that hold a part of it: what is slower than mu_min stands still.
        let measured =
            Measured::tightest(&trace(&[(5_000, true), (200, false), (5_000, true)]), Law::PAPER, PATH)
                .unwrap();
        assert!((0.18..=0.22).contains(&measured.class.outage_s), "{measured:?}");
        assert!(measured.wait_s > 0.18);
    }

    #[test]
    fn two_rates_are_told_and_how_fast_they_change() {
        let half = (0..5_000).map(|n| 5_000 + 2 * (n + 1));
        let trace = Trace::from_millis((1..=5_000).chain(half)).unwrap();
        let rates = rates_bps(&trace, 0.02, 12_000.0);
        assert_eq!((rates[4_000], rates[10_000]), (12e6, 6e6));
        assert_eq!(change(&rates, 6e6, 140), Some(2.0));
        // Both are above 5 Mbit/s, and below 13.
        assert_eq!((still_s(&rates, 5e6, 1_000), still_s(&rates, 13e6, 1_000)), (0.0, 1.0));
        assert_eq!(change(&rates, 13e6, 140), None);
    }
}
