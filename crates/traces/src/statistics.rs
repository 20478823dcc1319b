//! What a trace is like, in numbers.
//!
//! A trace repeats, so an opportunity at the period counts as one at the instant 0. Bins are whole; what is
//! left over at the end of the period is not looked at.
//!
//! - mean: opportunities times their size, over the period.
//! - cv(w): standard deviation of the opportunities in bins of width w, over their mean.
//! - acf(l): autocorrelation of the opportunities in 100 ms bins at lag l: sum over i of d(i) d(i + l), over
//!   the sum of d(i)^2, d the deviation from the mean.
//! - outage: at least 100 ms between two successive opportunities, the repetition included.
//! - doubles, halves: share of the seconds, one beginning each 100 ms, whose second half has at least twice,
//!   at most half, the opportunities of its first.

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::trace::Trace;
use serde::Serialize;

/// Everything [`Statistics::of`] finds out about a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Its period, after which it repeats.
    pub duration_s: f64,
    /// Opportunities in a period.
    pub opportunities: u64,
    /// Mean rate.
    pub mean_mbps: f64,
    /// How much the rate varies from bin to bin.
    pub variation: Variation,
    /// How long it remembers: lag and autocorrelation, for the lags that fit twice into the period.
    pub autocorrelation: Vec<Lag>,
    /// When nothing can be sent.
    pub outages: Outages,
    /// Quantiles of the rate in bins of 100 ms.
    pub rate_100ms: Quantiles,
    /// Quantiles of the rate in bins of 1 s.
    pub rate_1s: Quantiles,
    /// Share of seconds within which the rate doubles.
    pub doubles: f64,
    /// Share of seconds within which the rate halves.
    pub halves: f64,
}

/// Coefficients of variation; zero where the period holds no whole bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Variation {
    /// In bins of 20 ms.
    pub cv_20ms: f64,
    /// In bins of 100 ms.
    pub cv_100ms: f64,
    /// In bins of 1 s.
    pub cv_1s: f64,
}

/// The autocorrelation at one lag.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lag {
    /// The lag.
    pub lag_ms: u32,
    /// The autocorrelation, -1 to 1; zero for a trace without variation.
    pub value: f64,
}

/// Gaps between opportunities.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outages {
    /// Gaps of at least 100 ms.
    pub count: u64,
    /// The longest gap, outage or not.
    pub longest_ms: u64,
    /// Share of the period that outages take.
    pub share: f64,
    /// How many are at least so long.
    pub at_least: Vec<AtLeast>,
}

/// Outages of at least some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtLeast {
    /// The length.
    pub length_ms: u64,
    /// How many there are.
    pub count: u64,
}

/// Quantiles of a rate in Mbit/s: the smallest value that so many percent of the bins do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize)]
pub struct Quantiles {
    /// Least.
    pub min_mbps: f64,
    /// 5 %.
    pub p5_mbps: f64,
    /// 25 %.
    pub p25_mbps: f64,
    /// Median.
    pub p50_mbps: f64,
    /// 75 %.
    pub p75_mbps: f64,
    /// 95 %.
    pub p95_mbps: f64,
    /// Most.
    pub max_mbps: f64,
}

/// A statistic with its name and its unit, for tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what; empty for ratios and counts.
    pub unit: &'static str,
}

/// The lags of [`Statistics::autocorrelation`], in bins of 100 ms.
pub const LAGS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];

/// The lengths of [`Outages::at_least`] in milliseconds; the first is what makes a gap an outage.
pub const OUTAGE_LENGTHS: [u64; 6] = [100, 200, 500, 1_000, 2_000, 5_000];

const BIN_MS: u64 = 100;

impl Statistics {
    /// Returns the statistics of `trace`, when an opportunity carries `opportunity` bytes.
    pub fn of(trace: &Trace, opportunity: Bytes) -> Self {
        let period_ms = trace.period().as_nanos() / 1_000_000;
        let counts = bins(trace, BIN_MS);
        let (doubles, halves) = doubling(&counts);
        let mean = Rate::over(Bytes(trace.opportunities() * opportunity.0), trace.period());
        Statistics {
            duration_s: trace.period().as_secs_f64(),
            opportunities: trace.opportunities(),
            mean_mbps: mean.as_mbps_f64(),
            variation: Variation {
                cv_20ms: variation(trace, 20),
                cv_100ms: variation(trace, 100),
                cv_1s: variation(trace, 1_000),
            },
            autocorrelation: autocorrelation(&counts),
            outages: outages(trace, period_ms),
            rate_100ms: quantiles(counts, BIN_MS, opportunity),
            rate_1s: quantiles(bins(trace, 1_000), 1_000, opportunity),
            doubles,
            halves,
        }
    }

    /// Returns all of it as rows of a table. Names and order are the same for every trace, but for lags that
    /// do not fit.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut row = |name: String, value: f64, unit| rows.push(Row { name, value, unit });
        row("duration".to_string(), self.duration_s, "s");
        row("opportunities".to_string(), self.opportunities as f64, "");
        row("mean rate".to_string(), self.mean_mbps, "Mbit/s");
        let cv = &self.variation;
        for (width, value) in [("20 ms", cv.cv_20ms), ("100 ms", cv.cv_100ms), ("1 s", cv.cv_1s)] {
            row(format!("coefficient of variation, {width} bins"), value, "");
        }
        for lag in &self.autocorrelation {
            row(format!("autocorrelation at {} s", f64::from(lag.lag_ms) / 1e3), lag.value, "");
        }
        for (width, quantiles) in [("100 ms", &self.rate_100ms), ("1 s", &self.rate_1s)] {
            for (name, mbps) in quantiles.named() {
                row(format!("rate in {width} bins, {name}"), mbps, "Mbit/s");
            }
        }
        for class in &self.outages.at_least {
            row(format!("outages of at least {} s", class.length_ms as f64 / 1e3), class.count as f64, "");
        }
        row("longest gap".to_string(), self.outages.longest_ms as f64, "ms");
        row("time in outages".to_string(), self.outages.share * 100.0, "%");
        row("seconds in which the rate doubles".to_string(), self.doubles * 100.0, "%");
        row("seconds in which the rate halves".to_string(), self.halves * 100.0, "%");
        rows
    }

    /// Returns the autocorrelation at a lag of `lag_ms`, if it is among [`LAGS`] and fits.
    pub fn autocorrelation_at(&self, lag_ms: u32) -> Option<f64> {
        self.autocorrelation.iter().find(|lag| lag.lag_ms == lag_ms).map(|lag| lag.value)
    }
}

impl Quantiles {
    /// Returns each with its name.
    pub fn named(&self) -> [(&'static str, f64); 7] {
        [
            ("least", self.min_mbps),
            ("5 %", self.p5_mbps),
            ("25 %", self.p25_mbps),
            ("median", self.p50_mbps),
            ("75 %", self.p75_mbps),
            ("95 %", self.p95_mbps),
            ("most", self.max_mbps),
        ]
    }
}

/// Returns the opportunities in each whole bin of `width_ms`. As long as the period: 340 MB for the longest
/// of 49 days at 100 ms.
pub fn bins(trace: &Trace, width_ms: u64) -> Vec<u64> {
    let mut counts = vec![0; (period_ms(trace) / width_ms) as usize];
    occupied(trace, width_ms, |bin, count| counts[bin as usize] += count);
    counts
}

/// Returns the rate in each whole bin of `width`, in Mbit/s.
pub fn rates(trace: &Trace, width: Duration, opportunity: Bytes) -> Vec<f64> {
    let width_ms = (width.as_nanos() / 1_000_000).max(1);
    bins(trace, width_ms).into_iter().map(|count| mbps(count, width_ms, opportunity)).collect()
}

fn mbps(count: u64, width_ms: u64, opportunity: Bytes) -> f64 {
    (count * opportunity.bits()) as f64 / (width_ms * 1_000) as f64
}

fn period_ms(trace: &Trace) -> u64 {
    trace.period().as_nanos() / 1_000_000
}

/// Calls `visit` with the number and the count of bins that hold opportunities; the first bin may come twice.
fn occupied(trace: &Trace, width_ms: u64, mut visit: impl FnMut(u64, u64)) {
    let period = period_ms(trace);
    let whole = period / width_ms;
    let mut run: Option<(u64, u64)> = None;
    for ms in trace.millis() {
        let bin = ms % period / width_ms;
        if bin >= whole {
            continue;
        }
        match &mut run {
            Some((current, count)) if *current == bin => *count += 1,
            _ => {
                if let Some((current, count)) = run.replace((bin, 1)) {
                    visit(current, count);
                }
            }
        }
    }
    if let Some((bin, count)) = run {
        visit(bin, count);
    }
}

/// The coefficient of variation in bins of `width_ms`, without a list of bins.
fn variation(trace: &Trace, width_ms: u64) -> f64 {
    let whole = period_ms(trace) / width_ms;
    // The last millisecond belongs to the first bin, so that one is closed last.
    let (mut first, mut sum, mut squares) = (0_u64, 0_f64, 0_f64);
    occupied(trace, width_ms, |bin, count| {
        sum += count as f64;
        if bin == 0 { first += count } else { squares += count as f64 * count as f64 }
    });
    squares += first as f64 * first as f64;
    if sum == 0.0 {
        return 0.0;
    }
    let mean = sum / whole as f64;
    libm::sqrt((squares / whole as f64 - mean * mean).max(0.0)) / mean
}

fn autocorrelation(counts: &[u64]) -> Vec<Lag> {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
    let deviation: Vec<f64> = counts.iter().map(|&count| count as f64 - mean).collect();
    let variance: f64 = deviation.iter().map(|d| d * d).sum();
    let at = |lag: usize| -> f64 {
        if variance == 0.0 {
            return 0.0;
        }
        deviation.iter().zip(&deviation[lag..]).map(|(a, b)| a * b).sum::<f64>() / variance
    };
    LAGS.iter()
        .filter(|&&lag| 2 * lag <= counts.len())
        .map(|&lag| Lag { lag_ms: (lag as u64 * BIN_MS) as u32, value: at(lag) })
        .collect()
}

fn outages(trace: &Trace, period_ms: u64) -> Outages {
    let mut at_least = OUTAGE_LENGTHS.map(|length_ms| AtLeast { length_ms, count: 0 });
    let (mut longest_ms, mut total) = (0, 0);
    // The last opportunity is at the period: the one before the first of this cycle was at 0.
    let mut previous = 0;
    for ms in trace.millis() {
        let gap = ms - previous;
        previous = ms;
        longest_ms = longest_ms.max(gap);
        if gap >= OUTAGE_LENGTHS[0] {
            total += gap;
            at_least.iter_mut().filter(|class| gap >= class.length_ms).for_each(|class| class.count += 1);
        }
    }
    Outages {
        count: at_least[0].count,
        longest_ms,
        share: total as f64 / period_ms as f64,
        at_least: at_least.to_vec(),
    }
}

fn quantiles(mut counts: Vec<u64>, width_ms: u64, opportunity: Bytes) -> Quantiles {
    if counts.is_empty() {
        return Quantiles::default();
    }
    counts.sort_unstable();
    let at = |percent: usize| {
        let rank = (counts.len() * percent).div_ceil(100).max(1);
        mbps(counts[rank - 1], width_ms, opportunity)
    };
    Quantiles {
        min_mbps: at(0),
        p5_mbps: at(5),
        p25_mbps: at(25),
        p50_mbps: at(50),
        p75_mbps: at(75),
        p95_mbps: at(95),
        max_mbps: at(100),
    }
}

/// Shares of the seconds within which the rate doubles and halves.
fn doubling(counts: &[u64]) -> (f64, f64) {
    const HALF: usize = 5;
    if counts.len() < 2 * HALF {
        return (0.0, 0.0);
    }
    let (mut doubles, mut halves) = (0, 0);
    for second in counts.windows(2 * HALF) {
        let (first, last) = second.split_at(HALF);
        let (first, last): (u64, u64) = (first.iter().sum(), last.iter().sum());
        if first + last > 0 {
            doubles += u64::from(last >= 2 * first);
            halves += u64::from(first >= 2 * last);
        }
    }
    let seconds = (counts.len() - 2 * HALF + 1) as f64;
    (doubles as f64 / seconds, halves as f64 / seconds)
}

#[cfg(test)]
mod tests;
