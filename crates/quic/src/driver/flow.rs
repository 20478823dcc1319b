//! Both ends of one flow, with the stream between them: what a simulator plugs in where it has a modelled host.
//!
//! Payloads stay here, in a slab; a packet names its place. The receiving end's packets leave late by a draw from 0 to `jitter`,
//! in order, as every host does; those of the sending end wait for nothing but its controller.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use brakelight_core::controller::{Connection, Controller as _};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::random::Random;
use brakelight_core::registry::ControllerConfig;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_scenario::clock::Clock;
use brakelight_scenario::traffic::Traffic;
use quinn_proto::crypto::ServerConfig;
use quinn_proto::{Dir, Event, ReadError, StreamEvent, StreamId};

use super::application::{Application, UnsupportedTraffic};
use super::identity::{Identity, IdentityError};
use super::side::{Outgoing, Side, SideSettings};
use super::slab::{Handle, Slab};
use crate::adapter::{Governor, Path, Place, Settings, Unsupported};

/// IPv4 and UDP headers.
const HEADERS: u16 = 28;
/// rfc9000 14.1
const LEAST: u16 = 1200;
/// What is written to the stream at a time.
const CHUNK: usize = 1 << 16;

/// Which way a packet travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the end that sends the stream.
    Forward,
    /// From the end that receives it.
    Reverse,
}

/// What a flow is made of.
#[derive(Clone, Debug)]
pub struct FlowSettings {
    /// The sender's controller.
    pub controller: ControllerConfig,
    /// IP bytes of a full packet.
    pub packet: u16,
    /// How many packets one ACK stands for, asked for by the ACK-frequency extension; `None` leaves it to the receiver.
    pub ack_every: Option<u32>,
    /// The window before the first ACK, in packets.
    pub initial_window: u32,
    /// Packets that may leave back to back after a pause.
    pub pacing_burst: u32,
    /// What the application sends.
    pub traffic: Traffic,
    /// When the flow starts.
    pub start: Time,
    /// When it stops: nothing leaves any more, what was lost included.
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
pub enum SetupError {
    /// Its controller.
    #[error(transparent)]
    Controller(#[from] Unsupported),
    /// Its application.
    #[error(transparent)]
    Traffic(#[from] UnsupportedTraffic),
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

    /// Bytes of a full datagram, the application, and the congestion control.
    fn parts(&self) -> Result<(u16, Application, Settings), SetupError> {
        let datagram = self.packet.saturating_sub(HEADERS);
        if datagram < LEAST {
            return Err(SetupError::Packet(self.packet));
        }
        let application = Application::new(&self.traffic, Bytes(u64::from(datagram)), self.random.clone())?;
        let mut settings = Settings::new(self.controller.clone(), Place::Driver, Path::Own)?;
        settings.initial_window = self.initial_window;
        settings.pacing_burst = self.pacing_burst;
        settings.overhead = u64::from(HEADERS);
        settings.random = self.controller_random.clone();
        settings.receive_times |= self.receive_times;
        Ok((datagram, application, settings))
    }
}

/// A packet on its way. Its payload stays with the flow.
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
}

/// Both ends of one flow.
#[derive(Debug)]
pub struct Flow {
    settings: FlowSettings,
    governor: Arc<Governor>,
    encoding: Encoding,
    sender: Side,
    receiver: Side,
    application: Application,
    slab: Slab,
    /// The receiving end's packets, with when they leave.
    outbox: VecDeque<(Time, Packet)>,
    last_left_at: Time,
    /// Forward packets so far: each has the next number, as the stack's of the 1-RTT space nearly have.
    numbered: u64,
    start_at: Option<Time>,
    stop_at: Option<Time>,
    stream: Option<StreamId>,
    arriving: Option<StreamId>,
    written: u64,
    received: u64,
    completed: Option<Time>,
    closed: Option<String>,
    wake_at: Option<Time>,
}

impl Flow {
    /// A flow that has not started.
    pub fn new(settings: FlowSettings) -> Result<Self, SetupError> {
        Self::with_receiver(settings, |crypto| crypto)
    }

    /// The same, whose receiver's cryptography passes through `wrap`: tests make it lie.
    fn with_receiver(
        settings: FlowSettings,
        wrap: impl FnOnce(Arc<dyn ServerConfig>) -> Arc<dyn ServerConfig>,
    ) -> Result<Self, SetupError> {
        let (datagram, application, own) = settings.parts()?;
        let mut random = settings.random.clone();
        let base = Instant::now();
        let governor = Arc::new(Governor::new(own, true, Some(base)));
        let identity = Identity::fixed()?;
        let mut side = || SideSettings {
            base,
            seed: seed(&mut random),
            datagram,
            ack_every: settings.ack_every,
            clock: settings.receiver_clock,
            reports: settings.reports,
        };
        let sender = Side::sending(side(), &identity, governor.clone())?;
        let receiver = Side::receiving(side(), wrap(identity.server()?));
        Ok(Flow {
            governor,
            encoding: encoding(&settings),
            sender,
            receiver,
            application,
            slab: Slab::default(),
            outbox: VecDeque::new(),
            last_left_at: Time::ZERO,
            numbered: 0,
            start_at: Some(settings.start),
            stop_at: settings.stop,
            stream: None,
            arriving: None,
            written: 0,
            received: 0,
            completed: None,
            closed: None,
            wake_at: Some(settings.start),
            settings: FlowSettings { random, ..settings },
        })
    }

    /// The sender's congestion control.
    pub fn governor(&self) -> &Governor {
        &self.governor
    }

    /// What the sender means by its ECN bits.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Bytes of the stream that have arrived, each counted once.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// How long the transfer took, if it had a size and is over.
    pub fn completion(&self) -> Option<Duration> {
        self.completed.map(|at| at.since(self.settings.start))
    }

    /// Why the sending end's connection is over, if it is.
    pub fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Payloads on their way.
    pub fn in_transit(&self) -> usize {
        self.slab.len()
    }

    /// A packet arrived at its end. A copy leaves the payload for the original.
    pub fn accept(&mut self, now: Time, packet: &Packet, copy: bool) {
        let Some(payload) = self.slab.get(packet.handle) else { return };
        if !copy {
            self.slab.remove(packet.handle);
        }
        match packet.direction {
            Direction::Forward => self.receiver.handle(now, packet.ecn, &payload),
            Direction::Reverse => self.sender.handle(now, packet.ecn, &payload),
        }
        self.serve(now);
    }

    /// A packet died on the way.
    pub fn release(&mut self, packet: &Packet) {
        self.slab.remove(packet.handle);
    }

    /// The next packet to send.
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
        if let Some(outgoing) = self.sender.poll_transmit(now) {
            return Some(self.packet(Direction::Forward, outgoing));
        }
        let outbox = self.outbox.front().map(|&(at, _)| at);
        let application = Some(self.application.next_timer()).filter(|at| *at != Time::MAX);
        let ends = [self.sender.deadline(), self.receiver.deadline()];
        self.wake_at = [self.start_at, self.stop_at, outbox, application.filter(|_| self.stream.is_some())]
            .into_iter()
            .chain(ends)
            .flatten()
            .min();
        None
    }

    /// When the flow must be polled next, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.wake_at
    }

    fn packet(&mut self, direction: Direction, outgoing: Outgoing) -> Packet {
        let size = outgoing.payload.len() as u16 + HEADERS;
        let hash16 = match outgoing.number {
            Some(number) => crate::adapter::hash16(number),
            None => {
                self.numbered += 1;
                self.numbered as u16
            }
        };
        let handle = self.slab.insert(outgoing.payload);
        Packet { handle, direction, size, ecn: outgoing.ecn, data: outgoing.data, hash16 }
    }

    /// When something that is ready now leaves a real host: a little later, and not before what was ready earlier.
    fn leave_at(&mut self, now: Time) -> Time {
        let late = self.settings.jitter.mul_f64(self.settings.random.uniform());
        self.last_left_at = self.last_left_at.max(now + late);
        self.last_left_at
    }

    fn on_deadline(&mut self, now: Time) {
        if self.start_at.is_some_and(|at| at <= now) {
            self.start_at = None;
            // Nothing that `new` has not checked can be wrong: the flow would never start, which its goodput shows.
            let _ = self.sender.connect(now);
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            self.stop_at = None;
            self.stop();
        }
        self.sender.on_deadline(now);
        self.receiver.on_deadline(now);
        if self.stream.is_some() {
            self.application.on_timer(now);
        }
        self.serve(now);
    }

    fn stop(&mut self) {
        self.application.stop();
        if let (Some(stream), Some(connection)) = (self.stream.take(), self.sender.connection()) {
            // Errs if it is over already.
            let _ = connection.send_stream(stream).reset(0u32.into());
        }
    }

    /// Lets both ends' applications act.
    fn serve(&mut self, now: Time) {
        while let Some(event) = self.sender.poll_event(now) {
            match (event, self.sender.connection()) {
                (Event::Connected, Some(connection)) => {
                    self.stream = connection.streams().open(Dir::Uni);
                    self.application.start(now);
                }
                (Event::ConnectionLost { reason }, _) => {
                    self.stream = None;
                    self.closed = Some(reason.to_string());
                }
                _ => {}
            }
        }
        self.write();
        while let Some(event) = self.receiver.poll_event(now) {
            if let Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) = event
                && let Some(connection) = self.receiver.connection()
            {
                self.arriving = connection.streams().accept(Dir::Uni).or(self.arriving);
            }
        }
        self.read();
        if self.completed.is_none() && self.application.size().is_some_and(|size| self.received >= size) {
            self.completed = Some(now);
        }
    }

    fn write(&mut self) {
        let (Some(stream), Some(connection)) = (self.stream, self.sender.connection()) else { return };
        while self.written < self.application.offered() {
            let left = self.application.offered() - self.written;
            let length = left.min(CHUNK as u64) as usize;
            match connection.send_stream(stream).write_chunks(&mut [chunk(length)]) {
                Ok(taken) if taken.bytes > 0 => self.written += taken.bytes as u64,
                // Full: the stack says when it is not.
                _ => return,
            }
        }
        if self.application.size().is_some() && connection.send_stream(stream).finish().is_ok() {
            self.stream = None;
        }
    }

    fn read(&mut self) {
        let (Some(stream), Some(connection)) = (self.arriving, self.receiver.connection()) else { return };
        let mut incoming = connection.recv_stream(stream);
        let Ok(mut chunks) = incoming.read(false) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.received += chunk.bytes.len() as u64,
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

/// `length` bytes that cost no memory of their own.
fn chunk(length: usize) -> bytes::Bytes {
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    bytes::Bytes::from_static(&ZEROS[..length])
}

fn seed(random: &mut Random) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&random.bits().to_le_bytes()));
    seed
}

/// What flows of this kind mean by their ECN bits.
fn encoding(settings: &FlowSettings) -> Encoding {
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
