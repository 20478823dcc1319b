//! The mean number of packets from one loss event to the next (rfc5348 5.4).

use brakelight_core::time::{Duration, Time};

/// rfc5348 5.4: weights of the newest interval and of those before it.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The intervals between loss events, in packets.
#[derive(Clone, Debug, Default)]
pub(super) struct LossInterval {
    /// Closed intervals, the newest first.
    closed: [u64; WEIGHTS.len()],
    count: usize,
    /// Number and sending time of the packet whose loss began the newest event.
    event: Option<(u64, Time)>,
    newest: u64,
}

impl LossInterval {
    /// The packet `number` arrived.
    pub(super) fn on_arrival(&mut self, number: u64) {
        self.newest = self.newest.max(number);
    }

    /// The packet `number` was lost. Losses of packets sent within an `rtt` of the first are one event
    /// (rfc5348 5.2).
    pub(super) fn on_loss(&mut self, number: u64, sent_at: Time, rtt: Duration) {
        self.newest = self.newest.max(number);
        let since = match self.event {
            Some((_, began)) if sent_at.since(began) <= rtt => return,
            Some((first, _)) => number.saturating_sub(first),
            // The first interval is what was sent before the first loss.
            None => number + 1,
        };
        self.closed.rotate_right(1);
        self.closed[0] = since;
        self.count = (self.count + 1).min(WEIGHTS.len());
        self.event = Some((number, sent_at));
    }

    /// Packets since the newest event began.
    fn open(&self) -> Option<u64> {
        self.event.map(|(number, _)| self.newest.saturating_sub(number))
    }

    /// Returns the mean of the closed intervals. The open one is left out: with it, no loss would ever
    /// be older than seven mean intervals.
    pub(super) fn mean(&self) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (weight, interval) in WEIGHTS.iter().zip(&self.closed[..self.count]) {
            sum += weight * *interval as f64;
            weights += weight;
        }
        (weights > 0.0).then(|| sum / weights)
    }

    /// Whether the newest event began no more than `multiple` mean intervals ago.
    pub(super) fn is_recent(&self, multiple: f64) -> bool {
        let (Some(open), Some(mean)) = (self.open(), self.mean()) else { return false };
        open as f64 <= multiple * mean
    }
}
