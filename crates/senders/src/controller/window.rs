//! Window arithmetic that the classic TCPs share.

use brakelight_core::controller::IdleEvent;
use brakelight_core::units::Bytes;

/// What is left of the window after an idle period, and the slow-start threshold that goes with it: the
/// window is halved once for every retransmission timeout that passed, but not below the restart window, and
/// the threshold remembers three quarters of what the window was (RFC 2861 section 3, as Linux 6.12
/// tcp_output.c, tcp_cwnd_restart, does it; RFC 5681 section 4.1 would go to the restart window at once).
pub(super) fn restarted(cwnd: Bytes, ssthresh: Bytes, initial: Bytes, event: &IdleEvent) -> (Bytes, Bytes) {
    let restart = initial.min(cwnd);
    let mut left = cwnd;
    let mut idle = event.idle.saturating_sub(event.rto);
    while !idle.is_zero() && left > restart && !event.rto.is_zero() {
        left = Bytes(left.0 / 2);
        idle = idle.saturating_sub(event.rto);
    }
    (left.max(restart), ssthresh.max(Bytes(cwnd.0 / 4 * 3)))
}

/// Slow start: the window grows by what was acknowledged, up to the threshold. Returns what is left of
/// `acked`.
pub(super) fn slow_start(cwnd: &mut Bytes, ssthresh: Bytes, acked: Bytes) -> Bytes {
    let growth = acked.min(ssthresh.saturating_sub(*cwnd));
    *cwnd += growth;
    acked - growth
}

/// Additive increase by byte counting: one packet for each window of acknowledged bytes (RFC 3465
/// section 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AdditiveIncrease {
    /// Acknowledged bytes not yet turned into growth.
    credit: Bytes,
}

impl AdditiveIncrease {
    /// Counts `acked` bytes and grows the window by what they earn.
    pub(super) fn grow(&mut self, cwnd: &mut Bytes, mss: Bytes, acked: Bytes) {
        self.credit += acked;
        while self.credit >= *cwnd {
            self.credit -= *cwnd;
            *cwnd += mss;
        }
    }

    /// Forgets what was counted: the window changed for another reason.
    pub(super) fn reset(&mut self) {
        self.credit = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::time::{Duration, Time};

    use super::*;

    fn idle(ms: u64) -> IdleEvent {
        IdleEvent {
            now: Time::from_secs(1),
            idle: Duration::from_millis(ms),
            rto: Duration::from_millis(200),
        }
    }

    #[test]
    fn an_idle_period_halves_the_window_once_per_timeout() {
        let initial = Bytes(10_000);
        // 200 ms idle at an RTO of 200 ms: no full timeout has passed yet.
        assert_eq!(
            restarted(Bytes(64_000), Bytes(8_000), initial, &idle(200)),
            (Bytes(64_000), Bytes(48_000))
        );
        assert_eq!(
            restarted(Bytes(64_000), Bytes(8_000), initial, &idle(201)),
            (Bytes(32_000), Bytes(48_000))
        );
        assert_eq!(
            restarted(Bytes(64_000), Bytes(8_000), initial, &idle(601)),
            (Bytes(10_000), Bytes(48_000))
        );
        assert_eq!(
            restarted(Bytes(4_000), Bytes(8_000), initial, &idle(9_999)),
            (Bytes(4_000), Bytes(8_000))
        );
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_leaves_the_rest() {
        let mut cwnd = Bytes(9_000);
        assert_eq!(slow_start(&mut cwnd, Bytes(10_000), Bytes(3_000)), Bytes(2_000));
        assert_eq!(cwnd, Bytes(10_000));
    }

    #[test]
    fn a_window_of_acknowledged_bytes_earns_one_packet() {
        let (mut increase, mut cwnd) = (AdditiveIncrease::default(), Bytes(10_000));
        for _ in 0..9 {
            increase.grow(&mut cwnd, Bytes(1_000), Bytes(1_000));
        }
        assert_eq!(cwnd, Bytes(10_000));
        increase.grow(&mut cwnd, Bytes(1_000), Bytes(1_000));
        assert_eq!(cwnd, Bytes(11_000));
        // 22,000 bytes: one packet at 11,000, then 11,000 of the next 12,000.
        increase.grow(&mut cwnd, Bytes(1_000), Bytes(22_000));
        assert_eq!(cwnd, Bytes(12_000));
    }
}
