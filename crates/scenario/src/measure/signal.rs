//! Signal delay: how old the newest thing is that a receiver could know, for every millisecond (winstein13
//! section 5.1; the definition of Mahimahi's throughput graph).
//!
//! For each millisecond between the first and the last arrival at the link: the least queueing delay among
//! the packets that arrived in it, or, where none did, one more than the value of the next millisecond.

use brakelight_core::time::{Duration, Time};

use super::distribution::Distribution;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Streamed signal delay. Packets are given in order of arrival, as a FIFO lets them leave; one that arrived
/// earlier than its predecessor counts in its predecessor's millisecond.
#[derive(Clone, Debug, Default)]
pub struct SignalMeter {
    /// When the millisecond being collected ends; the origin before the first packet.
    ends: Time,
    /// The least delay in it.
    least: Duration,
    delays: Distribution,
}

impl SignalMeter {
    /// A packet that arrived at `arrived` left after `queued`.
    #[inline]
    pub fn record(&mut self, arrived: Time, queued: Duration) {
        if arrived < self.ends {
            self.least = self.least.min(queued);
        } else {
            self.start(arrived, queued);
        }
    }

    #[inline(never)]
    fn start(&mut self, arrived: Time, queued: Duration) {
        if self.ends == Time::ZERO {
            self.ends = Time::from_millis(arrived.as_nanos() / MILLISECOND.as_nanos());
        } else {
            self.delays.record(self.least);
        }
        self.ends += MILLISECOND;
        // Silent milliseconds wait for the packet that ends them. The first packet of a millisecond
        // stands for its least delay: in a FIFO, later arrivals of the same millisecond leave later by at
        // most that millisecond.
        let mut silent = queued;
        while self.ends <= arrived {
            silent += MILLISECOND;
            self.delays.record(silent);
            self.ends += MILLISECOND;
        }
        self.least = queued;
    }

    /// Returns the 95th percentile over milliseconds.
    pub fn p95_ms(&self) -> f64 {
        let mut delays = self.delays.clone();
        if self.ends > Time::ZERO {
            delays.record(self.least);
        }
        delays.quantile_ms(0.95)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_ages_by_a_millisecond_each_millisecond() {
        let mut signal = SignalMeter::default();
        signal.record(Time::from_millis(10), Duration::from_millis(2));
        // 11, 12 and 13 ms saw nothing: 3 + 5, 2 + 5 and 1 + 5 ms.
        signal.record(Time::from_millis(14), Duration::from_millis(5));
        let mut expected = Distribution::default();
        for delay in [2, 8, 7, 6, 5] {
            expected.record(Duration::from_millis(delay));
        }
        assert_eq!(signal.p95_ms(), expected.quantile_ms(0.95));
        assert_eq!(signal.delays.mean_ms(), (2.0 + 8.0 + 7.0 + 6.0) / 4.0);
    }

    #[test]
    fn the_least_delay_of_a_millisecond_counts() {
        let mut signal = SignalMeter::default();
        signal.record(Time::from_nanos(10_100_000), Duration::from_millis(9));
        signal.record(Time::from_nanos(10_900_000), Duration::from_millis(4));
        signal.record(Time::from_millis(11), Duration::from_millis(4));
        assert_eq!(signal.delays.mean_ms(), 4.0);
    }
}
