//! Packet-timed round trips (draft-ietf-ccwg-bbr section 4.5.1): a round ends when a packet is acknowledged
//! that was sent after the round began.

use brakelight_core::units::Bytes;

/// The round count, with rounds that the state machine may begin anew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Rounds completed.
    pub(super) count: u64,
    /// Whether the current ACK ended one.
    pub(super) start: bool,
    /// The round ends with a packet sent when at least this much had been delivered.
    end: Bytes,
}

impl Rounds {
    /// An ACK whose newest packet was sent when `prior_delivered` had been delivered.
    pub(super) fn on_ack(&mut self, prior_delivered: Bytes, delivered: Bytes) {
        self.start = prior_delivered >= self.end;
        if self.start {
            self.count += 1;
            self.end = delivered;
        }
    }

    /// Lets the round begin now.
    pub(super) fn restart(&mut self, delivered: Bytes) {
        self.end = delivered;
    }
}
