//! How long a packet queued on its way forward, from the receiver's timestamps, by clocks that were never set
//! alike.
//!
//! ```text
//! OWD_i  = r_i - s_i                             by two clocks, so with their offset       quicdc eq.3
//! OWQD_i = max(0, OWQD_(i-1) + OWD_i - OWD_(i-1))                                          quicdc eq.4, eq.5
//!        = OWD_i - B_i,   B_i = min(B_(i-1), OWD_i)            the same sum, by what it started from
//! bounded:         B_i = clamp(B_(i-1), OWD_i - (RTT_i - RTT_min), OWD_i)                  D2
//! RTT_i  = (now - s_i) - ack_delay - (r_n - r_i)               n: the packet that the ACK's delay is about
//! RTT_min = min RTT_n
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | r_i, s_i | [`ReceiveTime`] | time | - | quicdc 3 |
//! | B | `base_ns` | ns | first packet's OWD | open-questions#X-61 |
//! | RTT_min | `rtt_min` | time | - | quicdc eq.1 |
//! | OWQD | `queueing` | time | 0 | quicdc eq.5 |
//! | - | `baseline` | choice | bounded | D2 |
//! | - | `horizon` | time | none | D3 |
//!
//! Clock offset falls out of the differences. *Clock skew* does not: at 50 ppm a receiver's fast clock adds 5
//! ms to the sum in 100 s, which would pass for a queue. The bound takes it out by the one clock that
//! measures both ends of an interval: no packet queued forward for longer than its whole round trip was above
//! the smallest one, so what the sum says beyond RTT_i - RTT_min is the clocks' doing, and the baseline moves
//! by it. The same goes for a clock that is set forward; one that is set back lowers OWD below the baseline,
//! and the baseline follows. The error that is left is the skew since the last packet whose round trip was
//! forward queueing only; a queue on the way back loosens the bound, it never tightens it.
//!
//! # Deviations
//!
//! - D1. Only packets that arrive in order count: the delay of one that was overtaken is not the queue's.
//!   Packets nobody reports are missing from the sum without changing it: what is left telescopes.
//! - D2. The paper's sum has no bound, and the paper does not say what becomes of negative sums:
//!   `baseline=minimum` is the sum kept at zero or above, `baseline=first` the sum of eq. 5 to the letter.
//!   Code seen in public derivatives of mvfst subtracts a slow average of the variations instead, which takes
//!   a part of every real queue for skew.
//! - D3. The paper says nothing of routes that change. `horizon` lets RTT_min be forgotten, and with it the
//!   baseline.

use brakelight_core::controller::{AckEvent, ReceiveTime};
use brakelight_core::time::Duration;

use super::windowed_min::WindowedMin;

choices! {
    /// What the one-way delay is compared with.
    pub enum Baseline {
        /// The smallest so far, kept within what the round trips allow: clocks may drift and jump.
        Bounded = "bounded",
        /// The smallest so far: the paper's sum, never below zero.
        Minimum = "minimum",
        /// The first packet's: the paper's sum to the letter.
        First = "first",
    }
}

/// The estimate of one flow.
#[derive(Clone, Debug)]
pub struct OneWayQueueing {
    baseline: Baseline,
    horizon_ns: u64,
    /// The newest packet measured.
    newest: Option<u64>,
    base_ns: Option<i64>,
    rtt_min: Option<WindowedMin>,
    queueing: Duration,
}

impl OneWayQueueing {
    /// Returns an estimate that has seen nothing; the smallest RTT is forgotten after `horizon`.
    pub fn new(baseline: Baseline, horizon: Option<Duration>) -> Self {
        OneWayQueueing {
            baseline,
            horizon_ns: horizon.map_or(u64::MAX, Duration::as_nanos),
            newest: None,
            base_ns: None,
            rtt_min: None,
            queueing: Duration::ZERO,
        }
    }

    /// Returns the newest packet's queueing delay.
    pub fn queueing(&self) -> Duration {
        self.queueing
    }

    /// Returns the smallest RTT within the horizon, receivers' delays taken out; none before the first.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min.map(|filter| Duration::from_nanos(filter.get()))
    }

    /// Takes in what an ACK reports, and calls `visit` with each packet that arrived in order and its
    /// queueing delay.
    pub fn on_ack(&mut self, event: &AckEvent<'_>, mut visit: impl FnMut(&ReceiveTime, Duration)) {
        // The ACK's delay is that of the largest packet newly acknowledged, and there is a sample only if it
        // is.
        let reference =
            event.rtt.sample.and(event.acked.last()).and_then(|largest| {
                event.receive_times.iter().find(|packet| packet.number == largest.number)
            });
        let round_trip = |packet: &ReceiveTime| {
            let waited = reference?.received_at.since(packet.received_at);
            Some(event.now.since(packet.sent_at).saturating_sub(event.ack_delay).saturating_sub(waited))
        };
        // It bounds the packets of this ACK, too. No other packet's round trip may count: the receiver's
        // clock is in the time it waited, and a clock set forward in between would make it the smallest for
        // good.
        if let Some(rtt) = reference.and_then(round_trip) {
            self.note_rtt(event.now.as_nanos(), rtt.as_nanos());
        }
        for packet in event.receive_times {
            if self.newest.is_some_and(|newest| packet.number <= newest) {
                continue;
            }
            self.newest = Some(packet.number);
            self.queueing = self.measure(packet, round_trip(packet));
            visit(packet, self.queueing);
        }
    }

    fn note_rtt(&mut self, now_ns: u64, rtt_ns: u64) {
        match &mut self.rtt_min {
            Some(filter) => {
                filter.update(self.horizon_ns, now_ns, rtt_ns);
            }
            None => self.rtt_min = Some(WindowedMin::new(now_ns, rtt_ns)),
        }
    }

    fn measure(&mut self, packet: &ReceiveTime, round_trip: Option<Duration>) -> Duration {
        // quicdc eq.3. Nanoseconds of centuries fit.
        let owd_ns = packet.received_at.as_nanos() as i64 - packet.sent_at.as_nanos() as i64;
        // open-questions#X-61: the first packet's queue is taken to be empty.
        let before = self.base_ns.unwrap_or(owd_ns);
        let base = match self.baseline {
            Baseline::First => before,
            Baseline::Minimum => before.min(owd_ns),
            Baseline::Bounded => {
                let above = round_trip.zip(self.rtt_min()).map(|(rtt, min)| rtt.saturating_sub(min));
                let lowest = above.map_or(i64::MIN, |above| owd_ns - above.as_nanos() as i64);
                before.clamp(lowest, owd_ns)
            }
        };
        self.base_ns = Some(base);
        Duration::from_nanos(u64::try_from(owd_ns - base).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
