//! Vegas (Brakmo and Peterson 1995), with the parameters of Linux 6.12 `tcp_vegas.c`: a few packets in the
//! queue, no more.
//!
//! ```text
//! once per round trip:  diff = cwnd (RTT - base_RTT) / base_RTT           packets in the queue, brakmo95 3.2
//!                       RTT = smallest sample of the round, base_RTT = smallest of all
//! slow start:           cwnd += acked in every other round trip, the comparison at the end of the others,
//!                       with the RTT of their first packet
//!                       diff > gamma: cwnd = min(cwnd, cwnd base_RTT / RTT + 1), on to congestion avoidance
//! congestion avoidance: diff < alpha: cwnd += 1;  diff > beta: cwnd -= 1
//! loss:                 as NewReno; the comparison rests until packets sent afterwards are acknowledged
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | alpha | `alpha` | packets | 2 | Linux 6.12 tcp_vegas.c |
//! | beta | `beta` | packets | 4 | Linux 6.12 tcp_vegas.c |
//! | gamma | `gamma` | packets | 1 | Linux 6.12 tcp_vegas.c |
//! | base_RTT | `base_rtt` | time | - | brakmo95 3.2 |
//! | RTT | `round_rtt` | time | - | Linux 6.12 tcp_vegas.c, tcp_vegas_pkts_acked |
//!
//! Deviations:
//! D1 Slow start of Linux 6.12 tcp_vegas.c grows in every round trip: `slow_start=every`. There the smallest
//!    RTT of a round is that of a packet sent before the queue grew, and betrays the queue one doubling too
//!    late.
//! D2 diff is a fraction, not rounded down to packets as in Linux 6.12 tcp_vegas.c, where 4.9 packets still
//!    pass for no more than 4.
//! D3 the window does not grow while it is not the limit; Linux 6.12 tcp_vegas.c does not look.
//! D4 Brakmo's own loss detection (rechecking timestamps at each duplicate ACK) is the host's affair.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, SendDirective, SendEvent, SpuriousEvent, Timeout,
    TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::rounds::Rounds;
use super::window::{self, AdditiveIncrease};

/// Samples a round must have before it counts: with fewer, all may come from delayed ACKs.
// Linux 6.12 tcp_vegas.c, tcp_vegas_cong_avoid
const MIN_SAMPLES: u32 = 3;

choices! {
    /// When slow start grows.
    pub enum SlowStart {
        /// In every other round trip, so that the comparison is valid.
        Alternate = "alternate",
        /// In every round trip, as Linux 6.12 tcp_vegas.c does.
        Every = "every",
    }
}

parameters! {
    /// Vegas's settings.
    pub struct Config {
        check check;
        /// Fewer packets in the queue than this: speed up.
        alpha: f64 = 2.0, in 0.1..=1000.0, from "Linux 6.12 tcp_vegas.c";
        /// More packets in the queue than this: slow down.
        beta: f64 = 4.0, in 0.1..=1000.0, from "Linux 6.12 tcp_vegas.c";
        /// More packets in the queue than this end slow start.
        gamma: f64 = 1.0, in 0.1..=1000.0, from "Linux 6.12 tcp_vegas.c";
        /// When slow start grows.
        slow_start: SlowStart = SlowStart::Alternate, in .., from "brakmo95 3.3";
    }
}

fn check(config: &Config) -> Result<(), brakelight_core::parameters::ParameterError> {
    if config.alpha <= config.beta {
        return Ok(());
    }
    Err(brakelight_core::parameters::ParameterError::Conflict {
        reason: alloc::format!("alpha = {} is above beta = {}", config.alpha, config.beta),
    })
}

/// Vegas's window.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: Config,
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    initial_window: Bytes,
    increase: AdditiveIncrease,
    rounds: Rounds,
    base_rtt: Duration,
    round_rtt: Duration,
    samples: u32,
    /// Whether this round's samples may be compared: not while losses are repaired.
    comparing: bool,
    /// Whether slow start grows in this round.
    growing: bool,
    /// The last comparison's diff.
    diff_pkts: f64,
    /// Window and threshold before the last episode.
    before: Option<(Bytes, Bytes)>,
}

impl Vegas {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Vegas {
            config,
            mss: connection.mss,
            cwnd: connection.initial_window,
            ssthresh: Bytes(u64::MAX),
            initial_window: connection.initial_window,
            increase: AdditiveIncrease::default(),
            rounds: Rounds::default(),
            base_rtt: Duration::MAX,
            round_rtt: Duration::MAX,
            samples: 0,
            comparing: true,
            growing: true,
            diff_pkts: 0.0,
            before: None,
        }
    }

    fn forget_round(&mut self) {
        self.round_rtt = Duration::MAX;
        self.samples = 0;
    }

    /// Stops comparing until a packet that is still to be sent is acknowledged.
    fn rest(&mut self) {
        self.comparing = false;
        self.rounds.restart();
    }

    fn reno(&mut self, acked: Bytes) {
        let left = window::slow_start(&mut self.cwnd, self.ssthresh, acked);
        self.increase.grow(&mut self.cwnd, self.mss, left);
    }

    /// Whether this is a slow start that grows in every other round only.
    fn alternates(&self) -> bool {
        self.cwnd < self.ssthresh && self.config.slow_start == SlowStart::Alternate
    }

    fn slow_start(&mut self, acked: Bytes) {
        if self.growing || self.config.slow_start == SlowStart::Every {
            window::slow_start(&mut self.cwnd, self.ssthresh, acked);
        }
    }

    /// The comparison at the end of a round.
    // Linux 6.12 tcp_vegas.c, tcp_vegas_cong_avoid
    fn compare(&mut self, acked: Bytes, newest_rtt: Duration) {
        let cwnd_pkts = self.cwnd.as_f64() / self.mss.as_f64();
        // brakmo95 3.2: the packet whose ACK ends the round is the first one sent in it. In a round of slow
        // start that held, it alone has seen what the round before left in the queue.
        let rtt = if self.alternates() { newest_rtt } else { self.round_rtt };
        let (rtt_s, base_rtt_s) = (rtt.as_secs_f64(), self.base_rtt.as_secs_f64());
        // brakmo95 3.2
        self.diff_pkts = cwnd_pkts * (rtt_s - base_rtt_s) / base_rtt_s;
        if self.cwnd < self.ssthresh {
            if self.diff_pkts > self.config.gamma {
                let target = Bytes((self.cwnd.as_f64() * base_rtt_s / rtt_s) as u64) + self.mss;
                self.cwnd = self.cwnd.min(target);
                self.ssthresh = self.ssthresh.min(self.cwnd);
            } else {
                self.slow_start(acked);
            }
        } else if self.diff_pkts > self.config.beta {
            self.cwnd = self.cwnd.saturating_sub(self.mss);
            self.ssthresh = self.ssthresh.min(self.cwnd);
        } else if self.diff_pkts < self.config.alpha {
            self.cwnd += self.mss;
        }
        self.cwnd = self.cwnd.max(Bytes(2 * self.mss.0));
        if self.ssthresh < Bytes(u64::MAX) {
            // Linux 6.12 tcp.h, tcp_current_ssthresh
            self.ssthresh = self.ssthresh.max(Bytes(self.cwnd.0 / 4 * 3));
        }
    }

    fn halve(&mut self) {
        self.before = Some((self.cwnd, self.ssthresh));
        self.ssthresh = Bytes(self.cwnd.0 / 2).max(Bytes(2 * self.mss.0));
        self.increase.reset();
        self.rest();
    }
}

impl Controller for Vegas {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        if event.inflight == Bytes::ZERO {
            // Nothing on its way: what was learnt may be stale, the path's length included.
            // Linux 6.12 tcp_vegas.c, tcp_vegas_cwnd_event
            self.base_rtt = Duration::MAX;
            self.forget_round();
            self.rounds.restart();
            self.comparing = true;
        }
        self.rounds.sent(event.number);
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let mut newest_rtt = self.round_rtt;
        if let Some(sample) = event.rtt.sample {
            // Neither may be zero: both divide.
            let sample = sample.max(Duration::from_nanos(1));
            newest_rtt = sample;
            self.base_rtt = self.base_rtt.min(sample);
            self.round_rtt = self.round_rtt.min(sample);
            self.samples += 1;
        }
        let Some(newest) = event.newest else { return };
        let round = self.rounds.acked(newest);
        let (compared, enough) = (self.comparing, self.samples >= MIN_SAMPLES);
        if round && !event.in_recovery() {
            self.comparing = true;
        }
        if !event.in_recovery() && event.cwnd_limited {
            // brakmo95 3.3: what was sent while the window grew says nothing about the queue.
            let valid = enough && !(self.growing && self.alternates());
            match (round, compared) {
                (_, false) => self.reno(event.growth),
                (true, true) if valid => self.compare(event.growth, newest_rtt),
                (true, true) if !enough => self.reno(event.growth),
                _ => self.slow_start(event.growth),
            }
        }
        if round {
            self.growing = !self.growing;
            self.forget_round();
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.halve();
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => {
                if !event.repeated {
                    self.halve();
                }
                self.cwnd = self.mss;
            }
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => self.cwnd = self.cwnd.min(Bytes(2 * self.mss.0)),
        }
        self.rest();
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

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        (self.cwnd, self.ssthresh) = window::restarted(self.cwnd, self.ssthresh, self.initial_window, event);
        self.cwnd = self.cwnd.max(self.mss);
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd = self.cwnd.min(most).max(self.mss);
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
        Encoding::None
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("diff_pkts", self.diff_pkts);
        let known = self.base_rtt < Duration::MAX;
        visit("base_rtt_ms", if known { self.base_rtt.as_millis_f64() } else { 0.0 });
    }
}
