//! What happened in an element and has not been polled yet.

use alloc::collections::VecDeque;

use brakelight_core::packet::Packet;
use brakelight_core::path::{Departed, Output};
use brakelight_core::queue::{Dropped, Reason};
use brakelight_core::time::Time;

/// Outputs in the order they happened. Polled after each packet, it holds one or two.
#[derive(Clone, Debug)]
pub struct Outbox<P>(VecDeque<Output<P>>);

impl<P: Packet> Default for Outbox<P> {
    fn default() -> Self {
        Outbox::new()
    }
}

impl<P: Packet> Outbox<P> {
    /// Returns an outbox without outputs.
    pub fn new() -> Self {
        Outbox(VecDeque::new())
    }

    /// The packet left at `at`.
    pub fn pass(&mut self, at: Time, packet: P) {
        self.0.push_back(Output::Departed(Departed::passed(at, packet)));
    }

    /// The packet left at `at` and had never entered.
    pub fn make(&mut self, at: Time, packet: P) {
        self.0.push_back(Output::Duplicated(Departed::passed(at, packet)));
    }

    /// The packet died at `at`.
    pub fn lose(&mut self, at: Time, packet: P, reason: Reason) {
        self.0.push_back(Output::Dropped(Dropped { at, packet, reason }));
    }

    /// Returns the oldest output, if it happened by `now`.
    pub fn poll(&mut self, now: Time) -> Option<Output<P>> {
        if self.0.front()?.at() > now {
            return None;
        }
        self.0.pop_front()
    }

    /// Returns when the oldest output happened.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.0.front().map(Output::at)
    }

    /// Calls `visit` with every packet in it that had entered the element.
    pub fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        let entered = |output: &&Output<P>| !matches!(output, Output::Duplicated(_));
        self.0.iter().filter(entered).for_each(|output| visit(output.packet()));
    }
}

/// [`PathElement`](brakelight_core::path::PathElement) but for `accept`, for elements that decide at once
/// what becomes of a packet.
macro_rules! immediate {
    () => {
        fn poll(&mut self, now: Time) -> Option<Output<P>> {
            self.outbox.poll(now)
        }

        fn next_wakeup(&self) -> Option<Time> {
            self.outbox.next_wakeup()
        }

        fn for_each(&self, visit: &mut dyn FnMut(&P)) {
            self.outbox.for_each(visit);
        }
    };
}
pub(super) use immediate;
