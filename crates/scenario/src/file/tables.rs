//! The tables of a scenario file, as they are written: every key with the kind of its value. Reading, writing
//! and the JSON Schema all follow from these; what a file leaves out is [`read`](mod@super::read)'s business.

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::elements::RadioConfig;
use brakelight_registry::{ControllerConfig, FeedbackConfig, Host, QueueConfig};

use super::traffic::TrafficEntry;
use super::values::{Algorithm, List, Listed, Name, Quantity, Station, Step, Text, TraceName};
use crate::scenario::{Reordering, TraceOffset, Waiting};

/// Declares tables, every key of which may be left out.
macro_rules! tables {
    ($(
        $(#[$meta:meta])*
        $Table:ident { $( $(#[$field_meta:meta])* $field:ident: $ty:ty, )* }
    )+) => {$(
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $Table {
            $(
                $(#[$field_meta])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub(crate) $field: Option<$ty>,
            )*
        }
    )+};
}
pub(crate) use tables;

tables! {
    /// Everything that decides a run: links with their queues, flows with their controllers, the paths
    /// between them, a seed.
    #[schemars(extend("required" = ["link", "flow"]))]
    ScenarioTable {
        /// What the run is called.
        name: Text<Name>,
        /// Same scenario and seed, same bytes.
        #[schemars(extend("default" = 1))]
        seed: u64,
        /// How long the run is.
        #[schemars(extend("default" = "60s"))]
        duration: Quantity<Duration>,
        /// When measuring begins; what happened before is warm-up.
        #[schemars(extend("default" = "0s"))]
        measure_from: Quantity<Duration>,
        /// Where in their period traces start: a time, or `random` to draw it from the seed.
        #[schemars(extend("default" = "0s"))]
        trace_offset: Text<TraceOffset>,
        /// What to keep besides the summary.
        record: RecordTable,
        /// The links, each with a queue.
        link: List<LinkTable>,
        /// The flows.
        flow: List<FlowTable>,
    }

    /// What to keep besides the summary.
    #[serde(expecting = "a table such as `{ series = true }`")]
    RecordTable {
        /// Whether to keep time series.
        #[schemars(extend("default" = false))]
        series: bool,
        /// Width of a bin of the time series.
        bin: Quantity<Duration>,
        /// Whether to keep every link's log.
        #[schemars(extend("default" = false))]
        link_logs: bool,
        /// Whether every flow's outcome has what its controller shows of itself at the end.
        #[schemars(extend("default" = false))]
        state: bool,
        /// Whether every flow's outcome has the delays of its own packets.
        #[schemars(extend("default" = false))]
        flow_delays: bool,
        /// Whether the outcome has the second half of the measured interval by itself too.
        #[schemars(extend("default" = false))]
        second_half: bool,
        /// The time over which the flows' rates are compared, for the outcome's unfairness rate.
        unfairness: Quantity<Duration>,
    }

    /// A link: a queue, and what serves it, which is one of `trace`, `rate`, `steps` and `radio`.
    #[serde(expecting = "a [[link]]")]
    #[schemars(extend("required" = ["name"], "oneOf" = [
        {"required": ["trace"]}, {"required": ["rate"]}, {"required": ["steps"]}, {"required": ["radio"]},
    ]))]
    LinkTable {
        /// What paths call it.
        name: Text<Name>,
        /// Serves it by the delivery opportunities of a trace: the name of a known one, or a Mahimahi file.
        trace: Text<TraceName>,
        /// Serves it at a constant rate.
        rate: Quantity<Rate>,
        /// Serves it at rates that change by a schedule.
        steps: List<Step>,
        /// Serves it by a radio, which has queues of its own.
        radio: Text<Algorithm<RadioConfig>>,
        /// Whether the schedule of `steps` starts over after the last one.
        #[schemars(extend("default" = true))]
        repeat: bool,
        /// What its queue holds at most; each of them, where a radio has several.
        #[schemars(extend("default" = "250pkt"))]
        buffer: Quantity<Limit>,
        /// Its queue.
        #[schemars(extend("default" = "droptail"))]
        queue: Text<Algorithm<QueueConfig>>,
        /// Bytes of a delivery opportunity.
        opportunity: Quantity<Bytes>,
        /// Bytes counted for every packet besides its own.
        overhead: Quantity<Bytes>,
        /// Whether the opportunities of a trace's millisecond come one after another, not all at its end.
        #[schemars(extend("default" = false))]
        spread: bool,
        /// When its router restarts and forgets its queue's state.
        #[schemars(extend("default" = []))]
        restarts: List<RestartTable>,
        /// The size of the token bucket that serves it, for a `rate`; none if zero.
        #[schemars(extend("default" = "0B"))]
        burst: Quantity<Bytes>,
        /// How long a delay line before its queue holds packets, which count against `buffer`.
        #[schemars(extend("default" = "0s"))]
        delay: Quantity<Duration>,
    }

    /// A restart of a router.
    #[serde(expecting = "a list of tables such as `[{ at = \"20s\", down = \"1s\" }]`")]
    #[schemars(extend("required" = ["at"]))]
    RestartTable {
        /// When.
        at: Quantity<Duration>,
        /// How long it is away.
        #[schemars(extend("default" = "0s"))]
        down: Quantity<Duration>,
        /// What becomes of the packets that wait: `lost` or `kept`.
        #[schemars(extend("default" = "lost"))]
        waiting: Text<Waiting>,
    }

    /// One flow, or several alike.
    #[serde(expecting = "a [[flow]]")]
    #[schemars(extend("required" = ["controller", "path"]))]
    FlowTable {
        /// What results call it; with `count` above 1, a number follows.
        name: Text<Name>,
        /// So many flows alike.
        #[schemars(extend("default" = 1))]
        count: u32,
        /// The sender.
        controller: Text<Algorithm<ControllerConfig>>,
        /// What the receiver sends back; the controller's own if left out.
        feedback: Text<Algorithm<FeedbackConfig>>,
        /// The profile of the hosts, `tcp`, `quic` or `ns2`; the controller's own if left out.
        host: Text<Host>,
        /// Packets that one ACK stands for.
        #[schemars(extend("default" = 2))]
        ack_every: u32,
        /// How long the receiver holds back an ACK for fewer; 25 ms with QUIC and 40 ms with TCP if left out.
        ack_delay: Quantity<Duration>,
        /// Largest payload of one packet.
        mss: Quantity<Bytes>,
        /// Bytes of headers added to each payload, IP included.
        overhead: Quantity<Bytes>,
        /// The window before the first ACK, in packets, unless the controller sets its own.
        #[schemars(extend("default" = 10))]
        initial_window: u32,
        /// QUIC: packets that may leave back to back after a pause, whatever the pacing rate.
        #[schemars(extend("default" = 10))]
        pacing_burst: u32,
        /// QUIC: the packet threshold of loss detection: `fixed` at three packets (RFC 9002), or `adaptive`,
        /// which grows with the reordering it sees.
        #[schemars(extend("default" = "fixed"))]
        reordering: Text<Reordering>,
        /// QUIC: whether a reduction is taken back once all packets of its episode have arrived after all.
        #[schemars(extend("default" = true))]
        undo: bool,
        /// QUIC: how many packets the receiver reads at once, up to `jitter` after the first of them arrived.
        /// It acknowledges once it has read.
        #[schemars(extend("default" = 1))]
        read_batch: u32,
        /// What the application sends.
        #[schemars(extend("default" = "backlogged"))]
        traffic: TrafficEntry,
        /// When it may start, at the earliest.
        #[schemars(extend("default" = "0s"))]
        start: Quantity<Duration>,
        /// The start is drawn from the seed, this much later at most; the RTT if left out.
        start_within: Quantity<Duration>,
        /// When it stops, if before the run does.
        stop: Quantity<Duration>,
        /// Propagation delay of the round trip.
        #[schemars(extend("default" = "100ms"))]
        rtt: Quantity<Duration>,
        /// By how much each further flow of `count` has a longer RTT.
        #[schemars(extend("default" = "0s"))]
        rtt_step: Quantity<Duration>,
        /// The links and path elements that its data packets pass, in order.
        path: List<Text<Station>>,
        /// What its ACKs pass, in order; empty for a way back without limits.
        #[schemars(extend("default" = []))]
        reverse: List<Text<Station>>,
        /// Every action of its hosts is late by a draw from 0 to this.
        #[schemars(extend("default" = "200us"))]
        jitter: Quantity<Duration>,
        /// The clock by which the receiver says when packets arrived.
        receiver_clock: ClockTable,
    }

    /// A receiver's clock.
    #[serde(expecting = "a table such as `{ offset = \"3s\", skew_ppm = 50 }`")]
    ClockTable {
        /// What it shows when the run begins.
        #[schemars(extend("default" = "0s"))]
        offset: Quantity<Duration>,
        /// How much faster than the sender's it runs, in millionths.
        #[schemars(extend("default" = 0.0))]
        skew_ppm: f64,
        /// When it is set, if it is.
        step_at: Quantity<Duration>,
        /// By how much it is set forward then, in milliseconds.
        #[schemars(extend("default" = 0.0))]
        step_ms: f64,
    }
}

impl Listed for LinkTable {
    const LIST: &'static str = "a list of tables, each headed [[link]]";
}

impl Listed for FlowTable {
    const LIST: &'static str = "a list of tables, each headed [[flow]]";
}

impl Listed for RestartTable {
    const LIST: &'static str = "a list of tables such as `[{ at = \"20s\", down = \"1s\" }]`";
}
