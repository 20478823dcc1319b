//! Short connections that arrive as a Poisson process, each with a controller and a feedback of its own.
//!
//! The bundle is one endpoint. A connection exists from its arrival until its last byte is acknowledged and none of its
//! ACKs is on the way, so memory follows the number that are open. Their deadlines lie in a heap, where a deadline that
//! was moved to later stays at its old place until it comes up.
//!
//! Outcome: `flows_started`, `flows_completed`, and `completion_ms_mean` (AFCT), `_p50`, `_p95`, `_p99`, from the arrival
//! until the last byte is at the receiver.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_scenario::traffic::{ShortFlows, SizeLaw};

use super::connection::{Connection, Shared};
use super::{Counters, FlowConfig};
use crate::packet::SimPacket;
use crate::traffic::visit_distribution;
use brakelight_scenario::measure::Distribution;

/// Larger than any transfer worth waiting for: a cap on Pareto's tail.
const LARGEST: f64 = 1e12;

/// A connection that is open.
#[derive(Debug)]
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
#[derive(Debug)]
pub(super) struct Bundle {
    law: ShortFlows,
    arrive_at: Time,
    /// By number, ascending.
    open: VecDeque<Open>,
    deadlines: BinaryHeap<Reverse<(Time, u32)>>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    started: u32,
    completed: u64,
    times: Distribution,
    /// Of connections that are gone.
    closed: Counters,
    rtt_sample: Option<Duration>,
}

impl Bundle {
    pub(super) fn new(law: ShortFlows) -> Self {
        Bundle {
            law,
            arrive_at: Time::MAX,
            open: VecDeque::new(),
            deadlines: BinaryHeap::new(),
            ready: VecDeque::new(),
            started: 0,
            completed: 0,
            times: Distribution::default(),
            closed: Counters::default(),
            rtt_sample: None,
        }
    }

    pub(super) fn start(&mut self, shared: &mut Shared, now: Time) {
        self.schedule_arrival(shared, now);
    }

    /// No more connections arrive; those that are open go on.
    pub(super) fn stop(&mut self) {
        self.arrive_at = Time::MAX;
    }

    pub(super) fn is_over(&self) -> bool {
        self.arrive_at == Time::MAX && self.open.is_empty()
    }

    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    pub(super) fn inflight(&self) -> Bytes {
        self.open.iter().map(|open| open.connection.sender.inflight()).sum()
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn counters(&self) -> Counters {
        self.open.iter().fold(self.closed, |sum, open| sum.plus(&open.connection.counters()))
    }

    pub(super) fn outcome(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("flows_started", f64::from(self.started));
        visit("flows_completed", self.completed as f64);
        visit_distribution(
            &self.times,
            ["completion_ms_mean", "completion_ms_p50", "completion_ms_p95", "completion_ms_p99"],
            visit,
        );
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadlines.peek().map_or(Time::MAX, |Reverse((at, _))| *at).min(self.arrive_at)
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
            self.completed += 1;
            self.times.record(now.since(open.arrived_at));
        }
        self.ready.push_back(packet.connection);
    }

    pub(super) fn release(&mut self, packet: &SimPacket) {
        let Some(place) = self.find(packet.connection) else { return };
        self.open[place].connection.release(packet);
        self.close_if_finished(place);
    }

    pub(super) fn poll(&mut self, config: &FlowConfig, shared: &mut Shared, now: Time) -> Option<SimPacket> {
        while self.arrive_at <= now {
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

    fn schedule_arrival(&mut self, shared: &mut Shared, now: Time) {
        let gap = shared.random.exponential() / self.law.per_second();
        self.arrive_at = now.saturating_add(Duration::from_secs_f64(gap));
    }

    fn arrive(&mut self, config: &FlowConfig, shared: &mut Shared, now: Time) {
        let size = match self.law.size {
            SizeLaw::Fixed(size) => size.0,
            SizeLaw::Pareto { mean, shape } => {
                // Inverse of 1 - (least / x)^shape, with mean = least shape / (shape - 1).
                let least = mean.as_f64() * (shape - 1.0) / shape;
                let size = least * libm::pow(1.0 - shared.random.uniform(), -1.0 / shape);
                size.clamp(1.0, LARGEST) as u64
            }
        };
        let number = self.started;
        self.started += 1;
        let mut connection = Box::new(Connection::open(config, shared, number, now));
        connection.sender.write(Bytes(size));
        self.open.push_back(Open {
            size,
            arrived_at: now,
            complete: false,
            scheduled: Time::MAX,
            connection,
        });
        self.ready.push_back(number);
        let due = self.arrive_at;
        self.schedule_arrival(shared, due);
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
