//! A rate over a sliding window of time: what passed in (t - T, t], over T.
//!
//! T divides even while the run is younger than T: a few packets are not a high rate (open-questions#X-5).
//!
//! Adding and asking cost O(1) amortised. A ring holds one entry per instant at which something passed, so a
//! burst is one entry; it stops growing once it holds the largest number of instants that ever fell in one
//! window.

use alloc::collections::VecDeque;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

/// Bytes that passed within the last `window`.
#[derive(Clone, Debug)]
pub struct SlidingRate {
    window: Duration,
    passed: VecDeque<Passed>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Passed {
    at: Time,
    bytes: u64,
}

impl SlidingRate {
    /// Returns the rate of a link that nothing has passed yet.
    ///
    /// # Panics
    /// If `window` is zero.
    pub fn new(window: Duration) -> Self {
        assert!(!window.is_zero(), "a rate needs a window");
        SlidingRate { window, passed: VecDeque::new(), bytes: 0 }
    }

    /// Returns T, the length of the window.
    pub fn window(&self) -> Duration {
        self.window
    }

    /// Changes T. A wider one does not bring back what a narrower one forgot.
    pub fn set_window(&mut self, window: Duration) {
        assert!(!window.is_zero(), "a rate needs a window");
        self.window = window;
    }

    /// `bytes` pass at `now`, which is no earlier than the last call's.
    #[inline]
    pub fn add(&mut self, now: Time, bytes: Bytes) {
        self.expire(now);
        self.bytes += bytes.0;
        match self.passed.back_mut() {
            Some(last) if last.at == now => last.bytes += bytes.0,
            _ => self.passed.push_back(Passed { at: now, bytes: bytes.0 }),
        }
    }

    /// Returns what passed in (now - T, now].
    pub fn bytes(&mut self, now: Time) -> Bytes {
        self.expire(now);
        Bytes(self.bytes)
    }

    /// Returns the same as a rate.
    pub fn rate(&mut self, now: Time) -> Rate {
        Rate::over(self.bytes(now), self.window)
    }

    #[inline]
    fn expire(&mut self, now: Time) {
        while let Some(first) = self.passed.front() {
            if now.since(first.at) < self.window {
                break;
            }
            self.bytes -= first.bytes;
            self.passed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
