//! The scenarios by which the simulator's speed is measured: the dumbbells that ns-3 was timed on, and many
//! flows on a fast link.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Limit, Rate};
use brakelight_registry::BuildError;
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme_string::SchemeString;
use brakelight_sim::network::{SetupError, Traces};
use brakelight_sim::simulation::Simulation;

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
    /// How long is simulated after that where instructions are counted, which takes fifty times as long.
    pub counted: Duration,
    /// All flows start within this.
    pub start_within: Duration,
}

const RTT: Duration = Duration::from_millis(100);

/// Advances `simulation` to `until`. A function of its own, so that a profiler can tell what is measured from
/// what is not by its name.
#[inline(never)]
pub fn advance(simulation: &mut Simulation, until: Time) {
    simulation.advance(until);
}

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
        counted: Duration::from_secs(20),
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
        counted: Duration::from_millis(2_500),
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
        counted: Duration::from_millis(500),
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
        counted: Duration::from_millis(50),
        start_within: Duration::from_secs(1),
    }
}

impl Row {
    /// Returns the row called `name`.
    pub fn named(name: &str) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// Returns the names of all rows, with commas between.
    pub fn names() -> String {
        ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
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

    /// Simulates it once, its counted part by [`advance`], and returns the data packets delivered in that.
    ///
    /// # Panics
    /// If its scenario cannot be built; those of [`ROWS`] can.
    pub fn count(&self) -> Result<u64, SetupError> {
        let scenario = self.scenario().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let mut simulation = Simulation::new(&scenario, &Traces::new())?;
        let from = Time::ZERO + self.warm_up;
        simulation.advance(from);
        advance(&mut simulation, from + self.counted);
        Ok(simulation.delivered_packets())
    }
}
