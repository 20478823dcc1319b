//! Who must be woken when: one entry per component, in a total order of (time, sequence number).
//!
//! A packet in flight has no entry; its link or delay line has one for all of them, so there are few.
//! Re-arming to a later time only stores the deadline: the old entry fires early, finds it is too early, and
//! is put back. That turns the commonest case, a retransmission timer pushed back by every ACK, into one
//! store.
//!
//! Entries meet in a knock-out tournament of four a match: a change is played up to the root without a branch
//! that depends on a time, where a heap guesses wrong at every other step, and every match is one cache line.
//! Elements and endpoints have a tournament each, because a few elements have nearly all the events.

use brakelight_core::time::Time;

/// A component, by its position among those of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Component {
    /// A path element.
    Element(usize),
    /// An endpoint.
    Endpoint(usize),
}

/// A time, a sequence number and the position of a component, in this order of weight. The last is there to
/// be found: no two entries have the same sequence number.
type Key = u128;

/// No entry.
const NEVER: Key = Key::MAX;

/// Bits of a key that are the position. The sequence number has the other 40 below the time: ten million
/// events a second for a day.
const POSITION_BITS: u32 = 24;

/// The time of a key; that of [`NEVER`] is `Time::MAX`.
#[inline]
fn time(key: Key) -> Time {
    Time::from_nanos((key >> 64) as u64)
}

#[inline]
fn position(key: Key) -> usize {
    key as usize & ((1 << POSITION_BITS) - 1)
}

/// Four contestants, on one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Match([Key; 4]);

/// A tournament: the least of many keys, each of which may change at any time.
#[derive(Clone, Debug)]
struct Tournament {
    /// The winners of matches `4 i + 1` to `4 i + 4` meet in match `i`; the contestants start in the matches
    /// behind the first `inner`.
    matches: Vec<Match>,
    inner: usize,
    winner: Key,
}

impl Tournament {
    fn new(contestants: usize) -> Self {
        // Rounds are added before the first until it has room.
        let (mut inner, mut first) = (0, 1);
        while 4 * first < contestants {
            inner += first;
            first *= 4;
        }
        Tournament { matches: vec![Match([NEVER; 4]); inner + first], inner, winner: NEVER }
    }

    #[inline]
    fn get(&self, contestant: usize) -> Key {
        self.matches[self.inner + contestant / 4].0[contestant % 4]
    }

    #[inline]
    fn set(&mut self, contestant: usize, key: Key) {
        let (mut number, mut place, mut winner) = (self.inner + contestant / 4, contestant % 4, key);
        loop {
            let Match(four) = &mut self.matches[number];
            four[place] = winner;
            winner = four[0].min(four[1]).min(four[2].min(four[3]));
            if number == 0 {
                self.winner = winner;
                return;
            }
            (number, place) = ((number - 1) / 4, (number - 1) % 4);
        }
    }
}

/// The deadlines of the components of one kind.
#[derive(Clone, Debug)]
struct Group {
    entries: Tournament,
    /// When each component really wants to be woken; `Time::MAX` for never.
    deadlines: Vec<Time>,
}

impl Group {
    fn new(components: usize) -> Self {
        assert!(components < 1 << POSITION_BITS, "{components} components are too many");
        Group { entries: Tournament::new(components), deadlines: vec![Time::MAX; components] }
    }

    /// Makes room for one more component, which is not armed.
    fn add(&mut self) {
        let before = self.deadlines.len();
        self.deadlines.push(Time::MAX);
        let mut entries = Tournament::new(before + 1);
        (0..before).for_each(|position| entries.set(position, self.entries.get(position)));
        self.entries = entries;
    }

    #[inline]
    fn arm(&mut self, position: usize, at: Time, sequence: &mut u64) {
        if self.deadlines[position] == at {
            return;
        }
        self.deadlines[position] = at;
        if at < time(self.entries.get(position)) {
            self.enter(position, at, sequence);
        }
    }

    /// Puts the deadline `at` of a component in the place of its entry.
    #[inline(never)]
    fn enter(&mut self, position: usize, at: Time, sequence: &mut u64) {
        let key = if at == Time::MAX {
            NEVER
        } else {
            *sequence += 1;
            Key::from(at.as_nanos()) << 64 | Key::from(*sequence << POSITION_BITS | position as u64)
        };
        self.entries.set(position, key);
    }

    /// Replaces the entry that won, if it is not at its component's deadline. Returns when the component at
    /// this position is due, otherwise.
    #[inline]
    fn check(&mut self, sequence: &mut u64) -> Option<(Time, usize)> {
        let (at, position) = (time(self.entries.winner), position(self.entries.winner));
        let deadline = self.deadlines[position];
        if deadline == at {
            return Some((at, position));
        }
        self.enter(position, deadline, sequence);
        None
    }

    /// The entry of a component, which won, fires. It stays where it is, before all others, until `settle`.
    #[inline]
    fn fire(&mut self, position: usize) {
        self.deadlines[position] = Time::MAX;
    }

    /// Sets when a component whose entry fired wants to be woken next.
    #[inline]
    fn settle(&mut self, position: usize, at: Time, sequence: &mut u64) {
        self.deadlines[position] = at;
        if at != time(self.entries.get(position)) {
            self.enter(position, at, sequence);
        }
    }
}

/// The deadlines of all components.
#[derive(Clone, Debug)]
pub struct Schedule {
    elements: Group,
    endpoints: Group,
    /// The sequence number of the newest entry.
    sequence: u64,
}

impl Schedule {
    /// Returns a schedule for so many elements and endpoints, none of them armed.
    pub fn new(elements: usize, endpoints: usize) -> Self {
        Schedule { elements: Group::new(elements), endpoints: Group::new(endpoints), sequence: 0 }
    }

    /// Makes room for one more element, which is not armed. The order in which deadlines fire does not
    /// change.
    pub fn add_element(&mut self) {
        self.elements.add();
    }

    /// Sets when element number `position` wants to be woken; `None` for never.
    #[inline]
    pub fn arm_element(&mut self, position: usize, at: Option<Time>) {
        self.elements.arm(position, at.unwrap_or(Time::MAX), &mut self.sequence);
    }

    /// Sets when endpoint number `position` wants to be woken; `None` for never.
    #[inline]
    pub fn arm_endpoint(&mut self, position: usize, at: Option<Time>) {
        self.endpoints.arm(position, at.unwrap_or(Time::MAX), &mut self.sequence);
    }

    /// Returns when the earliest deadline is due, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<(Time, Component)> {
        loop {
            let (element, endpoint) = (self.elements.entries.winner, self.endpoints.entries.winner);
            if element < endpoint {
                if let Some((at, position)) = self.elements.check(&mut self.sequence) {
                    return Some((at, Component::Element(position)));
                }
            } else if endpoint == NEVER {
                return None;
            } else if let Some((at, position)) = self.endpoints.check(&mut self.sequence) {
                return Some((at, Component::Endpoint(position)));
            }
        }
    }

    /// Takes the entry that `next` returned, which stays before all others until `settle` is called.
    #[inline]
    pub fn fire(&mut self, component: Component) {
        match component {
            Component::Element(position) => self.elements.fire(position),
            Component::Endpoint(position) => self.endpoints.fire(position),
        }
    }

    /// Sets when `component`, whose entry fired, wants to be woken next; `None` for never.
    #[inline]
    pub fn settle(&mut self, component: Component, at: Option<Time>) {
        let at = at.unwrap_or(Time::MAX);
        match component {
            Component::Element(position) => self.elements.settle(position, at, &mut self.sequence),
            Component::Endpoint(position) => self.endpoints.settle(position, at, &mut self.sequence),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use Component::{Element, Endpoint};

    fn at(nanos: u64) -> Option<Time> {
        Some(Time::from_nanos(nanos))
    }

    fn arm(schedule: &mut Schedule, component: Component, at: Option<Time>) {
        match component {
            Element(position) => schedule.arm_element(position, at),
            Endpoint(position) => schedule.arm_endpoint(position, at),
        }
    }

    /// Component `number` of a schedule whose first `elements` components are elements.
    fn nth(number: usize, elements: usize) -> Component {
        number.checked_sub(elements).map_or(Element(number), Endpoint)
    }

    #[test]
    fn equal_times_fire_in_the_order_they_were_armed() {
        let mut schedule = Schedule::new(2, 1);
        for component in [Endpoint(0), Element(0), Element(1)] {
            arm(&mut schedule, component, at(5));
        }
        let mut order = vec![];
        while let Some((_, component)) = schedule.next() {
            schedule.fire(component);
            order.push(component);
        }
        assert_eq!(order, [Endpoint(0), Element(0), Element(1)]);
    }

    #[test]
    fn a_deadline_moved_later_does_not_fire_early() {
        let mut schedule = Schedule::new(1, 1);
        schedule.arm_element(0, at(10));
        schedule.arm_endpoint(0, at(20));
        schedule.arm_element(0, at(30));
        assert_eq!(schedule.next(), Some((Time::from_nanos(20), Endpoint(0))));
        schedule.arm_endpoint(0, None);
        assert_eq!(schedule.next(), Some((Time::from_nanos(30), Element(0))));
        schedule.arm_element(0, None);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn what_fired_comes_after_what_was_armed_for_the_same_time_meanwhile() {
        let mut schedule = Schedule::new(2, 0);
        schedule.arm_element(0, at(5));
        schedule.arm_element(1, at(9));
        schedule.fire(Element(0));
        schedule.arm_element(1, at(7));
        schedule.settle(Element(0), at(7));
        assert_eq!(schedule.next(), Some((Time::from_nanos(7), Element(1))));
        schedule.fire(Element(1));
        schedule.settle(Element(1), None);
        assert_eq!(schedule.next(), Some((Time::from_nanos(7), Element(0))));
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
                for (number, deadline) in deadlines.into_iter().enumerate() {
                    arm(&mut schedule, nth(number, elements), deadline.map(Time::from_nanos));
                }
            }
            let mut grown = schedule.clone();
            // Beyond a power of four, too.
            (0..14).for_each(|_| grown.add_element());
            loop {
                let (next, same) = (schedule.next(), grown.next());
                prop_assert_eq!(same, next);
                let Some((_, component)) = next else { break };
                schedule.fire(component);
                grown.fire(component);
            }
            grown.arm_element(elements, at(7));
            prop_assert_eq!(grown.next(), Some((Time::from_nanos(7), Element(elements))));
        }

        /// Against the obvious model: a list of deadlines, the smallest of which fires.
        #[test]
        fn fires_every_deadline_once_and_in_order(
            elements in 0_usize..30,
            operations in prop::collection::vec((0_usize..30, prop::option::of(1_u64..100), any::<bool>()), 1..200)
        ) {
            let mut schedule = Schedule::new(elements, 30 - elements);
            let mut model: [Option<u64>; 30] = [None; 30];
            let mut now = 0;
            for (number, ahead, settles) in operations {
                let deadline = ahead.map(|ahead| now + ahead);
                arm(&mut schedule, nth(number, elements), deadline.map(Time::from_nanos));
                model[number] = deadline;
                if number % 3 == 0 && let Some((time, fired)) = schedule.next() {
                    let earliest = model.iter().flatten().min().copied();
                    prop_assert_eq!(Some(time.as_nanos()), earliest);
                    let position = match fired { Element(position) => position, Endpoint(position) => elements + position };
                    prop_assert_eq!(model[position], earliest);
                    schedule.fire(fired);
                    now = time.as_nanos();
                    model[position] = settles.then(|| now + ahead.unwrap_or(1));
                    if settles {
                        schedule.settle(fired, model[position].map(Time::from_nanos));
                    }
                }
            }
            prop_assert_eq!(schedule.next().map(|(time, _)| time.as_nanos()), model.iter().flatten().min().copied());
        }
    }
}
