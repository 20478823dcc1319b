//! The ACK filter (cake18 III-E; Linux 6.1 `sch_cake.c`, cake_ack_filter): drops ACKs that a newer one of
//! their flow covers, on links whose way back is slow.
//!
//! ```text
//! a packet that acknowledges something arrives at the tail of its flow's queue; from the head on:
//!   a pure ACK of the same flow, with nothing that the new packet does not say, is eligible
//!   other ECN flags follow an eligible one:    that one is not eligible any longer
//!   the second eligible one is found:          the first is dropped
//! aggressive:  one that stands alone right before the new one, with the same ECN flags, is dropped, too
//! ```
//!
//! So one old ACK stays behind for each new one, unless aggressive: the sender's ACK clock goes on.

use brakelight_core::packet::Packet;

use crate::fifo::Fifo;

choices! {
    /// Which ACKs the filter drops.
    pub enum AckFilter {
        /// None.
        Off = "off",
        /// Those that two newer ones cover.
        On = "on",
        /// Those that one newer one covers.
        Aggressive = "aggressive",
    }
}

/// Returns the place of the ACK that the packet at the tail makes superfluous; 0 is the head.
pub(super) fn superfluous<P: Packet>(packets: &Fifo<P>, filter: AckFilter) -> Option<usize> {
    let newest = packets.iter().next_back()?;
    let says = newest.acknowledgement()?;
    let tail = packets.iter().len() - 1;
    let mut eligible: Option<(usize, u8)> = None;
    let mut found = 0;
    for (index, packet) in packets.iter().enumerate().take(tail) {
        if packet.flow() != newest.flow() {
            continue;
        }
        let Some(older) = packet.acknowledgement() else { continue };
        if eligible.is_some_and(|(_, echo)| echo != older.echo) {
            eligible = None;
            found -= 1;
        }
        if !packet.is_ack() || !older.is_covered_by(&says) {
            continue;
        }
        let (first, _) = *eligible.get_or_insert((index, older.echo));
        found += 1;
        if found > 1 {
            return Some(first);
        }
    }
    let (alone, echo) = eligible?;
    (filter == AckFilter::Aggressive && alone + 1 == tail && echo == says.echo).then_some(alone)
}
