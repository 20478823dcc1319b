//! First in, first out, with counters: what most disciplines keep their packets in.

use alloc::collections::VecDeque;

use super::{Backlog, Dropped, Drops, Reason};
use crate::packet::Packet;
use crate::time::Time;
use crate::units::Limit;

/// Packets with their arrival times.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    packets: VecDeque<(P, Time)>,
    backlog: Backlog,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Fifo { packets: VecDeque::new(), backlog: Backlog::default() }
    }
}

impl<P: Packet> Fifo<P> {
    /// Lets `packet` in behind the others.
    #[inline]
    pub fn push(&mut self, now: Time, packet: P) {
        self.backlog.add(packet.size());
        self.packets.push_back((packet, now));
    }

    /// Lets `packet` in if it keeps within `limit`, else drops it. Says whether it is in.
    #[inline]
    pub fn push_within(&mut self, limit: Limit, now: Time, packet: P, drops: &mut Drops<P>) -> bool {
        let admitted = self.backlog.admits(limit, packet.size());
        if admitted {
            self.push(now, packet);
        } else {
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
        }
        admitted
    }

    /// Takes the head, with the time it arrived.
    #[inline]
    pub fn pop(&mut self) -> Option<(P, Time)> {
        let (packet, arrived) = self.packets.pop_front()?;
        self.backlog.remove(packet.size());
        Some((packet, arrived))
    }

    /// When the head arrived.
    pub fn head_arrived(&self) -> Option<Time> {
        self.packets.front().map(|(_, arrived)| *arrived)
    }

    /// The size of the head, in bytes.
    pub fn head_size(&self) -> Option<u32> {
        self.packets.front().map(|(packet, _)| packet.size())
    }
}

impl<P> Fifo<P> {
    /// Packets and bytes held.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Calls `visit` with every packet held, the head first.
    pub fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.iter().for_each(|(packet, _)| visit(packet));
    }
}
