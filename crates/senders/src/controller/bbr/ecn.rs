//! What marks of a shallow threshold teach, where the flow is told that its path has one (`google/bbr`
//! tcp_bbr2.c and its version 3; draft-ietf-ccwg-bbr leaves it out).
//!
//! ```text
//! each round:                 alpha += gain (F - alpha),  F = CE bytes / bytes delivered in it
//!                                                                                       bbr_update_ecn_alpha
//! a round with CE, unless probing:  inflight_shortterm *= 1 - factor alpha        bbr_ecn_lower_bounds
//! CE > threshold of what a sample of a probe delivered:  the probe went too far, as by losses
//!                                                                                   bbr_is_inflight_too_high
//! Startup ends after two rounds in a row with F >= threshold   bbr_check_ecn_too_high_in_startup
//! a cycle with CE and without losses: once a round passes without CE, the next probe begins, growing
//!                             the long-term bound by half of itself in its first round
//!                                                                                 bbr_check_time_to_probe_bw
//! ```
//!
//! None of it before min_rtt is within `ecn_max_rtt`.

use brakelight_core::ecn::Encoding;
use brakelight_core::sender::RateSample;
use brakelight_core::time::Duration;
use brakelight_core::units::Bytes;

use super::bounds::UNBOUNDED;
use super::machine::Machine;
use super::settings::Version;

choices! {
    /// Whether to use ECN, and under which codepoint.
    pub enum EcnUse {
        /// Not at all: as the sources do unless told otherwise.
        Off = "off",
        /// ECT(0), as the sources do, for a network all of whose queues mark at a shallow threshold.
        Ect0 = "ect0",
        /// ECT(1), for queues that speak L4S.
        Ect1 = "ect1",
    }
}

impl EcnUse {
    pub(super) fn encoding(self) -> Encoding {
        match self {
            EcnUse::Off => Encoding::None,
            EcnUse::Ect0 => Encoding::Classic,
            EcnUse::Ect1 => Encoding::L4s,
        }
    }
}

/// Weight of a round in alpha (tcp_bbr2.c: bbr_ecn_alpha_gain).
const GAIN: f64 = 1.0 / 16.0;
/// Rounds with too many marks that end Startup (tcp_bbr2.c: bbr_full_ecn_cnt).
const STARTUP_ROUNDS: u32 = 2;
/// Share of the long-term bound by which the first round of a probe after marks may raise it
/// (bbr_ecn_reprobe_gain).
const REPROBE_GAIN: f64 = 0.5;

/// The settings of the two versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnSettings {
    pub(super) codepoint: EcnUse,
    pub(super) factor: f64,
    pub(super) threshold: f64,
    pub(super) max_rtt: Duration,
}

/// The state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    /// The average share of marks.
    pub(super) alpha: f64,
    /// Whether marks count.
    eligible: bool,
    /// Bytes that came back with CE so far.
    pub(super) marked: Bytes,
    /// Those, and all delivered, when alpha was updated last.
    before: (Bytes, Bytes),
    startup_rounds: u32,
    pub(super) in_round: bool,
    in_cycle: bool,
    loss_in_cycle: bool,
    /// Whether the host is still answering a mark or a loss.
    pub(super) in_episode: bool,
}

impl Default for Ecn {
    fn default() -> Self {
        Ecn {
            // tcp_bbr2.c: bbr_ecn_alpha_init
            alpha: 1.0,
            eligible: false,
            marked: Bytes::ZERO,
            before: (Bytes::ZERO, Bytes::ZERO),
            startup_rounds: 0,
            in_round: false,
            in_cycle: false,
            loss_in_cycle: false,
            in_episode: false,
        }
    }
}

impl Ecn {
    /// Forgets what a probe brought about.
    pub(super) fn forget_signals(&mut self) {
        self.in_round = false;
        self.in_cycle = false;
        self.loss_in_cycle = false;
    }
}

impl Machine {
    /// bbr_update_ecn_alpha, at the start of a round.
    pub(super) fn update_ecn_alpha(&mut self, delivered: Bytes) {
        let settings = self.settings.ecn;
        if settings.codepoint == EcnUse::Off {
            return;
        }
        self.ecn.eligible |= self.min_rtt.value <= settings.max_rtt;
        let (marked_before, delivered_before) = self.ecn.before;
        let newly = delivered.saturating_sub(delivered_before);
        if !self.ecn.eligible || newly == Bytes::ZERO {
            return;
        }
        let share = (self.ecn.marked - marked_before).as_f64() / newly.as_f64();
        self.ecn.alpha = (self.ecn.alpha + GAIN * (share - self.ecn.alpha)).min(1.0);
        self.ecn.before = (self.ecn.marked, delivered);
        // bbr_check_ecn_too_high_in_startup
        if self.full.reached {
            return;
        }
        self.ecn.startup_rounds = if share >= settings.threshold { self.ecn.startup_rounds + 1 } else { 0 };
        if self.ecn.startup_rounds >= STARTUP_ROUNDS {
            self.full.reached = true;
            let bdp = self.inflight(self.max_bandwidth(), 1.0);
            self.long.inflight = match self.settings.version {
                Version::V2 | Version::Mvfst => bdp,
                Version::V3 => bdp.max(self.short.latest_inflight),
            };
        }
    }

    /// Takes the marks and losses of an ACK into the round and, at its end, into the cycle.
    pub(super) fn note_marks(&mut self, newly: Bytes) {
        self.ecn.in_round |= self.ecn.eligible && newly > Bytes::ZERO;
    }

    /// The ACK has been dealt with.
    pub(super) fn note_cycle(&mut self, sample: &RateSample, marked: Bytes) {
        self.ecn.loss_in_cycle |= sample.lost > Bytes::ZERO;
        self.ecn.in_cycle |= marked > Bytes::ZERO;
    }

    /// bbr_is_inflight_too_high, for marks: `marked` of what `sample` delivered.
    pub(super) fn is_marked_too_much(&self, sample: &RateSample, marked: Bytes) -> bool {
        self.ecn.eligible && marked.as_f64() > self.settings.ecn.threshold * sample.delivered.as_f64()
    }

    /// What marks of the round leave of the short-term bound: bbr_ecn_lower_bounds.
    pub(super) fn inflight_after_marks(&mut self) -> Bytes {
        if !self.ecn.in_round || self.settings.ecn.factor <= 0.0 {
            return UNBOUNDED;
        }
        if self.short.inflight == UNBOUNDED {
            self.short.inflight = self.cwnd;
        }
        let left = 1.0 - self.settings.ecn.factor * self.ecn.alpha;
        Bytes((self.short.inflight.as_f64() * left) as u64)
    }

    /// Whether marks have ceased after a cycle that saw marks only: the doublings by which the next probe
    /// begins.
    pub(super) fn reprobe_after_marks(&self) -> Option<u32> {
        let ecn = &self.ecn;
        if !ecn.eligible || !ecn.in_cycle || ecn.loss_in_cycle || ecn.in_episode {
            return None;
        }
        // bbr_check_time_to_probe_bw
        if self.long.inflight == UNBOUNDED {
            return Some(30);
        }
        let packets = (self.long.inflight.as_f64() * REPROBE_GAIN / self.mss.as_f64()).max(1.0);
        Some((packets as u64).ilog2().min(30))
    }
}

#[cfg(test)]
mod tests;
