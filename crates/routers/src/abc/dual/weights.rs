//! Rates of a queue's heaviest flows, and max-min fair weights by them (abc20 section 4.3).

use alloc::vec::Vec;

use brakelight_core::packet::FlowId;
use brakelight_core::units::Bytes;
use brakelight_estimates::space_saving::{Counter, SpaceSaving};

use super::{DualSettings, key};

/// What left one queue, lately: the past counts less by a factor d = exp(-T / tau) for every period.
///
/// A flow of steady rate r then weighs r T / (1 - d) at the end of a period.
#[derive(Clone, Debug)]
pub(in crate::abc) struct Meter {
    heavy: SpaceSaving,
    /// Bytes of all flows.
    total: f64,
    /// d, and what turns a weight into bit/s.
    decay: f64,
    bps_per_byte: f64,
    /// ABC's f over packets, and those, aged alike.
    f: [f64; 2],
    /// Heavy flows and their rates at the last update, bit/s, the heaviest first.
    rates: Vec<(u32, f64)>,
}

impl Meter {
    pub(in crate::abc) fn new(settings: &DualSettings) -> Self {
        let period_s = settings.period.as_secs_f64();
        let decay = libm::exp(-period_s / settings.averaging.as_secs_f64());
        Meter {
            heavy: SpaceSaving::new(settings.counters as usize),
            total: 0.0,
            decay,
            bps_per_byte: 8.0 * (1.0 - decay) / period_s,
            f: [0.0; 2],
            rates: Vec::with_capacity(settings.counters as usize),
        }
    }

    /// `cost` bytes of `flow` leave.
    pub(in crate::abc) fn add(&mut self, flow: FlowId, cost: Bytes) {
        self.heavy.add(key(flow), cost.as_f64());
        self.total += cost.as_f64();
    }

    /// A packet was marked under this f.
    pub(in crate::abc) fn note_f(&mut self, f: f64) {
        self.f[0] += f;
        self.f[1] += 1.0;
    }

    /// The mean of f.
    pub(in crate::abc) fn mean_f(&self) -> Option<f64> {
        (self.f[1] > 0.0).then(|| self.f[0] / self.f[1])
    }

    /// `periods` go by.
    pub(in crate::abc) fn age(&mut self, periods: u64) {
        let factor = if periods == 1 { self.decay } else { libm::pow(self.decay, periods as f64) };
        self.heavy.scale(factor);
        self.total *= factor;
        self.f = self.f.map(|sum| sum * factor);
    }

    /// The rate of all flows together, bit/s, at the end of a period.
    #[cfg(test)]
    pub(in crate::abc) fn total_bps(&self) -> f64 {
        self.total * self.bps_per_byte
    }

    /// What `flow` has at least, bit/s.
    fn rate_of(&self, flow: u32) -> f64 {
        self.heavy.get(flow).map_or(0.0, |counter| counter.certain() * self.bps_per_byte)
    }

    /// The rates of the `top` heaviest flows, the heaviest first, and what all others have together; bit/s.
    fn rates(&mut self, top: usize) -> (&[(u32, f64)], f64) {
        self.rates.clear();
        let rate = |counter: &Counter| (counter.key, counter.certain() * self.bps_per_byte);
        self.rates.extend(self.heavy.counters().iter().map(rate));
        self.rates.sort_unstable_by(|(_, one), (_, other)| other.total_cmp(one));
        self.rates.truncate(top);
        let heavy: f64 = self.rates.iter().map(|(_, rate)| rate).sum();
        (&self.rates, (self.total * self.bps_per_byte - heavy).max(0.0))
    }
}

/// Max-min fair weights.
#[derive(Clone, Debug)]
pub(in crate::abc) struct Shares {
    top: usize,
    growth: f64,
    /// Demands of each queue's heavy flows, ABC's first, and of both while they are sorted.
    demands: [Vec<f64>; 2],
    sorted: Vec<f64>,
}

impl Shares {
    pub(in crate::abc) fn new(settings: &DualSettings) -> Self {
        let top = settings.top as usize;
        Shares {
            top,
            growth: 1.0 + settings.headroom,
            demands: [Vec::with_capacity(top), Vec::with_capacity(top)],
            sorted: Vec::with_capacity(2 * top),
        }
    }

    /// ABC's part of the allocations; none while nobody has sent anything. `asked` has the accelerates that
    /// its flows brought, where they bound what these want.
    pub(in crate::abc) fn abc_weight(
        &mut self,
        meters: &mut [Meter; 2],
        asked: Option<&Meter>,
        capacity_bps: f64,
    ) -> Option<f64> {
        let [abc, other] = meters;
        let growth = self.growth;
        let (abc_rates, abc_short) = abc.rates(self.top);
        let (other_rates, other_short) = other.rates(self.top);
        let grown = |(_, rate): &(u32, f64)| growth * rate;
        // D9: abc17 6, footnote 5
        let wanted = |heavy: &(u32, f64)| match asked {
            Some(asked) => grown(heavy).min(2.0 * asked.rate_of(heavy.0)),
            None => grown(heavy),
        };
        self.demands.iter_mut().for_each(Vec::clear);
        self.demands[0].extend(abc_rates.iter().map(wanted));
        self.demands[1].extend(other_rates.iter().map(grown));
        let [abc_demands, other_demands] = &self.demands;
        let short = [abc_short, other_short];
        max_min_share([abc_demands, other_demands], short, capacity_bps, &mut self.sorted)
    }
}

/// ABC's part of `capacity` by max-min fairness over what heavy flows demand, after what short ones have is
/// granted: of each queue, ABC's first, all in one unit of rate. None while nobody has sent anything.
/// `sorted` is kept for its allocation.
pub fn max_min_share(
    demands: [&[f64]; 2],
    short: [f64; 2],
    capacity: f64,
    sorted: &mut Vec<f64>,
) -> Option<f64> {
    sorted.clear();
    sorted.extend(demands.into_iter().flatten());
    // D2: short flows first.
    let level = level(sorted, (capacity - short[0] - short[1]).max(0.0));
    let heavy = demands.map(|demands| demands.iter().map(|demand| demand.min(level)).sum::<f64>());
    let (abc, other) = (heavy[0] + short[0], heavy[1] + short[1]);
    if abc + other == 0.0 {
        return None;
    }
    // D3
    let spare = (capacity - abc - other).max(0.0);
    let others = other.min(0.5 * spare);
    Some((abc + spare - others) / (abc + other + spare))
}

/// Max-min fairness: what no demand may exceed so that all fit `capacity`, or infinity where they fit as they
/// are.
pub(in crate::abc) fn level(demands: &mut [f64], capacity: f64) -> f64 {
    demands.sort_unstable_by(f64::total_cmp);
    let mut left = capacity;
    let count = demands.len();
    for (index, demand) in demands.iter().enumerate() {
        let equal = left / (count - index) as f64;
        if *demand > equal {
            return equal;
        }
        left -= demand;
    }
    f64::INFINITY
}
