//! Links as a queue sees them, for tests that call the queue themselves.

use brakelight_core::queue::LinkView;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

/// A link that always had the rate it is given, knows no future and left nothing unused. One opportunity
/// carries 1500 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub Rate);

impl LinkView for Fixed {
    fn capacity(&mut self, _window: Duration) -> Rate {
        self.0
    }
    fn unused(&mut self) -> Bytes {
        Bytes::ZERO
    }
    fn opportunity(&self) -> Bytes {
        Bytes(1500)
    }
    fn lookahead(&mut self, _ahead: Duration, _window: Duration) -> Option<Rate> {
        None
    }
}

/// A link of 12 Mbit/s that is out for the first 40 of every 200 ms, knows its future, and charges 4 bytes a
/// packet. A window of 100 ms or more sees 12 Mbit/s throughout.
#[derive(Clone, Copy, Debug)]
pub struct Outages {
    /// The time of the queue's call.
    pub now: Time,
    /// What passed unused since the last dequeue.
    pub unused: Bytes,
}

impl Outages {
    /// Its rate outside outages.
    pub const RATE: Rate = Rate::from_mbps(12);

    /// Returns the link at time zero, with nothing unused.
    pub fn new() -> Self {
        Outages { now: Time::ZERO, unused: Bytes::ZERO }
    }

    fn rate_at(&self, at: Time, window: Duration) -> Rate {
        let out = at.as_nanos() / 1_000_000 % 200 < 40;
        if out && window < Duration::from_millis(100) { Rate::ZERO } else { Self::RATE }
    }
}

impl Default for Outages {
    fn default() -> Self {
        Self::new()
    }
}

impl LinkView for Outages {
    fn capacity(&mut self, window: Duration) -> Rate {
        self.rate_at(self.now, window)
    }
    fn unused(&mut self) -> Bytes {
        self.unused
    }
    fn opportunity(&self) -> Bytes {
        Bytes(1504)
    }
    fn cost(&self, size: u32) -> Bytes {
        Bytes(u64::from(size) + 4)
    }
    fn lookahead(&mut self, ahead: Duration, window: Duration) -> Option<Rate> {
        Some(self.rate_at(self.now + ahead, window))
    }
}
