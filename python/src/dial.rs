//! Queues that an agent sets. `dial` is drop-tail, but for packets that it drops, or marks if their flow
//! speaks ECN, with the probability of the moment; `dial-abc` is ABC's router with the target delay of the
//! moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brakelight::core::ecn::{Ecn, Encoding, Mark};
use brakelight::core::packet::{BoxedPacket, Packet as _};
use brakelight::core::queue::abc;
use brakelight::core::queue::fifo::Fifo;
use brakelight::core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight::core::random::Random;
use brakelight::core::registry::{DynQueue, QueueFactory, Registry};
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::Limit;
use pyo3::prelude::*;

use crate::error::{InputError, input};

/// The names of the queues in scenarios that are read with a dial.
const NAMES: [&str; 2] = ["dial", "dial-abc"];

/// What is set from outside: a probability, and a delay.
#[pyclass(frozen, module = "brakelight._brakelight")]
#[derive(Clone, Debug, Default)]
pub struct Dial {
    /// The bits of the number.
    probability: Arc<AtomicU64>,
    /// ABC's target in ns.
    target: Arc<AtomicU64>,
}

#[pymethods]
impl Dial {
    #[new]
    fn new() -> Self {
        let dial = Dial::default();
        let target = abc::Config::default().target;
        dial.target.store(target.as_nanos(), Ordering::Relaxed);
        dial
    }

    /// Sets the probability, from now on.
    fn set(&self, probability: f64) -> PyResult<()> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(InputError::new_err(format!(
                "probability = `{probability}` is out of range: valid is 0 to 1"
            )));
        }
        self.probability.store(probability.to_bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Sets the target delay of ABC's router, in seconds, from the next packet on.
    fn set_target(&self, seconds: f64) -> PyResult<()> {
        if !(0.0..=100.0).contains(&seconds) {
            return Err(InputError::new_err(format!(
                "target = `{seconds}` is out of range: valid is 0 to 100 s"
            )));
        }
        self.target.store(Duration::from_secs_f64(seconds).as_nanos(), Ordering::Relaxed);
        Ok(())
    }
}

impl Dial {
    /// Adds the queues to a registry.
    pub fn add_to(&self, registry: &mut Registry) -> PyResult<()> {
        let summary = "Drops with a probability that is set from outside";
        registry.add_queue_factory(NAMES[0], summary, Arc::new(self.clone())).map_err(input)?;
        let summary = "ABC's router with a target that is set from outside";
        registry.add_queue_factory(NAMES[1], summary, Arc::new(AbcDial(self.clone()))).map_err(input)
    }
}

impl QueueFactory for Dial {
    fn build(&self, place: &Place) -> Box<dyn DynQueue> {
        Box::new(DialQueue {
            dial: self.clone(),
            limit: place.limit,
            random: place.random.clone(),
            held: Fifo::default(),
        })
    }
}

/// The queue.
#[derive(Clone, Debug)]
struct DialQueue {
    dial: Dial,
    limit: Limit,
    random: Random,
    held: Fifo<BoxedPacket>,
}

impl Queue<BoxedPacket> for DialQueue {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: BoxedPacket,
        _: &mut impl LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) {
        let probability = f64::from_bits(self.dial.probability.load(Ordering::Relaxed));
        if probability > 0.0 && self.random.chance(probability) {
            if !may_mark_ce(&packet) {
                drops.push(Dropped { at: now, packet, reason: Reason::Early });
                return;
            }
            packet.set_ecn(Ecn::Ce);
        }
        self.held.push_within(self.limit, now, packet, drops);
    }

    fn dequeue(
        &mut self,
        _: Time,
        _: &mut impl LinkView,
        _: &mut Drops<BoxedPacket>,
    ) -> Option<Dequeued<BoxedPacket>> {
        let (packet, arrived) = self.held.pop()?;
        let mark = if packet.ecn() == Ecn::Ce { Mark::Ce } else { Mark::None };
        Some(Dequeued { packet, arrived, mark })
    }

    fn backlog(&self) -> Backlog {
        self.held.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.held.head_arrived()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&BoxedPacket)) {
        self.held.for_each(visit);
    }
}

/// Builds ABC's routers.
#[derive(Clone, Debug)]
struct AbcDial(Dial);

impl QueueFactory for AbcDial {
    fn own_encoding(&self) -> Option<Encoding> {
        Some(Encoding::Abc)
    }

    fn build(&self, place: &Place) -> Box<dyn DynQueue> {
        Box::new(AbcQueue { dial: self.0.clone(), abc: abc::Abc::new(&abc::Config::default(), place) })
    }
}

/// ABC's router, told its target anew for every packet.
#[derive(Clone, Debug)]
struct AbcQueue {
    dial: Dial,
    abc: abc::Abc<BoxedPacket>,
}

impl Queue<BoxedPacket> for AbcQueue {
    fn enqueue(
        &mut self,
        now: Time,
        packet: BoxedPacket,
        link: &mut impl LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) {
        self.abc.enqueue(now, packet, link, drops);
    }

    fn dequeue(
        &mut self,
        now: Time,
        link: &mut impl LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) -> Option<Dequeued<BoxedPacket>> {
        self.abc.set_target(Duration::from_nanos(self.dial.target.load(Ordering::Relaxed)));
        self.abc.dequeue(now, link, drops)
    }

    fn backlog(&self) -> Backlog {
        self.abc.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.abc.waiting_since()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.abc.inspect(visit);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&BoxedPacket)) {
        self.abc.for_each(visit);
    }
}
