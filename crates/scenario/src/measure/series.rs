//! Time series in bins of equal width: what a link carried and how long packets waited.

use brakelight_core::ecn::Mark;
use brakelight_core::time::Duration;

use super::distribution::Distribution;
use super::mbps;
use crate::outcome::LinkSeries;

/// What left a link in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkBin {
    /// Bytes the link could have carried.
    pub capacity: u64,
    /// Bytes that left, overhead included.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u32,
    /// Mean of their queueing delays; zero when none left.
    pub queueing_mean_ms: f64,
    /// 95th percentile of the same.
    pub queueing_p95_ms: f64,
    /// Packets its queue marked accelerate.
    pub accelerate: u32,
    /// Packets its queue marked brake.
    pub brake: u32,
}

impl LinkBin {
    /// Returns the share of marked packets that were accelerates; `None` when none was marked.
    pub fn accelerate_fraction(&self) -> Option<f64> {
        let marked = self.accelerate + self.brake;
        (marked > 0).then(|| f64::from(self.accelerate) / f64::from(marked))
    }
}

/// A link's bins so far. Whoever steps the run closes a bin at its end.
#[derive(Clone, Debug, Default)]
pub struct LinkBins {
    current: LinkBin,
    /// Queueing delays of the current bin.
    queueing: Distribution,
    closed: Vec<LinkBin>,
}

impl LinkBins {
    /// A packet of `bytes` left after `queued`.
    #[inline]
    pub fn departed(&mut self, bytes: u64, queued: Duration, mark: Mark) {
        let bin = &mut self.current;
        bin.bytes += bytes;
        bin.packets += 1;
        self.queueing.record(queued);
        match mark {
            Mark::Accelerate => bin.accelerate += 1,
            Mark::Brake => bin.brake += 1,
            Mark::None | Mark::Ce => {}
        }
    }

    /// Ends the current bin, in which the link could have carried `capacity` bytes.
    pub fn close(&mut self, capacity: u64) {
        self.current.capacity = capacity;
        if self.current.packets > 0 {
            self.current.queueing_mean_ms = self.queueing.mean_ms();
            self.current.queueing_p95_ms = self.queueing.quantile_ms(0.95);
            self.queueing.clear();
        }
        self.closed.push(std::mem::take(&mut self.current));
    }

    /// Says what the link could have carried in each bin closed so far, for whoever learns of it late.
    /// `capacity` is asked with the number of the bin, from 0.
    pub fn fill_capacity(&mut self, capacity: impl Fn(u64) -> u64) {
        for (index, bin) in (0..).zip(&mut self.closed) {
            bin.capacity = capacity(index);
        }
    }

    /// Returns the bins closed so far.
    pub fn bins(&self) -> &[LinkBin] {
        &self.closed
    }

    /// Returns the series of the link called `name`, whose bins are `bin` wide.
    pub fn series(&self, name: &str, bin: Duration) -> LinkSeries {
        let bins = self.bins();
        let delay = |bin: &LinkBin, value: f64| (bin.packets > 0).then_some(value);
        LinkSeries {
            name: name.to_string(),
            time_s: (0..bins.len() as u64).map(|index| (bin * index).as_secs_f64()).collect(),
            capacity_mbps: bins.iter().map(|b| mbps(b.capacity, bin)).collect(),
            throughput_mbps: bins.iter().map(|b| mbps(b.bytes, bin)).collect(),
            queueing_delay_mean_ms: bins.iter().map(|b| delay(b, b.queueing_mean_ms)).collect(),
            queueing_delay_p95_ms: bins.iter().map(|b| delay(b, b.queueing_p95_ms)).collect(),
            accelerate_fraction: bins.iter().map(LinkBin::accelerate_fraction).collect(),
        }
    }
}
