//! A scenario's flows by kernel TCP: which scenarios real hosts can run, and the iperf3 processes that are their hosts.
//!
//! The senders stand behind the link, the receivers on the outer side, so data go up. Each flow is an iperf3 client and an iperf3
//! server of its own, on a port of its own: a server takes one test at a time. iperf3 counts whole seconds, so durations must be some.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use brakelight_core::ecn::Encoding;
use brakelight_core::path::elements::ElementConfig;
use brakelight_core::path::trace::Trace;
use brakelight_core::registry::Host;
use brakelight_core::time::{Duration, Time};
use brakelight_scenario::clock::Clock;
use brakelight_scenario::measure::{Distribution, jain, mbps, percent};
use brakelight_scenario::outcome::{MarkCounts, Outcome};
use brakelight_scenario::problem::{InputError, Problem};
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Scenario, Service, packet_sizes};
use brakelight_scenario::traffic::Traffic;
use serde_json::Value;

use crate::measure::FlowMeter;
use crate::outcome::Directions;
use crate::spec::{Bottleneck, Direction, SpecError};

/// The port of the first flow; the others follow.
const FIRST_PORT: u16 = 5201;

/// Most flows: each is two processes.
pub const MOST_FLOWS: u64 = 64;

/// The controllers that Linux has, by our name and by its own, each with the options that only say what Linux's does.
pub const KERNEL: &[(&str, &str, &[&str])] =
    &[("newreno", "reno", &[]), ("cubic", "cubic", &["reno_catch_up", "horizon"]), ("bbr", "bbr", &[])];

/// One flow, by kernel TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFlow {
    /// Its name in the scenario.
    pub name: String,
    /// The registered name of its controller.
    pub controller: &'static str,
    /// The kernel's name for it.
    pub kernel: &'static str,
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
    /// The way of the data.
    pub up: Direction,
    /// The way of the acknowledgements.
    pub down: Direction,
    /// Its flows.
    pub flows: Vec<KernelFlow>,
    /// When measuring begins.
    pub measure_from: Duration,
    /// How long the longest flow goes on.
    pub duration: Duration,
}

/// Why a flow has no numbers.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Its result cannot be read.
    #[error("flow `{flow}`: the result of iperf3 cannot be read: {error}")]
    Read {
        /// The flow.
        flow: String,
        /// What the system said.
        error: io::Error,
    },
    /// iperf3 failed.
    #[error("flow `{flow}`: iperf3 failed: {message}")]
    Failed {
        /// The flow.
        flow: String,
        /// What it said.
        message: String,
    },
    /// Its result is not what iperf3 prints.
    #[error("flow `{flow}`: iperf3's result has no `{field}`")]
    Missing {
        /// The flow.
        flow: String,
        /// What is missing.
        field: &'static str,
    },
}

impl Workload {
    /// The scenario as real hosts run it, with the traces that its links name; refused with the field and with what would be valid where they cannot.
    pub fn of(scenario: &Scenario, traces: &BTreeMap<String, Trace>) -> Result<Self, InputError> {
        whole_seconds("", "duration", scenario.duration)?;
        let [first, ..] = scenario.flows.as_slice() else {
            return Err(refuse("", "flow", "the emulator needs at least one".to_string()));
        };
        if scenario.flow_count() > MOST_FLOWS {
            let reason = format!("{} flows; real hosts run at most {MOST_FLOWS}", scenario.flow_count());
            return Err(refuse("", "flow", reason));
        }
        for flow in &scenario.flows {
            check_flow(flow, first)?;
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
            let (_, kernel, _) = kernel(spec)?;
            for index in 0..spec.count {
                let start = spec.drawn_start(scenario.seed, index);
                let end = spec.stop.unwrap_or(scenario.duration).min(scenario.duration);
                flows.push(KernelFlow {
                    name: spec.name_of(index),
                    controller: spec.controller.name(),
                    kernel,
                    start,
                    seconds: end.saturating_sub(spec.start).as_nanos().div_ceil(NANOS).max(1),
                    port: FIRST_PORT + flows.len() as u16,
                });
            }
        }
        Ok(Workload { up, down, flows, measure_from: scenario.measure_from, duration: scenario.duration })
    }

    /// The receivers: a line for the shell on the outer side.
    pub fn server(&self) -> OsString {
        let mut line = String::new();
        for flow in &self.flows {
            let _ = write!(line, "iperf3 --server --one-off --port {} >/dev/null 2>&1 & ", flow.port);
        }
        (line + "wait").into()
    }

    /// The senders: a command for the inner side. Results go into files in `folder`.
    pub fn command(&self, folder: &Path) -> Vec<OsString> {
        // The receivers may still be starting: who is not let in tries again for two seconds.
        let mut script =
            "try() { left=20; while :; do \"$@\" >\"$out\" 2>\"$out.err\" && return; left=$((left - 1)); \
             grep -q 'unable to connect' \"$out\" && [ $left -gt 0 ] || return; sleep 0.1; done; }\n"
                .to_string();
        for (index, flow) in self.flows.iter().enumerate() {
            let _ = writeln!(
                script,
                "(out=\"$1\"/{index}.json; sleep {:.6}; try iperf3 --client \"$BRAKELIGHT_HOST\" --port {} \
                 --congestion {} --time {} --interval {SAMPLE_S} --json) &",
                flow.start.as_secs_f64(),
                flow.port,
                flow.kernel,
                flow.seconds
            );
        }
        script += "wait";
        vec!["sh".into(), "-c".into(), script.into(), "sh".into(), folder.into()]
    }

    /// The outcome of a run whose senders left their results in `folder`: what the path saw, and what the hosts say.
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
            let host = Told::read(&file(folder, index), flow, self.measure_from)?;
            let meter = meters.iter().find(|meter| is_of(meter, flow.port, host.local_port));
            let mut row = meter.map(|meter| crate::outcome::flow_row(meter, length)).unwrap_or_default();
            row.name.clone_from(&flow.name);
            row.controller = flow.controller.to_string();
            row.goodput_mbps = mbps(host.bytes, Duration::from_secs_f64(host.seconds));
            row.rtt_ms = host.rtt.summary();
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
        run.rtt_ms = rtt.summary();
        run.loss_percent = percent(run.dropped_packets, run.delivered_packets + run.dropped_packets);
        let rates = run.flows.iter().map(|flow| flow.throughput_mbps);
        run.jain = (run.flows.len() > 1).then(|| jain(rates)).flatten();
        outcome.series = series;
        Ok(outcome)
    }
}

const NANOS: u64 = 1_000_000_000;

/// How often iperf3 looks at its socket: the shortest it takes.
const SAMPLE_S: f64 = 0.1;

fn file(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index}.json"))
}

/// Whether the packets are of the data connection: the client's own port says so, the control connection has another.
fn is_of(meter: &FlowMeter, server: u16, client: u16) -> bool {
    meter.tuple.is_some_and(|tuple| tuple.to.port() == server && tuple.from.port() == client)
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

fn kernel(flow: &FlowSpec) -> Result<(&'static str, &'static str, &'static [&'static str]), InputError> {
    let owner = format!("flow `{}`", flow.name);
    let words = flow.controller.words();
    let Some(entry) = KERNEL.iter().find(|(name, _, _)| *name == flow.controller.name()) else {
        let valid = KERNEL.iter().map(|(name, _, _)| *name).collect::<Vec<_>>().join(", ");
        let reason = format!("Linux has no `{}`: valid on the emulator are {valid}", words.name);
        return Err(refuse(&owner, "controller", reason));
    };
    if let Some((option, value)) =
        words.options.iter().find(|(option, _)| !entry.2.contains(&option.as_str()))
    {
        let reason =
            format!("Linux's {} does not take `{option}={value}`: on the emulator leave it out", entry.1);
        return Err(refuse(&owner, "controller", reason));
    }
    Ok(*entry)
}

/// Whether kernel TCP can be this flow, beside `first` on the same path.
fn check_flow(flow: &FlowSpec, first: &FlowSpec) -> Result<(), InputError> {
    let owner = format!("flow `{}`", flow.name);
    let refuse = |key: &str, reason: String| Err(refuse(&owner, key, reason));
    kernel(flow)?;
    if flow.host != Host::Tcp {
        return refuse("host", "the emulator's hosts are kernel TCP: valid is `tcp`".to_string());
    }
    if flow.encoding() != Encoding::None {
        return refuse("controller", "the emulator's hosts do not ask for ECN: leave `ecn` out".to_string());
    }
    if flow.feedback.name() != flow.controller.companions().feedback {
        let reason =
            format!("the kernel's receiver gives no other than `{}`", flow.controller.companions().feedback);
        return refuse("feedback", reason);
    }
    let (mss, overhead) = packet_sizes(Host::Tcp);
    if (flow.mss, flow.overhead) != (mss, overhead) {
        return refuse(
            "mss",
            format!("the emulator's packets carry {} B and {} B of headers: leave it out", mss.0, overhead.0),
        );
    }
    if flow.initial_window != FlowSpec::INITIAL_WINDOW {
        return refuse(
            "initial_window",
            format!("the kernel's is {}: leave it out", FlowSpec::INITIAL_WINDOW),
        );
    }
    if flow.ack_every != 2 {
        return refuse("ack_every", "the kernel acknowledges every second packet: valid is 2".to_string());
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

/// What iperf3 says of one flow.
#[derive(Debug)]
struct Told {
    local_port: u16,
    /// Payload in the measured interval, and its length.
    bytes: u64,
    seconds: f64,
    retransmitted: u64,
    /// Its samples of the kernel's smoothed RTT.
    rtt: Distribution,
    /// End of the sample in its own time, window in bytes, RTT.
    samples: Vec<(f64, f64, Duration)>,
}

impl Told {
    fn read(path: &Path, flow: &KernelFlow, measure_from: Duration) -> Result<Self, WorkloadError> {
        let own = || flow.name.clone();
        let text =
            std::fs::read_to_string(path).map_err(|error| WorkloadError::Read { flow: own(), error })?;
        Self::parse(&text, flow, measure_from).map_err(|error| match error {
            // What it says on standard error instead, where it printed nothing that could be read.
            WorkloadError::Failed { flow, message } if message.is_empty() => {
                let said = std::fs::read_to_string(path.with_extension("json.err")).unwrap_or_default();
                WorkloadError::Failed { flow, message: said.trim().to_string() }
            }
            error => error,
        })
    }

    fn parse(text: &str, flow: &KernelFlow, measure_from: Duration) -> Result<Self, WorkloadError> {
        let failed =
            |message: &str| WorkloadError::Failed { flow: flow.name.clone(), message: message.to_string() };
        let document: Value = serde_json::from_str(text).map_err(|_| failed(""))?;
        if let Some(error) = document.get("error").and_then(Value::as_str) {
            return Err(failed(error));
        }
        let missing = |field| WorkloadError::Missing { flow: flow.name.clone(), field };
        let port = document.pointer("/start/connected/0/local_port").and_then(Value::as_u64);
        let local_port =
            port.and_then(|port| u16::try_from(port).ok()).ok_or_else(|| missing("local_port"))?;
        let intervals =
            document.get("intervals").and_then(Value::as_array).ok_or_else(|| missing("intervals"))?;
        let mut host = Told {
            local_port,
            bytes: 0,
            seconds: 0.0,
            retransmitted: 0,
            rtt: Distribution::default(),
            samples: Vec::new(),
        };
        for interval in intervals {
            let stream = interval.pointer("/streams/0").ok_or_else(|| missing("streams"))?;
            let number = |field| stream.get(field).and_then(Value::as_f64).filter(|value| *value >= 0.0);
            let start = number("start").ok_or_else(|| missing("start"))?;
            let end = number("end").ok_or_else(|| missing("end"))?;
            let rtt = Duration::from_secs_f64(number("rtt").ok_or_else(|| missing("rtt"))? * 1e-6);
            host.samples.push((end, number("snd_cwnd").unwrap_or(0.0), rtt));
            if flow.start.as_secs_f64() + start >= measure_from.as_secs_f64() {
                host.bytes += number("bytes").ok_or_else(|| missing("bytes"))? as u64;
                host.retransmitted += number("retransmits").unwrap_or(0.0) as u64;
                host.seconds += end - start;
                host.rtt.record(rtt);
            }
        }
        // Over a whole test what arrived is known, and not only what was handed to the kernel.
        if let Some(received) = document.pointer("/end/sum_received")
            && measure_from <= flow.start
        {
            let number = |field| received.get(field).and_then(Value::as_f64).filter(|value| *value > 0.0);
            if let (Some(bytes), Some(seconds)) = (number("bytes"), number("seconds")) {
                (host.bytes, host.seconds) = (bytes as u64, seconds);
            }
        }
        Ok(host)
    }

    /// Window and RTT of the flow that started at `start`, bin by bin.
    fn into_series(self, start: Duration, line: &mut brakelight_scenario::outcome::FlowSeries) {
        let (mss, _) = packet_sizes(Host::Tcp);
        let start = (Time::ZERO + start).as_secs_f64();
        let bins = line.time_s.len();
        let bin = line.time_s.get(1).copied().unwrap_or(SAMPLE_S);
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
