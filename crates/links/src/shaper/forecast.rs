//! A forecast of what a link carries: the mean of `abc-adaptive` (docs/abc-adaptive.md), over bins that the
//! caller closes.
//!
//! ```text
//! w      windows of 1, 2, 4, ... bins, no longer than four loop delays
//! E_w    mean |carried in tau - what w said of it one tau before|, over about half a second
//! mu     = sum(E_w^-4 rate_w) / sum(E_w^-4)
//! e      = min(E_w), in bytes
//! ```

use alloc::boxed::Box;

/// Bins that are remembered.
const HISTORY: usize = 1024;
const WINDOWS: usize = 9;
/// The longest window, in loop delays: docs/abc-adaptive.md.
const LONGEST_WINDOW: usize = 4;
/// The time over which errors are averaged, in seconds: docs/abc-adaptive.md.
const ERROR_TIME_S: f64 = 0.5;
/// What is added to the errors, in bytes, so that none is zero.
const LEAST_ERROR: f64 = 1.0;

/// A forecast by several windows, each by how well it has forecast.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    bin_s: f64,
    /// Bytes carried up to the end of each bin, by its number modulo [`HISTORY`].
    carried: Box<[f64; HISTORY]>,
    /// The number of the last bin that was closed.
    last: u64,
    errors: [f64; WINDOWS],
    mu: f64,
    error: f64,
}

impl Forecast {
    /// Returns one of a link that has always carried `mu` bytes/s, in bins of `bin_s` seconds.
    pub(super) fn new(bin_s: f64, mu: f64) -> Self {
        let mut forecast = Forecast {
            bin_s,
            carried: Box::new([0.0; HISTORY]),
            last: HISTORY as u64,
            errors: [0.0; WINDOWS],
            mu,
            error: 0.0,
        };
        for bin in 0..HISTORY {
            forecast.carried[bin] = bin as f64 * bin_s * mu;
        }
        forecast.last = HISTORY as u64 - 1;
        forecast
    }

    /// Returns the forecast rate, in bytes/s.
    pub(super) fn mu(&self) -> f64 {
        self.mu
    }

    /// Returns the mean absolute error of the best window over one loop delay, in bytes.
    pub(super) fn error(&self) -> f64 {
        self.error
    }

    /// Closes a bin in which the link carried `bytes`, where the loop delay is `tau_s`.
    pub(super) fn close(&mut self, bytes: f64, tau_s: f64) {
        let before = self.carried(self.last);
        self.last += 1;
        self.carried[(self.last % HISTORY as u64) as usize] = before + bytes;
        let tau = ((tau_s / self.bin_s + 0.5) as usize).clamp(1, HISTORY / 8);
        let windows =
            || (0..WINDOWS).map(|index| 1 << index).take_while(|window| *window <= LONGEST_WINDOW * tau);
        let actual = self.within(self.last, tau);
        let then = self.last - tau as u64;
        let gain = (self.bin_s / ERROR_TIME_S).min(1.0);
        let mut least = f64::INFINITY;
        for (index, window) in windows().enumerate() {
            let said = self.within(then, window) * tau as f64 / window as f64;
            let off = if actual < said { said - actual } else { actual - said };
            self.errors[index] += gain * (off - self.errors[index]);
            least = least.min(self.errors[index]);
        }
        let (mut sum, mut weights) = (0.0, 0.0);
        for (window, error) in windows().zip(self.errors) {
            let ratio = (least + LEAST_ERROR) / (error + LEAST_ERROR);
            let weight = ratio * ratio * ratio * ratio;
            sum += weight * self.within(self.last, window) / (window as f64 * self.bin_s);
            weights += weight;
        }
        (self.mu, self.error) = (sum / weights, least);
    }

    fn carried(&self, bin: u64) -> f64 {
        self.carried[(bin % HISTORY as u64) as usize]
    }

    /// Bytes carried in so many bins up to the end of `last`.
    fn within(&self, last: u64, bins: usize) -> f64 {
        self.carried(last) - self.carried(last - bins as u64)
    }
}
