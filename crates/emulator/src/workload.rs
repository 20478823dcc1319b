//! A scenario's flows by real hosts: which scenarios those can run, and the processes that they are.
//!
//! The senders stand behind the link, the receivers on the outer side, so data go up. Each flow has a port of
//! its own on the outer side. Of kernel TCP it is an iperf3 client and an iperf3 server, which always has
//! more to send and counts whole seconds. Of QUIC one program on the inner side has both ends of every flow,
//! and with them its application; it inherits the receivers' sockets ([`inherited`](crate::inherited)).
//! Any command and its servers may take the place of the only flow.
//!
//! | file | holds |
//! |---|---|
//! | `check` | which flows the hosts can be |
//! | `iperf3` | the command lines and results of iperf3 |
//! | `quic` | the command line and result of the program with QUIC |
//! | `programs` | a command and its servers in place of a flow |
//! | `run` | the whole of a run |

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use brakelight_core::time::{Duration, Time};
use brakelight_links::elements::Role;
use brakelight_links::trace::Trace;
use brakelight_registry::Host;
use brakelight_scenario::measure::{Distribution, jain, mbps, percent};
use brakelight_scenario::outcome::{FlowSeries, MarkCounts, Outcome, Summary};
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Scenario, Service, packet_sizes};

use crate::measure::FlowMeter;
use crate::outcome::Directions;
use crate::spec::{Bottleneck, DirectionSpec, SpecError};

mod check;
mod iperf3;
mod programs;
mod quic;
mod run;

pub use check::kernels;
use check::{check_flow, check_programs, kernel, refuse, whole_seconds};
pub use programs::{Programs, said};
pub use run::{LogFile, RunError};

/// The port of the first flow; the others follow.
const FIRST_PORT: u16 = 5201;

/// The most flows: of kernel TCP each needs two processes, of QUIC two sockets and a thread.
pub const MOST_FLOWS: u64 = 64;

/// The hosts that run a scenario's flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Kernel TCP, by iperf3.
    Kernel,
    /// QUIC, by the program that this command line starts. It is given three more arguments, the paths of the
    /// scenario, of the document of the run that it must write, and of the time series, where the scenario
    /// records them; it inherits a socket for each flow, in their order; and it checks the flows' controllers
    /// itself.
    Quic(Vec<OsString>),
    /// Any programs, in place of the scenario's only flow.
    Programs(Programs),
}

/// One flow between real hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFlow {
    /// Its name in the scenario.
    pub name: String,
    /// The registered name of its controller.
    pub controller: &'static str,
    /// The hosts' name for it.
    pub congestion: String,
    /// When it starts.
    pub start: Duration,
    /// When it stops, if that is before the end.
    pub stop: Option<Duration>,
    /// How long it sends, in whole seconds, which is what iperf3 counts.
    pub seconds: u64,
    /// Its server's port.
    pub port: u16,
}

/// A scenario that real hosts can run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The direction of the data.
    pub up: DirectionSpec,
    /// The direction of the acknowledgements.
    pub down: DirectionSpec,
    /// Its hosts.
    pub hosts: Hosts,
    /// Its flows.
    pub flows: Vec<HostFlow>,
    /// When measuring begins.
    pub measure_from: Duration,
    /// Duration of the longest flow.
    pub duration: Duration,
}

/// Why a flow's results could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Its result cannot be read.
    #[error("flow `{flow}`: the result of {program} cannot be read: {error}")]
    Read {
        /// The flow.
        flow: String,
        /// Its host.
        program: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The result of the program with all flows cannot be read.
    #[error("the flows' result of {program} cannot be read: {error}")]
    Hosts {
        /// Their host.
        program: &'static str,
        /// What is wrong.
        error: io::Error,
    },
    /// The host failed.
    #[error("flow `{flow}`: {program} failed: {message}")]
    Failed {
        /// The flow.
        flow: String,
        /// Its host.
        program: &'static str,
        /// What it said.
        message: String,
    },
    /// The result lacks a field.
    #[error("flow `{flow}`: the result of {program} has no `{field}`")]
    Missing {
        /// The flow.
        flow: String,
        /// Its host.
        program: &'static str,
        /// What is missing.
        field: &'static str,
    },
}

impl Workload {
    /// Converts a scenario for `hosts`, with the traces that its links name. The error names the field that
    /// they cannot run, and what would be valid.
    pub fn of(
        scenario: &Scenario,
        traces: &BTreeMap<String, Trace>,
        hosts: Hosts,
    ) -> Result<Self, InputError> {
        if hosts == Hosts::Kernel {
            whole_seconds("", "duration", scenario.duration)?;
        }
        let [first, ..] = scenario.flows.as_slice() else {
            return Err(refuse("", "flow", "the emulator needs at least one".to_string()));
        };
        if scenario.flow_count() > MOST_FLOWS {
            let reason = format!("{} flows; real hosts run at most {MOST_FLOWS}", scenario.flow_count());
            return Err(refuse("", "flow", reason));
        }
        for flow in &scenario.flows {
            match hosts {
                Hosts::Programs(_) => check_programs(scenario, flow)?,
                _ => check_flow(flow, first, &hosts)?,
            }
        }
        let mut up = direction(scenario, "up", first, &first.path, traces)?;
        let mut down = direction(scenario, "down", first, &first.reverse, traces)?;
        (up.opposite, down.opposite) = (down.link.clone(), up.link.clone());
        for way in [&mut up, &mut down] {
            if way.replays_delay() {
                way.delay = Duration::ZERO;
            }
        }
        for link in &scenario.links {
            let used = [&up, &down]
                .iter()
                .any(|way| way.link.as_ref().is_some_and(|own| own.spec().name == link.name));
            if !used {
                let owner = format!("link `{}`", link.name);
                let reason =
                    "no flow passes it: the emulator has one link for data and one for acknowledgements"
                        .to_string();
                return Err(refuse(&owner, "name", reason));
            }
        }
        let mut flows = Vec::new();
        for spec in &scenario.flows {
            let congestion = match hosts {
                Hosts::Kernel => kernel(spec)?.name.to_string(),
                Hosts::Quic(_) => spec.controller.words().to_string(),
                Hosts::Programs(_) => programs::UNKNOWN.to_string(),
            };
            for index in 0..spec.count {
                let start = spec.drawn_start(scenario.seed, index);
                let end = spec.stop.unwrap_or(scenario.duration).min(scenario.duration);
                flows.push(HostFlow {
                    name: spec.name_of(index),
                    controller: spec.controller.name(),
                    congestion: congestion.clone(),
                    start,
                    stop: spec.stop,
                    seconds: end.saturating_sub(spec.start).as_nanos().div_ceil(NANOS).max(1),
                    port: FIRST_PORT + flows.len() as u16,
                });
            }
        }
        let (measure_from, duration) = (scenario.measure_from, scenario.duration);
        Ok(Workload { up, down, hosts, flows, measure_from, duration })
    }

    /// Returns shell command lines that start the receivers on the outer side, where they are programs of
    /// their own.
    pub fn servers(&self) -> Vec<OsString> {
        match &self.hosts {
            Hosts::Kernel => vec![iperf3::server(&self.flows)],
            Hosts::Quic(_) => Vec::new(),
            Hosts::Programs(programs) => programs.servers.clone(),
        }
    }

    /// Returns UDP ports of the outer side, for each of which the command inherits a socket.
    pub fn ports(&self) -> Vec<u16> {
        match &self.hosts {
            Hosts::Kernel | Hosts::Programs(_) => Vec::new(),
            Hosts::Quic(_) => self.flows.iter().map(|flow| flow.port).collect(),
        }
    }

    /// Puts into `folder` what the command reads there: of `scenario`, from which this was made.
    ///
    /// # Errors
    /// What the system says of a file that cannot be written.
    pub fn prepare(&self, folder: &Path, scenario: &Scenario) -> io::Result<()> {
        match &self.hosts {
            Hosts::Kernel | Hosts::Programs(_) => Ok(()),
            Hosts::Quic(_) => quic::prepare(folder, scenario),
        }
    }

    /// Returns the command that runs the senders on the inner side; of QUIC both ends. It writes their
    /// results into `folder`.
    pub fn command(&self, folder: &Path) -> Vec<OsString> {
        match &self.hosts {
            Hosts::Kernel => {}
            Hosts::Quic(program) => return quic::command(program, folder),
            Hosts::Programs(programs) => return programs.command(&self.flows),
        }
        let mut script = iperf3::TRY.to_string();
        for (index, flow) in self.flows.iter().enumerate() {
            let _ = writeln!(
                script,
                "(out=\"$1\"/{index}.json; sleep {:.6}; try iperf3 {}) &",
                flow.start.as_secs_f64(),
                iperf3::client(flow)
            );
        }
        script += "wait";
        vec!["sh".into(), "-c".into(), script.into(), "sh".into(), folder.into()]
    }

    /// Returns the outcome of a run, from what the path measured and from the results that the senders wrote
    /// into `folder`.
    pub fn outcome(
        &self,
        folder: &Path,
        scenario: &Scenario,
        directions: &Directions,
    ) -> Result<Outcome, WorkloadError> {
        if let Hosts::Programs(_) = self.hosts {
            return Ok(programs::outcome(&self.flows, scenario, directions));
        }
        let mut outcome = directions.outcome(&scenario.name, scenario.seed);
        let length = directions.length();
        let meters = &directions.up.flows;
        let mut series = std::mem::take(&mut outcome.series);
        let mut shown = Vec::new();
        let run = &mut outcome.run;
        run.flows.clear();
        run.marks = MarkCounts::default();
        (run.delivered_packets, run.dropped_packets, run.retransmitted_packets) = (0, 0, 0);
        let HostResults { flows, rtt_ms, goodput_bytes, unreliable_because } = self.host_results(folder)?;
        run.unreliable |= !unreliable_because.is_empty();
        run.unreliable_because.extend(unreliable_because);
        for (flow, host) in self.flows.iter().zip(flows) {
            let meter = meters.iter().find(|meter| is_of(meter, flow.port, host.local_port));
            let mut row = meter.map(|meter| crate::outcome::flow_row(meter, length)).unwrap_or_default();
            row.name.clone_from(&flow.name);
            row.controller = flow.controller.to_string();
            row.goodput_mbps = mbps(host.bytes, Duration::from_secs_f64(host.seconds));
            row.rtt_ms = host.rtt_ms;
            row.retransmitted_packets = host.retransmitted;
            row.application.clone_from(&host.application);
            row.state.clone_from(&host.state);
            run.retransmitted_packets += host.retransmitted;
            if let Some(meter) = meter {
                if host.counts_active_time {
                    row.throughput_mbps = mbps(meter.bytes, Duration::from_secs_f64(host.seconds));
                }
                // Of the data connection: iperf3 has talked over another one before, and will after.
                let times = [("started_s", meter.first), ("ended_s", meter.last)];
                let times = times.map(|(name, at)| (name.to_string(), at.as_secs_f64()));
                row.application.get_or_insert_default().extend(times);
                run.delivered_packets += meter.delivered;
                run.dropped_packets += meter.dropped;
                run.marks = run.marks + meter.marks;
                let own = meter.tuple.map(|tuple| tuple.to_string()).unwrap_or_default();
                let lines = series.iter().flat_map(|series| &series.flows);
                if let Some(line) = lines.clone().find(|line| line.name == own) {
                    let mut line = line.clone();
                    line.name.clone_from(&flow.name);
                    host.into_series(flow.start, &mut line);
                    shown.push(line);
                }
            }
            run.flows.push(row);
        }
        if let Some(series) = &mut series {
            series.flows = shown;
        }
        run.goodput_mbps = mbps(goodput_bytes, length);
        run.rtt_ms = rtt_ms;
        run.loss_percent = percent(run.dropped_packets, run.delivered_packets + run.dropped_packets);
        let rates = run.flows.iter().map(|flow| flow.throughput_mbps);
        run.jain = (run.flows.len() > 1).then(|| jain(rates)).flatten();
        outcome.series = series;
        Ok(outcome)
    }
}

impl Workload {
    fn host_results(&self, folder: &Path) -> Result<HostResults, WorkloadError> {
        if let Hosts::Quic(_) = self.hosts {
            return self.quic_results(folder);
        }
        let mut results = HostResults::default();
        let mut rtt = Distribution::default();
        for (index, flow) in self.flows.iter().enumerate() {
            let (host, samples) = self.iperf3_result(&folder.join(format!("{index}.json")), flow)?;
            rtt.merge(&samples);
            results.goodput_bytes += host.bytes;
            results.flows.push(host);
        }
        results.rtt_ms = rtt.summary();
        Ok(results)
    }

    fn iperf3_result(
        &self,
        path: &Path,
        flow: &HostFlow,
    ) -> Result<(HostResult, Distribution), WorkloadError> {
        let own = || flow.name.clone();
        let text = std::fs::read_to_string(path).map_err(|error| WorkloadError::Read {
            flow: own(),
            program: iperf3::NAME,
            error,
        })?;
        iperf3::parse(&text, flow, self.measure_from).map_err(|error| match error {
            // What it says on standard error instead, where it printed nothing that could be read.
            WorkloadError::Failed { flow, program, message } if message.is_empty() => {
                let said = std::fs::read_to_string(path.with_extension("json.err")).unwrap_or_default();
                let message = said.lines().last().unwrap_or("it said nothing").trim().to_string();
                WorkloadError::Failed { flow, program, message }
            }
            error => error,
        })
    }

    fn quic_results(&self, folder: &Path) -> Result<HostResults, WorkloadError> {
        let (run, series) = quic::read(folder)?;
        let missing = |flow: &HostFlow, field| WorkloadError::Missing {
            flow: flow.name.clone(),
            program: quic::NAME,
            field,
        };
        let mut results = HostResults {
            rtt_ms: run.rtt_ms,
            unreliable_because: run.unreliable_because.clone(),
            ..HostResults::default()
        };
        let bytes = |mbps: f64, seconds: f64| (mbps * seconds * 1e6 / 8.0).round() as u64;
        results.goodput_bytes = bytes(run.goodput_mbps, run.duration_s);
        let (from, to) = (self.measure_from.as_secs_f64(), self.duration.as_secs_f64());
        for flow in &self.flows {
            let row = run.flows.iter().find(|row| row.name == flow.name);
            let row = row.ok_or_else(|| missing(flow, "flow"))?;
            let stop = flow.stop.map_or(to, |stop| stop.as_secs_f64().min(to));
            let seconds = (stop - flow.start.as_secs_f64().max(from)).max(0.0);
            results.flows.push(HostResult {
                bytes: bytes(row.goodput_mbps, seconds),
                seconds,
                counts_active_time: true,
                retransmitted: row.retransmitted_packets,
                rtt_ms: row.rtt_ms,
                application: row.application.clone(),
                state: row.state.clone(),
                series: series.iter().find(|line| line.name == flow.name).cloned(),
                ..HostResult::default()
            });
        }
        Ok(results)
    }
}

const NANOS: u64 = 1_000_000_000;

/// Whether the packets are of the data connection: where the host has others to the same server, its own port
/// says so.
fn is_of(meter: &FlowMeter, server: u16, client: Option<u16>) -> bool {
    meter.tuple.is_some_and(|tuple| {
        tuple.to.port() == server && client.is_none_or(|client| tuple.from.port() == client)
    })
}

/// One direction, of the hops of every flow: at most one link, and elements behind it.
fn direction(
    scenario: &Scenario,
    name: &str,
    flow: &FlowSpec,
    hops: &[Hop],
    traces: &BTreeMap<String, Trace>,
) -> Result<DirectionSpec, InputError> {
    let key = if name == "up" { "path" } else { "reverse" };
    let owner = format!("flow `{}`", flow.name);
    let mut direction = DirectionSpec::open(name, scenario.seed);
    let mut delay = false;
    for hop in hops {
        match hop {
            Hop::Link(link) if direction.link.is_none() && direction.elements.is_empty() => {
                let spec = scenario.links.iter().find(|spec| spec.name == *link);
                let spec = spec.ok_or_else(|| refuse(&owner, key, format!("there is no link `{link}`")))?;
                // As in simulation a delay line takes the place of half the RTT.
                delay |= !spec.delay.is_zero();
                direction.link = Some(bottleneck(scenario, spec, traces)?);
            }
            Hop::Link(link) => {
                let reason =
                    format!("the emulator has one link each way, and it comes first: leave `{link}` out");
                return Err(refuse(&owner, key, reason));
            }
            Hop::Element(element) => {
                delay |= element.role() == Role::Propagation;
                direction.elements.push(element.config().clone());
            }
        }
    }
    if !delay {
        direction.delay = if name == "up" { flow.rtt / 2 } else { flow.rtt - flow.rtt / 2 };
    }
    Ok(direction)
}

fn bottleneck(
    scenario: &Scenario,
    spec: &LinkSpec,
    traces: &BTreeMap<String, Trace>,
) -> Result<Bottleneck, InputError> {
    let trace = match &spec.service {
        Service::Trace(name) => traces.get(name).cloned(),
        _ => None,
    };
    Bottleneck::of_scenario(spec.clone(), trace, scenario.trace_offset).map_err(|error| match error {
        SpecError::Link { name, reason } => refuse(&format!("link `{name}`"), "service", reason),
        error => refuse(&format!("link `{}`", spec.name), "queue", error.to_string()),
    })
}

/// What the hosts report of all flows.
#[derive(Debug, Default)]
struct HostResults {
    /// In the order of the workload's.
    flows: Vec<HostResult>,
    /// RTT samples of all flows together.
    rtt_ms: Option<Summary>,
    /// Payload of all flows in the measured interval.
    goodput_bytes: u64,
    /// Why they cannot be trusted.
    unreliable_because: Vec<String>,
}

/// The results that a host reports of its flow.
#[derive(Debug, Default)]
struct HostResult {
    /// The client's own port, where it has more than one connection.
    local_port: Option<u16>,
    /// Payload in the measured interval, and its length.
    bytes: u64,
    seconds: f64,
    /// Whether that length is the part of the measured interval in which the flow exists, as the simulator
    /// counts it.
    counts_active_time: bool,
    retransmitted: u64,
    rtt_ms: Option<Summary>,
    /// What its application saw, and what its controller showed of itself at the end.
    application: Option<BTreeMap<String, f64>>,
    state: Option<BTreeMap<String, f64>>,
    /// End of the sample in its own time, window in bytes, RTT.
    samples: Vec<(f64, f64, Duration)>,
    /// Window and RTT over time, where the host has bins as the path does.
    series: Option<FlowSeries>,
}

impl HostResult {
    /// Window and RTT of the flow that started at `start`, bin by bin, if its host reported them.
    fn into_series(self, start: Duration, line: &mut FlowSeries) {
        let bins = line.time_s.len();
        if let Some(mut series) = self.series {
            series.cwnd_pkts.resize(bins, f64::NAN);
            series.rtt_ms.resize(bins, None);
            (line.cwnd_pkts, line.rtt_ms) = (series.cwnd_pkts, series.rtt_ms);
            return;
        }
        if self.samples.is_empty() {
            return;
        }
        let (mss, _) = packet_sizes(Host::Tcp);
        let start = (Time::ZERO + start).as_secs_f64();
        let bin = line.time_s.get(1).copied().unwrap_or(iperf3::SAMPLE_S);
        line.cwnd_pkts = vec![f64::NAN; bins];
        line.rtt_ms = vec![None; bins];
        for (end, cwnd, rtt) in self.samples {
            // The sample stands for the bin in which it was taken.
            let index = ((start + end) / bin) as usize;
            if index < bins {
                line.cwnd_pkts[index] = cwnd / mss.as_f64();
                line.rtt_ms[index] = Some(rtt.as_millis_f64());
            }
        }
    }
}

#[cfg(test)]
mod tests;
