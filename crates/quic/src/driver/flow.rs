//! Both ends of one connection, with its application: what a simulator plugs in where it has a modelled host.
//!
//! Payloads stay here, in a slab; a packet names its place. The receiving end's packets leave late by a draw
//! from 0 to `jitter`, in order, as every host does; those of the sending end wait for nothing but its
//! controller.
//!
//! The application starts when the flow does. What it writes before the handshake is over waits for that,
//! messages included. Its payload is one stream of the sending end, which opens the connection; its messages
//! are DATAGRAM frames of either end. Those of the sending end count against the controller's window
//! (rfc9221 5.4).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use brakelight_apps::traffic::{RequestResponse, Traffic};
use brakelight_apps::{AnyApplication, Application, Datagram};
use brakelight_core::controller::{Connection, Controller as _};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::ControllerConfig;
use brakelight_scenario::clock::Clock;
use quinn_proto::crypto::ServerConfig;
use quinn_proto::{Dir, Event, ReadError, StreamEvent, StreamId};

use super::identity::{Identity, IdentityError};
use super::message;
use super::side::{self, Side, SideSettings};
use super::slab::{Handle, Slab};
use crate::adapter::{ControlSettings, ControllerAdapter, PacketSender, Path, Unsupported};

mod stream;
use stream::{Arrived, FlowSocket, Outgoing};

/// IPv4 and UDP headers.
const HEADERS: u16 = 28;
/// rfc9000 14.1
const LEAST: u16 = 1200;
/// What a packet with one DATAGRAM frame takes besides the message: short header with a connection ID of 8
/// bytes and a number of 4, AEAD tag, and the bound that quinn-proto puts on the frame's own header.
const AROUND_MESSAGE: u16 = 1 + 8 + 4 + 16 + 9;
/// Parts that an application cuts a request into, at most.
const MOST_PARTS: u64 = 64;

/// Settings of a flow.
#[derive(Clone, Debug)]
pub struct FlowSettings {
    /// The sender's controller.
    pub controller: ControllerConfig,
    /// IP bytes of a full packet.
    pub packet: u16,
    /// How many packets one ACK stands for, asked for by the ACK-frequency extension; `None` leaves it to the
    /// receiver.
    pub ack_every: Option<u32>,
    /// The window before the first ACK, in packets.
    pub initial_window: u32,
    /// Packets that may leave back to back after a pause.
    pub pacing_burst: u32,
    /// What the application sends.
    pub traffic: Traffic,
    /// When the flow starts.
    pub start: Time,
    /// When it stops: nothing that was not sent by then is sent, except again.
    pub stop: Option<Time>,
    /// The clock by which the receiver says when packets arrived.
    pub receiver_clock: Clock,
    /// Whether the receiver reports when each packet arrived; if not, it stands for one that is not ours.
    pub reports: bool,
    /// Whether the controller is to be told of receive times though it would not ask for them by itself.
    pub receive_times: bool,
    /// Largest delay of a packet in the receiving host.
    pub jitter: Duration,
    /// The host's own stream of random numbers.
    pub random: Random,
    /// The controller's.
    pub controller_random: Random,
}

/// Why a flow cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Its controller.
    #[error(transparent)]
    Controller(#[from] Unsupported),
    /// Its application's messages.
    #[error("traffic.{field}: {size} does not fit the DATAGRAM frames that carry it: valid are 1B to {most}")]
    Message {
        /// The field.
        field: &'static str,
        /// Its value.
        size: Bytes,
        /// The largest that fits.
        most: Bytes,
    },
    /// What its application sends.
    #[error("traffic.repair: frames in packets of their own are simulated only: valid is stream")]
    Pieces,
    /// Its packets.
    #[error(
        "mss: packets of {0} bytes are too small for QUIC: valid are 1228 bytes and more, headers included"
    )]
    Packet(u16),
    /// Its certificate.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl FlowSettings {
    /// Says why such a flow could not be made, if it could not.
    pub fn check(&self) -> Result<(), SetupError> {
        self.parts().map(drop)
    }

    /// Bytes of a full datagram, and the congestion control.
    fn parts(&self) -> Result<(u16, ControlSettings), SetupError> {
        let datagram = self.packet.saturating_sub(HEADERS);
        if datagram < LEAST {
            return Err(SetupError::Packet(self.packet));
        }
        if self.traffic.is_in_pieces() {
            return Err(SetupError::Pieces);
        }
        self.check_messages(message_size(datagram))?;
        let mut settings = ControlSettings::new(self.controller.clone(), PacketSender::Driver, Path::Own)?;
        settings.initial_window = self.initial_window;
        settings.pacing_burst = self.pacing_burst;
        settings.overhead = u64::from(HEADERS);
        settings.random = self.controller_random.clone();
        settings.receive_times |= self.receive_times;
        Ok((datagram, settings))
    }

    /// Whether the application's messages fit packets that carry `largest` bytes of them.
    fn check_messages(&self, largest: Bytes) -> Result<(), SetupError> {
        let (field, size, most) = match self.traffic {
            Traffic::RequestResponse(RequestResponse { request, .. }) => {
                ("request", request, Bytes(MOST_PARTS * largest.0))
            }
            Traffic::Game(game) => ("size", game.size, largest),
            _ => return Ok(()),
        };
        if size <= most { Ok(()) } else { Err(SetupError::Message { field, size, most }) }
    }
}

/// A packet in transit. The flow keeps its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where the payload lies.
    pub handle: Handle,
    /// Which way it travels.
    pub direction: Direction,
    /// IP bytes.
    pub size: u16,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Whether it carries the stream, or anything else that asks for an ACK of the receiving end.
    pub data: bool,
    /// 16 bits by which routers tell it from others.
    pub hash16: u16,
    /// The connection it belongs to, where a flow has many.
    pub connection: u32,
}

/// What a flow did so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Bytes of the stream that have arrived, each counted once.
    pub received_bytes: u64,
    /// Packets declared lost, some of them by mistake.
    pub lost_packets: u64,
}

impl Totals {
    /// Both together.
    pub(super) fn plus(self, other: Totals) -> Totals {
        Totals {
            received_bytes: self.received_bytes + other.received_bytes,
            lost_packets: self.lost_packets + other.lost_packets,
        }
    }
}

/// Both ends of one connection.
#[derive(Debug)]
pub struct Flow {
    settings: FlowSettings,
    adapter: Arc<ControllerAdapter>,
    sender: Side,
    receiver: Side,
    application: AnyApplication,
    application_at: Time,
    /// In-order payload whose arrival the application knows of.
    heard: u64,
    /// Messages that the application has just sent.
    messages: Vec<Datagram>,
    /// Messages that wait for their end's handshake to be over.
    held: Vec<Datagram>,
    slab: Slab,
    /// The receiving end's packets, with when they leave.
    outbox: VecDeque<(Time, Packet)>,
    last_left_at: Time,
    /// Forward packets so far: each has the next number, as the stack's of the 1-RTT space nearly have.
    numbered: u64,
    start_at: Option<Time>,
    stop_at: Option<Time>,
    outgoing: Outgoing,
    stream: Option<StreamId>,
    arrived: Arrived,
    arriving: Option<StreamId>,
    closed: Option<String>,
    wake_at: Option<Time>,
}

impl Flow {
    /// Returns a flow that has not started.
    pub fn new(settings: FlowSettings) -> Result<Self, SetupError> {
        Self::numbered(settings, 0)
    }

    /// A flow that has not started, whose connection is one of many, by number.
    pub(super) fn numbered(settings: FlowSettings, connection: u32) -> Result<Self, SetupError> {
        Self::with_receiver(settings, connection, false, |crypto| crypto)
    }

    /// The same, which searches for the path's MTU if `discover_mtu`, and whose receiver's cryptography
    /// passes through `wrap`: tests make it lie.
    fn with_receiver(
        settings: FlowSettings,
        connection: u32,
        discover_mtu: bool,
        wrap: impl FnOnce(Arc<dyn ServerConfig>) -> Arc<dyn ServerConfig>,
    ) -> Result<Self, SetupError> {
        let (datagram, own) = settings.parts()?;
        let mut random = settings.random.clone();
        let base = Instant::now();
        let adapter = Arc::new(ControllerAdapter::new(own, true, Some(base)));
        let identity = Identity::fixed()?;
        let mut side = || SideSettings {
            base,
            seed: seed(&mut random),
            datagram,
            discover_mtu,
            ack_every: settings.ack_every,
            clock: settings.receiver_clock,
            reports: settings.reports,
            connection,
        };
        let sender = Side::sending(side(), identity.client()?, adapter.clone());
        let receiver = Side::receiving(side(), wrap(identity.server()?));
        Ok(Flow {
            adapter,
            sender,
            receiver,
            application: AnyApplication::new(&settings.traffic, message_size(datagram)),
            application_at: Time::MAX,
            heard: 0,
            messages: Vec::new(),
            held: Vec::new(),
            slab: Slab::default(),
            outbox: VecDeque::new(),
            last_left_at: Time::ZERO,
            numbered: 0,
            start_at: Some(settings.start),
            stop_at: settings.stop,
            outgoing: Outgoing::default(),
            stream: None,
            arrived: Arrived::default(),
            arriving: None,
            closed: None,
            wake_at: Some(settings.start),
            settings: FlowSettings { random, ..settings },
        })
    }

    /// Returns the sender's congestion control.
    pub fn adapter(&self) -> &ControllerAdapter {
        &self.adapter
    }

    /// Returns the bytes of the stream that have arrived, each counted once.
    pub fn received(&self) -> u64 {
        self.arrived.total()
    }

    /// Returns the bytes of the stream that have arrived with nothing missing before them.
    pub fn delivered(&self) -> u64 {
        self.arrived.in_order()
    }

    /// Returns what the flow did so far.
    pub fn totals(&self) -> Totals {
        Totals { received_bytes: self.received(), lost_packets: self.adapter.counters().lost_packets }
    }

    /// Calls `visit` with what the application made of it until `now`, by name, in the unit the name ends in.
    pub fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.application.outcome(now, visit);
    }

    /// Returns whether nothing of the flow is on the way, and nothing waits for an ACK.
    pub fn is_quiet(&self) -> bool {
        self.in_transit() == 0 && self.adapter.inflight() == Bytes::ZERO
    }

    /// Returns why the sending end's connection is over, if it is.
    pub fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Returns the payloads on their way.
    pub fn in_transit(&self) -> usize {
        self.slab.len()
    }

    /// A packet arrived at its end. A copy leaves the payload for the original.
    pub fn accept(&mut self, now: Time, packet: &Packet, copy: bool) {
        let Some(payload) = self.slab.get(packet.handle) else { return };
        if !copy {
            self.slab.remove(packet.handle);
        }
        self.receive(now, packet.direction, packet.ecn, &payload);
    }

    /// A datagram arrived at the end that `direction` leads to: the UDP payload of a packet, which travelled
    /// by itself.
    pub fn receive(&mut self, now: Time, direction: Direction, ecn: Ecn, payload: &[u8]) {
        match direction {
            Direction::Forward => self.receiver.handle(now, ecn, payload),
            Direction::Reverse => self.sender.handle(now, ecn, payload),
        }
        self.serve(now);
    }

    /// Hands out the UDP payload of a packet that is to travel by itself. `None` if it is gone.
    pub fn take_payload(&mut self, packet: &Packet) -> Option<bytes::Bytes> {
        let payload = self.slab.get(packet.handle)?;
        self.slab.remove(packet.handle);
        Some(payload)
    }

    /// A packet died on the way.
    pub fn release(&mut self, packet: &Packet) {
        self.slab.remove(packet.handle);
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.wake_at.is_some_and(|at| at <= now) {
            self.wake_at = None;
            self.on_deadline(now);
        }
        while let Some(outgoing) = self.receiver.poll_transmit(now) {
            let packet = self.packet(Direction::Reverse, outgoing);
            let at = self.leave_at(now);
            self.outbox.push_back((at, packet));
        }
        if let Some(&(at, packet)) = self.outbox.front()
            && at <= now
        {
            self.outbox.pop_front();
            return Some(packet);
        }
        self.feed();
        if let Some(outgoing) = self.sender.poll_transmit(now) {
            return Some(self.packet(Direction::Forward, outgoing));
        }
        let outbox = self.outbox.front().map(|&(at, _)| at);
        let application = Some(self.application_at).filter(|at| *at != Time::MAX);
        let ends = [self.sender.deadline(), self.receiver.deadline()];
        self.wake_at =
            [self.start_at, self.stop_at, outbox, application].into_iter().chain(ends).flatten().min();
        None
    }

    /// Returns when the flow must be polled next, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.wake_at
    }

    fn packet(&mut self, direction: Direction, outgoing: side::Outgoing) -> Packet {
        let size = outgoing.payload.len() as u16 + HEADERS;
        let hash16 = match outgoing.number {
            Some(number) => crate::adapter::hash16(number),
            None => {
                self.numbered += 1;
                self.numbered as u16
            }
        };
        let handle = self.slab.insert(outgoing.payload);
        Packet { handle, direction, size, ecn: outgoing.ecn, data: outgoing.data, hash16, connection: 0 }
    }

    /// When something that is ready now leaves a real host: a little later, and not before what was ready
    /// earlier.
    fn leave_at(&mut self, now: Time) -> Time {
        let late = self.settings.jitter.mul_f64(self.settings.random.uniform());
        self.last_left_at = self.last_left_at.max(now + late);
        self.last_left_at
    }

    fn on_deadline(&mut self, now: Time) {
        if self.start_at.is_some_and(|at| at <= now) {
            self.start_at = None;
            // Nothing that `new` has not checked can be wrong: the flow would never start, which its goodput
            // shows.
            let _ = self.sender.connect(now);
            self.act(now, |application, socket| application.start(socket));
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            self.stop_at = None;
            self.act(now, |application, socket| application.stop(socket));
            self.outgoing.finish();
        }
        self.sender.on_deadline(now);
        self.receiver.on_deadline(now);
        if self.application_at <= now {
            self.act(now, |application, socket| application.on_timer(socket));
        }
        self.serve(now);
    }

    /// Lets the application act, and notes when it wants to act again.
    fn act(&mut self, now: Time, act: impl FnOnce(&mut AnyApplication, &mut FlowSocket<'_>)) {
        let mut socket = FlowSocket {
            now,
            outgoing: &mut self.outgoing,
            sent: self.sender.stream_sent(),
            delivered: self.arrived.in_order(),
            adapter: &self.adapter,
            random: &mut self.settings.random,
            messages: &mut self.messages,
        };
        act(&mut self.application, &mut socket);
        self.application_at = self.application.next_timer();
        for message in std::mem::take(&mut self.messages) {
            self.post(message);
        }
    }

    /// Hands a message to the end that sends it, once that is connected.
    fn post(&mut self, message: Datagram) {
        let side = match message.direction {
            Direction::Forward => &mut self.sender,
            Direction::Reverse => &mut self.receiver,
        };
        if !side.send_message(&message) {
            self.held.push(message);
        }
    }

    /// Lets both ends act on what came, and the application on what that makes of it.
    fn serve(&mut self, now: Time) {
        let held = self.held.len();
        while let Some(event) = self.sender.poll_event(now) {
            match (event, self.sender.connection()) {
                (Event::Connected, Some(connection)) => self.stream = connection.streams().open(Dir::Uni),
                (Event::ConnectionLost { reason }, _) => {
                    self.stream = None;
                    self.closed = Some(reason.to_string());
                }
                _ => {}
            }
        }
        while let Some(event) = self.receiver.poll_event(now) {
            if let Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) = event
                && let Some(connection) = self.receiver.connection()
            {
                self.arriving = connection.streams().accept(Dir::Uni).or(self.arriving);
            }
        }
        if held > 0 {
            std::mem::take(&mut self.held).into_iter().for_each(|message| self.post(message));
        }
        self.read();
        self.hear(now);
    }

    /// Tells the application of messages, and of payload that has come in order.
    fn hear(&mut self, now: Time) {
        for direction in [Direction::Forward, Direction::Reverse] {
            loop {
                let end = match direction {
                    Direction::Forward => &mut self.receiver,
                    Direction::Reverse => &mut self.sender,
                };
                let Some(bytes) = end.take_message() else { break };
                if let Some(message) = message::decode(direction, &bytes) {
                    self.act(now, |application, socket| application.on_datagram(&message, socket));
                }
            }
        }
        if self.application.listens() && self.arrived.in_order() > self.heard {
            self.heard = self.arrived.in_order();
            self.act(now, |application, socket| application.on_delivered(socket));
        }
    }

    /// Gives the stack what it can send next.
    fn feed(&mut self) {
        let sent = self.sender.stream_sent();
        let (Some(stream), Some(connection)) = (self.stream, self.sender.connection()) else { return };
        if !self.outgoing.feed(connection, stream, sent, self.settings.packet) {
            self.stream = None;
        }
    }

    fn read(&mut self) {
        let (Some(stream), Some(connection)) = (self.arriving, self.receiver.connection()) else { return };
        let mut incoming = connection.recv_stream(stream);
        let Ok(mut chunks) = incoming.read(false) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.arrived.add(chunk.offset, chunk.bytes.len() as u64),
                Err(ReadError::Blocked) => break,
                Ok(None) | Err(ReadError::Reset(_)) => {
                    self.arriving = None;
                    break;
                }
            }
        }
        let _ = chunks.finalize();
    }
}

/// The largest message that a packet of `datagram` bytes of UDP payload carries.
fn message_size(datagram: u16) -> Bytes {
    Bytes(u64::from(datagram.saturating_sub(AROUND_MESSAGE)))
}

fn seed(random: &mut Random) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&random.bits().to_le_bytes()));
    seed
}

/// What flows of this kind mean by their ECN bits.
pub(super) fn encoding(settings: &FlowSettings) -> Encoding {
    let mss = Bytes(u64::from(settings.packet - HEADERS));
    let opening = Connection {
        mss,
        overhead: Bytes(u64::from(HEADERS)),
        initial_window: mss,
        now: Time::ZERO,
        random: settings.controller_random.clone(),
    };
    settings.controller.build(&opening).encoding()
}

#[cfg(test)]
mod tests;
