//! How long what is seen of a link lasts.
//!
//! ```text
//! rho(lag)  : the correlation of z that Q maps to the recorded one of rates, away from outages: cario97
//! path      : the same of the variance of the rates' means from path to path
//! memory    : least squares over rho at lags up to a quarter of the length, or half of a path; every three
//!             correlation times of a grid, shares not negative and at most 1 in sum
//! echo      : the one of 0, -0.1, ... -0.6 that leaves the least squares at the shortest lags
//! ```
//!
//! Correlation is matched in rates and not in their normal scores: on a plateau scores are all noise, and
//! what counts is how long a dip lasts.

use brakelight_core::time::Duration;

use super::super::super::measured::{Memory, Paths, at_share};
use super::super::rounded;
use super::near;

/// Correlation times that are tried, in bins.
const TIMES: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// The share of the path, the memory of what is left, and the echo of what is new in each bin.
pub(super) fn remembered(
    values: &[Option<f64>],
    bin: Duration,
    paths: Option<&Paths>,
    knots: &[f64],
) -> (f64, Vec<Memory>, f64) {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let variance =
        known.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / known.len() as f64;
    let powers = Powers::of(knots);
    let number = |index: usize| paths.map_or(0, |paths| paths.number(bin * index as u64) as usize);
    let mut sums = vec![(0.0, 0.0); number(values.len()) + 1];
    for (index, value) in values.iter().enumerate() {
        if let Some(value) = value {
            sums[number(index)].0 += value - mean;
            sums[number(index)].1 += 1.0;
        }
    }
    let between: f64 = sums.iter().map(|(sum, n)| sum * sum / f64::max(*n, 1.0)).sum();
    let share = match paths {
        Some(_) => rounded(powers.behind(between / known.len() as f64 / variance), 100.0),
        None => 0.0,
    };
    // Of pairs on the same path, which is all there are where it does not change.
    let correlation = |lag: usize| {
        let (mut sum, mut n) = (0.0, 0.0);
        for (index, (a, b)) in values.iter().zip(&values[lag..]).enumerate() {
            if let (Some(a), Some(b)) = (a, b)
                && number(index) == number(index + lag)
            {
                sum += (a - mean) * (b - mean);
                n += 1.0;
            }
        }
        powers.behind(sum / f64::max(n, 1.0) / variance) - share
    };
    let most = match paths {
        Some(paths) => (paths.every.as_nanos() / bin.as_nanos() / 2) as usize,
        None => values.len() / 4,
    };
    let mut lags: Vec<usize> = Vec::new();
    let mut lag = 1.0;
    while (lag as usize) < most {
        lags.push(lag as usize);
        lag = f64::max(lag + 1.0, lag * 1.3);
    }
    let acf: Vec<f64> = lags.iter().map(|lag| correlation(*lag)).collect();
    let times: Vec<f64> = TIMES.into_iter().filter(|time| *time <= most as f64).collect();
    let mut echo = 0.0;
    let (mut shares, mut found) = ([0.0; 3], [1.0; 3]);
    // Which noise is left depends on the memory, and the memory on the noise; they settle at once.
    for _ in 0..3 {
        let left = 1.0 - share - shares.iter().sum::<f64>();
        let without: Vec<f64> =
            lags.iter().zip(&acf).map(|(lag, rho)| rho - left * echoed(echo, *lag)).collect();
        (found, shares) = nearest(&times, &lags, &without, 1.0 - share);
        let left = 1.0 - share - shares.iter().sum::<f64>();
        let off = |echo: f64| -> f64 {
            let squares = lags.iter().zip(&acf).take(4).map(|(lag, rho)| {
                let slow = |(time, part): (&f64, &f64)| part * libm::exp(-(*lag as f64) / time);
                rho - found.iter().zip(&shares).map(slow).sum::<f64>() - left * echoed(echo, *lag)
            });
            squares.map(|off| off * off).sum()
        };
        let tenths = (0..=6).map(|tenth| 0.0 - f64::from(tenth) / 10.0);
        echo = tenths.min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(0.0);
    }
    let part = |(time, part): (&f64, &f64)| Memory {
        share: libm::floor(part * 100.0) / 100.0,
        lasts: near(time * bin.as_secs_f64()),
    };
    let memory = found.iter().zip(&shares).map(part).filter(|part| part.share > 0.0).collect();
    (share, memory, echo)
}

/// The correlation of noise with itself `lag` bins later.
fn echoed(echo: f64, lag: usize) -> f64 {
    if lag < 12 { libm::pow(echo, lag as f64) } else { 0.0 }
}

/// The three correlation times that come nearest, and their shares.
fn nearest(times: &[f64], lags: &[usize], acf: &[f64], most: f64) -> ([f64; 3], [f64; 3]) {
    let mut best = (f64::INFINITY, [1.0; 3], [0.0; 3]);
    for (i, a) in times.iter().enumerate() {
        for (j, b) in times.iter().enumerate().skip(i + 1) {
            for c in &times[j + 1..] {
                let times = [*a, *b, *c];
                let (off, shares) = least_squares(lags, acf, times, most);
                if off < best.0 {
                    best = (off, times, shares);
                }
            }
        }
    }
    (best.1, best.2)
}

/// How the correlation of two normal values becomes that of what they are mapped to:
/// sum_k c_k^2 rho^k / sum_k c_k^2, with c_k the coefficient of Q(Phi(z)) on the k-th Hermite polynomial.
// cario97 section 3
pub(super) struct Powers([f64; 16]);

impl Powers {
    pub(super) fn of(knots: &[f64]) -> Self {
        let mut coefficients = [0.0; 16];
        for step in -500..=500 {
            let z = f64::from(step) * 0.01;
            let share = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
            let weight = libm::exp(-z * z / 2.0) * at_share(share, knots);
            let (mut last, mut this) = (1.0, z);
            for (k, coefficient) in (1..).zip(&mut coefficients) {
                *coefficient += weight * this;
                let k = f64::from(k);
                (last, this) = (this, (z * this - libm::sqrt(k) * last) / libm::sqrt(k + 1.0));
            }
        }
        let sum: f64 = coefficients.iter().map(|c| c * c).sum();
        Powers(coefficients.map(|c| c * c / sum.max(f64::MIN_POSITIVE)))
    }

    /// The correlation of the normal values behind one of what they are mapped to; negative ones stay as they
    /// are.
    pub(super) fn behind(&self, correlation: f64) -> f64 {
        if correlation <= 0.0 {
            return correlation;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            let mapped = self.0.iter().rev().fold(0.0, |sum, c| (sum + c) * middle);
            if mapped < correlation { low = middle } else { high = middle }
        }
        low
    }
}

/// Shares of three correlation times, at most `most` in sum, by coordinates in turn, and the sum of squares
/// they leave.
fn least_squares(lags: &[usize], acf: &[f64], times: [f64; 3], most: f64) -> (f64, [f64; 3]) {
    let curve = |time: f64| lags.iter().map(move |lag| libm::exp(-(*lag as f64) / time));
    let curves = times.map(|time| curve(time).collect::<Vec<f64>>());
    let mut shares = [0.0_f64; 3];
    let rest = |shares: &[f64; 3], k: usize| acf[k] - (0..3).map(|i| shares[i] * curves[i][k]).sum::<f64>();
    for _ in 0..200 {
        for i in 0..3 {
            let (mut up, mut down) = (0.0, 1e-12);
            for (k, value) in curves[i].iter().enumerate() {
                up += value * (rest(&shares, k) + shares[i] * value);
                down += value * value;
            }
            let others: f64 = shares.iter().sum::<f64>() - shares[i];
            shares[i] = (up / down).clamp(0.0, (most - others).max(0.0));
        }
    }
    ((0..lags.len()).map(|k| rest(&shares, k) * rest(&shares, k)).sum(), shares)
}
