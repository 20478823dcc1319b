//! The simulated packet: a plain value of 64 bytes that moves through rings.
//!
//! What does not fit (the contents of an ACK) stays with the host and is addressed by slot; see
//! [`host`](crate::host).

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{Duplicate, FlowId, Header, Packet, PacketId, Tunnel};
use brakelight_core::time::{Duration, Time};

use crate::engine::{Direction, Routed};

/// A packet of the modelled host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimPacket {
    /// Its identity, unique within a run.
    pub id: PacketId,
    /// When its sender sent it.
    pub sent_at: Time,
    /// Time spent in queues so far.
    pub queued: Duration,
    /// What it carries.
    pub kind: Kind,
    /// The flow, which is the endpoint that owns it.
    pub flow: FlowId,
    /// Which of the flow's connections it belongs to; a flow of short connections has many, one after the other.
    pub connection: u32,
    /// IP bytes.
    pub size: u16,
    /// Its ECN field.
    pub ecn: Ecn,
    /// What its flow means by that field.
    pub encoding: Encoding,
    /// How many elements it has entered. The engine's.
    pub hop: u8,
    /// Which way it travels.
    pub direction: Direction,
    /// TCP's CWR: the sender has reacted to CE.
    pub cwr: bool,
    /// What a tunnel has put around it.
    pub tunnel: Option<Tunnel>,
}

/// What a packet carries. Numbers count packets, so a connection may send 2^32 of them: 6 TB.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A segment of the stream.
    Data {
        /// The transmission: each has its own number, rising by one.
        number: u32,
        /// The segment of the stream it carries.
        segment: u32,
        /// The scheme's explicit header.
        header: Header,
    },
    /// An acknowledgement, whose contents lie in the host.
    Ack {
        /// Where.
        slot: u32,
        /// Which use of that place.
        generation: u32,
    },
    /// A message of an application that needs no acknowledgement.
    Datagram {
        /// Its number.
        number: u32,
        /// The number of the newest message from the other side.
        echo: u32,
        /// How long ago that one had arrived, in microseconds.
        held_us: u32,
    },
    /// A packet of a real stack, whose bytes lie in the endpoint.
    Wire {
        /// Where.
        slot: u32,
        /// Which use of that place.
        generation: u32,
        /// What routers take for its hash.
        hash: u16,
        /// Whether it carries data, rather than only an acknowledgement.
        data: bool,
    },
}

// Budget: a packet is one cache line.
const _: () = assert!(size_of::<SimPacket>() <= 64);

impl Packet for SimPacket {
    #[inline]
    fn id(&self) -> PacketId {
        self.id
    }
    /// Each connection of a flow is a flow to the queues it passes; the first one has the flow's own identity.
    #[inline]
    fn flow(&self) -> FlowId {
        // Fibonacci hashing spreads the others over the rest of the numbers.
        FlowId(self.flow.0.wrapping_add(self.connection.wrapping_mul(0x9e37_79b1)))
    }
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size) + self.tunnel.map_or(0, Tunnel::overhead)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    #[inline]
    fn encoding(&self) -> Encoding {
        self.encoding
    }
    #[inline]
    fn tunnel(&self) -> Option<Tunnel> {
        self.tunnel
    }
    #[inline]
    fn set_tunnel(&mut self, tunnel: Option<Tunnel>) {
        self.tunnel = tunnel;
    }
    #[inline]
    fn sent_at(&self) -> Option<Time> {
        Some(self.sent_at)
    }
    #[inline]
    fn header(&self) -> Header {
        match self.kind {
            Kind::Data { header, .. } => header,
            _ => Header::None,
        }
    }
    #[inline]
    fn set_header(&mut self, new: Header) {
        if let Kind::Data { header, .. } = &mut self.kind {
            *header = new;
        }
    }
    #[inline]
    fn is_ack(&self) -> bool {
        matches!(self.kind, Kind::Ack { .. })
    }
    /// Like an IPv4 identification: a counter per connection that starts anywhere. A copy has its original's.
    #[inline]
    fn hash16(&self) -> u16 {
        let number = match self.kind {
            Kind::Data { number, .. } | Kind::Datagram { number, .. } => number,
            Kind::Ack { slot, .. } => slot,
            Kind::Wire { hash, .. } => return hash,
        };
        let start = Packet::flow(self).0.wrapping_mul(0x9e37_79b1) >> 16;
        number.wrapping_add(start) as u16
    }
}

impl Duplicate for SimPacket {
    fn duplicate(&self, id: PacketId) -> Self {
        SimPacket { id, ..*self }
    }
}

impl Routed for SimPacket {
    #[inline]
    fn endpoint(&self) -> usize {
        self.flow.0 as usize
    }
    #[inline]
    fn direction(&self) -> Direction {
        self.direction
    }
    #[inline]
    fn hop(&self) -> u8 {
        self.hop
    }
    #[inline]
    fn set_hop(&mut self, hop: u8) {
        self.hop = hop;
    }
    #[inline]
    fn add_queued(&mut self, queued: Duration) {
        self.queued += queued;
    }
    #[inline]
    fn queued(&self) -> Duration {
        self.queued
    }
    #[inline]
    fn is_data(&self) -> bool {
        !matches!(self.kind, Kind::Ack { .. } | Kind::Wire { data: false, .. })
    }
}
