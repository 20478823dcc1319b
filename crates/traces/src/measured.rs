//! A synthetic link with the distribution and the memory of a measured one.
//!
//! ```text
//! z(b)    = sum_i sqrt(share_i) x_i(b) + sqrt(path) y(k(b)) + sqrt(1 - path - sum_i share_i) n(b)
//! x_i     : Gauss-Markov, variance 1: x_i(b + 1) = a x_i(b) + sqrt(1 - a^2) N(0, 1), a = exp(-bin / lasts_i)
//! n       : the same with a = echo, and N(0, 1) / sqrt(noisy) in a share `noisy` of the bins, else nothing
//! y       : N(0, 1), new with each path k
//! rate(b) = Q((rank of z(b) - 1/2) / number of bins), 0 in an outage
//! Q       : linear between its values at SHARES
//! outages : round(duration / every), their lengths at even steps of their own quantile function from its
//!           least to its most; each, longest first, where z is lowest of `fades` random places. Then z is
//!           lower by `fall` in the bin before each, and higher by `rebound` in the bin after
//! paths   : change at first, first + every, ...; nothing is sent for a gap drawn at even steps likewise
//! grants  : intervals drawn from their quantile function; each brings what the rate gave since the last one
//! delay   : as the rate, with bins and quantiles of its own; another value for as long as a gap lasts, the
//!           higher the longer the gap
//! loss    : `lost` from one median delay before a gap until its end, else 0
//! ```
//!
//! Ranks in the place of Gauss's distribution function give each trace the quantiles of the recipe and not
//! those of a sample of it, and even steps give it the longest outage of the recipe every time. A Gaussian
//! process mapped to a given distribution: cario97. What waits while a path changes waits for as long as the
//! gap lasts, so delays and gaps have the same rank. What left the link less than a delay ago is still under
//! way when its path is withdrawn; loss that comes with changes of satellite: kassem22.
//!
//! D1. Nothing below a bin but grants: without them opportunities come evenly. D2. One memory for rises and
//! falls: a rate that falls faster than it rises has no counterpart. D3. Rate, delay and loss share paths and
//! gaps, no more: between two changes of path they know nothing of each other. D4. Nothing ties the end of a
//! period to the beginning of the next. D5. No loss but where paths change.

use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_links::replay::CERTAIN;
use serde::{Deserialize, Serialize};

use super::OPPORTUNITY;
use super::recipe::{RecipeError, as_text, as_texts, millis, range, require};
use super::recording::{RecordedCapacity, RecordedDirection, Recording};
use super::synth::{Wander, from_counts};

/// The shares of the bins at which `rates` and `values` are given: that part of them is not above.
pub const SHARES: [f64; 15] = [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0];

/// Places that an outage tries before it is left out.
const TRIES: usize = 1_000;

/// A link with the distribution and the memory of a measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// How long a rate holds, in whole milliseconds, 1 ms to 10 s.
    #[serde(with = "as_text")]
    pub bin: Duration,
    /// Rates outside outages at [`SHARES`], none below the one before, at most 10 Gbit/s.
    #[serde(with = "as_texts")]
    pub rates: Vec<Rate>,
    /// What of a rate's variation lasts how long, at most eight; what is left is new in each bin.
    #[serde(default)]
    pub memory: Vec<Memory>,
    /// Correlation of what is new from one bin to the next, -0.9 to 0: bins that were cut a little late take
    /// from the next ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub echo: f64,
    /// Share of the bins in which anything is new, 0.01 to 1; the smaller it is, the larger what is new.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub noisy: f64,
    /// Times without any opportunity, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outages: Option<MeasuredOutages>,
    /// Another path at fixed intervals, if there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths>,
    /// Times between one burst of opportunities and the next at even steps of probability, whole
    /// milliseconds; none where opportunities come evenly.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "as_texts")]
    pub grants: Vec<Duration>,
    /// One-way delay, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<MeasuredDelay>,
}

/// A part of the variation, with its correlation time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its share of the variance of z, 0 to 1.
    pub share: f64,
    /// After that long, 1/e of it is left; at least 1 ms.
    #[serde(with = "as_text")]
    pub lasts: Duration,
}

/// Times without any opportunity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredOutages {
    /// Mean time from the beginning of one to that of the next.
    #[serde(with = "as_text")]
    pub every: Duration,
    /// Their lengths at even steps of probability, the least first.
    #[serde(with = "as_texts")]
    pub lasts: Vec<Duration>,
    /// Random places from which each takes the one with the worst rate, 1 to 1000: at 1 outages do not know
    /// the rate.
    pub fades: usize,
    /// How far z is lowered in the bin before an outage, in its standard deviations, 0 to 10: the outage
    /// begins within that bin.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fall: f64,
    /// How far z is raised in the bin after an outage, 0 to 10: what was held up comes then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rebound: f64,
}

/// Another path at fixed intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// The interval.
    #[serde(with = "as_text")]
    pub every: Duration,
    /// When the path changes for the first time.
    #[serde(with = "as_text")]
    pub first: Duration,
    /// How long nothing is sent then, at even steps of probability, the least first.
    #[serde(with = "as_texts")]
    pub gaps: Vec<Duration>,
    /// Share of the variance of z that is the path's, 0 to 1.
    pub share: f64,
    /// Share of the packets under way that are lost when the path changes, in either direction, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: f64,
}

/// One-way delay besides the link's queue, the same in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredDelay {
    /// How long a value holds, in whole milliseconds, 1 ms to 10 s.
    #[serde(with = "as_text")]
    pub bin: Duration,
    /// Delays at [`SHARES`], none below the one before, at most 60 s.
    #[serde(with = "as_texts")]
    pub values: Vec<Duration>,
    /// As of the rate.
    #[serde(default)]
    pub memory: Vec<Memory>,
    /// As of the rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub echo: f64,
    /// Share of the variance of z that is the path's, 0 to 1.
    #[serde(default)]
    pub share: f64,
    /// Delays while the path changes, at even steps of probability, the least first; the longer a gap, the
    /// higher its delay.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "as_texts")]
    pub changing: Vec<Duration>,
}

/// A time without opportunities, milliseconds.
#[derive(Clone, Copy)]
struct Gap {
    from_ms: u64,
    until_ms: u64,
}

impl Gap {
    fn length_ms(self) -> u64 {
        self.until_ms - self.from_ms
    }
}

impl Measured {
    /// Returns a period of `length`, with delay and loss where the recipe has them.
    pub(super) fn record(&self, seed: u64, length: Duration) -> Result<Recording, RecipeError> {
        let refused = |error: String| RecipeError::Toml(error);
        let gaps = self.gaps(seed, length);
        let rates = self.rates(seed, length);
        let mut recording = Recording::new(length);
        recording.about.technology = Some("synthetic".to_string());
        // D1
        recording.about.bin_us = self.grants.is_empty().then(|| self.bin.as_micros());
        let capacity = if self.grants.is_empty() {
            let steps = rates.iter().zip(0..).map(|(rate, bin)| (self.bin * bin, *rate));
            RecordedCapacity::Rates(steps.collect())
        } else {
            let counts = self.counts(seed, &rates, &gaps, length);
            if counts.iter().all(|&count| count == 0) {
                return Err(RecipeError::Silent);
            }
            RecordedCapacity::Opportunities(from_counts(counts).map_err(|error| refused(error.to_string()))?)
        };
        let delays =
            self.delay.as_ref().map_or_else(Vec::new, |delay| delay.draw(seed, length, &self.paths, &gaps));
        let losses = self.losses(&gaps, length);
        // As LeoReplayer's: a delay in one number is that of either direction.
        recording.up.delays.clone_from(&delays);
        recording.up.losses.clone_from(&losses);
        recording.down =
            RecordedDirection { capacity: Some(capacity), delays, losses, ..RecordedDirection::default() };
        Ok(recording)
    }

    /// The probability of loss in parts of a billion, each with the time from which it holds; empty where
    /// nothing is lost.
    fn losses(&self, gaps: &[Gap], length: Duration) -> Vec<(Duration, u32)> {
        let lost = self.paths.as_ref().map_or(0.0, |paths| paths.lost);
        let share = libm::round(lost * f64::from(CERTAIN)) as u32;
        if share == 0 {
            return Vec::new();
        }
        let usual_ms = self.delay.as_ref().map_or(0, |delay| whole_ms(delay.values[SHARES.len() / 2]));
        let mut losses = vec![(Duration::ZERO, 0)];
        for gap in gaps.iter().filter(|gap| gap.length_ms() > 0) {
            let from = Duration::from_millis(gap.from_ms.saturating_sub(usual_ms));
            // What begins no earlier is the beginning of the period, or the end of a gap just before.
            while losses.pop_if(|last| last.0 >= from).is_some() {}
            losses.push((from, share));
            losses.push((Duration::from_millis(gap.until_ms), 0));
        }
        losses.retain(|(from, _)| *from < length);
        losses
    }

    /// The rate in each bin.
    pub(super) fn rates(&self, seed: u64, length: Duration) -> Vec<Rate> {
        let path = self.paths.as_ref().map(|paths| (paths, paths.share));
        let noise = Noise { echo: self.echo, noisy: self.noisy };
        let mut z = wandering("rate", seed, self.bin, length, (&self.memory, noise), path);
        let silent = match &self.outages {
            Some(outages) => outages.place(&mut z, self.bin, length, seed),
            None => vec![false; z.len()],
        };
        let quantiles: Vec<f64> = self.rates.iter().map(|rate| rate.as_bps_f64()).collect();
        let ranked = by_rank(&z, &silent, &quantiles);
        ranked.into_iter().map(|bps| Rate::from_bps(libm::round(bps) as u64)).collect()
    }

    /// When the paths change, and for how long nothing is sent then.
    fn gaps(&self, seed: u64, length: Duration) -> Vec<Gap> {
        let Some(paths) = &self.paths else { return Vec::new() };
        let starts: Vec<u64> = (0..)
            .map(|k| whole_ms(paths.first + paths.every * k))
            .take_while(|&ms| ms < whole_ms(length))
            .collect();
        let lengths = shuffled(even(&paths.gaps, starts.len()), &mut Random::stream(seed, "trace paths"));
        let gap = |(&from_ms, lasts): (&u64, f64)| Gap { from_ms, until_ms: from_ms + (lasts * 1e3) as u64 };
        starts.iter().zip(lengths).map(gap).collect()
    }

    /// Opportunities in each millisecond.
    fn counts(&self, seed: u64, rates: &[Rate], gaps: &[Gap], length: Duration) -> Vec<u32> {
        let mut random = Random::stream(seed, "trace grants");
        let mut counts = vec![0; whole_ms(length) as usize];
        let mut gaps = gaps.iter().peekable();
        let (mut bits, mut next) = (0.0, 0);
        let of_one = OPPORTUNITY.bits() as f64;
        for (ms, count) in (0_u64..).zip(&mut counts) {
            while gaps.next_if(|gap| gap.until_ms <= ms).is_some() {}
            if gaps.peek().is_some_and(|gap| gap.from_ms <= ms) {
                continue;
            }
            bits += rates[(ms / whole_ms(self.bin)) as usize].as_bps_f64() * 1e-3;
            if ms >= next {
                *count = (bits / of_one) as u32;
                bits -= f64::from(*count) * of_one;
                let wait_ms = quantile_of(&self.grants, random.uniform()) * 1e3;
                next = ms + (libm::round(wait_ms) as u64).max(1);
            }
        }
        counts
    }

    /// Whether every value is in its range.
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        millis("bin", self.bin, 1, 10_000, "a whole number of milliseconds from 1ms to 10s")?;
        let most = Rate::from_bps(10_000_000_000);
        grown("rates", &self.rates, Some(SHARES.len()), most, "15 rates, none below the last, to 10Gbps")?;
        let path = self.paths.as_ref().map_or(0.0, |paths| paths.share);
        remembered(&self.memory, self.echo, path)?;
        range("noisy", self.noisy, 0.01, 1.0, "0.01 to 1")?;
        let times = "1 to 100 times, none below the last, to 1h";
        let hour = Duration::from_secs(3_600);
        if let Some(outages) = &self.outages {
            range("outages.every", outages.every.as_secs_f64(), 0.001, 3_600.0, "a time from 1ms to 1h")?;
            grown("outages.lasts", &outages.lasts, None, hour, times)?;
            require((1..=1000).contains(&outages.fades), "outages.fades", outages.fades, "1 to 1000")?;
            range("outages.fall", outages.fall, 0.0, 10.0, "0 to 10")?;
            range("outages.rebound", outages.rebound, 0.0, 10.0, "0 to 10")?;
        }
        if let Some(paths) = &self.paths {
            millis(
                "paths.every",
                paths.every,
                1,
                3_600_000,
                "a whole number of milliseconds from 1ms to 1h",
            )?;
            millis("paths.first", paths.first, 0, 3_600_000, "a whole number of milliseconds to 1h")?;
            grown(
                "paths.gaps",
                &paths.gaps,
                None,
                paths.every,
                "1 to 100 times, none below the last, to `every`",
            )?;
            range("paths.lost", paths.lost, 0.0, 1.0, "0 to 1")?;
        }
        if !self.grants.is_empty() {
            grown("grants", &self.grants, None, hour, times)?;
        }
        let Some(delay) = &self.delay else { return Ok(()) };
        millis("delay.bin", delay.bin, 1, 10_000, "a whole number of milliseconds from 1ms to 10s")?;
        let (shares, minute) = (Some(SHARES.len()), Duration::from_secs(60));
        grown("delay.values", &delay.values, shares, minute, "15 times, none below the last, to 60s")?;
        if !delay.changing.is_empty() {
            grown(
                "delay.changing",
                &delay.changing,
                None,
                minute,
                "1 to 100 times, none below the last, to 60s",
            )?;
        }
        remembered(&delay.memory, delay.echo, delay.share)
    }

    /// The fastest rate.
    pub(super) fn fastest(&self) -> Rate {
        self.rates.last().copied().unwrap_or_default()
    }
}

impl MeasuredOutages {
    /// Which bins are silent. Lowers z before each outage and raises it afterwards.
    fn place(&self, z: &mut [f64], bin: Duration, length: Duration, seed: u64) -> Vec<bool> {
        let mut random = Random::stream(seed, "trace outages");
        let number = libm::round(length.as_secs_f64() / self.every.as_secs_f64()) as usize;
        let bins = |seconds: f64| (libm::round(seconds / bin.as_secs_f64()) as usize).max(1);
        let mut silent = vec![false; z.len()];
        for wide in even(&self.lasts, number).into_iter().rev().map(bins).filter(|wide| *wide < z.len()) {
            let mut best: Option<(f64, usize)> = None;
            let mut found = 0;
            for _ in 0..TRIES {
                let from = (random.uniform() * (z.len() - wide + 1) as f64) as usize;
                let around = from.saturating_sub(1)..(from + wide + 1).min(z.len());
                if silent[around].iter().any(|silent| *silent) {
                    continue;
                }
                let level = z[from..from + wide].iter().sum::<f64>() / wide as f64;
                if best.is_none_or(|(lowest, _)| level < lowest) {
                    best = Some((level, from));
                }
                found += 1;
                if found == self.fades {
                    break;
                }
            }
            if let Some((_, from)) = best {
                silent[from..from + wide].fill(true);
            }
        }
        for next in 1..z.len() {
            match (silent[next - 1], silent[next]) {
                (false, true) => z[next - 1] -= self.fall,
                (true, false) => z[next] += self.rebound,
                _ => {}
            }
        }
        silent
    }
}

impl MeasuredDelay {
    fn draw(
        &self,
        seed: u64,
        length: Duration,
        paths: &Option<Paths>,
        gaps: &[Gap],
    ) -> Vec<(Duration, Duration)> {
        let path = paths.as_ref().map(|paths| (paths, self.share));
        let noise = Noise { echo: self.echo, noisy: 1.0 };
        let z = wandering("delay", seed, self.bin, length, (&self.memory, noise), path);
        let quantiles: Vec<f64> = self.values.iter().map(|value| value.as_secs_f64()).collect();
        let mut values = by_rank(&z, &vec![false; z.len()], &quantiles);
        if !self.changing.is_empty() {
            let mut ranked: Vec<&Gap> = gaps.iter().collect();
            ranked.sort_by_key(|gap| gap.length_ms());
            for (gap, delay) in ranked.into_iter().zip(even(&self.changing, gaps.len())) {
                let bin = whole_ms(self.bin);
                let (from, until) = (gap.from_ms / bin, gap.until_ms.div_ceil(bin));
                let until = (until as usize).min(values.len());
                values[from as usize..until].fill(delay);
            }
        }
        let micros = |seconds: f64| Duration::from_micros(libm::round(seconds * 1e6) as u64);
        (0..).map(|k| self.bin * k).zip(values.into_iter().map(micros)).collect()
    }
}

/// What is new in each bin.
#[derive(Clone, Copy)]
struct Noise {
    echo: f64,
    noisy: f64,
}

/// z in each bin of `length`.
fn wandering(
    name: &str,
    seed: u64,
    bin: Duration,
    length: Duration,
    (memory, Noise { echo, noisy }): (&[Memory], Noise),
    path: Option<(&Paths, f64)>,
) -> Vec<f64> {
    let bins = length.as_nanos().div_ceil(bin.as_nanos()) as usize;
    let mut parts: Vec<Wander> = (0..)
        .zip(memory)
        .map(|(index, part)| {
            let a = libm::exp(-bin.as_secs_f64() / part.lasts.as_secs_f64());
            Wander::new(libm::sqrt(part.share), a, Random::stream(seed, &format!("trace {name} {index}")))
        })
        .collect();
    let of_path = path.map_or(0.0, |(_, share)| share);
    let left = (1.0 - of_path - memory.iter().map(|part| part.share).sum::<f64>()).max(0.0);
    let noise = Wander::new(libm::sqrt(left), echo, Random::stream(seed, &format!("trace {name} noise")));
    parts.push(noise.in_share(noisy));
    let mut level =
        Wander::new(libm::sqrt(of_path), 0.0, Random::stream(seed, &format!("trace {name} path")));
    let mut current = 0;
    let mut next = || parts.iter_mut().map(Wander::next).sum::<f64>();
    (0..bins)
        .map(|index| {
            let at = bin * index as u64;
            let here = path.map_or(0, |(paths, _)| paths.number(at));
            if here != current {
                current = here;
                level.next();
            }
            next() + level.value
        })
        .collect()
}

impl Paths {
    /// The number of the path at `at`.
    pub(super) fn number(&self, at: Duration) -> u64 {
        if at < self.first { 0 } else { 1 + (at - self.first).as_nanos() / self.every.as_nanos() }
    }
}

/// The quantile of each value's rank, 0 for those that are `silent`.
fn by_rank(z: &[f64], silent: &[bool], quantiles: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..z.len()).filter(|&index| !silent[index]).collect();
    order.sort_by(|&a, &b| z[a].total_cmp(&z[b]).then(a.cmp(&b)));
    let mut values = vec![0.0; z.len()];
    let number = order.len() as f64;
    for (rank, index) in order.into_iter().enumerate() {
        values[index] = at_share((rank as f64 + 0.5) / number, quantiles);
    }
    values
}

/// The value at `share`, linear between those at [`SHARES`].
pub(super) fn at_share(share: f64, quantiles: &[f64]) -> f64 {
    let right = SHARES.partition_point(|&known| known < share).clamp(1, SHARES.len() - 1);
    let (from, to) = (SHARES[right - 1], SHARES[right]);
    quantiles[right - 1] + (quantiles[right] - quantiles[right - 1]) * (share - from) / (to - from)
}

/// The value in seconds at `share` of a list at even steps.
fn quantile_of(list: &[Duration], share: f64) -> f64 {
    let place = share * (list.len() - 1) as f64;
    let low = place as usize;
    let high = (low + 1).min(list.len() - 1);
    let (a, b) = (list[low].as_secs_f64(), list[high].as_secs_f64());
    a + (b - a) * (place - low as f64)
}

/// `number` values in seconds at even steps of a list's quantile function, the last of them its last.
fn even(list: &[Duration], number: usize) -> Vec<f64> {
    let last = number.saturating_sub(1).max(1) as f64;
    let share = |k: usize| if number == 1 { 1.0 } else { k as f64 / last };
    (0..number).map(|k| quantile_of(list, share(k))).collect()
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn one() -> f64 {
    1.0
}

fn whole_ms(time: Duration) -> u64 {
    time.as_nanos() / 1_000_000
}

/// Fisher and Yates's shuffle.
fn shuffled(mut values: Vec<f64>, random: &mut Random) -> Vec<f64> {
    for index in (1..values.len()).rev() {
        values.swap(index, (random.uniform() * (index + 1) as f64) as usize);
    }
    values
}

fn remembered(memory: &[Memory], echo: f64, path: f64) -> Result<(), RecipeError> {
    require(memory.len() <= 8, "memory", memory.len(), "at most 8 parts")?;
    range("echo", echo, -0.9, 0.0, "-0.9 to 0")?;
    range("share", path, 0.0, 1.0, "0 to 1")?;
    let mut sum = path;
    for part in memory {
        range("memory.share", part.share, 0.0, 1.0, "0 to 1")?;
        require(
            part.lasts >= Duration::from_millis(1),
            "memory.lasts",
            part.lasts,
            "a time of at least 1ms",
        )?;
        sum += part.share;
    }
    range("memory.share", sum, 0.0, 1.0 + 1e-9, "a sum, with the path's, of at most 1")
}

/// Whether a list has `number` values, or 1 to 100, none below the one before and none above `most`.
fn grown<T: PartialOrd + Copy + std::fmt::Display>(
    field: &'static str,
    list: &[T],
    number: Option<usize>,
    most: T,
    expected: &'static str,
) -> Result<(), RecipeError> {
    let right = number.map_or((1..=100).contains(&list.len()), |number| list.len() == number);
    let ordered =
        list.windows(2).all(|pair| pair[0] <= pair[1]) && list.last().is_none_or(|last| *last <= most);
    let shown = list.iter().map(T::to_string).collect::<Vec<_>>().join(", ");
    require(right && ordered, field, format!("[{shown}]"), expected)
}

#[cfg(test)]
mod tests;
