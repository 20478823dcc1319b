//! Queue disciplines: the router's half of an algorithm.
//!
//! A queue never reads a clock and never knows whether its link is simulated. It is owned by a link (see
//! [`path`](crate::path)), which calls `enqueue` when a packet arrives and `dequeue` when it can send one,
//! each with the time at which that was due, and lends a [`LinkView`].
//!
//! The disciplines are in `brakelight-routers`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use crate::ecn::{Encoding, Mark};
use crate::packet::Packet;
use crate::path::Departed;
use crate::random::Random;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Limit, Rate};

/// What a queue may know of the link that serves it, at the `now` of the call it is lent to.
///
/// `&mut` because a link answers in O(1) by moving cursors forward; asking changes nothing that can be seen.
pub trait LinkView {
    /// Returns what the link could have carried in the last `window`, used or not, as a rate. With less
    /// history than `window`, the part before the start counts as the nominal rate.
    fn capacity(&mut self, window: Duration) -> Rate;

    /// Returns the delivery opportunities, in bytes, that passed since the last dequeue because the queue was
    /// empty.
    fn unused(&mut self) -> Bytes;

    /// Returns the bytes of one delivery opportunity: what a slot of the link carries.
    fn opportunity(&self) -> Bytes;

    /// Returns what a packet of `size` bytes at the IP layer takes of [`capacity`](Self::capacity): a queue
    /// that compares its own rates with the link's counts in these bytes.
    fn cost(&self, size: u32) -> Bytes {
        Bytes(u64::from(size))
    }

    /// Returns the rate the link will have around `now + ahead`, averaged over `window` from there, where the
    /// link knows its future: PK-ABC alone asks.
    fn lookahead(&mut self, ahead: Duration, window: Duration) -> Option<Rate>;
}

/// So that a view behind a pointer can be lent.
impl<L: LinkView + ?Sized> LinkView for &mut L {
    fn capacity(&mut self, window: Duration) -> Rate {
        (**self).capacity(window)
    }
    fn unused(&mut self) -> Bytes {
        (**self).unused()
    }
    fn opportunity(&self) -> Bytes {
        (**self).opportunity()
    }
    fn cost(&self, size: u32) -> Bytes {
        (**self).cost(size)
    }
    fn lookahead(&mut self, ahead: Duration, window: Duration) -> Option<Rate> {
        (**self).lookahead(ahead, window)
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Reason {
    /// The buffer was full.
    Overflow,
    /// The discipline chose to.
    Early,
    /// A lossy path element.
    Lost,
    /// The router restarted, or was not back yet.
    Restart,
}

/// A dropped packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dropped<P> {
    /// When it was dropped.
    pub at: Time,
    /// The packet.
    pub packet: P,
    /// Why.
    pub reason: Reason,
}

/// A packet that leaves a queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dequeued<P> {
    /// The packet, with its marks.
    pub packet: P,
    /// When it was enqueued.
    pub arrived: Time,
    /// The mark the queue decided on: what this router said, whatever the packet carried before.
    pub mark: Mark,
}

/// Packets a queue gave up during one call, in order; the caller empties it.
pub type Drops<P> = Vec<Dropped<P>>;

dispatched! {
    /// A queue discipline.
    pub trait Queue<P: Packet> by pass_to_queue {
        /// A packet arrives at `now`. It, or another, may go to `drops`.
        fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>);

        /// The link can send a packet at `now`. Returns that packet, or `None` only when nothing is left or
        /// everything is [held back](Self::held_until). Packets that the discipline drops on the way go to
        /// `drops`.
        fn dequeue(&mut self, now: Time, link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>>;

        /// [`dequeue`](Self::dequeue), with the packet put in its `place`: `at` is when it arrived, and
        /// `queued` is zero, until the link knows when it leaves. Not to be overridden.
        #[inline]
        fn dequeue_to(
            &mut self,
            place: &mut Option<Departed<P>>,
            now: Time,
            link: &mut impl LinkView,
            drops: &mut Drops<P>,
        ) {
            // Two assignments: one, behind the match, would move the packet once more.
            match self.dequeue(now, link, drops) {
                Some(Dequeued { packet, arrived, mark }) => {
                    *place = Some(Departed { at: arrived, packet, queued: Duration::ZERO, mark });
                }
                None => *place = None,
            }
        }

        /// Returns the packets and bytes held.
        fn backlog(&self) -> Backlog;

        /// Returns until when the discipline holds back what waits: a queue with a shaper of its own. The
        /// link asks when `dequeue` returned `None` and something waits, and calls `dequeue` again at that
        /// time. Queues that only the link paces leave it at zero.
        fn held_until(&self) -> Time {
            Time::ZERO
        }

        /// Returns when the packet that has waited longest was enqueued; `None` when nothing waits, or where
        /// the discipline does not tell.
        fn waiting_since(&self) -> Option<Time> {
            None
        }

        /// Internal state worth plotting, by name, in the unit the name ends in.
        fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

        /// Calls `visit` with every packet held, in no particular order: conservation is checked by it.
        fn for_each(&self, visit: &mut dyn FnMut(&P));
    }
}

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes at the IP layer.
    pub bytes: Bytes,
}

impl Backlog {
    /// Counts a packet of `size` bytes in.
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes.0 += u64::from(size);
    }

    /// Counts a packet of `size` bytes out.
    pub fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes.0 -= u64::from(size);
    }

    /// Returns whether one more packet of `size` bytes stays within `limit`.
    #[inline]
    pub fn admits(&self, limit: Limit, size: u32) -> bool {
        match limit {
            Limit::Packets(most) => self.packets < most,
            Limit::Bytes(most) => self.bytes.0 + u64::from(size) <= most.0,
        }
    }

    /// Returns whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns what this and `other` hold together.
    pub fn with(&self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// The link that a queue is built for: buffer limit, nominal rate and random numbers.
#[derive(Clone, Debug)]
pub struct Place {
    /// The buffer's limit, unless the queue's own options set one.
    pub limit: Limit,
    /// The link's nominal rate: the mean of its trace, or its fixed rate.
    pub nominal: Rate,
    /// The queue's own stream of random numbers.
    pub random: Random,
}

/// What a queue's settings have to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKind {
    /// The buffer's limit, unless the queue's own options set one.
    pub buffer: Limit,
    /// The link's rate, where it is fixed.
    pub rate: Option<Rate>,
    /// Whether the link says what it left unused: [`LinkView::unused`].
    pub tells_unused: bool,
}

impl LinkKind {
    /// The size, at the IP layer, of the packets that its limits are compared in.
    pub const FULL_PACKET: Bytes = Bytes(1500);
}

/// Why a queue's settings do not fit a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It has to know what the link left unused, and the link does not say.
    AsksForUnused {
        /// The option that asks for it, with its value.
        option: &'static str,
    },
    /// A value outside what can happen on the link.
    OutOfRange {
        /// The option.
        option: &'static str,
        /// Its value, with its unit.
        value: String,
        /// What is valid.
        valid: String,
    },
}

impl Misfit {
    /// A threshold of `option` above `room`, the most that the buffer holds.
    pub fn unreachable(option: &'static str, value: impl Display, room: impl Display) -> Self {
        let valid = format!("up to {room}, which is all that the buffer holds");
        Misfit::OutOfRange { option, value: value.to_string(), valid }
    }
}

/// Whether a queue that knows only RFC 3168 may mark `packet` CE instead of dropping it. Behind ABC's proxy
/// CE means brake and nothing else, so such a packet is dropped (abc20 section 4.2, last paragraph).
pub fn may_mark_ce(packet: &impl Packet) -> bool {
    packet.ecn().is_capable() && packet.encoding() != Encoding::AbcProxied
}

/// The encodings a queue speaks; see [`Encoding`]. Queues that only drop speak all of them.
pub const SPEAKS_ALL: &[Encoding] = &[
    Encoding::None,
    Encoding::Classic,
    Encoding::Abc,
    Encoding::AbcProxied,
    Encoding::Bmcc,
    Encoding::L4s,
    Encoding::Explicit,
];

/// What ABC's router speaks: its own encodings, and flows that it leaves alone.
pub const SPEAKS_ABC: &[Encoding] =
    &[Encoding::None, Encoding::Classic, Encoding::Abc, Encoding::AbcProxied, Encoding::Explicit];

/// What an L4S router speaks: ECT(1) of any other encoding would get into the queue of scalable flows
/// (open-questions#X-48).
pub const SPEAKS_L4S: &[Encoding] = &[Encoding::None, Encoding::Classic, Encoding::L4s, Encoding::Explicit];

/// What BMCC's router speaks: its own encoding, ordinary ECN, and flows that it leaves alone.
pub const SPEAKS_BMCC: &[Encoding] = &[Encoding::None, Encoding::Classic, Encoding::Bmcc, Encoding::Explicit];
