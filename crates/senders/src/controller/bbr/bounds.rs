//! What losses teach: bounds for the time being, and bounds that outlast it (draft-ietf-ccwg-bbr
//! section 4.5.10).

use brakelight_core::controller::{AckEvent, PacketInfo};
use brakelight_core::sender::RateSample;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

use super::machine::{Machine, State};
use super::settings::Version;

/// No bound.
pub(super) const UNBOUNDED: Bytes = Bytes(u64::MAX);
/// No bound.
const UNBOUNDED_RATE: Rate = Rate::from_bps(u64::MAX);

/// Bounds learnt from losses outside of probes; forgotten at the next probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// bw_shortterm.
    pub(super) bandwidth: Rate,
    /// inflight_shortterm.
    pub(super) inflight: Bytes,
    /// Largest delivery rate of the round.
    pub(super) latest_bandwidth: Rate,
    /// Largest delivered volume of the round.
    pub(super) latest_inflight: Bytes,
    loss_in_round: bool,
    /// The round of loss ends with a packet sent when this much had been delivered.
    round_end: Bytes,
    /// Whether this ACK began a round of loss.
    pub(super) round_start: bool,
    /// Bounds before the last losses.
    undo: (Rate, Bytes),
}

impl Default for ShortTerm {
    fn default() -> Self {
        ShortTerm {
            bandwidth: UNBOUNDED_RATE,
            inflight: UNBOUNDED,
            latest_bandwidth: Rate::ZERO,
            latest_inflight: Bytes::ZERO,
            loss_in_round: false,
            round_end: Bytes::ZERO,
            round_start: false,
            undo: (UNBOUNDED_RATE, UNBOUNDED),
        }
    }
}

impl ShortTerm {
    /// ccwg-bbr 4.5.10.3: ResetShortTermModel.
    pub(super) fn reset(&mut self) {
        self.bandwidth = UNBOUNDED_RATE;
        self.inflight = UNBOUNDED;
    }

    /// ccwg-bbr 4.5.10.3: ResetCongestionSignals.
    pub(super) fn forget_signals(&mut self) {
        self.loss_in_round = false;
        self.latest_bandwidth = Rate::ZERO;
        self.latest_inflight = Bytes::ZERO;
    }

    /// ccwg-bbr 4.5.10.3: UpdateLatestDeliverySignals.
    pub(super) fn note_delivery(&mut self, sample: &RateSample, delivered: Bytes) {
        self.latest_bandwidth = self.latest_bandwidth.max(sample.rate.unwrap_or(Rate::ZERO));
        self.latest_inflight = self.latest_inflight.max(sample.delivered);
        if sample.prior_delivered >= self.round_end {
            self.round_end = delivered;
            self.round_start = true;
        }
    }

    /// ccwg-bbr 4.5.10.3: AdvanceLatestDeliverySignals.
    pub(super) fn advance(&mut self, sample: &RateSample) {
        if self.round_start {
            self.latest_bandwidth = sample.rate.unwrap_or(Rate::ZERO);
            self.latest_inflight = sample.delivered;
        }
    }
}

/// Where a spurious loss episode must lead back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    Nothing,
    Startup,
    Up,
}

/// The bound learnt from losses in probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    /// inflight_longterm.
    pub(super) inflight: Bytes,
    /// Bounds the bandwidth, in mvfst.
    pub(super) bandwidth: Rate,
    pub(super) undo: Undo,
    undo_inflight: Bytes,
}

impl Default for LongTerm {
    fn default() -> Self {
        LongTerm {
            inflight: UNBOUNDED,
            bandwidth: UNBOUNDED_RATE,
            undo: Undo::Nothing,
            undo_inflight: UNBOUNDED,
        }
    }
}

impl Machine {
    /// ccwg-bbr 4.5.10.2: IsInflightTooHigh.
    pub(super) fn is_too_high(&self, lost: Bytes, tx_in_flight: Bytes) -> bool {
        lost.as_f64() > tx_in_flight.as_f64() * self.settings.loss_threshold
    }

    /// ccwg-bbr 4.5.10.4.1: SaveStateUponLoss, without the window.
    pub(super) fn save_bounds(&mut self) {
        self.short.undo = (self.short.bandwidth, self.short.inflight);
        self.long.undo = Undo::Nothing;
        self.long.undo_inflight = self.long.inflight;
    }

    /// ccwg-bbr 4.5.10.2: HandleLostPacket, for every lost packet.
    pub(super) fn on_lost_packets(&mut self, event: &AckEvent<'_>) {
        let mut total = event.total_lost.saturating_sub(event.newly_lost);
        for packet in event.lost {
            total += packet.size;
            if !self.short.loss_in_round {
                self.short.round_end = event.delivered;
                if !self.is_version(Version::Mvfst) {
                    self.save_cwnd();
                }
                self.save_bounds();
            }
            self.short.loss_in_round = true;
            let lost = total.saturating_sub(packet.lost);
            let each = !self.is_version(Version::Mvfst);
            if each && self.probing.is_sample && self.is_too_high(lost, packet.inflight) {
                let inflight = self.inflight_at_loss(packet, lost);
                self.on_inflight_too_high(event, inflight, packet.app_limited);
            }
        }
    }

    /// What was in flight when the losses crossed the threshold (ccwg-bbr 4.5.10.2: InflightAtLoss).
    fn inflight_at_loss(&self, packet: &PacketInfo, lost: Bytes) -> Bytes {
        let threshold = self.settings.loss_threshold;
        let inflight_before = packet.inflight.saturating_sub(packet.size).as_f64();
        let lost_before = lost.saturating_sub(packet.size).as_f64();
        let prefix = (threshold * inflight_before - lost_before) / (1.0 - threshold);
        Bytes((inflight_before + prefix.max(0.0)) as u64)
    }

    /// ccwg-bbr 4.5.10.2: HandleInflightTooHigh.
    pub(super) fn on_inflight_too_high(&mut self, event: &AckEvent<'_>, inflight: Bytes, app_limited: bool) {
        self.probing.went_too_high = true;
        self.probing.is_sample = false;
        if !app_limited {
            let floor = self.target_inflight().as_f64() * self.settings.beta;
            if self.is_version(Version::Mvfst) {
                self.long.bandwidth = self.max_bandwidth();
            }
            self.long.inflight = inflight.max(Bytes(floor as u64));
        }
        if self.state == State::Up {
            self.long.undo = Undo::Up;
            self.start_down(event.now, event.delivered);
        }
    }

    /// Once per round of loss (ccwg-bbr 4.5.10.3: AdaptLowerBoundsFromCongestion).
    pub(super) fn adapt_short_term(&mut self) {
        if !self.short.round_start {
            return;
        }
        let adapts = match self.settings.version {
            // mvfst Bbr2.cpp, updateCongestionSignals
            Version::Mvfst => self.state != State::Up,
            Version::V2 | Version::V3 => !self.state.is_accelerating(),
        };
        let after_marks = if adapts { self.inflight_after_marks() } else { UNBOUNDED };
        if self.short.loss_in_round && adapts {
            let beta = self.settings.beta;
            // ccwg-bbr 4.5.10.3: InitLowerBounds
            if self.short.bandwidth == UNBOUNDED_RATE {
                self.short.bandwidth = self.max_bandwidth();
            }
            if self.short.inflight == UNBOUNDED {
                self.short.inflight = self.cwnd;
            }
            // ccwg-bbr 4.5.10.3: LossLowerBounds
            let short = &mut self.short;
            short.bandwidth = short.latest_bandwidth.max(short.bandwidth.mul_f64(beta));
            let reduced = Bytes((short.inflight.as_f64() * beta) as u64);
            short.inflight = short.latest_inflight.max(reduced);
        }
        self.short.inflight = self.short.inflight.min(after_marks);
        self.short.loss_in_round = false;
        self.ecn.in_round = false;
    }

    /// ccwg-bbr 4.3.3.6: InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> Bytes {
        let bound = self.long.inflight;
        if bound == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = Bytes((bound.as_f64() * self.settings.headroom) as u64).max(self.mss);
        bound.saturating_sub(headroom).max(self.min_pipe())
    }

    /// What the bounds allow in flight in the present state (ccwg-bbr 4.6.4.7: BoundCwndForModel).
    pub(super) fn inflight_cap(&self) -> Bytes {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.long.inflight,
            State::Cruise | State::ProbeRtt { .. } => self.inflight_with_headroom(),
            State::Startup | State::Drain { .. } => UNBOUNDED,
        };
        long.min(self.short.inflight).max(self.min_pipe())
    }

    /// ccwg-bbr 4.5.10.4.2: HandleSpuriousLossDetection.
    pub(super) fn undo_loss(&mut self, _now: Time, delivered: Bytes) {
        self.restore_cwnd();
        self.short.loss_in_round = false;
        self.full.restart(Rate::ZERO);
        let (bandwidth, inflight) = self.short.undo;
        self.short.bandwidth = self.short.bandwidth.max(bandwidth);
        self.short.inflight = self.short.inflight.max(inflight);
        self.long.inflight = self.long.inflight.max(self.long.undo_inflight);
        let probing_rtt = matches!(self.state, State::ProbeRtt { .. });
        match self.long.undo {
            Undo::Startup if self.state != State::Startup => {
                self.full.reached = false;
                if !probing_rtt {
                    self.enter_startup();
                }
            }
            Undo::Up if self.state != State::Up && !probing_rtt => self.start_refill(delivered, 0),
            _ => {}
        }
        self.long.undo = Undo::Nothing;
    }
}
