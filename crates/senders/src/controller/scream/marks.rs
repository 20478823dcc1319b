//! The share of packets that carried CE: up fast, down slowly (scream-01 4.2.1.3).

use brakelight_core::controller::AckEvent;
use brakelight_core::time::{Duration, Time};

/// scream-01 4.2.1.3, L4S_AVG_G_UP
const UP: f64 = 1.0 / 8.0;
/// scream-01 4.2.1.3, L4S_AVG_G_DOWN
const DOWN: f64 = 1.0 / 128.0;
/// scream-01 4.2.1.3: how often the share is averaged, unless the round trip is shorter.
const INTERVAL: Duration = Duration::from_millis(10);

/// Marks of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    alpha: f64,
    averaged_at: Option<Time>,
    delivered: u64,
    marked: u64,
    /// Whether the newest ACK told of a mark, and whether any has since the last reaction.
    is_new: bool,
    is_pending: bool,
}

impl Marks {
    /// Takes in what an ACK says.
    pub(super) fn on_ack(&mut self, event: &AckEvent<'_>, srtt: Duration) {
        let marked = event.marks.ce.packets;
        self.is_new = marked > 0;
        self.is_pending |= self.is_new;
        self.delivered += event.acked.len() as u64;
        self.marked += marked;
        let is_due = self.averaged_at.is_none_or(|at| event.now.since(at) >= INTERVAL.min(srtt));
        if is_due && self.delivered > 0 {
            let share = (self.marked as f64 / self.delivered as f64).min(1.0);
            self.alpha = if share >= self.alpha {
                UP * share + (1.0 - UP) * self.alpha
            } else {
                (1.0 - DOWN) * self.alpha
            };
            self.averaged_at = Some(event.now);
            (self.delivered, self.marked) = (0, 0);
        }
    }

    /// The averaged share, 0 to 1.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Whether the newest ACK told of a mark.
    pub(super) fn has_new(&self) -> bool {
        self.is_new
    }

    /// Whether a mark came since the last reaction.
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// There was a reaction.
    pub(super) fn clear(&mut self) {
        self.is_pending = false;
    }
}
