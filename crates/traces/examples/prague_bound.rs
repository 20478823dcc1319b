//! What any marking could get out of Prague's growth, with the link's future known (docs/abc-l4s.md):
//! `cargo run --release -p brakelight-traces --example prague_bound -- RTT_MS FILE...` prints, for each
//! file and delay, the most of the link that can be used if no more than a twentieth of the packets waits
//! longer.
//!
//! ```text
//! step k has one round trip R; the window w_k is free to fall, and grows by one packet at most
//! served in step k:  s = min(w, mu_k R)        late in it:  s, where w > mu_k (R + d) + 1, else 0
//! bound = min over L of max over w of sum s - L (late - s / 20)
//! ```
//!
//! The maximum is dynamic programming over whole windows. Any multiplier L > 0 gives an upper bound, since
//! what is subtracted is negative wherever the demand is met. The bound is generous: the first window is
//! free, nothing that waits is carried over to the next step, and a round trip is never longer than R.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use brakelight_core::time::{Duration, Time};
use brakelight_links::trace::Trace;
use brakelight_traces::names::read;

/// Delays that a twentieth of the packets may exceed, ms.
const DELAYS_MS: [f64; 4] = [5.0, 10.0, 20.0, 40.0];
/// Length of a stretch, and how many are spread over a trace.
const STRETCH: Duration = Duration::from_secs(30);
const STRETCHES: u64 = 4;
const LATE_SHARE: f64 = 0.05;

/// Packets that the link can carry in each round trip of a stretch that begins at `start`.
fn capacities(trace: &Trace, start: Time, rtt: Duration) -> Vec<f64> {
    let period = trace.period().as_nanos();
    let count = |at: Time| {
        let nanos = at.since(Time::ZERO).as_nanos();
        nanos / period * trace.opportunities()
            + trace.before(Time::ZERO + Duration::from_nanos(nanos % period))
    };
    let steps = STRETCH.as_nanos() / rtt.as_nanos();
    (0..steps).map(|step| (count(start + rtt * (step + 1)) - count(start + rtt * step)) as f64).collect()
}

/// The most that the sum can be with the multiplier `lambda`, in packets; `late_from` is (R + d) / R.
fn best(capacities: &[f64], late_from: f64, lambda: f64) -> f64 {
    let most = capacities.iter().fold(0.0f64, |most, mu| most.max(*mu));
    let windows = (most * late_from) as usize + 3;
    // What the steps from the present one on are worth, by the window in it.
    let mut worth = vec![0.0; windows];
    for mu in capacities.iter().rev() {
        // The best of all windows up to one more than the present one.
        let mut reachable = f64::NEG_INFINITY;
        let mut before = worth[0];
        for window in 0..windows {
            let next = worth[(window + 1).min(windows - 1)];
            reachable = reachable.max(before).max(next);
            before = next;
            let served = mu.min(window as f64);
            let late = if window as f64 > mu * late_from + 1.0 { served } else { 0.0 };
            worth[window] = served - lambda * (late - LATE_SHARE * served) + reachable;
        }
    }
    worth.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// The bound on the share of the link that is used.
fn bound(capacities: &[f64], late_from: f64) -> f64 {
    let all: f64 = capacities.iter().sum();
    let multipliers = (0..30).map(|power| 0.01 * 1.4f64.powi(power));
    let least = multipliers.fold(f64::INFINITY, |least, l| least.min(best(capacities, late_from, l)));
    (least / all).min(1.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rtt_ms: u64 = arguments.next().ok_or("the first argument is the round trip in ms")?.parse()?;
    let rtt = Duration::from_millis(rtt_ms);
    let mut out = std::io::stdout().lock();
    let mut sums = [0.0; DELAYS_MS.len()];
    let mut files = 0.0;
    writeln!(out, "p95 of at most {DELAYS_MS:?} ms, {rtt_ms} ms of round trip: % of the link")?;
    for file in arguments {
        let trace = read(Path::new(&file))?;
        let stretches: Vec<Vec<f64>> = (0..STRETCHES)
            .map(|index| capacities(&trace, Time::ZERO + trace.period() * index / STRETCHES, rtt))
            .filter(|capacities| capacities.iter().sum::<f64>() > 0.0)
            .collect();
        let mut line = String::new();
        for (sum, delay_ms) in sums.iter_mut().zip(DELAYS_MS) {
            let late_from = 1.0 + delay_ms / rtt_ms as f64;
            let total: f64 = stretches.iter().map(|capacities| bound(capacities, late_from)).sum();
            let percent = 100.0 * total / stretches.len() as f64;
            *sum += percent;
            line += &format!(" {percent:6.1}");
        }
        writeln!(out, "{line}  {file}")?;
        files += 1.0;
    }
    writeln!(out, "{}  mean", sums.map(|sum| format!(" {:6.1}", sum / files)).concat())?;
    Ok(())
}
