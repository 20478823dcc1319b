//! Round-trip time: the filters of both profiles and the timeout that follows from them.
//!
//! ```text
//! TCP:   srtt += (m - srtt) / 8;  mdev += (|m - srtt| - mdev) / 4, by 1/8 of that where m < srtt - mdev
//!                                                                                                rfc6298 2.3
//!        rttvar = the largest 4 mdev of the last round trip, falling by a quarter per RTT; floor 200 ms
//!        RTO = srtt + rttvar                                                                   rfc6298 2.3
//! QUIC:  adjusted = latest - ack_delay where that stays above min_rtt                          rfc9002 5.3
//!        rttvar += (|srtt - adjusted| - rttvar) / 4;  srtt += (adjusted - srtt) / 8            rfc9002 5.3
//!        PTO = srtt + max(4 rttvar, 1 ms) + max_ack_delay                                      rfc9002 6.2.1
//! ```
//!
//! The TCP half is that of Linux 6.12 tcp_input.c, tcp_rtt_estimator: its floor of 200 ms lies under the
//! variance, not under the sum, so an RTO is never less than srtt + 200 ms, and a sudden drop of the RTT does
//! not raise the variance.

use crate::controller::Rtt;
use crate::time::Duration;

/// Clock granularity of QUIC's timers (rfc9002 6.1.2).
pub const GRANULARITY: Duration = Duration::from_millis(1);
/// RTT assumed before TCP's first sample: RFC 6298's initial RTO stands for it.
const TCP_INITIAL: Duration = Duration::from_secs(1);
/// The floor of what TCP's RTO adds to srtt (Linux 6.12 include/net/tcp.h, TCP_RTO_MIN).
const TCP_FLOOR: Duration = Duration::from_millis(200);
/// RTT assumed before QUIC's first sample (rfc9002 6.2.2).
pub const QUIC_INITIAL: Duration = Duration::from_millis(333);

/// The filters over one connection's RTT samples.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// Smoothed, in nanoseconds; zero before the first sample.
    smoothed: u64,
    /// Mean deviation.
    deviation: u64,
    /// TCP: the largest `4 deviation` since the last round began.
    worst: u64,
    /// TCP: what the timeout adds to `smoothed`.
    variance: u64,
    /// TCP: the segment whose acknowledgement ends the round of `worst`.
    round_end: u64,
    min: Duration,
    latest: Duration,
    /// What is assumed before the first sample.
    initial: Duration,
    /// TCP: the floor under `variance`.
    floor: u64,
}

impl RttEstimator {
    /// Returns the filters of TCP: [`RttEstimator::sample_tcp`], [`RttEstimator::rto`].
    pub fn tcp() -> Self {
        Self::new(TCP_INITIAL, TCP_FLOOR)
    }

    /// Returns the filters of QUIC: [`RttEstimator::sample_quic`], [`RttEstimator::pto`].
    pub fn quic() -> Self {
        Self::new(QUIC_INITIAL, Duration::ZERO)
    }

    fn new(initial: Duration, floor: Duration) -> Self {
        RttEstimator {
            smoothed: 0,
            deviation: initial.as_nanos() / 2,
            worst: floor.as_nanos(),
            variance: floor.as_nanos(),
            round_end: 0,
            min: Duration::MAX,
            latest: Duration::ZERO,
            initial,
            floor: floor.as_nanos(),
        }
    }

    /// Returns whether there was a sample.
    #[inline]
    pub fn has_sample(&self) -> bool {
        self.smoothed != 0
    }

    /// Returns the smoothed RTT, or what is assumed before the first sample.
    #[inline]
    pub fn smoothed(&self) -> Duration {
        if self.has_sample() { Duration::from_nanos(self.smoothed) } else { self.initial }
    }

    /// Returns the smoothed RTT, or `None` before the first sample.
    #[inline]
    pub fn measured(&self) -> Option<Duration> {
        self.has_sample().then(|| self.smoothed())
    }

    /// Returns the mean deviation: RFC 9002's rttvar, mdev of Linux 6.12 tcp_input.c.
    pub fn variation(&self) -> Duration {
        Duration::from_nanos(self.deviation)
    }

    /// Returns the smallest sample, or what is assumed before there is one.
    pub fn min(&self) -> Duration {
        if self.min == Duration::MAX { self.initial } else { self.min }
    }

    /// Returns the newest sample; zero before there is one.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// Lowers the minimum to a sample that the filters do not see.
    pub fn note_min(&mut self, sample: Duration) {
        self.min = self.min.min(sample);
        self.latest = sample;
    }

    /// A TCP sample, with the first unacknowledged segment and the next new one.
    pub fn sample_tcp(&mut self, sample: Duration, una: u64, next: u64) {
        let sample = sample.as_nanos().max(1);
        if !self.has_sample() {
            // rfc6298 2.2
            self.smoothed = sample;
            self.deviation = sample / 2;
            self.variance = (4 * self.deviation).max(self.floor);
            self.worst = self.variance;
            self.round_end = next;
            return;
        }
        let error = sample.abs_diff(self.smoothed);
        let fell = sample < self.smoothed;
        // rfc6298 2.3; Linux 6.12 tcp_input.c, tcp_rtt_estimator: a fall counts an eighth as much as a rise.
        self.smoothed = if fell { self.smoothed - error / 8 } else { self.smoothed + error / 8 };
        if error <= self.deviation {
            self.deviation -= (self.deviation - error) / 4;
        } else {
            self.deviation += (error - self.deviation) / if fell { 32 } else { 4 };
        }
        self.worst = self.worst.max(4 * self.deviation);
        self.variance = self.variance.max(self.worst);
        if una > self.round_end {
            if self.worst < self.variance {
                self.variance -= (self.variance - self.worst) / 4;
            }
            self.round_end = next;
            self.worst = self.floor;
        }
    }

    /// A QUIC sample, with the delay the receiver reports.
    pub fn sample_quic(&mut self, sample: Duration, ack_delay: Duration) {
        self.note_min(sample);
        let sample = sample.as_nanos().max(1);
        if !self.has_sample() {
            // rfc9002 5.3
            self.smoothed = sample;
            self.deviation = sample / 2;
            return;
        }
        let adjusted = if sample >= self.min.as_nanos() + ack_delay.as_nanos() {
            sample - ack_delay.as_nanos()
        } else {
            sample
        };
        let error = adjusted.abs_diff(self.smoothed);
        self.deviation = (3 * self.deviation + error) / 4;
        // Zero stands for no sample.
        self.smoothed = ((7 * self.smoothed + adjusted) / 8).max(1);
    }

    /// Returns TCP's retransmission timeout before backoff, or `None` before the first sample.
    pub fn rto(&self) -> Option<Duration> {
        self.has_sample().then(|| Duration::from_nanos(self.smoothed + self.variance))
    }

    /// Returns what the controller is told, with this ACK's sample.
    #[inline]
    pub fn told(&self, sample: Option<Duration>) -> Rtt {
        Rtt { sample, smoothed: self.smoothed(), variation: self.variation(), min: self.min() }
    }

    /// Returns QUIC's probe timeout before backoff (rfc9002 6.2.1), towards a peer that holds ACKs back for
    /// `max_ack_delay` at most.
    pub fn pto(&self, max_ack_delay: Duration) -> Duration {
        let spread = Duration::from_nanos(4 * self.deviation).max(GRANULARITY);
        self.smoothed() + spread + max_ack_delay
    }
}

#[cfg(test)]
mod proofs;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// rfc9002 5.3, by hand.
    #[test]
    fn quic_subtracts_the_delay_of_an_ack_unless_that_falls_below_the_smallest_sample() {
        let mut rtt = RttEstimator::quic();
        assert_eq!(
            rtt.told(None),
            Rtt { sample: None, smoothed: ms(333), variation: ms(333) / 2, min: ms(333) }
        );
        rtt.sample_quic(ms(100), ms(0));
        assert_eq!(rtt.told(None), Rtt { sample: None, smoothed: ms(100), variation: ms(50), min: ms(100) });
        // 120 ms, held back for 10: counts as 110.
        rtt.sample_quic(ms(120), ms(10));
        assert_eq!((rtt.smoothed(), rtt.variation()), (Duration::from_micros(101_250), ms(40)));
        // 101 ms less 20 would fall below the smallest: counts as 101.
        rtt.sample_quic(ms(101), ms(20));
        assert_eq!(rtt.min(), ms(100));
        assert_eq!(rtt.smoothed(), Duration::from_nanos((101_250_000 * 7 + 101_000_000) / 8));
        // 39.8125 / 4 of 101.21875 + 4 rttvar + 25 ms
        assert_eq!(rtt.pto(ms(25)), rtt.smoothed() + rtt.variation() * 4 + ms(25));
    }

    /// rfc6298 2.2 and 2.3 with the floor of 200 ms of Linux 6.12 tcp_input.c.
    #[test]
    fn the_retransmission_timeout_is_never_less_than_srtt_and_200_ms() {
        let mut rtt = RttEstimator::tcp();
        assert_eq!(rtt.rto(), None);
        rtt.sample_tcp(ms(100), 0, 10);
        // srtt = 100 ms, 4 mdev = 200 ms
        assert_eq!(rtt.rto(), Some(ms(300)));
        for round in 1..100 {
            rtt.sample_tcp(ms(100), round * 10 + 1, round * 10 + 11);
        }
        assert_eq!(rtt.rto(), Some(ms(300)));
        // A rise of 80 ms: mdev grows by a quarter of the error.
        rtt.sample_tcp(ms(180), 2_000, 2_010);
        assert!(rtt.rto().unwrap() >= ms(310));
    }

    /// Linux 6.12 net/ipv4/tcp_input.c, tcp_rtt_estimator: a fall counts an eighth as much in the deviation.
    #[test]
    fn a_sudden_fall_of_the_rtt_hardly_raises_its_deviation() {
        let (mut up, mut down) = (RttEstimator::tcp(), RttEstimator::tcp());
        for rtt in [&mut up, &mut down] {
            for round in 0..60 {
                rtt.sample_tcp(ms(100), round, round + 1);
            }
        }
        let settled = up.variation();
        up.sample_tcp(ms(180), 100, 101);
        down.sample_tcp(ms(20), 100, 101);
        let rise = |rtt: &RttEstimator| rtt.variation().as_nanos() - settled.as_nanos();
        assert!(rise(&up) > 7 * rise(&down), "{} and {}", rise(&up), rise(&down));
    }

    /// Linux 6.12 net/ipv4/tcp_input.c, tcp_rtt_estimator: `after(tp->snd_una, tp->rtt_seq)`. The variance
    /// falls once per flight, by a quarter of the way to the worst deviation in it, when more than that
    /// flight is acknowledged.
    #[test]
    fn the_variance_falls_once_a_whole_flight_is_acknowledged() {
        let mut rtt = RttEstimator::tcp();
        rtt.sample_tcp(ms(400), 0, 10);
        // srtt + 4 (400 / 2)
        assert_eq!(rtt.rto(), Some(ms(1_200)));
        // The first flight had the worst deviation itself; it ends with segment 11, the next with segment 21.
        rtt.sample_tcp(ms(400), 11, 20);
        assert_eq!(rtt.rto(), Some(ms(1_200)));
        // mdev was 200, is 150, and becomes 112.5: the worst of this flight is 450 ms, of 800.
        rtt.sample_tcp(ms(400), 20, 25);
        assert_eq!(rtt.rto(), Some(ms(1_200)), "segment 20 is not beyond the flight");
        rtt.sample_tcp(ms(400), 21, 30);
        assert_eq!(rtt.rto(), Some(Duration::from_nanos(1_112_500_000)));
    }
}
