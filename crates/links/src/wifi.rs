//! An 802.11n access point that sends to its stations in batches (abc20 section 5.1): queue, aggregation,
//! contention, loss, block ACKs, retransmission, reordering.
//!
//! ```text
//! the medium is won:    one station is chosen, round robin; its A-MPDU takes frames sent before and not
//!                       received, then frames from the queue, up to M
//! the A-MPDU ends:      each frame was received but for a share `loss`; frames are handed on in order, a gap
//!                       holds back what follows it
//! the block ACK ends:   the estimator is told; a frame not received after `retries` attempts is dropped
//! the next access:      other networks first, again and again with probability `neighbours`; one of the own
//!                       stations first with probability 1/2 while it has ACKs to send; DIFS and a backoff,
//!                       doubled after a batch of which nothing arrived
//! ```
//!
//! Times and rates are in [`mac`], the link-rate estimator (abc20 eq.5 to 8) in [`estimator`], how the
//! modulation changes in [`schedule`].
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `mcs` | index 0-7, or a schedule of them | 7 | ieee80211n table 20-30; abc20 7.3 uses 1 and 7 |
//! | - | `period` | s | 2 s | abc20 7.3: how long each index lasts |
//! | M | `frames` | frames | 20 | abc20 Fig. 5: inter-ACK times up to 20 ms (D1) |
//! | - | `stations` | count | 1 | flow i belongs to station i mod `stations` (D2) |
//! | - | `queues` | choice | shared | abc20 7.3: one FIFO |
//! | - | `loss` | probability | 0.02 | per frame and attempt (D3) |
//! | - | `retries` | count | 10 | ath9k: software retries of a frame |
//! | - | `neighbours` | probability | 0.3 | abc20 7.3: a crowded lab (D4) |
//! | - | `neighbour_airtime` | s | 1 ms | mean of an exponential (D4) |
//! | - | `ack_every` | packets | 2 | rfc5681 4.2: ACKs that stations contend to send; 0 for none (D5) |
//! | T | `window` | s | 40 ms | abc20 5.1 |
//! | - | `estimate` | choice | paper | abc20 5.1 (see [`estimator`]) |
//!
//! # Deviations
//!
//! - D1. M is negotiated; the paper does not say to what. 20 full frames at index 1 take the 20 ms that its
//!   Fig. 5 shows.
//! - D2. Addresses are not modelled: a packet's flow tells its station.
//! - D3. One loss rate for all indices: rate control, whose purpose is to keep it low, is not modelled, as
//!   the paper fixes the rate.
//! - D4. The paper's lab is not described beyond "crowded". Other networks win the medium a geometric number
//!   of times and hold it for exponential times.
//! - D5. The stations' TCP ACKs take airtime here; the packets themselves travel on the flow's way back as
//!   the scenario says.
//! - D6. The shared queue feeds a staging area of M frames per station, as the driver's per-station queues
//!   do; frames leave the queue discipline, and are marked, when they enter it, which is when the medium was
//!   won.
//! - D7. No opportunity passes unused here, so the queue is told of none: ABC's bucket is kept while nothing
//!   waits, whatever `token_idle` says, and `load=busy-time` is refused.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use brakelight_core::ecn::Mark;
use brakelight_core::packet::Duplicate;
use brakelight_core::parameters::ParameterError;
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::queue::{Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::{AnyQueue, QueueConfig};

pub mod estimator;
pub mod mac;
pub mod schedule;

use estimator::{Batch, Estimate, Estimator};
use schedule::{Indices, Schedule};

/// The most frames that a receiver's block ACK window holds.
const BLOCK_ACK_WINDOW: usize = 64;

choices! {
    /// How many queues the access point has.
    pub enum Queues {
        /// All in one queue.
        Shared = "shared",
        /// Each station's in its own.
        PerStation = "per-station",
    }
}

parameters! {
    /// The settings of a Wi-Fi link.
    pub struct Config {
        check consistent;
        /// Modulation and coding: an index, indices that take turns, or a range to wander in.
        mcs: Schedule = Schedule::Fixed(7), in .., from "ieee80211n table 20-30";
        /// How long an index lasts.
        period: Duration = Duration::from_secs(2), in Duration::from_millis(10)..=Duration::from_secs(3600), from "abc20 7.3";
        /// The most frames of one batch (M).
        frames: u32 = 20, in 1..=64, from "abc20 Fig. 5";
        /// Stations.
        stations: u32 = 1, in 1..=100, from "abc20 7.3: one and two";
        /// How many queues the access point has.
        queues: Queues = Queues::Shared, in .., from "abc20 7.3";
        /// Probability that a frame is not received.
        loss: f64 = 0.02, in 0.0..=0.9, from "a choice";
        /// Attempts at a frame after the first.
        retries: u32 = 10, in 0..=100, from "ath9k";
        /// Probability that another network sends first.
        neighbours: f64 = 0.3, in 0.0..=0.95, from "abc20 7.3: a crowded lab";
        /// How long it then does, on average.
        neighbour_airtime: Duration = Duration::from_millis(1), in Duration::ZERO..=Duration::from_millis(100), from "a choice";
        /// Packets for which a station sends an ACK of its own; 0 for none.
        ack_every: u32 = 2, in 0..=1000, from "rfc5681 4.2";
        /// Window over which the link's rate is estimated (T).
        window: Duration = Duration::from_millis(40), in Duration::from_millis(1)..=Duration::from_secs(10), from "abc20 5.1";
        /// What the queue is told the link's rate is.
        estimate: Estimate = Estimate::Paper, in .., from "abc20 5.1";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    config.mcs.check()
}

/// A frame that left the queue.
#[derive(Clone, Debug)]
struct Frame<P> {
    packet: P,
    /// When it came to the access point.
    arrived: Time,
    mark: Mark,
    /// Attempts so far.
    attempts: u32,
    received: bool,
}

impl<P> Frame<P> {
    /// Whether it is to be sent, again or for the first time.
    fn is_due(&self, retries: u32) -> bool {
        !self.received && self.attempts <= retries
    }
}

/// One receiver.
#[derive(Clone, Debug)]
struct Station<P> {
    /// Out of the queue, not yet sent.
    staged: VecDeque<Frame<P>>,
    /// Sent and not yet handed on, in order.
    window: VecDeque<Frame<P>>,
    /// Packets received for which it owes ACKs.
    owes: u32,
}

/// What the access point observes of a batch when its block ACK ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// When its block ACK ended.
    pub at: Time,
    /// Frames: b.
    pub frames: u32,
    /// Time since the block ACK before it, or since something waited: T_IA.
    pub inter_ack: Duration,
}

/// What the access point does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Nothing to send.
    Idle,
    /// Waiting for the medium, which it has at `due`.
    Contending,
    /// Sending to this station so many frames; the A-MPDU ends at `due`.
    Sending { station: usize, frames: u32, bytes: u32, mcs: u8 },
    /// Waiting for the block ACK, which ends at `due`.
    Acknowledged,
}

/// A Wi-Fi access point and the radio links to its stations.
#[derive(Clone, Debug)]
pub struct Wifi<P> {
    config: Config,
    indices: Indices,
    queues: Vec<AnyQueue<P>>,
    /// One per queue.
    estimators: Vec<Estimator>,
    stations: Vec<Station<P>>,
    /// The station served last.
    last: usize,
    state: State,
    due: Time,
    /// When the last block ACK ended: backoff runs from there even if nothing waits.
    free_since: Time,
    /// Since when each queue has had something to send.
    busy_since: Vec<Time>,
    observed: Option<Observed>,
    /// Failed batches in a row.
    failures: u32,
    random: Random,
    drops: Drops<P>,
    happened: VecDeque<Output<P>>,
}

impl<P: Duplicate> Wifi<P> {
    /// Returns an idle access point whose queues hold at most `limit` each.
    pub fn new(config: &Config, queue: &QueueConfig, limit: Limit, site: Site) -> Self {
        let mut random = site.random;
        let indices = Indices::new(&config.mcs, config.period, &mut random);
        let nominal = mac::backlogged(config, indices.at(Time::ZERO));
        let queues = match config.queues {
            Queues::Shared => 1,
            Queues::PerStation => config.stations,
        };
        let queues: Vec<AnyQueue<P>> = (0..queues)
            .map(|index| {
                let random =
                    Random::stream(random.bits(), if index == 0 { "queue" } else { "another queue" });
                queue.build(&Place { limit, nominal, random })
            })
            .collect();
        Wifi {
            estimators: queues.iter().map(|_| Estimator::new(config, nominal)).collect(),
            busy_since: alloc::vec![Time::ZERO; queues.len()],
            indices,
            queues,
            stations: (0..config.stations)
                .map(|_| Station { staged: VecDeque::new(), window: VecDeque::new(), owes: 0 })
                .collect(),
            last: 0,
            state: State::Idle,
            due: Time::MAX,
            free_since: Time::ZERO,
            observed: None,
            failures: 0,
            random,
            drops: Drops::new(),
            happened: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// Returns what the link can carry in `from <= t < to` when always backlogged, on average over losses and
    /// contention.
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.indices.integrate(from, to, |mcs| mac::backlogged(&self.config, mcs))
    }

    /// Calls `visit` with every queue.
    pub fn for_each_queue(&self, visit: &mut dyn FnMut(&AnyQueue<P>)) {
        self.queues.iter().for_each(visit);
    }

    fn station_of(&self, packet: &P) -> usize {
        packet.flow().0 as usize % self.stations.len()
    }

    fn queue_of(&self, station: usize) -> usize {
        if self.queues.len() == 1 { 0 } else { station }
    }

    /// Whether anything of that queue is to be sent.
    fn has_work(&self, queue: usize) -> bool {
        let station = |station: &Station<P>| {
            !station.staged.is_empty() || station.window.iter().any(|frame| frame.is_due(self.config.retries))
        };
        let served = if self.queues.len() == 1 { &self.stations[..] } else { &self.stations[queue..=queue] };
        !self.queues[queue].backlog().is_empty() || served.iter().any(station)
    }

    /// Returns the last batch.
    pub fn observed(&self) -> Option<Observed> {
        self.observed
    }

    /// Returns the estimator of a queue.
    pub fn estimator(&self, queue: usize) -> &Estimator {
        &self.estimators[queue]
    }

    /// When the medium is won by an access point that wants it from `now` on.
    fn contend(&mut self, now: Time) -> Time {
        let mut at = now.max(self.free_since) + mac::DIFS;
        while self.random.chance(self.config.neighbours) {
            let airtime = self.config.neighbour_airtime.mul_f64(self.random.exponential());
            at += airtime + mac::DIFS;
        }
        for index in 0..self.stations.len() {
            // ACKs that had the medium to themselves for a while are gone.
            let idle = now.since(self.free_since) > mac::QUIET;
            let station = &mut self.stations[index];
            if idle {
                station.owes = 0;
            }
            let acks = station.owes.checked_div(self.config.ack_every).unwrap_or(0);
            if acks > 0 && self.random.chance(0.5) {
                station.owes = 0;
                at += mac::ack_airtime(self.indices.at(at), acks) + mac::DIFS;
            }
        }
        let slots = (self.random.uniform() * f64::from(mac::contention_window(self.failures) + 1)) as u64;
        at + mac::SLOT * slots
    }

    /// Moves frames from the queue to the staging areas at `at`, until `station` has a batch.
    fn stage(&mut self, at: Time, index: usize, most: usize) {
        let queue = self.queue_of(index);
        while self.stations[index].staged.len() < most {
            let mut view = View {
                estimator: &self.estimators[queue],
                indices: &self.indices,
                config: &self.config,
                now: at,
            };
            let Some(Dequeued { packet, arrived, mark }) =
                self.queues[queue].dequeue(at, &mut view, &mut self.drops)
            else {
                break;
            };
            let station = self.station_of(&packet);
            let staged = &mut self.stations[station].staged;
            staged.push_back(Frame { packet, arrived, mark, attempts: 0, received: false });
            // D6: a driver's queue that is full stops the queue discipline.
            if staged.len() >= most {
                break;
            }
        }
        self.report_drops();
    }

    fn report_drops(&mut self) {
        self.happened.extend(self.drops.drain(..).map(Output::Dropped));
    }

    /// The medium is won at `at`: the next station's batch.
    fn send(&mut self, at: Time) {
        let mcs = self.indices.at(at);
        let most = self.config.frames as usize;
        let count = self.stations.len();
        for turn in 1..=count {
            let index = (self.last + turn) % count;
            let retries = self.config.retries;
            let again = self.stations[index].window.iter().filter(|frame| frame.is_due(retries)).count();
            let room = (BLOCK_ACK_WINDOW - self.stations[index].window.len()).min(most.saturating_sub(again));
            self.stage(at, index, room);
            let station = &mut self.stations[index];
            let new = room.min(station.staged.len());
            station.window.extend(station.staged.drain(..new));
            let mut frames = 0;
            let mut bytes = 0;
            for frame in station.window.iter_mut().filter(|frame| frame.is_due(retries)) {
                let mpdu = mac::mpdu_bytes(frame.packet.size());
                if frames == self.config.frames || (frames > 0 && bytes + mpdu > mac::LONGEST_AMPDU) {
                    break;
                }
                frames += 1;
                bytes += mpdu;
                frame.attempts += 1;
            }
            if frames > 0 {
                self.last = index;
                self.state = State::Sending { station: index, frames, bytes, mcs };
                self.due = at + mac::airtime(mcs, bytes);
                return;
            }
        }
        // All that waited was dropped by its queue discipline, or is held back by it.
        let held = self.queues.iter().filter(|queue| !queue.backlog().is_empty());
        let until = held.map(|queue| queue.held_until().max(at + Duration::from_nanos(1))).min();
        self.state = State::Idle;
        self.due = until.unwrap_or(Time::MAX);
        self.free_since = at;
    }

    /// The A-MPDU of `frames` frames ends at `at`.
    fn receive(&mut self, at: Time, index: usize, frames: u32, bytes: u32, mcs: u8) {
        let queue = self.queue_of(index);
        let retries = self.config.retries;
        let station = &mut self.stations[index];
        let mut received = 0;
        // What `send` took: it counted this attempt already.
        let sent =
            |frame: &&mut Frame<P>| !frame.received && frame.attempts <= retries + 1 && frame.attempts > 0;
        for frame in station.window.iter_mut().filter(sent).take(frames as usize) {
            if !self.random.chance(self.config.loss) {
                frame.received = true;
                received += 1;
                station.owes += 1;
            }
        }
        while let Some(frame) = station.window.front() {
            let given_up = !frame.received && !frame.is_due(retries);
            if !frame.received && !given_up {
                break;
            }
            let frame = station.window.pop_front().expect("there is a front");
            self.happened.push_back(if given_up {
                Output::Dropped(Dropped { at, packet: frame.packet, reason: Reason::Lost })
            } else {
                let queued = at.since(frame.arrived);
                Output::Departed(Departed { at, packet: frame.packet, queued, mark: frame.mark })
            });
        }
        self.failures = if received == 0 { self.failures + 1 } else { 0 };
        let ended = at + mac::SIFS + mac::BLOCK_ACK;
        let batch = Batch { frames, received, bytes, mcs, busy_since: self.busy_since[queue] };
        let inter_ack = self.estimators[queue].on_block_ack(ended, &batch);
        self.observed = Some(Observed { at: ended, frames, inter_ack });
        self.state = State::Acknowledged;
        self.due = ended;
    }

    /// Contends again, or rests.
    fn go_on(&mut self, at: Time) {
        self.free_since = at;
        if (0..self.queues.len()).any(|queue| self.has_work(queue)) {
            self.due = self.contend(at);
            self.state = State::Contending;
        } else {
            self.due = Time::MAX;
            self.state = State::Idle;
        }
    }

    /// Does everything due by `now`.
    fn advance(&mut self, now: Time) {
        while self.due <= now {
            let at = self.due;
            match self.state {
                State::Idle => {
                    self.due = self.contend(at);
                    self.state = State::Contending;
                }
                State::Contending => self.send(at),
                State::Sending { station, frames, bytes, mcs } => {
                    self.receive(at, station, frames, bytes, mcs)
                }
                State::Acknowledged => self.go_on(at),
            }
        }
    }
}

impl<P: Duplicate> PathElement<P> for Wifi<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.advance(now);
        let queue = self.queue_of(self.station_of(&packet));
        // While its block ACK is awaited a batch is still work.
        let busy = self.has_work(queue) || matches!(self.state, State::Sending { .. });
        let mut view =
            View { estimator: &self.estimators[queue], indices: &self.indices, config: &self.config, now };
        self.queues[queue].enqueue(now, packet, &mut view, &mut self.drops);
        self.report_drops();
        if !busy && self.has_work(queue) {
            self.busy_since[queue] = now;
        }
        if self.state == State::Idle && self.has_work(queue) {
            self.due = self.contend(now);
            self.state = State::Contending;
        }
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
            None if self.due == Time::MAX => None,
            None => Some(self.due),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.queues.iter().for_each(|queue| queue.for_each(visit));
        for station in &self.stations {
            station.staged.iter().chain(&station.window).for_each(|frame| visit(&frame.packet));
        }
        self.happened.iter().for_each(|output| visit(output.packet()));
    }
}

/// The link as its queue sees it.
struct View<'a> {
    estimator: &'a Estimator,
    indices: &'a Indices,
    config: &'a Config,
    now: Time,
}

impl LinkView for View<'_> {
    /// The estimate, whose window is the link's own (abc20 5.1: it must exceed the time between block ACKs).
    fn capacity(&mut self, _window: Duration) -> Rate {
        match self.config.estimate {
            Estimate::Truth => mac::backlogged(self.config, self.indices.at(self.now)),
            Estimate::Busy | Estimate::Paper | Estimate::Phy | Estimate::Backlog => self.estimator.rate(),
        }
    }

    fn unused(&mut self) -> Bytes {
        Bytes::ZERO
    }

    fn opportunity(&self) -> Bytes {
        Bytes(1500)
    }

    fn lookahead(&mut self, _ahead: Duration, _window: Duration) -> Option<Rate> {
        None
    }
}

#[cfg(test)]
mod tests;
