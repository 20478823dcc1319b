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
use brakelight_core::controller::external::External;
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::connection::{Connection, Shared};
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
    connection: Box<Connection>,
}

/// Many connections, one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    arrivals: ArrivalProcess,
    /// By number, ascending.
    open: VecDeque<Open>,
    deadlines: BinaryHeap<Reverse<(Time, u32)>>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Of connections that are gone.
    closed: Counters,
    rtt_sample: Option<Duration>,
}

impl Bundle {
    pub(super) fn new(law: ShortFlows) -> Self {
        Bundle {
            arrivals: ArrivalProcess::new(law),
            open: VecDeque::new(),
            deadlines: BinaryHeap::new(),
            ready: VecDeque::new(),
            closed: Counters::default(),
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
        self.open.iter_mut().for_each(|open| open.connection.sender.set_mss(mss));
    }

    pub(super) fn is_over(&self) -> bool {
        self.arrivals.next_at() == Time::MAX && self.open.is_empty()
    }

    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    pub(super) fn inflight(&self) -> Bytes {
        self.open.iter().map(|open| open.connection.sender.inflight()).sum()
    }

    /// Changes the controllers of all open connections, if they are driven from outside.
    pub(super) fn drive(
        &mut self,
        change: &impl Fn(&mut External) -> Result<(), ParameterError>,
    ) -> Result<(), ParameterError> {
        self.ready.extend(self.open.iter().map(|open| open.connection.number));
        self.open.iter_mut().try_for_each(|open| open.connection.sender.drive(change))
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn counters(&self) -> Counters {
        self.open.iter().fold(self.closed, |sum, open| sum.plus(&open.connection.counters()))
    }

    pub(super) fn outcome(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.arrivals.outcome(visit);
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadlines.peek().map_or(Time::MAX, |Reverse((at, _))| *at).min(self.arrivals.next_at())
    }

    pub(super) fn accept(&mut self, shared: &mut Shared, now: Time, packet: &SimPacket) {
        let Some(place) = self.find(packet.connection) else { return };
        let open = &mut self.open[place];
        open.connection.accept(shared, now, packet);
        if let Some(sample) = open.connection.sender.take_rtt_sample() {
            self.rtt_sample = Some(sample);
        }
        if !open.complete && open.connection.receiver.in_order().0 >= open.size {
            open.complete = true;
            self.arrivals.complete(now.since(open.arrived_at));
        }
        self.ready.push_back(packet.connection);
    }

    pub(super) fn release(&mut self, packet: &SimPacket) {
        let Some(place) = self.find(packet.connection) else { return };
        self.open[place].connection.release(packet);
        self.close_if_finished(place);
    }

    pub(super) fn poll(&mut self, config: &FlowConfig, shared: &mut Shared, now: Time) -> Option<SimPacket> {
        while self.arrivals.next_at() <= now {
            self.arrive(config, shared, now);
        }
        while let Some(&Reverse((at, number))) = self.deadlines.peek()
            && at <= now
        {
            self.deadlines.pop();
            if let Some(place) = self.find(number)
                && self.open[place].scheduled == at
            {
                self.open[place].scheduled = Time::MAX;
                self.ready.push_back(number);
            }
        }
        while let Some(&number) = self.ready.front() {
            if let Some(place) = self.find(number) {
                let connection = &mut self.open[place].connection;
                if connection.deadline() <= now {
                    connection.on_deadline(shared, now);
                }
                let packet = connection.poll(shared, now);
                if packet.is_some() {
                    return packet;
                }
                self.settle(place, number);
            }
            self.ready.pop_front();
        }
        None
    }

    fn arrive(&mut self, config: &FlowConfig, shared: &mut Shared, now: Time) {
        let number = self.arrivals.started();
        let size = self.arrivals.arrive(&mut shared.random);
        let mut connection = Box::new(Connection::open(config, shared, number, now));
        connection.sender.write(size);
        self.open.push_back(Open {
            size: size.0,
            arrived_at: now,
            complete: false,
            scheduled: Time::MAX,
            connection,
        });
        self.ready.push_back(number);
    }

    /// Notes when the connection must be woken, or closes it.
    fn settle(&mut self, place: usize, number: u32) {
        if self.close_if_finished(place) {
            return;
        }
        let open = &mut self.open[place];
        let deadline = open.connection.deadline();
        if deadline < open.scheduled {
            open.scheduled = deadline;
            self.deadlines.push(Reverse((deadline, number)));
        }
    }

    fn close_if_finished(&mut self, place: usize) -> bool {
        let open = &self.open[place];
        let finished = open.complete && open.connection.is_finished();
        if finished {
            self.closed = self.closed.plus(&open.connection.counters());
            self.open.remove(place);
        }
        finished
    }

    fn find(&self, number: u32) -> Option<usize> {
        let place = self.open.partition_point(|open| open.connection.number < number);
        (self.open.get(place)?.connection.number == number).then_some(place)
    }
}
