//! NADA (RFC 8698): a rate that settles where queueing delay, losses and marks together are as large as the
//! rate deserves.
//!
//! ```text
//! d_queue  = d_fwd - d_base, the smallest of the last `delay_filter`          rfc8698 4.2, 5.1.1
//! d_tilde  = d_queue, or after a recent loss
//!            QTH exp(-LAMBDA (d_queue - QTH) / QTH) if d_queue >= QTH          rfc8698 eq.1
//! x_curr   = d_tilde + DMARK (p_mark/PMRREF)^2 + DLOSS (p_loss/PLRREF)^2       rfc8698 eq.2
//!            and no more than XMAX                                             D8
//! p        = ALPHA p_inst + (1 - ALPHA) p, p_inst: share within LOGWIN         rfc8698 5.1.2
//! recent   : at most MULTILOSS loss_int packets ago, loss_int by rfc5348 5.4   rfc8698 4.2
//! ramp-up, while nothing was lost and d_queue < QEPS within LOGWIN:
//!   gamma  = min(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT))                    rfc8698 eq.3
//!   r_ref  = max(r_ref, (1 + gamma) r_recv)                                    rfc8698 eq.4
//! else:
//!   x_offset = x_curr - PRIO XREF RMAX / r_ref                                 rfc8698 eq.5
//!   x_diff   = x_curr - x_prev                                                 rfc8698 eq.6
//!   r_ref    = r_ref (1 - KAPPA delta/TAU x_offset/TAU - KAPPA ETA x_diff/TAU) rfc8698 eq.7
//! r_ref    within RMIN and RMAX
//! window   = r_ref (rtt_min + TAU)                                             D3
//! pacing   = r_ref
//! ```
//!
//! It stands where x_offset is zero: one flow over a link of rate C queues for PRIO XREF RMAX / C.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | PRIO | `priority` | 1 | 1 | rfc8698 table 2 |
//! | RMIN, RMAX | `min_rate`, `max_rate` | rate | 150 kbit/s, 1.5 Mbit/s | rfc8698 table 2 |
//! | XREF | `reference` | time | 10 ms | rfc8698 table 2 |
//! | KAPPA, ETA | `kappa`, `eta` | 1 | 0.5, 2 | rfc8698 table 2 |
//! | TAU | `tau` | time | 500 ms | rfc8698 table 2 |
//! | DELTA | `feedback_interval` | time | 100 ms | rfc8698 table 2 |
//! | LOGWIN, QEPS | `observation`, `queueing_threshold` | time | 500 ms, 10 ms | rfc8698 table 2 |
//! | DFILT, QBOUND | `filter_delay`, `queueing_bound` | time | 120 ms, 50 ms | rfc8698 table 2 |
//! | GAMMA_MAX | `gamma_max` | 1 | 0.5 | rfc8698 table 2 |
//! | MULTILOSS | `loss_multiple` | 1 | 7 | rfc8698 table 2 |
//! | QTH, LAMBDA | `warp_threshold`, `lambda` | time, 1 | 50 ms, 0.5 | rfc8698 table 2 |
//! | PLRREF, DLOSS | `loss_reference`, `loss_penalty` | share, time | 1 %, 10 ms | rfc8698 table 2 |
//! | PMRREF, DMARK | `mark_reference`, `mark_penalty` | share, time | 1 %, 2 ms | rfc8698 table 2 |
//! | XMAX | `congestion_max` | time | 500 ms | ns3-rmcat nada-controller.cc |
//! | ALPHA | `alpha` | 1 | 0.1 | rfc8698 table 2 |
//! | r_ref | `rate_bps` | bit/s | RMIN | rfc8698 4.3 |
//! | r_recv | `Seen::bytes` | bit/s | - | rfc8698 5.1.3 |
//!
//! # Deviations
//!
//! - D1. The receiver's half runs here too: receive times, losses and marks come back with QUIC's ACKs, and
//!   the rate is decided every `feedback_interval`. What arrived is counted when its ACK comes.
//! - D2. d_base is the smallest delay, kept within what round trips allow, as in `one_way_queueing`. The RFC
//!   lets it be forgotten from time to time, since clocks drift; `baseline=minimum` keeps it for good.
//! - D3. The RFC has no window, and leaves silence to RTP's circuit breakers. Here no more is in flight than
//!   r_ref sends in `tau` beyond the smallest round trip, and a timeout halves r_ref.
//! - D4. There is no buffer for rate shaping (FPS, BETA_V and BETA_S, rfc8698 5.2.2): what waits is the
//!   application's, and the model of a call lowers its encoder's rate by it.
//! - D5. All rates are of payload; packet headers come on top.
//! - D6. The mean interval between losses leaves out the open one, which rfc5348 counts where it is long.
//!   With it no loss would ever be older than seven mean intervals.
//! - D7. Equation 7 may take no more than the whole rate away, so that r_ref stays positive before it is
//!   clipped.
//! - D8. Congestion is at most `congestion_max`, as in the authors' ns3-rmcat. The RFC has no such bound.
//!   Without it 35 % of losses count as 12 s. When these pass, equation 7 takes their fall for room, and the
//!   rate jumps between RMIN and RMAX.

use alloc::collections::VecDeque;
use alloc::format;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_estimates::one_way_queueing::{Baseline, OneWayQueueing};

mod loss_interval;

use loss_interval::LossInterval;

/// The range of a rate.
const RATES: core::ops::RangeInclusive<Rate> = Rate::from_bps(1_000)..=Rate::from_mbps(10_000);
/// The range of a time that is not zero.
const TIMES: core::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

parameters! {
    /// NADA's settings.
    pub struct Config {
        check consistent;
        /// Weight of the flow: its share beside others.
        priority: f64 = 1.0, in 0.01..=100.0, from "rfc8698 table 2, PRIO";
        /// The lowest rate, which is also the first.
        min_rate: Rate = Rate::from_bps(150_000), in RATES, from "rfc8698 table 2, RMIN";
        /// The highest rate.
        max_rate: Rate = Rate::from_bps(1_500_000), in RATES, from "rfc8698 table 2, RMAX";
        /// Congestion that a flow at its highest rate accepts.
        reference: Duration = Duration::from_millis(10), in TIMES, from "rfc8698 table 2, XREF";
        /// Gain of the gradual update.
        kappa: f64 = 0.5, in 0.001..=10.0, from "rfc8698 table 2, KAPPA";
        /// Weight of a change of congestion beside its size.
        eta: f64 = 2.0, in 0.0..=10.0, from "rfc8698 table 2, ETA";
        /// Upper bound of the RTT for which the gradual update is stable.
        tau: Duration = Duration::from_millis(500), in TIMES, from "rfc8698 table 2, TAU";
        /// How often the rate is decided.
        feedback_interval: Duration = Duration::from_millis(100), in TIMES, from "rfc8698 table 2, DELTA";
        /// For how long packets are observed.
        observation: Duration = Duration::from_millis(500), in TIMES, from "rfc8698 table 2, LOGWIN";
        /// Queueing delay that ends the ramp-up.
        queueing_threshold: Duration = Duration::from_millis(10), in TIMES, from "rfc8698 table 2, QEPS";
        /// Delay of filters, which the ramp-up allows for.
        filter_delay: Duration = Duration::from_millis(120), in TIMES, from "rfc8698 table 2, DFILT";
        /// Largest share by which a step of the ramp-up exceeds what arrives.
        gamma_max: f64 = 0.5, in 0.0..=10.0, from "rfc8698 table 2, GAMMA_MAX";
        /// Queueing delay that the ramp-up may cause.
        queueing_bound: Duration = Duration::from_millis(50), in TIMES, from "rfc8698 table 2, QBOUND";
        /// For how many mean intervals between losses a loss counts as recent.
        loss_multiple: f64 = 7.0, in 0.0..=1000.0, from "rfc8698 table 2, MULTILOSS";
        /// Queueing delay above which delay counts less while packets are lost.
        warp_threshold: Duration = Duration::from_millis(50), in TIMES, from "rfc8698 table 2, QTH";
        /// How fast it counts less.
        lambda: f64 = 0.5, in 0.0..=10.0, from "rfc8698 table 2, LAMBDA";
        /// Share of lost packets that costs `loss_penalty`.
        loss_reference: f64 = 0.01, in 0.0001..=1.0, from "rfc8698 table 2, PLRREF";
        /// Delay that such losses stand for.
        loss_penalty: Duration = Duration::from_millis(10), in TIMES, from "rfc8698 table 2, DLOSS";
        /// Share of marked packets that costs `mark_penalty`.
        mark_reference: f64 = 0.01, in 0.0001..=1.0, from "rfc8698 table 2, PMRREF";
        /// Delay that such marks stand for.
        mark_penalty: Duration = Duration::from_millis(2), in TIMES, from "rfc8698 table 2, DMARK";
        /// Congestion counts as no more than this.
        congestion_max: Duration = Duration::from_millis(500), in TIMES, from "ns3-rmcat nada-controller.cc, NADA_PARAM_XMAX; not in rfc8698 (D8)";
        /// Weight of the newest share of losses and marks.
        alpha: f64 = 0.1, in 0.001..=1.0, from "rfc8698 table 2, ALPHA";
        /// Packets whose smallest queueing delay counts.
        delay_filter: u32 = 15, in 1..=1000, from "rfc8698 5.1.1";
        /// What the one-way delay is compared with.
        baseline: Baseline = Baseline::Bounded, in .., from "not in rfc8698 (D2): minimum";
        /// Whether packets are ECN-capable, so that routers mark them.
        ecn: bool = false, in .., from "rfc8698 4.2: true";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    let (min, max) = (config.min_rate, config.max_rate);
    if min <= max {
        return Ok(());
    }
    Err(ParameterError::Conflict { reason: format!("min_rate = {min} is above max_rate = {max}") })
}

/// What one ACK said.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Time,
    bytes: u64,
    arrived: u64,
    lost: u64,
    marked: u64,
    /// The largest queueing delay.
    queueing: Duration,
}

/// NADA's reference rate.
#[derive(Clone, Debug)]
pub struct Nada {
    config: Config,
    mss: Bytes,
    initial_window: Bytes,
    delay: OneWayQueueing,
    /// Queueing delays of the last packets.
    delays: VecDeque<Duration>,
    /// What ACKs said within the observation time.
    seen: VecDeque<Seen>,
    intervals: LossInterval,
    p_loss: f64,
    p_mark: f64,
    x_prev_ms: f64,
    rate_bps: f64,
    is_ramping: bool,
    srtt: Option<Duration>,
    rtt_min: Duration,
    decided_at: Option<Time>,
}

impl Nada {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Nada {
            mss: connection.mss,
            initial_window: connection.initial_window,
            delay: OneWayQueueing::new(config.baseline, None),
            delays: VecDeque::new(),
            seen: VecDeque::new(),
            intervals: LossInterval::default(),
            p_loss: 0.0,
            p_mark: 0.0,
            x_prev_ms: 0.0,
            rate_bps: config.min_rate.as_bps_f64(),
            is_ramping: true,
            srtt: None,
            rtt_min: Duration::ZERO,
            decided_at: None,
            config,
        }
    }

    /// Takes in what an ACK says.
    fn observe(&mut self, event: &AckEvent<'_>) {
        let most = self.config.delay_filter as usize;
        let mut queueing = Duration::ZERO;
        let delays = &mut self.delays;
        self.delay.on_ack(event, |_, delay| {
            queueing = queueing.max(delay);
            delays.push_back(delay);
            if delays.len() > most {
                delays.pop_front();
            }
        });
        let rtt = self.srtt.unwrap_or(Duration::ZERO);
        for packet in event.lost {
            self.intervals.on_loss(packet.number, packet.sent_at, rtt);
        }
        if let Some(newest) = event.newest {
            self.intervals.on_arrival(newest);
        }
        self.seen.push_back(Seen {
            at: event.now,
            bytes: event.newly_acked.0,
            arrived: event.acked.len() as u64,
            lost: event.lost.len() as u64,
            marked: event.marks.ce.packets,
            queueing,
        });
        while self.seen.front().is_some_and(|seen| event.now.since(seen.at) >= self.config.observation) {
            self.seen.pop_front();
        }
    }

    /// rfc8698 eq.1 and eq.2, in ms
    fn congestion_ms(&self) -> f64 {
        let queueing = self.delays.iter().min().copied().unwrap_or(Duration::ZERO).as_millis_f64();
        let threshold = self.config.warp_threshold.as_millis_f64();
        let is_warped = queueing >= threshold && self.intervals.is_recent(self.config.loss_multiple);
        let delay = if is_warped {
            threshold * libm::exp(-self.config.lambda * (queueing - threshold) / threshold)
        } else {
            queueing
        };
        let (marks, losses) =
            (self.p_mark / self.config.mark_reference, self.p_loss / self.config.loss_reference);
        let congestion = delay
            + self.config.mark_penalty.as_millis_f64() * marks * marks
            + self.config.loss_penalty.as_millis_f64() * losses * losses;
        congestion.min(self.config.congestion_max.as_millis_f64())
    }

    /// Decides the rate, as a sender does when a report comes.
    fn decide(&mut self, elapsed: Duration) {
        let sum = |of: fn(&Seen) -> u64| self.seen.iter().map(of).sum::<u64>() as f64;
        let (arrived, lost, marked) =
            (sum(|seen| seen.arrived), sum(|seen| seen.lost), sum(|seen| seen.marked));
        let received_bps = 8.0 * sum(|seen| seen.bytes) / self.config.observation.as_secs_f64();
        let queues = self.seen.iter().any(|seen| seen.queueing >= self.config.queueing_threshold);
        // rfc8698 5.1.2
        let smooth = |before: f64, count: f64, of: f64| {
            let share = if of > 0.0 { count / of } else { 0.0 };
            self.config.alpha * share + (1.0 - self.config.alpha) * before
        };
        self.p_loss = smooth(self.p_loss, lost, arrived + lost);
        self.p_mark = smooth(self.p_mark, marked, arrived);
        let x_curr = self.congestion_ms();
        self.is_ramping = lost == 0.0 && !queues;
        if self.is_ramping {
            self.ramp_up(received_bps);
        } else {
            self.update_gradually(x_curr, elapsed);
        }
        self.x_prev_ms = x_curr;
        let (min, max) = (self.config.min_rate.as_bps_f64(), self.config.max_rate.as_bps_f64());
        self.rate_bps = self.rate_bps.clamp(min, max);
    }

    /// rfc8698 eq.3 and eq.4
    fn ramp_up(&mut self, received_bps: f64) {
        let rtt = self.srtt.unwrap_or(Duration::ZERO);
        let reaction = rtt + self.config.feedback_interval + self.config.filter_delay;
        let gamma = self.config.queueing_bound.as_secs_f64() / reaction.as_secs_f64();
        self.rate_bps = self.rate_bps.max((1.0 + gamma.min(self.config.gamma_max)) * received_bps);
    }

    /// rfc8698 eq.5 to eq.7
    fn update_gradually(&mut self, x_curr_ms: f64, elapsed: Duration) {
        let (config, tau_ms) = (&self.config, self.config.tau.as_millis_f64());
        let target_ms =
            config.priority * config.reference.as_millis_f64() * config.max_rate.as_bps_f64() / self.rate_bps;
        let offset = elapsed.as_millis_f64() / tau_ms * (x_curr_ms - target_ms) / tau_ms;
        let change = config.eta * (x_curr_ms - self.x_prev_ms) / tau_ms;
        self.rate_bps *= (1.0 - config.kappa * (offset + change)).max(0.0);
    }
}

impl Controller for Nada {
    fn decides_on_send(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() {
            self.srtt = Some(event.rtt.smoothed);
            self.rtt_min = event.rtt.min;
        }
        self.observe(event);
        let elapsed = self.decided_at.map(|at| event.now.since(at));
        if elapsed.is_none_or(|elapsed| elapsed >= self.config.feedback_interval) {
            self.decided_at = Some(event.now);
            // What was not heard for longer is no reason for a longer step than equation 7 is stable for.
            self.decide(elapsed.unwrap_or(self.config.feedback_interval).min(self.config.tau));
        }
    }

    /// Single losses are counted as they come.
    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.kind != Timeout::Pto {
            self.rate_bps = (self.rate_bps / 2.0).max(self.config.min_rate.as_bps_f64());
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
    }

    fn cwnd(&self) -> Bytes {
        if self.srtt.is_none() {
            return self.initial_window.max(self.mss);
        }
        let seconds = (self.rtt_min + self.config.tau).as_secs_f64();
        Bytes((self.rate_bps / 8.0 * seconds) as u64).max(self.mss + self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.rate_bps).max(Rate::from_bps(1)))
    }

    fn send_quantum(&self) -> Option<Bytes> {
        Some(self.mss)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn encoding(&self) -> Encoding {
        if self.config.ecn { Encoding::Classic } else { Encoding::None }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("reference_mbps", self.rate_bps / 1e6);
        visit("congestion_ms", self.x_prev_ms);
        visit("loss_percent", 100.0 * self.p_loss);
        visit("ramp_up", f64::from(u8::from(self.is_ramping)));
    }
}

#[cfg(test)]
mod tests;
