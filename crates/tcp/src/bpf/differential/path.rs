//! A link of varying rate with ABC's router, 100 ms of propagation, a receiver that ACKs every other packet,
//! and a sender that keeps a window in flight: what happens on it is recorded as events.

use std::collections::VecDeque;

use brakelight_core::controller::RecoveryState;
use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::parameters::Parameters;
use brakelight_core::queue::{Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::abc::{Abc, Config};
use brakelight_testkit::{Fixed, Sample};

/// Payload of a packet.
pub const MSS: u32 = 1448;
/// Its size at the IP layer.
pub const SIZE: u32 = 1500;

const PROPAGATION: Duration = Duration::from_millis(100);

/// An event at the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// An ACK.
    Ack(Ack),
    /// Losses begin an episode.
    Loss(Time),
    /// The retransmission timer fired.
    Timeout { at: Time, repeated: bool },
    /// The last episode was a mistake.
    Spurious(Time),
    /// Every packet of the episode has been acknowledged.
    RecoveryExit(Time),
    /// The flow sends again after a while without anything in flight.
    Idle { at: Time, idle: Duration },
}

/// What an ACK says. Sizes in packets of one MSS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    pub at: Time,
    pub acked: u32,
    pub accelerate: u32,
    pub brake: u32,
    pub ce: u32,
    pub inflight_before: u32,
    pub srtt: Duration,
    pub min_rtt: Duration,
    /// The newest packet: its number, its round trip, and when it arrived.
    pub newest: u64,
    /// The number of the packet that is sent next.
    pub next: u64,
    pub rtt: Duration,
    pub received: Time,
    pub cwnd_limited: bool,
    pub in_recovery: bool,
}

impl Ack {
    /// Returns the same for a controller of `core`.
    pub fn recovery(&self) -> RecoveryState {
        if self.in_recovery { RecoveryState::Recovery } else { RecoveryState::Open }
    }
}

/// How rough the path is.
#[derive(Clone, Copy, Debug)]
pub struct Roughness {
    /// Seed of everything random.
    pub seed: u64,
    /// Mean rate.
    pub rate: Rate,
    /// Chance that an ACK tells of a loss, a CE mark, a timeout, an idle second.
    pub loss: f64,
    pub ce: f64,
    pub timeout: f64,
    pub idle: f64,
    /// Whether the router marks; what it says is lost otherwise.
    pub marks: bool,
}

/// The path with the sender's packets on it.
pub struct Path {
    rough: Roughness,
    random: Random,
    queue: Abc<Sample>,
    link: Fixed,
    now: Time,
    next_service: Time,
    next_rate: Time,
    arrivals: VecDeque<(Time, Sample, Mark)>,
    inflight: u32,
    sent: u64,
    srtt: Duration,
    min_rtt: Duration,
    recovery_until: Option<Time>,
    limited_until: Time,
    last_event: Time,
}

impl Path {
    pub fn new(rough: Roughness) -> Self {
        let place = Place {
            limit: Limit::Packets(250),
            nominal: rough.rate,
            random: Random::stream(rough.seed, "queue"),
        };
        let config = Config::from_options([("target", "20ms")]).expect("the option is known");
        Path {
            random: Random::stream(rough.seed, "path"),
            queue: Abc::new(&config, &place),
            link: Fixed(rough.rate),
            now: Time::ZERO,
            next_service: Time::ZERO,
            next_rate: Time::ZERO,
            arrivals: VecDeque::new(),
            inflight: 0,
            sent: 0,
            srtt: PROPAGATION,
            min_rtt: PROPAGATION,
            recovery_until: None,
            limited_until: Time::ZERO,
            last_event: Time::ZERO,
            rough,
        }
    }

    /// Sends what a window of `cwnd_bytes` allows and lets time pass until the sender hears something.
    pub fn next(&mut self, cwnd_bytes: u64) -> Vec<Event> {
        let application = if self.now < self.limited_until { 12 } else { u64::MAX };
        let window = (cwnd_bytes / u64::from(MSS)).min(application);
        let mut events = Vec::new();
        let mut drops = Vec::new();
        while u64::from(self.inflight) < window.max(1) {
            self.inflight += 1;
            self.sent += 1;
            let packet = Sample { sent_at: Some(self.now), ..Sample::abc(self.sent, SIZE, Ecn::Ect1) };
            self.queue.enqueue(self.now, packet, &mut self.link, &mut drops);
        }
        while self.arrivals.front().is_none_or(|(at, ..)| *at > self.next_service)
            && self.queue.backlog().packets > 0
        {
            self.serve();
        }
        if !drops.is_empty() {
            self.inflight -= drops.len() as u32;
            self.episode(&mut events);
        }
        self.hear(&mut events);
        events
    }

    /// The link's next packet leaves.
    fn serve(&mut self) {
        if self.next_service >= self.next_rate {
            self.link.0 = self.rough.rate.mul_f64(self.random.uniform() * 1.8 + 0.1);
            self.next_rate = self.next_service + Duration::from_millis(500);
        }
        let at = self.next_service.max(self.now);
        self.next_service = at + self.link.0.time_for(Bytes(u64::from(SIZE)));
        let left = self.queue.dequeue(at, &mut self.link, &mut Vec::new());
        if let Some(left) = left {
            self.arrivals.push_back((at + PROPAGATION, left.packet, left.mark));
        }
    }

    fn episode(&mut self, events: &mut Vec<Event>) {
        if self.recovery_until.is_none() {
            self.recovery_until = Some(self.now + self.srtt);
            events.push(Event::Loss(self.now));
        }
    }

    /// One ACK for up to two packets, and what else happens then.
    fn hear(&mut self, events: &mut Vec<Event>) {
        let mut ack = Ack {
            at: self.now,
            acked: 0,
            accelerate: 0,
            brake: 0,
            ce: 0,
            inflight_before: self.inflight,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            newest: 0,
            next: self.sent + 1,
            rtt: Duration::ZERO,
            received: self.now,
            cwnd_limited: self.now >= self.limited_until,
            in_recovery: false,
        };
        while ack.acked < 2 {
            let Some((at, packet, mark)) = self.arrivals.pop_front() else { break };
            self.now = self.now.max(at);
            ack.acked += 1;
            let rtt = self.now.since(packet.sent_at.expect("each is sent with its time"));
            (ack.newest, ack.rtt, ack.received) = (packet.id, rtt, at.saturating_sub(PROPAGATION / 2));
            // Whole microseconds, as the kernel has them.
            self.srtt = Duration::from_micros((self.srtt.as_nanos() / 1000 * 7 + rtt.as_nanos() / 1000) / 8);
            match mark {
                _ if !self.rough.marks => {}
                _ if self.random.chance(self.rough.ce) => ack.ce += 1,
                Mark::Accelerate => ack.accelerate += 1,
                _ => ack.brake += 1,
            }
        }
        if ack.acked == 0 {
            self.now += self.srtt;
            self.inflight = 0;
            return;
        }
        self.inflight = self.inflight.saturating_sub(ack.acked);
        (ack.at, ack.srtt) = (self.now, self.srtt);
        if ack.ce > 0 || self.random.chance(self.rough.loss) {
            self.episode(events);
        }
        if self.random.chance(self.rough.timeout) {
            events.push(Event::Timeout { at: self.now, repeated: false });
            if self.random.chance(0.3) {
                events.push(Event::Timeout { at: self.now, repeated: true });
            }
        }
        match self.recovery_until {
            Some(until) if self.now >= until => {
                let spurious = self.random.chance(0.2);
                events.push(if spurious { Event::Spurious(self.now) } else { Event::RecoveryExit(self.now) });
                self.recovery_until = None;
            }
            _ => {}
        }
        if self.random.chance(self.rough.idle) {
            self.limited_until = self.now + Duration::from_secs(1);
            let idle = Duration::from_millis(300 + (self.random.uniform() * 2000.0) as u64);
            events.push(Event::Idle { at: self.now, idle });
        }
        ack.in_recovery = self.recovery_until.is_some();
        events.push(Event::Ack(ack));
        self.last_event = self.now;
    }
}
