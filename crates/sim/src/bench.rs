//! The scenarios by which the simulator's speed is measured: the dumbbells that ns-3 was timed on, and many
//! flows on a fast link. [`queues`] measures queues by themselves.

use brakelight_core::registry::BuildError;
use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme_string::SchemeString;

pub mod queues;

/// A scenario to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name of its row.
    pub name: &'static str,
    /// How many Cubic flows.
    pub flows: u32,
    /// The bottleneck.
    pub rate: Rate,
    /// Its queue, with options.
    pub queue: (&'static str, &'static [(&'static str, &'static str)]),
    /// Its buffer, in packets.
    pub buffer: u32,
    /// How long is simulated; timing begins after the warm-up.
    pub duration: Duration,
    /// How long is simulated before timing begins.
    pub warm_up: Duration,
    /// All flows start within this.
    pub start_within: Duration,
}

const RTT: Duration = Duration::from_millis(100);

/// Every row. S1 to S3 are timed from a cold start, as ns-3 was.
pub const ROWS: &[Row] = &[
    Row {
        name: "S1",
        flows: 1,
        rate: Rate::from_mbps(12),
        queue: ("droptail", &[]),
        buffer: 250,
        duration: Duration::from_secs(60),
        warm_up: Duration::ZERO,
        start_within: RTT,
    },
    Row {
        name: "S2",
        flows: 20,
        rate: Rate::from_mbps(100),
        queue: ("codel", &[("target", "5ms"), ("interval", "100ms")]),
        buffer: 1500,
        duration: Duration::from_secs(60),
        warm_up: Duration::ZERO,
        start_within: RTT,
    },
    Row {
        name: "S3",
        flows: 100,
        rate: Rate::from_mbps(1_000),
        queue: ("droptail", &[]),
        buffer: 8333,
        duration: Duration::from_secs(10),
        warm_up: Duration::ZERO,
        start_within: RTT,
    },
    fast_link("F1", 1),
    fast_link("F100", 100),
    fast_link("F10000", 10_000),
];

/// Cubic on 10 Gbit/s with a buffer of one bandwidth-delay product, timed once its flows have started.
const fn fast_link(name: &'static str, flows: u32) -> Row {
    Row {
        name,
        flows,
        rate: Rate::from_mbps(10_000),
        queue: ("droptail", &[]),
        buffer: 83_333,
        duration: Duration::from_secs(4),
        warm_up: Duration::from_secs(2),
        start_within: Duration::from_secs(1),
    }
}

impl Row {
    /// Returns the row called `name`.
    pub fn named(name: &str) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// Returns what it simulates.
    pub fn scenario(&self) -> Result<Scenario, BuildError> {
        let (queue, options) = self.queue;
        let queue = SchemeString::new(queue, options)?;
        let link = LinkSpec::fixed("bottleneck", self.rate, Limit::Packets(self.buffer), queue);
        let path = vec![Hop::Link(link.name.clone())];
        let flow = FlowSpec {
            count: self.flows,
            start_within: self.start_within,
            ..FlowSpec::new("flow", SchemeString::new("cubic", &[])?, RTT, path)
        };
        Ok(Scenario {
            name: self.name.to_string(),
            seed: 1,
            duration: self.duration,
            measure_from: self.warm_up,
            trace_offset: TraceOffset::At(Duration::ZERO),
            links: vec![link],
            flows: vec![flow],
            record: Record::summary(self.duration),
        })
    }
}
