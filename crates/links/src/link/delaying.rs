//! A link with a delay line before its queue, and one limit for both: what netem with a tbf below it does on
//! Linux, where the packets that netem delays count against the same limit as those that wait.
//!
//! ```text
//! arrival at t:      dropped if those in the delay line and in the queue, with it, are more than `limit`
//! at t + delay:      it arrives at the queue
//! ```
//!
//! As with every link, the packet being sent counts no longer. `queued` is the time since the arrival at the
//! queue: the delay is propagation.
//!
//! Sources: tc-netem(8), `delay` and `limit`: the packets that the qdisc holds; Linux 5.15
//! net/sched/sch_netem.c, netem_enqueue: the limit is compared with a count that holds the packets of the
//! qdisc below too. Since 6.13 it holds those in the delay line alone.
//!
//! Deviations: D1 netem's limit is in packets and tbf's in bytes; here either unit is for both.

use brakelight_core::packet::Packet;
use brakelight_core::path::{Output, PathElement};
use brakelight_core::queue::{Backlog, Dropped, Queue, Reason};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};

use super::ahead::Ahead;
use super::{Link, Service};
use crate::elements::AnyService;

/// A link with a queue `Q` and a service `S`, and a delay line that shares the queue's limit.
#[derive(Clone, Debug)]
pub struct Delaying<P, Q, S> {
    /// The delay line holds packets until the time at which they leave it.
    line: Ahead<P, Q, S, Time>,
    delay: Duration,
    limit: Limit,
    /// What the delay line holds.
    held: Backlog,
}

impl<P: Packet, Q: Queue<P>, S: Service> Delaying<P, Q, S> {
    /// Returns an idle link behind an empty delay line. The two hold at most `limit` together; the queue may
    /// have a lower limit of its own.
    pub fn new(service: S, queue: Q, delay: Duration, limit: Limit) -> Self {
        Delaying { line: Ahead::new(Link::new(service, queue)), delay, limit, held: Backlog::default() }
    }

    /// Returns what the link can carry in `from <= t < to`, used or not; see [`Service::capacity_between`].
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.line.link.capacity_between(from, to)
    }

    /// Returns the link behind the delay line.
    pub fn link(&self) -> &Link<P, Q, S> {
        &self.line.link
    }

    /// Moves what the delay line gives up by `now` to the queue, and lets the link do what is due by then.
    fn advance(&mut self, now: Time) {
        while let Some((at, packet)) = self.line.release(now) {
            self.held.remove(packet.size());
            self.line.link.accept(at, packet);
        }
        self.line.drain(now);
    }
}

impl<P: Packet, Q: Queue<P>> Delaying<P, Q, AnyService> {
    /// [`Link::set_rate`].
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.line.link.set_rate(now, rate);
    }
}

impl<P: Packet, Q: Queue<P>, S: Service> PathElement<P> for Delaying<P, Q, S> {
    fn accept(&mut self, now: Time, packet: P) {
        self.advance(now);
        let size = packet.size();
        if self.held.with(self.line.link.backlog()).admits(self.limit, size) {
            self.held.add(size);
            self.line.held.push_back((now.saturating_add(self.delay), packet));
        } else {
            let dropped = Dropped { at: now, packet, reason: Reason::Overflow };
            self.line.happened.push_back(Output::Dropped(dropped));
        }
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        if self.line.happened.is_empty() {
            self.advance(now);
        }
        self.line.happened.pop_front()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.line.next_wakeup()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.line.for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use brakelight_core::queue::Place;
    use brakelight_core::random::Random;
    use brakelight_routers::{AnyQueue, QueueConfig};
    use brakelight_testkit::packet::Sample;

    use super::*;
    use crate::link::fixed;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// 10 ms of delay before 8 Mbit/s, so a packet of 1000 bytes per millisecond, and room for `limit` bytes.
    fn link(limit: u64, burst: u64) -> Delaying<Sample, AnyQueue<Sample>, fixed::Fixed> {
        let (rate, burst) = (Rate::from_mbps(8), Bytes(burst));
        let values = fixed::Values { rate, burst, ..fixed::Values::default() };
        let service = fixed::Fixed::new(&fixed::Config::new(values).unwrap());
        let limit = Limit::Bytes(Bytes(limit));
        let place = Place { limit, nominal: rate, random: Random::stream(1, "queue") };
        let queue = QueueConfig::new("droptail", &[]).unwrap().build(&place);
        Delaying::new(service, queue, Duration::from_millis(10), limit)
    }

    /// Ids, with the ms.
    type Events = Vec<(u64, u64)>;

    /// What left and what died by `until`.
    fn outcomes(link: &mut impl PathElement<Sample>, until: Time) -> (Events, Events) {
        let (mut left, mut died) = (Vec::new(), Vec::new());
        while let Some(output) = link.poll(until) {
            let entry = (output.packet().id, output.at().as_nanos() / 1_000_000);
            match output {
                Output::Dropped(_) => died.push(entry),
                _ => left.push(entry),
            }
        }
        (left, died)
    }

    #[test]
    fn packets_arrive_at_the_queue_after_the_delay() {
        let mut link = link(100_000, 0);
        [0, 0, 5].iter().zip(0..).for_each(|(&at, id)| link.accept(ms(at), Sample::new(id, 1000)));
        assert_eq!(link.next_wakeup(), Some(ms(10)));
        assert_eq!(outcomes(&mut link, ms(50)).0, [(0, 11), (1, 12), (2, 16)]);
        assert_eq!(link.next_wakeup(), None);
    }

    #[test]
    fn the_limit_holds_for_the_delay_line_and_the_queue_together() {
        // At the link's rate ten packets are in the delay line: of a limit of 15 five are left for the queue.
        let mut link = link(15_000, 0);
        let mut died = Vec::new();
        for id in 0..40 {
            // Two packets in each of the first ten milliseconds, then one.
            for copy in 0..if id < 10 { 2 } else { 1 } {
                link.accept(ms(id), Sample::new(2 * id + copy, 1000));
            }
            died.extend(outcomes(&mut link, ms(id)).1);
        }
        let (_, late) = outcomes(&mut link, ms(100));
        // 15 fit until the link takes the first one, at 10 ms; from then on it takes one every millisecond.
        let times: Vec<u64> = died.iter().map(|(_, at)| *at).collect();
        assert_eq!(times, [7, 8, 8, 9, 9], "{died:?}");
        assert!(late.is_empty());
    }

    #[test]
    fn a_train_that_the_bucket_holds_leaves_without_delay_and_is_bounded_by_the_limit() {
        let mut link = link(15_000, 20_000);
        (0..20).for_each(|id| link.accept(ms(0), Sample::new(id, 1000)));
        let (left, died) = outcomes(&mut link, ms(10));
        assert_eq!(left, (0..15).map(|id| (id, 10)).collect::<Vec<_>>());
        assert_eq!(died, (15..20).map(|id| (id, 0)).collect::<Vec<_>>());
    }

    #[test]
    fn late_polls_change_nothing() {
        let run = |every: u64| {
            let mut link = link(12_000, 3_000);
            let (mut left, mut died) = (Vec::new(), Vec::new());
            for at in 0..200 {
                if at % 4 != 3 {
                    link.accept(ms(at), Sample::new(at, 1500));
                }
                if at % every == 0 {
                    let (more_left, more_died) = outcomes(&mut link, ms(at));
                    left.extend(more_left);
                    died.extend(more_died);
                }
            }
            let (more_left, more_died) = outcomes(&mut link, ms(1000));
            left.extend(more_left);
            died.extend(more_died);
            (left, died)
        };
        assert_eq!(run(1), run(7));
        assert!(!run(1).1.is_empty());
    }
}
