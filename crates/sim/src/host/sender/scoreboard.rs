//! What was sent and what became of it: one entry per transmission, one per segment.
//!
//! Transmissions are numbered in the order they leave, so the ring of transmissions is sorted by time: RACK
//! and RFC 9002 both find losses by walking it from the oldest that is still out. TCP's ACKs speak of
//! segments, QUIC's of transmissions; a segment knows its newest transmission, a transmission its segment.

use brakelight_core::controller::PacketInfo;
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

/// What became of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// In flight, as far as the sender knows.
    Outstanding,
    /// Acknowledged.
    Acked,
    /// Declared lost.
    Lost,
    /// TCP only: replaced by a newer transmission of its segment without having been declared lost.
    Superseded,
}

/// One packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) sent_at: Time,
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    pub(super) first_sent_at: Time,
    pub(super) lost: u64,
    pub(super) tag: u64,
    /// Bytes in flight, itself included.
    pub(super) inflight: u32,
    pub(super) segment: u32,
    pub(super) size: u16,
    pub(super) state: State,
    pub(super) app_limited: bool,
    pub(super) retransmission: bool,
}

// A cache line per packet in flight.
const _: () = assert!(size_of::<Transmission>() <= 64);

impl Transmission {
    #[inline]
    pub(super) fn info(&self, number: u32) -> PacketInfo {
        PacketInfo {
            number: u64::from(number),
            size: Bytes(u64::from(self.size)),
            sent_at: self.sent_at,
            delivered: Bytes(self.delivered),
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            inflight: Bytes(u64::from(self.inflight)),
            lost: Bytes(self.lost),
            app_limited: self.app_limited,
            retransmission: self.retransmission,
            tag: self.tag,
        }
    }
}

/// One piece of the stream, cut once and never again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Its newest transmission.
    pub(super) latest: u32,
    pub(super) size: u16,
    /// Whether the receiver has it, as far as the sender knows.
    pub(super) delivered: bool,
    /// Whether it was sent more than once.
    pub(super) retransmitted: bool,
}
