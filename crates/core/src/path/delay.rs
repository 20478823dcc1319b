//! A delay line: what enters leaves `delay` later, in order.

use alloc::collections::VecDeque;

use super::{Departed, Output, PathElement, Site};
use crate::packet::Packet;
use crate::time::{Duration, Time};

parameters! {
    /// The settings of a delay line.
    pub struct Config {
        /// How long a packet takes.
        delay: Duration = Duration::from_millis(50), in Duration::ZERO..=Duration::from_secs(3600), from "abc20 7.2: RTT 100 ms";
    }
}

/// Packets under way, the oldest first.
#[derive(Clone, Debug)]
pub struct Delay<P> {
    delay: Duration,
    under_way: VecDeque<(Time, P)>,
}

impl<P: Packet> Delay<P> {
    /// An empty line.
    pub fn new(config: &Config, _site: Site) -> Self {
        Delay { delay: config.delay, under_way: VecDeque::new() }
    }
}

impl<P: Packet> PathElement<P> for Delay<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.under_way.push_back((now + self.delay, packet));
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        if self.under_way.front()?.0 > now {
            return None;
        }
        let (at, packet) = self.under_way.pop_front()?;
        Some(Output::Departed(Departed::passed(at, packet)))
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.under_way.front().map(|&(at, _)| at)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.under_way.iter().for_each(|(_, packet)| visit(packet));
    }
}
