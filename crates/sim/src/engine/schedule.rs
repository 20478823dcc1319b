//! Who must be woken when: one entry per component, in a total order of (time, sequence number).
//!
//! A packet in flight has no entry; its link or delay line has one for all of them, so there are few.
//! Re-arming to a later time only stores the deadline: the old entry fires early, finds it is too early, and
//! is put back. That turns the commonest case, a retransmission timer pushed back by every ACK, into one
//! store.
//!
//! Entries meet in a knock-out tournament, whose matches lie in one array: a change is played up to the root
//! without a branch that depends on a time, where a heap guesses wrong at every other step. Elements and
//! endpoints have a tournament each, because a few elements have nearly all the events.

use brakelight_core::time::Time;

/// A component: an element or an endpoint, by position.
pub type Component = u32;

/// A time, a sequence number and the component, in this order of weight. The last is there to be found: no
/// two entries have the same sequence number.
type Key = u128;

/// No entry.
const NEVER: Key = Key::MAX;

/// The time of a key; that of [`NEVER`] is `Time::MAX`.
#[inline]
fn time(key: Key) -> Time {
    Time::from_nanos((key >> 64) as u64)
}

/// A tournament: the least of many keys, each of which may change at any time.
#[derive(Clone, Debug)]
struct Tournament {
    /// Match `i` is between the winners of `2 i` and `2 i + 1`; the last half are the contestants. The winner
    /// is at 1.
    keys: Vec<Key>,
    /// How many contestants there is room for: a power of two.
    room: usize,
}

impl Tournament {
    fn new(contestants: usize) -> Self {
        let room = contestants.next_power_of_two();
        Tournament { keys: vec![NEVER; 2 * room], room }
    }

    #[inline]
    fn winner(&self) -> Key {
        self.keys[1]
    }

    #[inline]
    fn get(&self, contestant: usize) -> Key {
        self.keys[self.room + contestant]
    }

    #[inline]
    fn set(&mut self, contestant: usize, key: Key) {
        let mut place = self.room + contestant;
        self.keys[place] = key;
        let mut winner = key;
        while place > 1 {
            winner = winner.min(self.keys[place ^ 1]);
            place /= 2;
            self.keys[place] = winner;
        }
    }
}

/// Bits that tell so many components apart.
fn bits_of(components: usize) -> u32 {
    usize::BITS - components.leading_zeros()
}

/// The deadlines of all components.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The entries of elements, and those of endpoints.
    elements: Tournament,
    endpoints: Tournament,
    /// How many elements there are; endpoints follow them.
    first_endpoint: usize,
    /// When each component really wants to be woken; `Time::MAX` for never.
    deadline: Vec<Time>,
    sequence: u64,
    /// How many bits of a key's lower half are the component's.
    component_bits: u32,
}

impl Schedule {
    /// Returns a schedule for so many elements and endpoints, none of them armed. Elements come first.
    pub fn new(elements: usize, endpoints: usize) -> Self {
        let components = elements + endpoints;
        Schedule {
            elements: Tournament::new(elements),
            endpoints: Tournament::new(endpoints),
            first_endpoint: elements,
            deadline: vec![Time::MAX; components],
            sequence: 0,
            component_bits: bits_of(components),
        }
    }

    /// Makes room for one more element, which follows the others and is not armed. Every endpoint's position
    /// rises by one. The order in which deadlines fire does not change.
    pub fn add_element(&mut self) {
        let (added, bits) = (self.first_endpoint, self.component_bits);
        self.deadline.insert(added, Time::MAX);
        self.first_endpoint += 1;
        self.component_bits = bits_of(self.deadline.len());
        let (elements, endpoints) = (added + 1, self.deadline.len() - added - 1);
        let old = [
            std::mem::replace(&mut self.elements, Tournament::new(elements)),
            std::mem::replace(&mut self.endpoints, Tournament::new(endpoints)),
        ];
        for (index, key) in (0..added).map(|index| (index, old[0].get(index))) {
            self.enter(index, self.renamed(key, bits, index));
        }
        for (index, key) in (0..endpoints).map(|index| (index + elements, old[1].get(index))) {
            self.enter(index, self.renamed(key, bits, index));
        }
    }

    /// The key of the same time and sequence number that names component `index`; `bits` of the old one named
    /// it.
    fn renamed(&self, key: Key, bits: u32, index: usize) -> Key {
        if key == NEVER {
            return NEVER;
        }
        let sequence = key as u64 >> bits;
        key >> 64 << 64 | Key::from(sequence << self.component_bits) | index as Key
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
        if at < time(self.entry(index)) {
            let key = self.next_key(at, component);
            self.enter(index, key);
        }
    }

    /// Returns when the earliest deadline is due, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<(Time, Component)> {
        loop {
            let key = self.elements.winner().min(self.endpoints.winner());
            if key == NEVER {
                return None;
            }
            let component = (key as u64 & ((1 << self.component_bits) - 1)) as Component;
            let index = component as usize;
            let deadline = self.deadline[index];
            if deadline == time(key) {
                return Some((deadline, component));
            }
            let key = if deadline == Time::MAX { NEVER } else { self.next_key(deadline, component) };
            self.enter(index, key);
        }
    }

    /// Takes the entry that `next` returned; its owner arms itself again.
    #[inline]
    pub fn fire(&mut self, component: Component) {
        // The entry stays where it is: nearly every component arms itself again at once, which is one change
        // instead of two. `next` drops it if it does not.
        self.deadline[component as usize] = Time::MAX;
    }

    #[inline]
    fn next_key(&mut self, at: Time, component: Component) -> Key {
        self.sequence += 1;
        Key::from(at.as_nanos()) << 64
            | Key::from(self.sequence << self.component_bits)
            | Key::from(component)
    }

    #[inline]
    fn entry(&self, index: usize) -> Key {
        match index.checked_sub(self.first_endpoint) {
            None => self.elements.get(index),
            Some(endpoint) => self.endpoints.get(endpoint),
        }
    }

    #[inline]
    fn enter(&mut self, index: usize, key: Key) {
        match index.checked_sub(self.first_endpoint) {
            None => self.elements.set(index, key),
            Some(endpoint) => self.endpoints.set(endpoint, key),
        }
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
        let mut schedule = Schedule::new(2, 1);
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
        let mut schedule = Schedule::new(1, 1);
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
        #[test]
        fn one_more_element_changes_no_order(
            armed in prop::collection::vec(prop::option::of(1_u64..20), 5),
            later in prop::collection::vec(prop::option::of(1_u64..20), 5),
            elements in 0_usize..5,
        ) {
            let mut schedule = Schedule::new(elements, 5 - elements);
            for deadlines in [armed, later] {
                for (component, deadline) in (0..).zip(deadlines) {
                    schedule.arm(component, deadline.map(Time::from_nanos));
                }
            }
            let mut grown = schedule.clone();
            // Beyond a power of two, too.
            (0..4).for_each(|_| grown.add_element());
            loop {
                let (next, renamed) = (schedule.next(), grown.next());
                let expected = next.map(|(at, component)| {
                    (at, if (component as usize) < elements { component } else { component + 4 })
                });
                prop_assert_eq!(renamed, expected);
                let (Some((_, component)), Some((_, renamed))) = (next, renamed) else { break };
                schedule.fire(component);
                grown.fire(renamed);
            }
            grown.arm(elements as Component, Some(Time::from_nanos(7)));
            prop_assert_eq!(grown.next(), Some((Time::from_nanos(7), elements as Component)));
        }

        /// Against the obvious model: a list of deadlines, the smallest of which fires.
        #[test]
        fn fires_every_deadline_once_and_in_order(
            operations in prop::collection::vec((0_u32..8, prop::option::of(1_u64..100)), 1..200)
        ) {
            let mut schedule = Schedule::new(3, 5);
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
