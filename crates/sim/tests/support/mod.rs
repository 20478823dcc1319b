//! Paths of one bottleneck whose rate and delay are known.
#![allow(dead_code)]

pub mod page;
pub mod random_scenario;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_scenario::outcome::{FlowSeries, Outcome, Run};
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::{Traces, run};

/// Bulk flows over one link of fixed rate, with packets of 1000 bytes as in the BMCC paper's simulations, and
/// an ACK for each.
#[derive(Clone)]
pub struct Dumbbell {
    pub scenario: Scenario,
}

impl Dumbbell {
    /// Two flows of `scheme` over `rtt`, the second from 5 s on; a buffer of one bandwidth-delay product; 60
    /// s, of which the last 30 are measured.
    pub fn new(scheme: &str, rate: Rate, rtt: Duration) -> Self {
        let scheme = Scheme::parse(scheme).expect("a scheme");
        let packets = rate.bytes_in(rtt).0 / 1000;
        let buffer = Limit::Packets((packets as u32).max(20));
        let duration = Duration::from_secs(60);
        let flow = |name: &str, start: u64| {
            let mut flow = scheme.flow(name, rtt);
            flow.mss = Bytes(1000) - flow.overhead;
            flow.ack_every = 1;
            flow.start = Duration::from_secs(start);
            flow.path = vec![Hop::Link("bottleneck".into())];
            flow
        };
        Dumbbell {
            scenario: Scenario {
                name: scheme.to_string(),
                seed: 1,
                duration,
                measure_from: Duration::from_secs(30),
                trace_offset: TraceOffset::At(Duration::ZERO),
                links: vec![LinkSpec::fixed("bottleneck", rate, buffer, scheme.queue().clone())],
                flows: vec![flow("first", 0), flow("second", 5)],
                record: Record { series: true, bin: Duration::from_millis(100), ..Record::summary(duration) },
            },
        }
    }

    /// The first flow alone.
    pub fn alone(mut self) -> Self {
        self.scenario.flows.truncate(1);
        self
    }

    /// As many flows each way as `count`, which start within 2 s: data of one direction shares a link with
    /// the ACKs of the other.
    pub fn two_way(mut self, count: u32) -> Self {
        let mut back = self.scenario.links[0].clone();
        back.name = "back".into();
        self.scenario.links.push(back);
        let (there, back) = (Hop::Link("bottleneck".into()), Hop::Link("back".into()));
        let names = [("forward", there.clone(), back.clone()), ("backward", back, there)];
        for (flow, (name, path, reverse)) in self.scenario.flows.iter_mut().zip(names) {
            flow.name = name.into();
            flow.count = count;
            flow.start = Duration::ZERO;
            flow.start_within = Duration::from_secs(2);
            (flow.path, flow.reverse) = (vec![path], vec![reverse]);
        }
        self
    }

    /// The second flow under another controller, and the link under another queue.
    pub fn against(mut self, controller: &str, queue: &str) -> Self {
        let other = Scheme::parse(controller).expect("a scheme");
        let queue = Scheme::parse(&queue_of(queue)).expect("a queue").queue().clone();
        let ours = &self.scenario.flows[1];
        let theirs = FlowSpec {
            mss: ours.mss,
            ack_every: ours.ack_every,
            start: ours.start,
            path: ours.path.clone(),
            ..other.flow("second", ours.rtt)
        };
        self.scenario.flows[1] = theirs;
        self.scenario.links[0].queue = queue;
        self
    }

    /// Changes every flow.
    pub fn each(mut self, change: impl Fn(usize, &mut FlowSpec)) -> Self {
        for (index, flow) in self.scenario.flows.iter_mut().enumerate() {
            change(index, flow);
        }
        self
    }

    /// Measures from one second to another.
    pub fn measured(mut self, from: u64, to: u64) -> Self {
        self.scenario.measure_from = Duration::from_secs(from);
        self.scenario.duration = Duration::from_secs(to);
        self
    }

    pub fn outcome(&self) -> Outcome {
        run(&self.scenario, &Traces::default()).expect("a run")
    }

    pub fn run(&self) -> Run {
        self.outcome().run
    }
}

/// The window of one new flow on an idle link of 2 Gbit/s, T = 200 ms, with a bandwidth-delay product of
/// 50,000 packets and as much buffer: figure 5 of the BMCC paper.
pub struct Growth {
    start_s: f64,
    series: FlowSeries,
    pub lost: u64,
}

impl Growth {
    /// The flow starts so long after an interval of the router began.
    pub fn starting(scheme: &str, start: Duration) -> Self {
        let mut growth = Dumbbell::new(scheme, Rate::from_mbps(2000), Duration::from_millis(200)).alone();
        growth.scenario.measure_from = Duration::ZERO;
        growth.scenario.duration = Duration::from_millis(7000);
        growth.scenario.record.bin = Duration::from_millis(20);
        let growth = growth.each(|_, flow| {
            flow.initial_window = 1;
            flow.start = start;
            flow.start_within = Duration::ZERO;
        });
        let outcome = growth.outcome();
        let series = outcome.series.expect("series were asked for").flows.remove(0);
        Growth { start_s: start.as_secs_f64(), series, lost: outcome.run.dropped_packets }
    }

    /// Packets `seconds` after the start.
    pub fn after(&self, seconds: f64) -> f64 {
        let until = self.start_s + seconds + 1e-9;
        let bin = self.series.time_s.iter().rposition(|start| start + 0.02 <= until).expect("in the run");
        self.series.cwnd_pkts[bin]
    }

    /// Its largest window.
    pub fn most(&self) -> f64 {
        self.series.cwnd_pkts.iter().copied().fold(0.0, f64::max)
    }
}

/// A queue, spelled as a scheme that has it.
fn queue_of(queue: &str) -> String {
    match queue.split_once(':') {
        _ if queue.starts_with("bmcc") => queue.to_string(),
        None => format!("newreno+{queue}"),
        Some((name, options)) => format!("newreno+{name}:{options}"),
    }
}
