//! NewReno (RFC 5681 section 3.1, RFC 6582; byte counting by RFC 3465).
//!
//! ```text
//! slow start, cwnd < ssthresh:   cwnd += min(acked, L * MSS)                    rfc3465 2.2, rfc5681 eq.2
//! congestion avoidance:          cwnd += MSS for each cwnd of acked bytes       rfc3465 2.1, rfc5681 eq.3
//! loss or CE:                    ssthresh = max(flight / 2, 2 MSS), cwnd = ssthresh    rfc5681 eq.4
//! timeout:                       the same ssthresh, cwnd = 1 MSS                       rfc5681 eq.4
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | L | `abc_limit` | packets | 2 | rfc3465 2.2 |
//! | beta | `beta` | 1 | 0.5 | rfc5681 eq.4 |
//!
//! Deviations: D1 the window does not grow while it is not the limit (RFC 7661's aim, as Linux does it): otherwise a
//! flow held back by its application would burst later.

use super::{AckEvent, Connection, Controller, LossEvent, SpuriousEvent, Timeout, TimeoutEvent};
use crate::ecn::Encoding;
use crate::time::Time;
use crate::units::Bytes;

parameters! {
    /// NewReno's settings.
    pub struct Config {
        /// Most packets by which one ACK may raise the window in slow start.
        abc_limit: u32 = 2, in 1..=100, from "rfc3465 2.2";
        /// What is left of the window after a loss.
        beta: f64 = 0.5, in 0.1..=0.95, from "rfc5681 eq.4";
        /// Whether to send ECT(0) and treat CE as a loss.
        ecn: bool = false, in .., from "rfc3168 6.1.2";
    }
}

/// NewReno's window.
#[derive(Clone, Debug)]
pub struct NewReno {
    config: Config,
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// Acknowledged bytes not yet turned into growth.
    credit: Bytes,
    /// Window and threshold before the last episode.
    before: Option<(Bytes, Bytes)>,
}

impl NewReno {
    /// A controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        NewReno {
            config,
            mss: connection.mss,
            cwnd: connection.initial_window,
            ssthresh: Bytes(u64::MAX),
            credit: Bytes::ZERO,
            before: None,
        }
    }

    fn reduced(&self) -> Bytes {
        let reduced = Bytes((self.cwnd.as_f64() * self.config.beta) as u64);
        reduced.max(Bytes(2 * self.mss.0))
    }
}

impl Controller for NewReno {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.in_recovery || !event.cwnd_limited {
            return;
        }
        let mut acked = event.newly_acked;
        if self.cwnd < self.ssthresh {
            // rfc3465 2.2
            let limit = Bytes(u64::from(self.config.abc_limit) * self.mss.0);
            let growth = acked.min(limit).min(self.ssthresh - self.cwnd);
            self.cwnd += growth;
            acked = acked.saturating_sub(growth);
            if self.cwnd < self.ssthresh {
                return;
            }
        }
        // rfc3465 2.1
        self.credit += acked;
        while self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.before = Some((self.cwnd, self.ssthresh));
        self.ssthresh = self.reduced();
        self.cwnd = self.ssthresh;
        self.credit = Bytes::ZERO;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.kind == Timeout::Pto {
            return;
        }
        if !event.repeated {
            self.before = Some((self.cwnd, self.ssthresh));
            self.ssthresh = self.reduced();
        }
        self.cwnd = self.mss;
        self.credit = Bytes::ZERO;
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = ssthresh;
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.before = None;
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss);
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(self.ssthresh)
    }

    fn encoding(&self) -> Encoding {
        if self.config.ecn { Encoding::Classic } else { Encoding::None }
    }
}
