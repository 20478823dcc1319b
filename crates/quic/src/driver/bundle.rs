//! A flow of short connections that come and go: one [`Flow`] each, with stacks, keys and a controller of its
//! own.
//!
//! A connection exists from its arrival until its last byte is acknowledged and none of its packets is on the
//! way. It ends in silence, as one whose idle timeout runs out. When connections arrive, and what becomes of
//! the outcome, is [`ArrivalProcess`]'s.

use std::collections::VecDeque;

use brakelight_apps::ArrivalProcess;
use brakelight_apps::traffic::{ShortFlows, Traffic};
use brakelight_core::ecn::Ecn;
use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::connection_id::connection_of;
use super::flow::{Flow, FlowSettings, Packet, Totals};

/// A connection that is open.
#[derive(Debug)]
struct Open {
    number: u32,
    size: u64,
    arrived_at: Time,
    /// Whether all its bytes are at the receiver.
    complete: bool,
    flow: Flow,
}

/// Many short connections that form one flow of the simulator.
#[derive(Debug)]
pub struct Bundle {
    settings: FlowSettings,
    random: Random,
    arrivals: ArrivalProcess,
    start_at: Option<Time>,
    stop_at: Option<Time>,
    /// By number, ascending.
    open: VecDeque<Open>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Of connections that are gone.
    closed: Totals,
    rtt_sample: Option<Duration>,
    wake_at: Option<Time>,
}

impl Bundle {
    /// A flow that has not started, whose connections are as `settings` say but for what they carry.
    pub(super) fn new(settings: FlowSettings, law: ShortFlows) -> Self {
        Bundle {
            random: settings.random.clone(),
            arrivals: ArrivalProcess::new(law),
            start_at: Some(settings.start),
            stop_at: settings.stop,
            open: VecDeque::new(),
            ready: VecDeque::new(),
            closed: Totals::default(),
            rtt_sample: None,
            wake_at: Some(settings.start),
            settings,
        }
    }

    /// What its connections did so far.
    pub(super) fn totals(&self) -> Totals {
        self.open.iter().fold(self.closed, |sum, open| sum.plus(open.flow.totals()))
    }

    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    pub(super) fn inflight(&self) -> Bytes {
        self.open.iter().map(|open| open.flow.adapter().inflight()).sum()
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn outcome(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.arrivals.outcome(visit);
    }

    pub(super) fn accept(&mut self, now: Time, packet: &Packet, copy: bool) {
        self.arrived(now, packet.connection, |flow| flow.accept(now, packet, copy));
    }

    /// A datagram arrived at the end that `direction` leads to. Connections that are gone, and strangers, are
    /// not answered.
    pub(super) fn receive(&mut self, now: Time, direction: Direction, ecn: Ecn, payload: &[u8]) {
        if let Some(number) = connection_of(direction, payload) {
            self.arrived(now, number, |flow| flow.receive(now, direction, ecn, payload));
        }
    }

    /// Hands out the UDP payload of a packet that is to travel by itself. `None` if it is gone.
    pub(super) fn take_payload(&mut self, packet: &Packet) -> Option<bytes::Bytes> {
        let place = self.find(packet.connection)?;
        self.open[place].flow.take_payload(packet)
    }

    /// Something arrives at connection `number`, which `take` takes.
    fn arrived(&mut self, now: Time, number: u32, take: impl FnOnce(&mut Flow)) {
        let Some(place) = self.find(number) else { return };
        let open = &mut self.open[place];
        take(&mut open.flow);
        if let Some(sample) = open.flow.adapter().take_rtt_sample() {
            self.rtt_sample = Some(sample);
        }
        if !open.complete && open.flow.delivered() >= open.size {
            open.complete = true;
            self.arrivals.complete(now.since(open.arrived_at));
        }
        self.ready.push_back(number);
    }

    pub(super) fn release(&mut self, packet: &Packet) {
        let Some(place) = self.find(packet.connection) else { return };
        self.open[place].flow.release(packet);
        self.close_if_finished(place);
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.wake_at.is_some_and(|at| at <= now) {
            self.wake_at = None;
            self.on_deadline(now);
        }
        while let Some(&number) = self.ready.front() {
            if let Some(place) = self.find(number) {
                if let Some(packet) = self.open[place].flow.poll_transmit(now) {
                    return Some(Packet { connection: number, ..packet });
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

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.wake_at
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
        let stream = |random: &Random| Random::stream(random.clone().bits(), &format!("connection {number}"));
        let settings = FlowSettings {
            traffic: Traffic::Size(size),
            start: now,
            stop: None,
            random: stream(&self.settings.random),
            controller_random: stream(&self.settings.controller_random),
            ..self.settings.clone()
        };
        // Nothing that the first check has not seen can be wrong: the connection would never complete, which
        // the outcome shows.
        if let Ok(flow) = Flow::numbered(settings, number) {
            self.open.push_back(Open { number, size: size.0, arrived_at: now, complete: false, flow });
            self.ready.push_back(number);
        }
    }

    fn close_if_finished(&mut self, place: usize) {
        let open = &self.open[place];
        if open.complete && open.flow.is_quiet() {
            self.closed = self.closed.plus(open.flow.totals());
            self.open.remove(place);
        }
    }

    fn find(&self, number: u32) -> Option<usize> {
        self.open.binary_search_by_key(&number, |open| open.number).ok()
    }
}
