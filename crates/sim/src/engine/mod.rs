//! The discrete-event engine: moves packets between endpoints and path elements, in a total order of events.
//!
//! It knows neither hosts nor queues nor statistics: it is generic over the packet, the elements, the
//! endpoints and an observer, so the modelled host and a real QUIC stack run in the same engine.

mod joints;
mod ledger;
mod schedule;

use std::collections::BTreeSet;

use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::{Direction, Packet};
use brakelight_core::path::{Departed, Output};
use brakelight_core::queue::Dropped;
use brakelight_core::time::{Duration, Time};

pub use joints::Joinable;
use joints::{Joints, Role};
pub use ledger::{Ledger, Unbalanced};
use schedule::{Component, Schedule};

/// A packet that records its position on its flow's route.
pub trait Routed: Packet + Copy {
    /// Returns the endpoint that owns it. Its flow, where an endpoint is one flow; one that opens many
    /// connections gives each a flow of its own, so that queues can tell them apart.
    #[inline]
    fn endpoint(&self) -> usize {
        self.flow().0 as usize
    }
    /// Returns which way it travels.
    fn direction(&self) -> Direction;
    /// Returns how many elements it has entered.
    fn hop(&self) -> u8;
    /// Moves it on.
    fn set_hop(&mut self, hop: u8);
    /// Counts time spent in a queue.
    fn add_queued(&mut self, queued: Duration);
    /// Returns the time spent in queues so far.
    fn queued(&self) -> Duration;
    /// Returns whether it carries data, rather than only an acknowledgement.
    fn is_data(&self) -> bool;
    /// At the end of its way: a router's probe becomes the reply, which travels the other way. Returns
    /// whether it did.
    fn turn_around(&mut self) -> bool {
        false
    }
}

/// Observes packets while they move. Every method is called once per packet, and of one element in order of
/// time. What left an element [joined](Engine::join) to another, or died there, may be told late, but before
/// anything enters that element, before its packets are delivered, and before the run stops.
pub trait Observer<P, E> {
    /// An endpoint sent a packet.
    fn sent(&mut self, _now: Time, _packet: &P) {}
    /// A packet arrived at the element at position `element`.
    fn entered(&mut self, _element: usize, _now: Time, _packet: &P) {}
    /// A packet left the element at position `element`.
    fn departed(&mut self, _element: usize, _departed: &Departed<P>) {}
    /// A packet died in the element at position `element`.
    fn dropped(&mut self, _element: usize, _dropped: &Dropped<P>) {}
    /// A packet is about to be given to its endpoint.
    fn delivered(&mut self, _now: Time, _packet: &P) {}
    /// The endpoint at position `endpoint` has taken a packet.
    fn accepted(&mut self, _now: Time, _endpoint: usize, _taker: &mut E) {}
}

/// The elements each flow passes, both ways. Flows with the same route share it.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// All routes, one after the other, each ended by [`Routes::END`].
    hops: Vec<u32>,
    /// Where the two routes of each endpoint begin.
    starts: Vec<[u32; 2]>,
    /// What follows each element on every route that passes it; [`Routes::BRANCHES`] where routes differ.
    after: Vec<u32>,
}

impl Routes {
    const END: u32 = u32::MAX;
    const BRANCHES: u32 = u32::MAX - 1;
    const UNKNOWN: u32 = u32::MAX - 2;

    /// Adds a route through `elements` and returns its handle.
    pub fn add(&mut self, elements: &[usize]) -> u32 {
        let start = self.hops.len() as u32;
        self.hops.extend(elements.iter().map(|&element| element as u32));
        self.hops.push(Self::END);
        for (place, &element) in elements.iter().enumerate() {
            let next = self.hops[start as usize + place + 1];
            self.after.resize(self.after.len().max(element + 1), Self::UNKNOWN);
            self.after[element] = match self.after[element] {
                Self::UNKNOWN => next,
                same if same == next => next,
                _ => Self::BRANCHES,
            };
        }
        start
    }

    /// Adds the next endpoint, whose packets pass the given routes.
    pub fn assign(&mut self, forward: u32, reverse: u32) {
        self.starts.push([forward, reverse]);
    }

    /// The elements that packets of `endpoint` pass in `direction`, in order.
    fn of(&self, endpoint: usize, direction: Direction) -> Vec<usize> {
        let start = self.starts[endpoint][direction as usize] as usize;
        self.hops[start..].iter().take_while(|&&hop| hop != Self::END).map(|&hop| hop as usize).collect()
    }

    /// Returns the pairs of elements of which the first has no follower but the second, the second none
    /// before it but the first, and which no packet passes on its way back to a sender.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let mut before = vec![Self::UNKNOWN; self.after.len()];
        let mut starts_route = vec![false; self.after.len()];
        for route in self.hops.split(|&hop| hop == Self::END).filter(|route| !route.is_empty()) {
            starts_route[route[0] as usize] = true;
            for pair in route.windows(2) {
                let known = &mut before[pair[1] as usize];
                *known = if [Self::UNKNOWN, pair[0]].contains(known) { pair[0] } else { Self::BRANCHES };
            }
        }
        let mut goes_back = vec![false; self.after.len()];
        for start in self.starts.iter().map(|&[_, reverse]| reverse).collect::<BTreeSet<_>>() {
            let route = self.hops[start as usize..].iter().take_while(|&&hop| hop != Self::END);
            route.for_each(|&element| goes_back[element as usize] = true);
        }
        let follower = |element: usize| self.after.get(element).map_or(Self::END, |&next| next);
        let pairs = (0..self.after.len()).map(|element| (element, follower(element) as usize));
        pairs
            .filter(|&(first, second)| {
                second < before.len()
                    && before[second] as usize == first
                    && !starts_route[second]
                    && !goes_back[first]
            })
            .collect()
    }

    /// Puts the packets of `endpoint` on a route of their own in `direction`.
    fn reassign(&mut self, endpoint: usize, direction: Direction, elements: &[usize]) {
        self.starts[endpoint][direction as usize] = self.add(elements);
    }

    /// The element that `packet` enters when it has left `element`.
    #[inline]
    fn after<P: Routed>(&self, element: usize, packet: &P) -> u32 {
        match self.after[element] {
            Self::BRANCHES => self.element(packet),
            next => next,
        }
    }

    /// The element that `packet` enters next, by its hop.
    #[inline]
    fn element<P: Routed>(&self, packet: &P) -> u32 {
        let start = self.starts[packet.endpoint()][packet.direction() as usize];
        self.hops[start as usize + usize::from(packet.hop())]
    }
}

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Engine<P, L, E, O> {
    now: Time,
    elements: Vec<L>,
    endpoints: Vec<E>,
    routes: Routes,
    schedule: Schedule,
    joints: Joints,
    ledger: Ledger,
    observer: O,
    packets: core::marker::PhantomData<P>,
}

impl<P, L, E, O> Engine<P, L, E, O>
where
    P: Routed,
    L: Joinable<P>,
    E: Endpoint<P>,
    O: Observer<P, E>,
{
    /// Returns a run at time zero. Route `i` is that of endpoint `i`.
    pub fn new(elements: Vec<L>, endpoints: Vec<E>, routes: Routes, observer: O) -> Self {
        let mut engine = Engine {
            now: Time::ZERO,
            schedule: Schedule::new(elements.len(), endpoints.len()),
            elements,
            endpoints,
            routes,
            joints: Joints::default(),
            ledger: Ledger::default(),
            observer,
            packets: core::marker::PhantomData,
        };
        engine.joints.resize(engine.elements.len());
        for (position, element) in engine.elements.iter().enumerate() {
            engine.schedule.arm_element(position, element.next_wakeup().unwrap_or(Time::MAX));
        }
        for (position, endpoint) in engine.endpoints.iter().enumerate() {
            engine.schedule.arm_endpoint(position, endpoint.next_wakeup().unwrap_or(Time::MAX));
        }
        engine
    }

    /// Lets the element `link` have no events of its own while it is busy. What leaves it enters the element
    /// `line` at that time all the same. The outcome does not change.
    ///
    /// To be called of a link of fixed rate without a token bucket and a delay line behind it, where
    /// - every packet that leaves `link` enters `line` next, and none enters `line` from anywhere else,
    /// - a packet's transmission takes less time than the line's delay,
    /// - only data passes, whose release changes nothing in its endpoint,
    /// - the observer may be told late.
    ///
    /// # Panics
    /// If one of them is in a pair already, or both are the same element.
    pub fn join(&mut self, link: usize, line: usize) {
        self.joints.join(link, line);
    }

    /// Performs every event due before `end`, or at it.
    pub fn run_until(&mut self, end: Time) {
        while let Some((at, component)) = self.schedule.next() {
            if at > end {
                break;
            }
            self.wake(at, component, true);
        }
        self.now = end;
        self.bring_up_to_date();
    }

    /// Brings every link up to date that lags. Each has an event of its own next.
    fn bring_up_to_date(&mut self) {
        for pair in 0..self.joints.len() {
            if let Some((link, line)) = self.joints.lagging(pair) {
                let wakeup = self.catch_up(link, line);
                self.joints.set_prompt(link, line);
                // The entry is younger than one made when the packet began. No outcome depends on that, only
                // in which order single events of equal times are performed.
                self.schedule.arm_element(link, wakeup);
            }
        }
    }

    /// Returns when the next event is due, if there is one.
    pub fn next_event(&mut self) -> Option<Time> {
        // A second look finds the entry that the first found: looking ahead changes no order.
        self.schedule.next().map(|(at, _)| at)
    }

    /// Performs the next event, and returns when it was due; `None` if there is none.
    pub fn run_next(&mut self) -> Option<Time> {
        let (at, component) = self.schedule.next()?;
        self.wake(at, component, false);
        Some(at)
    }

    /// Returns the time of the last event, or the last one that was run until.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the elements, in the order they were given.
    pub fn elements(&self) -> &[L] {
        &self.elements
    }

    /// Returns the endpoints, in the order they were given.
    pub fn endpoints(&self) -> &[E] {
        &self.endpoints
    }

    /// Returns the observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns the elements that packets of `endpoint` pass in `direction`, in order.
    pub fn route(&self, endpoint: usize, direction: Direction) -> Vec<usize> {
        self.routes.of(endpoint, direction)
    }

    /// Changes `element` at the present time, and carries onwards what leaves it by that.
    pub fn change_element<R>(&mut self, element: usize, change: impl FnOnce(&mut L) -> R) -> R {
        self.joints.part(element);
        let result = change(&mut self.elements[element]);
        let wakeup = self.drain_element(element);
        self.schedule.arm_element(element, wakeup);
        result
    }

    /// Changes `endpoint` at the present time, and sends what it then has to send.
    pub fn change_endpoint<R>(&mut self, endpoint: usize, change: impl FnOnce(&mut E) -> R) -> R {
        let result = change(&mut self.endpoints[endpoint]);
        let wakeup = self.drain_endpoint(endpoint);
        self.schedule.arm_endpoint(endpoint, wakeup);
        result
    }

    /// Adds an element behind all others, on no route yet, and returns its position.
    pub fn add_element(&mut self, element: L) -> usize {
        let added = self.elements.len();
        self.schedule.add_element();
        self.schedule.arm_element(added, element.next_wakeup().unwrap_or(Time::MAX));
        self.elements.push(element);
        self.joints.resize(self.elements.len());
        added
    }

    /// Lets packets of `endpoint` pass `to` in place of `from` in `direction`. What is inside `from` goes on
    /// from there.
    pub fn divert(&mut self, endpoint: usize, direction: Direction, from: usize, to: usize) {
        self.joints.part(from);
        self.joints.part(to);
        let mut route = self.routes.of(endpoint, direction);
        route.iter_mut().filter(|element| **element == from).for_each(|element| *element = to);
        self.routes.reassign(endpoint, direction, &route);
    }

    /// Returns the observer, the elements and the endpoints, for a look from outside while the run stands
    /// still.
    pub fn parts_mut(&mut self) -> (&mut O, &[L], &mut [E]) {
        (&mut self.observer, &self.elements, &mut self.endpoints)
    }

    /// Checks that every packet sent was delivered, was dropped, or is still inside an element.
    pub fn audit(&self) -> Result<(), Unbalanced> {
        let mut inside = Ledger::default();
        for element in &self.elements {
            element.for_each(&mut |packet| inside.entered(packet.id()));
        }
        self.ledger.balance(&inside)
    }

    /// Wakes `component`, whose deadline is the next, `at` that time. A link may lag from then on only where
    /// it `may_lag`.
    #[inline(always)]
    fn wake(&mut self, at: Time, component: Component, may_lag: bool) {
        debug_assert!(at >= self.now, "time runs forward");
        self.now = at;
        match component {
            Component::Element(element) => {
                let mut wakeup = self.drain_element_here(element);
                match self.joints.role(element) {
                    // A packet has just entered the line, and leaves it later than the link's next.
                    Role::Prompt(line) if may_lag && wakeup != Time::MAX => {
                        debug_assert!(self.elements[line as usize].next_wakeup().is_some());
                        self.joints.note(element, line as usize, wakeup);
                        wakeup = Time::MAX;
                    }
                    Role::Line(link) if wakeup == Time::MAX => wakeup = self.refill(element, link as usize),
                    _ => {}
                }
                self.schedule.settle_element(element, at, wakeup);
            }
            Component::Endpoint(endpoint) => {
                let wakeup = self.drain_endpoint(endpoint);
                self.schedule.settle_endpoint(endpoint, at, wakeup);
            }
        }
    }

    /// Brings `link`, which lags, up to the present time. Returns when something is due next; `Time::MAX` for
    /// never: it does not lag then.
    #[inline(never)]
    fn catch_up(&mut self, link: usize, line: usize) -> Time {
        let now = self.now;
        loop {
            let Ok([from, to]) = self.elements.get_disjoint_mut([link, line]) else {
                unreachable!("a link and its line are two elements")
            };
            let observer = &mut self.observer;
            let due = from.hand_over(now, |departed| {
                departed.packet.add_queued(departed.queued);
                observer.departed(link, departed);
                let Departed { at, packet, .. } = departed;
                packet.set_hop(packet.hop() + 1);
                observer.entered(line, *at, packet);
                to.accept(*at, *packet);
            });
            if due > now {
                self.joints.note(link, line, due);
                return due;
            }
            // The queue dropped a packet.
            match &mut self.elements[link].poll(now) {
                Some(Output::Departed(_)) => unreachable!("departures are handed over"),
                Some(output) => self.duplicate_or_drop(link, output),
                None => {}
            }
        }
    }

    /// The line behind `link` has run empty. Returns when it wants to be woken once the link is up to date.
    #[inline(never)]
    fn refill(&mut self, line: usize, link: usize) -> Time {
        if let Role::Lagging { .. } = self.joints.role(link) {
            self.catch_up(link, line);
        }
        let wakeup = self.elements[line].next_wakeup().unwrap_or(Time::MAX);
        debug_assert!(wakeup > self.now, "a transmission takes less time than the delay");
        wakeup
    }

    /// Carries everything that left `element` onwards, and returns when it wants to be woken; `Time::MAX` for
    /// never.
    #[inline(never)]
    fn drain_element(&mut self, element: usize) -> Time {
        self.drain_element_here(element)
    }

    /// [`drain_element`](Self::drain_element), inlined where nearly all calls are.
    #[inline(always)]
    fn drain_element_here(&mut self, element: usize) -> Time {
        loop {
            // By reference: packets are moved where they stay, and not on the way.
            let mut output = self.elements[element].poll(self.now);
            match &mut output {
                Some(Output::Departed(departed)) => self.pass_on(element, departed),
                Some(output) => self.duplicate_or_drop(element, output),
                None => return self.elements[element].next_wakeup().unwrap_or(Time::MAX),
            }
            let wakeup = self.elements[element].next_wakeup().unwrap_or(Time::MAX);
            if wakeup > self.now {
                return wakeup;
            }
        }
    }

    /// Acts on a packet that an element duplicated or dropped.
    #[cold]
    fn duplicate_or_drop(&mut self, element: usize, output: &mut Output<P>) {
        match output {
            Output::Departed(_) => unreachable!("departures are passed on where they are polled"),
            Output::Duplicated(departed) => {
                self.ledger.entered(departed.packet.id());
                self.pass_on(element, departed);
            }
            Output::Dropped(dropped) => {
                self.ledger.left(dropped.packet.id());
                self.observer.dropped(element, dropped);
                self.endpoints[dropped.packet.endpoint()].release(dropped.packet);
            }
        }
    }

    /// Carries a packet that left `element` onwards.
    #[inline(always)]
    fn pass_on(&mut self, element: usize, departed: &mut Departed<P>) {
        departed.packet.add_queued(departed.queued);
        self.observer.departed(element, departed);
        let packet = &mut departed.packet;
        packet.set_hop(packet.hop() + 1);
        match self.routes.after(element, packet) {
            Routes::END if packet.is_probe() => self.answer(packet),
            Routes::END => self.deliver_here(packet),
            element => self.enter(element as usize, packet),
        }
    }

    /// A router's probe has reached the end of its way. The reply to it sets off, unless it is one itself.
    #[cold]
    fn answer(&mut self, packet: &mut P) {
        if !packet.turn_around() {
            return self.deliver(packet);
        }
        packet.set_hop(0);
        match self.routes.element(packet) {
            Routes::END => self.deliver(packet),
            element => self.enter(element as usize, packet),
        }
    }

    /// Sends everything `endpoint` has to send, and returns when it wants to be woken; `Time::MAX` for never.
    #[inline(never)]
    fn drain_endpoint(&mut self, endpoint: usize) -> Time {
        loop {
            let sender = &mut self.endpoints[endpoint];
            let mut packet = if sender.is_at_rest(self.now) { None } else { sender.poll_transmit(self.now) };
            let Some(packet) = &mut packet else {
                // What happened at this very moment can make a deadline of the past count: it is late, and
                // served now.
                return sender.next_wakeup().map_or(Time::MAX, |at| at.max(self.now));
            };
            packet.set_hop(0);
            self.ledger.entered(packet.id());
            self.observer.sent(self.now, packet);
            match self.routes.element(packet) {
                Routes::END => self.deliver(packet),
                element => self.enter(element as usize, packet),
            }
        }
    }

    /// Brings `packet` into `element`.
    #[inline(always)]
    fn enter(&mut self, element: usize, packet: &P) {
        let lags = match self.joints.role(element) {
            Role::Lagging { due, .. } if due > self.now => true,
            Role::Lagging { line, .. } => self.catch_up(element, line as usize) != Time::MAX,
            _ => false,
        };
        self.observer.entered(element, self.now, packet);
        let mut wakeup = self.elements[element].accept_then_wakeup(self.now, *packet);
        if wakeup <= self.now {
            wakeup = self.drain_element(element);
        }
        if !lags {
            self.schedule.arm_element(element, wakeup);
        }
    }

    /// Gives `packet` to its endpoint.
    #[inline(never)]
    fn deliver(&mut self, packet: &P) {
        self.deliver_here(packet);
    }

    /// [`deliver`](Self::deliver), inlined where nearly all calls are.
    #[inline(always)]
    fn deliver_here(&mut self, packet: &P) {
        let endpoint = packet.endpoint();
        self.ledger.left(packet.id());
        self.observer.delivered(self.now, packet);
        let taker = &mut self.endpoints[endpoint];
        taker.accept(self.now, *packet);
        self.observer.accepted(self.now, endpoint, taker);
        let wakeup = self.drain_endpoint(endpoint);
        self.schedule.arm_endpoint(endpoint, wakeup);
    }
}

#[cfg(test)]
mod tests {
    use brakelight_links::elements::AnyElement;

    use super::*;
    use crate::packet::SimPacket;

    /// Wants to be woken at the first of `wakeups`, whatever the time.
    struct Wakes {
        wakeups: Vec<Time>,
        woken: Vec<Time>,
    }

    impl Endpoint<SimPacket> for Wakes {
        fn accept(&mut self, _now: Time, _packet: SimPacket) {}

        fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
            self.wakeups.remove(0);
            self.woken.push(now);
            None
        }

        fn next_wakeup(&self) -> Option<Time> {
            self.wakeups.first().copied()
        }
    }

    struct Nobody;

    impl Observer<SimPacket, Wakes> for Nobody {}

    #[test]
    fn a_deadline_of_the_past_is_served_now_and_time_runs_forward() {
        let wakeups = [10, 5, 20].map(Time::from_millis).to_vec();
        let endpoint = Wakes { wakeups, woken: Vec::new() };
        let elements: Vec<AnyElement<SimPacket>> = Vec::new();
        let mut engine = Engine::new(elements, vec![endpoint], Routes::default(), Nobody);
        engine.run_until(Time::from_millis(30));
        assert_eq!(engine.endpoints()[0].woken, [10, 10, 20].map(Time::from_millis));
    }
}
