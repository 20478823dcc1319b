//! Drain: the queue that Startup built leaves again (draft-ietf-ccwg-bbr section 4.3.2).

use brakelight_core::controller::AckEvent;

use super::machine::{Machine, State};
use super::settings::Version;

/// Rounds after which an overestimate is assumed (ccwg-bbr 4.3.2).
const MOST_ROUNDS: u64 = 3;

impl Machine {
    /// ccwg-bbr 4.3.2: CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, event: &AckEvent<'_>) {
        let State::Drain { since } = self.state else { return };
        let drained = event.inflight <= self.inflight(self.model_bandwidth(), 1.0);
        let overlong = self.is_version(Version::V3) && self.rounds.count > since + MOST_ROUNDS;
        if drained || overlong {
            self.start_down(event.now, event.delivered);
        }
    }
}
