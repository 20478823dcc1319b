//! Drop-tail: first in, first out; a packet that does not fit is dropped.

use alloc::collections::VecDeque;

use super::{Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason};
use crate::ecn::Mark;
use crate::packet::Packet;
use crate::time::Time;
use crate::units::Limit;

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
    packets: VecDeque<(P, Time)>,
    backlog: Backlog,
}

impl<P> DropTail<P> {
    /// An empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        DropTail {
            limit: config.limit.unwrap_or(place.limit),
            packets: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }
}

impl<P: Packet> Queue<P> for DropTail<P> {
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        if !self.backlog.admits(self.limit, packet.size()) {
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
            return;
        }
        self.backlog.add(packet.size());
        self.packets.push_back((packet, now));
    }

    fn dequeue(
        &mut self,
        _now: Time,
        _link: &mut impl LinkView,
        _drops: &mut Drops<P>,
    ) -> Option<Dequeued<P>> {
        let (packet, arrived) = self.packets.pop_front()?;
        self.backlog.remove(packet.size());
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.iter().for_each(|(packet, _)| visit(packet));
    }
}
