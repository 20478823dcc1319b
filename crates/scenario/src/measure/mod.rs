//! What a link, simulated or real, is watched for. Everything but a link's log is streamed: memory does not
//! depend on how long it runs.
//!
//! The definitions are those of Mahimahi's throughput graph, so that numbers can be laid beside real runs:
//!
//! - a link's *capacity* counts every delivery opportunity, used or not; its *throughput* every byte that
//!   left it, headers, link overhead and retransmissions included; *utilisation* is their ratio;
//! - a packet's *queueing delay* at a link is departure minus arrival, its own transmission included, of
//!   packets that left; over a path it is the sum over its links; propagation is not in it;
//! - *one-way delay* is arrival at the receiver minus the moment the packet left its sender.
//!
//! | module | holds |
//! |---|---|
//! | [`distribution`] | mean, quantiles, maximum |
//! | [`link`] | one link's meter |
//! | [`series`] | what a link did, bin by bin |
//! | [`signal`] | signal delay |
//! | [`unfairness`] | how far the rates of flows lie apart over a time |
//! | [`opportunities`] | a link's log: delivery opportunities between events |

pub mod link;
pub mod opportunities;
pub mod series;
pub mod signal;
pub mod unfairness;

use brakelight_core::ecn::Mark;
use brakelight_core::time::{Duration, Time};

use crate::outcome::MarkCounts;
use crate::scenario::Service;

pub use brakelight_apps::distribution::{self, Distribution};
pub use link::LinkMeter;
pub use series::{LinkBin, LinkBins};
pub use signal::SignalMeter;
pub use unfairness::Unfairness;

impl MarkCounts {
    /// Counts one mark.
    #[inline]
    pub fn count(&mut self, mark: Mark) {
        match mark {
            Mark::None => {}
            Mark::Accelerate => self.accelerate += 1,
            Mark::Brake => self.brake += 1,
            Mark::Ce => self.ce += 1,
        }
    }
}

impl std::ops::Add for MarkCounts {
    type Output = MarkCounts;

    /// What both counted, or the largest number: peers count too, and theirs may be anything.
    fn add(self, other: MarkCounts) -> MarkCounts {
        MarkCounts {
            accelerate: self.accelerate.saturating_add(other.accelerate),
            brake: self.brake.saturating_add(other.brake),
            ce: self.ce.saturating_add(other.ce),
        }
    }
}

/// Returns Jain's fairness index (jain84): (sum x)^2 / (n sum x^2), 1 when all are equal, 1/n when one has
/// everything. `None` for an empty or all-zero list.
pub fn jain(rates: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for rate in rates {
        n += 1.0;
        sum += rate;
        squares += rate * rate;
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// Returns the part of the measured interval, `from` until `to`, in which a flow exists that begins at
/// `start` and ends at `stop`, or never.
pub fn active(start: Time, stop: Option<Time>, from: Time, to: Time) -> Duration {
    stop.map_or(to, |stop| to.min(stop)).since(start.max(from))
}

/// Returns `bytes` in `time` as Mbit/s; zero for no time.
pub fn mbps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8e-6 / time.as_secs_f64() }
}

/// Returns `part` of `whole`; zero where there is no whole.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Returns `part` of `whole` in percent; zero where there is no whole.
pub fn percent(part: u64, whole: u64) -> f64 {
    100.0 * ratio(part as f64, whole as f64)
}

/// Returns what serves a link, in words: its trace, or its rates.
pub fn describe_service(service: &Service) -> String {
    match service {
        Service::Trace(name) => name.clone(),
        Service::Fixed(rate) => rate.to_string(),
        Service::Steps(steps) => {
            let rates: Vec<String> = steps.steps.iter().map(|(_, rate)| rate.to_string()).collect();
            rates.join("/")
        }
        Service::Radio(radio) => radio.words().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_shares_and_one_over_n_for_one_winner() {
        assert_eq!(jain([3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain([8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain([]), None);
        assert_eq!(jain([0.0]), None);
    }
}
