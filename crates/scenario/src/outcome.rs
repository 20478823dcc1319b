//! What came out of a run. Field names carry their unit; the shapes are part of the command line's interface:
//! add, never rename.
//!
//! Definitions: capacity is every delivery opportunity of the measured interval, used or not; throughput is
//! what left the link, headers and retransmissions included; utilisation is their ratio; goodput is payload
//! delivered to applications, once. Delays are of delivered packets only. The row's `queueing_delay_ms` is
//! the sum over the path's queues, per packet, without propagation.
//!
//! Reading is forward and backward compatible: a key that is not known is skipped, one that is not there has
//! its default.

use std::collections::BTreeMap;

pub use brakelight_apps::distribution::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::Deployment;
use crate::identity::RunId;

/// Everything a run gave.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// The summary.
    pub run: Run,
    /// Time series, where the scenario asked for them.
    pub series: Option<Series>,
    /// Every link's log, in the scenario's order, where it asked for them.
    pub link_logs: Vec<LinkLog>,
    /// The distribution of the row's queueing delay as steps, where the scenario asked for time series: a
    /// delay in milliseconds and the share of the packets whose delay is not larger. Part of no document.
    #[serde(skip)]
    pub delays: Vec<[f64; 2]>,
}

/// What a shaper did in the whole run, while its setter was awake.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShaperOutcome {
    /// The setter's name.
    pub setter: String,
    /// The mean of its rate over time.
    pub rate_mbps: f64,
    /// The lowest rate.
    pub lowest_mbps: f64,
    /// The highest rate.
    pub highest_mbps: f64,
    /// The share of the time in which it said that nothing it measures shows the link's queue, 0 to 1.
    pub blind: f64,
    /// Echo requests sent.
    pub probes: u64,
}

/// The summary of one run, or the median of several.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Run {
    /// What was compared; the scenario's name where no scheme was.
    pub scheme: String,
    /// The trace of the first link of the first flow's path, or that link's rate.
    pub trace: String,
    /// The seed.
    pub seed: u64,
    /// Length of the measured interval.
    pub duration_s: f64,
    /// What the first link of the first flow's path could have carried.
    pub capacity_mbps: f64,
    /// What left that link.
    pub throughput_mbps: f64,
    /// Payload delivered to applications, all flows together.
    pub goodput_mbps: f64,
    /// Throughput over capacity of that link.
    pub utilization: f64,
    /// Queueing delay, summed over the path; none when nothing was delivered.
    pub queueing_delay_ms: Option<Summary>,
    /// From leaving the sender to arriving at the receiver.
    pub one_way_delay_ms: Option<Summary>,
    /// RTT samples of all senders.
    pub rtt_ms: Option<Summary>,
    /// How often a minute a round trip fits into what the senders' samples say; none without samples, and
    /// where those are not known one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responsiveness: Option<Responsiveness>,
    /// The second half of the measured interval by itself, where the scenario records it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_half: Option<SecondHalf>,
    /// Mahimahi's signal delay at the same link.
    pub signal_delay_ms: Option<SignalDelay>,
    /// Dropped data packets over data packets that left the queues or were dropped.
    pub loss_percent: f64,
    /// Data packets delivered end to end.
    pub delivered_packets: u64,
    /// Data packets dropped anywhere.
    pub dropped_packets: u64,
    /// Data packets that were sent in the measured interval or were on their way when it began,
    /// retransmissions included: those delivered, those dropped and those left. A path element that doubles
    /// packets makes them more. None where that is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sent_packets: Option<u64>,
    /// Data packets that were in a queue or elsewhere on their way at the end. None where that is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left_packets: Option<u64>,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Marks on delivered data packets.
    pub marks: MarkCounts,
    /// Jain's index over the flows' throughputs; none with fewer than two flows.
    pub jain: Option<f64>,
    /// The unfairness rate: the mean over time of the highest over the lowest of the flows' rates, each over
    /// the time that the scenario records it for; none where it records none, or where a flow got nothing in
    /// such a time (bmcc III-c).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfairness: Option<f64>,
    /// Every link, in the scenario's order.
    pub links: Vec<LinkOutcome>,
    /// Every flow, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// Every shaper, in the order in which flows name them. Left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapers: Vec<ShaperOutcome>,
    /// The identity of the run, or of the set of runs that the row is the median of; none for what is not a
    /// whole run of a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What a comparison ran it with; none outside comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// What the scheme of a comparison needs to be deployed; none outside comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
    /// How far repeated runs lie apart, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Between which values the medians of the row lie with 95 % confidence, where there were enough runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval95: Option<Interval95>,
    /// The two groups that the runs fall into, where they do: the row is then one of the runs of the larger
    /// group, for a median would be a result that no run had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<[Mode; 2]>,
    /// What the measured flow and the competing one had, where there was one; the row's delays are then those
    /// of the measured flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// How it compares with the reference scheme, run by run, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus: Option<Versus>,
    /// How late the machine was with what it delivered; none in simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Lateness>,
    /// Whether the machine could not keep up, so that the numbers are not to be trusted; never in simulation.
    pub unreliable: bool,
    /// Why, in words; empty where there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreliable_because: Vec<String>,
}

/// Latency under load in the words of those who measure access networks.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Responsiveness {
    /// Round trips per minute on the connections that load the path: 60,000 over the mean of the shortest
    /// 95 % of the round trips, in ms (draft-ietf-ippm-responsiveness, `Loaded_Responsiveness`).
    pub rpm: f64,
    /// 98th percentile of the round trips, ms: what deployments of L4S call working latency.
    pub working_latency_p98_ms: f64,
}

/// What a run did in the second half of its measured interval, when its flows had started.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SecondHalf {
    /// When it began.
    pub from_s: f64,
    /// What left the row's link in it.
    pub throughput_mbps: f64,
    /// That over what the link could have carried in it.
    pub utilization: f64,
    /// The first flow's share of what left the last links of all flows, where there are several.
    pub share: Option<f64>,
    /// 95th percentile of the row's queueing delay in it; the first flow's, where delays are recorded by
    /// flow.
    pub p95_ms: Option<f64>,
}

/// How late deliveries were: from when a packet was due to when it was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Mahimahi's signal delay: over every millisecond between the first and the last arrival, how long a packet
/// that arrived then took.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalDelay {
    /// 95th percentile.
    pub p95: f64,
}

/// Packets by mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MarkCounts {
    /// ABC's accelerates.
    pub accelerate: u64,
    /// ABC's brakes.
    pub brake: u64,
    /// Congestion experienced.
    pub ce: u64,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkOutcome {
    /// Its name.
    pub name: String,
    /// The registered name of its queue.
    pub queue: String,
    /// What it could have carried.
    pub capacity_mbps: f64,
    /// What it carried, data and ACKs of all flows.
    pub throughput_mbps: f64,
    /// Throughput over capacity.
    pub utilization: f64,
    /// Time in its queue, transmission included.
    pub queueing_delay_ms: Option<Summary>,
    /// Packets its queue dropped.
    pub dropped_packets: u64,
    /// Marks its queue made.
    pub marks: MarkCounts,
    /// How many packets of DualPI2's L queue each of its parts marked over the whole run: `threshold`, `link`
    /// (by the threshold, too, but the packet waited for the link's next opportunity and stood in no queue
    /// that long), `coupling`, `overload`. Marks of Classic packets are not among them. Empty for other
    /// queues.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub marked_by: BTreeMap<String, f64>,
    /// Whether its queue misread what flows mean by their marks: `misread = true` let them pass. Absent if
    /// not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub misread: bool,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// The registered name of its controller.
    pub controller: String,
    /// IP bytes delivered to its receiver over the part of the measured interval in which it was active.
    pub throughput_mbps: f64,
    /// Payload delivered to its application over the same time.
    pub goodput_mbps: f64,
    /// RTT samples of its sender.
    pub rtt_ms: Option<Summary>,
    /// Queueing delay of its packets, summed over the path, where it is recorded by flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing_delay_ms: Option<Summary>,
    /// One-way delay of its packets, where it is recorded by flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_delay_ms: Option<Summary>,
    /// Dropped data packets over sent ones.
    pub loss_percent: f64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// What its application saw, where it is more than a stream of bytes: numbers by name, each name ending
    /// in its unit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "numbers::read")]
    #[schemars(with = "Option<BTreeMap<String, Option<f64>>>")]
    pub application: Option<BTreeMap<String, f64>>,
    /// What its controller showed of itself at the end
    /// ([`inspect`](brakelight_core::controller::Controller::inspect)), where the scenario records it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "numbers::read")]
    #[schemars(with = "Option<BTreeMap<String, Option<f64>>>")]
    pub state: Option<BTreeMap<String, f64>>,
}

/// What a comparison ran a row with.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setup {
    /// Propagation delay of the round trip.
    pub rtt_ms: f64,
    /// The bottleneck's buffer: `250pkt`, `1.5MB`.
    pub buffer: String,
    /// The limit of the way back: `none`, a rate, or the name of a trace.
    pub reverse: String,
    /// Where in the trace the run began; none in a row of several runs that began in different places.
    pub trace_offset_s: Option<f64>,
    /// The scheme of the competing flow, where there was one.
    pub against: Option<String>,
    /// Whether the opportunities of a trace's millisecond came one after another in it; absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spread: bool,
}

/// 95 % confidence intervals of a row's medians: the lower and the upper end.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interval95 {
    /// Of the throughput; of the measured flow's, where there is a competing one.
    pub throughput_mbps: [f64; 2],
    /// Of the utilisation, likewise.
    pub utilization: [f64; 2],
    /// Of the 95th percentile of the queueing delay; none where a run delivered nothing.
    pub p95_ms: Option<[f64; 2]>,
}

/// What a flow and a competing flow had of one queue, and what the first did to the second: its harm (ware19)
/// beyond what a flow of the competitor's own kind does.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fairness {
    /// Throughput of the measured flow.
    pub own_mbps: f64,
    /// 95th percentile of its queueing delay; none where it delivered nothing.
    pub own_p95_ms: Option<f64>,
    /// Throughput of the competing flow.
    pub competitor_mbps: f64,
    /// 95th percentile of the competing flow's queueing delay.
    pub competitor_p95_ms: Option<f64>,
    /// The measured flow's share of what both had: 0.5 is half.
    pub share: f64,
    /// The share of the throughput it has beside its own kind that the competitor lost; below 0 where it has
    /// more. None where that could not be run.
    pub harm_throughput: Option<f64>,
    /// How much longer the competitor's p95 queueing delay is than beside its own kind, as a share; below 0
    /// where it is shorter.
    pub harm_delay: Option<f64>,
}

/// One of the groups that runs fall into.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mode {
    /// How many runs it has.
    pub n: u64,
    /// The throughput of the run in its middle: of the first flow, where there are several.
    pub throughput_mbps: f64,
    /// The 95th percentile of that run's queueing delay; none where it delivered nothing.
    pub p95_ms: Option<f64>,
}

/// A scheme's runs beside those of the reference scheme on the same trace, with the same seeds and places of
/// the trace.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Versus {
    /// The reference scheme.
    pub scheme: String,
    /// Throughput over the reference's.
    pub throughput: Option<Ratio>,
    /// 95th percentile of the queueing delay over the reference's.
    pub p95: Option<Ratio>,
}

/// The geometric mean of ratios, run by run.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ratio {
    /// The mean.
    pub value: f64,
    /// Its 95 % confidence interval; none where there are too few runs.
    pub interval95: Option<[f64; 2]>,
}

impl Ratio {
    /// Returns `true` if the interval does not hold 1: the two schemes differ.
    pub fn is_significant(&self) -> bool {
        self.interval95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
    }
}

/// How far repeated runs lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spread {
    /// How many there were.
    pub n: u64,
    /// Lowest and highest throughput.
    pub throughput_mbps: [f64; 2],
    /// Lowest and highest 95th percentile of the queueing delay.
    pub p95_ms: [f64; 2],
}

/// Time series of a run: one point per bin.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Series {
    /// Width of a bin.
    pub bin_s: f64,
    /// One per link of the scenario.
    pub links: Vec<LinkSeries>,
    /// One per flow.
    pub flows: Vec<FlowSeries>,
}

/// One link over time. All columns are equally long; bin `i` begins at `time_s[i]`.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkSeries {
    /// The link.
    pub name: String,
    /// When the bin begins.
    pub time_s: Vec<f64>,
    /// What the link could have carried.
    pub capacity_mbps: Vec<f64>,
    /// What it carried.
    pub throughput_mbps: Vec<f64>,
    /// Mean time in the queue of packets that left it in the bin; none where none left.
    pub queueing_delay_mean_ms: Vec<Option<f64>>,
    /// 95th percentile of the same.
    pub queueing_delay_p95_ms: Vec<Option<f64>>,
    /// Share of accelerates among ABC's marks; none where there were none.
    pub accelerate_fraction: Vec<Option<f64>>,
}

/// One flow over time. All columns are equally long; bin `i` begins at `time_s[i]`.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowSeries {
    /// The flow.
    pub name: String,
    /// When the bin begins.
    pub time_s: Vec<f64>,
    /// IP bytes that left the last link of its path, so that no flow has more than the link could carry then;
    /// on a path without links those that arrived at the receiver.
    pub throughput_mbps: Vec<f64>,
    /// The window at the end of the bin.
    pub cwnd_pkts: Vec<f64>,
    /// Mean RTT sample; none where there was none.
    pub rtt_ms: Vec<Option<f64>>,
    /// What else the controller shows of itself
    /// ([`inspect`](brakelight_core::controller::Controller::inspect)), at the end of the bin.
    #[serde(deserialize_with = "numbers::read")]
    #[schemars(with = "BTreeMap<String, Vec<Option<f64>>>")]
    pub state: BTreeMap<String, Vec<f64>>,
    /// The frames of a simulated call; empty of any other flow.
    #[serde(skip_serializing_if = "FrameSeries::is_empty")]
    pub frames: FrameSeries,
}

/// The frames of a call, in the order in which they were taken. All columns are equally long.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FrameSeries {
    /// When it was taken.
    pub taken_s: Vec<f64>,
    /// Its size; 0 of one that was skipped.
    pub size_bytes: Vec<u64>,
    /// Whether it is a key frame.
    pub is_key: Vec<bool>,
    /// From then until it could be shown: whole, and with the frames that it builds on. None if it never
    /// could.
    pub delay_ms: Vec<Option<f64>>,
    /// From then until it was shown; none if it was not.
    pub playout_delay_ms: Vec<Option<f64>>,
}

impl FrameSeries {
    /// Returns whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.taken_s.is_empty()
    }
}

/// The log of one link.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkLog {
    /// The link.
    pub name: String,
    /// Its trace, or its rate in words.
    pub service: String,
    /// Its queue in words.
    pub queue: String,
    /// What happened, in order.
    pub events: Vec<LinkEvent>,
}

/// One event of a link, at a whole millisecond as Mahimahi logs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LinkEvent {
    /// A delivery opportunity.
    Opportunity {
        /// When, ms.
        ms: u32,
        /// What it could have carried.
        bytes: u32,
    },
    /// A packet arrived.
    Arrival {
        /// When, ms.
        ms: u32,
        /// Its size, the link's overhead included.
        bytes: u32,
    },
    /// A packet left.
    Departure {
        /// When, ms.
        ms: u32,
        /// Its size, the link's overhead included.
        bytes: u32,
        /// How long it was there, ms.
        delay_ms: u32,
    },
    /// Packets were dropped.
    Drop {
        /// When, ms.
        ms: u32,
        /// How many.
        packets: u32,
        /// Their size together, the link's overhead included.
        bytes: u32,
    },
}

/// Numbers that an algorithm or an application reports of itself. JSON has no NaN and no infinity:
/// `serde_json` writes both as null, which is read as NaN.
mod numbers {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer};

    pub(super) trait Numbers {
        type Written<'de>: Deserialize<'de>;
        fn of(written: Self::Written<'_>) -> Self;
    }

    impl Numbers for f64 {
        type Written<'de> = Option<f64>;
        fn of(written: Option<f64>) -> Self {
            written.unwrap_or(f64::NAN)
        }
    }

    impl<T: Numbers> Numbers for Vec<T> {
        type Written<'de> = Vec<T::Written<'de>>;
        fn of(written: Self::Written<'_>) -> Self {
            written.into_iter().map(T::of).collect()
        }
    }

    impl<T: Numbers> Numbers for BTreeMap<String, T> {
        type Written<'de> = BTreeMap<String, T::Written<'de>>;
        fn of(written: Self::Written<'_>) -> Self {
            written.into_iter().map(|(name, value)| (name, T::of(value))).collect()
        }
    }

    impl<K: Ord, T: Numbers> Numbers for Option<BTreeMap<K, T>>
    where
        BTreeMap<K, T>: Numbers,
    {
        type Written<'de> = Option<<BTreeMap<K, T> as Numbers>::Written<'de>>;
        fn of(written: Self::Written<'_>) -> Self {
            written.map(Numbers::of)
        }
    }

    pub(super) fn read<'de, D: Deserializer<'de>, T: Numbers>(deserializer: D) -> Result<T, D::Error> {
        T::Written::deserialize(deserializer).map(T::of)
    }
}
