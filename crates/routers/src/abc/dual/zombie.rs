//! How many flows a queue has, by a zombie list (Ott, Lakshman, Wong 1999): what RCP's way of weighting asks.
//!
//! ```text
//! each packet is compared with one of M packets of the past, drawn at random; another flow's is replaced by
//!   chance p
//! P += (p / M) (hit - P)          N = 1 / P          ott99 section 2
//! ```
//!
//! N is the number of flows if all are equally fast, and fewer otherwise: 1 over the sum of the squares of
//! their parts. M is 1000 and p is 0.25, as there and in the ABC authors' router.

use alloc::vec::Vec;

use brakelight_core::packet::FlowId;
use brakelight_core::random::Random;

use super::key;

const ZOMBIES: usize = 1000;
const REPLACE: f64 = 0.25;

/// A zombie list, and how often it was hit.
#[derive(Clone, Debug)]
pub(super) struct ZombieList {
    zombies: Vec<u32>,
    hits: f64,
    random: Random,
}

impl ZombieList {
    /// An empty list with random numbers of its own.
    pub(super) fn new(random: &mut Random) -> Self {
        let own = Random::stream(random.bits(), "zombie list");
        // One flow until more are known.
        ZombieList { zombies: Vec::with_capacity(ZOMBIES), hits: 1.0, random: own }
    }

    pub(super) fn on_packet(&mut self, flow: FlowId) {
        let key = key(flow);
        if self.zombies.len() < ZOMBIES {
            self.zombies.push(key);
        }
        let index = (self.random.uniform() * self.zombies.len() as f64) as usize;
        let hit = self.zombies[index] == key;
        self.hits += REPLACE / ZOMBIES as f64 * (f64::from(u8::from(hit)) - self.hits);
        if !hit && self.random.chance(REPLACE) {
            self.zombies[index] = key;
        }
    }

    /// N.
    pub(super) fn flows(&self) -> f64 {
        1.0 / self.hits.max(1.0 / (4 * ZOMBIES) as f64)
    }
}
