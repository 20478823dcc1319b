//! The delay profile: which delay goes with which window (zaki15 section 4.2).
//!
//! Each window that was used has an average of the delays that packets sent under it met. Once a second a
//! smooth curve is laid through these points: a penalised cubic regression spline on equidistant knots
//! (Eilers and Marx, "Flexible smoothing with B-splines and penalties", 1996), whose coefficients c solve the
//! banded system
//!
//! ```text
//! (B'B + lambda D'D) c = B'y      B: cubic B-splines at the windows, D: second differences, y: delays
//! lambda = 10^rho max diag(B'B) / max diag(D'D)
//! ```

use alloc::vec;
use alloc::vec::Vec;

/// Weight of the old average when a window's delay is met again (Verus `verus_server.cpp`: ewma 0.875).
const MEMORY: f32 = 0.875;
/// Windows between two knots (`verus_server.cpp`: N = 15), and most knots.
const SPACING: usize = 15;
const MOST_PIECES: usize = 64;
/// Fewest windows that make a curve (`verus_server.cpp`).
const FEWEST: usize = 5;
/// Largest window remembered, packets (`verus.hpp`: MAX_W_DELAY_CURVE).
const MOST_WINDOWS: usize = 40_000;
/// How far the curve is continued, as a multiple of the largest window met (D6).
const CONTINUED: f64 = 2.0;
/// Cubic splines.
const ORDER: usize = 4;

/// Points, and the curve through them.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    /// Mean delay for each window in milliseconds; negative where there is none.
    points: Vec<f32>,
    curve: Option<Curve>,
}

#[derive(Clone, Debug, Default)]
struct Curve {
    /// Delay at each window from 0 to the largest, and the largest so far.
    delays: Vec<f32>,
    peaks: Vec<f32>,
    /// Slope at the end, along which the curve goes on.
    slope: f32,
}

impl Profile {
    /// A packet sent under `window` met `delay_ms`.
    pub(super) fn record(&mut self, window: u64, delay_ms: f64) {
        let Ok(window) = usize::try_from(window) else { return };
        if window >= MOST_WINDOWS {
            return;
        }
        if window >= self.points.len() {
            self.points.resize(window + 1, -1.0);
        }
        let point = &mut self.points[window];
        let delay = delay_ms as f32;
        *point = if *point < 0.0 { delay } else { MEMORY * *point + (1.0 - MEMORY) * delay };
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.points.clear();
        self.curve = None;
    }

    /// Forgets the points at `window` and beyond.
    pub(super) fn truncate(&mut self, window: u64) {
        self.points.truncate(usize::try_from(window).unwrap_or(usize::MAX));
    }

    pub(super) fn has_curve(&self) -> bool {
        self.curve.is_some()
    }

    /// Lays the curve anew. Fails where the points are too few.
    pub(super) fn refresh(&mut self, rho: f64) -> bool {
        let Some(last) = self.points.iter().rposition(|delay| *delay >= 0.0) else { return false };
        let known = self.points.iter().filter(|delay| **delay >= 0.0).count();
        if last < FEWEST || known < 2 {
            return false;
        }
        let pieces = (last / SPACING).clamp(FEWEST, MOST_PIECES);
        let spline = Spline::fit(&self.points[..=last], pieces, rho);
        let curve = self.curve.get_or_insert_with(Curve::default);
        curve.delays.clear();
        curve.delays.extend((0..=last).map(|window| spline.at(window as f64) as f32));
        curve.peaks.clear();
        let mut peak = f32::MIN;
        // A window of one is the least there is: what the curve says of less is of no use.
        curve.peaks.extend(curve.delays.iter().enumerate().map(|(window, delay)| {
            if window >= 2 {
                peak = peak.max(*delay);
            }
            peak
        }));
        curve.slope = spline.end_slope() as f32;
        true
    }

    /// The largest window whose delay stays at or below `delay_ms`, below the first that exceeds it. None
    /// where the curve never exceeds it.
    pub(super) fn window_for(&self, delay_ms: f64) -> Option<f64> {
        let delay = delay_ms as f32;
        let Some(curve) = &self.curve else {
            let first = self.points.iter().skip(2).position(|point| *point > delay)?;
            return Some((first + 1) as f64);
        };
        let first = curve.peaks.partition_point(|peak| *peak <= delay);
        if first < curve.peaks.len() {
            return Some((first.max(2) - 1) as f64);
        }
        // verus_server.cpp: no window up to the largest exceeds the delay.
        if curve.slope <= 0.0 {
            return None;
        }
        let last = (curve.delays.len() - 1) as f64;
        let beyond = f64::from((delay - curve.delays[last as usize]) / curve.slope);
        Some(libm::floor((last + beyond).clamp(1.0, last * CONTINUED)))
    }

    /// The delay that goes with a window, milliseconds.
    pub(super) fn delay_for(&self, window: f64) -> Option<f64> {
        let index = window.max(0.0) as usize;
        let Some(curve) = &self.curve else {
            let known = self.points.get(..=index.min(self.points.len().checked_sub(1)?))?;
            return known.iter().rev().find(|delay| **delay >= 0.0).map(|delay| f64::from(*delay));
        };
        let last = curve.delays.len() - 1;
        let delay = match curve.delays.get(index) {
            Some(delay) => *delay,
            None => curve.delays[last] + curve.slope * (window as f32 - last as f32),
        };
        Some(f64::from(delay))
    }
}

/// A cubic spline on equidistant knots from 1 to `last`.
struct Spline {
    first: f64,
    step: f64,
    pieces: usize,
    coefficients: Vec<f64>,
}

/// The values of the four cubic B-splines that are not zero at `t` of a piece, 0 <= t <= 1.
fn basis(t: f64) -> [f64; ORDER] {
    let s = 1.0 - t;
    [
        s * s * s / 6.0,
        (3.0 * t * t * t - 6.0 * t * t + 4.0) / 6.0,
        (3.0 * s * s * s - 6.0 * s * s + 4.0) / 6.0,
        t * t * t / 6.0,
    ]
}

impl Spline {
    fn fit(points: &[f32], pieces: usize, rho: f64) -> Self {
        let last = (points.len() - 1) as f64;
        let mut spline = Spline {
            first: 1.0,
            step: (last - 1.0) / pieces as f64,
            pieces,
            coefficients: vec![0.0; pieces + ORDER - 1],
        };
        let size = spline.coefficients.len();
        // The lower half of the symmetric matrix, by distance from the diagonal.
        let mut matrix = vec![[0.0; ORDER]; size];
        let mut right = vec![0.0; size];
        for (window, delay) in points.iter().enumerate().skip(1).filter(|(_, delay)| **delay >= 0.0) {
            let (piece, values) = spline.locate(window as f64);
            for (i, value) in values.iter().enumerate() {
                right[piece + i] += value * f64::from(*delay);
                for (j, other) in values.iter().enumerate().take(i + 1) {
                    matrix[piece + i][i - j] += value * other;
                }
            }
        }
        let most = matrix.iter().map(|row| row[0]).fold(0.0, f64::max);
        // The diagonal of D'D is 1 + 4 + 1 where it is largest.
        let lambda = libm::pow(10.0, rho) * most / 6.0;
        const SECOND: [f64; 3] = [1.0, -2.0, 1.0];
        for start in 0..size - 2 {
            for i in 0..3 {
                for j in 0..=i {
                    matrix[start + i][i - j] += lambda * SECOND[i] * SECOND[j];
                }
            }
        }
        solve(&mut matrix, &mut right);
        spline.coefficients = right;
        spline
    }

    /// The first coefficient that matters at `x`, and the weights of the four.
    fn locate(&self, x: f64) -> (usize, [f64; ORDER]) {
        let place = ((x - self.first) / self.step).clamp(0.0, self.pieces as f64);
        let piece = (place as usize).min(self.pieces - 1);
        (piece, basis(place - piece as f64))
    }

    fn at(&self, x: f64) -> f64 {
        let (piece, values) = self.locate(x);
        values.iter().zip(&self.coefficients[piece..]).map(|(value, c)| value * c).sum()
    }

    fn end_slope(&self) -> f64 {
        // The derivative at the right end of the last piece.
        let c = &self.coefficients[self.pieces - 1..];
        (c[3] - c[1]) / (2.0 * self.step)
    }
}

/// Solves a symmetric positive definite system of half-bandwidth three in place, by Cholesky's decomposition.
fn solve(matrix: &mut [[f64; ORDER]], right: &mut [f64]) {
    let size = right.len();
    for i in 0..size {
        for j in i.saturating_sub(ORDER - 1)..=i {
            let mut sum = matrix[i][i - j];
            for k in i.saturating_sub(ORDER - 1)..j {
                if j - k < ORDER {
                    sum -= matrix[i][i - k] * matrix[j][j - k];
                }
            }
            matrix[i][i - j] = if i == j { libm::sqrt(sum.max(1e-12)) } else { sum / matrix[j][0] };
        }
    }
    for i in 0..size {
        for k in i.saturating_sub(ORDER - 1)..i {
            right[i] -= matrix[i][i - k] * right[k];
        }
        right[i] /= matrix[i][0];
    }
    for i in (0..size).rev() {
        for k in i + 1..(i + ORDER).min(size) {
            right[i] -= matrix[k][k - i] * right[k];
        }
        right[i] /= matrix[i][0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(delay: impl Fn(u64) -> f64, windows: impl Iterator<Item = u64>) -> Profile {
        let mut profile = Profile::default();
        for window in windows {
            profile.record(window, delay(window));
        }
        profile
    }

    #[test]
    fn a_straight_line_is_met_exactly_and_continued() {
        let mut line = profile(|w| 50.0 + 2.0 * w as f64, 1..=120);
        assert!(line.refresh(2.0));
        for window in [1, 17, 60, 119, 120, 200] {
            let delay = line.delay_for(window as f64).unwrap();
            assert!((delay - 50.0 - 2.0 * window as f64).abs() < 0.01, "{window}: {delay}");
        }
        assert_eq!(line.window_for(150.5), Some(50.0));
        assert_eq!(line.window_for(450.5), Some(200.0));
        assert_eq!(line.window_for(10.0), Some(1.0));
    }

    #[test]
    fn gaps_are_bridged_and_noise_is_smoothed() {
        let noisy = |w: u64| 50.0 + 1.5 * w as f64 + if w.is_multiple_of(2) { 8.0 } else { -8.0 };
        let mut profile = profile(noisy, (1..=150).filter(|w| !(40..60).contains(w)));
        assert!(profile.refresh(2.0));
        for window in [10, 50, 100, 140] {
            let delay = profile.delay_for(window as f64).unwrap();
            assert!((delay - 50.0 - 1.5 * window as f64).abs() < 3.0, "{window}: {delay}");
        }
    }

    /// zaki15 fig. 5: flat until the pipe is full, then rising; the curve keeps the shape when it is not
    /// stiff.
    #[test]
    fn the_bend_of_a_full_pipe_is_kept_by_a_soft_curve() {
        let bend = |w: u64| 50.0 + (w as f64 - 100.0).max(0.0);
        let mut profile = profile(bend, 1..=300);
        assert!(profile.refresh(-3.0));
        for window in [20, 100, 200, 300] {
            let delay = profile.delay_for(window as f64).unwrap();
            assert!((delay - bend(window)).abs() < 4.0, "{window}: {delay}");
        }
    }

    #[test]
    fn a_falling_curve_has_no_window_for_more_delay() {
        let mut falling = profile(|w| 300.0 - w as f64, 1..=100);
        assert!(falling.refresh(2.0));
        assert_eq!(falling.window_for(400.0), None);
    }

    #[test]
    fn too_few_points_make_no_curve() {
        assert!(!profile(|_| 50.0, 1..=4).refresh(2.0));
        assert!(!Profile::default().refresh(2.0));
    }

    #[test]
    fn repeated_delays_are_averaged() {
        let mut profile = Profile::default();
        profile.record(3, 100.0);
        profile.record(3, 180.0);
        assert_eq!(profile.delay_for(3.0), Some(110.0));
        assert_eq!(profile.window_for(105.0), Some(2.0));
    }

    /// Against the same normal equations solved densely.
    #[test]
    fn the_banded_solution_is_the_dense_one() {
        let mut matrix = std::vec![[0.0; ORDER]; 9];
        for (i, row) in matrix.iter_mut().enumerate() {
            *row = [6.0 + i as f64 * 0.1, -1.0, 0.4, 0.2];
            row.iter_mut().skip(i + 1).for_each(|entry| *entry = 0.0);
        }
        let dense: Vec<Vec<f64>> = (0..9)
            .map(|i: usize| {
                (0..9_usize)
                    .map(|j| {
                        let (high, low) = (i.max(j), i.min(j));
                        if high - low < ORDER { matrix[high][high - low] } else { 0.0 }
                    })
                    .collect()
            })
            .collect();
        let expected: Vec<f64> = (0..9).map(|i| f64::from(i) - 3.0).collect();
        let mut right: Vec<f64> =
            dense.iter().map(|row| row.iter().zip(&expected).map(|(a, x)| a * x).sum()).collect();
        solve(&mut matrix, &mut right);
        for (got, want) in right.iter().zip(&expected) {
            assert!((got - want).abs() < 1e-9, "{right:?}");
        }
    }
}
