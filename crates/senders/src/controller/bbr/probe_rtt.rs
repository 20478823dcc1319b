//! min_rtt, and ProbeRTT, which empties the queue to renew it (draft-ietf-ccwg-bbr sections 4.3.4 and 4.5.7).

use brakelight_core::controller::AckEvent;
use brakelight_core::sender::RateSample;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::machine::{Machine, State};
use super::settings::Version;

/// The smallest RTT, and the smallest since ProbeRTT was last due.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// `Duration::MAX` before the first sample.
    pub(super) value: Duration,
    at: Time,
    recent: Duration,
    recent_at: Time,
    /// Whether the recent one is too old.
    expired: bool,
    /// The window of the next ProbeRTT, from the estimate before it expired.
    probe_cwnd: Bytes,
}

impl MinRtt {
    pub(super) fn new(now: Time) -> Self {
        MinRtt {
            value: Duration::MAX,
            at: now,
            recent: Duration::MAX,
            recent_at: now,
            expired: false,
            probe_cwnd: Bytes::ZERO,
        }
    }
}

impl Machine {
    /// ccwg-bbr 4.3.4.4: UpdateMinRTT; the two windows of google/bbr's bbr_update_min_rtt. A sample equal to
    /// the smallest renews it in version 2 only: google/bbr v2alpha has `<=`, v3 and the draft `<`.
    pub(super) fn update_min_rtt(&mut self, event: &AckEvent<'_>) {
        let gain = self.settings.probe_rtt_cwnd_gain;
        self.min_rtt.expired =
            event.now > self.min_rtt.recent_at.saturating_add(self.settings.probe_rtt_interval);
        if self.min_rtt.expired && !matches!(self.state, State::ProbeRtt { .. }) {
            // ccwg-bbr 4.6.4.5: SaveProbeRTTCwnd
            self.min_rtt.probe_cwnd = self.bdp(self.estimate(), gain).max(self.min_pipe());
        }
        let same_renews = self.is_version(Version::V2);
        let model = &mut self.min_rtt;
        let Some(rtt) = event.rtt.sample else { return };
        if rtt < model.recent || model.expired || (same_renews && rtt == model.recent) {
            model.recent = rtt;
            model.recent_at = event.now;
        }
        let old = event.now > model.at.saturating_add(self.settings.min_rtt_window);
        if model.recent <= model.value || old {
            model.value = model.recent;
            model.at = model.recent_at;
        }
    }

    /// ccwg-bbr 4.3.4.4: CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, event: &AckEvent<'_>, sample: &RateSample) {
        let probing = matches!(self.state, State::ProbeRtt { .. });
        if !probing && self.min_rtt.expired && !self.idle_restart {
            self.save_cwnd();
            self.probing.stop();
            self.rounds.restart(event.delivered);
            self.transition(State::ProbeRtt { cwnd: self.min_rtt.probe_cwnd, done: None, round_done: false });
        }
        self.handle_probe_rtt(event);
        if sample.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
    }

    /// ccwg-bbr 4.3.4.4: HandleProbeRTT.
    fn handle_probe_rtt(&mut self, event: &AckEvent<'_>) {
        let State::ProbeRtt { cwnd, done, round_done } = &mut self.state else { return };
        self.spoiled.mark(event.now, event.delivered, event.inflight);
        if done.is_none() {
            if event.inflight <= *cwnd {
                *done = Some(event.now + self.settings.probe_rtt_time);
                *round_done = false;
                self.rounds.restart(event.delivered);
            }
            return;
        }
        *round_done |= self.rounds.start;
        if *round_done {
            self.check_probe_rtt_done(event.now, event.delivered);
        }
    }

    /// ccwg-bbr 4.3.4.4: CheckProbeRTTDone, and 4.3.4.5: ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time, delivered: Bytes) {
        let State::ProbeRtt { done: Some(done), .. } = self.state else { return };
        if now <= done {
            return;
        }
        self.min_rtt.recent_at = now;
        self.restore_cwnd();
        self.short.reset();
        if self.full.reached {
            self.start_down(now, delivered);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }
}
