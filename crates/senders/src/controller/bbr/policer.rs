//! Detection of token-bucket policers by a long-term bandwidth (Linux 6.12 tcp_bbr.c, `bbr_lt_bw_sampling`;
//! BBR v1 only).
//!
//! Two successive intervals of 4 to 16 rounds, each beginning and ending with a loss and losing a fifth or
//! more of what it delivers, that agree on their delivery rate, mean a policer. Its rate is then taken for
//! the bandwidth for 48 rounds, without probing.

use brakelight_core::controller::AckEvent;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

/// Fewest rounds in an interval (Linux 6.12 tcp_bbr.c, `bbr_lt_intvl_min_rtts`).
const MIN_ROUNDS: u32 = 4;
/// Lost share that makes an interval lossy: 50/256 (Linux 6.12 tcp_bbr.c, `bbr_lt_loss_thresh`).
const LOSS_SHARE: f64 = 50.0 / 256.0;
/// Relative difference of two rates that agree (Linux 6.12 tcp_bbr.c, `bbr_lt_bw_ratio`).
const AGREE_RATIO: f64 = 0.125;
/// Absolute difference of two rates that agree (Linux 6.12 tcp_bbr.c, `bbr_lt_bw_diff`).
const AGREE_DIFFERENCE: Rate = Rate::from_bps(4_000);
/// Rounds for which the policed rate is used (Linux 6.12 tcp_bbr.c, `bbr_lt_bw_max_rtts`).
const HOLD_ROUNDS: u32 = 48;

/// The detector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    /// Whether the rate is in use.
    pub(super) active: bool,
    rounds: u32,
    /// The rate of the last interval, or the policed rate; zero before there is one.
    pub(super) rate: Rate,
    since: Time,
    delivered: Bytes,
    lost: Bytes,
}

/// The state of the connection where one interval ends and the next begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowState {
    pub(super) now: Time,
    pub(super) delivered: Bytes,
    pub(super) lost: Bytes,
}

impl From<&AckEvent<'_>> for FlowState {
    fn from(event: &AckEvent<'_>) -> Self {
        FlowState { now: event.now, delivered: event.delivered, lost: event.total_lost }
    }
}

impl Policer {
    /// Forgets everything.
    pub(super) fn reset(&mut self, state: FlowState) {
        *self = Policer::default();
        self.begin(state);
    }

    fn begin(&mut self, state: FlowState) {
        self.since = state.now;
        self.delivered = state.delivered;
        self.lost = state.lost;
        self.rounds = 0;
    }

    /// Takes an ACK. Returns whether the policed rate was just given up, so that gain cycling restarts.
    pub(super) fn on_ack(
        &mut self,
        state: FlowState,
        losses: bool,
        app_limited: bool,
        round_start: bool,
        probing_bandwidth: bool,
    ) -> bool {
        if self.active {
            if probing_bandwidth && round_start {
                self.rounds += 1;
                if self.rounds >= HOLD_ROUNDS {
                    self.reset(state);
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            // The bucket's tokens are gone at the first loss; samples before would overestimate.
            if !losses {
                return false;
            }
            self.begin(state);
            self.sampling = true;
        }
        if app_limited {
            self.reset(state);
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < MIN_ROUNDS {
            return false;
        }
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(state);
            return false;
        }
        if !losses {
            return false;
        }
        let lost = state.lost.saturating_sub(self.lost);
        let delivered = state.delivered.saturating_sub(self.delivered);
        let elapsed = state.now.since(self.since);
        let lossy = lost.as_f64() >= LOSS_SHARE * delivered.as_f64();
        if delivered > Bytes::ZERO && lossy && elapsed >= Duration::from_millis(1) {
            self.interval_done(Rate::over(delivered, elapsed), state);
        }
        false
    }

    fn interval_done(&mut self, rate: Rate, state: FlowState) {
        if self.rate > Rate::ZERO {
            let difference = rate.bps().abs_diff(self.rate.bps());
            let agree = difference as f64 <= AGREE_RATIO * self.rate.as_bps_f64()
                || difference <= AGREE_DIFFERENCE.bps();
            if agree {
                self.rate = Rate::from_bps((rate.bps() + self.rate.bps()) / 2);
                self.active = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = rate;
        self.begin(state);
    }
}
