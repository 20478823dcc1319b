//! Spacing packets out at a rate.
//!
//! ```text
//! TCP:   a packet may leave at `due`;  due = max(due, t) + size / rate, less at most half of that for time
//!        lost
//! QUIC:  a packet may leave while there are tokens for it; they fill at `rate`, up to `burst` packets
//!                                                                                                rfc9002 7.7
//! ```
//!
//! TCP paces as Linux 6.12 tcp_output.c does without the qdisc fq: no bursts, the first ten packets of a
//! connection unpaced, and a packet that leaves late lets the next one leave up to half an interval earlier.
//! QUIC allows a burst after a pause: of ten packets, the initial window, unless the flow says otherwise, and
//! of no more than its controller's [`send_quantum`](crate::controller::Controller::send_quantum). A
//! controller of media has the last word, and may let more leave together.
//!
//! Deviations: D1 Linux 6.12 tcp_output.c, tcp_tso_autosize, hands segments to the device in bursts of up to
//! 64 kB at high rates (TSO autosizing: about 1 ms of data, two segments at least); here each packet is
//! spaced by itself.

use crate::controller::Controller;
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// Packets at the start of a TCP connection that are not paced (Linux 6.12 net/ipv4/tcp_output.c,
/// tcp_update_skb_after_send).
const UNPACED: u32 = 10;

/// Returns how many bytes QUIC may send together. `most` is the flow's limit. The controller's
/// [`send_quantum`](Controller::send_quantum) lowers it, to one packet of `mss` bytes at the least. Only a
/// controller with a [`media_rate`](Controller::media_rate) may also raise it.
pub fn most_together(controller: &impl Controller, most: u64, mss: u64) -> u64 {
    match controller.send_quantum() {
        Some(quantum) if quantum.0 <= most || controller.media_rate().is_some() => quantum.0.max(mss),
        _ => most,
    }
}

/// A pacer: decides when the next packet may leave.
#[derive(Clone, Debug)]
pub enum Pacer {
    /// Evenly spaced.
    Spaced {
        /// When the next packet is due.
        due: Time,
        /// Packets that may still leave without pacing.
        unpaced: u32,
    },
    /// A bucket of tokens, each good for a byte.
    Bucket {
        /// What it held at `filled_at`.
        tokens: u64,
        /// What it holds at most.
        size: u64,
        /// When it was last filled.
        filled_at: Time,
    },
}

impl Pacer {
    /// Returns TCP's: packets evenly spaced.
    pub fn tcp() -> Self {
        Pacer::Spaced { due: Time::ZERO, unpaced: UNPACED }
    }

    /// Returns QUIC's: a full bucket of `burst` bytes at `now`.
    pub fn quic(burst: u64, now: Time) -> Self {
        Pacer::Bucket { tokens: burst, size: burst, filled_at: now }
    }

    /// From now on at most `most` bytes leave together: those of one packet at the least, or it would never
    /// leave. Evenly spaced packets leave one by one as before.
    pub fn limit_burst(&mut self, most: u64) {
        if let Pacer::Bucket { tokens, size, .. } = self {
            *size = most;
            *tokens = (*tokens).min(most);
        }
    }

    /// Returns the bytes that may leave together at `now`: what the bucket holds. Evenly spaced packets leave
    /// one by one.
    pub fn tokens_at(&self, now: Time, rate: Rate) -> u64 {
        match *self {
            Pacer::Spaced { due, .. } if due > now => 0,
            Pacer::Spaced { .. } => 1,
            Pacer::Bucket { tokens, size, filled_at } => {
                // Rounded up: a packet that was told to leave now finds its tokens.
                let grown = libm::ceil(rate.as_bps_f64() * now.since(filled_at).as_secs_f64() / 8.0) as u64;
                tokens.saturating_add(grown).min(size)
            }
        }
    }

    /// Returns when a packet of `size` bytes may leave at `rate`: now or earlier means at once.
    #[inline]
    pub fn ready_at(&self, size: u64, rate: Rate) -> Time {
        match *self {
            Pacer::Spaced { unpaced, .. } if unpaced > 0 => Time::ZERO,
            Pacer::Spaced { due, .. } => due,
            Pacer::Bucket { tokens, .. } if tokens >= size => Time::ZERO,
            Pacer::Bucket { tokens, filled_at, .. } => {
                filled_at.saturating_add(rate.time_for(Bytes(size - tokens)))
            }
        }
    }

    /// A packet of `size` payload bytes leaves.
    #[inline]
    pub fn sent(&mut self, now: Time, size: u64, rate: Rate) {
        match self {
            Pacer::Spaced { due, unpaced } if *unpaced > 0 => {
                *unpaced -= 1;
                *due = now;
            }
            Pacer::Spaced { due, .. } => {
                let interval = rate.time_for(Bytes(size));
                let interval = interval.saturating_sub(now.since(*due).min(interval / 2));
                *due = (*due).max(now).saturating_add(interval);
            }
            Pacer::Bucket { .. } => {
                let held = self.tokens_at(now, rate);
                let Pacer::Bucket { tokens, filled_at, .. } = self else { return };
                *tokens = held.saturating_sub(size);
                *filled_at = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::controller::{AckEvent, LossEvent, TimeoutEvent};
    use crate::time::Duration;

    const RATE: Rate = Rate::from_mbps(8);

    /// A controller that only says what may leave together, and at what rate media may be produced.
    struct Says {
        quantum: Option<u64>,
        media: Option<Rate>,
    }

    impl Controller for Says {
        fn on_ack(&mut self, _event: &AckEvent<'_>) {}
        fn on_loss(&mut self, _event: &LossEvent) {}
        fn on_timeout(&mut self, _event: &TimeoutEvent) {}
        fn cwnd(&self) -> Bytes {
            Bytes(12_000)
        }
        fn media_rate(&self) -> Option<Rate> {
            self.media
        }
        fn send_quantum(&self) -> Option<Bytes> {
            self.quantum.map(Bytes)
        }
    }

    #[test]
    fn a_controller_lowers_what_leaves_together_and_one_of_media_may_raise_it() {
        let together = |quantum, media| most_together(&Says { quantum, media }, 10_000, 1000);
        for media in [None, Some(RATE)] {
            assert_eq!(together(None, media), 10_000, "left to the host");
            assert_eq!(together(Some(4000), media), 4000);
            assert_eq!(together(Some(10), media), 1000, "a packet leaves in any case");
        }
        assert_eq!(together(Some(40_000), None), 10_000);
        assert_eq!(together(Some(40_000), Some(RATE)), 40_000);
    }

    /// Sends whenever it may, asked again at the exact time, and returns when packets of 1000 bytes left.
    fn departures(mut pacer: Pacer, count: usize) -> Vec<u64> {
        let mut now = Time::ZERO;
        let mut left = Vec::new();
        while left.len() < count {
            now = now.max(pacer.ready_at(1000, RATE));
            pacer.sent(now, 1000, RATE);
            left.push(now.as_nanos() / 1_000);
        }
        left
    }

    #[test]
    fn tcp_leaves_the_first_ten_unpaced_then_one_per_interval() {
        let left = departures(Pacer::tcp(), 14);
        assert_eq!(left[..11], [0; 11]);
        assert_eq!(left[11..], [1_000, 2_000, 3_000]);
    }

    #[test]
    fn quic_sends_a_burst_of_ten_then_one_per_interval() {
        let left = departures(Pacer::quic(10_000, Time::ZERO), 13);
        assert_eq!(left[..10], [0; 10]);
        assert_eq!(left[10..], [1_000, 2_000, 3_000]);
    }

    #[test]
    fn a_burst_that_is_limited_empties_a_full_bucket_to_the_limit() {
        let mut pacer = Pacer::quic(10_000, Time::ZERO);
        pacer.limit_burst(2_000);
        let left = departures(pacer.clone(), 4);
        assert_eq!(left, [0, 0, 1_000, 2_000]);
        // After a pause, too, no more leave together.
        pacer.sent(Time::ZERO, 2_000, RATE);
        assert_eq!(pacer.tokens_at(Time::from_secs(1), RATE), 2_000);
        pacer.limit_burst(5_000);
        assert_eq!(pacer.tokens_at(Time::from_secs(1), RATE), 5_000);
    }

    #[test]
    fn a_late_packet_lets_the_next_leave_at_most_half_an_interval_early() {
        let mut pacer = Pacer::Spaced { due: Time::from_millis(10), unpaced: 0 };
        pacer.sent(Time::from_millis(30), 1000, RATE);
        assert_eq!(pacer.ready_at(1000, RATE), Time::from_millis(30) + Duration::from_micros(500));
    }
}
