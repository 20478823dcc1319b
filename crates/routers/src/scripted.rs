//! What the tests of this crate share: a link that says what it is told to, and a queue with its drops at
//! hand.

use alloc::vec::Vec;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::queue::{Dequeued, Dropped, Drops, LinkView, Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_testkit::packet::Sample;

/// A link's answers.
pub(super) struct Script {
    pub(super) capacity: Rate,
    pub(super) unused: Bytes,
    pub(super) ahead: Option<Rate>,
    pub(super) overhead: u64,
}

impl Script {
    pub(super) fn of(capacity: Rate) -> Self {
        Script { capacity, unused: Bytes::ZERO, ahead: None, overhead: 0 }
    }
}

impl LinkView for Script {
    fn capacity(&mut self, _window: Duration) -> Rate {
        self.capacity
    }
    fn unused(&mut self) -> Bytes {
        self.unused
    }
    fn opportunity(&self) -> Bytes {
        Bytes(1500)
    }
    fn cost(&self, size: u32) -> Bytes {
        Bytes(u64::from(size) + self.overhead)
    }
    fn lookahead(&mut self, _ahead: Duration, _window: Duration) -> Option<Rate> {
        self.ahead
    }
}

/// A queue, its link, and what it dropped.
pub(super) struct Bench<Q> {
    pub(super) queue: Q,
    pub(super) link: Script,
    pub(super) drops: Drops<Sample>,
    next_id: u64,
}

impl<Q: Queue<Sample>> Bench<Q> {
    pub(super) fn new(queue: Q, capacity: Rate) -> Self {
        Bench { queue, link: Script::of(capacity), drops: Drops::new(), next_id: 0 }
    }

    /// Enqueues a packet of 1500 bytes and returns its id.
    pub(super) fn arrive(&mut self, now: Time, encoding: Encoding, ecn: Ecn) -> u64 {
        self.arrive_as(now, Sample { ecn, encoding, ..Sample::new(0, 1500) })
    }

    /// Enqueues `packet` under the next id, which it returns.
    pub(super) fn arrive_as(&mut self, now: Time, packet: Sample) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.queue.enqueue(now, Sample { id, ..packet }, &mut self.link, &mut self.drops);
        id
    }

    pub(super) fn leave(&mut self, now: Time) -> Option<Dequeued<Sample>> {
        self.queue.dequeue(now, &mut self.link, &mut self.drops)
    }

    /// The ids dropped since the last call.
    pub(super) fn dropped(&mut self) -> Vec<u64> {
        self.drops.drain(..).map(|Dropped { packet, .. }| packet.id).collect()
    }

    /// A value that the queue shows.
    pub(super) fn shown(&self, name: &str) -> f64 {
        let mut shown = None;
        self.queue.inspect(&mut |other, value| {
            if other == name {
                shown = Some(value);
            }
        });
        shown.unwrap_or_else(|| panic!("{name} is not shown"))
    }
}

pub(super) fn place(packets: u32) -> Place {
    Place { limit: Limit::Packets(packets), nominal: Rate::from_mbps(12), random: Random::stream(1, "queue") }
}

pub(super) fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}
