//! The rate that losses allow, by a model of the path: some packets are lost at any rate, and besides those
//! that exceed a capacity.
//!
//! ```text
//! observation: packets whose fate is known, once they were sent over 250 ms: n_i kB, of which l_i lost, at
//!             r_i = n_i / time;  the newest 15, weighed by w_i = 0.9^age       PushBackObservation
//! p_i         = h + (1 - h) (r_i - B) / r_i above the capacity B, else h       GetLossProbability
//! L'          = sum w_i (l_i / p_i - (n_i - l_i) / (1 - p_i))                  GetDerivatives
//! L"          = -sum w_i (l_i / p_i^2 + (n_i - l_i) / (1 - p_i)^2)
//! h           = h - 0.75 L' / L", once                                         NewtonsMethodUpdate
//!               0.001 <= h <= 0.05 + 100 kbit/s / B                            GetFeasibleInherentLoss
//! lambda      = sum w_i l_i / sum w_i n_i, but for the two extremes     UpdateAverageReportedLossRatio
//! g           = (0.2 - lambda) / (0.002 + |0.2 - lambda|)                      AdjustBiasFactor
//! b           = g (0.0002 B + 0.02 ln(1 + B)),  B in kbit/s                    GetHighBandwidthBias
//! L           = sum w_i (l_i ln p_i + (n_i - l_i) ln(1 - p_i) + n_i b)         GetObjective
//! candidates: 1.02 B, B, 0.95 B, R unless the application is the limit, and A if above B    GetCandidates
//! B           = that of the largest L, but no higher than before while lambda > h; and while losses are the
//!               limit at most 1.3 times what it was up to 300 ms ago, and 1.5 R, or 1.2 R while R is below
//!               1.3 times the held rate
//! T           = max(R, min(B, A, U)),  U = 100 kbit/s / (lambda - 0.05) if lambda > 0.05
//!               where T < B: B = T, h = 0
//! hold:       once T falls below A it may not rise for 300 ms, twice as long the next time, up to 60 s
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | h, B | `best` | share, bit/s | 0.01, A | `ChannelParameters`, InitialInherentLossEstimate |
//! | n, l, r | `Observation` | bytes, bit/s | - | `Observation` |
//! | lambda | `average_loss` | share | 0 | `UpdateAverageReportedLossRatio`, of bytes |
//! | R | `throughput_bps` | bit/s | none | `SetAcknowledgedBitrate` |
//! | A | - | bit/s | - | `UpdateBandwidthEstimate`, the rate that the delay allows |
//! | T | `result_bps` | bit/s | A | `GetLossBasedResult` |
//!
//! Sources: loss_based_bwe_v2.cc of libwebrtc with the defaults of its field trial WebRTC-Bwe-LossBasedBweV2
//! (068e6ba6 of the mirror JumpingYang001/webrtc); `UpdateLossBasedEstimator` and `UpdateEstimate` of
//! send_side_bandwidth_estimation.cc (0b51f028); what it does to probes in probe_controller.cc,
//! `InitiateProbing` (0467d2b9).
//!
//! The library differentiates L by p and moves h by it, as if p rose by as much as h. Above the capacity it
//! rises by 1 - h of that.
//!
//! # Deviations
//!
//! - V1. A packet counts as lost when the host's loss detection says so, a few packets or an eighth of a
//!   round trip after a report of transport-wide feedback would. A loss that was taken back stays counted.
//! - V2. Rates and sizes are not rounded to whole bits per second and bytes. The kbit/s of b are whole, as
//!   there.
//! - V3. There is no padding. The library pads while the rate that losses allow rises
//!   (`kIncreaseUsingPadding`), for 2 s or until it stops. Here the state has the same times, and R of a flow
//!   whose application is the limit is no candidate then, either.
//! - V4. Parts that the defaults switch off are not here: smoothed sending rates, the acceleration after a
//!   long time without a reduction, the bound as a candidate, and losses by packets.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

/// ObservationWindowSize, MinNumObservations and ObservationDurationLowerBound
const OBSERVATIONS: usize = 15;
const LEAST_OBSERVATIONS: u64 = 3;
const LEAST_TIME: Duration = Duration::from_millis(250);
/// TemporalWeightFactor and InstantUpperBoundTemporalWeightFactor, which are the same
const WEIGHT: f64 = 0.9;
/// InitialInherentLossEstimate, InherentLossLowerBound, InherentLossUpperBoundOffset and
/// InherentLossUpperBoundBwBalance
const FIRST_LOSS: f64 = 0.01;
const LEAST_LOSS: f64 = 1e-3;
const MOST_LOSS: f64 = 0.05;
const MOST_LOSS_BPS: f64 = 100_000.0;
/// GetLossProbability: how near to 0 and 1 a probability comes
const CERTAINTY: f64 = 1e-6;
/// NewtonStepSize, of one iteration
const STEP: f64 = 0.75;
/// CandidateFactors
const FACTORS: [f64; 3] = [1.02, 1.0, 0.95];
/// HigherBwBiasFactor, HigherLogBwBiasFactor, LossThresholdOfHighBandwidthPreference and
/// BandwidthPreferenceSmoothingFactor
const BIAS: f64 = 0.0002;
const LOG_BIAS: f64 = 0.02;
const PREFERENCE_LOSS: f64 = 0.2;
const PREFERENCE_SMOOTHING: f64 = 0.002;
/// InstantUpperBoundBwBalance and InstantUpperBoundLossOffset
const BOUND_BPS: f64 = 100_000.0;
const BOUND_LOSS: f64 = 0.05;
/// MedianSendingRateFactor, and the observations above which the extremes do not count
const SUDDEN: f64 = 2.0;
const EXTREMES_FROM: u64 = 4;
/// MaxIncreaseFactor, DelayedIncreaseWindow, and bwe_defines.h, kCongestionControllerMinBitrate
const GROWTH: f64 = 1.3;
const GROWTH_TIME: Duration = Duration::from_millis(300);
const LEAST_GROWTH_BPS: f64 = 5000.0;
/// BwRampupUpperBoundFactor, BwRampupUpperBoundInHoldFactor and BwRampupUpperBoundHoldThreshold
const RAMP: f64 = 1.5;
const RAMP_AFTER_HOLD: f64 = 1.2;
const RAMP_THRESHOLD: f64 = 1.3;
/// kInitHoldDuration, kMaxHoldDuration and HoldDurationFactor
const FIRST_HOLD: Duration = Duration::from_millis(300);
const LONGEST_HOLD: Duration = Duration::from_secs(60);
const HOLD_GROWTH: u64 = 2;
/// PaddingDuration
const PADDING: Duration = Duration::from_secs(2);

/// What is the limit (`LossBasedState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The delay (`kDelayBasedEstimate`).
    Delay,
    /// Losses, and the rate rises (`kIncreaseUsingPadding`).
    Increasing,
    /// Losses (`kDecreasing`).
    Decreasing,
}

/// A path: what it loses at any rate, and what it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Channel {
    bps: f64,
    inherent_loss: f64,
}

impl Channel {
    /// Returns the probability that a packet is lost which is sent at `rate_bps`.
    fn loss(self, rate_bps: f64) -> f64 {
        let mut loss = self.inherent_loss;
        if rate_bps > self.bps {
            loss += (1.0 - self.inherent_loss) * (rate_bps - self.bps) / rate_bps;
        }
        loss.clamp(CERTAINTY, 1.0 - CERTAINTY)
    }

    /// Brings the inherent loss within its bounds (`GetFeasibleInherentLoss`).
    fn feasible(self) -> Channel {
        let most = if self.bps > 0.0 { (MOST_LOSS + MOST_LOSS_BPS / self.bps).min(1.0) } else { 1.0 };
        Channel { inherent_loss: self.inherent_loss.max(LEAST_LOSS).min(most), ..self }
    }
}

/// What became of the packets of a quarter of a second.
#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    number: u64,
    bytes: f64,
    lost_bytes: f64,
    rate_bps: f64,
}

impl Observation {
    fn loss(&self) -> f64 {
        if self.bytes > 0.0 { self.lost_bytes / self.bytes } else { 0.0 }
    }
}

/// The rate may not rise until a time.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Time>,
    /// How long the next one is.
    next: Duration,
    bps: f64,
}

impl Hold {
    fn none() -> Self {
        Hold { until: None, next: FIRST_HOLD, bps: f64::INFINITY }
    }
}

/// The model, and the rate that follows from it, in bit/s of payload.
#[derive(Clone, Debug)]
pub(super) struct LossV2 {
    min_bps: f64,
    max_bps: f64,
    /// 0.9 to the power of the index.
    weights: [f64; OBSERVATIONS],
    /// By their number modulo their count.
    observations: [Option<Observation>; OBSERVATIONS],
    observed: u64,
    /// What is known since the last observation.
    partial: Observation,
    /// When the first and the last packet was sent whose fate became known since the last update.
    reported: Option<(Time, Time)>,
    /// When the last packet of the newest observation was sent.
    observed_at: Option<Time>,
    average_loss: f64,
    throughput_bps: Option<f64>,
    best: Option<Channel>,
    state: State,
    result_bps: f64,
    hold: Hold,
    /// When the rate began to rise, and to what, while losses are the limit.
    padding: Option<(Time, f64)>,
    /// When the limit of the growth was set, and to what.
    growth: Option<(Time, f64)>,
}

impl LossV2 {
    pub(super) fn new(min_bps: f64, max_bps: f64) -> Self {
        LossV2 {
            min_bps,
            max_bps,
            weights: core::array::from_fn(|age| libm::pow(WEIGHT, age as f64)),
            observations: [None; OBSERVATIONS],
            observed: 0,
            partial: Observation::default(),
            reported: None,
            observed_at: None,
            average_loss: 0.0,
            throughput_bps: None,
            best: None,
            state: State::Delay,
            result_bps: max_bps,
            hold: Hold::none(),
            padding: None,
            growth: None,
        }
    }

    /// Returns the rate, once there are enough observations.
    pub(super) fn bps(&self) -> Option<f64> {
        (self.observed >= LEAST_OBSERVATIONS && self.best.is_some()).then_some(self.result_bps)
    }

    /// Returns what is the limit.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Returns the share that the path loses at any rate.
    pub(super) fn inherent_loss(&self) -> f64 {
        self.best.map_or(FIRST_LOSS, |best| best.inherent_loss)
    }

    /// Counts a packet whose fate is known.
    pub(super) fn count(&mut self, sent_at: Time, size: Bytes, is_lost: bool) {
        self.partial.bytes += size.0 as f64;
        if is_lost {
            self.partial.lost_bytes += size.0 as f64;
        }
        let (first, last) = self.reported.unwrap_or((sent_at, sent_at));
        self.reported = Some((first.min(sent_at), last.max(sent_at)));
    }

    /// Takes the rate that the delay allows, what arrives, and whether the application is the limit.
    pub(super) fn update(&mut self, delay_bps: f64, throughput_bps: Option<f64>, is_app_limited: bool) {
        self.throughput_bps = throughput_bps.or(self.throughput_bps);
        let Some(now) = self.observe() else { return };
        let old = match self.best {
            Some(best) => best,
            None => {
                self.result_bps = delay_bps;
                Channel { bps: delay_bps, inherent_loss: FIRST_LOSS }
            }
        };
        let found = self.find(old, delay_bps, is_app_limited);
        let best = self.limit_growth(old, found, now);
        let lowest = self.throughput_bps.unwrap_or(0.0).max(self.min_bps);
        let bounded = best.bps.min(self.highest()).min(delay_bps).max(lowest);
        self.best = Some(if bounded < best.bps {
            Channel { bps: bounded, inherent_loss: 0.0 }
        } else {
            Channel { bps: best.bps.max(lowest), ..best }
        });
        self.decide(bounded, lowest, delay_bps, now);
    }

    /// Ends an observation if it is long enough, and returns when its last packet was sent.
    fn observe(&mut self) -> Option<Time> {
        let (first, last) = self.reported.take()?;
        let time = last.since(*self.observed_at.get_or_insert(first));
        if time < LEAST_TIME {
            return None;
        }
        self.observed_at = Some(last);
        let partial = core::mem::take(&mut self.partial);
        let rate_bps = 8.0 * partial.bytes / time.as_secs_f64();
        let index = self.observed % OBSERVATIONS as u64;
        self.observations[index as usize] = Some(Observation { number: self.observed, rate_bps, ..partial });
        self.observed += 1;
        self.average_loss = self.average();
        Some(last)
    }

    /// The observations with their weights.
    fn weighted(&self) -> impl Iterator<Item = (f64, &Observation)> {
        let newest = self.observed.saturating_sub(1);
        self.observations.iter().flatten().map(move |one| (self.weights[(newest - one.number) as usize], one))
    }

    /// The mean share of lost bytes (`CalculateAverageReportedByteLossRatio`).
    fn average(&self) -> f64 {
        let (mut bytes, mut lost) = (0.0, 0.0);
        // Of the least and of the most lossy observation: share, weighed bytes, weighed lost bytes, rate.
        let (mut least, mut most) = ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0));
        let mut rate_of_most_bps = 0.0;
        for (weight, one) in self.weighted() {
            bytes += weight * one.bytes;
            lost += weight * one.lost_bytes;
            if self.observed >= EXTREMES_FROM {
                let loss = one.loss();
                let extreme = (loss, weight * one.bytes, weight * one.lost_bytes);
                if loss > most.0 {
                    most = extreme;
                    rate_of_most_bps = one.rate_bps;
                }
                if loss < least.0 {
                    least = extreme;
                }
            }
        }
        if bytes <= 0.0 {
            return 0.0;
        }
        let others = bytes - least.1 - most.1;
        // Where much was sent of a sudden, its losses are no accident.
        if SUDDEN * self.median_rate_bps() <= rate_of_most_bps || others <= 0.0 {
            return lost / bytes;
        }
        ((lost - least.2 - most.2) / others).clamp(0.0, 1.0)
    }

    fn median_rate_bps(&self) -> f64 {
        let mut rates = [f64::INFINITY; OBSERVATIONS];
        let mut count = 0;
        for one in self.observations.iter().flatten().filter(|one| one.rate_bps > 0.0) {
            rates[count] = one.rate_bps;
            count += 1;
        }
        rates.sort_unstable_by(f64::total_cmp);
        match (count, count / 2) {
            (0, _) => 0.0,
            (_, half) if count % 2 == 0 => (rates[half - 1] + rates[half]) / 2.0,
            (_, half) => rates[half],
        }
    }

    /// The highest rate that the losses allow at once (`CalculateInstantUpperBound`).
    fn highest(&self) -> f64 {
        if self.average_loss > BOUND_LOSS {
            BOUND_BPS / (self.average_loss - BOUND_LOSS)
        } else {
            self.max_bps
        }
    }

    /// The likeliest of the channels near `old`.
    fn find(&self, old: Channel, delay_bps: f64, is_app_limited: bool) -> Channel {
        let limit_bps = match self.growth {
            Some((_, bps)) if self.state != State::Delay => bps,
            _ => self.max_bps,
        };
        let throughput = self.throughput_bps.filter(|_| !is_app_limited);
        let delay = Some(delay_bps).filter(|bps| *bps > old.bps);
        let factors = FACTORS.map(|factor| Some(factor * old.bps));
        let (mut best, mut most) = (old, f64::NEG_INFINITY);
        for bps in factors.into_iter().chain([throughput, delay]).flatten() {
            let candidate = Channel { bps: bps.min(old.bps.max(limit_bps)), ..old };
            let candidate = self.newton(candidate.feasible());
            let objective = self.objective(candidate);
            if objective > most {
                (best, most) = (candidate, objective);
            }
        }
        // NotIncreaseIfInherentLossLessThanAverageLoss
        if self.average_loss > best.inherent_loss {
            best.bps = best.bps.min(old.bps);
        }
        best
    }

    /// One step of Newton's method towards the likeliest inherent loss.
    fn newton(&self, channel: Channel) -> Channel {
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, one) in self.weighted() {
            let p = channel.loss(one.rate_bps);
            let (lost, arrived) = (one.lost_bytes / 1000.0, (one.bytes - one.lost_bytes) / 1000.0);
            first += weight * (lost / p - arrived / (1.0 - p));
            second -= weight * (lost / (p * p) + arrived / ((1.0 - p) * (1.0 - p)));
        }
        // Packets without payload say nothing.
        let second = if second < 0.0 { second } else { -1e-6 };
        Channel { inherent_loss: channel.inherent_loss - STEP * first / second, ..channel }.feasible()
    }

    /// The logarithm of the likelihood of what was observed, with a preference for high rates.
    fn objective(&self, channel: Channel) -> f64 {
        let bias = self.bias(channel.bps);
        let likelihood = |(weight, one): (f64, &Observation)| {
            let p = channel.loss(one.rate_bps);
            let (lost, arrived) = (one.lost_bytes / 1000.0, (one.bytes - one.lost_bytes) / 1000.0);
            weight * (lost * libm::log(p) + arrived * libm::log(1.0 - p) + bias * (lost + arrived))
        };
        self.weighted().map(likelihood).sum()
    }

    /// How much a kilobyte speaks for `bps`.
    fn bias(&self, bps: f64) -> f64 {
        let kbps = libm::round(bps / 1000.0);
        let below = PREFERENCE_LOSS - self.average_loss;
        let preference = below / (PREFERENCE_SMOOTHING + libm::fabs(below));
        preference * (BIAS * kbps + LOG_BIAS * libm::log(1.0 + kbps))
    }

    /// Bounds `found` by what the rate was and by what arrives, while losses are the limit.
    fn limit_growth(&self, old: Channel, found: Channel, now: Time) -> Channel {
        let mut best = found;
        if self.state == State::Delay {
            return best;
        }
        if let Some((from, bps)) = self.growth
            && now.since(from) < GROWTH_TIME
        {
            best.bps = best.bps.min(bps);
        }
        if let Some(throughput) = self.throughput_bps
            && self.is_increase(old.bps, best.bps)
        {
            let is_after_hold = throughput < RAMP_THRESHOLD * self.hold.bps && self.hold.bps.is_finite();
            let ramp = if is_after_hold { RAMP_AFTER_HOLD } else { RAMP };
            best.bps = best.bps.min(ramp * throughput).max(old.bps);
            if self.state == State::Decreasing && best.bps == old.bps {
                // One bit more, so that the state changes.
                best.bps += 1.0;
            }
        }
        best
    }

    /// Whether the rate rises while losses are the limit (`IsEstimateIncreasingWhenLossLimited`).
    fn is_increase(&self, old_bps: f64, new_bps: f64) -> bool {
        match self.state {
            State::Delay => false,
            State::Increasing => old_bps <= new_bps,
            State::Decreasing => old_bps < new_bps,
        }
    }

    /// Decides the state and the result.
    fn decide(&mut self, bounded_bps: f64, lowest_bps: f64, delay_bps: f64, now: Time) {
        let is_limit = bounded_bps < delay_bps;
        if self.state == State::Decreasing && self.hold.until.is_some_and(|until| until > now) && is_limit {
            self.hold.bps = self.hold.bps.max(lowest_bps);
            self.result_bps = bounded_bps.min(self.hold.bps);
            return;
        }
        let may_increase = self.is_increase(self.result_bps, bounded_bps) && self.may_keep(bounded_bps, now);
        if is_limit && bounded_bps < self.max_bps && may_increase {
            if self.padding.is_none_or(|(_, bps)| bounded_bps > bps) {
                self.padding = Some((now, bounded_bps));
            }
            self.state = State::Increasing;
        } else if is_limit && bounded_bps < self.max_bps {
            if self.state != State::Decreasing {
                let until = Some(now + self.hold.next);
                let next = (self.hold.next * HOLD_GROWTH).min(LONGEST_HOLD);
                self.hold = Hold { until, next, bps: bounded_bps };
            }
            self.padding = None;
            self.state = State::Decreasing;
        } else {
            self.hold = Hold::none();
            self.padding = None;
            self.state = State::Delay;
        }
        self.result_bps = bounded_bps;
        if self.state != State::Delay && self.growth.is_none_or(|(from, _)| now.since(from) > GROWTH_TIME) {
            let bps = self.best.map_or(0.0, |best| best.bps);
            self.growth = Some((now, (GROWTH * bps).max(LEAST_GROWTH_BPS)));
        }
    }

    /// Whether an increase goes on (`CanKeepIncreasingState`).
    fn may_keep(&self, bps: f64, now: Time) -> bool {
        self.state != State::Increasing
            || self.padding.is_none_or(|(from, most)| now.since(from) <= PADDING || most < bps)
    }
}

#[cfg(test)]
mod tests;
