//! How good a call looks, by an opinion model of video telephony: no picture is needed, only how many bits
//! and frames of it are shown.
//!
//! ```text
//! of each second:  V = 1 + I exp(-(ln f - ln O)^2 / (2 D^2))         g1070, nothing lost within a frame
//!                  O = v1 + v2 b,  D = v6 + v7 b                     the best frame rate, and its weight
//!                  I = v3 - v3 / (1 + (b / v4)^v5)                   what the rate allows
//! V = 1 where nothing is shown
//! quality = the mean of V over the seconds of the call
//! ```
//!
//! | symbol | meaning | unit | value | source |
//! |---|---|---|---|---|
//! | f | frames shown in that second | 1/s | | |
//! | b | their bits | kbit/s | | |
//! | v1 to v7 | `V1` to `V7` | | provisional | g1070: H.264, 640 x 480 on a display of 9.2 inches |
//!
//! Deviations: D1 the size of the picture is the model's, whatever the rate: a browser takes a larger one
//! where it can. So calls can be compared, and what a viewer would say of one is not known. From 2 Mbit/s
//! on all have 4.2. D2 sound and delay, for which g1070 has terms of their own, are not in it. D3 the
//! recommendation was not at hand: formula and coefficients are as others give them (docs/references.md).
//! They differ in I, where one has b^v5 / v4. That is at most 0.09 more.

use brakelight_core::time::{Duration, Time};

const SECOND: Duration = Duration::from_secs(1);
const V1: f64 = 5.517;
const V2: f64 = 0.0129;
const V3: f64 = 3.459;
const V4: f64 = 178.53;
const V5: f64 = 1.02;
const V6: f64 = 1.15;
const V7: f64 = 0.000355;
/// The mark of what nobody can see.
const WORST: f64 = 1.0;

/// Returns the mark of one second in which `frames` frames of `bytes` bytes together are shown, 1 to 5.
fn mark(bytes: u64, frames: u32) -> f64 {
    if frames == 0 {
        return WORST;
    }
    let rate = bytes as f64 * 8e-3;
    let best = V1 + V2 * rate;
    let width = V6 + V7 * rate;
    let allowed = V3 - V3 / (1.0 + libm::pow(rate / V4, V5));
    let off = libm::log(f64::from(frames)) - libm::log(best);
    WORST + allowed * libm::exp(-off * off / (2.0 * width * width))
}

/// The mean mark of a call.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    /// When the second that is open began.
    from: Time,
    bytes: u64,
    frames: u32,
    marks: f64,
    seconds: u64,
}

impl Quality {
    /// Begins its first second at `now`.
    pub fn begin(&mut self, now: Time) {
        (self.from, self.bytes, self.frames) = (now, 0, 0);
    }

    /// Leaves out what is from `now` until `until`, and the second that is open.
    pub fn pause(&mut self, now: Time, until: Time) {
        self.close(now);
        self.begin(until);
    }

    /// A frame of `bytes` is shown at `now`, which is no earlier than the one before.
    pub fn show(&mut self, now: Time, bytes: u64) {
        self.close(now);
        self.bytes += bytes;
        self.frames += 1;
    }

    /// Closes the seconds that have ended by `now`.
    fn close(&mut self, now: Time) {
        let ended = now.since(self.from).as_nanos() / SECOND.as_nanos();
        if ended > 0 {
            self.marks += mark(self.bytes, self.frames) + WORST * (ended - 1) as f64;
            self.seconds += ended;
            self.begin(self.from + SECOND * ended);
        }
    }

    /// Returns the mean mark of the whole seconds until `now`, 1 to 5; none before the first has ended.
    pub fn mean(&self, now: Time) -> Option<f64> {
        let mut all = self.clone();
        all.close(now);
        (all.seconds > 0).then(|| all.marks / all.seconds as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_the_mark_of_the_model() {
        // By hand for 1000 kbit/s and 30 frames: O = 18.417, D = 1.505, (b / v4)^v5 = 5.7977, I = 2.9502,
        // (ln 30 - ln 18.417)^2 = 0.2381, over 2 D^2 = 4.530: 0.0526.
        assert!((mark(125_000, 30) - 3.799).abs() < 2e-3, "{}", mark(125_000, 30));
        // And for 150: O = 7.452, D = 1.20325, (b / v4)^v5 = 0.8373, I = 1.5763, 1.9396 / 2.8956 = 0.6698.
        assert!((mark(18_750, 30) - 1.807).abs() < 2e-3, "{}", mark(18_750, 30));
        assert_eq!((mark(0, 0), mark(0, 5)), (1.0, 1.0));
    }

    #[test]
    fn up_to_3_mbps_more_bits_are_never_worse() {
        let mut before = 0.0;
        for kilobyte in 0..370 {
            let mark = mark(1_000 * kilobyte, 30);
            assert!((1.0..=5.0).contains(&mark) && mark >= before, "{kilobyte} kB: {mark}");
            before = mark;
        }
    }

    #[test]
    fn a_second_without_a_frame_is_the_worst_and_one_that_is_open_does_not_count() {
        let mut quality = Quality::default();
        let at = |ms| Time::from_millis(ms);
        quality.begin(at(500));
        assert_eq!(quality.mean(at(1_499)), None);
        for frame in 0..30 {
            quality.show(at(510 + 33 * frame), 4_000);
        }
        let good = mark(120_000, 30);
        assert_eq!(quality.mean(at(1_500)), Some(good));
        // Two seconds of nothing, and a half.
        assert_eq!(quality.mean(at(4_000)), Some((good + 2.0) / 3.0));
        quality.show(at(3_600), 4_000);
        assert_eq!(quality.mean(at(4_000)), Some((good + 2.0) / 3.0));
        // A pause, in which nothing could be shown.
        quality.pause(at(4_000), at(60_000));
        assert_eq!(quality.mean(at(30_000)), Some((good + 2.0) / 3.0));
        assert_eq!(quality.mean(at(61_000)), Some((good + 3.0) / 4.0));
    }
}
