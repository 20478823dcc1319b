//! Drop-tail: first in, first out; a packet that does not fit is dropped.

use brakelight_core::ecn::Mark;
use brakelight_core::packet::Packet;
use brakelight_core::queue::{Backlog, Dequeued, Drops, LinkView, Place, Queue};
use brakelight_core::time::Time;
use brakelight_core::units::Limit;

use super::fifo::Fifo;

parameters! {
    /// Drop-tail's settings.
    pub struct Config {
        /// The buffer, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "abc20 7.2: 250 packets";
    }
}

/// A FIFO with a limit.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    limit: Limit,
    packets: Fifo<P>,
}

impl<P: Packet> DropTail<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        DropTail { limit: config.limit.unwrap_or(place.limit), packets: Fifo::default() }
    }
}

impl<P: Packet> Queue<P> for DropTail<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.packets.push_within(self.limit, now, packet, drops);
    }

    #[inline(always)]
    fn dequeue(
        &mut self,
        _now: Time,
        _link: &mut impl LinkView,
        _drops: &mut Drops<P>,
    ) -> Option<Dequeued<P>> {
        let (packet, arrived) = self.packets.pop()?;
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }

    #[inline(always)]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}
