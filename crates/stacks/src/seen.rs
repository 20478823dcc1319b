//! What is seen of a controller from outside: bytes in flight and RTT samples, which the stacks show to
//! nobody else than their controllers. Each stack's file has the pass-through that notes them here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brakelight_core::controller::Rtt;
use brakelight_core::time::Duration as Length;

use crate::clock;

/// What the pass-through around a connection's controller noted. Its copies share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Noted>>);

/// What was noted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted {
    /// Bytes in flight: as the stack said when it last ended a batch of ACKs, with what was sent and lost
    /// since.
    pub(crate) inflight: u64,
    /// The newest RTT sample, until it is taken.
    pub(crate) sample: Option<Length>,
    /// The stack's estimates, once there are any.
    pub(crate) rtt: Option<Rtt>,
}

impl Seen {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        // What was noted before a panic is still true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was noted.
    pub(crate) fn read(&self) -> Noted {
        *self.noted()
    }

    /// Returns the newest RTT sample, once.
    pub(crate) fn take_sample(&self) -> Option<Length> {
        self.noted().sample.take()
    }

    /// So many bytes left.
    pub(crate) fn on_sent(&self, bytes: u64) {
        self.noted().inflight += bytes;
    }

    /// A packet was acknowledged after `elapsed`; what the stack estimated before that.
    pub(crate) fn on_ack(&self, elapsed: Duration, smoothed: Duration, min: Duration) {
        let sample = clock::length(elapsed);
        let mut noted = self.noted();
        noted.sample = Some(sample);
        noted.rtt = Some(Rtt {
            sample: Some(sample),
            smoothed: clock::length(smoothed),
            // They show it to nobody.
            variation: Length::ZERO,
            min: clock::length(min),
        });
    }

    /// A batch of ACKs ended with so many bytes in flight.
    pub(crate) fn on_inflight(&self, bytes: u64) {
        self.noted().inflight = bytes;
    }

    /// The stack said how many bytes are in flight, and what it knows of the RTT.
    pub(crate) fn on_metrics(&self, inflight: u64, rtt: Option<Rtt>) {
        let mut noted = self.noted();
        noted.inflight = inflight;
        if let Some(rtt) = rtt {
            noted.sample = rtt.sample.or(noted.sample);
            noted.rtt = Some(rtt);
        }
    }

    /// So many bytes were declared lost.
    pub(crate) fn on_lost(&self, bytes: u64) {
        let mut noted = self.noted();
        noted.inflight = noted.inflight.saturating_sub(bytes);
    }
}
