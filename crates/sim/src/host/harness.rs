//! A path for tests: two delay lines and a fixed-rate link with a short queue, on a clock that jumps from
//! event to event. What happens to each packet is decided by a closure.

use std::collections::BTreeMap;

use brakelight_core::controller::Controller;
use brakelight_core::ecn::Ecn;
use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::{Direction, Duplicate, FlowId, Packet, PacketId};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{ControllerConfig, FeedbackConfig, Host};
use brakelight_scenario::clock::Clock;
use brakelight_scenario::traffic::Traffic;

use super::{FlowConfig, FlowHost};
use crate::engine::Routed;
use crate::packet::{Kind, SimPacket};

/// What the path does to a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Verdict {
    Deliver,
    Drop,
    /// Delivered after the others that were sent up to this much later.
    Late(Duration),
    /// Delivered twice, the copy this much later.
    Twice(Duration),
    /// Delivered with CE.
    Mark,
}

/// One packet as it was sent, for traces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) packet: SimPacket,
}

impl Sent {
    pub(crate) fn segment(&self) -> Option<u32> {
        match self.packet.kind() {
            Kind::Data { segment, .. } => Some(segment),
            _ => None,
        }
    }
    pub(crate) fn millis(&self) -> f64 {
        self.at.as_nanos() as f64 * 1e-6
    }
}

/// A host and its path.
pub(crate) struct World<F> {
    pub(crate) host: FlowHost,
    pub(crate) now: Time,
    pub(crate) sent: Vec<Sent>,
    profile: Host,
    delay: Duration,
    rate: Option<Rate>,
    limit: u64,
    busy_until: Time,
    flying: BTreeMap<(Time, u64), SimPacket>,
    sequence: u64,
    verdict: F,
}

pub(crate) fn config(host: Host, traffic: Traffic) -> FlowConfig {
    let (mss, overhead) = brakelight_scenario::scenario::packet_sizes(host);
    FlowConfig {
        flow: FlowId(0),
        host,
        controller: ControllerConfig::new("newreno", &[]).unwrap(),
        feedback: FeedbackConfig::new("delayed", &[]).unwrap(),
        ack_every: 2,
        ack_delay: brakelight_scenario::scenario::ack_delay(host),
        mss,
        overhead,
        initial_window: 10,
        pacing_burst: 10,
        reordering: brakelight_scenario::scenario::Reordering::Fixed,
        undo: true,
        read_batch: 1,
        traffic,
        start: Time::ZERO,
        stop: None,
        receiver_clock: Clock::default(),
        jitter: Duration::ZERO,
        random: Random::stream(1, "host"),
        controller_random: Random::stream(1, "controller"),
        acks_are_read: false,
        check_contract: true,
        record_stages: true,
        record_frames: true,
    }
}

/// So many full segments.
pub(crate) fn segments(host: Host, count: u64) -> Traffic {
    let (mss, _) = brakelight_scenario::scenario::packet_sizes(host);
    Traffic::Size(Bytes(mss.0 * count))
}

impl<F: FnMut(Time, &SimPacket) -> Verdict> World<F> {
    /// A path of `rtt` without a bottleneck.
    pub(crate) fn new(config: FlowConfig, rtt: Duration, verdict: F) -> Self {
        World {
            profile: config.host,
            host: FlowHost::new(config),
            now: Time::ZERO,
            sent: Vec::new(),
            delay: rtt / 2,
            rate: None,
            limit: u64::MAX,
            busy_until: Time::ZERO,
            flying: BTreeMap::new(),
            sequence: 0,
            verdict,
        }
    }

    /// Puts data through a link of `rate` that holds at most `limit` bytes.
    pub(crate) fn bottleneck(mut self, rate: Rate, limit: u64) -> Self {
        self.rate = Some(rate);
        self.limit = limit;
        self
    }

    fn fly(&mut self, at: Time, packet: SimPacket) {
        self.sequence += 1;
        self.flying.insert((at, self.sequence), packet);
    }

    fn carry(&mut self, mut packet: SimPacket) {
        self.sent.push(Sent { at: self.now, packet });
        let verdict = (self.verdict)(self.now, &packet);
        if verdict == Verdict::Drop {
            return self.host.release(packet);
        }
        if verdict == Verdict::Mark {
            packet.set_ecn(Ecn::Ce);
        }
        let mut leaves = self.now;
        if let (Some(rate), Direction::Forward) = (self.rate, packet.direction()) {
            let start = self.busy_until.max(self.now);
            if rate.bytes_in(start.since(self.now)).0 + u64::from(packet.size) > self.limit {
                return self.host.release(packet);
            }
            self.busy_until = start + rate.time_for(Bytes(u64::from(packet.size)));
            leaves = self.busy_until;
        }
        let arrives = leaves + self.delay;
        match verdict {
            Verdict::Late(extra) => self.fly(arrives + extra, packet),
            Verdict::Twice(extra) => {
                self.fly(arrives, packet);
                let copy = packet.duplicate(PacketId(u64::MAX - self.sequence));
                self.fly(arrives + extra, copy);
            }
            _ => self.fly(arrives, packet),
        }
    }

    fn drain(&mut self) {
        while let Some(packet) = self.host.poll_transmit(self.now) {
            self.carry(packet);
        }
    }

    /// Runs until `end`, or until nothing can happen any more.
    pub(crate) fn run(&mut self, end: Time) {
        self.drain();
        loop {
            let arrival = self.flying.first_key_value().map_or(Time::MAX, |(&(at, _), _)| at);
            let wakeup = self.host.next_wakeup().unwrap_or(Time::MAX);
            let next = arrival.min(wakeup);
            if next > end || next == Time::MAX {
                return;
            }
            assert!(next >= self.now, "time runs forward: {next:?} after {:?}", self.now);
            self.now = next;
            if arrival <= wakeup {
                let (_, packet) = self.flying.pop_first().unwrap();
                self.host.accept(self.now, packet);
            }
            self.drain();
        }
    }

    /// The window, in full packets.
    pub(crate) fn cwnd(&self) -> f64 {
        let (mss, _) = brakelight_scenario::scenario::packet_sizes(self.profile);
        self.host.controller().unwrap().cwnd().as_f64() / mss.as_f64()
    }

    /// When `segment` was sent, each time.
    pub(crate) fn times_of(&self, segment: u32) -> Vec<f64> {
        self.data().filter(|sent| sent.segment() == Some(segment)).map(Sent::millis).collect()
    }

    pub(crate) fn data(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|sent| sent.segment().is_some())
    }

    pub(crate) fn acks(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|sent| matches!(sent.packet.kind(), Kind::Ack { .. }))
    }

    /// When each segment was sent the second time.
    pub(crate) fn retransmissions(&self) -> Vec<(u32, f64)> {
        let mut seen = std::collections::BTreeSet::new();
        self.data()
            .filter_map(|sent| {
                let segment = sent.segment()?;
                (!seen.insert(segment)).then(|| (segment, sent.millis()))
            })
            .collect()
    }

    /// What the application says of itself.
    pub(crate) fn outcome(&self, name: &str) -> Option<f64> {
        let mut found = None;
        self.host.application(self.now, &mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found
    }
}
