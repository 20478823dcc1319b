//! A link whose router restarts in the middle of a run: what its queue knew is gone, and what it held is lost
//! or kept.
//!
//! ```text
//! at t:                  the queue is as it was made: no rates, tokens, weights or drop states
//!   packets lost:        all that waited die; the one on the wire arrives
//!   packets kept:        they wait on, in order, as if they had just arrived
//! from t to t + down:    what arrives dies
//! ```
//!
//! The link itself goes on: its capacity counts whether or not its router was there to use it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use brakelight_core::packet::Duplicate;
use brakelight_core::path::{Output, PathElement};
use brakelight_core::queue::{Dropped, Queue, Reason};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::{Link, Service, View};
use crate::elements::AnyService;

choices! {
    /// What happens to waiting packets when the router restarts.
    pub enum Waiting {
        /// They die with the router.
        Lost = "lost",
        /// They are still there after it.
        Kept = "kept",
    }
}

/// One restart of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// When, since the start of the run.
    pub at: Duration,
    /// How long the router is away.
    pub down: Duration,
    /// What happens to waiting packets when the router restarts.
    pub waiting: Waiting,
}

/// A link with a queue `Q` and a service `S`, whose router restarts.
#[derive(Clone, Debug)]
pub struct Restarting<P, Q, S> {
    link: Link<P, Q, S>,
    /// The queue as it was made.
    fresh: Q,
    /// By time.
    restarts: Vec<Restart>,
    /// How many of them are done.
    done: usize,
    /// When the router is back.
    up_at: Time,
    /// What happened and has not been polled yet, beside what the link keeps.
    happened: VecDeque<Output<P>>,
}

impl<P: Duplicate, Q: Queue<P> + Clone, S: Service> Restarting<P, Q, S> {
    /// Returns an idle link with these restarts before it, in any order.
    pub fn new(service: S, queue: Q, mut restarts: Vec<Restart>) -> Self {
        restarts.sort_by_key(|restart| restart.at);
        Restarting {
            fresh: queue.clone(),
            link: Link::new(service, queue),
            restarts,
            done: 0,
            up_at: Time::ZERO,
            happened: VecDeque::new(),
        }
    }

    /// Returns what the link can carry in `from <= t < to`, used or not; see [`Service::capacity_between`].
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.link.capacity_between(from, to)
    }

    /// Returns the link.
    pub fn link(&self) -> &Link<P, Q, S> {
        &self.link
    }

    fn next_restart(&self) -> Option<Time> {
        Some(Time::ZERO + self.restarts.get(self.done)?.at)
    }

    /// Keeps for `poll` what the link did by `now`.
    fn drain(&mut self, now: Time) {
        while let Some(output) = self.link.poll(now) {
            self.happened.push_back(output);
        }
    }

    /// Performs the restarts due by `now`, after everything that was due before each.
    fn advance(&mut self, now: Time) {
        while let Some(at) = self.next_restart().filter(|at| *at <= now) {
            self.drain(at);
            let restart = self.restarts[self.done];
            let lost = self.link.restart(at, self.fresh.clone(), restart.waiting);
            let dropped = |packet| Output::Dropped(Dropped { at, packet, reason: Reason::Restart });
            self.happened.extend(lost.into_iter().map(dropped));
            self.up_at = at + restart.down;
            self.done += 1;
        }
    }
}

impl<P: Duplicate, Q: Queue<P> + Clone> Restarting<P, Q, AnyService> {
    /// [`Link::set_rate`].
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.drain(now);
        self.link.set_rate(now, rate);
    }
}

impl<P: Duplicate, Q: Queue<P>, S: Service> Link<P, Q, S> {
    /// Puts `fresh` in the queue's place, and returns the packets that died with it.
    fn restart(&mut self, at: Time, fresh: Q, waiting: Waiting) -> Vec<P> {
        let mut packets = Vec::new();
        self.queue.for_each(&mut |packet| packets.push(packet.clone()));
        self.queue = fresh;
        if waiting == Waiting::Lost {
            if self.sending.is_none() && !packets.is_empty() {
                self.service.idle(at);
                self.due = Time::MAX;
            }
            return packets;
        }
        for packet in packets {
            let mut view = View { service: &mut self.service, now: at };
            self.queue.enqueue(at, packet, &mut view, &mut self.drops);
        }
        self.report_drops();
        Vec::new()
    }
}

impl<P: Duplicate, Q: Queue<P> + Clone, S: Service> PathElement<P> for Restarting<P, Q, S> {
    fn accept(&mut self, now: Time, packet: P) {
        self.advance(now);
        if now >= self.up_at {
            self.link.accept(now, packet);
            return;
        }
        self.drain(now);
        self.happened.push_back(Output::Dropped(Dropped { at: now, packet, reason: Reason::Restart }));
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        self.advance(now);
        self.happened.pop_front().or_else(|| self.link.poll(now))
    }

    /// A restart that finds nothing waiting is made up for when the next packet comes.
    fn next_wakeup(&self) -> Option<Time> {
        if let Some(output) = self.happened.front() {
            return Some(output.at());
        }
        let restart = self.next_restart().filter(|_| !self.link.backlog().is_empty());
        match (self.link.next_wakeup(), restart) {
            (Some(link), Some(restart)) => Some(link.min(restart)),
            (link, restart) => link.or(restart),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.link.for_each(visit);
        self.happened.iter().for_each(|output| visit(output.packet()));
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::queue::{Place, Reason};
    use brakelight_core::random::Random;
    use brakelight_core::units::Limit;
    use brakelight_routers::{AnyQueue, QueueConfig};
    use brakelight_testkit::packet::Sample;

    use super::*;
    use crate::link::fixed;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// 12 Mbit/s: a packet of 1500 bytes per millisecond.
    fn link(restarts: &[Restart]) -> Restarting<Sample, AnyQueue<Sample>, fixed::Fixed> {
        let rate = Rate::from_mbps(12);
        let service = fixed::Fixed::new(
            &fixed::Config::new(fixed::Values { rate, ..fixed::Values::default() }).unwrap(),
        );
        let place = Place { limit: Limit::Packets(250), nominal: rate, random: Random::stream(1, "queue") };
        let queue = QueueConfig::new("droptail", &[]).unwrap().build(&place);
        Restarting::new(service, queue, restarts.to_vec())
    }

    fn restart(at: u64, down: u64, waiting: Waiting) -> Restart {
        Restart { at: Duration::from_millis(at), down: Duration::from_millis(down), waiting }
    }

    /// Id, ms and reason.
    type Death = (u64, u64, Reason);

    /// (id, ms) of what left, and what died.
    fn outcomes(link: &mut impl PathElement<Sample>, until: Time) -> (Vec<(u64, u64)>, Vec<Death>) {
        let (mut left, mut died) = (Vec::new(), Vec::new());
        while let Some(output) = link.poll(until) {
            let at = output.at().as_nanos() / 1_000_000;
            match output {
                Output::Dropped(dropped) => died.push((dropped.packet.id, at, dropped.reason)),
                other => left.push((other.packet().id, at)),
            }
        }
        (left, died)
    }

    #[test]
    fn what_waits_dies_with_the_router_and_what_is_on_the_wire_arrives() {
        let mut link = link(&[restart(2, 0, Waiting::Lost)]);
        (0..6).for_each(|id| link.accept(ms(0), Sample::new(id, 1500)));
        // At 2 ms packet 1 has left and packet 2 is about to begin: what is due at the same time comes first.
        let (left, died) = outcomes(&mut link, ms(50));
        assert_eq!(left, [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(died, [3, 4, 5].map(|id| (id, 2, Reason::Restart)));
        assert_eq!(link.next_wakeup(), None);
        link.accept(ms(60), Sample::new(6, 1500));
        assert_eq!(outcomes(&mut link, ms(70)).0, [(6, 61)]);
    }

    #[test]
    fn kept_packets_leave_as_if_nothing_had_happened_but_wait_anew() {
        let mut link = link(&[restart(2, 0, Waiting::Kept)]);
        (0..6).for_each(|id| link.accept(ms(0), Sample::new(id, 1500)));
        let mut waits = Vec::new();
        while let Some(Output::Departed(departed)) = link.poll(ms(50)) {
            waits.push((departed.packet.id, departed.queued.as_nanos() / 1_000_000));
        }
        assert_eq!(waits, [(0, 1), (1, 2), (2, 3), (3, 2), (4, 3), (5, 4)]);
    }

    #[test]
    fn nothing_gets_through_while_the_router_is_away() {
        let mut link = link(&[restart(30, 10, Waiting::Lost), restart(5, 3, Waiting::Lost)]);
        for id in 0..50 {
            link.accept(ms(id), Sample::new(id, 100));
        }
        let (left, died) = outcomes(&mut link, ms(100));
        let away = |id: &u64| (5..8).contains(id) || (30..40).contains(id);
        assert_eq!(
            died.iter().map(|dead| dead.0).collect::<Vec<_>>(),
            (0..50).filter(away).collect::<Vec<_>>()
        );
        assert_eq!(left.len() + died.len(), 50);
    }

    #[test]
    fn the_queue_forgets_what_it_knew() {
        let rate = Rate::from_mbps(12);
        let service = fixed::Fixed::new(
            &fixed::Config::new(fixed::Values { rate, ..fixed::Values::default() }).unwrap(),
        );
        let place = Place { limit: Limit::Packets(250), nominal: rate, random: Random::stream(1, "queue") };
        let queue = QueueConfig::new("abc", &[("token_start", "0")]).unwrap().build(&place);
        let mut link: Restarting<Sample, _, _> =
            Restarting::new(service, queue, [restart(500, 0, Waiting::Lost)].to_vec());
        let cr = |link: &Restarting<Sample, AnyQueue<Sample>, fixed::Fixed>| {
            let mut cr = f64::NAN;
            link.link.queue().inspect(&mut |name, value| {
                if name == "measured_rate_bps" {
                    cr = value;
                }
            });
            cr
        };
        for id in 0..400 {
            link.accept(ms(id), Sample::new(id, 1500));
            while link.poll(ms(id)).is_some() {}
        }
        assert!(cr(&link) > 1e7, "{}", cr(&link));
        while link.poll(ms(600)).is_some() {}
        assert_eq!(cr(&link), 0.0);
    }
}
