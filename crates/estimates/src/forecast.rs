//! A forecast of what a link carries, over bins of equal length (docs/abc-adaptive.md).
//!
//! ```text
//! w      windows of s, 2 s, 4 s, ... bins, no longer than four loop delays tau
//! E_w    mean |carried in tau - what w said of it one tau before|, over about half a second
//! mu     = sum(E_w^-4 rate_w) / sum(E_w^-4)
//! e      = min(E_w), in bytes
//! ```

use alloc::boxed::Box;

/// Bins that are remembered: the longest window and one loop delay.
pub const HISTORY: usize = 1024;
/// Windows, each twice the one before.
const WINDOWS: usize = 9;
/// The longest window, in loop delays.
const LONGEST_WINDOW: usize = 4;
/// The time over which errors are averaged, in seconds.
const ERROR_TIME_S: f64 = 0.5;
/// What is added to the errors, in bytes, so that none is zero.
const LEAST_ERROR: f64 = 1.0;

/// A mean over several windows, each weighted by how well it has forecast.
#[derive(Clone, Debug)]
pub struct Forecast {
    bin_s: f64,
    /// The shortest window, and the loop delay that counts at least for the longest, in bins.
    shortest: usize,
    least_tau: usize,
    /// Share of one bin in the mean errors.
    gain: f64,
    /// Bytes carried up to the end of each of the last bins, by their number modulo [`HISTORY`].
    carried: Box<[f64; HISTORY]>,
    errors: [f64; WINDOWS],
    mu: f64,
    error: f64,
}

impl Forecast {
    /// Returns one of bins of `bin_s` seconds, whose shortest window has `shortest` of them. The longest
    /// window is four loop delays, of `least_tau` bins at least.
    pub fn new(bin_s: f64, shortest: usize, least_tau: usize) -> Self {
        Forecast {
            bin_s,
            shortest,
            least_tau,
            gain: (bin_s / ERROR_TIME_S).min(1.0),
            carried: Box::new([0.0; HISTORY]),
            errors: [0.0; WINDOWS],
            mu: 0.0,
            error: 0.0,
        }
    }

    /// As if the link had carried `per_bin` bytes in each bin up to number `last`.
    pub fn assume(&mut self, last: u64, per_bin: f64) {
        for back in 0..HISTORY {
            self.carried[at(last.wrapping_sub(back as u64))] = -(back as f64) * per_bin;
        }
        self.mu = per_bin / self.bin_s;
    }

    /// Notes that the link carried `per_bin` bytes in each of so many bins from number `first` on, which
    /// follows the last one noted.
    pub fn note(&mut self, first: u64, per_bin: f64, bins: u64) {
        let before = self.carried[at(first.wrapping_sub(1))];
        let skipped = bins.saturating_sub(HISTORY as u64);
        for index in skipped..bins {
            self.carried[at(first + index)] = before + (index + 1) as f64 * per_bin;
        }
    }

    /// Holds what each window said one loop delay of `tau` bins before the end of bin `last` against what the
    /// link carried since.
    pub fn judge(&mut self, last: u64, tau: usize) {
        let actual = self.within(last, tau);
        let then = last.wrapping_sub(tau as u64);
        for (index, window) in self.windows(tau).enumerate() {
            let said = self.within(then, window) * tau as f64 / window as f64;
            let off = actual - said;
            let off = if off < 0.0 { -off } else { off };
            self.errors[index] += self.gain * (off - self.errors[index]);
        }
    }

    /// Forecasts from the end of bin `last` on, at a loop delay of `tau` bins.
    pub fn update(&mut self, last: u64, tau: usize) {
        let windows = || self.windows(tau).zip(self.errors);
        let least = windows().fold(f64::INFINITY, |least, (_, error)| least.min(error));
        let (mut sum, mut weights) = (0.0, 0.0);
        for (window, error) in windows() {
            let ratio = (least + LEAST_ERROR) / (error + LEAST_ERROR);
            let weight = ratio * ratio * ratio * ratio;
            sum += weight * self.within(last, window) / (window as f64 * self.bin_s);
            weights += weight;
        }
        (self.mu, self.error) = (sum / weights, least);
    }

    /// Returns the forecast rate mu, in bytes/s.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// Returns e, the mean absolute error of the best window over one loop delay, in bytes.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// Bytes carried in so many bins up to the end of `last`.
    fn within(&self, last: u64, bins: usize) -> f64 {
        self.carried[at(last)] - self.carried[at(last.wrapping_sub(bins as u64))]
    }

    /// The windows in use, in bins.
    fn windows(&self, tau: usize) -> impl Iterator<Item = usize> + use<> {
        let (shortest, longest) = (self.shortest, LONGEST_WINDOW * tau.max(self.least_tau));
        (0..WINDOWS).map(move |index| shortest << index).take_while(move |window| *window <= longest)
    }
}

/// The place of bin number `bin`: numbers may wrap around.
fn at(bin: u64) -> usize {
    (bin % HISTORY as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bins of 10 ms at 1 MB/s from bin 0 on, a loop delay of 40 ms.
    fn steady() -> Forecast {
        let mut forecast = Forecast::new(0.01, 1, 1);
        forecast.assume(0, 10_000.0);
        for bin in 1..=200 {
            forecast.note(bin, 10_000.0, 1);
            forecast.judge(bin, 4);
            forecast.update(bin, 4);
        }
        forecast
    }

    #[test]
    fn a_steady_link_is_forecast_without_an_error() {
        let forecast = steady();
        assert!((forecast.mu() - 1e6).abs() < 1e-3 && forecast.error() < 1e-3, "{forecast:?}");
    }

    #[test]
    fn a_link_that_halves_is_followed_within_the_longest_window() {
        let mut forecast = steady();
        for bin in 201..=216 {
            forecast.note(bin, 5_000.0, 1);
            forecast.judge(bin, 4);
            forecast.update(bin, 4);
        }
        assert!((forecast.mu() - 5e5).abs() < 1e-3, "{}", forecast.mu());
        assert!(forecast.error() > 100.0, "{}", forecast.error());
    }
}
