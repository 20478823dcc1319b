//! One run: a scenario and its traces in, an outcome out.

mod act;
mod packets;
mod second_half;
mod step;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::{Direction, FlowId};
use brakelight_core::path::PathElement as _;
use brakelight_core::queue::Queue as _;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_links::elements::AnyElement;
use brakelight_scenario::identity::RunId;
use brakelight_scenario::measure::opportunities::with_opportunities;
use brakelight_scenario::measure::{
    Distribution, LinkBins, LinkMeter, Unfairness, active, describe_service, jain, mbps, percent,
};
use brakelight_scenario::outcome::{
    FlowOutcome, FlowSeries, LinkLog, LinkOutcome, MarkCounts, Outcome, Responsiveness, Run, Series,
    ShaperOutcome, SignalDelay,
};
use brakelight_scenario::routers;
use brakelight_scenario::scenario::{FlowSpec, Hop, Scenario, ack_delay};

use crate::engine::{Engine, Routed as _, Unbalanced};
use crate::host::{FlowConfig, FlowHost};
use crate::network::{Network, SetupError, Traces};
use crate::outside;
use crate::packet::SimPacket;
use crate::report::{FlowCounters, Reporting};
use crate::statistics::{FlowStatistics, LinkStatistics, Recorder};
pub use act::ActionError;
pub use packets::PacketView;
use second_half::Halfway;
pub use view::{FlowPhase, FlowView, LinkView, Values};

/// Runs `scenario` from beginning to end. A scenario with a flow in a [host from outside](crate::outside)
/// runs in a thread of its own.
pub fn run(scenario: &Scenario, traces: &Traces) -> Result<Outcome, RunError> {
    if outside::is_needed(scenario) {
        return outside::run(scenario, traces);
    }
    to_the_end(Simulation::new(scenario, traces)?)
}

/// Runs `scenario` from beginning to end, with both ends of each flow made by `host`, which says why if it
/// cannot.
pub fn run_with<E: Endpoint<SimPacket> + Reporting>(
    scenario: &Scenario,
    traces: &Traces,
    host: impl FnMut(FlowConfig) -> Result<E, String>,
) -> Result<Outcome, RunError> {
    to_the_end(Simulation::with_hosts(scenario, traces, host)?)
}

fn to_the_end<E: Endpoint<SimPacket> + Reporting>(
    mut simulation: Simulation<E>,
) -> Result<Outcome, RunError> {
    simulation.advance(simulation.end());
    simulation.finish()
}

fn modelled(config: FlowConfig) -> Result<FlowHost, String> {
    match config.controller.hosted() {
        None => Ok(FlowHost::new(config)),
        Some(hosted) => {
            Err(format!("`{}` is a host from outside, and this run has modeled hosts alone", hosted.name()))
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario could not be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A bug: packets were not conserved.
    #[error(transparent)]
    Unbalanced(#[from] Unbalanced),
    /// A host from outside panicked, hangs, or broke its contract, or a controller from outside failed.
    #[error("flow `{flow}` ({controller}), at {:.6} s: {reason}", at.as_secs_f64())]
    Stack {
        /// The flow whose host was called last, or whose controller failed.
        flow: String,
        /// Its controller; of a host from outside `host/controller`.
        controller: String,
        /// When it was called, or failed.
        at: Time,
        /// What happened.
        reason: String,
    },
}

/// A run in progress. It can be advanced in steps of any size, looked into, acted upon and ended at any time.
/// Neither the steps nor the looks change its outcome. Its flows end in `E`: the modelled host, or what its
/// user plugs in.
///
/// Where `E` is [`Clone`], so is the run: original and clone go on independently, each with the outcome that
/// it would have had alone. Recorded traces are shared between them. A real QUIC stack cannot be cloned; its
/// run can be stepped all the same.
///
/// - to step: [`advance`](Self::advance), [`step`](Self::step), [`advance_to_flow`](Self::advance_to_flow);
/// - to look: [`flow`](Self::flow), [`flows`](Self::flows), [`link`](Self::link), [`links`](Self::links),
///   [`capacity_between`](Self::capacity_between), [`for_each_packet`](Self::for_each_packet);
/// - to act: [`set_window`](Self::set_window), [`set_pacing_rate`](Self::set_pacing_rate),
///   [`set_link_rate`](Self::set_link_rate), [`set_delay`](Self::set_delay),
///   [`start_flow`](Self::start_flow), [`hold_flow`](Self::hold_flow), [`stop_flow`](Self::stop_flow);
/// - to end: [`finish`](Self::finish).
///
/// A flow whose window is set from outside: one packet more while the RTT is low, three quarters of it when
/// the RTT has risen.
///
/// ```
/// use brakelight_core::time::{Duration, Time};
/// use brakelight_core::units::{Bytes, Rate};
/// use brakelight_sim::{Simulation, Traces};
///
/// let scenario = brakelight_scenario::file::read("agent.toml", r#"
///     duration = "10s"
///     [[link]]
///     name = "bottleneck"
///     rate = "12Mbps"
///     [[flow]]
///     name = "agent"
///     controller = "external"
///     rtt = "40ms"
///     path = ["bottleneck"]
/// "#)?;
/// let mut simulation = Simulation::new(&scenario, &Traces::new())?;
/// let mss = scenario.flows[0].mss;
/// while simulation.now() < simulation.end() {
///     simulation.advance(simulation.now() + Duration::from_millis(50));
///     if simulation.now() == Time::from_secs(5) {
///         simulation.set_link_rate(0, Rate::from_mbps(6))?;
///     }
///     let sender = simulation.flow(0).expect("there is one").sender;
///     let Some(rtt) = sender.rtt else { continue };
///     let low = rtt.smoothed < rtt.min + Duration::from_millis(10);
///     let cwnd = if low { sender.cwnd + mss } else { Bytes(sender.cwnd.0 * 3 / 4).max(mss) };
///     simulation.set_window(0, cwnd)?;
/// }
/// let run = simulation.finish()?.run;
/// assert!(run.utilization > 0.8 && run.queueing_delay_ms.expect("packets passed").p95 < 20.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulation<E = FlowHost> {
    scenario: Arc<Scenario>,
    traces: Arc<Traces>,
    /// Whether somebody may have changed what the scenario says.
    acted: bool,
    engine: Engine<SimPacket, AnyElement<SimPacket>, E, Recorder>,
    flows: Vec<FlowInstance>,
    measuring: bool,
    /// Every flow's counters when measuring began; empty if that was at time zero.
    at_start: Vec<FlowCounters>,
    series: Option<SeriesSoFar>,
    unfairness: Option<Unfairness>,
    halfway: Option<Halfway>,
}

// Python allocates simulations, and aligns them to 16 bytes.
const _: () = assert!(align_of::<Simulation>() <= 16);

/// One flow of the run: what it was made from, and when it starts and stops.
#[derive(Clone, Debug)]
struct FlowInstance {
    name: String,
    spec: usize,
    /// [`Time::MAX`] while it is held.
    start: Time,
    stop: Option<Time>,
}

impl FlowInstance {
    /// The phase at `now` of the flow whose host must be polled next at `wakeup`.
    fn phase(&self, now: Time, wakeup: Option<Time>) -> FlowPhase {
        // Of a flow that starts now the host is polled for the first time, or was already.
        let is_due = self.start == now && wakeup.is_some_and(|wakeup| wakeup <= now);
        if self.stop.is_some_and(|stop| stop <= now) {
            FlowPhase::Stopped
        } else if self.start <= now && !is_due {
            FlowPhase::Running
        } else {
            FlowPhase::Waiting
        }
    }
}

/// Series of the flows; those of the links are in the recorder.
#[derive(Clone, Debug)]
struct SeriesSoFar {
    bin_end: Time,
    flows: Vec<FlowSeries>,
    before: Vec<FlowBefore>,
}

/// What a flow's counters showed at the end of the last bin.
#[derive(Clone, Copy, Debug, Default)]
struct FlowBefore {
    /// The payload of a full packet, in bytes.
    mss: f64,
    bytes: u64,
    rtt_count: u64,
    rtt_sum_nanos: u128,
}

impl Simulation {
    /// Returns a run at its beginning.
    pub fn new(scenario: &Scenario, traces: &Traces) -> Result<Self, SetupError> {
        // A log has its lines in the order of events.
        let joined = !scenario.record.link_logs;
        Self::build(scenario, traces, modelled, joined)
    }
}

impl<E: Endpoint<SimPacket> + Reporting> Simulation<E> {
    /// Returns a run at its beginning, with both ends of each flow made by `host`, which says why if it
    /// cannot.
    pub fn with_hosts(
        scenario: &Scenario,
        traces: &Traces,
        host: impl FnMut(FlowConfig) -> Result<E, String>,
    ) -> Result<Self, SetupError> {
        Self::build(scenario, traces, host, false)
    }

    /// The same, with links joined to the lines behind them or not: the outcome does not depend on it.
    fn build(
        scenario: &Scenario,
        traces: &Traces,
        mut host: impl FnMut(FlowConfig) -> Result<E, String>,
        joined: bool,
    ) -> Result<Self, SetupError> {
        scenario.check_counters(traces)?;
        let network = Network::build(scenario, traces)?;
        let joints = if joined { network.joints() } else { Vec::new() };
        let count = scenario.flow_count() as usize;
        let mut flows = Vec::with_capacity(count);
        let mut hosts = Vec::with_capacity(count);
        let mut statistics = Vec::with_capacity(count);
        for (spec, flow) in scenario.flows.iter().enumerate() {
            for index in 0..flow.count {
                let name = flow.name_of(index);
                let id = flows.len() as u32;
                let start = Time::ZERO + flow.drawn_start(scenario.seed, index);
                let made = host(flow_config(scenario, flow, id, &name, start));
                hosts.push(made.map_err(|reason| SetupError::Host { flow: name.clone(), reason })?);
                statistics.push(FlowStatistics::new(
                    network.forward_links[id as usize].last().copied(),
                    scenario.record.flow_delays,
                ));
                flows.push(FlowInstance { name, spec, start, stop: flow.stop.map(|stop| Time::ZERO + stop) });
            }
        }
        let measure_from = Time::ZERO + scenario.measure_from;
        let links = scenario.links.iter().enumerate().map(|(index, link)| {
            let series = scenario.record.series.then(Default::default);
            let log = scenario.record.link_logs.then(Default::default);
            let overhead = link.overhead.0 as u32;
            let meter = LinkMeter { measure_from, overhead, series, log, ..Default::default() };
            LinkStatistics { meter, is_whole_path: is_whole_path(scenario, index) }
        });
        let recorder = Recorder::new(measure_from, links.collect(), statistics);
        let series = scenario.record.series.then(|| SeriesSoFar {
            bin_end: Time::ZERO + scenario.record.bin,
            flows: flows
                .iter()
                .map(|flow| FlowSeries { name: flow.name.clone(), ..Default::default() })
                .collect(),
            before: flows
                .iter()
                .map(|flow| FlowBefore { mss: scenario.flows[flow.spec].mss.as_f64(), ..Default::default() })
                .collect(),
        });
        let mut engine = Engine::new(network.elements, hosts, network.routes, recorder);
        joints.into_iter().for_each(|(link, line)| engine.join(link, line));
        Ok(Simulation {
            engine,
            scenario: Arc::new(scenario.clone()),
            traces: Arc::new(traces.clone()),
            acted: false,
            flows,
            measuring: scenario.measure_from.is_zero(),
            at_start: Vec::new(),
            series,
            unfairness: scenario.record.unfairness.map(|over| Unfairness::new(over, measure_from)),
            halfway: None,
        })
    }

    /// Returns the hosts of all flows, by number.
    pub(crate) fn hosts(&self) -> &[E] {
        self.engine.endpoints()
    }

    /// Returns the error of the first flow whose controller decides nothing any more, if there is one: what
    /// was run so far says nothing of it then.
    pub fn failure(&self) -> Option<RunError> {
        self.hosts().iter().zip(&self.flows).find_map(|(host, flow)| {
            let failure = host.failure()?;
            let controller = self.scenario.flows[flow.spec].controller.name().to_string();
            Some(RunError::Stack {
                flow: flow.name.clone(),
                controller,
                at: failure.at,
                reason: failure.reason.clone(),
            })
        })
    }

    /// Returns the data packets delivered so far, in the measured interval.
    pub fn delivered_packets(&self) -> u64 {
        self.engine.observer().flows.iter().map(|flow| flow.delivered).sum()
    }

    /// Returns the outcome of what was run so far, once its packets have been audited.
    ///
    /// `duration_s` is the time from the scenario's `measure_from` until [now](Self::now): rates, utilisation
    /// and capacities are over that time. Before `measure_from` nothing is measured: it is zero, as are all
    /// rates and counts but those of packets on their way, and no delay has a value. A bin of the series that
    /// has not ended is left out.
    ///
    /// The `run_id` is that of the run that the scenario would be if its `duration` were the time until
    /// [now](Self::now). A run that was acted upon has none: it is not what its scenario says.
    ///
    /// # Errors
    /// A controller [failed](Self::failure), or packets were not conserved.
    pub fn finish(mut self) -> Result<Outcome, RunError> {
        self.failure().map_or(Ok(()), Err)?;
        self.engine.audit()?;
        let to = self.now();
        let from = self.measure_from().min(to);
        let bin = self.scenario.record.bin;
        let series = self.series.take().map(|series| Series {
            bin_s: bin.as_secs_f64(),
            links: self
                .scenario
                .links
                .iter()
                .zip(&self.engine.observer().links)
                .map(|(spec, link)| {
                    link.meter.series.as_ref().unwrap_or(&LinkBins::default()).series(&spec.name, bin)
                })
                .collect(),
            flows: series.flows.into_iter().zip(self.hosts()).map(with_frames).collect(),
        });
        let mut run = self.summary(from, to);
        run.run_id = self.run_id();
        let delays = self.delays().filter(|_| series.is_some()).unwrap_or_default();
        Ok(Outcome { run, series, link_logs: self.link_logs(to), delays })
    }

    /// The distribution of the queueing delay: the first flow's where delays are recorded by flow, of all
    /// packets otherwise.
    fn delays(&self) -> Option<Vec<[f64; 2]>> {
        /// A figure shows no finer steps.
        const APART: f64 = 0.002;
        self.engine.observer().flows.first()?;
        Some(self.queueing().steps(APART))
    }

    /// The queueing delay: the first flow's where delays are recorded by flow, of all packets otherwise.
    fn queueing(&self) -> Distribution {
        let recorder = self.engine.observer();
        let own = recorder.flows.first().and_then(|flow| flow.delays.as_ref());
        own.map_or_else(|| recorder.path_queueing(), |own| own.queueing.clone())
    }

    fn run_id(&self) -> Option<RunId> {
        let duration = self.now().since(Time::ZERO);
        let scenario = Scenario { duration, ..(*self.scenario).clone() };
        (!self.acted).then(|| RunId::of(&scenario, &self.traces, E::HOST))
    }

    fn link_logs(&self, end: Time) -> Vec<LinkLog> {
        let links =
            self.scenario.links.iter().zip(self.engine.elements().iter().zip(&self.engine.observer().links));
        links
            .filter_map(|(spec, (element, link))| {
                let events = link.meter.log.as_ref()?;
                let capacity = |from, to| element.capacity_between(from, to).map_or(0, |bytes| bytes.0);
                Some(LinkLog {
                    name: spec.name.clone(),
                    service: describe_service(&spec.service),
                    queue: spec.queue.words().to_string(),
                    events: with_opportunities(spec.opportunity, events, end, capacity),
                })
            })
            .collect()
    }

    fn summary(&self, from: Time, to: Time) -> Run {
        let recorder = self.engine.observer();
        let length = to.since(from);
        let links: Vec<LinkOutcome> = self
            .scenario
            .links
            .iter()
            .zip(self.engine.elements().iter().zip(&recorder.links))
            .filter_map(|(spec, (element, link))| {
                let capacity = element.capacity_between(from, to)?;
                let outcome = link.meter.outcome(&spec.name, spec.queue.name(), capacity, length);
                let misread = routers::misreads(&self.scenario, spec);
                Some(LinkOutcome { marked_by: marked_by(element), misread, ..outcome })
            })
            .collect();
        let mut rtt = Distribution::default();
        let mut flows = Vec::with_capacity(self.flows.len());
        let (mut goodput, mut retransmitted) = (0, 0);
        for (index, (instance, statistics)) in self.flows.iter().zip(&recorder.flows).enumerate() {
            let spec = &self.scenario.flows[instance.spec];
            let host = &self.engine.endpoints()[index];
            let counters = host.counters();
            let before = match self.measuring {
                true => self.at_start.get(index).copied().unwrap_or_default(),
                false => counters,
            };
            let flow_goodput = counters.goodput_bytes - before.goodput_bytes;
            let flow_retransmitted = counters.retransmitted_packets - before.retransmitted_packets;
            let active = active(instance.start, instance.stop, from, to);
            rtt.merge(&statistics.rtt);
            goodput += flow_goodput;
            retransmitted += flow_retransmitted;
            let mut application = BTreeMap::new();
            host.application(to, &mut |name, value| {
                application.insert(name.to_string(), value);
            });
            flows.push(FlowOutcome {
                name: instance.name.clone(),
                controller: spec.controller.name().to_string(),
                throughput_mbps: mbps(statistics.bytes, active),
                goodput_mbps: mbps(flow_goodput, active),
                rtt_ms: statistics.rtt.summary(),
                queueing_delay_ms: statistics.delays.as_ref().and_then(|delays| delays.queueing.summary()),
                one_way_delay_ms: statistics.delays.as_ref().and_then(|delays| delays.one_way.summary()),
                loss_percent: percent(statistics.dropped, statistics.delivered + statistics.dropped),
                retransmitted_packets: flow_retransmitted,
                application: (!application.is_empty()).then_some(application),
                state: self.scenario.record.state.then(|| {
                    let mut state = host.stages(to);
                    host.inspect(&mut |name, value| {
                        state.insert(name.to_string(), value);
                    });
                    state
                }),
            });
        }
        let delivered: u64 = recorder.flows.iter().map(|flow| flow.delivered).sum();
        let dropped: u64 = recorder.flows.iter().map(|flow| flow.dropped).sum();
        let sent: u64 = recorder.flows.iter().map(|flow| flow.sent.saturating_sub(flow.ended_before)).sum();
        let mut left = 0;
        for element in self.engine.elements() {
            element.for_each(&mut |packet| {
                left += u64::from(packet.is_data() && packet.direction() == Direction::Forward);
            });
        }
        let marks = recorder.flows.iter().fold(MarkCounts::default(), |sum, flow| sum + flow.marks);
        let bottleneck = self.bottleneck(&links);
        let row = bottleneck.map(|index| &links[index]);
        let signal = bottleneck.map(|index| &recorder.links[index].meter.signal);
        Run {
            scheme: self.scenario.name.clone(),
            trace: bottleneck
                .map_or_else(String::new, |index| describe_service(&self.scenario.links[index].service)),
            seed: self.scenario.seed,
            // Divided, and not multiplied by a billionth, which makes 60.00000000000001 of 60 s.
            duration_s: length.as_nanos() as f64 / 1e9,
            capacity_mbps: row.map_or(0.0, |link| link.capacity_mbps),
            throughput_mbps: row.map_or_else(
                || mbps(recorder.flows.iter().map(|flow| flow.bytes).sum(), length),
                |link| link.throughput_mbps,
            ),
            goodput_mbps: mbps(goodput, length),
            utilization: row.map_or(0.0, |link| link.utilization),
            queueing_delay_ms: recorder.path_queueing().summary(),
            one_way_delay_ms: recorder.one_way.summary(),
            rtt_ms: rtt.summary(),
            responsiveness: match recorder.flows.first() {
                // Beside a competitor the row is about the first flow.
                Some(own) if own.delays.is_some() => responsiveness(&own.rtt),
                _ => responsiveness(&rtt),
            },
            second_half: self.second_half(bottleneck, to),
            signal_delay_ms: signal.map(|signal| SignalDelay { p95: signal.p95_ms() }),
            loss_percent: percent(dropped, delivered + dropped),
            delivered_packets: delivered,
            dropped_packets: dropped,
            sent_packets: Some(sent),
            left_packets: Some(left),
            retransmitted_packets: retransmitted,
            marks,
            jain: (flows.len() > 1).then(|| jain(flows.iter().map(|flow| flow.throughput_mbps))).flatten(),
            unfairness: self.unfairness.as_ref().and_then(Unfairness::rate),
            links,
            flows,
            shapers: self
                .engine
                .elements()
                .iter()
                .filter_map(|element| shaped(element, self.now()))
                .collect(),
            run_id: None,
            setup: None,
            deployment: None,
            spread: None,
            interval95: None,
            modes: None,
            versus: None,
            fairness: None,
            lateness_ms: None,
            unreliable: false,
            unreliable_because: Vec::new(),
        }
    }

    /// The link with the least capacity on the first flow's way forward: the one that a row is about.
    fn bottleneck(&self, links: &[LinkOutcome]) -> Option<usize> {
        let path = &self.scenario.flows.first()?.path;
        let on_path = path.iter().filter_map(|hop| match hop {
            Hop::Link(name) => self.scenario.link(name),
            Hop::Element(_) => None,
        });
        on_path.min_by(|&a, &b| links[a].capacity_mbps.total_cmp(&links[b].capacity_mbps))
    }
}

impl SeriesSoFar {
    /// Ends a bin of every link and every flow.
    fn close<E: Endpoint<SimPacket> + Reporting>(
        &mut self,
        bin: Duration,
        engine: &mut Engine<SimPacket, AnyElement<SimPacket>, E, Recorder>,
    ) {
        let (from, to) = (self.bin_end.saturating_sub(bin), self.bin_end);
        let (recorder, elements, hosts) = engine.parts_mut();
        for (element, link) in elements.iter().zip(&mut recorder.links) {
            if let Some(series) = &mut link.meter.series {
                series.close(element.capacity_between(from, to).map_or(0, |bytes| bytes.0));
            }
        }
        let flows = self.flows.iter_mut().zip(&mut self.before).zip(hosts.iter().zip(&recorder.flows));
        for ((series, before), (host, statistics)) in flows {
            let after = FlowBefore {
                mss: before.mss,
                bytes: statistics.left_bytes,
                rtt_count: statistics.rtt.count(),
                rtt_sum_nanos: statistics.rtt.sum_nanos(),
            };
            series.time_s.push(from.as_secs_f64());
            series.throughput_mbps.push(mbps(after.bytes - before.bytes, bin));
            series.cwnd_pkts.push(host.cwnd().as_f64() / before.mss);
            let samples = after.rtt_count - before.rtt_count;
            let sum = (after.rtt_sum_nanos - before.rtt_sum_nanos) as f64;
            series.rtt_ms.push((samples > 0).then(|| sum / samples as f64 * 1e-6));
            let bins = series.time_s.len();
            host.inspect(&mut |name, value| {
                let column = series.state.entry(name.to_string()).or_default();
                // A value that appears late was not there in the bins before.
                column.resize(bins - 1, f64::NAN);
                column.push(value);
            });
            *before = after;
        }
        self.bin_end += bin;
    }
}

/// Returns what every flow of `scenario` is made of, with its name, in their order: for hosts that are not
/// the simulator's.
pub fn flow_configs(scenario: &Scenario) -> Vec<(String, FlowConfig)> {
    let all = scenario.flows.iter().flat_map(|flow| (0..flow.count).map(move |index| (flow, index)));
    all.zip(0..)
        .map(|((flow, index), id)| {
            let name = flow.name_of(index);
            let start = Time::ZERO + flow.drawn_start(scenario.seed, index);
            let config = flow_config(scenario, flow, id, &name, start);
            (name, config)
        })
        .collect()
}

/// Returns what flow `id` of the run is made of, which is called `name` and begins at `start`.
pub fn flow_config(scenario: &Scenario, flow: &FlowSpec, id: u32, name: &str, start: Time) -> FlowConfig {
    FlowConfig {
        flow: FlowId(id),
        host: flow.host,
        controller: flow.controller.config().clone(),
        feedback: flow.feedback.config().clone(),
        ack_every: flow.ack_every,
        ack_delay: flow.ack_delay.unwrap_or_else(|| ack_delay(flow.host)),
        mss: flow.mss,
        overhead: flow.overhead,
        initial_window: flow.initial_window,
        pacing_burst: flow.pacing_burst,
        reordering: flow.reordering,
        undo: flow.undo,
        read_batch: flow.read_batch,
        traffic: flow.traffic.clone(),
        start,
        stop: flow.stop.map(|stop| Time::ZERO + stop),
        receiver_clock: flow.receiver_clock,
        jitter: flow.jitter,
        acks_are_read: scenario.acks_are_read(),
        random: Random::stream(scenario.seed, &format!("host {name}")),
        controller_random: Random::stream(scenario.seed, &format!("controller {name}")),
        check_contract: false,
        record_stages: scenario.record.state,
        record_frames: scenario.record.series,
    }
}

/// The series of a flow, with the frames of its call.
fn with_frames<E: Reporting>((mut series, host): (FlowSeries, &E)) -> FlowSeries {
    let ms = |from: Time, to: Option<Time>| to.map(|to| to.since(from).as_millis_f64());
    for frame in host.recorded_frames() {
        series.frames.taken_s.push(frame.taken_at.since(Time::ZERO).as_secs_f64());
        series.frames.size_bytes.push(frame.size.0);
        series.frames.is_key.push(frame.is_key);
        series.frames.delay_ms.push(ms(frame.taken_at, frame.arrived_at));
        series.frames.playout_delay_ms.push(ms(frame.taken_at, frame.shown_at));
    }
    series
}

/// What the element did up to `now`, if it is a shaper.
fn shaped(element: &AnyElement<SimPacket>, now: Time) -> Option<ShaperOutcome> {
    let AnyElement::Shaper(shaper) = element else { return None };
    let account = shaper.account(now);
    let over = |sum: f64| if account.awake_s > 0.0 { sum / account.awake_s } else { 0.0 };
    // A setter that never acts never sleeps either.
    let rate = if account.awake_s > 0.0 { over(account.rate_bits) } else { shaper.rate().as_bps_f64() };
    Some(ShaperOutcome {
        setter: shaper.setter().to_string(),
        rate_mbps: rate / 1e6,
        lowest_mbps: account.lowest_bps / 1e6,
        highest_mbps: account.highest_bps / 1e6,
        blind: over(account.blind_s),
        probes: account.probes,
    })
}

/// How many marks each part of an element's queues made, of those that say so.
fn marked_by(element: &AnyElement<SimPacket>) -> BTreeMap<String, f64> {
    let mut marked = BTreeMap::new();
    element.for_each_queue(&mut |queue| {
        queue.inspect(&mut |name, value| {
            if let Some(part) = name.strip_prefix("marked_by_") {
                *marked.entry(part.to_string()).or_insert(0.0) += value;
            }
        });
    });
    marked
}

/// The responsiveness of senders with these samples of the round trip.
fn responsiveness(rtt: &Distribution) -> Option<Responsiveness> {
    /// Of the round trips that count: draft-ietf-ippm-responsiveness, TMP.
    const SHORTEST: f64 = 0.95;
    let mean_ms = rtt.trimmed_mean_ms(SHORTEST);
    (mean_ms > 0.0)
        .then(|| Responsiveness { rpm: 60_000.0 / mean_ms, working_latency_p98_ms: rtt.quantile_ms(0.98) })
}

/// Whether all that link `index` carries are data packets that pass no other link.
fn is_whole_path(scenario: &Scenario, index: usize) -> bool {
    let links = |hops: &[Hop]| -> Vec<Option<usize>> {
        let link = |hop: &Hop| match hop {
            Hop::Link(name) => Some(scenario.link(name)),
            Hop::Element(_) => None,
        };
        hops.iter().filter_map(link).collect()
    };
    scenario.flows.iter().all(|flow| {
        let forward = links(&flow.path);
        let alone = forward.len() == 1 || !forward.contains(&Some(index));
        alone && !links(&flow.reverse).contains(&Some(index))
    })
}
