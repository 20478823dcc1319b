//! The seeded generator of synthetic traces.
//!
//! ```text
//! snr(t)  = snr + sum_i x_i(t) - loss * blocked(t) + y(floor(t / every))                     dB
//! x_i     : Ornstein-Uhlenbeck, standard deviation sigma_i, correlation time lasts_i
//! x_i(t + h) = a x_i(t) + sigma_i sqrt(1 - a^2) N(0, 1),   a = exp(-h / lasts_i)             exact for any h
//! se(snr) = 0 below -10 dB, else log2(1 + 10^(min(snr, snr_limit) / 10))                     bit/s/Hz
//! lambda(t) = c * se(snr(t)), 0 in an outage;   c such that the mean over the trace is `mean`
//!                                                                                            opportunities/s
//! grants  : a Poisson process of intensity lambda / burst, moved to the end of its slot
//! a grant : G opportunities at once, G geometric on 1, 2, ... with mean `burst`
//! outage  : begins after an exponential time of mean `every`, lasts as a bounded Pareto law says
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | snr, sigma_i, lasts_i | `snr`, `fading` | dB, time | - | shadowing, an OU process in dB: gudmundson91 |
//! | -10 dB, 22 dB | constant, `snr_limit` | dB | 22 | truncated Shannon curve: 3GPP TR 36.942, A.1 |
//! | mean | `mean` | bit/s | - | of the trace as generated, up to the scatter of the Poisson process |
//! | burst | `burst` | opportunities | - | fitted |
//! | slot | `slot` | time | 1 ms | one LTE subframe |
//! | every, shortest, longest, exponent | `outages` | time, 1 | none | fitted |
//! | loss, every, lasts | `blockage` | dB, time | none | chosen per recipe |
//! | y, every, gap | `handover` | dB, time | none | chosen per recipe |
//!
//! D1. The SNR holds still for 5 ms at a time: correlation times below that act like noise of 5 ms.
//! D2. Outages do not know the SNR, and scheduling has no memory beyond a grant: no HARQ and no
//! scheduling-request period. D3. `se` is a stand-in for all that decides a rate: other users of the cell are
//! part of the fitted wandering. D4. The last millisecond always has an opportunity, so that the period is
//! the duration. D5. Nothing ties the end of a period to the beginning of the next.

use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_links::trace::{Trace, TraceError};

use super::OPPORTUNITY;
use super::recipe::{Cellular, Outages, Recipe, RecipeError, Step};
use super::recording::{RecordedCapacity, Recording};

/// How long the SNR holds still.
const HOLD_MS: usize = 5;

/// Below this SNR nothing is sent, dB.
// tr36942 A.1
const SNR_LEAST: f64 = -10.0;

impl Recipe {
    /// Returns the trace that this recipe makes: the same recipe, the same trace, on every machine.
    pub fn generate(&self) -> Result<Trace, RecipeError> {
        self.check()?;
        let Some(measured) = &self.measured else { return self.opportunities() };
        let recording = measured.record(self.seed, self.duration)?;
        recording.trace(None).map_err(|error| RecipeError::Toml(error.to_string()))
    }

    /// Returns the same as a recording: its capacity `down`, and the delay and loss of either direction where
    /// the recipe has them.
    pub fn record(&self) -> Result<Recording, RecipeError> {
        self.check()?;
        if let Some(measured) = &self.measured {
            return measured.record(self.seed, self.duration);
        }
        let trace = self.opportunities()?;
        let mut recording = Recording::new(trace.period());
        recording.about.technology = Some("synthetic".to_string());
        recording.down.capacity = Some(RecordedCapacity::Opportunities(trace));
        Ok(recording)
    }

    /// What a recipe of `cellular` or of `steps` makes.
    fn opportunities(&self) -> Result<Trace, RecipeError> {
        let length = millis(self.duration);
        let counts = match &self.cellular {
            Some(cellular) => cellular.counts(self.seed, length),
            None => schedule(&self.steps, length),
        };
        if counts.iter().all(|&count| count == 0) {
            return Err(RecipeError::Silent);
        }
        from_counts(counts).map_err(|error| RecipeError::Toml(error.to_string()))
    }
}

/// Returns a trace whose millisecond `i + 1` has `counts[i]` opportunities. Its period is the length of
/// `counts`: where the last one is zero it becomes one.
pub fn from_counts(mut counts: Vec<u32>) -> Result<Trace, TraceError> {
    if let Some(last) = counts.last_mut() {
        *last = (*last).max(1);
    }
    let repeated =
        counts.iter().zip(1_u64..).flat_map(|(&count, ms)| std::iter::repeat_n(ms, count as usize));
    Trace::from_millis(repeated)
}

fn millis(time: Duration) -> usize {
    (time.as_nanos() / 1_000_000) as usize
}

/// Opportunities in each millisecond at the rates of `steps`: an opportunity comes as soon as its bits have.
fn schedule(steps: &[Step], length: usize) -> Vec<u32> {
    let whole = OPPORTUNITY.bits() * 1_000;
    let mut milli_bits = 0;
    let rates = steps.iter().flat_map(|step| std::iter::repeat_n(step.rate.bps(), millis(step.lasts)));
    let counts = rates.cycle().take(length).map(|rate| {
        milli_bits += rate;
        let count = milli_bits / whole;
        milli_bits %= whole;
        count as u32
    });
    counts.collect()
}

impl Cellular {
    /// Opportunities in each of `length` milliseconds.
    fn counts(&self, seed: u64, length: usize) -> Vec<u32> {
        let mut intensity = self.efficiency(seed, length);
        if let Some(outages) = &self.outages {
            outages.silence(&mut intensity, &mut Random::stream(seed, "trace outages"));
        }
        if let Some(handover) = &self.handover {
            let (every, gap) = (millis(handover.every), millis(handover.gap));
            intensity.chunks_mut(every).skip(1).for_each(|path| {
                let gap = gap.min(path.len());
                path[..gap].fill(0.0);
            });
        }
        let total: f64 = intensity.iter().sum();
        let wanted = self.mean.as_bps_f64() * 1e-3 / OPPORTUNITY.bits() as f64 * length as f64;
        let scale = if total > 0.0 { wanted / total } else { 0.0 };
        self.grants(&intensity, scale, &mut Random::stream(seed, "trace grants"))
    }

    /// Spectral efficiency in each millisecond.
    fn efficiency(&self, seed: u64, length: usize) -> Vec<f64> {
        let mut processes: Vec<Wander> = (0..)
            .zip(&self.fading)
            .map(|(index, fading)| {
                let a = libm::exp(-(HOLD_MS as f64 * 1e-3) / fading.lasts.as_secs_f64());
                let random = Random::stream(seed, &format!("trace fading {index}"));
                Wander::new(fading.sigma, a, random)
            })
            .collect();
        let mut blocked = self.blockage.map(|blockage| {
            Switch::new(blockage.every, blockage.lasts, Random::stream(seed, "trace blockage"))
        });
        let mut path = self.handover.map(|handover| {
            let random = Random::stream(seed, "trace handover");
            (millis(handover.every), Wander::new(handover.sigma, 0.0, random))
        });
        let mut efficiency = Vec::with_capacity(length + HOLD_MS);
        while efficiency.len() < length {
            let mut snr = self.snr + processes.iter_mut().map(Wander::next).sum::<f64>();
            if let (Some(switch), Some(blockage)) = (&mut blocked, &self.blockage)
                && switch.advance(HOLD_MS)
            {
                snr -= blockage.loss;
            }
            if let Some((every, wander)) = &mut path {
                // The first SNR of a path is drawn when its first stretch begins.
                if efficiency.len() % *every < HOLD_MS {
                    wander.next();
                }
                snr += wander.value;
            }
            let value = spectral_efficiency(snr, self.snr_limit);
            efficiency.extend_from_slice(&[value; HOLD_MS]);
        }
        efficiency.truncate(length);
        efficiency
    }

    /// Grants drawn at `intensity` times `scale` opportunities per millisecond.
    fn grants(&self, intensity: &[f64], scale: f64, random: &mut Random) -> Vec<u32> {
        let slot = millis(self.slot);
        let mut counts = vec![0; intensity.len()];
        // The process in its own time, where grants come once per `burst` on average.
        let (mut elapsed, mut next) = (0.0, random.exponential() * self.burst);
        for (ms, &now) in intensity.iter().enumerate() {
            elapsed += now * scale;
            while next <= elapsed {
                let end = ((ms / slot + 1) * slot).min(intensity.len()) - 1;
                counts[end] += geometric(self.burst, random);
                next += random.exponential() * self.burst;
            }
        }
        counts
    }
}

impl Outages {
    fn silence(&self, intensity: &mut [f64], random: &mut Random) {
        let length = intensity.len();
        let mut from_s = 0.0;
        loop {
            from_s += random.exponential() * self.every.as_secs_f64();
            let lasts_s = self.length_s(random.uniform());
            let from = (from_s * 1e3) as usize;
            from_s += lasts_s;
            if from >= length {
                return;
            }
            intensity[from..length.min((from_s * 1e3) as usize)].fill(0.0);
        }
    }

    /// The quantile `u` of the bounded Pareto law, in seconds.
    fn length_s(&self, u: f64) -> f64 {
        let (shortest, longest) = (self.shortest.as_secs_f64(), self.longest.as_secs_f64());
        // F(d) = (1 - (L/d)^k) / (1 - (L/H)^k), solved for d.
        let tail = libm::pow(shortest / longest, self.exponent);
        shortest * libm::pow(1.0 - u * (1.0 - tail), -1.0 / self.exponent)
    }
}

/// Shannon's curve, truncated at both ends, in bit/s/Hz.
// tr36942 A.1
fn spectral_efficiency(snr: f64, snr_limit: f64) -> f64 {
    if snr < SNR_LEAST {
        return 0.0;
    }
    libm::log2(1.0 + libm::pow(10.0, snr.min(snr_limit) / 10.0))
}

/// Geometric on 1, 2, ... with the given mean.
fn geometric(mean: f64, random: &mut Random) -> u32 {
    if mean <= 1.0 {
        return 1;
    }
    let trials = random.exponential() / -libm::log1p(-1.0 / mean);
    1 + trials as u32
}

/// A stationary Gauss-Markov sequence.
pub(super) struct Wander {
    sigma: f64,
    /// What is left of a value a step later.
    a: f64,
    /// The share of steps in which anything is new.
    share: f64,
    pub(super) value: f64,
    random: Random,
}

impl Wander {
    pub(super) fn new(sigma: f64, a: f64, mut random: Random) -> Self {
        let value = sigma * random.normal();
        Wander { sigma, a, share: 1.0, value, random }
    }

    /// The same, of the same variance, with anything new in `share` of the steps alone.
    pub(super) fn in_share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }

    pub(super) fn next(&mut self) -> f64 {
        self.value *= self.a;
        if self.share >= 1.0 || self.random.chance(self.share) {
            let innovation = libm::sqrt((1.0 - self.a * self.a) / self.share);
            self.value += self.sigma * innovation * self.random.normal();
        }
        self.value
    }
}

/// A two-state Markov process in continuous time.
struct Switch {
    /// Mean stay in either state, milliseconds.
    means_ms: [f64; 2],
    on: bool,
    left_ms: f64,
    random: Random,
}

impl Switch {
    fn new(off: Duration, on: Duration, mut random: Random) -> Self {
        let means_ms = [off.as_millis_f64(), on.as_millis_f64()];
        let on = random.chance(means_ms[1] / (means_ms[0] + means_ms[1]));
        let left_ms = random.exponential() * means_ms[usize::from(on)];
        Switch { means_ms, on, left_ms, random }
    }

    /// Its state now; moves on by `step_ms`.
    fn advance(&mut self, step_ms: usize) -> bool {
        let now = self.on;
        self.left_ms -= step_ms as f64;
        while self.left_ms < 0.0 {
            self.on = !self.on;
            self.left_ms += self.random.exponential() * self.means_ms[usize::from(self.on)];
        }
        now
    }
}

#[cfg(test)]
mod tests;
