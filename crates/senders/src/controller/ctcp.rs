//! Compound TCP (Tan, Song, Zhang, Sridharan, INFOCOM 2006; draft-sridharan-tcpm-ctcp-02): Reno's window, and
//! beside it one that follows the delay.
//!
//! ```text
//! win = cwnd + dwnd                                                                     draft-ctcp 3
//! slow start (dwnd = 0):    cwnd += acked
//! each packet ACKed:        cwnd += 1 / win
//! once per round trip:      diff = win (RTT - base_RTT) / RTT           packets in the queue
//!   diff < gamma:           dwnd += max(alpha win^k - 1, 0)             while win >= low_window
//!   diff >= gamma:          dwnd = max(dwnd - zeta diff, 0)
//! loss:                     dwnd = max(win (1 - beta) - cwnd / 2, 0), cwnd = cwnd / 2
//! timeout:                  dwnd = 0, ssthresh = win / 2, cwnd = 1
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | alpha | `alpha` | 1 | 1/8 | tan06 IV |
//! | beta | `beta` | 1 | 1/2 | tan06 IV |
//! | k | `k` | 1 | 3/4 | tan06 IV |
//! | gamma | `gamma` | packets | 30 | tan06 IV |
//! | zeta | `zeta` | 1 | 1 | tan06 leaves it open; ours |
//! | low_window | `low_window` | packets | 41 | draft-ctcp 3 |
//!
//! Deviations:
//! D1 gamma is fixed: the draft's tuning by emulation, which lowers it to as little as 5 where buffers are
//! small, is
//!    left out.
//! D2 RTT is the smallest sample of the round, as in Vegas and in Linux's tcp_compound.c of 2006: delayed
//!    ACKs add nothing.
//! D3 the window does not grow while it is not the limit.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, SendDirective, SendEvent, SpuriousEvent, Timeout,
    TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::rounds::Rounds;
use super::window;

parameters! {
    /// Compound's settings.
    pub struct Config {
        /// Steepness of the delay window's growth.
        alpha: f64 = 0.125, in 0.001..=10.0, from "tan06 IV";
        /// What a loss takes from the whole window.
        beta: f64 = 0.5, in 0.05..=0.95, from "tan06 IV";
        /// Exponent of the delay window's growth.
        k: f64 = 0.75, in 0.0..=1.0, from "tan06 IV";
        /// Packets in the queue from which the delay window shrinks.
        gamma: f64 = 30.0, in 1.0..=10_000.0, from "tan06 IV";
        /// How fast it shrinks, per packet in the queue.
        zeta: f64 = 1.0, in 0.01..=10.0, from "tan06: open; ours";
        /// Window, in packets, below which there is no delay window.
        low_window: f64 = 41.0, in 1.0..=10_000.0, from "draft-ctcp 3";
        /// Whether to send ECT(0) and treat CE as a loss.
        ecn: bool = false, in .., from "rfc3168 6.1.2";
    }
}

/// The windows, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Windows {
    cwnd_pkts: f64,
    dwnd_pkts: f64,
    ssthresh_pkts: f64,
}

/// Compound's windows.
#[derive(Clone, Debug)]
pub struct Ctcp {
    config: Config,
    mss: Bytes,
    initial_window: Bytes,
    windows: Windows,
    rounds: Rounds,
    base_rtt: Option<Duration>,
    round_rtt: Option<Duration>,
    /// Windows before the last episode.
    before: Option<Windows>,
}

impl Windows {
    fn win_pkts(&self) -> f64 {
        self.cwnd_pkts + self.dwnd_pkts
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd_pkts < self.ssthresh_pkts
    }
}

impl Ctcp {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Ctcp {
            config,
            mss: connection.mss,
            initial_window: connection.initial_window,
            windows: Windows {
                cwnd_pkts: connection.initial_window.as_f64() / connection.mss.as_f64(),
                dwnd_pkts: 0.0,
                ssthresh_pkts: f64::INFINITY,
            },
            rounds: Rounds::default(),
            base_rtt: None,
            round_rtt: None,
            before: None,
        }
    }

    fn packets(&self, bytes: Bytes) -> f64 {
        bytes.as_f64() / self.mss.as_f64()
    }

    fn bytes(&self, pkts: f64) -> Bytes {
        Bytes((pkts * self.mss.as_f64()) as u64)
    }

    /// The delay window's change at the end of a round.
    // draft-ctcp 3
    fn follow_delay(&mut self) {
        let (Some(rtt), Some(base_rtt)) = (self.round_rtt, self.base_rtt) else { return };
        let win_pkts = self.windows.win_pkts();
        let queued_share = 1.0 - base_rtt.as_secs_f64() / rtt.as_secs_f64();
        let diff_pkts = win_pkts * queued_share;
        let dwnd_pkts = &mut self.windows.dwnd_pkts;
        if diff_pkts >= self.config.gamma {
            *dwnd_pkts = (*dwnd_pkts - self.config.zeta * diff_pkts).max(0.0);
        } else if win_pkts >= self.config.low_window {
            *dwnd_pkts += (self.config.alpha * libm::pow(win_pkts, self.config.k) - 1.0).max(0.0);
        }
    }

    fn grow(&mut self, acked: Bytes) {
        let windows = &mut self.windows;
        let mut acked_pkts = acked.as_f64() / self.mss.as_f64();
        if windows.in_slow_start() {
            let growth_pkts = acked_pkts.min(windows.ssthresh_pkts - windows.cwnd_pkts);
            windows.cwnd_pkts += growth_pkts;
            acked_pkts -= growth_pkts;
        }
        windows.cwnd_pkts += acked_pkts / windows.win_pkts();
    }
}

impl Controller for Ctcp {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
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
        if let Some(sample) = event.rtt.sample {
            let sample = sample.max(Duration::from_nanos(1));
            self.base_rtt = Some(self.base_rtt.map_or(sample, |base| base.min(sample)));
            self.round_rtt = Some(self.round_rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
        let Some(newest) = event.newest else { return };
        let round = self.rounds.acked(newest);
        if !event.in_recovery() && event.cwnd_limited {
            if round && !self.windows.in_slow_start() {
                self.follow_delay();
            }
            self.grow(event.growth);
        }
        if round {
            self.round_rtt = None;
        }
    }

    // draft-ctcp 3
    fn on_loss(&mut self, _event: &LossEvent) {
        self.before = Some(self.windows);
        let Windows { cwnd_pkts, .. } = self.windows;
        let left_pkts = self.windows.win_pkts() * (1.0 - self.config.beta);
        let cwnd_pkts = (cwnd_pkts / 2.0).max(2.0);
        self.windows =
            Windows { cwnd_pkts, dwnd_pkts: (left_pkts - cwnd_pkts).max(0.0), ssthresh_pkts: cwnd_pkts };
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => {
                if !event.repeated {
                    self.before = Some(self.windows);
                    self.windows.ssthresh_pkts = (self.windows.win_pkts() / 2.0).max(2.0);
                }
                self.windows.cwnd_pkts = 1.0;
            }
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => self.windows.cwnd_pkts = self.windows.cwnd_pkts.min(2.0),
        }
        self.windows.dwnd_pkts = 0.0;
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some(before) = self.before.take()
            && before.win_pkts() > self.windows.win_pkts()
        {
            self.windows = before;
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.before = None;
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        let ssthresh = self.ssthresh().unwrap_or(Bytes(u64::MAX));
        let (left, ssthresh) = window::restarted(self.cwnd(), ssthresh, self.initial_window, event);
        self.windows.cwnd_pkts = self.packets(left).max(1.0);
        self.windows.dwnd_pkts = 0.0;
        if self.windows.ssthresh_pkts.is_finite() {
            self.windows.ssthresh_pkts = self.packets(ssthresh);
        }
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        let most_pkts = self.packets(most);
        self.windows.cwnd_pkts = self.windows.cwnd_pkts.min(most_pkts).max(1.0);
        self.windows.dwnd_pkts = self.windows.dwnd_pkts.min((most_pkts - self.windows.cwnd_pkts).max(0.0));
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        let scale = self.mss.as_f64() / mss.as_f64();
        self.mss = mss;
        self.before = None;
        self.windows = Windows {
            cwnd_pkts: (self.windows.cwnd_pkts * scale).max(1.0),
            dwnd_pkts: self.windows.dwnd_pkts * scale,
            ssthresh_pkts: (self.windows.ssthresh_pkts * scale).max(2.0),
        };
    }

    fn cwnd(&self) -> Bytes {
        self.bytes(self.windows.win_pkts()).max(self.mss)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(self.bytes(self.windows.ssthresh_pkts))
    }

    fn encoding(&self) -> Encoding {
        if self.config.ecn { Encoding::Classic } else { Encoding::None }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("dwnd_pkts", self.windows.dwnd_pkts);
    }
}

#[cfg(test)]
mod tests {
    use brakelight_testkit::events::{ack, connection, loss, packet, packets, send, timeout};

    use super::*;

    const BASE: Duration = Duration::from_millis(100);

    fn ctcp(cwnd_pkts: f64, dwnd_pkts: f64) -> Ctcp {
        let mut ctcp = Ctcp::new(Config::default(), &connection(10));
        ctcp.windows = Windows { cwnd_pkts, dwnd_pkts, ssthresh_pkts: 2.0 };
        ctcp.base_rtt = Some(BASE);
        ctcp
    }

    /// One round trip ends with an ACK of one packet.
    fn round(ctcp: &mut Ctcp, number: u64, rtt: Duration) {
        ctcp.on_send(&send(Time::ZERO, number, packets(1)));
        ctcp.on_ack(&ack(Time::from_secs(1), &[packet(number, Time::ZERO)], rtt));
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-3
    }

    #[test]
    fn an_empty_queue_lets_the_delay_window_grow_polynomially() {
        let mut ctcp = ctcp(60.0, 21.0);
        round(&mut ctcp, 1, BASE);
        // 81^(3/4) = 27; 27 / 8 - 1 = 2.375. Then cwnd gains 1 / 83.375.
        assert!(close(ctcp.windows.dwnd_pkts, 23.375), "{:?}", ctcp.windows);
        assert!(close(ctcp.windows.cwnd_pkts, 60.0 + 1.0 / 83.375));
    }

    #[test]
    fn a_small_window_is_plain_reno() {
        let mut ctcp = ctcp(40.0, 0.0);
        round(&mut ctcp, 1, BASE);
        assert_eq!(ctcp.windows.dwnd_pkts, 0.0);
        assert!(close(ctcp.windows.cwnd_pkts, 40.025));
    }

    #[test]
    fn a_filled_queue_takes_the_delay_window_back() {
        let mut ctcp = ctcp(60.0, 60.0);
        // 120 (1 - 100/150) = 40 packets in the queue: 60 - 40 = 20 are left, then none.
        round(&mut ctcp, 1, Duration::from_millis(150));
        assert!(close(ctcp.windows.dwnd_pkts, 20.0), "{:?}", ctcp.windows);
        round(&mut ctcp, 2, Duration::from_millis(200));
        assert_eq!(ctcp.windows.dwnd_pkts, 0.0);
    }

    #[test]
    fn a_loss_halves_the_sum_and_a_timeout_ends_the_delay_window() {
        let mut ctcp = ctcp(60.0, 40.0);
        ctcp.on_loss(&loss(Time::ZERO));
        assert_eq!(ctcp.windows, Windows { cwnd_pkts: 30.0, dwnd_pkts: 20.0, ssthresh_pkts: 30.0 });
        ctcp.on_timeout(&timeout(Time::ZERO, Timeout::Rto));
        assert_eq!(ctcp.windows, Windows { cwnd_pkts: 1.0, dwnd_pkts: 0.0, ssthresh_pkts: 25.0 });
    }
}
