//! Verus (Zaki, Poetsch, Chen, Subramanian, Goerg, "Adaptive Congestion Control for Unpredictable Cellular
//! Networks", SIGCOMM 2015).
//!
//! ```text
//! every epoch of 5 ms, D: the largest delay of its ACKs; without ACKs, the time since the last one:
//!   dD    = D - D_max                                                          zaki15 eq.2
//!   D_est = max(D_min, D_est - delta_2)   when D_max / D_min > R               zaki15 eq.4
//!           max(D_min, D_est - delta_1)   when dD > 0
//!           D_est + delta_2               otherwise
//!   D_max = 0.2 D_max + 0.8 D                                                  zaki15 eq.1
//!   W     = f(D_est)          f: the delay profile (profile.rs)                zaki15 eq.3
//!   S     = max(0, W + W_flight (2 - n) / (n - 1))   packets now;  n: epochs in an RTT          zaki15 eq.5
//! slow start: W + 1 per ACK, until a loss or a delay above 500 ms
//! loss:       W = M W_lost, D_est = f^-1(W); then W + 1/W per ACK and no points for the profile, until an
//!             ACK comes from a packet that was sent under W or less               zaki15 eq.6
//! D_est at D_min: D_min + 10 ms when fewer than two packets are in flight, otherwise nothing is sent in the
//!                 epoch
//! the curve never reaches D_est: slow start, from nothing
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | epsilon | `epoch` | time | 5 ms | zaki15 5 |
//! | delta_1 | `delta1` | time | 1 ms | zaki15 5 |
//! | delta_2 | `delta2` | time | 2 ms | zaki15 5 |
//! | R | `ratio` | 1 | 2 | zaki15 5 |
//! | M | `decrease` | 1 | 0.7 | Verus `verus.hpp` |
//! | - | `refresh` | time | 1 s | zaki15 5 |
//! | rho | `smoothing` | log10 | 2 | Verus `verus_server.cpp` |
//! | - | `slow_start_delay` | time | 500 ms | Verus `verus.hpp` |
//!
//! Deviations: D1 the curve is a P-spline; the authors use ALGLIB's penalised regression spline with the same
//! knots and weight. D2 losses are the host's, by SACK and timers; the authors wait 150 ms for a missing
//! packet. D3 the delay is that of the newest packet of each ACK, so that delayed ACKs do not count as
//! queueing. D4 the authors' timeout of five delays is the host's. D5 before there is a curve, a delay that
//! no point exceeds is lowered by delta_2 until one does, as in the code, whose recursion does not end where
//! no point does: then the window is one. D6 a window beyond twice the largest met is not believed; the code
//! believes up to 40,000 packets, and only a full socket buffer stops it. D7 what an application left unused
//! is at most W; the authors' program always has data, so theirs has no such case.

mod profile;

use alloc::boxed::Box;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, SendDirective, SendEvent, Timeout, TimeoutEvent,
};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use self::profile::Profile;

parameters! {
    /// Verus's settings.
    pub struct Config {
        /// How often the window is set.
        epoch: Duration = Duration::from_millis(5), in Duration::from_micros(100)..=Duration::from_secs(1), from "zaki15 5";
        /// By how much the target delay falls when delays rise.
        delta1: Duration = Duration::from_millis(1), in Duration::from_nanos(1)..=Duration::from_secs(1), from "zaki15 5";
        /// By how much the target delay rises, and falls when delays are too large.
        delta2: Duration = Duration::from_millis(2), in Duration::from_nanos(1)..=Duration::from_secs(1), from "zaki15 5";
        /// Largest ratio of delay to smallest delay that is tolerated.
        ratio: f64 = 2.0, in 1.01..=100.0, from "zaki15 5";
        /// What is left of the window after a loss.
        decrease: f64 = 0.7, in 0.1..=0.95, from "Verus: verus.hpp";
        /// How often the curve is laid anew.
        refresh: Duration = Duration::from_secs(1), in Duration::from_millis(10)..=Duration::from_secs(100), from "zaki15 5";
        /// Stiffness of the curve, as a power of ten.
        smoothing: f64 = 2.0, in -8.0..=8.0, from "Verus: verus_server.cpp";
        /// Delay that ends slow start.
        slow_start_delay: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(100),
            from "Verus: verus.hpp";
    }
}

/// Smallest delay before there is one (Verus `verus_server.cpp`).
const NO_DELAY_MS: f64 = 1000.0;
/// Memory of the largest delay (zaki15 eq.1, alpha) and of the RTT (Verus `verus_server.cpp`).
const PEAK_MEMORY: f64 = 0.2;
const RTT_MEMORY: f64 = 0.875;
/// By how much the smallest delay is raised when nothing is left to lower (Verus `verus_server.cpp`).
const RELIEF_MS: f64 = 10.0;
/// Windows below which losses do not end slow start (Verus `verus_server.cpp`).
const SLOW_START_WINDOW: f64 = 20.0;
/// Changes of delay below this count as none (Verus `verus_server.cpp`).
const STILL_MS: f64 = 0.0001;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Since when the curve is due.
    Normal {
        refresh_at: Time,
        epoch_at: Time,
    },
}

/// Verus.
#[derive(Clone, Debug)]
pub struct Verus {
    config: Config,
    mss: Bytes,
    phase: Phase,
    profile: Box<Profile>,
    /// W, packets.
    window: f64,
    /// D_est, D_max, D_min, milliseconds.
    target_ms: f64,
    peak_ms: Option<f64>,
    min_ms: f64,
    rtt_ms: f64,
    /// Largest delay of the epoch so far.
    epoch_ms: Option<f64>,
    last_ack: Option<Time>,
    /// After a loss, until packets sent under the reduced window are acknowledged.
    losing: bool,
    /// Whether the loss phase began by leaving slow start for its delay.
    leaving: bool,
    /// Packets that may leave.
    budget: u64,
    inflight: Bytes,
}

impl Verus {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Verus {
            mss: connection.mss,
            phase: Phase::SlowStart,
            profile: Box::default(),
            window: 1.0,
            target_ms: 0.0,
            peak_ms: None,
            min_ms: NO_DELAY_MS,
            rtt_ms: 0.0,
            epoch_ms: None,
            last_ack: None,
            losing: false,
            leaving: false,
            budget: 1,
            inflight: Bytes::ZERO,
            config,
        }
    }

    /// From nothing (Verus `restartSlowStart`).
    fn restart(&mut self) {
        self.phase = Phase::SlowStart;
        self.profile.clear();
        self.window = 1.0;
        self.target_ms = 0.0;
        self.peak_ms = None;
        self.min_ms = NO_DELAY_MS;
        self.rtt_ms = 0.0;
        self.epoch_ms = None;
        self.losing = false;
        self.leaving = false;
        self.budget = 1;
    }

    fn leave_slow_start(&mut self, now: Time) {
        // The curve is laid at once, the first epoch begins.
        self.phase = Phase::Normal { refresh_at: now, epoch_at: now };
        self.budget = 0;
    }

    fn packets_in_flight(&self) -> f64 {
        (self.inflight.0 / self.mss.0) as f64
    }

    /// The delay that goes with the window now, never below the smallest.
    fn target_of_window(&self) -> f64 {
        self.profile.delay_for(self.window).map_or(self.min_ms, |delay| delay.max(self.min_ms))
    }

    fn on_delay(&mut self, now: Time, delay_ms: f64, sent_window: u64) {
        let limit_ms = self.config.slow_start_delay.as_millis_f64();
        if self.phase == Phase::SlowStart && delay_ms > limit_ms {
            self.window = (self.config.decrease * sent_window as f64).max(1.0);
            self.target_ms = self.target_of_window();
            self.losing = true;
            self.leaving = true;
            self.leave_slow_start(now);
        }
        if self.losing && sent_window as f64 <= self.window {
            self.epoch_ms = None;
            self.losing = false;
            self.leaving = false;
        }
        self.epoch_ms = Some(self.epoch_ms.map_or(delay_ms, |peak| peak.max(delay_ms)));
        self.rtt_ms = RTT_MEMORY * self.rtt_ms + (1.0 - RTT_MEMORY) * delay_ms;
        self.min_ms = self.min_ms.min(delay_ms);
        if !self.losing {
            self.profile.record(sent_window, delay_ms);
        }
        self.last_ack = Some(now);
    }

    /// zaki15 eq.4
    fn set_target(&mut self, delay_ms: f64) -> bool {
        let (delta1, delta2) = (self.config.delta1.as_millis_f64(), self.config.delta2.as_millis_f64());
        let peak = self.peak_ms.unwrap_or(delay_ms);
        let mut may_send = true;
        if peak / self.min_ms > self.config.ratio {
            if !self.leaving {
                self.target_ms = (self.target_ms - delta2).max(self.min_ms);
                if self.target_ms == self.min_ms {
                    if self.packets_in_flight() < 2.0 {
                        self.min_ms += RELIEF_MS;
                    } else {
                        may_send = false;
                    }
                }
            }
        } else if delay_ms - peak > STILL_MS {
            self.target_ms = (self.target_ms - delta1).max(self.min_ms);
        } else {
            self.target_ms += delta2;
        }
        self.peak_ms = Some(PEAK_MEMORY * peak + (1.0 - PEAK_MEMORY) * delay_ms);
        may_send
    }

    fn end_epoch(&mut self, now: Time) {
        let waited = self.last_ack.map_or(0.0, |at| now.since(at).as_millis_f64());
        let delay_ms = self.epoch_ms.take().unwrap_or_else(|| self.peak_ms.unwrap_or(0.0).max(waited));
        let may_send = self.set_target(delay_ms);
        let Some(window) = self.window_for_target() else {
            self.restart();
            return;
        };
        self.window = window.max(1.0);
        if may_send {
            self.budget += self.packets_for_epoch();
        }
        // An application that pauses must not save up one permission an epoch.
        self.budget = self.budget.min(self.window as u64);
    }

    /// zaki15 eq.3
    fn window_for_target(&self) -> Option<f64> {
        if self.profile.has_curve() {
            return self.profile.window_for(self.target_ms);
        }
        let delta2 = self.config.delta2.as_millis_f64();
        let mut target = self.target_ms;
        while target > 0.0 {
            if let Some(window) = self.profile.window_for(target) {
                return Some(window);
            }
            target -= delta2;
        }
        Some(1.0)
    }

    /// zaki15 eq.5
    fn packets_for_epoch(&self) -> u64 {
        let epochs = libm::ceil(self.rtt_ms / self.config.epoch.as_millis_f64());
        let flight = self.packets_in_flight();
        let packets = if epochs > 1.0 {
            self.window + flight * (2.0 - epochs) / (epochs - 1.0)
        } else {
            self.window - flight
        };
        packets.max(0.0) as u64
    }
}

impl Controller for Verus {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.budget = self.budget.saturating_sub(1);
        self.inflight = event.inflight + event.size;
        SendDirective { tag: self.window as u64, ..SendDirective::default() }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.inflight = event.inflight;
        if let (Some(newest), Some(rtt)) = (event.acked.last(), event.rtt.sample) {
            self.on_delay(event.now, rtt.as_millis_f64(), newest.tag);
        }
        for _ in event.acked {
            if self.phase == Phase::SlowStart {
                self.window += 1.0;
            } else if self.losing {
                // zaki15 eq.6
                self.window += 1.0 / self.window;
            }
        }
        if self.losing && self.profile.has_curve() && !event.acked.is_empty() {
            self.target_ms = self.target_ms.min(self.target_of_window());
        }
        if let Some(first) = event.lost.first()
            && !self.losing
        {
            self.losing = true;
            self.window = (self.config.decrease * first.tag as f64).min(self.window).max(1.0);
            self.target_ms = self.target_of_window();
            if self.phase == Phase::SlowStart && self.window > SLOW_START_WINDOW {
                self.profile.truncate(first.tag.max(100));
                self.leave_slow_start(event.now);
            }
        }
        if self.phase == Phase::SlowStart {
            self.budget = (self.window - self.packets_in_flight()).max(0.0) as u64;
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.kind == Timeout::Pto {
            return;
        }
        self.inflight = Bytes::ZERO;
        // Verus TimeoutHandler
        if self.last_ack.is_none() {
            self.restart();
        } else if self.phase == Phase::SlowStart {
            self.leave_slow_start(event.now);
        } else {
            self.losing = true;
            self.target_ms = self.min_ms;
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
    }

    fn on_timer(&mut self, now: Time) {
        if let Phase::Normal { refresh_at, .. } = self.phase
            && refresh_at <= now
        {
            if !self.profile.refresh(self.config.smoothing) {
                self.restart();
                return;
            }
            if let Phase::Normal { refresh_at, .. } = &mut self.phase {
                *refresh_at = now + self.config.refresh;
            }
        }
        if let Phase::Normal { epoch_at, .. } = &mut self.phase
            && *epoch_at <= now
        {
            *epoch_at = now + self.config.epoch;
            self.end_epoch(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        match self.phase {
            Phase::SlowStart => None,
            Phase::Normal { refresh_at, epoch_at } => Some(refresh_at.min(epoch_at)),
        }
    }

    fn cwnd(&self) -> Bytes {
        (self.inflight + Bytes(self.budget * self.mss.0)).max(self.mss)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("window_packets", self.window);
        visit("target_ms", self.target_ms);
        visit("min_ms", self.min_ms);
        visit("slow_start", f64::from(u8::from(self.phase == Phase::SlowStart)));
    }
}
