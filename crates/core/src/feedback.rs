//! Receivers: what an ACK must carry, and when it must leave.
//!
//! The host reassembles data, keeps SACK ranges and runs the delayed-ACK timer. A [`Feedback`] decides
//! whether a packet deserves an ACK now, and turns arriving packets into what the ACK says beyond which
//! packets arrived.

use crate::controller::ReceiverReport;
use crate::ecn::{Ecn, Encoding, Mark};
use crate::packet::Header;
use crate::time::Time;
use crate::units::Bytes;

/// A data packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When.
    pub now: Time,
    /// The packet's number.
    pub number: u64,
    /// Its payload.
    pub size: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Whether it carries CWR: the sender has reacted to CE (RFC 3168 section 6.1.3).
    pub cwr: bool,
    /// Its explicit header.
    pub header: Header,
    /// 16 bits that differ from packet to packet, the same at every router.
    pub hash16: u16,
    /// When it was sent, on the sender's clock.
    pub sent_at: Time,
    /// Whether the host wants an ACK at once anyway: out of order, a gap filled, the start of the connection.
    pub urgent: bool,
}

/// What to do about ACKs after a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckAction {
    /// Send one when the delayed-ACK timer runs out, if nothing sends one before.
    Delay,
    /// Send one now.
    Now,
    /// Send one now for what arrived before this packet, then treat this packet as the first of a new batch.
    FlushThenDelay,
    /// Send one now for what arrived before this packet, and another that covers it.
    FlushThenNow,
}

/// Counters since the connection began: what Accurate ECN (RFC 9768) and QUIC (RFC 9000 section 19.3.2)
/// carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MarkTotals {
    /// Packets by kind: accelerate, brake, CE.
    pub packets: [u32; 3],
    /// Payload bytes by kind.
    pub bytes: [u64; 3],
}

impl MarkTotals {
    /// Counts one packet.
    pub fn count(&mut self, mark: Mark, size: Bytes) {
        let kind = match mark {
            Mark::None => return,
            Mark::Accelerate => 0,
            Mark::Brake => 1,
            Mark::Ce => 2,
        };
        self.packets[kind] += 1;
        self.bytes[kind] += size.0;
    }
}

/// What an ACK carries beyond which packets arrived.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Echo {
    /// The mark of the packets this ACK newly covers, where one state stands for all (NS and ECE flags).
    pub state: Mark,
    /// Exact counters, where the flow has them.
    pub totals: Option<MarkTotals>,
    /// What else the scheme's receiver reports.
    pub report: ReceiverReport,
    /// Whether the sender is told when each packet arrived.
    pub receive_times: bool,
}

/// What an endpoint asks of its peer's ACKs: when packets arrived, in ACK_RECEIVE_TIMESTAMPS frames
/// (draft-ietf-quic-receive-ts-03 section 6). Nothing by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReceiveTimestamps {
    /// The most timestamps in one frame; 0 asks for no such frames.
    pub most: u64,
    /// Times are told in units of two to this power, in microseconds: 0 to 20.
    pub exponent: u8,
}

dispatched! {
    /// The receiver's half of an algorithm.
    pub trait Feedback by pass_to_feedback {
        /// A data packet arrived. Returns whether an ACK is to leave for it.
        fn on_packet(&mut self, arrival: &Arrival) -> AckAction;

        /// An ACK leaves now: returns what it carries. `flush` is true for the first of the two ACKs of a
        /// flush.
        fn on_ack_sent(&mut self, now: Time, flush: bool) -> Echo;

        /// Returns how receive times travel where they are told: in frames of QUIC's extension, or, with
        /// `None`, as they are.
        fn receive_timestamps(&self) -> Option<ReceiveTimestamps> {
            None
        }

        /// Returns whether the receiver claims that packet `missing`, the first of a gap, has arrived though
        /// it has not. Honest receivers never do.
        fn claims(&self, _missing: u64) -> bool {
            false
        }

        /// Returns when the receiver wants to send an ACK even though nothing arrives: schemes that report on
        /// a clock.
        fn next_report(&self) -> Option<Time> {
            None
        }
    }
}

/// The connection that a receiver's feedback is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// What the flow means by its ECN bits.
    pub encoding: Encoding,
    /// How many packets one ACK stands for: m.
    pub ack_every: u32,
    /// Largest payload of one packet.
    pub mss: Bytes,
}
