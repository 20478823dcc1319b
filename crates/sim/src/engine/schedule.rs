//! Who must be woken when: one entry per component, in a total order of (time, sequence number).
//!
//! A packet in flight has no entry; its link or delay line has one for all of them, so there are few.
//! Re-arming to a later time only stores the deadline: the old entry fires early, finds it is too early, and
//! is put back. That turns the commonest case, a retransmission timer pushed back by every ACK, into one
//! store.
//!
//! Entries meet in a knock-out tournament of four a match: a change is played up to the final without a
//! branch that depends on a time, where a heap guesses wrong at every other step, and every match is one
//! cache line. The final is between four, or between eight where that saves a round. Elements and endpoints
//! have a tournament each, because a few elements have nearly all the events.
//!
//! An endpoint's entry is often for a moment ahead, when an ACK leaves, and then for its retransmission timer
//! again. So the next of such moments has a place beside the tournament, where the endpoint keeps its old
//! contestant meanwhile. A contestant may be earlier than the entry it stands for, and is replaced when it
//! wins.

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

/// Counts the entries, so that each is later than those before it at the same time.
#[derive(Clone, Debug, Default)]
struct Sequence(u64);

impl Sequence {
    /// Returns a new entry of the component at `position`; [`NEVER`] where `at` is `Time::MAX`.
    #[inline(always)]
    fn entry(&mut self, position: usize, at: Time) -> Key {
        if at == Time::MAX {
            return NEVER;
        }
        self.0 += 1;
        Key::from(at.as_nanos()) << 64 | Key::from(self.0 << POSITION_BITS | position as u64)
    }
}

/// Contestants of one match.
const FOUR: usize = 4;

/// Four contestants, on one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Match([Key; FOUR]);

impl Match {
    const EMPTY: Match = Match([NEVER; FOUR]);

    #[inline(always)]
    fn winner(&self) -> Key {
        let Match(keys) = self;
        keys[0].min(keys[1]).min(keys[2].min(keys[3]))
    }
}

/// Contestants of the largest final.
const EIGHT: usize = 8;

/// Finds the least of one key per component.
#[derive(Clone, Debug)]
struct Tournament {
    winner: Key,
    /// The first round: component `i` is in match `i / 4`.
    first: Vec<Match>,
    /// The rounds between the first and the final, the last of them first. The winner of match `i` goes to
    /// the final where `i` is less than `finalists`, and to match `(i - finalists) / 4` otherwise. Match `f`
    /// of the first round stands for match `later.len() + f`.
    later: Vec<Match>,
    /// Four, or eight. One where the first round is one match, which is the final then.
    finalists: usize,
    /// Apart, so that whoever allocates a simulation need not align it as a match is aligned.
    last: Box<[Match; EIGHT / FOUR]>,
}

impl Tournament {
    fn new(components: usize) -> Self {
        assert!(components < 1 << POSITION_BITS, "{components} components are too many");
        let matches = components.div_ceil(FOUR).max(1);
        let (finalists, later) = Self::rounds(matches);
        let empty = |matches| vec![Match::EMPTY; matches];
        let last = Box::new([Match::EMPTY, Match::EMPTY]);
        Tournament { winner: NEVER, first: empty(matches), later: empty(later), finalists, last }
    }

    /// Returns how many meet in the final after a first round of so many matches, and how many matches lie
    /// between.
    fn rounds(matches: usize) -> (usize, usize) {
        if matches <= 1 {
            return (1, 0);
        }
        // Each round quarters the matches. Where they are an odd power of two, a final of eight takes the
        // factor of two that is left; only two matches meet in a final of four.
        let log2 = matches.next_power_of_two().trailing_zeros();
        let finalists = if log2 == 1 || log2.is_multiple_of(2) { FOUR } else { EIGHT };
        let (mut later, mut round) = (0, finalists);
        while round < matches {
            later += round;
            round *= FOUR;
        }
        (finalists, later)
    }

    #[inline(always)]
    fn key(&self, position: usize) -> Key {
        self.first[position / FOUR].0[position % FOUR]
    }

    /// Replaces the key of a component.
    #[inline(always)]
    fn replace(&mut self, position: usize, key: Key) {
        let entered = &mut self.first[position / FOUR];
        entered.0[position % FOUR] = key;
        self.winner = entered.winner();
        if self.finalists > 1 {
            self.climb(position / FOUR);
        }
    }

    /// Plays the matches that the winner of match `number` of the first round takes part in.
    #[inline(never)]
    fn climb(&mut self, number: usize) {
        let mut winner = self.winner;
        let mut place = self.later.len() + number;
        while place >= self.finalists {
            let (above, contestant) = ((place - self.finalists) / FOUR, (place - self.finalists) % FOUR);
            let entered = &mut self.later[above];
            entered.0[contestant] = winner;
            winner = entered.winner();
            place = above;
        }
        self.last[place / FOUR].0[place % FOUR] = winner;
        let [half, other] = &*self.last;
        winner = half.winner();
        if self.finalists == EIGHT {
            winner = winner.min(other.winner());
        }
        self.winner = winner;
    }
}

/// The deadlines of path elements.
#[derive(Clone, Debug)]
struct Elements {
    /// When each really wants to be woken; `Time::MAX` for never.
    deadlines: Vec<Time>,
    /// Their entries.
    entries: Tournament,
}

impl Elements {
    fn new(elements: usize) -> Self {
        Elements { deadlines: vec![Time::MAX; elements], entries: Tournament::new(elements) }
    }

    /// Makes room for one more, which is not armed.
    fn add(&mut self) {
        let mut grown = Tournament::new(self.deadlines.len() + 1);
        (0..self.deadlines.len()).for_each(|position| grown.replace(position, self.entries.key(position)));
        self.entries = grown;
        self.deadlines.push(Time::MAX);
    }

    #[inline(always)]
    fn arm(&mut self, position: usize, at: Time, sequence: &mut Sequence) {
        let deadline = &mut self.deadlines[position];
        if *deadline == at {
            return;
        }
        *deadline = at;
        if at < time(self.entries.key(position)) {
            self.enter(position, at, sequence);
        }
    }

    /// Replaces the entry of an element.
    #[inline(never)]
    fn enter(&mut self, position: usize, at: Time, sequence: &mut Sequence) {
        self.entries.replace(position, sequence.entry(position, at));
    }

    /// Returns the element whose entry is the first, and when it is due. Replaces the entry if that is not
    /// its deadline.
    #[inline(always)]
    fn check(&mut self, sequence: &mut Sequence) -> Option<(Time, usize)> {
        let first = self.entries.winner;
        let (at, position) = (time(first), position(first));
        let deadline = self.deadlines[position];
        if deadline == at {
            return Some((at, position));
        }
        self.enter(position, deadline, sequence);
        None
    }

    #[inline(always)]
    fn settle(&mut self, position: usize, fired: Time, at: Time, sequence: &mut Sequence) {
        self.deadlines[position] = at;
        if at != fired {
            self.entries.replace(position, sequence.entry(position, at));
        }
    }
}

/// The deadlines of endpoints.
#[derive(Clone, Debug)]
struct Endpoints {
    /// When each really wants to be woken; `Time::MAX` for never.
    deadlines: Vec<Time>,
    /// Their entries.
    entries: Vec<Key>,
    /// An entry that is no contestant, or none.
    ahead: Key,
    /// A key for every endpoint, no later than its entry. Where the entry is `ahead`, any key.
    contestants: Tournament,
    /// The first of `ahead` and the contestants.
    first: Key,
}

impl Endpoints {
    fn new(endpoints: usize) -> Self {
        Endpoints {
            deadlines: vec![Time::MAX; endpoints],
            entries: vec![NEVER; endpoints],
            ahead: NEVER,
            contestants: Tournament::new(endpoints),
            first: NEVER,
        }
    }

    #[inline(always)]
    fn arm(&mut self, position: usize, at: Time, sequence: &mut Sequence) {
        let deadline = &mut self.deadlines[position];
        if *deadline == at {
            return;
        }
        *deadline = at;
        if at < time(self.entries[position]) {
            self.enter_earlier(position, at, sequence);
        }
    }

    /// Replaces the entry of an endpoint by one `at` an earlier time.
    #[inline(never)]
    fn enter_earlier(&mut self, position: usize, at: Time, sequence: &mut Sequence) {
        let entry = sequence.entry(position, at);
        self.entries[position] = entry;
        if entry < self.ahead {
            let before = std::mem::replace(&mut self.ahead, entry);
            if before != NEVER && self::position(before) != position {
                self.compete(before);
            }
        } else {
            self.compete(entry);
        }
        self.first = self.first.min(entry);
    }

    /// Makes the contestant of an entry no later than the entry.
    fn compete(&mut self, entry: Key) {
        if entry < self.contestants.key(position(entry)) {
            self.contestants.replace(position(entry), entry);
        }
    }

    /// Replaces the entry of an endpoint, which is the first, by one that is later.
    #[inline(never)]
    fn enter_later(&mut self, position: usize, at: Time, sequence: &mut Sequence) {
        let entry = sequence.entry(position, at);
        self.entries[position] = entry;
        let contestant = self.contestants.key(position);
        if contestant == self.first {
            self.contestants.replace(position, entry);
        } else {
            self.ahead = if entry < contestant { entry } else { NEVER };
        }
        self.first = self.ahead.min(self.contestants.winner);
    }

    /// Returns the endpoint whose entry is the first, and when it is due. Replaces the entry if that is not
    /// its deadline, or the contestant if that is not the entry.
    #[inline(always)]
    fn check(&mut self, sequence: &mut Sequence) -> Option<(Time, usize)> {
        let (at, position) = (time(self.first), position(self.first));
        let deadline = self.deadlines[position];
        if deadline == at && self.entries[position] == self.first {
            return Some((at, position));
        }
        self.correct(position, deadline, sequence);
        None
    }

    #[cold]
    fn correct(&mut self, position: usize, deadline: Time, sequence: &mut Sequence) {
        let entry = self.entries[position];
        if entry == self.first {
            self.enter_later(position, deadline, sequence);
        } else {
            self.contestants.replace(position, entry);
            if entry == self.ahead {
                self.ahead = NEVER;
            }
            self.first = self.ahead.min(self.contestants.winner);
        }
    }

    #[inline(always)]
    fn settle(&mut self, position: usize, fired: Time, at: Time, sequence: &mut Sequence) {
        self.deadlines[position] = at;
        if at != fired {
            self.enter_later(position, at, sequence);
        }
    }
}

/// The deadlines of all components.
#[derive(Clone, Debug)]
pub struct Schedule {
    elements: Elements,
    endpoints: Endpoints,
    sequence: Sequence,
}

impl Schedule {
    /// Returns a schedule for so many elements and endpoints, none of them armed.
    pub fn new(elements: usize, endpoints: usize) -> Self {
        Schedule {
            elements: Elements::new(elements),
            endpoints: Endpoints::new(endpoints),
            sequence: Sequence::default(),
        }
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
            let (element, endpoint) = (self.elements.entries.winner, self.endpoints.first);
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

    /// Sets when the element that `next` returned, because it was due at `fired`, wants to be woken next;
    /// `Time::MAX` for never. Until then its entry stays before all others.
    #[inline(always)]
    pub fn settle_element(&mut self, position: usize, fired: Time, at: Time) {
        self.elements.settle(position, fired, at, &mut self.sequence);
    }

    /// Sets when the endpoint that `next` returned, because it was due at `fired`, wants to be woken next;
    /// `Time::MAX` for never. Until then its entry stays before all others.
    #[inline(always)]
    pub fn settle_endpoint(&mut self, position: usize, fired: Time, at: Time) {
        self.endpoints.settle(position, fired, at, &mut self.sequence);
    }
}

#[cfg(test)]
mod tests {
    use Component::{Element, Endpoint};
    use proptest::prelude::*;

    use super::*;

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

    fn settle(schedule: &mut Schedule, (fired, component): (Time, Component), at: Time) {
        match component {
            Element(position) => schedule.settle_element(position, fired, at),
            Endpoint(position) => schedule.settle_endpoint(position, fired, at),
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
        while let Some(next) = schedule.next() {
            settle(&mut schedule, next, Time::MAX);
            order.push(next.1);
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
        assert_eq!(schedule.next(), Some((at(5), Element(0))));
        schedule.arm_element(1, at(7));
        schedule.settle_element(0, at(5), at(7));
        assert_eq!(schedule.next(), Some((Time::from_nanos(7), Element(1))));
        schedule.settle_element(1, at(7), Time::MAX);
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
            // Beyond a final of four, too.
            (0..14).for_each(|_| grown.add_element());
            loop {
                let (next, same) = (schedule.next(), grown.next());
                prop_assert_eq!(same, next);
                let Some(next) = next else { break };
                settle(&mut schedule, next, Time::MAX);
                settle(&mut grown, next, Time::MAX);
            }
            grown.arm_element(elements, at(7));
            prop_assert_eq!(grown.next(), Some((Time::from_nanos(7), Element(elements))));
        }

        #[test]
        fn fires_every_deadline_once_and_in_the_order_of_the_obvious_list(
            components in prop::sample::select(&[1_usize, 4, 8, 16, 30, 32, 33, 130, 600][..]),
            share in 0.0..=1.0,
            operations in prop::collection::vec((0.0..1.0, prop::option::of(0_u64..20), any::<[bool; 2]>()), 1..300)
        ) {
            let elements = (components as f64 * share) as usize;
            let mut schedule = Schedule::new(elements, components - elements);
            let mut list = List::new(components);
            let mut now = 0;
            for (place, ahead, [fires, settles]) in operations {
                let number = (components as f64 * place) as usize;
                let deadline = at_or_never(ahead.map(|ahead| now + ahead));
                arm(&mut schedule, nth(number, elements), deadline);
                list.arm(number, deadline);
                let next = schedule.next();
                let expected = list.next();
                prop_assert_eq!(next, expected.map(|(time, number)| (time, nth(number, elements))));
                if fires && let (Some(next), Some((time, number))) = (next, expected) {
                    now = time.as_nanos();
                    let again = if settles { deadline.max(time) } else { Time::MAX };
                    settle(&mut schedule, next, again);
                    list.settle(number, again);
                }
            }
        }
    }

    /// Entries in a list: what a schedule does, without haste.
    struct List {
        deadlines: Vec<Time>,
        /// A time and a sequence number for each component.
        entries: Vec<(Time, u64)>,
        sequence: u64,
    }

    impl List {
        fn new(components: usize) -> Self {
            let never = (Time::MAX, u64::MAX);
            List { deadlines: vec![Time::MAX; components], entries: vec![never; components], sequence: 0 }
        }

        fn arm(&mut self, number: usize, at: Time) {
            if self.deadlines[number] != at {
                self.deadlines[number] = at;
                if at < self.entries[number].0 {
                    self.enter(number);
                }
            }
        }

        fn enter(&mut self, number: usize) {
            self.sequence += 1;
            self.entries[number] = (self.deadlines[number], self.sequence);
        }

        fn next(&mut self) -> Option<(Time, usize)> {
            loop {
                let (number, &(time, _)) =
                    self.entries.iter().enumerate().min_by_key(|(_, entry)| **entry)?;
                if time == Time::MAX {
                    return None;
                }
                if self.deadlines[number] == time {
                    return Some((time, number));
                }
                self.enter(number);
            }
        }

        fn settle(&mut self, number: usize, at: Time) {
            self.deadlines[number] = at;
            if self.entries[number].0 != at {
                self.enter(number);
            }
        }
    }
}
