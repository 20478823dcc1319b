//! SCReAM version 2 (draft-ietf-ccwg-rfc8298bis-screamv2-01): a reference window that falls by the share of
//! marks, by losses and by queueing delay, and a rate of media that is a little less than it per round trip.
//!
//! ```text
//! s        = clamp((8 (W - W_i) / W_i)^2, 0.1, 1), near the inflection point     scream-01 4.2.2.1
//! reaction, at most once per min(V, rtt):
//!   loss                 W = BETA_LOSS W                                         scream-01 4.2.2.1
//!   CE, classic          W = BETA_ECN W                                          scream-01 4.2.2.1
//!   CE, L4S              W = W (1 - alpha/2 f max(1/4, s) max(1/4, j)), the last two if q < T/4
//!   q_avg > T/2          W = W (1 - v/2 f), v = (q_avg - T/2) / (T/2) within 0 and 1
//!   f = 1 / max(1, rtt/V);  W_i = W before it, if W has grown since the last
//! growth, with each ACK:
//!   W += unmarked MSS/W min(1, rtt/V) max(1/4, s) max(1/10, j) (1 + MUL W/MSS p s) scream-01 4.2.2.2
//!   p: time since the last loss or mark over 100 max(V, rtt), at most 1
//!   unless W would exceed MSS + 1.5 times what was in flight, or R is RMAX
//! alpha    = F/8 + 7/8 alpha if F >= alpha, else 127/128 alpha, F: share of marks
//!            of the last min(10 ms, rtt)                                         scream-01 4.2.1.3
//! q_avg    = q if q < q_avg, else q/4 + 3/4 q_avg, once per min(V, rtt)           scream-01 4.2.1.4
//! R        = 8 W/rtt (1 - clamp(MSS/W - 0.1, 0, 0.2)) MSS/(MSS + 20) / 1.2        scream-01 4.4
//! window   = W (1.5 + 1.5 j)                                                      scream-01 4.3.1
//! pacing   = 1.5 max(R, 50 kbit/s), up to four times that near RMAX               scream-01 4.3.2
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | W, W_i | `window_bytes`, `inflection_bytes` | B | 3000, 1 | scream-01 4.2.2 |
//! | R, RMIN, RMAX | `rate_bps`, `min_rate`, `max_rate` | rate | 100 kbit/s, 1 Gbit/s | D9 |
//! | T | `queueing_target` | time | 60 ms | scream-01 4.2.2, QDELAY_TARGET_LO |
//! | V | `virtual_rtt` | time | 25 ms | scream-01 4.2.2, VIRTUAL_RTT |
//! | BETA_LOSS, BETA_ECN | `beta_loss`, `beta_ecn` | 1 | 0.7, 0.8 | scream-01 4.2.2 |
//! | MUL | `multiplicative` | 1 | 0.02 | scream-01 4.2.2, MUL_INCREASE_FACTOR |
//! | j | `Queueing::steadiness` | 1 | 1 | scream-01 4.2.1.4, ref_wnd_delay_scale |
//! | q, q_avg | `Queueing` | s | 0 | scream-01 4.2.1.4 |
//! | alpha | `alpha` | 1 | 0 | scream-01 4.2.1.3 |
//!
//! What section 4.5 and REDUCE_JITTER add is here as options, which are off: `reduce_jitter`,
//! `loss_threshold` (4.5.2), `limit_undershoot` (4.5.3) and `compete` (4.5.4).
//!
//! # Deviations
//!
//! - D1. Feedback comes with QUIC's ACKs, for every second packet. The draft asks for one per 16 packets, per
//!   frame and per 40 ms at the latest, and says that its principles apply to QUIC.
//! - D2. A loss counts if its packet was sent after the last reaction to a loss (rfc9002 7.3.2), and classic
//!   CE if a round trip has passed since the last reaction. The draft's condition, min(V, rtt), would let one
//!   full queue lower W several times per round trip, against its own "at most once per smoothed RTT".
//! - D3. The smallest one-way delay is kept within what round trips allow, as in `one_way_queueing`. It takes
//!   the place of the base delay of RFC 6817 and of section 4.5.1, which resets it and halves the rate.
//! - D4. `rate_adjust_factor` and `frame_size_dev` of section 4.4, which the draft calls examples, need the
//!   queue of frames. A controller does not see it; the model of a call lowers its encoder's rate by it.
//! - D5. Bytes in flight are the host's: what is lost is out of flight once the host has noticed.
//! - D6. Until the first loss or mark, p is 1. The draft's last congestion at time 0 means the same for
//!   clocks that tell the time of day.
//! - D7. A timeout counts as a loss, at most once per round trip. The draft is silent about it.
//! - D8. The rate policer of section 4.5.2 is not detected. The draft itself says that its rule can fail.
//! - D9. The draft has no RMIN and no RMAX: RMIN is that of the authors' simulator, and RMAX that of `gcc`.
//! - D10. All rates are of payload; headers of QUIC, UDP and IP come on top.
//! - D11. At 95 % of RMAX, W is at most what was in flight or what 1.5 RMAX needs, whichever is more. The
//!   draft refers to the authors' code for it (`ScreamV2Tx.cpp`), which looks further back.

use alloc::format;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

mod losses;
mod marks;
mod queueing;

use losses::Losses;
use marks::Marks;
use queueing::Queueing;

/// The range of a rate.
const RATES: core::ops::RangeInclusive<Rate> = Rate::from_bps(1_000)..=Rate::from_mbps(10_000);
/// The range of a time that is not zero.
const TIMES: core::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

choices! {
    /// What the ECN field is used for.
    pub enum Ecn {
        /// Nothing: packets are Not-ECT.
        None = "none",
        /// RFC 3168: ECT(0); CE counts almost as a loss.
        Classic = "classic",
        /// L4S: ECT(1); the share of CE counts.
        L4s = "l4s",
    }
}

parameters! {
    /// SCReAM's settings.
    pub struct Config {
        check consistent;
        /// The target of the media never falls below this.
        min_rate: Rate = Rate::from_bps(100_000), in RATES, from "scream_simulator.cpp; scream-01 has no default (D9)";
        /// The target of the media never rises above this.
        max_rate: Rate = Rate::from_mbps(1000), in RATES, from "as gcc; scream-01 has no default (D9)";
        /// What the ECN field is used for.
        ecn: Ecn = Ecn::None, in .., from "scream-01 4.2.2, IS_L4S";
        /// Queueing delay at which the reaction to delay is full; it begins at half of it.
        queueing_target: Duration = Duration::from_millis(60), in TIMES, from "scream-01 4.2.2, QDELAY_TARGET_LO";
        /// The most that `compete` makes of `queueing_target`.
        queueing_target_max: Duration = Duration::from_millis(400), in TIMES, from "scream-01 4.2.2, QDELAY_TARGET_HI";
        /// What a loss leaves of the reference window.
        beta_loss: f64 = 0.7, in 0.1..=1.0, from "scream-01 4.2.2, BETA_LOSS";
        /// What a classic CE mark leaves of it.
        beta_ecn: f64 = 0.8, in 0.1..=1.0, from "scream-01 4.2.2, BETA_ECN";
        /// By which share of itself the reference window grows per round trip, long after congestion.
        multiplicative: f64 = 0.02, in 0.0..=1.0, from "scream-01 4.2.2, MUL_INCREASE_FACTOR";
        /// RTT below which a flow behaves as if it had this one.
        virtual_rtt: Duration = Duration::from_millis(25), in TIMES, from "scream-01 4.2.2, VIRTUAL_RTT";
        /// Whether growth and window shrink where the queueing delay varies.
        reduce_jitter: bool = false, in .., from "scream-01 4.2.1.4, REDUCE_JITTER";
        /// Share of losses that are no congestion while the queue is short; 0 if each loss is.
        loss_threshold: f64 = 0.0, in 0.0..=0.5, from "scream-01 4.5.2, optional: 0.01";
        /// Whether reactions are a quarter while the target is below 80 % of what is acknowledged.
        limit_undershoot: bool = false, in .., from "scream-01 4.5.3, optional";
        /// Whether the target of the queueing delay rises beside flows that fill the queue.
        compete: bool = false, in .., from "scream-01 4.5.4, optional";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    let (min, max) = (config.min_rate, config.max_rate);
    let (target, most) = (config.queueing_target, config.queueing_target_max);
    let reason = if min > max {
        format!("min_rate = {min} is above max_rate = {max}")
    } else if target > most {
        format!("queueing_target = {target} is above queueing_target_max = {most}")
    } else {
        return Ok(());
    };
    Err(ParameterError::Conflict { reason })
}

/// scream-01 4.2.2, MIN_REF_WND
const MIN_WINDOW_BYTES: f64 = 3000.0;
/// scream-01 4.2.2, BYTES_IN_FLIGHT_HEAD_ROOM
const INFLIGHT_HEADROOM: f64 = 1.5;
/// scream-01 4.2.2, POST_CONGESTION_DELAY_RTT
const CAUTIOUS_RTTS: f64 = 100.0;
/// scream-01 4.2.2.1: round trips without congestion after which W may have lost touch.
const LONG_RTTS: u64 = 100;
/// scream-01 4.3.1, REF_WND_OVERHEAD_MIN and REF_WND_OVERHEAD_MAX
const OVERHEAD: (f64, f64) = (1.5, 3.0);
/// scream-01 4.3.2, pace_bitrate before there is any feedback
const FIRST_PACING_BPS: f64 = 1e6;
/// scream-01 4.3.2, RATE_PACE_MIN
const MIN_PACING_BPS: f64 = 50_000.0;
/// scream-01 4.3.2, PACKET_PACING_HEADROOM
const PACING_HEADROOM: f64 = 1.5;
/// scream-01 4.3.2, RELAXED_PACING_LIMIT_LOW and MAX_RELAXED_PACING_FACTOR
const RELAXED: (f64, f64) = (0.8, 4.0);
/// scream-01 4.4, PACKET_OVERHEAD
const PACKET_OVERHEAD_BYTES: f64 = 20.0;
/// scream-01 4.4: how much more than the target the reference window allows.
const MARGIN: f64 = 1.2;
/// ScreamV2Tx.cpp, updateCwnd: from which share of RMAX on W is bounded (D11).
const NEAR_MAX: f64 = 0.95;
/// scream-01 4.5.3, ACKED_BITRATE_MARGIN and BACKOFF_SCALE_LOW_TARGET_RATE
const UNDERSHOOT: (f64, f64) = (0.8, 0.25);

/// Why the reference window falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Congestion {
    Loss,
    Ce,
    Delay,
}

/// SCReAM's reference window and target rate.
#[derive(Clone, Debug)]
pub struct Scream {
    config: Config,
    mss: Bytes,
    /// W.
    window_bytes: f64,
    /// W_i.
    inflection_bytes: f64,
    /// Whether W has grown since W_i was set.
    may_inflect: bool,
    queueing: Queueing,
    marks: Marks,
    losses: Losses,
    /// The most that was in flight in this round trip, and in the one before.
    inflight: (f64, f64),
    reacted_at: Option<Time>,
    /// When a loss or a mark was last heard of.
    congested_at: Option<Time>,
    srtt: Option<Duration>,
    /// R.
    rate_bps: f64,
}

impl Scream {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let mut scream = Scream {
            mss: connection.mss,
            window_bytes: MIN_WINDOW_BYTES,
            inflection_bytes: 1.0,
            may_inflect: true,
            queueing: Queueing::new(&config),
            marks: Marks::default(),
            losses: Losses::new(config.loss_threshold),
            inflight: (0.0, 0.0),
            reacted_at: None,
            congested_at: None,
            srtt: None,
            rate_bps: config.min_rate.as_bps_f64(),
            config,
        };
        scream.window_bytes = scream.min_window();
        scream
    }

    /// The least reference window; no less than two packets, which one ACK is for.
    fn min_window(&self) -> f64 {
        MIN_WINDOW_BYTES.max(2.0 * self.mss.as_f64())
    }

    /// MSS/W, at most 1.
    fn window_ratio(&self) -> f64 {
        (self.mss.as_f64() / self.window_bytes).min(1.0)
    }

    /// s: small where W is near the inflection point.
    fn distance(&self) -> f64 {
        let distance = 8.0 * (self.window_bytes - self.inflection_bytes) / self.inflection_bytes;
        (distance * distance).clamp(0.1, 1.0)
    }

    /// The shortest time between two reactions to marks or delay.
    fn interval(&self, srtt: Duration) -> Duration {
        srtt.min(self.config.virtual_rtt)
    }

    /// What there is to react to.
    fn congestion(&self, now: Time, srtt: Duration) -> Option<Congestion> {
        let passed = |time: Duration| self.reacted_at.is_none_or(|at| now.since(at) >= time);
        let ce_interval = if self.config.ecn == Ecn::L4s { self.interval(srtt) } else { srtt };
        if self.losses.is_congestion(self.queueing.average_s() > self.queueing.target_s() / 4.0) {
            Some(Congestion::Loss)
        } else if self.marks.is_pending() && passed(ce_interval) {
            Some(Congestion::Ce)
        } else if self.queueing.average_s() > self.queueing.target_s() / 2.0 && passed(self.interval(srtt)) {
            Some(Congestion::Delay)
        } else {
            None
        }
    }

    /// scream-01 4.2.2.1
    fn react(&mut self, congestion: Congestion, distance: f64, now: Time, srtt: Duration) {
        if self.may_inflect {
            self.inflection_bytes = self.window_bytes;
            self.may_inflect = false;
        }
        let virtual_rtt = self.config.virtual_rtt;
        let is_below_acked = self.rate_bps < UNDERSHOOT.0 * self.losses.acked_bps();
        let undershoot = if self.config.limit_undershoot && is_below_acked { UNDERSHOOT.1 } else { 1.0 };
        // Such reactions come more than once per round trip where it is long.
        let share = undershoot / (srtt.as_secs_f64() / virtual_rtt.as_secs_f64()).max(1.0);
        let left = match congestion {
            Congestion::Loss => self.config.beta_loss,
            Congestion::Ce if self.config.ecn == Ecn::L4s => {
                let is_short = self.queueing.newest_s() < self.queueing.target_s() / 4.0;
                let near =
                    if is_short { distance.max(0.25) * self.queueing.steadiness().max(0.25) } else { 1.0 };
                let long = srtt.max(virtual_rtt) * LONG_RTTS;
                if self.reacted_at.is_some_and(|at| now.since(at) > long) {
                    self.window_bytes = self.window_bytes.min(self.inflight.1);
                }
                1.0 - self.marks.alpha() / 2.0 * share * near
            }
            Congestion::Ce => self.config.beta_ecn,
            Congestion::Delay => 1.0 - self.queueing.virtual_alpha() / 2.0 * share,
        };
        self.window_bytes = (left * self.window_bytes).max(self.min_window());
        self.reacted_at = Some(now);
        self.marks.clear();
        self.losses.clear();
    }

    /// scream-01 4.2.2.2
    fn grow(&mut self, unmarked_bytes: f64, distance: f64, now: Time, srtt: Duration) {
        let long = srtt.max(self.config.virtual_rtt).as_secs_f64() * CAUTIOUS_RTTS;
        let calm = self.congested_at.map_or(1.0, |at| (now.since(at).as_secs_f64() / long).min(1.0));
        let multiple = self.config.multiplicative * self.window_bytes / self.mss.as_f64();
        let growth = unmarked_bytes
            * self.window_ratio()
            * (srtt.as_secs_f64() / self.config.virtual_rtt.as_secs_f64()).min(1.0)
            * distance.max(0.25)
            * self.queueing.steadiness().max(0.1)
            * (1.0 + multiple * calm * distance);
        let most = self.mss.as_f64() + INFLIGHT_HEADROOM * self.inflight.0.max(self.inflight.1);
        let grown = self.window_bytes + growth;
        if growth > 0.0 && grown <= most && self.rate_bps < self.config.max_rate.as_bps_f64() {
            self.window_bytes = grown;
            self.may_inflect = true;
        }
    }

    /// scream-01 4.4
    fn set_rate(&mut self, srtt: Duration) {
        let (min, max) = (self.config.min_rate.as_bps_f64(), self.config.max_rate.as_bps_f64());
        let mss = self.mss.as_f64();
        let small = 1.0 - (self.window_ratio() - 0.1).clamp(0.0, 0.2);
        let share = small * mss / (mss + PACKET_OVERHEAD_BYTES) / MARGIN;
        self.rate_bps = (share * 8.0 * self.window_bytes / srtt.as_secs_f64()).clamp(min, max);
        if self.rate_bps >= NEAR_MAX * max {
            // D11
            let needed = PACING_HEADROOM * max / 8.0 * srtt.as_secs_f64();
            let most = needed.max(self.inflight.0).max(self.inflight.1).max(self.min_window());
            self.window_bytes = self.window_bytes.min(most);
        }
    }
}

impl Controller for Scream {
    fn decides_on_send(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() {
            self.srtt = Some(event.rtt.smoothed);
        }
        let Some(srtt) = self.srtt else { return };
        if event.round_start {
            self.inflight = (0.0, self.inflight.0);
        }
        self.inflight.0 = self.inflight.0.max(event.inflight_before.as_f64());
        let interval = self.interval(srtt);
        self.queueing.on_ack(event, interval, self.losses.round_share());
        self.marks.on_ack(event, srtt);
        self.losses.on_ack(event, srtt, self.window_ratio());
        if self.marks.has_new() || self.losses.has_new() {
            self.congested_at = Some(event.now);
        }
        let distance = self.distance();
        if let Some(congestion) = self.congestion(event.now, srtt) {
            self.react(congestion, distance, event.now, srtt);
        } else if self.config.ecn != Ecn::L4s {
            // D2: what was marked before the last reaction could show is no reason for the next.
            self.marks.clear();
        }
        let covered = event.newly_acked.as_f64() + event.newly_lost.as_f64();
        self.grow((covered - event.marks.ce.bytes.as_f64()).max(0.0), distance, event.now, srtt);
        self.set_rate(srtt);
    }

    /// Losses are taken from the ACKs.
    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        let srtt = self.srtt.unwrap_or(Duration::ZERO);
        let is_due = self.reacted_at.is_none_or(|at| event.now.since(at) >= srtt);
        if event.kind != Timeout::Pto && is_due {
            self.congested_at = Some(event.now);
            self.losses.react_at(event.now);
            self.react(Congestion::Loss, 1.0, event.now, srtt);
            if self.srtt.is_some() {
                self.set_rate(srtt);
            }
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.window_bytes = self.window_bytes.max(self.min_window());
    }

    fn cwnd(&self) -> Bytes {
        let overhead = OVERHEAD.0 + (OVERHEAD.1 - OVERHEAD.0) * self.queueing.steadiness();
        Bytes((overhead * self.window_bytes) as u64)
    }

    /// scream-01 4.3.2
    fn pacing_rate(&self) -> Option<Rate> {
        if self.srtt.is_none() {
            return Some(Rate::from_bps_f64(FIRST_PACING_BPS));
        }
        let nominal = self.rate_bps / self.config.max_rate.as_bps_f64();
        let nearness = (nominal - RELAXED.0) / (1.0 - RELAXED.0);
        let share = (1.0 - nearness).clamp(1.0 / RELAXED.1, 1.0);
        Some(Rate::from_bps_f64(PACING_HEADROOM * self.rate_bps.max(MIN_PACING_BPS) / share))
    }

    fn media_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.rate_bps))
    }

    fn send_quantum(&self) -> Option<Bytes> {
        Some(self.mss)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn encoding(&self) -> Encoding {
        match self.config.ecn {
            Ecn::None => Encoding::None,
            Ecn::Classic => Encoding::Classic,
            Ecn::L4s => Encoding::L4s,
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("target_mbps", self.rate_bps / 1e6);
        visit("reference_window_bytes", self.window_bytes);
        visit("queueing_ms", 1e3 * self.queueing.average_s());
        visit("queueing_target_ms", 1e3 * self.queueing.target_s());
        visit("alpha", self.marks.alpha());
    }
}

#[cfg(test)]
mod tests;
