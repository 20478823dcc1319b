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

/// Contestants of one match.
const FOUR: usize = 4;

/// Four winners of matches before this one, on one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Match([Key; FOUR]);

/// Four components, which meet in a match of their own.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Leaf {
    /// Their entries.
    keys: [Key; FOUR],
    /// When each really wants to be woken; `Time::MAX` for never.
    deadlines: [Time; FOUR],
}

impl Leaf {
    const EMPTY: Leaf = Leaf { keys: [NEVER; FOUR], deadlines: [Time::MAX; FOUR] };
}

#[inline(always)]
fn least(keys: &[Key; FOUR]) -> Key {
    keys[0].min(keys[1]).min(keys[2].min(keys[3]))
}

/// The deadlines of the components of one kind.
#[derive(Clone, Debug)]
struct Group {
    /// The least of all entries.
    winner: Key,
    /// Component `i` is in leaf `i / 4`.
    leaves: Vec<Leaf>,
    /// The matches between the winners of leaves: those of matches `4 i + 1` to `4 i + 4` meet in match `i`,
    /// and leaf `l` stands for match `inner.len() + l`. None while there is one leaf.
    inner: Vec<Match>,
    components: usize,
}

impl Group {
    fn new(components: usize) -> Self {
        assert!(components < 1 << POSITION_BITS, "{components} components are too many");
        // Rounds are added before the first until it has room.
        let (mut inner, mut first) = (0, 1);
        while FOUR * first < components {
            inner += first;
            first *= FOUR;
        }
        Group {
            winner: NEVER,
            leaves: vec![Leaf::EMPTY; first],
            inner: vec![Match([NEVER; FOUR]); inner],
            components,
        }
    }

    /// Makes room for one more component, which is not armed.
    fn add(&mut self) {
        let mut grown = Group::new(self.components + 1);
        for (number, leaf) in self.leaves.iter().enumerate().take(self.components.div_ceil(FOUR)) {
            grown.leaves[number] = leaf.clone();
            grown.climb(number);
        }
        *self = grown;
    }

    #[inline(always)]
    fn arm(&mut self, position: usize, at: Time, sequence: &mut u64) {
        let leaf = &mut self.leaves[position / FOUR];
        if leaf.deadlines[position % FOUR] == at {
            return;
        }
        leaf.deadlines[position % FOUR] = at;
        if at < time(leaf.keys[position % FOUR]) {
            self.enter_apart(position, at, sequence);
        }
    }

    #[inline(never)]
    fn enter_apart(&mut self, position: usize, at: Time, sequence: &mut u64) {
        self.enter(position, at, sequence);
    }

    /// Puts the deadline `at` of a component in the place of its entry.
    #[inline(always)]
    fn enter(&mut self, position: usize, at: Time, sequence: &mut u64) {
        let key = if at == Time::MAX {
            NEVER
        } else {
            *sequence += 1;
            Key::from(at.as_nanos()) << 64 | Key::from(*sequence << POSITION_BITS | position as u64)
        };
        let leaf = &mut self.leaves[position / FOUR];
        leaf.keys[position % FOUR] = key;
        if self.inner.is_empty() {
            self.winner = least(&leaf.keys);
        } else {
            self.climb(position / FOUR);
        }
    }

    /// Plays the matches that leaf `number` takes part in.
    #[inline(never)]
    fn climb(&mut self, number: usize) {
        let mut winner = least(&self.leaves[number].keys);
        let mut place = self.inner.len() + number;
        while place > 0 {
            let (above, contestant) = ((place - 1) / FOUR, (place - 1) % FOUR);
            let Match(four) = &mut self.inner[above];
            four[contestant] = winner;
            winner = least(four);
            place = above;
        }
        self.winner = winner;
    }

    /// Replaces the entry that won, if it is not at its component's deadline. Returns when the component at
    /// this position is due, otherwise.
    #[inline(always)]
    fn check(&mut self, sequence: &mut u64) -> Option<(Time, usize)> {
        let (at, position) = (time(self.winner), position(self.winner));
        let deadline = self.leaves[position / FOUR].deadlines[position % FOUR];
        if deadline == at {
            return Some((at, position));
        }
        self.enter_apart(position, deadline, sequence);
        None
    }

    /// The entry of a component, which won, fires. It stays where it is, before all others, until `settle`.
    #[inline(always)]
    fn fire(&mut self, position: usize) {
        self.leaves[position / FOUR].deadlines[position % FOUR] = Time::MAX;
    }

    /// Sets when a component whose entry fired wants to be woken next.
    #[inline(always)]
    fn settle(&mut self, position: usize, at: Time, sequence: &mut u64) {
        let leaf = &mut self.leaves[position / FOUR];
        leaf.deadlines[position % FOUR] = at;
        if at != time(leaf.keys[position % FOUR]) {
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

    /// Sets when element number `position` wants to be woken; `Time::MAX` for never.
    #[inline(always)]
    pub fn arm_element(&mut self, position: usize, at: Time) {
        self.elements.arm(position, at, &mut self.sequence);
    }

    /// Sets when endpoint number `position` wants to be woken; `Time::MAX` for never.
    #[inline(always)]
    pub fn arm_endpoint(&mut self, position: usize, at: Time) {
        self.endpoints.arm(position, at, &mut self.sequence);
    }

    /// Returns when the earliest deadline is due, if there is one.
    #[inline(always)]
    pub fn next(&mut self) -> Option<(Time, Component)> {
        loop {
            let (element, endpoint) = (self.elements.winner, self.endpoints.winner);
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

    /// Takes the entry of an element that `next` returned. It stays before all others until `settle_element`
    /// is called.
    #[inline(always)]
    pub fn fire_element(&mut self, position: usize) {
        self.elements.fire(position);
    }

    /// Takes the entry of an endpoint that `next` returned. It stays before all others until
    /// `settle_endpoint` is called.
    #[inline(always)]
    pub fn fire_endpoint(&mut self, position: usize) {
        self.endpoints.fire(position);
    }

    /// Sets when an element whose entry fired wants to be woken next; `Time::MAX` for never.
    #[inline(always)]
    pub fn settle_element(&mut self, position: usize, at: Time) {
        self.elements.settle(position, at, &mut self.sequence);
    }

    /// Sets when an endpoint whose entry fired wants to be woken next; `Time::MAX` for never.
    #[inline(always)]
    pub fn settle_endpoint(&mut self, position: usize, at: Time) {
        self.endpoints.settle(position, at, &mut self.sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use Component::{Element, Endpoint};

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn at_or_never(nanos: Option<u64>) -> Time {
        nanos.map_or(Time::MAX, at)
    }

    fn arm(schedule: &mut Schedule, component: Component, at: Time) {
        match component {
            Element(position) => schedule.arm_element(position, at),
            Endpoint(position) => schedule.arm_endpoint(position, at),
        }
    }

    fn fire(schedule: &mut Schedule, component: Component) {
        match component {
            Element(position) => schedule.fire_element(position),
            Endpoint(position) => schedule.fire_endpoint(position),
        }
    }

    fn settle(schedule: &mut Schedule, component: Component, at: Time) {
        match component {
            Element(position) => schedule.settle_element(position, at),
            Endpoint(position) => schedule.settle_endpoint(position, at),
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
            fire(&mut schedule, component);
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
        schedule.arm_endpoint(0, Time::MAX);
        assert_eq!(schedule.next(), Some((Time::from_nanos(30), Element(0))));
        schedule.arm_element(0, Time::MAX);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn what_fired_comes_after_what_was_armed_for_the_same_time_meanwhile() {
        let mut schedule = Schedule::new(2, 0);
        schedule.arm_element(0, at(5));
        schedule.arm_element(1, at(9));
        schedule.fire_element(0);
        schedule.arm_element(1, at(7));
        schedule.settle_element(0, at(7));
        assert_eq!(schedule.next(), Some((Time::from_nanos(7), Element(1))));
        schedule.fire_element(1);
        schedule.settle_element(1, Time::MAX);
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
                    arm(&mut schedule, nth(number, elements), at_or_never(deadline));
                }
            }
            let mut grown = schedule.clone();
            // Beyond a power of four, too.
            (0..14).for_each(|_| grown.add_element());
            loop {
                let (next, same) = (schedule.next(), grown.next());
                prop_assert_eq!(same, next);
                let Some((_, component)) = next else { break };
                fire(&mut schedule, component);
                fire(&mut grown, component);
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
                arm(&mut schedule, nth(number, elements), at_or_never(deadline));
                model[number] = deadline;
                if number % 3 == 0 && let Some((time, fired)) = schedule.next() {
                    let earliest = model.iter().flatten().min().copied();
                    prop_assert_eq!(Some(time.as_nanos()), earliest);
                    let position = match fired { Element(position) => position, Endpoint(position) => elements + position };
                    prop_assert_eq!(model[position], earliest);
                    fire(&mut schedule, fired);
                    now = time.as_nanos();
                    model[position] = settles.then(|| now + ahead.unwrap_or(1));
                    if settles {
                        settle(&mut schedule, fired, at_or_never(model[position]));
                    }
                }
            }
            prop_assert_eq!(schedule.next().map(|(time, _)| time.as_nanos()), model.iter().flatten().min().copied());
        }
    }
}
