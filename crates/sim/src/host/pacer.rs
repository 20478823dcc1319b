//! Spacing packets out at a rate.
//!
//! ```text
//! TCP:   a packet may leave at `due`;  due = max(due, t) + size / rate, less at most half of that for time lost
//! QUIC:  a packet may leave while there are tokens for it; they fill at `rate`, up to `burst` packets    rfc9002 7.7
//! ```
//!
//! TCP paces as Linux does without fq: no bursts, the first ten packets of a connection unpaced, and a packet that leaves
//! late lets the next one leave up to half an interval earlier. QUIC allows a burst after a pause: of ten packets, the initial
//! window, unless the flow says otherwise.
//!
//! Deviations: D1 Linux hands segments to the device in bursts of up to 64 kB at high rates (TSO autosizing: about 1 ms
//! of data, two segments at least); here each packet is spaced by itself.

use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

/// Packets at the start of a TCP connection that are not paced (Linux, `tcp_update_skb_after_send`).
const UNPACED: u32 = 10;

/// When the next packet may leave.
#[derive(Clone, Debug)]
pub(super) enum Pacer {
    /// Evenly spaced.
    Spaced {
        due: Time,
        /// Packets that may still leave without pacing.
        unpaced: u32,
    },
    /// A bucket of tokens, each good for a byte.
    Bucket { tokens: u64, size: u64, filled_at: Time },
}

impl Pacer {
    pub(super) fn tcp() -> Self {
        Pacer::Spaced { due: Time::ZERO, unpaced: UNPACED }
    }

    pub(super) fn quic(mss: u64, burst: u32) -> Self {
        let size = u64::from(burst) * mss;
        Pacer::Bucket { tokens: size, size, filled_at: Time::ZERO }
    }

    /// When a packet of `size` bytes may leave at `rate`: now or earlier means at once.
    #[inline]
    pub(super) fn ready_at(&self, size: u64, rate: Rate) -> Time {
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
    pub(super) fn sent(&mut self, now: Time, size: u64, rate: Rate) {
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
            Pacer::Bucket { tokens, size: most, filled_at } => {
                // Rounded up: a packet that was told to leave now finds its tokens.
                let grown = libm::ceil(rate.as_bps_f64() * now.since(*filled_at).as_secs_f64() / 8.0) as u64;
                *tokens = tokens.saturating_add(grown).min(*most).saturating_sub(size);
                *filled_at = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::time::Duration;

    use super::*;

    const RATE: Rate = Rate::from_mbps(8);

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
        let left = departures(Pacer::quic(1000, 10), 13);
        assert_eq!(left[..10], [0; 10]);
        assert_eq!(left[10..], [1_000, 2_000, 3_000]);
    }

    #[test]
    fn a_late_packet_lets_the_next_leave_at_most_half_an_interval_early() {
        let mut pacer = Pacer::Spaced { due: Time::from_millis(10), unpaced: 0 };
        pacer.sent(Time::from_millis(30), 1000, RATE);
        assert_eq!(pacer.ready_at(1000, RATE), Time::from_millis(30) + Duration::from_micros(500));
    }
}
