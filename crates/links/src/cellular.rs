//! A cellular base station that sends to its users from queues of their own (abc20 section 5.2; abc17
//! sections 2 and 6): a channel per user, a scheduler that shares out resource blocks every millisecond,
//! retransmission, delivery in order.
//!
//! ```text
//! each subframe of 1 ms:  blocks that were not received 8 ms ago are sent again, before anything new
//!                         the scheduler shares out the rest of the M pairs of resource blocks
//!                         each user's share is filled from its queue, packets cut where it ends
//!                         the estimators are told what was asked for and given
//! when it ends:           a user's blocks were received but for a share `bler`; packets whose bytes are all
//!                         there are handed on, in order
//! ```
//!
//! Channels are in [`channel`], the schedulers in [`scheduler`], the estimator of a user's rate when it is
//! not backlogged in [`estimator`].
//!
//! What the statistics call the link's capacity is what all users together would have been given, had all
//! been backlogged, by the same scheduler and channels. Where some have nothing to send and the scheduler
//! gives their blocks to better channels, more can be carried.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | N | `users` | count | 1 | flow i belongs to user i mod N (D1) |
//! | M | `blocks` | pairs of resource blocks per subframe | 50 | ts36104 table 5.6-1: 10 MHz |
//! | S | - | s | 1 ms | ts36211 4: a subframe |
//! | - | `snr` | dB | 12 | mean over users, without fading; a choice |
//! | - | `spread` | dB | 0 | last user's mean above the first's |
//! | sigma | `shadow`, `shadow_time` | dB, s | 4, 0.5 s | gudmundson91 |
//! | - | `fading`, `coherence` | choice, s | rayleigh, 20 ms | 0.423 c / (v f): 11 km/h at 2 GHz |
//! | - | `report` | s | 5 ms | ts36213 table 7.2.2-1A |
//! | t_c | `time_constant` | s | 100 ms | jalali00: 1000 slots; ns-3: 99 ms (D2) |
//! | - | `bler` | probability | 0.1 | ts36213 7.2.3: the index is for at most that (D3) |
//! | T | `window` | s | 20 ms | abc17 5 |
//! | - | `estimate` | choice | hypothetical | abc17 6 (see [`estimator`]) |
//!
//! # Deviations
//!
//! - D1. Addresses are not modelled: a packet's flow tells its user.
//! - D2. The literature's values reach from 100 ms to 1.6 s.
//! - D3. Each attempt at a block fails alike, without the gain of combining it with those before; none is
//!   given up, as RLC's acknowledged mode would repeat it.
//! - D4. Headers of RLC, PDCP and MAC, transport block sizes and the time to decode are not modelled: a
//!   packet is there when the subframe ends that completes it.
//! - D5. Only this direction: the way back is the flow's own.
//! - D6. Blocks that a user had no use for are others', so its queue is told of no unused opportunity: ABC's
//!   bucket is kept while nothing waits, whatever `token_idle` says, and `load=busy-time` is refused.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use brakelight_core::ecn::Mark;
use brakelight_core::packet::Duplicate;
use brakelight_core::parameters::ParameterError;
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::queue::{Dequeued, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_routers::{AnyQueue, QueueConfig};

pub mod capacity;
pub mod cell;
pub mod channel;
pub mod estimator;
pub mod scheduler;
pub(crate) mod station;

use cell::Cell;
use estimator::{Estimate, Estimator, StationView};
use scheduler::{Policy, Request};
use station::{Air, Station, User};

/// A subframe. ts36211 4
const SUBFRAME: Duration = Duration::from_millis(1);

/// Subframes from a block to its retransmission. ts36213 7.1.1, 8: eight processes
const ROUND: u64 = 8;

choices! {
    /// How the channel fades.
    pub enum Fading {
        /// Not at all.
        None = "none",
        /// Without line of sight.
        Rayleigh = "rayleigh",
    }
}

parameters! {
    /// The settings of a base station.
    pub struct Config {
        check consistent;
        /// Users.
        users: u32 = 1, in 1..=32, from "abc20 5.2";
        /// Pairs of resource blocks in a subframe (M).
        blocks: u32 = 50, in 6..=100, from "ts36104 table 5.6-1: 10 MHz";
        /// Mean signal-to-noise ratio over users and shadowing, dB.
        snr: f64 = 12.0, in -10.0..=40.0, from "a choice";
        /// How far the last user's mean lies above the first's, dB.
        spread: f64 = 0.0, in -40.0..=40.0, from "a choice";
        /// Standard deviation of shadowing, dB.
        shadow: f64 = 4.0, in 0.0..=20.0, from "gudmundson91";
        /// How long shadowing lasts: its autocorrelation is 1/e after that.
        shadow_time: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(100), from "gudmundson91";
        /// How the channel fades.
        fading: Fading = Fading::Rayleigh, in .., from "a choice";
        /// How long a fade lasts: the field's autocorrelation is 1/e after that.
        coherence: Duration = Duration::from_millis(20), in Duration::from_millis(1)..=Duration::from_secs(100), from "11 km/h at 2 GHz";
        /// Time between reports of the channel, whole milliseconds.
        report: Duration = Duration::from_millis(5), in Duration::from_millis(1)..=Duration::from_millis(160), from "ts36213 table 7.2.2-1A";
        /// How resource blocks are shared out.
        scheduler: Policy = Policy::ProportionalFair, in .., from "abc17 6";
        /// Time constant of proportional fairness (t_c).
        time_constant: Duration = Duration::from_millis(100), in Duration::from_millis(1)..=Duration::from_secs(10), from "jalali00";
        /// Probability that a block is not received.
        bler: f64 = 0.1, in 0.0..=0.9, from "ts36213 7.2.3";
        /// Window over which a user's rate is measured (T), whole milliseconds.
        window: Duration = Duration::from_millis(20), in Duration::from_millis(1)..=Duration::from_secs(10), from "abc17 5";
        /// What a queue is told its user's rate is.
        estimate: Estimate = Estimate::Hypothetical, in .., from "abc17 6";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    for (name, value) in [("report", config.report), ("window", config.window)] {
        if value.as_nanos() % SUBFRAME.as_nanos() != 0 {
            let reason = format!("{name} must be whole milliseconds: nothing changes within a subframe");
            return Err(ParameterError::Conflict { reason });
        }
    }
    // abc17 section 3.2, rate measurement timescales: window >= N S / M
    if config.window.as_nanos() * u64::from(config.blocks) < u64::from(config.users) * SUBFRAME.as_nanos() {
        let reason =
            "window must be at least users / blocks milliseconds: not all could be served in it".into();
        return Err(ParameterError::Conflict { reason });
    }
    Ok(())
}

impl Config {
    /// Returns what the station shares with others.
    pub fn cell(&self) -> Cell {
        Cell {
            slot: SUBFRAME,
            users: self.users,
            blocks: self.blocks,
            reserved: 0,
            snr: self.snr,
            spread: self.spread,
            shadow: self.shadow,
            shadow_time: self.shadow_time,
            fading: self.fading,
            coherence: self.coherence,
            report: self.report,
            scheduler: self.scheduler,
            time_constant: self.time_constant,
            window: self.window,
            estimate: self.estimate,
            efficiencies: &channel::EFFICIENCY,
            bits: Arc::new([channel::lte_bits()]),
            received: 1.0 - self.bler,
            handovers: None,
        }
    }
}

/// A packet that left its queue.
#[derive(Clone, Debug)]
struct Staged<P> {
    packet: P,
    arrived: Time,
    mark: Mark,
    /// Bytes of it not sent yet.
    unsent: u32,
    /// The number of the byte after its last, once all are sent.
    end: u64,
}

/// Bytes that were sent and not received.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The subframe of its retransmission.
    due: u64,
    blocks: u32,
    /// The number of its first byte.
    start: u64,
}

/// What was taken out of a user's queue and is not yet handed on.
#[derive(Clone, Debug)]
struct Sent<P> {
    /// Partly sent.
    head: Option<Staged<P>>,
    /// Sent and not yet handed on.
    sent: VecDeque<Staged<P>>,
    /// Bytes sent so far.
    bytes: u64,
    failed: VecDeque<Block>,
}

impl<P> Default for Sent<P> {
    fn default() -> Self {
        Sent { head: None, sent: VecDeque::new(), bytes: 0, failed: VecDeque::new() }
    }
}

impl<P> Air<P> for Sent<P> {
    fn is_empty(&self) -> bool {
        self.head.is_none() && self.sent.is_empty()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.head.iter().chain(&self.sent).for_each(|staged| visit(&staged.packet));
    }
}

impl<P> Sent<P> {
    /// Bytes from this number on are missing.
    fn missing_from(&self) -> u64 {
        self.failed.iter().map(|block| block.start).min().unwrap_or(u64::MAX)
    }
}

impl<P: Duplicate> User<P, Sent<P>> {
    /// Bits that wait.
    fn waiting(&self) -> u64 {
        let head = self.air.head.as_ref().map_or(0, |head| u64::from(head.unsent));
        8 * (self.queue.backlog().bytes.0 + head)
    }
}

/// A cellular base station and the radio links to its users.
#[derive(Clone, Debug)]
pub struct Cellular<P> {
    config: Config,
    station: Station<P, Sent<P>>,
}

impl<P: Duplicate> Cellular<P> {
    /// Returns an idle base station whose queues hold at most `limit` each.
    pub fn new(config: &Config, queue: &QueueConfig, limit: Limit, site: Site) -> Self {
        Cellular { station: Station::new(&config.cell(), queue, limit, site), config: config.clone() }
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

    /// Sends again what was not received. Returns how many pairs of blocks are left.
    fn repeat(&mut self, subframe: u64) -> u32 {
        let mut left = self.config.blocks;
        for User { air, .. } in &mut self.station.users {
            while let Some(block) = air.failed.front().copied().filter(|block| block.due <= subframe) {
                air.failed.pop_front();
                // All were sent in one subframe, so they fit into one.
                left -= block.blocks;
                if self.station.random.chance(self.config.bler) {
                    air.failed.push_back(Block { due: subframe + ROUND, ..block });
                }
            }
        }
        left
    }

    /// Shares out `blocks` and tells the estimators.
    fn share_out(&mut self, subframe: u64, blocks: u32) -> &[u32] {
        let Station { users, scheduler, requests, .. } = &mut self.station;
        requests.clear();
        requests.extend(
            users
                .iter()
                .map(|user| Request { bits_per_block: user.channel.bits(subframe), waiting: user.waiting() }),
        );
        let granted = scheduler.share_out(requests, blocks);
        for (index, user) in users.iter_mut().enumerate() {
            let given = u64::from(granted[index]) * u64::from(requests[index].bits_per_block);
            user.estimator.on_slot(subframe, requests, given);
        }
        granted
    }

    /// A subframe begins.
    fn send(&mut self, at: Time, subframe: u64) {
        let left = self.repeat(subframe);
        let granted: Vec<u32> = self.share_out(subframe, left).to_vec();
        for (index, &blocks) in granted.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
            let Station { users, requests, drops, random, .. } = &mut self.station;
            let User { queue, estimator, air, .. } = &mut users[index];
            let start = air.bytes;
            let mut room = u64::from(blocks) * u64::from(requests[index].bits_per_block) / 8;
            while room > 0 {
                if air.head.is_none() {
                    let mut view = StationView(estimator);
                    let Some(Dequeued { packet, arrived, mark }) = queue.dequeue(at, &mut view, drops) else {
                        break;
                    };
                    let unsent = packet.size();
                    air.head = Some(Staged { packet, arrived, mark, unsent, end: 0 });
                }
                let head = air.head.as_mut().expect("just filled");
                let part = room.min(u64::from(head.unsent));
                room -= part;
                head.unsent -= part as u32;
                air.bytes += part;
                if head.unsent == 0 {
                    head.end = air.bytes;
                    air.sent.extend(air.head.take());
                }
            }
            if air.bytes > start && random.chance(self.config.bler) {
                air.failed.push_back(Block { due: subframe + ROUND, blocks, start });
            }
        }
        self.station.report_drops();
    }

    /// A subframe has ended at `at`: hands on what is complete.
    fn deliver(&mut self, at: Time) {
        let Station { users, happened, .. } = &mut self.station;
        for User { air, .. } in users {
            let missing = air.missing_from();
            while air.sent.front().is_some_and(|staged| staged.end <= missing) {
                let staged = air.sent.pop_front().expect("there is a front");
                let queued = at.since(staged.arrived);
                let departed = Departed { at, packet: staged.packet, queued, mark: staged.mark };
                happened.push_back(Output::Departed(departed));
            }
        }
    }

    /// Does everything due by `now`.
    fn advance(&mut self, now: Time) {
        while self.station.due() <= now {
            let at = self.station.due();
            self.deliver(at);
            self.station.settle();
            if !self.station.idle {
                let subframe = self.station.next;
                self.send(at, subframe);
                // What was sent is handed on when this subframe ends.
                self.station.next = subframe + 1;
            }
        }
    }
}

impl<P: Duplicate> PathElement<P> for Cellular<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.advance(now);
        if self.station.idle {
            for subframe in self.station.rest(now) {
                self.share_out(subframe, self.config.blocks);
            }
        }
        self.station.enqueue(now, packet);
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
