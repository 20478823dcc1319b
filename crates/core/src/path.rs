//! Path elements: what a packet passes between its sender and its receiver. Links own a queue; delay lines,
//! lossy stretches and rewriters do not.
//!
//! One contract serves simulated and real time. In real time calls come late, so an element keeps its own
//! schedule: `accept(now)` first performs everything due at or before `now`, `poll(now)` does the same, each
//! event at the time it was due and in order; a link's next service is computed from the previous scheduled
//! one. The same arrivals give the same drops, marks and scheduled departures whether polled exactly or late.

use crate::ecn::Mark;
use crate::packet::{Packet, PacketId};
use crate::queue::Dropped;
use crate::random::Random;
use crate::time::{Duration, Time};

/// What an element must know of its place when it is made.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its own stream of random numbers.
    pub random: Random,
    /// The first of the identities that are its own to give to packets it makes.
    pub ids: PacketId,
}

/// What happened inside an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Output<P> {
    /// A packet left it.
    Departed(Departed<P>),
    /// A packet left it that had not entered it: a copy of one that had.
    Duplicated(Departed<P>),
    /// A packet died in it.
    Dropped(Dropped<P>),
}

impl<P> Output<P> {
    /// Returns when it happened.
    pub fn at(&self) -> Time {
        match self {
            Output::Departed(departed) | Output::Duplicated(departed) => departed.at,
            Output::Dropped(dropped) => dropped.at,
        }
    }

    /// Returns the packet it happened to.
    pub fn packet(&self) -> &P {
        match self {
            Output::Departed(departed) | Output::Duplicated(departed) => &departed.packet,
            Output::Dropped(dropped) => &dropped.packet,
        }
    }
}

/// A packet that left an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Departed<P> {
    /// When it was due to leave: at or before the `now` of the call that reports it.
    pub at: Time,
    /// The packet.
    pub packet: P,
    /// How long a queue held it, its own transmission included; zero in elements without a queue.
    pub queued: Duration,
    /// The mark the element's queue decided on.
    pub mark: Mark,
}

impl<P> Departed<P> {
    /// Returns a packet that left an element without a queue.
    #[inline]
    pub fn passed(at: Time, packet: P) -> Self {
        Departed { at, packet, queued: Duration::ZERO, mark: Mark::None }
    }
}

dispatched! {
    /// An element of a path.
    pub trait PathElement<P: Packet> by pass_to_element {
        /// A packet arrives at `now`, after everything due by `now` has been done.
        fn accept(&mut self, now: Time, packet: P);

        /// Returns the next thing that happened at or before `now`, oldest first. To be called until it
        /// returns `None` after each `accept` and at each wake-up.
        fn poll(&mut self, now: Time) -> Option<Output<P>>;

        /// Returns when something is due next. `None` while nothing will happen without another packet.
        fn next_wakeup(&self) -> Option<Time>;

        /// [`accept`](Self::accept), then [`next_wakeup`](Self::next_wakeup), with [`Time::MAX`] for `None`:
        /// one call, where two would each look for the kind of the element. To be left as it is.
        fn accept_then_wakeup(&mut self, now: Time, packet: P) -> Time {
            self.accept(now, packet);
            self.next_wakeup().unwrap_or(Time::MAX)
        }

        /// Calls `visit` with every packet inside, in no particular order. A copy counts from the moment
        /// `poll` reports it.
        fn for_each(&self, visit: &mut dyn FnMut(&P));
    }
}
