//! A flow of a scenario over the stack: one connection with its application, or short connections that come
//! and go.

use brakelight_apps::traffic::Traffic;
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::bundle::Bundle;
use super::flow::{Flow, FlowSettings, Packet, SetupError, Totals, encoding};
use crate::adapter::{ControllerAdapter, Times};
use crate::validation::State;

/// Both ends of a flow, whatever it consists of.
#[derive(Debug)]
pub struct Host {
    encoding: Encoding,
    life: Life,
}

#[derive(Debug)]
enum Life {
    One(Box<Flow>),
    Many(Box<Bundle>),
}

impl Host {
    /// Returns a flow that has not started.
    pub fn new(settings: FlowSettings) -> Result<Self, SetupError> {
        settings.check()?;
        let encoding = encoding(&settings);
        let life = match settings.traffic {
            Traffic::ShortFlows(law) => Life::Many(Box::new(Bundle::new(settings, law))),
            _ => Life::One(Box::new(Flow::new(settings)?)),
        };
        Ok(Host { encoding, life })
    }

    /// Returns what the sender means by its ECN bits.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns what the flow did so far.
    pub fn totals(&self) -> Totals {
        match &self.life {
            Life::One(flow) => flow.totals(),
            Life::Many(bundle) => bundle.totals(),
        }
    }

    /// Returns the newest RTT sample that was not taken yet.
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        match &mut self.life {
            Life::One(flow) => flow.adapter().take_rtt_sample(),
            Life::Many(bundle) => bundle.take_rtt_sample(),
        }
    }

    /// Returns the sender's window; zero before the flow starts, and of a flow that is many connections.
    pub fn cwnd(&self) -> Bytes {
        match &self.life {
            Life::One(flow) => flow.adapter().cwnd(),
            Life::Many(_) => Bytes::ZERO,
        }
    }

    /// Calls `visit` with state worth plotting: window, bytes in flight, smoothed RTT, and what the
    /// controller shows.
    pub fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        match &self.life {
            Life::One(flow) => inspect(flow.adapter(), visit),
            Life::Many(bundle) => {
                visit("inflight_bytes", bundle.inflight().as_f64());
                visit("connections", bundle.open_count() as f64);
            }
        }
    }

    /// Calls `visit` with what the application made of it until `now`, by name, in the unit the name ends in;
    /// and with what is particular to the stack: `ecn_failed`, 1 once path or peer could not be trusted with
    /// ECN; `closed`, 1 if the connection ended before its time; `times_of_round_trips`, 1 if the receiver's
    /// times were taken from round trips.
    pub fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let flow = match &self.life {
            Life::One(flow) => flow,
            Life::Many(bundle) => return bundle.outcome(visit),
        };
        flow.application(now, visit);
        let adapter = flow.adapter();
        if let State::Failed(_) = adapter.validation() {
            visit("ecn_failed", 1.0);
        }
        if flow.closed().is_some() {
            visit("closed", 1.0);
        }
        if adapter.times() == Times::RoundTrip {
            visit("times_of_round_trips", 1.0);
        }
    }

    /// A packet arrived at its end. A copy leaves the payload for the original.
    pub fn accept(&mut self, now: Time, packet: &Packet, copy: bool) {
        match &mut self.life {
            Life::One(flow) => flow.accept(now, packet, copy),
            Life::Many(bundle) => bundle.accept(now, packet, copy),
        }
    }

    /// A datagram arrived at the end that `direction` leads to, with this ECN field: the UDP payload of a
    /// packet that travelled by itself, as over a real network.
    pub fn receive(&mut self, now: Time, direction: Direction, ecn: Ecn, payload: &[u8]) {
        match &mut self.life {
            Life::One(flow) => flow.receive(now, direction, ecn, payload),
            Life::Many(bundle) => bundle.receive(now, direction, ecn, payload),
        }
    }

    /// Hands out the UDP payload of a packet that is to travel by itself. `None` if it was handed out before,
    /// or released.
    pub fn take_payload(&mut self, packet: &Packet) -> Option<bytes::Bytes> {
        match &mut self.life {
            Life::One(flow) => flow.take_payload(packet),
            Life::Many(bundle) => bundle.take_payload(packet),
        }
    }

    /// A packet died on the way.
    pub fn release(&mut self, packet: &Packet) {
        match &mut self.life {
            Life::One(flow) => flow.release(packet),
            Life::Many(bundle) => bundle.release(packet),
        }
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        match &mut self.life {
            Life::One(flow) => flow.poll_transmit(now),
            Life::Many(bundle) => bundle.poll_transmit(now),
        }
    }

    /// Returns when the flow must be polled next, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Time> {
        match &self.life {
            Life::One(flow) => flow.next_wakeup(),
            Life::Many(bundle) => bundle.next_wakeup(),
        }
    }
}

fn inspect(adapter: &ControllerAdapter, visit: &mut dyn FnMut(&'static str, f64)) {
    visit("inflight_bytes", adapter.inflight().as_f64());
    visit("cwnd_bytes", adapter.cwnd().as_f64());
    if let Some(srtt) = adapter.smoothed_rtt() {
        visit("srtt_ms", srtt.as_millis_f64());
    }
    if let Some(rate) = adapter.pacing_rate().and_then(Rate::paced) {
        visit("pacing_rate_bps", rate.as_bps_f64());
    }
    adapter.inspect(visit);
}
