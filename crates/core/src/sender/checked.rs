//! A controller around a controller that holds the host to the contract of
//! [`controller`](crate::controller#the-contract).
//!
//! It keeps books of its own from the events alone, so it works under every host and around every controller,
//! and changes no decision. What it cannot know is what `on_spurious_loss` puts back in flight: until those
//! packets are acknowledged or lost again, bytes in flight are held to a range, and the sum of all bytes
//! exactly.

use alloc::string::String;
use core::fmt;

use books::{Allowed, Books};

pub use books::REMEMBERED;

use crate::controller::{
    AckEvent, Controller, ControllerFailure, IdleEvent, LossEvent, Recovery, SendDirective, SendEvent,
    SpuriousEvent, Stage, TimeoutEvent,
};
use crate::ecn::Encoding;
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// An invariant of the contract, by its key in [`controller`](crate::controller#the-contract).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Invariant {
    Time,
    Numbers,
    State,
    Lost,
    Sums,
    Memory,
    Order,
    Limit,
    Marks,
    Round,
    Recovery,
    Episode,
    Growth,
    Rtt,
    Idle,
    Usage,
}

/// A breach of the contract by the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which sentence.
    pub invariant: Invariant,
    /// When.
    pub at: Time,
    /// What was told, and what would have been right.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "contract, {:?} at {:?}: {}", self.invariant, self.at, self.detail)
    }
}

impl core::error::Error for Violation {}

/// A controller whose host is held to the contract.
#[derive(Clone, Debug)]
pub struct Checked<C> {
    inner: C,
    strict: bool,
    /// Whether the controller lets no window grow that is not used.
    grows_by_use: bool,
    books: Books,
}

impl<C> Checked<C> {
    /// Returns a checker that keeps violations for [`Checked::violations`].
    pub fn new(inner: C) -> Self {
        Checked { inner, strict: false, grows_by_use: false, books: Books::default() }
    }

    /// Returns a checker that panics at the first violation. For tests.
    pub fn strict(inner: C) -> Self {
        Checked { inner, strict: true, grows_by_use: false, books: Books::default() }
    }

    /// Returns the same checker, which holds the controller, too, to one sentence if `grows_by_use`: an ACK
    /// makes no window larger that was not used (see [`Needs::grows_unused`](crate::facts::Needs)).
    pub fn growing_by_use(self, grows_by_use: bool) -> Self {
        Checked { grows_by_use, ..self }
    }

    /// Returns the first violations, oldest first.
    pub fn violations(&self) -> &[Violation] {
        &self.books.violations
    }

    /// Puts another controller in place of the one inside, where a host does so within a connection. What was
    /// told stays told.
    pub fn replace(&mut self, inner: C) {
        self.inner = inner;
    }

    /// Returns the controller inside.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    /// The controller inside, to be set from outside.
    pub fn inner_mut(&mut self) -> &mut C {
        &mut self.inner
    }

    /// Compares an event with the books.
    fn check(&mut self, check: impl FnOnce(&mut Books)) {
        let before = self.books.violations.len();
        check(&mut self.books);
        if self.strict
            && let Some(violation) = self.books.violations.get(before)
        {
            panic!("{violation}");
        }
    }
}

impl<C: Controller> Checked<C> {
    fn allowed(&self) -> Allowed {
        Allowed { cwnd: self.inner.cwnd(), ssthresh: self.inner.ssthresh() }
    }
}

impl<C: Controller> Controller for Checked<C> {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        let allowed = self.allowed();
        self.check(|books| books.on_send(event, allowed));
        let directive = self.inner.on_send(event);
        self.books.note_tag(directive.tag);
        directive
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let allowed = self.allowed();
        self.check(|books| books.on_ack(event, allowed));
        self.inner.on_ack(event);
        if self.grows_by_use {
            self.books.note_window(allowed.cwnd, self.inner.cwnd());
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.check(|books| books.on_episode(event, true));
        self.inner.on_loss(event);
    }

    fn on_ce(&mut self, event: &LossEvent) {
        self.check(|books| books.on_episode(event, false));
        self.inner.on_ce(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.check(|books| books.on_timeout(event));
        self.inner.on_timeout(event);
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.check(|books| books.on_spurious_loss(event));
        self.inner.on_spurious_loss(event);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.check(|books| books.on_recovery_exit(now));
        self.inner.on_recovery_exit(now);
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.check(|books| books.on_idle_restart(event));
        self.inner.on_idle_restart(event);
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.inner.cap_cwnd(most);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.inner.on_mtu_change(mss);
    }

    fn on_timer(&mut self, now: Time) {
        self.check(|books| books.advance(now));
        self.inner.on_timer(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.inner.next_timer()
    }

    fn cwnd(&self) -> Bytes {
        self.inner.cwnd()
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.inner.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.inner.pacing_rate()
    }

    fn media_rate(&self) -> Option<Rate> {
        self.inner.media_rate()
    }

    fn send_quantum(&self) -> Option<Bytes> {
        self.inner.send_quantum()
    }

    fn recovery(&self) -> Recovery {
        self.inner.recovery()
    }

    fn encoding(&self) -> Encoding {
        self.inner.encoding()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect(visit);
    }

    fn stage(&self) -> Option<Stage> {
        self.inner.stage()
    }

    fn failure(&self) -> Option<&ControllerFailure> {
        self.inner.failure()
    }
}

mod books;
