//! Round-trip time: the filters of both profiles and the timeout that follows from them.
//!
//! ```text
//! TCP:   srtt += (m - srtt) / 8;  mdev += (|m - srtt| - mdev) / 4, by 1/8 of that where m < srtt - mdev      rfc6298 2.3
//!        rttvar = the largest 4 mdev of the last round trip, falling by a quarter per round trip; floor 200 ms
//!        RTO = srtt + rttvar                                                                                 rfc6298 2.3
//! QUIC:  adjusted = latest - ack_delay where that stays above min_rtt                                        rfc9002 5.3
//!        rttvar += (|srtt - adjusted| - rttvar) / 4;  srtt += (adjusted - srtt) / 8                           rfc9002 5.3
//!        PTO = srtt + max(4 rttvar, 1 ms) + max_ack_delay                                                    rfc9002 6.2.1
//! ```
//!
//! The TCP half is Linux's: its floor of 200 ms lies under the variance, not under the sum, so an RTO is never less than
//! srtt + 200 ms, and a sudden drop of the RTT does not raise the variance (Linux 6, `tcp_rtt_estimator`).

use brakelight_core::time::Duration;

/// Clock granularity of QUIC's timers (rfc9002 6.1.2).
pub(super) const GRANULARITY: Duration = Duration::from_millis(1);

/// The filters over one connection's RTT samples.
#[derive(Clone, Debug)]
pub(super) struct RttEstimator {
    /// Smoothed, in nanoseconds; zero before the first sample.
    smoothed: u64,
    /// Mean deviation.
    deviation: u64,
    /// TCP: the largest `4 deviation` since the last round began.
    worst: u64,
    /// TCP: what the timeout adds to `smoothed`.
    variance: u64,
    /// TCP: the segment whose acknowledgement ends the round of `worst`.
    round_end: u32,
    min: Duration,
    latest: Duration,
    /// What is assumed before the first sample.
    initial: Duration,
    /// TCP: the floor under `variance`.
    floor: u64,
}

impl RttEstimator {
    pub(super) fn new(initial: Duration, floor: Duration) -> Self {
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

    pub(super) fn has_sample(&self) -> bool {
        self.smoothed != 0
    }

    pub(super) fn smoothed(&self) -> Duration {
        if self.has_sample() { Duration::from_nanos(self.smoothed) } else { self.initial }
    }

    pub(super) fn variation(&self) -> Duration {
        Duration::from_nanos(self.deviation)
    }

    /// The smallest sample, or what is assumed before there is one.
    pub(super) fn min(&self) -> Duration {
        if self.min == Duration::MAX { self.initial } else { self.min }
    }

    pub(super) fn latest(&self) -> Duration {
        self.latest
    }

    /// Lowers the minimum to a sample that the filters do not see.
    pub(super) fn note_min(&mut self, sample: Duration) {
        self.min = self.min.min(sample);
        self.latest = sample;
    }

    /// A TCP sample, with the first unacknowledged segment and the next new one.
    pub(super) fn sample_tcp(&mut self, sample: Duration, una: u32, next: u32) {
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
        // rfc6298 2.3, and Linux: a fall counts an eighth as much as a rise.
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
    pub(super) fn sample_quic(&mut self, sample: Duration, ack_delay: Duration) {
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
        self.smoothed = (7 * self.smoothed + adjusted) / 8;
    }

    /// TCP's retransmission timeout before backoff, or `None` before the first sample.
    pub(super) fn rto(&self) -> Option<Duration> {
        self.has_sample().then(|| Duration::from_nanos(self.smoothed + self.variance))
    }

    /// QUIC's probe timeout before backoff.
    pub(super) fn pto(&self, max_ack_delay: Duration) -> Duration {
        let spread = Duration::from_nanos(4 * self.deviation).max(GRANULARITY);
        self.smoothed() + spread + max_ack_delay
    }
}
