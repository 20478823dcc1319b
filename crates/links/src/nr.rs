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

use alloc::vec::Vec;

use brakelight_core::packet::Duplicate;
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::queue::{Dropped, Drops, Queue, Reason};
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Limit};
use brakelight_routers::{AnyQueue, QueueConfig};

use super::cellular::estimator::{Estimator, StationView};
use super::cellular::scheduler::Request;
use super::cellular::station::{Air, Station, User};

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

/// What lies between a user's queue and the air.
#[derive(Clone, Debug)]
struct Radio<P> {
    rlc: Rlc<P>,
    harq: Harq,
    uplink: Uplink,
}

impl<P> Default for Radio<P> {
    fn default() -> Self {
        Radio { rlc: Rlc::default(), harq: Harq::default(), uplink: Uplink::default() }
    }
}

impl<P: Duplicate> Air<P> for Radio<P> {
    fn is_empty(&self) -> bool {
        self.rlc.is_empty()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.rlc.for_each(visit);
    }
}

impl<P: Duplicate> User<P, Radio<P>> {
    /// Bits that wait.
    fn waiting(&self) -> u64 {
        8 * (self.queue.backlog().bytes.0 + self.air.rlc.waiting().bytes.0)
    }

    /// Takes a packet out of the queue, if there is one.
    fn take(&mut self, at: Time, drops: &mut Drops<P>) -> bool {
        let mut view = StationView(&self.estimator);
        let Some(dequeued) = self.queue.dequeue(at, &mut view, drops) else { return false };
        self.air.rlc.push(dequeued);
        true
    }

    /// Fills the RLC buffer.
    fn refill(&mut self, at: Time, depth: Limit, drops: &mut Drops<P>) {
        while !self.queue.backlog().is_empty() && self.air.rlc.has_room(depth) && self.take(at, drops) {}
    }

    /// Sends up to `room` bytes.
    fn send(&mut self, at: Time, mut room: u64, depth: Limit, drops: &mut Drops<P>) {
        while room > 0 {
            if self.air.rlc.waiting().is_empty() && !self.take(at, drops) {
                break;
            }
            room -= self.air.rlc.send(room);
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
    station: Station<P, Radio<P>>,
    granted: Vec<u32>,
}

impl<P: Duplicate> Nr<P> {
    /// Returns an idle base station; the queues of its users hold at most `limit` each.
    pub fn new(config: &Config, queue: &QueueConfig, limit: Limit, site: Site) -> Self {
        Nr {
            frame: config.frame(),
            timing: Timing::new(config, config.frame()),
            station: Station::new(&config.cell(), queue, limit, site),
            granted: Vec::with_capacity(config.users as usize),
            config: config.clone(),
        }
    }

    /// Returns what all users together would be given in `from <= t < to` if all were backlogged, on average
    /// over blocks not received.
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.station.capacity_between(from, to)
    }

    /// Calls `visit` with every user's queue.
    pub fn for_each_queue(&self, visit: &mut dyn FnMut(&AnyQueue<P>)) {
        self.station.for_each_queue(visit);
    }

    /// Returns what the queue of a user is told of its rate.
    pub fn estimator(&self, user: usize) -> &Estimator {
        &self.station.users[user].estimator
    }

    /// `slot` begins at `at`: hands on what is complete, gives up what is lost, lets users leave the cell.
    fn begin(&mut self, at: Time, slot: u64) {
        let Station { users, happened, .. } = &mut self.station;
        for User { channel, air: Radio { harq, rlc, uplink }, .. } in users {
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
        for user in &mut self.station.users {
            let silent = user.air.uplink.is_silent() && !user.air.harq.carries_report();
            if silent && user.waiting() > 0 && !user.channel.is_interrupted(slot) {
                let report = BufferStatus { sent: slot, bits: self.config.first_grant.bits() };
                user.air.uplink.report(slot, report, &self.timing);
            }
        }
    }

    /// Shares out `blocks`, beside which each user has `own`, and tells the estimators.
    fn share_out(&mut self, slot: u64, blocks: u32, own: u32) {
        let decided = match self.config.direction {
            RadioDirection::Down => None,
            RadioDirection::Up => Some(self.timing.decided(slot)),
        };
        let Station { users, scheduler, requests, .. } = &mut self.station;
        requests.clear();
        requests.extend(users.iter_mut().map(|user| Request {
            bits_per_block: user.channel.bits(slot),
            waiting: match decided {
                None => user.waiting(),
                Some(decided) => decided.map_or(0, |decided| user.air.uplink.known(decided)),
            },
        }));
        let granted = scheduler.share_out(requests, blocks);
        self.granted.clear();
        self.granted.extend_from_slice(granted);
        for (index, user) in users.iter_mut().enumerate() {
            let given = u64::from(granted[index] + own) * u64::from(requests[index].bits_per_block);
            user.estimator.on_slot(slot, requests, given);
        }
    }

    /// What is sent in `slot`, which begins at `at`.
    fn send(&mut self, at: Time, slot: u64) {
        let up = self.config.direction == RadioDirection::Up;
        let depth = self.config.rlc;
        for user in &mut self.station.users {
            user.refill(at, depth, &mut self.station.drops);
        }
        if up {
            self.ask(slot);
        }
        let symbols = self.frame.data(self.config.direction, slot);
        let mut left = self.config.blocks;
        if symbols > 0 {
            let Station { users, random, .. } = &mut self.station;
            for User { air: Radio { harq, uplink, .. }, .. } in users {
                let mut heard = |report| uplink.report(slot, report, &self.timing);
                left = harq.repeat((slot, symbols), left, &self.timing, random, &mut heard);
            }
        }
        let own = self.config.reserved().min(left / self.config.users);
        self.share_out(slot, left - own * self.config.users, own);
        let Station { users, requests, random, drops, .. } = &mut self.station;
        for (index, user) in users.iter_mut().enumerate() {
            let (granted, bits) = (self.granted[index], u64::from(requests[index].bits_per_block));
            let blocks = granted + own;
            if blocks == 0 || bits == 0 {
                continue;
            }
            let start = user.air.rlc.next_byte();
            user.send(at, u64::from(blocks) * bits / 8, depth, drops);
            let end = user.air.rlc.next_byte();
            let said = up.then(|| BufferStatus { sent: slot, bits: user.waiting() });
            let heard = match end > start {
                true => {
                    let block = Block { start, end, size: blocks * symbols, report: said };
                    user.air.harq.send(block, slot, &self.timing, random)
                }
                // A grant that is not used says so; nothing is sent without one.
                false => said.filter(|_| granted > 0),
            };
            if up && (granted > 0 || end > start) {
                user.air.uplink.grant(slot, u64::from(blocks) * bits);
            }
            if let Some(report) = heard {
                user.air.uplink.report(slot, report, &self.timing);
            }
        }
        self.station.report_drops();
    }

    /// Does everything due by `now`.
    fn advance(&mut self, now: Time) {
        while self.station.due() <= now {
            let (at, slot) = (self.station.due(), self.station.next);
            self.begin(at, slot);
            self.station.settle();
            if self.station.idle {
                self.station.users.iter_mut().for_each(|user| user.air.harq.clear());
            } else {
                self.send(at, slot);
                self.station.next = slot + 1;
            }
        }
    }
}

impl<P: Duplicate> PathElement<P> for Nr<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.advance(now);
        if self.station.idle {
            for slot in self.station.rest(now) {
                self.share_out(slot, self.config.blocks, 0);
            }
        }
        let index = self.station.enqueue(now, packet);
        self.station.users[index].refill(now, self.config.rlc, &mut self.station.drops);
        self.station.report_drops();
        self.station.settle();
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        self.advance(now);
        self.station.poll(now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.station.next_wakeup()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.station.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
