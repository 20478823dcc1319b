//! A flow of short connections that come and go, each in a pair of ends of its own: handshake, keys and
//! controller.
//!
//! A connection exists from its arrival until its last byte is at the receiver and none of its packets is on
//! the way. It ends in silence, as one whose idle timeout runs out. Its time to completion has its handshake,
//! which connections of the modelled host do not have. When connections arrive, and what becomes of the
//! outcome, is [`ArrivalProcess`]'s.

use std::collections::VecDeque;

use brakelight_apps::ArrivalProcess;
use brakelight_apps::traffic::{ShortFlows, Traffic};
use brakelight_core::packet::PacketId;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::HostedConfig;

use super::flow::{Beacon, HostedFlow};
use crate::host::FlowConfig;
use crate::packet::SimPacket;
use crate::report::{FlowCounters, SenderView};

/// A connection that is open.
#[derive(Debug)]
struct Open {
    number: u32,
    size: u64,
    arrived_at: Time,
    /// Whether all its bytes are at the receiver.
    complete: bool,
    flow: HostedFlow,
}

/// Many short connections of a host from outside, one endpoint.
#[derive(Debug)]
pub struct HostedBundle {
    config: FlowConfig,
    hosted: HostedConfig,
    beacon: Beacon,
    random: Random,
    arrivals: ArrivalProcess,
    start_at: Option<Time>,
    stop_at: Option<Time>,
    /// By number, ascending.
    open: VecDeque<Open>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Of connections that are gone.
    gone: FlowCounters,
    rtt_sample: Option<Duration>,
    /// Packets so far.
    packets: u64,
    wake_at: Option<Time>,
    /// When the first connection ended before its time, and why.
    closed: Option<(Time, String)>,
}

impl HostedBundle {
    /// Returns a flow that has not started, of connections of the host that `hosted` names.
    pub(super) fn new(
        config: FlowConfig,
        law: ShortFlows,
        hosted: &HostedConfig,
        beacon: &Beacon,
    ) -> Result<Self, String> {
        // What is wrong with one connection is known before the run.
        HostedFlow::new(connection(&config, 0, Bytes(1), config.start), hosted, beacon)?;
        Ok(HostedBundle {
            hosted: hosted.clone(),
            beacon: beacon.clone(),
            random: config.random.clone(),
            arrivals: ArrivalProcess::new(law),
            start_at: Some(config.start),
            stop_at: config.stop,
            open: VecDeque::new(),
            ready: VecDeque::new(),
            gone: FlowCounters::default(),
            rtt_sample: None,
            packets: 0,
            wake_at: Some(config.start),
            closed: None,
            config,
        })
    }

    /// Returns when a connection ended before its time, and why, if one did.
    pub fn closed(&self) -> Option<(Time, &str)> {
        self.closed.as_ref().map(|(at, reason)| (*at, reason.as_str()))
    }

    /// A packet arrived at its end. Connections that are gone do not answer.
    pub(super) fn accept(&mut self, now: Time, packet: SimPacket) {
        let Some(place) = self.find(packet.connection) else { return };
        self.open[place].flow.accept(now, packet);
        self.look(now, place);
        self.ready.push_back(packet.connection);
        self.wake_at = Some(now);
    }

    /// Takes note of what a connection has come to.
    fn look(&mut self, now: Time, place: usize) {
        let open = &mut self.open[place];
        if let Some(sample) = open.flow.take_rtt_sample() {
            self.rtt_sample = Some(sample);
        }
        if open.complete {
            return;
        }
        if open.flow.counters().goodput_bytes >= open.size {
            open.complete = true;
            self.arrivals.complete(now.since(open.arrived_at));
        } else if let (Some((at, reason)), None) = (open.flow.closed(), &self.closed) {
            self.closed = Some((at, format!("connection {}: {reason}", open.number)));
        }
    }

    /// Returns the next packet to send at `now`.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        if self.wake_at.is_some_and(|at| at <= now) {
            self.wake_at = None;
            self.on_deadline(now);
        }
        while let Some(&number) = self.ready.front() {
            if let Some(place) = self.find(number) {
                let packet = self.open[place].flow.poll_transmit(now);
                self.look(now, place);
                if let Some(mut packet) = packet {
                    self.packets += 1;
                    packet.id = PacketId(u64::from(self.config.flow.0) << 40 | self.packets);
                    packet.connection = number;
                    return Some(packet);
                }
                self.close_if_finished(place);
            }
            self.ready.pop_front();
        }
        let arrival = Some(self.arrivals.next_at()).filter(|at| *at != Time::MAX);
        let own = [self.start_at, self.stop_at, arrival];
        let connections = self.open.iter().map(|open| open.flow.next_wakeup());
        self.wake_at = own.into_iter().chain(connections).flatten().min();
        None
    }

    /// Returns when the flow must be asked for packets next, if nothing arrives before.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.wake_at
    }

    pub(super) fn release(&mut self, packet: SimPacket) {
        let Some(place) = self.find(packet.connection) else { return };
        self.open[place].flow.release(packet);
        self.close_if_finished(place);
    }

    fn on_deadline(&mut self, now: Time) {
        if self.start_at.is_some_and(|at| at <= now) {
            self.start_at = None;
            self.arrivals.start(now, &mut self.random);
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            self.stop_at = None;
            self.arrivals.stop();
        }
        let due = self.open.iter().filter(|open| open.flow.next_wakeup().is_some_and(|at| at <= now));
        self.ready.extend(due.map(|open| open.number));
        while self.arrivals.next_at() <= now {
            self.arrive(now);
        }
    }

    fn arrive(&mut self, now: Time) {
        let number = self.arrivals.started();
        let size = self.arrivals.arrive(&mut self.random);
        match HostedFlow::new(connection(&self.config, number, size, now), &self.hosted, &self.beacon) {
            Ok(flow) => {
                self.open.push_back(Open { number, size: size.0, arrived_at: now, complete: false, flow });
                self.ready.push_back(number);
            }
            // The first check has not seen it: the connection never completes, which the run says.
            Err(reason) => {
                self.closed.get_or_insert((now, format!("connection {number}: {reason}")));
            }
        }
    }

    fn close_if_finished(&mut self, place: usize) {
        let open = &self.open[place];
        if open.complete && open.flow.is_quiet() {
            self.gone = sum(self.gone, open.flow.counters());
            self.open.remove(place);
        }
    }

    fn find(&self, number: u32) -> Option<usize> {
        self.open.binary_search_by_key(&number, |open| open.number).ok()
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> FlowCounters {
        self.open.iter().fold(self.gone, |so_far, open| sum(so_far, open.flow.counters()))
    }

    /// Returns the newest RTT sample that was not taken yet.
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// Returns the senders of all connections as one, which has no window and no RTT.
    pub fn sender(&self) -> SenderView {
        let counters = self.counters();
        SenderView {
            inflight: self.open.iter().map(|open| open.flow.sender().inflight).sum(),
            delivered_bytes: Bytes(counters.goodput_bytes),
            lost_packets: counters.retransmitted_packets,
            retransmitted_packets: counters.retransmitted_packets,
            ..SenderView::default()
        }
    }

    /// Calls `visit` with what the senders show, by name, in the unit the name ends in.
    pub fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("inflight_bytes", self.sender().inflight.as_f64());
        visit("connections", self.open.len() as f64);
    }

    /// Calls `visit` with the outcome, by name, in the unit the name ends in.
    pub fn application(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.arrivals.outcome(visit);
        if let Some((at, _)) = self.closed {
            visit("closed_at_s", at.as_secs_f64());
        }
    }
}

/// The settings of connection `number`, which carries `size` bytes from `start` on.
fn connection(config: &FlowConfig, number: u32, size: Bytes, start: Time) -> FlowConfig {
    let stream = |random: &Random| Random::stream(random.clone().bits(), &format!("connection {number}"));
    FlowConfig {
        traffic: Traffic::Size(size),
        start,
        stop: None,
        random: stream(&config.random),
        controller_random: stream(&config.controller_random),
        ..config.clone()
    }
}

fn sum(one: FlowCounters, other: FlowCounters) -> FlowCounters {
    FlowCounters {
        goodput_bytes: one.goodput_bytes + other.goodput_bytes,
        retransmitted_packets: one.retransmitted_packets + other.retransmitted_packets,
    }
}

#[cfg(test)]
mod tests {
    use crate::network::Traces;
    use crate::outside::tests::scenario;

    #[test]
    fn short_flows_are_connections_of_their_own_that_come_and_go() {
        let traffic =
            "traffic = { kind = \"short-flows\", per_second = 20, size = \"3kB\" }\nstop = \"2500ms\"\n";
        let run = crate::run(&scenario("toy/fine", traffic), &Traces::new()).unwrap().run;
        let application = run.flows[0].application.as_ref().unwrap();
        let (started, completed) = (application["flows_started"], application["flows_completed"]);
        assert!((20.0..100.0).contains(&started), "{started}");
        assert_eq!(completed, started);
        // Three packets, ten milliseconds apart, over 20 ms.
        assert!((40.0..60.0).contains(&application["completion_ms_p50"]), "{application:?}");
        assert_eq!(run.retransmitted_packets, 0);
        assert!((run.goodput_mbps - completed * 24_000.0 / 3e6).abs() < 1e-9, "{}", run.goodput_mbps);

        // They give up after a second.
        let traffic = "traffic = { kind = \"short-flows\", per_second = 20, size = \"3kB\" }\n";
        let run = crate::run(&scenario("toy/closes", traffic), &Traces::new()).unwrap().run;
        let [reason] = &run.unreliable_because[..] else { panic!("{:?}", run.unreliable_because) };
        assert!(reason.starts_with("flow `a` (toy/closes): its connection ended at 1."), "{reason}");
        assert!(reason.contains(": connection ") && reason.ends_with(": sender: it gave up"), "{reason}");
    }
}
