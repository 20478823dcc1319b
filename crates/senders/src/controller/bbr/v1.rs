//! BBR version 1 (Cardwell et al., ACM Queue 14(5), 2016), as Linux 6.12 `tcp_bbr.c` runs it.
//!
//! ```text
//! bandwidth = max over 10 rounds of the delivery rate          min_rtt = min over 10 s of the RTT
//! pacing rate = pacing_gain * bandwidth * 0.99
//! cwnd target = cwnd_gain * bandwidth * min_rtt + extra_acked + 3 quanta, rounded up to an even number of
//!   packets
//!
//! state      pacing_gain                     cwnd_gain   until
//! Startup    2.885 = 2/ln 2                  2.885       three rounds without 25 % more bandwidth
//! Drain      1/2.885                         2.885       in flight <= bandwidth * min_rtt + 3 quanta
//! ProbeBW    5/4, 3/4, then six phases of 1  2           (a phase lasts min_rtt; see `phase_is_over`)
//! ProbeRTT   1                               4 packets   200 ms and a round at 4 packets in flight
//! ProbeRTT begins when min_rtt is 10 s old and no sample since then was smaller.
//!
//! policed: two lossy intervals that agree on a rate fix the bandwidth for 48 rounds, without cycling
//!          (`policer.rs`)
//! recovery: in its first round cwnd = in flight + acked; when it ends, cwnd = what it was before
//! timeout:  cwnd = 1 packet
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | high_gain | `high_gain` | 1 | 2.885 | Linux 6.12 tcp_bbr.c, `bbr_high_gain` |
//! | cwnd_gain | `cwnd_gain` | 1 | 2 | Linux 6.12 tcp_bbr.c, `bbr_cwnd_gain` |
//! | window of min_rtt | `min_rtt_window` | time | 10 s | Linux 6.12 tcp_bbr.c, `bbr_min_rtt_win_sec` |
//! | time in ProbeRTT | `probe_rtt_time` | time | 200 ms | Linux 6.12 tcp_bbr.c, `bbr_probe_rtt_mode_ms` |
//! | window of bandwidth | `bandwidth_rounds` | rounds | 10 | Linux 6.12 tcp_bbr.c, `bbr_bw_rtts` |
//! | long-term bandwidth | `policer` | on or off | on | Linux 6.12 tcp_bbr.c, `bbr_lt_bw_sampling` |
//! | aggregation | `aggregation` | on or off | on | Linux 6.12 tcp_bbr.c, `bbr_extra_acked_gain` |
//!
//! Deviations: D1 gains are real numbers; the kernel rounds them to 1/256 (2.8867 and 0.3438). D2 the window
//! counts bytes; only the cwnd target is rounded to packets. D3 the kernel corrects what is in flight for
//! packets that are scheduled but have not departed, to within one quantum; the host here hands packets over
//! when they leave. D4 packets are paced one by one where the kernel paces quanta of two and more. D5 time
//! runs in nanoseconds where the kernel's min_rtt age counts jiffies. D6 without a handshake that is
//! measured, the first window is paced as if the RTT were 1 ms, as the kernel does when it has no sample.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, Recovery, RecoveryState, SendDirective,
    SendEvent, SpuriousEvent, Stage, Timeout, TimeoutEvent,
};
use brakelight_core::random::Random;
use brakelight_core::sender::RateSample;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_estimates::windowed_max::WindowedMax;

use super::model::{Aggregation, Pacing, Spoiled, bdp, send_quantum};
use super::policer::{FlowState, Policer};
use super::round::Rounds;

parameters! {
    /// Settings of BBR version 1.
    pub struct Config {
        /// Pacing and window gain of Startup; Drain paces at its inverse.
        high_gain: f64 = 2.885, in 1.1..=10.0, from "Linux 6.12 tcp_bbr.c, bbr_high_gain";
        /// Window gain of ProbeBW.
        cwnd_gain: f64 = 2.0, in 1.0..=10.0, from "Linux 6.12 tcp_bbr.c, bbr_cwnd_gain";
        /// How old the smallest RTT may become before ProbeRTT looks for it again.
        min_rtt_window: Duration = Duration::from_secs(10), in Duration::from_millis(100)..=Duration::from_secs(1000),
            from "Linux 6.12 tcp_bbr.c, bbr_min_rtt_win_sec";
        /// How long ProbeRTT keeps four packets in flight.
        probe_rtt_time: Duration = Duration::from_millis(200), in Duration::from_millis(1)..=Duration::from_secs(10),
            from "Linux 6.12 tcp_bbr.c, bbr_probe_rtt_mode_ms";
        /// Rounds over which the bandwidth is the maximum.
        bandwidth_rounds: u32 = 10, in 1..=1000, from "Linux 6.12 tcp_bbr.c, bbr_bw_rtts";
        /// Whether to look for token-bucket policers.
        policer: bool = true, in .., from "Linux 6.12 tcp_bbr.c, bbr_lt_bw_sampling";
        /// Whether to widen the window by the aggregation seen in ACKs.
        aggregation: bool = true, in .., from "Linux 6.12 tcp_bbr.c, bbr_extra_acked_gain";
    }
}

/// Pacing gains of ProbeBW's phases (Linux 6.12 tcp_bbr.c, `bbr_pacing_gain`).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Growth that shows that the pipe was not full (Linux 6.12 tcp_bbr.c, `bbr_full_bw_thresh`).
const FULL_GROWTH: f64 = 1.25;
/// Rounds without growth that show that it is (Linux 6.12 tcp_bbr.c, `bbr_full_bw_cnt`).
const FULL_ROUNDS: u32 = 3;
/// Packets in flight in ProbeRTT, and the smallest window otherwise (Linux 6.12 tcp_bbr.c,
/// `bbr_cwnd_min_target`).
const MIN_PACKETS: u64 = 4;
/// Packets delivered before the window target is trusted (Linux 6.12 tcp.h, `TCP_INIT_CWND`).
const TRUSTED_PACKETS: u64 = 10;
/// Rounds for which aggregation is remembered, to twice as many (Linux 6.12 tcp_bbr.c,
/// `bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    ProbeBw {
        phase: usize,
        since: Time,
    },
    ProbeRtt {
        /// When it may end; none until four packets are in flight.
        done: Option<Time>,
        round_done: bool,
    },
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: Config,
    mss: Bytes,
    initial_window: Bytes,
    random: Random,
    state: State,
    cwnd: Bytes,
    /// The window before recovery or ProbeRTT cut it.
    prior_cwnd: Bytes,
    pacing: Pacing,
    rounds: Rounds,
    bandwidth: WindowedMax,
    min_rtt: Duration,
    min_rtt_at: Time,
    full_bandwidth: Rate,
    full_rounds: u32,
    full: bool,
    aggregation: Aggregation,
    policer: Policer,
    spoiled: Spoiled,
    idle_restart: bool,
    /// Where the host stood after the last ACK, or timeout.
    repair: RecoveryState,
    /// Whether recovery is in its first round.
    conserving: bool,
    /// What the last ACK left in flight, for actions between ACKs.
    delivered: Bytes,
    total_lost: Bytes,
}

impl Bbr {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let pacing = Pacing::new(connection.initial_window, config.high_gain);
        Bbr {
            mss: connection.mss,
            initial_window: connection.initial_window,
            random: connection.random.clone(),
            state: State::Startup,
            cwnd: connection.initial_window,
            prior_cwnd: Bytes::ZERO,
            pacing,
            rounds: Rounds::default(),
            bandwidth: WindowedMax::default(),
            min_rtt: Duration::MAX,
            min_rtt_at: connection.now,
            full_bandwidth: Rate::ZERO,
            full_rounds: 0,
            full: false,
            aggregation: Aggregation::new(connection.now),
            policer: Policer::default(),
            spoiled: Spoiled::default(),
            idle_restart: false,
            repair: RecoveryState::Open,
            conserving: false,
            delivered: Bytes::ZERO,
            total_lost: Bytes::ZERO,
            config,
        }
    }

    fn max_bandwidth(&self) -> Rate {
        Rate::from_bps(self.bandwidth.get())
    }

    /// The estimate that drives the pacing rate and the window.
    fn estimate(&self) -> Rate {
        if self.policer.active { self.policer.rate } else { self.max_bandwidth() }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.high_gain,
            State::Drain => 1.0 / self.config.high_gain,
            State::ProbeBw { phase, .. } if !self.policer.active => CYCLE[phase],
            State::ProbeBw { .. } | State::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.config.high_gain,
            State::ProbeBw { .. } => self.config.cwnd_gain,
            State::ProbeRtt { .. } => 1.0,
        }
    }

    fn packets(&self, count: u64) -> Bytes {
        Bytes(count * self.mss.0)
    }

    fn bdp(&self, bandwidth: Rate, gain: f64) -> Bytes {
        bdp(bandwidth, self.min_rtt, gain, self.mss, self.initial_window)
    }

    /// Room for the quanta that the hosts hold (Linux 6.12 tcp_bbr.c, `bbr_quantization_budget`).
    fn quantized(&self, window: Bytes) -> Bytes {
        let padded = window.0 + 3 * send_quantum(self.pacing.rate, self.mss).0;
        let even = padded.div_ceil(2 * self.mss.0) * 2 * self.mss.0;
        let probing = matches!(self.state, State::ProbeBw { phase: 0, .. });
        Bytes(even) + self.packets(if probing { 2 } else { 0 })
    }

    fn inflight_target(&self, gain: f64) -> Bytes {
        self.quantized(self.bdp(self.max_bandwidth(), gain))
    }

    /// Remembers the window before something cuts it (Linux 6.12 tcp_bbr.c, `bbr_save_cwnd`).
    fn save_cwnd(&mut self) {
        let probing_rtt = matches!(self.state, State::ProbeRtt { .. });
        self.prior_cwnd = if self.repair == RecoveryState::Open && !probing_rtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    fn enter_probe_bw(&mut self, now: Time) {
        // Linux 6.12 tcp_bbr.c, bbr_reset_probe_bw_mode: any phase but the draining one, 3/4.
        let skipped = (self.random.uniform() * 7.0) as usize;
        let phase = (8 - skipped) % 8;
        self.state = State::ProbeBw { phase, since: now };
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        let State::ProbeRtt { done: Some(done), .. } = self.state else { return };
        if now <= done {
            return;
        }
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
        }
    }

    /// Linux 6.12 tcp_bbr.c, `bbr_cwnd_event`: the first packet after the pipe ran empty for want of data.
    fn on_restart(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.state {
            State::ProbeBw { .. } => self.pacing.follow(self.estimate(), 1.0, self.full),
            State::ProbeRtt { .. } => self.leave_probe_rtt(now),
            State::Startup | State::Drain => {}
        }
    }

    fn update_bandwidth(&mut self, event: &AckEvent<'_>, sample: &RateSample) {
        let Some(rate) = sample.rate else { return };
        self.rounds.on_ack(sample.prior_delivered, event.delivered);
        if self.rounds.start {
            self.conserving = false;
        }
        if self.config.policer {
            let probing = matches!(self.state, State::ProbeBw { .. });
            let losses = event.newly_lost > Bytes::ZERO;
            let given_up =
                self.policer.on_ack(event.into(), losses, sample.app_limited, self.rounds.start, probing);
            if given_up {
                self.enter_probe_bw(event.now);
            }
        }
        if !sample.app_limited || rate >= self.max_bandwidth() {
            self.bandwidth.update(u64::from(self.config.bandwidth_rounds), self.rounds.count, rate.bps());
        }
    }

    /// Linux 6.12 tcp_bbr.c, `bbr_is_next_cycle_phase`.
    fn phase_is_over(&self, event: &AckEvent<'_>, since: Time) -> bool {
        let full_length = event.now.since(since) > self.min_rtt;
        let gain = self.pacing_gain();
        if gain == 1.0 {
            full_length
        } else if gain > 1.0 {
            // Probing persists until it filled the pipe, unless that loses packets.
            let filled = event.inflight_before >= self.inflight_target(gain);
            full_length && (event.newly_lost > Bytes::ZERO || filled)
        } else {
            // Draining is over when the queue is gone.
            full_length || event.inflight_before <= self.inflight_target(1.0)
        }
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.full || !self.rounds.start || sample.app_limited {
            return;
        }
        let bandwidth = self.max_bandwidth();
        if bandwidth >= self.full_bandwidth.mul_f64(FULL_GROWTH) {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn update_min_rtt(&mut self, event: &AckEvent<'_>, sample: Option<&RateSample>) {
        let expired = event.now > self.min_rtt_at.saturating_add(self.config.min_rtt_window);
        if let Some(rtt) = event.rtt.sample {
            // A lone packet's ACK was probably delayed: not a sample to replace an old one by.
            let delayed = matches!(event.acked, [only] if only.size < self.mss);
            // linux 5.11 tcp_bbr.c bbr_update_min_rtt: an equal sample does not renew it, or a flow that
            // holds a queue of whole packets could put off ProbeRTT for ever.
            if rtt < self.min_rtt || (expired && !delayed) {
                self.min_rtt = rtt;
                self.min_rtt_at = event.now;
            }
        }
        if expired && !self.idle_restart && !matches!(self.state, State::ProbeRtt { .. }) {
            self.save_cwnd();
            self.state = State::ProbeRtt { done: None, round_done: false };
        }
        if let State::ProbeRtt { done, round_done } = &mut self.state {
            self.spoiled.mark(event.now, event.delivered, event.inflight);
            if done.is_none() {
                if event.inflight <= Bytes(MIN_PACKETS * self.mss.0) {
                    *done = Some(event.now + self.config.probe_rtt_time);
                    *round_done = false;
                    self.rounds.restart(event.delivered);
                }
            } else {
                *round_done |= self.rounds.start;
                if *round_done {
                    self.leave_probe_rtt(event.now);
                }
            }
        }
        if sample.is_some_and(|sample| sample.delivered > Bytes::ZERO) {
            self.idle_restart = false;
        }
    }

    /// Linux 6.12 tcp_bbr.c, `bbr_set_cwnd_to_recover_or_restore`: the window in recovery, and whether it is
    /// final.
    fn recover_or_restore(&mut self, event: &AckEvent<'_>) -> (Bytes, bool) {
        let mut cwnd = self.cwnd.saturating_sub(event.newly_lost).max(self.mss);
        let before = core::mem::replace(&mut self.repair, event.recovery);
        match (before, event.recovery) {
            (RecoveryState::Open | RecoveryState::Loss, RecoveryState::Recovery) => {
                self.conserving = true;
                self.rounds.restart(event.delivered);
                cwnd = event.inflight + event.newly_acked;
            }
            (RecoveryState::Recovery | RecoveryState::Loss, RecoveryState::Open) => {
                cwnd = cwnd.max(self.prior_cwnd);
                self.conserving = false;
            }
            // Loss: slow start from what the timeout left.
            _ => {}
        }
        if self.conserving { (cwnd.max(event.inflight + event.newly_acked), true) } else { (cwnd, false) }
    }

    fn set_cwnd(&mut self, event: &AckEvent<'_>) {
        if event.newly_acked > Bytes::ZERO {
            let (mut cwnd, last) = self.recover_or_restore(event);
            if !last {
                let bandwidth = self.estimate();
                let extra = if self.config.aggregation && self.full {
                    self.aggregation.extra(bandwidth)
                } else {
                    Bytes::ZERO
                };
                let target = self.quantized(self.bdp(bandwidth, self.cwnd_gain()) + extra);
                if self.full {
                    cwnd = (cwnd + event.newly_acked).min(target);
                } else if cwnd < target || event.delivered < self.packets(TRUSTED_PACKETS) {
                    cwnd += event.newly_acked;
                }
                cwnd = cwnd.max(self.packets(MIN_PACKETS));
            }
            self.cwnd = cwnd;
        }
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.packets(MIN_PACKETS));
        }
    }
}

impl Controller for Bbr {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        if event.inflight == Bytes::ZERO && event.app_limited && self.delivered > Bytes::ZERO {
            self.on_restart(event.now);
        }
        SendDirective::default()
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.delivered = event.delivered;
        self.total_lost = event.total_lost;
        let sample = RateSample::of(event).map(|mut sample| {
            sample.app_limited |= self.spoiled.covers(event);
            sample
        });

        // Linux 6.12 tcp_bbr.c, bbr_update_model
        self.rounds.start = false;
        if let Some(sample) = &sample {
            self.update_bandwidth(event, sample);
            if self.config.aggregation && sample.rate.is_some() {
                let bandwidth = self.estimate();
                let start = self.rounds.start;
                self.aggregation.on_ack(event, start, AGGREGATION_ROUNDS, bandwidth, self.cwnd, self.mss);
            }
        }
        if let State::ProbeBw { phase, since } = self.state
            && self.phase_is_over(event, since)
        {
            self.state = State::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: event.now };
        }
        if let Some(sample) = &sample {
            self.check_full(sample);
        }
        if self.state == State::Startup && self.full {
            self.state = State::Drain;
        }
        if self.state == State::Drain && event.inflight <= self.inflight_target(1.0) {
            self.enter_probe_bw(event.now);
        }
        self.update_min_rtt(event, sample.as_ref());

        // Linux 6.12 tcp_bbr.c, bbr_main
        if event.rtt.sample.is_some() {
            self.pacing.on_rtt(self.cwnd, event.rtt.smoothed, self.config.high_gain);
        }
        self.pacing.follow(self.estimate(), self.pacing_gain(), self.full);
        self.set_cwnd(event);
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.save_cwnd();
    }

    fn on_ce(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.kind == Timeout::Pto {
            return;
        }
        if !event.repeated {
            self.save_cwnd();
        }
        self.cwnd = self.mss;
        // Linux 6.12 tcp_bbr.c, bbr_set_state
        self.repair = RecoveryState::Loss;
        self.full_bandwidth = Rate::ZERO;
        self.rounds.start = true;
        if self.config.policer {
            let probing = matches!(self.state, State::ProbeBw { .. });
            let state = FlowState { now: event.now, delivered: self.delivered, lost: self.total_lost };
            if self.policer.on_ack(state, true, false, true, probing) {
                self.enter_probe_bw(event.now);
            }
        }
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.full_bandwidth = Rate::ZERO;
        self.full_rounds = 0;
        self.policer.reset(FlowState { now: event.now, delivered: self.delivered, lost: self.total_lost });
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.on_restart(event.now);
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd = self.cwnd.min(most).max(self.mss);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss);
    }

    fn cwnd(&self) -> Bytes {
        // A window saved before the packet size grew may be below one packet of the new size.
        self.cwnd.max(self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing.rate)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("bandwidth_bps", self.estimate().as_bps_f64());
        visit("min_rtt_ms", if self.min_rtt == Duration::MAX { 0.0 } else { self.min_rtt.as_millis_f64() });
        visit("pacing_gain", self.pacing_gain());
        visit("policed", f64::from(u8::from(self.policer.active)));
        visit("probe_rtt", f64::from(u8::from(matches!(self.state, State::ProbeRtt { .. }))));
    }

    fn stage(&self) -> Option<Stage> {
        const NAMES: &[&str] = &["startup", "drain", "up", "down", "cruise", "probe_rtt"];
        let index = match self.state {
            State::Startup => 0,
            State::Drain => 1,
            // The phase with a gain above one, the one below, and those of one.
            State::ProbeBw { phase: 0, .. } => 2,
            State::ProbeBw { phase: 1, .. } => 3,
            State::ProbeBw { .. } => 4,
            State::ProbeRtt { .. } => 5,
        };
        Some(Stage { names: NAMES, index })
    }
}
