//! From the numbers that a search changes to a link, and from a link to a scenario.
//!
//! Every space is a cube: each coordinate from 0 to 1 is one property of the link, within its bounds. All
//! spaces share the round trip and the buffer.
//!
//! | space | coordinates |
//! |---|---|
//! | `steps` | eight rates and how long each lasts, over and over |
//! | `cellular` | mean, variation and correlation of ln(rate), and 32 innovations of an AR(1) process |
//! | `delay` | a constant rate; 16 delays beside the queue, how long each lasts, a beat on which ACKs leave |
//! | `cross` | a constant rate; two senders of constant rate that are on and off |
//! | `mixed` | `steps` with random loss, delays, a beat and one such sender |

use std::str::FromStr;

use brakelight_core::packet::Direction;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, Service, Steps, TraceOffset};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::scheme_string::{ByName, SchemeString};
use brakelight_scenario::traffic::{OnOff, Traffic};
use serde::{Deserialize, Serialize};

use super::bounds::{Bounds, Span};
use crate::text::number;

/// Which links are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Space {
    /// Capacity as a radio might have it.
    #[default]
    Cellular,
    /// Capacity in steps.
    Steps,
    /// Delay over time on a link of constant capacity.
    Delay,
    /// Cross traffic on a link of constant capacity.
    Cross,
    /// All of it.
    Mixed,
}

impl Space {
    /// Every space with its name.
    pub const ALL: [(&str, Space); 5] = [
        ("cellular", Space::Cellular),
        ("steps", Space::Steps),
        ("delay", Space::Delay),
        ("cross", Space::Cross),
        ("mixed", Space::Mixed),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Space::ALL.iter().find(|(_, space)| *space == self).map_or("", |(name, _)| name)
    }

    /// Returns how many coordinates it has.
    pub(super) fn dimension(self, bounds: &Bounds) -> usize {
        let mut count = Coordinates { values: &[], next: 0 };
        self.read(&mut count, bounds);
        count.next
    }

    /// The link at a place of the cube.
    pub(super) fn link(self, values: &[f64], bounds: &Bounds) -> Link {
        self.read(&mut Coordinates { values, next: 0 }, bounds)
    }

    fn read(self, at: &mut Coordinates<'_>, bounds: &Bounds) -> Link {
        let rtt = at.time(bounds.rtt);
        let products = at.logarithmic(bounds.buffer.low, bounds.buffer.high);
        let steps = match self {
            Space::Steps | Space::Mixed => steps(at, bounds),
            Space::Cellular => cellular(at, bounds),
            Space::Delay | Space::Cross => {
                vec![(Duration::from_secs(1), rate(at.logarithmic(low(bounds), high(bounds))))]
            }
        };
        let mut link = Link { rtt_ms: millis(rtt), buffer_pkts: 0, steps: Vec::new(), ..Link::default() };
        link.steps = steps.iter().map(|(time, rate)| (millis(*time), rate.bps() / 1000)).collect();
        if let Some(change) = bounds.change {
            link.keep_within(change);
        }
        link.buffer_pkts = packets(products * link.mean_bps() * rtt.as_secs_f64());
        if matches!(self, Space::Delay | Space::Mixed) {
            let longest = bounds.delay.as_secs_f64();
            let count = if self == Space::Delay { 16 } else { 8 };
            let shortest = Duration::from_millis(10);
            link.hold_ms =
                millis(at.time(Span { low: shortest, high: bounds.correlation.high.max(shortest) }));
            link.delays_ms = (0..count).map(|_| (at.unit() * longest * 1e3).round() as u64).collect();
            // Half of the coordinate is no beat.
            link.beat_ms = ((2.0 * at.unit() - 1.0).max(0.0) * longest * 1e3).round() as u64;
        }
        if self == Space::Mixed {
            // A quarter of the coordinate is no loss; the rest from one in a hundred thousand on.
            let share = at.unit();
            let least = 1e-5_f64.min(bounds.loss);
            if share > 0.25 && bounds.loss > 0.0 {
                let loss = least * libm::pow(bounds.loss / least, (share - 0.25) / 0.75);
                link.loss_per_million = (loss * 1e6).round() as u64;
            }
        }
        let senders = match self {
            Space::Cross => 2,
            Space::Mixed => 1,
            _ => 0,
        };
        for _ in 0..senders {
            let times = Span { low: Duration::from_millis(10), high: bounds.duration / 2 };
            let (start, on, off) = (at.unit(), millis(at.time(times)), millis(at.time(times)));
            let share = at.unit();
            let kbps = (share * bounds.cross * link.mean_bps() / 1e3 / senders as f64).round() as u64;
            if kbps > 0 {
                let start_ms = (start * bounds.duration.as_millis_f64() / 2.0) as u64;
                link.cross.push(Cross { start_ms, on_ms: on.max(1), off_ms: off.max(1), kbps });
            }
        }
        link
    }
}

impl FromStr for Space {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        super::by_name(&Space::ALL, "space", text)
    }
}

/// Rates that each last a while.
fn steps(at: &mut Coordinates<'_>, bounds: &Bounds) -> Vec<(Duration, Rate)> {
    const STEPS: usize = 8;
    let logarithms: Vec<f64> =
        (0..STEPS).map(|_| libm::log(at.logarithmic(low(bounds), high(bounds)))).collect();
    let times: Vec<Duration> = (0..STEPS).map(|_| at.time(bounds.correlation)).collect();
    let weights: Vec<f64> = times.iter().map(|time| time.as_secs_f64()).collect();
    let logarithms = within_variation(&logarithms, &weights, bounds.variation);
    times.into_iter().zip(logarithms.into_iter().map(|value| rate(libm::exp(value)))).collect()
}

/// Rates whose logarithm is a first-order autoregressive process, four of them in each correlation time.
fn cellular(at: &mut Coordinates<'_>, bounds: &Bounds) -> Vec<(Duration, Rate)> {
    const PIECES: usize = 32;
    const PER_TIME: u64 = 4;
    let mean = libm::log(at.logarithmic(low(bounds), high(bounds)));
    let variation = at.unit() * bounds.variation;
    let time = at.time(bounds.correlation);
    let keep = libm::exp(-1.0 / PER_TIME as f64);
    let mut state = 0.0;
    let mut logarithms = Vec::new();
    for piece in 0..PIECES {
        let innovation = normal(at.unit());
        state =
            if piece == 0 { innovation } else { keep * state + libm::sqrt(1.0 - keep * keep) * innovation };
        let value: f64 = mean + variation * state;
        logarithms.push(value.clamp(libm::log(low(bounds)), libm::log(high(bounds))));
    }
    let logarithms = within_variation(&logarithms, &[1.0; PIECES], bounds.variation);
    let each = (time / PER_TIME).max(Duration::from_millis(1));
    logarithms.into_iter().map(|value| (each, rate(libm::exp(value)))).collect()
}

/// The same around their mean, no wider than allowed.
fn within_variation(logarithms: &[f64], weights: &[f64], most: f64) -> Vec<f64> {
    let all: f64 = weights.iter().sum();
    let mean_of = |f: &dyn Fn(f64) -> f64| {
        logarithms.iter().zip(weights).map(|(value, weight)| f(*value) * weight).sum::<f64>() / all
    };
    let mean = mean_of(&|value| value);
    let deviation = libm::sqrt(mean_of(&|value| (value - mean) * (value - mean)));
    let scale = if deviation > most { most / deviation } else { 1.0 };
    logarithms.iter().map(|value| mean + (value - mean) * scale).collect()
}

/// The normal quantile of `share`, cut at 2.5 deviations: Winitzki's approximation of the inverse error
/// function (2008), which is within 0.4 % there.
fn normal(share: f64) -> f64 {
    const A: f64 = 0.147;
    let x = (2.0 * share - 1.0).clamp(-0.9876, 0.9876);
    let log = libm::log(1.0 - x * x);
    let first = 2.0 / (core::f64::consts::PI * A) + log / 2.0;
    let root = libm::sqrt(libm::sqrt(first * first - log / A) - first);
    core::f64::consts::SQRT_2 * root.copysign(x)
}

fn low(bounds: &Bounds) -> f64 {
    bounds.rate.low.as_bps_f64()
}

fn high(bounds: &Bounds) -> f64 {
    bounds.rate.high.as_bps_f64()
}

/// To ten kbit/s: more digits are nothing to read.
fn rate(bps: f64) -> Rate {
    Rate::from_bps(((bps / 1e4).round() as u64).max(1) * 10_000)
}

fn millis(time: Duration) -> u64 {
    time.as_micros().div_ceil(1000)
}

/// Bits of a packet of 1500 bytes.
pub(super) const PACKET_BITS: f64 = 12_000.0;

/// A size in bits as packets of 1500 bytes, ten at least.
fn packets(bits: f64) -> u32 {
    ((bits / PACKET_BITS).round() as u32).max(10)
}

/// Coordinates, one after another; those that are not there are in the middle.
struct Coordinates<'a> {
    values: &'a [f64],
    next: usize,
}

impl Coordinates<'_> {
    fn unit(&mut self) -> f64 {
        self.next += 1;
        self.values.get(self.next - 1).copied().unwrap_or(0.5)
    }

    fn logarithmic(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    fn time(&mut self, span: Span<Duration>) -> Duration {
        Duration::from_secs_f64(self.logarithmic(span.low.as_secs_f64(), span.high.as_secs_f64()))
    }
}

/// A link with what passes it, in whole numbers: what is written is what was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Propagation delay of the round trip.
    pub rtt_ms: u64,
    /// The buffer.
    pub buffer_pkts: u32,
    /// Milliseconds and kbit/s, over and over.
    pub steps: Vec<(u64, u64)>,
    /// Delays of the way back, beside any queue, in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays_ms: Vec<u64>,
    /// How long each of them holds.
    #[serde(default)]
    pub hold_ms: u64,
    /// ACKs leave at multiples of this alone; 0 for any time.
    #[serde(default)]
    pub beat_ms: u64,
    /// Packets lost behind the link.
    #[serde(default)]
    pub loss_per_million: u64,
    /// Cross traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<Cross>,
}

/// A sender of constant rate that is on and off and answers to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cross {
    /// When it begins.
    pub start_ms: u64,
    /// How long it sends.
    pub on_ms: u64,
    /// How long it is silent.
    pub off_ms: u64,
    /// Its payload while it sends.
    pub kbps: u64,
}

impl Link {
    /// How long a router of ABC's takes to see a capacity and hear of its orders: a round trip, and the 20 ms
    /// over which it measures.
    fn loop_ms(&self) -> u64 {
        self.rtt_ms + 20
    }

    /// Calls `visit` with the places of every two steps between which less than a loop passes, either first.
    fn near(&self, mut visit: impl FnMut(usize, usize)) {
        let count = self.steps.len();
        for one in 0..count {
            let mut between_ms = 0;
            for other in (1..count).map(|ahead| (one + ahead) % count) {
                if between_ms >= self.loop_ms() {
                    break;
                }
                visit(one, other);
                visit(other, one);
                between_ms += self.steps[other].0;
            }
        }
    }

    /// Whether capacities that are at most a loop apart differ by at most the factor `change`.
    pub(super) fn is_within(&self, change: f64) -> bool {
        let mut within = true;
        self.near(|one, other| within &= self.steps[one].1 as f64 <= change * self.steps[other].1 as f64);
        within
    }

    /// Lowers capacities until that holds.
    fn keep_within(&mut self, change: f64) {
        let mut pairs = Vec::new();
        self.near(|one, other| pairs.push((one, other)));
        while !self.is_within(change) {
            for (one, other) in &pairs {
                let most = (change * self.steps[*other].1 as f64) as u64;
                self.steps[*one].1 = self.steps[*one].1.min(most);
            }
        }
    }

    /// Returns the mean capacity over a period.
    pub fn mean_bps(&self) -> f64 {
        let time: u64 = self.steps.iter().map(|(ms, _)| ms).sum();
        let bits: u64 = self.steps.iter().map(|(ms, kbps)| ms * kbps).sum();
        bits as f64 * 1e3 / time.max(1) as f64
    }

    /// Returns it in words, a line for each of its parts.
    pub fn in_words(&self) -> Vec<String> {
        let mbps = |kbps: u64| number(kbps as f64 / 1e3);
        let steps = match self.steps.as_slice() {
            [(_, kbps)] => format!("{} Mbit/s", mbps(*kbps)),
            steps => {
                let each = steps.iter().map(|(ms, kbps)| format!("{} for {ms} ms", mbps(*kbps)));
                format!("Mbit/s, repeating: {}", each.collect::<Vec<_>>().join(", "))
            }
        };
        let mut words = vec![
            format!("capacity: {steps}"),
            format!("round trip {} ms, buffer {} packets", self.rtt_ms, self.buffer_pkts),
        ];
        if !self.delays_ms.is_empty() {
            let each: Vec<String> = self.delays_ms.iter().map(u64::to_string).collect();
            words.push(format!("delay of the ACKs, each for {} ms: {} ms", self.hold_ms, each.join(", ")));
        }
        if self.beat_ms > 0 {
            words.push(format!("ACKs leave every {} ms", self.beat_ms));
        }
        if self.loss_per_million > 0 {
            words.push(format!("random loss: {} %", self.loss_per_million as f64 / 1e4));
        }
        for cross in &self.cross {
            words.push(format!(
                "cross traffic from {} ms: {} Mbit/s for {} ms, nothing for {} ms, repeating",
                cross.start_ms,
                mbps(cross.kbps),
                cross.on_ms,
                cross.off_ms
            ));
        }
        words
    }

    /// Returns how much there is to it: numbers, and digits that are not zero.
    pub(super) fn complexity(&self) -> u64 {
        let digits = |value: u64| value.to_string().trim_end_matches('0').len() as u64;
        let of_all =
            |values: &mut dyn Iterator<Item = u64>| values.map(|value| 2 + digits(value)).sum::<u64>();
        let steps = match self.steps.as_slice() {
            // How long a constant rate lasts says nothing.
            [(_, kbps)] => digits(*kbps),
            steps => of_all(&mut steps.iter().flat_map(|(ms, kbps)| [*ms, *kbps])),
        };
        let cross = self.cross.iter().map(|cross| {
            8 + of_all(&mut [cross.start_ms, cross.on_ms, cross.off_ms, cross.kbps].into_iter())
        });
        let changes = 1 + self.delays_ms.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        let delays = match self.delays_ms.is_empty() {
            true => 0,
            false => 3 * changes + of_all(&mut self.delays_ms.iter().copied()) + digits(self.hold_ms),
        };
        let one = |value: u64| if value > 0 { 4 + digits(value) } else { 0 };
        let rest = one(self.beat_ms) + one(self.loss_per_million);
        steps + delays + rest + cross.sum::<u64>() + digits(self.rtt_ms) + digits(u64::from(self.buffer_pkts))
    }

    /// Returns the scenario of a flow of `scheme` on it, beside one of `other` where there is one. With
    /// `shared` the delays and the loss of the path are the other flow's too.
    pub fn scenario(
        &self,
        scheme: &Scheme,
        other: Option<&Scheme>,
        shared: bool,
        setting: &Setting,
    ) -> Result<Scenario, InputError> {
        let rtt = Duration::from_millis(self.rtt_ms);
        let foreign =
            !self.cross.is_empty() || other.is_some_and(|other| other.encoding() != scheme.encoding());
        // An ABC router has a second queue for traffic that does not speak ABC (abc20 4.3).
        let beside = scheme.queue().beside_others().filter(|_| foreign);
        let queue = beside.unwrap_or_else(|| scheme.queue().clone());
        let time = |ms: u64| Duration::from_millis(ms);
        let rate = |kbps: u64| Rate::from_bps(kbps * 1000);
        let service = match self.steps.as_slice() {
            [(_, kbps)] => Service::Fixed(rate(*kbps)),
            steps => {
                let steps = steps.iter().map(|(ms, kbps)| (time(*ms), rate(*kbps))).collect();
                Service::Steps(Steps { steps, repeat: true })
            }
        };
        let plain = LinkSpec::fixed(LINK, Rate::from_mbps(1), Limit::Packets(self.buffer_pkts), queue);
        let link = || Hop::Link(LINK.to_string());
        let mut flows = vec![scheme.flow(MEASURED, rtt)];
        flows.extend(other.map(|other| other.flow(OTHER, rtt)));
        for (place, flow) in flows.iter_mut().enumerate() {
            flow.path = vec![link()];
            if place == 0 || shared {
                flow.path.extend(self.elements(Direction::Forward).into_iter().map(Hop::Element));
                flow.reverse = self.elements(Direction::Reverse).into_iter().map(Hop::Element).collect();
            }
        }
        for (place, cross) in self.cross.iter().enumerate() {
            let sender = named("external", &[("cwnd", "100000pkt")]);
            let flow = FlowSpec::new(&format!("cross{}", place + 1), sender, rtt, vec![link()]);
            flows.push(FlowSpec {
                traffic: Traffic::OnOff(OnOff {
                    on: time(cross.on_ms),
                    off: time(cross.off_ms),
                    rate: Some(rate(cross.kbps)),
                    random: false,
                }),
                start: time(cross.start_ms),
                start_within: Duration::ZERO,
                ..flow
            });
        }
        let scenario = Scenario {
            name: setting.name.clone(),
            seed: setting.seed,
            duration: setting.duration,
            measure_from: setting.duration / 6,
            trace_offset: TraceOffset::At(Duration::ZERO),
            links: vec![LinkSpec { service, overhead: Bytes::ZERO, ..plain }],
            flows,
            record: Record { flow_delays: true, ..Record::summary(setting.duration) },
        };
        scenario.validate().map_err(|invalid| invalid.of(scheme.to_string()))?;
        Ok(scenario)
    }

    /// What stands on a path beside the link.
    fn elements(&self, direction: Direction) -> Vec<SchemeString<brakelight_links::elements::ElementConfig>> {
        let mut elements = Vec::new();
        if direction == Direction::Forward && self.loss_per_million > 0 {
            let rate = (self.loss_per_million as f64 / 1e6).to_string();
            elements.push(named("loss", &[("rate", &rate)]));
        }
        if direction == Direction::Reverse && (!self.delays_ms.is_empty() || self.beat_ms > 0) {
            let delays: Vec<String> = self.delays_ms.iter().map(|ms| format!("{ms}ms")).collect();
            let delays = if delays.is_empty() { "0ms".to_string() } else { delays.join("/") };
            let (hold, beat) = (format!("{}ms", self.hold_ms.max(1)), format!("{}ms", self.beat_ms));
            elements.push(named("delay-steps", &[("delays", &delays), ("hold", &hold), ("beat", &beat)]));
        }
        elements
    }
}

/// What a scenario needs beside its link.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What it is called.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// Its length.
    pub duration: Duration,
}

/// The link.
pub const LINK: &str = "link";
/// The flow that is attacked.
pub const MEASURED: &str = "main";
/// The flow beside it.
pub const OTHER: &str = "other";

fn named<C: ByName>(name: &str, options: &[(&str, &str)]) -> SchemeString<C> {
    SchemeString::new(name, options).expect("an attack's own parts are valid")
}
