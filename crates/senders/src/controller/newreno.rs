//! NewReno (RFC 5681 section 3.1, RFC 6582; byte counting by RFC 3465).
//!
//! ```text
//! slow start, cwnd < ssthresh:   cwnd += min(acked, L * MSS)                      rfc3465 2.2, rfc5681 eq.2
//!                                L = 1 in the slow start after a timeout          rfc3465 2.3
//! congestion avoidance:          cwnd += MSS for each cwnd of acked bytes         rfc3465 2.1, rfc5681 eq.3
//! loss or CE:                    ssthresh = max(beta cwnd, 2 MSS), cwnd = ssthresh
//!                                                                                  rfc5681 eq.4, rfc6582 3.2
//! timeout:                       the same ssthresh, cwnd = 1 MSS                   rfc5681 eq.4
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | L | `abc_limit` | packets | 2 | rfc3465 2.2 |
//! | beta | `beta` | 1 | 0.5 | rfc5681 eq.4 |
//!
//! Deviations:
//! D1 the window does not grow while it is not the limit (RFC 7661's aim, as Linux 6.12 tcp_cong.c,
//!    tcp_reno_cong_avoid, does it): otherwise a flow held back by its application would burst later.
//! D2 a reduction starts from cwnd, not from the bytes in flight, as Linux 6.12 tcp_cong.c,
//!    tcp_reno_ssthresh, does: D1 keeps the two close.
//! D3 NewReno's partial ACKs and its inflated window (rfc6582 3.2, steps 2 to 4) are the host's loss
//! recovery.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

use super::window::{self, AdditiveIncrease};

parameters! {
    /// NewReno's settings.
    pub struct Config {
        /// Most packets by which one ACK may raise the window in slow start.
        abc_limit: u32 = 2, in 1..=100, from "rfc3465 2.2";
        /// What is left of the window after a loss.
        beta: f64 = 0.5, in 0.1..=0.95, from "rfc5681 eq.4";
        /// Whether to send ECT(0) and treat CE as a loss.
        ecn: bool = false, in .., from "rfc3168 6.1.2";
        /// Whether the host may pace; without, packets leave as the window lets them, as from mvfst, where
        /// this controller sets no pacing rate.
        pacing: bool = true, in .., from "mvfst NewReno.cpp";
    }
}

/// NewReno's window.
#[derive(Clone, Debug)]
pub struct NewReno {
    config: Config,
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    initial_window: Bytes,
    increase: AdditiveIncrease,
    /// Whether the current slow start follows a timeout.
    after_timeout: bool,
    /// Window and threshold before the last episode.
    before: Option<(Bytes, Bytes)>,
}

impl NewReno {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        NewReno {
            config,
            mss: connection.mss,
            cwnd: connection.initial_window,
            ssthresh: Bytes(u64::MAX),
            initial_window: connection.initial_window,
            increase: AdditiveIncrease::default(),
            after_timeout: false,
            before: None,
        }
    }

    fn reduced(&self) -> Bytes {
        let reduced = Bytes((self.cwnd.as_f64() * self.config.beta) as u64);
        reduced.max(Bytes(2 * self.mss.0))
    }
}

impl Controller for NewReno {
    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.in_recovery() || !event.cwnd_limited {
            return;
        }
        let mut acked = event.growth;
        if self.cwnd < self.ssthresh {
            // rfc3465 2.2, 2.3
            let limit_pkts = if self.after_timeout { 1 } else { u64::from(self.config.abc_limit) };
            let limited = acked.min(Bytes(limit_pkts * self.mss.0));
            acked = window::slow_start(&mut self.cwnd, self.ssthresh, limited);
            if self.cwnd < self.ssthresh {
                return;
            }
            self.after_timeout = false;
        }
        self.increase.grow(&mut self.cwnd, self.mss, acked);
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.before = Some((self.cwnd, self.ssthresh));
        self.ssthresh = self.reduced();
        self.cwnd = self.ssthresh;
        self.increase.reset();
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => {
                if !event.repeated {
                    self.before = Some((self.cwnd, self.ssthresh));
                    self.ssthresh = self.reduced();
                }
                self.cwnd = self.mss;
                self.after_timeout = true;
            }
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => self.cwnd = self.cwnd.min(Bytes(2 * self.mss.0)),
        }
        self.increase.reset();
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = ssthresh;
            self.after_timeout = false;
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.before = None;
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        (self.cwnd, self.ssthresh) = window::restarted(self.cwnd, self.ssthresh, self.initial_window, event);
        self.cwnd = self.cwnd.max(self.mss);
        self.increase.reset();
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd = self.cwnd.min(most).max(self.mss);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss);
        self.ssthresh = self.ssthresh.max(Bytes(2 * mss.0));
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(self.ssthresh)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (!self.config.pacing).then_some(Rate::MAX)
    }

    fn encoding(&self) -> Encoding {
        if self.config.ecn { Encoding::Classic } else { Encoding::None }
    }
}

#[cfg(test)]
mod tests;
