//! Short connections that arrive as a Poisson process, each with a controller and a feedback of its own.
//!
//! The bundle is one endpoint. A connection exists from its arrival until its last byte is acknowledged and
//! none of its ACKs is on the way, so memory follows the number that are open. Their deadlines lie in a heap,
//! where a deadline that was moved to later stays at its old place until it comes up. When a
//! connection is woken is part of the outcome: some controllers decide by the time at which they are asked.
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
    connection: Connection,
}

impl Open {
    fn is_finished(&self) -> bool {
        self.complete && self.connection.is_finished()
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

/// Values by number, of which the next is always one more than the last.
///
/// A value that is gone takes eight bytes until all before it are gone too.
#[derive(Clone, Debug)]
struct Numbered<T> {
    /// The number of the first of `places`.
    first: u32,
    places: VecDeque<Option<Box<T>>>,
    count: usize,
}

impl<T> Numbered<T> {
    fn new() -> Self {
        Numbered { first: 0, places: VecDeque::new(), count: 0 }
    }

    /// Adds the value of the next number, which is `number`.
    fn push(&mut self, number: u32, value: T) {
        debug_assert_eq!(number as usize, self.first as usize + self.places.len());
        self.places.push_back(Some(Box::new(value)));
        self.count += 1;
    }

    fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number.checked_sub(self.first)? as usize)?.as_deref_mut()
    }

    fn remove(&mut self, number: u32) -> Option<Box<T>> {
        let removed = self.places.get_mut(number.checked_sub(self.first)? as usize)?.take()?;
        self.count -= 1;
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
        Some(removed)
    }

    /// All values, by number.
    fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten().map(|value| &**value)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten().map(|value| &mut **value)
    }
}

/// Many connections, one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    arrivals: ArrivalProcess,
    open: Numbered<Open>,
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
            open: Numbered::new(),
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
        self.arrivals.next_at() == Time::MAX && self.open.len() == 0
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
        let Some(open) = self.open.get_mut(packet.connection) else { return };
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
        let Some(open) = self.open.get_mut(packet.connection) else { return };
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
            if let Some(open) = self.open.get_mut(number)
                && open.scheduled == at
            {
                open.scheduled = Time::MAX;
                self.ready.push_back(number);
            }
        }
        while let Some(&number) = self.ready.front() {
            if let Some(open) = self.open.get_mut(number) {
                if open.connection.deadline() <= now {
                    open.connection.on_deadline(shared, now);
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
        self.open.push(number, open);
        self.ready.push_back(number);
    }

    fn close(&mut self, number: u32) {
        if let Some(open) = self.open.remove(number) {
            self.closed = self.closed.plus(&open.connection.counters());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbered_values_are_found_until_they_are_removed(
            steps in prop::collection::vec(prop::option::of(0_u32..40), 0..80),
        ) {
            let (mut numbered, mut expected) = (Numbered::new(), BTreeMap::new());
            let mut next = 0;
            for step in steps {
                match step {
                    None => {
                        numbered.push(next, 7 * next);
                        expected.insert(next, 7 * next);
                        next += 1;
                    }
                    Some(number) => {
                        prop_assert_eq!(numbered.remove(number).map(|value| *value), expected.remove(&number));
                    }
                }
                prop_assert_eq!(numbered.len(), expected.len());
                prop_assert!(numbered.iter().eq(expected.values()));
                for number in 0..40 {
                    prop_assert_eq!(numbered.get_mut(number).map(|value| *value), expected.get(&number).copied());
                }
                let span = expected.first_key_value().map_or(0, |(first, _)| next - first);
                prop_assert_eq!(numbered.places.len(), span as usize);
            }
        }
    }
}
