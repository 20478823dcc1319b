//! Whether the application is the limit: it sends much less than it may.
//!
//! libwebrtc: alr_detector.cc, with the constants of alr_detector.h (0f646169 of jbg/libwebrtc), and
//! interval_budget.cc (3815d0d8).

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

/// alr_detector.h: kDefaultAlrBandwidthUsagePercent, kDefaultAlrStartBudgetLevelPercent and
/// kDefaultAlrStopBudgetLevelPercent
const USAGE: f64 = 0.65;
const START: f64 = 0.8;
const STOP: f64 = 0.5;
/// interval_budget.cc, kWindowMs
const WINDOW: Duration = Duration::from_millis(500);

/// Bytes that were not sent.
#[derive(Clone, Debug, Default)]
pub(super) struct AppLimit {
    unused_bytes: f64,
    sent_at: Option<Time>,
    is_limited: bool,
}

impl AppLimit {
    /// A packet leaves while the target is `target_bps`.
    pub(super) fn on_send(&mut self, now: Time, size: Bytes, target_bps: f64) {
        let bytes_per_s = USAGE * target_bps / 8.0;
        let most = bytes_per_s * WINDOW.as_secs_f64();
        self.unused_bytes = self.unused_bytes.clamp(-most, most);
        let Some(sent_at) = self.sent_at.replace(now) else { return };
        self.unused_bytes = (self.unused_bytes - size.0 as f64).max(-most);
        self.unused_bytes = (self.unused_bytes + bytes_per_s * now.since(sent_at).as_secs_f64()).min(most);
        let level = if most > 0.0 { self.unused_bytes / most } else { 0.0 };
        self.is_limited = if self.is_limited { level >= STOP } else { level > START };
    }

    /// Returns `true` while the application is the limit.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }
}
