//! CUBIC (RFC 9438), with HyStart as Linux 6.12 tcp_cubic.c has it, or HyStart++ (RFC 9406).
//! `rules=mvfst` has the rules of `mvfst.rs`.
//!
//! ```text
//! W(t) = C (t - K)^3 + W_max                                                        rfc9438 4.2, Figure 1
//! K    = cbrt((W_max - cwnd_epoch) / C)                                             rfc9438 4.2, Figure 2
//! target = clamp(W(t + RTT), cwnd, 1.5 cwnd);  cwnd += (target - cwnd) / cwnd  for each packet ACKed
//!                                                                                                   4.4, 4.5
//! W_est += alpha / cwnd for each packet ACKed; alpha = 3 (1 - beta) / (1 + beta), 1 once W_est >= cwnd_prior
//! W(t) < W_est: cwnd = W_est                                                        rfc9438 4.3, Figure 4
//! loss or CE:  ssthresh = max(beta cwnd, 2), cwnd = ssthresh,                       rfc9438 4.6, Figure 5
//!              W_max = cwnd (1 + beta) / 2 if cwnd < W_max else cwnd                rfc9438 4.7
//! timeout:     the same ssthresh, cwnd = 1, W_max forgotten                         rfc9438 4.8
//! slow start:  cwnd += acked, up to ssthresh
//! ```
//!
//! Time t counts from the start of the epoch: the first ACK in congestion avoidance after slow start or a
//! reduction. Without a W_max (slow start ended without loss, or a timeout) K = 0 and W_max = cwnd_epoch
//! (rfc9438 4.8, 4.10).
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | C | `c` | packets/s^3 | 0.4 | rfc9438 4.1.1 |
//! | beta | `beta` | 1 | 0.7 | rfc9438 4.1.1 |
//! | cwnd | `cwnd_pkts` | packets | initial window | rfc9438 4.1.2 |
//! | W_max | `w_max_pkts` | packets | - | rfc9438 4.1.2 |
//! | K | `Epoch::k_s` | s | - | rfc9438 4.1.2 |
//! | W_est | `Epoch::w_est_pkts` | packets | - | rfc9438 4.1.2 |
//! | cwnd_prior | `cwnd_prior_pkts` | packets | - | rfc9438 4.1.2 |
//! | RTT | `horizon` | choice | srtt | rfc9438 4.4 |
//!
//! Deviations:
//! D1 a reduction starts from cwnd, not from the bytes in flight, as Linux 6.12 tcp_cubic.c,
//!    cubictcp_recalc_ssthresh, does; growth stops while cwnd is not the limit, so that the two stay close.
//! D2 before the first loss the window grows by at least `initial_growth` of itself per RTT, as Linux 6.12
//!    tcp_cubic.c, bictcp_update, does: the curve from K = 0 is nearly flat at first.
//! D3 in the Reno-friendly region the window is the larger of W_est and the cubic step, so it never falls
//! there.
//! D4 slow start has no limit per ACK (RFC 9438 asks for RFC 5681's one packet, Linux 6.12 tcp_cong.c,
//!    tcp_slow_start, counts packets ACKed).
//! D5 time without an ACK that may raise the window does not count as t (rfc9438 5.8); Linux 6.12
//!    tcp_cubic.c, cubictcp_cwnd_event, leaves out idle time only.

use alloc::boxed::Box;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::controller::{SendDirective, SendEvent};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use self::mvfst::Mvfst;
use super::hystart::{self, Classic, PlusPlus};
use super::window;

mod mvfst;

choices! {
    /// Whose CUBIC.
    pub enum Rules {
        /// RFC 9438.
        Rfc = "rfc",
        /// facebook/mvfst, `QuicCubic.cpp`.
        Mvfst = "mvfst",
    }
}

choices! {
    /// How slow start ends before a loss ends it.
    pub enum HyStart {
        /// Never.
        Off = "off",
        /// By ACK trains and delay, as in Linux 6.12 tcp_cubic.c.
        Classic = "classic",
        /// RFC 9406.
        PlusPlus = "plusplus",
    }
}

choices! {
    /// How far ahead the curve is read.
    pub enum Horizon {
        /// One smoothed RTT, as RFC 9438 says.
        Srtt = "srtt",
        /// One smallest RTT, as Linux 6.12 tcp_cubic.c, bictcp_update, does.
        MinRtt = "min_rtt",
    }
}

parameters! {
    /// CUBIC's settings.
    pub struct Config {
        /// Whose rules hold; of the others `mvfst` heeds `c`, `beta` and `ecn` alone.
        rules: Rules = Rules::Rfc, in .., from "rfc9438; mvfst QuicCubic.cpp";
        /// Steepness of the curve, packets per second cubed.
        c: f64 = 0.4, in 0.001..=100.0, from "rfc9438 4.1.1";
        /// What is left of the window after a loss.
        beta: f64 = 0.7, in 0.1..=0.95, from "rfc9438 4.1.1";
        /// Whether a flow that lost below its last maximum releases more.
        fast_convergence: bool = true, in .., from "rfc9438 4.7";
        /// Whether the window is at least what Reno would have.
        reno_friendly: bool = true, in .., from "rfc9438 4.3";
        /// Whether W_est grows by a packet per RTT once it has passed the window before the reduction; Linux
        /// 6.12 tcp_cubic.c never does.
        reno_catch_up: bool = true, in .., from "rfc9438 4.3";
        /// How far ahead the curve is read.
        horizon: Horizon = Horizon::Srtt, in .., from "rfc9438 4.4";
        /// Least growth per RTT, as a share of the window, until the first loss shows the maximum.
        initial_growth: f64 = 0.05, in 0.0..=0.5, from "Linux 6.12 tcp_cubic.c, bictcp_update";
        /// How slow start ends before a loss ends it.
        hystart: HyStart = HyStart::Classic, in .., from "Linux 6.12 tcp_cubic.c";
        /// Window, in packets, below which classic HyStart does not look.
        hystart_low_window: u32 = 16, in 1..=10_000, from "Linux 6.12 tcp_cubic.c";
        /// Largest gap within an ACK train.
        hystart_ack_delta: Duration = Duration::from_millis(2), in Duration::from_micros(1)..=Duration::from_secs(1), from "Linux 6.12 tcp_cubic.c";
        /// How far an ACK train must reach into the round, as a share of the smallest RTT: 0.5 unpaced, 1
        /// paced.
        hystart_train: f64 = 0.5, in 0.1..=10.0, from "Linux 6.12 tcp_cubic.c";
        /// The smallest RTT over this is the rise of the RTT that ends slow start.
        hystart_delay_divisor: f64 = 8.0, in 0.5..=100.0, from "Linux 6.12 tcp_cubic.c";
        /// Lower bound of that rise.
        hystart_delay_min: Duration = Duration::from_millis(4), in Duration::from_micros(1)..=Duration::from_secs(10), from "Linux 6.12 tcp_cubic.c";
        /// Upper bound of that rise.
        hystart_delay_max: Duration = Duration::from_millis(16), in Duration::from_micros(1)..=Duration::from_secs(10), from "Linux 6.12 tcp_cubic.c";
        /// Whether to send ECT(0) and treat CE as a loss.
        ecn: bool = false, in .., from "rfc3168 6.1.2";
    }
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    start: Time,
    /// Where the curve is flat: W_max, or the window at the start if that is larger.
    origin_pkts: f64,
    k_s: f64,
    w_est_pkts: f64,
}

impl Epoch {
    // rfc9438 4.2, Figure 1
    fn curve_pkts(&self, c: f64, t: Duration) -> f64 {
        let offset_s = t.as_secs_f64() - self.k_s;
        c * offset_s * offset_s * offset_s + self.origin_pkts
    }
}

/// How slow start is watched.
#[derive(Clone, Copy, Debug)]
enum Watch {
    Off,
    Classic(Classic),
    PlusPlus(PlusPlus),
}

/// What an undo brings back.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Model {
    cwnd_pkts: f64,
    ssthresh_pkts: f64,
    /// Where the last reduction says the limit is; none before the first.
    w_max_pkts: Option<f64>,
    cwnd_prior_pkts: f64,
    epoch: Option<Epoch>,
}

/// CUBIC's window.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: Config,
    mss: Bytes,
    initial_window: Bytes,
    model: Model,
    /// The model before the last reduction.
    before: Option<Model>,
    watch: Watch,
    /// With the rules of mvfst: what decides in the place of the model, which has its window and its ssthresh
    /// alone.
    mvfst: Option<Box<Mvfst>>,
    /// Smallest RTT, as Linux 6.12 tcp_cubic.c, cubictcp_acked, keeps it: samples of the first second of an
    /// epoch are left out.
    delay_min: Option<Duration>,
    /// The last ACK of any kind: t counts no time between ACKs of which the later may not raise the window.
    last_ack: Time,
}

impl Cubic {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let watch = match config.hystart {
            // mvfst has a watch of its own.
            _ if matches!(config.rules, Rules::Mvfst) => Watch::Off,
            HyStart::Off => Watch::Off,
            HyStart::PlusPlus => Watch::PlusPlus(PlusPlus::new()),
            HyStart::Classic => {
                let settings = hystart::Settings {
                    low_window_pkts: f64::from(config.hystart_low_window),
                    ack_delta: config.hystart_ack_delta,
                    train: config.hystart_train,
                    divisor: config.hystart_delay_divisor,
                    delay_floor: config.hystart_delay_min,
                    delay_ceiling: config.hystart_delay_max,
                };
                Watch::Classic(Classic::new(settings, connection.now))
            }
        };
        let initial_pkts = connection.initial_window.as_f64() / connection.mss.as_f64();
        let is_mvfst = matches!(config.rules, Rules::Mvfst);
        let mvfst = is_mvfst.then(|| Box::new(Mvfst::new(config.c, config.beta, initial_pkts)));
        Cubic {
            config,
            mss: connection.mss,
            initial_window: connection.initial_window,
            model: Model {
                cwnd_pkts: initial_pkts,
                ssthresh_pkts: f64::INFINITY,
                w_max_pkts: None,
                cwnd_prior_pkts: 0.0,
                epoch: None,
            },
            before: None,
            watch,
            mvfst,
            delay_min: None,
            last_ack: connection.now,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.model.cwnd_pkts < self.model.ssthresh_pkts
    }

    /// Whether nothing has set ssthresh yet: neither a loss that stands nor HyStart. HyStart++ is for this
    /// slow start only; later ones end at the ssthresh that the path has shown.
    // rfc9406 4.3
    fn in_initial_slow_start(&self) -> bool {
        self.model.ssthresh_pkts.is_infinite()
    }

    /// Lets the rules of mvfst `act`, where they hold, and takes their window; whether they do.
    #[inline]
    fn by_mvfst(&mut self, act: impl FnOnce(&mut Mvfst)) -> bool {
        let Some(mvfst) = &mut self.mvfst else { return false };
        act(mvfst);
        self.model.cwnd_pkts = mvfst.cwnd_pkts();
        self.model.ssthresh_pkts = mvfst.ssthresh_pkts();
        true
    }

    /// Out of the way of RFC 9438's ACKs.
    #[cold]
    #[inline(never)]
    fn acked_by_mvfst(&mut self, event: &AckEvent<'_>) {
        let growth_pkts = self.packets(event.growth);
        self.by_mvfst(|mvfst| mvfst.acked(event, growth_pkts));
    }

    fn packets(&self, bytes: Bytes) -> f64 {
        bytes.as_f64() / self.mss.as_f64()
    }

    fn bytes(&self, pkts: f64) -> Bytes {
        Bytes((pkts * self.mss.as_f64()) as u64)
    }

    /// Smallest RTT and HyStart.
    // Linux 6.12 tcp_cubic.c, cubictcp_acked
    #[inline(always)]
    fn watch(&mut self, event: &AckEvent<'_>) {
        let slow_start = self.in_slow_start();
        // The queue that caused the last reduction drains at first: those samples would say too little.
        let settled =
            self.model.epoch.is_none_or(|epoch| event.now.since(epoch.start) >= Duration::from_secs(1));
        if let (Some(sample), true) = (event.rtt.sample, settled) {
            self.delay_min = Some(self.delay_min.map_or(sample, |min| min.min(sample)));
        }
        let (Some(newest), true) = (event.newest, slow_start) else { return };
        let (cwnd, initial) = (self.cwnd(), self.in_initial_slow_start());
        let found = match &mut self.watch {
            Watch::Off => false,
            Watch::PlusPlus(watch) => initial && watch.found(newest, event.rtt.sample),
            Watch::Classic(watch) => match (event.rtt.sample, self.delay_min) {
                (Some(rtt), Some(delay_min)) if settled => watch.found(&hystart::Sample {
                    now: event.now,
                    rtt,
                    newest,
                    cwnd_pkts: self.model.cwnd_pkts,
                    cwnd,
                    srtt: event.rtt.smoothed,
                    delay_min,
                }),
                _ => false,
            },
        };
        if found {
            self.model.ssthresh_pkts = self.model.cwnd_pkts;
        }
    }

    /// Slow start; returns the packets ACKed that are left for congestion avoidance.
    #[inline]
    fn slow_start(&mut self, acked: Bytes) -> f64 {
        let growth = match &self.watch {
            Watch::PlusPlus(watch) if self.in_initial_slow_start() => watch.growth(acked, self.mss),
            _ => acked,
        };
        let room_pkts = self.model.ssthresh_pkts - self.model.cwnd_pkts;
        let growth_pkts = self.packets(growth);
        if growth_pkts < room_pkts {
            self.model.cwnd_pkts += growth_pkts;
            return 0.0;
        }
        self.model.cwnd_pkts = self.model.ssthresh_pkts;
        growth_pkts - room_pkts
    }

    #[cold]
    fn begin_epoch(&self, now: Time) -> Epoch {
        let cwnd_pkts = self.model.cwnd_pkts;
        // rfc9438 4.2, 4.10
        let origin_pkts = self.model.w_max_pkts.map_or(cwnd_pkts, |w_max_pkts| w_max_pkts.max(cwnd_pkts));
        Epoch {
            start: now,
            origin_pkts,
            k_s: libm::cbrt((origin_pkts - cwnd_pkts) / self.config.c),
            w_est_pkts: cwnd_pkts,
        }
    }

    #[inline]
    fn congestion_avoidance(&mut self, event: &AckEvent<'_>, acked_pkts: f64) {
        let mut epoch = self.model.epoch.unwrap_or_else(|| self.begin_epoch(event.now));
        let cwnd_pkts = self.model.cwnd_pkts;
        let t = event.now.since(epoch.start);
        let horizon = match (self.config.horizon, self.delay_min) {
            (Horizon::MinRtt, Some(delay_min)) => delay_min,
            _ => event.rtt.smoothed,
        };
        // rfc9438 4.4, 4.5
        let target_pkts = epoch.curve_pkts(self.config.c, t + horizon).clamp(cwnd_pkts, 1.5 * cwnd_pkts);
        let mut growth_per_rtt = (target_pkts - cwnd_pkts) / cwnd_pkts;
        if self.model.w_max_pkts.is_none() {
            growth_per_rtt = growth_per_rtt.max(self.config.initial_growth);
        }
        let mut grown_pkts = cwnd_pkts + growth_per_rtt * acked_pkts;
        if self.config.reno_friendly {
            // rfc9438 4.3, Figure 4
            let below = epoch.w_est_pkts < self.model.cwnd_prior_pkts;
            let alpha = if below || !self.config.reno_catch_up {
                3.0 * (1.0 - self.config.beta) / (1.0 + self.config.beta)
            } else {
                1.0
            };
            epoch.w_est_pkts += alpha * acked_pkts / cwnd_pkts;
            if epoch.curve_pkts(self.config.c, t) < epoch.w_est_pkts {
                grown_pkts = grown_pkts.max(epoch.w_est_pkts);
            }
        }
        self.model.epoch = Some(epoch);
        self.model.cwnd_pkts = grown_pkts;
    }

    /// Leaves the time since the last ACK out of t.
    // rfc9438 5.8
    #[inline]
    fn pause(&mut self, now: Time) {
        if let Some(epoch) = &mut self.model.epoch {
            epoch.start += now.since(self.last_ack);
        }
        self.last_ack = now;
    }

    /// W_max, ssthresh and the end of the epoch.
    // rfc9438 4.6, 4.7
    fn reduce(&mut self) {
        self.before = Some(self.model);
        let cwnd_pkts = self.model.cwnd_pkts;
        let below_last = self.model.w_max_pkts.is_some_and(|w_max_pkts| cwnd_pkts < w_max_pkts);
        self.model.w_max_pkts = Some(if below_last && self.config.fast_convergence {
            cwnd_pkts * (1.0 + self.config.beta) / 2.0
        } else {
            cwnd_pkts
        });
        self.model.cwnd_prior_pkts = cwnd_pkts;
        self.model.ssthresh_pkts = (cwnd_pkts * self.config.beta).max(2.0);
        self.model.epoch = None;
    }
}

impl Controller for Cubic {
    #[inline]
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        match &mut self.watch {
            Watch::Off => {
                if let Some(mvfst) = &mut self.mvfst {
                    mvfst.sent(event.number);
                }
            }
            Watch::Classic(watch) => watch.sent(event.number),
            Watch::PlusPlus(watch) => watch.sent(event.number),
        }
        if event.inflight == Bytes::ZERO {
            self.pause(event.now);
        }
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    #[inline(always)]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if self.mvfst.is_some() {
            self.acked_by_mvfst(event);
            return;
        }
        self.watch(event);
        if event.in_recovery() || !event.cwnd_limited {
            self.pause(event.now);
            return;
        }
        self.last_ack = event.now;
        let mut acked_pkts = self.packets(event.growth);
        if self.in_slow_start() {
            acked_pkts = self.slow_start(event.growth);
        }
        if acked_pkts > 0.0 {
            self.congestion_avoidance(event, acked_pkts);
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        if self.by_mvfst(|mvfst| mvfst.lost(event.now)) {
            return;
        }
        self.reduce();
        self.model.cwnd_pkts = self.model.ssthresh_pkts;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        let by_mvfst = self.by_mvfst(|mvfst| match event.kind {
            Timeout::Pto => {}
            // mvfst has no such timer: as RFC 9438 has it.
            Timeout::Rto => mvfst.collapsed(1.0),
            Timeout::PersistentCongestion => mvfst.collapsed(2.0),
        });
        if by_mvfst {
            return;
        }
        match event.kind {
            Timeout::Pto => return,
            // rfc9438 4.8
            Timeout::Rto => {
                if !event.repeated {
                    self.reduce();
                }
                self.model.cwnd_pkts = 1.0;
            }
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => self.model.cwnd_pkts = self.model.cwnd_pkts.min(2.0),
        }
        self.model.w_max_pkts = None;
        self.model.epoch = None;
        self.delay_min = None;
        if let Watch::Classic(watch) = &mut self.watch {
            watch.rearm(event.now);
        }
    }

    // rfc9438 4.9
    fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some(before) = self.before.take() {
            let cwnd_pkts = self.model.cwnd_pkts.max(before.cwnd_pkts);
            self.model = Model { cwnd_pkts, ..before };
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.before = None;
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        let ssthresh = self.ssthresh().unwrap_or(Bytes(u64::MAX));
        let (cwnd, ssthresh) = window::restarted(self.cwnd(), ssthresh, self.initial_window, event);
        let cwnd_pkts = self.packets(cwnd);
        if self.by_mvfst(|mvfst| mvfst.set_cwnd_pkts(cwnd_pkts)) {
            return;
        }
        self.model.cwnd_pkts = cwnd_pkts.max(1.0);
        if self.model.ssthresh_pkts.is_finite() {
            self.model.ssthresh_pkts = self.packets(ssthresh);
        }
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        let most_pkts = self.packets(most);
        if self.by_mvfst(|mvfst| mvfst.set_cwnd_pkts(mvfst.cwnd_pkts().min(most_pkts))) {
            return;
        }
        self.model.cwnd_pkts = self.model.cwnd_pkts.min(most_pkts).max(1.0);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        let scale = self.mss.as_f64() / mss.as_f64();
        self.mss = mss;
        self.before = None;
        if self.by_mvfst(|mvfst| mvfst.scale(scale)) {
            return;
        }
        self.model = Model {
            cwnd_pkts: (self.model.cwnd_pkts * scale).max(1.0),
            ssthresh_pkts: (self.model.ssthresh_pkts * scale).max(2.0),
            w_max_pkts: self.model.w_max_pkts.map(|w_max_pkts| w_max_pkts * scale),
            cwnd_prior_pkts: self.model.cwnd_prior_pkts * scale,
            // Another unit, another curve: it begins anew from here towards the same maximum.
            epoch: None,
        };
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.bytes(self.model.cwnd_pkts).max(self.mss)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(self.bytes(self.model.ssthresh_pkts))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.mvfst.as_ref().and_then(|mvfst| mvfst.pacing_rate(self.mss))
    }

    #[inline]
    fn encoding(&self) -> Encoding {
        if self.config.ecn { Encoding::Classic } else { Encoding::None }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Some(mvfst) = &self.mvfst {
            mvfst.inspect(visit);
            return;
        }
        visit("w_max_pkts", self.model.w_max_pkts.unwrap_or(0.0));
        visit("w_est_pkts", self.model.epoch.map_or(0.0, |epoch| epoch.w_est_pkts));
        visit("k_s", self.model.epoch.map_or(0.0, |epoch| epoch.k_s));
    }
}

#[cfg(test)]
mod tests;
