//! The rate of a link that delivers packets as a Poisson process whose rate wanders (winstein13 section 3): a
//! Bayesian filter over 256 rates, and cautious forecasts of what will be delivered.
//!
//! ```text
//! rate_i = i max_rate / 255;   all equally likely at first.  Every tick of tau:
//! evolve    P(j) = sum_i P(i) A(i, j)        A: Brownian motion, N(0, sigma^2 tau); rate 0 sticks, and
//!                                            is left with probability 1 - exp(-escape_rate tau)
//! observe   P(i) = P(i) (rate_i tau)^k exp(-rate_i tau) / k!, normalised;   k: packets of the tick
//! forecast  the x-quantile of the packets delivered in the next h ticks, h = 1 to 8, if no more is observed
//! ```
//!
//! The distribution of the packets of h ticks, given the rate now, is a table made once:
//!
//! ```text
//! joint        T_h(i, .) = Poisson(rate_i tau) * sum_j A(i, j) T_{h-1}(j, .)       (* is convolution)
//! independent  T_h(i, .) = D_0(i, .) * ... * D_{h-1}(i, .),  D_t(i, .) = sum_j A^t(i, j) Poisson(rate_j tau)
//! ```
//!
//! The first follows the rate from tick to tick; the second, in the authors' code, treats the ticks as
//! independent and so is a little bolder. A forecast is then, for each h, a search over sums of 256 products.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::time::Duration;

/// Number of rates that the model distinguishes.
pub const RATES: usize = 256;
/// Number of ticks that a forecast covers.
pub const HORIZON: usize = 8;
/// Most packets told apart in one tick when forecasting: a Poisson count of mean 20 exceeds it once in 10^4
/// ticks.
const MOST: usize = 40;
/// Most packets told apart when observing.
const MOST_OBSERVED: usize = 64;
/// Brownian steps are cut off here, in standard deviations (the authors' code).
const CUT_OFF: f64 = 5.0;

choices! {
    /// How the packet counts of successive ticks depend on each other in a forecast.
    pub enum Ticks {
        /// Independently, given the present rate: the authors' code.
        Independent = "independent",
        /// Through the rate that wanders: the model itself.
        Joint = "joint",
    }
}

/// Parameters of the model.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Length of a tick.
    pub tick: Duration,
    /// Highest rate, packets per second.
    pub max_rate: f64,
    /// Noise power of the rate, packets per second and root second.
    pub sigma: f64,
    /// Rate at which outages end, per second.
    pub escape_rate: f64,
    /// The quantile forecast.
    pub quantile: f64,
    /// How ticks hang together.
    pub ticks: Ticks,
}

/// What all filters of one model look up: 1.5 MB, which take milliseconds to make and never change.
#[derive(Debug)]
pub struct Tables {
    quantile: f32,
    transition: Transition,
    /// Likelihood of k packets at rate i, at `k * RATES + i`.
    likelihood: Vec<f64>,
    /// For each horizon, the probability of at most c packets at rate i, at `c * RATES + i`.
    at_most: Vec<Vec<f32>>,
}

impl Tables {
    /// Returns the tables of `model`.
    pub fn new(model: &Model) -> Self {
        let transition = Transition::new(model);
        let mean = |i: usize| rate(model, i) * model.tick.as_secs_f64();
        let mut likelihood = vec![0.0; (MOST_OBSERVED + 1) * RATES];
        for i in 0..RATES {
            for (k, probability) in poisson(mean(i)).take(MOST_OBSERVED + 1).enumerate() {
                likelihood[k * RATES + i] = probability;
            }
        }
        let first: Vec<Vec<f64>> = (0..RATES).map(|i| capped_poisson(mean(i))).collect();
        let at_most = cumulative(model.ticks, &transition, &first);
        Tables { quantile: model.quantile as f32, transition, likelihood, at_most }
    }
}

/// The filter. A clone shares its tables.
#[derive(Clone, Debug)]
pub struct PoissonBrownian {
    tables: Arc<Tables>,
    probability: Box<[f64; RATES]>,
    /// The probabilities of the last tick between zeros, as a step reads them.
    padded: Vec<f64>,
    /// What was forecast last, where the next search begins.
    last: [u16; HORIZON],
}

impl PoissonBrownian {
    /// Returns a filter that knows nothing yet, of the model of `tables`.
    pub fn new(tables: Arc<Tables>) -> Self {
        PoissonBrownian {
            probability: Box::new([1.0 / RATES as f64; RATES]),
            padded: vec![0.0; RATES + 2 * tables.transition.reach],
            last: [0; HORIZON],
            tables,
        }
    }

    /// A tick passes.
    pub fn evolve(&mut self) {
        self.tables.transition.apply(&mut self.probability, &mut self.padded);
        self.normalise();
    }

    /// `packets` arrived in the tick that passed.
    pub fn observe(&mut self, packets: usize) {
        let row = packets.min(MOST_OBSERVED) * RATES;
        let likelihood = &self.tables.likelihood[row..row + RATES];
        for (probability, likelihood) in self.probability.iter_mut().zip(likelihood) {
            *probability *= likelihood;
        }
        self.normalise();
    }

    fn normalise(&mut self) {
        let sum: f64 = self.probability.iter().sum();
        if sum > 0.0 {
            self.probability.iter_mut().for_each(|probability| *probability /= sum);
        } else {
            // What was observed is impossible at every rate thought possible: begin anew.
            *self.probability = [1.0 / RATES as f64; RATES];
        }
    }

    /// Returns the packets that will be delivered within 1, 2, ... ticks, each exceeded with probability
    /// `1 - quantile`.
    pub fn forecast(&mut self) -> [u16; HORIZON] {
        let mut weights = [0.0_f32; RATES];
        for (weight, probability) in weights.iter_mut().zip(self.probability.iter()) {
            *weight = *probability as f32;
        }
        let (mut least, mut rise) = (0, 0);
        let mut forecast = [0; HORIZON];
        for ((packets, last), table) in forecast.iter_mut().zip(self.last).zip(&self.tables.at_most) {
            // From tick to tick it moves by few packets, and by about as many as the horizon before.
            let guess = (i32::from(last) + rise).max(0) as usize;
            // More ticks deliver no less, so the search starts where the last one ended.
            least = search(&weights, table, self.tables.quantile, least, guess);
            rise = least as i32 - i32::from(last);
            *packets = least as u16;
        }
        self.last = forecast;
        forecast
    }

    /// Returns the tables that it looks up.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Returns the probability of each rate.
    pub fn probabilities(&self) -> &[f64; RATES] {
        &self.probability
    }

    /// Returns the mean of the rate, packets per second.
    pub fn mean_rate(&self, model: &Model) -> f64 {
        self.probability.iter().enumerate().map(|(i, p)| p * rate(model, i)).sum()
    }
}

/// The i-th rate, packets per second.
fn rate(model: &Model, i: usize) -> f64 {
    model.max_rate * i as f64 / (RATES - 1) as f64
}

/// P(k) for k = 0, 1, 2, ...
fn poisson(mean: f64) -> impl Iterator<Item = f64> {
    let mut probability = libm::exp(-mean);
    (0..).map(move |k: u32| {
        if k > 0 {
            probability *= mean / f64::from(k);
        }
        probability
    })
}

/// P(0) to P(MOST - 1), and the rest as P(MOST).
fn capped_poisson(mean: f64) -> Vec<f64> {
    let mut counts: Vec<f64> = poisson(mean).take(MOST).collect();
    let rest = 1.0 - counts.iter().sum::<f64>();
    counts.push(rest.max(0.0));
    counts
}

/// Returns the first row of `table`, from `low` on, whose mean over `weights` is `quantile` or more; the last
/// row if there is none. The means rise with the rows, so any guess leads to the same row.
fn search(weights: &[f32; RATES], table: &[f32], quantile: f32, mut low: usize, guess: usize) -> usize {
    let mut high = table.len() / RATES - 1;
    // Two neighbours show whether the guess is right. If it is not, the strides to the row double, until it
    // lies between two rows that were looked at. Then the distance is halved.
    let mut at = guess.saturating_sub(1);
    let mut stride = 2;
    let (mut from_above, mut from_below) = (false, false);
    while low < high {
        at = at.clamp(low, high - 1);
        match dots(weights, &table[at * RATES..][..2 * RATES]).map(|mean| mean >= quantile) {
            [true, _] => {
                high = at;
                from_above = true;
                at = at.saturating_sub(stride);
            }
            [false, true] => return at + 1,
            [false, false] => {
                low = (at + 2).min(high);
                from_below = true;
                at += stride;
            }
        }
        if from_above && from_below {
            at = (low + high) / 2;
        }
        stride *= 2;
    }
    low
}

/// The sums of `weights` times each of two rows.
fn dots(weights: &[f32; RATES], rows: &[f32]) -> [f32; 2] {
    let mut sums = [[0.0; 8]; 2];
    add_products(weights, rows, &mut sums);
    sums.map(|sums| sums.iter().sum())
}

/// Eight sums side by side for each of two rows, so that the machine can add them in one instruction; the
/// order is fixed. A function of its own: where it is inlined, the compiler lays the sums out for the
/// addition that follows, and transposes the rows for it.
#[inline(never)]
fn add_products(weights: &[f32; RATES], rows: &[f32], sums: &mut [[f32; 8]; 2]) {
    let (one, two) = rows.split_at(RATES);
    let mut lanes = *sums;
    for ((weights, one), two) in weights.chunks_exact(8).zip(one.chunks_exact(8)).zip(two.chunks_exact(8)) {
        for (lanes, row) in lanes.iter_mut().zip([one, two]) {
            for ((lane, weight), value) in lanes.iter_mut().zip(weights).zip(row) {
                *lane += weight * value;
            }
        }
    }
    *sums = lanes;
}

/// What a tick does to the rate.
#[derive(Clone, Debug)]
struct Transition {
    /// Probability of a step of d - reach rates, at d.
    kernel: Vec<f64>,
    /// Largest step.
    reach: usize,
    /// Probability of ending at the lowest rate, and at the highest, by distance.
    edge: Vec<f64>,
    /// Where an outage leads.
    escape: Box<[f64; RATES]>,
}

impl Transition {
    fn new(model: &Model) -> Self {
        let tick_s = model.tick.as_secs_f64();
        let width = rate(model, 1);
        let deviation = model.sigma * libm::sqrt(tick_s) / width;
        let below = |distance: f64| 0.5 * libm::erfc(-distance / deviation / core::f64::consts::SQRT_2);
        let reach = (libm::ceil(CUT_OFF * deviation) as usize).min(RATES - 1);
        let kernel = (0..=2 * reach)
            .map(|d| {
                let step = d as f64 - reach as f64;
                below(step + 0.5) - below(step - 0.5)
            })
            .collect();
        let edge: Vec<f64> = (0..RATES).map(|distance| below(0.5 - distance as f64)).collect();
        let mut escape = Box::new([0.0; RATES]);
        let stay = libm::exp(-model.escape_rate * tick_s);
        for (j, probability) in escape.iter_mut().enumerate().take(reach + 1).skip(1) {
            *probability = below(j as f64 + 0.5) - below(j as f64 - 0.5);
        }
        let leaving: f64 = escape.iter().sum();
        if leaving > 0.0 {
            escape.iter_mut().for_each(|probability| *probability *= (1.0 - stay) / leaving);
        } else {
            // Steps so short that each of these rates seems out of reach.
            escape[1] = 1.0 - stay;
        }
        escape[0] = stay;
        Transition { kernel, reach, edge, escape }
    }

    /// Probability of going from rate i to rate j.
    fn at(&self, i: usize, j: usize) -> f64 {
        if i == 0 {
            self.escape[j]
        } else if i.abs_diff(j) > self.reach {
            0.0
        } else if j == 0 || j == RATES - 1 {
            self.edge[i.abs_diff(j)]
        } else {
            self.kernel[j + self.reach - i]
        }
    }

    /// One tick, from where the rate may be to where it may be then. `padded` is for its own use: zeros, but
    /// for the places that it writes each time.
    fn apply(&self, probability: &mut [f64; RATES], padded: &mut [f64]) {
        // An outage is apart, and beyond the lowest and the highest rate there is nothing.
        let outage = probability[0];
        padded[self.reach + 1..self.reach + RATES].copy_from_slice(&probability[1..]);
        // The kernel is symmetric: it may be read forwards.
        correlate(padded, &self.kernel, probability);
        let from = &padded[self.reach..];
        for end in [0, RATES - 1] {
            let (low, high) = (end.saturating_sub(self.reach).max(1), (end + self.reach).min(RATES - 1));
            let sources = from[low..=high].iter().zip(low..);
            probability[end] = sources.map(|(p, i)| p * self.edge[i.abs_diff(end)]).sum();
        }
        for (to, escape) in probability.iter_mut().zip(self.escape.iter()) {
            *to += outage * escape;
        }
    }

    /// For each rate, the mean of `rows` over where the rate may be a tick later.
    fn expect(&self, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        (0..RATES)
            .map(|i| {
                let mut mean = vec![0.0; rows[0].len()];
                let (low, high) = (i.saturating_sub(self.reach), (i + self.reach).min(RATES - 1));
                let mut total = 0.0;
                for (j, row) in rows.iter().enumerate().take(high + 1).skip(low) {
                    let probability = self.at(i, j);
                    total += probability;
                    for (mean, value) in mean.iter_mut().zip(row) {
                        *mean += probability * value;
                    }
                }
                // What the cut-off lost.
                mean.iter_mut().for_each(|mean| *mean /= total);
                mean
            })
            .collect()
    }
}

/// Sums that are made side by side, so that the machine can add several in one instruction.
const LANES: usize = 16;

/// `sums[n] = sum_d kernel[d] values[n + d]`, each added up in the order of d. There must be as
/// many `values` as sums, rounded up to a multiple of [`LANES`], and one less than `kernel` has besides.
fn correlate(values: &[f64], kernel: &[f64], sums: &mut [f64]) {
    debug_assert!(values.len() + 1 >= sums.len().next_multiple_of(LANES) + kernel.len());
    for (n, sums) in sums.chunks_mut(LANES).enumerate() {
        let mut lanes = [0.0; LANES];
        for (values, weight) in values[n * LANES..].windows(LANES).zip(kernel) {
            for (lane, value) in lanes.iter_mut().zip(values) {
                *lane += value * weight;
            }
        }
        sums.copy_from_slice(&lanes[..sums.len()]);
    }
}

/// `sum_i a[i] b[n - i]` for every n, each added up in the order of i.
fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let lag = b.len() - 1;
    let mut sums = vec![0.0; a.len() + lag];
    let mut padded = vec![0.0; sums.len().next_multiple_of(LANES) + lag];
    padded[lag..lag + a.len()].copy_from_slice(a);
    let reversed: Vec<f64> = b.iter().rev().copied().collect();
    correlate(&padded, &reversed, &mut sums);
    sums
}

/// The cumulative distributions for every horizon, by count and rate.
fn cumulative(ticks: Ticks, transition: &Transition, first: &[Vec<f64>]) -> Vec<Vec<f32>> {
    let mut total: Vec<Vec<f64>> = first.to_vec();
    let mut tick: Vec<Vec<f64>> = first.to_vec();
    let mut tables = Vec::with_capacity(HORIZON);
    for horizon in 1..=HORIZON {
        if horizon > 1 {
            let later;
            let ahead = match ticks {
                Ticks::Joint => {
                    later = transition.expect(&total);
                    (first, &later)
                }
                Ticks::Independent => {
                    tick = transition.expect(&tick);
                    (&tick[..], &total)
                }
            };
            total = ahead.0.iter().zip(ahead.1).map(|(a, b)| convolve(b, a)).collect();
        }
        let mut table = vec![0.0; total[0].len() * RATES];
        for (i, counts) in total.iter().enumerate() {
            let mut sum = 0.0;
            for (c, probability) in counts.iter().enumerate() {
                sum += probability;
                table[c * RATES + i] = sum as f32;
            }
        }
        tables.push(table);
    }
    tables
}

#[cfg(test)]
mod tests;
