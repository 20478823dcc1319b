//! A queue whose probability of dropping is set from outside: drop-tail, but for packets that it drops, or
//! marks if their flow speaks ECN, with the probability of the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brakelight::core::ecn::{Ecn, Mark};
use brakelight::core::packet::{BoxedPacket, Packet as _};
use brakelight::core::queue::fifo::Fifo;
use brakelight::core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight::core::random::Random;
use brakelight::core::registry::{DynQueue, QueueFactory, Registry};
use brakelight::core::time::Time;
use brakelight::core::units::Limit;
use pyo3::prelude::*;

use crate::error::{InputError, input};

/// The name of the queue in scenarios that are read with a dial.
const NAME: &str = "dial";

/// A probability that is set from outside.
#[pyclass(frozen, module = "brakelight._brakelight")]
#[derive(Clone, Debug, Default)]
pub struct Dial {
    /// The bits of the number.
    probability: Arc<AtomicU64>,
}

#[pymethods]
impl Dial {
    #[new]
    fn new() -> Self {
        Dial::default()
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
}

impl Dial {
    /// Adds the queue to a registry.
    pub fn add_to(&self, registry: &mut Registry) -> PyResult<()> {
        let summary = "Drops with a probability that is set from outside";
        registry.add_queue_factory(NAME, summary, Arc::new(self.clone())).map_err(input)
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
