//! A link with packets that are held before it: what a [delay line](super::delaying) and [light
//! trains](super::light_heavy) do alike.

use alloc::collections::VecDeque;

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement};
use brakelight_core::queue::Queue;
use brakelight_core::time::Time;

use super::{Link, Service};

/// What says when a packet that is held reaches the link.
pub(super) trait Due {
    /// Returns when.
    fn due(&self) -> Time;
}

impl Due for Time {
    fn due(&self) -> Time {
        *self
    }
}

/// A link, and what is held before it until the time that `T` says.
#[derive(Clone, Debug)]
pub(super) struct Ahead<P, Q, S, T> {
    pub(super) link: Link<P, Q, S>,
    /// In the order in which they reach the link.
    pub(super) held: VecDeque<(T, P)>,
    /// What happened and has not been polled yet, beside what the link keeps.
    pub(super) happened: VecDeque<Output<P>>,
}

impl<P: Packet, Q: Queue<P>, S: Service, T: Due> Ahead<P, Q, S, T> {
    /// Returns an idle link before which nothing is held.
    pub(super) fn new(link: Link<P, Q, S>) -> Self {
        Ahead { link, held: VecDeque::new(), happened: VecDeque::new() }
    }

    /// Takes the next packet that reaches the link by `now`. What the link did before is kept for `poll`.
    pub(super) fn release(&mut self, now: Time) -> Option<(T, P)> {
        self.held.front().filter(|(due, _)| due.due() <= now)?;
        let (due, packet) = self.held.pop_front()?;
        self.drain(due.due());
        Some((due, packet))
    }

    /// Keeps for `poll` what the link did by `now`.
    pub(super) fn drain(&mut self, now: Time) {
        while let Some(output) = self.link.poll(now) {
            self.happened.push_back(output);
        }
    }

    /// Returns when something is due.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        if let Some(output) = self.happened.front() {
            return Some(output.at());
        }
        let held = self.held.front().map(|(due, _)| due.due());
        self.link.next_wakeup().into_iter().chain(held).min()
    }

    /// Calls `visit` with every packet inside.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.link.for_each(visit);
        self.held.iter().for_each(|(_, packet)| visit(packet));
        self.happened.iter().for_each(|output| visit(output.packet()));
    }
}
