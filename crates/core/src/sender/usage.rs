//! Whether the window was needed, so that one that was not does not grow: judged over one round trip.
//!
//! ```text
//! the sender stops, by its window, for its pacer, or because it has no more to send:
//!     limited, max_inflight := by the window, bytes in flight
//!         if by the window, or if what was on the way at the last judgement has been acknowledged,
//!         or if neither stop was by the window and more is in flight now
//!                                                                 Linux 6.12 tcp_output.c, tcp_cwnd_validate
//! a stop for the pacer counts as one by the window if bytes in flight + bytes waiting > cwnd    rfc9002 7.8
//! the window may grow if limited, or in slow start if cwnd < 2 max_inflight
//!                                                                      Linux 6.12 tcp.h, tcp_is_cwnd_limited
//! ```
//!
//! RFC 9002 section 7.8 asks that a window not grow while it is not used, except where the flow would have
//! filled it without pacing. It leaves open how this is found.

/// Why a sender stops sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The window has no room for the next packet.
    Window,
    /// The pacer holds back the next packet.
    Pacer {
        /// Bytes that wait to be sent, the next packet included.
        waiting: u64,
    },
    /// There is nothing to send.
    Application,
}

impl Stop {
    /// Returns `true` if a window of `cwnd` bytes, of which `inflight` are in flight, is what stops the
    /// sender, or would be if it did not pace.
    #[inline]
    pub fn is_by_window(self, inflight: u64, cwnd: u64) -> bool {
        match self {
            Stop::Window => true,
            // rfc9002 7.8
            Stop::Pacer { waiting } => inflight.saturating_add(waiting) > cwnd,
            Stop::Application => false,
        }
    }
}

/// How far the window was used, for congestion window validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    limited: bool,
    max_inflight: u64,
    /// Position behind what was on the way when this was judged.
    until: u64,
}

impl Usage {
    /// The sender has stopped, because of its window if `by_window` (see [`Stop::is_by_window`]). Everything
    /// before position `acked` is acknowledged, what is sent next will be at position `next`, and `inflight`
    /// bytes are in flight.
    #[inline]
    pub fn stopped(&mut self, by_window: bool, acked: u64, next: u64, inflight: u64) {
        if by_window || acked >= self.until || (!self.limited && inflight > self.max_inflight) {
            *self = Usage { limited: by_window, max_inflight: inflight, until: next };
        }
    }

    /// Returns `true` if a window of `cwnd` bytes may grow. Without a slow-start threshold there is no slow
    /// start; `ssthresh` is asked for only where it decides.
    #[inline]
    pub fn is_cwnd_limited(&self, cwnd: u64, ssthresh: impl FnOnce() -> Option<u64>) -> bool {
        self.limited || cwnd < 2 * self.max_inflight && ssthresh().is_some_and(|ssthresh| cwnd < ssthresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_was_the_limit_may_grow_until_what_was_sent_under_it_is_acknowledged() {
        let mut usage = Usage::default();
        usage.stopped(true, 0, 10, 10_000);
        // The application runs dry while the first ACKs of that flight come.
        usage.stopped(false, 4, 12, 8_000);
        assert!(usage.is_cwnd_limited(10_000, || Some(5_000)));
        usage.stopped(false, 10, 12, 2_000);
        assert!(!usage.is_cwnd_limited(10_000, || Some(5_000)));
    }

    #[test]
    fn in_slow_start_the_window_may_be_up_to_twice_what_was_used() {
        let mut usage = Usage::default();
        usage.stopped(false, 0, 6, 6_000);
        assert!(usage.is_cwnd_limited(10_000, || Some(u64::MAX)));
        assert!(!usage.is_cwnd_limited(12_000, || Some(u64::MAX)));
        assert!(!usage.is_cwnd_limited(10_000, || Some(10_000)), "congestion avoidance");
        assert!(!usage.is_cwnd_limited(10_000, || None));
        // Less in flight within the same round trip says nothing.
        usage.stopped(false, 2, 7, 5_000);
        assert!(usage.is_cwnd_limited(10_000, || Some(u64::MAX)));
        usage.stopped(false, 6, 8, 2_000);
        assert!(!usage.is_cwnd_limited(10_000, || Some(u64::MAX)));
    }

    /// rfc9002 7.8
    #[test]
    fn a_wait_for_the_pacer_counts_if_what_waits_would_fill_the_window() {
        // Ten packets have left, and four wait for the pacer.
        let stop = Stop::Pacer { waiting: 4_000 };
        assert!(stop.is_by_window(10_000, 13_000));
        assert!(!stop.is_by_window(10_000, 14_000), "all of it fits");
        assert!(!stop.is_by_window(10_000, 900_000));
        // A transfer without end.
        assert!(Stop::Pacer { waiting: u64::MAX }.is_by_window(10_000, 900_000));
        assert!(Stop::Window.is_by_window(0, 900_000));
        assert!(!Stop::Application.is_by_window(10_000, 10_000));
    }
}
