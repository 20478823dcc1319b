//! One connection: both ends, the ACKs between them, and the packets waiting to leave.

use std::collections::VecDeque;

use brakelight_core::controller::{Connection as Opening, Controller};
use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::feedback;
use brakelight_core::frugal;
use brakelight_core::packet::{Direction, FlowId, Header, Packet, PacketId};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::Host;

use super::acks::AckArena;
use super::receiver::{AckRequest, Receiver};
use super::sender::{Next, Outgoing, Sender};
use super::{Counters, FlowConfig};
use crate::packet::{Contents, Kind, SimPacket};

/// Bytes that QUIC's STREAM frame header takes in a data packet, and an ACK frame with one range in an ACK
/// packet.
const STREAM_FRAME: u32 = 8;
const ACK_FRAME: u32 = 6;
/// IPv4 and UDP headers of a datagram.
pub(super) const DATAGRAM_OVERHEAD: u16 = 28;

/// What every connection of a flow shares.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) host: Host,
    pub(super) flow: FlowId,
    pub(super) overhead: u16,
    pub(super) ack_size: u16,
    /// Whether ACKs are to say to routers what they acknowledge.
    pub(super) acks_are_read: bool,
    pub(super) jitter: Duration,
    pub(super) random: Random,
    pub(super) next_packet: u64,
    /// When the last ACK left, or will leave.
    pub(super) last_ack_at: Time,
    /// How many packets a receiver reads at once.
    pub(super) read_batch: u32,
}

impl Shared {
    pub(super) fn new(config: &FlowConfig) -> Self {
        let overhead = config.overhead.0 as u32;
        let ack_size = match config.host {
            Host::Tcp | Host::Ns2 => overhead,
            Host::Quic => overhead.saturating_sub(STREAM_FRAME) + ACK_FRAME,
        };
        Shared {
            host: config.host,
            flow: config.flow,
            overhead: overhead as u16,
            ack_size: ack_size as u16,
            // QUIC's are encrypted.
            acks_are_read: config.acks_are_read && matches!(config.host, Host::Tcp | Host::Ns2),
            jitter: config.jitter,
            random: config.random.clone(),
            next_packet: 0,
            last_ack_at: Time::ZERO,
            read_batch: config.read_batch,
        }
    }

    /// An identity: the flow and a count.
    fn identity(&mut self) -> PacketId {
        self.next_packet += 1;
        PacketId(u64::from(self.flow.0) << 40 | self.next_packet)
    }

    /// When something that is ready now leaves a real host: a little later, and not before what was ready
    /// earlier.
    fn leave_at(&mut self, now: Time) -> Time {
        if self.jitter.is_zero() {
            return now;
        }
        self.last_ack_at = self.last_ack_at.max(now + self.lateness());
        self.last_ack_at
    }

    /// A draw of how late the host is.
    fn lateness(&mut self) -> Duration {
        // 32 random bits times the length: uniform to a quarter of a billionth of it.
        let late = (u128::from(self.random.bits() >> 32) * u128::from(self.jitter.as_nanos())) >> 32;
        Duration::from_nanos(late as u64)
    }
}

/// A packet that carries no segment and is on its way out. Ten thousand flows have many of them.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Time,
    id: PacketId,
    /// Where an ACK's contents lie; [`Leaving::DATAGRAM`] for the first of the datagrams.
    slot: u32,
    size: u16,
}

const _: () = assert!(size_of::<Leaving>() <= 24);

impl Leaving {
    const DATAGRAM: u32 = u32::MAX;
}

/// Packets on their way out, in the order they leave.
#[derive(Clone, Debug)]
struct Outbox {
    packets: VecDeque<Leaving>,
    /// When the first of them leaves; [`Time::MAX`] while there is none.
    leaves_at: Time,
}

impl Outbox {
    fn new() -> Self {
        Outbox { packets: VecDeque::new(), leaves_at: Time::MAX }
    }

    #[inline]
    fn push(&mut self, packet: Leaving) {
        // None leaves before those in front of it.
        self.leaves_at = self.leaves_at.min(packet.at);
        frugal::push_back(&mut self.packets, packet);
    }

    #[inline]
    fn pop(&mut self) -> Option<Leaving> {
        let first = self.packets.pop_front();
        self.leaves_at = self.packets.front().map_or(Time::MAX, |next| next.at);
        first
    }
}

/// QUIC: packets that have arrived and were not read yet.
///
/// It is not [`outside::Inbox`](crate::outside::Inbox), which the stacks of others have. This host reads all
/// that has come at one moment, with an ACK for each batch, where such a stack reads a batch and must send
/// before it reads the next. This one is late by a draw from the host's own numbers, which its ACKs share;
/// the other has a stream of its own. With one for both, the outcomes of one of them would change.
#[derive(Clone, Debug)]
struct Inbox {
    packets: VecDeque<SimPacket>,
    /// When the host reads them; [`Time::MAX`] while there are none.
    read_at: Time,
}

impl Inbox {
    fn new() -> Self {
        Inbox { packets: VecDeque::new(), read_at: Time::MAX }
    }

    /// Takes in a packet. The first one wakes the host, which is late.
    fn push(&mut self, packet: SimPacket, shared: &mut Shared, now: Time) {
        if self.packets.is_empty() {
            self.read_at = now + shared.lateness();
        }
        self.packets.push_back(packet);
    }
}

/// Both ends of one connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) number: u32,
    pub(super) encoding: Encoding,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    acks: AckArena,
    /// ACKs and datagrams on their way out.
    outbox: Outbox,
    /// What the datagrams among them carry, and which way.
    datagrams: VecDeque<(Kind, Direction)>,
    inbox: Inbox,
    /// QUIC: (a, b): once packet a has arrived, the receiver knows that the sender knows which packets below
    /// b arrived.
    heard: VecDeque<(u32, u32)>,
}

impl Connection {
    pub(super) fn open(config: &FlowConfig, shared: &mut Shared, number: u32, now: Time) -> Self {
        let random = if number == 0 {
            config.controller_random.clone()
        } else {
            Random::stream(config.controller_random.clone().bits(), &format!("connection {number}"))
        };
        let opening = Opening {
            mss: config.mss,
            overhead: config.overhead,
            initial_window: Bytes(config.mss.0 * u64::from(config.initial_window)),
            now,
            random,
        };
        let mut controller = config.controller.build(&opening);
        if config.check_contract {
            controller = controller.checked(&config.controller.needs());
        }
        let controller = Box::new(controller);
        let encoding = controller.encoding();
        let feedback = Box::new(config.feedback.build(&feedback::Receiver {
            encoding,
            ack_every: config.ack_every,
            mss: config.mss,
        }));
        Connection {
            number,
            encoding,
            sender: Sender::new(shared.host, controller, &opening, config.pacing_burst)
                .with_quic(config.reordering, config.undo)
                .with_pieces(config.traffic.is_in_pieces())
                .with_stages(config.record_stages),
            receiver: Receiver::new(shared.host, feedback, config.ack_delay, config.receiver_clock)
                .with_pieces(config.traffic.is_in_pieces()),
            acks: AckArena::default(),
            outbox: Outbox::new(),
            datagrams: VecDeque::new(),
            inbox: Inbox::new(),
            heard: VecDeque::new(),
        }
    }

    /// The earliest thing that must happen though no packet arrives.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.timer().min(self.leaves_at())
    }

    /// The earliest of the timers.
    #[inline]
    pub(super) fn timer(&self) -> Time {
        self.sender.deadline().min(self.receiver.deadline()).min(self.inbox.read_at)
    }

    /// When the first packet that waits leaves.
    #[inline]
    pub(super) fn leaves_at(&self) -> Time {
        self.outbox.leaves_at
    }

    /// What the connection did so far.
    pub(super) fn counters(&self) -> Counters {
        Counters { goodput_bytes: self.receiver.received().0, ..*self.sender.counters() }
    }

    /// Whether nothing is left to send or to hear.
    pub(super) fn is_finished(&self) -> bool {
        let is_quiet = self.outbox.packets.is_empty() && self.inbox.packets.is_empty();
        self.sender.is_done() && is_quiet && self.acks.in_use() == 0
    }

    pub(super) fn accept(&mut self, shared: &mut Shared, now: Time, packet: &SimPacket) {
        match packet.kind() {
            Kind::Data { .. } if shared.read_batch > 1 => self.inbox.push(*packet, shared, now),
            Kind::Data { number, segment, .. } => {
                if self.take_data(shared, now, packet, number, segment) == AckRequest::Ack {
                    let Connection { receiver, acks, outbox, .. } = self;
                    post_ack(receiver, acks, outbox, shared, now, false);
                }
            }
            Kind::Ack { slot, generation } => {
                // What a copy says, the original may still say.
                let body = if packet.id.is_copy() {
                    self.acks.get(slot, generation)
                } else {
                    self.acks.release(slot, generation)
                };
                let Some(body) = body else { return };
                self.sender.on_ack(now, body);
                if shared.host == Host::Quic
                    && let [first, _, ..] = body.detail().ranges.as_slice()
                {
                    let below = first.start;
                    self.note_heard(below);
                }
                if self.acks.in_use() == 0 {
                    self.trim();
                }
            }
            // The application's, not the connection's; and a stack's, not this host's.
            Kind::Datagram { .. } | Kind::Wire { .. } | Kind::Probe => {}
        }
    }

    /// Gives a data packet to the receiver.
    #[inline]
    fn take_data(
        &mut self,
        shared: &mut Shared,
        now: Time,
        packet: &SimPacket,
        number: u32,
        segment: u32,
    ) -> AckRequest {
        let payload = packet.size.saturating_sub(shared.overhead);
        while let Some(&(after, below)) = self.heard.front()
            && after <= number
        {
            self.heard.pop_front();
            self.receiver.forget_below(below);
        }
        let Connection { receiver, acks, outbox, .. } = self;
        receiver.on_data(now, packet, number, segment, payload, |receiver| {
            post_ack(receiver, acks, outbox, shared, now, true);
        })
    }

    /// Reads what has come, `read_batch` packets at a time. One ACK for each time covers all that was read,
    /// if one of the packets asked for it.
    #[inline(never)]
    fn read(&mut self, shared: &mut Shared, now: Time) {
        self.inbox.read_at = Time::MAX;
        while !self.inbox.packets.is_empty() {
            let mut request = AckRequest::Wait;
            for _ in 0..shared.read_batch {
                let Some(packet) = self.inbox.packets.pop_front() else { break };
                if let Kind::Data { number, segment, .. } = packet.kind()
                    && self.take_data(shared, now, &packet, number, segment) == AckRequest::Ack
                {
                    request = AckRequest::Ack;
                }
            }
            if request == AckRequest::Ack {
                let Connection { receiver, acks, outbox, .. } = self;
                // The host is awake already: it is late no further.
                post_ack_at(receiver, acks, outbox, shared, now, now, false);
            }
        }
    }

    /// No ACK is in flight: gives back the room that the last burst of them needed. Ten thousand flows have
    /// bursts at different times.
    #[cold]
    fn trim(&mut self) {
        self.acks.trim();
        frugal::trim(&mut self.outbox.packets);
    }

    /// rfc9000 13.2.4: the sender has seen an ACK of everything below `below`; the next packet it sends says
    /// so. (A real receiver learns it by sending a PING with the ACK.)
    fn note_heard(&mut self, below: u32) {
        if self.heard.back().is_none_or(|&(_, before)| before < below) {
            self.heard.push_back((self.sender.next_number(), below));
        }
    }

    /// The mark that `ack` echoes for all that it newly covers.
    pub(super) fn echoed_mark(&self, ack: &SimPacket) -> Option<Mark> {
        match ack.kind() {
            Kind::Ack { slot, generation } => self.acks.get(slot, generation).map(|body| body.state),
            _ => None,
        }
    }

    /// A packet died on the way.
    pub(super) fn release(&mut self, packet: &SimPacket) {
        if let (Kind::Ack { slot, generation }, false) = (packet.kind(), packet.id.is_copy()) {
            self.acks.release(slot, generation);
        }
    }

    /// Acts on every deadline due by `now`.
    #[inline(always)]
    pub(super) fn on_deadline(&mut self, shared: &mut Shared, now: Time) {
        if self.sender.deadline() <= now {
            self.sender.on_deadline(now);
        }
        if self.inbox.read_at <= now {
            self.read(shared, now);
        }
        if self.receiver.is_due(now) {
            let Connection { receiver, acks, outbox, .. } = self;
            post_ack(receiver, acks, outbox, shared, now, false);
        }
    }

    /// Whether `poll` would return `None` at `now` and change nothing.
    #[inline]
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.sender.is_halted() && self.leaves_at() > now
    }

    pub(super) fn poll(&mut self, shared: &mut Shared, now: Time) -> Option<SimPacket> {
        if self.leaves_at() <= now {
            return self.leave(shared, now);
        }
        let Next { segment, size, rate } = self.sender.next(now)?;
        match segment {
            None => Some(self.send(shared, now, Next { segment: None, size, rate })),
            Some(segment) => self.send_again(shared, now, segment, size, rate),
        }
    }

    /// Sends a segment again. It is given the parts of a [`Next`], since one whose address is passed on
    /// lies in memory for every packet.
    #[inline(never)]
    fn send_again(
        &mut self,
        shared: &mut Shared,
        now: Time,
        segment: u32,
        size: u64,
        rate: Option<Rate>,
    ) -> Option<SimPacket> {
        Some(self.send(shared, now, Next { segment: Some(segment), size, rate }))
    }

    /// Sends what was chosen. It is inlined twice: the copy for new segments has no code for those that leave
    /// again.
    #[inline(always)]
    fn send(&mut self, shared: &mut Shared, now: Time, next: Next) -> SimPacket {
        let Outgoing { number, segment, size, directive } = self.sender.send(now, next);
        let mut packet = SimPacket::new(&Contents {
            id: shared.identity(),
            sent_at: now,
            kind: Kind::Data { number, segment, header: Header::None },
            flow: shared.flow,
            connection: self.number,
            size: size + shared.overhead,
            ecn: directive.ecn,
            encoding: self.encoding,
            direction: Direction::Forward,
            cwr: directive.cwr,
        });
        packet.set_header(directive.header);
        if shared.acks_are_read {
            packet.set_readable();
        }
        packet
    }

    /// Takes the first packet from the outbox, whose time has come.
    #[inline]
    fn leave(&mut self, shared: &Shared, now: Time) -> Option<SimPacket> {
        let Leaving { id, slot, size, .. } = self.outbox.pop()?;
        let (kind, direction) = match slot {
            Leaving::DATAGRAM => self.datagrams.pop_front()?,
            slot => (Kind::Ack { slot, generation: self.acks.generation(slot) }, Direction::Reverse),
        };
        let mut packet = SimPacket::new(&Contents {
            id,
            sent_at: now,
            kind,
            flow: shared.flow,
            connection: self.number,
            size,
            // rfc3168 6.1.4: pure ACKs are not ECN-capable.
            ecn: Ecn::NotEct,
            encoding: Encoding::None,
            direction,
            cwr: false,
        });
        if shared.acks_are_read
            && let Kind::Ack { slot, generation } = kind
            && let Some(body) = self.acks.get(slot, generation)
        {
            packet.set_acknowledgement(&body.acknowledgement());
        }
        Some(packet)
    }

    /// Sends a message of the application.
    pub(super) fn post_datagram(
        &mut self,
        shared: &mut Shared,
        now: Time,
        direction: Direction,
        payload: u16,
        kind: Kind,
    ) {
        let id = shared.identity();
        let at = shared.leave_at(now);
        self.datagrams.push_back((kind, direction));
        let size = payload + DATAGRAM_OVERHEAD;
        self.outbox.push(Leaving { at, id, slot: Leaving::DATAGRAM, size });
    }
}

/// Writes an ACK and puts it where it will leave from.
#[inline(never)]
fn post_ack(
    receiver: &mut Receiver,
    acks: &mut AckArena,
    outbox: &mut Outbox,
    shared: &mut Shared,
    now: Time,
    flush: bool,
) {
    let at = shared.leave_at(now);
    post_ack_at(receiver, acks, outbox, shared, now, at, flush);
}

/// Writes an ACK that leaves at `at`, or once those before it have left.
#[inline(always)]
fn post_ack_at(
    receiver: &mut Receiver,
    acks: &mut AckArena,
    outbox: &mut Outbox,
    shared: &mut Shared,
    now: Time,
    at: Time,
    flush: bool,
) {
    let (slot, body) = acks.claim();
    let lists = receiver.write_ack(now, flush, body);
    let id = shared.identity();
    let size = shared.ack_size + lists as u16;
    shared.last_ack_at = shared.last_ack_at.max(at);
    outbox.push(Leaving { at: shared.last_ack_at, id, slot, size });
}
