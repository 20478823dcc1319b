//! The real QUIC stack as a host of the simulator: `quic`'s flows in `sim`'s engine, which do not know each
//! other.

use std::io::{self, Write};

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::{FlowId, Packet as _, PacketId};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_quic::driver::{self, FlowSettings, Handle, Packet, SetupError};
use brakelight_registry::Carries;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::{FlowSpec, Reordering, Scenario};
use brakelight_sim::engine::Routed;
use brakelight_sim::host::FlowConfig;
use brakelight_sim::outside::Inbox;
use brakelight_sim::packet::{Contents, Kind, SimPacket};
use brakelight_sim::report::{FlowCounters, Reporting};
use brakelight_sim::{RunError, Traces};

use crate::error::Cause;
use crate::runner::Runner;

/// The simulator with both ends of every flow in the real QUIC stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicStack;

impl Runner for QuicStack {
    fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause> {
        Ok(run(scenario, traces)?)
    }

    fn host(&self) -> &'static str {
        Host::HOST
    }
}

/// Runs `scenario` from beginning to end with both ends of every flow in the real stack.
///
/// The outcome is that of the modelled host, in every field. What a flow of the stack adds to its
/// application's values: `ecn_failed`, 1 once path or peer could not be trusted with ECN;
/// `times_of_round_trips`, 1 if the receiver's times were taken from round trips; `closed`, 1 if the
/// connection ended before its time.
pub fn run(scenario: &Scenario, traces: &Traces) -> Result<Outcome, RunError> {
    brakelight_sim::run_with(scenario, traces, |config| Host::new(config).map_err(|error| error.to_string()))
}

/// Writes the qlog of a run whose flows are in the real stack, as [`qlog::write`](crate::qlog::write) does of
/// others. The stack shows its window and its losses; it can write a log of its own, with every frame, over
/// real sockets.
///
/// # Errors
/// The scenario cannot be run, or a file cannot be made or written.
pub fn write_qlog(
    scenario: &Scenario,
    traces: &Traces,
    version: crate::qlog::Version,
    open: &mut dyn FnMut(&str) -> io::Result<Box<dyn Write>>,
) -> Result<(), Cause> {
    let host = |config| Host::new(config).map_err(|error| error.to_string());
    crate::qlog::write_with(scenario, traces, version, open, host)
}

/// Says which flow of `scenario` the stack cannot run, and why. Flows of hosts from outside are not its own.
pub fn check(scenario: &Scenario) -> Result<(), String> {
    scenario.flows.iter().filter(|flow| flow.controller.hosted().is_none()).try_for_each(|flow| {
        if flow.ack_delay.is_some() {
            return Err(format!("flow `{}`: ack_delay: the stack has its own: leave it out", flow.name));
        }
        if flow.reordering != Reordering::Fixed || !flow.undo {
            let key = if flow.undo { "reordering" } else { "undo" };
            return Err(format!(
                "flow `{}`: {key}: the stack has its own loss detection: leave it out",
                flow.name
            ));
        }
        let settings = of_spec(flow);
        settings.check().map_err(|error| format!("flow `{}`: {error}", flow.name))
    })
}

/// What decides whether a flow can be set up; the rest is as good as any.
fn of_spec(flow: &FlowSpec) -> FlowSettings {
    FlowSettings {
        controller: flow.controller.config().clone(),
        packet: packet(flow.mss, flow.overhead),
        ack_every: Some(flow.ack_every),
        initial_window: flow.initial_window,
        pacing_burst: flow.pacing_burst,
        traffic: flow.traffic.clone(),
        start: Time::ZERO,
        stop: None,
        receiver_clock: flow.receiver_clock,
        reports: true,
        receive_times: false,
        jitter: flow.jitter,
        random: Random::stream(0, "host"),
        controller_random: Random::stream(0, "controller"),
    }
}

fn packet(mss: Bytes, overhead: Bytes) -> u16 {
    u16::try_from((mss + overhead).0).unwrap_or(u16::MAX)
}

/// Returns a flow of the simulator as one of the stack.
pub fn settings(config: &FlowConfig) -> FlowSettings {
    let carries = config.feedback.carries();
    FlowSettings {
        controller: config.controller.clone(),
        packet: packet(config.mss, config.overhead),
        ack_every: Some(config.ack_every),
        initial_window: config.initial_window,
        pacing_burst: config.pacing_burst,
        traffic: config.traffic.clone(),
        start: config.start,
        stop: config.stop,
        receiver_clock: config.receiver_clock,
        // The peer's reports say when each packet arrived, and how it was marked.
        reports: matches!(carries, Carries::ReceiveTimes | Carries::LoadFactor),
        receive_times: carries == Carries::ReceiveTimes,
        jitter: config.jitter,
        random: config.random.clone(),
        controller_random: config.controller_random.clone(),
    }
}

/// Both ends of one flow.
#[derive(Debug)]
struct Host {
    flow: driver::Host,
    inbox: Inbox,
    id: FlowId,
    sent: u64,
}

impl Host {
    fn new(config: FlowConfig) -> Result<Self, SetupError> {
        let flow = driver::Host::new(settings(&config))?;
        Ok(Host { flow, inbox: Inbox::new(&config), id: config.flow, sent: 0 })
    }

    /// Gives a packet to its end.
    fn take(&mut self, now: Time, packet: &SimPacket) {
        if let Some(wire) = back(packet) {
            self.flow.accept(now, &wire, packet.id.is_copy());
        }
    }
}

/// What the stack must know of a packet that it once sent.
fn back(packet: &SimPacket) -> Option<Packet> {
    let Kind::Wire { slot, generation, hash, data } = packet.kind() else { return None };
    Some(Packet {
        handle: Handle { slot, generation },
        direction: packet.direction(),
        size: packet.size,
        ecn: packet.ecn(),
        data,
        hash16: hash,
        connection: packet.connection,
    })
}

impl Endpoint<SimPacket> for Host {
    fn accept(&mut self, now: Time, packet: SimPacket) {
        if let Some(packet) = self.inbox.hold(now, packet) {
            self.take(now, &packet);
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        for packet in self.inbox.read(now) {
            self.take(now, &packet);
        }
        let packet = self.flow.poll_transmit(now)?;
        self.sent += 1;
        let Handle { slot, generation } = packet.handle;
        Some(SimPacket::new(&Contents {
            id: PacketId(u64::from(self.id.0) << 40 | self.sent),
            sent_at: now,
            kind: Kind::Wire { slot, generation, hash: packet.hash16, data: packet.data },
            flow: self.id,
            connection: packet.connection,
            size: packet.size,
            ecn: packet.ecn,
            // A scheme's queue is told whose packets are whose; those without ECN are everybody's.
            encoding: if packet.ecn == Ecn::NotEct { Encoding::None } else { self.flow.encoding() },
            direction: packet.direction,
            cwr: false,
        }))
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.flow.next_wakeup().into_iter().chain(self.inbox.read_at()).min()
    }

    fn release(&mut self, packet: SimPacket) {
        if let (Some(wire), false) = (back(&packet), packet.id.is_copy()) {
            self.flow.release(&wire);
        }
    }
}

impl Reporting for Host {
    const HOST: &'static str = "quinn";

    /// The stack does not count packets that carry something for the second time; what was lost is sent
    /// again.
    fn counters(&self) -> FlowCounters {
        let totals = self.flow.totals();
        FlowCounters { goodput_bytes: totals.received_bytes, retransmitted_packets: totals.lost_packets }
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.flow.take_rtt_sample()
    }

    fn cwnd(&self) -> Bytes {
        self.flow.cwnd()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.flow.inspect(visit);
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.flow.application(now, visit);
    }
}
