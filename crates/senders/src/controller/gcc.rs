//! Google Congestion Control (draft-ietf-rmcat-gcc-02, gcc16), with what libwebrtc changed since: a target
//! rate that falls when one-way delays rise, and besides when many packets are lost.
//!
//! ```text
//! groups:     packets sent within 5 ms, or that arrive as a burst            gcc-02 5.2, inter_arrival_delta
//! d_i         = (t_i - t_(i-1)) - (T_i - T_(i-1))                            gcc-02 5.1, the delay's change
//! a_i         = a_(i-1) + d_i,   s_i = 0.9 s_(i-1) + 0.1 a_i                 trendline_estimator
//! m_i         = 4 min(i, 60) slope of s over t, of the last `window` groups  trendline_estimator
//! gamma_i     = gamma_(i-1) + dt k (|m_i| - gamma_(i-1)), k: k_down if |m_i| < gamma, else k_up   gcc16 eq.5
//! over-use:   m_i > gamma for `overuse_time` and two groups, and m not falling       gcc-02 5.4
//! under-use:  m_i < -gamma
//! R           = throughput of the receiver, over a second            robust_throughput_estimator
//! over-use:   A = beta R, then hold;   under-use: hold                       gcc-02 5.5
//! else:       A = A 1.08^dt, or near the last throughput at an over-use  A + dt packet / 2(rtt + 100 ms)
//!             A <= 1.5 R + 10 kbit/s                                         gcc-02 5.5, aimd_rate_control
//! loss p:     p <= low: T = 1.08 min T of the last second + 1 kbit/s         gcc-02 6
//!             p > high: T = T (1 - p/2);   T <= A                            gcc-02 6
//!             or T of a model that learns which losses do not depend on the rate     loss_v2.rs
//! probes:     bursts at 3 and 6 times the first rate, then at twice what one found   probe_controller
//! window      = T (rtt_min + `queue_window`)                                 goog_cc_network_control
//! pacing      = `pacing_gain` T for media, T for others; `burst` of it at once    pacing_controller
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | T_i, t_i | `Groups` | time | - | send and arrival of a group's last packet |
//! | gamma | `threshold` | ms | 12.5 | gcc-02 5.4 |
//! | k_u, k_d | `k_up`, `k_down` | 1/ms | 0.0087, 0.039 | libwebrtc trendline_estimator.cc |
//! | - | `window` | groups | 20 | libwebrtc trendline_estimator.h |
//! | - | `overuse_time` | time | 10 ms | libwebrtc trendline_estimator.cc |
//! | beta | `beta` | 1 | 0.85 | gcc-02 5.5 |
//! | A | `aimd` | bit/s | `initial_rate` | gcc-02 5.5 |
//! | T | `loss` | bit/s | `initial_rate` | gcc-02 6 |
//! | low, high | `low_loss`, `high_loss` | share | 2 %, 10 % | gcc-02 6 |
//! | - | `loss_model` | choice | v2 | D2 |
//! | - | `pacing_gain`, `burst` | 1, time | 1.1, 40 ms | libwebrtc video_send_stream_impl.cc, Chromium |
//! | - | `queue_window` | time | 350 ms | libwebrtc rate_control_settings.cc |
//!
//! Versions. The filter, the detector's time and the groups are those of today's libwebrtc (0b51f028 of the
//! mirror JumpingYang001/webrtc, 8f479f31 of jbg/libwebrtc) and not the draft's Kalman filter. The rate
//! control and the link's capacity are those of 1d0005a1 and a4d5624f of jbg/libwebrtc, and the probes those
//! of its 05e14002. The throughput is that of RobustThroughputEstimator, today's default, and the pacer
//! that of Chromium 156. The losses are the draft's rule in the form of
//! `SendSideBandwidthEstimation::UpdateEstimate` (0b51f028), and with `loss_model=v2` the LossBasedBweV2 of
//! 068e6ba6, which `UpdateEstimate` then takes once it has three observations.
//!
//! # Deviations
//!
//! - D1. Feedback arrives with QUIC's ACKs. The detector takes each packet at once, and the rate is decided
//!   every `feedback_interval`, as if a report of transport-wide feedback came then.
//! - D2. The losses of `loss_model=v2`, which is the default here as there, have the deviations of
//!   `loss_v2.rs`. The shares of loss that the draft's rule takes are taken once a second, as RTCP reports
//!   bring them.
//! - D3. What leaves ahead of the pace is given back little by little. libwebrtc's pacer waits until all of
//!   it is made up for, and then begins the next burst. Few frames are so large. A flow that always has more
//!   to send than it may, which no call is, is paced at the target: it would exceed it by a tenth.
//! - D4. Probes are sent of what the application wrote, and while there are any the encoder may produce as
//!   much. There is no padding, so a flow that is limited by its application does not probe again, and the
//!   probes during a call are not there.
//! - D5. The window is a bound. libwebrtc lowers the encoder's rate while more is in flight.
//! - D6. After three seconds without feedback libwebrtc takes a fifth off the target every second. Here
//!   the host's timeouts do, no more often than once a second.
//! - D7. All rates are of payload; packet headers come on top.
//! - D8. There are no separate detectors for audio and video.

use alloc::boxed::Box;
use alloc::format;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, SendDirective, SendEvent, Timeout, TimeoutEvent,
};
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

mod aimd;
mod alr;
mod loss;
mod loss_v2;
mod probe;
mod throughput;
mod trendline;

use aimd::Aimd;
use alr::AppLimit;
use loss::LossBased;
use loss_v2::{LossV2, State};
use probe::Probes;
use throughput::Throughput;
use trendline::{Groups, Trendline, Usage};

/// The range of a rate.
const RATES: core::ops::RangeInclusive<Rate> = Rate::from_bps(1_000)..=Rate::from_mbps(10_000);

choices! {
    /// How losses bound the rate.
    pub enum LossModel {
        /// By their share, as in gcc-02 6.
        Draft = "draft",
        /// By a model that tells inherent losses from those above a capacity, as libwebrtc's LossBasedBweV2.
        V2 = "v2",
    }
}

parameters! {
    /// Google Congestion Control's settings.
    pub struct Config {
        check consistent;
        /// Target rate before there is any feedback.
        initial_rate: Rate = Rate::from_bps(300_000), in RATES, from "libwebrtc bitrate_constraints.h, kDefaultStartBitrateBps";
        /// The target never falls below this.
        min_rate: Rate = Rate::from_bps(5_000), in RATES, from "libwebrtc bwe_defines.h, kCongestionControllerMinBitrate";
        /// The target never rises above this.
        max_rate: Rate = Rate::from_mbps(1000), in RATES, from "libwebrtc send_side_bandwidth_estimation.cc, kDefaultMaxBitrate";
        /// How often the rate is decided.
        feedback_interval: Duration = Duration::from_millis(50), in Duration::from_millis(5)..=Duration::from_secs(1), from "libwebrtc remote_estimator_proxy.h, the shortest interval";
        /// Groups that the slope is fitted to.
        window: u32 = 20, in 10..=200, from "libwebrtc trendline_estimator.h, kDefaultTrendlineWindowSize";
        /// Threshold of over-use at the start, ms.
        threshold: f64 = 12.5, in 6.0..=600.0, from "gcc-02 5.4";
        /// How fast the threshold rises, per ms.
        k_up: f64 = 0.0087, in 0.0..=0.1, from "libwebrtc trendline_estimator.cc";
        /// How fast the threshold falls, per ms.
        k_down: f64 = 0.039, in 0.0..=0.1, from "libwebrtc trendline_estimator.cc";
        /// For how long the slope must be above the threshold.
        overuse_time: Duration = Duration::from_millis(10), in Duration::ZERO..=Duration::from_secs(1), from "gcc-02 5.4";
        /// Share of the throughput that is left after an over-use.
        beta: f64 = 0.85, in 0.1..=0.99, from "gcc-02 5.5";
        /// Share of lost packets up to which the rate grows.
        low_loss: f64 = 0.02, in 0.0..=1.0, from "gcc-02 6";
        /// Share of lost packets above which the rate falls.
        high_loss: f64 = 0.1, in 0.0..=1.0, from "gcc-02 6";
        /// How losses bound the rate; `v2` heeds `low_loss` and `high_loss` only until it has three
        /// observations.
        loss_model: LossModel = LossModel::V2, in .., from "gcc-02 6; libwebrtc loss_based_bwe_v2.cc";
        /// Pace of what is sent over the target, where the application keeps to the target.
        pacing_gain: f64 = 1.1, in 1.0..=10.0, from "libwebrtc video_send_stream_impl.cc, kStrictPacingMultiplier";
        /// What would leave in so long may leave at once, up to 63 kB.
        burst: Duration = Duration::from_millis(40), in Duration::ZERO..=Duration::from_secs(1), from "Chromium rtc_peer_connection_handler.cc, pacer_burst_interval; libwebrtc pacing_controller.h, kMaxBurstSize";
        /// How long packets may queue before the window is the limit.
        queue_window: Duration = Duration::from_millis(350), in Duration::from_millis(10)..=Duration::from_secs(10), from "libwebrtc rate_control_settings.cc, QueueSize";
        /// Whether to look for capacity by bursts at the start.
        probing: bool = true, in .., from "libwebrtc probe_controller.cc";
        /// The highest rate of a burst.
        max_probe_rate: Rate = Rate::from_mbps(5), in RATES, from "libwebrtc probe_controller.cc, kDefaultMaxProbingBitrate";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    let (initial, min, max) = (config.initial_rate, config.min_rate, config.max_rate);
    let reason = if min > max {
        format!("min_rate = {min} is above max_rate = {max}")
    } else if !(min..=max).contains(&initial) {
        format!("initial_rate = {initial} is not within min_rate = {min} and max_rate = {max}")
    } else if config.low_loss > config.high_loss {
        format!("low_loss = {} is above high_loss = {}", config.low_loss, config.high_loss)
    } else {
        return Ok(());
    };
    Err(ParameterError::Conflict { reason })
}

/// libwebrtc delay_based_bwe.cc, kStreamTimeOut
const STREAM_TIMEOUT: Duration = Duration::from_secs(2);
/// libwebrtc send_side_bandwidth_estimation.cc, RttBasedBackoff
const TIMEOUT_FACTOR: f64 = 0.8;
const TIMEOUT_INTERVAL: Duration = Duration::from_secs(1);
/// libwebrtc aimd_rate_control.cc, kDefaultRtt
const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// libwebrtc pacing_controller.h, kMaxExpectedQueueLength: frames that wait longer are no call's.
const LONGEST_BACKLOG: Duration = Duration::from_secs(2);
/// libwebrtc pacing_controller.h, kMaxBurstSize
const MOST_BURST: Bytes = Bytes(63_000);

/// The model of losses, and whether the application is the limit.
#[derive(Clone, Debug)]
struct Model {
    losses: LossV2,
    app_limit: AppLimit,
}

/// Google Congestion Control's target rate.
#[derive(Clone, Debug)]
pub struct Gcc {
    config: Config,
    mss: Bytes,
    initial_window: Bytes,
    groups: Groups,
    trendline: Trendline,
    /// Boxed, as the model is, so that a controller fits in a kilobyte.
    throughput: Box<Throughput>,
    aimd: Aimd,
    loss: LossBased,
    /// Boxed: few have it, and it is as large as the rest.
    model: Option<Box<Model>>,
    probes: Probes,
    rtt: Option<Duration>,
    rtt_min: Duration,
    /// When a packet was last reported, and when the rate was last decided.
    heard_at: Option<Time>,
    decided_at: Option<Time>,
    timed_out_at: Option<Time>,
    /// When all that the application had written was last sent.
    caught_up_at: Option<Time>,
    /// Whether the application writes no more than it is told, so that pacing may be faster than that.
    is_media: bool,
}

impl Gcc {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let start_bps = config.initial_rate.as_bps_f64();
        let bounds = (config.min_rate.as_bps_f64(), config.max_rate.as_bps_f64());
        let max_probe_bps = config.max_probe_rate.min(config.max_rate).as_bps_f64();
        Gcc {
            mss: connection.mss,
            initial_window: connection.initial_window,
            groups: Groups::default(),
            trendline: trendline(&config),
            throughput: Box::default(),
            aimd: Aimd::new(config.beta, start_bps, bounds),
            loss: LossBased::new(config.low_loss, config.high_loss, start_bps, bounds.0),
            model: match config.loss_model {
                LossModel::Draft => None,
                LossModel::V2 => {
                    let losses = LossV2::new(bounds.0, bounds.1);
                    Some(Box::new(Model { losses, app_limit: AppLimit::default() }))
                }
            },
            probes: Probes::new(config.probing, start_bps, max_probe_bps),
            rtt: None,
            rtt_min: DEFAULT_RTT,
            heard_at: None,
            decided_at: None,
            timed_out_at: None,
            caught_up_at: None,
            is_media: false,
            config,
        }
    }

    /// How fast packets leave outside of probes, in bit/s.
    fn paced_bps(&self) -> f64 {
        let gain = if self.is_media { self.config.pacing_gain } else { 1.0 };
        gain * self.loss.bps()
    }

    /// Takes in when packets were sent and when they arrived.
    fn take(&mut self, event: &AckEvent<'_>) {
        if event.receive_times.is_empty() {
            return;
        }
        if self.heard_at.is_some_and(|at| event.now.since(at) > STREAM_TIMEOUT) {
            self.groups = Groups::default();
            self.trendline = trendline(&self.config);
        }
        self.heard_at = Some(event.now);
        for packet in event.receive_times {
            if let Ok(index) = event.acked.binary_search_by_key(&packet.number, |acked| acked.number) {
                let acked = &event.acked[index];
                self.throughput.add(packet.sent_at, packet.received_at, acked.size);
                self.probes.on_arrival(acked.tag, packet.sent_at, packet.received_at, acked.size);
            }
            if let Some(deltas) = self.groups.add(packet.sent_at, packet.received_at, event.now) {
                self.trendline.update(deltas, packet.received_at);
            }
        }
    }

    /// Decides the rate, as libwebrtc does for each report (delay_based_bwe.cc, MaybeUpdateEstimate).
    fn decide(&mut self, now: Time) {
        self.is_media = self.caught_up_at.is_some_and(|at| now.since(at) <= LONGEST_BACKLOG);
        let rtt = self.rtt.unwrap_or(DEFAULT_RTT);
        let usage = self.trendline.usage();
        let throughput = self.throughput.bps();
        // libwebrtc probe_controller.cc, InitiateProbing: no further burst while losses are the limit.
        let is_free = self.model.as_ref().is_none_or(|model| model.losses.state() == State::Delay);
        let probed = self.probes.take(is_free, now);
        match (usage, throughput, probed) {
            (Usage::Overuse, Some(bps), _) => {
                if self.aimd.may_reduce(bps, rtt, now) {
                    self.aimd.update(usage, throughput, rtt, now);
                }
            }
            (Usage::Overuse, None, _) => {
                let half = self.aimd.bps() / 2.0;
                if self.aimd.may_reduce(half, rtt, now) {
                    self.aimd.set(half, now);
                }
            }
            (_, _, Some(bps)) => {
                self.aimd.set(bps, now);
                self.loss.set(self.aimd.bps());
            }
            (_, _, None) => self.aimd.update(usage, throughput, rtt, now),
        }
        if let Some(model) = &mut self.model {
            model.losses.update(self.aimd.bps(), throughput, model.app_limit.is_limited());
        }
        let model_bps = self.model.as_ref().and_then(|model| model.losses.bps());
        self.loss.update(self.aimd.bps(), model_bps, rtt, now);
    }
}

/// A detector that has seen nothing.
fn trendline(config: &Config) -> Trendline {
    let rules = trendline::Rules {
        window: config.window as usize,
        k_up: config.k_up,
        k_down: config.k_down,
        overuse_ms: config.overuse_time.as_millis_f64(),
    };
    Trendline::new(rules, config.threshold)
}

impl Controller for Gcc {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        if let Some(model) = &mut self.model {
            model.app_limit.on_send(event.now, event.size, self.loss.bps());
        }
        if event.app_limited {
            self.caught_up_at = Some(event.now);
        }
        let tag = self.probes.on_send(event.now, event.size);
        SendDirective { ecn: self.encoding().sent(), tag, ..SendDirective::default() }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() {
            self.rtt = Some(event.rtt.smoothed);
            self.rtt_min = event.rtt.min;
        }
        self.take(event);
        self.loss.count(event.acked.len(), event.lost.len());
        if let Some(model) = &mut self.model {
            for packet in event.acked {
                model.losses.count(packet.sent_at, packet.size, false);
            }
            for packet in event.lost {
                model.losses.count(packet.sent_at, packet.size, true);
            }
        }
        if self.decided_at.is_none_or(|at| event.now.since(at) >= self.config.feedback_interval) {
            self.decided_at = Some(event.now);
            self.decide(event.now);
        }
    }

    /// Single losses are counted as they come.
    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.probes.stop();
        let is_due = self.timed_out_at.is_none_or(|at| event.now.since(at) >= TIMEOUT_INTERVAL);
        if event.kind != Timeout::Pto && is_due {
            self.timed_out_at = Some(event.now);
            self.aimd.set(TIMEOUT_FACTOR * self.loss.bps(), event.now);
            self.loss.set(self.aimd.bps());
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
    }

    fn cwnd(&self) -> Bytes {
        if self.rtt.is_none() {
            return self.initial_window.max(self.mss);
        }
        let rate_bps = self.probes.bps().unwrap_or(0.0).max(self.loss.bps());
        let seconds = (self.rtt_min + self.config.queue_window).as_secs_f64();
        // libwebrtc goog_cc_network_control.cc, kMinCwnd: two packets.
        Bytes((rate_bps / 8.0 * seconds) as u64).max(self.mss + self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let paced_bps = self.probes.bps().unwrap_or_else(|| self.paced_bps());
        Some(Rate::from_bps_f64(paced_bps).max(Rate::from_bps(1)))
    }

    fn media_rate(&self) -> Option<Rate> {
        let media_bps = self.probes.bps().unwrap_or(self.loss.bps());
        Some(Rate::from_bps_f64(media_bps).max(Rate::from_bps(1)))
    }

    fn send_quantum(&self) -> Option<Bytes> {
        if self.probes.bps().is_some() {
            return Some(self.mss);
        }
        let ahead = Rate::from_bps_f64(self.paced_bps()).bytes_in(self.config.burst).min(MOST_BURST);
        // The packet that uses up what may leave ahead may be a whole one.
        Some(ahead + self.mss)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("target_mbps", self.loss.bps() / 1e6);
        visit("delay_based_mbps", self.aimd.bps() / 1e6);
        visit("received_mbps", self.throughput.bps().unwrap_or(0.0) / 1e6);
        visit("trend", self.trendline.slope());
        visit("threshold_ms", self.trendline.threshold_ms());
        visit("loss_percent", 100.0 * self.loss.share());
        if let Some(model) = &self.model {
            visit("inherent_loss_percent", 100.0 * model.losses.inherent_loss());
        }
    }
}

#[cfg(test)]
mod tests;
