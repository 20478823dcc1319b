//! What the base stations of LTE and of NR do alike: users, each with a queue, a channel and an estimator;
//! who arrives, what happened, and when something is due.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use brakelight_core::packet::Duplicate;
use brakelight_core::path::{Output, Site};
use brakelight_core::queue::{Drops, Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_routers::{AnyQueue, QueueConfig};

use super::capacity::Capacity;
use super::cell::Cell;
use super::channel::Channel;
use super::estimator::{Estimator, StationView};
use super::scheduler::{Request, Scheduler};

/// Time constants after which nothing is left of what was before.
const FORGOTTEN: u64 = 20;

/// One user, with what its station keeps between its queue and the air.
#[derive(Clone, Debug)]
pub(crate) struct User<P, A> {
    pub(crate) queue: AnyQueue<P>,
    pub(crate) channel: Channel,
    pub(crate) estimator: Estimator,
    pub(crate) air: A,
}

/// What a station keeps for a user between its queue and the air.
pub(crate) trait Air<P> {
    /// Whether nothing is in it.
    fn is_empty(&self) -> bool;
    /// Calls `visit` with every packet in it.
    fn for_each(&self, visit: &mut dyn FnMut(&P));
}

/// A base station but for what it does in a slot.
#[derive(Clone, Debug)]
pub(crate) struct Station<P, A> {
    pub(crate) users: Vec<User<P, A>>,
    pub(crate) scheduler: Scheduler,
    pub(crate) capacity: Capacity,
    slot: Duration,
    /// How many slots are remembered.
    horizon: u64,
    /// The first slot not yet begun.
    pub(crate) next: u64,
    /// Whether nothing is inside.
    pub(crate) idle: bool,
    pub(crate) requests: Vec<Request>,
    pub(crate) random: Random,
    pub(crate) drops: Drops<P>,
    pub(crate) happened: VecDeque<Output<P>>,
}

impl<P: Duplicate, A: Air<P> + Default> Station<P, A> {
    /// Returns an idle station whose queues hold at most `limit` each.
    pub(crate) fn new(cell: &Cell, queue: &QueueConfig, limit: Limit, site: Site) -> Self {
        let mut random = site.random;
        let channels: Vec<Channel> = (0..cell.users)
            .map(|index| Channel::new(cell, index, &mut Random::stream(random.bits(), "channel")))
            .collect();
        let capacity = Capacity::new(cell, &channels);
        let nominal = capacity.nominal().mul_f64(1.0 / f64::from(cell.users));
        let most_waiting = match limit {
            Limit::Packets(packets) => u64::from(packets) * 12_000,
            Limit::Bytes(bytes) => bytes.bits(),
        };
        let users = channels
            .into_iter()
            .enumerate()
            .map(|(index, channel)| {
                let random = Random::stream(random.bits(), "queue");
                User {
                    queue: queue.build(&Place { limit, nominal, random }),
                    channel,
                    estimator: Estimator::new(cell, index, nominal, most_waiting),
                    air: A::default(),
                }
            })
            .collect();
        let count = cell.users as usize;
        Station {
            users,
            scheduler: Scheduler::new(cell.scheduler, cell.time_constant, cell.slot, count),
            capacity,
            slot: cell.slot,
            horizon: FORGOTTEN * (cell.time_constant.max(cell.window).as_nanos() / cell.slot.as_nanos()),
            next: 0,
            idle: true,
            requests: Vec::with_capacity(count),
            random,
            drops: Drops::new(),
            happened: VecDeque::new(),
        }
    }

    /// Returns what all users together would be given in `from <= t < to` if all were backlogged, on average
    /// over blocks not received.
    pub(crate) fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.capacity.between(from, to)
    }

    /// Calls `visit` with every user's queue.
    pub(crate) fn for_each_queue(&self, visit: &mut dyn FnMut(&AnyQueue<P>)) {
        self.users.iter().for_each(|user| visit(&user.queue));
    }

    /// Returns when the next slot begins.
    pub(crate) fn due(&self) -> Time {
        if self.idle { Time::MAX } else { Time::ZERO + self.slot * self.next }
    }

    /// Notes whether nothing is inside.
    pub(crate) fn settle(&mut self) {
        self.idle = self.users.iter().all(|user| user.queue.backlog().is_empty() && user.air.is_empty());
    }

    /// Returns the slots with nothing to send before the first that begins at `now` or later: averages and
    /// estimates go on in them. A packet that arrives now goes with that slot.
    pub(crate) fn rest(&mut self, now: Time) -> core::ops::Range<u64> {
        let next = now.since(Time::ZERO).as_nanos().div_ceil(self.slot.as_nanos());
        let rested = self.next.max(next.saturating_sub(self.horizon))..next;
        self.next = self.next.max(next);
        rested
    }

    /// Puts a packet into the queue of its user, which it returns.
    pub(crate) fn enqueue(&mut self, now: Time, packet: P) -> usize {
        let index = packet.flow().0 as usize % self.users.len();
        let bits = 8 * u64::from(packet.size());
        for user in &mut self.users {
            user.estimator.on_arrival(index, bits);
        }
        let user = &mut self.users[index];
        let mut view = StationView(&user.estimator);
        user.queue.enqueue(now, packet, &mut view, &mut self.drops);
        index
    }

    /// What queues gave up has happened.
    pub(crate) fn report_drops(&mut self) {
        self.happened.extend(self.drops.drain(..).map(Output::Dropped));
    }

    /// Returns the oldest that happened by `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Output<P>> {
        if self.happened.front()?.at() > now {
            return None;
        }
        self.happened.pop_front()
    }

    /// Returns when something is due.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        match self.happened.front() {
            Some(output) => Some(output.at()),
            None if self.idle => None,
            None => Some(self.due()),
        }
    }

    /// Calls `visit` with every packet inside.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        for user in &self.users {
            user.queue.for_each(visit);
            user.air.for_each(visit);
        }
        self.happened.iter().for_each(|output| visit(output.packet()));
    }
}
