//! `quinn-hosts`: the process that has both ends of a scenario's QUIC flows on the emulator. It runs on the
//! inner side, where its senders' sockets are, and inherits those of its receivers from the outer side;
//! between them lies the emulated path.
//!
//! Each flow has a thread, since each keeps a rate by waking up in time. What a flow counts, and over which
//! time, is what it counts in simulation; packets, queues and marks are the path's to count.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use brakelight_core::registry::Registry;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_emulator::inherited;
use brakelight_lab::{input, quinn};
use brakelight_quic::driver::{self, FlowSettings, SocketHost, Totals};
use brakelight_scenario::documents::Runs;
use brakelight_scenario::measure::{Distribution, mbps};
use brakelight_scenario::outcome::{FlowOutcome, FlowSeries, Run, Series};
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::host::FlowConfig;
use brakelight_sim::simulation::{active, flow_configs};
use clap::Args;

use crate::failure::Failure;

/// The command's name.
pub const COMMAND: &str = "quinn-hosts";

/// `quinn-hosts`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Where the document of the run goes
    #[arg(value_name = "RUN.json")]
    pub run: PathBuf,
    /// Where the time series go, if the scenario records them
    #[arg(value_name = "SERIES.json")]
    pub series: PathBuf,
}

/// Runs the command.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    let receivers = inherited::sockets().map_err(Failure::run)?;
    let scenario = input::scenario(registry, &arguments.scenario)?;
    let far = std::env::var("BRAKELIGHT_HOST").ok().and_then(|text| text.parse::<Ipv4Addr>().ok());
    let far =
        far.ok_or_else(|| Failure::run("$BRAKELIGHT_HOST is no address: this command is the emulator's"))?;
    let configs = flow_configs(&scenario);
    if receivers.len() != configs.len() {
        let (flows, sockets) = (configs.len(), receivers.len());
        return Err(Failure::run(format!(
            "{flows} flows inherit {sockets} sockets: this command is the emulator's"
        )));
    }
    let base = Instant::now();
    let mut flows = Vec::new();
    for ((name, config), receiver) in configs.iter().zip(receivers) {
        let flow = Flow::open(name, config, receiver, far, base);
        flows.push(flow.map_err(|error| Failure::run(format!("flow `{name}`: {error}")))?);
    }
    let flows = thread::scope(|scope| {
        let mut threads = Vec::new();
        for flow in flows {
            let (name, scenario) = (flow.name, &scenario);
            let one = move || flow.run(scenario).map_err(|error| format!("flow `{name}`: {error}"));
            threads.push(thread::Builder::new().spawn_scoped(scope, one).map_err(Failure::run)?);
        }
        let ended = threads.into_iter().map(|thread| {
            let panicked = |_| Err("a flow's thread panicked; its message is above".to_string());
            thread.join().unwrap_or_else(panicked).map_err(Failure::run)
        });
        ended.collect::<Result<Vec<_>, Failure>>()
    })?;
    write(arguments, &scenario, flows)
}

/// Writes what came of the flows.
fn write(arguments: &Arguments, scenario: &Scenario, flows: Vec<Done>) -> Result<(), Failure> {
    let length = scenario.duration.saturating_sub(scenario.measure_from);
    let mut rtt = Distribution::default();
    flows.iter().for_each(|flow| rtt.merge(&flow.rtt));
    let series = Series {
        bin_s: scenario.record.bin.as_secs_f64(),
        flows: flows.iter().map(|flow| flow.series.clone()).collect(),
        ..Series::default()
    };
    let run = Run {
        scheme: scenario.name.clone(),
        seed: scenario.seed,
        duration_s: length.as_secs_f64(),
        goodput_mbps: mbps(flows.iter().map(|flow| flow.bytes).sum(), length),
        rtt_ms: rtt.summary(),
        flows: flows.into_iter().map(|flow| flow.row).collect(),
        ..Run::default()
    };
    let document = Runs { runs: vec![run], ..Runs::default() };
    let write = |path: &PathBuf, json: serde_json::Result<String>| {
        let written = json.map_err(Failure::run).map(|json| std::fs::write(path, json))?;
        written.map_err(|error| Failure::run(format!("{}: {error}", path.display())))
    };
    write(&arguments.run, serde_json::to_string(&document))?;
    if scenario.record.series {
        write(&arguments.series, serde_json::to_string(&series))?;
    }
    Ok(())
}

/// A flow that is about to begin.
struct Flow<'a> {
    name: &'a str,
    config: &'a FlowConfig,
    host: SocketHost,
}

/// What came of a flow.
struct Done {
    row: FlowOutcome,
    /// Payload that arrived in the measured interval.
    bytes: u64,
    rtt: Distribution,
    series: FlowSeries,
}

impl<'a> Flow<'a> {
    fn open(
        name: &'a str,
        config: &'a FlowConfig,
        receiver: UdpSocket,
        far: Ipv4Addr,
        base: Instant,
    ) -> std::io::Result<Self> {
        let port = receiver.local_addr()?.port();
        let sender = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // What a real host is late by it is by itself.
        let settings = FlowSettings { jitter: Duration::ZERO, ..quinn::settings(config) };
        let flow = driver::Host::new(settings).map_err(std::io::Error::other)?;
        let host = SocketHost::new(flow, sender, receiver, SocketAddr::from((far, port)), base)?;
        Ok(Flow { name, config, host })
    }

    /// Runs it until the scenario's end.
    fn run(mut self, scenario: &Scenario) -> std::io::Result<Done> {
        let (from, to) = (Time::ZERO + scenario.measure_from, Time::ZERO + scenario.duration);
        let mss = self.config.mss;
        let mut series = FlowSeries { name: self.name.to_string(), ..FlowSeries::default() };
        let mut rtt = Distribution::default();
        let mut before = Totals::default();
        let mut bin = Bin::default();
        let (mut now, mut bin_end) = (Time::ZERO, Time::MAX);
        if scenario.record.series {
            bin_end = Time::ZERO + scenario.record.bin;
        }
        while now < to {
            let measuring = now >= from;
            let next = if measuring { to } else { from.min(to) }.min(bin_end);
            self.host.advance(next, |sample| {
                bin.record(sample);
                if measuring {
                    rtt.record(sample);
                }
            })?;
            now = next;
            if now == from {
                before = self.host.host().totals();
            }
            if now == bin_end {
                bin.close(
                    &mut series,
                    bin_end.saturating_sub(scenario.record.bin),
                    self.host.host().cwnd(),
                    mss,
                );
                bin_end += scenario.record.bin;
            }
        }
        Ok(self.done(scenario, before, rtt, series))
    }

    fn done(&self, scenario: &Scenario, before: Totals, rtt: Distribution, series: FlowSeries) -> Done {
        let (from, to) = (Time::ZERO + scenario.measure_from, Time::ZERO + scenario.duration);
        let host = self.host.host();
        let totals = host.totals();
        let bytes = totals.received_bytes - before.received_bytes;
        let active = active(self.config.start, self.config.stop, from, to);
        let mut application = BTreeMap::new();
        host.application(to, &mut |name, value| {
            application.insert(name.to_string(), value);
        });
        let mut state = BTreeMap::new();
        if scenario.record.state {
            // JSON has no other numbers.
            host.inspect(&mut |name, value| {
                if value.is_finite() {
                    state.insert(name.to_string(), value);
                }
            });
        }
        let row = FlowOutcome {
            name: self.name.to_string(),
            controller: self.config.controller.name().to_string(),
            goodput_mbps: mbps(bytes, active),
            rtt_ms: rtt.summary(),
            // The stack does not count packets that carry something for the second time; what was lost is
            // sent again.
            retransmitted_packets: totals.lost_packets - before.lost_packets,
            application: (!application.is_empty()).then_some(application),
            state: scenario.record.state.then_some(state),
            ..FlowOutcome::default()
        };
        Done { row, bytes, rtt, series }
    }
}

/// RTT samples of a bin of the time series.
#[derive(Default)]
struct Bin {
    samples: u32,
    sum_ms: f64,
}

impl Bin {
    fn record(&mut self, rtt: Duration) {
        self.samples += 1;
        self.sum_ms += rtt.as_millis_f64();
    }

    /// Ends the bin that began at `from`, and begins the next.
    fn close(&mut self, series: &mut FlowSeries, from: Time, cwnd: Bytes, mss: Bytes) {
        let Bin { samples, sum_ms } = std::mem::take(self);
        series.time_s.push(from.as_secs_f64());
        series.cwnd_pkts.push(cwnd.as_f64() / mss.as_f64());
        series.rtt_ms.push((samples > 0).then(|| sum_ms / f64::from(samples)));
    }
}
