//! Startup: an exponential search for the bandwidth, until it stops growing or loses too much
//! (draft-ietf-ccwg-bbr section 4.3.1).

use brakelight_core::controller::AckEvent;
use brakelight_core::sender::RateSample;
use brakelight_core::units::{Bytes, Rate};

use super::bounds::{UNBOUNDED, Undo};
use super::machine::{Machine, State};
use super::settings::Version;

/// Growth that shows that the pipe was not full (ccwg-bbr 4.3.1.2).
const GROWTH: f64 = 1.25;
/// Rounds without growth that show that it is (ccwg-bbr 4.3.1.2).
const ROUNDS: u32 = 3;

/// Has an accelerating sender filled the pipe? (ccwg-bbr 4.3.1.2)
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    pub(super) bandwidth: Rate,
    rounds: u32,
    /// In the present acceleration.
    pub(super) now: bool,
    /// At any time: what ends Startup.
    pub(super) reached: bool,
    /// ACKs with losses in the present round of recovery.
    losses: u32,
}

impl FullPipe {
    /// ccwg-bbr 4.3.1.2: ResetFullBW, with a new baseline.
    pub(super) fn restart(&mut self, baseline: Rate) {
        self.bandwidth = baseline;
        self.rounds = 0;
        self.now = false;
    }
}

impl Machine {
    /// ccwg-bbr 4.3.1.2: CheckFullBWReached.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        let done = match self.settings.version {
            Version::V2 | Version::Mvfst => self.full.reached,
            Version::V3 => self.full.now,
        };
        if done || !self.rounds.start || sample.app_limited {
            return;
        }
        let rate = match self.settings.version {
            Version::V2 | Version::Mvfst => self.max_bandwidth(),
            Version::V3 => sample.rate.unwrap_or(Rate::ZERO),
        };
        if rate >= self.full.bandwidth.mul_f64(GROWTH) {
            self.full.restart(rate);
            return;
        }
        self.full.rounds += 1;
        if self.full.rounds >= ROUNDS {
            self.full.now = true;
            self.full.reached = true;
        }
    }

    /// ccwg-bbr 4.3.1.1: CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, event: &AckEvent<'_>, sample: &RateSample) {
        self.check_high_loss(event, sample);
        if self.state == State::Startup && self.full.reached {
            self.transition(State::Drain { since: self.rounds.count });
            if self.is_version(Version::V2) {
                self.short.forget_signals();
                self.ecn.forget_signals();
            }
        }
    }

    /// ccwg-bbr 4.3.1.3: CheckStartupHighLoss; the round's end is that of the loss round, as in google/bbr
    /// tcp_bbr2.c and its version 3.
    fn check_high_loss(&mut self, event: &AckEvent<'_>, sample: &RateSample) {
        if self.full.reached {
            return;
        }
        self.full.losses += u32::from(event.newly_lost > Bytes::ZERO);
        if !self.short.round_start {
            return;
        }
        let many = self.full.losses >= self.settings.startup_losses;
        self.full.losses = 0;
        if many && event.in_recovery() && self.is_too_high(sample.lost, sample.tx_in_flight) {
            self.full.reached = true;
            let bdp = self.inflight(self.max_bandwidth(), 1.0);
            self.long.inflight = match self.settings.version {
                // mvfst Bbr2.cpp, checkStartupHighLoss: no bound.
                Version::Mvfst => UNBOUNDED,
                Version::V2 => bdp,
                Version::V3 => bdp.max(self.short.latest_inflight),
            };
            self.long.undo = Undo::Startup;
        }
    }

    /// Back to Startup after an exit that was a mistake, or after a ProbeRTT that came early.
    pub(super) fn enter_startup(&mut self) {
        self.transition(State::Startup);
    }
}
