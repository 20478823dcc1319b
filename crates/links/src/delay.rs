//! A delay line: what enters leaves `delay` later, in order.

use alloc::collections::VecDeque;

use brakelight_core::frugal;
use brakelight_core::packet::Packet;
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::time::{Duration, Time};

parameters! {
    /// The settings of a delay line.
    pub struct Config {
        /// How long a packet takes.
        delay: Duration = Duration::from_millis(50), in Duration::ZERO..=Duration::from_secs(3600), from "abc20 7.2: RTT 100 ms";
    }
}

/// A delay line: packets under way, the oldest first.
#[derive(Clone, Debug)]
pub struct Delay<P> {
    delay: Duration,
    under_way: VecDeque<(Time, P)>,
    /// When the oldest leaves; `Time::MAX` while there is none. What is under way is looked at only when its
    /// time has come.
    due: Time,
}

impl<P: Packet> Delay<P> {
    /// Returns an empty line.
    pub fn new(config: &Config, _site: Site) -> Self {
        Delay { delay: config.delay, under_way: VecDeque::new(), due: Time::MAX }
    }
}

impl<P: Packet> Delay<P> {
    /// Returns how long a packet takes.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns when the last of the packets under way leaves that `is_meant` accepts.
    pub fn last_departure(&self, is_meant: impl Fn(&P) -> bool) -> Option<Time> {
        self.under_way.iter().rev().find(|(_, packet)| is_meant(packet)).map(|&(at, _)| at)
    }
}

impl<P: Packet> PathElement<P> for Delay<P> {
    #[inline(always)]
    fn accept(&mut self, now: Time, packet: P) {
        let at = now + self.delay;
        self.due = self.due.min(at);
        frugal::push_back(&mut self.under_way, (at, packet));
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        if self.due > now {
            return None;
        }
        let (at, packet) = self.under_way.pop_front()?;
        // Written at once to where it is returned: a packet is not moved more often than it must be.
        let output = Some(Output::Departed(Departed::passed(at, packet)));
        self.due = self.under_way.front().map_or(Time::MAX, |&(at, _)| at);
        output
    }

    #[inline(always)]
    fn next_wakeup(&self) -> Option<Time> {
        (self.due != Time::MAX).then_some(self.due)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.under_way.iter().for_each(|(_, packet)| visit(packet));
    }
}
