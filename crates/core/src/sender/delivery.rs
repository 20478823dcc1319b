//! What was sent and what became of it, in bytes: the sender's half of a delivery-rate sample
//! (draft-ietf-ccwg-bbr section 4.1; Linux 6.12 net/ipv4/tcp_rate.c).
//!
//! ```text
//! per packet sent:   delivered, delivered_at, first_sent_at, lost, inflight, app_limited   ccwg-bbr 4.1.2.2
//! first flight:      first_sent_at = delivered_at = now, while nothing is in flight         ccwg-bbr 4.1.2.2
//! ACK of packet P:   delivered_at = now, first_sent_at = P.sent_at, P the newest            ccwg-bbr 4.1.2.3
//! application limit: until = delivered + inflight; holds until delivered > until            ccwg-bbr 4.1.2.4
//! round trip:        begins when P.delivered >= round_end; then round_end = delivered       ccwg-bbr 4.5.1
//! ```
//!
//! The other half, the rate itself, is [`RateSample`](crate::sender::RateSample).
//!
//! `sent = delivered + lost + inflight + replaced` at all times: a packet is in flight until it is delivered,
//! declared lost, or replaced by another transmission of its data. A packet that arrives after it was
//! declared lost is no longer lost, and one whose loss is taken back is in flight again.

use crate::time::Time;
use crate::units::Bytes;

/// The delivery accounting of one connection. Sizes are payload bytes.
#[derive(Clone, Debug)]
pub struct Delivery {
    inflight: u64,
    delivered: u64,
    lost: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Deliveries up to here were of packets sent while the application was the limit; zero for none.
    app_limited_until: u64,
    round: u64,
    round_end: u64,
}

/// The state of the connection when a packet was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Bytes delivered by then.
    pub delivered: u64,
    /// When the last of those was acknowledged.
    pub delivered_at: Time,
    /// When the first packet of that delivery's flight was sent.
    pub first_sent_at: Time,
    /// Bytes lost by then.
    pub lost: u64,
    /// Bytes in flight, the packet included.
    pub inflight: u64,
    /// Whether the application was the limit.
    pub app_limited: bool,
}

impl Delivery {
    /// Returns the accounting of a connection that begins at `now`.
    pub fn new(now: Time) -> Self {
        Delivery {
            inflight: 0,
            delivered: 0,
            lost: 0,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: 0,
            round: 0,
            round_end: 0,
        }
    }

    /// Returns the bytes in flight.
    #[inline]
    pub fn inflight(&self) -> u64 {
        self.inflight
    }

    /// Returns the bytes delivered since the connection began.
    #[inline]
    pub fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }

    /// Returns the bytes that are lost: declared so, and neither arrived since nor taken back.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the round trips so far.
    #[inline]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Returns when the newest packet delivered so far had been sent; the start of the first flight before
    /// any was.
    #[inline]
    pub fn newest_sent_at(&self) -> Time {
        self.first_sent_at
    }

    /// Returns whether a packet sent now counts as limited by the application.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// The application has nothing to send though the window is open: what is in flight, and what is sent
    /// until all of that is delivered, says little about the path.
    #[inline]
    pub fn limit_by_application(&mut self) {
        // Zero stands for no mark.
        self.app_limited_until = (self.delivered + self.inflight).max(1);
    }

    /// A packet is about to leave. Where nothing is in flight, a new flight begins.
    #[inline]
    pub fn begin_flight(&mut self, now: Time) {
        if self.inflight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
    }

    /// A packet of `size` bytes leaves. Returns what must be remembered with it.
    #[inline]
    pub fn send(&mut self, size: u64) -> Snapshot {
        self.inflight += size;
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            inflight: self.inflight,
            app_limited: self.is_app_limited(),
        }
    }

    /// A packet in flight is replaced by another transmission of its data.
    #[inline]
    pub fn replace(&mut self, size: u64) {
        self.inflight -= size;
    }

    /// A packet in flight was delivered.
    #[inline]
    pub fn deliver(&mut self, size: u64) {
        self.inflight -= size;
        self.delivered += size;
    }

    /// A packet was delivered after it had been declared lost.
    #[inline]
    pub fn deliver_late(&mut self, size: u64) {
        self.lost -= size;
        self.delivered += size;
    }

    /// A packet in flight is declared lost.
    #[inline]
    pub fn lose(&mut self, size: u64) {
        self.inflight -= size;
        self.lost += size;
    }

    /// A packet was declared lost by mistake: it is in flight.
    #[inline]
    pub fn take_back(&mut self, size: u64) {
        self.lost -= size;
        self.inflight += size;
    }

    /// An ACK at `now` delivered packets, of which the newest had been sent at `sent_at`, when
    /// `prior_delivered` bytes had been delivered. Call it once per ACK, after [`Delivery::deliver`] of each
    /// packet. Returns whether a round trip begins.
    #[inline]
    pub fn acked(&mut self, now: Time, sent_at: Time, prior_delivered: u64) -> bool {
        self.delivered_at = now;
        self.first_sent_at = sent_at;
        // ccwg-bbr 4.1.2.4: strictly beyond the mark, so the first flight on an empty network is still
        // limited.
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        // ccwg-bbr 4.5.1
        let begins = prior_delivered >= self.round_end;
        if begins {
            self.round += 1;
            self.round_end = self.delivered;
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Time = Time::ZERO;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// ccwg-bbr 4.1.2.4: the network drains, and the application asks again.
    #[test]
    fn the_application_limit_holds_until_delivered_is_strictly_beyond_the_mark() {
        let mut books = Delivery::new(T0);
        books.begin_flight(T0);
        let first = books.send(1_000);
        assert!(!first.app_limited);
        books.limit_by_application();
        books.deliver(1_000);
        books.acked(ms(100), T0, first.delivered);
        assert!(books.is_app_limited(), "delivered has reached the mark, not passed it");
        books.begin_flight(ms(500));
        let second = books.send(1_000);
        assert!(second.app_limited);
        books.deliver(1_000);
        books.acked(ms(600), ms(500), second.delivered);
        assert!(!books.is_app_limited());
    }

    #[test]
    fn a_round_trip_begins_with_the_ack_of_a_packet_sent_after_the_last_one_began() {
        let mut books = Delivery::new(T0);
        books.begin_flight(T0);
        let flight = [books.send(1_000), books.send(1_000)];
        books.deliver(1_000);
        assert!(books.acked(ms(100), T0, flight[0].delivered));
        let next = books.send(1_000);
        books.deliver(1_000);
        assert!(!books.acked(ms(101), T0, flight[1].delivered), "it was sent before the round began");
        books.deliver(1_000);
        assert!(books.acked(ms(200), ms(100), next.delivered));
        assert_eq!(books.round(), 2);
    }

    #[test]
    fn a_packet_is_in_flight_delivered_or_lost_and_the_sums_say_so() {
        let mut books = Delivery::new(T0);
        for _ in 0..5 {
            books.send(1_000);
        }
        books.deliver(1_000);
        books.lose(1_000);
        books.lose(1_000);
        books.deliver_late(1_000);
        books.take_back(1_000);
        books.replace(1_000);
        assert_eq!((books.inflight(), books.delivered(), books.lost()), (2_000, Bytes(2_000), 0));
    }

    #[test]
    fn a_flight_after_a_pause_is_timed_from_its_own_first_packet() {
        let mut books = Delivery::new(T0);
        books.begin_flight(T0);
        let first = books.send(1_000);
        books.deliver(1_000);
        books.acked(ms(100), T0, first.delivered);
        books.begin_flight(ms(900));
        let second = books.send(1_000);
        assert_eq!((second.first_sent_at, second.delivered_at), (ms(900), ms(900)));
        books.begin_flight(ms(901));
        assert_eq!(books.send(1_000).first_sent_at, ms(900), "the flight goes on");
    }
}
