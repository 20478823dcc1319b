//! Both ends of one connection of a host from outside, with its application, as an endpoint of the engine.
//!
//! The application starts when the flow does; what it writes before the connection is open waits. The stack
//! is given a few packets more than it has sent, so that an application can still discard the rest. How much
//! it has sent the stack says. For one that cannot, it is estimated from above, by the payloads of its
//! datagrams: then it never runs dry, and more and more waits inside.
//!
//! The receiving end's packets leave late by a draw from 0 to the flow's jitter, in order, as every host's
//! do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brakelight_apps::call::FrameRecord;
use brakelight_apps::traffic::Traffic;
use brakelight_apps::{AnyApplication, Application, Datagram, Socket};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::host::{AHEAD, End, Pair};
use brakelight_core::packet::{Direction, FlowId, Packet as _, PacketId};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{Host, HostedConfig};
use brakelight_scenario::scenario::FlowSpec;

use super::inbox::Inbox;
use super::payloads::Payloads;
use crate::engine::Routed as _;
use crate::host::FlowConfig;
use crate::packet::{Contents, Kind, SimPacket};
use crate::report::{FlowCounters, SenderView};

/// IPv4 and UDP headers, in bytes.
const HEADERS: u16 = 28;
/// rfc9000 14.1, in bytes.
const LEAST_DATAGRAM: u16 = 1200;
/// Datagrams of one end at one moment: a stack that sends more is stuck.
const MOST_AT_ONCE: u32 = 1 << 20;
/// Wake-ups in a row that ask for another one at once: a stack that asks for more is stuck.
const MOST_WAKEUPS: u32 = 10_000;
/// The fields of a message: tag, number, echo, time held.
const MESSAGE: usize = 13;

/// Where a run is, for whoever watches it from another thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Beacon(Arc<[AtomicU64; 3]>);

impl Beacon {
    /// Notes that flow number `flow` is about to be called at `now`.
    fn note(&self, flow: FlowId, now: Time) {
        let [calls, at, of] = &*self.0;
        at.store(now.as_nanos(), Ordering::Relaxed);
        of.store(u64::from(flow.0), Ordering::Relaxed);
        calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of calls so far, and of the newest one the time and the flow's number.
    pub(super) fn read(&self) -> (u64, Time, usize) {
        let [calls, at, of] = &*self.0;
        let at = Time::from_nanos(at.load(Ordering::Relaxed));
        (calls.load(Ordering::Relaxed), at, of.load(Ordering::Relaxed) as usize)
    }
}

/// Both ends of one connection, with its application.
#[derive(Debug)]
pub struct HostedFlow {
    id: FlowId,
    encoding: Encoding,
    datagram: u16,
    pair: Pair,
    application: AnyApplication,
    application_at: Time,
    stream: Stream,
    messages: Vec<Datagram>,
    /// Messages that their end could not send yet.
    held: Vec<Datagram>,
    payloads: Payloads,
    buffer: Vec<u8>,
    /// The receiving end's packets, with when they leave.
    outbox: VecDeque<(Time, SimPacket)>,
    last_left_at: Time,
    inbox: Inbox,
    jitter: Duration,
    random: Random,
    /// Packets so far.
    packets: u64,
    start_at: Option<Time>,
    stop_at: Option<Time>,
    wake_at: Option<Time>,
    /// When the connection ended before its time, and why.
    closed: Option<(Time, String)>,
    at_once: (Time, u32),
    wakeups: u32,
    beacon: Beacon,
}

/// The flow's one stream.
#[derive(Debug, Default)]
struct Stream {
    /// Bytes that the application has asked to be sent; [`u64::MAX`] without end.
    asked: u64,
    /// Of these, what the stack has.
    written: u64,
    /// Of these, what the stack has sent: at most, where it does not say.
    sent: u64,
    /// What arrived in order.
    delivered: u64,
    /// What the application knows of that.
    heard: u64,
    finishing: bool,
    finished: bool,
}

impl HostedFlow {
    /// Returns a flow that has not started, of the host that `hosted` names.
    pub(super) fn new(config: FlowConfig, hosted: &HostedConfig, beacon: &Beacon) -> Result<Self, String> {
        let about = hosted.about();
        let name = hosted.name();
        let own = |what: &str| format!("{what}: `{name}` has its own: leave it out");
        if config.host != Host::Quic {
            return Err(format!("host: `{name}` runs in its own host: leave `host` out"));
        }
        if config.initial_window != FlowSpec::INITIAL_WINDOW {
            return Err(own("initial_window"));
        }
        if config.pacing_burst != FlowSpec::PACING_BURST {
            return Err(own("pacing_burst"));
        }
        let datagram = u16::try_from((config.mss + config.overhead).0).unwrap_or(u16::MAX) - HEADERS;
        if datagram < LEAST_DATAGRAM {
            let least = LEAST_DATAGRAM + HEADERS;
            return Err(format!(
                "mss: its packets are too small for `{name}`: valid are {least} bytes and more"
            ));
        }
        match config.traffic {
            // In the simulator they are a bundle of such flows.
            Traffic::ShortFlows(_) => {
                return Err(format!(
                    "traffic: `{name}` has one connection over real sockets, and `short-flows` needs many"
                ));
            }
            Traffic::Game(_) | Traffic::RequestResponse(_) if !about.messages => {
                return Err(format!("traffic: `{name}` carries no messages, which this application needs"));
            }
            ref call if call.is_in_pieces() => {
                return Err(format!("traffic.repair: `{name}` has a stream and messages: valid is stream"));
            }
            Traffic::Call(call) if call.audio && !about.messages => {
                return Err(format!("traffic.audio: `{name}` carries no messages, which sound needs"));
            }
            _ => {}
        }
        beacon.note(config.flow, Time::ZERO);
        let inbox = Inbox::new(&config);
        let pair = hosted.pair(datagram, config.controller_random)?;
        let application = AnyApplication::new(&config.traffic, Bytes(u64::from(datagram)))
            .record_frames(config.record_frames);
        Ok(HostedFlow {
            id: config.flow,
            encoding: about.encoding,
            datagram,
            pair,
            application,
            application_at: Time::MAX,
            stream: Stream::default(),
            messages: Vec::new(),
            held: Vec::new(),
            payloads: Payloads::default(),
            buffer: Vec::new(),
            outbox: VecDeque::new(),
            last_left_at: Time::ZERO,
            inbox,
            jitter: config.jitter,
            random: config.random,
            packets: 0,
            start_at: Some(config.start),
            stop_at: config.stop,
            wake_at: Some(config.start),
            closed: None,
            at_once: (Time::ZERO, 0),
            wakeups: 0,
            beacon: beacon.clone(),
        })
    }

    /// Returns a flow that has not started, of the host from outside that its controller lives in.
    ///
    /// # Errors
    /// The reason why there can be no such flow.
    pub fn open(config: FlowConfig) -> Result<Self, String> {
        let name = config.controller.name();
        let hosted = config.controller.hosted().cloned();
        let hosted = hosted.ok_or_else(|| format!("controller: `{name}` lives in no host from outside"))?;
        Self::new(config, &hosted, &Beacon::default())
    }

    /// Returns when the connection ended before its time, and why, if it did.
    pub fn closed(&self) -> Option<(Time, &str)> {
        self.closed.as_ref().map(|(at, reason)| (*at, reason.as_str()))
    }

    /// Returns whether none of its packets is on the way.
    pub(super) fn is_quiet(&self) -> bool {
        self.payloads.is_empty()
    }

    /// A packet arrived at its end. A copy leaves the payload for the original.
    pub(super) fn accept(&mut self, now: Time, packet: SimPacket) {
        if let Some(packet) = self.inbox.hold(now, packet) {
            self.take(now, packet);
        }
        self.wake_at = Some(now);
    }

    /// Gives a packet to its end.
    fn take(&mut self, now: Time, packet: SimPacket) {
        let Kind::Wire { slot, generation, .. } = packet.kind() else { return };
        let mut payload = std::mem::take(&mut self.buffer);
        if self.payloads.copy(slot, generation, &mut payload) {
            if !packet.id.is_copy() {
                self.payloads.remove(slot, generation);
            }
            self.receive(now, packet.direction(), packet.ecn(), &payload);
        }
        self.buffer = payload;
    }

    /// A datagram arrived at the end that `direction` leads to, with this ECN field: the UDP payload of a
    /// packet that travelled by itself, as over a real network.
    pub fn receive(&mut self, now: Time, direction: Direction, ecn: Ecn, payload: &[u8]) {
        self.beacon.note(self.id, now);
        self.end(direction).receive(now, ecn, payload);
        self.serve(now);
        self.wake_at = Some(now);
    }

    /// Writes into `payload` the UDP payload of a packet that is to travel by itself. Returns `false` if it
    /// was written before, or released.
    pub fn take_payload(&mut self, packet: &SimPacket, payload: &mut Vec<u8>) -> bool {
        let Kind::Wire { slot, generation, .. } = packet.kind() else { return false };
        let found = self.payloads.copy(slot, generation, payload);
        self.payloads.remove(slot, generation);
        found
    }

    /// The end that packets of this direction reach.
    fn end(&mut self, direction: Direction) -> &mut dyn End {
        match direction {
            Direction::Forward => &mut *self.pair.receiver,
            Direction::Reverse => &mut *self.pair.sender,
        }
    }

    /// Returns the next packet to send at `now`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        self.beacon.note(self.id, now);
        if self.wake_at.is_some_and(|at| at <= now) {
            self.wake_at = None;
            self.on_deadline(now);
        }
        while let Some(packet) = self.transmit(now, Direction::Reverse) {
            let late = self.jitter.mul_f64(self.random.uniform());
            self.last_left_at = self.last_left_at.max(now + late);
            self.outbox.push_back((self.last_left_at, packet));
        }
        if let Some(&(at, mut packet)) = self.outbox.front()
            && at <= now
        {
            self.outbox.pop_front();
            packet.sent_at = now;
            return Some(packet);
        }
        self.feed(now);
        if let Some(packet) = self.transmit(now, Direction::Forward) {
            self.wakeups = 0;
            return Some(packet);
        }
        let ends = [self.pair.sender.next_wakeup(), self.pair.receiver.next_wakeup()];
        let of_ends = ends.into_iter().flatten().min().filter(|_| self.closed.is_none());
        let outbox = self.outbox.front().map(|&(at, _)| at);
        let application = Some(self.application_at).filter(|at| *at != Time::MAX);
        let others = [self.start_at, self.stop_at, outbox, application, self.inbox.read_at()];
        // Both ends have just been served at `now`: what they want at once, they want a moment later.
        let is_hasty = of_ends.is_some_and(|at| at <= now);
        self.wakeups = if is_hasty { self.wakeups + 1 } else { 0 };
        assert!(
            self.wakeups <= MOST_WAKEUPS,
            "it asked {MOST_WAKEUPS} times in a row to be woken at once, and had nothing to send"
        );
        let of_ends = of_ends.map(|at| at.max(now + Duration::from_nanos(1)));
        self.wake_at = others.into_iter().chain([of_ends]).flatten().min();
        None
    }

    /// The next packet of the end that sends in this direction.
    fn transmit(&mut self, now: Time, direction: Direction) -> Option<SimPacket> {
        let mut payload = std::mem::take(&mut self.buffer);
        payload.clear();
        let sent = self.end(direction.opposite()).transmit(now, &mut payload);
        let packet = sent.map(|transmit| {
            let size = payload.len();
            assert!(
                size <= usize::from(self.datagram),
                "it sent a datagram of {size} bytes over a path that carries {}",
                self.datagram
            );
            self.at_once = if self.at_once.0 == now { (now, self.at_once.1 + 1) } else { (now, 1) };
            assert!(self.at_once.1 <= MOST_AT_ONCE, "it sent {MOST_AT_ONCE} datagrams at one moment");
            if direction == Direction::Forward {
                let estimate = self.stream.sent + size as u64;
                let sent = self.pair.sender.stream_sent().unwrap_or(estimate);
                self.stream.sent = sent.min(self.stream.written);
            }
            self.packet(now, direction, transmit.ecn, transmit.data, &payload)
        });
        self.buffer = payload;
        packet
    }

    fn packet(&mut self, now: Time, direction: Direction, ecn: Ecn, data: bool, payload: &[u8]) -> SimPacket {
        self.packets += 1;
        let (slot, generation) = self.payloads.insert(payload);
        SimPacket::new(&Contents {
            id: PacketId(u64::from(self.id.0) << 40 | self.packets),
            sent_at: now,
            kind: Kind::Wire { slot, generation, hash: self.packets as u16, data },
            flow: self.id,
            connection: 0,
            size: payload.len() as u16 + HEADERS,
            ecn,
            encoding: if ecn == Ecn::NotEct { Encoding::None } else { self.encoding },
            direction,
            cwr: false,
        })
    }

    /// Returns when the flow must be asked for packets next, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.wake_at
    }

    pub(super) fn release(&mut self, packet: SimPacket) {
        if let (Kind::Wire { slot, generation, .. }, false) = (packet.kind(), packet.id.is_copy()) {
            self.payloads.remove(slot, generation);
        }
    }

    fn on_deadline(&mut self, now: Time) {
        for packet in self.inbox.read(now) {
            self.take(now, packet);
        }
        if self.start_at.is_some_and(|at| at <= now) {
            self.start_at = None;
            self.pair.sender.connect(now);
            self.act(now, |application, socket| application.start(socket));
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            self.stop_at = None;
            self.act(now, |application, socket| application.stop(socket));
            self.stream.finishing = true;
        }
        for end in [&mut self.pair.sender, &mut self.pair.receiver] {
            if end.next_wakeup().is_some_and(|at| at <= now) {
                end.on_wakeup(now);
            }
        }
        if self.application_at <= now {
            self.act(now, |application, socket| application.on_timer(socket));
        }
        self.serve(now);
    }

    /// Lets the application act, and notes when it wants to act again.
    fn act(&mut self, now: Time, act: impl FnOnce(&mut AnyApplication, &mut FlowSocket<'_>)) {
        let state = self.pair.sender.state();
        let own = || Some(Rate::over(state.cwnd, state.rtt?.smoothed));
        let rate = state.pacing_rate.and_then(Rate::paced).or_else(own);
        let HostedFlow { stream, random, messages, .. } = self;
        act(&mut self.application, &mut FlowSocket { now, stream, rate, random, messages });
        self.application_at = self.application.next_timer();
        for message in std::mem::take(&mut self.messages) {
            self.post(now, message);
        }
    }

    /// Hands a message to the end that sends it, or keeps it until that can send it.
    fn post(&mut self, now: Time, message: Datagram) {
        let mut bytes = vec![0; usize::from(message.payload).max(MESSAGE)];
        bytes[0] = 1;
        for (place, number) in
            bytes[1..MESSAGE].chunks_exact_mut(4).zip([message.number, message.echo, message.held_us])
        {
            place.copy_from_slice(&number.to_be_bytes());
        }
        if !self.end(message.direction.opposite()).send_message(now, &bytes) {
            self.held.push(message);
        }
    }

    /// Lets the application know of what came, and takes note of a connection that is over.
    fn serve(&mut self, now: Time) {
        if self.closed.is_none() {
            let ends = [("sender", &self.pair.sender), ("receiver", &self.pair.receiver)];
            let reason = ends.into_iter().find_map(|(side, end)| Some(format!("{side}: {}", end.closed()?)));
            self.closed = reason.map(|reason| (now, reason));
        }
        for message in std::mem::take(&mut self.held) {
            self.post(now, message);
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            while let Some(bytes) = self.end(direction).take_message() {
                if let Some(message) = decoded(direction, &bytes) {
                    self.act(now, |application, socket| application.on_datagram(&message, socket));
                }
            }
        }
        self.stream.delivered += self.pair.receiver.read(now);
        if self.stream.delivered > self.stream.heard {
            self.stream.heard = self.stream.delivered;
            if self.application.listens() {
                self.act(now, |application, socket| application.on_delivered(socket));
            }
        }
    }

    /// Gives the stack what it can send next.
    fn feed(&mut self, now: Time) {
        let ahead = AHEAD * u64::from(self.datagram);
        let stream = &mut self.stream;
        while stream.written < stream.asked && stream.written - stream.sent < ahead {
            let taken = self.pair.sender.write(now, (stream.asked - stream.written).min(ahead));
            stream.written += taken;
            if taken == 0 {
                break;
            }
        }
        if stream.finishing && !stream.finished && stream.written >= stream.asked {
            stream.finished = true;
            self.pair.sender.finish(now);
        }
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> FlowCounters {
        let lost = self.pair.sender.state().lost_packets;
        FlowCounters { goodput_bytes: self.stream.delivered, retransmitted_packets: lost }
    }

    /// Returns the newest RTT sample that was not taken yet.
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.pair.sender.take_rtt_sample()
    }

    /// Returns the sender as it stands.
    pub fn sender(&self) -> SenderView {
        let state = self.pair.sender.state();
        SenderView {
            cwnd: state.cwnd,
            pacing_rate: state.pacing_rate,
            inflight: state.inflight.unwrap_or_default(),
            rtt: state.rtt,
            sent_packets: state.sent_packets,
            lost_packets: state.lost_packets,
            retransmitted_packets: state.lost_packets,
            delivered_bytes: Bytes(self.stream.delivered),
            ..SenderView::default()
        }
    }

    /// Calls `visit` with what the sender shows of itself, by name, in the unit the name ends in.
    pub fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let state = self.pair.sender.state();
        if let Some(inflight) = state.inflight {
            visit("inflight_bytes", inflight.as_f64());
        }
        visit("cwnd_bytes", state.cwnd.as_f64());
        if let Some(rtt) = state.rtt {
            visit("srtt_ms", rtt.smoothed.as_millis_f64());
        }
        if let Some(rate) = state.pacing_rate.and_then(Rate::paced) {
            visit("pacing_rate_bps", rate.as_bps_f64());
        }
        self.pair.sender.inspect(visit);
    }

    /// Returns what became of each frame of a call; nothing of another application, or if it is not recorded.
    pub fn recorded_frames(&self) -> &[FrameRecord] {
        self.application.recorded_frames()
    }

    /// Calls `visit` with what the application made of it until `now`, by name, in the unit the name ends in.
    pub fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.application.outcome(now, visit);
        if let Some((at, _)) = self.closed {
            visit("closed_at_s", at.as_secs_f64());
        }
    }
}

/// The message that `bytes` are; `None` if they are something else.
fn decoded(direction: Direction, bytes: &[u8]) -> Option<Datagram> {
    let (payload, fields) = (u16::try_from(bytes.len()).ok()?, bytes.get(1..MESSAGE)?);
    let mut numbers =
        fields.chunks_exact(4).map(|part| u32::from_be_bytes([part[0], part[1], part[2], part[3]]));
    let mut next = || numbers.next();
    Some(Datagram { direction, payload, number: next()?, echo: next()?, held_us: next()? })
}

/// A flow in the hands of its application, at a moment.
struct FlowSocket<'a> {
    now: Time,
    stream: &'a mut Stream,
    rate: Option<Rate>,
    random: &'a mut Random,
    messages: &'a mut Vec<Datagram>,
}

impl Socket for FlowSocket<'_> {
    fn now(&self) -> Time {
        self.now
    }
    fn write(&mut self, size: Bytes) {
        self.stream.asked = self.stream.asked.saturating_add(size.0);
    }
    fn finish(&mut self) {
        self.stream.finishing = true;
    }
    fn unsent(&self) -> Bytes {
        Bytes(self.stream.asked - self.stream.sent)
    }
    fn discard_unsent(&mut self) {
        self.stream.asked = self.stream.written;
    }
    fn delivered(&self) -> Bytes {
        Bytes(self.stream.delivered)
    }
    fn rate(&self) -> Option<Rate> {
        self.rate
    }
    fn random(&mut self) -> &mut Random {
        self.random
    }
    fn send(&mut self, datagram: Datagram) {
        self.messages.push(datagram);
    }
}
