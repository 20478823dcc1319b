//! The rate at which the receiver gets data: over the packets of about a second, without the longest gap.
//!
//! ```text
//! window: the newest packets that arrived: more than 20 only if they came within 1 s, at most 500 and 5 s
//! R_t   = bytes but those of the first to arrive / (t_last - t_first - longest gap + second longest)
//! R_T   = bytes but those of the last sent / (T_last - T_first)
//! R     = min(R_t, R_T), from ten packets on
//! ```
//!
//! A link that stops for a moment and then sends all at once leaves one long gap, which is no reason for a
//! low estimate. Without it the estimate may be too high, so it is bounded by what was sent.
//!
//! libwebrtc: robust_throughput_estimator.cc, with the defaults of
//! acknowledged_bitrate_estimator_interface.h.

use alloc::collections::VecDeque;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

/// libwebrtc acknowledged_bitrate_estimator_interface.h: window_packets, max_window_packets,
/// min_window_duration, max_window_duration and required_packets
const PACKETS: usize = 20;
const MOST_PACKETS: usize = 500;
const LENGTH: Duration = Duration::from_secs(1);
const MOST_LENGTH: Duration = Duration::from_secs(5);
const REQUIRED: usize = 10;
/// libwebrtc robust_throughput_estimator.cc: kMaxReorderingTime, and the least length of a window in
/// `bitrate`
const CLOCK_STEP: Duration = Duration::from_secs(1);
const LEAST_S: f64 = 1e-3;

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    sent: Time,
    arrived: Time,
    bytes: u64,
}

/// The estimate of the receiver's rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Throughput {
    /// In order of arrival.
    window: VecDeque<Arrival>,
    /// When the newest of those that left the window was sent.
    left_sent: Time,
}

impl Throughput {
    /// Returns the estimate in bit/s, once there is one.
    pub(super) fn bps(&self) -> Option<f64> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        if self.window.len() < REQUIRED {
            return None;
        }
        let [mut longest, mut second] = [Duration::ZERO; 2];
        for (before, after) in self.window.iter().zip(self.window.iter().skip(1)) {
            let gap = after.arrived.since(before.arrived);
            second = second.max(gap.min(longest));
            longest = longest.max(gap);
        }
        let length = last.arrived.since(first.arrived).saturating_sub(longest) + second;
        let bytes = self.window.iter().skip(1).map(|packet| packet.bytes).sum::<u64>();
        let arrived_bps = rate_bps(bytes, length);
        Some(self.sent_bps().map_or(arrived_bps, |sent_bps| sent_bps.min(arrived_bps)))
    }

    /// The rate at which the packets of the window were sent; none if too few were sent in order to tell.
    fn sent_bps(&self) -> Option<f64> {
        let in_order = || self.window.iter().filter(|packet| packet.sent >= self.left_sent);
        let first = in_order().map(|packet| packet.sent).min()?;
        let last = in_order().max_by_key(|packet| packet.sent)?;
        let bytes = in_order().map(|packet| packet.bytes).sum::<u64>() - last.bytes;
        (in_order().count() >= REQUIRED).then(|| rate_bps(bytes, last.sent.since(first)))
    }

    /// Takes a packet of `size` bytes of payload that was sent at `sent` and arrived at `arrived` by the
    /// receiver's clock.
    pub(super) fn add(&mut self, sent: Time, arrived: Time, size: Bytes) {
        if self.window.back().is_some_and(|last| last.arrived.since(arrived) > CLOCK_STEP) {
            *self = Throughput::default();
        }
        let later = self.window.iter().rev().take_while(|packet| packet.arrived > arrived).count();
        let packet = Arrival { sent, arrived, bytes: size.0 };
        self.window.insert(self.window.len() - later, packet);
        while let Some(first) = self.window.front().copied().filter(|first| self.is_outside(*first)) {
            self.left_sent = self.left_sent.max(first.sent);
            self.window.pop_front();
        }
    }

    /// Whether the window does without its first packet.
    fn is_outside(&self, first: Arrival) -> bool {
        let length = self.window.back().map_or(Duration::ZERO, |last| last.arrived.since(first.arrived));
        self.window.len() > MOST_PACKETS
            || length > MOST_LENGTH
            || (self.window.len() > PACKETS && length > LENGTH)
    }
}

fn rate_bps(bytes: u64, length: Duration) -> f64 {
    8.0 * bytes as f64 / length.as_secs_f64().max(LEAST_S)
}
