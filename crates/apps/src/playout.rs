//! When frames are shown: when they arrive, or when a jitter buffer lets them go (Ramjee, Kurose, Towsley and
//! Schulzrinne, Adaptive Playout Mechanisms for Packetized Audio Applications, INFOCOM 1994).
//!
//! ```text
//! d = a d + (1 - a) n,   v = a v + (1 - a) |d - n|          ramjee94, algorithm 1
//! a = min(0.998002, 1 - 1/i) for frame i                    D3
//! shown at t + d + 4 v, or when it arrives if that is later
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t, n | - | time | - | a frame's capture, and how long it took |
//! | a | `WEIGHT` | 1 | 0.998002 | ramjee94 |
//! | d, v | `delay_s`, `variation_s` | s | 0 | ramjee94 |
//!
//! Deviations: D1 it adapts with every frame, where the paper does between talkspurts: video has none. D2 no
//! frame waits beyond the deadline of the call, nor is one shown before the frame that precedes it. D3 the
//! first 500 frames are averaged alike. The paper's filter starts from the first frame, and at the start of a
//! call that one is late: it would be remembered for 17 s.

use brakelight_core::time::{Duration, Time};

/// ramjee94, alpha
const WEIGHT: f64 = 0.998_002;
/// ramjee94: how many variations beyond the mean delay a frame may take.
const VARIATIONS: f64 = 4.0;

/// A jitter buffer, by what it does to times.
#[derive(Clone, Debug, Default)]
pub struct Playout {
    frames: u64,
    delay_s: f64,
    variation_s: f64,
    shown_at: Time,
}

impl Playout {
    /// Returns when a frame taken at `taken_at` that arrives at `now` is shown. Call it for each frame, in
    /// order.
    pub fn show_at(&mut self, taken_at: Time, now: Time, deadline: Duration) -> Time {
        let taken_s = now.since(taken_at).as_secs_f64();
        self.frames += 1;
        let weight = WEIGHT.min(1.0 - 1.0 / self.frames as f64);
        self.delay_s = weight * self.delay_s + (1.0 - weight) * taken_s;
        self.variation_s = weight * self.variation_s + (1.0 - weight) * (self.delay_s - taken_s).abs();
        let planned = Duration::from_secs_f64(self.delay_s + VARIATIONS * self.variation_s).min(deadline);
        self.shown_at = self.shown_at.max(now).max(taken_at + planned);
        self.shown_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(400);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn frames_without_jitter_are_shown_when_they_arrive() {
        let mut playout = Playout::default();
        for frame in 0..100 {
            let taken_at = ms(33 * frame);
            let arrives_at = taken_at + Duration::from_millis(50);
            let shown_at = playout.show_at(taken_at, arrives_at, DEADLINE);
            assert!(shown_at.since(arrives_at) < Duration::from_micros(1), "{shown_at:?}");
        }
    }

    /// Delays of 40 and 60 ms in turn: in the long run d is 50 ms and v 10 ms, so frames are shown after
    /// 90 ms.
    #[test]
    fn jitter_makes_frames_wait_for_four_variations() {
        let mut playout = Playout::default();
        let mut shown_at = Time::ZERO;
        for frame in 0..10_000_u64 {
            let taken_at = ms(33 * frame);
            let taken = Duration::from_millis(if frame % 2 == 0 { 40 } else { 60 });
            shown_at = playout.show_at(taken_at, taken_at + taken, DEADLINE);
        }
        let waited_ms = shown_at.since(ms(33 * 9_999)).as_millis_f64();
        assert!((waited_ms - 90.0).abs() < 0.1, "{waited_ms}");
    }

    /// 300 ms once, then 50 ms: after a hundred frames d is 52.5 ms.
    #[test]
    fn the_first_frame_is_soon_forgotten() {
        let mut playout = Playout::default();
        for frame in 0..100 {
            let taken = Duration::from_millis(if frame == 0 { 300 } else { 50 });
            playout.show_at(ms(33 * frame), ms(33 * frame) + taken, DEADLINE);
        }
        assert!((playout.delay_s - 0.0525).abs() < 1e-9, "{}", playout.delay_s);
    }

    #[test]
    fn none_waits_beyond_the_deadline_nor_overtakes() {
        let mut playout = Playout::default();
        playout.show_at(ms(0), ms(50), Duration::from_millis(60));
        for frame in 1..2_000 {
            let taken = Duration::from_millis(if frame % 2 == 0 { 10 } else { 60 });
            let shown_at = playout.show_at(ms(33 * frame), ms(33 * frame) + taken, Duration::from_millis(60));
            assert!(shown_at.since(ms(33 * frame)) <= Duration::from_millis(60));
        }
        let before = playout.show_at(ms(99_000), ms(99_300), DEADLINE);
        assert_eq!(playout.show_at(ms(99_033), ms(99_300), DEADLINE), before);
    }
}
