//! The over-use detector: the slope of the one-way delay over groups of packets, and a threshold that adapts.
//!
//! libwebrtc: inter_arrival_delta.cc (groups), trendline_estimator.cc (slope and threshold).

use alloc::collections::VecDeque;

use brakelight_core::time::{Duration, Time};

/// libwebrtc delay_based_bwe.cc, kSendTimeGroupLength
const GROUP_LENGTH: Duration = Duration::from_millis(5);
/// libwebrtc inter_arrival_delta.cc, kBurstDeltaThreshold and kMaxBurstDuration
const BURST_GAP_MS: f64 = 5.0;
const BURST_LENGTH_MS: f64 = 100.0;
/// libwebrtc inter_arrival_delta.h, kArrivalTimeOffsetThreshold and kReorderedResetThreshold
const CLOCK_STEP_MS: f64 = 3000.0;
const REORDERED_RESET: u32 = 3;
/// libwebrtc trendline_estimator.cc: kDefaultTrendlineSmoothingCoeff, kDefaultTrendlineThresholdGain,
/// kMinNumDeltas, kDeltaCounterMax, kMaxAdaptOffsetMs and the bounds in UpdateThreshold
const SMOOTHING: f64 = 0.9;
const THRESHOLD_GAIN: f64 = 4.0;
const DELTAS_COUNTED: u32 = 60;
const DELTAS_MAX: u32 = 1000;
const ADAPT_OFFSET_MS: f64 = 15.0;
const ADAPT_TIME_MS: f64 = 100.0;
const THRESHOLD_MS: core::ops::RangeInclusive<f64> = 6.0..=600.0;

/// `later - earlier` in ms. Clocks may step backwards, so the result may be negative.
fn ms_between(later: Time, earlier: Time) -> f64 {
    (later.as_nanos() as i64).wrapping_sub(earlier.as_nanos() as i64) as f64 / 1e6
}

/// What the detector says of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Normal,
    Underuse,
    Overuse,
}

/// Packets that were sent within [`GROUP_LENGTH`], or that arrived as one burst.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Time,
    last_sent: Time,
    first_arrival: Time,
    last_arrival: Time,
    reported_at: Time,
}

/// What lies between the last packets of two neighboring groups, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deltas {
    pub(super) sent_ms: f64,
    pub(super) arrived_ms: f64,
}

/// Puts packets together in groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u32,
}

impl Groups {
    /// Takes a packet, whose report came at `now`. Returns the deltas of the last two groups when it begins a
    /// new one.
    pub(super) fn add(&mut self, sent: Time, arrived: Time, now: Time) -> Option<Deltas> {
        let fresh = Group {
            first_sent: sent,
            last_sent: sent,
            first_arrival: arrived,
            last_arrival: arrived,
            reported_at: now,
        };
        let Some(current) = self.current else {
            self.current = Some(fresh);
            return None;
        };
        if sent < current.first_sent {
            return None;
        }
        if !current.ends_before(sent, arrived) {
            self.current = Some(Group {
                last_sent: current.last_sent.max(sent),
                last_arrival: arrived,
                reported_at: now,
                ..current
            });
            return None;
        }
        let deltas = self.previous.map(|previous| Deltas {
            sent_ms: ms_between(current.last_sent, previous.last_sent),
            arrived_ms: ms_between(current.last_arrival, previous.last_arrival),
        });
        if let (Some(deltas), Some(previous)) = (deltas, self.previous) {
            let reported_ms = ms_between(current.reported_at, previous.reported_at);
            if deltas.arrived_ms - reported_ms >= CLOCK_STEP_MS {
                *self = Groups::default();
                return None;
            }
            if deltas.arrived_ms < 0.0 {
                self.reordered += 1;
                if self.reordered >= REORDERED_RESET {
                    *self = Groups::default();
                }
                return None;
            }
            self.reordered = 0;
        }
        self.previous = Some(current);
        self.current = Some(fresh);
        deltas
    }
}

impl Group {
    /// Whether a packet sent at `sent` that arrived at `arrived` belongs to a later group.
    fn ends_before(&self, sent: Time, arrived: Time) -> bool {
        let arrived_ms = ms_between(arrived, self.last_arrival);
        let sent_ms = ms_between(sent, self.last_sent);
        let is_burst = sent_ms == 0.0
            || (arrived_ms < sent_ms
                && arrived_ms <= BURST_GAP_MS
                && ms_between(arrived, self.first_arrival) < BURST_LENGTH_MS);
        !is_burst && sent.since(self.first_sent) > GROUP_LENGTH
    }
}

/// Settings of the detector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) window: usize,
    pub(super) k_up: f64,
    pub(super) k_down: f64,
    pub(super) overuse_ms: f64,
}

/// One group's arrival, on a clock that starts with the first, and the smoothed delay then.
#[derive(Clone, Copy, Debug)]
struct Point {
    at_ms: f64,
    delay_ms: f64,
}

/// The slope of the delay and what it means.
#[derive(Clone, Debug)]
pub(super) struct Trendline {
    rules: Rules,
    points: VecDeque<Point>,
    first_arrival: Option<Time>,
    deltas: u32,
    accumulated_ms: f64,
    smoothed_ms: f64,
    slope: f64,
    threshold_ms: f64,
    updated_at: Option<Time>,
    /// For how long the slope has been above the threshold, once it is.
    above_ms: Option<f64>,
    above: u32,
    usage: Usage,
}

impl Trendline {
    pub(super) fn new(rules: Rules, threshold_ms: f64) -> Self {
        Trendline {
            rules,
            points: VecDeque::with_capacity(rules.window + 1),
            first_arrival: None,
            deltas: 0,
            accumulated_ms: 0.0,
            smoothed_ms: 0.0,
            slope: 0.0,
            threshold_ms,
            updated_at: None,
            above_ms: None,
            above: 0,
            usage: Usage::Normal,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    pub(super) fn slope(&self) -> f64 {
        self.slope
    }

    pub(super) fn threshold_ms(&self) -> f64 {
        self.threshold_ms
    }

    /// Takes the deltas of two groups, the later of which arrived at `arrival` by the receiver's clock.
    pub(super) fn update(&mut self, deltas: Deltas, arrival: Time) {
        self.deltas = (self.deltas + 1).min(DELTAS_MAX);
        let first = *self.first_arrival.get_or_insert(arrival);
        self.accumulated_ms += deltas.arrived_ms - deltas.sent_ms;
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.accumulated_ms;
        self.points.push_back(Point { at_ms: ms_between(arrival, first), delay_ms: self.smoothed_ms });
        if self.points.len() > self.rules.window {
            self.points.pop_front();
        }
        let slope = if self.points.len() == self.rules.window { self.fit() } else { None };
        self.detect(slope.unwrap_or(self.slope), deltas.sent_ms, arrival);
    }

    /// The slope of the least-squares line through the points; none where all arrived at once.
    fn fit(&self) -> Option<f64> {
        let count = self.points.len() as f64;
        let mean_at = self.points.iter().map(|point| point.at_ms).sum::<f64>() / count;
        let mean_delay = self.points.iter().map(|point| point.delay_ms).sum::<f64>() / count;
        let (mut numerator, mut denominator) = (0.0, 0.0);
        for point in &self.points {
            let at = point.at_ms - mean_at;
            numerator += at * (point.delay_ms - mean_delay);
            denominator += at * at;
        }
        (denominator > 0.0).then(|| numerator / denominator)
    }

    fn detect(&mut self, slope: f64, sent_ms: f64, arrival: Time) {
        if self.deltas < 2 {
            return;
        }
        let trend_ms = f64::from(self.deltas.min(DELTAS_COUNTED)) * slope * THRESHOLD_GAIN;
        if trend_ms > self.threshold_ms {
            // Half of the time since the last group is taken to have been above.
            let above_ms = self.above_ms.map_or(sent_ms / 2.0, |before| before + sent_ms);
            self.above_ms = Some(above_ms);
            self.above += 1;
            if above_ms > self.rules.overuse_ms && self.above > 1 && slope >= self.slope {
                self.above_ms = Some(0.0);
                self.above = 0;
                self.usage = Usage::Overuse;
            }
        } else {
            self.above_ms = None;
            self.above = 0;
            self.usage = if trend_ms < -self.threshold_ms { Usage::Underuse } else { Usage::Normal };
        }
        self.slope = slope;
        self.adapt(libm::fabs(trend_ms), arrival);
    }

    /// gcc16 eq.5: the threshold follows the trend, slower up than down
    fn adapt(&mut self, trend_ms: f64, arrival: Time) {
        let before = self.updated_at.replace(arrival).unwrap_or(arrival);
        if trend_ms > self.threshold_ms + ADAPT_OFFSET_MS {
            // A spike of delay is no reason to become less sensitive.
            return;
        }
        let k = if trend_ms < self.threshold_ms { self.rules.k_down } else { self.rules.k_up };
        let elapsed_ms = ms_between(arrival, before).clamp(0.0, ADAPT_TIME_MS);
        self.threshold_ms += k * (trend_ms - self.threshold_ms) * elapsed_ms;
        self.threshold_ms = self.threshold_ms.clamp(*THRESHOLD_MS.start(), *THRESHOLD_MS.end());
    }
}
