//! Space-Saving (Metwally, Agrawal, El Abbadi 2005): which of many keys weigh most, with m counters and no
//! more.
//!
//! ```text
//! weight w of a key that has a counter:     count += w
//! of another, while a counter is free:      count  = w,  error = 0
//! of another, otherwise:                    the smallest counter is taken: error = its count, count += w
//!
//! count - error <= true weight <= count         error <= smallest count <= N / m  metwally05 lemmas 3.3, 3.4
//! a key that weighs more than N / m has a counter                                 metwally05 theorem 3.5
//! ```
//!
//! N is the sum of all weights. Everything is linear in the weights, so the bounds outlive
//! [`SpaceSaving::scale`], which makes the past count less.
//!
//! A weight costs one look-up in a table of fixed size, and O(log m) at most to find the counter's new place
//! in a heap; memory is O(m), taken when it is made. Deviation: the paper keeps counters of equal count in
//! buckets, which gives O(1) for weights of one, but weights here are bytes.

use alloc::vec;
use alloc::vec::Vec;

/// The counter of one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// The key.
    pub key: u32,
    /// Its weight at most.
    pub count: f64,
    /// What of that may have been others'.
    pub error: f64,
}

impl Counter {
    /// Returns the key's weight at least.
    pub fn certain(&self) -> f64 {
        self.count - self.error
    }
}

/// The Space-Saving summary: a fixed number of counters.
#[derive(Clone, Debug)]
pub struct SpaceSaving {
    most: usize,
    counters: Vec<Counter>,
    /// Counters by count, the smallest first.
    heap: Vec<u32>,
    /// Where each counter stands in the heap.
    places: Vec<u32>,
    /// Counters by key: open addressing, linear probing, at most half full.
    table: Vec<u32>,
    shift: u32,
}

const FREE: u32 = u32::MAX;

impl SpaceSaving {
    /// Returns a summary without weights, with room for `counters` keys.
    ///
    /// # Panics
    /// If `counters` is zero or above 2^24.
    pub fn new(counters: usize) -> Self {
        assert!((1..=1 << 24).contains(&counters), "between one counter and 2^24");
        let slots = (2 * counters).next_power_of_two().max(4);
        SpaceSaving {
            most: counters,
            counters: Vec::with_capacity(counters),
            heap: Vec::with_capacity(counters),
            places: Vec::with_capacity(counters),
            table: vec![FREE; slots],
            shift: u32::BITS - slots.trailing_zeros(),
        }
    }

    /// `key` weighs `weight` more; not negative.
    pub fn add(&mut self, key: u32, weight: f64) {
        let slot = self.slot(key);
        let counter = self.table[slot];
        if counter != FREE {
            self.counters[counter as usize].count += weight;
            self.sink(self.places[counter as usize] as usize);
        } else if self.counters.len() < self.most {
            let new = self.counters.len() as u32;
            self.counters.push(Counter { key, count: weight, error: 0.0 });
            self.places.push(self.heap.len() as u32);
            self.heap.push(new);
            self.table[slot] = new;
            self.rise(self.heap.len() - 1);
        } else {
            let smallest = self.heap[0];
            let taken = &mut self.counters[smallest as usize];
            let old = taken.key;
            *taken = Counter { key, count: taken.count + weight, error: taken.count };
            self.forget(old);
            let slot = self.slot(key);
            self.table[slot] = smallest;
            self.sink(0);
        }
    }

    /// Returns what is known of `key`, if it has a counter.
    pub fn get(&self, key: u32) -> Option<Counter> {
        match self.table[self.slot(key)] {
            FREE => None,
            counter => Some(self.counters[counter as usize]),
        }
    }

    /// Returns all counters, in no particular order.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Multiplies every weight so far by `factor`, between 0 and 1.
    pub fn scale(&mut self, factor: f64) {
        for counter in &mut self.counters {
            counter.count *= factor;
            counter.error *= factor;
        }
    }

    fn home(&self, key: u32) -> usize {
        // Fibonacci hashing: keys are often small numbers or multiples of something.
        (key.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }

    /// Where in the table `key` is, or the free slot where it would be put.
    fn slot(&self, key: u32) -> usize {
        let mut slot = self.home(key);
        while self.table[slot] != FREE && self.counters[self.table[slot] as usize].key != key {
            slot = (slot + 1) & (self.table.len() - 1);
        }
        slot
    }

    /// Takes `key`, whose counter already belongs to another, out of the table, and closes the gap.
    fn forget(&mut self, key: u32) {
        let mask = self.table.len() - 1;
        let taken = self.heap[0];
        let mut gap = self.home(key);
        while self.table[gap] != taken {
            gap = (gap + 1) & mask;
        }
        let mut next = gap;
        loop {
            next = (next + 1) & mask;
            let counter = self.table[next];
            if counter == FREE {
                break;
            }
            let home = self.home(self.counters[counter as usize].key);
            // It may move into the gap unless its home lies behind that.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(gap) & mask {
                self.table[gap] = counter;
                gap = next;
            }
        }
        self.table[gap] = FREE;
    }

    fn count_at(&self, place: usize) -> f64 {
        self.counters[self.heap[place] as usize].count
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one] as usize] = one as u32;
        self.places[self.heap[other] as usize] = other as u32;
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.count_at(parent) <= self.count_at(place) {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let child = if right < self.heap.len() && self.count_at(right) < self.count_at(left) {
                right
            } else {
                left
            };
            if self.count_at(place) <= self.count_at(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

#[cfg(test)]
mod tests;
