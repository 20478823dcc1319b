//! First in, first out, with counters: what most disciplines keep their packets in.

use alloc::collections::VecDeque;

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::frugal;
use brakelight_core::packet::Packet;
use brakelight_core::queue::{Backlog, Dequeued, Dropped, Drops, Reason};
use brakelight_core::time::Time;
use brakelight_core::units::Limit;

/// A FIFO of packets with their arrival times.
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
    #[inline(always)]
    pub fn push(&mut self, now: Time, packet: P) {
        self.backlog.add(packet.size());
        frugal::push_back(&mut self.packets, (packet, now));
    }

    /// Lets `packet` in if it keeps within `limit`, else drops it. Says whether it is in.
    #[inline(always)]
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
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(P, Time)> {
        // Looked at where it lies: one that was looked at on its way is moved in pieces.
        self.backlog.remove(self.packets.front()?.0.size());
        let head = self.packets.pop_front();
        if self.packets.is_empty() {
            // Starts over at its first place: a queue that was long once would else go round all of its
            // memory for ever.
            self.packets.clear();
        }
        head
    }

    /// Takes the newest out again: whoever came last makes room.
    pub fn pop_back(&mut self) -> Option<(P, Time)> {
        let (packet, arrived) = self.packets.pop_back()?;
        self.backlog.remove(packet.size());
        Some((packet, arrived))
    }

    /// Takes the packet at `index` out of its place, the head having 0.
    pub fn take(&mut self, index: usize) -> Option<(P, Time)> {
        let (packet, arrived) = self.packets.remove(index)?;
        self.backlog.remove(packet.size());
        Some((packet, arrived))
    }

    /// Returns when the head arrived.
    pub fn head_arrived(&self) -> Option<Time> {
        self.packets.front().map(|(_, arrived)| *arrived)
    }

    /// Returns the size of the head, in bytes.
    pub fn head_size(&self) -> Option<u32> {
        self.packets.front().map(|(packet, _)| packet.size())
    }
}

impl<P> Fifo<P> {
    /// Returns the packets and bytes held.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Returns whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the packets held, the head first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator {
        self.packets.iter().map(|(packet, _)| packet)
    }

    /// Calls `visit` with every packet held, the head first.
    pub fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.iter().for_each(|(packet, _)| visit(packet));
    }
}

/// A FIFO for disciplines that decide when a packet arrives: it remembers which packets were marked on their
/// way in.
#[derive(Clone, Debug)]
pub struct MarkingFifo<P> {
    packets: Fifo<P>,
    /// How many packets ever entered and left.
    entered: u64,
    left: u64,
    /// The numbers of those inside that were marked, in order of entry. Marks are rare: a flag in every
    /// packet would cost more.
    marked: VecDeque<u64>,
}

impl<P> Default for MarkingFifo<P> {
    fn default() -> Self {
        MarkingFifo { packets: Fifo::default(), entered: 0, left: 0, marked: VecDeque::new() }
    }
}

impl<P: Packet> MarkingFifo<P> {
    /// Lets `packet` in behind the others.
    #[inline(always)]
    pub fn push(&mut self, now: Time, packet: P) {
        self.packets.push(now, packet);
        self.entered += 1;
    }

    /// Marks `packet` CE and lets it in behind the others.
    pub fn push_marked(&mut self, now: Time, mut packet: P) {
        packet.set_ecn(Ecn::Ce);
        self.marked.push_back(self.entered);
        self.push(now, packet);
    }

    /// Takes the head.
    #[inline]
    pub fn pop(&mut self) -> Option<Dequeued<P>> {
        let (packet, arrived) = self.packets.pop()?;
        let marked = self.marked.front() == Some(&self.left);
        if marked {
            self.marked.pop_front();
        }
        self.left += 1;
        Some(Dequeued { packet, arrived, mark: if marked { Mark::Ce } else { Mark::None } })
    }
}

impl<P: Packet> MarkingFifo<P> {
    /// Returns when the head arrived.
    pub fn head_arrived(&self) -> Option<Time> {
        self.packets.head_arrived()
    }
}

impl<P> MarkingFifo<P> {
    /// Returns the packets and bytes held.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    /// Calls `visit` with every packet held, the head first.
    pub fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}
