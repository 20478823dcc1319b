//! A base station of 5G New Radio, one direction of it: slots and their pattern, blocks sent again, requests
//! and grants, a buffer below the queue, handover.
//!
//! ```text
//! each slot:       blocks that failed are sent again, before anything new              ts38321 5.3.2, 5.4.2
//!                  the scheduler shares out the rest of the M resource blocks
//!                  each user's share is filled from its RLC buffer, and that from its queue
//! when it begins:  blocks whose decoding has ended are received; packets whose bytes are all there are
//!                  handed on, in order
//! uplink:          the scheduler shares out what it knows of: requests, reports of buffers  ts38321 5.4.4
//! handover:        nothing is carried for `interruption`; what was sent and not handed on is sent anew in
//!                  the new cell, or lost with the RLC buffer; the channel is another one   ts38300 9.2.3
//!
//! bits of a block  = efficiency(index) x 12 x symbols x (1 - OH) x layers          ts38306 4.1.2
//! index            = the largest whose efficiency is not above what the ratio allows
//!                                                                   ts38214 table 5.2.2.1-3: up to 256-QAM
//! ```
//!
//! The channel, the schedulers and the estimator of a user's rate are those of
//! [`cellular`](super::cellular). Slots are in [`frame`], blocks in [`harq`], requests and grants in
//! [`uplink`], the buffer in [`rlc`].
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | - | `direction` | choice | down | - |
//! | - | `scs` | kHz | 30 | ts38211 table 4.2-1; mid-band |
//! | M | `blocks` | resource blocks | 273 | ts38101 table 5.3.2-1: 100 MHz at 30 kHz |
//! | - | `pattern`, `special` | slots, symbols | DDDSU, 10/2/2 | ts38213 11.1; a choice |
//! | - | `layers` | count | 2 | a choice |
//! | OH | - | share | 0.14 down, 0.08 up | ts38306 4.1.2; 0.18 and 0.10 at 120 kHz |
//! | - | `bler`, `attempts`, `combining` | - | 0.1, 4, 0.1 | ts38214 5.2.2.1; choices (D1) |
//! | k1, k2 | `k1`, `k2` | slots | 2, 2 | ts38213 9.2.3, ts38214 6.1.2.1; choices |
//! | - | `turnaround`, `decode` | slots | 3, 1 | choices: no standard gives them |
//! | - | `rlc`, `rlc_mode`, `status` | - | 0pkt, am, 30 ms | ts38322; choices |
//! | - | `request`, `first_grant` | s, bytes | 10 ms, 300 B | ts38321 5.4.4; choices |
//! | - | `configured` | resource blocks | 0 | ts38321 5.8.2 |
//! | - | `handover`, `interruption` | s | none, 50 ms | ts38300 9.2.3; choices |
//!
//! # Deviations
//!
//! - D1. What combining a block with its earlier attempts gains is one factor for each attempt, not a gain in
//!   dB that depends on the channel.
//! - D2. Transport block sizes, code block groups and headers are not modelled. Control, reference signals
//!   and what else the 38.306 formula takes off are its OH, the same in every slot.
//! - D3. One flat channel with one index for all layers: a rank that follows the channel is not modelled.
//! - D4. An uplink grant has the index of its own slot, not that of the slot it is decided in.
//! - D5. The RLC buffer is filled from the queue at once when it has room, so a small one costs no rate: its
//!   depth only moves waiting from where the queue sees it to where it does not. Status reports are not sent,
//!   they are a time (`status`); acknowledged mode never gives a block up.
//! - D6. In unacknowledged mode a receiver knows what is lost when its sender does, and the rest of a packet
//!   that lost a block is not sent.
//! - D7. Requests, grants and feedback are never lost. What a user says in a block that fails is heard with a
//!   later attempt; if the block is given up, the user asks again.
//! - D8. The handovers of a user are laid out with its channel, and come again with it every two minutes.
//!   With forwarding, what was received but could not be handed on is sent again, too. Random access in the
//!   new cell is part of the interruption.
//! - D9. The number of processes is not bounded at 16; carrier aggregation, beams, sleep (DRX) and the energy
//!   that uplinks lack are not modelled.
//! - D10. Blocks that a user had no use for are others', so its queue is told of no unused opportunity, as in
//!   [`cellular`](super::cellular) (D6 there).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use brakelight_core::packet::Duplicate;
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::queue::{Dropped, Drops, Place, Queue, Reason};
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Limit};
use brakelight_routers::{AnyQueue, QueueConfig};

use super::cellular::capacity::Capacity;
use super::cellular::channel::Channel;
use super::cellular::estimator::{Estimator, StationView};
use super::cellular::scheduler::{Request, Scheduler};

mod config;
pub mod frame;
pub mod harq;
pub mod rlc;
pub mod uplink;

pub use config::{Config, Gaps, RlcMode, Values};
use frame::{Frame, RadioDirection};
use harq::{Block, BufferStatus, Harq, Timing};
use rlc::Rlc;
use uplink::Uplink;

/// Time constants after which nothing is left of what was before.
const FORGOTTEN: u64 = 20;

/// One user.
#[derive(Clone, Debug)]
struct User<P> {
    queue: AnyQueue<P>,
    channel: Channel,
    estimator: Estimator,
    rlc: Rlc<P>,
    harq: Harq,
    uplink: Uplink,
}

impl<P: Duplicate> User<P> {
    /// Bits that wait.
    fn waiting(&self) -> u64 {
        8 * (self.queue.backlog().bytes.0 + self.rlc.waiting().bytes.0)
    }

    fn is_idle(&self) -> bool {
        self.queue.backlog().is_empty() && self.rlc.is_empty()
    }

    /// Takes a packet out of the queue, if there is one.
    fn take(&mut self, at: Time, drops: &mut Drops<P>) -> bool {
        let mut view = StationView(&self.estimator);
        let Some(dequeued) = self.queue.dequeue(at, &mut view, drops) else { return false };
        self.rlc.push(dequeued);
        true
    }

    /// Fills the RLC buffer.
    fn refill(&mut self, at: Time, depth: Limit, drops: &mut Drops<P>) {
        while !self.queue.backlog().is_empty() && self.rlc.has_room(depth) && self.take(at, drops) {}
    }

    /// Sends up to `room` bytes.
    fn send(&mut self, at: Time, mut room: u64, depth: Limit, drops: &mut Drops<P>) {
        while room > 0 {
            if self.rlc.waiting().is_empty() && !self.take(at, drops) {
                break;
            }
            room -= self.rlc.send(room);
            self.refill(at, depth, drops);
        }
    }
}

/// A base station of 5G and the radio links between it and its users, in one direction.
#[derive(Clone, Debug)]
pub struct Nr<P> {
    config: Config,
    frame: Frame,
    timing: Timing,
    users: Vec<User<P>>,
    scheduler: Scheduler,
    capacity: Capacity,
    /// The first slot not yet begun.
    next: u64,
    /// Nothing is inside.
    idle: bool,
    requests: Vec<Request>,
    granted: Vec<u32>,
    random: Random,
    drops: Drops<P>,
    happened: VecDeque<Output<P>>,
}

impl<P: Duplicate> Nr<P> {
    /// Returns an idle base station; the queues of its users hold at most `limit` each.
    pub fn new(config: &Config, queue: &QueueConfig, limit: Limit, site: Site) -> Self {
        let mut random = site.random;
        let cell = config.cell();
        let channels: Vec<Channel> = (0..config.users)
            .map(|index| Channel::new(&cell, index, &mut Random::stream(random.bits(), "channel")))
            .collect();
        let capacity = Capacity::new(&cell, &channels);
        let nominal = capacity.nominal().mul_f64(1.0 / f64::from(config.users));
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
                    estimator: Estimator::new(&cell, index, nominal, most_waiting),
                    rlc: Rlc::default(),
                    harq: Harq::default(),
                    uplink: Uplink::default(),
                }
            })
            .collect();
        let count = config.users as usize;
        Nr {
            frame: config.frame(),
            timing: Timing::new(config, config.frame()),
            users,
            scheduler: Scheduler::new(config.scheduler, config.time_constant, cell.slot, count),
            capacity,
            next: 0,
            idle: true,
            requests: Vec::with_capacity(count),
            granted: Vec::with_capacity(count),
            random,
            drops: Drops::new(),
            happened: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// Returns what all users together would be given in `from <= t < to` if all were backlogged, on average
    /// over blocks not received.
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.capacity.between(from, to)
    }

    /// Calls `visit` with every user's queue.
    pub fn for_each_queue(&self, visit: &mut dyn FnMut(&AnyQueue<P>)) {
        self.users.iter().for_each(|user| visit(&user.queue));
    }

    /// Returns what the queue of a user is told of its rate.
    pub fn estimator(&self, user: usize) -> &Estimator {
        &self.users[user].estimator
    }

    fn due(&self) -> Time {
        if self.idle { Time::MAX } else { Time::ZERO + self.config.scs.slot() * self.next }
    }

    /// `slot` begins at `at`: hands on what is complete, gives up what is lost, lets users leave the cell.
    fn begin(&mut self, at: Time, slot: u64) {
        let happened = &mut self.happened;
        for user in &mut self.users {
            let User { harq, rlc, uplink, channel, .. } = user;
            let mut lost =
                |packet| happened.push_back(Output::Dropped(Dropped { at, packet, reason: Reason::Lost }));
            let missing =
                harq.settle(slot, &mut |block: Block| rlc.give_up(block.start, block.end, &mut lost));
            while let Some(staged) = rlc.hand_on(missing) {
                let queued = at.since(staged.arrived);
                let departed = Departed { at, packet: staged.packet, queued, mark: staged.mark };
                happened.push_back(Output::Departed(departed));
            }
            if channel.leaves_cell(slot) {
                harq.clear();
                uplink.clear();
                match self.config.forward {
                    true => rlc.start_over(),
                    false => rlc.lose(&mut |packet| {
                        happened.push_back(Output::Dropped(Dropped { at, packet, reason: Reason::Lost }));
                    }),
                }
            }
        }
    }

    /// Users that have data which nobody knows of ask for a grant, where `slot` is for that.
    fn ask(&mut self, slot: u64) {
        if self.config.configured > 0 || !self.frame.controls_in(RadioDirection::Up, slot) {
            return;
        }
        let period = self.config.request.as_nanos().div_ceil(self.config.scs.slot().as_nanos());
        let before = slot.checked_sub(1).and_then(|slot| self.frame.last(RadioDirection::Up, slot));
        if before.is_some_and(|before| before / period == slot / period) {
            return;
        }
        for user in &mut self.users {
            let silent = user.uplink.is_silent() && !user.harq.carries_report();
            if silent && user.waiting() > 0 && !user.channel.is_interrupted(slot) {
                let report = BufferStatus { sent: slot, bits: self.config.first_grant.bits() };
                user.uplink.report(slot, report, &self.timing);
            }
        }
    }

    /// Shares out `blocks`, beside which each user has `own`, and tells the estimators.
    fn share_out(&mut self, slot: u64, blocks: u32, own: u32) {
        let decided = match self.config.direction {
            RadioDirection::Down => None,
            RadioDirection::Up => Some(self.timing.decided(slot)),
        };
        self.requests.clear();
        self.requests.extend(self.users.iter_mut().map(|user| Request {
            bits_per_block: user.channel.bits(slot),
            waiting: match decided {
                None => user.waiting(),
                Some(decided) => decided.map_or(0, |decided| user.uplink.known(decided)),
            },
        }));
        let granted = self.scheduler.share_out(&self.requests, blocks);
        self.granted.clear();
        self.granted.extend_from_slice(granted);
        for (index, user) in self.users.iter_mut().enumerate() {
            let given = u64::from(granted[index] + own) * u64::from(self.requests[index].bits_per_block);
            user.estimator.on_slot(slot, &self.requests, given);
        }
    }

    /// What is sent in `slot`, which begins at `at`.
    fn send(&mut self, at: Time, slot: u64) {
        let up = self.config.direction == RadioDirection::Up;
        let depth = self.config.rlc;
        for user in &mut self.users {
            user.refill(at, depth, &mut self.drops);
        }
        if up {
            self.ask(slot);
        }
        let symbols = self.frame.data(self.config.direction, slot);
        let mut left = self.config.blocks;
        if symbols > 0 {
            for User { harq, uplink, .. } in &mut self.users {
                let mut heard = |report| uplink.report(slot, report, &self.timing);
                left = harq.repeat((slot, symbols), left, &self.timing, &mut self.random, &mut heard);
            }
        }
        let own = self.config.reserved().min(left / self.config.users);
        self.share_out(slot, left - own * self.config.users, own);
        for (index, user) in self.users.iter_mut().enumerate() {
            let (granted, bits) = (self.granted[index], u64::from(self.requests[index].bits_per_block));
            let blocks = granted + own;
            if blocks == 0 || bits == 0 {
                continue;
            }
            let start = user.rlc.next_byte();
            user.send(at, u64::from(blocks) * bits / 8, depth, &mut self.drops);
            let end = user.rlc.next_byte();
            let said = up.then(|| BufferStatus { sent: slot, bits: user.waiting() });
            let heard = match end > start {
                true => {
                    let block = Block { start, end, size: blocks * symbols, report: said };
                    user.harq.send(block, slot, &self.timing, &mut self.random)
                }
                // A grant that is not used says so; nothing is sent without one.
                false => said.filter(|_| granted > 0),
            };
            if up && (granted > 0 || end > start) {
                user.uplink.grant(slot, u64::from(blocks) * bits);
            }
            if let Some(report) = heard {
                user.uplink.report(slot, report, &self.timing);
            }
        }
        self.happened.extend(self.drops.drain(..).map(Output::Dropped));
    }

    /// Does everything due by `now`.
    fn advance(&mut self, now: Time) {
        while self.due() <= now {
            let (at, slot) = (self.due(), self.next);
            self.begin(at, slot);
            self.idle = self.users.iter().all(User::is_idle);
            if self.idle {
                self.users.iter_mut().for_each(|user| user.harq.clear());
            } else {
                self.send(at, slot);
                self.next = slot + 1;
            }
        }
    }

    /// Slots with nothing to send, up to `next`: averages and estimates go on.
    fn rest(&mut self, next: u64) {
        let longest = self.config.time_constant.max(self.config.window);
        let horizon = FORGOTTEN * (longest.as_nanos() / self.config.scs.slot().as_nanos());
        for slot in self.next.max(next.saturating_sub(horizon))..next {
            self.share_out(slot, self.config.blocks, 0);
        }
        self.next = self.next.max(next);
    }
}

impl<P: Duplicate> PathElement<P> for Nr<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.advance(now);
        if self.idle {
            // It goes with the first slot that begins now or later.
            self.rest(now.since(Time::ZERO).as_nanos().div_ceil(self.config.scs.slot().as_nanos()));
        }
        let index = packet.flow().0 as usize % self.users.len();
        let bits = 8 * u64::from(packet.size());
        for user in &mut self.users {
            user.estimator.on_arrival(index, bits);
        }
        let user = &mut self.users[index];
        let mut view = StationView(&user.estimator);
        user.queue.enqueue(now, packet, &mut view, &mut self.drops);
        user.refill(now, self.config.rlc, &mut self.drops);
        self.happened.extend(self.drops.drain(..).map(Output::Dropped));
        self.idle = self.users.iter().all(User::is_idle);
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        self.advance(now);
        if self.happened.front()?.at() > now {
            return None;
        }
        self.happened.pop_front()
    }

    fn next_wakeup(&self) -> Option<Time> {
        match self.happened.front() {
            Some(output) => Some(output.at()),
            None if self.idle => None,
            None => Some(self.due()),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        for user in &self.users {
            user.queue.for_each(visit);
            user.rlc.for_each(visit);
        }
        self.happened.iter().for_each(|output| visit(output.packet()));
    }
}

#[cfg(test)]
mod tests;
