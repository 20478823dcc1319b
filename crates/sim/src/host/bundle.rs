//! Short connections that arrive as a Poisson process, each with a controller and a feedback of its own.
//!
//! The bundle is one endpoint. A connection exists from its arrival until its last byte is acknowledged and
//! none of its ACKs is on the way, so memory follows the number that are open. Their deadlines lie in a heap,
//! where a deadline that was moved to later stays at its old place until it comes up.
//! When connections arrive, and what becomes of the outcome, is [`ArrivalProcess`]'s.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use brakelight_apps::ArrivalProcess;
use brakelight_apps::traffic::ShortFlows;
use brakelight_core::controller::{Controller, ControllerFailure};
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_senders::controller::external::External;

use super::connection::{Connection, Shared};
use super::ring::Ring;
use super::{Counters, FlowConfig};
use crate::packet::SimPacket;

/// A connection that is open.
#[derive(Clone, Debug)]
struct Open {
    size: u64,
    arrived_at: Time,
    /// Whether all its bytes are at the receiver.
    complete: bool,
    /// Its place in the heap; `Time::MAX` without one.
    scheduled: Time,
    connection: Connection,
}

impl Open {
    fn is_finished(&self) -> bool {
        self.complete && self.connection.is_finished()
    }

    /// Tells the arrivals once all bytes are at the receiver.
    fn note_completion(&mut self, arrivals: &mut ArrivalProcess, now: Time) {
        if !self.complete && self.connection.receiver.in_order().0 >= self.size {
            self.complete = true;
            arrivals.complete(now.since(self.arrived_at));
        }
    }

    /// Returns its deadline, if that is to be entered into the heap: if it is before its place there.
    fn deadline_to_enter(&mut self) -> Option<Time> {
        let deadline = self.connection.deadline();
        let earlier = deadline < self.scheduled;
        if earlier {
            self.scheduled = deadline;
        }
        earlier.then_some(deadline)
    }
}

/// The open connection of that number.
#[inline]
fn find(open: &mut Ring<Option<Box<Open>>>, number: u32) -> Option<&mut Open> {
    open.get_mut(number)?.as_deref_mut()
}

/// Many connections, one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    arrivals: ArrivalProcess,
    /// By number; `None` where one is gone and one before it is not. The first is not `None`.
    open: Ring<Option<Box<Open>>>,
    deadlines: BinaryHeap<Reverse<(Time, u32)>>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Of connections that are gone.
    closed: Counters,
    /// The first failure of a controller of those that are gone.
    failure: Option<ControllerFailure>,
    rtt_sample: Option<Duration>,
}

impl Bundle {
    pub(super) fn new(law: ShortFlows) -> Self {
        Bundle {
            arrivals: ArrivalProcess::new(law),
            open: Ring::default(),
            deadlines: BinaryHeap::new(),
            ready: VecDeque::new(),
            closed: Counters::default(),
            failure: None,
            rtt_sample: None,
        }
    }

    pub(super) fn start(&mut self, shared: &mut Shared, now: Time) {
        self.arrivals.start(now, &mut shared.random);
    }

    /// No more connections arrive; those that are open go on.
    pub(super) fn stop(&mut self) {
        self.arrivals.stop();
    }

    /// Packets that open connections send from now on have at most `mss` bytes of payload.
    pub(super) fn set_mss(&mut self, mss: Bytes) {
        self.open.iter_mut().flatten().for_each(|open| open.connection.sender.set_mss(mss));
    }

    pub(super) fn is_over(&self) -> bool {
        self.arrivals.next_at() == Time::MAX && self.open.is_empty()
    }

    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// Returns why a controller decides nothing any more: of a connection that is gone, or the oldest open.
    pub(super) fn failure(&self) -> Option<&ControllerFailure> {
        let mut open = self.open.iter().flatten();
        let of_open = || open.find_map(|open| open.connection.sender.controller().failure());
        self.failure.as_ref().or_else(of_open)
    }

    pub(super) fn inflight(&self) -> Bytes {
        self.open.iter().flatten().map(|open| open.connection.sender.inflight()).sum()
    }

    /// Changes the controllers of all open connections, if they are driven from outside.
    pub(super) fn drive(
        &mut self,
        change: &impl Fn(&mut External) -> Result<(), ParameterError>,
    ) -> Result<(), ParameterError> {
        self.ready.extend(self.open.iter().flatten().map(|open| open.connection.number));
        self.open.iter_mut().flatten().try_for_each(|open| open.connection.sender.drive(change))
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.iter().flatten().count()
    }

    pub(super) fn counters(&self) -> Counters {
        self.open.iter().flatten().fold(self.closed, |sum, open| sum.plus(&open.connection.counters()))
    }

    pub(super) fn outcome(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.arrivals.outcome(visit);
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadlines.peek().map_or(Time::MAX, |Reverse((at, _))| *at).min(self.arrivals.next_at())
    }

    pub(super) fn accept(&mut self, shared: &mut Shared, now: Time, packet: &SimPacket) {
        let Some(open) = find(&mut self.open, packet.connection) else { return };
        open.connection.accept(shared, now, packet);
        if let Some(sample) = open.connection.sender.take_rtt_sample() {
            self.rtt_sample = Some(sample);
        }
        open.note_completion(&mut self.arrivals, now);
        self.ready.push_back(packet.connection);
    }

    pub(super) fn release(&mut self, packet: &SimPacket) {
        let Some(open) = find(&mut self.open, packet.connection) else { return };
        open.connection.release(packet);
        if open.is_finished() {
            self.close(packet.connection);
        }
    }

    pub(super) fn poll(&mut self, config: &FlowConfig, shared: &mut Shared, now: Time) -> Option<SimPacket> {
        while self.arrivals.next_at() <= now {
            self.arrive(config, shared, now);
        }
        while let Some(&Reverse((at, number))) = self.deadlines.peek()
            && at <= now
        {
            self.deadlines.pop();
            if let Some(open) = find(&mut self.open, number)
                && open.scheduled == at
            {
                open.scheduled = Time::MAX;
                self.ready.push_back(number);
            }
        }
        while let Some(&number) = self.ready.front() {
            if let Some(open) = find(&mut self.open, number) {
                if open.connection.deadline() <= now {
                    open.connection.on_deadline(shared, now);
                    open.note_completion(&mut self.arrivals, now);
                }
                let packet = open.connection.poll(shared, now);
                if packet.is_some() {
                    return packet;
                }
                if open.is_finished() {
                    self.close(number);
                } else if let Some(deadline) = open.deadline_to_enter() {
                    self.deadlines.push(Reverse((deadline, number)));
                }
            }
            self.ready.pop_front();
        }
        None
    }

    fn arrive(&mut self, config: &FlowConfig, shared: &mut Shared, now: Time) {
        let number = self.arrivals.started();
        let size = self.arrivals.arrive(&mut shared.random);
        let mut connection = Connection::open(config, shared, number, now);
        connection.sender.write(size);
        let open = Open { size: size.0, arrived_at: now, complete: false, scheduled: Time::MAX, connection };
        debug_assert_eq!(self.open.end(), number);
        self.open.push(Some(Box::new(open)));
        self.ready.push_back(number);
    }

    fn close(&mut self, number: u32) {
        if let Some(open) = self.open.get_mut(number).and_then(Option::take) {
            self.closed = self.closed.plus(&open.connection.counters());
            if self.failure.is_none() {
                self.failure = open.connection.sender.controller().failure().cloned();
            }
        }
        while let Some(None) = self.open.front() {
            self.open.pop_front();
        }
    }
}
