//! A user's RLC: what has left the queue discipline and is not sent yet, in a buffer of its own; what is sent
//! and not yet handed on, in order (ts38322).

use alloc::collections::VecDeque;

use brakelight_core::ecn::Mark;
use brakelight_core::packet::Packet;
use brakelight_core::queue::{Backlog, Dequeued};
use brakelight_core::time::Time;
use brakelight_core::units::Limit;

/// A packet that left its queue.
#[derive(Clone, Debug)]
pub struct Staged<P> {
    /// The packet.
    pub packet: P,
    /// When its queue got it.
    pub arrived: Time,
    /// The mark its queue decided on.
    pub mark: Mark,
    /// Bytes of it not sent yet.
    unsent: u32,
    /// The number of its first byte, once that is sent.
    start: u64,
    /// The number of the byte after its last, once all are sent.
    end: u64,
}

/// The RLC of one user.
#[derive(Clone, Debug)]
pub struct Rlc<P> {
    /// Not sent, the first of them perhaps in part.
    waiting: VecDeque<Staged<P>>,
    /// What waits: packets, and bytes not sent.
    held: Backlog,
    /// Sent, and not handed on.
    sent: VecDeque<Staged<P>>,
    /// Bytes sent so far.
    bytes: u64,
}

/// Empty.
impl<P> Default for Rlc<P> {
    fn default() -> Self {
        Rlc { waiting: VecDeque::new(), held: Backlog::default(), sent: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Packet> Rlc<P> {
    /// Returns whether it holds less than `depth`: then it takes one more packet, however large.
    pub fn has_room(&self, depth: Limit) -> bool {
        match depth {
            Limit::Packets(most) => self.held.packets < most,
            Limit::Bytes(most) => self.held.bytes < most,
        }
    }

    /// Takes a packet that left its queue.
    pub fn push(&mut self, Dequeued { packet, arrived, mark }: Dequeued<P>) {
        let unsent = packet.size();
        self.held.add(unsent);
        self.waiting.push_back(Staged { packet, arrived, mark, unsent, start: 0, end: 0 });
    }

    /// Returns what waits: packets, and bytes not sent.
    pub fn waiting(&self) -> Backlog {
        self.held
    }

    /// Returns whether nothing waits and nothing is to be handed on.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// Returns the number of the next byte.
    pub fn next_byte(&self) -> u64 {
        self.bytes
    }

    /// Sends at most `room` bytes of the first packet. Returns how many.
    pub fn send(&mut self, room: u64) -> u64 {
        let Some(first) = self.waiting.front_mut() else { return 0 };
        if first.unsent == first.packet.size() {
            first.start = self.bytes;
        }
        let part = room.min(u64::from(first.unsent));
        first.unsent -= part as u32;
        self.bytes += part;
        self.held.bytes.0 -= part;
        if first.unsent == 0 {
            first.end = self.bytes;
            self.held.packets -= 1;
            self.sent.extend(self.waiting.pop_front());
        }
        part
    }

    /// Returns the next packet whose bytes are all below `missing`, which is then handed on.
    pub fn hand_on(&mut self, missing: u64) -> Option<Staged<P>> {
        if self.sent.front()?.end > missing {
            return None;
        }
        self.sent.pop_front()
    }

    /// The bytes from `start` to `end` will not be sent again: gives up the packets that have any of them,
    /// with the rest of one that is partly sent.
    pub fn give_up(&mut self, start: u64, end: u64, lost: &mut impl FnMut(P)) {
        let partly = self.waiting.front().is_some_and(|first| {
            first.unsent < first.packet.size() && first.start < end && start < self.bytes
        });
        for _ in 0..self.sent.len() {
            let staged = self.sent.pop_front().expect("counted");
            match staged.start < end && start < staged.end {
                true => lost(staged.packet),
                false => self.sent.push_back(staged),
            }
        }
        if partly {
            let first = self.waiting.pop_front().expect("there is a first");
            self.held.packets -= 1;
            self.held.bytes.0 -= u64::from(first.unsent);
            lost(first.packet);
        }
    }

    /// Whatever was not handed on is sent anew, in order: the cell from which it was sent is left.
    pub fn start_over(&mut self) {
        if let Some(first) = self.waiting.front_mut() {
            self.held.bytes.0 += u64::from(first.packet.size() - first.unsent);
            first.unsent = first.packet.size();
        }
        while let Some(mut staged) = self.sent.pop_back() {
            staged.unsent = staged.packet.size();
            self.held.add(staged.unsent);
            self.waiting.push_front(staged);
        }
    }

    /// Loses everything.
    pub fn lose(&mut self, lost: &mut impl FnMut(P)) {
        self.sent.drain(..).chain(self.waiting.drain(..)).for_each(|staged| lost(staged.packet));
        self.held = Backlog::default();
    }

    /// Calls `visit` with every packet inside.
    pub fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.waiting.iter().chain(&self.sent).for_each(|staged| visit(&staged.packet));
    }
}
