//! Reordering: some packets are held back while others overtake them.
//!
//! ```text
//! a packet is held back with probability `rate`
//! it goes on when `hold` is over, or right behind the packet that is the `overtaken_by`-th to overtake it
//! ```

use alloc::collections::VecDeque;

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};

use super::outbox::Outbox;

parameters! {
    /// The settings of reordering.
    pub struct Config {
        /// Probability that a packet is held back.
        rate: f64 = 0.01, in 0.0..=1.0, from "1 % of the packets";
        /// The longest time for which it is.
        hold: Duration = Duration::from_millis(10), in Duration::ZERO..=Duration::from_secs(60), from "netem: delay 10ms reorder";
        /// Packets that may overtake it, at most.
        overtaken_by: Option<u64> = None, in brakelight_core::parameters::OrNone(1..), from "netem gap";
    }
}

/// A path element that reorders packets.
#[derive(Clone, Debug)]
pub struct Reorder<P> {
    config: Config,
    random: Random,
    /// Packets that were not held back, so far.
    passed: u64,
    /// The packets held back, the first one first, and the times and values of `passed` that end it.
    held: VecDeque<(Time, u64, P)>,
    outbox: Outbox<P>,
}

impl<P: Packet> Reorder<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        Reorder {
            config: config.clone(),
            random: site.random,
            passed: 0,
            held: VecDeque::new(),
            outbox: Outbox::new(),
        }
    }

    /// Lets go what was held back for long enough.
    fn release(&mut self, now: Time) {
        while self.held.front().is_some_and(|&(at, _, _)| at <= now) {
            if let Some((at, _, packet)) = self.held.pop_front() {
                self.outbox.pass(at, packet);
            }
        }
    }

    /// Lets go what was overtaken often enough.
    fn follow(&mut self, now: Time) {
        while self.held.front().is_some_and(|&(_, overtaken, _)| overtaken <= self.passed) {
            if let Some((_, _, packet)) = self.held.pop_front() {
                self.outbox.pass(now, packet);
            }
        }
    }
}

impl<P: Packet> PathElement<P> for Reorder<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.release(now);
        if self.random.chance(self.config.rate) {
            let overtaken = self.config.overtaken_by.map_or(u64::MAX, |by| self.passed + by);
            self.held.push_back((now + self.config.hold, overtaken, packet));
            return;
        }
        self.outbox.pass(now, packet);
        self.passed += 1;
        self.follow(now);
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        self.release(now);
        self.outbox.poll(now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.outbox.next_wakeup().or_else(|| self.held.front().map(|&(at, _, _)| at))
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.outbox.for_each(visit);
        self.held.iter().for_each(|(_, _, packet)| visit(packet));
    }
}
