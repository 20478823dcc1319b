//! ProbeBW: drain, cruise, refill, and probe for more (draft-ietf-ccwg-bbr section 4.3.3).

use brakelight_core::controller::AckEvent;
use brakelight_core::sender::RateSample;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::bounds::UNBOUNDED;
use super::machine::{Machine, State};
use super::settings::Version;

/// How the ACKs that arrive relate to the probing (ccwg-bbr: ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Where the cycle stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probing {
    acks: AckPhase,
    /// When the phase began whose length a clock bounds.
    since: Time,
    /// How long to wait until the next probe.
    wait: Duration,
    /// Rounds since the last probe, begun at 0 or 1 by chance.
    pub(super) rounds_since: u32,
    /// Whether samples still stem from a probe, so that one reaction is due to excess loss.
    pub(super) is_sample: bool,
    /// Whether the last probe lost too much.
    pub(super) went_too_high: bool,
    /// Whether the last probe ended at the bound that had been too high before.
    precautionary: bool,
    /// Bytes to be acknowledged for each packet by which the long-term bound grows.
    acked_per_packet: Bytes,
    acked: Bytes,
    up_rounds: u32,
}

impl Probing {
    pub(super) fn new(now: Time) -> Self {
        Probing {
            acks: AckPhase::Init,
            since: now,
            wait: Duration::ZERO,
            rounds_since: 0,
            is_sample: false,
            went_too_high: false,
            precautionary: false,
            acked_per_packet: UNBOUNDED,
            acked: Bytes::ZERO,
            up_rounds: 0,
        }
    }

    /// ACKs that arrive from now on no longer stem from a probe, a round later.
    pub(super) fn stop(&mut self) {
        self.acks = AckPhase::ProbeStopping;
    }
}

impl Machine {
    /// ccwg-bbr 4.3.3.6: StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Time, delivered: Bytes) {
        self.short.forget_signals();
        self.ecn.forget_signals();
        self.probing.acked_per_packet = UNBOUNDED;
        // ccwg-bbr 4.3.3.5.3: PickProbeWait
        self.probing.rounds_since = u32::from(self.random.chance(0.5));
        self.probing.wait =
            self.settings.probe_wait + self.settings.probe_wait_spread.mul_f64(self.random.uniform());
        self.probing.since = now;
        self.probing.stop();
        self.rounds.restart(delivered);
        self.transition(State::Down);
    }

    /// ccwg-bbr 4.3.3.6: StartProbeBW_CRUISE.
    pub(super) fn start_cruise(&mut self) {
        self.transition(State::Cruise);
    }

    /// ccwg-bbr 4.3.3.6: StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self, delivered: Bytes, doublings: u32) {
        self.short.reset();
        self.probing.up_rounds = doublings;
        self.probing.acked = Bytes::ZERO;
        self.probing.precautionary = false;
        self.probing.acks = AckPhase::Refilling;
        self.rounds.restart(delivered);
        self.transition(State::Refill);
    }

    /// ccwg-bbr 4.3.3.6: StartProbeBW_UP.
    fn start_up(&mut self, now: Time, delivered: Bytes, sample: &RateSample) {
        self.probing.acks = AckPhase::ProbeStarting;
        self.probing.since = now;
        self.rounds.restart(delivered);
        if self.is_version(Version::V3) {
            self.full.restart(sample.rate.unwrap_or(Rate::ZERO));
        }
        self.transition(State::Up);
        self.raise_slope();
    }

    /// ccwg-bbr 4.3.3.6: UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw(&mut self, event: &AckEvent<'_>, sample: &RateSample, marked: Bytes) {
        if !self.full.reached || self.adapt_long_term(event, sample, marked) {
            return;
        }
        let go_down = self.state == State::Up && self.is_time_to_go_down(event, sample);
        match self.state {
            State::Down => {
                if let Some(doublings) = self.doublings_of_probe(event.now) {
                    self.start_refill(event.delivered, doublings);
                } else if self.is_time_to_cruise(event.inflight) {
                    self.start_cruise();
                }
            }
            State::Cruise => {
                if let Some(doublings) = self.doublings_of_probe(event.now) {
                    self.start_refill(event.delivered, doublings);
                }
            }
            State::Refill if self.rounds.start => {
                self.probing.is_sample = true;
                self.start_up(event.now, event.delivered, sample);
            }
            State::Up if go_down => {
                self.probing.went_too_high = false;
                self.start_down(event.now, event.delivered);
            }
            _ => {}
        }
    }

    /// Whether to probe now, and after how many doublings of the long-term bound's growth.
    fn doublings_of_probe(&self, now: Time) -> Option<u32> {
        self.reprobe_after_marks().or_else(|| self.is_time_to_probe(now).then_some(0))
    }

    /// ccwg-bbr 4.3.3.5.3: IsTimeToProbeBW, by the clock or at Reno's pace.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = self.target_inflight().0 / self.mss.0;
        now > self.probing.since.saturating_add(self.probing.wait)
            || !self.is_version(Version::Mvfst)
                && u64::from(self.probing.rounds_since)
                    >= reno_rounds.min(u64::from(self.settings.probe_rounds))
    }

    /// ccwg-bbr 4.3.3.6: IsTimeToCruise.
    fn is_time_to_cruise(&self, inflight: Bytes) -> bool {
        inflight <= self.inflight_with_headroom() && inflight <= self.inflight(self.model_bandwidth(), 1.0)
    }

    /// ccwg-bbr 4.3.3.6: IsTimeToGoDown; tcp_bbr2.c bbr2_update_cycle_phase.
    fn is_time_to_go_down(&mut self, event: &AckEvent<'_>, sample: &RateSample) -> bool {
        let mvfst = self.is_version(Version::Mvfst);
        if !mvfst && self.probing.went_too_high && event.inflight_before >= self.long.inflight {
            self.probing.precautionary = true;
            return true;
        }
        match self.settings.version {
            Version::Mvfst => {
                let queue = self.inflight(self.estimate(), self.settings.up_pacing_gain);
                event.now.since(self.probing.since) > self.min_rtt.value && self.short.latest_inflight > queue
            }
            Version::V2 => {
                let queue = self.inflight(self.max_bandwidth(), self.settings.up_pacing_gain);
                let elapsed = event.now.since(self.probing.since) > self.min_rtt.value;
                elapsed && event.inflight_before >= queue
            }
            Version::V3 => {
                if event.cwnd_limited && self.cwnd >= self.long.inflight {
                    // The bound is the limit, not the path.
                    self.full.restart(sample.rate.unwrap_or(Rate::ZERO));
                    return false;
                }
                self.full.now
            }
        }
    }

    /// Follows the probe in the ACKs, moves the bandwidth filter on, and raises the long-term bound where
    /// that is safe. Returns whether it already chose the next state (ccwg-bbr 4.3.3.6: AdaptLongTermModel).
    fn adapt_long_term(&mut self, event: &AckEvent<'_>, sample: &RateSample, marked: Bytes) -> bool {
        if self.probing.acks == AckPhase::ProbeStarting && self.rounds.start {
            self.probing.acks = AckPhase::ProbeFeedback;
        }
        if self.probing.acks == AckPhase::ProbeStopping && self.rounds.start {
            // mvfst Bbr2.cpp: one reaction for each probe, however late.
            self.probing.is_sample &= self.is_version(Version::Mvfst);
            self.probing.acks = AckPhase::Init;
            if self.state.is_probe_bw() {
                // ccwg-bbr 4.5.5: AdvanceMaxBwFilter. A cycle without samples is not remembered (tcp_bbr2.c).
                if !sample.app_limited && self.bandwidth[1] > Rate::ZERO {
                    self.bandwidth = [self.bandwidth[1], Rate::ZERO];
                }
                if self.probing.precautionary && !self.probing.went_too_high {
                    self.start_refill(event.delivered, 0);
                    return true;
                }
            }
        }
        if self.is_marked_too_much(sample, marked) {
            if self.probing.is_sample {
                self.on_inflight_too_high(event, sample.tx_in_flight, sample.app_limited);
            }
            return false;
        }
        if self.is_version(Version::Mvfst) {
            self.adapt_upper_bounds(event, sample);
            return false;
        }
        if self.long.inflight == UNBOUNDED || self.is_too_high(sample.lost, sample.tx_in_flight) {
            return false;
        }
        self.long.inflight = self.long.inflight.max(sample.tx_in_flight);
        if self.state == State::Up {
            self.probe_upward(event);
        }
        false
    }

    /// ccwg-bbr 4.3.3.6: ProbeInflightLongtermUpward.
    pub(super) fn probe_upward(&mut self, event: &AckEvent<'_>) {
        if !event.cwnd_limited || self.cwnd < self.long.inflight {
            if self.is_version(Version::V2) {
                self.probing.acked = Bytes::ZERO;
            }
            return;
        }
        self.probing.acked += event.newly_acked;
        let step = self.probing.acked_per_packet;
        if self.probing.acked >= step {
            let packets = self.probing.acked.0 / step.0;
            self.probing.acked -= Bytes(packets * step.0);
            self.long.inflight += Bytes(packets * self.mss.0);
        }
        if self.rounds.start {
            self.raise_slope();
        }
    }

    /// Doubles the growth of the long-term bound (ccwg-bbr 4.3.3.6: RaiseInflightLongtermSlope).
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.probing.up_rounds;
        self.probing.up_rounds = (self.probing.up_rounds + 1).min(30);
        self.probing.acked_per_packet = Bytes(self.cwnd.0 / growth).max(self.mss);
    }
}
