//! The sizes of a call's frames: equal, or those of the statistical model of RFC 8593.
//!
//! ```text
//! B0 = R / 8 fps
//! steady:       B = B0, and R follows at once
//! statistical:  R follows no sooner than tau after its last change                    rfc8593 5.1
//!               a change by more than a half, or a key frame that is due, begins a burst of K_d frames:
//!               first K_B, then B0 (K_d - K_B/B0) / (K_d - 1), so that B0 is their mean
//!               (at least a fifth of B0)                                     rfc8593 5.2, syncodecs
//!               so does a request for a key frame, unless another came in the 300 ms before      libwebrtc
//!               else B = B0 (1 + x), x of Laplace's distribution             rfc8593 5.3
//!               with mean 0 and scale SCALE_B
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `rate_bps` | bit/s | - | rfc8593 5.4: within the encoder's range |
//! | tau | `REACTION` | time | 200 ms | rfc8593 table 1, tau_v |
//! | K_d | `BURST_FRAMES` | frames | 8 | rfc8593 table 1 |
//! | K_B | `key_frame` | B | 13,500 | rfc8593 table 1 |
//! | SCALE_B | `SCALE` | 1 | 0.15 | rfc8593 table 1 |
//!
//! Deviations: D1 the camera's beat is exact, where the RFC lets the time between frames vary by SCALE_t.
//! D2 what a change must be to begin a burst is the authors' own (syncodecs, bigChangeRatio), as is the
//! fifth. D3 a key frame is never smaller than the frames beside it: K_B was measured at 1 Mbit/s.

use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use crate::traffic::Call as Config;

/// rfc8593 table 1, tau_v
const REACTION: Duration = Duration::from_millis(200);
/// rfc8593 table 1, K_d
const BURST_FRAMES: u32 = 8;
/// rfc8593 table 1, SCALE_B
const SCALE: f64 = 0.15;
/// syncodecs, bigChangeRatio
const JUMP: f64 = 0.5;
/// syncodecs, StatisticsCodec::nextPacketOrFrame
const LEAST_SHARE: f64 = 0.2;
/// libwebrtc encoder_rtcp_feedback.cc, kMinKeyframeSendIntervalMs
const REQUESTS: Duration = Duration::from_millis(300);

/// An encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    rate_bps: f64,
    changed_at: Option<Time>,
    key_at: Option<Time>,
    /// Frames left of a burst.
    burst: u32,
    /// Whether the next frame is to be a key frame, and when that was last asked for.
    is_key_due: bool,
    asked_at: Option<Time>,
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// Its size: at least one byte.
    pub size: Bytes,
    /// Whether it can be shown without the frames before it.
    pub is_key: bool,
}

impl Encoder {
    /// Returns an encoder that has not encoded a frame.
    pub fn new(config: Config) -> Self {
        Encoder {
            config,
            rate_bps: 0.0,
            changed_at: None,
            key_at: None,
            burst: 0,
            is_key_due: true,
            asked_at: None,
        }
    }

    /// Has the next frame be a key frame, unless one was asked for just before.
    pub fn request_key(&mut self, now: Time) {
        if self.asked_at.is_none_or(|at| now.since(at) >= REQUESTS) {
            self.asked_at = Some(now);
            self.is_key_due = true;
        }
    }

    /// Returns the frame taken at `now`, where the controller and the encoder's range allow
    /// `wanted`.
    pub fn encode(&mut self, now: Time, wanted: Rate, random: &mut Random) -> Encoded {
        let is_key_due = std::mem::take(&mut self.is_key_due);
        if !self.config.statistical {
            let size = Bytes((wanted.bps() / 8 / u64::from(self.config.fps)).max(1));
            return Encoded { size, is_key: is_key_due };
        }
        if self.changed_at.is_none_or(|at| now.since(at) >= REACTION) {
            let wanted_bps = wanted.as_bps_f64();
            if (wanted_bps - self.rate_bps).abs() > JUMP * self.rate_bps {
                self.burst = BURST_FRAMES;
            }
            if wanted_bps != self.rate_bps {
                self.changed_at = Some(now);
            }
            self.rate_bps = wanted_bps;
        }
        let interval = self.config.key_interval;
        if is_key_due || !interval.is_zero() && self.key_at.is_some_and(|at| now.since(at) >= interval) {
            self.burst = BURST_FRAMES;
        }
        let mean = self.rate_bps / 8.0 / f64::from(self.config.fps);
        let key = self.config.key_frame.as_f64().max(mean);
        let is_key = self.burst == BURST_FRAMES;
        let size = if is_key {
            self.key_at = Some(now);
            key
        } else if self.burst > 0 {
            let frames = f64::from(BURST_FRAMES);
            mean * ((frames - key / mean) / (frames - 1.0)).max(LEAST_SHARE)
        } else {
            // The difference of two exponential values is Laplace's.
            mean * (1.0 + SCALE * (random.exponential() - random.exponential()))
        };
        self.burst = self.burst.saturating_sub(1);
        Encoded { size: Bytes((size as u64).max(1)), is_key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FPS: u64 = 30;

    /// Sizes of `count` frames from frame `first` on, of a stream at `mbps`.
    fn sizes(encoder: &mut Encoder, random: &mut Random, first: u64, count: u64, mbps: f64) -> Vec<f64> {
        (first..first + count)
            .map(|frame| {
                let now = Time::from_nanos(frame * 1_000_000_000 / FPS);
                encoder.encode(now, Rate::from_bps_f64(mbps * 1e6), random).size.as_f64()
            })
            .collect()
    }

    fn statistical(config: Config) -> (Encoder, Random) {
        (Encoder::new(Config { statistical: true, ..config }), Random::stream(1, "encoder"))
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn a_steady_encoder_has_equal_frames_and_draws_nothing() {
        let mut random = Random::stream(1, "encoder");
        let sizes = sizes(&mut Encoder::new(Config::default()), &mut random, 0, 3, 1.2);
        assert_eq!(sizes, [5_000.0; 3]);
        assert_eq!(random.bits(), Random::stream(1, "encoder").bits());
    }

    /// rfc8593 5.2: 13.5 kB at first, then seven frames that make up for it.
    #[test]
    fn a_burst_keeps_the_mean() {
        let (mut encoder, mut random) = statistical(Config::default());
        let sizes = sizes(&mut encoder, &mut random, 0, 8, 1.2);
        assert_eq!(sizes[0], 13_500.0);
        // 5000 (8 - 2.7) / 7
        assert!(sizes[1..].iter().all(|&size| size == 3_785.0), "{sizes:?}");
        assert!((mean(&sizes) - 5_000.0).abs() < 1.0);
    }

    /// rfc8593 5.3: Laplace's distribution of scale b has a mean deviation of b, and its quartiles at b ln 2.
    #[test]
    fn frames_are_spread_as_laplace_says() {
        let (mut encoder, mut random) = statistical(Config::default());
        let mut sizes = sizes(&mut encoder, &mut random, 0, 60_008, 1.2).split_off(8);
        assert!((mean(&sizes) - 5_000.0).abs() < 15.0, "{}", mean(&sizes));
        let deviations: Vec<f64> = sizes.iter().map(|size| (size / 5_000.0 - 1.0).abs()).collect();
        assert!((mean(&deviations) - 0.15).abs() < 0.003, "{}", mean(&deviations));
        sizes.sort_by(f64::total_cmp);
        let quartile = 1.0 - sizes[15_000] / 5_000.0;
        assert!((quartile - 0.15 * 2.0_f64.ln()).abs() < 0.003, "{quartile}");
    }

    /// rfc8593 5.1 and 5.2
    #[test]
    fn the_rate_changes_every_200_ms_at_most_and_a_jump_is_a_key_frame() {
        let (mut encoder, mut random) = statistical(Config::default());
        sizes(&mut encoder, &mut random, 0, 30, 1.2);
        // A change by a third at 1 s, then one to a third, which waits for 1.2 s: six frames later.
        let sizes = sizes(&mut encoder, &mut random, 30, 1, 1.6);
        assert!(sizes[0] < 13_500.0 && encoder.burst == 0);
        let later: Vec<f64> = super::tests::sizes(&mut encoder, &mut random, 31, 14, 0.4);
        let key = later.iter().position(|&size| size == 13_500.0);
        assert_eq!(key, Some(5), "{later:?}");
        // 1667 B: the others would be 1667 (8 - 8.1) / 7, so they have a fifth.
        assert!(later[6..13].iter().all(|&size| size == 333.0), "{later:?}");
    }

    #[test]
    fn key_frames_come_at_their_interval_and_are_never_the_smallest() {
        let config = Config { key_interval: Duration::from_secs(2), ..Config::default() };
        let (mut encoder, mut random) = statistical(config);
        let frames = sizes(&mut encoder, &mut random, 0, 181, 1.2);
        let keys: Vec<usize> = (0..frames.len()).filter(|&frame| frames[frame] == 13_500.0).collect();
        assert_eq!(keys, [0, 60, 120, 180]);
        // 30 Mbit/s: 125 kB each.
        let (mut encoder, mut random) = statistical(Config::default());
        assert_eq!(sizes(&mut encoder, &mut random, 0, 8, 30.0), [125_000.0; 8]);
    }
}
