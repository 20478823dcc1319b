//! The machine of versions 2 and 3: its state, what each event does to it, and the window and pacing rate it
//! yields.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, Recovery, RecoveryState, SendDirective,
    SendEvent, SpuriousEvent, Stage, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::random::Random;
use brakelight_core::sender::RateSample;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::bounds::{LongTerm, ShortTerm, UNBOUNDED};
use super::ecn::Ecn;
use super::model::{Aggregation, Pacing, Spoiled, bdp, send_quantum};
use super::probe_bw::Probing;
use super::probe_rtt::MinRtt;
use super::round::Rounds;
use super::settings::{BbrSettings, Version};
use super::startup::FullPipe;

/// Smallest window (ccwg-bbr 4.6.4.3: MinPipeCwnd).
const MIN_PIPE_PACKETS: u64 = 4;
/// Rounds for which aggregation is remembered, to twice as many (Linux 6.12 tcp_bbr.c,
/// `bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u32 = 5;

/// Where in its life, and in its cycle, the flow is (ccwg-bbr 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Startup,
    Drain {
        /// The round in which it began.
        since: u64,
    },
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt {
        /// The window for this episode.
        cwnd: Bytes,
        /// When it may end; none until what is in flight fits the window.
        done: Option<Time>,
        round_done: bool,
    },
}

impl State {
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Whether losses are the price of probing rather than news (ccwg-bbr: IsProbingBW).
    pub(super) fn is_accelerating(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    fn stage(self) -> Stage {
        const NAMES: &[&str] = &["startup", "drain", "down", "cruise", "refill", "up", "probe_rtt"];
        let index = match self {
            State::Startup => 0,
            State::Drain { .. } => 1,
            State::Down => 2,
            State::Cruise => 3,
            State::Refill => 4,
            State::Up => 5,
            State::ProbeRtt { .. } => 6,
        };
        Stage { names: NAMES, index }
    }

    /// Whether the machine may go from here to `next`.
    fn leads_to(self, next: State) -> bool {
        use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
        match (self, next) {
            (ProbeRtt { .. }, ProbeRtt { .. }) => false,
            // Any state yields to ProbeRTT; a loss that was none leads back to Startup, or to a new probe.
            (_, ProbeRtt { .. } | Startup) => true,
            (Startup, Drain { .. }) => true,
            (Drain { .. } | Up | ProbeRtt { .. }, Down) => true,
            (Down, Cruise) => true,
            (Down | Cruise | Refill, Refill) => true,
            (Refill, Up) => true,
            _ => false,
        }
    }
}

/// BBR, versions 2 and 3.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) settings: BbrSettings,
    pub(super) mss: Bytes,
    initial_window: Bytes,
    pub(super) random: Random,
    pub(super) state: State,
    pub(super) cwnd: Bytes,
    /// The window before recovery or ProbeRTT cut it.
    pub(super) prior_cwnd: Bytes,
    pub(super) pacing: Pacing,
    pub(super) rounds: Rounds,
    /// Maximum delivery rate of the previous and of the current cycle (ccwg-bbr 4.5.3).
    pub(super) bandwidth: [Rate; 2],
    pub(super) min_rtt: MinRtt,
    pub(super) full: FullPipe,
    pub(super) probing: Probing,
    pub(super) short: ShortTerm,
    pub(super) long: LongTerm,
    pub(super) ecn: Ecn,
    pub(super) aggregation: Aggregation,
    /// Since when the window is what is in flight, in mvfst.
    pub(super) conservation: Option<Time>,
    pub(super) spoiled: Spoiled,
    pub(super) idle_restart: bool,
    recovery: RecoveryState,
    delivered: Bytes,
}

impl Machine {
    /// Returns a controller at the start of its connection.
    pub fn new(config: impl Into<BbrSettings>, connection: &Connection) -> Self {
        let settings = config.into();
        Machine {
            mss: connection.mss,
            initial_window: connection.initial_window,
            random: connection.random.clone(),
            state: State::Startup,
            cwnd: connection.initial_window,
            prior_cwnd: Bytes::ZERO,
            pacing: Pacing::new(connection.initial_window, settings.startup_pacing_gain),
            rounds: Rounds::default(),
            bandwidth: [Rate::ZERO; 2],
            min_rtt: MinRtt::new(connection.now),
            full: FullPipe::default(),
            probing: Probing::new(connection.now),
            short: ShortTerm::default(),
            long: LongTerm::default(),
            ecn: Ecn::default(),
            aggregation: Aggregation::new(connection.now),
            conservation: None,
            spoiled: Spoiled::default(),
            idle_restart: false,
            recovery: RecoveryState::Open,
            delivered: Bytes::ZERO,
            settings,
        }
    }

    pub(super) fn is_version(&self, version: Version) -> bool {
        self.settings.version == version
    }

    /// The only place where the state changes.
    pub(super) fn transition(&mut self, next: State) {
        debug_assert!(self.state.leads_to(next), "{:?} does not lead to {next:?}", self.state);
        self.state = next;
    }

    pub(super) fn max_bandwidth(&self) -> Rate {
        self.bandwidth[0].max(self.bandwidth[1])
    }

    /// ccwg-bbr 4.5.10.3: BoundBWForModel.
    pub(super) fn estimate(&self) -> Rate {
        // mvfst Bbr2.cpp, boundBwForModel
        if self.is_version(Version::Mvfst) && self.state == State::Startup {
            return self.max_bandwidth();
        }
        self.max_bandwidth().min(self.short.bandwidth).min(self.long.bandwidth)
    }

    /// The bandwidth whose product with the RTT bounds the states: in mvfst the estimate.
    pub(super) fn model_bandwidth(&self) -> Rate {
        if self.is_version(Version::Mvfst) { self.estimate() } else { self.max_bandwidth() }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.settings.startup_pacing_gain,
            State::Drain { .. } => self.settings.drain_pacing_gain,
            State::Down => self.settings.down_pacing_gain,
            State::Up => self.settings.up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain { .. } => self.settings.startup_cwnd_gain,
            State::Up => self.settings.up_cwnd_gain,
            State::Down | State::Cruise | State::Refill => self.settings.cwnd_gain,
            State::ProbeRtt { .. } => self.settings.probe_rtt_cwnd_gain,
        }
    }

    pub(super) fn min_pipe(&self) -> Bytes {
        Bytes(MIN_PIPE_PACKETS * self.mss.0)
    }

    pub(super) fn bdp(&self, bandwidth: Rate, gain: f64) -> Bytes {
        bdp(bandwidth, self.min_rtt.value, gain, self.mss, self.initial_window)
    }

    /// ccwg-bbr 4.6.4.2: QuantizationBudget.
    fn quantized(&self, window: Bytes) -> Bytes {
        let offload = Bytes(3 * send_quantum(self.pacing.rate, self.mss).0);
        let floor = window.max(offload).max(self.min_pipe());
        if self.state == State::Up { floor + Bytes(2 * self.mss.0) } else { floor }
    }

    /// ccwg-bbr 4.6.4.2: Inflight.
    pub(super) fn inflight(&self, bandwidth: Rate, gain: f64) -> Bytes {
        self.quantized(self.bdp(bandwidth, gain))
    }

    /// What is wanted in flight, unless congestion cut the window (ccwg-bbr 4.3.3.5.3: TargetInflight).
    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp(self.estimate(), 1.0).min(self.cwnd)
    }

    /// ccwg-bbr 4.6.4.4: SaveCwnd.
    pub(super) fn save_cwnd(&mut self) {
        let probing_rtt = matches!(self.state, State::ProbeRtt { .. });
        let repairing = self.recovery != RecoveryState::Open;
        self.prior_cwnd = if repairing || probing_rtt { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// ccwg-bbr 4.6.4.4: RestoreCwnd.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// ccwg-bbr 4.4.1: HandleRestartFromIdle.
    fn on_restart(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.is_probe_bw() {
            self.pacing.follow(self.estimate(), 1.0, self.full.reached);
        } else if matches!(self.state, State::ProbeRtt { .. }) {
            self.check_probe_rtt_done(now, self.delivered);
        }
    }

    /// ccwg-bbr 4.5.4: UpdateMaxBw.
    fn update_bandwidth(&mut self, sample: &RateSample, delivered: Bytes) {
        self.rounds.on_ack(sample.prior_delivered, delivered);
        if self.rounds.start {
            self.probing.rounds_since = self.probing.rounds_since.saturating_add(1);
        }
        if let Some(rate) = sample.rate
            && (!sample.app_limited || rate >= self.max_bandwidth())
        {
            self.bandwidth[1] = self.bandwidth[1].max(rate);
        }
    }

    fn update_aggregation(&mut self, event: &AckEvent<'_>) {
        let filled = self.full.reached || self.is_version(Version::Mvfst);
        let rounds = if filled { AGGREGATION_ROUNDS } else { 1 };
        let (start, bandwidth) = (self.rounds.start, self.estimate());
        self.aggregation.on_ack(event, start, rounds, bandwidth, self.cwnd, self.mss);
    }

    /// ccwg-bbr 4.6.4.6: SetCwnd.
    fn set_cwnd(&mut self, event: &AckEvent<'_>) {
        if self.conserves(event) {
            self.cwnd = (event.inflight + event.newly_acked).max(self.min_pipe());
        } else if event.newly_acked > Bytes::ZERO {
            let bandwidth = self.estimate();
            let wanted = self.bdp(bandwidth, self.cwnd_gain()) + self.extra_acked(bandwidth);
            let most = self.quantized(wanted);
            let untrusted = match self.settings.version {
                Version::V2 => self.cwnd.0 < 2 * self.initial_window.0,
                Version::V3 | Version::Mvfst => event.delivered < self.initial_window,
            };
            if self.full.reached {
                self.cwnd = (self.cwnd + event.newly_acked).min(most);
            } else if self.cwnd < most || untrusted {
                self.cwnd += event.newly_acked;
            }
            self.cwnd = self.cwnd.max(self.min_pipe());
        }
        if let State::ProbeRtt { cwnd, .. } = self.state {
            self.cwnd = self.cwnd.min(cwnd);
        }
        self.cwnd = self.cwnd.min(self.inflight_cap());
    }
}

impl Controller for Machine {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        if event.inflight == Bytes::ZERO && event.app_limited && self.delivered > Bytes::ZERO {
            self.on_restart(event.now);
        }
        // What had come back marked by then tells a sample its share of marks.
        SendDirective { ecn: self.encoding().sent(), tag: self.ecn.marked.0, ..SendDirective::default() }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.delivered = event.delivered;
        self.on_lost_packets(event);
        // Linux 6.12 net/ipv4/tcp_bbr.c, bbr_set_cwnd_to_recover_or_restore: not before the repair is
        // complete.
        let recovered = self.recovery != RecoveryState::Open && event.recovery == RecoveryState::Open;
        self.recovery = event.recovery;
        if recovered && !self.is_version(Version::Mvfst) {
            self.restore_cwnd();
        }
        self.rounds.start = false;
        self.short.round_start = false;
        // ccwg-bbr 4.2.3: UpdateModelAndState
        self.ecn.marked += event.marks.ce.bytes;
        if let Some(mut sample) = RateSample::of(event) {
            sample.app_limited |= self.spoiled.covers(event);
            let newest = event.acked.iter().max_by_key(|packet| packet.number);
            let marked =
                newest.map_or(Bytes::ZERO, |newest| self.ecn.marked.saturating_sub(Bytes(newest.tag)));
            self.short.note_delivery(&sample, event.delivered);
            self.update_bandwidth(&sample, event.delivered);
            if self.rounds.start {
                self.update_ecn_alpha(event.delivered);
            }
            self.note_marks(event.marks.ce.bytes);
            self.adapt_short_term();
            self.update_aggregation(event);
            self.check_full_pipe(&sample);
            self.check_startup_done(event, &sample);
            self.check_drain_done(event);
            self.update_probe_bw(event, &sample, marked);
            self.update_min_rtt(event);
            self.check_probe_rtt(event, &sample);
            self.short.advance(&sample);
            self.note_cycle(&sample, marked);
        }
        // ccwg-bbr 4.2.3: UpdateControlParameters
        if event.rtt.sample.is_some() {
            self.pacing.on_rtt(self.cwnd, event.rtt.smoothed, self.settings.startup_pacing_gain);
        }
        self.pacing.follow(self.estimate(), self.pacing_gain(), self.full.reached);
        self.set_cwnd(event);
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.ecn.in_episode = true;
        if !self.is_version(Version::Mvfst) {
            self.save_cwnd();
        }
        self.save_bounds();
    }

    fn on_ce(&mut self, _event: &LossEvent) {
        self.ecn.in_episode = true;
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.ecn.in_episode = false;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.kind == Timeout::Pto {
            return;
        }
        // ccwg-bbr 4.6.4.4: OnEnterRTO
        if !event.repeated {
            self.save_cwnd();
            self.save_bounds();
        }
        self.cwnd = self.mss;
        self.recovery = RecoveryState::Loss;
        if self.is_version(Version::V2) {
            // tcp_bbr2.c bbr2_set_state: the pipe may have become smaller.
            self.full.bandwidth = Rate::ZERO;
            if !self.state.is_accelerating() && self.short.inflight == UNBOUNDED {
                self.short.inflight = self.prior_cwnd.max(self.cwnd);
            }
        }
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.undo_loss(event.now, self.delivered);
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

    fn encoding(&self) -> Encoding {
        self.settings.ecn.codepoint.encoding()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let min_rtt = self.min_rtt.value;
        visit("bandwidth_bps", self.estimate().as_bps_f64());
        visit("min_rtt_ms", if min_rtt == Duration::MAX { 0.0 } else { min_rtt.as_millis_f64() });
        visit("pacing_gain", self.pacing_gain());
        visit("probe_rtt", f64::from(u8::from(matches!(self.state, State::ProbeRtt { .. }))));
        if self.long.inflight != UNBOUNDED {
            visit("inflight_longterm_bytes", self.long.inflight.as_f64());
        }
    }

    fn stage(&self) -> Option<Stage> {
        Some(self.state.stage())
    }
}
