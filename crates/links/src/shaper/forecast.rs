//! The forecast of `abc-adaptive` ([`brakelight_estimates::forecast`]) over bins that a setter closes.

use brakelight_estimates::forecast::{self, HISTORY};

/// A forecast from one bin to the next.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    bin_s: f64,
    /// The number of the last bin that was closed.
    last: u64,
    windows: forecast::Forecast,
}

impl Forecast {
    /// Returns one of a link that has always carried `mu` bytes/s, in bins of `bin_s` seconds.
    pub(super) fn new(bin_s: f64, mu: f64) -> Self {
        let mut windows = forecast::Forecast::new(bin_s, 1, 1);
        windows.assume(0, bin_s * mu);
        Forecast { bin_s, last: 0, windows }
    }

    /// Returns the forecast rate, in bytes/s.
    pub(super) fn mu(&self) -> f64 {
        self.windows.mu()
    }

    /// Returns the mean absolute error of the best window over one loop delay, in bytes.
    pub(super) fn error(&self) -> f64 {
        self.windows.error()
    }

    /// Closes a bin in which the link carried `bytes`, where the loop delay is `tau_s`.
    pub(super) fn close(&mut self, bytes: f64, tau_s: f64) {
        self.last += 1;
        let tau = ((tau_s / self.bin_s + 0.5) as usize).clamp(1, HISTORY / 8);
        self.windows.note(self.last, bytes, 1);
        self.windows.judge(self.last, tau);
        self.windows.update(self.last, tau);
    }
}
