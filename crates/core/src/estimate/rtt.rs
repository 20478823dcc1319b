//! Smoothed RTT, its variation, the smallest sample, and the timeouts that follow from them (RFC 6298; RFC 9002
//! section 5).
//!
//! ```text
//! first sample R:   SRTT = R, RTTVAR = R / 2                                               rfc6298 2.2
//! later ones:       RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|, SRTT = 7/8 SRTT + 1/8 R          rfc6298 2.3
//! with ack delay D: R' = R - min(D, max_ack_delay) if that is at least min_rtt, else R     rfc9002 5.3
//! TCP:              RTO = max(SRTT + max(G, 4 RTTVAR), floor)                              rfc6298 2.3, 2.4
//! TCP, as in Linux: RTO = SRTT + max(4 RTTVAR, floor)                                      linux tcp_rtt_estimator
//! QUIC:             PTO = SRTT + max(4 RTTVAR, G) + max_ack_delay                          rfc9002 6.2.1
//! ```
//!
//! min_rtt takes the samples as they are, with the receiver's delay left in (rfc9002 5.2).
//!
//! Deviations: D1 Linux's RTTVAR rises at once to the largest deviation of a round and falls by a quarter per round;
//! here it is RFC 6298's mean, so the RTO after a burst of delay is somewhat shorter.

use crate::controller::Rtt;
use crate::time::Duration;

/// The clock granularity G.
// rfc9002 6.1.2
const GRANULARITY: Duration = Duration::from_millis(1);

/// An RTT estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttEstimator {
    smoothed: Duration,
    variation: Duration,
    min: Option<Duration>,
}

impl RttEstimator {
    /// An estimator without a sample, which answers `initial` (RFC 6298 section 2.1 and RFC 9002 section 6.2.2: about a
    /// second, a third of it in QUIC).
    pub fn new(initial: Duration) -> Self {
        RttEstimator { smoothed: initial, variation: initial / 2, min: None }
    }

    /// Takes a sample. `ack_delay` is how long the receiver says it waited, no more than the bound it promised; zero
    /// where it does not say.
    pub fn update(&mut self, sample: Duration, ack_delay: Duration) {
        let Some(min) = self.min else {
            // rfc6298 2.2; rfc9002 5.3 ignores the ack delay of the first sample.
            *self = RttEstimator { smoothed: sample, variation: sample / 2, min: Some(sample) };
            return;
        };
        let min = min.min(sample);
        self.min = Some(min);
        // rfc9002 5.3
        let adjusted = if sample >= min + ack_delay { sample - ack_delay } else { sample };
        let deviation = self.smoothed.max(adjusted) - self.smoothed.min(adjusted);
        // rfc6298 2.3
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Whether there was a sample.
    pub fn has_sample(&self) -> bool {
        self.min.is_some()
    }

    /// The smoothed RTT, or the initial one before the first sample.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation.
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The smallest sample.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Starts the smallest sample over: the path has changed (RFC 9002 section 5.2).
    pub fn reset_min(&mut self) {
        self.min = self.min.map(|_| self.smoothed);
    }

    /// RFC 6298's retransmission timeout, not below `floor`.
    pub fn rto(&self, floor: Duration) -> Duration {
        // rfc6298 2.3, 2.4
        (self.smoothed + (self.variation * 4).max(GRANULARITY)).max(floor)
    }

    /// Linux's retransmission timeout: the floor is under the variation, not under the sum.
    pub fn rto_linux(&self, floor: Duration) -> Duration {
        // linux tcp_rtt_estimator, __tcp_set_rto
        self.smoothed + (self.variation * 4).max(floor)
    }

    /// QUIC's probe timeout.
    pub fn pto(&self, max_ack_delay: Duration) -> Duration {
        // rfc9002 6.2.1
        self.smoothed + (self.variation * 4).max(GRANULARITY) + max_ack_delay
    }

    /// What an ACK event says, given the sample it brought.
    pub fn rtt(&self, sample: Option<Duration>) -> Rtt {
        let min = self.min.unwrap_or(self.smoothed);
        Rtt { sample, smoothed: self.smoothed, variation: self.variation, min }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn follows_the_worked_example() {
        let mut rtt = RttEstimator::new(ms(1000));
        assert_eq!(rtt.rto(ms(200)), ms(3000), "1000 + 4 * 500");
        rtt.update(ms(100), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variation(), rtt.min()), (ms(100), ms(50), Some(ms(100))));
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110.
        rtt.update(ms(180), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variation()), (ms(110), Duration::from_micros(57_500)));
        assert_eq!(rtt.rto(ms(200)), ms(340));
        assert_eq!(rtt.pto(ms(25)), ms(365));
    }

    #[test]
    fn the_floor_is_under_the_sum_or_under_the_variation() {
        let mut rtt = RttEstimator::new(ms(1000));
        for _ in 0..100 {
            rtt.update(ms(100), Duration::ZERO);
        }
        assert_eq!(rtt.rto(ms(200)), ms(200));
        assert_eq!(rtt.rto_linux(ms(200)), ms(300));
        assert_eq!(rtt.pto(Duration::ZERO), ms(101));
    }

    #[test]
    fn subtracts_the_ack_delay_only_as_far_as_the_smallest_sample() {
        let mut rtt = RttEstimator::new(ms(333));
        rtt.update(ms(100), ms(20));
        assert_eq!(rtt.smoothed(), ms(100), "the first sample stands as it is");
        rtt.update(ms(125), ms(25));
        assert_eq!(rtt.smoothed(), ms(100));
        rtt.update(ms(108), ms(25));
        assert_eq!(rtt.smoothed(), ms(101), "108 - 25 would be below the smallest: 7/8 * 100 + 1/8 * 108");
        assert_eq!(rtt.min(), Some(ms(100)));
    }

    proptest! {
        #[test]
        fn stays_within_the_samples(samples in prop::collection::vec(1_u64..10_000_000_000, 1..100)) {
            let mut rtt = RttEstimator::new(ms(1000));
            for &sample in &samples {
                rtt.update(Duration::from_nanos(sample), Duration::ZERO);
            }
            let (low, high) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
            // Rounding down costs less than one nanosecond a step.
            prop_assert!(rtt.smoothed().as_nanos() + 8 >= *low && rtt.smoothed().as_nanos() <= *high);
            prop_assert_eq!(rtt.min(), Some(Duration::from_nanos(*low)));
        }
    }
}
