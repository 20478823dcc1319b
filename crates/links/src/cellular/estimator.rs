//! What a user would get of a base station if it always had data: its potential rate, mu (abc20 5.2;
//! abc17 6).
//!
//! ```text
//! naive          what the scheduler gave it
//! hypothetical   what the scheduler would give it, simulated with the conditions of the moment, but a
//!                backlog of its own (abc17 6): its own averages T of all users; the others ask for what
//!                waits for them now
//! truth          the same station all over again, but with that backlog: the others ask for what would still
//!                wait for them there
//! mu             bits of the last `window` / window
//! ```
//!
//! The difference between the two simulations is what the user's hypothetical data would have held up: with
//! `hypothetical` the others' data are served in reality meanwhile, and never ask again; with `truth` they
//! do.
//!
//! # Deviations
//!
//! - D1. abc17 leaves the method to future work; both simulations are readings of its sentence.
//! - D2. `truth` keeps no packets: a user's data that would wait are bytes, up to the buffer's limit (packets
//!   of 1500 bytes). What senders would do differently it cannot know.
//! - D3. A simulation retransmits nothing: it shares out M (1 - bler) pairs of blocks, what retransmissions
//!   leave on average of a station that always sends.

use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::queue::LinkView;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};

use super::cell::Cell;
use super::scheduler::{BACKLOGGED, Request, Scheduler};

choices! {
    /// What the queue is told the user's rate is.
    pub enum Estimate {
        /// What the scheduler would give it with the conditions of the moment.
        Hypothetical = "hypothetical",
        /// What the scheduler gave it.
        Naive = "naive",
        /// What a station with the same arrivals but that user's would give it.
        Truth = "truth",
    }
}

/// The estimator of one user.
#[derive(Clone, Debug)]
pub struct Estimator {
    user: usize,
    estimate: Estimate,
    /// The scheduler, had the user always data.
    shadow: Scheduler,
    /// Bits that would wait for each user, for `truth`.
    waiting: Vec<u64>,
    most_waiting: u64,
    /// What retransmissions leave of a slot: M (1 - bler).
    blocks: f64,
    requests: Vec<Request>,
    /// What each slot of the window gives, bits; by slot modulo its length.
    samples: Vec<u64>,
    sum: u64,
    /// The part of a block that is left over.
    left_over: f64,
    slots_per_s: f64,
}

impl Estimator {
    /// Returns the estimator of `user`, whose rate was `initial` before the start; buffers hold
    /// `most_waiting` bits.
    pub fn new(cell: &Cell, user: usize, initial: Rate, most_waiting: u64) -> Self {
        let window = ((cell.window.as_nanos() / cell.slot.as_nanos()) as usize).max(1);
        let each = libm::round(initial.as_bps_f64() * cell.slot.as_secs_f64()) as u64;
        let users = cell.users as usize;
        Estimator {
            user,
            estimate: cell.estimate,
            shadow: Scheduler::new(cell.scheduler, cell.time_constant, cell.slot, users),
            waiting: vec![0; users],
            most_waiting,
            blocks: f64::from(cell.blocks) * cell.received,
            requests: Vec::with_capacity(users),
            samples: vec![each; window],
            sum: each * window as u64,
            left_over: 0.0,
            slots_per_s: 1e9 / cell.slot.as_nanos() as f64,
        }
    }

    /// So many bits arrive for a user.
    pub fn on_arrival(&mut self, user: usize, bits: u64) {
        self.waiting[user] = (self.waiting[user] + bits).min(self.most_waiting);
    }

    /// A slot in which users ask for `requests` and this one is given `given` bits.
    pub fn on_slot(&mut self, slot: u64, requests: &[Request], given: u64) {
        let potential = match self.estimate {
            Estimate::Naive => given,
            Estimate::Hypothetical | Estimate::Truth => self.simulate(requests),
        };
        let slot = (slot % self.samples.len() as u64) as usize;
        self.sum = self.sum - self.samples[slot] + potential;
        self.samples[slot] = potential;
    }

    /// What the user would be given, bits.
    fn simulate(&mut self, requests: &[Request]) -> u64 {
        self.requests.clear();
        self.requests.extend_from_slice(requests);
        if self.estimate == Estimate::Truth {
            for (request, waiting) in self.requests.iter_mut().zip(&self.waiting) {
                request.waiting = *waiting;
            }
        }
        self.requests[self.user].waiting = BACKLOGGED;
        let blocks = self.left_over + self.blocks;
        self.left_over = blocks - libm::floor(blocks);
        let granted = self.shadow.share_out(&self.requests, blocks as u32);
        for (user, waiting) in self.waiting.iter_mut().enumerate() {
            let bits = u64::from(granted[user]) * u64::from(self.requests[user].bits_per_block);
            *waiting = waiting.saturating_sub(bits);
        }
        u64::from(granted[self.user]) * u64::from(self.requests[self.user].bits_per_block)
    }

    /// Returns the user's potential rate: mu.
    pub fn rate(&self) -> Rate {
        Rate::from_bps_f64(self.slots_per_s * self.sum as f64 / self.samples.len() as f64)
    }
}

/// The base station as a user's queue sees it.
pub struct StationView<'a>(pub &'a Estimator);

impl LinkView for StationView<'_> {
    /// The estimate, whose window is the base station's own.
    fn capacity(&mut self, _window: Duration) -> Rate {
        self.0.rate()
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
mod tests {
    use super::super::{Config, Values};
    use super::*;

    /// The first of two users on 50 blocks of 100 bits, 10 % of them sent again; the other has `other` bits
    /// more in each subframe.
    fn rate(estimate: Estimate, other: u64) -> f64 {
        let config = Config::new(Values {
            users: 2,
            estimate,
            window: Duration::from_millis(10),
            ..Values::default()
        })
        .unwrap();
        let mut estimator = Estimator::new(&config.cell(), 0, Rate::from_mbps(1), 1_000_000);
        assert_eq!(estimator.rate(), Rate::from_mbps(1), "before anything is known");
        let requests = [0, other].map(|waiting| Request { bits_per_block: 100, waiting });
        for subframe in 0..1000 {
            estimator.on_arrival(1, other);
            estimator.on_slot(subframe, &requests, 700);
        }
        estimator.rate().as_mbps_f64()
    }

    #[test]
    fn a_user_without_data_learns_what_it_would_be_given() {
        // 700 bits a millisecond.
        assert_eq!(rate(Estimate::Naive, 0), 0.7);
        for estimate in [Estimate::Hypothetical, Estimate::Truth] {
            // Alone: 5000 bits a millisecond, 10 % of them for nothing.
            assert!((rate(estimate, 0) - 4.5).abs() < 1e-6);
            // Beside one that asks for all: a half. Beside one that asks for 1000 bits: the rest.
            assert!((rate(estimate, 5000) - 2.25).abs() < 0.01, "{estimate:?} {}", rate(estimate, 5000));
            assert!((rate(estimate, 1000) - 3.5).abs() < 0.01, "{estimate:?} {}", rate(estimate, 1000));
        }
    }
}
