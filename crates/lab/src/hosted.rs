//! Hosts from outside over real sockets: `sim`'s hosted flows in `quic`'s loop over two sockets, which do not
//! know each other. The flow is the one of the simulator. Here its time is the machine's, and its datagrams
//! are real.

use std::net::UdpSocket;

use brakelight_core::ecn::Ecn;
use brakelight_core::packet::{Direction, Packet as _};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_quic::driver::measured::FlowPlan;
use brakelight_quic::driver::{FlowEnds, Totals};
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::engine::Routed as _;
use brakelight_sim::host::FlowConfig;
use brakelight_sim::outside::HostedFlow;
use brakelight_sim::report::FlowCounters;
use brakelight_sim::simulation::flow_configs;

/// Returns the plan of a flow whose controller lives in a host from outside. Its receiving end has the socket
/// `receiver`.
pub fn plan(name: String, config: FlowConfig, receiver: UdpSocket) -> FlowPlan {
    let (controller, start, stop, mss) = (config.controller.name(), config.start, config.stop, config.mss);
    // What a real host is late by it is by itself.
    let config = FlowConfig { jitter: Duration::ZERO, ..config };
    let open = || HostedFlow::open(config).map(|flow| Box::new(Ends(flow)) as Box<dyn FlowEnds>);
    FlowPlan { name, controller, start, stop, open: Box::new(open), mss, receiver }
}

/// Says which flow of `scenario` its host from outside cannot run, and why.
pub fn check(scenario: &Scenario) -> Result<(), String> {
    let hosted =
        flow_configs(scenario).into_iter().filter(|(_, config)| config.controller.hosted().is_some());
    hosted.into_iter().try_for_each(|(name, config)| match HostedFlow::open(config) {
        Ok(_) => Ok(()),
        Err(reason) => Err(format!("flow `{name}`: {reason}")),
    })
}

/// Both ends of one flow.
#[derive(Debug)]
struct Ends(HostedFlow);

impl FlowEnds for Ends {
    fn receive(&mut self, now: Time, direction: Direction, ecn: Ecn, payload: &[u8]) {
        self.0.receive(now, direction, ecn, payload);
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(Direction, Ecn)> {
        let packet = self.0.poll_transmit(now)?;
        self.0.take_payload(&packet, payload).then(|| (packet.direction(), packet.ecn()))
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.0.next_wakeup()
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.0.take_rtt_sample()
    }

    fn totals(&self) -> Totals {
        let FlowCounters { goodput_bytes, retransmitted_packets } = self.0.counters();
        Totals { received_bytes: goodput_bytes, lost_packets: retransmitted_packets }
    }

    fn cwnd(&self) -> Bytes {
        self.0.sender().cwnd
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.inspect(visit);
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.application(now, visit);
    }

    fn closed(&self) -> Option<(Time, String)> {
        self.0.closed().map(|(at, reason)| (at, reason.to_string()))
    }
}
