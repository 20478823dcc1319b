//! A scenario's flows by real hosts: which scenarios those can run, and the processes that they are.
//!
//! The senders stand behind the link, the receivers on the outer side, so data go up. Each flow is a client
//! and a server of its own, on a port of its own: of kernel TCP, which is iperf3, or of QUIC, which is a
//! program with the commands `perf` and `perf-server`. iperf3 counts whole seconds, so durations must be
//! some, and are with QUIC, that both can run the same scenarios.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use brakelight_core::ecn::Encoding;
use brakelight_core::path::elements::ElementConfig;
use brakelight_core::path::trace::Trace;
use brakelight_core::registry::{CONTROLLERS, ControllerConfig, Host, Kernel};
use brakelight_core::time::{Duration, Time};
use brakelight_scenario::clock::Clock;
use brakelight_scenario::measure::{Distribution, jain, mbps, percent};
use brakelight_scenario::outcome::{MarkCounts, Outcome, Summary};
use brakelight_scenario::problem::{InputError, Problem};
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Scenario, Service, packet_sizes};
use brakelight_scenario::traffic::Traffic;

use crate::measure::FlowMeter;
use crate::outcome::Directions;
use crate::spec::{Bottleneck, Direction, SpecError};

mod iperf3;
mod perf;

/// The port of the first flow; the others follow.
const FIRST_PORT: u16 = 5201;

/// The most flows: each needs two processes.
pub const MOST_FLOWS: u64 = 64;

/// The hosts that run a scenario's flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Kernel TCP, by iperf3.
    Kernel,
    /// QUIC, by this program's `perf` and `perf-server`, which check the flow's controller themselves.
    Quic(PathBuf),
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
    /// How long it sends: whole seconds.
    pub seconds: u64,
    /// Its server's port.
    pub port: u16,
}

/// A scenario that real hosts can run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The direction of the data.
    pub up: Direction,
    /// The direction of the acknowledgements.
    pub down: Direction,
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
        whole_seconds("", "duration", scenario.duration)?;
        let [first, ..] = scenario.flows.as_slice() else {
            return Err(refuse("", "flow", "the emulator needs at least one".to_string()));
        };
        if scenario.flow_count() > MOST_FLOWS {
            let reason = format!("{} flows; real hosts run at most {MOST_FLOWS}", scenario.flow_count());
            return Err(refuse("", "flow", reason));
        }
        if matches!(hosts, Hosts::Quic(_)) && !scenario.measure_from.is_zero() {
            let reason = "`perf` tells of whole flows: valid with --host quinn is 0".to_string();
            return Err(refuse("", "measure_from", reason));
        }
        for flow in &scenario.flows {
            check_flow(flow, first, &hosts)?;
        }
        let up = direction(scenario, "up", first, &first.path, traces)?;
        let down = direction(scenario, "down", first, &first.reverse, traces)?;
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
            };
            for index in 0..spec.count {
                let start = spec.drawn_start(scenario.seed, index);
                let end = spec.stop.unwrap_or(scenario.duration).min(scenario.duration);
                flows.push(HostFlow {
                    name: spec.name_of(index),
                    controller: spec.controller.name(),
                    congestion: congestion.clone(),
                    start,
                    seconds: end.saturating_sub(spec.start).as_nanos().div_ceil(NANOS).max(1),
                    port: FIRST_PORT + flows.len() as u16,
                });
            }
        }
        let (measure_from, duration) = (scenario.measure_from, scenario.duration);
        Ok(Workload { up, down, hosts, flows, measure_from, duration })
    }

    /// Shell command lines that start the receivers on the outer side.
    pub fn servers(&self) -> Vec<OsString> {
        match &self.hosts {
            Hosts::Kernel => vec![iperf3::server(&self.flows)],
            Hosts::Quic(program) => self.flows.iter().map(|flow| perf::server(program, flow)).collect(),
        }
    }

    /// The command that runs the senders on the inner side. It writes their results into `folder`.
    pub fn command(&self, folder: &Path) -> Vec<OsString> {
        let (mut script, program) = match &self.hosts {
            Hosts::Kernel => (iperf3::TRY.to_string(), Path::new("iperf3")),
            Hosts::Quic(program) => (perf::TRY.to_string(), program.as_path()),
        };
        for (index, flow) in self.flows.iter().enumerate() {
            let client = match self.hosts {
                Hosts::Kernel => iperf3::client(flow),
                Hosts::Quic(_) => perf::client(flow),
            };
            let _ = writeln!(
                script,
                "(out=\"$1\"/{index}.json; sleep {:.6}; try \"$2\" {client}) &",
                flow.start.as_secs_f64(),
            );
        }
        script += "wait";
        vec!["sh".into(), "-c".into(), script.into(), "sh".into(), folder.into(), program.into()]
    }

    /// The outcome of a run, from what the path measured and from the results that the senders wrote into
    /// `folder`.
    pub fn outcome(
        &self,
        folder: &Path,
        scenario: &Scenario,
        directions: &Directions,
    ) -> Result<Outcome, WorkloadError> {
        let mut outcome = directions.outcome(&scenario.name, scenario.seed);
        let length = directions.length();
        let meters = &directions.up.flows;
        let mut series = std::mem::take(&mut outcome.series);
        let mut shown = Vec::new();
        let run = &mut outcome.run;
        run.flows.clear();
        run.marks = MarkCounts::default();
        (run.delivered_packets, run.dropped_packets, run.retransmitted_packets) = (0, 0, 0);
        let (mut rtt, mut goodput) = (Distribution::default(), 0);
        for (index, flow) in self.flows.iter().enumerate() {
            let host = self.host_result(&file(folder, index), flow)?;
            let meter = meters.iter().find(|meter| is_of(meter, flow.port, host.local_port));
            let mut row = meter.map(|meter| crate::outcome::flow_row(meter, length)).unwrap_or_default();
            row.name.clone_from(&flow.name);
            row.controller = flow.controller.to_string();
            row.goodput_mbps = mbps(host.bytes, Duration::from_secs_f64(host.seconds));
            row.rtt_ms = host.summary.or_else(|| host.rtt.summary());
            row.retransmitted_packets = host.retransmitted;
            row.application = meter.map(|meter| {
                // Of the data connection: iperf3 has talked over another one before, and will after.
                let times = [("started_s", meter.first), ("ended_s", meter.last)];
                times.map(|(name, at)| (name.to_string(), at.as_secs_f64())).into()
            });
            run.flows.push(row);
            run.retransmitted_packets += host.retransmitted;
            rtt.merge(&host.rtt);
            goodput += host.bytes;
            if let Some(meter) = meter {
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
        }
        if let Some(series) = &mut series {
            series.flows = shown;
        }
        run.goodput_mbps = mbps(goodput, length);
        run.rtt_ms = match run.flows.as_slice() {
            [only] => only.rtt_ms,
            _ => rtt.summary(),
        };
        run.loss_percent = percent(run.dropped_packets, run.delivered_packets + run.dropped_packets);
        let rates = run.flows.iter().map(|flow| flow.throughput_mbps);
        run.jain = (run.flows.len() > 1).then(|| jain(rates)).flatten();
        outcome.series = series;
        Ok(outcome)
    }
}

impl Workload {
    fn host_result(&self, path: &Path, flow: &HostFlow) -> Result<HostResult, WorkloadError> {
        let program = match self.hosts {
            Hosts::Kernel => iperf3::NAME,
            Hosts::Quic(_) => perf::NAME,
        };
        let own = || flow.name.clone();
        let text = std::fs::read_to_string(path).map_err(|error| WorkloadError::Read {
            flow: own(),
            program,
            error,
        })?;
        let result = match self.hosts {
            Hosts::Kernel => iperf3::parse(&text, flow, self.measure_from),
            Hosts::Quic(_) => perf::parse(&text, flow),
        };
        result.map_err(|error| match error {
            // What it says on standard error instead, where it printed nothing that could be read.
            WorkloadError::Failed { flow, program, message } if message.is_empty() => {
                let said = std::fs::read_to_string(path.with_extension("json.err")).unwrap_or_default();
                let message = said.lines().last().unwrap_or("it said nothing").trim().to_string();
                WorkloadError::Failed { flow, program, message }
            }
            error => error,
        })
    }
}

const NANOS: u64 = 1_000_000_000;

fn file(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index}.json"))
}

/// Whether the packets are of the data connection: where the host has others to the same server, its own port
/// says so.
fn is_of(meter: &FlowMeter, server: u16, client: Option<u16>) -> bool {
    meter.tuple.is_some_and(|tuple| {
        tuple.to.port() == server && client.is_none_or(|client| tuple.from.port() == client)
    })
}

fn refuse(owner: &str, key: &str, reason: String) -> InputError {
    let problem = Box::new(Problem::Contradiction { key: key.to_string(), reason });
    InputError { file: None, line: None, owner: owner.to_string(), problem }
}

fn whole_seconds(owner: &str, key: &str, time: Duration) -> Result<(), InputError> {
    if time.as_nanos().is_multiple_of(NANOS) {
        return Ok(());
    }
    let valid = "whole seconds, which is what iperf3 counts on the emulator".to_string();
    let problem = Problem::OutOfRange { key: key.to_string(), value: time.to_string(), valid };
    Err(InputError { file: None, line: None, owner: owner.to_string(), problem: Box::new(problem) })
}

/// Every controller that Linux has, by our name, with Linux's own.
pub fn kernels() -> impl Iterator<Item = (&'static str, Kernel)> {
    CONTROLLERS.iter().filter_map(|entry| {
        let config = ControllerConfig::new(entry.name, &[]).ok()?;
        Some((entry.name, config.needs().kernel?))
    })
}

fn kernel(flow: &FlowSpec) -> Result<Kernel, InputError> {
    let owner = format!("flow `{}`", flow.name);
    let words = flow.controller.words();
    let Some(kernel) = flow.controller.needs().kernel else {
        let valid = kernels().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let reason = format!("Linux has no `{}`: valid on the emulator are {valid}", words.name);
        return Err(refuse(&owner, "controller", reason));
    };
    if let Some((option, value)) =
        words.options.iter().find(|(option, _)| !kernel.options.contains(&option.as_str()))
    {
        let reason =
            format!("Linux's {} does not take `{option}={value}`: on the emulator leave it out", kernel.name);
        return Err(refuse(&owner, "controller", reason));
    }
    Ok(kernel)
}

/// Whether `hosts` can be this flow, beside `first` on the same path.
fn check_flow(flow: &FlowSpec, first: &FlowSpec, hosts: &Hosts) -> Result<(), InputError> {
    let owner = format!("flow `{}`", flow.name);
    let refuse = |key: &str, reason: String| Err(refuse(&owner, key, reason));
    let profile = match hosts {
        Hosts::Kernel => Host::Tcp,
        Hosts::Quic(_) => Host::Quic,
    };
    if *hosts == Hosts::Kernel {
        kernel(flow)?;
    }
    if flow.host != profile {
        return refuse(
            "host",
            "the emulator's hosts are kernel TCP: valid is `tcp`, or --host quinn for QUIC".to_string(),
        );
    }
    if *hosts == Hosts::Kernel && flow.encoding() != Encoding::None {
        return refuse("controller", "the emulator's hosts do not ask for ECN: leave `ecn` out".to_string());
    }
    if flow.feedback.name() != flow.controller.needs().feedback {
        let reason = format!("a real receiver gives no other than `{}`", flow.controller.needs().feedback);
        return refuse("feedback", reason);
    }
    let (mss, overhead) = packet_sizes(profile);
    if (flow.mss, flow.overhead) != (mss, overhead) {
        return refuse(
            "mss",
            format!(
                "real hosts decide on their packets: leave it out, for {} B and {} B of headers",
                mss.0, overhead.0
            ),
        );
    }
    if flow.pacing_burst != FlowSpec::PACING_BURST {
        return refuse(
            "pacing_burst",
            format!("that of real hosts is {}: leave it out", FlowSpec::PACING_BURST),
        );
    }
    if flow.initial_window != FlowSpec::INITIAL_WINDOW {
        return refuse(
            "initial_window",
            format!("that of real hosts is {}: leave it out", FlowSpec::INITIAL_WINDOW),
        );
    }
    if flow.ack_every != 2 {
        return refuse("ack_every", "real hosts acknowledge every second packet: valid is 2".to_string());
    }
    if flow.traffic != Traffic::Backlogged {
        return refuse("traffic", "the emulator's flows always have more to send: leave it out".to_string());
    }
    if flow.receiver_clock != Clock::default() {
        return refuse("receiver_clock", "real hosts have the machine's clock: leave it out".to_string());
    }
    whole_seconds(&owner, "start", flow.start)?;
    if let Some(stop) = flow.stop {
        whole_seconds(&owner, "stop", stop)?;
    }
    if flow.rtt != first.rtt || flow.count > 1 && !flow.rtt_step.is_zero() {
        return refuse("rtt", "the emulator's path has one delay: give every flow the same".to_string());
    }
    if flow.path != first.path {
        return refuse(
            "path",
            format!("the emulator has one path: give every flow that of `{}`", first.name),
        );
    }
    if flow.reverse != first.reverse {
        return refuse(
            "reverse",
            format!("the emulator has one way back: give every flow that of `{}`", first.name),
        );
    }
    Ok(())
}

/// One direction, of the hops of every flow: at most one link, and elements behind it.
fn direction(
    scenario: &Scenario,
    name: &str,
    flow: &FlowSpec,
    hops: &[Hop],
    traces: &BTreeMap<String, Trace>,
) -> Result<Direction, InputError> {
    let key = if name == "up" { "path" } else { "reverse" };
    let owner = format!("flow `{}`", flow.name);
    let mut direction = Direction::open(name, scenario.seed);
    let mut delay = false;
    for hop in hops {
        match hop {
            Hop::Link(link) if direction.link.is_none() && direction.elements.is_empty() => {
                let spec = scenario.links.iter().find(|spec| spec.name == *link);
                let spec = spec.ok_or_else(|| refuse(&owner, key, format!("there is no link `{link}`")))?;
                direction.link = Some(bottleneck(scenario, spec, traces)?);
            }
            Hop::Link(link) => {
                let reason =
                    format!("the emulator has one link each way, and it comes first: leave `{link}` out");
                return Err(refuse(&owner, key, reason));
            }
            Hop::Element(element) => {
                delay |= matches!(element.config(), ElementConfig::Delay(_));
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

/// The results that a host reports of its flow.
#[derive(Debug, Default)]
struct HostResult {
    /// The client's own port, where it has more than one connection.
    local_port: Option<u16>,
    /// Payload in the measured interval, and its length.
    bytes: u64,
    seconds: f64,
    retransmitted: u64,
    /// Its samples of the RTT, or what became of them.
    rtt: Distribution,
    summary: Option<Summary>,
    /// End of the sample in its own time, window in bytes, RTT.
    samples: Vec<(f64, f64, Duration)>,
}

impl HostResult {
    /// Window and RTT of the flow that started at `start`, bin by bin, if its host reported them.
    fn into_series(self, start: Duration, line: &mut brakelight_scenario::outcome::FlowSeries) {
        if self.samples.is_empty() {
            return;
        }
        let (mss, _) = packet_sizes(Host::Tcp);
        let start = (Time::ZERO + start).as_secs_f64();
        let bins = line.time_s.len();
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
