//! Spacing packets out at the controller's rate (RFC 9002 section 7.7): a bucket of tokens that fills at the rate and
//! holds a burst.

use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

/// When the next packet may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    tokens: u64,
    burst: u64,
    filled_at: Time,
}

impl Pacer {
    /// A full bucket of `burst` bytes.
    pub(super) fn new(burst: u64, now: Time) -> Self {
        Pacer { tokens: burst, burst, filled_at: now }
    }

    /// When a packet of `size` bytes may leave at `rate`: now or earlier means at once.
    pub(super) fn ready_at(&self, size: u64, rate: Rate) -> Time {
        let missing = size.saturating_sub(self.tokens);
        if missing == 0 {
            return Time::ZERO;
        }
        self.filled_at.saturating_add(rate.time_for(Bytes(missing)))
    }

    /// What the bucket holds at `now`.
    pub(super) fn tokens_at(&self, now: Time, rate: Rate) -> u64 {
        // Rounded up: a packet that was told to leave now finds its tokens.
        let grown = (rate.as_bps_f64() * now.since(self.filled_at).as_secs_f64() / 8.0).ceil() as u64;
        self.tokens.saturating_add(grown).min(self.burst)
    }

    /// A packet of `size` bytes leaves.
    pub(super) fn sent(&mut self, now: Time, size: u64, rate: Rate) {
        self.tokens = self.tokens_at(now, rate).saturating_sub(size);
        self.filled_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_at_once_then_one_packet_per_interval() {
        let rate = Rate::from_mbps(8);
        let mut pacer = Pacer::new(3000, Time::ZERO);
        let mut now = Time::ZERO;
        let mut left = Vec::new();
        for _ in 0..5 {
            now = now.max(pacer.ready_at(1000, rate));
            pacer.sent(now, 1000, rate);
            left.push(now.as_nanos() / 1000);
        }
        assert_eq!(left, [0, 0, 0, 1000, 2000]);
    }
}
