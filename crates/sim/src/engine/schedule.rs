//! Who must be woken when: one entry per component, in a total order of (time, sequence number).
//!
//! A packet in flight has no entry; its link or delay line has one for all of them, so the heap stays small. Re-arming
//! to a later time only stores the deadline: the old entry fires early, finds it is too early, and is put back. That
//! turns the commonest case, a retransmission timer pushed back by every ACK, into one store.

use brakelight_core::time::Time;

/// A component: an element or an endpoint, by position.
pub type Component = u32;

/// Children per node. Four keys lie in two cache lines, so that ten thousand flows are seven steps apart, not fourteen.
const ARITY: usize = 4;

/// Not in the heap.
const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Time,
    sequence: u64,
}

/// An indexed heap of deadlines.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Heap order; `keys` moves with it, so that sifting stays within one array.
    heap: Vec<(Key, Component)>,
    /// Where each component stands in `heap`.
    position: Vec<u32>,
    /// When each component really wants to be woken; `Time::MAX` for never.
    deadline: Vec<Time>,
    sequence: u64,
}

impl Schedule {
    /// A schedule for `components` components, none of them armed.
    pub fn new(components: usize) -> Self {
        Schedule {
            heap: Vec::with_capacity(components),
            position: vec![ABSENT; components],
            deadline: vec![Time::MAX; components],
            sequence: 0,
        }
    }

    /// Sets when `component` wants to be woken; `None` for never.
    #[inline]
    pub fn arm(&mut self, component: Component, at: Option<Time>) {
        let at = at.unwrap_or(Time::MAX);
        let index = component as usize;
        if self.deadline[index] == at {
            return;
        }
        self.deadline[index] = at;
        let position = self.position[index];
        if position == ABSENT {
            if at != Time::MAX {
                self.insert(component, at);
            }
            return;
        }
        let slot = position as usize;
        if at < self.heap[slot].0.at {
            self.heap[slot].0 = self.next_key(at);
            self.sift_up(slot);
        }
    }

    /// When the earliest deadline is due, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<(Time, Component)> {
        loop {
            let &(key, component) = self.heap.first()?;
            let deadline = self.deadline[component as usize];
            if deadline == key.at {
                return Some((key.at, component));
            }
            if deadline == Time::MAX {
                self.remove_first();
            } else {
                self.heap[0].0 = self.next_key(deadline);
                self.sift_down(0);
            }
        }
    }

    /// Takes the entry that `next` returned off the heap; its owner arms itself again.
    #[inline]
    pub fn fire(&mut self, component: Component) {
        debug_assert_eq!(self.heap[0].1, component, "only the first entry fires");
        // The entry stays where it is: nearly every component arms itself again at once, which is one sift instead of
        // a removal and an insertion. `next` drops it if it does not.
        self.deadline[component as usize] = Time::MAX;
    }

    fn next_key(&mut self, at: Time) -> Key {
        self.sequence += 1;
        Key { at, sequence: self.sequence }
    }

    fn insert(&mut self, component: Component, at: Time) {
        let key = self.next_key(at);
        self.heap.push((key, component));
        let last = self.heap.len() - 1;
        self.position[component as usize] = last as u32;
        self.sift_up(last);
    }

    fn remove_first(&mut self) {
        let (_, component) = self.heap.swap_remove(0);
        self.position[component as usize] = ABSENT;
        if !self.heap.is_empty() {
            self.position[self.heap[0].1 as usize] = 0;
            self.sift_down(0);
        }
    }

    fn sift_up(&mut self, mut slot: usize) {
        let entry = self.heap[slot];
        while slot > 0 {
            let parent = (slot - 1) / ARITY;
            if self.heap[parent].0 <= entry.0 {
                break;
            }
            self.place(slot, self.heap[parent]);
            slot = parent;
        }
        self.place(slot, entry);
    }

    fn sift_down(&mut self, mut slot: usize) {
        let entry = self.heap[slot];
        loop {
            let first = ARITY * slot + 1;
            let Some(children) = self.heap.get(first..(first + ARITY).min(self.heap.len())) else { break };
            let Some((offset, least)) = children.iter().enumerate().min_by_key(|(_, child)| child.0) else {
                break;
            };
            if entry.0 <= least.0 {
                break;
            }
            let least = *least;
            self.place(slot, least);
            slot = first + offset;
        }
        self.place(slot, entry);
    }

    #[inline]
    fn place(&mut self, slot: usize, entry: (Key, Component)) {
        self.heap[slot] = entry;
        self.position[entry.1 as usize] = slot as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Option<Time> {
        Some(Time::from_nanos(nanos))
    }

    #[test]
    fn equal_times_fire_in_the_order_they_were_armed() {
        let mut schedule = Schedule::new(3);
        for component in [2, 0, 1] {
            schedule.arm(component, at(5));
        }
        let mut order = vec![];
        while let Some((_, component)) = schedule.next() {
            schedule.fire(component);
            order.push(component);
        }
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn a_deadline_moved_later_does_not_fire_early() {
        let mut schedule = Schedule::new(2);
        schedule.arm(0, at(10));
        schedule.arm(1, at(20));
        schedule.arm(0, at(30));
        assert_eq!(schedule.next(), Some((Time::from_nanos(20), 1)));
        schedule.arm(1, None);
        assert_eq!(schedule.next(), Some((Time::from_nanos(30), 0)));
        schedule.arm(0, None);
        assert_eq!(schedule.next(), None);
    }

    proptest! {
        /// Against the obvious model: a list of deadlines, the smallest of which fires.
        #[test]
        fn fires_every_deadline_once_and_in_order(
            operations in prop::collection::vec((0_u32..8, prop::option::of(1_u64..100)), 1..200)
        ) {
            let mut schedule = Schedule::new(8);
            let mut model: [Option<u64>; 8] = [None; 8];
            let mut now = 0;
            for (component, ahead) in operations {
                let deadline = ahead.map(|ahead| now + ahead);
                schedule.arm(component, deadline.map(Time::from_nanos));
                model[component as usize] = deadline;
                if component % 3 == 0 && let Some((time, fired)) = schedule.next() {
                    let earliest = model.iter().flatten().min().copied();
                    prop_assert_eq!(Some(time.as_nanos()), earliest);
                    prop_assert_eq!(model[fired as usize], earliest);
                    schedule.fire(fired);
                    model[fired as usize] = None;
                    now = time.as_nanos();
                }
            }
            prop_assert_eq!(schedule.next().map(|(time, _)| time.as_nanos()), model.iter().flatten().min().copied());
        }
    }
}
