//! Which losses are congestion, how many round trips had one, and how fast packets are acknowledged.

use brakelight_core::controller::AckEvent;
use brakelight_core::time::{Duration, Time};

/// ScreamV2Tx.cpp, updateCwnd: weight of a round trip in the share of those with a loss.
const ROUND_WEIGHT: f64 = 0.02;
/// scream-01 4.5.3: two frames of 20 ms, the draft's estimate of a frame's period.
const FRAMES: Duration = Duration::from_millis(40);

/// Losses of one flow.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// 0 if each loss is congestion.
    threshold: f64,
    rate: f64,
    is_new: bool,
    is_pending: bool,
    /// Losses of packets that were sent before are one with those that were reacted to.
    reacted_at: Option<Time>,
    /// The newest ACK's time, at which a reaction comes.
    now: Time,
    round_share: f64,
    round_at: Option<Time>,
    round_had_loss: bool,
    counted_at: Option<Time>,
    acked_bytes: f64,
    acked_bps: f64,
}

impl Losses {
    /// Returns losses of which there are none.
    pub(super) fn new(threshold: f64) -> Self {
        Losses {
            threshold,
            rate: 0.0,
            is_new: false,
            is_pending: false,
            reacted_at: None,
            now: Time::ZERO,
            round_share: 0.0,
            round_at: None,
            round_had_loss: false,
            counted_at: None,
            acked_bytes: 0.0,
            acked_bps: 0.0,
        }
    }

    /// Takes in what an ACK says; `ratio` is MSS/W.
    pub(super) fn on_ack(&mut self, event: &AckEvent<'_>, srtt: Duration, ratio: f64) {
        self.now = event.now;
        let is_after = |sent_at: Time| self.reacted_at.is_none_or(|at| sent_at >= at);
        self.is_new = event.lost.iter().any(|packet| is_after(packet.sent_at));
        self.is_pending |= self.is_new;
        // Where each loss is congestion, nobody asks for the rate.
        if self.threshold > 0.0 {
            // scream-01 4.5.2
            let weight = (self.threshold / 4.0).min(ratio / 2.0);
            for _ in event.acked {
                self.rate *= 1.0 - weight;
            }
            for _ in event.lost {
                self.rate = (1.0 - weight) * self.rate + weight;
            }
        }
        self.round_had_loss |= !event.lost.is_empty();
        if self.round_at.is_none_or(|at| event.now.since(at) > srtt) {
            let seen = f64::from(u8::from(self.round_had_loss));
            self.round_share = (1.0 - ROUND_WEIGHT) * self.round_share + ROUND_WEIGHT * seen;
            (self.round_at, self.round_had_loss) = (Some(event.now), false);
        }
        self.acked_bytes += event.newly_acked.as_f64();
        let since = self.counted_at.map(|at| event.now.since(at));
        if since.is_none_or(|since| since >= srtt.max(FRAMES)) {
            self.acked_bps = since.map_or(0.0, |since| 8.0 * self.acked_bytes / since.as_secs_f64());
            (self.counted_at, self.acked_bytes) = (Some(event.now), 0.0);
        }
    }

    /// Whether there is a loss to react to; `is_queueing` if the queue is not short.
    pub(super) fn is_congestion(&self, is_queueing: bool) -> bool {
        self.is_pending && (self.threshold == 0.0 || self.rate > self.threshold || is_queueing)
    }

    /// Whether the newest ACK told of a loss that is not one with those reacted to.
    pub(super) fn has_new(&self) -> bool {
        self.is_new
    }

    /// The share of round trips with a loss, averaged.
    pub(super) fn round_share(&self) -> f64 {
        self.round_share
    }

    /// Payload acknowledged, bit/s.
    pub(super) fn acked_bps(&self) -> f64 {
        self.acked_bps
    }

    /// A timeout at `now` counts as a loss.
    pub(super) fn react_at(&mut self, now: Time) {
        self.now = now;
        self.is_pending = true;
    }

    /// There was a reaction.
    pub(super) fn clear(&mut self) {
        if core::mem::take(&mut self.is_pending) {
            self.reacted_at = Some(self.now);
        }
    }
}
