//! A link with two ways to serve: light trains for a sender that was idle, and its service for one that keeps
//! it busy. This is how CellReplay replays a cellular link; when a packet is released, and by which of the
//! two, is [`trains`](crate::trains).
//!
//! ```text
//! arrival at t       the packet waits for its release at r, whatever the queue holds
//! at r, light        it leaves, if nothing waits in the queue and nothing is being sent
//! at r, otherwise    it arrives at the queue, which the heavy opportunities serve
//! ```
//!
//! The base delay is in it, so it is a path's propagation too. `queued` is the wait for a light opportunity,
//! or the time since the arrival at the queue. The queue's limit does not count packets before their release,
//! and its discipline sees none that leaves light: such a packet is neither marked nor dropped.
//!
//! Capacity is that of the heavy opportunities: what left light took none of it.

use brakelight_core::ecn::Mark;
use brakelight_core::packet::Packet;
use brakelight_core::path::{Departed, Output, PathElement};
use brakelight_core::queue::Queue;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::ahead::{Ahead, Due};
use super::{Link, Service};
use crate::elements::AnyService;
use crate::trains::{Progress, Release, Trains};

impl Due for Release {
    fn due(&self) -> Time {
        self.at
    }
}

/// A link with a queue `Q` and a service `S`, and light trains before them.
#[derive(Clone, Debug)]
pub struct LightHeavy<P, Q, S> {
    /// Packets are held until their release.
    line: Ahead<P, Q, S, Release>,
    progress: Progress,
    /// Whether the light trains still serve: until somebody sets a rate.
    light: bool,
}

impl<P: Packet, Q: Queue<P>, S: Service> LightHeavy<P, Q, S> {
    /// Returns an idle link that begins so far into the recording of `trains`; `service` begins where it was
    /// told to.
    pub fn new(service: S, queue: Q, trains: Trains, offset: Duration) -> Self {
        LightHeavy {
            line: Ahead::new(Link::new(service, queue)),
            progress: Progress::new(trains, offset),
            light: true,
        }
    }

    /// Returns what the heavy opportunities can carry in `from <= t < to`, used or not; see
    /// [`Service::capacity_between`].
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.line.link.capacity_between(from, to)
    }

    /// Returns the link of the heavy opportunities.
    pub fn link(&self) -> &Link<P, Q, S> {
        &self.line.link
    }

    /// Releases what is due by `now`, and lets the link do what is due by then.
    fn advance(&mut self, now: Time) {
        while let Some((Release { at, waited: queued, light }, packet)) = self.line.release(now) {
            if light && self.line.link.is_idle() {
                let departed = Departed { at, packet, queued, mark: Mark::None };
                self.line.happened.push_back(Output::Departed(departed));
            } else {
                self.line.link.accept(at, packet);
            }
        }
        self.line.drain(now);
    }
}

impl<P: Packet, Q: Queue<P>> LightHeavy<P, Q, AnyService> {
    /// [`Link::set_rate`]; from then on no packet that arrives is light, and each has the base delay alone.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.light = false;
        self.line.link.set_rate(now, rate);
    }
}

impl<P: Packet, Q: Queue<P>, S: Service> PathElement<P> for LightHeavy<P, Q, S> {
    fn accept(&mut self, now: Time, packet: P) {
        self.advance(now);
        let release = match self.light {
            true => self.progress.release(now, packet.size()),
            false => self.progress.release_heavy(now),
        };
        self.line.held.push_back((release, packet));
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
    use alloc::vec;
    use alloc::vec::Vec;

    use brakelight_core::queue::Place;
    use brakelight_core::random::Random;
    use brakelight_core::units::Limit;
    use brakelight_routers::{AnyQueue, QueueConfig};
    use brakelight_testkit::packet::Sample;

    use super::super::traced;
    use super::*;
    use crate::trace::Trace;
    use crate::trains::Train;

    type Replay = LightHeavy<Sample, AnyQueue<Sample>, AnyService>;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Light: 20 ms, then 1400 bytes every 10 ms, four of them. Heavy: 1400 bytes every millisecond.
    fn link(packets: u32) -> Replay {
        let train = |at: u64| Train {
            at: Duration::from_millis(at),
            delay: Duration::from_millis(20),
            opportunities: (0..4).map(|k| Duration::from_millis(10 * k)).collect(),
        };
        let trains = Trains::new(vec![train(0), train(100)], Trains::OPPORTUNITY, Trains::IDLE).unwrap();
        let values =
            traced::Values { opportunity: Bytes(1400), overhead: Bytes(0), ..traced::Values::default() };
        let trace = Trace::from_millis(1..=1000).unwrap();
        let service = traced::Traced::new(&traced::Config::new(values).unwrap(), trace);
        let (nominal, random) = (service.nominal(), Random::stream(1, "queue"));
        let place = Place { limit: Limit::Packets(packets), nominal, random };
        let queue = QueueConfig::new("droptail", &[]).unwrap().build(&place);
        LightHeavy::new(AnyService::Traced(service), queue, trains, Duration::ZERO)
    }

    /// (id, ms, queued ms) of what left, and ids of what died.
    fn outcomes(link: &mut Replay, until: Time) -> (Vec<(u64, u64, u64)>, Vec<u64>) {
        let (mut left, mut died) = (Vec::new(), Vec::new());
        while let Some(output) = link.poll(until) {
            let id = output.packet().id;
            match output {
                Output::Departed(Departed { at, queued, .. }) => {
                    left.push((id, at.as_nanos() / 1_000_000, queued.as_nanos() / 1_000_000));
                }
                _ => died.push(id),
            }
        }
        (left, died)
    }

    #[test]
    fn a_short_train_after_a_pause_takes_the_light_timing() {
        let mut link = link(100);
        (0..3).for_each(|id| link.accept(ms(0), Sample::new(id, 1400)));
        link.accept(ms(200), Sample::new(3, 1400));
        assert_eq!(outcomes(&mut link, ms(999)).0, [(0, 20, 0), (1, 30, 10), (2, 40, 20), (3, 220, 0)]);
        assert_eq!(link.next_wakeup(), None);
    }

    #[test]
    fn a_long_train_goes_on_with_the_heavy_opportunities() {
        let mut link = link(100);
        (0..20).for_each(|id| link.accept(ms(0), Sample::new(id, 1400)));
        let (left, _) = outcomes(&mut link, ms(999));
        let times: Vec<u64> = left.iter().map(|(_, at, _)| *at).collect();
        // Four light ones until 50 ms, where all others enter the queue; then one every millisecond.
        assert_eq!(times, [20, 30, 40, 50].into_iter().chain(51..=66).collect::<Vec<_>>());
    }

    #[test]
    fn a_saturating_flow_has_the_heavy_rate() {
        let mut link = link(1000);
        let mut left = Vec::new();
        for id in 0..900 {
            link.accept(ms(id), Sample::new(id, 1400));
            left.extend(outcomes(&mut link, ms(id)).0);
        }
        let count = |from, to| left.iter().filter(|(_, at, _)| (from..to).contains(at)).count();
        assert_eq!((count(0, 50), count(100, 900)), (3, 800));
    }

    #[test]
    fn a_light_packet_waits_for_the_heavy_ones_before_it() {
        let mut link = link(100);
        (0..60).for_each(|id| link.accept(ms(0), Sample::new(id, 1400)));
        // A new train at 32 ms would have its first packet through at 52 ms; the queue runs empty at 106 ms.
        link.accept(ms(32), Sample::new(60, 1400));
        let (left, _) = outcomes(&mut link, ms(999));
        assert_eq!(left.last().map(|&(id, at, _)| (id, at)), Some((60, 107)));
    }

    #[test]
    fn the_queue_s_limit_holds_for_what_was_released() {
        let mut link = link(10);
        (0..30).for_each(|id| link.accept(ms(0), Sample::new(id, 1400)));
        let (left, died) = outcomes(&mut link, ms(999));
        assert_eq!((left.len(), died), (14, (14..30).collect::<Vec<_>>()));
    }

    #[test]
    fn a_rate_that_is_set_ends_the_light_trains() {
        let mut link = link(100);
        link.accept(ms(0), Sample::new(0, 1400));
        link.set_rate(ms(0), Rate::from_bps(11_200_000));
        (1..5).for_each(|id| link.accept(ms(100), Sample::new(id, 1400)));
        let times: Vec<u64> = outcomes(&mut link, ms(999)).0.iter().map(|(_, at, _)| *at).collect();
        assert_eq!(times, [20, 121, 122, 123, 124]);
    }
}
