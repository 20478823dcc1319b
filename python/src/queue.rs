//! Queues that are classes in Python. The packets stay here, in the order in which they came; the class says
//! which are dropped, marked and sent.

use std::collections::VecDeque;

use brakelight::core::ecn::{Ecn, Mark};
use brakelight::core::packet::{BoxedPacket, Packet as _};
use brakelight::core::parameters::{OptionValues, Parameter, ParameterError};
use brakelight::core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight::core::registry::{DynQueue, QueueFactory};
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::Limit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::error::InputError;
use crate::options::Options;
use crate::quantity::since_start;
use crate::registry::Failures;
use crate::travel::{given, shown_by_fields};

/// Builds queues of a class.
#[derive(Debug)]
pub struct Factory {
    /// The registered name.
    pub name: &'static str,
    /// The class.
    pub class: Py<PyType>,
    /// Its options.
    pub options: Options,
    /// Where exceptions go.
    pub failures: Failures,
}

impl QueueFactory for Factory {
    fn parameters(&self) -> &'static [Parameter] {
        self.options.parameters
    }

    fn settings(&self, options: &[(&str, &str)]) -> Result<OptionValues, ParameterError> {
        self.options.settings(options)
    }

    fn build(&self, place: &Place) -> Box<dyn DynQueue> {
        self.build_with(&self.options.settings(&[]).unwrap_or_default(), place)
    }

    fn build_with(&self, settings: &OptionValues, place: &Place) -> Box<dyn DynQueue> {
        let object = Python::attach(|py| {
            let (limit_packets, limit_bytes) = match place.limit {
                Limit::Packets(packets) => (Some(packets), None),
                Limit::Bytes(bytes) => (None, Some(bytes.0)),
            };
            let given = PlaceInfo {
                limit_packets,
                limit_bytes,
                nominal_rate: place.nominal.bps() as f64,
                seed: place.random.clone().bits(),
            };
            let keywords = self.options.keywords(py, settings)?;
            Ok(self.class.bind(py).call((given,), Some(&keywords))?.unbind())
        });
        let object = object.map_err(|failure: PyErr| self.failures.note(failure)).ok();
        Box::new(Scripted {
            name: self.name,
            object,
            failures: self.failures.clone(),
            limit: place.limit,
            held: VecDeque::new(),
            backlog: Backlog::default(),
        })
    }
}

shown_by_fields!(PlaceInfo, PacketView);

given! {
    /// The link that a queue is made for.
    PlaceInfo { limit_packets: Option<u32>, limit_bytes: Option<u64>, nominal_rate: f64, seed: u64 }
}

given! {
    /// A packet that arrives.
    PacketView { id: u64, flow: u32, size: u32, ecn_capable: bool, is_ack: bool }
}

/// The time over which the capacity is a mean.
const CAPACITY_WINDOW: Duration = Duration::from_millis(100);

/// A queue in Python.
#[derive(Debug)]
pub struct Scripted {
    name: &'static str,
    /// None if it could not be made or copied; then it is a drop-tail queue.
    object: Option<Py<PyAny>>,
    failures: Failures,
    limit: Limit,
    held: VecDeque<Held>,
    backlog: Backlog,
}

#[derive(Clone, Debug)]
struct Held {
    packet: BoxedPacket,
    arrived: Time,
    mark: Mark,
}

impl Clone for Scripted {
    fn clone(&self) -> Self {
        let object = self.failures.copy(self.object.as_ref());
        Scripted { object, failures: self.failures.clone(), held: self.held.clone(), ..*self }
    }
}

impl Scripted {
    /// Calls a method, and returns the packet that it names, and those that it dropped and marked meanwhile.
    fn ask<A>(&self, method: &str, arguments: impl FnOnce() -> A) -> (Option<u64>, Vec<u64>, Vec<u64>)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        if self.failures.any() {
            return Default::default();
        }
        let asked = Python::attach(|py| {
            let Some(object) = &self.object else { return Ok(Default::default()) };
            let object = object.bind(py);
            let named: Option<u64> = object.call_method1(method, arguments())?.extract()?;
            let (dropped, marked) = object.call_method0("_taken")?.extract()?;
            Ok((named, dropped, marked))
        });
        asked.unwrap_or_else(|failure: PyErr| {
            self.failures.note(failure);
            Default::default()
        })
    }

    fn place(&self, id: u64) -> Option<usize> {
        let place = self.held.iter().position(|held| held.packet.id().0 == id);
        if place.is_none() {
            let name = self.name;
            self.failures
                .note(InputError::new_err(format!("queue `{name}`: there is no packet {id} in the queue")));
        }
        place
    }

    fn take(&mut self, place: usize) -> Option<Held> {
        let held = self.held.remove(place)?;
        self.backlog.remove(held.packet.size());
        Some(held)
    }

    fn apply(&mut self, now: Time, dropped: &[u64], marked: &[u64], drops: &mut Drops<BoxedPacket>) {
        for id in marked {
            if let Some(held) = self.place(*id).and_then(|place| self.held.get_mut(place))
                && may_mark_ce(&held.packet)
            {
                held.packet.set_ecn(Ecn::Ce);
                held.mark = Mark::Ce;
            }
        }
        for id in dropped {
            if let Some(held) = self.place(*id).and_then(|place| self.take(place)) {
                drops.push(Dropped { at: now, packet: held.packet, reason: Reason::Early });
            }
        }
    }
}

impl Queue<BoxedPacket> for Scripted {
    fn enqueue(
        &mut self,
        now: Time,
        packet: BoxedPacket,
        link: &mut impl LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) {
        if !self.backlog.admits(self.limit, packet.size()) {
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
            return;
        }
        let view = PacketView {
            id: packet.id().0,
            flow: packet.flow().0,
            size: packet.size(),
            ecn_capable: may_mark_ce(&packet),
            is_ack: packet.is_ack(),
        };
        self.backlog.add(packet.size());
        self.held.push_back(Held { packet, arrived: now, mark: Mark::None });
        let capacity = link.capacity(CAPACITY_WINDOW).bps() as f64;
        let (_, dropped, marked) = self.ask("enqueue", || (since_start(now), view, capacity));
        self.apply(now, &dropped, &marked, drops);
    }

    fn dequeue(
        &mut self,
        now: Time,
        link: &mut impl LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) -> Option<Dequeued<BoxedPacket>> {
        if self.held.is_empty() {
            return None;
        }
        let capacity = link.capacity(CAPACITY_WINDOW).bps() as f64;
        let (named, dropped, marked) = self.ask("dequeue", || (since_start(now), capacity));
        self.apply(now, &dropped, &marked, drops);
        // Without a word from the class the head leaves.
        let place = named.and_then(|id| self.place(id)).unwrap_or(0);
        let Held { packet, arrived, mark } = self.take(place)?;
        Some(Dequeued { packet, arrived, mark })
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn waiting_since(&self) -> Option<Time> {
        self.held.front().map(|held| held.arrived)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&BoxedPacket)) {
        self.held.iter().for_each(|held| visit(&held.packet));
    }
}
