//! Delivery rate of the newest acknowledged flight (draft-ietf-ccwg-bbr section 4.1; Linux 6.12 tcp_rate.c,
//! tcp_rate_gen).
//!
//! ```text
//! send_elapsed = P.sent - P.first_sent            ack_elapsed = now - P.delivered_at
//! rate = (delivered - P.delivered) / max(send_elapsed, ack_elapsed)
//! ```
//!
//! P is the newest packet that the ACK acknowledges. The host keeps the per-packet half of the bookkeeping in
//! [`PacketInfo`](crate::controller::PacketInfo); this is the other half.

use crate::controller::AckEvent;
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// What one ACK says about the rate of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// The delivery rate; none where the interval was shorter than any round trip, so that an ambiguous
    /// retransmission must have confused it.
    pub rate: Option<Rate>,
    /// Bytes delivered over the interval.
    pub delivered: Bytes,
    /// Its length.
    pub interval: Duration,
    /// Bytes that had been delivered when P was sent.
    pub prior_delivered: Bytes,
    /// Bytes in flight when P was sent, itself included.
    pub tx_in_flight: Bytes,
    /// Bytes lost since P was sent.
    pub lost: Bytes,
    /// Whether the application was the limit when P was sent.
    pub app_limited: bool,
}

impl RateSample {
    /// Returns the sample that this ACK yields; none when it acknowledges nothing new.
    pub fn of(event: &AckEvent<'_>) -> Option<Self> {
        // ccwg-bbr 4.1.2.3: the newest packet speaks for the ACK; numbers rise with each transmission.
        let newest = event.acked.iter().max_by_key(|packet| packet.number)?;
        let send_elapsed = newest.sent_at.since(newest.first_sent_at);
        let ack_elapsed = event.now.since(newest.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = event.delivered.saturating_sub(newest.delivered);
        // ccwg-bbr 4.1.2.3: an interval below the smallest RTT gives no reliable sample.
        let reliable = interval >= event.rtt.min && !interval.is_zero();
        Some(RateSample {
            rate: reliable.then(|| Rate::over(delivered, interval)),
            delivered,
            interval,
            prior_delivered: newest.delivered,
            tx_in_flight: newest.inflight,
            lost: event.total_lost.saturating_sub(newest.lost),
            app_limited: newest.app_limited,
        })
    }
}
